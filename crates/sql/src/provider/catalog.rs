//! The catalog that one statement sees: tables, registered data, files by name.

use super::{ColumnTableProvider, FileTable};
use crate::catalog::{Catalog, DEFAULT_SCHEMA, TableName, View};
use crate::files::{Format, ReadOptions, expand, sniff};
use crate::parse::{parse_one, path_of};
use crate::progress::Notes;
use crate::transaction::Reads;
use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::common::{DataFusionError, Result};
use datafusion::datasource::ViewTable;
use datafusion::execution::SessionState;
use sinter_storage::ObjectId;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// The schema under which UPDATE and DELETE find tables with their row ids, by object number. Not a name that a user can
/// define.
pub(crate) const ROW_ID_SCHEMA: &str = "\u{1}row ids";

/// Views over views, at most: one that names itself by a detour has no end.
const VIEW_DEPTH_MAX: usize = 64;

/// The statement's view.
#[derive(Debug)]
pub(crate) struct StatementCatalog {
    name: &'static str,
    inner: Arc<Inner>,
    /// How many views deep the names are.
    depth: usize,
}

#[derive(Debug)]
struct Inner {
    catalog: Arc<Catalog>,
    registered: BTreeMap<String, Arc<dyn TableProvider>>,
    reads: Reads,
    notes: Notes,
    /// Plans views; `None` where there are none.
    planner: Option<SessionState>,
}

impl StatementCatalog {
    pub(crate) fn new(
        name: &'static str,
        catalog: Arc<Catalog>,
        registered: BTreeMap<String, Arc<dyn TableProvider>>,
        reads: Reads,
        notes: Notes,
        planner: Option<SessionState>,
    ) -> StatementCatalog {
        StatementCatalog { name, inner: Arc::new(Inner { catalog, registered, reads, notes, planner }), depth: 0 }
    }

    /// What the statement sees.
    pub(crate) fn tables(&self) -> &Arc<Catalog> {
        &self.inner.catalog
    }
}

impl Inner {
    fn column_table(&self, name: &TableName, with_row_id: bool) -> Result<Option<Arc<dyn TableProvider>>> {
        let Some(table) = self.catalog.table(name) else { return Ok(None) };
        Ok(Some(Arc::new(ColumnTableProvider::new(Arc::clone(table), with_row_id, self.reads.clone())?)))
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
        vec![self.name.to_owned()]
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        (name == self.name).then(|| {
            Arc::new(Schemas { name: self.name, inner: Arc::clone(&self.inner), depth: self.depth })
                as Arc<dyn CatalogProvider>
        })
    }
}

#[derive(Debug)]
struct Schemas {
    name: &'static str,
    inner: Arc<Inner>,
    depth: usize,
}

impl CatalogProvider for Schemas {
    fn schema_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.inner.catalog.schemas.keys().map(ToString::to_string).collect();
        names.push(DEFAULT_SCHEMA.to_owned());
        names
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let known = name == ROW_ID_SCHEMA || self.inner.catalog.has_schema(name);
        known.then(|| {
            let (inner, schema) = (Arc::clone(&self.inner), name.to_owned());
            Arc::new(Tables { catalog: self.name, inner, schema, depth: self.depth }) as Arc<dyn SchemaProvider>
        })
    }
}

#[derive(Debug)]
struct Tables {
    catalog: &'static str,
    inner: Arc<Inner>,
    schema: String,
    depth: usize,
}

impl Tables {
    fn name(&self, table: &str) -> TableName {
        TableName::new(&self.schema, table)
    }

    /// A view as the plan of its query.
    async fn view(&self, name: &TableName, view: &View) -> Result<Option<Arc<dyn TableProvider>>> {
        self.inner.reads.definition(view.id);
        let Some(planner) = &self.inner.planner else { return Ok(None) };
        if self.depth == VIEW_DEPTH_MAX {
            let what = format!("view '{name}' stands on views {VIEW_DEPTH_MAX} deep; one of them may name itself");
            return Err(crate::Error::Sql(what).into());
        }
        let mut state = planner.clone();
        let inner = Arc::clone(&self.inner);
        let deeper = StatementCatalog { name: self.catalog, inner, depth: self.depth + 1 };
        state.register_catalog_list(Arc::new(deeper));
        let sql = parse_one(&view.sql)?;
        let statement = datafusion::sql::parser::Statement::Statement(Box::new(sql));
        let plan = Box::pin(state.statement_to_plan(statement)).await;
        let plan = plan.map_err(|error| {
            crate::Error::Sql(format!("view '{name}' cannot be read: {}", crate::Error::from(error)))
        })?;
        Ok(Some(Arc::new(ViewTable::new(plan, Some(view.sql.clone())))))
    }
}

#[async_trait]
impl SchemaProvider for Tables {
    fn table_names(&self) -> Vec<String> {
        let mut names: BTreeSet<String> = self
            .inner
            .catalog
            .tables
            .keys()
            .chain(self.inner.catalog.views.keys())
            .filter(|name| *name.schema == *self.schema)
            .map(|name| name.table.to_string())
            .collect();
        if self.schema == DEFAULT_SCHEMA {
            names.extend(self.inner.registered.keys().cloned());
        }
        names.into_iter().collect()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if self.schema == ROW_ID_SCHEMA {
            let id = name.parse().map(ObjectId).ok();
            let found = id.and_then(|id| self.inner.catalog.table_by_id(id));
            return found.map_or(Ok(None), |(found, _)| self.inner.column_table(found, true));
        }
        if let Some(table) = self.inner.column_table(&self.name(name), false)? {
            return Ok(Some(table));
        }
        let full = self.name(name);
        if let Some(view) = self.inner.catalog.views.get(&full) {
            return self.view(&full, view).await;
        }
        if self.schema != DEFAULT_SCHEMA {
            return Ok(None);
        }
        match self.inner.registered.get(name) {
            Some(table) => Ok(Some(Arc::clone(table))),
            None => self.inner.file(name),
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        let full = self.name(name);
        self.inner.catalog.table(&full).is_some()
            || self.inner.catalog.views.contains_key(&full)
            || (self.schema == DEFAULT_SCHEMA
                && (self.inner.registered.contains_key(name) || Format::from_path(Path::new(name)).is_some()))
    }
}
