//! Table 4 of the X100 paper: inverted files by PFOR-DELTA, carryover-12 and Huffman codes.
//!
//! All lists of a collection stand in one column, one after the other. Ours has it in blocks of a row group, and what
//! lies between two lists is a difference like others. The reference forms are given where lists end.

mod postings;

use crate::Failure;
use crate::codec::{Codec, Opened};
use crate::race::{Effort, Run, race};
use crate::reference::{carryover_12, gap_huffman};
use crate::sinter::Sinter;
use postings::Lists;
use serde_json::{Value, json};
use sinter_codec::{ROW_GROUP_LEN, Values, ValuesBuf};
use std::hint::black_box;
use std::path::Path;

/// The paper's: collection, then ratio, encoding and decoding in MB/s of PFOR-DELTA, carryover-12 and shuff.
const PAPER: [(&str, [[f64; 3]; 3]); 5] = [
    ("INEX", [[1.75, 679.0, 3053.0], [2.12, 49.0, 524.0], [2.45, 3.5, 82.0]]),
    ("TREC fbis", [[3.47, 788.0, 3911.0], [4.26, 98.0, 740.0], [5.11, 190.0, 164.0]]),
    ("TREC fr94", [[3.12, 682.0, 3196.0], [3.49, 84.0, 689.0], [4.65, 149.0, 154.0]]),
    ("TREC ft", [[3.13, 761.0, 3443.0], [3.47, 84.0, 704.0], [4.89, 178.0, 157.0]]),
    ("TREC latimes", [[2.99, 742.0, 3289.0], [3.30, 79.0, 683.0], [4.61, 164.0, 153.0]]),
];

/// Files of lists in the data collection.
const FILES: [&str; 5] =
    ["census-income", "census1881", "weather_sept_85_srt", "wikileaks-noquotes", "wikileaks-noquotes_srt"];

/// Documents of the collection that are indexed with `--quick`.
const QUICK_DOCUMENTS: usize = 3_000;

/// What one contender made of one collection.
struct Measured {
    name: String,
    ratio: f64,
    encode_mb_s: f64,
    decode_mb_s: f64,
}

/// Measures, prints, and returns the record.
///
/// # Errors
/// Where a file is missing, or a contender does not give back what it got.
pub fn run(data: &Path, effort: Effort) -> Result<Value, Failure> {
    let effort = Effort { rounds: if effort.is_quick { 1 } else { 7 }, ..effort };
    let files = if effort.is_quick { &FILES[3..] } else { &FILES[..] };
    println!("\nTable 4: lists of ascending 32-bit numbers: ratio, and MB/s of numbers, encode / decode");
    println!(
        "{:<24} {:>10}  {:>19}  {:>19}  {:>19}  {:>19}",
        "collection", "numbers", "pfor_delta", "auto", "carryover-12", "gap Huffman"
    );
    let mut records = Vec::new();
    let mut measure_lists = |lists: Lists| -> Result<(), Failure> {
        eprintln!("table 4: {}", lists.name);
        let measured = measure(&lists, effort)?;
        print!("{:<24} {:>10}", lists.name, lists.numbers.len());
        measured.iter().for_each(|one| print_one(one.ratio, one.encode_mb_s, one.decode_mb_s));
        println!();
        let contenders = measured.iter().map(|one| {
            json!({
                "name": one.name, "ratio": one.ratio, "encode_mb_s": one.encode_mb_s, "decode_mb_s": one.decode_mb_s,
            })
        });
        records.push(json!({
            "collection": lists.name, "numbers": lists.numbers.len(), "lists": lists.ends.len(),
            "contenders": contenders.collect::<Vec<_>>(),
        }));
        Ok(())
    };
    for name in files {
        measure_lists(postings::of_file(name, &data.join(format!("roaring_lists/{name}.lists.csv.zst")))?)?;
    }
    let documents = if effort.is_quick { QUICK_DOCUMENTS } else { usize::MAX };
    measure_lists(postings::of_documents("imdb_reviews", &data.join("imdb_reviews/imdb.jsonl.zst"), documents)?)?;
    for (name, figures) in PAPER {
        print!("{:<35}", format!("paper: {name}"));
        let [pfor_delta, carryover, shuff] = figures;
        print_one(pfor_delta[0], pfor_delta[1], pfor_delta[2]);
        print!("  {:>19}", "");
        print_one(carryover[0], carryover[1], carryover[2]);
        print_one(shuff[0], shuff[1], shuff[2]);
        println!();
    }
    Ok(records.into())
}

fn print_one(ratio: f64, encode_mb_s: f64, decode_mb_s: f64) {
    print!("  {ratio:>6.2} {encode_mb_s:>6.0}/{decode_mb_s:>5.0}");
}

fn measure(lists: &Lists, effort: Effort) -> Result<Vec<Measured>, Failure> {
    let plain = 4.0 * lists.numbers.len() as f64;
    let mut measured = Vec::new();
    for codec in [Sinter::new("pfor_delta"), Sinter::auto()] {
        measured.push(measure_ours(codec, lists, effort)?);
    }
    let gaps = lists.gaps();
    let one = |name: &str, bytes: usize, times: &[f64]| Measured {
        name: name.to_owned(),
        ratio: plain / bytes as f64,
        encode_mb_s: plain / times[0] / 1e6,
        decode_mb_s: plain / times[1] / 1e6,
    };
    let (count, gaps) = (gaps.len(), &gaps);
    let (mut words, mut again) = (Vec::new(), Vec::new());
    if !carryover_12::encode(gaps, &mut words) {
        return Err("a gap has more bits than carryover-12 has".into());
    }
    let mut out = vec![0; count + carryover_12::SLACK];
    carryover_12::decode(&words, count, &mut out);
    lists.add_up(&mut out[..count]);
    expect_equal("carryover-12", &out[..count], lists)?;
    let times = seconds(
        &mut [
            Box::new(|| {
                carryover_12::encode(gaps, &mut again);
                black_box(&again);
            }),
            Box::new(|| {
                carryover_12::decode(&words, count, &mut out);
                lists.add_up(&mut out[..count]);
                black_box(&out);
            }),
        ],
        effort,
    );
    measured.push(one("carryover-12", 4 * words.len(), &times));
    let (mut bytes, mut again, mut out) = (Vec::new(), Vec::new(), vec![0; count]);
    gap_huffman::encode(gaps, &mut bytes);
    gap_huffman::decode(&bytes, &mut out);
    lists.add_up(&mut out);
    expect_equal("gap Huffman", &out, lists)?;
    let times = seconds(
        &mut [
            Box::new(|| {
                gap_huffman::encode(gaps, &mut again);
                black_box(&again);
            }),
            Box::new(|| {
                gap_huffman::decode(&bytes, &mut out);
                lists.add_up(&mut out);
                black_box(&out);
            }),
        ],
        effort,
    );
    measured.push(one("gap Huffman", bytes.len(), &times));
    Ok(measured)
}

fn measure_ours(mut codec: Sinter, lists: &Lists, effort: Effort) -> Result<Measured, Failure> {
    let (name, numbers) = (codec.name(), &lists.numbers);
    let mut blocks: Vec<Vec<u8>> = Vec::new();
    for group in numbers.chunks(ROW_GROUP_LEN) {
        let mut bytes = Vec::new();
        codec.encode(Values::U32(group), &mut bytes)?;
        blocks.push(bytes);
    }
    let groups = blocks.iter().zip(numbers.chunks(ROW_GROUP_LEN));
    let opened: Vec<(Box<dyn Opened + '_>, usize)> = groups
        .map(|(bytes, group)| Ok((codec.open(bytes, group.len())?, group.len())))
        .collect::<Result<_, Failure>>()?;
    let mut out = ValuesBuf::U32(Vec::new());
    for ((block, _), group) in opened.iter().zip(numbers.chunks(ROW_GROUP_LEN)) {
        block.whole(&mut out);
        if out != Values::U32(group).to_buf() {
            return Err(format!("{name} does not give back {}", lists.name).into());
        }
    }
    let mut encoder = Sinter::auto();
    if name.ends_with("pfor_delta") {
        encoder = Sinter::new("pfor_delta");
    }
    let mut again = Vec::new();
    let times = seconds(
        &mut [
            Box::new(|| {
                for group in numbers.chunks(ROW_GROUP_LEN) {
                    again.clear();
                    encoder.encode(Values::U32(group), &mut again).expect("it did before");
                    black_box(&again);
                }
            }),
            Box::new(|| {
                for (block, value_count) in &opened {
                    for index in 0..value_count.div_ceil(sinter_codec::VECTOR_LEN) {
                        block.vector(index, &mut out);
                        black_box(&out);
                    }
                }
            }),
        ],
        effort,
    );
    let plain = 4.0 * numbers.len() as f64;
    let bytes: usize = blocks.iter().map(Vec::len).sum();
    Ok(Measured {
        name,
        ratio: plain / bytes as f64,
        encode_mb_s: plain / times[0] / 1e6,
        decode_mb_s: plain / times[1] / 1e6,
    })
}

fn seconds(runs: &mut [Run<'_>], effort: Effort) -> Vec<f64> {
    race(runs, effort).iter().map(|times| times.min.as_secs_f64()).collect()
}

fn expect_equal(name: &str, numbers: &[u32], lists: &Lists) -> Result<(), Failure> {
    match numbers == lists.numbers {
        true => Ok(()),
        false => Err(format!("{name} does not give back {}", lists.name).into()),
    }
}
