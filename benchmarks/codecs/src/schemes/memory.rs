//! Measures contenders on more than any cache holds: a block's bytes again and again, each copy read once.

use super::measure::{check, plain_bytes, room_for_vector};
use super::points::{self, Point, WITH_EXCEPTIONS};
use crate::Failure;
use crate::codec::{Entrant, Kin};
use crate::peers::{self, FastLanesForm};
use crate::race::{Effort, Run, race};
use crate::sinter::Sinter;
use serde_json::{Value, json};
use sinter_codec::{Physical, VECTOR_LEN, ValuesBuf};
use std::cell::RefCell;
use std::hint::black_box;

/// Schemes that are measured so, with the peer of each.
const SCHEMES: [(&str, FastLanesForm); 4] = [
    ("bitpack", FastLanesForm::Packed),
    ("for", FastLanesForm::Based),
    ("pfor", FastLanesForm::Patched),
    ("delta", FastLanesForm::Delta),
];

/// Widths that are measured so.
fn widths(physical: Physical) -> [u32; 4] {
    if physical == Physical::U32 { [4, 8, 12, 16] } else { [8, 16, 24, 32] }
}

/// Copies start at multiples of this, as pages do.
const ALIGNMENT: usize = 64;

/// Measures, prints, and returns the records.
///
/// # Errors
/// Where a contender does not give back what it got.
pub fn run(only: &[String], effort: Effort) -> Result<Vec<Value>, Failure> {
    let effort = Effort { rounds: if effort.is_quick { 1 } else { 3 }, ..effort };
    println!("\nIn memory: {} MB of pressed data, GB/s of plain values", effort.memory_bytes >> 20);
    println!(
        "{:<10} {:<5} {:>5}  {:<18} {:>8} {:>8} {:>8}",
        "scheme", "type", "bits", "contender", "B/value", "encode", "decode"
    );
    let mut records = Vec::new();
    for (scheme, peer) in SCHEMES.into_iter().filter(|(scheme, _)| only.is_empty() || only.iter().any(|s| s == scheme))
    {
        for point in points::of_scheme(scheme, false) {
            let is_measured = matches!(point.physical(), Physical::U32 | Physical::U64)
                && widths(point.physical()).contains(&point.width)
                && (scheme != "pfor" || point.kind == WITH_EXCEPTIONS);
            if is_measured {
                eprintln!("memory: {scheme} of {}, {} bits", point.physical().name(), point.width);
                records.push(measure(&point, peer, effort)?);
            }
        }
    }
    Ok(records)
}

fn measure(point: &Point, peer: FastLanesForm, effort: Effort) -> Result<Value, Failure> {
    let physical = point.physical();
    let mut entrants =
        vec![Entrant::ours(Sinter::new(point.scheme)), peers::fastlanes(peer, physical), peers::copy(physical)];
    let mut encoded = Vec::new();
    for entrant in &mut entrants {
        let mut bytes = Vec::new();
        entrant.codec.encode(point.values.as_values(), &mut bytes)?;
        check(&*entrant.codec.open(&bytes, point.values.len())?, &entrant.codec.name(), &point.values)?;
        encoded.push(bytes);
    }
    let decode = decode(&entrants, &encoded, point, effort)?;
    let encode = encode(&mut entrants, point, effort);
    let mut contenders = Vec::new();
    for ((entrant, bytes), (encode, decode)) in entrants.iter().zip(&encoded).zip(encode.into_iter().zip(decode)) {
        let bytes_per_value = bytes.len() as f64 / point.values.len() as f64;
        println!(
            "{:<10} {:<5} {:>5}  {:<18} {bytes_per_value:>8.3} {encode:>8.2} {decode:>8.2}",
            point.scheme,
            physical.name(),
            point.width,
            entrant.codec.name(),
        );
        contenders.push(json!({
            "name": entrant.codec.name(),
            "is_ours": entrant.kin == Kin::Ours,
            "bytes_per_value": bytes_per_value,
            "encode_gb_s": encode,
            "decode_gb_s": decode,
        }));
    }
    Ok(json!({
        "scheme": point.scheme, "type": physical.name(), "kind": point.kind, "width": point.width,
        "contenders": contenders,
    }))
}

/// GB/s of plain values, decoded by vectors from as many copies as fill the memory. Opening each copy is part of it.
fn decode(entrants: &[Entrant], encoded: &[Vec<u8>], point: &Point, effort: Effort) -> Result<Vec<f64>, Failure> {
    let vector_count = point.values.len() / VECTOR_LEN;
    let (mut memories, mut copies) = (Vec::new(), Vec::new());
    for bytes in encoded {
        let stride = bytes.len().next_multiple_of(ALIGNMENT);
        let count = effort.memory_bytes.div_ceil(stride);
        let mut memory = Vec::with_capacity(count * stride);
        for copy in 0..count {
            memory.extend_from_slice(bytes);
            memory.resize((copy + 1) * stride, 0);
        }
        memories.push((memory, stride));
        copies.push(count);
    }
    let out = RefCell::new(room_for_vector(&point.values));
    let out = &out;
    let mut runs: Vec<Run<'_>> = Vec::new();
    for ((entrant, bytes), (memory, stride)) in entrants.iter().zip(encoded).zip(&memories) {
        let (length, value_count) = (bytes.len(), point.values.len());
        runs.push(Box::new(move || {
            let out = &mut *out.borrow_mut();
            for copy in memory.chunks_exact(*stride) {
                let block = entrant.codec.open(&copy[..length], value_count).expect("it did before");
                for index in 0..vector_count {
                    block.vector(index, out);
                    black_box(&*out);
                }
            }
        }));
    }
    let plain = plain_bytes(point.values.as_values());
    let times = race(&mut runs, effort);
    Ok(times
        .into_iter()
        .zip(copies)
        .map(|(times, copies)| (plain * copies) as f64 / times.min.as_secs_f64() / 1e9)
        .collect())
}

/// GB/s of plain values, read from memory and written to it.
fn encode(entrants: &mut [Entrant], point: &Point, effort: Effort) -> Vec<f64> {
    let plain = plain_bytes(point.values.as_values());
    let mut values = ValuesBuf::new(point.physical());
    let copies = effort.memory_bytes.div_ceil(plain);
    (0..copies).for_each(|_| values.extend(point.values.as_values()));
    let (values, block_len) = (&values, point.values.len());
    let mut runs: Vec<Run<'_>> = Vec::new();
    for entrant in entrants {
        let mut out = Vec::new();
        runs.push(Box::new(move || {
            out.clear();
            for start in (0..values.len()).step_by(block_len) {
                let block = values.as_values().slice(start..start + block_len);
                entrant.codec.encode(block, &mut out).expect("it did before");
            }
            black_box(&out);
        }));
    }
    race(&mut runs, effort).into_iter().map(|times| (plain * copies) as f64 / times.min.as_secs_f64() / 1e9).collect()
}
