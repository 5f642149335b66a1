//! The order of commits, and who sees which state.
//!
//! A *root* is everything that the rooms above hold, as one immutable value; a commit makes the next one. There are two
//! at any time: the **pending** root, with every commit that the log was given, against which commits are validated and
//! on which they are built; and the **visible** root, with every commit that is durable, which readers and new
//! transactions see. Nobody ever reads what a power loss could still take back.
//!
//! Transactions are optimistic: one takes the visible root, works on values of its own, and at its commit is shown the
//! pending root. What others have done since is the difference of the two, so nothing has to be remembered for it, however
//! long it runs. Whether the difference matters is for the rooms above to say. The order of commits is the serial order;
//! what only reads needs no commit and cannot fail.
//!
//! Changes of form (pressing, merging) are [`Timeline::rewrite`]s: the same rows, kept differently. They have no number
//! and no log record.

use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;

use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::ids::{CommitNumber, PageId};
use crate::record::Record;
use crate::store::{BackupProgress, CheckpointWriter, Store};
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What a commit is made of.
#[derive(Debug)]
pub struct Built<R> {
    /// The root with the commit in it.
    pub root: R,
    /// For the log.
    pub records: Vec<Record>,
    /// Pages that the records name. They must be durable already ([`Store::sync_pages`]).
    pub pages: Vec<PageId>,
}

#[derive(Debug)]
struct Order<R> {
    visible: Arc<R>,
    pending: Arc<R>,
    /// The last commit in the visible root.
    visible_commit: CommitNumber,
    /// Roots whose commits are not durable yet, oldest first.
    waiting: VecDeque<(CommitNumber, Arc<R>)>,
    /// Commits on their way.
    committing: usize,
    /// One transaction keeps the commits of others waiting.
    is_exclusive: bool,
}

impl<R> Order<R> {
    /// Commits up to this one are durable: shows them.
    fn show(&mut self, durable: CommitNumber) {
        while self.waiting.front().is_some_and(|(commit, _)| *commit <= durable) {
            if let Some((commit, root)) = self.waiting.pop_front() {
                (self.visible, self.visible_commit) = (root, commit);
            }
        }
        if self.waiting.is_empty() {
            // The same commits, in the newest form.
            self.visible = Arc::clone(&self.pending);
        }
    }
}

/// The states of one database, in order.
///
/// Thread-safe. Its lock is taken before any of the store's.
pub struct Timeline<R> {
    store: Arc<Store>,
    order: Mutex<Order<R>>,
    /// Told when the last commit on its way has arrived, and when an exclusive transaction is over.
    settled: Condvar,
}

/// Keeps the commits of others waiting while it lives. See [`Timeline::exclusive`].
pub struct Exclusive<R> {
    timeline: Arc<Timeline<R>>,
}

impl<R> Drop for Exclusive<R> {
    fn drop(&mut self) {
        self.timeline.order().is_exclusive = false;
        self.timeline.settled.notify_all();
    }
}

impl<R> fmt::Debug for Exclusive<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Exclusive")
    }
}

impl<R> Timeline<R> {
    /// A timeline that goes on from `root`, which holds every commit of the store.
    pub fn new(store: Arc<Store>, root: R) -> Arc<Timeline<R>> {
        let root = Arc::new(root);
        let order = Order {
            visible: Arc::clone(&root),
            pending: root,
            visible_commit: store.last_commit(),
            waiting: VecDeque::new(),
            committing: 0,
            is_exclusive: false,
        };
        Arc::new(Timeline { store, order: Mutex::new(order), settled: Condvar::new() })
    }

    // A panic under this lock happens in a closure of ours, before anything was changed.
    fn order(&self) -> MutexGuard<'_, Order<R>> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, order: MutexGuard<'a, Order<R>>) -> MutexGuard<'a, Order<R>> {
        self.settled.wait(order).unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything that is durable.
    pub fn visible(&self) -> Arc<R> {
        Arc::clone(&self.order().visible)
    }

    /// Everything that was committed, durable or not: to validate against before [`Timeline::commit`] does.
    pub fn pending(&self) -> Arc<R> {
        Arc::clone(&self.order().pending)
    }

    /// Waits until everything that was committed before the call is durable, and visible.
    ///
    /// # Errors
    /// As [`Store::make_durable`].
    pub fn catch_up(&self) -> Result<()> {
        let last = self.order().waiting.back().map(|(commit, _)| *commit);
        let Some(last) = last else { return Ok(()) };
        self.store.make_durable(last)?;
        self.order().show(last);
        Ok(())
    }

    /// Keeps the commits of others waiting, for a transaction that conflicted again and again, and for the close. On
    /// return all commits before are visible, or will never be.
    pub fn exclusive(self: &Arc<Self>) -> Exclusive<R> {
        let mut order = self.order();
        while order.is_exclusive {
            order = self.wait(order);
        }
        order.is_exclusive = true;
        while order.committing > 0 {
            order = self.wait(order);
        }
        Exclusive { timeline: Arc::clone(self) }
    }

    /// Commits. `build` is shown the pending root, validates against it, and makes the next one; `None` is a transaction
    /// that changed nothing. It runs under the lock that orders commits, so it is to be short. On return the commit is
    /// durable, as `synchronous` says, and visible.
    ///
    /// # Errors
    /// What `build` returns, and those of [`Store::append`]: nothing was committed. Those of [`Store::make_durable`]:
    /// nobody knows whether it was, it is not shown, and nothing is committed any more.
    pub fn commit<E: From<Error>>(
        &self,
        exclusive: Option<&Exclusive<R>>,
        build: impl FnOnce(&Arc<R>) -> std::result::Result<Option<Built<R>>, E>,
    ) -> std::result::Result<Option<CommitNumber>, E> {
        let mut order = self.order();
        while order.is_exclusive && exclusive.is_none() {
            order = self.wait(order);
        }
        // Dropped after the lock: the last handle on a root gives pages back.
        let pending = Arc::clone(&order.pending);
        let Some(Built { root, records, pages }) = build(&pending)? else { return Ok(None) };
        let commit = self.store.append(&records, &pages)?;
        let root = Arc::new(root);
        order.pending = Arc::clone(&root);
        order.waiting.push_back((commit, root));
        order.committing += 1;
        drop(order);
        let durable = self.store.make_durable(commit);
        let mut order = self.order();
        order.committing -= 1;
        if order.committing == 0 {
            self.settled.notify_all();
        }
        durable?;
        let before = Arc::clone(&order.visible);
        order.show(commit);
        drop(order);
        drop(before);
        Ok(Some(commit))
    }

    /// Puts the same rows into another form: `build` makes a root of the pending one, or says that there is nothing to
    /// do. Returns whether there was.
    pub fn rewrite(&self, build: impl FnOnce(&Arc<R>) -> Option<R>) -> bool {
        let mut order = self.order();
        let pending = Arc::clone(&order.pending);
        let Some(root) = build(&pending) else { return false };
        order.pending = Arc::new(root);
        if order.waiting.is_empty() {
            order.visible = Arc::clone(&order.pending);
        }
        drop(order);
        drop(pending);
        true
    }

    /// Writes a checkpoint of the pending root while commits go on. `write` gets the root of the cut.
    ///
    /// # Errors
    /// As [`Store::checkpoint`], and those of `write`.
    pub fn checkpoint<E: From<Error>>(
        &self,
        write: impl FnOnce(&R, &mut CheckpointWriter<'_>) -> std::result::Result<PageId, E>,
    ) -> std::result::Result<(), E> {
        let prepared = self.store.prepare_checkpoint()?;
        let (cut, root) = {
            let order = self.order();
            (prepared.cut()?, Arc::clone(&order.pending))
        };
        let mut failure = None;
        let done = cut.finish(|out| self.noting(&mut failure, write(&root, out)));
        failure.map_or(done.map_err(E::from), Err)
    }

    /// Writes the visible root into a new file at `path`, a whole and closed database with a UUID of its own. Commits,
    /// checkpoints and vacuums go on. `write` is as for [`Timeline::checkpoint`], with nothing known of checkpoints
    /// before: it keeps or puts every page that the root needs. `progress` hears of each page, and may break off.
    ///
    /// # Errors
    /// As [`Store::backup`], and those of `write`: there is no file at `path`.
    pub fn backup<E: From<Error>>(
        &self,
        fs: &dyn FileSystem,
        path: &Path,
        progress: &mut dyn FnMut(BackupProgress) -> ControlFlow<()>,
        write: impl FnOnce(&R, &mut CheckpointWriter<'_>) -> std::result::Result<PageId, E>,
    ) -> std::result::Result<(), E> {
        let (commit, root) = {
            let order = self.order();
            (order.visible_commit, Arc::clone(&order.visible))
        };
        let mut failure = None;
        let done = self.store.backup(fs, path, commit, progress, |out| self.noting(&mut failure, write(&root, out)));
        failure.map_or(done.map_err(E::from), Err)
    }

    /// Writes the last checkpoint, and closes the store. What is on its way when this is called is in it; what comes later
    /// is refused.
    ///
    /// # Errors
    /// As [`Store::close`], and those of `write`.
    pub fn close<E: From<Error>>(
        self: &Arc<Self>,
        write: impl FnOnce(&R, &mut CheckpointWriter<'_>) -> std::result::Result<PageId, E>,
    ) -> std::result::Result<(), E> {
        let _exclusive = self.exclusive();
        let root = self.visible();
        let mut failure = None;
        let done = self.store.close(|out| self.noting(&mut failure, write(&root, out)));
        failure.map_or(done.map_err(E::from), Err)
    }

    /// The page, or an error of the store's in the place of the caller's.
    fn noting<E>(&self, failure: &mut Option<E>, page: std::result::Result<PageId, E>) -> Result<PageId> {
        page.map_err(|error| {
            *failure = Some(error);
            Error::GivenUp { path: self.store.path().to_path_buf() }
        })
    }
}

impl<R> fmt::Debug for Timeline<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timeline").field("store", &self.store).finish_non_exhaustive()
    }
}
