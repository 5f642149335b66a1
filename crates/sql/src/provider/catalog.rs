//! The catalog that one statement sees: tables, registered data, files by name.

use super::{ColumnTableProvider, FileTable};
use crate::catalog::{Catalog, DEFAULT_SCHEMA, TableName};
use crate::files::{Format, ReadOptions, expand, sniff};
use crate::parse::path_of;
use crate::progress::Notes;
use async_trait::async_trait;
use datafusion::catalog::{CatalogProvider, CatalogProviderList, SchemaProvider, TableProvider};
use datafusion::common::{DataFusionError, Result};
use sinter_column::Snapshot;
use sinter_storage::ObjectId;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// The schema under which UPDATE and DELETE find tables with their row ids, by object number. Not a name that a user can
/// define.
pub(crate) const ROW_ID_SCHEMA: &str = "\u{1}row ids";

/// The statement's view: each table's snapshot is taken once, however often the statement names it.
#[derive(Debug)]
pub(crate) struct StatementCatalog {
    name: &'static str,
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    catalog: Arc<Catalog>,
    registered: BTreeMap<String, Arc<dyn TableProvider>>,
    notes: Notes,
    snapshots: Mutex<BTreeMap<ObjectId, Arc<Snapshot>>>,
}

impl StatementCatalog {
    pub(crate) fn new(
        name: &'static str,
        catalog: Arc<Catalog>,
        registered: BTreeMap<String, Arc<dyn TableProvider>>,
        notes: Notes,
    ) -> StatementCatalog {
        StatementCatalog { name, inner: Arc::new(Inner { catalog, registered, notes, snapshots: Mutex::default() }) }
    }
}

impl Inner {
    fn column_table(&self, name: &TableName, with_row_id: bool) -> Result<Option<Arc<dyn TableProvider>>> {
        let Some(table) = self.catalog.table(name) else { return Ok(None) };
        let mut snapshots = self.snapshots.lock().unwrap_or_else(PoisonError::into_inner);
        let snapshot = snapshots.entry(table.id()).or_insert_with(|| table.snapshot());
        Ok(Some(Arc::new(ColumnTableProvider::new(Arc::clone(snapshot), with_row_id)?)))
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
        (name == self.name).then(|| Arc::new(Schemas(Arc::clone(&self.inner))) as Arc<dyn CatalogProvider>)
    }
}

#[derive(Debug)]
struct Schemas(Arc<Inner>);

impl CatalogProvider for Schemas {
    fn schema_names(&self) -> Vec<String> {
        let mut names: BTreeSet<String> = self.0.catalog.tables.keys().map(|name| name.schema.clone()).collect();
        names.insert(DEFAULT_SCHEMA.to_owned());
        names.into_iter().collect()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let known = name == ROW_ID_SCHEMA || self.schema_names().iter().any(|known| known == name);
        known.then(|| {
            Arc::new(Tables { inner: Arc::clone(&self.0), schema: name.to_owned() }) as Arc<dyn SchemaProvider>
        })
    }
}

#[derive(Debug)]
struct Tables {
    inner: Arc<Inner>,
    schema: String,
}

impl Tables {
    fn name(&self, table: &str) -> TableName {
        TableName { schema: self.schema.clone(), table: table.to_owned() }
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
            .filter(|name| name.schema == self.schema)
            .map(|name| name.table.clone())
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
        if self.schema != DEFAULT_SCHEMA {
            return Ok(None);
        }
        match self.inner.registered.get(name) {
            Some(table) => Ok(Some(Arc::clone(table))),
            None => self.inner.file(name),
        }
    }

    fn table_exist(&self, name: &str) -> bool {
        self.inner.catalog.table(&self.name(name)).is_some()
            || (self.schema == DEFAULT_SCHEMA
                && (self.inner.registered.contains_key(name) || Format::from_path(Path::new(name)).is_some()))
    }
}
