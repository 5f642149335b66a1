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
//! Start with [`Database`], then [`Connection`]. Results are Arrow record batches.

mod config;
mod connection;
mod database;
mod error;
mod value;

pub use arrow;
pub use config::{Config, Synchronous};
pub use connection::{Batches, Connection, Interrupt, Outcome, Progress, Query, Statement};
pub use database::Database;
pub use error::{Error, Result};
pub use value::Value;
