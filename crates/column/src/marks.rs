//! Which rows of a group are deleted.

use sinter_codec::Bitmap;
use sinter_storage::{Budget, Reservation, Use};
use std::ops::Deref;
use std::sync::Arc;

/// Delete marks: 1 = deleted. Clones share them, until one is changed.
#[derive(Clone, Debug)]
pub struct Marks {
    bits: Arc<Bitmap>,
    memory: Arc<Reservation>,
}

impl Marks {
    /// Takes memory for marks.
    pub(crate) fn new(budget: &Arc<Budget>, bits: Bitmap) -> Marks {
        let memory = Arc::new(budget.take(Use::Table, size_of::<Bitmap>() + bits.len().div_ceil(8)));
        Marks { bits: Arc::new(bits), memory }
    }

    /// One bit for each row.
    pub fn bits(&self) -> &Arc<Bitmap> {
        &self.bits
    }

    /// The bits, to be changed; a copy where somebody else has them, too.
    pub(crate) fn bits_mut(&mut self) -> &mut Bitmap {
        if Arc::strong_count(&self.bits) > 1 {
            *self = Marks::new(self.memory.budget(), (*self.bits).clone());
        }
        Arc::make_mut(&mut self.bits)
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
