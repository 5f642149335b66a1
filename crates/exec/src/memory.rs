//! Whom operators ask for memory.

use crate::{Error, Result, SpillFile};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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
    /// Bytes that an operator which can spill holds at most, though there may be more.
    fn spills_beyond(&self) -> Option<usize> {
        None
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

/// Memory of which an operator that can spill has no more than [`Memory::spills_beyond`].
#[derive(Debug)]
pub(crate) struct Capped {
    memory: Arc<dyn Memory>,
    bytes_max: usize,
    held: AtomicUsize,
}

impl Capped {
    /// The memory of an operator, capped where that is wanted and it can spill.
    pub(crate) fn of(memory: &Arc<dyn Memory>, can_spill: impl FnOnce() -> bool) -> Arc<dyn Memory> {
        match memory.spills_beyond() {
            Some(bytes_max) if can_spill() => {
                Arc::new(Capped { memory: Arc::clone(memory), bytes_max, held: AtomicUsize::new(0) })
            }
            _ => Arc::clone(memory),
        }
    }
}

impl Memory for Capped {
    fn grow(&self, bytes: usize) -> Result<()> {
        let held = self.held.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let granted = match held > self.bytes_max {
            true => Err(Error::OutOfMemory(format!("an operator is to spill beyond {} bytes", self.bytes_max))),
            false => self.memory.grow(bytes),
        };
        if granted.is_err() {
            self.held.fetch_sub(bytes, Ordering::Relaxed);
        }
        granted
    }

    fn shrink(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
        self.memory.shrink(bytes);
    }

    fn spill_file(&self) -> Result<Option<Arc<dyn SpillFile>>> {
        self.memory.spill_file()
    }

    fn spills_beyond(&self) -> Option<usize> {
        Some(self.bytes_max)
    }
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

    /// Gives back what is more than `bytes` in all and the quarter that [`Held::need`] asks for beyond.
    pub(crate) fn keep(&mut self, bytes: usize) {
        let beyond = self.bytes.saturating_sub(bytes + bytes / 4);
        self.bytes -= beyond;
        self.memory.shrink(beyond);
    }

    /// Another holder of the same memory, that was granted nothing yet.
    pub(crate) fn other(&self) -> Held {
        Held::new(&self.memory)
    }

    /// Has what another holder of the same memory was granted.
    pub(crate) fn take_over(&mut self, mut other: Held) {
        self.bytes += std::mem::take(&mut other.bytes);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.memory.shrink(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Says how much is held.
    #[derive(Debug, Default)]
    struct Counted(AtomicUsize);

    impl Memory for Counted {
        fn grow(&self, bytes: usize) -> Result<()> {
            self.0.fetch_add(bytes, Ordering::Relaxed);
            Ok(())
        }

        fn shrink(&self, bytes: usize) {
            self.0.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    #[test]
    fn what_is_not_needed_is_given_back() {
        let counted = Arc::new(Counted::default());
        let memory: Arc<dyn Memory> = counted.clone();
        let in_all = || counted.0.load(Ordering::Relaxed);
        let (mut held, mut other) = (Held::new(&memory), Held::new(&memory));
        held.need(1000).unwrap();
        other.need(400).unwrap();
        held.take_over(other);
        assert_eq!(in_all(), 1750);
        held.keep(800);
        assert_eq!(in_all(), 1000);
        held.keep(900);
        assert_eq!(in_all(), 1000, "no more than there was");
        drop(held);
        assert_eq!(in_all(), 0);
    }
}
