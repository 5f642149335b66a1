//! Where leaves are: numbered places, so that inner nodes name them by four bytes and are copied like numbers.

use crate::keys::TreeKey;
use crate::leaf::Leaf;
use crate::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::sync::OnceLock;

/// The number of a slot. It is given again when its leaf is gone; who comes with an old number finds a leaf that does not
/// cover his key, or one that does, and either tells him what he needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotIndex(u32);

/// The slots of one tree. Thread-safe: finding one takes no lock.
#[derive(Debug)]
pub(crate) struct Slots<K: TreeKey + ?Sized> {
    /// Each has twice as many slots as the one before.
    chunks: [OnceLock<Box<[Slot<K>]>>; CHUNKS],
    free: Mutex<Free>,
}

/// One leaf's place.
#[derive(Debug)]
pub(crate) struct Slot<K: TreeKey + ?Sized>(
    /// The latch. `None` where there is no leaf (any more).
    RwLock<Option<Leaf<K>>>,
);

#[derive(Debug, Default)]
struct Free {
    given_back: Vec<u32>,
    /// No slot from this one on was ever used.
    next: u32,
}

pub(crate) type ReadLatch<'a, K> = RwLockReadGuard<'a, Option<Leaf<K>>>;
pub(crate) type WriteLatch<'a, K> = RwLockWriteGuard<'a, Option<Leaf<K>>>;

/// Slots of the first chunk, as a power of two.
const FIRST_BITS: u32 = 4;
const CHUNKS: usize = (u32::BITS - FIRST_BITS) as usize;

// Whoever panics under a latch leaves a half-made change behind, on which nobody may build.
const POISONED: &str = "a thread panicked while it changed this leaf";

impl<K: TreeKey + ?Sized> Slots<K> {
    /// None yet.
    pub(crate) fn new() -> Slots<K> {
        Slots { chunks: [const { OnceLock::new() }; CHUNKS], free: Mutex::new(Free::default()) }
    }

    /// Latches the slot's leaf for reading.
    #[inline]
    pub(crate) fn read(&self, slot: SlotIndex) -> ReadLatch<'_, K> {
        self.slot(slot).0.read().expect(POISONED)
    }

    /// Latches the slot's leaf for a change.
    #[inline]
    pub(crate) fn write(&self, slot: SlotIndex) -> WriteLatch<'_, K> {
        self.slot(slot).0.write().expect(POISONED)
    }

    /// Gives a leaf a slot.
    ///
    /// # Panics
    /// When there are four billion leaves.
    pub(crate) fn add(&self, leaf: Leaf<K>) -> SlotIndex {
        let index = {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            free.given_back.pop().unwrap_or_else(|| {
                let next = free.next;
                free.next = next.checked_add(1).expect("too many leaves");
                next
            })
        };
        *self.write(SlotIndex(index)) = Some(leaf);
        SlotIndex(index)
    }

    /// Somebody else may have the slot, whose leaf was taken out.
    pub(crate) fn give_back(&self, slot: SlotIndex) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).given_back.push(slot.0);
    }

    #[inline]
    fn slot(&self, slot: SlotIndex) -> &Slot<K> {
        // Chunk c has the slots from (2^c - 1) * 2^FIRST_BITS on.
        let shifted = u64::from(slot.0) + (1 << FIRST_BITS);
        let chunk = shifted.ilog2() - FIRST_BITS;
        let len = 1_usize << (chunk + FIRST_BITS);
        let make = || (0..len).map(|_| Slot(RwLock::new(None))).collect();
        &self.chunks[chunk as usize].get_or_init(make)[shifted as usize - len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{KeyList, KeyShape};
    use crate::leaf::LeafShape;
    use crate::records::RecordShape;
    use sinter_codec::KeyCodec;

    #[test]
    fn each_leaf_has_a_slot_of_its_own() {
        let keys = KeyShape { codec: KeyCodec::Vbyte, block_len: 256 };
        let shape = LeafShape { keys, records: RecordShape::Fixed(0), size_max: 1 << 10 };
        let slots = Slots::<u64>::new();
        let leaf = |key: u64| {
            let mut leaf = Leaf::new(&shape);
            leaf.put(&key, &[], usize::MAX).unwrap();
            leaf
        };
        let mut indices: Vec<SlotIndex> = (0..10_000).map(|key| slots.add(leaf(key))).collect();
        for key in (0..10_000).step_by(3) {
            let index = indices[key as usize];
            *slots.write(index) = None;
            slots.give_back(index);
        }
        for key in (0..10_000).step_by(3) {
            indices[key as usize] = slots.add(leaf(key));
        }
        for (key, index) in (0..10_000).zip(&indices) {
            assert_eq!(slots.read(*index).as_ref().unwrap().keys().get(0), key);
        }
        assert!(indices.iter().all(|index| index.0 < 10_000));
    }
}
