//! Select and lower bound in blocks of 256 ascending keys, as an index has them.

use super::marks::Mark;
use crate::Failure;
use crate::codec::Codec;
use crate::race::{Effort, Run, race};
use crate::random::Random;
use crate::sinter::Sinter;
use serde_json::{Value, json};
use sinter_codec::{Block, Scalar, Values, ValuesBuf};
use std::hint::black_box;

/// Keys of a block.
const KEY_COUNT: usize = 256;

/// Blocks that are asked in turns.
const BLOCKS: usize = 32;

/// Questions in a turn.
const QUESTIONS: usize = 1024;

/// Scheme, then what select and lower bound may take, in nanoseconds.
const MARKS_NS: [(&str, f64, f64); 3] = [("for", 8.0, 20.0), ("delta", 30.0, 45.0), ("pfor_delta", 30.0, 45.0)];

/// Measures, prints, and returns the records and the marks.
///
/// # Errors
/// Where an answer is wrong.
pub fn run(only: &[String], effort: Effort) -> Result<(Vec<Value>, Vec<Mark>), Failure> {
    println!("\nBlocks of {KEY_COUNT} ascending keys, gaps of 8 bits, in cache: nanoseconds of one question");
    println!("{:<12} {:<5} {:>8} {:>8} {:>12}", "scheme", "type", "B/key", "select", "lower bound");
    let (mut records, mut marks) = (Vec::new(), Vec::new());
    let is_asked = |scheme: &str| only.is_empty() || only.iter().any(|name| name == scheme);
    for (scheme, select_mark, lower_bound_mark) in MARKS_NS.into_iter().filter(|(scheme, ..)| is_asked(scheme)) {
        for type_name in ["u32", "u64"] {
            eprintln!("keys: {scheme} of {type_name}");
            let (bytes_per_key, select, lower_bound) = measure(scheme, type_name == "u32", effort)?;
            println!("{scheme:<12} {type_name:<5} {bytes_per_key:>8.2} {select:>8.1} {lower_bound:>12.1}");
            for (question, figure, mark) in
                [("select", select, select_mark), ("lower bound", lower_bound, lower_bound_mark)]
            {
                marks.push(Mark {
                    text: format!("{question} by {scheme}, ns, at most {mark}"),
                    worst: figure,
                    mark,
                    place: format!("{KEY_COUNT} keys of {type_name}"),
                    met: (usize::from(figure <= mark), 1),
                    is_met: figure <= mark,
                });
            }
            records.push(json!({
                "scheme": scheme, "type": type_name, "bytes_per_key": bytes_per_key, "select_ns": select,
                "lower_bound_ns": lower_bound,
            }));
        }
    }
    Ok((records, marks))
}

/// Bytes of a key, and nanoseconds of a select and of a lower bound.
fn measure(scheme: &str, is_narrow: bool, effort: Effort) -> Result<(f64, f64, f64), Failure> {
    let mut random = Random::new(31);
    let (mut codec, mut keys, mut encoded) = (Sinter::new(scheme), Vec::new(), Vec::new());
    for _ in 0..BLOCKS {
        let mut key = random.of_width(20);
        let of_block: Vec<u64> = (0..KEY_COUNT)
            .map(|_| {
                key += random.of_width(8);
                key
            })
            .collect();
        let narrow: Vec<u32> = of_block.iter().map(|&key| key as u32).collect();
        let mut bytes = Vec::new();
        codec.encode(if is_narrow { Values::U32(&narrow) } else { Values::U64(&of_block) }, &mut bytes)?;
        keys.push(of_block);
        encoded.push(bytes);
    }
    let blocks: Vec<Block<'_>> = encoded.iter().map(|bytes| Block::open(bytes)).collect::<Result<_, _>>()?;
    let question = |_| {
        let (block, row) = (random.below(BLOCKS as u64) as usize, random.below(KEY_COUNT as u64) as usize);
        (block, row, Scalar::Int(keys[block][row].into()))
    };
    let questions: Vec<(usize, usize, Scalar)> = (0..QUESTIONS).map(question).collect();
    let mut out = ValuesBuf::new(blocks[0].physical());
    for (block, row, key) in &questions {
        blocks[*block].gather(*row, &[0], &mut out)?;
        let found = match out.as_values() {
            Values::U32(found) => found[0].into(),
            Values::U64(found) => found[0],
            other => return Err(format!("{} values for keys", other.physical().name()).into()),
        };
        let expected = keys[*block].partition_point(|other| *other < keys[*block][*row]);
        if found != keys[*block][*row] || blocks[*block].lower_bound(0..KEY_COUNT, key)? != expected {
            return Err(format!("{scheme} finds another key at row {row}").into());
        }
    }
    let mut runs: Vec<Run<'_>> = vec![
        Box::new(|| {
            for (block, row, _) in &questions {
                blocks[*block].gather(*row, &[0], &mut out).expect("it did before");
                black_box(&out);
            }
        }),
        Box::new(|| {
            for (block, _, key) in &questions {
                black_box(blocks[*block].lower_bound(0..KEY_COUNT, key).expect("it did before"));
            }
        }),
    ];
    let times = race(&mut runs, effort);
    let nanoseconds = |index: usize| times[index].min.as_nanos() as f64 / QUESTIONS as f64;
    let bytes: usize = encoded.iter().map(Vec::len).sum();
    Ok((bytes as f64 / (BLOCKS * KEY_COUNT) as f64, nanoseconds(0), nanoseconds(1)))
}
