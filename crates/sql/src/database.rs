//! A database: the store, the catalog, and the one writer at a time.

use crate::catalog::{Catalog, TableName};
use crate::{Error, Result, Session};
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use sinter_column::{Change, ColumnTable, TableSchema, TableState};
use sinter_storage::{CheckpointWriter, FileSystem, ObjectId, Options, PageId, PageKind, Record, Store, Synchronous};
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

/// A checkpoint is made once the log is this long: replaying more at an opening would be felt.
const LOG_BYTES_MAX: u64 = 64 << 20;

/// Replay keeps delta batches few as it goes, or the last of many small inserts would cost as much as all before.
const TRANSACTIONS_PER_SETTLING: u64 = 64;

/// Expressions are compiled and dropped by recursion; only the part of a stack that is touched costs memory.
const WORKER_STACK_BYTES: usize = 32 << 20;

/// How a database is opened.
#[derive(Clone, Debug)]
pub struct DatabaseOptions {
    /// Budget for cached pages and running queries, in bytes.
    pub memory_limit_bytes: u64,
    /// Threads per query.
    pub threads: usize,
    /// When a commit counts as durable.
    pub synchronous: Synchronous,
    /// Refuses every change.
    pub read_only: bool,
    /// A file that does not exist is created.
    pub create: bool,
    /// Where files live; tests put one that dies on purpose.
    pub file_system: Arc<dyn FileSystem>,
}

/// An open database; everything that sessions share.
pub struct Database {
    store: Arc<Store>,
    catalog: RwLock<Arc<Catalog>>,
    writer: Mutex<Writer>,
    runtime: Option<tokio::runtime::Runtime>,
    options: DatabaseOptions,
    path: Option<PathBuf>,
    is_new: bool,
    notes: Vec<String>,
    closed: AtomicBool,
    /// What queries in DataFusion may use beside the pool; all sessions share it.
    runtime_environment: Mutex<Arc<RuntimeEnv>>,
}

/// What only the writer needs: where checkpoints put each table, and what they held then.
#[derive(Default)]
struct Writer {
    roots: BTreeMap<ObjectId, PageId>,
    checkpointed: BTreeMap<ObjectId, Arc<TableState>>,
    catalog_page: Option<PageId>,
    /// Where the log was when a checkpoint failed; 0 when none did.
    checkpoint_after_bytes: u64,
}

impl Database {
    /// Opens or creates the file at `path`; `None` is a database in memory.
    ///
    /// # Errors
    /// [`Error::Unavailable`], [`Error::Damaged`], [`Error::Io`].
    pub fn open(path: Option<&Path>, options: DatabaseOptions) -> Result<Arc<Database>> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(options.threads)
            .thread_name("sinter")
            .thread_stack_size(WORKER_STACK_BYTES)
            .enable_all()
            .build()
            .map_err(|error| Error::Io(format!("cannot start threads: {error}")))?;
        let mut database = Database {
            store: Arc::new(Store::memory()),
            catalog: RwLock::default(),
            writer: Mutex::default(),
            runtime: Some(runtime),
            path: path.map(Path::to_path_buf),
            is_new: true,
            notes: Vec::new(),
            // Until it is open: an opening that fails must not write a checkpoint of the nothing that it has read.
            closed: AtomicBool::new(true),
            runtime_environment: Mutex::new(environment_of(options.memory_limit_bytes)?),
            options,
        };
        if let Some(path) = path {
            database.open_file(path)?;
        }
        database.closed.store(false, Ordering::Release);
        Ok(Arc::new(database))
    }

    fn open_file(&mut self, path: &Path) -> Result<()> {
        self.is_new = !path.exists();
        if self.is_new && (self.options.read_only || !self.options.create) {
            return Err(Error::Unavailable(format!(
                "there is no database '{}'; check the path, or open it for writing to create it",
                path.display()
            )));
        }
        let options = Options {
            synchronous: self.options.synchronous,
            pool_bytes_max: half(self.options.memory_limit_bytes),
            read_only: self.options.read_only,
        };
        let (store, recovery) = Store::open(Arc::clone(&self.options.file_system), path, options)?;
        self.store = Arc::new(store);
        let mut catalog = Catalog::default();
        let mut writer = Writer::default();
        if let Some(root) = recovery.root {
            (catalog, writer.roots) = Catalog::load(&self.store, root)?;
            writer.catalog_page = Some(root);
            writer.checkpointed = catalog.tables.values().map(|table| (table.id(), table.state())).collect();
        }
        let mut replayed = 0u64;
        for transaction in recovery.transactions {
            for record in &transaction?.records {
                catalog.apply(record, &self.store)?;
            }
            replayed += 1;
            if replayed.is_multiple_of(TRANSACTIONS_PER_SETTLING) {
                for table in catalog.tables.values() {
                    table.settle(self.options.threads, !self.options.read_only)?;
                }
            }
        }
        self.notes = recovery.notes;
        if replayed > 0 {
            self.notes.push(format!("{replayed} transactions were replayed from the log"));
        }
        if !self.options.read_only {
            for table in catalog.tables.values() {
                table.settle(self.options.threads, true)?;
            }
            self.free_unreachable_pages(&catalog, &writer);
        }
        self.catalog = RwLock::new(Arc::new(catalog));
        self.writer = Mutex::new(writer);
        Ok(())
    }

    /// A crash can leave pages that were let go of but not yet given back.
    fn free_unreachable_pages(&self, catalog: &Catalog, writer: &Writer) {
        let mut reachable: HashSet<PageId> = catalog.tables.values().flat_map(|table| table.pages()).collect();
        reachable.extend(writer.roots.values());
        reachable.extend(writer.catalog_page);
        let mut lost = Vec::new();
        self.store.for_each_page(&mut |info| {
            if !reachable.contains(&info.page) {
                lost.push(info.page);
            }
        });
        lost.into_iter().for_each(|page| self.store.free(page));
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

    pub(crate) fn runtime(&self) -> Result<&tokio::runtime::Handle> {
        match &self.runtime {
            Some(runtime) if !self.closed.load(Ordering::Acquire) => Ok(runtime.handle()),
            _ => Err(Error::Unavailable("the database is closed".to_owned())),
        }
    }

    /// Divides a new limit between cached pages and queries; statements that already run keep what they have.
    pub(crate) fn set_memory_limit(&self, bytes: u64) -> Result<()> {
        *self.runtime_environment.lock().unwrap_or_else(PoisonError::into_inner) = environment_of(bytes)?;
        self.store.set_pool_bytes_max(half(bytes));
        Ok(())
    }

    pub(crate) fn runtime_environment(&self) -> Arc<RuntimeEnv> {
        Arc::clone(&self.runtime_environment.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The tables as of now.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.catalog.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The right to change something. One holder at a time; what it reads stays current until it is dropped.
    pub(crate) fn write(&self) -> Result<Write<'_>> {
        self.runtime()?;
        if self.options.read_only {
            return Err(Error::Unavailable("the database was opened read-only; nothing can be changed".to_owned()));
        }
        Ok(Write { database: self, writer: self.writer.lock().unwrap_or_else(PoisonError::into_inner) })
    }

    /// Checkpoints and closes. A second call does nothing.
    ///
    /// # Errors
    /// [`Error::Io`] when the checkpoint could not be written; the log then holds what is missing.
    pub fn close(&self) -> Result<()> {
        if self.closed.swap(true, Ordering::AcqRel) {
            return Ok(());
        }
        if self.path.is_none() || self.options.read_only {
            return Ok(());
        }
        let mut write = Write { database: self, writer: self.writer.lock().unwrap_or_else(PoisonError::into_inner) };
        write.write_tables(true)
    }
}

/// Half of the budget is for cached pages, half for queries.
fn half(memory_limit_bytes: u64) -> usize {
    usize::try_from(memory_limit_bytes / 2).unwrap_or(usize::MAX)
}

fn environment_of(memory_limit_bytes: u64) -> Result<Arc<RuntimeEnv>> {
    let pool = Arc::new(GreedyMemoryPool::new(half(memory_limit_bytes)));
    Ok(RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc()?)
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

/// Tables that are about to go: the catalog without them, and the records of that.
struct Dropping {
    catalog: Catalog,
    tables: Vec<Arc<ColumnTable>>,
    records: Vec<Record>,
}

/// The one writer, for as long as it lives.
pub(crate) struct Write<'a> {
    database: &'a Database,
    writer: MutexGuard<'a, Writer>,
}

impl Write<'_> {
    /// Makes changes of rows durable and visible.
    pub(crate) fn commit(&mut self, changes: Vec<Change>) -> Result<()> {
        let tables: Vec<Arc<ColumnTable>> = changes.iter().map(|change| Arc::clone(change.table())).collect();
        Change::commit(&self.database.store, Vec::new(), changes)?;
        self.after_commit(&tables);
        Ok(())
    }

    /// Creates a table, filled by `fill` in the same commit. One of that name gives way in that commit too.
    pub(crate) fn create_table(
        &mut self,
        name: TableName,
        schema: TableSchema,
        fill: impl FnOnce(&Arc<ColumnTable>) -> Result<Vec<Change>>,
    ) -> Result<()> {
        let database = self.database;
        let Dropping { catalog, tables, mut records } = self.dropping(std::slice::from_ref(&name));
        let (next, table, record) = catalog.with_table(name, schema, &database.store);
        records.push(record);
        let changes = fill(&table)?;
        Change::commit(&database.store, records, changes)?;
        self.publish(next);
        tables.iter().for_each(|dropped| dropped.release());
        self.after_commit(&[table]);
        Ok(())
    }

    /// Drops tables in one commit; names that no table has are passed over.
    pub(crate) fn drop_tables(&mut self, names: &[TableName]) -> Result<()> {
        let Dropping { catalog, tables, records } = self.dropping(names);
        if records.is_empty() {
            return Ok(());
        }
        self.database.store.commit(&records, &[])?;
        self.publish(catalog);
        tables.iter().for_each(|dropped| dropped.release());
        self.after_commit(&[]);
        Ok(())
    }

    fn dropping(&self, names: &[TableName]) -> Dropping {
        let mut dropping =
            Dropping { catalog: (*self.database.catalog()).clone(), tables: Vec::new(), records: Vec::new() };
        for name in names {
            if let Some((next, table, record)) = dropping.catalog.without_table(name) {
                dropping.catalog = next;
                dropping.tables.push(table);
                dropping.records.push(record);
            }
        }
        dropping
    }

    fn publish(&self, next: Catalog) {
        *self.database.catalog.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
    }

    fn after_commit(&mut self, tables: &[Arc<ColumnTable>]) {
        for table in tables {
            // What was committed stays committed: a full disk here only means that delta batches stay as they are.
            let _ = table.settle(self.database.options.threads, true);
        }
        if self.database.store.replay_bytes() > self.writer.checkpoint_after_bytes + LOG_BYTES_MAX {
            // Nor does a checkpoint that fails undo it: the log keeps everything. It is tried again when the log has grown
            // by as much once more.
            let failed = self.checkpoint().is_err();
            let log_bytes = self.database.store.replay_bytes();
            self.writer.checkpoint_after_bytes = if failed { log_bytes } else { 0 };
        }
    }

    /// Writes everything that the log holds into the file, and begins a new log. In memory it only presses what is not
    /// pressed yet.
    pub(crate) fn checkpoint(&mut self) -> Result<()> {
        self.write_tables(false)
    }

    fn write_tables(&mut self, closing: bool) -> Result<()> {
        let (database, writer) = (self.database, &mut *self.writer);
        let catalog = database.catalog();
        let mut changed = Vec::new();
        for table in catalog.tables.values() {
            table.press(database.options.threads)?;
            let state = table.state();
            if !writer.checkpointed.get(&table.id()).is_some_and(|old| Arc::ptr_eq(old, &state)) {
                changed.push((table, state, table.root_bytes()?));
            }
        }
        if database.path.is_none() {
            return Ok(());
        }
        let mut roots = writer.roots.clone();
        let mut catalog_page = writer.catalog_page;
        let write = |out: &mut CheckpointWriter<'_>| {
            for (table, _, bytes) in &changed {
                for page in table.pages() {
                    out.keep(page)?;
                }
                let root = out.put(roots.get(&table.id()).copied(), PageKind::TABLE_ROOT, bytes)?;
                roots.insert(table.id(), root);
            }
            roots.retain(|id, root| {
                let kept = catalog.tables.values().any(|table| table.id() == *id);
                if !kept {
                    out.free(*root);
                }
                kept
            });
            let bytes = catalog.page_bytes(&|id| roots.get(&id).copied().unwrap_or_default());
            let page = out.put(catalog_page, PageKind::CATALOG, &bytes)?;
            catalog_page = Some(page);
            Ok(page)
        };
        if closing {
            database.store.close(write)?;
        } else {
            database.store.checkpoint(write)?;
        }
        writer.roots = roots;
        writer.catalog_page = catalog_page;
        for (table, state, _) in changed {
            writer.checkpointed.insert(table.id(), state);
        }
        writer.checkpointed.retain(|id, _| writer.roots.contains_key(id));
        Ok(())
    }
}

impl From<sinter_storage::Error> for Error {
    fn from(error: sinter_storage::Error) -> Error {
        use sinter_storage::Error as Storage;
        let message = error.to_string();
        match error {
            Storage::Io { .. } | Storage::DiskFull { .. } => Error::Io(message),
            Storage::NotADatabase { .. } => Error::Damaged(message),
            _ if error.is_damage() => Error::Damaged(message),
            Storage::NoSuchPage { .. } | Storage::ReservedTag { .. } => Error::Internal(message),
            _ => Error::Unavailable(message),
        }
    }
}
