//! Codecs of sorted keys, and peers, on more than any cache holds: sets of blocks again and again, each copy read once.

use super::measure::{BLOCKS, FromBits, sums};
use super::peers::{self, Packer};
use crate::Failure;
use crate::race::{Effort, Run, in_turns};
use crate::random::Random;
use serde_json::{Value, json};
use sinter_codec::{KEY_CODECS, KEYS_MAX, KeyCodec, KeyDescriptor};
use std::hint::black_box;

const BITS_OF_U32: [u32; 4] = [4, 8, 12, 16];
const BITS_OF_U64: [u32; 4] = [8, 16, 24, 32];

/// Measures, prints, and returns the records. With names, only those codecs, beside all peers.
///
/// # Errors
/// Where a contender does not give back what it got.
pub fn run(only: &[String], effort: Effort) -> Result<Vec<Value>, Failure> {
    let codecs = || KEY_CODECS.iter().filter(|codec| only.is_empty() || only.iter().any(|name| name == codec.name()));
    let mut records = Vec::new();
    if codecs().next().is_none() {
        return Ok(records);
    }
    println!("\nsorted keys in blocks of {KEYS_MAX}, GB/s of plain keys");
    println!("{:<4} {:>4}  {:<27} {:>8} {:>8} {:>8}", "type", "bits", "contender", "B/key", "encode", "decode");
    let widths = if effort.is_quick { 1 } else { BITS_OF_U32.len() };
    for bits in &BITS_OF_U32[..widths] {
        let ours = codecs().map(|codec| Box::new(*codec) as Box<dyn Packer<u32>>);
        let packers: Vec<_> = ours.chain(peers::of_words()).collect();
        records.push(measure(&packers, "u32", *bits, effort)?);
    }
    for bits in &BITS_OF_U64[..widths] {
        let packers: Vec<_> = codecs().map(|codec| Box::new(*codec) as Box<dyn Packer<u64>>).collect();
        records.push(measure(&packers, "u64", *bits, effort)?);
    }
    Ok(records)
}

/// What a packer made of some sets of blocks.
struct Written<K: FromBits> {
    bytes: Vec<u8>,
    /// Of each block: its descriptor, and where it ends.
    blocks: Vec<(KeyDescriptor<K>, usize)>,
}

fn write<K: FromBits>(packer: &dyn Packer<K>, keys: &[Vec<K>], out: &mut Written<K>) -> Result<(), Failure> {
    for keys in keys {
        let descriptor = packer.encode(keys, &mut out.bytes)?;
        out.blocks.push((descriptor, out.bytes.len()));
    }
    Ok(())
}

fn read<K: FromBits>(packer: &dyn Packer<K>, written: &Written<K>, mut found: impl FnMut(usize, &[K; KEYS_MAX])) {
    let mut out = [K::default(); KEYS_MAX];
    let mut start = 0;
    for (index, (descriptor, end)) in written.blocks.iter().enumerate() {
        packer.decode(*descriptor, &written.bytes[start..*end], &mut out);
        found(index, &out);
        start = *end;
    }
}

fn measure<K: FromBits>(
    packers: &[Box<dyn Packer<K>>],
    type_name: &str,
    bits: u32,
    effort: Effort,
) -> Result<Value, Failure> {
    eprintln!("memory: keys of {type_name}, {bits} bits");
    let mut random = Random::new(bits.into());
    let keys: Vec<Vec<K>> = (0..BLOCKS).map(|_| sums(&mut random, bits)).collect();
    let set_bytes = BLOCKS * KEYS_MAX * size_of::<K>();
    let mut contenders = Vec::new();
    // One at a time: the memory of all would not be had.
    for packer in packers.iter().map(|packer| &**packer) {
        let mut written = Written { bytes: Vec::new(), blocks: Vec::new() };
        write(packer, &keys, &mut written)?;
        let mut is_same = true;
        read(packer, &written, |index, found| is_same &= found[..] == keys[index][..]);
        if !is_same {
            return Err(format!("{} does not give back the keys", packer.label()).into());
        }
        let pressed_bytes = written.bytes.len();
        let copies = effort.memory_bytes.div_ceil(pressed_bytes);
        (1..copies).try_for_each(|_| write(packer, &keys, &mut written))?;
        let decode: Run<'_> = Box::new(|| read(packer, &written, |_, found| _ = black_box(found)));
        let decode = in_turns(&mut [decode], effort)[0];
        let decode_speed = (copies * set_bytes) as f64 / decode.least.as_secs_f64() / 1e9;
        // Plain keys from memory, in the room that is there already.
        let plain_copies = effort.memory_bytes.div_ceil(set_bytes);
        let plain = vec![keys.clone(); plain_copies];
        let encode: Run<'_> = Box::new(|| {
            written.bytes.clear();
            written.blocks.clear();
            for keys in &plain {
                write(packer, keys, &mut written).expect("it did before");
            }
            black_box(&written.bytes);
        });
        let encode = in_turns(&mut [encode], effort)[0];
        let encode_speed = (plain_copies * set_bytes) as f64 / encode.least.as_secs_f64() / 1e9;
        let bytes_per_key = pressed_bytes as f64 / (BLOCKS * KEYS_MAX) as f64;
        let name = packer.label();
        println!("{type_name:<4} {bits:>4}  {name:<27} {bytes_per_key:>8.3} {encode_speed:>8.2} {decode_speed:>8.2}");
        contenders.push(json!({
            "name": name,
            "is_ours": KEY_CODECS.iter().any(|codec: &KeyCodec| codec.name() == name),
            "bytes_per_value": bytes_per_key,
            "encode_gb_s": encode_speed,
            "encode_turns": encode.turns,
            "decode_gb_s": decode_speed,
            "decode_turns": decode.turns,
            "decode_pressed_bytes": copies * pressed_bytes,
        }));
    }
    Ok(json!({
        "scheme": "keys", "type": type_name, "kind": "sums of numbers of up to so many bits", "width": bits,
        "contenders": contenders,
    }))
}
