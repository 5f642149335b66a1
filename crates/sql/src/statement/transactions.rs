//! BEGIN, COMMIT, ROLLBACK and savepoints.

use super::done;
use super::names::normal;
use crate::batches::Outcome;
use crate::progress::Notes;
use crate::session::no_transaction;
use crate::transaction::Transaction;
use crate::{Result, Session};
use datafusion::sql::sqlparser::ast;

fn ok(tag: &str) -> Result<Outcome> {
    Ok(done(tag, None, &Notes::default()))
}

/// Whatever isolation level is asked for, transactions are serializable.
pub(super) fn begin(session: &Session, modes: &[ast::TransactionMode]) -> Result<Outcome> {
    let read_only = ast::TransactionMode::AccessMode(ast::TransactionAccessMode::ReadOnly);
    session.begin(modes.contains(&read_only))?;
    ok("BEGIN")
}

pub(super) fn commit(session: &Session) -> Result<Outcome> {
    session.commit()?;
    ok("COMMIT")
}

pub(super) fn roll_back(session: &Session, savepoint: Option<&ast::Ident>) -> Result<Outcome> {
    match savepoint {
        Some(name) => in_transaction(session, |transaction| transaction.roll_back_to(&normal(name)))?,
        None => session.roll_back()?,
    }
    ok("ROLLBACK")
}

pub(super) fn savepoint(session: &Session, name: &ast::Ident) -> Result<Outcome> {
    in_transaction(session, |transaction| transaction.savepoint(normal(name)))?;
    ok("SAVEPOINT")
}

pub(super) fn release(session: &Session, name: &ast::Ident) -> Result<Outcome> {
    in_transaction(session, |transaction| transaction.release(&normal(name)))?;
    ok("RELEASE")
}

fn in_transaction(session: &Session, body: impl FnOnce(&mut Transaction) -> Result<()>) -> Result<()> {
    body(session.transaction().as_mut().ok_or_else(no_transaction)?)
}
