//! JSON: one object per line, an array of objects, or objects one after the other.
//!
//! `cursor` walks the text of one value, `records` cuts a stream into values with their lines, `shape` collects what
//! the objects of a sample look like, `build` fills columns from objects, `scan` makes batches of them, `write` is the
//! way back.
//!
//! Objects become structs and arrays lists. Where the values of a key are of several kinds the column is VARCHAR: of a
//! string its text, of anything else its JSON. A missing key is NULL. Strings that are all dates or timestamps in ISO
//! 8601 become such; strings that look like numbers stay strings.

mod build;
mod cursor;
mod records;
mod scan;
mod shape;
mod sniff;
mod write;

pub(crate) use build::text_column;
pub(crate) use sniff::sniff;
pub(crate) use write::{JsonSink, value_printer};
