//! Files in and out: CSV, JSON, Parquet and Arrow, read into record batches and written from them.
//!
//! Reading has three steps. [`expand`] turns a pattern into paths. [`sniff`] looks at every file, without keeping its
//! rows, and settles one schema for all of them: [`Files`]. [`Files::read`] then yields record batches of that schema,
//! of all columns or of those asked for. [`open`] and [`open_projected`] do the last two steps in one call.
//!
//! ```text
//! "data/*.csv" -- expand --> paths -- sniff --> Files (schema, notes) -- read --> Reader (batches, skipped rows)
//! ```
//!
//! Writing has one door, [`create`]. The [`Writer`] fills a file with a temporary name beside the target and renames it
//! in [`Writer::finish`], so that a COPY that fails leaves nothing half done.
//!
//! Whatever a file holds, batches carry only the Arrow types that tables hold (see `normalise`). An error names the
//! file, the line, the column, the value and a remedy ([`FileError`]). This room knows Arrow, not SQL.

mod contain;
mod csv;
mod error;
mod expand;
mod format;
mod input;
mod ipc;
mod json;
mod normalise;
mod parquet;
mod read_options;
mod reader;
mod selection;
mod skipped;
mod sniff;
mod sql_type;
#[cfg(test)]
mod tests;
mod value;
mod write_options;
mod writer;

pub use error::{FileError, Result, RowError};
pub use expand::expand;
pub use format::{Compression, Format};
pub use read_options::{ReadOptions, SampleSize};
pub use reader::{Reader, open, open_projected};
pub use skipped::{OnError, Skipped};
pub use sniff::{Files, sniff};
pub use write_options::WriteOptions;
pub use writer::{Writer, create};
