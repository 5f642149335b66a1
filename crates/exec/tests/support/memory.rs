//! Memory that runs out.

use sinter_exec::{Error, Memory, Result};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Grants so many bytes in all.
#[derive(Debug)]
pub struct Limited(AtomicUsize);

impl Limited {
    pub fn new(bytes: usize) -> Limited {
        Limited(AtomicUsize::new(bytes))
    }

    /// Bytes that are left to be granted.
    pub fn left(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Memory for Limited {
    fn grow(&self, bytes: usize) -> Result<()> {
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        taken.map(drop).map_err(|_| Error::OutOfMemory("enough".into()))
    }

    fn shrink(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}
