//! The catalog that one statement sees: tables, registered data, files by name.

use super::{FileTable, Reading, Stored, StoredProvider};
use crate::attached::Seen;
use crate::catalog::{Catalog, DEFAULT_SCHEMA, TableName, View};
use crate::index::IndexesSeen;
use crate::kv::{KvTree, TreeTable};
use crate::parse::{parse_one, path_of, with_rows_of_floats};
use crate::progress::Notes;
use crate::session::CATALOG_NAME;
use crate::shared_columns::planned;
use crate::transaction::Reads;
use crate::view_query::name_within;
use async_trait::async_trait;
use datafusion::catalog::information_schema::{INFORMATION_SCHEMA, InformationSchemaProvider};
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableFunction, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::ViewTable;
use datafusion::execution::SessionState;
use datafusion::logical_expr::TableType;
use sinter_files::{Format, ReadOptions, expand, sniff};
use sinter_storage::ObjectId;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The schema under which UPDATE and DELETE find tables with their row ids, by object number. Not a name that a user can
/// define.
pub(crate) const ROW_ID_SCHEMA: &str = "\u{1}row ids";

/// Views over views, at most: one that names itself by a detour has no end.
const VIEW_DEPTH_MAX: usize = 64;

/// The statement's view.
#[derive(Clone, Debug)]
pub(crate) struct StatementCatalog {
    databases: Arc<Databases>,
    /// How many views deep the names are.
    depth: usize,
    /// It is asked for all that there is, by `information_schema`: a view that cannot be read must not hide the others.
    passes_over_broken_views: bool,
}

#[derive(Debug)]
struct Databases {
    seen: Seen,
    registered: BTreeMap<String, Arc<dyn TableProvider>>,
    notes: Notes,
    reading: Reading,
    /// Plans views; `None` where there are none.
    planner: Option<SessionState>,
    table_functions: HashMap<String, Arc<TableFunction>>,
    /// Views that were planned, by their databases and names: each is once in a statement, however often it is named.
    views: Mutex<BTreeMap<(String, TableName), Arc<dyn TableProvider>>>,
}

impl StatementCatalog {
    /// `state` is to plan views when they are named.
    pub(crate) fn new(
        seen: Seen,
        registered: BTreeMap<String, Arc<dyn TableProvider>>,
        notes: Notes,
        reading: Reading,
        state: &SessionState,
    ) -> StatementCatalog {
        let catalogs = seen.attached.values().map(|attached| &attached.catalog).chain([&seen.catalog]);
        let has_views = catalogs.into_iter().any(|catalog| !catalog.views.is_empty());
        let planner = has_views.then(|| state.clone());
        let table_functions = state.table_functions().clone();
        let views = Mutex::default();
        let databases = Databases { seen, registered, notes, reading, planner, table_functions, views };
        StatementCatalog { databases: Arc::new(databases), depth: 0, passes_over_broken_views: false }
    }

    /// What there is, as tables.
    fn information_schema(&self) -> InformationSchemaProvider {
        let all = StatementCatalog { passes_over_broken_views: true, ..self.clone() };
        InformationSchemaProvider::new(Arc::new(all)).with_table_functions(self.databases.table_functions.clone())
    }

    /// What the statement may change.
    pub(crate) fn tables(&self) -> &Arc<Catalog> {
        &self.databases.seen.catalog
    }

    /// Where a statement notes what it reads of the tables that it may change.
    pub(crate) fn own_reads(&self) -> Reads {
        self.databases.seen.reads.clone()
    }

    /// The same of any database: what may not be changed takes no part in the validation of a transaction.
    fn reads(&self, database: &str) -> Reads {
        let seen = &self.databases.seen;
        if *seen.name == *database { seen.reads.clone() } else { Reads::default() }
    }

    fn catalog_of(&self, database: &str) -> Option<Arc<Catalog>> {
        self.databases.seen.catalog_of(database).cloned()
    }
}

impl Databases {
    fn planned_views(&self) -> MutexGuard<'_, BTreeMap<(String, TableName), Arc<dyn TableProvider>>> {
        self.views.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A name that looks like a file and is no table.
    fn file(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        let (path, given) = path_of(name);
        let failed = |error| DataFusionError::from(crate::Error::from(error));
        let mut options = ReadOptions::default();
        for (option, value) in given {
            options.set(option, value).map_err(failed)?;
        }
        if options.format.is_none() && Format::from_path(Path::new(path)).is_none() {
            return Ok(None);
        }
        let files = expand(path).and_then(|paths| sniff(&paths, &options, None)).map_err(failed)?;
        Ok(Some(Arc::new(FileTable::new(files, path.to_owned(), self.notes.clone()))))
    }
}

impl CatalogProviderList for StatementCatalog {
    fn register_catalog(&self, _name: String, _catalog: Arc<dyn CatalogProvider>) -> Option<Arc<dyn CatalogProvider>> {
        None
    }

    fn catalog_names(&self) -> Vec<String> {
        let seen = &self.databases.seen;
        seen.attached.keys().chain([&seen.name]).map(ToString::to_string).collect()
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        let catalog = self.catalog_of(name)?;
        Some(Arc::new(Schemas { of: self.clone(), database: name.to_owned(), catalog }))
    }
}

/// One database of a statement.
#[derive(Debug)]
struct Schemas {
    of: StatementCatalog,
    database: String,
    catalog: Arc<Catalog>,
}

impl CatalogProvider for Schemas {
    fn schema_names(&self) -> Vec<String> {
        self.of.reads(&self.database).everything();
        let mut names: Vec<String> = self.catalog.schemas.keys().map(ToString::to_string).collect();
        names.push(DEFAULT_SCHEMA.to_owned());
        names
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        if name == INFORMATION_SCHEMA {
            return Some(Arc::new(self.of.information_schema()));
        }
        let tables = |database: &str, catalog: &Arc<Catalog>, schema: &str| -> Arc<dyn SchemaProvider> {
            let (database, schema) = (database.to_owned(), schema.to_owned());
            Arc::new(Tables { of: self.of.clone(), database, catalog: Arc::clone(catalog), schema })
        };
        if name != ROW_ID_SCHEMA && name != DEFAULT_SCHEMA {
            self.of.reads(&self.database).schema(name);
        }
        if name == ROW_ID_SCHEMA || self.catalog.has_schema(name) {
            return Some(tables(&self.database, &self.catalog, name));
        }
        // `o.t` is a table of the attached database o as well.
        let attached = (self.database == CATALOG_NAME).then(|| self.of.catalog_of(name)).flatten()?;
        Some(tables(name, &attached, DEFAULT_SCHEMA))
    }
}

/// One schema of a database.
#[derive(Debug)]
struct Tables {
    of: StatementCatalog,
    database: String,
    catalog: Arc<Catalog>,
    schema: String,
}

impl Tables {
    fn name(&self, table: &str) -> TableName {
        TableName::new(&self.schema, table)
    }

    /// The session's own names are found here too: frames and files.
    fn has_session_names(&self) -> bool {
        self.schema == DEFAULT_SCHEMA && self.database == CATALOG_NAME
    }

    fn reads(&self) -> Reads {
        self.of.reads(&self.database)
    }

    fn column_table(&self, name: &TableName, with_row_id: bool) -> Result<Option<Arc<dyn TableProvider>>> {
        let Some(table) = self.catalog.table(name) else {
            return match self.catalog.damaged.get(name) {
                Some(damaged) => Err(damaged.error(name).into()),
                None => Ok(None),
            };
        };
        // The optimizer may find that no row of it is needed, by how it is defined.
        self.reads().definition(table.id());
        let indexes = IndexesSeen::of(table, &self.catalog, self.of.databases.seen.trees_of(&self.database));
        self.stored(Stored::Table(Arc::clone(table), indexes.map(Arc::new)), with_row_id).map(Some)
    }

    fn stored(&self, stored: Stored, with_row_id: bool) -> Result<Arc<dyn TableProvider>> {
        let reading = self.of.databases.reading.clone();
        Ok(Arc::new(StoredProvider::new(stored, with_row_id, self.reads(), reading)?))
    }

    fn tree(&self, name: &TableName, tree: &Arc<KvTree>) -> Result<Option<Arc<dyn TableProvider>>> {
        self.reads().definition(tree.id());
        let Some(seen) = self.of.databases.seen.trees_of(&self.database) else { return Ok(None) };
        let Some(tree) = TreeTable::new(name.to_string(), tree, seen) else { return Ok(None) };
        self.stored(Stored::Tree(Arc::new(tree)), false).map(Some)
    }

    /// A view as the plan of its query, over the tables of its own database.
    async fn view(&self, name: &TableName, view: &View) -> Result<Option<Arc<dyn TableProvider>>> {
        self.reads().definition(view.id);
        let Some(planner) = &self.of.databases.planner else { return Ok(None) };
        let key = (self.database.clone(), name.clone());
        if let Some(planned) = self.of.databases.planned_views().get(&key) {
            return Ok(Some(Arc::clone(planned)));
        }
        if self.of.depth == VIEW_DEPTH_MAX {
            let what = format!("view '{name}' stands on views {VIEW_DEPTH_MAX} deep; one of them may name itself");
            return Err(crate::Error::Sql(what).into());
        }
        let mut state = planner.clone();
        let deeper = StatementCatalog { depth: self.of.depth + 1, ..self.of.clone() };
        state.register_catalog_list(Arc::new(deeper));
        state.config_mut().options_mut().catalog.default_catalog.clone_from(&self.database);
        let mut sql = parse_one(&view.sql)?;
        // Views that an older build stored may name databases.
        name_within(&self.of.databases.seen, &self.database, name, &mut sql)?;
        with_rows_of_floats(&mut sql);
        let unreadable = |error: crate::Error| crate::Error::Sql(format!("view '{name}' cannot be read: {error}"));
        let plan = Box::pin(planned(&state, sql)).await.map_err(unreadable)?;
        let view: Arc<dyn TableProvider> = Arc::new(ViewTable::new(plan, Some(view.sql.clone())));
        self.of.databases.planned_views().insert(key, Arc::clone(&view));
        Ok(Some(view))
    }
}

#[async_trait]
impl SchemaProvider for Tables {
    fn table_names(&self) -> Vec<String> {
        self.reads().within(&self.schema);
        let Catalog { tables, views, .. } = &*self.catalog;
        let all = tables.keys().chain(views.keys()).chain(self.catalog.kv_trees().map(|(name, _)| name));
        let within = all.filter(|name| *name.schema == *self.schema);
        let mut names: BTreeSet<String> = within.map(|name| name.table.to_string()).collect();
        if self.has_session_names() {
            names.extend(self.of.databases.registered.keys().cloned());
        }
        names.into_iter().collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if self.schema == ROW_ID_SCHEMA {
            let id = name.parse().map(ObjectId).ok();
            let found = id.and_then(|id| self.catalog.table_by_id(id));
            return found.map_or(Ok(None), |(found, _)| self.column_table(found, true));
        }
        let full = self.name(name);
        self.reads().name(&full);
        if let Some(table) = self.column_table(&full, false)? {
            return Ok(Some(table));
        }
        if let Some(view) = self.catalog.views.get(&full) {
            return match self.view(&full, view).await {
                Err(_) if self.of.passes_over_broken_views => Ok(None),
                found => found,
            };
        }
        if let Some(tree) = self.catalog.kv_tree(&full) {
            return self.tree(&full, tree);
        }
        if !self.has_session_names() {
            return Ok(None);
        }
        match self.of.databases.registered.get(name) {
            Some(table) => Ok(Some(Arc::clone(table))),
            None => self.of.databases.file(name),
        }
    }

    /// Without planning a view.
    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        let full = self.name(name);
        self.reads().name(&full);
        if self.catalog.tables.contains_key(&full) || self.catalog.kv_tree(&full).is_some() {
            Ok(Some(TableType::Base))
        } else if self.catalog.views.contains_key(&full) {
            Ok(Some(TableType::View))
        } else {
            Ok(self.table(name).await?.map(|table| table.table_type()))
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        let full = self.name(name);
        self.catalog.table(&full).is_some()
            || self.catalog.damaged.contains_key(&full)
            || self.catalog.views.contains_key(&full)
            || self.catalog.kv_tree(&full).is_some()
            || (self.has_session_names()
                && (self.of.databases.registered.contains_key(name) || Format::from_path(Path::new(name)).is_some()))
    }
}
