//! Measures contenders on more than any cache holds: a block's bytes again and again, each copy read once.

use super::measure::{check, plain_bytes, room_for_vector};
use super::points::{self, Point, WITH_EXCEPTIONS};
use crate::Failure;
use crate::codec::{Entrant, Kin};
use crate::peers;
use crate::race::{Best, Effort, Run, in_turns};
use crate::sinter::Sinter;
use serde_json::{Value, json};
use sinter_codec::{Physical, SCHEMES, VECTOR_LEN, ValuesBuf};
use std::cell::RefCell;
use std::hint::black_box;

/// Points of a scheme and type at most: widths of `u32` and `u64`, and others.
const WIDTH_COUNT_MAX: usize = 4;
const POINT_COUNT_MAX: usize = 2;

/// Schemes that are left out: a block of `constant` is a few bytes, and `halves` has 128-bit numbers alone.
const LEFT_OUT: [&str; 2] = ["constant", "halves"];

/// Values that a byte may stand for at most: where somebody needs less, it would take hours to decode what fills the memory.
const VALUES_PER_BYTE_MAX: usize = 64;

/// Where each block starts: at a multiple of this.
const ALIGNMENT: usize = 64;

/// Room for a block whose bytes are not always as many: dictionaries are remembered from block to block.
const SLACK: usize = 64;

/// The points that are measured so: widths of `u32` and `u64` for the schemes that have points at every width, and what there
/// is for others; nothing of 128 bits.
fn of_scheme(scheme: &str) -> Result<Vec<Point>, Failure> {
    let is_wanted = |point: &Point| match (scheme, point.physical()) {
        (_, Physical::I128) => false,
        ("pfor", _) if point.kind != WITH_EXCEPTIONS => false,
        ("bitpack" | "for" | "pfor" | "delta" | "pfor_delta", Physical::U32) => [4, 8, 12, 16].contains(&point.width),
        ("bitpack" | "for" | "pfor" | "delta" | "pfor_delta", Physical::U64) => [8, 16, 24, 32].contains(&point.width),
        ("dict" | "pdict", Physical::U32 | Physical::U64) => [4, 8, 10, 12].contains(&point.width),
        ("rle", Physical::U32 | Physical::U64) => [2, 4, 16, 64].contains(&point.width),
        ("bitpack" | "for" | "pfor" | "delta" | "pfor_delta" | "rle", _) => false,
        ("dict" | "pdict", physical) => matches!(physical, Physical::F64 | Physical::Bytes),
        _ => true,
    };
    let mut points: Vec<Point> = Vec::new();
    for point in points::of_scheme(scheme, false).into_iter().filter(is_wanted) {
        let of_type = points.iter().filter(|other| other.physical() == point.physical()).count();
        let is_word = matches!(point.physical(), Physical::U32 | Physical::U64);
        if of_type < if is_word { WIDTH_COUNT_MAX } else { POINT_COUNT_MAX } || point.lossy.is_some() {
            points.push(point);
        }
    }
    if points.is_empty() {
        return Err(format!("{scheme} has no points in memory: memory.rs wants some, or leaves it out by name").into());
    }
    Ok(points)
}

/// Measures, prints, and returns the records. With names, only those schemes.
///
/// # Errors
/// Where a contender does not give back what it got.
pub fn run(only: &[String], effort: Effort) -> Result<Vec<Value>, Failure> {
    println!("In memory: {} MB of pressed data, GB/s of plain values", effort.memory_bytes >> 20);
    let mut records = Vec::new();
    let names = SCHEMES.iter().map(|entry| entry.name).filter(|name| !LEFT_OUT.contains(name));
    for scheme in names.filter(|scheme| only.is_empty() || only.iter().any(|name| name == scheme)) {
        let mut points = of_scheme(scheme)?;
        points.truncate(if effort.is_quick { 1 } else { points.len() });
        let mut heading = None;
        for point in points {
            let this = (point.physical().name(), point.kind.clone());
            let (type_name, kind) = &this;
            eprintln!("memory: {scheme}, {type_name} {kind} {}", point.width);
            if heading.as_ref() != Some(&this) {
                println!("\n{scheme} of {type_name}, {kind}");
                println!("{:>5}  {:<27} {:>8} {:>8} {:>8}", "width", "contender", "B/value", "encode", "decode");
                heading = Some(this);
            }
            records.extend(measure(&point, effort)?);
        }
    }
    Ok(records)
}

/// A contender, and what it made of a point's values.
struct Written {
    entrant: Entrant,
    bytes: Vec<u8>,
    /// Whether vectors can be decoded one by one.
    has_vectors: bool,
}

/// `None` for values of which nearly nothing is left.
fn measure(point: &Point, effort: Effort) -> Result<Option<Value>, Failure> {
    let physical = point.physical();
    let entrants =
        [Entrant::ours(Sinter::new(point.request()))].into_iter().chain(peers::beside(point.scheme, physical));
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
    if let Some(least) = written.iter().find(|one| one.bytes.len() * VALUES_PER_BYTE_MAX < point.values.len()) {
        let name = least.entrant.codec.name();
        println!("{:>5}  left out: {name} keeps {VALUES_PER_BYTE_MAX} values and more in a byte", point.width);
        return Ok(None);
    }
    let decode = decode(&written, point, effort);
    let encode = encode(&mut written, point, effort);
    let mut contenders = Vec::new();
    for (Written { entrant, bytes, has_vectors }, (encode, decode)) in
        written.iter().zip(encode.into_iter().zip(decode))
    {
        let name = entrant.codec.name();
        let bytes_per_value = bytes.len() as f64 / point.values.len() as f64;
        let (encode_speed, decode_speed) = (encode.gigabytes(), decode.gigabytes());
        println!("{:>5}  {name:<27} {bytes_per_value:>8.3} {encode_speed:>8.2} {decode_speed:>8.2}", point.width);
        contenders.push(json!({
            "name": name,
            "is_ours": entrant.kin == Kin::Ours,
            "bytes_per_value": bytes_per_value,
            "has_vectors": has_vectors,
            "encode_gb_s": encode_speed,
            "encode_turns": encode.best.turns,
            "decode_gb_s": decode_speed,
            "decode_turns": decode.best.turns,
            "decode_pressed_bytes": decode.copies * bytes.len(),
        }));
    }
    Ok(Some(json!({
        "scheme": point.scheme, "type": physical.name(), "kind": point.kind, "width": point.width,
        "contenders": contenders,
    })))
}

/// What so many copies of a block took at best.
struct Speed {
    copies: usize,
    plain_bytes: usize,
    best: Best,
}

impl Speed {
    /// Gigabytes (1e9) of plain values a second.
    fn gigabytes(&self) -> f64 {
        (self.copies * self.plain_bytes) as f64 / self.best.least.as_secs_f64() / 1e9
    }
}

/// Lets all of `runs`, which go over so many copies each, take turns.
fn speeds(mut runs: Vec<Run<'_>>, copies: &[usize], point: &Point, effort: Effort) -> Vec<Speed> {
    let plain_bytes = plain_bytes(point.values.as_values());
    let best = in_turns(&mut runs, effort);
    copies.iter().zip(best).map(|(&copies, best)| Speed { copies, plain_bytes, best }).collect()
}

/// Decoding by vectors, or as a whole where that is the only way, from as many copies as fill the memory. Opening each copy
/// is part of it, and so is what a reader unpacks once.
fn decode(written: &[Written], point: &Point, effort: Effort) -> Vec<Speed> {
    let value_count = point.values.len();
    let (mut memories, mut copies) = (Vec::new(), Vec::new());
    for Written { bytes, .. } in written {
        let stride = bytes.len().next_multiple_of(ALIGNMENT);
        let count = effort.memory_bytes.div_ceil(bytes.len());
        let mut memory = vec![0; count * stride + ALIGNMENT];
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        for copy in memory[start..start + count * stride].chunks_exact_mut(stride) {
            copy[..bytes.len()].copy_from_slice(bytes);
        }
        memories.push((memory, start..start + count * stride, stride));
        copies.push(count);
    }
    // All write to the same memory: where it lies makes a difference.
    let (out, vector_out) =
        (RefCell::new(ValuesBuf::new(point.physical())), RefCell::new(room_for_vector(&point.values)));
    let (out, vector_out) = (&out, &vector_out);
    let mut runs: Vec<Run<'_>> = Vec::new();
    for (Written { entrant, bytes, has_vectors }, (memory, filled, stride)) in written.iter().zip(&memories) {
        runs.push(Box::new(move || {
            for copy in memory[filled.clone()].chunks_exact(*stride) {
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
    speeds(runs, &copies, point, effort)
}

/// Encoding of plain values that are read from memory, to memory.
fn encode(written: &mut [Written], point: &Point, effort: Effort) -> Vec<Speed> {
    let count = effort.memory_bytes.div_ceil(plain_bytes(point.values.as_values()));
    let copies = vec![count; written.len()];
    let blocks = &vec![point.values.clone(); count];
    let mut runs: Vec<Run<'_>> = Vec::new();
    for Written { entrant, bytes, .. } in written {
        // Written once, so that no page is met for the first time within a turn.
        let mut out = vec![1; (bytes.len() + SLACK) * count];
        runs.push(Box::new(move || {
            out.clear();
            for block in blocks {
                entrant.codec.encode(block.as_values(), &mut out).expect("it did before");
            }
            black_box(&out);
        }));
    }
    speeds(runs, &copies, point, effort)
}
