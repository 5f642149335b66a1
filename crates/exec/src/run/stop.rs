//! Whether a run goes on.

use crate::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Shared by a run, its inputs and its build sides. Their workers end when one of them fails; others may begin in their
/// place, unless it was whoever wants the rows that ended them.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    /// What workers look at.
    flag: AtomicBool,
    is_unwanted: AtomicBool,
    /// Of the parts of it that are at work: each fails, and begins again, alone.
    parts: Mutex<Vec<Weak<Stop>>>,
}

impl Stop {
    /// Set once workers are to end.
    pub(crate) fn flag(&self) -> &AtomicBool {
        &self.flag
    }

    /// Ends all workers for good, those of parts included.
    pub(crate) fn cancel(&self) {
        self.is_unwanted.store(true, Ordering::SeqCst);
        self.halt();
        self.cancel_parts();
    }

    /// Ends the workers of all parts for good.
    pub(crate) fn cancel_parts(&self) {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.iter().filter_map(Weak::upgrade).for_each(|part| part.cancel());
    }

    /// Ends the workers that are there: one of them failed.
    pub(crate) fn halt(&self) {
        self.flag.store(true, Ordering::SeqCst);
    }

    /// Lets others begin in their place.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub(crate) fn resume(&self) -> Result<()> {
        self.flag.store(false, Ordering::SeqCst);
        if self.is_unwanted.load(Ordering::SeqCst) {
            self.halt();
            return Err(Error::Cancelled);
        }
        Ok(())
    }

    /// For a part.
    pub(crate) fn part(&self) -> Arc<Stop> {
        let part = Arc::new(Stop::default());
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.retain(|part| part.strong_count() > 0);
        parts.push(Arc::downgrade(&part));
        if self.is_unwanted.load(Ordering::SeqCst) {
            part.cancel();
        }
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_halted(stop: &Stop) -> bool {
        stop.flag().load(Ordering::SeqCst)
    }

    #[test]
    fn after_a_failure_others_begin() {
        let (whole, part) = (Stop::default(), Stop::default().part());
        whole.halt();
        assert!(is_halted(&whole) && whole.resume().is_ok() && !is_halted(&whole));
        part.halt();
        assert!(part.resume().is_ok() && !is_halted(&part));
    }

    #[test]
    fn what_is_unwanted_stays_so() {
        let whole = Stop::default();
        let part = whole.part();
        whole.cancel();
        for stop in [&whole, &part, &whole.part()] {
            assert!(is_halted(stop) && stop.resume().is_err() && is_halted(stop));
        }
    }
}
