//! CREATE INDEX and DROP INDEX, and the indexes by which PRIMARY KEY and UNIQUE are held to.

use super::definitions::Defined;
use super::{done, normal, table_name};
use crate::batches::Outcome;
use crate::catalog::TableName;
use crate::index::can_be_key;
use crate::kv::KvShape;
use crate::progress::Notes;
use crate::transaction::Transaction;
use crate::{Database, Error, Result, Session};
use datafusion::sql::sqlparser::ast;
use sinter_column::{Alteration, Index, IndexRule, TableSchema};
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
    pub(super) fn of_column(column: &str, constraint: Option<&ast::Ident>, rule: IndexRule) -> Declared {
        Declared { name: constraint.map(normal), columns: vec![column.to_owned()], rule }
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
        for column in &columns {
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
        let tree = transaction.create_tree(database, named(&name), KvShape::of_index(rule.is_unique()))?;
        Ok(Index { name, columns, rule, tree: tree.id() })
    }

    /// Makes the index of a table that is there, and fills it.
    ///
    /// # Errors
    /// As [`Declared::make`]; [`Error::Data`]: rows stand against it.
    pub(super) fn add(self, transaction: &mut Transaction, database: &Database, name: &TableName) -> Result<()> {
        let mut table = transaction.find(name)?;
        for column in self.primary_columns().to_vec() {
            table = transaction.alter(&table, Alteration::SetNullable { column, nullable: false })?;
        }
        let index = self.make(transaction, database, name, table.schema())?;
        let table = transaction.alter(&table, Alteration::AddIndex { index: index.clone() })?;
        transaction.fill_index(&table, &index)
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
        declared.clone().add(transaction, &session.database, &table)?;
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
            match Defined::of(transaction, name) {
                Some(Defined::Index) => remove(transaction, name)?,
                None if if_exists => notes.add(format!("there is no index '{name}'")),
                None => return Err(Error::Sql(format!("there is no index '{name}'; SHOW INDEXES lists them"))),
                Some(_) => return Err(Error::Sql(format!("'{name}' is no index; SHOW INDEXES lists them"))),
            }
        }
        Ok(done("DROP INDEX", None, &notes))
    })
}

/// Takes an index that is there from its table.
///
/// # Errors
/// [`Error::Damaged`]: no table has it.
pub(super) fn remove(transaction: &mut Transaction, name: &TableName) -> Result<()> {
    let catalog = transaction.catalog();
    if let Some((_, table)) = catalog.indexed_table(name) {
        transaction.reads().definition(table.id());
        transaction.alter(table, Alteration::DropIndex { name: name.table.to_string() })?;
    }
    transaction.drop(name)
}
