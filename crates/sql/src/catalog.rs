//! Which tables, key-value trees, views and schemas there are.
//!
//! A catalog is a value: all of a database at one moment. A change makes the next one. Its page and its log records are
//! in docs/format/catalog.md.

use crate::index::IndexBuild;
use crate::kv::{AnyTree, KvShape, KvTree, Loaded};
use crate::transaction::conflict;
use crate::{Error, OnCorruption, Result};
use sinter_column::wire::{Reader, Writer};
use sinter_column::{ColumnTable, Index, TableSchema};
use sinter_storage::{CommitNumber, ObjectId, PageId, Record, RecordTag, Store};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// The schema that names without one belong to. It is always there.
pub(crate) const DEFAULT_SCHEMA: &str = "public";

/// The catalog page's own version, so that later steps can extend it.
const CATALOG_VERSION: u8 = 1;

/// Kinds of objects, in the catalog page and in catalog records.
const KIND_TABLE_V1: u8 = 1;
const KIND_VIEW: u8 = 2;
const KIND_SCHEMA: u8 = 3;
const KIND_TABLE: u8 = 4;
const KIND_TREE: u8 = 5;
const KIND_TREE_WITH_OVERFLOW: u8 = 6;

/// The full name of a table, a view or a key-value tree, as stored: lower case unless it was quoted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TableName {
    pub(crate) schema: Arc<str>,
    pub(crate) table: Arc<str>,
}

impl TableName {
    pub(crate) fn new(schema: &str, table: &str) -> TableName {
        TableName { schema: schema.into(), table: table.into() }
    }
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if &*self.schema != DEFAULT_SCHEMA {
            write!(f, "{}.", as_written(&self.schema))?;
        }
        f.write_str(&as_written(&self.table))
    }
}

/// A name as a statement has to write it: in quotes where it would read otherwise without.
pub(crate) fn as_written(name: &str) -> Cow<'_, str> {
    let is_plain = name.starts_with(|first: char| first.is_lowercase() || first == '_')
        && name.chars().all(|char| char.is_lowercase() || char.is_ascii_digit() || char == '_');
    if is_plain { Cow::Borrowed(name) } else { Cow::Owned(format!("\"{}\"", name.replace('"', "\"\""))) }
}

/// A query with a name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) id: ObjectId,
    /// A SELECT that names its columns.
    pub(crate) sql: String,
}

/// A table whose root cannot be read: what is known of it without.
#[derive(Debug)]
pub(crate) struct DamagedTable {
    pub(crate) id: ObjectId,
    /// Of a key-value tree with an overflow: that one's.
    pub(crate) overflow: Option<ObjectId>,
    pub(crate) root: PageId,
    /// What is wrong with the root.
    pub(crate) what: String,
}

impl DamagedTable {
    /// The error for who names it.
    pub(crate) fn error(&self, name: &TableName) -> Error {
        Error::Damaged(format!("table '{name}' cannot be read: {}", self.what))
    }
}

/// Everything at one moment. Tables, key-value trees, indexes and views share their names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalog {
    pub(crate) tables: BTreeMap<TableName, Arc<ColumnTable>>,
    pub(crate) views: BTreeMap<TableName, Arc<View>>,
    /// The same in all states that have them: what is in them is asked for by commit number. Those of indexes are among them.
    pub(crate) trees: BTreeMap<TableName, Arc<KvTree>>,
    /// In a database that is read in spite of damage: the tables that are lost.
    pub(crate) damaged: BTreeMap<TableName, Arc<DamagedTable>>,
    /// Beside the default one.
    pub(crate) schemas: BTreeMap<Arc<str>, ObjectId>,
    /// Larger than the number of any object.
    pub(crate) next_object: u64,
    /// Counts changes of names and definitions, so that catalogs of one descent can be compared at a glance.
    pub(crate) edition: u64,
}

impl Catalog {
    /// The table of that name.
    pub(crate) fn table(&self, name: &TableName) -> Option<&Arc<ColumnTable>> {
        self.tables.get(name)
    }

    /// The table with that number.
    pub(crate) fn table_by_id(&self, id: ObjectId) -> Option<(&TableName, &Arc<ColumnTable>)> {
        self.tables.iter().find(|(_, table)| table.id() == id)
    }

    /// The view with that number.
    pub(crate) fn view_by_id(&self, id: ObjectId) -> Option<(&TableName, &Arc<View>)> {
        self.views.iter().find(|(_, view)| view.id == id)
    }

    /// The key-value tree, or the overflow of one, that the log knows by this number.
    fn part_by_id(&self, id: ObjectId) -> Option<AnyTree> {
        self.trees.values().flat_map(|tree| tree.parts()).find(|(part, _)| *part == id).map(|(_, tree)| tree)
    }

    /// The key-value tree with that number.
    pub(crate) fn tree_by_id(&self, id: ObjectId) -> Option<(&TableName, &Arc<KvTree>)> {
        self.trees.iter().find(|(_, tree)| tree.id() == id)
    }

    /// The key-value trees that are there for themselves: not those of indexes.
    pub(crate) fn kv_trees(&self) -> impl Iterator<Item = (&TableName, &Arc<KvTree>)> {
        self.trees.iter().filter(|(_, tree)| !tree.shape().is_index())
    }

    /// The key-value tree of that name, where it is there for itself.
    pub(crate) fn kv_tree(&self, name: &TableName) -> Option<&Arc<KvTree>> {
        self.trees.get(name).filter(|tree| !tree.shape().is_index())
    }

    /// The index of that name, with its table: that whose tree has the name, or where its tree is lost, as its table has it.
    pub(crate) fn index(&self, name: &TableName) -> Option<(&TableName, &Arc<ColumnTable>, &Index)> {
        let all = || {
            let of_table = |(of, table): (_, _)| {
                let table: &Arc<ColumnTable> = table;
                table.schema().indexes.iter().map(move |index| (of, table, index))
            };
            self.tables.iter().flat_map(of_table)
        };
        match self.trees.get(name) {
            Some(tree) => all().find(|(.., index)| index.tree == tree.id()),
            None => all().find(|(of, _, index)| of.schema == name.schema && *index.name == *name.table),
        }
    }

    /// Whether there is a schema of that name.
    pub(crate) fn has_schema(&self, name: &str) -> bool {
        name == DEFAULT_SCHEMA || self.schemas.contains_key(name)
    }

    /// The name of an object, for messages.
    pub(crate) fn name_of(&self, id: ObjectId) -> Option<String> {
        let table = self.table_by_id(id).map(|(name, _)| name.to_string());
        let view = || self.view_by_id(id).map(|(name, _)| name.to_string());
        let schema = || self.schemas.iter().find(|(_, schema)| **schema == id).map(|(name, _)| name.to_string());
        let tree = || self.tree_by_id(id).map(|(name, _)| name.to_string());
        table.or_else(view).or_else(tree).or_else(schema)
    }

    /// The number of the table, view or key-value tree of that name.
    pub(crate) fn definition(&self, name: &TableName) -> Option<ObjectId> {
        let view = || self.views.get(name).map(|view| view.id);
        let tree = || self.trees.get(name).map(|tree| tree.id());
        self.tables.get(name).map(|table| table.id()).or_else(view).or_else(tree)
    }

    /// The tables, then the views, then the key-value trees.
    fn all(&self) -> impl Iterator<Item = (&TableName, ObjectId)> {
        let tables = self.tables.iter().map(|(name, table)| (name, table.id()));
        let views = self.views.iter().map(|(name, view)| (name, view.id));
        tables.chain(views).chain(self.trees.iter().map(|(name, tree)| (name, tree.id())))
    }

    /// What is in a schema.
    pub(crate) fn within(&self, schema: &str) -> impl Iterator<Item = (&TableName, ObjectId)> {
        self.all().filter(move |(name, _)| *name.schema == *schema)
    }

    /// What tables, views and key-value trees are called.
    pub(crate) fn definitions(&self) -> BTreeMap<&TableName, ObjectId> {
        self.all().collect()
    }

    /// Does to `next` what made `self` out of `base`, as far as names and definitions go, and adds the records of it, and the
    /// pages of trees that were loaded.
    /// `created` gives a table of which only `self` knows, as it was created.
    ///
    /// # Errors
    /// [`Error::Conflict`] where `next` has become another than `base` in one of these names.
    pub(crate) fn redefine(
        &self,
        base: &Catalog,
        next: &mut Catalog,
        created: &dyn Fn(ObjectId) -> Option<Arc<ColumnTable>>,
        (records, pages): (&mut Vec<Record>, &mut Vec<PageId>),
    ) -> Result<()> {
        if self.edition == base.edition {
            return Ok(());
        }
        for name in base.schemas.keys().chain(self.schemas.keys()) {
            let (old, new) = (base.schemas.get(name), self.schemas.get(name));
            if old != new && next.schemas.get(name) != old {
                return Err(conflict(name, "was created or dropped"));
            }
        }
        let (old, new, now) = (base.definitions(), self.definitions(), next.definitions());
        let changed: BTreeSet<&TableName> =
            old.keys().chain(new.keys()).filter(|name| old.get(*name) != new.get(*name)).copied().collect();
        if let Some(name) = changed.iter().find(|name| now.get(*name) != old.get(*name)) {
            return Err(conflict(&name.to_string(), "was created, dropped or renamed"));
        }
        let new_ids: BTreeSet<ObjectId> = new.values().copied().collect();
        let gone = changed.iter().filter_map(|name| old.get(*name)).filter(|id| !new_ids.contains(*id));
        for &id in gone {
            records.push(Record { tag: RecordTag::CATALOG_DROP, object: id, payload: Vec::new() });
        }
        for (name, &id) in self.schemas.iter().filter(|(name, id)| base.schemas.get(*name) != Some(id)) {
            records.push(put(id, KIND_SCHEMA, |out| out.text(name)));
            next.schemas.insert(Arc::clone(name), id);
            next.next_object = next.next_object.max(id.0 + 1);
        }
        let (mut moved, mut moved_trees) = (BTreeMap::new(), BTreeMap::new());
        for &name in &changed {
            if let Some(table) = next.tables.remove(name) {
                moved.insert(table.id(), table);
            }
            if let Some(tree) = next.trees.remove(name) {
                moved_trees.insert(tree.id(), tree);
            }
            next.views.remove(name);
        }
        // A name that another object still has must be free before it is given anew: names may change places.
        for (name, &id) in changed.iter().filter_map(|name| Some((*name, new.get(name)?))) {
            if !old.contains_key(name) {
                continue;
            }
            let for_now = TableName::new(&name.schema, &format!("\u{1}{id}"));
            if let Some(table) = moved.get(&id) {
                records.push(put_table(id, &for_now, table.schema()));
            } else if let Some(tree) = moved_trees.get(&id) {
                records.push(put_tree(&for_now, tree));
            }
        }
        for (name, &id) in changed.iter().filter_map(|name| Some((*name, new.get(name)?))) {
            if !next.has_schema(&name.schema) {
                return Err(conflict(&name.schema, "was dropped"));
            }
            next.next_object = next.next_object.max(id.0 + 1);
            if let Some(view) = self.views.get(name) {
                records.push(put_view(name, view));
                next.views.insert(name.clone(), Arc::clone(view));
            } else if let Some(tree) = self.trees.get(name) {
                records.push(put_tree(name, tree));
                // Another name is no other load.
                if let Some(loaded) = tree.loaded().filter(|_| base.tree_by_id(id).is_none()) {
                    records.push(tree_loaded(id, &loaded));
                    let Loaded { tree, overflow } = &loaded;
                    std::iter::once(tree).chain(overflow).for_each(|loaded| pages.extend_from_slice(&loaded.pages));
                }
                if let Some(overflow) = tree.overflow() {
                    next.next_object = next.next_object.max(overflow.id().0 + 1);
                }
                next.trees.insert(name.clone(), Arc::clone(tree));
            } else if let Some(table) = moved.remove(&id).or_else(|| created(id)) {
                records.push(put_table(id, name, table.schema()));
                next.tables.insert(name.clone(), Arc::new(table.with_name(&name.to_string())));
            }
        }
        for (name, &id) in base.schemas.iter().filter(|(name, _)| !self.schemas.contains_key(*name)) {
            if next.definitions().keys().any(|known| known.schema == *name) {
                return Err(conflict(name, "got a table, view or key-value tree"));
            }
            records.push(Record { tag: RecordTag::CATALOG_DROP, object: id, payload: Vec::new() });
            next.schemas.remove(name);
        }
        next.edition += 1;
        Ok(())
    }

    /// Applies a record of a commit in the log, to the catalog or to what is in it. Applying twice changes nothing. With
    /// `on_corruption` skip, the root of a loaded tree that cannot be read is no error, as in [`Catalog::load`].
    pub(crate) fn apply(
        &mut self,
        record: &Record,
        commit: CommitNumber,
        store: &Arc<Store>,
        on_corruption: OnCorruption,
    ) -> Result<()> {
        match record.tag {
            RecordTag::CATALOG_PUT => {
                self.next_object = self.next_object.max(record.object.0 + 1);
                let mut input = Reader::new("catalog record", &record.payload);
                match read_entry(&mut input, record.object)? {
                    Entry::Schema(name) => drop(self.schemas.insert(name, record.object)),
                    Entry::View(name, view) => {
                        self.views.retain(|_, known| known.id != record.object);
                        self.views.insert(name, Arc::new(view));
                    }
                    Entry::Table(name, _) | Entry::Tree(name, ..)
                        if self.remove_damaged(record.object, Some(&name)) => {}
                    Entry::Tree(name, shape, overflow) => {
                        let last = overflow.unwrap_or(record.object);
                        self.next_object = self.next_object.max(last.0 + 1);
                        let known = self.tree_by_id(record.object).map(|(known, _)| known.clone());
                        let tree = known.and_then(|known| self.trees.remove(&known)).unwrap_or_else(|| {
                            let tree = KvTree::create(record.object, shape, overflow, store);
                            tree.set_live();
                            Arc::new(tree)
                        });
                        self.trees.insert(name, tree);
                    }
                    Entry::Table(name, schema) => {
                        let known = self.table_by_id(record.object).map(|(known, _)| known.clone());
                        let table = match known.and_then(|known| self.tables.remove(&known)) {
                            // It got another name; what else changed has records of its own.
                            Some(known) => known.with_name(&name.to_string()),
                            None => {
                                let schema = Arc::new(schema);
                                ColumnTable::create(record.object, &name.to_string(), schema, Arc::clone(store))
                            }
                        };
                        self.tables.insert(name, Arc::new(table));
                    }
                }
                Ok(input.end()?)
            }
            RecordTag::CATALOG_DROP => {
                let found = self.table_by_id(record.object).map(|(name, _)| name.clone());
                found.map(|name| self.tables.remove(&name));
                self.trees
                    .extract_if(.., |_, tree| tree.id() == record.object)
                    .for_each(|(_, tree)| tree.set_dropped());
                self.remove_damaged(record.object, None);
                self.views.retain(|_, view| view.id != record.object);
                self.schemas.retain(|_, id| *id != record.object);
                Ok(())
            }
            RecordTag::TREE_LOADED => self.load_tree(record, store, on_corruption),
            RecordTag::TREE_CHANGED => match self.part_by_id(record.object) {
                Some(tree) => match tree.replay(record, commit) {
                    Err(Error::Damaged(what)) if on_corruption == OnCorruption::Skip => {
                        self.lose_tree(record.object, tree.root().unwrap_or_default(), what);
                        Ok(())
                    }
                    replayed => replayed,
                },
                None => self.check_damaged(record.object),
            },
            _ => match self.tables.values_mut().find(|table| table.id() == record.object) {
                Some(table) => {
                    let built = table.index_of_rows(record)?;
                    Arc::make_mut(table).apply(record)?;
                    let table = Arc::clone(table);
                    match built {
                        Some(index) => self.build_index(&table, &index, commit),
                        None => Ok(()),
                    }
                }
                None => self.check_damaged(record.object),
            },
        }
    }

    /// Gives a tree, which has no keys yet, those that it was loaded with.
    fn load_tree(&mut self, record: &Record, store: &Arc<Store>, on_corruption: OnCorruption) -> Result<()> {
        let mut input = Reader::new("record of a loaded tree", &record.payload);
        let root = PageId(input.u64()?);
        let Some((name, tree)) = self.tree_by_id(record.object) else { return self.check_damaged(record.object) };
        let overflow = match tree.overflow() {
            Some(overflow) => Some((overflow.id(), PageId(input.u64()?))),
            None => None,
        };
        input.end()?;
        if tree.tree().root() == Some(root) {
            return Ok(());
        }
        let (name, id) = (name.clone(), record.object);
        let empty = match KvTree::open(id, *tree.shape(), store, root, overflow) {
            Ok(loaded) => self.trees.insert(name, Arc::new(loaded)),
            Err(error) if on_corruption == OnCorruption::Skip && error.is_damage() => {
                let (empty, overflow) = (self.trees.remove(&name), overflow.map(|(id, _)| id));
                let damaged = DamagedTable { id, overflow, root, what: error.to_string() };
                self.damaged.insert(name, Arc::new(damaged));
                empty
            }
            Err(error) => return Err(error.into()),
        };
        if let Some(empty) = empty {
            empty.set_dropped();
        }
        Ok(())
    }

    /// The tree that has this number, or whose overflow has it, cannot be read where it is changed: it is one of the damaged. Its
    /// pages stay.
    fn lose_tree(&mut self, part: ObjectId, root: PageId, what: String) {
        let has_part = |tree: &KvTree| tree.parts().any(|(id, _)| id == part);
        let lost: Vec<_> = self.trees.extract_if(.., |_, tree| has_part(tree)).collect();
        for (name, tree) in lost {
            let overflow = tree.overflow().map(|overflow| overflow.id());
            let damaged = DamagedTable { id: tree.id(), overflow, root, what: what.clone() };
            self.damaged.insert(name, Arc::new(damaged));
        }
    }

    /// Makes an index of the rows that its table has. Where these cannot be read, the index is lost, and nothing else.
    fn build_index(&mut self, table: &Arc<ColumnTable>, index: &Index, commit: CommitNumber) -> Result<()> {
        let Some((name, tree)) = self.tree_by_id(index.tree) else { return Ok(()) };
        if !tree.is_of_index(index.rule.is_unique()) {
            return Err(Error::Damaged(format!("'{name}' is no tree for an index, where the log says so")));
        }
        match IndexBuild::new(table, index, tree, commit).put_all() {
            Err(Error::Damaged(_)) => {
                let lost = self.trees.extract_if(.., |_, tree| tree.id() == index.tree);
                lost.for_each(|(_, tree)| tree.set_dropped());
                Ok(())
            }
            built => built,
        }
    }

    /// Whether what the log changes is known to be damaged.
    fn check_damaged(&self, id: ObjectId) -> Result<()> {
        match self.damaged.values().any(|damaged| damaged.id == id || damaged.overflow == Some(id)) {
            true => Ok(()),
            false => Err(Error::Damaged(format!("the log changes object {id}, which the catalog does not know"))),
        }
    }

    /// Takes a damaged table out, or gives it another name; false when none has this number.
    fn remove_damaged(&mut self, id: ObjectId, new_name: Option<&TableName>) -> bool {
        let found = self.damaged.iter().find(|(_, damaged)| damaged.id == id).map(|(name, _)| name.clone());
        let damaged = found.and_then(|name| self.damaged.remove(&name));
        let is_known = damaged.is_some();
        self.damaged.extend(new_name.cloned().zip(damaged));
        is_known
    }

    /// The catalog page; `root` names the root page of each table and key-value tree.
    pub(crate) fn page_bytes(&self, root: &dyn Fn(ObjectId) -> PageId) -> Vec<u8> {
        let mut out = Writer::default();
        out.u8(CATALOG_VERSION);
        out.u64(self.next_object);
        out.count(self.schemas.len() + self.tables.len() + self.views.len() + self.trees.len());
        for (name, id) in &self.schemas {
            out.u8(KIND_SCHEMA);
            out.u64(id.0);
            out.text(name);
        }
        for (name, table) in &self.tables {
            out.u8(KIND_TABLE);
            out.u64(table.id().0);
            write_table(&mut out, name, table.schema());
            out.u64(root(table.id()).0);
        }
        for (name, view) in &self.views {
            out.u8(KIND_VIEW);
            out.u64(view.id.0);
            write_view(&mut out, name, view);
        }
        for (name, tree) in &self.trees {
            out.u8(kind_of(tree));
            out.u64(tree.id().0);
            write_tree(&mut out, name, tree);
            tree.parts().for_each(|(id, _)| out.u64(root(id).0));
        }
        out.into_bytes()
    }

    /// Reads the catalog page and the tables' roots; returns each table's root page beside. With `on_corruption`
    /// skip, a root that cannot be read is no error: its table is one of the damaged.
    pub(crate) fn load(
        store: &Arc<Store>,
        page: PageId,
        on_corruption: OnCorruption,
    ) -> Result<(Catalog, BTreeMap<ObjectId, PageId>)> {
        let bytes = store.pin(page)?;
        let mut input = Reader::new("catalog", &bytes);
        let version = input.u8()?;
        if version != CATALOG_VERSION {
            return Err(input
                .damaged(format!("catalog of version {version}; this SinterDB reads {CATALOG_VERSION}"))
                .into());
        }
        let mut catalog = Catalog { next_object: input.u64()?, ..Catalog::default() };
        let mut roots = BTreeMap::new();
        for _ in 0..input.count()? {
            let kind = input.u8()?;
            let id = ObjectId(input.u64()?);
            match read_entry_of(&mut input, kind, id)? {
                Entry::Schema(name) => drop(catalog.schemas.insert(name, id)),
                Entry::View(name, view) => drop(catalog.views.insert(name, Arc::new(view))),
                Entry::Tree(name, shape, overflow) => {
                    let root = PageId(input.u64()?);
                    let overflow = match overflow {
                        Some(overflow) => Some((overflow, PageId(input.u64()?))),
                        None => None,
                    };
                    match KvTree::open(id, shape, store, root, overflow) {
                        Ok(tree) => drop(catalog.trees.insert(name, Arc::new(tree))),
                        Err(error) if on_corruption == OnCorruption::Skip && error.is_damage() => {
                            let (what, overflow) = (error.to_string(), overflow.map(|(id, _)| id));
                            catalog.damaged.insert(name, Arc::new(DamagedTable { id, overflow, root, what }));
                        }
                        Err(error) => return Err(error.into()),
                    }
                }
                Entry::Table(name, schema) => {
                    let root = PageId(input.u64()?);
                    let schema = Arc::new(schema);
                    let loaded = ColumnTable::load(id, &name.to_string(), schema, Arc::clone(store), root);
                    roots.insert(id, root);
                    match loaded {
                        Ok(table) => drop(catalog.tables.insert(name, Arc::new(table))),
                        Err(error) if on_corruption == OnCorruption::Skip && error.is_damage() => {
                            let damaged = DamagedTable { id, overflow: None, root, what: error.to_string() };
                            catalog.damaged.insert(name, Arc::new(damaged));
                        }
                        Err(error) => return Err(error.into()),
                    }
                }
            }
        }
        input.end()?;
        // Before there was CREATE SCHEMA, a table brought its schema with it.
        let implied: BTreeSet<Arc<str>> = catalog.tables.keys().map(|name| Arc::clone(&name.schema)).collect();
        for name in implied {
            if !catalog.has_schema(&name) {
                catalog.schemas.insert(name, ObjectId(catalog.next_object.max(1)));
                catalog.next_object = catalog.next_object.max(1) + 1;
            }
        }
        Ok((catalog, roots))
    }
}

/// One entry of the catalog page, or of a catalog record.
enum Entry {
    Table(TableName, TableSchema),
    View(TableName, View),
    /// With the number of its overflow.
    Tree(TableName, KvShape, Option<ObjectId>),
    Schema(Arc<str>),
}

fn read_entry(input: &mut Reader<'_>, id: ObjectId) -> Result<Entry> {
    let kind = input.u8()?;
    read_entry_of(input, kind, id)
}

fn read_entry_of(input: &mut Reader<'_>, kind: u8, id: ObjectId) -> Result<Entry> {
    let name = |input: &mut Reader<'_>| -> Result<TableName> {
        let schema = input.text()?;
        Ok(TableName::new(&schema, &input.text()?))
    };
    Ok(match kind {
        KIND_TABLE_V1 => Entry::Table(name(input)?, TableSchema::read_v1(input)?),
        KIND_TABLE => Entry::Table(name(input)?, TableSchema::read(input)?),
        KIND_VIEW => Entry::View(name(input)?, View { id, sql: input.text()? }),
        KIND_SCHEMA => Entry::Schema(input.text()?.into()),
        KIND_TREE => Entry::Tree(name(input)?, KvShape::read(input)?, None),
        KIND_TREE_WITH_OVERFLOW => Entry::Tree(name(input)?, KvShape::read(input)?, Some(ObjectId(input.u64()?))),
        _ => return Err(input.damaged(format!("object kind {kind} is unknown; a newer SinterDB wrote it")).into()),
    })
}

fn put(object: ObjectId, kind: u8, write: impl FnOnce(&mut Writer)) -> Record {
    let mut payload = Writer::default();
    payload.u8(kind);
    write(&mut payload);
    Record { tag: RecordTag::CATALOG_PUT, object, payload: payload.into_bytes() }
}

fn put_table(object: ObjectId, name: &TableName, schema: &TableSchema) -> Record {
    put(object, KIND_TABLE, |out| write_table(out, name, schema))
}

fn put_view(name: &TableName, view: &View) -> Record {
    put(view.id, KIND_VIEW, |out| write_view(out, name, view))
}

fn put_tree(name: &TableName, tree: &KvTree) -> Record {
    put(tree.id(), kind_of(tree), |out| write_tree(out, name, tree))
}

fn kind_of(tree: &KvTree) -> u8 {
    if tree.overflow().is_some() { KIND_TREE_WITH_OVERFLOW } else { KIND_TREE }
}

fn tree_loaded(tree: ObjectId, loaded: &Loaded) -> Record {
    let mut payload = Writer::default();
    std::iter::once(&loaded.tree).chain(&loaded.overflow).for_each(|loaded| payload.u64(loaded.root.0));
    Record { tag: RecordTag::TREE_LOADED, object: tree, payload: payload.into_bytes() }
}

fn write_tree(out: &mut Writer, name: &TableName, tree: &KvTree) {
    out.text(&name.schema);
    out.text(&name.table);
    tree.shape().write(out);
    if let Some(overflow) = tree.overflow() {
        out.u64(overflow.id().0);
    }
}

fn write_table(out: &mut Writer, name: &TableName, schema: &TableSchema) {
    out.text(&name.schema);
    out.text(&name.table);
    schema.write(out);
}

fn write_view(out: &mut Writer, name: &TableName, view: &View) {
    out.text(&name.schema);
    out.text(&name.table);
    out.text(&view.sql);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::LoadedPages;
    use crate::{KeyType, KvOptions, ValueType};
    use sinter_column::ColumnSchema;
    use sinter_exec::LogicalType;

    /// A block of hex below a heading of docs/format/catalog.md, in one line.
    fn example(heading: &str, index: usize) -> String {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/format/catalog.md");
        let text = std::fs::read_to_string(page).unwrap();
        let section = text.split(&format!("\n## {heading}\n")).nth(1).unwrap_or_else(|| panic!("no heading {heading}"));
        let block = section.split("```hex\n").nth(index + 1).unwrap().split("```").next().unwrap();
        let bytes = block.lines().flat_map(|line| line.split("  ").next().unwrap_or_default().split_whitespace());
        bytes.collect::<Vec<_>>().join(" ")
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_format_page_shows_what_is_written() {
        let column = |name: &str, ty, nullable| ColumnSchema {
            name: name.to_owned(),
            ty,
            nullable,
            compression: None,
            default: None,
        };
        let columns = vec![column("a", LogicalType::Int32, false), column("b", LogicalType::Utf8, true)];
        let name = TableName::new(DEFAULT_SCHEMA, "t");
        let schema = TableSchema::new(columns);
        let record = put_table(ObjectId(1), &name, &schema);
        let mut catalog = Catalog::default();
        catalog.apply(&record, CommitNumber(1), &Arc::new(Store::memory()), OnCorruption::Error).unwrap();
        assert_eq!(hex(&catalog.page_bytes(&|_| PageId(1))), example("The catalog page", 0));
        assert_eq!(hex(&record.payload), example("Log record 16: catalog put", 0));
        let (name, shape) = (TableName::new(DEFAULT_SCHEMA, "s"), KvOptions::default().shape().unwrap());
        let tree = KvTree::create(ObjectId(2), shape, Some(ObjectId(3)), &Arc::new(Store::memory()));
        let record = put_tree(&name, &tree);
        assert_eq!(hex(&record.payload), example("Log record 16: catalog put", 1));
        let pages = |root| LoadedPages { root: PageId(root), pages: Arc::new([]) };
        let record = tree_loaded(ObjectId(2), &Loaded { tree: pages(300), overflow: Some(pages(301)) });
        assert_eq!(hex(&record.payload), example("Log record 23: tree loaded", 0));
        assert_eq!(record.tag.0, 23);
    }

    #[test]
    fn a_tree_comes_back_from_the_catalog_page() {
        let store = Arc::new(Store::memory());
        for (key, value, codec) in [("u32", "bytes", "auto"), ("i64", "fixed(16)", "simd_for"), ("str", "none", "auto")]
        {
            let (key, value) = (KeyType::by_name(key).unwrap(), ValueType::by_name(value).unwrap());
            let options = KvOptions { key: Some(key), value: Some(value), ..KvOptions::default() };
            let options = options.with_codec(codec).unwrap();
            let several = KvOptions { duplicates: Some(true), ..options }.shape();
            for shape in [options.shape(), several].into_iter().flatten() {
                let mut out = Writer::default();
                shape.write(&mut out);
                let bytes = out.into_bytes();
                assert_eq!(KvShape::read(&mut Reader::new("a shape", &bytes)).unwrap(), shape);
                for len in 0..bytes.len() {
                    assert!(KvShape::read(&mut Reader::new("a shape", &bytes[..len])).is_err());
                }
            }
        }
        let mut record = put_tree(
            &TableName::new(DEFAULT_SCHEMA, "s"),
            &KvTree::create(ObjectId(2), KvOptions::default().shape().unwrap(), Some(ObjectId(3)), &store),
        );
        let codec_at = record.payload.len() - 17;
        record.payload[codec_at] = 99;
        let error =
            Catalog::default().apply(&record, CommitNumber(1), &store, OnCorruption::Error).unwrap_err().to_string();
        assert!(error.contains("key codec 99 is unknown"), "{error}");
    }

    #[test]
    fn bytes_behind_a_record_are_damage() {
        let store = Arc::new(Store::memory());
        let name = TableName::new(DEFAULT_SCHEMA, "t");
        let mut record = put_table(ObjectId(1), &name, &TableSchema::new(Vec::new()));
        record.payload.push(0);
        let error =
            Catalog::default().apply(&record, CommitNumber(1), &store, OnCorruption::Error).unwrap_err().to_string();
        assert!(error.contains("1 bytes follow"), "{error}");
    }
}
