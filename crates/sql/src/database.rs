//! A database: the store, the timeline of its states, and what is done beside the statements.

use crate::attached::Attached;
use crate::catalog::Catalog;
use crate::keeper::Keeper;
use crate::progress::Progress;
use crate::query_memory::QueryMemory;
use crate::session::Running;
use crate::transaction::Transaction;
use crate::{Error, Result, Session};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use sinter_column::{ColumnTable, Rewrite, Unreadable};
use sinter_storage::{
    BackupProgress, Budget, CheckpointWriter, FileSystem, ObjectId, Options, PageId, PageKind, Store, Synchronous,
    Timeline, Use, VacuumProgress,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

/// A checkpoint is made once the log is this long: replaying more at an opening would be felt.
const LOG_BYTES_MAX: u64 = 64 << 20;

/// Replay keeps delta batches few as it goes, or the last of many small inserts would cost as much as all before.
const TRANSACTIONS_PER_SETTLING: u64 = 64;

/// Expressions are compiled and dropped by recursion; only the part of a stack that is touched costs memory.
const WORKER_STACK_BYTES: usize = 32 << 20;

/// What becomes of a statement that comes to stored bytes which are not what was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum OnCorruption {
    /// It ends with an error that names the place.
    #[default]
    Error,
    /// Queries leave out, as a whole, each row group of which they cannot read a column that they need, and a note says
    /// how many. What is changed or deleted is never decided on rows that cannot be read: UPDATE, DELETE and ALTER end
    /// with the error. A database opened so gives the tables that are left, for reading only if some are lost.
    Skip,
}

/// How a database is opened.
#[derive(Clone, Debug)]
pub struct DatabaseOptions {
    /// The budget for everything that grows with data, in bytes.
    pub memory_limit_bytes: u64,
    /// Threads per query.
    pub threads: usize,
    /// When a commit counts as durable.
    pub synchronous: Synchronous,
    /// Refuses every change.
    pub read_only: bool,
    /// A file that does not exist is created.
    pub create: bool,
    /// What sessions begin with, and whether the opening itself passes over what is damaged.
    pub on_corruption: OnCorruption,
    /// Pressing and checkpoints happen beside the statements; else at the end of the commit that makes them due.
    pub background: bool,
    /// Where files live; tests put one that dies on purpose.
    pub file_system: Arc<dyn FileSystem>,
}

/// Told how far something is that takes long, with no lock held but those of whoever tells; by breaking off it ends that, with
/// [`Error::Cancelled`].
pub(crate) type Told<'a> = &'a mut dyn FnMut(Progress) -> ControlFlow<()>;

/// An open database; everything that sessions share.
pub struct Database {
    store: Arc<Store>,
    timeline: Arc<Timeline<Catalog>>,
    next_object: AtomicU64,
    checkpoints: Mutex<Checkpoints>,
    /// One vacuum at a time. Whoever holds this takes `checkpoints` for each checkpoint only.
    vacuums: tokio::sync::Mutex<Vacuums>,
    /// Held by whoever merges and presses delta batches: two would undo each other's work.
    settling: Mutex<()>,
    keeper: Keeper,
    runtime: Option<tokio::runtime::Runtime>,
    options: DatabaseOptions,
    path: Option<PathBuf>,
    is_new: bool,
    notes: Vec<String>,
    /// From the beginning of the close on: no statement begins any more.
    closed: AtomicBool,
    closing: Mutex<Closing>,
    attached: Attached,
    /// What queries in DataFusion use; all sessions share it.
    runtime_environment: Arc<RuntimeEnv>,
}

/// Where the last checkpoint put each table, and what they held then.
#[derive(Default)]
struct Checkpoints {
    roots: BTreeMap<ObjectId, PageId>,
    /// Not held, so that what they were made of can go.
    tables: BTreeMap<ObjectId, Weak<ColumnTable>>,
    catalog_page: Option<PageId>,
    /// Where the log was when a checkpoint failed; 0 when none did.
    again_after_bytes: u64,
}

/// What is known of earlier vacuums.
#[derive(Default)]
struct Vacuums {
    /// None before then that nobody asked for.
    next: Option<Instant>,
    /// Bytes of deleted rows that the last one could not give back, as their row groups cannot be read.
    stuck_bytes: u64,
}

/// What the close has done. What failed is tried again by the next call.
#[derive(Default)]
struct Closing {
    is_file_closed: bool,
    /// Databases that were attached, and are not closed yet.
    attached: Vec<Arc<Database>>,
}

/// What an opening found.
struct Opened {
    store: Arc<Store>,
    catalog: Catalog,
    checkpoints: Checkpoints,
    notes: Vec<String>,
    /// A part of it is lost: nothing may be written that would make the loss final.
    is_damaged: bool,
}

impl Database {
    /// Opens or creates the file at `path`; `None` is a database in memory.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Damaged`], [`Error::Io`].
    pub fn open(path: Option<&Path>, options: DatabaseOptions) -> Result<Arc<Database>> {
        let budget = Budget::new(in_memory(options.memory_limit_bytes));
        Database::open_within(&budget, path, options)
    }

    /// [`Database::open`], for one that draws on the budget of another, whatever `options` say of a limit.
    pub(crate) fn open_within(
        budget: &Arc<Budget>,
        path: Option<&Path>,
        mut options: DatabaseOptions,
    ) -> Result<Arc<Database>> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(options.threads)
            .thread_name("sinter")
            .thread_stack_size(WORKER_STACK_BYTES)
            .enable_all()
            .build()
            .map_err(|error| Error::Io(format!("cannot start threads: {error}")))?;
        let is_new = path.is_none_or(|path| !options.file_system.exists(path).unwrap_or(false));
        let Opened { store, catalog, checkpoints, notes, is_damaged } = match path {
            Some(path) => open_file(path, is_new, &options, budget)?,
            None => Opened {
                store: Arc::new(Store::memory().with_budget(budget)),
                catalog: Catalog::default(),
                checkpoints: Checkpoints::default(),
                notes: Vec::new(),
                is_damaged: false,
            },
        };
        if path.is_none() {
            // It has nothing to sync, but what is attached to it follows.
            store.set_synchronous(options.synchronous)?;
        }
        let query_memory = Arc::new(QueryMemory::new(budget));
        let runtime_environment = RuntimeEnvBuilder::new().with_memory_pool(query_memory).build_arc()?;
        options.read_only |= is_damaged;
        let next_object = AtomicU64::new(catalog.next_object.max(1));
        let database = Arc::new(Database {
            timeline: Timeline::new(Arc::clone(&store), catalog),
            store,
            next_object,
            checkpoints: Mutex::new(checkpoints),
            vacuums: tokio::sync::Mutex::default(),
            settling: Mutex::default(),
            keeper: Keeper::default(),
            runtime: Some(runtime),
            path: path.map(Path::to_path_buf),
            is_new,
            notes,
            closed: AtomicBool::new(false),
            closing: Mutex::default(),
            attached: Attached::default(),
            runtime_environment,
            options,
        });
        if database.options.background && !database.options.read_only {
            database.keeper.start(Arc::downgrade(&database))?;
        }
        Ok(database)
    }

    /// A new session.
    pub fn session(self: &Arc<Self>) -> Session {
        Session::new(Arc::clone(self))
    }

    /// The file; `None` in memory.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The file did not exist before this opening.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// What the opening did or noticed.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// How it was opened.
    pub fn options(&self) -> &DatabaseOptions {
        &self.options
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// The databases that queries may name beside this one.
    pub(crate) fn attached(&self) -> &Attached {
        &self.attached
    }

    pub(crate) fn timeline(&self) -> &Arc<Timeline<Catalog>> {
        &self.timeline
    }

    pub(crate) fn runtime(&self) -> Result<&tokio::runtime::Handle> {
        match &self.runtime {
            Some(runtime) if !self.is_closed() => Ok(runtime.handle()),
            _ => Err(Error::Unavailable("the database is closed".to_owned())),
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Sets the limit of the one budget, for attached databases, too; statements that already run keep what they have.
    pub(crate) fn set_memory_limit(&self, bytes: u64) {
        self.store.budget().set_limit(in_memory(bytes));
    }

    pub(crate) fn runtime_environment(&self) -> Arc<RuntimeEnv> {
        Arc::clone(&self.runtime_environment)
    }

    /// Everything as of the last durable commit.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        self.timeline.visible()
    }

    /// A number that no object has or had.
    pub(crate) fn next_object(&self) -> ObjectId {
        ObjectId(self.next_object.fetch_add(1, Ordering::AcqRel))
    }

    /// Begins a transaction. An exclusive one cannot conflict: the commits of others wait for it.
    pub(crate) fn begin(&self, is_read_only: bool, is_exclusive: bool) -> Result<Transaction> {
        self.runtime()?;
        let exclusive = is_exclusive.then(|| self.timeline.exclusive());
        let is_read_only = is_read_only || self.options.read_only;
        Ok(Transaction::new(self.catalog(), self.attached.catalogs(), is_read_only, exclusive))
    }

    pub(crate) fn check_writable(&self) -> Result<()> {
        match self.options.read_only {
            true => Err(Error::Unavailable("the database was opened read-only; nothing can be changed".to_owned())),
            false => Ok(()),
        }
    }

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
            Ok(Checkpoints::default().write(&self.store, catalog, out)?.0)
        })
    }

    fn checkpoints(&self) -> MutexGuard<'_, Checkpoints> {
        self.checkpoints.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// [`Database::press`], for all tables.
    fn press_all(&self, told: Told<'_>) -> Result<u64> {
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
        Ok(())
    }

    /// Checkpoints and closes. After an error it can be called again, and does what is still to be done; else a second call
    /// does nothing.
    ///
    /// # Errors
    /// [`Error::Io`] when the checkpoint could not be written; the log then holds what is missing. Or when rows could not be
    /// pressed: they are in the file as they are, and that is closed.
    pub fn close(&self) -> Result<()> {
        self.closed.store(true, Ordering::Release);
        let mut closing = self.closing.lock().unwrap_or_else(PoisonError::into_inner);
        self.keeper.stop();
        let attached = self.attached.list().into_iter().filter_map(|(name, _)| self.attached.detach(&name));
        closing.attached.extend(attached);
        // Each is closed, whatever becomes of the others.
        let mut closed = Ok(());
        for database in std::mem::take(&mut closing.attached) {
            if let Err(error) = database.close() {
                closing.attached.push(database);
                closed = closed.and(Err(error));
            }
        }
        self.close_file(&mut closing)?;
        closed
    }

    /// Also of a reader, whose close writes nothing: whoever still looks at a state of it would otherwise keep the lock.
    fn close_file(&self, closing: &mut Closing) -> Result<()> {
        if closing.is_file_closed || self.path.is_none() {
            return Ok(());
        }
        let mut checkpoints = self.checkpoints();
        let pressed = match self.options.read_only {
            true => Ok(0),
            false => self.press_all(&mut |_| ControlFlow::Continue(())),
        };
        let mut next = None;
        self.timeline.close(|catalog, out| -> Result<PageId> {
            let (page, written) = checkpoints.write(&self.store, catalog, out)?;
            next = Some(written);
            Ok(page)
        })?;
        *checkpoints = next.unwrap_or_default();
        closing.is_file_closed = true;
        pressed.map(drop)
    }
}

impl Checkpoints {
    /// Writes what changed since the last checkpoint; returns the catalog's page, and what the next one is to know.
    fn write(&self, store: &Store, catalog: &Catalog, out: &mut CheckpointWriter<'_>) -> Result<(PageId, Checkpoints)> {
        let mut next = Checkpoints::default();
        for table in catalog.tables.values() {
            let (id, root) = (table.id(), self.roots.get(&table.id()).copied());
            let is_unchanged =
                self.tables.get(&id).is_some_and(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(table)));
            let root = match root {
                Some(root) if is_unchanged => root,
                _ => {
                    for page in table.pages() {
                        out.keep(page)?;
                    }
                    let bytes = table.root_bytes()?;
                    let _root = store.budget().take(Use::Scratch, bytes.len());
                    out.put(root, PageKind::TABLE_ROOT, &bytes)?
                }
            };
            next.roots.insert(id, root);
            next.tables.insert(id, Arc::downgrade(table));
        }
        for (id, root) in &self.roots {
            if !next.roots.contains_key(id) {
                out.free(*root);
            }
        }
        let bytes = catalog.page_bytes(&|id| next.roots.get(&id).copied().unwrap_or_default());
        let page = out.put(self.catalog_page, PageKind::CATALOG, &bytes)?;
        next.catalog_page = Some(page);
        Ok((page, next))
    }
}

fn open_file(path: &Path, is_new: bool, options: &DatabaseOptions, budget: &Arc<Budget>) -> Result<Opened> {
    if is_new && (options.read_only || !options.create) {
        return Err(Error::Unavailable(format!(
            "there is no database '{}'; check the path, or open it for writing to create it",
            path.display()
        )));
    }
    let of_store = Options { synchronous: options.synchronous, read_only: options.read_only, ..Options::default() };
    let skips = options.on_corruption == OnCorruption::Skip;
    let (store, mut recovery, mut is_damaged) = match Store::open(Arc::clone(&options.file_system), path, of_store) {
        Ok((store, recovery)) => (store, recovery, false),
        Err(error) if skips && error.is_damage() => {
            let (store, recovery) = Store::open_damaged(&options.file_system, path, of_store)?;
            (store, recovery, true)
        }
        Err(error) => return Err(error.into()),
    };
    let store = Arc::new(store.with_budget(budget));
    let mut catalog = Catalog::default();
    let mut checkpoints = Checkpoints::default();
    if let Some(root) = recovery.root {
        (catalog, checkpoints.roots) = Catalog::load(&store, root, options.on_corruption)?;
        is_damaged |= !catalog.damaged.is_empty();
        if is_damaged && !options.read_only {
            // Whatever is written now could be the end of what may still be saved.
            drop((catalog, store, recovery));
            return open_file(path, is_new, &DatabaseOptions { read_only: true, ..options.clone() }, budget);
        }
        if is_damaged {
            let lost = catalog.damaged.iter().map(|(name, table)| table.error(name).to_string());
            recovery.notes.extend(lost);
            recovery.notes.push(
                "a part of the database is lost, so it is open for reading only: copy what there is into another one, \
                 or restore a backup"
                    .to_owned(),
            );
        }
        checkpoints.catalog_page = Some(root);
        checkpoints.tables = catalog.tables.values().map(|table| (table.id(), Arc::downgrade(table))).collect();
    }
    let mut replayed = 0u64;
    for transaction in recovery.transactions {
        for record in &transaction?.records {
            catalog.apply(record, &store)?;
        }
        replayed += 1;
        if replayed.is_multiple_of(TRANSACTIONS_PER_SETTLING) {
            settle_all(&mut catalog, options)?;
        }
    }
    let mut notes = recovery.notes;
    if replayed > 0 {
        notes.push(format!("{replayed} transactions were replayed from the log"));
    }
    if !options.read_only {
        settle_all(&mut catalog, options)?;
        free_unreachable_pages(&store, &catalog, &checkpoints);
    }
    Ok(Opened { store, catalog, checkpoints, notes, is_damaged })
}

/// Keeps delta batches few; presses them where they make a row group and the file may be written.
fn settle_all(catalog: &mut Catalog, options: &DatabaseOptions) -> Result<()> {
    for table in catalog.tables.values_mut() {
        let settled = loop {
            match table.settling(options.threads) {
                Ok(rewrite) => match rewrite.and_then(|rewrite| rewrite.apply_to(table)) {
                    Some(new) => *table = Arc::new(new),
                    None => break Ok(()),
                },
                Err(error) => break Err(Error::from(error)),
            }
        };
        unless_damaged(settled)?;
    }
    Ok(())
}

/// Whether whoever was told wants it to go on.
fn go_on(flow: ControlFlow<()>) -> Result<()> {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Cancelled),
    }
}

/// Rows next to some that cannot be read stay as they are; nothing else has to wait for that.
fn unless_damaged(pressed: Result<()>) -> Result<()> {
    match pressed {
        Err(Error::Damaged(_)) => Ok(()),
        other => other,
    }
}

/// A crash can leave pages that were let go of but not yet given back.
fn free_unreachable_pages(store: &Store, catalog: &Catalog, checkpoints: &Checkpoints) {
    let mut reachable: HashSet<PageId> = catalog.tables.values().flat_map(|table| table.pages()).collect();
    reachable.extend(checkpoints.roots.values());
    reachable.extend(checkpoints.catalog_page);
    let mut lost = Vec::new();
    store.for_each_page(&mut |info| {
        if !reachable.contains(&info.page) {
            lost.push(info.page);
        }
    });
    lost.into_iter().for_each(|page| store.free(page));
}

/// As many bytes as there can be in memory, if there are more.
fn in_memory(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

impl Drop for Database {
    fn drop(&mut self) {
        // Whoever wants to know of errors calls `close`; the log keeps every commit in any case.
        let _ = self.close();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database").field("path", &self.path).finish_non_exhaustive()
    }
}

impl From<sinter_storage::Error> for Error {
    fn from(error: sinter_storage::Error) -> Error {
        use sinter_storage::Error as Storage;
        let message = error.to_string();
        match error {
            Storage::Io { .. } | Storage::DiskFull { .. } => Error::Io(message),
            Storage::GivenUp { .. } => Error::Cancelled,
            Storage::NotADatabase { .. } => Error::Damaged(message),
            _ if error.is_damage() => Error::Damaged(message),
            Storage::NoSuchPage { .. } | Storage::ReservedTag { .. } => Error::Internal(message),
            _ => Error::Unavailable(message),
        }
    }
}
