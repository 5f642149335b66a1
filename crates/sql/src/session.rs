//! One user's way into a database: settings, registered data, and the statement that runs.

use crate::attached::{AttachedDatabases, Seen, Visible};
use crate::batches::{Outcome, Query};
use crate::catalog::{Catalog, DEFAULT_SCHEMA, TableName};
use crate::checked::CheckedConstants;
use crate::coercion::Coercion;
use crate::dependent_join::DependentJoins;
use crate::interval_multiples::MultiplesOfIntervals;
use crate::not_in::NotIn;
use crate::only_row::OnlyRow;
use crate::own_names::OwnNames;
use crate::parse::{Statement, column_names, parse, with_rows_of_floats};
use crate::physical::{Scans, SetsHaveNoOrder};
use crate::planner::{Planned, Planner};
use crate::progress::{Notes, Progress};
use crate::provider::{Reading, StatementCatalog};
use crate::query_memory::Spilling;
use crate::scalar_subquery::NoRowIsNull;
use crate::set_operations::CopiesCount;
use crate::shared_columns::{FullJoins, planned};
use crate::transaction::{Reads, Transaction};
use crate::uuid::ComparedWithUuids;
use crate::{
    Database, Error, OnCorruption, Result, Value, functions, guards, now, numbering, quantiles, statement, wide_sums,
};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::datasource::MemTable;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::SessionState;
use datafusion::execution::session_state::SessionStateBuilder;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::planner::ExprPlanner;
use datafusion::optimizer::{Analyzer, AnalyzerRule, Optimizer};
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionConfig;
use datafusion::sql::sqlparser::ast;
use sinter_codec::VECTOR_LEN;
use sinter_exec::OnDamage;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, Weak};
use std::time::{Duration, Instant};

/// What queries call the database that was opened; others are attached under names of their own.
pub(crate) const CATALOG_NAME: &str = "sinter";

/// A statement outside of a transaction that conflicts so often is run while the commits of others wait ...
const TRIES_BEFORE_EXCLUSIVE: usize = 4;

/// ... if it takes no longer than this: they would wait too long for others.
const EXCLUSIVE_TIME_MAX: Duration = Duration::from_millis(40);

/// Those are run again until so much time has passed; then the conflict is the user's to know of.
const RETRY_TIME_MAX: Duration = Duration::from_secs(10);

/// Settings that last as long as the session.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) threads: usize,
    /// `SET sinter.engine = 'datafusion'`: nothing but scans runs in our engine.
    pub(crate) engine_forced_off: bool,
    /// `SET sinter.decompression = 'page'`: segments are decoded whole.
    pub(crate) page_wise: bool,
    pub(crate) spilling: Spilling,
    /// `SET sinter.vector_rows = 3`: so many rows of a table are taken at a time.
    pub(crate) vector_rows: usize,
    /// `SET sinter.compression = 'pfor'`: what columns of new tables are kept in where their type allows it.
    pub(crate) compression: Option<String>,
    /// `SET on_corruption`: what queries do with rows that cannot be read.
    pub(crate) on_corruption: OnCorruption,
}

/// A session. `Sync`: several threads may use it, each statement on its own snapshot.
pub struct Session {
    pub(crate) database: Arc<Database>,
    /// Where the statement comes from, if its target is in an attached database.
    home: Option<Home>,
    template: SessionState,
    pub(crate) settings: Mutex<Settings>,
    registered: RwLock<BTreeMap<String, Arc<dyn TableProvider>>>,
    /// Between BEGIN and COMMIT; held by the statement that runs in it.
    transaction: Mutex<Option<Transaction>>,
    interrupts: Arc<Interrupts>,
    progress: Arc<Mutex<Option<Progress>>>,
    latest_scans: LatestScans,
}

/// The session of a statement whose target is in an attached database.
#[derive(Debug)]
struct Home {
    seen: Seen,
    /// What `seen` calls the target's database.
    target: Arc<str>,
    in_transaction: bool,
}

#[derive(Debug, Default)]
struct Interrupts {
    count: AtomicU64,
    wake: tokio::sync::Notify,
}

/// Stops what a session is running, from any thread.
#[derive(Clone, Debug)]
pub struct Interrupt(Arc<Interrupts>);

impl Interrupt {
    /// Makes running statements end with [`Error::Cancelled`].
    pub fn interrupt(&self) {
        self.0.count.fetch_add(1, Ordering::AcqRel);
        self.0.wake.notify_waiters();
    }
}

/// What a statement in flight holds on to: its database, and whether anybody still waits for it.
pub(crate) struct Running {
    database: Arc<Database>,
    interrupts: Arc<Interrupts>,
    begun_at: u64,
    is_over: AtomicBool,
    scans: LatestScans,
}

/// The scans of the query that was last begun, while it runs.
type LatestScans = Arc<Mutex<Weak<Scans>>>;

impl Running {
    pub(crate) fn runtime(&self) -> Result<tokio::runtime::Handle> {
        self.database.runtime().cloned()
    }

    /// Notes what runs, for whoever asks how far it is while what is returned is held.
    pub(crate) fn runs(&self, plan: &Arc<dyn ExecutionPlan>) -> Arc<Scans> {
        let scans = Arc::new(Scans::of(plan));
        *self.scans.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&scans);
        scans
    }

    /// Whether it was interrupted, or whoever waited for it is gone.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_over.load(Ordering::Acquire) || self.interrupts.count.load(Ordering::Acquire) != self.begun_at
    }

    /// # Errors
    /// [`Error::Cancelled`] where [`Running::is_cancelled`].
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Returns once it was interrupted, or whoever waited for it is gone.
    pub(crate) async fn cancelled(&self) {
        loop {
            let woken = self.interrupts.wake.notified();
            if self.is_cancelled() {
                return;
            }
            woken.await;
        }
    }

    /// What arrives next, or [`Error::Cancelled`] at once, however long whoever sends takes to notice.
    pub(crate) async fn next_of<T>(&self, receiver: &mut tokio::sync::mpsc::Receiver<Result<T>>) -> Option<Result<T>> {
        tokio::select! {
            biased;
            () = self.cancelled() => Some(Err(Error::Cancelled)),
            next = receiver.recv() => next,
        }
    }
}

/// A statement that somebody waits for: dropping it ends what still runs of it.
pub(crate) struct Awaited(Arc<Running>);

impl Awaited {
    pub(crate) fn new(running: &Arc<Running>) -> Awaited {
        Awaited(Arc::clone(running))
    }
}

impl Deref for Awaited {
    type Target = Running;

    fn deref(&self) -> &Running {
        &self.0
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Release);
        self.0.interrupts.wake.notify_waiters();
    }
}

impl Session {
    pub(crate) fn new(database: Arc<Database>) -> Session {
        let options = database.options();
        let mut config = SessionConfig::new()
            .with_default_catalog_and_schema(CATALOG_NAME, DEFAULT_SCHEMA)
            .with_create_default_catalog_and_schema(false)
            .with_target_partitions(options.threads);
        config.options_mut().sql_parser.parse_float_as_decimal = true;
        config.options_mut().sql_parser.dialect = datafusion::config::Dialect::Generic;
        config.options_mut().execution.time_zone = Some("UTC".to_owned());
        // DataFusion's logical plans know that `a IS TRUE` is never NULL, its physical ones do not, and refuse to differ.
        config.options_mut().execution.skip_physical_aggregate_schema_check = true;
        let mut rules = Analyzer::default().rules;
        let ours: [Arc<dyn AnalyzerRule + Send + Sync>; 7] = [
            Arc::new(CopiesCount),
            Arc::new(NotIn),
            Arc::new(OnlyRow),
            Arc::new(DependentJoins),
            Arc::new(NoRowIsNull),
            Arc::new(OwnNames),
            Arc::new(Coercion),
        ];
        rules.splice(0..0, ours);
        // When types are what they will be.
        rules.push(Arc::new(CheckedConstants));
        // It mistakes a condition on one side of an outer join for one on a column of that name of the other.
        let mut physical_rules = PhysicalOptimizer::default().rules;
        physical_rules.retain(|rule| !rule.name().starts_with("FilterPushdown"));
        physical_rules.insert(0, Arc::new(SetsHaveNoOrder));
        let mut state = SessionStateBuilder::new_with_default_features()
            .with_config(config)
            .with_runtime_env(database.runtime_environment())
            .with_query_planner(Arc::new(Planner { lowers: true }))
            .with_analyzer_rules(rules)
            .with_optimizer_rules(guards::guarded(&Optimizer::default().rules))
            .with_physical_optimizer_rules(physical_rules)
            .with_type_planner(Arc::new(statement::TypesOfTables))
            .with_relation_planners(vec![Arc::new(FullJoins)])
            .build();
        functions::register(&mut state, &database);
        numbering::register(&mut state);
        quantiles::register(&mut state);
        wide_sums::register(&mut state);
        now::register(&mut state);
        let planners: [Arc<dyn ExprPlanner>; 2] = [Arc::new(ComparedWithUuids), Arc::new(MultiplesOfIntervals)];
        for planner in planners {
            state.register_expr_planner(planner).expect("a session's state takes any planner");
        }
        let settings = Settings {
            threads: options.threads,
            engine_forced_off: false,
            page_wise: false,
            spilling: Spilling::default(),
            vector_rows: VECTOR_LEN,
            compression: None,
            on_corruption: options.on_corruption,
        };
        Session {
            database,
            home: None,
            template: state,
            settings: Mutex::new(settings),
            registered: RwLock::default(),
            transaction: Mutex::default(),
            interrupts: Arc::default(),
            progress: Arc::default(),
            latest_scans: Arc::default(),
        }
    }

    /// The session for a statement whose target is in the attached database of that name.
    ///
    /// # Errors
    /// [`Error::Sql`] where there is none.
    pub(crate) fn at(&self, name: &str) -> Result<Session> {
        let Some(database) = self.database.attached().get(name) else {
            return Err(Error::Sql(format!("there is no attached database '{name}'")));
        };
        let home = Home { seen: self.readable()?, target: name.into(), in_transaction: self.in_transaction() };
        Ok(Session {
            database,
            home: Some(home),
            template: self.template.clone(),
            settings: Mutex::new(self.settings()),
            registered: RwLock::new(self.registered.read().unwrap_or_else(PoisonError::into_inner).clone()),
            transaction: Mutex::default(),
            interrupts: Arc::clone(&self.interrupts),
            progress: Arc::clone(&self.progress),
            latest_scans: Arc::clone(&self.latest_scans),
        })
    }

    /// Parses and runs one statement.
    ///
    /// # Errors
    /// [`Error::Sql`] where there is not exactly one, and whatever running it can raise.
    pub fn query(&self, sql: &str, params: &[Value]) -> Result<Outcome> {
        let mut statements = parse(sql)?;
        match (statements.pop(), statements.is_empty()) {
            (Some(statement), true) => self.run(&statement, params),
            (None, _) => Err(Error::Sql("there is no statement in this text".to_owned())),
            _ => Err(Error::Sql("one statement is wanted here, and this text holds several".to_owned())),
        }
    }

    /// Runs one statement of a script.
    ///
    /// # Errors
    /// [`Error`], with nothing half done.
    pub fn run(&self, statement: &Statement, params: &[Value]) -> Result<Outcome> {
        self.database.runtime()?;
        let outcome = statement::run(self, statement, params);
        self.note(&outcome);
        outcome
    }

    /// Begins a transaction, which lasts over statements until [`Session::commit`] or [`Session::roll_back`]. It is
    /// serializable.
    ///
    /// # Errors
    /// [`Error::Sql`] when one is under way already; [`Error::Unavailable`] when the database is closed.
    pub fn begin(&self, is_read_only: bool) -> Result<()> {
        let mut current = self.transaction();
        if current.is_some() {
            return Err(Error::Sql(
                "a transaction is under way already; end it with COMMIT or ROLLBACK, or set a SAVEPOINT in it"
                    .to_owned(),
            ));
        }
        *current = Some(self.database.begin(is_read_only, false)?);
        Ok(())
    }

    /// Ends the transaction: all of it is durable and visible then.
    ///
    /// # Errors
    /// [`Error::Conflict`]: run it again from its beginning. [`Error::Sql`] when there is none, or a statement of it failed.
    /// Nothing of it has happened then.
    pub fn commit(&self) -> Result<()> {
        let transaction = self.transaction().take().ok_or_else(no_transaction)?;
        transaction.commit(&self.database)
    }

    /// Ends the transaction as if it had never begun.
    ///
    /// # Errors
    /// [`Error::Sql`] when there is none.
    pub fn roll_back(&self) -> Result<()> {
        self.transaction().take().map(drop).ok_or_else(no_transaction)
    }

    /// Between BEGIN and its end.
    pub fn in_transaction(&self) -> bool {
        self.transaction().is_some()
    }

    pub(crate) fn transaction(&self) -> MutexGuard<'_, Option<Transaction>> {
        self.transaction.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the transaction, if one is under way, how its statement ended.
    fn note<T>(&self, outcome: &Result<T>) {
        if let (Err(error), Some(transaction)) = (outcome, self.transaction().as_mut()) {
            transaction.note(error);
        }
    }

    /// What a query reads: the transaction's state, or the last that is durable; and where it notes that it did.
    ///
    /// # Errors
    /// [`Error::Sql`] in a transaction that can only go back.
    pub(crate) fn readable(&self) -> Result<Seen> {
        match self.transaction().as_ref() {
            Some(transaction) => {
                transaction.check_usable()?;
                Ok(self.seen_by(transaction))
            }
            None => {
                let visible = self.database.visible();
                Ok(self.seen(visible, Reads::default(), self.database.attached().visible()))
            }
        }
    }

    /// What a statement of a transaction sees.
    pub(crate) fn seen_by(&self, transaction: &Transaction) -> Seen {
        let visible = Visible { catalog: transaction.catalog(), trees: transaction.trees() };
        self.seen(visible, transaction.reads(), transaction.attached().clone())
    }

    /// For expressions that name no tables.
    pub(crate) fn nothing_seen(&self) -> Seen {
        self.seen(Visible::default(), Reads::default(), AttachedDatabases::new())
    }

    fn seen(&self, visible: Visible, reads: Reads, attached: AttachedDatabases) -> Seen {
        let Visible { catalog, trees } = visible;
        let Some(home) = &self.home else {
            return Seen { name: CATALOG_NAME.into(), catalog, trees, reads, attached };
        };
        let mut attached = home.seen.attached.clone();
        attached.remove(&home.target);
        let ours = Visible { catalog: Arc::clone(&home.seen.catalog), trees: home.seen.trees.clone() };
        attached.insert(Arc::clone(&home.seen.name), ours);
        Seen { name: Arc::clone(&home.target), catalog, trees, reads, attached }
    }

    /// Runs a statement that changes something: in the session's transaction, or in one of its own, which is run again
    /// where it conflicts with others.
    ///
    /// # Errors
    /// Those of `body` and of the commit; nothing of it has happened then.
    pub(crate) fn change<T>(&self, mut body: impl FnMut(&mut Transaction) -> Result<T>) -> Result<T> {
        self.check_changeable()?;
        if let Some(transaction) = self.transaction().as_mut() {
            return transaction.statement(body);
        }
        let (first_begun, mut tries, mut quickest) = (Instant::now(), 0, Duration::MAX);
        // Of the whole statement: what each try plans knows only of interrupts since that.
        let running = self.running();
        loop {
            let begun = Instant::now();
            let is_exclusive = tries >= TRIES_BEFORE_EXCLUSIVE && quickest <= EXCLUSIVE_TIME_MAX;
            let mut transaction = self.database.begin(false, is_exclusive)?;
            running.check()?;
            let value = body(&mut transaction)?;
            running.check()?;
            match transaction.commit(&self.database) {
                Ok(()) => return Ok(value),
                Err(Error::Conflict(_)) if first_begun.elapsed() < RETRY_TIME_MAX => {
                    tries += 1;
                    quickest = quickest.min(begun.elapsed());
                    // What it conflicted with is to be seen by the next try.
                    self.database.timeline().catch_up()?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// [`Session::change`] for what cannot be run twice.
    ///
    /// # Errors
    /// As [`Session::change`].
    pub(crate) fn change_once<T>(&self, body: impl FnOnce(&mut Transaction) -> Result<T>) -> Result<T> {
        self.check_changeable()?;
        if let Some(transaction) = self.transaction().as_mut() {
            return transaction.statement(body);
        }
        let mut transaction = self.database.begin(false, false)?;
        let value = body(&mut transaction)?;
        transaction.commit(&self.database)?;
        Ok(value)
    }

    /// Whether it may change its database.
    pub(crate) fn check_changeable(&self) -> Result<()> {
        match &self.home {
            Some(home) if home.in_transaction => Err(Error::Sql(format!(
                "a transaction changes only the database in which it was begun; end it first, then change '{}'",
                home.target
            ))),
            _ => self.database.check_writable(),
        }
    }

    /// Runs one statement once per row of parameters; an INSERT of one row of placeholders in one commit. Returns the
    /// rows changed.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub fn run_many(&self, sql: &str, rows: &[Vec<Value>]) -> Result<u64> {
        let mut statements = parse(sql)?;
        let (Some(statement), true) = (statements.pop(), statements.is_empty()) else {
            return Err(Error::Sql("one statement is wanted here".to_owned()));
        };
        if let Some(joined) = statement::join_rows(&statement, rows)? {
            return match self.run(&joined, &[])? {
                Outcome::Done { rows, .. } => Ok(rows.unwrap_or(0)),
                Outcome::Rows(_) => Ok(0),
            };
        }
        let mut changed = 0;
        for row in rows {
            match self.run(&statement, row)? {
                Outcome::Done { rows, .. } => changed += rows.unwrap_or(0),
                Outcome::Rows(query) => query.stream()?.try_for_each(|batch| batch.map(drop))?,
            }
        }
        Ok(changed)
    }

    /// Appends record batches to a table in one commit; columns by name.
    ///
    /// # Errors
    /// [`Error::Data`] where types do not fit; then nothing is kept.
    pub fn append(&self, table: &str, batches: &mut dyn Iterator<Item = Result<RecordBatch>>) -> Result<u64> {
        let appended = statement::append(self, table, batches);
        self.report(None);
        self.note(&appended);
        appended
    }

    /// Makes Arrow data visible under a name; a table of the catalog wins over it.
    ///
    /// # Errors
    /// [`Error::Data`] where batches do not fit the schema.
    pub fn register(&self, name: &str, schema: SchemaRef, batches: Vec<RecordBatch>) -> Result<()> {
        let table = MemTable::try_new(schema, vec![batches])?;
        self.registered.write().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned(), Arc::new(table));
        Ok(())
    }

    /// Forgets a registered name; false when there was none.
    pub fn unregister(&self, name: &str) -> bool {
        self.registered.write().unwrap_or_else(PoisonError::into_inner).remove(name).is_some()
    }

    /// (schema, table) of everything that statements can name, sorted.
    pub fn table_names(&self) -> Vec<(String, String)> {
        let catalog = self.seen_now();
        let trees = catalog.kv_trees().map(|(name, _)| name);
        let known = catalog.tables.keys().chain(catalog.views.keys()).chain(trees);
        let mut names: Vec<(String, String)> =
            known.map(|name| (name.schema.to_string(), name.table.to_string())).collect();
        let registered = self.registered.read().unwrap_or_else(PoisonError::into_inner);
        names.extend(registered.keys().map(|name| (DEFAULT_SCHEMA.to_owned(), name.clone())));
        names.sort();
        names.dedup();
        names
    }

    /// The columns of a table, empty when there is none.
    pub fn column_names(&self, table: &str) -> Vec<String> {
        let catalog = self.seen_now();
        let is_it = |name: &TableName| name.to_string() == table || &*name.table == table;
        if let Some((_, tree)) = catalog.kv_trees().find(|(name, _)| is_it(name)) {
            return tree.shape().columns().into_iter().map(|(name, _)| name.to_owned()).collect();
        }
        let found = catalog.tables.iter().find(|(name, _)| is_it(name));
        match found {
            Some((_, table)) => table.schema().columns.iter().map(|column| column.name.clone()).collect(),
            None => {
                let registered = self.registered.read().unwrap_or_else(PoisonError::into_inner);
                registered.get(table).map_or_else(Vec::new, |table| {
                    table.schema().fields().iter().map(|field| field.name().clone()).collect()
                })
            }
        }
    }

    /// The catalog for completion: without waiting for a statement that runs.
    fn seen_now(&self) -> Arc<Catalog> {
        match self.transaction.try_lock().as_deref() {
            Ok(Some(transaction)) => transaction.catalog(),
            _ => self.database.catalog(),
        }
    }

    /// A handle that stops running statements.
    pub fn interrupt(&self) -> Interrupt {
        Interrupt(Arc::clone(&self.interrupts))
    }

    /// How far the running statement is: what it tells by itself, or how much of the tables that it reads it has scanned.
    pub fn progress(&self) -> Option<Progress> {
        let told = self.progress.lock().unwrap_or_else(PoisonError::into_inner).clone();
        told.or_else(|| {
            let scans = self.latest_scans.lock().unwrap_or_else(PoisonError::into_inner).upgrade()?;
            let (done, total) = scans.vectors();
            Some(Progress { label: String::new(), done: done as u64, total: Some(total as u64) })
        })
    }

    pub(crate) fn report(&self, progress: Option<Progress>) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = progress;
    }

    pub(crate) fn settings(&self) -> Settings {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn running(&self) -> Running {
        Running {
            database: Arc::clone(&self.database),
            interrupts: Arc::clone(&self.interrupts),
            begun_at: self.interrupts.count.load(Ordering::Acquire),
            is_over: AtomicBool::new(false),
            scans: Arc::clone(&self.latest_scans),
        }
    }

    /// What one statement plans against, once: these tables, and nothing that others commit meanwhile. What it reads
    /// decides what becomes of rows, so whatever cannot be read is an error. Whoever waits for what was planned ends it all
    /// when he goes ([`Awaited`]), and what is planned with the same state later does not begin.
    pub(crate) fn statement_state(&self, seen: Seen, notes: Notes) -> SessionState {
        self.state_with(seen, notes, OnDamage::Fail)
    }

    /// The same for a query whose rows are handed out, or put into another table: it does as `on_corruption` says.
    pub(crate) fn query_state(&self, seen: Seen, notes: Notes) -> SessionState {
        let on_damage = match self.settings().on_corruption {
            OnCorruption::Error => OnDamage::Fail,
            OnCorruption::Skip => notes.leaving_out(),
        };
        self.state_with(seen, notes, on_damage)
    }

    fn state_with(&self, seen: Seen, notes: Notes, on_damage: OnDamage) -> SessionState {
        let mut state = self.template.clone();
        let settings = self.settings();
        let registered = self.registered.read().unwrap_or_else(PoisonError::into_inner).clone();
        let Settings { page_wise, vector_rows, .. } = settings;
        let reading = Reading { on_damage, page_wise, vector_rows };
        state.register_catalog_list(Arc::new(StatementCatalog::new(seen, registered, notes, reading, &state)));
        // Options are copied where they are changed.
        if state.config().target_partitions() != settings.threads {
            state.config_mut().options_mut().execution.target_partitions = settings.threads;
        }
        if settings.spilling != Spilling::default() {
            state.config_mut().set_extension(Arc::new(settings.spilling));
        }
        // Operators that do not come back by themselves ask it whether they should go on.
        state.config_mut().set_extension(Arc::new(self.running()));
        state.mark_start_execution();
        if settings.engine_forced_off {
            state = SessionStateBuilder::new_from_existing(state)
                .with_query_planner(Arc::new(Planner { lowers: false }))
                .build();
        }
        state
    }

    /// Plans a statement that yields rows.
    pub(crate) fn plan(&self, state: &SessionState, mut sql: ast::Statement) -> Result<Planned> {
        with_rows_of_floats(&mut sql);
        let names = match &sql {
            ast::Statement::Query(query) => column_names(query),
            _ => Vec::new(),
        };
        pollster::block_on(async {
            let logical = planned(state, sql).await?;
            if let LogicalPlan::Ddl(_) | LogicalPlan::Dml(_) | LogicalPlan::Statement(_) | LogicalPlan::Copy(_) =
                logical
            {
                return Err(Error::Sql(format!("this statement is not supported: {}", logical.display())));
            }
            Planned::of(state, logical, names).await
        })
    }

    /// Plans a statement that yields rows, as a query of its own.
    pub(crate) fn plan_query(&self, state: &SessionState, sql: ast::Statement) -> Result<Query> {
        let mut planned = self.plan(state, sql)?;
        let names = std::mem::take(&mut planned.names);
        Ok(Query::planned(planned)?.with_names(&names))
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("database", &self.database).finish_non_exhaustive()
    }
}

pub(crate) fn no_transaction() -> Error {
    Error::Sql("no transaction is under way; BEGIN starts one".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DatabaseOptions;

    #[test]
    fn what_is_interrupted_before_its_commit_is_not_tried_again() {
        let database = Database::open(None, DatabaseOptions::in_memory()).unwrap();
        let session = database.session();
        let mut tries = 0;
        let changed = session.change(|_| {
            tries += 1;
            session.interrupt().interrupt();
            Ok(())
        });
        assert!(matches!(changed, Err(Error::Cancelled)));
        assert_eq!(tries, 1);
    }
}
