//! CREATE INDEX and DROP INDEX, and the indexes by which PRIMARY KEY and UNIQUE are held to.

use super::definitions::Defined;
use super::insert::pull;
use super::names::quoted;
use super::{done, normal, table_name};
use crate::attached::Seen;
use crate::batches::Outcome;
use crate::catalog::TableName;
use crate::index::{KeyMaker, can_be_key};
use crate::kv::KvShape;
use crate::parse::parse_one;
use crate::progress::Notes;
use crate::provider::{ROW_ID, ROW_ID_SCHEMA};
use crate::transaction::{Reads, Transaction};
use crate::{Database, Error, Result, Session};
use arrow::array::AsArray;
use arrow::datatypes::UInt64Type;
use datafusion::sql::sqlparser::ast;
use sinter_column::{Alteration, ColumnTable, Index, IndexRule, TableSchema};
use std::sync::Arc;

/// An index as a statement declares it.
#[derive(Clone, Debug)]
pub(super) struct Declared {
    name: Option<String>,
    columns: Vec<String>,
    rule: IndexRule,
}

impl Declared {
    /// `PRIMARY KEY (a, b)` and `UNIQUE (a, b)`; `None` for constraints that are no index.
    ///
    /// # Errors
    /// [`Error::Sql`]: it says something that is not supported.
    pub(super) fn of_constraint(constraint: &ast::TableConstraint) -> Result<Option<Declared>> {
        let (name, index_name, columns, options, characteristics, nulls, rule) = match constraint {
            ast::TableConstraint::PrimaryKey(key) => {
                let nulls = ast::NullsDistinctOption::None;
                let ast::PrimaryKeyConstraint { name, index_name, columns, index_options, characteristics, .. } = key;
                (name, index_name, columns, index_options, characteristics, nulls, IndexRule::Primary)
            }
            ast::TableConstraint::Unique(key) => {
                let ast::UniqueConstraint { name, index_name, columns, index_options, characteristics, .. } = key;
                (name, index_name, columns, index_options, characteristics, key.nulls_distinct, IndexRule::Unique)
            }
            _ => return Ok(None),
        };
        let is_deferred = characteristics.as_ref().is_some_and(|of| of.deferrable == Some(true));
        if is_deferred || !options.is_empty() || nulls == ast::NullsDistinctOption::NotDistinct {
            return Err(Error::Sql(format!(
                "constraint not supported yet: {constraint}; leave out what is behind the columns"
            )));
        }
        let name = name.as_ref().or(index_name.as_ref()).map(normal);
        Ok(Some(Declared { name, columns: columns_of(columns)?, rule }))
    }

    /// `a INT PRIMARY KEY` and `a INT UNIQUE`.
    ///
    /// # Errors
    /// As [`Declared::of_constraint`]; `None` for what is no index.
    pub(super) fn of_column(column: &ast::ColumnDef, option: &ast::ColumnOptionDef) -> Result<Option<Declared>> {
        let mut constraint = match &option.option {
            ast::ColumnOption::PrimaryKey(key) => ast::TableConstraint::PrimaryKey(key.clone()),
            ast::ColumnOption::Unique(key) => ast::TableConstraint::Unique(key.clone()),
            _ => return Ok(None),
        };
        if let ast::TableConstraint::PrimaryKey(ast::PrimaryKeyConstraint { name, columns, .. })
        | ast::TableConstraint::Unique(ast::UniqueConstraint { name, columns, .. }) = &mut constraint
        {
            (*name, *columns) = (option.name.clone(), vec![column.name.clone().into()]);
        }
        Declared::of_constraint(&constraint)
    }

    /// The columns of a primary key.
    pub(super) fn primary_columns(&self) -> &[String] {
        if self.rule == IndexRule::Primary { &self.columns } else { &[] }
    }

    /// The index with an empty tree, in the transaction's catalog.
    ///
    /// # Errors
    /// [`Error::Sql`]: the name is taken, or a column is not there, or of a type that has no order.
    pub(super) fn make(
        self,
        transaction: &mut Transaction,
        database: &Database,
        table: &TableName,
        schema: &TableSchema,
    ) -> Result<Index> {
        let Declared { name, columns, rule } = self;
        for (place, column) in columns.iter().enumerate() {
            if columns[..place].contains(column) {
                return Err(Error::Sql(format!("column '{column}' is in an index of table '{table}' twice")));
            }
            let Some(position) = schema.index_of(column) else {
                return Err(Error::Sql(format!(
                    "table '{table}' has no column '{column}', of which there is to be an index"
                )));
            };
            let ty = &schema.columns[position].ty;
            if !can_be_key(ty) {
                return Err(Error::Sql(format!("column '{column}' is {ty}, of which there can be no index")));
            }
        }
        let named = |name: &str| TableName { schema: Arc::clone(&table.schema), table: name.into() };
        let is_free = |name: &str| *name != *table.table && Defined::of(transaction, &named(name)).is_none();
        let name = name.unwrap_or_else(|| {
            let stem = match rule {
                IndexRule::Primary => format!("{}_pkey", table.table),
                IndexRule::Unique => format!("{}_{}_key", table.table, columns.join("_")),
                IndexRule::Any => format!("{}_{}_idx", table.table, columns.join("_")),
            };
            let others = (1..).map(|number| format!("{stem}{number}"));
            std::iter::once(stem.clone()).chain(others).find(|name| is_free(name)).unwrap_or(stem)
        });
        if *name == *table.table {
            return Err(Error::Sql(format!(
                "'{name}' is taken: it is the name of the table; give the index another one"
            )));
        }
        let tree = transaction.create_tree(database, named(&name), KvShape::of_index(rule.is_unique()))?;
        Ok(Index { name, columns, rule, tree: tree.id() })
    }

    /// Makes the index of a table that is there, and fills it.
    ///
    /// # Errors
    /// As [`Declared::make`]; [`Error::Data`]: rows stand against it.
    pub(super) fn add(self, session: &Session, transaction: &mut Transaction, name: &TableName) -> Result<()> {
        let mut table = transaction.find(name)?;
        for column in self.primary_columns().to_vec() {
            table = transaction.alter(&table, Alteration::SetNullable { column, nullable: false })?;
        }
        let index = self.make(transaction, &session.database, name, table.schema())?;
        let columns = index.columns.clone();
        transaction.add_index(&table, index.clone(), |transaction, build| {
            // Others may change rows meanwhile: the commit sees to that.
            let seen = Seen { reads: Reads::default(), ..session.seen_by(transaction) };
            let of_index = |behind: &str| -> String {
                columns.iter().map(|column| format!(", {}{behind}", quoted(column))).collect()
            };
            let sql = format!(
                "SELECT {row_id}{} FROM {}.{}.{} ORDER BY {}, {row_id}",
                of_index(""),
                quoted(&seen.name),
                quoted(ROW_ID_SCHEMA),
                quoted(&table.id().0.to_string()),
                &of_index(" NULLS FIRST")[2..],
                row_id = quoted(ROW_ID),
            );
            let state = session.statement_state(seen, Notes::default());
            let planned = session.plan(&state, parse_one(&sql)?)?;
            let mut keys = KeyMaker::new(table.schema(), &index)?;
            pull(session, planned, &index.name, |batch| {
                let row_ids = batch.columns().first().and_then(|ids| ids.as_primitive_opt::<UInt64Type>());
                let row_ids = row_ids.ok_or_else(|| Error::Internal("rows for an index have no ids".to_owned()))?;
                build.put_rows(&mut keys, row_ids, &batch.columns()[1..])
            })
        })
    }
}

/// Plain columns, in ascending order.
fn columns_of(columns: &[ast::IndexColumn]) -> Result<Vec<String>> {
    let column = |column: &ast::IndexColumn| match column {
        ast::IndexColumn {
            column: ast::OrderByExpr { expr: ast::Expr::Identifier(name), options, with_fill: None },
            operator_class: None,
        } if options.asc != Some(false) && options.nulls_first.is_none() => Ok(normal(name)),
        other => Err(Error::Sql(format!("an index is of columns, in ascending order; '{other}' is not supported"))),
    };
    columns.iter().map(column).collect()
}

/// CREATE [UNIQUE] INDEX.
pub(super) fn create(session: &Session, create: &ast::CreateIndex) -> Result<Outcome> {
    let unsupported = [
        (!matches!(&create.using, None | Some(ast::IndexType::BTree)), "USING anything but BTREE"),
        (create.concurrently, "CONCURRENTLY"),
        (!create.include.is_empty(), "INCLUDE"),
        (create.nulls_distinct == Some(false), "NULLS NOT DISTINCT"),
        (create.predicate.is_some(), "WHERE"),
        (!(create.with.is_empty() && create.index_options.is_empty() && create.alter_options.is_empty()), "options"),
    ];
    if let Some((_, what)) = unsupported.iter().find(|(is_said, _)| *is_said) {
        return Err(Error::Sql(format!("CREATE INDEX with {what} is not supported yet; leave it out")));
    }
    let name = match create.name.as_ref().map(table_name_alone) {
        None => None,
        Some(Some(name)) => Some(name),
        Some(None) => {
            return Err(Error::Sql("an index is in the schema of its table; write its name without one".to_owned()));
        }
    };
    let table = table_name(&create.table_name)?;
    let rule = if create.unique { IndexRule::Unique } else { IndexRule::Any };
    let declared = Declared { name, columns: columns_of(&create.columns)?, rule };
    session.change(|transaction| {
        let notes = Notes::default();
        if let Some(name) = declared.name.as_ref().filter(|_| create.if_not_exists) {
            let full = TableName { schema: Arc::clone(&table.schema), table: name.as_str().into() };
            if Defined::of(transaction, &full) == Some(Defined::Index) {
                notes.add(format!("index '{full}' exists already"));
                return Ok(done("CREATE INDEX", None, &notes));
            }
        }
        declared.clone().add(session, transaction, &table)?;
        Ok(done("CREATE INDEX", None, &notes))
    })
}

fn table_name_alone(name: &ast::ObjectName) -> Option<String> {
    match &name.0[..] {
        [part] => part.as_ident().map(normal),
        _ => None,
    }
}

/// DROP INDEX.
pub(super) fn drop(session: &Session, names: &[ast::ObjectName], if_exists: bool) -> Result<Outcome> {
    let names = names.iter().map(table_name).collect::<Result<Vec<_>>>()?;
    session.change(|transaction| {
        let notes = Notes::default();
        for name in &names {
            let defined = Defined::of(transaction, name);
            let catalog = transaction.catalog();
            match (defined, catalog.index(name)) {
                (_, Some((_, table, index))) => remove(transaction, table, index)?,
                // Of no table.
                (Some(Defined::Index), None) => transaction.drop(name)?,
                (None, None) if if_exists => notes.add(format!("there is no index '{name}'")),
                (None, None) => {
                    return Err(Error::Sql(format!("there is no index '{name}'; SHOW INDEXES lists them")));
                }
                (Some(_), None) => return Err(Error::Sql(format!("'{name}' is no index; SHOW INDEXES lists them"))),
            }
        }
        Ok(done("DROP INDEX", None, &notes))
    })
}

/// Takes an index from its table.
///
/// # Errors
/// [`Error::Unavailable`]: nothing may be changed.
pub(super) fn remove(transaction: &mut Transaction, table: &Arc<ColumnTable>, index: &Index) -> Result<()> {
    transaction.drop_index(table, &index.name)?;
    let catalog = transaction.catalog();
    match catalog.tree_by_id(index.tree) {
        Some((name, _)) => transaction.drop(name),
        None => Ok(()),
    }
}
