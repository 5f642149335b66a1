//! Which scheme answers which kernel on the encoded form, and how much faster that is than decoding first: what
//! `sinter codecs --kernels` prints. And what decoding costs, and is said to cost: `sinter codecs --decoding`.

use super::list::{KERNELS, KernelEntry};
use super::span::Span;
use super::table_values;
use crate::scratch::Scratch;
use crate::{
    Bitmap, Block, Choice, Physical, ROW_GROUP_LEN, Result, SCHEMES, Scalar, SchemeEntry, VECTOR_LEN, ValuesBuf, encode,
};
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
    /// Whether no value was decoded for the answer beyond those asked for (codes of a dictionary and suffixes behind a
    /// front are none); else schemes fall back to decoding vectors.
    pub is_native: bool,
    /// Values a second, in cache, on one core.
    pub values_per_second: f64,
    /// How many times as fast as decoding vector by vector and looping over the values.
    pub speed_up: f64,
}

/// Asks every kernel of a row group in every scheme, made for it there and then, for about `per_kernel` each and as long
/// again without the scheme's own ways. A scheme that holds numbers and strings is asked of both.
///
/// # Errors
/// None, unless the machine is broken: what is read was just written.
pub fn kernel_table(per_kernel: Duration) -> Result<Vec<KernelRow>> {
    table_of(ROW_GROUP_LEN, per_kernel)
}

/// What it costs to decode a block of a scheme.
#[derive(Clone, Debug)]
pub struct DecodeRow {
    /// Its name in [`SCHEMES`].
    pub scheme: &'static str,
    /// The scheme with its parts.
    pub layout: String,
    /// The type of its values.
    pub physical: Physical,
    /// Bytes of the block for each value.
    pub bytes_per_value: f64,
    /// [`Block::decode_nanos`] for each value.
    pub said_nanos: f64,
    /// What it took here and now, in cache, on one core, vector by vector.
    pub measured_nanos: f64,
}

/// Decodes a row group in every scheme, made for it there and then, for about `per_block` each. A scheme that holds numbers and
/// strings is asked of both.
///
/// # Errors
/// As [`kernel_table`].
pub fn decode_table(per_block: Duration) -> Result<Vec<DecodeRow>> {
    let mut table = Vec::new();
    for entry in SCHEMES {
        for column in [table_values::numbers as fn(&str, usize) -> ValuesBuf, table_values::strings] {
            let Some((_, bytes)) = suited(entry, |name| column(name, ROW_GROUP_LEN))? else { continue };
            let block = Block::open(&bytes)?;
            let (count, mut decoded) = (block.value_count(), ValuesBuf::new(block.physical()));
            let measured = least(per_block, || {
                (0..count).step_by(VECTOR_LEN).try_for_each(|start| {
                    block.decode(start..count.min(start + VECTOR_LEN), &mut decoded)?;
                    black_box(&decoded);
                    Ok(())
                })
            })?;
            table.push(DecodeRow {
                scheme: entry.name,
                layout: block.describe(),
                physical: block.physical(),
                bytes_per_value: block.byte_len() as f64 / count as f64,
                said_nanos: block.decode_nanos() / count as f64,
                measured_nanos: measured.as_nanos() as f64 / count as f64,
            });
        }
    }
    Ok(table)
}

fn table_of(row_count: usize, per_kernel: Duration) -> Result<Vec<KernelRow>> {
    let mut table = Vec::new();
    for entry in SCHEMES {
        for column in [table_values::numbers as fn(&str, usize) -> ValuesBuf, table_values::strings] {
            let Some((values, bytes)) = suited(entry, |name| column(name, row_count))? else { continue };
            let present = Bitmap::from_bools((0..values.len()).map(|row| row % 20 != 3));
            let mut with_nulls = Vec::new();
            encode(values.as_values(), Some(&present), &Choice::Forced(entry.name.to_owned()), &mut with_nulls)?;
            for kernel in KERNELS.iter().filter(|kernel| kernel.takes(values.physical())) {
                // Without NULLs there would be nothing to answer.
                let bytes = if matches!(kernel.name, "is null" | "count") { &with_nulls } else { &bytes };
                table.push(row(entry.name, kernel, bytes, per_kernel)?);
            }
        }
    }
    Ok(table)
}

/// Values of a kind and their block, outermost in this scheme; `None` where it holds nothing of what we have.
fn suited(entry: &SchemeEntry, column: impl Fn(&str) -> ValuesBuf) -> Result<Option<(ValuesBuf, Vec<u8>)>> {
    for name in [entry.name, "raw", "delta", "alp"] {
        let (values, mut bytes) = (column(name), Vec::new());
        if entry.holds(values.physical()) {
            encode(values.as_values(), None, &Choice::Forced(entry.name.to_owned()), &mut bytes)?;
            if Block::open(&bytes)?.describe().starts_with(entry.name) {
                return Ok(Some((values, bytes)));
            }
        }
    }
    Ok(None)
}

fn row(scheme: &'static str, kernel: &KernelEntry, bytes: &[u8], per_kernel: Duration) -> Result<KernelRow> {
    let (block, decoding) = (Block::open(bytes)?, Block::open(bytes)?.decode_only());
    // All but one row: statistics must not answer.
    let range = 0..block.value_count() - 1;
    let constant = block.percentiles(&range.clone().into(), &[0.5])?.pop().unwrap_or_default();
    let marks = Bitmap::from_bools((0..range.len()).map(|row| row % 16 == 5));
    let span = if kernel.name == "gather" { Span::marked(range, &marks) } else { range.into() };
    Scratch::with(|scratch| scratch.decoded_values = 0);
    kernel.run(&block, &span, &constant)?;
    let is_native = Scratch::with(|scratch| scratch.decoded_values) <= ENDS_MAX;
    let native = fastest(kernel, &block, &span, &constant, per_kernel)?;
    let decoded = fastest(kernel, &decoding, &span, &constant, per_kernel)?;
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
    least(time, || kernel.run(block, span, constant).map(|answer| drop(black_box(answer))))
}

/// The least time that `work` takes, done over and over for so long.
fn least(time: Duration, mut work: impl FnMut() -> Result<()>) -> Result<Duration> {
    let mut best = Duration::MAX;
    let end = Instant::now() + time;
    loop {
        let start = Instant::now();
        work()?;
        best = best.min(start.elapsed());
        if Instant::now() >= end {
            return Ok(best.max(Duration::from_nanos(1)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decoding_costs_is_said_of_all_schemes_and_adds_up() {
        let table = decode_table(Duration::ZERO).unwrap();
        assert!(SCHEMES.iter().all(|entry| table.iter().any(|row| row.scheme == entry.name)));
        assert!(table.iter().all(|row| row.said_nanos > 0.0 && row.measured_nanos > 0.0));
        let said = |scheme: &str, physical: Physical| {
            table.iter().find(|row| row.scheme == scheme && row.physical == physical).unwrap().said_nanos
        };
        // A dictionary looks codes up that something packs.
        assert!(said("dict", Physical::I64) > said("bitpack", Physical::I64));
        assert!(said("fsst", Physical::Bytes) > said("dict", Physical::Bytes));
    }

    fn is_native(table: &[KernelRow], scheme: &str, physical: Physical, kernel: &str) -> bool {
        let found = |row: &&KernelRow| (row.scheme, row.physical, row.kernel) == (scheme, physical, kernel);
        table.iter().find(found).is_some_and(|row| row.is_native)
    }

    #[test]
    fn a_scheme_is_asked_of_all_kinds_of_values_that_it_holds() {
        let table = table_of(8 * 1024, Duration::ZERO).unwrap();
        for entry in SCHEMES {
            let shows = |is_kind: fn(Physical) -> bool| {
                table.iter().any(|row| row.scheme == entry.name && is_kind(row.physical))
            };
            let holds = |is_kind: fn(Physical) -> bool| {
                Physical::ALL.iter().any(|physical| is_kind(*physical) && entry.holds(*physical))
            };
            for is_kind in [|physical| physical == Physical::Bytes, |physical| physical != Physical::Bytes] {
                assert_eq!(shows(is_kind), holds(is_kind), "{}", entry.name);
            }
        }
        let integers_are_tested = ["compare", "equal", "range", "in", "min", "max"];
        for scheme in ["constant", "rle", "for", "pfor", "dict", "pdict"] {
            for kernel in integers_are_tested {
                assert!(is_native(&table, scheme, Physical::I64, kernel), "{kernel} on {scheme}");
            }
        }
        for kernel in integers_are_tested.into_iter().chain(["sum"]) {
            assert!(is_native(&table, "halves", Physical::I128, kernel), "{kernel} on halves");
        }
        for scheme in ["rle", "bitpack", "for", "delta"] {
            assert!(is_native(&table, scheme, Physical::I64, "sum"), "sum on {scheme}");
        }
        for scheme in ["dict", "pdict", "front", "fsst"] {
            for kernel in ["equal", "prefix", "contains", "like"] {
                assert!(is_native(&table, scheme, Physical::Bytes, kernel), "{kernel} on {scheme}");
            }
        }
        for (scheme, is_apart) in
            [("for", true), ("raw", true), ("dict", true), ("delta", false), ("pfor_delta", false)]
        {
            assert_eq!(is_native(&table, scheme, Physical::I64, "gather"), is_apart, "gather from {scheme}");
        }
        let natively = |physical: Physical, kernel: &str| is_native(&table, "dict", physical, kernel);
        for kernel in ["equal", "prefix", "contains", "like", "histogram", "distinct", "percentiles"] {
            assert!(natively(Physical::Bytes, kernel), "{kernel} of strings: a dictionary tests and counts codes");
        }
        for kernel in ["sum", "histogram", "distinct", "percentiles"] {
            assert!(natively(Physical::I64, kernel), "{kernel} of numbers: a dictionary counts codes");
        }
    }
}
