//! Databases beside the one that was opened, under names of their own: ATTACH.
//!
//! All sessions of a database share what is attached to it. A query may name tables of all of them. A statement changes one,
//! that of its target, in a commit of its own: two files have no common log, so no transaction over several statements
//! changes an attached database, and what a transaction has read there is not validated at its commit. What it sees there
//! stays as it was when it began.
//!
//! A view belongs to its file, and that may be opened by itself, or attached under any name. So a view reads only its own
//! database, and is stored without its name, as in SQLite.

use crate::catalog::{Catalog, DEFAULT_SCHEMA, TableName};
use crate::session::CATALOG_NAME;
use crate::statement::{find, normal};
use crate::transaction::Reads;
use crate::{Database, Error, Result};
use datafusion::sql::sqlparser::ast;
use sinter_column::ColumnTable;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The attached databases at one moment, by name.
pub(crate) type AttachedCatalogs = BTreeMap<Arc<str>, Arc<Catalog>>;

/// What one statement sees.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// What queries call the database of `catalog`.
    pub(crate) name: Arc<str>,
    /// The tables that it may change.
    pub(crate) catalog: Arc<Catalog>,
    /// Where it notes what it reads of them.
    pub(crate) reads: Reads,
    /// The other databases.
    pub(crate) attached: AttachedCatalogs,
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
        if database == &*self.name { Some(&self.catalog) } else { self.attached.get(database) }
    }

    /// Takes the name of a view's own database off the names of tables in its query. What remains has a schema: a bare
    /// name could be that of a CTE. The names of columns may stay, since their databases are not compared with anything.
    ///
    /// # Errors
    /// [`Error::Sql`] where it names a table of another database.
    pub(crate) fn name_within(&self, own: &str, view: &TableName, query: &mut impl ast::VisitMut) -> Result<()> {
        let flow = ast::visit_relations_mut(query, |name| {
            let as_written = name.to_string();
            while let Some(database) = self.database_in(name, own) {
                if database != own {
                    return ControlFlow::Break(of_another(view, &as_written, &database));
                }
                match &mut name.0[..] {
                    [first, _table] => *first = ast::ObjectNamePart::Identifier(ast::Ident::new(DEFAULT_SCHEMA)),
                    _ => drop(name.0.remove(0)),
                }
            }
            ControlFlow::Continue(())
        });
        flow.break_value().map_or(Ok(()), Err)
    }

    /// The database in the name of a table that stands in the database `own`, where there is one in it.
    fn database_in(&self, name: &ast::ObjectName, own: &str) -> Option<String> {
        let first = normal(name.0.first()?.as_ident()?);
        let is_schema = || self.catalog_of(own).is_some_and(|catalog| catalog.has_schema(&first));
        let is_database = match name.0.len() {
            0 | 1 => false,
            2 => !is_schema() && self.catalog_of(&first).is_some(),
            _ => true,
        };
        is_database.then_some(first)
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

    /// Gives a database a name.
    ///
    /// # Errors
    /// [`Error::Sql`]: the name is taken.
    pub(crate) fn attach(&self, name: &str, database: Arc<Database>) -> Result<()> {
        match self.all().entry(name.into()) {
            Entry::Occupied(_) => Err(taken(name)),
            Entry::Vacant(free) => {
                free.insert(database);
                Ok(())
            }
        }
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
    pub(crate) fn catalogs(&self) -> AttachedCatalogs {
        self.all().iter().map(|(name, database)| (Arc::clone(name), database.catalog())).collect()
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

fn of_another(view: &TableName, table: &str, database: &str) -> Error {
    Error::Sql(format!(
        "view '{view}' names '{table}', which is of the database '{database}'; a view reads its own database only, and is \
         kept without its name, because its file may be opened alone or under another one: copy the table (CREATE TABLE \
         ... AS SELECT), and name it without a database"
    ))
}

fn taken(name: &str) -> Error {
    Error::Sql(format!("the name '{name}' is taken by a database or schema; choose another with ATTACH ... AS name"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse_one;
    use sinter_storage::ObjectId;

    fn with_schema(schema: &str) -> Arc<Catalog> {
        Arc::new(Catalog { schemas: BTreeMap::from([(schema.into(), ObjectId(1))]), ..Catalog::default() })
    }

    /// The text of a view in the database `own`, while `sinter` has a schema s and the attached `o` a schema q.
    fn within(own: &str, query: &str) -> String {
        let attached = BTreeMap::from([("o".into(), with_schema("q"))]);
        let seen = Seen { name: "sinter".into(), catalog: with_schema("s"), reads: Reads::default(), attached };
        let mut sql = parse_one(query).unwrap();
        match seen.name_within(own, &TableName::new(DEFAULT_SCHEMA, "v"), &mut sql) {
            Ok(()) => sql.to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_view_is_kept_without_the_name_of_its_database() {
        for (own, query, kept) in [
            ("sinter", "SELECT a FROM t, s.t, \"x.csv\"", "SELECT a FROM t, s.t, \"x.csv\""),
            ("sinter", "SELECT a FROM SINTER.s.t, sinter.t", "SELECT a FROM s.t, public.t"),
            ("sinter", "SELECT a FROM information_schema.tables", "SELECT a FROM information_schema.tables"),
            (
                "o",
                "SELECT a FROM o.t JOIN o.public.t AS x ON x.b = o.t.a",
                "SELECT a FROM public.t JOIN public.t AS x ON x.b = o.t.a",
            ),
            ("o", "SELECT a FROM \"o\".q.t, q.t", "SELECT a FROM q.t, q.t"),
            (
                "o",
                "WITH t AS (SELECT 1 AS b) SELECT * FROM o.t, t",
                "WITH t AS (SELECT 1 AS b) SELECT * FROM public.t, t",
            ),
        ] {
            assert_eq!(within(own, query), kept);
        }
    }

    /// As builds stored them that kept the names of databases.
    #[test]
    fn a_view_that_names_another_database_is_told_so() {
        for (own, query, database) in [
            ("o", "SELECT a FROM sinter.public.t", "sinter"),
            ("o", "SELECT a FROM sinter.t", "sinter"),
            ("sinter", "SELECT a FROM t WHERE a IN (SELECT b FROM o.t)", "o"),
            ("sinter", "SELECT a FROM sinter.o.t", "o"),
            ("sinter", "SELECT a FROM gone.s.t", "gone"),
        ] {
            let error = within(own, query);
            assert!(error.contains(&format!("which is of the database '{database}'")), "{query}: {error}");
        }
    }
}
