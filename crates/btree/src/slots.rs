//! Where leaves are: numbered places, so that inner nodes name them by four bytes and are copied like numbers.

use crate::keys::TreeKey;
use crate::leaf::Leaf;
use crate::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use crate::sync::{Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use sinter_storage::PageId;
use std::ops::ControlFlow;
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
    /// The slot that is looked at next for a leaf that memory can do without.
    hand: AtomicU32,
}

/// One leaf's place.
#[derive(Debug)]
pub(crate) struct Slot<K: TreeKey + ?Sized> {
    latch: RwLock<Place<K>>,
    /// What the hand does when it comes by: [`EMPTY`], [`UNUSED`] or [`USED`].
    state: AtomicU8,
}

/// Bytes of a slot.
pub(crate) const SLOT_BYTES: usize = size_of::<Slot<u64>>();

/// There is no leaf in memory, as far as the hand knows.
const EMPTY: u8 = 0;
/// Nobody latched it since the hand came by.
const UNUSED: u8 = 1;
/// Somebody did.
const USED: u8 = 2;

/// Where a slot's leaf is.
#[derive(Debug)]
pub(crate) enum Place<K: TreeKey + ?Sized> {
    /// There is none (any more).
    Nowhere,
    /// In a page only.
    Paged(PageId),
    /// In memory.
    Resident(Box<Leaf<K>>),
}

impl<K: TreeKey + ?Sized> Place<K> {
    /// The leaf, if it is in memory.
    #[inline]
    pub(crate) fn leaf(&self) -> Option<&Leaf<K>> {
        match self {
            Place::Resident(leaf) => Some(leaf),
            Place::Nowhere | Place::Paged(_) => None,
        }
    }

    /// The leaf, to be changed, if it is in memory.
    #[inline]
    pub(crate) fn leaf_mut(&mut self) -> Option<&mut Leaf<K>> {
        match self {
            Place::Resident(leaf) => Some(leaf),
            Place::Nowhere | Place::Paged(_) => None,
        }
    }
}

#[derive(Debug, Default)]
struct Free {
    given_back: Vec<u32>,
    /// No slot from this one on was ever used.
    next: u32,
}

pub(crate) type ReadLatch<'a, K> = RwLockReadGuard<'a, Place<K>>;
pub(crate) type WriteLatch<'a, K> = RwLockWriteGuard<'a, Place<K>>;

/// Slots of the first chunk, as a power of two.
const FIRST_BITS: u32 = 4;
const CHUNKS: usize = (u32::BITS - FIRST_BITS) as usize;

// Whoever panics under a latch leaves a half-made change behind, on which nobody may build.
const POISONED: &str = "a thread panicked while it changed this leaf";

impl<K: TreeKey + ?Sized> Slots<K> {
    /// None yet.
    pub(crate) fn new() -> Slots<K> {
        let chunks = [const { OnceLock::new() }; CHUNKS];
        Slots { chunks, free: Mutex::new(Free::default()), hand: AtomicU32::new(0) }
    }

    /// Latches the slot for reading.
    #[inline]
    pub(crate) fn read(&self, slot: SlotIndex) -> ReadLatch<'_, K> {
        let slot = self.slot(slot);
        let latch = slot.latch.read().expect(POISONED);
        slot.note_use();
        latch
    }

    /// The same, for whoever goes over all of them: it counts as no use.
    pub(crate) fn look(&self, slot: SlotIndex) -> ReadLatch<'_, K> {
        self.slot(slot).latch.read().expect(POISONED)
    }

    /// The same for a change that brings no leaf to memory.
    pub(crate) fn look_mut(&self, slot: SlotIndex) -> WriteLatch<'_, K> {
        self.slot(slot).latch.write().expect(POISONED)
    }

    /// Latches the slot for a change.
    #[inline]
    pub(crate) fn write(&self, slot: SlotIndex) -> WriteLatch<'_, K> {
        let slot = self.slot(slot);
        let latch = slot.latch.write().expect(POISONED);
        slot.note_use();
        latch
    }

    /// Gives a leaf a slot, which is latched: whoever knows it from a leaf that it had before is to wait until the
    /// directory leads to the new one.
    ///
    /// # Panics
    /// When there are four billion leaves.
    pub(crate) fn add(&self, place: Place<K>) -> (SlotIndex, WriteLatch<'_, K>) {
        let index = {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            free.given_back.pop().unwrap_or_else(|| {
                let next = free.next;
                free.next = next.checked_add(1).expect("too many leaves");
                next
            })
        };
        let mut latch = self.write(SlotIndex(index));
        *latch = place;
        (SlotIndex(index), latch)
    }

    /// Somebody else may have the slot, whose leaf was taken out.
    pub(crate) fn give_back(&self, slot: SlotIndex) {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).given_back.push(slot.0);
    }

    /// Goes round all slots twice, if need be, and shows those leaves to `visit` that nobody has used since the last time
    /// round and nobody has latched, until that breaks off. It waits for nobody.
    pub(crate) fn for_each_unused<E>(
        &self,
        visit: &mut impl FnMut(&mut Place<K>) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let count = self.free.lock().unwrap_or_else(PoisonError::into_inner).next;
        for _ in 0..u64::from(count) * 2 {
            let slot = self.slot(SlotIndex(self.hand.fetch_add(1, Ordering::Relaxed) % count));
            if !slot.is_due() {
                continue;
            }
            // A leaf that somebody left half changed is not ours to judge.
            let Ok(mut latch) = slot.latch.try_write() else {
                slot.passed_over();
                continue;
            };
            if latch.leaf().is_none() {
                continue;
            }
            let visited = visit(&mut latch);
            if latch.leaf().is_some() {
                slot.passed_over();
            }
            if visited?.is_break() {
                break;
            }
        }
        Ok(())
    }

    #[inline]
    fn slot(&self, slot: SlotIndex) -> &Slot<K> {
        // Chunk c has the slots from (2^c - 1) * 2^FIRST_BITS on.
        let shifted = u64::from(slot.0) + (1 << FIRST_BITS);
        let chunk = shifted.ilog2() - FIRST_BITS;
        let len = 1_usize << (chunk + FIRST_BITS);
        let make = || (0..len).map(|_| Slot::new()).collect();
        &self.chunks[chunk as usize].get_or_init(make)[shifted as usize - len]
    }
}

impl<K: TreeKey + ?Sized> Slot<K> {
    fn new() -> Slot<K> {
        Slot { latch: RwLock::new(Place::Nowhere), state: AtomicU8::new(EMPTY) }
    }

    /// To be called with the slot latched: so no leaf comes to memory that the hand takes for none. It writes only what is
    /// not written yet: readers of one leaf do not take each other its line of the cache.
    #[inline]
    fn note_use(&self) {
        if self.state.load(Ordering::Relaxed) != USED {
            self.state.store(USED, Ordering::Relaxed);
        }
    }

    /// Whether the leaf may go. The slot counts as empty then, until it is used or passed over.
    fn is_due(&self) -> bool {
        let next = |state| match state {
            USED => Some(UNUSED),
            UNUSED => Some(EMPTY),
            _ => None,
        };
        self.state.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) == Ok(UNUSED)
    }

    /// The leaf was due, and stays. Somebody may have used it meanwhile.
    fn passed_over(&self) {
        let _ = self.state.compare_exchange(EMPTY, UNUSED, Ordering::Relaxed, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{KeyList, KeyShape};
    use crate::leaf::LeafShape;
    use crate::records::RecordShape;
    use sinter_codec::KeyCodec;
    use std::convert::Infallible;

    fn leaf(key: u64) -> Place<u64> {
        let keys = KeyShape { codec: KeyCodec::Vbyte, block_len: 256 };
        let mut leaf = Leaf::new(&LeafShape { keys, records: RecordShape::Fixed(0), size_max: 1 << 10 });
        leaf.put(&key, &[], usize::MAX).unwrap();
        Place::Resident(Box::new(leaf))
    }

    #[test]
    fn each_leaf_has_a_slot_of_its_own() {
        let slots = Slots::<u64>::new();
        let mut indices: Vec<SlotIndex> = (0..10_000).map(|key| slots.add(leaf(key)).0).collect();
        for key in (0..10_000).step_by(3) {
            let index = indices[key as usize];
            *slots.write(index) = Place::Nowhere;
            slots.give_back(index);
        }
        for key in (0..10_000).step_by(3) {
            indices[key as usize] = slots.add(leaf(key)).0;
        }
        for (key, index) in (0..10_000).zip(&indices) {
            assert_eq!(slots.read(*index).leaf().unwrap().keys().get(0), key);
        }
        assert!(indices.iter().all(|index| index.0 < 10_000));
    }

    #[test]
    fn what_was_used_since_the_last_round_is_passed_over_once() {
        let slots = Slots::<u64>::new();
        let indices: Vec<SlotIndex> = (0..10).map(|key| slots.add(leaf(key)).0).collect();
        let keys = |wanted: usize| {
            let mut keys = Vec::new();
            let found = slots.for_each_unused(&mut |place| {
                keys.push(place.leaf().unwrap().keys().get(0));
                Ok::<_, Infallible>(if keys.len() == wanted {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                })
            });
            found.unwrap();
            keys
        };
        assert_eq!(keys(4), [0, 1, 2, 3], "all were used when they were added, so it is the second time round");
        drop(slots.read(indices[4]));
        let _latched = slots.read(indices[6]);
        assert_eq!(keys(4), [5, 7, 8, 9], "one was used, one is latched");
        assert_eq!(keys(9), [0, 1, 2, 3, 4, 5, 7, 8, 9]);
    }
}
