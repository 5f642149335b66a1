//! Whom operators ask for memory.

use crate::{Result, SpillFile};
use std::sync::Arc;

/// Whom an operator asks before it keeps what grows with the data.
pub trait Memory: Send + Sync + std::fmt::Debug {
    /// Grants so many bytes more.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`], with a remedy, where there are not so many.
    fn grow(&self, bytes: usize) -> Result<()>;
    /// Takes bytes back that were granted.
    fn shrink(&self, bytes: usize);
    /// A new file for rows that do not fit; `None` where there is none to be had, and whoever is refused memory fails.
    ///
    /// # Errors
    /// [`crate::Error::Source`] where it cannot be made.
    fn spill_file(&self) -> Result<Option<Arc<dyn SpillFile>>> {
        Ok(None)
    }
}

/// Grants everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unlimited;

impl Memory for Unlimited {
    fn grow(&self, _bytes: usize) -> Result<()> {
        Ok(())
    }

    fn shrink(&self, _bytes: usize) {}
}

/// What one holder was granted; given back with it.
#[derive(Debug)]
pub(crate) struct Held {
    memory: Arc<dyn Memory>,
    bytes: usize,
}

impl Held {
    pub(crate) fn new(memory: &Arc<dyn Memory>) -> Held {
        Held { memory: Arc::clone(memory), bytes: 0 }
    }

    /// Asks for what `bytes` in all are more than there were. A quarter more than that is asked for, so that few ask.
    pub(crate) fn need(&mut self, bytes: usize) -> Result<()> {
        if bytes > self.bytes {
            let wanted = bytes + bytes / 4;
            self.memory.grow(wanted - self.bytes)?;
            self.bytes = wanted;
        }
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.memory.shrink(self.bytes);
    }
}
