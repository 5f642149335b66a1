//! Locks and atomics: all of this room import them from here, never from the standard library.
//!
//! They are the standard library's, but for the tests in `tests/schedules`, as those of storage are (its `sync.rs` says
//! more). What never waits may come from either.

#[cfg(feature = "shuttle")]
pub(crate) use shuttle::sync::*;
#[cfg(not(feature = "shuttle"))]
pub(crate) use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic};
