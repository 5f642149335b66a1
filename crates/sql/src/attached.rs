//! Databases beside the one that was opened, under names of their own: ATTACH.
//!
//! All sessions of a database share what is attached to it. A query may name tables of all of them. A statement changes one,
//! that of its target, in a commit of its own: two files have no common log, so no transaction over several statements
//! changes an attached database, and what a transaction has read there is not validated at its commit. What it sees there
//! stays as it was when it began.
//!
//! A view belongs to its file, and that may be opened by itself, or attached under any name. So a view reads only its own
//! database, and is stored without its name (`view_query`), as in SQLite.

use crate::catalog::{Catalog, TableName};
use crate::kv::TreesSeen;
use crate::session::CATALOG_NAME;
use crate::statement::{find, normal};
use crate::transaction::Reads;
use crate::{Database, Error, Result};
use datafusion::sql::sqlparser::ast;
use sinter_column::ColumnTable;
use sinter_storage::{Store, Synchronous};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is visible of a database at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Visible {
    pub(crate) catalog: Arc<Catalog>,
    /// The state of its key-value trees.
    pub(crate) trees: TreesSeen,
}

/// The attached databases at one moment, by name.
pub(crate) type AttachedDatabases = BTreeMap<Arc<str>, Visible>;

/// What one statement sees.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// What queries call the database of `catalog`.
    pub(crate) name: Arc<str>,
    /// The tables that it may change.
    pub(crate) catalog: Arc<Catalog>,
    /// The state of its key-value trees.
    pub(crate) trees: TreesSeen,
    /// Where it notes what it reads of them.
    pub(crate) reads: Reads,
    /// The other databases.
    pub(crate) attached: AttachedDatabases,
}

impl Seen {
    /// The table of that name in what it may change, or an error that lists near ones; noted as a read of its definition.
    pub(crate) fn find(&self, name: &TableName) -> Result<&Arc<ColumnTable>> {
        self.reads.name(name);
        let table = find(&self.catalog, name)?;
        self.reads.definition(table.id());
        Ok(table)
    }

    /// The database of that name.
    pub(crate) fn catalog_of(&self, database: &str) -> Option<&Arc<Catalog>> {
        if database == &*self.name {
            return Some(&self.catalog);
        }
        self.attached.get(database).map(|attached| &attached.catalog)
    }

    /// The state of the key-value trees of that database.
    pub(crate) fn trees_of(&self, database: &str) -> Option<&TreesSeen> {
        if database == &*self.name {
            return Some(&self.trees);
        }
        self.attached.get(database).map(|attached| &attached.trees)
    }
}

/// The databases that are attached to one.
#[derive(Debug, Default)]
pub(crate) struct Attached(Mutex<BTreeMap<Arc<str>, Arc<Database>>>);

impl Attached {
    fn all(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Arc<Database>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a database may get this name; `own` must not use it for a schema.
    ///
    /// # Errors
    /// [`Error::Sql`]: the name is taken.
    pub(crate) fn check_free(&self, name: &str, own: &Catalog) -> Result<()> {
        let reserved = [CATALOG_NAME, "information_schema"];
        match self.all().contains_key(name) || own.has_schema(name) || reserved.contains(&name) {
            true => Err(taken(name)),
            false => Ok(()),
        }
    }

    /// Gives a database a name. Its commits promise what those of `own` do.
    ///
    /// # Errors
    /// [`Error::Sql`]: the name is taken. Those of [`Store::set_synchronous`].
    pub(crate) fn attach(&self, name: &str, database: Arc<Database>, own: &Store) -> Result<()> {
        match self.all().entry(name.into()) {
            Entry::Occupied(_) => Err(taken(name)),
            Entry::Vacant(free) => {
                // Under the lock: a SET that did not find it here is over, or comes to it yet.
                set_synchronous(&database, own.synchronous())?;
                free.insert(database);
                Ok(())
            }
        }
    }

    /// Sets what the commits of `own` promise, and of all that is attached to it.
    ///
    /// # Errors
    /// Those of [`Store::set_synchronous`], the first; the others have the new level all the same.
    pub(crate) fn set_synchronous(&self, own: &Store, level: Synchronous) -> Result<()> {
        let all = self.all();
        let of_own = own.set_synchronous(level).map_err(Error::from);
        let attached: Vec<Result<()>> = all.values().map(|database| set_synchronous(database, level)).collect();
        of_own.and(attached.into_iter().collect())
    }

    /// Takes a database away.
    pub(crate) fn detach(&self, name: &str) -> Option<Arc<Database>> {
        self.all().remove(name)
    }

    /// The database of that name.
    pub(crate) fn get(&self, name: &str) -> Option<Arc<Database>> {
        self.all().get(name).cloned()
    }

    /// Each with its name, in order.
    pub(crate) fn list(&self) -> Vec<(Arc<str>, Arc<Database>)> {
        self.all().iter().map(|(name, database)| (Arc::clone(name), Arc::clone(database))).collect()
    }

    /// What the others hold now, as of their last durable commits.
    pub(crate) fn visible(&self) -> AttachedDatabases {
        self.all().iter().map(|(name, database)| (Arc::clone(name), database.visible())).collect()
    }

    /// Takes the name of an attached database off a name that begins with it, and returns that. `parts` is how many parts
    /// the name of such an object has at most without it; a schema of that name has precedence.
    pub(crate) fn take_from(&self, name: &mut ast::ObjectName, parts: usize, own: &Catalog) -> Option<Arc<str>> {
        let first = normal(name.0.first()?.as_ident()?);
        let is_short = name.0.len() <= parts;
        if name.0.len() < 2 || (is_short && parts > 1 && own.has_schema(&first)) {
            return None;
        }
        let found = self.all().get_key_value(first.as_str()).map(|(name, _)| Arc::clone(name))?;
        name.0.remove(0);
        Some(found)
    }
}

/// Who only reads promises nothing.
fn set_synchronous(database: &Database, level: Synchronous) -> Result<()> {
    match database.check_writable() {
        Ok(()) => Ok(database.store().set_synchronous(level)?),
        Err(_) => Ok(()),
    }
}

fn taken(name: &str) -> Error {
    Error::Sql(format!("the name '{name}' is taken by a database or schema; choose another with ATTACH ... AS name"))
}
