//! Transactions: what one sees, what it changes, and whether it may commit.
//!
//! A transaction works on values: a catalog of its own, and a [`Draft`] for each table that it changes. A savepoint is a
//! copy of both. At its commit it is compared with what others have committed since it began: a row that both changed,
//! an object that both defined, or a row that one of its queries would have seen, is a conflict, and the one that comes
//! second is to run again. So the order of commits is an order in which the transactions could have run one by one.
//!
//! Key-value trees are no values (`crate::kv`): of them it holds what it writes and reads, which is compared with what
//! others have committed while their leaves are latched.

use crate::attached::AttachedDatabases;
use crate::catalog::{Catalog, TableName, View};
use crate::index::{IndexBuild, RowChanges, row_id_of};
use crate::kv::{AnyDraft, AnyRange, KeyRef, KvMark, KvShape, KvTree, KvWork, TreesSeen, union};
use crate::statement::find;
use crate::{Database, Error, Result};
use sinter_column::{Alteration, Change, Changed, ColumnTable, Draft, Index, Prepared, TableSchema, differences};
use sinter_exec::{Batch, Expr, OnDamage, Output, Pipeline, ScanColumn, Source};
use sinter_storage::{Built, CommitNumber, Exclusive, ObjectId, Record, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A transaction that reads one table in more ways than this is taken to have read all of it.
const FILTERS_PER_TABLE_MAX: usize = 1000;

/// The same of ranges of keys: then it has read all between the first and the last.
const RANGES_PER_TREE_MAX: usize = 4096;

/// So often a commit brings an index that it made up to what others did, before they have to wait.
const FOLLOWED_MAX: usize = 8;

/// How many there were in this process.
static TRANSACTIONS: AtomicU64 = AtomicU64::new(0);

/// What statements read, noted while they are planned: by each scan, before anything could be optimised away that would
/// have seen a row. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reads {
    /// `None` where nobody wants to know.
    noted: Option<Arc<Mutex<Noted>>>,
    /// What is planned will not be run: a scan looks at the definition of its table, and at no row.
    of_definitions: bool,
}

#[derive(Debug, Default)]
struct Noted {
    objects: BTreeMap<ObjectId, Vec<Seen>>,
    /// Of key-value trees.
    keys: BTreeMap<ObjectId, Vec<AnyRange>>,
    look_ups: BTreeSet<LookUp>,
}

/// What a statement asked the catalog, found or not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LookUp {
    /// The table or view of that name.
    Name(TableName),
    Schema(Arc<str>),
    /// The tables and views in a schema.
    Within(Arc<str>),
    /// All there is.
    Everything,
}

impl LookUp {
    /// Whether it finds the same in both.
    fn is_same(&self, then: &Catalog, now: &Catalog) -> bool {
        match self {
            LookUp::Name(name) => then.definition(name) == now.definition(name),
            LookUp::Schema(name) => then.schemas.get(name) == now.schemas.get(name),
            LookUp::Within(schema) => then.within(schema).eq(now.within(schema)),
            LookUp::Everything => then.schemas == now.schemas && then.definitions() == now.definitions(),
        }
    }

    /// An error for who would find something else now.
    fn conflict(&self) -> Error {
        match self {
            LookUp::Name(name) => conflict(&name.to_string(), "was created, dropped or renamed"),
            LookUp::Schema(name) => conflict(name, "was created or dropped"),
            LookUp::Within(schema) => conflict(schema, "got, lost or renamed a table or view"),
            LookUp::Everything => Error::Conflict(
                "another transaction that committed first has created, dropped or renamed something, and this one has \
                 listed all there is; nothing was changed, run the transaction again"
                    .to_owned(),
            ),
        }
    }
}

/// The rows of an object that a statement could have seen: those that pass a filter, over these columns.
#[derive(Clone, Debug, Default)]
struct Seen {
    columns: Vec<ScanColumn>,
    filter: Vec<Expr>,
}

impl Reads {
    /// For a transaction that may change something.
    fn noted() -> Reads {
        Reads { noted: Some(Arc::default()), of_definitions: false }
    }

    /// For planning what will not be run.
    pub(crate) fn of_definitions(&self) -> Reads {
        Reads { of_definitions: true, ..self.clone() }
    }

    /// Whether it is for planning what will not be run.
    pub(crate) fn are_of_definitions(&self) -> bool {
        self.of_definitions
    }

    fn of(&self) -> Option<MutexGuard<'_, Noted>> {
        self.noted.as_ref().map(|reads| reads.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A scan of the rows that pass `filter`.
    pub(crate) fn rows(&self, object: ObjectId, columns: &[ScanColumn], filter: &[Expr]) {
        if self.of_definitions {
            return self.definition(object);
        }
        let Some(mut reads) = self.of() else { return };
        let seen = reads.objects.entry(object).or_default();
        if filter.is_empty() || seen.len() == FILTERS_PER_TABLE_MAX {
            *seen = vec![Seen::default()];
        } else if !seen.first().is_some_and(|seen| seen.filter.is_empty()) {
            seen.push(Seen { columns: columns.to_vec(), filter: filter.to_vec() });
        }
    }

    /// A scan of the entries of a key-value tree whose keys are in these ranges.
    pub(crate) fn keys(&self, tree: ObjectId, ranges: &[AnyRange]) {
        if self.of_definitions {
            return self.definition(tree);
        }
        let Some(mut reads) = self.of() else { return };
        let seen = reads.keys.entry(tree).or_default();
        seen.extend_from_slice(ranges);
        if seen.len() <= RANGES_PER_TREE_MAX {
            return;
        }
        *seen = union(std::mem::take(seen));
        if seen.len() > RANGES_PER_TREE_MAX / 2 {
            let ends = seen.first().zip(seen.last());
            *seen = ends.map(|((start, _), (_, end))| (start.clone(), end.clone())).into_iter().collect();
        }
    }

    /// All of an object.
    pub(crate) fn whole(&self, object: ObjectId) {
        let Some(mut reads) = self.of() else { return };
        reads.objects.insert(object, vec![Seen::default()]);
    }

    /// That an object is there, and how it is defined.
    pub(crate) fn definition(&self, object: ObjectId) {
        let Some(mut reads) = self.of() else { return };
        reads.objects.entry(object).or_default();
    }

    /// Which table or view has a name, or that none has it.
    pub(crate) fn name(&self, name: &TableName) {
        self.look_up(LookUp::Name(name.clone()));
    }

    /// Whether there is a schema of that name.
    pub(crate) fn schema(&self, name: &str) {
        self.look_up(LookUp::Schema(name.into()));
    }

    /// What is in a schema.
    pub(crate) fn within(&self, schema: &str) {
        self.look_up(LookUp::Within(schema.into()));
    }

    /// All names.
    pub(crate) fn everything(&self) {
        self.look_up(LookUp::Everything);
    }

    fn look_up(&self, look_up: LookUp) {
        let Some(mut reads) = self.of() else { return };
        reads.look_ups.insert(look_up);
    }
}

/// Changes that can be taken back as one.
#[derive(Clone, Debug)]
struct Work {
    catalog: Arc<Catalog>,
    drafts: BTreeMap<ObjectId, Draft>,
    /// By the number of its tree, each index that was made of the rows that were there, with the table as it was then.
    built: BTreeMap<ObjectId, Arc<ColumnTable>>,
}

/// One transaction.
#[derive(Debug)]
pub(crate) struct Transaction {
    /// What it is called in this process.
    id: u64,
    /// What was visible when it began.
    base: Arc<Catalog>,
    /// The last commit in that.
    base_commit: CommitNumber,
    /// Until it commits: of what was before, nobody else may need any more.
    snapshot: Option<Arc<Snapshot<Catalog>>>,
    /// What was visible of the attached databases then.
    attached: AttachedDatabases,
    work: Work,
    /// What it does to key-value trees. Not part of `work`, which is copied.
    trees: KvWork,
    savepoints: Vec<(String, Work, KvMark)>,
    reads: Reads,
    is_read_only: bool,
    /// A statement failed: nothing but going back is possible.
    has_failed: bool,
    /// The commits of others wait for it.
    exclusive: Option<Exclusive<Catalog>>,
}

impl Transaction {
    pub(crate) fn new(
        snapshot: Snapshot<Catalog>,
        attached: AttachedDatabases,
        is_read_only: bool,
        exclusive: Option<Exclusive<Catalog>>,
    ) -> Transaction {
        let base = Arc::clone(snapshot.root());
        Transaction {
            id: TRANSACTIONS.fetch_add(1, Ordering::Relaxed),
            work: Work { catalog: Arc::clone(&base), drafts: BTreeMap::new(), built: BTreeMap::new() },
            base,
            base_commit: snapshot.commit(),
            snapshot: Some(Arc::new(snapshot)),
            attached,
            trees: KvWork::default(),
            savepoints: Vec::new(),
            // What only reads cannot conflict.
            reads: if is_read_only { Reads::default() } else { Reads::noted() },
            is_read_only,
            has_failed: false,
            exclusive,
        }
    }

    /// What no other transaction of this process is called.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Where its statements note what they read.
    pub(crate) fn reads(&self) -> Reads {
        self.reads.clone()
    }

    /// The attached databases, as they were when it began.
    pub(crate) fn attached(&self) -> &AttachedDatabases {
        &self.attached
    }

    /// The table of that name, or an error that lists near ones.
    pub(crate) fn find(&self, name: &TableName) -> Result<Arc<ColumnTable>> {
        self.reads.name(name);
        find(&self.work.catalog, name).cloned()
    }

    /// What it sees, its own changes included.
    pub(crate) fn catalog(&self) -> Arc<Catalog> {
        Arc::clone(&self.work.catalog)
    }

    /// The state of key-value trees that its next statement sees.
    pub(crate) fn trees(&self) -> TreesSeen {
        match &self.snapshot {
            Some(snapshot) => TreesSeen::new(Arc::clone(snapshot), self.trees.changes()),
            None => TreesSeen::default(),
        }
    }

    /// Runs a statement; if it fails, none of it is left.
    pub(crate) fn statement<T>(&mut self, body: impl FnOnce(&mut Transaction) -> Result<T>) -> Result<T> {
        self.check_usable()?;
        let (before, mark) = (self.work.clone(), self.trees.mark());
        let outcome = body(self);
        if let Err(error) = &outcome {
            self.work = before;
            self.trees.go_back(&mark);
            self.note(error);
        }
        outcome
    }

    /// After a statement that failed the transaction can only go back: what comes next may build on it. One that was
    /// never begun, because it cannot be understood, does no harm.
    pub(crate) fn note(&mut self, error: &Error) {
        self.has_failed |= !matches!(error, Error::Sql(_));
    }

    pub(crate) fn check_usable(&self) -> Result<()> {
        match self.has_failed {
            true => Err(Error::Sql(
                "an earlier statement of this transaction failed; end it with ROLLBACK, or go back with ROLLBACK TO a \
                 savepoint"
                    .to_owned(),
            )),
            false => Ok(()),
        }
    }

    fn check_writable(&self) -> Result<()> {
        match self.is_read_only {
            true => Err(Error::Sql("this transaction is read-only; begin one without READ ONLY".to_owned())),
            false => Ok(()),
        }
    }

    pub(crate) fn savepoint(&mut self, name: String) -> Result<()> {
        self.check_usable()?;
        self.savepoints.push((name, self.work.clone(), self.trees.mark()));
        Ok(())
    }

    pub(crate) fn roll_back_to(&mut self, name: &str) -> Result<()> {
        let index = self.savepoint_index(name)?;
        self.savepoints.truncate(index + 1);
        let (_, work, mark) = &self.savepoints[index];
        self.work = work.clone();
        self.trees.go_back(mark);
        self.has_failed = false;
        Ok(())
    }

    pub(crate) fn release(&mut self, name: &str) -> Result<()> {
        self.check_usable()?;
        let index = self.savepoint_index(name)?;
        self.savepoints.truncate(index);
        Ok(())
    }

    fn savepoint_index(&self, name: &str) -> Result<usize> {
        let found = self.savepoints.iter().rposition(|(known, ..)| known == name);
        found.ok_or_else(|| Error::Sql(format!("there is no savepoint '{name}' in this transaction")))
    }

    /// The next changes of rows of a table, which stands in this transaction's catalog.
    pub(crate) fn change(&mut self, table: &Arc<ColumnTable>, threads: usize) -> Result<Change> {
        self.check_writable()?;
        // Whether rows fit is seen here, whatever becomes of the draft.
        self.reads.definition(table.id());
        Ok(Change::on(self.draft(table), threads))
    }

    fn draft(&mut self, table: &Arc<ColumnTable>) -> &mut Draft {
        self.work.drafts.entry(table.id()).or_insert_with(|| Draft::new(Arc::clone(table)))
    }

    /// Takes a statement's changes of rows over, and changes the table's indexes with them.
    ///
    /// # Errors
    /// [`Error::Data`]: an index is unique, and has values of the rows already. The statement is then to fail.
    pub(crate) fn put(&mut self, changed: Changed) -> Result<()> {
        let table = Arc::clone(&changed.table);
        if !table.schema().indexes.is_empty() {
            let before = Arc::clone(self.draft(&table).now());
            let changes = RowChanges::between(&before, &table)?;
            for index in &table.schema().indexes {
                self.change_index(index, &changes)?;
            }
        }
        self.draft(&table).take(changed);
        self.show(&table)
    }

    /// Gives a table an index, whose tree is empty, and fills that: by `fill` in place, where this transaction has changed no
    /// row of the table, else with what it writes itself.
    ///
    /// # Errors
    /// As [`Transaction::put`]; those of `fill`.
    pub(crate) fn add_index(
        &mut self,
        table: &Arc<ColumnTable>,
        index: Index,
        fill: impl FnOnce(&Transaction, &IndexBuild<'_>) -> Result<()>,
    ) -> Result<()> {
        self.reads.definition(table.id());
        let of_rows = !self.draft(table).changes_rows();
        let altered = self.altered(table, Alteration::AddIndex { index: index.clone(), of_rows })?;
        if !of_rows {
            self.reads.whole(table.id());
            return self.change_index(&index, &RowChanges::all(&altered));
        }
        let tree = self.index_tree(&index)?;
        fill(self, &IndexBuild::new(&altered, &index, &tree, self.base_commit))?;
        self.work.built.insert(index.tree, altered);
        Ok(())
    }

    /// Takes an index from a table.
    ///
    /// # Errors
    /// [`Error::Data`]: it has none of that name.
    pub(crate) fn drop_index(&mut self, table: &Arc<ColumnTable>, name: &str) -> Result<()> {
        self.reads.definition(table.id());
        self.altered(table, Alteration::DropIndex { name: name.to_owned() }).map(drop)
    }

    /// The id of the row that has these values in a unique index with this tree, as a [`KeyMaker`](crate::index::KeyMaker) made a key of them.
    ///
    /// # Errors
    /// A leaf cannot be read.
    pub(crate) fn row_of(&mut self, tree: &Arc<KvTree>, index: &Index, key: &[u8]) -> Result<Option<u64>> {
        let id = self.with_tree(tree, |draft, at, notes_reads| {
            let id = draft.get(KeyRef::Bytes(key), at, false, |record| record.map(|record| record.try_into().ok()))?;
            // Where there is none, one is written.
            if id.is_some() && notes_reads {
                draft.note_key(KeyRef::Bytes(key));
            }
            Ok(id)
        })?;
        match id {
            None => Ok(None),
            Some(Some(id)) => Ok(Some(row_id_of(id))),
            Some(None) => Err(Error::Damaged(format!("index '{}' has an entry without a row id", index.name))),
        }
    }

    /// That a key of an index was looked up, though nothing was written there in the end.
    pub(crate) fn note_row_key(&mut self, tree: &Arc<KvTree>, key: &[u8]) -> Result<()> {
        self.with_tree(tree, |draft, _, notes_reads| {
            if notes_reads {
                draft.note_key(KeyRef::Bytes(key));
            }
            Ok(())
        })
    }

    fn change_index(&mut self, index: &Index, changes: &RowChanges) -> Result<()> {
        let tree = self.index_tree(index)?;
        self.with_tree(&tree, |draft, at, _| changes.apply(index, draft, at))
    }

    /// The tree of an index.
    ///
    /// # Errors
    /// [`Error::Damaged`]: it is not there.
    pub(crate) fn index_tree(&self, index: &Index) -> Result<Arc<KvTree>> {
        let catalog = &self.work.catalog;
        let found = catalog.tree_by_id(index.tree).map(|(_, tree)| tree);
        let Some(tree) = found.filter(|tree| tree.is_of_index(index.rule.is_unique())) else {
            return Err(Error::Damaged(format!(
                "the tree of index '{}' is not there; DROP INDEX, and create it anew",
                index.name
            )));
        };
        tree.note_seen_in(catalog.edition);
        Ok(Arc::clone(tree))
    }

    /// Alters a table.
    pub(crate) fn alter(&mut self, table: &Arc<ColumnTable>, alteration: Alteration) -> Result<Arc<ColumnTable>> {
        // Rows that others insert meanwhile have the old columns, and nobody has held them against the new rules.
        self.reads.whole(table.id());
        self.altered(table, alteration)
    }

    fn altered(&mut self, table: &Arc<ColumnTable>, alteration: Alteration) -> Result<Arc<ColumnTable>> {
        self.check_writable()?;
        let draft = self.draft(table);
        draft.alter(alteration)?;
        let altered = Arc::clone(draft.now());
        self.show(&altered)?;
        Ok(altered)
    }

    /// Puts a table's new state into the catalog.
    fn show(&mut self, table: &Arc<ColumnTable>) -> Result<()> {
        let catalog = Arc::make_mut(&mut self.work.catalog);
        match catalog.tables.values_mut().find(|known| known.id() == table.id()) {
            Some(known) => *known = Arc::clone(table),
            None => return Err(Error::Internal(format!("table '{}' left the catalog while it changed", table.name()))),
        }
        Ok(())
    }

    /// Creates a table. A table or view of that name gives way.
    pub(crate) fn create_table(
        &mut self,
        database: &Database,
        name: TableName,
        schema: TableSchema,
    ) -> Result<Arc<ColumnTable>> {
        self.check_writable()?;
        self.remove(&name);
        let store = Arc::clone(database.store());
        let table = ColumnTable::create(database.next_object(), &name.to_string(), Arc::new(schema), store);
        let table = Arc::new(table);
        self.redefine().tables.insert(name, Arc::clone(&table));
        self.draft(&table);
        Ok(table)
    }

    /// Creates a view. A table or view of that name gives way.
    pub(crate) fn create_view(&mut self, database: &Database, name: TableName, sql: String) -> Result<()> {
        self.check_writable()?;
        self.remove(&name);
        let view = View { id: database.next_object(), sql };
        self.redefine().views.insert(name, Arc::new(view));
        Ok(())
    }

    /// The key-value tree of that name.
    pub(crate) fn find_tree(&self, name: &TableName) -> Option<Arc<KvTree>> {
        self.reads.name(name);
        self.work.catalog.kv_tree(name).cloned()
    }

    /// Creates a key-value tree, where no table or view has the name.
    ///
    /// # Errors
    /// [`Error::Sql`]: one has; there is no such schema.
    pub(crate) fn create_tree(&mut self, database: &Database, name: TableName, shape: KvShape) -> Result<Arc<KvTree>> {
        let (id, overflow) = (database.next_object(), shape.has_overflow().then(|| database.next_object()));
        let tree = Arc::new(KvTree::create(id, shape, overflow, database.store()));
        self.add_tree(name, Arc::clone(&tree))?;
        Ok(tree)
    }

    /// Gives a tree that nobody knows of a name, as [`Transaction::create_tree`].
    ///
    /// # Errors
    /// As there.
    pub(crate) fn add_tree(&mut self, name: TableName, tree: Arc<KvTree>) -> Result<()> {
        self.check_writable()?;
        self.reads.schema(&name.schema);
        if !self.work.catalog.has_schema(&name.schema) {
            return Err(Error::Sql(format!("there is no schema '{}'; CREATE SCHEMA makes one", name.schema)));
        }
        if self.work.catalog.definition(&name).is_some() {
            let what = match tree.shape().is_index() {
                true => "taken",
                false if self.work.catalog.kv_tree(&name).is_some() => "there already",
                false => "no key-value tree",
            };
            return Err(Error::Sql(format!("'{name}' is {what}; use another name")));
        }
        self.redefine().trees.insert(name, tree);
        Ok(())
    }

    /// Shows to `use_it` what the transaction does to a tree, the commit whose state it sees, and whether reads are to be
    /// noted.
    ///
    /// # Errors
    /// [`Error::Sql`]: it has no such tree. Those of `use_it`.
    pub(crate) fn with_tree<R>(
        &mut self,
        tree: &Arc<KvTree>,
        use_it: impl FnOnce(&mut AnyDraft, CommitNumber, bool) -> Result<R>,
    ) -> Result<R> {
        let catalog = &self.work.catalog;
        // An edition of its own may be another one's of others.
        let is_known = catalog.edition == self.base.edition && tree.was_seen_in(catalog.edition);
        if !is_known && catalog.tree_by_id(tree.id()).is_none() {
            return Err(Error::Sql(
                "this transaction has no such key-value tree: it was dropped, or made later".to_owned(),
            ));
        }
        if !self.trees.has(tree.id()) {
            self.reads.definition(tree.id());
        }
        use_it(self.trees.draft(tree), self.base_commit, !self.is_read_only)
    }

    /// Whether it may change something.
    pub(crate) fn check_changeable(&self) -> Result<()> {
        self.check_usable()?;
        self.check_writable()
    }

    pub(crate) fn create_schema(&mut self, database: &Database, name: Arc<str>) -> Result<()> {
        self.check_writable()?;
        self.redefine().schemas.insert(name, database.next_object());
        Ok(())
    }

    /// Drops a schema, which holds nothing any more.
    pub(crate) fn drop_schema(&mut self, name: &str) -> Result<()> {
        self.check_writable()?;
        self.redefine().schemas.remove(name);
        Ok(())
    }

    /// Drops a table or view, if there is one of that name.
    pub(crate) fn drop(&mut self, name: &TableName) -> Result<()> {
        self.check_writable()?;
        self.remove(name);
        Ok(())
    }

    /// The catalog, to change a name or definition in it.
    fn redefine(&mut self) -> &mut Catalog {
        let catalog = Arc::make_mut(&mut self.work.catalog);
        catalog.edition += 1;
        catalog
    }

    fn remove(&mut self, name: &TableName) {
        let catalog = self.redefine();
        catalog.views.remove(name);
        catalog.trees.remove(name);
        let dropped = catalog.tables.remove(name);
        if let Some(table) = dropped {
            let of_table = |tree: &Arc<KvTree>| table.schema().index_of_tree(tree.id()).is_some();
            catalog.trees.retain(|_, tree| !of_table(tree));
            self.work.drafts.remove(&table.id());
            // Who gives it an index meanwhile would leave that behind.
            self.reads.definition(table.id());
        }
    }

    /// Gives a table or view another name.
    pub(crate) fn rename(&mut self, from: &TableName, to: TableName) -> Result<()> {
        self.check_writable()?;
        // Who gives a table an index meanwhile would put that under its old name.
        if let Some(id) = self.work.catalog.definition(from) {
            self.reads.definition(id);
        }
        let catalog = self.redefine();
        if let Some(view) = catalog.views.remove(from) {
            catalog.views.insert(to, view);
        } else if let Some(table) = catalog.tables.remove(from) {
            // Its indexes are in its schema.
            let indexes = |_: &TableName, tree: &mut Arc<KvTree>| table.schema().index_of_tree(tree.id()).is_some();
            let moved: Vec<_> = catalog.trees.extract_if(.., indexes).collect();
            for (name, tree) in moved {
                let name = TableName { schema: Arc::clone(&to.schema), table: name.table };
                if name == to || catalog.definition(&name).is_some() {
                    return Err(Error::Sql(format!(
                        "'{name}' is taken, and '{from}' has an index of that name; drop one"
                    )));
                }
                catalog.trees.insert(name, tree);
            }
            catalog.tables.insert(to, table);
        } else if let Some(tree) = catalog.trees.remove(from) {
            catalog.trees.insert(to, tree);
        }
        Ok(())
    }

    /// Makes all of it durable and visible, or nothing.
    ///
    /// # Errors
    /// [`Error::Conflict`]: run it again. Whatever writing can raise.
    pub(crate) fn commit(mut self, database: &Database) -> Result<()> {
        if self.has_failed {
            return Err(Error::Sql(
                "the transaction was rolled back, because an earlier statement of it failed".to_owned(),
            ));
        }
        let redefines = self.work.catalog.edition != self.base.edition;
        if !redefines && self.work.drafts.values().all(Draft::is_empty) && self.trees.is_empty() {
            return Ok(());
        }
        let loads = || redefines && self.work.catalog.trees.values().any(|tree| tree.loaded().is_some());
        if self.work.drafts.values().any(Draft::has_pages) || loads() {
            database.store().sync_pages()?;
        }
        self.note_keys();
        // Most of the validation holds nobody up; what was committed meanwhile is little.
        let validated = database.timeline().pending();
        self.validate(&self.base, &validated)?;
        let drafts = self.work.drafts.iter().filter(|(_, draft)| !draft.is_empty());
        let prepared = drafts.map(|(object, draft)| Ok((*object, draft.prepare()?))).collect::<Result<Vec<_>>>()?;
        let numbered_by = self.numbered_by();
        let mut changed: Vec<ObjectId> = self.work.drafts.keys().copied().collect();
        let mut entered = database.timeline().enter(self.exclusive.as_ref());
        let mut followed = self.work.built.clone();
        // Until little is left for when all others wait.
        for _ in 0..FOLLOWED_MAX {
            let before = followed.clone();
            self.follow_builds(&mut followed, &database.timeline().pending())?;
            if followed.iter().all(|(id, table)| Arc::ptr_eq(table, &before[id])) {
                break;
            }
        }
        let numberings: Vec<MutexGuard<'_, ()>> = numbered_by.iter().map(|tree| tree.numbering()).collect();
        if !numberings.is_empty() {
            renumber(&mut self.trees, &self.work.drafts, &database.timeline().pending());
        }
        let tree_records = self.trees.records();
        changed.extend(tree_records.iter().map(|(tree, _)| tree.id()));
        let trees = match self.trees.prepare(self.base_commit)? {
            Ok(trees) => trees,
            Err(id) => return Err(conflict(&self.named(id), "has other keys than this transaction has read")),
        };
        // What it has read stays as it is until the trees are settled: it needs no older state any more.
        drop(self.snapshot.take());
        let numbered = entered.number(|pending| {
            self.validate(&validated, pending)?;
            self.follow_builds(&mut followed, pending)?;
            self.build(pending, prepared, tree_records)
        })?;
        let Some(numbered) = numbered else { return Ok(()) };
        trees.into_iter().for_each(|tree| tree.settle(&numbered));
        drop(numberings);
        self.trees.merge_sparse(&numbered);
        entered.finish()?;
        if redefines {
            self.note_fates();
        }
        drop(self.exclusive);
        // What it holds of older states goes before tables are merged and pressed.
        drop(self.work);
        database.after_commit(changed);
        Ok(())
    }

    /// The first index of each table into which it inserts rows, in the order of the tables' numbers.
    fn numbered_by(&self) -> Vec<Arc<KvTree>> {
        let inserting =
            self.work.drafts.values().filter(|draft| draft.now().next_row_id() > draft.base().next_row_id());
        let first = inserting.filter_map(|draft| draft.now().schema().indexes.first());
        first.filter_map(|index| Some(Arc::clone(self.work.catalog.tree_by_id(index.tree)?.1))).collect()
    }

    /// Whether what others did to the rows of a table cannot stand beside what this transaction did to it. Indexes that it made
    /// follow that, unless it has changed rows itself, or has looked something up in them.
    fn minds_rows(&self, draft: &Draft) -> bool {
        let is_used = |index: &Index| self.work.built.contains_key(&index.tree) && self.trees.is_touched(index.tree);
        draft.is_altered_for_rows()
            || (draft.is_altered() && (draft.changes_rows() || draft.now().schema().indexes.iter().any(is_used)))
    }

    /// Brings the indexes that it made up to what others have done to their tables, from the states in `followed` on.
    fn follow_builds(&self, followed: &mut BTreeMap<ObjectId, Arc<ColumnTable>>, pending: &Catalog) -> Result<()> {
        for (id, then) in followed {
            let draft = self.work.drafts.get(&then.id()).filter(|draft| !self.minds_rows(draft));
            let Some((draft, (_, now))) = draft.zip(pending.table_by_id(then.id())) else { continue };
            let index = draft.now().schema().index_of_tree(*id);
            let Some((index, (_, tree))) = index.zip(self.work.catalog.tree_by_id(*id)) else { continue };
            // Others who altered the table leave no place for this one.
            if draft.base().schema().version == now.schema().version {
                IndexBuild::new(draft.now(), index, tree, self.base_commit).follow(then, now)?;
                *then = Arc::clone(now);
            }
        }
        Ok(())
    }

    /// Hands what its statements have read of key-value trees to what it does to them, to be validated with that.
    fn note_keys(&mut self) {
        let Some(noted) = self.reads.of().map(|mut reads| std::mem::take(&mut reads.keys)) else { return };
        for (id, ranges) in noted {
            // One of this transaction's own is nobody else's.
            if let Some((_, tree)) = self.base.tree_by_id(id) {
                self.trees.draft(&Arc::clone(tree)).note(&ranges);
            }
        }
    }

    /// It is committed: key-value trees are in the catalog, or not any more.
    fn note_fates(&self) {
        let (old, new) = (&self.base.trees, &self.work.catalog.trees);
        let lacks = |trees: &BTreeMap<TableName, Arc<KvTree>>, tree: &KvTree| {
            !trees.values().any(|known| known.id() == tree.id())
        };
        new.values().filter(|tree| lacks(old, tree)).for_each(|tree| tree.set_live());
        old.values().filter(|tree| lacks(new, tree)).for_each(|tree| tree.set_dropped());
    }

    /// Whether a statement of this transaction would have seen what was committed between two states.
    fn validate(&self, then: &Catalog, now: &Catalog) -> Result<()> {
        let Some(reads) = self.reads.of() else { return Ok(()) };
        for (object, seen) in &reads.objects {
            let Some((name, old)) = then.table_by_id(*object) else {
                if then.view_by_id(*object).is_some() && now.view_by_id(*object).is_none() {
                    return Err(conflict(&self.named(*object), "was altered or dropped"));
                }
                if then.tree_by_id(*object).is_some() && now.tree_by_id(*object).is_none() {
                    return Err(conflict(&self.named(*object), "was dropped"));
                }
                // An object of this transaction's own.
                continue;
            };
            let Some((new_name, new)) = now.table_by_id(*object) else {
                return Err(conflict(&name.to_string(), "was dropped"));
            };
            if new_name != name {
                return Err(conflict(&name.to_string(), "was renamed"));
            }
            if Arc::ptr_eq(old, new) {
                continue;
            }
            if old.schema().version != new.schema().version {
                return Err(conflict(&name.to_string(), "was altered"));
            }
            let is_altered = self.work.drafts.get(object).is_some_and(|draft| self.minds_rows(draft));
            if seen.is_empty() && !is_altered {
                continue;
            }
            let rows = differences(old, new)?;
            for rows in [rows.new, rows.gone].map(Arc::new) {
                if rows.live_rows() > 0 && (is_altered || seen.iter().any(|seen| seen.sees(&rows))) {
                    return Err(conflict(&name.to_string(), "has other rows than this transaction has read"));
                }
            }
        }
        if then.edition == now.edition {
            return Ok(());
        }
        match reads.look_ups.iter().find(|look_up| !look_up.is_same(then, now)) {
            Some(changed) => Err(changed.conflict()),
            None => Ok(()),
        }
    }

    fn named(&self, object: ObjectId) -> String {
        let name = self.base.name_of(object).or_else(|| self.work.catalog.name_of(object));
        name.unwrap_or_else(|| format!("object {object}"))
    }

    /// The next root, and the records that lead to it.
    fn build(
        &self,
        pending: &Arc<Catalog>,
        prepared: Vec<(ObjectId, Prepared<'_>)>,
        trees: Vec<(Arc<KvTree>, Vec<Record>)>,
    ) -> Result<Option<Built<Catalog>>> {
        let mut next = (**pending).clone();
        let (mut records, mut pages) = (Vec::new(), Vec::new());
        let created = |object| self.work.drafts.get(&object).map(|draft| Arc::clone(draft.base()));
        self.work.catalog.redefine(&self.base, &mut next, &created, (&mut records, &mut pages))?;
        for (object, prepared) in prepared {
            let Some((name, current)) = next.tables.iter_mut().find(|(_, table)| table.id() == object) else {
                match self.work.catalog.table_by_id(object) {
                    None => continue,
                    Some((name, _)) => return Err(conflict(&name.to_string(), "was dropped")),
                }
            };
            let mut rebased = prepared.rebase(current)?;
            records.append(&mut rebased.records);
            pages.append(&mut rebased.pages);
            *current = Arc::new(rebased.table.with_name(&name.to_string()));
        }
        for (tree, of_tree) in trees {
            match self.work.catalog.tree_by_id(tree.id()) {
                Some(_) if next.tree_by_id(tree.id()).is_some() => records.extend(of_tree),
                Some((name, _)) => return Err(conflict(&name.to_string(), "was dropped")),
                // It was dropped by the transaction itself.
                None => {}
            }
        }
        match records.is_empty() {
            true => Ok(None),
            false => Ok(Some(Built { root: Arc::new(next), records, pages })),
        }
    }
}

impl Seen {
    /// Whether some of these rows pass.
    fn sees(&self, rows: &Arc<ColumnTable>) -> bool {
        if self.filter.is_empty() {
            return true;
        }
        let pipeline = Pipeline {
            source: Source::Table(Arc::clone(rows) as Arc<dyn sinter_exec::TableSource>),
            columns: self.columns.clone(),
            filter: self.filter.clone(),
            output: Output::Rows(Vec::new()),
            steps: Vec::new(),
            limit: Some(1),
            on_damage: OnDamage::Fail,
        };
        // A filter that fails on these rows would have failed the statement.
        pipeline.start().and_then(|run| run.worker().next(&mut Batch::default())).unwrap_or(true)
    }
}

/// Gives the entries of indexes the ids that rows have when their drafts are made again on `pending`.
fn renumber(trees: &mut KvWork, drafts: &BTreeMap<ObjectId, Draft>, pending: &Catalog) {
    for (object, draft) in drafts {
        let border = draft.base().next_row_id();
        let Some((_, current)) = pending.table_by_id(*object) else { continue };
        let shift = current.next_row_id().saturating_sub(border);
        for index in &draft.now().schema().indexes {
            if let Some(changes) = trees.draft_of(index.tree).filter(|_| shift > 0) {
                changes.renumber(border, shift, index.rule.is_unique());
            }
        }
    }
}

/// An error for the transaction that came second.
pub(crate) fn conflict(name: &str, what: &str) -> Error {
    Error::Conflict(format!(
        "'{name}' {what}, by another transaction that committed first; nothing was changed, run the transaction again"
    ))
}
