//! What a statement changes rows of: a table, or a key-value tree, whose rows are its keys and values.

use super::on_conflict::{self, Meeting};
use super::trees::TreeInsert;
use crate::attached::Seen;
use crate::catalog::TableName;
use crate::kv::TreeRows;
use crate::transaction::Transaction;
use crate::{Error, Result};
use arrow::array::RecordBatch;
use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast;
use sinter_column::{Change, ColumnTable, TableSchema};
use std::sync::Arc;

/// What rows are changed of.
pub(super) enum Target {
    Table(Arc<ColumnTable>),
    Tree(TreeRows),
}

impl Target {
    /// What has that name in a transaction.
    ///
    /// # Errors
    /// [`Error::Sql`]: nothing that can be changed.
    pub(super) fn find(transaction: &Transaction, name: &TableName) -> Result<Target> {
        match transaction.find_tree(name) {
            Some(tree) => Ok(Target::Tree(TreeRows::new(name, &tree))),
            None => transaction.find(name).map(Target::Table),
        }
    }

    /// What a statement sees under that name.
    ///
    /// # Errors
    /// As [`Target::find`].
    pub(super) fn seen(seen: &Seen, name: &TableName) -> Result<Target> {
        match seen.catalog.kv_tree(name) {
            Some(tree) => {
                seen.reads.name(name);
                Ok(Target::Tree(TreeRows::new(name, tree)))
            }
            None => seen.find(name).cloned().map(Target::Table),
        }
    }

    pub(super) fn name(&self) -> &str {
        match self {
            Target::Table(table) => table.name(),
            Target::Tree(tree) => tree.name(),
        }
    }

    pub(super) fn schema(&self) -> &Arc<TableSchema> {
        match self {
            Target::Table(table) => table.schema(),
            Target::Tree(tree) => tree.schema(),
        }
    }

    /// The table, for a statement that changes no trees.
    ///
    /// # Errors
    /// [`Error::Sql`]: it is a tree.
    pub(super) fn table(&self, statement: &str) -> Result<&Arc<ColumnTable>> {
        match self {
            Target::Table(table) => Ok(table),
            Target::Tree(tree) => Err(Error::Sql(format!(
                "'{}' is a key-value tree, which {statement} does not change; INSERT ... ON CONFLICT, UPDATE and DELETE do",
                tree.name()
            ))),
        }
    }
}

/// Where the rows of an INSERT go.
pub(super) enum Receiver {
    Table(Box<Change>),
    /// Into a table in which they may meet others; and how many were inserted or changed.
    Meeting(Box<Meeting>, u64),
    Tree(Box<TreeInsert>),
}

impl Receiver {
    /// For rows that are simply there afterwards.
    pub(super) fn new(target: &Target, transaction: &mut Transaction, threads: usize) -> Result<Receiver> {
        match target {
            Target::Table(table) => Ok(Receiver::Table(Box::new(transaction.change(table, threads)?))),
            Target::Tree(tree) => {
                transaction.check_changeable()?;
                Ok(Receiver::Tree(Box::new(TreeInsert::new(tree))))
            }
        }
    }

    /// For those of an INSERT, which may say what becomes of rows that meet others; `state` is for its expressions.
    ///
    /// # Errors
    /// [`Error::Sql`]: it says so in words that are not supported.
    pub(super) fn of_insert(
        insert: &ast::Insert,
        name: &TableName,
        target: &Target,
        transaction: &mut Transaction,
        threads: usize,
        state: impl FnOnce(&Transaction) -> SessionState,
    ) -> Result<Receiver> {
        if !on_conflict::is_said(insert)? {
            return Receiver::new(target, transaction, threads);
        }
        let state = state(transaction);
        match target {
            Target::Table(table) => {
                let meeting = Meeting::new(insert, name, table, transaction, &state, threads)?;
                Ok(Receiver::Meeting(Box::new(meeting), 0))
            }
            Target::Tree(tree) => {
                transaction.check_changeable()?;
                Ok(Receiver::Tree(Box::new(TreeInsert::meeting(insert, name, tree, &state)?)))
            }
        }
    }

    /// Takes rows in the shape of the target.
    ///
    /// # Errors
    /// [`Error::Data`]: a row breaks a rule. It cannot be read, or not be written.
    pub(super) fn take(&mut self, transaction: &mut Transaction, rows: &RecordBatch) -> Result<()> {
        match self {
            Receiver::Table(change) => Ok(change.insert(rows)?),
            Receiver::Meeting(meeting, count) => {
                *count += meeting.insert(transaction, rows)?;
                Ok(())
            }
            Receiver::Tree(insert) => insert.insert(transaction, rows),
        }
    }

    /// How many rows were inserted or changed so far.
    pub(super) fn row_count(&self) -> u64 {
        match self {
            Receiver::Table(change) => change.rows_inserted(),
            Receiver::Meeting(_, count) => *count,
            Receiver::Tree(insert) => insert.row_count(),
        }
    }

    /// There are no more; how many were inserted or changed.
    ///
    /// # Errors
    /// As [`Receiver::take`].
    pub(super) fn finish(self, transaction: &mut Transaction) -> Result<u64> {
        let rows = self.row_count();
        if let Receiver::Table(change) = self {
            transaction.put(change.finish()?)?;
        }
        Ok(rows)
    }
}
