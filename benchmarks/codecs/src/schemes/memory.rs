//! Measures contenders on more than any cache holds: a block's bytes again and again, each copy read once.

use super::measure::{check, plain_bytes, room_for_vector};
use super::points::{self, Point, WITH_EXCEPTIONS};
use crate::Failure;
use crate::codec::{Entrant, Kin};
use crate::peers;
use crate::race::{Effort, Run, Times, race};
use crate::sinter::Sinter;
use serde_json::{Value, json};
use sinter_codec::{Physical, SCHEMES, VECTOR_LEN, ValuesBuf};
use std::cell::RefCell;
use std::hint::black_box;

/// Points of a scheme at most, where not every width of two types is at hand.
const POINT_COUNT_MAX: usize = 4;

/// Plain bytes that one turn decodes at most, for each pressed byte of memory: a peer that makes a thousandth of runs would
/// decode a terabyte to read a gigabyte.
const RATIO_MAX: usize = 64;

/// Copies start at multiples of this, as pages do.
const ALIGNMENT: usize = 64;

/// Room for a block whose bytes are not always as many, as symbols depend on earlier blocks.
const SLACK: usize = 64;

/// The points that are measured so: four widths of `u32` and `u64`, or what a scheme of other values has. Nothing for
/// `constant`, whose blocks are a few bytes, and for 128-bit numbers.
fn of_scheme(scheme: &str) -> Vec<Point> {
    let widths = |physical| match (scheme, physical) {
        ("bitpack" | "for" | "pfor" | "delta" | "pfor_delta", Physical::U32) => Some([4, 8, 12, 16]),
        ("bitpack" | "for" | "pfor" | "delta" | "pfor_delta", Physical::U64) => Some([8, 16, 24, 32]),
        ("dict" | "pdict", Physical::U32 | Physical::U64) => Some([4, 8, 10, 12]),
        ("rle", Physical::U32 | Physical::U64) => Some([2, 4, 16, 64]),
        _ => None,
    };
    let mut points = points::of_scheme(scheme, false);
    points.retain(|point| point.physical() != Physical::I128 && (scheme != "pfor" || point.kind == WITH_EXCEPTIONS));
    if widths(Physical::U32).is_some() {
        points.retain(|point| widths(point.physical()).is_some_and(|widths| widths.contains(&point.width)));
    } else {
        points.truncate(if scheme == "constant" { 0 } else { POINT_COUNT_MAX });
    }
    points
}

/// Measures, prints, and returns the records. With names, only those schemes.
///
/// # Errors
/// Where a contender does not give back what it got.
pub fn run(only: &[String], effort: Effort) -> Result<Value, Failure> {
    let effort = Effort { rounds: if effort.is_quick { 1 } else { 3 }, ..effort };
    println!("In memory: {} MB of pressed data, GB/s of plain values", effort.memory_bytes >> 20);
    println!(
        "{:<11} {:<6} {:>5}  {:<27} {:>8} {:>8} {:>8}",
        "scheme", "type", "bits", "contender", "B/value", "encode", "decode"
    );
    let mut records = Vec::new();
    let names = SCHEMES.iter().map(|entry| entry.name);
    for scheme in names.filter(|scheme| only.is_empty() || only.iter().any(|name| name == scheme)) {
        let mut points = of_scheme(scheme);
        points.truncate(if effort.is_quick { 1 } else { points.len() });
        for point in points {
            eprintln!("memory: {scheme}, {} {} {}", point.physical().name(), point.kind, point.width);
            records.push(measure(&point, effort)?);
        }
    }
    Ok(Value::Array(records))
}

/// A contender, and what it made of a point's values.
struct Written {
    entrant: Entrant,
    bytes: Vec<u8>,
    /// Whether vectors can be decoded one by one.
    has_vectors: bool,
}

fn measure(point: &Point, effort: Effort) -> Result<Value, Failure> {
    let physical = point.physical();
    let entrants = [Entrant::ours(Sinter::new(point.scheme))].into_iter().chain(peers::beside(point.scheme, physical));
    let mut written = Vec::new();
    for mut entrant in entrants {
        let mut bytes = Vec::new();
        match entrant.codec.encode(point.values.as_values(), &mut bytes) {
            Ok(()) => {
                let block = entrant.codec.open(&bytes, point.values.len())?;
                let has_vectors = check(&*block, &entrant.codec.name(), &point.values)?;
                drop(block);
                written.push(Written { entrant, bytes, has_vectors });
            }
            Err(error) if entrant.kin == Kin::Ours => return Err(error),
            Err(error) => eprintln!("{} is left out: {error}", entrant.codec.name()),
        }
    }
    let decode = decode(&written, point, effort);
    let encode = encode(&mut written, point, effort);
    let mut contenders = Vec::new();
    for (Written { entrant, bytes, has_vectors }, (encode, decode)) in
        written.iter().zip(encode.into_iter().zip(decode))
    {
        let bytes_per_value = bytes.len() as f64 / point.values.len() as f64;
        println!(
            "{:<11} {:<6} {:>5}  {:<27} {bytes_per_value:>8.3} {encode:>8.2} {decode:>8.2}",
            point.scheme,
            physical.name(),
            point.width,
            entrant.codec.name(),
        );
        contenders.push(json!({
            "name": entrant.codec.name(),
            "is_ours": entrant.kin == Kin::Ours,
            "bytes_per_value": bytes_per_value,
            "has_vectors": has_vectors,
            "encode_gb_s": encode,
            "decode_gb_s": decode,
        }));
    }
    Ok(json!({
        "scheme": point.scheme, "type": physical.name(), "kind": point.kind, "width": point.width,
        "contenders": contenders,
    }))
}

/// GB/s of plain values, decoded by vectors, or as a whole where that is the only way, from as many copies as fill the
/// memory. Opening each copy is part of it.
fn decode(written: &[Written], point: &Point, effort: Effort) -> Vec<f64> {
    let value_count = point.values.len();
    let plain = plain_bytes(point.values.as_values());
    let (mut memories, mut copies) = (Vec::new(), Vec::new());
    for Written { bytes, .. } in written {
        let stride = bytes.len().next_multiple_of(ALIGNMENT);
        let count = (effort.memory_bytes / stride).min(effort.memory_bytes * RATIO_MAX / plain) + 1;
        let mut memory = Vec::with_capacity(count * stride);
        for copy in 0..count {
            memory.extend_from_slice(bytes);
            memory.resize((copy + 1) * stride, 0);
        }
        memories.push((memory, stride));
        copies.push(count);
    }
    // All write to the same memory: where it lies makes a difference.
    let (out, vector_out) =
        (RefCell::new(ValuesBuf::new(point.physical())), RefCell::new(room_for_vector(&point.values)));
    let (out, vector_out) = (&out, &vector_out);
    let mut runs: Vec<Run<'_>> = Vec::new();
    for (Written { entrant, bytes, has_vectors }, (memory, stride)) in written.iter().zip(&memories) {
        runs.push(Box::new(move || {
            for copy in memory.chunks_exact(*stride) {
                let block = entrant.codec.open(&copy[..bytes.len()], value_count).expect("it did before");
                if *has_vectors {
                    let out = &mut *vector_out.borrow_mut();
                    for index in 0..value_count.div_ceil(VECTOR_LEN) {
                        block.vector(index, out);
                        black_box(&*out);
                    }
                } else {
                    block.whole(&mut out.borrow_mut());
                    black_box(&*out.borrow());
                }
            }
        }));
    }
    let times = race(&mut runs, effort);
    times.into_iter().zip(copies).map(|(times, copies)| gigabytes(plain * copies, times)).collect()
}

/// In gigabytes (1e9) a second.
fn gigabytes(bytes: usize, times: Times) -> f64 {
    bytes as f64 / times.min.as_secs_f64() / 1e9
}

/// GB/s of plain values, read from memory and written to it.
fn encode(written: &mut [Written], point: &Point, effort: Effort) -> Vec<f64> {
    let plain = plain_bytes(point.values.as_values());
    let copies = effort.memory_bytes.div_ceil(plain);
    let blocks = &vec![point.values.clone(); copies];
    let mut runs: Vec<Run<'_>> = Vec::new();
    for Written { entrant, bytes, .. } in written {
        // Written once, so that no page is met for the first time within a turn.
        let mut out = vec![1; (bytes.len() + SLACK) * copies];
        runs.push(Box::new(move || {
            out.clear();
            for block in blocks {
                entrant.codec.encode(block.as_values(), &mut out).expect("it did before");
            }
            black_box(&out);
        }));
    }
    race(&mut runs, effort).into_iter().map(|times| gigabytes(plain * copies, times)).collect()
}
