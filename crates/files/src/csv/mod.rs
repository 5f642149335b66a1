//! CSV and its relatives: fields between delimiters, perhaps in quotes, a row per line.
//!
//! `dialect` finds out how a file is written, `header` whether its first row holds names, `sniff` its types; `split`
//! cuts bytes into fields, `rows` does so batch by batch with line numbers, `scan` turns batches of fields into Arrow,
//! `write` is the way back.
//!
//! Two rules make NULL and the empty string survive the way out and back. An empty field without quotes is NULL, one in
//! quotes is the empty string; and a text that means NULL does so only without quotes, except in columns of numbers,
//! dates and the like, where an empty string could not stand.

mod dialect;
mod header;
mod rows;
mod scan;
mod sniff;
mod split;
mod write;

pub(crate) use sniff::sniff;
pub(crate) use write::CsvSink;
