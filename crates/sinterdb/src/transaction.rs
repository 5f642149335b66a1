//! Statements that happen together or not at all.

use crate::{Connection, Key, Kv, Query, Result, Value};
use arrow::array::RecordBatch;

/// A transaction: it sees one state and its own changes, and nobody else sees those before [`Transaction::commit`].
/// Dropping it rolls it back.
///
/// Transactions are serializable: those that commit could have run one after the other. One that could not fails at its
/// commit with [`crate::Error::Conflict`] and is to run again; [`crate::Database::transaction`] does that. A statement that
/// fails leaves nothing behind, and the transaction can then only be rolled back, as a whole or to a savepoint.
#[derive(Debug)]
pub struct Transaction {
    connection: Connection,
    is_over: bool,
}

impl Transaction {
    pub(crate) fn begin(connection: Connection, is_read_only: bool) -> Result<Transaction> {
        connection.begin(is_read_only)?;
        Ok(Transaction { connection, is_over: false })
    }

    /// As [`Connection::execute`].
    ///
    /// # Errors
    /// [`crate::Error`]; the transaction can then only be rolled back.
    pub fn execute(&self, sql: &str, params: &[Value]) -> Result<u64> {
        self.connection.execute(sql, params)
    }

    /// As [`Connection::execute_many`].
    ///
    /// # Errors
    /// As [`Transaction::execute`].
    pub fn execute_many(&self, sql: &str, rows: &[Vec<Value>]) -> Result<u64> {
        self.connection.execute_many(sql, rows)
    }

    /// As [`Connection::sql`].
    ///
    /// # Errors
    /// As [`Transaction::execute`].
    pub fn sql(&self, sql: &str) -> Result<Query> {
        self.connection.sql(sql)
    }

    /// As [`Connection::query`].
    ///
    /// # Errors
    /// As [`Transaction::execute`].
    pub fn query(&self, sql: &str, params: &[Value]) -> Result<Query> {
        self.connection.query(sql, params)
    }

    /// As [`Connection::append`].
    ///
    /// # Errors
    /// As [`Transaction::execute`].
    pub fn append(&self, table: &str, batches: &mut dyn Iterator<Item = Result<RecordBatch>>) -> Result<u64> {
        self.connection.append(table, batches)
    }

    /// As [`Connection::kv`]; what is done with it is part of the transaction.
    ///
    /// # Errors
    /// As [`Connection::kv`].
    pub fn kv<K: Key + ?Sized>(&self, name: &str) -> Result<Kv<K>> {
        self.connection.kv(name)
    }

    /// Makes all of it durable and visible.
    ///
    /// # Errors
    /// [`crate::Error::Conflict`]: run it again from its beginning. Others as a statement's. Nothing has happened then.
    pub fn commit(mut self) -> Result<()> {
        self.is_over = true;
        self.connection.commit()
    }

    /// Leaves nothing of it.
    pub fn roll_back(self) {}
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if !self.is_over {
            // Fails only where a statement has ended it already.
            let _ = self.connection.roll_back();
        }
    }
}
