//! Steps of the search for the longest match: which node is reached from another one by the next bytes.
//!
//! A hash table whose keys are compared whole. Most entries stand where their hash says, and so one look is enough;
//! where several should stand in one slot, it is marked and a longer way is gone. A second place for each key (cuckoo
//! hashing) needs no marks: looking at both took 6 % less time on TPC-H comments, and 7 % more on most other texts.

/// There are at most 3840 entries of a kind, and seldom half of that. With half as many slots TPC-H comments take 8 %
/// more time, with a quarter a third more: each mark that is met is a branch that nobody expected.
pub(super) const SLOT_BITS_MAX: u32 = 14;

/// An entry: where a step leads from, by which bytes, and to which node.
///
/// In the last word of an entry, from the lowest bit on: for steps of up to four bytes these and the state, for those
/// of eight the state; a mark; the node.
pub(super) trait Entry: Copy {
    /// The entry that leads from `state` by `bytes` to `node`.
    fn new(state: u32, bytes: u64, node: u32) -> Self;
    /// Whether it leads from `state` by `bytes`.
    fn leads(self, state: u32, bytes: u64) -> bool;
    /// What is hashed.
    fn mixed(state: u32, bytes: u64) -> u64;
    /// The last word.
    fn last(&mut self) -> &mut u64;
}

/// Bits of a key in the last word: 32 of bytes and 17 of a state.
const KEY_BITS: u32 = 49;
const MARK: u64 = 1 << KEY_BITS;
const NODE_SHIFT: u32 = KEY_BITS + 1;
const SPARE_BITS: u32 = u64::BITS - KEY_BITS;

/// What an empty slot has for a state and a node: nodes have smaller numbers, and after two bytes a state is greater.
const NO_STATE: u32 = u16::MAX as u32;
const NO_NODE: u32 = (1 << (u64::BITS - NODE_SHIFT)) - 1;

impl Entry for u64 {
    #[inline(always)]
    fn new(state: u32, bytes: u64, node: u32) -> u64 {
        Self::mixed(state, bytes) | u64::from(node) << NODE_SHIFT
    }

    #[inline(always)]
    fn leads(self, state: u32, bytes: u64) -> bool {
        (self ^ Self::mixed(state, bytes)) << SPARE_BITS == 0
    }

    #[inline(always)]
    fn mixed(state: u32, bytes: u64) -> u64 {
        u64::from(state) << 32 | bytes
    }

    #[inline(always)]
    fn last(&mut self) -> &mut u64 {
        self
    }
}

impl Entry for [u64; 2] {
    #[inline(always)]
    fn new(state: u32, bytes: u64, node: u32) -> [u64; 2] {
        [bytes, u64::from(state) | u64::from(node) << NODE_SHIFT]
    }

    #[inline(always)]
    fn leads(self, state: u32, bytes: u64) -> bool {
        (self[0] ^ bytes) | (self[1] ^ u64::from(state)) << SPARE_BITS == 0
    }

    #[inline(always)]
    fn mixed(state: u32, bytes: u64) -> u64 {
        bytes ^ u64::from(state).wrapping_mul(0xA076_1D64_78BD_642F)
    }

    #[inline(always)]
    fn last(&mut self) -> &mut u64 {
        &mut self[1]
    }
}

/// All steps by one number of bytes. Uses 2 to the power of `BITS` slots.
pub(super) struct Steps<E> {
    slots: Box<[E; 1 << SLOT_BITS_MAX]>,
}

impl<E: Entry> Steps<E> {
    /// Without a step.
    pub(super) fn new() -> Steps<E> {
        let slots = vec![E::new(NO_STATE, 0, NO_NODE); 1 << SLOT_BITS_MAX].into_boxed_slice().try_into();
        Steps { slots: slots.ok().expect("it has as many") }
    }

    /// Adds a step that was not there. There are fewer than slots.
    pub(super) fn insert<const BITS: u32>(&mut self, state: u32, bytes: u64, node: u32) {
        let mut place = place::<E, BITS>(state, bytes);
        let mut slot = &mut self.slots[place];
        while *slot.last() >> NODE_SHIFT != u64::from(NO_NODE) {
            *slot.last() |= MARK;
            place = (place + 1) % (1 << BITS);
            slot = &mut self.slots[place];
        }
        *slot = E::new(state, bytes, node);
    }

    /// Whether there is a step from `state` by `bytes`, and its node, which is any where there is none.
    #[inline(always)]
    pub(super) fn find<const BITS: u32>(&self, state: u32, bytes: u64) -> (bool, u32) {
        let place = place::<E, BITS>(state, bytes);
        let mut slot = self.slots[place];
        if *slot.last() & MARK != 0 {
            return self.find_from::<BITS>(place, state, bytes);
        }
        (slot.leads(state, bytes), (*slot.last() >> NODE_SHIFT) as u32)
    }

    /// The same, on from a marked slot.
    #[cold]
    #[inline(never)]
    fn find_from<const BITS: u32>(&self, mut place: usize, state: u32, bytes: u64) -> (bool, u32) {
        loop {
            let mut slot = self.slots[place];
            let last = *slot.last();
            if slot.leads(state, bytes) || last & MARK == 0 {
                return (slot.leads(state, bytes), (last >> NODE_SHIFT) as u32);
            }
            place = (place + 1) % (1 << BITS);
        }
    }
}

/// Where a key should stand.
#[inline(always)]
fn place<E: Entry, const BITS: u32>(state: u32, bytes: u64) -> usize {
    const { assert!(BITS <= SLOT_BITS_MAX) };
    (E::mixed(state, bytes).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - BITS)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_is_found_however_full_the_table_is() {
        fn holds<E: Entry, const BITS: u32>(count: u32) {
            let key = |index: u32| (index % 7, u64::from(index / 7 * 5));
            let mut steps = Steps::<E>::new();
            for index in 0..count {
                let (state, bytes) = key(index);
                steps.insert::<BITS>(state, bytes, index);
            }
            for index in 0..count {
                let (state, bytes) = key(index);
                assert_eq!(steps.find::<BITS>(state, bytes), (true, index));
                assert!(!steps.find::<BITS>(state, bytes + 1).0);
            }
        }
        holds::<u64, 14>(3840);
        holds::<[u64; 2], 14>(3840);
        holds::<u64, 7>(120);
        holds::<[u64; 2], 7>(120);
    }
}
