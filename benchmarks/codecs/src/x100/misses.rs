//! Branches and cache lines that are missed by the forms of figures 4 and 5, as callgrind's model of a processor counts
//! them.
//!
//! The program runs itself under valgrind, which knows no AVX-512: `scripts/benchmark-codecs misses` builds one
//! without.

use super::skewed::{self, BIT_WIDTH};
use crate::Failure;
use crate::codec::Codec;
use crate::race::Effort;
use crate::reference::patch_list::{Coding, Form, Segment, VECTOR_LEN};
use crate::sinter::Sinter;
use serde_json::{Value, json};
use sinter_codec::ValuesBuf;
use std::collections::HashMap;
use std::hint::black_box;
use std::process::Command;

/// Values that a probe encodes or decodes.
const VALUE_COUNT: usize = 32 * 1024;

/// What is probed.
const FORMS: [&str; 9] = [
    "decode-naive",
    "decode-pfor",
    "decode-pdict",
    "decode-sinter",
    "decode-sinter-pdict",
    "encode-naive",
    "encode-pred",
    "encode-dc",
    "encode-sinter",
];

/// Measures, prints, and returns the record.
///
/// # Errors
/// Where valgrind is missing, or does not know an instruction.
pub fn run(effort: Effort) -> Result<Value, Failure> {
    let percents: &[u32] = if effort.is_quick { &[0, 50] } else { &[0, 5, 10, 20, 30, 50, 75, 100] };
    println!("Figures 4 and 5: for each value, by callgrind's model; 64-bit numbers of 8 bits");
    println!(
        "{:<20} {:>4} {:>13} {:>9} {:>14} {:>12} {:>12}",
        "form", "%", "instructions", "branches", "mispredicted", "D1 misses", "LL misses"
    );
    let mut records = Vec::new();
    for form in FORMS {
        for &percent in percents {
            eprintln!("misses: {form}, {percent} %");
            let counts = count(form, percent)?;
            let each = |names: &[&str]| {
                let sum: u64 = names.iter().filter_map(|name| counts.get(*name)).sum();
                sum as f64 / VALUE_COUNT as f64
            };
            let instructions = each(&["Ir"]);
            let (branches, mispredicted) = (each(&["Bc", "Bi"]), each(&["Bcm", "Bim"]));
            let (d1, last) = (each(&["D1mr", "D1mw"]), each(&["DLmr", "DLmw"]));
            print!("{form:<20} {percent:>4} {instructions:>13.2} {branches:>9.3} ");
            println!("{mispredicted:>14.4} {d1:>12.4} {last:>12.4}");
            records.push(json!({
                "form": form, "exceptions_percent": percent, "instructions": instructions, "branches": branches,
                "mispredicted": mispredicted, "d1_misses": d1, "last_level_misses": last,
            }));
        }
    }
    Ok(records.into())
}

/// Callgrind's counts of one probe, by the names of events.
fn count(form: &str, percent: u32) -> Result<HashMap<String, u64>, Failure> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--branch-sim=yes", "--cache-sim=yes", "--toggle-collect=*probed*"])
        .arg("--callgrind-out-file=/dev/null")
        .arg(std::env::current_exe()?)
        .args(["--probe", form, &percent.to_string()])
        .output()
        .map_err(|error| format!("valgrind does not start: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let advice = "scripts/benchmark-codecs misses builds what valgrind can run";
        return Err(format!("valgrind failed, {}; {advice}", output.status).into());
    }
    let after = |label: &str| {
        let line = text.lines().find_map(|line| line.split_once(label))?;
        Some(line.1.trim_start_matches([' ', ':']).split_whitespace())
    };
    let (names, counts) = after("Events").zip(after("Collected")).ok_or("valgrind printed no counts")?;
    names.zip(counts).map(|(name, count)| Ok((name.to_owned(), count.parse()?))).collect()
}

/// Runs one form, first to warm up, then to be counted.
///
/// # Errors
/// For a form that is not there.
pub fn probe(form: &str, percent: u32) -> Result<(), Failure> {
    let share = f64::from(percent) / 100.0;
    let values = skewed::around_base(VALUE_COUNT, share, BIT_WIDTH);
    let segment = |form, coding, values: &[u64]| {
        let mut segment = Segment::new(form, BIT_WIDTH, coding);
        segment.encode(values);
        segment
    };
    let decode = |segment: Segment| {
        let mut out = [0; VECTOR_LEN];
        twice(&mut || {
            for index in 0..VALUE_COUNT / VECTOR_LEN {
                segment.decode(index, &mut out);
                black_box(&out);
            }
        });
    };
    let encode = |form| {
        let mut segment = Segment::new(form, BIT_WIDTH, skewed::base());
        twice(&mut || {
            segment.encode(&values);
            black_box(&segment);
        });
    };
    match form {
        "decode-naive" => decode(segment(Form::Naive, skewed::base(), &values)),
        "decode-pfor" => decode(segment(Form::Predicated, skewed::base(), &values)),
        "decode-pdict" => {
            let dictionary = Coding::dictionary(skewed::frequent_values());
            decode(segment(Form::Predicated, dictionary, &skewed::frequent(VALUE_COUNT, share)));
        }
        "encode-naive" => encode(Form::Naive),
        "encode-pred" => encode(Form::Predicated),
        "encode-dc" => encode(Form::DoubleCursor),
        "decode-sinter" | "decode-sinter-pdict" | "encode-sinter" => {
            let (scheme, values) = match form {
                "decode-sinter-pdict" => ("pdict", skewed::frequent(VALUE_COUNT, share)),
                _ => ("pfor", values),
            };
            let (mut codec, mut bytes) = (Sinter::new(scheme), Vec::new());
            let values = ValuesBuf::U64(values);
            codec.encode(values.as_values(), &mut bytes)?;
            if form == "encode-sinter" {
                twice(&mut || {
                    bytes.clear();
                    codec.encode(values.as_values(), &mut bytes).expect("it did before");
                    black_box(&bytes);
                });
            } else {
                let block = codec.open(&bytes, VALUE_COUNT)?;
                let mut out = ValuesBuf::U64(Vec::new());
                twice(&mut || {
                    for index in 0..VALUE_COUNT / VECTOR_LEN {
                        block.vector(index, &mut out);
                        black_box(&out);
                    }
                });
            }
        }
        _ => return Err(format!("no form {form}").into()),
    }
    Ok(())
}

fn twice(run: &mut dyn FnMut()) {
    run();
    probed(run);
}

/// The function that callgrind is told to count in, by its name.
#[inline(never)]
fn probed(run: &mut dyn FnMut()) {
    run();
    black_box(());
}
