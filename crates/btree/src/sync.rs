//! Locks: all of this room import them from here.

pub(crate) use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
