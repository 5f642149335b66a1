//! Cycles of a single-value access, in cache and from memory, for each scheme and for the paper's linked list.

use super::skewed::{self, BIT_WIDTH};
use crate::Failure;
use crate::codec::Codec;
use crate::race::{Effort, Run, race};
use crate::random::Random;
use crate::reference::patch_list::{Form, Segment};
use crate::sinter::Sinter;
use serde_json::{Value, json};
use sinter_codec::{Block, ValuesBuf};
use std::hint::black_box;
use std::time::Duration;

/// Values of a block.
const VALUE_COUNT: usize = 64 * 1024;

/// Blocks at most: what they decode and keep needs memory, too.
const BLOCKS_MAX: usize = 8192;

/// Accesses in a turn.
const ACCESSES: usize = 1024;

pub(super) fn run(effort: Effort) -> Result<Value, Failure> {
    let gigahertz = gigahertz();
    println!("\nSingle values: cycles at {gigahertz:.2} GHz of one access to a random row of 64-bit numbers");
    println!("(paper: 8 to 11 for each step along its list, 200 or less at 30 % exceptions;");
    println!(" PFOR-DELTA decodes 128 values at 3 to 6 each; a cache line from memory 150 to 400)");
    println!("{:<34} {:>9} {:>9} {:>12} {:>12}", "scheme, values", "ns, L2", "cycles", "ns, memory", "cycles");
    let mut records = Vec::new();
    for (scheme, kind, values) in cases() {
        eprintln!("single values: {scheme}");
        let times = measure(scheme, &values, effort)?;
        records.push(print(scheme, kind, times, gigahertz));
    }
    for percent in [0, 5, 30] {
        let values = skewed::around_base(VALUE_COUNT, f64::from(percent) / 100.0, BIT_WIDTH);
        let mut segment = Segment::new(Form::Predicated, BIT_WIDTH, skewed::base());
        segment.encode(&values);
        let times = measure_list(&segment, &values, effort)?;
        records.push(print("paper's PFOR", &format!("{percent} % exceptions"), (times, None), gigahertz));
    }
    Ok(json!({ "gigahertz": gigahertz, "schemes": records }))
}

fn print(scheme: &str, kind: &str, (cache, memory): (Duration, Option<Duration>), gigahertz: f64) -> Value {
    let nanoseconds = |time: Duration| time.as_nanos() as f64 / ACCESSES as f64;
    let cells = |time: Duration| format!("{:.1} {:>9.0}", nanoseconds(time), nanoseconds(time) * gigahertz);
    let label = format!("{scheme}, {kind}");
    println!("{label:<34} {:>19} {:>25}", cells(cache), memory.map_or_else(String::new, cells));
    json!({
        "scheme": scheme, "values": kind, "cache_ns": nanoseconds(cache), "memory_ns": memory.map(nanoseconds),
        "cache_cycles": nanoseconds(cache) * gigahertz,
        "memory_cycles": memory.map(|memory| nanoseconds(memory) * gigahertz),
    })
}

fn cases() -> Vec<(&'static str, &'static str, ValuesBuf)> {
    let around_base = |share| skewed::around_base(VALUE_COUNT, share, BIT_WIDTH);
    let small: Vec<u64> = around_base(0.0).iter().map(|value| value & 0xff).collect();
    let ascending = |gaps: &[u64]| -> Vec<u64> {
        let mut total = 0;
        let add = |gap: &u64| {
            total += gap;
            total
        };
        gaps.iter().map(add).collect()
    };
    let runs: Vec<u64> = small.chunks(20).flat_map(|chunk| chunk.iter().map(|_| chunk[0])).collect();
    let wide_gaps: Vec<u64> = small.iter().enumerate().map(|(row, gap)| gap << (row % 20 / 19 * 8)).collect();
    let cases = [
        ("raw", "8 bits", small.clone()),
        ("bitpack", "8 bits", small.clone()),
        ("for", "8 bits", around_base(0.0)),
        ("pfor", "0 % exceptions", around_base(0.0)),
        ("pfor", "5 % exceptions", around_base(0.05)),
        ("pfor", "30 % exceptions", around_base(0.30)),
        ("dict", "255 values", skewed::frequent(VALUE_COUNT, 0.0)),
        ("pdict", "5 % exceptions", skewed::frequent(VALUE_COUNT, 0.05)),
        ("pdict", "30 % exceptions", skewed::frequent(VALUE_COUNT, 0.30)),
        ("rle", "runs of 20", runs),
        ("delta", "gaps of 8 bits", ascending(&small)),
        ("pfor_delta", "5 % wide gaps", ascending(&wide_gaps)),
    ];
    cases.into_iter().map(|(scheme, kind, values)| (scheme, kind, ValuesBuf::U64(values))).collect()
}

/// Times of all accesses, in cache and from memory.
fn measure(scheme: &str, values: &ValuesBuf, effort: Effort) -> Result<(Duration, Option<Duration>), Failure> {
    let (mut codec, mut bytes) = (Sinter::new(scheme), Vec::new());
    codec.encode(values.as_values(), &mut bytes)?;
    let copies = (effort.memory_bytes / bytes.len()).clamp(1, BLOCKS_MAX);
    let memory: Vec<Vec<u8>> = (0..copies).map(|_| bytes.clone()).collect();
    let blocks: Vec<Block<'_>> = memory.iter().map(|bytes| Block::open(bytes)).collect::<Result<_, _>>()?;
    let mut random = Random::new(21);
    let mut out = ValuesBuf::U64(Vec::new());
    let rows: Vec<usize> = (0..ACCESSES).map(|_| random.below(VALUE_COUNT as u64) as usize).collect();
    for &row in &rows {
        blocks[0].gather(row, &[0], &mut out)?;
        if out.as_values().slice(0..1).to_buf() != values.as_values().slice(row..row + 1).to_buf() {
            return Err(format!("{scheme} gives another value at row {row}").into());
        }
    }
    // What a block decodes when it is first asked, such as a dictionary, it keeps.
    blocks.iter().try_for_each(|block| block.gather(0, &[0], &mut out))?;
    let mut again = ValuesBuf::U64(Vec::new());
    let (blocks, rows) = (&blocks, &rows);
    let mut runs: Vec<Run<'_>> = vec![
        Box::new(move || {
            for &row in rows {
                blocks[0].gather(row, &[0], &mut out).expect("it did before");
                black_box(&out);
            }
        }),
        Box::new(move || {
            for &row in rows {
                let block = random.below(blocks.len() as u64) as usize;
                blocks[block].gather(row, &[0], &mut again).expect("it did before");
                black_box(&again);
            }
        }),
    ];
    let times = race(&mut runs, effort);
    Ok((times[0].min, Some(times[1].min)))
}

fn measure_list(segment: &Segment, values: &[u64], effort: Effort) -> Result<Duration, Failure> {
    let mut random = Random::new(22);
    let rows: Vec<usize> = (0..ACCESSES).map(|_| random.below(VALUE_COUNT as u64) as usize).collect();
    if rows.iter().any(|&row| segment.single(row) != values[row]) {
        return Err("the linked list gives another value".into());
    }
    let mut runs: Vec<Run<'_>> = vec![Box::new(|| {
        for &row in &rows {
            black_box(segment.single(row));
        }
    })];
    Ok(race(&mut runs, effort)[0].min)
}

/// The clock, by a chain of exclusive-ors (1 cycle) and multiplications (3 cycles, on all x86-64 of the last decade).
fn gigahertz() -> f64 {
    const STEPS: u64 = 1_000_000;
    let factor = black_box(0x9e37_79b9_7f4a_7c15u64);
    let mut runs: Vec<Run<'_>> = vec![Box::new(|| {
        let mut number = 1u64;
        for _ in 0..STEPS {
            number = (number ^ factor).wrapping_mul(factor);
        }
        black_box(number);
    })];
    let effort = Effort { rounds: 9, ..Effort::QUICK };
    4.0 * STEPS as f64 / race(&mut runs, effort)[0].min.as_nanos() as f64
}
