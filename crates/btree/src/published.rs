//! A value that is read all the time and replaced now and then.

use crate::sync::Arc;
use std::fmt;

/// Readers take the value as it is, and none waits for another or for who replaces it.
#[cfg(not(feature = "shuttle"))]
pub(crate) struct Published<T>(arc_swap::ArcSwap<T>);

#[cfg(not(feature = "shuttle"))]
impl<T> Published<T> {
    pub(crate) fn new(value: T) -> Published<T> {
        Published(arc_swap::ArcSwap::from_pointee(value))
    }

    /// The value of this moment, for as long as what is returned is held. To be let go of soon: few of them cost a thread
    /// nothing, more of them what a handle costs.
    #[inline]
    pub(crate) fn read(&self) -> impl std::ops::Deref<Target = Arc<T>> {
        self.0.load()
    }

    /// Who reads from now on gets this one.
    pub(crate) fn replace(&self, value: T) {
        self.0.store(Arc::new(value));
    }
}

/// The same, whose reads and replacements the scheduler sees.
#[cfg(feature = "shuttle")]
pub(crate) struct Published<T>(crate::sync::Mutex<Arc<T>>);

#[cfg(feature = "shuttle")]
impl<T> Published<T> {
    pub(crate) fn new(value: T) -> Published<T> {
        Published(crate::sync::Mutex::new(Arc::new(value)))
    }

    pub(crate) fn read(&self) -> impl std::ops::Deref<Target = Arc<T>> {
        let value = self.0.lock().unwrap_or_else(crate::sync::PoisonError::into_inner);
        Box::new(Arc::clone(&value))
    }

    pub(crate) fn replace(&self, value: T) {
        let value = Arc::new(value);
        let mut place = self.0.lock().unwrap_or_else(crate::sync::PoisonError::into_inner);
        let before = std::mem::replace(&mut *place, value);
        drop(place);
        drop(before);
    }
}

impl<T: fmt::Debug> fmt::Debug for Published<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.read().fmt(f)
    }
}
