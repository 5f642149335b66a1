//! Which rows of a group are deleted.

use sinter_codec::Bitmap;
use sinter_storage::{Budget, Reservation, Use};
use std::ops::Deref;
use std::sync::Arc;

/// Delete marks: 1 = deleted. Clones share them, until one is changed.
#[derive(Clone, Debug)]
pub struct Marks {
    bits: Arc<Bitmap>,
    /// How many are set. Whoever asks what a table could give back asks this of all its groups, after every commit.
    count: usize,
    memory: Arc<Reservation>,
}

impl Marks {
    /// Takes memory for marks.
    pub(crate) fn new(budget: &Arc<Budget>, bits: Bitmap) -> Marks {
        let memory = Arc::new(budget.take(Use::Table, size_of::<Bitmap>() + bits.len().div_ceil(8)));
        Marks { count: bits.count_ones(), bits: Arc::new(bits), memory }
    }

    /// One bit for each row.
    pub fn bits(&self) -> &Arc<Bitmap> {
        &self.bits
    }

    /// Marks a row; on a copy where somebody else has these marks, too. False if it was marked before.
    pub(crate) fn mark(&mut self, position: usize) -> bool {
        if self.bits.get(position) {
            return false;
        }
        if Arc::strong_count(&self.bits) > 1 {
            *self = Marks::new(self.memory.budget(), (*self.bits).clone());
        }
        Arc::make_mut(&mut self.bits).set(position, true);
        self.count += 1;
        true
    }

    /// How many rows are marked.
    pub fn count(&self) -> usize {
        self.count
    }

    /// True for the very same marks, by their address.
    pub(crate) fn is_same(&self, other: &Marks) -> bool {
        Arc::ptr_eq(&self.bits, &other.bits)
    }

    /// What they hold.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory.bytes()
    }
}

impl Deref for Marks {
    type Target = Bitmap;

    fn deref(&self) -> &Bitmap {
        &self.bits
    }
}
