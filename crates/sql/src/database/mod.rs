//! A database: the store, the timeline of its states, how a file is opened and closed.

mod checkpoints;
mod upkeep;

use checkpoints::{Checkpoints, free_unreachable_pages};
use upkeep::Vacuums;

use crate::attached::{Attached, Visible};
use crate::catalog::Catalog;
use crate::keeper::Keeper;
use crate::kv::TreesSeen;
use crate::progress::Progress;
use crate::query_memory::QueryMemory;
use crate::spill_file::disk;
use crate::transaction::Transaction;
use crate::{Error, Result, Session};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use sinter_storage::{Budget, FileSystem, ObjectId, Options, PageId, Store, Synchronous, Timeline};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

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

/// Threads per query, at most: more would do nothing but wait for the processors.
pub const THREADS_MAX: usize = 1024;

/// How a database is opened.
#[derive(Clone, Debug)]
pub struct DatabaseOptions {
    /// The budget for everything that grows with data, in bytes.
    pub memory_limit_bytes: u64,
    /// Threads per query; [`THREADS_MAX`] at most, and one at least.
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

#[cfg(test)]
impl DatabaseOptions {
    /// For the tests of this room: a small database in memory, that does nothing beside its statements.
    pub(crate) fn in_memory() -> DatabaseOptions {
        DatabaseOptions {
            memory_limit_bytes: 64 << 20,
            threads: 1,
            synchronous: Synchronous::Off,
            read_only: false,
            create: true,
            on_corruption: OnCorruption::Error,
            background: false,
            file_system: Arc::new(sinter_storage::HeapFileSystem::default()),
        }
    }
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
    /// Commits of one key of a key-value tree so far.
    kv_commits: AtomicU64,
    attached: Attached,
    /// What queries in DataFusion use; all sessions share it.
    runtime_environment: Arc<RuntimeEnv>,
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
        options.threads = options.threads.clamp(1, THREADS_MAX);
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
        let runtime_environment =
            RuntimeEnvBuilder::new().with_memory_pool(query_memory).with_disk_manager_builder(disk());
        let runtime_environment = runtime_environment.build_arc()?;
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
            kv_commits: AtomicU64::new(0),
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

    /// The same, with the state of its key-value trees.
    pub(crate) fn visible(&self) -> Visible {
        let catalog = self.catalog();
        if catalog.trees.is_empty() {
            return Visible { catalog, trees: TreesSeen::default() };
        }
        let snapshot = Arc::new(self.timeline.snapshot());
        Visible { catalog: Arc::clone(snapshot.root()), trees: TreesSeen::new(snapshot, BTreeMap::new()) }
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
        Ok(Transaction::new(self.timeline.snapshot(), self.attached.visible(), is_read_only, exclusive))
    }

    pub(crate) fn check_writable(&self) -> Result<()> {
        match self.options.read_only {
            true => Err(Error::Unavailable("the database was opened read-only; nothing can be changed".to_owned())),
            false => Ok(()),
        }
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
        checkpoints.let_go();
        closing.is_file_closed = true;
        pressed.map(drop)
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
    let (store, recovery, mut is_damaged) = match Store::open(Arc::clone(&options.file_system), path, of_store) {
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
        checkpoints.catalog_page = Some(root);
        checkpoints.tables = catalog.tables.values().map(|table| (table.id(), Arc::downgrade(table))).collect();
    }
    // Whatever is written once something is damaged could be the end of what may still be saved.
    let for_reading = || DatabaseOptions { read_only: true, ..options.clone() };
    if is_damaged && !options.read_only {
        drop((catalog, store, recovery));
        return open_file(path, is_new, &for_reading(), budget);
    }
    let mut replayed = 0u64;
    for transaction in recovery.transactions {
        let sinter_storage::Transaction { commit, records } = transaction?;
        for record in &records {
            catalog.apply(record, commit, &store, options.on_corruption)?;
        }
        replayed += 1;
        if replayed.is_multiple_of(TRANSACTIONS_PER_SETTLING) {
            settle_all(&mut catalog, options)?;
        }
    }
    is_damaged |= !catalog.damaged.is_empty();
    if is_damaged && !options.read_only {
        drop((catalog, store));
        return open_file(path, is_new, &for_reading(), budget);
    }
    let mut notes = recovery.notes;
    if is_damaged {
        notes.extend(catalog.damaged.iter().map(|(name, table)| table.error(name).to_string()));
        notes.push(
            "a part of the database is lost, so it is open for reading only: copy what there is into another one, or \
             restore a backup"
                .to_owned(),
        );
    }
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

/// Rows next to some that cannot be read stay as they are; nothing else has to wait for that.
fn unless_damaged(pressed: Result<()>) -> Result<()> {
    match pressed {
        Err(Error::Damaged(_)) => Ok(()),
        other => other,
    }
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
