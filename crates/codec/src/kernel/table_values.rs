//! Values that suit a scheme: what `sinter codecs --kernels` asks it of.

use crate::{BytesBuf, ValuesBuf};

/// Numbers that suit a scheme.
pub(super) fn numbers(scheme: &str, row_count: usize) -> ValuesBuf {
    let integers = |value: &dyn Fn(usize) -> i64| ValuesBuf::I64((0..row_count).map(value).collect());
    let floats = |value: &dyn Fn(usize) -> f64| ValuesBuf::F64((0..row_count).map(value).collect());
    let outlier = |row: usize, value: i64| if row % 50 == 7 { value * 1_000_003 } else { value };
    let ascending = |step: &dyn Fn(usize) -> i64| {
        let rows = 0..row_count;
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
        "alp" => floats(&|row| random(row, 20) as f64 / 100.0),
        "alp_rd" => floats(&|row| 1000.0 + (random(row, 20) as f64).sqrt().sin()),
        "single" => floats(&|row| f64::from((random(row, 24) as f32).sqrt())),
        "fixed_point" => floats(&|row| random(row, 20) as f64 / 4096.0),
        "quantise" => floats(&|row| random(row, 14) as f64 / 64.0),
        "base_delta" => integers(&|row| 1_000_000 + random(row, 15)),
        "multiple" => integers(&|row| 1_700_000_000_000_000 + 1_000_000 * random(row, 20)),
        "halves" => {
            // Lower halves that are worth packing, or the table would show how raw ones are decoded.
            let wide = |row| i128::from(random(row, 12)) << 64 | i128::from(random(row + 1, 56));
            ValuesBuf::I128((0..row_count).map(wide).collect())
        }
        "zfp" => floats(&|row| 1000.0 * (row as f64 / 500.0).sin()),
        _ => integers(&|row| random(row, 62)),
    }
}

/// Strings that suit a scheme.
pub(super) fn strings(scheme: &str, row_count: usize) -> ValuesBuf {
    const WORDS: [&str; 8] =
        ["furiously ", "special ", "requests ", "sleep ", "above the ", "packages ", "quickly ", "final "];
    let strings = |value: &dyn Fn(usize) -> String| {
        let mut buf = BytesBuf::default();
        (0..row_count).for_each(|row| buf.push(value(row).as_bytes()));
        ValuesBuf::Bytes(buf)
    };
    let sentence = |number: i64| (0..6).map(|i| WORDS[(number >> (3 * i) & 7) as usize]).collect::<String>();
    match scheme {
        "constant" => strings(&|_| sentence(42)),
        "rle" => strings(&|row| sentence(random(row / 37, 20))),
        "dict" => strings(&|row| sentence(random(row, 7) * 2047)),
        "pdict" => strings(&|row| sentence(if row % 20 == 7 { random(row, 30) } else { random(row, 5) * 8191 })),
        "front" => strings(&|row| format!("/usr/share/doc/package-{:05}/file{:02}.html", row / 7 * 3, row % 7 * 5)),
        _ => strings(&|row| sentence(random(row, 30))),
    }
}

/// So many bits that differ from row to row.
fn random(row: usize, bits: u32) -> i64 {
    let mixed = (row as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    ((mixed ^ mixed >> 32) >> (64 - bits)) as i64
}
