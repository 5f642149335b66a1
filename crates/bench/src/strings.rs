//! Text columns of TPC-H: our schemes beside other Rust libraries (those with the feature `peers`).
//!
//! One row group a column. A contender's bytes are all that is needed to get the strings back; what a library leaves to
//! its user, such as the lengths of strings, is added in our packed form. Each decoded column is compared with the
//! original.

use crate::{Failure, machine, tpch};
use arrow::array::AsArray;
use arrow::compute::cast;
use arrow::datatypes::DataType;
use serde_json::{Value, json};
use sinter_codec::{Block, BytesBuf, Choice, Chooser, ROW_GROUP_LEN, ValuesBuf};
use std::hint::black_box;
use std::time::{Duration, Instant};

const COLUMNS: [(&str, &str); 6] = [
    ("lineitem", "l_comment"),
    ("orders", "o_comment"),
    ("part", "p_name"),
    ("customer", "c_address"),
    ("customer", "c_phone"),
    ("supplier", "s_name"),
];

/// What one contender made of one column.
#[derive(Debug)]
pub struct Measured {
    /// `table.column`.
    pub column: String,
    /// Who.
    pub contender: &'static str,
    /// How, in the contender's words.
    pub form: String,
    /// Bytes of the strings alone.
    pub plain_bytes: usize,
    /// Bytes that bring them back.
    pub bytes: usize,
    /// The best of several runs.
    pub compress: Duration,
    /// The best of several runs.
    pub decompress: Duration,
}

/// Measures every contender on every column of TPC-H at `scale_factor`.
///
/// # Errors
/// Where data cannot be made, or a contender does not give back what it got.
pub fn measure(scale_factor: f64) -> Result<Vec<Measured>, Failure> {
    let mut measured = Vec::new();
    for (table, column) in COLUMNS {
        let strings = text_column(table, column, scale_factor)?;
        let name = format!("{table}.{column}");
        for (contender, choice) in [("sinter auto", Choice::Auto), ("sinter fsst", Choice::Forced("fsst".to_owned()))] {
            measured.push(ours(&name, contender, &choice, &strings)?);
        }
        #[cfg(feature = "peers")]
        measured.push(fsst_rs(&name, &strings)?);
    }
    Ok(measured)
}

/// The first row group of a text column.
fn text_column(table: &str, column: &str, scale_factor: f64) -> Result<Vec<Vec<u8>>, Failure> {
    let mut strings = Vec::new();
    for batch in tpch::table(table, scale_factor).ok_or("no such table")? {
        let batch = batch?;
        let array = batch.column_by_name(column).ok_or("no such column")?;
        let array = cast(array, &DataType::Utf8)?;
        strings.extend(array.as_string::<i32>().iter().flatten().map(|text| text.as_bytes().to_vec()));
        if strings.len() >= ROW_GROUP_LEN {
            strings.truncate(ROW_GROUP_LEN);
            break;
        }
    }
    Ok(strings)
}

fn plain_bytes(strings: &[Vec<u8>]) -> usize {
    strings.iter().map(Vec::len).sum()
}

fn ours(column: &str, contender: &'static str, choice: &Choice, strings: &[Vec<u8>]) -> Result<Measured, Failure> {
    let values = ValuesBuf::Bytes(strings.iter().map(|text| &text[..]).collect());
    let mut bytes = Vec::new();
    Chooser::new(choice.clone()).encode(values.as_values(), None, &mut bytes)?;
    let mut again = Vec::new();
    let compress = fastest(|| {
        again.clear();
        let encoded = Chooser::new(choice.clone()).encode(values.as_values(), None, &mut again);
        black_box(encoded).is_ok()
    });
    let block = Block::open(&bytes)?;
    let mut decoded = ValuesBuf::Bytes(BytesBuf::default());
    block.decode(0..strings.len(), &mut decoded)?;
    if decoded != values {
        return Err(format!("{contender} does not give back {column}").into());
    }
    let decompress = fastest(|| black_box(block.decode(0..strings.len(), &mut decoded)).is_ok());
    Ok(Measured {
        column: column.to_owned(),
        contender,
        form: block.describe(),
        plain_bytes: plain_bytes(strings),
        bytes: bytes.len(),
        compress,
        decompress,
    })
}

#[cfg(feature = "peers")]
fn fsst_rs(column: &str, strings: &[Vec<u8>]) -> Result<Measured, Failure> {
    let lines: Vec<&[u8]> = strings.iter().map(|text| &text[..]).collect();
    let compress_all = || {
        let compressor = fsst::Compressor::train(&lines);
        let compressed = compressor.compress_bulk(&lines);
        (compressor, compressed)
    };
    let (compressor, compressed) = compress_all();
    let compress = fastest(|| black_box(compress_all()).1.len() == lines.len());
    let together = compressed.concat();
    let decompressor = compressor.decompressor();
    if decompressor.decompress(&together) != strings.concat() {
        return Err(format!("fsst-rs does not give back {column}").into());
    }
    let decompress = fastest(|| !black_box(decompressor.decompress(&together)).is_empty());
    let mut lengths = Vec::new();
    let values = ValuesBuf::U32(compressed.iter().map(|code| code.len() as u32).collect());
    Chooser::new(Choice::Auto).encode(values.as_values(), None, &mut lengths)?;
    let table_bytes = compressor.symbol_table().len() * 8 + compressor.symbol_lengths().len();
    Ok(Measured {
        column: column.to_owned(),
        contender: "fsst-rs",
        form: format!("{} symbols", compressor.symbol_table().len()),
        plain_bytes: plain_bytes(strings),
        bytes: together.len() + table_bytes + lengths.len(),
        compress,
        decompress,
    })
}

/// The best of many runs: what is left when nothing else disturbs.
fn fastest(mut work: impl FnMut() -> bool) -> Duration {
    let mut best = Duration::MAX;
    let end = Instant::now() + Duration::from_millis(400);
    while Instant::now() < end {
        let begun = Instant::now();
        assert!(work(), "it worked before");
        best = best.min(begun.elapsed());
    }
    best
}

/// The measurements for people.
pub fn table(measured: &[Measured]) -> String {
    let mut text = format!(
        "{:<20} {:<12} {:>9} {:>6} {:>14} {:>16}  {}\n",
        "column", "contender", "bytes", "ratio", "compress, MB/s", "decompress, MB/s", "as"
    );
    for one in measured {
        text += &format!(
            "{:<20} {:<12} {:>9} {:>6.2} {:>14.0} {:>16.0}  {}\n",
            one.column,
            one.contender,
            one.bytes,
            one.plain_bytes as f64 / one.bytes as f64,
            megabytes_a_second(one, one.compress),
            megabytes_a_second(one, one.decompress),
            one.form,
        );
    }
    text
}

fn megabytes_a_second(one: &Measured, time: Duration) -> f64 {
    one.plain_bytes as f64 / time.as_secs_f64() / 1e6
}

/// The measurements for programs, with where and with what they were made.
pub fn record(measured: &[Measured], scale_factor: f64) -> Value {
    let results = measured.iter().map(|one| {
        json!({
            "column": one.column,
            "contender": one.contender,
            "form": one.form,
            "plain_bytes": one.plain_bytes,
            "bytes": one.bytes,
            "compress_s": one.compress.as_secs_f64(),
            "decompress_s": one.decompress.as_secs_f64(),
        })
    });
    json!({
        "suite": "strings",
        "scale_factor": scale_factor,
        "machine": machine::describe(),
        "commit": machine::commit(),
        "versions": machine::versions(&["sinter-codec", "fsst-rs"]),
        "results": results.collect::<Vec<_>>(),
    })
}
