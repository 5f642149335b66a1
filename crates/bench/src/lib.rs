//! Benchmarks: data generators here, comparisons with other Rust libraries beside them.
//!
//! SQL engines are compared from Python (`benchmarks/`), where each has a wheel; this room feeds them. Nothing depends
//! on it, so nobody compiles it by accident.

mod accounts;
pub mod beyond_memory;
pub mod commits;
mod csv_file;
pub mod cycles;
mod machine;
pub mod page_wise;
mod parquet_file;
mod perf;
pub mod planning;
pub mod stalls;
pub mod stores;
pub mod strings;
pub mod throttled;
mod timed_disk;
pub mod tpch;
pub mod trees;

pub use csv_file::write_csv;
pub use machine::Invocation;
pub use parquet_file::write_parquet;

/// Why a benchmark could not be made.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;
