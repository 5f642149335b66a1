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
//!
//! Not all that a root leads to is a value: what is changed in place, as key-value trees are, is part of every root that
//! leads to it, and its states are asked for by the number of a commit. So whoever changes something in place keeps what
//! was before, as long as somebody may ask: until it is visible, and until no [`Snapshot`] and no checkpoint is of an
//! earlier commit ([`Numbered::horizon`]). He latches what he changes before his commit gets its number, and lets go when
//! the change is made; so it makes no difference that the number may be visible a moment before:
//!
//! 1. [`Timeline::enter`], before any latch: an exclusive transaction is waited for there, and nowhere behind.
//! 2. Latch.
//! 3. [`Entered::number`]: the commit's place in the order, and the log.
//! 4. Change, and let go of the latches.
//! 5. [`Entered::finish`]: durable, and visible.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;

use crate::error::{Error, Result};
use crate::fs::FileSystem;
use crate::ids::{CommitNumber, PageId};
use crate::record::Record;
use crate::store::{BackupProgress, CheckpointWriter, Store};
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What a commit is made of.
#[derive(Debug)]
pub struct Built<R> {
    /// The root with the commit in it: the pending one where all that changes is changed in place.
    pub root: Arc<R>,
    /// For the log.
    pub records: Vec<Record>,
    /// Pages that the records name. They must be durable already ([`Store::sync_pages`]).
    pub pages: Vec<PageId>,
}

/// The place of a commit among all, and up to which one nobody will ask for what was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbered {
    /// The number.
    pub commit: CommitNumber,
    /// Everybody who reads, now or later, sees all commits up to this one. It may be `commit` itself.
    pub horizon: CommitNumber,
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
    /// By commit, how many read the state after it and could not do without.
    readers: BTreeMap<CommitNumber, usize>,
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

    /// See [`Numbered::horizon`]. It never falls: whoever begins to read, reads the visible state or a later one.
    fn horizon(&self) -> CommitNumber {
        self.readers.first_key_value().map_or(self.visible_commit, |(first, _)| self.visible_commit.min(*first))
    }

    fn begin_reading(&mut self, commit: CommitNumber) {
        *self.readers.entry(commit).or_default() += 1;
    }

    fn end_reading(&mut self, commit: CommitNumber) {
        if let Some(readers) = self.readers.get_mut(&commit) {
            *readers -= 1;
            if *readers == 0 {
                self.readers.remove(&commit);
            }
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
    /// The last commit in the visible root, for those who do without the lock; written under it.
    visible_commit: AtomicU64,
}

/// The visible state of one moment, for whoever reads more of what is changed in place than one latch can show him.
pub struct Snapshot<R> {
    timeline: Arc<Timeline<R>>,
    root: Arc<R>,
    commit: CommitNumber,
}

impl<R> Snapshot<R> {
    /// Everything that was durable.
    pub fn root(&self) -> &Arc<R> {
        &self.root
    }

    /// The last commit in it.
    pub fn commit(&self) -> CommitNumber {
        self.commit
    }
}

impl<R> Drop for Snapshot<R> {
    fn drop(&mut self) {
        self.timeline.end_reading(self.commit);
    }
}

impl<R> fmt::Debug for Snapshot<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("commit", &self.commit).finish_non_exhaustive()
    }
}

/// What is read after one commit stays readable while this lives.
struct Reading<'t, R> {
    timeline: &'t Timeline<R>,
    commit: CommitNumber,
}

impl<R> Drop for Reading<'_, R> {
    fn drop(&mut self) {
        self.timeline.end_reading(self.commit);
    }
}

/// A commit on its way. Dropped without [`Entered::finish`], it is none, or one that nobody waited for.
pub struct Entered<'t, R> {
    timeline: &'t Timeline<R>,
    commit: Option<CommitNumber>,
    /// It waits for no sync, and is visible already.
    is_shown: bool,
}

impl<R> Entered<'_, R> {
    /// Takes the commit's place in the order. `build` is shown the pending root, validates against it, and makes the next
    /// one; `None` is a commit that changes nothing. It runs under the lock that orders commits, so it is to be short.
    ///
    /// # Errors
    /// What `build` returns, and those of [`Store::append`]: nothing was committed.
    ///
    /// # Panics
    /// The second time: an entry is for one commit.
    pub fn number<E: From<Error>>(
        &mut self,
        build: impl FnOnce(&Arc<R>) -> std::result::Result<Option<Built<R>>, E>,
    ) -> std::result::Result<Option<Numbered>, E> {
        assert!(self.commit.is_none(), "an entry is for one commit");
        let timeline = self.timeline;
        let mut order = timeline.order();
        // Dropped after the lock: the last handle on a root gives pages back.
        let (pending, visible) = (Arc::clone(&order.pending), Arc::clone(&order.visible));
        let Some(Built { root, records, pages }) = build(&pending)? else { return Ok(None) };
        let commit = timeline.store.append(&records, &pages)?;
        order.pending = Arc::clone(&root);
        order.waiting.push_back((commit, root));
        self.commit = Some(commit);
        self.is_shown = !timeline.store.waits_for_syncs();
        if self.is_shown {
            timeline.show(&mut order, commit);
        }
        let numbered = Numbered { commit, horizon: order.horizon() };
        drop(order);
        drop((pending, visible));
        Ok(Some(numbered))
    }

    /// Returns once the commit is durable, as `synchronous` says, and visible.
    ///
    /// # Errors
    /// Those of [`Store::make_durable`]: nobody knows whether it was committed, it is not shown, and nothing is committed
    /// any more.
    pub fn finish(self) -> Result<()> {
        let Some(commit) = self.commit.filter(|_| !self.is_shown) else { return Ok(()) };
        let timeline = self.timeline;
        timeline.store.make_durable(commit)?;
        let mut order = timeline.order();
        let before = Arc::clone(&order.visible);
        timeline.show(&mut order, commit);
        drop(order);
        drop(before);
        Ok(())
    }
}

impl<R> Drop for Entered<'_, R> {
    fn drop(&mut self) {
        let mut order = self.timeline.order();
        order.committing -= 1;
        if order.committing == 0 {
            self.timeline.settled.notify_all();
        }
    }
}

impl<R> fmt::Debug for Entered<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entered").field("commit", &self.commit).finish_non_exhaustive()
    }
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
            readers: BTreeMap::new(),
        };
        store.raise_horizon(order.visible_commit);
        let visible_commit = AtomicU64::new(order.visible_commit.0);
        Arc::new(Timeline { store, order: Mutex::new(order), settled: Condvar::new(), visible_commit })
    }

    // A panic under this lock happens in a closure of ours, before anything was changed.
    fn order(&self) -> MutexGuard<'_, Order<R>> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, order: MutexGuard<'a, Order<R>>) -> MutexGuard<'a, Order<R>> {
        self.settled.wait(order).unwrap_or_else(PoisonError::into_inner)
    }

    /// Commits up to this one are durable: shows them.
    fn show(&self, order: &mut Order<R>, durable: CommitNumber) {
        order.show(durable);
        self.visible_commit.store(order.visible_commit.0, Ordering::Release);
        self.store.raise_horizon(order.horizon());
    }

    /// One reader less of the state after this commit.
    fn end_reading(&self, commit: CommitNumber) {
        let mut order = self.order();
        order.end_reading(commit);
        self.store.raise_horizon(order.horizon());
    }

    /// Everything that is durable.
    pub fn visible(&self) -> Arc<R> {
        Arc::clone(&self.order().visible)
    }

    /// The last commit that is durable. What it changed in place is there for whoever latches that afterwards.
    #[inline]
    pub fn visible_commit(&self) -> CommitNumber {
        CommitNumber(self.visible_commit.load(Ordering::Acquire))
    }

    /// Everything that is durable, and what is changed in place as it is now, for as long as the snapshot lives.
    pub fn snapshot(self: &Arc<Self>) -> Snapshot<R> {
        let mut order = self.order();
        let (root, commit) = (Arc::clone(&order.visible), order.visible_commit);
        order.begin_reading(commit);
        Snapshot { timeline: Arc::clone(self), root, commit }
    }

    /// Up to which commit nobody will ask for what was before ([`Numbered::horizon`]).
    pub fn horizon(&self) -> CommitNumber {
        self.store.horizon()
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
        let mut order = self.order();
        let before = Arc::clone(&order.visible);
        self.show(&mut order, last);
        drop(order);
        drop(before);
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

    /// Begins a commit, which an exclusive transaction of others waits for from here on; where there is one already, waits
    /// until that is over. To be called with nothing latched.
    pub fn enter(&self, exclusive: Option<&Exclusive<R>>) -> Entered<'_, R> {
        let mut order = self.order();
        while order.is_exclusive && exclusive.is_none() {
            order = self.wait(order);
        }
        order.committing += 1;
        drop(order);
        Entered { timeline: self, commit: None, is_shown: false }
    }

    /// Commits: [`Timeline::enter`], [`Entered::number`] and [`Entered::finish`]. On return the commit is durable, as
    /// `synchronous` says, and visible.
    ///
    /// # Errors
    /// As those.
    pub fn commit<E: From<Error>>(
        &self,
        exclusive: Option<&Exclusive<R>>,
        build: impl FnOnce(&Arc<R>) -> std::result::Result<Option<Built<R>>, E>,
    ) -> std::result::Result<Option<CommitNumber>, E> {
        let mut entered = self.enter(exclusive);
        let Some(numbered) = entered.number(build)? else { return Ok(None) };
        entered.finish()?;
        Ok(Some(numbered.commit))
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
            let mut order = self.order();
            let cut = prepared.cut()?;
            order.begin_reading(cut.commit());
            (cut, Arc::clone(&order.pending))
        };
        let _reading = Reading { timeline: self, commit: cut.commit() };
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
            let mut order = self.order();
            let commit = order.visible_commit;
            order.begin_reading(commit);
            (commit, Arc::clone(&order.visible))
        };
        let _reading = Reading { timeline: self, commit };
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
        // Also with a commit in it that nobody waited for, which the store makes durable.
        let root = self.pending();
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
