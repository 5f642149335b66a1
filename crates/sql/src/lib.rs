//! SinterDB's SQL: statements, catalog, and the lowering of DataFusion's plans into our engine.
//!
//! This is the only room that knows DataFusion. It parses what DataFusion's front end refuses ([`parse()`]), rewrites
//! UPDATE and DELETE into queries for row ids before anything is optimised (DataFusion's own way loses predicates),
//! and hands what the engine can run to it (`lower`).
//!
//! Start with [`Database`] and [`Session`]; then `statement`, one file a kind; then `lower`.

mod attached;
mod batches;
mod catalog;
mod check;
mod checked;
mod coercion;
mod correlation;
mod database;
mod dependent_join;
mod error;
mod exists_as_value;
mod foreign;
mod foreign_aggregate;
mod functions;
mod guards;
mod index;
mod inspect;
mod interval_multiples;
mod keeper;
mod kv;
mod lower;
mod not_in;
mod now;
mod numbering;
mod one_zero;
mod only_row;
mod optimize;
mod own_names;
mod parse;
mod physical;
mod planner;
mod progress;
mod provider;
mod quantiles;
mod query_memory;
mod regex_once;
mod scalar_subquery;
mod session;
mod set_operations;
mod shared_columns;
mod simplify;
mod spill_file;
mod statement;
mod times_of_text;
mod transaction;
mod undecided;
mod uuid;
mod value;
mod view_query;
mod walk;
mod wide_sums;

pub use batches::{Batches, Outcome, Query};
pub use check::{Finding, Report, check};
pub use database::{Database, DatabaseOptions, OnCorruption, THREADS_MAX};
pub use error::{Error, Result};
pub use inspect::{Inspection, inspect};
pub use kv::{Condition, Find, KeyType, KvChanges, KvCursor, KvHandle, KvKey, KvLoad, KvOptions, KvSums, ValueType};
pub use parse::{Statement, parse};
pub use progress::Progress;
pub use session::{Interrupt, Session};
pub use sinter_storage::Synchronous;
pub use value::Value;
