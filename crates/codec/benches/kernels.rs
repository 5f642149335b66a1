//! How fast blocks answer: `cargo bench -p sinter-codec --bench kernels`.
//!
//! First each scheme and kernel, in cache, as `sinter codecs --kernels` prints it. Then sum and filter on bit-packed values at
//! a ratio of 2, 4 and 8 to plain ones, beside the best plain loop there is (AVX-512 where the machine has it), with all
//! data in L2 and with a gigabyte of it. `memory` or `table` as an argument runs one of the two; SINTER_BENCH_MB sets how
//! much the gigabyte is.

use sinter_codec::*;
use std::hint::black_box;
use std::time::{Duration, Instant};

fn main() {
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let wants = |part: &str| only.as_ref().is_none_or(|only| only == part);
    if wants("memory") {
        memory();
    }
    if wants("table") {
        table();
    }
}

fn table() {
    println!("{:<12} {:<34} {:<12} {:<7} {:>10} {:>8}", "scheme", "as", "kernel", "", "M values/s", "speed-up");
    for row in kernel_table(Duration::from_millis(20)).expect("it was just encoded") {
        let way = if row.is_native { "native" } else { "decode" };
        let speed = row.values_per_second / 1e6;
        println!(
            "{:<12} {:<34} {:<12} {way:<7} {speed:>10.0} {:>8.2}",
            row.scheme, row.layout, row.kernel, row.speed_up
        );
    }
}

/// Values of a narrow type, that plain loops run over.
trait Plain: Copy + Into<u64> + TryFrom<u64> + PartialOrd {
    const BITS: u32;
    fn values(values: &[Self]) -> Values<'_>;
}

impl Plain for u32 {
    const BITS: u32 = 32;
    fn values(values: &[u32]) -> Values<'_> {
        Values::U32(values)
    }
}

impl Plain for u64 {
    const BITS: u32 = 64;
    fn values(values: &[u64]) -> Values<'_> {
        Values::U64(values)
    }
}

fn memory() {
    let megabytes = std::env::var("SINTER_BENCH_MB").ok().and_then(|text| text.parse().ok()).unwrap_or(1100);
    println!(
        "{:<6} {:<4} {:>3} {:<16} {:>11} {:>11} {:>8}",
        "where", "type", "k", "kernel", "plain GB/s", "ours GB/s", "ours/k"
    );
    for (place, bytes) in [("L2", 1 << 20), ("DRAM", megabytes << 20)] {
        compare::<u32>(place, bytes);
        compare::<u64>(place, bytes);
    }
}

fn random(row: u64) -> u64 {
    let mixed = (row + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ mixed >> 32
}

fn compare<T: Plain + 'static>(place: &str, bytes: usize) {
    // Plain values in as many bytes; what is in them does not matter to a plain loop.
    let plain: Vec<T> = (0..(bytes / size_of::<T>()) as u64)
        .map(|row| T::try_from(random(row) & 0xffff).ok().expect("narrow"))
        .collect();
    let plain_sum = fastest(|| {
        plain.chunks(ROW_GROUP_LEN).for_each(|group| {
            black_box(plain_sum(group));
        });
    });
    let mut bits = vec![0u64; VECTOR_LEN / 64];
    let plain_filter = fastest(|| {
        plain.chunks(VECTOR_LEN).for_each(|vector| {
            plain_less(vector, T::try_from(655).ok().expect("narrow"), &mut bits);
            black_box(&bits);
        });
    });
    let plain_bytes = (plain.len() * size_of::<T>()) as f64;
    let (plain_sum, plain_filter) = (plain_bytes / plain_sum.as_secs_f64(), plain_bytes / plain_filter.as_secs_f64());
    drop(plain);
    for k in [2, 4, 8] {
        let width = T::BITS / k;
        let mut blocks: Vec<u8> = Vec::new();
        let mut starts = Vec::new();
        let group_len = if bytes < 16 << 20 { 32 * VECTOR_LEN } else { ROW_GROUP_LEN };
        let mut row = 0;
        while blocks.len() < bytes {
            let group: Vec<T> = (0..group_len as u64)
                .map(|index| T::try_from(random(row + index) >> (64 - width)).ok().expect("it has so many bits"))
                .collect();
            // The same values again and again: making a gigabyte of them costs more than reading it.
            row += group_len as u64;
            let start = blocks.len();
            encode(T::values(&group), None, &Choice::Forced("bitpack".into()), &mut blocks).expect("it holds them");
            starts.push(start);
            if starts.len() >= 8 && bytes > 16 << 20 {
                let unit = blocks.len();
                while blocks.len() < bytes {
                    let at = blocks.len();
                    blocks.extend_from_within(..unit);
                    let first: Vec<usize> = starts.iter().take(8).map(|start| start + at).collect();
                    starts.extend(first);
                }
            }
        }
        let opened: Vec<Block<'_>> =
            starts.iter().map(|start| Block::open(&blocks[*start..]).expect("it was just encoded")).collect();
        let value_bytes = (opened.iter().map(|block| block.value_count()).sum::<usize>() * size_of::<T>()) as f64;
        let show = |kernel: &str, plain: f64, time: Duration| {
            let ours = value_bytes / time.as_secs_f64();
            println!(
                "{place:<6} {:<4} {k:>3} {kernel:<16} {:>11.1} {:>11.1} {:>8.2}",
                format!("u{}", T::BITS),
                plain / 1e9,
                ours / 1e9,
                ours / plain / f64::from(k)
            );
        };
        let sum = fastest(|| {
            for block in &opened {
                // All rows are asked for by a range that statistics do not answer.
                let almost = 0..block.value_count() - VECTOR_LEN;
                black_box(block.sum(&almost.into()).expect("it was just encoded"));
            }
        });
        let part = 1.0 - VECTOR_LEN as f64 / group_len as f64;
        show("sum", plain_sum, sum.div_f64(part));
        let (mut scratch, mut passed) = (Scratch::default(), Bitmap::default());
        for percent in [0.1, 1.0, 10.0, 50.0] {
            let constant = ((1u128 << width) as f64 * percent / 100.0) as i128;
            let less = Predicate::Compare(CompareOp::Less, Scalar::Int(constant));
            let filter = fastest(|| {
                for block in &opened {
                    let prepared = block.prepare(&less).expect("it was just encoded");
                    let all = 0..block.value_count();
                    block.filter_prepared(all, &prepared, &mut scratch, &mut passed).expect("it was just encoded");
                    black_box(&passed);
                }
            });
            show(&format!("filter {percent} %"), plain_filter, filter);
        }
        let bounds = fastest(|| {
            for block in &opened {
                let almost = 0..block.value_count() - VECTOR_LEN;
                black_box(block.max(&almost.into()).expect("it was just encoded"));
            }
        });
        show("max", plain_sum, bounds.div_f64(part));
    }
}

/// The sum in 64 bits, compiled for the widest set there is.
fn plain_sum<T: Plain>(values: &[T]) -> u64 {
    #[inline(always)]
    fn body<T: Plain>(values: &[T]) -> u64 {
        values.iter().fold(0, |sum, value| sum.wrapping_add((*value).into()))
    }
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl")]
        fn wide<T: Plain>(values: &[T]) -> u64 {
            body(values)
        }
        if Isa::Avx512.is_available() {
            // SAFETY: the machine has the set.
            #[expect(unsafe_code, reason = "the peer that we are measured against")]
            return unsafe { wide(values) };
        }
    }
    body(values)
}

/// One bit per value: it is below the constant.
fn plain_less<T: Plain>(values: &[T], constant: T, bits: &mut [u64]) {
    #[inline(always)]
    fn body<T: Plain>(values: &[T], constant: T, bits: &mut [u64]) {
        for (group, word) in values.as_chunks::<64>().0.iter().zip(bits) {
            let mut found = 0;
            for (index, value) in group.iter().enumerate() {
                found |= u64::from(*value < constant) << index;
            }
            *word = found;
        }
    }
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,avx512f,avx512bw,avx512dq,avx512vl")]
        fn wide<T: Plain>(values: &[T], constant: T, bits: &mut [u64]) {
            body(values, constant, bits);
        }
        if Isa::Avx512.is_available() {
            // SAFETY: the machine has the set.
            #[expect(unsafe_code, reason = "the peer that we are measured against")]
            return unsafe { wide(values, constant, bits) };
        }
    }
    body(values, constant, bits);
}

/// The best of many: what is left when nothing else disturbs.
fn fastest(mut work: impl FnMut()) -> Duration {
    let mut best = Duration::MAX;
    let end = Instant::now() + Duration::from_millis(300);
    let mut turns = 0;
    while turns < 3 || Instant::now() < end {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed());
        turns += 1;
    }
    best
}
