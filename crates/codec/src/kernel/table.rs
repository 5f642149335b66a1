//! Which scheme answers which kernel on the encoded form, and how much faster that is than decoding first: what
//! `sinter codecs --kernels` prints.

use super::list::{KERNELS, KernelEntry};
use super::span::Span;
use crate::scratch::Scratch;
use crate::{Bitmap, Block, Choice, Physical, ROW_GROUP_LEN, Result, SCHEMES, Scalar, SchemeEntry, ValuesBuf, encode};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// A kernel on blocks of a scheme.
#[derive(Clone, Debug)]
pub struct KernelRow {
    /// Its name in [`SCHEMES`].
    pub scheme: &'static str,
    /// The scheme with its parts, of the block that was asked.
    pub layout: String,
    /// The type of its values.
    pub physical: Physical,
    /// The name in [`KERNELS`].
    pub kernel: &'static str,
    /// Whether no value was decoded for the answer; else schemes fall back to decoding vectors.
    pub is_native: bool,
    /// Values a second, in cache, on one core.
    pub values_per_second: f64,
    /// How many times as fast as decoding vector by vector and looping over the values.
    pub speed_up: f64,
}

/// Asks every kernel of a row group in every scheme, made for it there and then, for about `per_kernel` each and as long
/// again without the scheme's own ways.
///
/// # Errors
/// None, unless the machine is broken: what is read was just written.
pub fn kernel_table(per_kernel: Duration) -> Result<Vec<KernelRow>> {
    let mut table = Vec::new();
    for entry in SCHEMES {
        let mut bytes = Vec::new();
        let mut is_suited = false;
        for values in columns(entry) {
            bytes.clear();
            encode(values.as_values(), None, &Choice::Forced(entry.name.to_owned()), &mut bytes)?;
            is_suited = Block::open(&bytes)?.describe().starts_with(entry.name);
            if is_suited {
                break;
            }
        }
        if !is_suited {
            continue; // it holds nothing of what we have
        }
        let block = Block::open(&bytes)?;
        let decoding = Block::open(&bytes)?.decode_only();
        for kernel in KERNELS.iter().filter(|kernel| kernel.takes(block.physical())) {
            table.push(row(entry.name, kernel, &block, &decoding, per_kernel)?);
        }
    }
    Ok(table)
}

fn row(
    scheme: &'static str,
    kernel: &KernelEntry,
    block: &Block<'_>,
    decoding: &Block<'_>,
    per_kernel: Duration,
) -> Result<KernelRow> {
    // All but one row: statistics must not answer.
    let range = 0..block.value_count() - 1;
    let constant = block.percentiles(&range.clone().into(), &[0.5])?.pop().unwrap_or_default();
    let marks = Bitmap::from_bools((0..range.len()).map(|row| row % 16 == 5));
    let span = if kernel.name == "gather" { Span::marked(range, &marks) } else { range.into() };
    Scratch::with(|scratch| scratch.decoded_values = 0);
    kernel.run(block, &span, &constant)?;
    let is_native = Scratch::with(|scratch| scratch.decoded_values) <= ENDS_MAX;
    let native = fastest(kernel, block, &span, &constant, per_kernel)?;
    let decoded = fastest(kernel, decoding, &span, &constant, per_kernel)?;
    Ok(KernelRow {
        scheme,
        layout: block.describe(),
        physical: block.physical(),
        kernel: kernel.name,
        is_native,
        values_per_second: span.range.len() as f64 / native.as_secs_f64(),
        speed_up: decoded.as_secs_f64() / native.as_secs_f64(),
    })
}

/// Values that a kernel may decode and still count as answering on the encoded form: a part of a vector at each end.
const ENDS_MAX: usize = 2048;

/// The least time of many: what is left when nothing else disturbs.
fn fastest(
    kernel: &KernelEntry,
    block: &Block<'_>,
    span: &Span<'_>,
    constant: &Scalar,
    time: Duration,
) -> Result<Duration> {
    let mut best = Duration::MAX;
    let end = Instant::now() + time;
    loop {
        let start = Instant::now();
        black_box(kernel.run(block, span, constant)?);
        best = best.min(start.elapsed());
        if Instant::now() >= end {
            return Ok(best.max(Duration::from_nanos(1)));
        }
    }
}

/// Row groups of values for a scheme, those that suit it first.
fn columns(entry: &SchemeEntry) -> impl Iterator<Item = ValuesBuf> {
    [entry.name, "raw", "delta", "alp", "fsst"].into_iter().map(column).filter(|values| entry.holds(values.physical()))
}

/// A row group of values that suit a scheme.
fn column(scheme: &str) -> ValuesBuf {
    let random = |row: usize, bits: u32| {
        let mixed = (row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ mixed >> 32) >> (64 - bits)) as i64
    };
    let integers = |value: &dyn Fn(usize) -> i64| ValuesBuf::I64((0..ROW_GROUP_LEN).map(value).collect());
    let floats = |value: &dyn Fn(usize) -> f64| ValuesBuf::F64((0..ROW_GROUP_LEN).map(value).collect());
    let outlier = |row: usize, value: i64| if row % 50 == 7 { value * 1_000_003 } else { value };
    let ascending = |step: &dyn Fn(usize) -> i64| {
        let rows = 0..ROW_GROUP_LEN;
        let values = rows.scan(1_000_000, |value, row| {
            *value += step(row);
            Some(*value)
        });
        ValuesBuf::I64(values.collect())
    };
    match scheme {
        "constant" => integers(&|_| 42),
        "rle" => integers(&|row| random(row / 37, 20)),
        "bitpack" => integers(&|row| random(row, 10)),
        "for" => integers(&|row| 1_000_000 + random(row, 10)),
        "pfor" => integers(&|row| outlier(row, 1_000_000 + random(row, 10))),
        "delta" => ascending(&|row| random(row, 6)),
        "pfor_delta" => ascending(&|row| outlier(row, random(row, 6))),
        "dict" => integers(&|row| random(row, 7) * 1_000_000_007),
        "pdict" => integers(&|row| if row % 20 == 7 { random(row, 40) } else { random(row, 5) * 1_000_000_007 }),
        "fsst" => {
            let words =
                ["furiously ", "special ", "requests ", "sleep ", "above the ", "packages ", "quickly ", "final "];
            let text = |row: usize| (0..6).map(|i| words[(random(row, 30) >> (3 * i) & 7) as usize]).collect();
            let texts: Vec<String> = (0..ROW_GROUP_LEN).map(text).collect();
            ValuesBuf::Bytes(texts.iter().map(|text| text.as_bytes()).collect())
        }
        "front" => {
            let path = |row: usize| format!("/usr/share/doc/package-{:05}/file{:02}.html", row / 7 * 3, row % 7 * 5);
            let paths: Vec<String> = (0..ROW_GROUP_LEN).map(path).collect();
            ValuesBuf::Bytes(paths.iter().map(|path| path.as_bytes()).collect())
        }
        "alp" => floats(&|row| random(row, 20) as f64 / 100.0),
        "alp_rd" => floats(&|row| 1000.0 + (random(row, 20) as f64).sqrt().sin()),
        "single" => floats(&|row| f64::from((random(row, 24) as f32).sqrt())),
        "fixed_point" => floats(&|row| random(row, 20) as f64 / 4096.0),
        "quantise" => floats(&|row| random(row, 14) as f64 / 64.0),
        "base_delta" => integers(&|row| 1_000_000 + random(row, 15)),
        "multiple" => integers(&|row| 1_700_000_000_000_000 + 1_000_000 * random(row, 20)),
        "halves" => {
            let wide = |row| i128::from(random(row, 12)) << 64 | i128::from(random(row + 1, 63));
            ValuesBuf::I128((0..ROW_GROUP_LEN).map(wide).collect())
        }
        "zfp" => floats(&|row| 1000.0 * (row as f64 / 500.0).sin()),
        _ => integers(&|row| random(row, 62)),
    }
}
