//! Figures 4 and 5: decoding and encoding against the share of exceptions, from none to all values.
//!
//! Figure 4 compares NAIVE with the patched PFOR and PDICT, figure 5 ways to find exceptions while encoding. Beside
//! them stands what SinterDB ships: it looks for base and width in each vector, which the reference forms are told.

use super::skewed::{self, BIT_WIDTH};
use crate::Failure;
use crate::codec::Codec;
use crate::race::{Effort, Run, race};
use crate::reference::patch_list::{Coding, Form, Segment, VECTOR_LEN};
use crate::schemes::{check, room_for_vector};
use crate::sinter::Sinter;
use serde_json::{Value, json};
use sinter_codec::ValuesBuf;
use std::cell::RefCell;
use std::hint::black_box;

/// Values of a segment: more than today's branch predictors learn by heart when they see them again and again, as they
/// do with 32 Ki; what they become fits the L2 cache without exceptions, and else the L3 cache.
const VALUE_COUNT: usize = 512 * 1024;

/// Returns the records of both figures.
pub(super) fn run(effort: Effort) -> Result<(Value, Value), Failure> {
    let step = if effort.is_quick { 25 } else { 5 };
    let (mut figure_4, mut figure_5) = (Vec::new(), Vec::new());
    let (mut decode_lines, mut encode_lines) = (Vec::new(), Vec::new());
    for percent in (0..=100).step_by(step) {
        eprintln!("figures 4 and 5: {percent} % exceptions");
        let share = f64::from(percent) / 100.0;
        let (line, record) = decode(percent, share, effort)?;
        decode_lines.push(line);
        figure_4.push(record);
        let (line, record) = encode(percent, share, effort);
        encode_lines.push(line);
        figure_5.push(record);
    }
    println!("\nFigure 4: decoding 64-bit numbers from 8 bits, GB/s, in cache");
    println!("(paper, no exceptions: 2 to 5 GB/s in all forms; NAIVE falls to its least near 50 %)");
    println!("   %     NAIVE      PFOR     PDICT  sinter pfor  sinter pdict  B/value of pfor and pdict");
    decode_lines.iter().for_each(|line| println!("{line}"));
    println!("\nFigure 5: encoding the same, GB/s (paper: 1 to 2 GB/s)");
    println!("   %     NAIVE      PRED        DC  sinter pfor");
    encode_lines.iter().for_each(|line| println!("{line}"));
    Ok((figure_4.into(), figure_5.into()))
}

fn segment(form: Form, coding: Coding, values: &[u64]) -> Segment {
    let mut segment = Segment::new(form, BIT_WIDTH, coding);
    segment.encode(values);
    segment
}

/// Compares what a segment decodes to with the values.
fn check_segment(segment: &Segment, values: &[u64]) -> Result<(), Failure> {
    let mut out = [0; VECTOR_LEN];
    for (index, vector) in values.as_chunks::<VECTOR_LEN>().0.iter().enumerate() {
        segment.decode(index, &mut out);
        if out != *vector {
            return Err(format!("a reference form does not give back vector {index}").into());
        }
    }
    Ok(())
}

fn decode(percent: i32, share: f64, effort: Effort) -> Result<(String, Value), Failure> {
    let around_base = skewed::around_base(VALUE_COUNT, share, BIT_WIDTH);
    let frequent = skewed::frequent(VALUE_COUNT, share);
    let segments = [
        segment(Form::Naive, skewed::base(), &around_base),
        segment(Form::Predicated, skewed::base(), &around_base),
        segment(Form::Predicated, Coding::dictionary(skewed::frequent_values()), &frequent),
    ];
    for (segment, values) in segments.iter().zip([&around_base, &around_base, &frequent]) {
        check_segment(segment, values)?;
    }
    let mut pressed = Vec::new();
    for (scheme, values) in [("pfor", around_base), ("pdict", frequent)] {
        let (mut codec, mut bytes, values) = (Sinter::new(scheme), Vec::new(), ValuesBuf::U64(values));
        codec.encode(values.as_values(), &mut bytes)?;
        check(&*codec.open(&bytes, values.len())?, &codec.name(), &values)?;
        pressed.push((codec, bytes));
    }
    let opened: Vec<_> =
        pressed.iter().map(|(codec, bytes)| codec.open(bytes, VALUE_COUNT)).collect::<Result<_, _>>()?;
    let out = RefCell::new(room_for_vector(&ValuesBuf::U64(vec![0; VECTOR_LEN])));
    let out = &out;
    let mut runs: Vec<Run<'_>> = Vec::new();
    for segment in &segments {
        runs.push(Box::new(move || {
            let out = &mut *out.borrow_mut();
            let ValuesBuf::U64(values) = out else { unreachable!("64-bit numbers") };
            let values = values.first_chunk_mut().expect("room for a vector");
            for index in 0..VALUE_COUNT / VECTOR_LEN {
                segment.decode(index, values);
                black_box(&*values);
            }
        }));
    }
    for block in &opened {
        runs.push(Box::new(move || {
            let out = &mut *out.borrow_mut();
            for index in 0..VALUE_COUNT / VECTOR_LEN {
                block.vector(index, out);
                black_box(&*out);
            }
        }));
    }
    let speeds = gigabytes(&mut runs, effort);
    let sizes: Vec<f64> = pressed.iter().map(|(_, bytes)| bytes.len() as f64 / VALUE_COUNT as f64).collect();
    let [naive, pfor, pdict, ours, ours_pdict] = speeds[..] else { unreachable!("five runs") };
    let line = format!(
        "{percent:>4} {naive:>9.2} {pfor:>9.2} {pdict:>9.2} {ours:>12.2} {ours_pdict:>12.2} {:>12.2} {:>6.2}",
        sizes[0], sizes[1]
    );
    let record = json!({
        "exceptions_percent": percent, "naive_gb_s": naive, "pfor_gb_s": pfor, "pdict_gb_s": pdict,
        "sinter_pfor_gb_s": ours, "sinter_pdict_gb_s": ours_pdict,
        "sinter_pfor_bytes_per_value": sizes[0], "sinter_pdict_bytes_per_value": sizes[1],
        "pfor_bytes_per_value": segments[1].bytes() as f64 / VALUE_COUNT as f64,
    });
    Ok((line, record))
}

fn encode(percent: i32, share: f64, effort: Effort) -> (String, Value) {
    let values = skewed::around_base(VALUE_COUNT, share, BIT_WIDTH);
    let as_values = sinter_codec::Values::U64(&values);
    let mut runs: Vec<Run<'_>> = Vec::new();
    for form in [Form::Naive, Form::Predicated, Form::DoubleCursor] {
        let mut segment = Segment::new(form, BIT_WIDTH, skewed::base());
        let values = &values;
        runs.push(Box::new(move || {
            segment.encode(values);
            black_box(&segment);
        }));
    }
    let (mut codec, mut out) = (Sinter::new("pfor"), Vec::new());
    runs.push(Box::new(move || {
        out.clear();
        codec.encode(as_values, &mut out).expect("pfor holds numbers");
        black_box(&out);
    }));
    let speeds = gigabytes(&mut runs, effort);
    let [naive, predicated, double_cursor, ours] = speeds[..] else { unreachable!("four runs") };
    let line = format!("{percent:>4} {naive:>9.2} {predicated:>9.2} {double_cursor:>9.2} {ours:>12.2}");
    let record = json!({
        "exceptions_percent": percent, "naive_gb_s": naive, "pred_gb_s": predicated, "dc_gb_s": double_cursor,
        "sinter_pfor_gb_s": ours,
    });
    (line, record)
}

fn gigabytes(runs: &mut [Run<'_>], effort: Effort) -> Vec<f64> {
    let bytes = (8 * VALUE_COUNT) as f64;
    race(runs, effort).iter().map(|times| bytes / times.min.as_secs_f64() / 1e9).collect()
}
