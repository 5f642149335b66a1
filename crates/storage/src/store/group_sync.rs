//! Group sync: one sync serves everybody who waits for it.
//!
//! Group commit (DeWitt et al., SIGMOD 1984, section 5.2), without a timer: who finds no sync under way becomes the
//! leader and syncs for all that was written until then; who comes meanwhile waits, and of those whom that sync did not
//! cover one becomes the next leader. So the slower the disk, the more commits share a sync.
//!
//! It also sees to it that a file is synced by one thread at a time. An operating system reports a failed write-back to
//! one of the syncs of a file; another one beside it would be told that all is well.

use crate::error::Result;
use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// How far something is durable, in numbers that grow: commits, or writes to the data file. Thread-safe; no lock is held
/// while a sync runs.
#[derive(Debug)]
pub(super) struct GroupSync {
    progress: Mutex<Progress>,
    /// Told whenever a sync has ended.
    ended: Condvar,
}

#[derive(Debug)]
struct Progress {
    durable: u64,
    is_running: bool,
}

impl GroupSync {
    /// Everything up to `durable` is durable already.
    pub(super) fn new(durable: u64) -> GroupSync {
        let progress = Mutex::new(Progress { durable, is_running: false });
        GroupSync { progress, ended: Condvar::new() }
    }

    /// How far everything is durable.
    pub(super) fn durable(&self) -> u64 {
        self.progress().durable
    }

    /// Returns once everything up to `target` is durable. `sync` is called if it falls to the caller to lead; it returns
    /// how far it has come, which is `target` or further. If it fails, each of those who wait calls its own.
    pub(super) fn wait_for(&self, target: u64, sync: impl FnOnce() -> Result<u64>) -> Result<()> {
        let mut progress = self.progress();
        while progress.is_running && progress.durable < target {
            progress = self.ended.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
        if progress.durable >= target { Ok(()) } else { self.lead(progress, sync) }
    }

    /// Calls `sync` in any case, when no other is under way.
    pub(super) fn run(&self, sync: impl FnOnce() -> Result<u64>) -> Result<()> {
        let mut progress = self.progress();
        while progress.is_running {
            progress = self.ended.wait(progress).unwrap_or_else(PoisonError::into_inner);
        }
        self.lead(progress, sync)
    }

    /// Takes note of what became durable in another way.
    pub(super) fn advance(&self, durable: u64) {
        let mut progress = self.progress();
        progress.durable = progress.durable.max(durable);
        drop(progress);
        self.ended.notify_all();
    }

    fn lead(&self, mut progress: MutexGuard<'_, Progress>, sync: impl FnOnce() -> Result<u64>) -> Result<()> {
        progress.is_running = true;
        drop(progress);
        let mut turn = Turn { group: self, reached: None };
        turn.reached = Some(sync()?);
        Ok(())
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A leader's turn. Ends when dropped, also by a panic, so that the others do not wait for ever.
struct Turn<'a> {
    group: &'a GroupSync,
    reached: Option<u64>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut progress = self.group.progress();
        progress.is_running = false;
        if let Some(reached) = self.reached {
            progress.durable = progress.durable.max(reached);
        }
        drop(progress);
        self.group.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::error::Error;

    #[test]
    fn many_wait_for_few_syncs_and_none_returns_too_early() {
        const THREADS: u64 = 8;
        const ROUNDS: u64 = 50;
        let (group, written, synced, syncs) =
            (GroupSync::new(0), AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let start = Barrier::new(THREADS as usize);
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| {
                    start.wait();
                    for _ in 0..ROUNDS {
                        let target = written.fetch_add(1, Ordering::SeqCst) + 1;
                        let sync = || {
                            let covered = written.load(Ordering::SeqCst);
                            std::thread::sleep(Duration::from_micros(200));
                            syncs.fetch_add(1, Ordering::SeqCst);
                            synced.store(covered, Ordering::SeqCst);
                            Ok(covered)
                        };
                        group.wait_for(target, sync).unwrap();
                        assert!(synced.load(Ordering::SeqCst) >= target);
                    }
                });
            }
        });
        assert_eq!(group.durable(), THREADS * ROUNDS);
        assert!(syncs.into_inner() < THREADS * ROUNDS / 2);
    }

    #[test]
    fn a_failure_is_told_to_all_and_leaves_no_turn_behind() {
        let group = GroupSync::new(0);
        let failed = std::thread::scope(|scope| {
            let fails = || group.wait_for(1, || Err(Error::caller("no disk")));
            let waiters: Vec<_> = (0..4).map(|_| scope.spawn(fails)).collect();
            waiters.into_iter().map(|waiter| waiter.join().unwrap()).filter(Result::is_err).count()
        });
        assert_eq!((failed, group.durable()), (4, 0));
        let panicked = std::panic::catch_unwind(|| group.run(|| panic!("on purpose")));
        assert!(panicked.is_err());
        group.wait_for(3, || Ok(5)).unwrap();
        assert_eq!(group.durable(), 5);
        group.wait_for(4, || unreachable!("it is durable")).unwrap();
    }
}
