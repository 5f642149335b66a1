//! What is done beside the statements: delta batches are pressed, checkpoints made, dead space given back.

use super::checkpoints::Checkpoints;
use super::{Database, Told};
use crate::progress::Progress;
use crate::session::Running;
use crate::{Error, Result};
use sinter_column::{ColumnTable, Rewrite, Unreadable};
use sinter_storage::{BackupProgress, ObjectId, PageId, VacuumProgress};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Instant;

/// A checkpoint is made once the log is this long: replaying more at an opening would be felt.
const LOG_BYTES_MAX: u64 = 64 << 20;

/// After so many commits of one key the log is looked at.
const KV_COMMITS_PER_LOOK: u64 = 64;

/// What is known of earlier vacuums.
#[derive(Default)]
pub(super) struct Vacuums {
    /// None before then that nobody asked for.
    next: Option<Instant>,
    /// Bytes of deleted rows that the last one could not give back, as their row groups cannot be read.
    stuck_bytes: u64,
}

impl Database {
    /// What follows a commit that changed these objects: delta batches stay few, and the log short.
    pub(crate) fn after_commit(&self, objects: Vec<ObjectId>) {
        // What was committed stays committed: a full disk here only means that things stay as they are.
        if let Ok(_settling) = self.settling.try_lock() {
            for &object in &objects {
                let _ = self.rewrite(object, ColumnTable::merging);
            }
        }
        if self.keeper.wake(&objects) {
            return;
        }
        // Nor is anybody waited for here: it may be this very thread that presses, if a test commits in a call to the disk.
        if let Ok(_settling) = self.settling.try_lock() {
            for object in objects {
                let _ = self.rewrite(object, |table| table.settling(self.options.threads));
            }
        }
        let _ = self.vacuum_where_due();
        let _ = self.checkpoint_where_due();
    }

    /// Settles what commits have woken the keeper for.
    pub(crate) fn settle_woken(&self) {
        for object in self.keeper.woken() {
            // What fails here is tried again after the next commit.
            let _ = self.settle(object);
        }
    }

    /// Merges a table's delta batches, and presses them where they make a row group.
    pub(crate) fn settle(&self, object: ObjectId) -> Result<()> {
        let _settling = self.settling.lock().unwrap_or_else(PoisonError::into_inner);
        self.rewrite(object, |table| table.settling(self.options.threads))
    }

    /// Presses all of a table that is loose and can be read; `told` is called before each step. Returns the bytes of deleted
    /// rows that stay in the file, since they are in row groups that cannot be read.
    fn press(&self, object: ObjectId, told: Told<'_>) -> Result<u64> {
        let (mut unreadable, mut loose_rows_max, mut stuck_bytes) = (Unreadable::default(), 0, 0);
        loop {
            let catalog = self.timeline.pending();
            let Some((name, table)) = catalog.table_by_id(object) else { return Ok(stuck_bytes) };
            let loose_rows = table.loose_rows();
            loose_rows_max = loose_rows.max(loose_rows_max);
            let (done, total) = (loose_rows_max - loose_rows, Some(loose_rows_max));
            go_on(told(Progress { label: format!("pressing {name}, rows"), done, total }))?;
            // Else it would hold what this replaces.
            drop(catalog);
            // For one step only: others have tables to settle, too.
            let _settling = self.settling.lock().unwrap_or_else(PoisonError::into_inner);
            let goes_on = self.rewrite_once(object, |table| {
                let rewrite = table.pressing(self.options.threads, &mut unreadable)?;
                if rewrite.is_none() && !unreadable.is_empty() {
                    stuck_bytes = table.bytes_to_give_back();
                }
                Ok(rewrite)
            })?;
            if !goes_on {
                return Ok(stuck_bytes);
            }
        }
    }

    /// Puts rows of a table into another form, as long as there is something to do and the rows are still where they were
    /// when that was begun.
    fn rewrite(
        &self,
        object: ObjectId,
        next: impl Fn(&ColumnTable) -> sinter_column::Result<Option<Rewrite>>,
    ) -> Result<()> {
        while self.rewrite_once(object, &next)? {}
        Ok(())
    }

    /// One step of that; returns whether something was done.
    fn rewrite_once(
        &self,
        object: ObjectId,
        next: impl FnOnce(&ColumnTable) -> sinter_column::Result<Option<Rewrite>>,
    ) -> Result<bool> {
        let catalog = self.timeline.pending();
        let Some((_, table)) = catalog.table_by_id(object) else { return Ok(false) };
        let Some(rewrite) = next(table)? else { return Ok(false) };
        Ok(self.timeline.rewrite(|pending| {
            let (name, table) = pending.table_by_id(object)?;
            let table = Arc::new(rewrite.apply_to(table)?);
            let mut root = (**pending).clone();
            root.tables.insert(name.clone(), table);
            Some(root)
        }))
    }

    /// Makes a checkpoint where the log is long.
    pub(crate) fn checkpoint_where_due(&self) -> Result<()> {
        let Ok(mut checkpoints) = self.checkpoints.try_lock() else { return Ok(()) };
        if self.store.replay_bytes() <= checkpoints.again_after_bytes + LOG_BYTES_MAX {
            return Ok(());
        }
        let pressed = self.press_all(&mut |_| {
            self.settle_woken();
            self.unless_closed()
        });
        // One that fails undoes nothing: the log keeps everything. It is tried again when the log has grown by as much
        // once more.
        let checkpointed = self.checkpoint_under(&mut checkpoints);
        checkpoints.again_after_bytes = if checkpointed.is_err() { self.store.replay_bytes() } else { 0 };
        checkpointed.and(pressed.map(drop))
    }

    /// Writes everything that the log holds into the file, and begins a new log; commits go on meanwhile. In memory it
    /// only presses what is not pressed yet.
    ///
    /// # Errors
    /// Those of the checkpoint. Those of pressing: rows that could not be pressed are in the checkpoint as they are.
    pub(crate) fn checkpoint(&self, told: Told<'_>) -> Result<()> {
        self.runtime()?;
        self.check_writable()?;
        let pressed = self.press_all(told);
        if !matches!(pressed, Err(Error::Cancelled)) {
            self.checkpoint_under(&mut self.checkpoints())?;
        }
        pressed.map(drop)
    }

    /// Makes the file as small as what is in it; commits go on meanwhile. Waits for another vacuum to end.
    pub(crate) fn vacuum(&self, running: &Running, told: Told<'_>) -> Result<()> {
        self.runtime()?;
        self.check_writable()?;
        let mut vacuums = pollster::block_on(async {
            tokio::select! {
                biased;
                () = running.cancelled() => Err(Error::Cancelled),
                vacuums = self.vacuums.lock() => Ok(vacuums),
            }
        })?;
        self.vacuum_under(&mut vacuums, told)
    }

    /// A vacuum that nobody asked for. However little it finds, a tenth of the time goes into it at most.
    pub(crate) fn vacuum_where_due(&self) -> Result<()> {
        let Ok(mut vacuums) = self.vacuums.try_lock() else { return Ok(()) };
        let is_early = vacuums.next.is_some_and(|next| Instant::now() < next);
        // Nobody is waited for: whoever has a checkpoint under way may be this very thread.
        if self.path.is_none() || is_early || self.checkpoints.try_lock().is_err() {
            return Ok(());
        }
        let deleted_bytes = self.catalog().tables.values().map(|table| table.bytes_to_give_back()).sum::<u64>();
        vacuums.stuck_bytes = vacuums.stuck_bytes.min(deleted_bytes);
        if !self.store.is_vacuum_due(deleted_bytes - vacuums.stuck_bytes) {
            return Ok(());
        }
        let begun = Instant::now();
        // It may take minutes, of the one thread that sees to delta batches and to the log.
        let vacuumed = self.vacuum_under(&mut vacuums, &mut |_| {
            self.settle_woken();
            let _ = self.checkpoint_where_due();
            self.unless_closed()
        });
        vacuums.next = Some(Instant::now() + 9 * begun.elapsed());
        vacuumed
    }

    /// A full disk keeps rows from being pressed, not pages from being moved; the error is returned at the end.
    fn vacuum_under(&self, vacuums: &mut Vacuums, told: Told<'_>) -> Result<()> {
        let (told, mut pressed) = (RefCell::new(told), Ok(0));
        let mut between = |VacuumProgress { bytes_done, bytes_total }| {
            let label = "moving pages, bytes".to_owned();
            (told.borrow_mut())(Progress { label, done: bytes_done, total: Some(bytes_total) })
        };
        let vacuumed = self.store.vacuum(&mut between, || {
            pressed = self.press_all(&mut **told.borrow_mut());
            match pressed {
                Err(Error::Cancelled) => Err(Error::Cancelled),
                _ => self.checkpoint_under(&mut self.checkpoints()),
            }
        });
        if let Ok(stuck_bytes) = pressed {
            vacuums.stuck_bytes = stuck_bytes;
        }
        vacuumed.and(pressed.map(drop))
    }

    /// What nobody asked for ends when the database is closed, which does not wait for all of it.
    fn unless_closed(&self) -> ControlFlow<()> {
        if self.is_closed() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Writes the last durable state into a new file, while everything goes on.
    pub(crate) fn backup(
        &self,
        path: &Path,
        progress: &mut dyn FnMut(BackupProgress) -> ControlFlow<()>,
    ) -> Result<()> {
        self.runtime()?;
        let file_system = &*self.options.file_system;
        self.timeline.backup(file_system, path, progress, |catalog, out| -> Result<PageId> {
            Checkpoints::copy(&self.store, catalog, out)
        })
    }

    pub(super) fn checkpoints(&self) -> MutexGuard<'_, Checkpoints> {
        self.checkpoints.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// [`Database::press`], for all tables.
    pub(super) fn press_all(&self, told: Told<'_>) -> Result<u64> {
        let objects: BTreeSet<ObjectId> = self.catalog().tables.values().map(|table| table.id()).collect();
        objects.into_iter().map(|object| self.press(object, told)).sum()
    }

    fn checkpoint_under(&self, checkpoints: &mut Checkpoints) -> Result<()> {
        if self.path.is_none() {
            return Ok(());
        }
        let mut next = None;
        self.timeline.checkpoint(|catalog, out| -> Result<PageId> {
            let (page, written) = checkpoints.write(&self.store, catalog, out)?;
            next = Some(written);
            Ok(page)
        })?;
        *checkpoints = next.unwrap_or_default();
        checkpoints.adopt()
    }

    /// What follows a commit of one key, which is quick: now and then the log is looked at.
    pub(crate) fn after_kv_commit(&self, object: ObjectId) {
        let commits = self.kv_commits.fetch_add(1, Ordering::Relaxed);
        if commits.is_multiple_of(KV_COMMITS_PER_LOOK)
            && self.store.replay_bytes() > LOG_BYTES_MAX
            && !self.keeper.wake(&[object])
        {
            let _ = self.checkpoint_where_due();
        }
    }
}

/// Whether whoever was told wants it to go on.
fn go_on(flow: ControlFlow<()>) -> Result<()> {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Cancelled),
    }
}
