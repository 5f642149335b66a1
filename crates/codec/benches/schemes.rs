//! How small and how fast each scheme is, on one row group of values that suit it: `cargo bench -p sinter-codec`.
//! `cargo bench -p sinter-codec --bench schemes -- fsst` measures one scheme, `-- fsst words.txt` on the first lines of
//! a file.
//!
//! Bytes a value, then encoding and decoding in GB/s of plain values, loading and filtering in million values a second,
//! gathering one row in 128 in nanoseconds a row. One core, data in cache: what the kernels can do at best.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinter_codec::*;
use std::hint::black_box;
use std::time::{Duration, Instant};

fn main() {
    println!(
        "{:<20} {:<6} {:<34} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "scheme", "type", "as", "B/value", "encode", "decode", "load", "filter", "gather"
    );
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    let only = arguments.next();
    let paths: Vec<String> = arguments.collect();
    for path in &paths {
        measure(only.as_deref().unwrap_or("fsst"), &lines(path));
    }
    if !paths.is_empty() {
        return;
    }
    for (name, values) in cases() {
        if only.as_ref().is_none_or(|only| *only == name || name.starts_with(&format!("{only}("))) {
            measure(name, &values);
        }
    }
}

fn cases() -> Vec<(&'static str, ValuesBuf)> {
    let mut random = SmallRng::seed_from_u64(1);
    let mut uniform =
        |bits: u32| -> Vec<i64> { (0..ROW_GROUP_LEN).map(|_| random.random_range(0..1i64 << bits)).collect() };
    let mut cases = Vec::new();
    for bits in [3, 7, 8, 12, 16, 21, 33] {
        let values = uniform(bits);
        if bits <= 31 {
            cases.push(("bitpack", ValuesBuf::U32(values.iter().map(|&v| v as u32).collect())));
        }
        cases.push(("for", ValuesBuf::I64(values.iter().map(|v| v + 1_000_000).collect())));
    }
    cases.push(("for", ValuesBuf::I32(uniform(12).iter().map(|&v| v as i32 + 8000).collect())));
    cases.push(("for", ValuesBuf::U8(uniform(5).iter().map(|&v| v as u8 + 100).collect())));
    cases.push(("for", ValuesBuf::I128(uniform(30).iter().map(|&v| v as i128).collect())));
    let outliers = |v: i64| if v % 50 == 0 { v * 1_000_003 } else { v };
    cases.push(("pfor", ValuesBuf::I64(uniform(10).into_iter().map(outliers).collect())));
    let ascending = |steps: Vec<i64>| -> Vec<i64> {
        steps
            .iter()
            .scan(0, |sum, step| {
                *sum += step;
                Some(*sum)
            })
            .collect()
    };
    cases.push(("delta", ValuesBuf::I64(ascending(uniform(6)))));
    cases.push(("pfor_delta", ValuesBuf::I64(ascending(uniform(6).into_iter().map(outliers).collect()))));
    let orders: Vec<i64> =
        uniform(3).iter().enumerate().flat_map(|(i, &v)| vec![i as i64 * 5 / 2; v as usize + 1]).collect();
    cases.push(("rle", ValuesBuf::I64(orders[..ROW_GROUP_LEN].to_vec())));
    let run = |v: usize| ((v / 37) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) as i64 >> 40;
    cases.push(("rle", ValuesBuf::I64((0..ROW_GROUP_LEN).map(run).collect())));
    cases.push(("dict", ValuesBuf::I64(uniform(7).iter().map(|v| v * 1_000_000_007).collect())));
    let scattered = |v: &i64| (v.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64) >> 32) as u32;
    cases.push(("dict", ValuesBuf::U32(uniform(7).iter().map(scattered).collect())));
    cases.push(("dict", ValuesBuf::U32(uniform(12).iter().map(scattered).collect())));
    cases.push(("dict", ValuesBuf::U32(uniform(12).iter().map(|&v| v as u32).collect())));
    cases.push(("dict", ValuesBuf::U64(uniform(7).iter().map(|v| u64::from(scattered(v)) << 20).collect())));
    cases.push(("dict", ValuesBuf::U64(uniform(12).iter().map(|v| u64::from(scattered(v)) << 20).collect())));
    cases.push(("dict", ValuesBuf::F64(uniform(12).iter().map(|&v| v as f64 * 0.37).collect())));
    let clerk = |v: &i64| format!("Clerk#{v:09}").into_bytes();
    let strings: Vec<Vec<u8>> = uniform(10).iter().map(clerk).collect();
    cases.push(("dict", ValuesBuf::Bytes(strings.iter().map(|s| &s[..]).collect())));
    let tailed = |scale: i64| move |v: &i64| if v % 19 == 3 { v * 7919 * scale } else { v % 64 * scale };
    cases.push(("pdict", ValuesBuf::U32(uniform(20).iter().map(tailed(1)).map(|v| v as u32).collect())));
    cases.push(("pdict", ValuesBuf::I64(uniform(30).iter().map(tailed(1_000_007)).collect())));
    let strings: Vec<Vec<u8>> = uniform(20).iter().map(tailed(1)).map(|v| clerk(&v)).collect();
    cases.push(("pdict", ValuesBuf::Bytes(strings.iter().map(|s| &s[..]).collect())));
    let words = ["furiously ", "special ", "requests ", "sleep ", "above the ", "packages ", "quickly ", "final "];
    let comment = |v: &i64| (0..6).map(|i| words[(v >> (3 * i) & 7) as usize]).collect::<String>().into_bytes();
    let strings: Vec<Vec<u8>> = uniform(30).iter().map(comment).collect();
    cases.push(("fsst", ValuesBuf::Bytes(strings.iter().map(|s| &s[..]).collect())));
    let path =
        |row: usize| format!("/usr/share/doc/package-{:05}/file{:02}.html", row / 7 * 3, row % 7 * 5).into_bytes();
    let strings: Vec<Vec<u8>> = (0..ROW_GROUP_LEN).map(path).collect();
    cases.push(("front", ValuesBuf::Bytes(strings.iter().map(|s| &s[..]).collect())));
    cases.push(("alp", ValuesBuf::F64(uniform(20).iter().map(|&v| v as f64 / 100.0).collect())));
    cases.push(("alp", ValuesBuf::F32(uniform(16).iter().map(|&v| v as f32 / 10.0).collect())));
    let holed = |v: &i64| if v % 50 == 0 { f64::NAN } else { *v as f64 / 100.0 };
    cases.push(("alp", ValuesBuf::F64(uniform(20).iter().map(holed).collect())));
    cases.push(("alp_rd", ValuesBuf::F64(uniform(50).iter().map(|&v| v as f64 / (1i64 << 50) as f64 + 1.0).collect())));
    cases.push(("fixed_point", ValuesBuf::F64(uniform(16).iter().map(|&v| v as f64 / 4096.0).collect())));
    cases.push(("fixed_point", ValuesBuf::F32(uniform(12).iter().map(|&v| v as f32 / 4096.0).collect())));
    let curve: Vec<f64> = (0..ROW_GROUP_LEN).map(|row| 1000.0 * (row as f64 / 500.0).sin()).collect();
    cases.push(("fixed_point(0.01)", ValuesBuf::F64(curve.clone())));
    cases.push((
        "quantise(0.01)",
        ValuesBuf::F64(uniform(40).iter().map(|&v| v as f64 / (1i64 << 30) as f64).collect()),
    ));
    cases.push(("quantise(0.01)", ValuesBuf::F64(curve.clone())));
    cases.push(("single", ValuesBuf::F64(curve.iter().map(|&v| f64::from(v as f32)).collect())));
    if scheme_by_name("zfp").is_ok() {
        cases.push(("zfp", ValuesBuf::F64(curve.clone())));
        cases.push(("zfp", ValuesBuf::F32(curve.iter().map(|&v| v as f32).collect())));
        cases.push(("zfp(0.01)", ValuesBuf::F64(curve.clone())));
    }
    cases.push(("single(lossy)", ValuesBuf::F64(curve)));
    for bits in [7, 15, 30, 40] {
        cases.push(("base_delta", ValuesBuf::I64(uniform(bits).iter().map(|v| v + 1_000_000).collect())));
    }
    cases.push(("base_delta", ValuesBuf::I32(uniform(8).iter().map(|&v| v as i32 - 50).collect())));
    cases.push(("base_delta", ValuesBuf::I64(uniform(8).iter().map(|v| v * 1_000_000).collect())));
    let times = || (0..ROW_GROUP_LEN as i64).map(|row| 1_700_000_000_000_000 + row * 10_007);
    cases.push(("base_delta", ValuesBuf::I64(times().collect())));
    cases.push(("base_delta(60000000)", ValuesBuf::I64(times().collect())));
    cases.push(("constant", ValuesBuf::I64(vec![42; ROW_GROUP_LEN])));
    cases.push((
        "multiple",
        ValuesBuf::I64(uniform(20).iter().map(|v| 1_700_000_000_000_000 + v * 1_000_000).collect()),
    ));
    let wide = |(upper, lower): (&i64, &i64)| i128::from(*upper) << 64 | i128::from(*lower);
    cases.push(("halves", ValuesBuf::I128(uniform(12).iter().zip(&uniform(62)).map(wide).collect())));
    cases.push(("raw", ValuesBuf::I64(uniform(62))));
    cases
}

/// As many lines of a text file as a row group has rows.
fn lines(path: &str) -> ValuesBuf {
    let text = std::fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"));
    ValuesBuf::Bytes(text.split(|&byte| byte == b'\n').take(ROW_GROUP_LEN).collect())
}

fn measure(name: &str, values: &ValuesBuf) {
    let plain_bytes = match values {
        ValuesBuf::Bytes(buf) => buf.data.len(),
        values => values.len() * values.physical().value_bytes().unwrap_or(0),
    };
    let mut bytes = Vec::new();
    let mut chooser = Chooser::new(Choice::Forced(name.to_owned()));
    let encode = fastest(|| {
        bytes.clear();
        chooser.encode(values.as_values(), None, &mut bytes).expect("it suits the scheme");
    });
    let block = Block::open(&bytes).expect("it was just encoded");
    let vectors = || (0..values.len()).step_by(VECTOR_LEN).map(|start| start..values.len().min(start + VECTOR_LEN));
    let mut decoded = ValuesBuf::new(values.physical());
    let decode = fastest(|| {
        for range in vectors() {
            block.decode(range, &mut decoded).expect("it was just encoded");
            black_box(&decoded);
        }
    });
    let mut form = Encoded::default();
    let load = fastest(|| {
        for range in vectors() {
            block.load(range, &mut form).expect("it was just encoded");
            black_box(&form);
        }
    });
    let bounds = (block.stats().min.clone(), block.stats().max.clone());
    let middle = match bounds {
        (Scalar::Int(min), Scalar::Int(max)) => Scalar::Int(min / 2 + max / 2),
        (Scalar::Float(min), Scalar::Float(max)) => Scalar::Float((min + max) / 2.0),
        (_, max) => max,
    };
    let prepared = block.prepare(&Predicate::Compare(CompareOp::Less, middle)).expect("it was just encoded");
    let (mut scratch, mut passed) = (Scratch::default(), Bitmap::default());
    let filter = fastest(|| {
        for range in vectors() {
            block.filter_prepared(range, &prepared, &mut scratch, &mut passed).expect("it was just encoded");
            black_box(&passed);
        }
    });
    let positions: Vec<u16> = (0..8).map(|i| i * 128 + 5).collect();
    let gather = fastest(|| {
        for range in vectors() {
            block
                .gather(range.start, &positions[..positions.len() * range.len() / VECTOR_LEN], &mut decoded)
                .expect("it was just encoded");
            black_box(&decoded);
        }
    });
    let gigabytes = |time: Duration| plain_bytes as f64 / time.as_secs_f64() / 1e9;
    let millions = |time: Duration| values.len() as f64 / time.as_secs_f64() / 1e6;
    println!(
        "{name:<20} {:<6} {:<34} {:>9.3} {:>8.2} {:>8.2} {:>8.0} {:>8.0} {:>8.1}",
        values.physical().name(),
        block.describe(),
        bytes.len() as f64 / values.len() as f64,
        gigabytes(encode),
        gigabytes(decode),
        millions(load),
        millions(filter),
        gather.as_nanos() as f64 / (values.len() / 128) as f64,
    );
}

/// The best of many: what is left when nothing else disturbs.
fn fastest(mut work: impl FnMut()) -> Duration {
    let mut best = Duration::MAX;
    let end = Instant::now() + Duration::from_millis(150);
    while Instant::now() < end {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed());
    }
    best
}
