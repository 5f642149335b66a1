//! SinterDB: an embedded database that keeps everything compressed and works on the compressed form.
//!
//! ```
//! use sinterdb::{Database, params};
//!
//! let db = Database::memory()?;
//! let conn = db.connect();
//! conn.execute("CREATE TABLE t (a INT, b VARCHAR)", &[])?;
//! conn.execute("INSERT INTO t VALUES (?, ?), (2, 'two')", params![1, "one"])?;
//! let batches = conn.sql("SELECT count(*) AS n FROM t WHERE a > 1")?.collect()?;
//! assert_eq!(batches[0].num_rows(), 1);
//! # Ok::<(), sinterdb::Error>(())
//! ```
//!
//! Start with [`Database`], then [`Connection`]. Results are Arrow record batches. Applications depend on this room
//! alone, so the walls behind it can move.

mod any_kv;
mod check;
mod config;
mod connection;
mod database;
mod kv;
mod params;
mod transaction;

pub use any_kv::{AnyCursor, AnyKv, AnyLoad};
pub use arrow;
pub use check::{check, check_with, inspect};
pub use config::Config;
pub use connection::Connection;
pub use database::Database;
pub use kv::{Cursor, Entries, Entry, Key, Kv, Load};
pub use sinter_sql::{
    Batches, Condition, Error, Find, Finding, Inspection, Interrupt, KeyType, KvChanges, KvKey, KvOptions, KvSums,
    OnCorruption, Outcome, Progress, Query, Report, Result, Statement, Synchronous, Value, ValueType,
};
pub use transaction::Transaction;
