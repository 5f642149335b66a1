//! Locks, condition variables and atomics: all of this room import them from here, never from the standard library.
//!
//! They are the standard library's, but for the tests in `tests/schedules`: those turn the feature `shuttle` on, and get
//! locks that hand over to a scheduler, which runs one thread at a time and chooses the next one from a seed. So a lock of
//! the standard library that is held while one of these is taken would hang there. What never waits may come from
//! either: `Arc`, `Weak`, `OnceLock`, `PoisonError`.
//!
//! Threads are started with `thread` from here, for the same reason.

#[cfg(feature = "shuttle")]
pub(crate) use shuttle::{sync::*, thread};
#[cfg(not(feature = "shuttle"))]
pub(crate) use std::{sync::*, thread};
