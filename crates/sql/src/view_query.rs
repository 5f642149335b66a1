//! A view's query as it is kept: without the name of its database.
//!
//! The view's file may be opened by itself, or attached under any name. So `o.t` in a view of the database o becomes
//! `public.t`, and `o.s.t` becomes `s.t`; the schema stays, because a bare name could be that of a CTE. Columns and
//! wildcards that name such a table as it was written, `o.t.a` and `o.t.*`, follow it. Whether `o.t.a` is one of them, or
//! a field in column t of something else that is called o, is told by the FROM clauses around it, from the innermost
//! outwards, as the SQL library looks for columns.

use crate::attached::Seen;
use crate::catalog::{DEFAULT_SCHEMA, TableName};
use crate::parse::walk_mut;
use crate::session::CATALOG_NAME;
use crate::statement::normal;
use crate::{Error, Result};
use datafusion::sql::sqlparser::ast::{self, VisitorMut};
use std::iter::once;
use std::ops::ControlFlow;

/// A column's table has a name of at most so many parts: database, schema, table.
const QUALIFIER_PARTS_MAX: usize = 3;

/// Takes the name of the view's own database, `own`, off all names in its query.
///
/// # Errors
/// [`Error::Sql`] where it names a table of another database.
pub(crate) fn name_within(seen: &Seen, own: &str, view: &TableName, query: &mut impl ast::VisitMut) -> Result<()> {
    let mut names = Names { seen, own, view, scopes: Vec::new() };
    walk_mut(query, &mut names)
}

/// The rewriting, at one place of the query.
struct Names<'a> {
    seen: &'a Seen,
    own: &'a str,
    view: &'a TableName,
    /// What the queries around this place have in their FROM clauses, the innermost query's last.
    scopes: Vec<Vec<Relation>>,
}

/// Something in a FROM clause.
struct Relation {
    /// The alias, or the name as it was written.
    called: Vec<String>,
    /// Schema and table, where it was written with the name of its database.
    now: Option<Vec<ast::Ident>>,
}

impl Relation {
    /// Whether a column with this qualifier could be one of its columns: where one of the two has fewer parts, those that
    /// are not there are not compared.
    fn answers_to(&self, qualifier: &[String]) -> bool {
        self.called.iter().rev().zip(qualifier.iter().rev()).all(|(one, other)| one == other)
    }
}

impl Names<'_> {
    /// What the name of a table is within its database, where it begins with that.
    fn within(&self, name: &ast::ObjectName) -> Result<Option<Vec<ast::Ident>>> {
        let Some(parts) = identifiers(name) else { return Ok(None) };
        let has_schema = |database: &str, schema: &ast::Ident| {
            self.seen.catalog_of(database).is_some_and(|catalog| catalog.has_schema(&normal(schema)))
        };
        let names_database = |part: &ast::Ident| self.seen.catalog_of(&normal(part)).is_some();
        // As the tables of a statement are looked up: `sinter.o.t` is one of the attached database o as well.
        let (database, schema, table) = match &parts[..] {
            [first, table] if !has_schema(self.own, first) && names_database(first) => (first, None, table),
            [first, second, table]
                if normal(first) == CATALOG_NAME && !has_schema(CATALOG_NAME, second) && names_database(second) =>
            {
                (second, None, table)
            }
            [first, schema, table] => (first, Some(schema), table),
            _ => return Ok(None),
        };
        let database = normal(database);
        if database != self.own {
            return Err(of_another(self.view, name, &database));
        }
        let schema = schema.cloned().unwrap_or_else(|| ast::Ident::new(DEFAULT_SCHEMA));
        Ok(Some(vec![schema, table.clone()]))
    }

    /// What the FROM clauses of a query's SELECTs name, without those of queries within.
    fn relations_of_query(&self, body: &ast::SetExpr, found: &mut Vec<Relation>) -> Result<()> {
        match body {
            ast::SetExpr::Select(select) => select.from.iter().try_for_each(|from| self.relations_of(from, found)),
            ast::SetExpr::SetOperation { left, right, .. } => {
                self.relations_of_query(left, found)?;
                self.relations_of_query(right, found)
            }
            _ => Ok(()),
        }
    }

    fn relations_of(&self, from: &ast::TableWithJoins, found: &mut Vec<Relation>) -> Result<()> {
        for factor in once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)) {
            match factor {
                ast::TableFactor::Table { alias: Some(alias), .. }
                | ast::TableFactor::Derived { alias: Some(alias), .. }
                | ast::TableFactor::NestedJoin { alias: Some(alias), .. }
                | ast::TableFactor::UNNEST { alias: Some(alias), .. }
                | ast::TableFactor::Function { alias: Some(alias), .. } => {
                    found.push(Relation { called: vec![normal(&alias.name)], now: None });
                }
                ast::TableFactor::Table { name, alias: None, .. } => {
                    let called = identifiers(name).unwrap_or_default().iter().map(normal).collect();
                    found.push(Relation { called, now: self.within(name)? });
                }
                ast::TableFactor::NestedJoin { table_with_joins, alias: None } => {
                    self.relations_of(table_with_joins, found)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A column, and fields in it.
    fn column(&self, parts: &mut Vec<ast::Ident>) {
        let names: Vec<String> = parts.iter().take(QUALIFIER_PARTS_MAX).map(normal).collect();
        let longest = QUALIFIER_PARTS_MAX.min(parts.len().saturating_sub(1));
        for scope in self.scopes.iter().rev() {
            for part_count in (2..=longest).rev() {
                let mut relations = scope.iter().filter(|relation| relation.answers_to(&names[..part_count]));
                if let Some(now) = relations.find_map(|relation| relation.now.as_ref()) {
                    parts.splice(..part_count, now.iter().cloned());
                    return;
                }
            }
            if longest > 0 && scope.iter().any(|relation| relation.answers_to(&names[..1])) {
                return;
            }
        }
    }

    /// The table of a wildcard, whose name has to be the same in all its parts.
    fn wildcard(&self, name: &mut ast::ObjectName) {
        let written: Option<Vec<String>> = identifiers(name).map(|parts| parts.iter().map(normal).collect());
        let relation = self.scopes.last().and_then(|scope| {
            scope.iter().find(|relation| written.as_ref() == Some(&relation.called) && relation.now.is_some())
        });
        if let Some(now) = relation.and_then(|relation| relation.now.clone()) {
            *name = now.into();
        }
    }
}

impl VisitorMut for Names<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<Error> {
        let mut scope = Vec::new();
        if let Err(error) = self.relations_of_query(&query.body, &mut scope) {
            return ControlFlow::Break(error);
        }
        self.scopes.push(scope);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut ast::Query) -> ControlFlow<Error> {
        self.scopes.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<Error> {
        for item in &mut select.projection {
            if let ast::SelectItem::QualifiedWildcard(ast::SelectItemQualifiedWildcardKind::ObjectName(name), _) = item
            {
                self.wildcard(name);
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, relation: &mut ast::ObjectName) -> ControlFlow<Error> {
        match self.within(relation) {
            Ok(None) => ControlFlow::Continue(()),
            Ok(Some(now)) => {
                *relation = now.into();
                ControlFlow::Continue(())
            }
            Err(error) => ControlFlow::Break(error),
        }
    }

    fn pre_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<Error> {
        match expr {
            ast::Expr::CompoundIdentifier(parts) => self.column(parts),
            // `o.t.a[1]`: the parser keeps a name in pieces where something else than a name follows.
            ast::Expr::CompoundFieldAccess { root, access_chain } => {
                let ast::Expr::Identifier(first) = root.as_ref() else { return ControlFlow::Continue(()) };
                let names = access_chain.iter().map_while(|access| match access {
                    ast::AccessExpr::Dot(ast::Expr::Identifier(name)) => Some(name),
                    _ => None,
                });
                let mut parts: Vec<ast::Ident> = once(first).chain(names).cloned().collect();
                let part_count = parts.len();
                self.column(&mut parts);
                **root = ast::Expr::Identifier(parts.remove(0));
                let rest = parts.into_iter().map(|name| ast::AccessExpr::Dot(ast::Expr::Identifier(name)));
                access_chain.splice(..part_count - 1, rest);
            }
            ast::Expr::Function(ast::Function { args: ast::FunctionArguments::List(list), .. }) => {
                for arg in &mut list.args {
                    if let ast::FunctionArg::Unnamed(ast::FunctionArgExpr::QualifiedWildcard(name)) = arg {
                        self.wildcard(name);
                    }
                }
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

fn identifiers(name: &ast::ObjectName) -> Option<Vec<ast::Ident>> {
    name.0.iter().map(|part| part.as_ident().cloned()).collect()
}

fn of_another(view: &TableName, table: &ast::ObjectName, database: &str) -> Error {
    Error::Sql(format!(
        "view '{view}' names '{table}', which is of the database '{database}'; a view reads its own database only, and is \
         kept without its name, because its file may be opened alone or under another one: copy the table (CREATE TABLE \
         ... AS SELECT), and name it without a database"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::parse_one;
    use crate::{Database, DatabaseOptions, Session};

    /// The database `sinter` has a schema s, and the attached database `o` a schema q; both have t.
    fn session() -> Session {
        let session = Database::open(None, DatabaseOptions::in_memory()).unwrap().session();
        let table = "AS SELECT 1 AS a, 2 AS b, [3, 4] AS l, named_struct('f', 5) AS n";
        for sql in [
            "ATTACH ':memory:' AS o",
            "CREATE SCHEMA s",
            "CREATE SCHEMA o.q",
            &format!("CREATE TABLE t {table}"),
            &format!("CREATE TABLE s.t {table}"),
            &format!("CREATE TABLE o.t {table}"),
            &format!("CREATE TABLE o.q.t {table}"),
            "CREATE TABLE o.x AS SELECT 1 AS b, named_struct('a', 6) AS t",
        ] {
            session.query(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
        session
    }

    /// The text that is kept of a view in the database `own`, once it was planned, and read.
    fn kept(session: &Session, own: &str, query: &str) -> String {
        let view = if own == CATALOG_NAME { "v".to_owned() } else { format!("{own}.v") };
        let run = |sql: &str| session.query(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
        run(&format!("CREATE OR REPLACE VIEW {view} AS {query}"));
        run(&format!("SELECT * FROM {view}"));
        let seen = session.readable().unwrap();
        let text = &seen.catalog_of(own).unwrap().views[&TableName::new(DEFAULT_SCHEMA, "v")].sql;
        let query = text.strip_prefix("SELECT * FROM (").and_then(|rest| rest.rsplit_once(") AS \"v\" ("));
        query.unwrap_or_else(|| panic!("{text}")).0.to_owned()
    }

    #[test]
    fn a_view_is_kept_without_the_name_of_its_database() {
        let session = session();
        for (own, query, expected) in [
            ("sinter", "SELECT t.a FROM t, s.t AS x", "SELECT t.a FROM t, s.t AS x"),
            ("sinter", "SELECT x.a FROM SINTER.s.t AS x, sinter.t", "SELECT x.a FROM s.t AS x, public.t"),
            (
                "sinter",
                "SELECT table_name FROM information_schema.tables",
                "SELECT table_name FROM information_schema.tables",
            ),
            ("o", "SELECT t.a FROM \"o\".q.t", "SELECT t.a FROM q.t"),
            ("o", "SELECT q.t.a FROM q.t", "SELECT q.t.a FROM q.t"),
            (
                "o",
                "WITH t AS (SELECT 1 AS b) SELECT y.a, t.b FROM o.t AS y, t",
                "WITH t AS (SELECT 1 AS b) SELECT y.a, t.b FROM public.t AS y, t",
            ),
        ] {
            assert_eq!(kept(&session, own, query), expected);
        }
    }

    #[test]
    fn columns_and_wildcards_follow_their_tables() {
        let session = session();
        for (own, query, expected) in [
            ("sinter", "SELECT sinter.t.a FROM sinter.t", "SELECT public.t.a FROM public.t"),
            ("sinter", "SELECT sinter.public.t.* FROM sinter.public.t", "SELECT public.t.* FROM public.t"),
            ("sinter", "SELECT public.t.a FROM sinter.public.t", "SELECT public.t.a FROM public.t"),
            ("o", "SELECT O.T.a FROM o.t", "SELECT public.t.a FROM public.t"),
            ("o", "SELECT o.t.* FROM o.t", "SELECT public.t.* FROM public.t"),
            ("o", "SELECT count(o.t.*) AS c FROM o.t", "SELECT count(public.t.*) AS c FROM public.t"),
            (
                "o",
                "SELECT o.t.a, o.q.t.b FROM o.t JOIN o.q.t ON o.t.a = o.q.t.a WHERE o.t.b > 0 ORDER BY o.q.t.b",
                "SELECT public.t.a, q.t.b FROM public.t JOIN q.t ON public.t.a = q.t.a WHERE public.t.b > 0 ORDER BY q.t.b",
            ),
            (
                "o",
                "SELECT x.b FROM (o.t JOIN o.public.x AS x ON x.b = o.t.a)",
                "SELECT x.b FROM (public.t JOIN public.x AS x ON x.b = public.t.a)",
            ),
            // Parts of a value.
            ("o", "SELECT o.t.l[1] AS l FROM o.t", "SELECT public.t.l[1] AS l FROM public.t"),
            ("o", "SELECT o.public.t.n['f'] AS n FROM o.public.t", "SELECT public.t.n['f'] AS n FROM public.t"),
            ("o", "SELECT o.t.n.f AS n, t.n.f AS m FROM o.t", "SELECT public.t.n.f AS n, t.n.f AS m FROM public.t"),
            // A field of column t in what is called o here.
            ("o", "SELECT o.t.a AS a FROM o.x AS o", "SELECT o.t.a AS a FROM public.x AS o"),
            (
                "o",
                "SELECT o.t.l FROM o.t WHERE EXISTS (SELECT o.t.a AS a FROM o.x AS o)",
                "SELECT public.t.l FROM public.t WHERE EXISTS (SELECT o.t.a AS a FROM public.x AS o)",
            ),
            // Of the query around, whatever the one within calls its own.
            (
                "o",
                "SELECT a FROM o.t WHERE EXISTS (SELECT y.b FROM o.x AS y WHERE y.b = o.t.a)",
                "SELECT a FROM public.t WHERE EXISTS (SELECT y.b FROM public.x AS y WHERE y.b = public.t.a)",
            ),
            (
                "o",
                "SELECT a FROM o.t UNION ALL SELECT q.t.b FROM o.q.t",
                "SELECT a FROM public.t UNION ALL SELECT q.t.b FROM q.t",
            ),
        ] {
            assert_eq!(kept(&session, own, query), expected);
        }
    }

    /// A name loses its database once.
    #[test]
    fn what_no_query_could_name_is_no_view() {
        let session = session();
        for query in ["SELECT * FROM o.o.t", "SELECT o.t.a FROM o.q.t", "SELECT o.t.a FROM o.t AS y"] {
            let error = session.query(&format!("CREATE VIEW o.v AS {query}"), &[]);
            assert!(error.is_err() && session.query(query, &[]).is_err(), "{query}");
        }
    }

    /// As builds stored them that kept the names of databases.
    #[test]
    fn a_view_that_names_another_database_is_told_so() {
        let session = session();
        for (own, query, database) in [
            ("o", "SELECT a FROM sinter.public.t", "sinter"),
            ("o", "SELECT a FROM sinter.t", "sinter"),
            ("sinter", "SELECT a FROM t WHERE a IN (SELECT b FROM o.t)", "o"),
            ("sinter", "SELECT a FROM sinter.o.t", "o"),
            ("sinter", "SELECT a FROM gone.s.t", "gone"),
        ] {
            let mut sql = parse_one(query).unwrap();
            let view = TableName::new(DEFAULT_SCHEMA, "v");
            let error = name_within(&session.readable().unwrap(), own, &view, &mut sql).unwrap_err().to_string();
            assert!(error.contains(&format!("which is of the database '{database}'")), "{query}: {error}");
        }
    }
}
