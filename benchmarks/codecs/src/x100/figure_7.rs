//! Figure 7: decoding pages into memory, to be read from there, beside decoding vectors into the cache.
//!
//! The work on decoded values is their sum. Pages go to as much memory as no cache holds, as in a buffer pool that
//! keeps them decoded; vectors all go to one buffer.

use super::skewed::{self, BIT_WIDTH};
use crate::Failure;
use crate::codec::{Codec, Opened};
use crate::race::{Effort, Run, race};
use crate::schemes::check;
use crate::sinter::Sinter;
use serde_json::{Value, json};
use sinter_codec::{ROW_GROUP_LEN, VECTOR_LEN, ValuesBuf};
use std::hint::black_box;

/// Bytes of decoded pages that are kept before they are read.
const POOL_BYTES: usize = 256 << 20;

/// Values of a page.
const PAGE_LEN: usize = ROW_GROUP_LEN;

pub(super) fn run(effort: Effort) -> Result<Value, Failure> {
    let pages = if effort.is_quick { 32 } else { POOL_BYTES / (8 * PAGE_LEN) };
    let effort = Effort { rounds: if effort.is_quick { 2 } else { 7 }, ..effort };
    println!("\nFigure 7: decoding 64-bit numbers of 8 bits (pfor) and adding them up, GB/s");
    println!("(paper: vectors into the cache are faster than pages into memory at all shares; plot only)");
    println!("{:>4} {:>18} {:>18} {:>9}", "%", "pages, in memory", "vectors, in cache", "speed-up");
    let mut records = Vec::new();
    for percent in [0, 5, 10, 20, 30] {
        eprintln!("figure 7: {percent} % exceptions");
        let values = skewed::around_base(PAGE_LEN, f64::from(percent) / 100.0, BIT_WIDTH);
        let expected = total(&values);
        let values = ValuesBuf::U64(values);
        let (mut codec, mut bytes) = (Sinter::new("pfor"), Vec::new());
        codec.encode(values.as_values(), &mut bytes)?;
        let memory: Vec<Vec<u8>> = (0..pages).map(|_| bytes.clone()).collect();
        let blocks: Vec<Box<dyn Opened + '_>> =
            memory.iter().map(|bytes| codec.open(bytes, PAGE_LEN)).collect::<Result<_, _>>()?;
        check(&*blocks[0], "pfor", &values)?;
        let mut pool: Vec<ValuesBuf> = (0..pages).map(|_| values.clone()).collect();
        let mut vector = ValuesBuf::U64(Vec::new());
        let blocks = &blocks;
        let mut runs: Vec<Run<'_>> = vec![
            Box::new(move || {
                blocks.iter().zip(&mut pool).for_each(|(block, page)| block.whole(page));
                for page in &pool {
                    assert_eq!(black_box(sum(page)), expected, "pages hold what was encoded");
                }
            }),
            Box::new(move || {
                for block in blocks {
                    let mut found = 0u64;
                    for index in 0..PAGE_LEN / VECTOR_LEN {
                        block.vector(index, &mut vector);
                        found = found.wrapping_add(sum(&vector));
                    }
                    assert_eq!(black_box(found), expected, "vectors hold what was encoded");
                }
            }),
        ];
        let plain = (pages * PAGE_LEN * 8) as f64;
        let speeds: Vec<f64> =
            race(&mut runs, effort).iter().map(|times| plain / times.min.as_secs_f64() / 1e9).collect();
        let speed_up = speeds[1] / speeds[0];
        println!("{percent:>4} {:>18.2} {:>18.2} {speed_up:>9.2}", speeds[0], speeds[1]);
        records.push(json!({ "exceptions_percent": percent, "pages_gb_s": speeds[0], "vectors_gb_s": speeds[1] }));
    }
    Ok(records.into())
}

fn sum(values: &ValuesBuf) -> u64 {
    match values {
        ValuesBuf::U64(values) => total(values),
        other => panic!("{} values for 64-bit numbers", other.physical().name()),
    }
}

fn total(values: &[u64]) -> u64 {
    values.iter().fold(0, |sum, &value| sum.wrapping_add(value))
}
