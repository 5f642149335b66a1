//! What a tree takes of the memory that all share, and how others have it back.
//!
//! Each leaf that is in memory counts with the bytes that it has allocated, and each leaf, wherever it is, with what leads
//! to it. Changes are counted as they are made, without a lock; what is reserved for them follows, a leaf's worth at a time.
//! What must not be refused, since it has a number already, was made room for before ([`LeafMemory::make_room`]).
//!
//! Leaves of a tree in a file are reserved as such ([`Use::Leaf`]), and evicted when memory is wanted, by this tree or by
//! anybody else. Those of a tree in memory are nowhere else, and count as tables do. A file that is only read cannot take
//! leaves that the log has changed; they are held, whatever the limit says.

use crate::Result;
use crate::keys::TreeKey;
use crate::slots::SLOT_BYTES;
use crate::sync::atomic::{AtomicIsize, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};
use crate::tree::Tree;
use sinter_storage::{Reclaim, Reservation, Store, Use};

/// What is reserved and what is used may be so far apart.
const SLACK_BYTES: isize = 16 << 10;

/// What leads to a leaf: its slot, and about as much in the directory.
pub(crate) const BESIDE_BYTES: usize = 2 * SLOT_BYTES;

/// Of one tree.
#[derive(Debug)]
pub(crate) struct LeafMemory {
    /// Whether memory can be refused.
    is_limited: bool,
    reserved: Mutex<Reservation>,
    /// Bytes that are used and not reserved; less than none, where more are reserved.
    unreserved: AtomicIsize,
}

impl LeafMemory {
    /// Nothing yet, of this store's budget.
    pub(crate) fn new(store: &Store) -> LeafMemory {
        let purpose = if store.is_in_memory() { Use::Table } else { Use::Leaf };
        let reserved = Mutex::new(store.budget().take(purpose, 0));
        LeafMemory { is_limited: !store.is_read_only(), reserved, unreserved: AtomicIsize::new(0) }
    }

    fn reserved(&self) -> MutexGuard<'_, Reservation> {
        self.reserved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// So many bytes more or less are used.
    #[inline]
    pub(crate) fn note(&self, more: isize) {
        if more != 0 {
            self.unreserved.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// Sees to it that so many bytes more can be used.
    ///
    /// # Errors
    /// They are not there.
    #[inline]
    pub(crate) fn make_room(&self, bytes: usize) -> Result<()> {
        let missing = self.unreserved.load(Ordering::Relaxed).saturating_add_unsigned(bytes);
        if missing > SLACK_BYTES { self.reserve(missing.unsigned_abs()) } else { Ok(()) }
    }

    #[cold]
    fn reserve(&self, bytes: usize) -> Result<()> {
        let (budget, purpose) = {
            let reserved = self.reserved();
            (Arc::clone(reserved.budget()), reserved.purpose())
        };
        // Nothing is locked: this tree's leaves may have to go for it.
        let more = match budget.reserve(purpose, bytes) {
            Err(_) if !self.is_limited => budget.take(purpose, bytes),
            more => more?,
        };
        self.reserved().absorb(more);
        self.unreserved.fetch_sub(bytes.cast_signed(), Ordering::Relaxed);
        Ok(())
    }

    /// How much is used that is not reserved.
    fn unreserved_bytes(&self) -> usize {
        usize::try_from(self.unreserved.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Has about as much reserved as is used, whether it is there or not.
    #[inline]
    pub(crate) fn settle(&self) {
        if self.unreserved.load(Ordering::Relaxed).abs() > SLACK_BYTES {
            self.settle_exactly();
        }
    }

    /// Has just as much reserved as is used. Returns how much was given back for that.
    pub(crate) fn settle_exactly(&self) -> usize {
        let mut reserved = self.reserved();
        let unreserved = self.unreserved.swap(0, Ordering::Relaxed);
        match usize::try_from(unreserved) {
            Ok(missing) => {
                reserved.take(missing);
                0
            }
            Err(_) => {
                reserved.shrink(unreserved.unsigned_abs());
                unreserved.unsigned_abs()
            }
        }
    }
}

impl<K: TreeKey + ?Sized> Tree<K> {
    /// The leaves of these bytes have others now.
    #[inline]
    pub(crate) fn note_memory(&self, before: usize, after: usize) {
        if let Some(memory) = &self.memory {
            memory.note(after.cast_signed() - before.cast_signed());
        }
    }

    /// There are more leaves, or less, wherever they are.
    pub(crate) fn note_leaves(&self, more: isize) {
        if let Some(memory) = &self.memory {
            memory.note(more * BESIDE_BYTES.cast_signed());
        }
    }

    /// Sees to it that so many bytes more can be used.
    ///
    /// # Errors
    /// They are not there.
    #[inline]
    pub(crate) fn make_room(&self, bytes: usize) -> Result<()> {
        self.memory.as_ref().map_or(Ok(()), |memory| memory.make_room(bytes))
    }

    /// Has about as much reserved as is used.
    #[inline]
    pub(crate) fn settle_memory(&self) {
        if let Some(memory) = &self.memory {
            memory.settle();
        }
    }
}

impl<K: TreeKey + ?Sized> Reclaim for Tree<K> {
    fn reclaim(&self, bytes: usize) -> usize {
        let Some(memory) = &self.memory else { return 0 };
        // Whoever wants the memory is told that it is not there; why a leaf could not be written, whoever writes next.
        let _ = self.evict(bytes + memory.unreserved_bytes());
        memory.settle_exactly()
    }
}
