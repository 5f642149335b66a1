//! How small and how fast each key codec is: `cargo bench -p sinter-codec --bench keys [-- codec [keys a block]]`.
//!
//! Blocks of 256 keys, prefix sums of uniform numbers of up to so many bits, as in Figures 6 and 7 of the Upscaledb
//! paper (Lemire and Rupp, section 4.2). Bytes a key; encoding and decoding in billions of keys a second; then
//! nanoseconds: a key by its index, the lower bound of a key, both of random blocks that are opened for it; a block
//! built by appending, by inserting in random order (where it lies, and by decoding, inserting and encoding), and
//! emptied in random order, each by key. Of a thousand runs or so the best counts. One core, data in cache.

use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use sinter_codec::*;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Blocks: enough that no predictor knows them by heart, few enough for the L2 cache.
const BLOCKS: usize = 64;

const LOOKUPS: usize = 4096;

/// More than any codec takes for a full block.
const ROOM: usize = 4096;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let count = arguments.get(1).map_or(KEYS_MAX, |count| count.parse().expect("keys a block"));
    println!(
        "{:<17} {:<5} {:>4} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9} {:>8}   {count} keys a block, {}",
        "codec",
        "type",
        "bits",
        "B/key",
        "encode",
        "decode",
        "select",
        "bound",
        "append",
        "insert",
        "(encode)",
        "delete",
        isa(),
    );
    for &codec in KEY_CODECS {
        if arguments.first().is_some_and(|only| only != codec.name()) {
            continue;
        }
        for width in [1, 4, 8, 12, 16, 20, 24] {
            measure::<u32>(codec, "u32", width, count);
        }
        for width in [8, 16, 32, 48] {
            measure::<u64>(codec, "u64", width, count);
        }
    }
}

/// A key from 64 bits.
trait FromBits {
    fn from_bits(bits: u64) -> Self;
}

impl FromBits for u32 {
    fn from_bits(bits: u64) -> u32 {
        bits as u32
    }
}

impl FromBits for u64 {
    fn from_bits(bits: u64) -> u64 {
        bits
    }
}

fn measure<K: Key + FromBits>(codec: KeyCodec, key_type: &str, width: u32, count: usize) {
    let mut random = SmallRng::seed_from_u64(width.into());
    let mut block_of_keys = || -> Vec<K> {
        let mut sum = 0;
        let steps = (0..count).map(|_| random.random_range(0..1u64 << width));
        steps
            .map(|step| {
                sum += step;
                K::from_bits(sum)
            })
            .collect()
    };
    let keys: Vec<Vec<K>> = (0..BLOCKS).map(|_| block_of_keys()).collect();

    let mut bytes = Vec::with_capacity(BLOCKS * ROOM);
    let encode = fastest(|| {
        bytes.clear();
        keys.iter().for_each(|keys| _ = black_box(codec.encode(keys, &mut bytes)));
    });
    let mut blocks: Vec<(KeyDescriptor<K>, Vec<u8>)> = Vec::new();
    for keys in &keys {
        let mut bytes = Vec::new();
        blocks.push((codec.encode(keys, &mut bytes).expect("keys are sorted"), bytes));
    }
    let open = |block: usize| {
        let (descriptor, bytes) = &blocks[block];
        KeyBlock::open(codec, *descriptor, bytes).expect("it was just encoded")
    };
    let mut out = [K::default(); KEYS_MAX];
    let decode = fastest(|| {
        for block in 0..BLOCKS {
            black_box(open(block).decode(&mut out));
        }
    });

    let places: Vec<(usize, usize)> =
        (0..LOOKUPS).map(|_| (random.random_range(0..BLOCKS), random.random_range(0..count))).collect();
    let select = fastest(|| {
        for &(block, index) in &places {
            black_box(open(block).select(index));
        }
    });
    let sought: Vec<(usize, K)> = places.iter().map(|&(block, index)| (block, keys[block][index])).collect();
    let bound = fastest(|| {
        for &(block, key) in &sought {
            black_box(open(block).lower_bound(key));
        }
    });

    let mut room = vec![0; ROOM];
    let append = fastest(|| {
        for keys in &keys {
            let mut descriptor = KeyDescriptor::default();
            for key in keys {
                let mut block = KeyBlockMut::open(codec, &mut descriptor, &mut room).expect("it was just written");
                black_box(block.append(*key));
            }
        }
    });
    let shuffled: Vec<Vec<K>> = keys
        .iter()
        .map(|keys| {
            let mut keys = keys.clone();
            keys.shuffle(&mut random);
            keys
        })
        .collect();
    let insert = fastest(|| {
        for keys in &shuffled {
            let mut descriptor = KeyDescriptor::default();
            for key in keys {
                let mut block = KeyBlockMut::open(codec, &mut descriptor, &mut room).expect("it was just written");
                black_box(block.insert(*key));
            }
        }
    });
    let mut bytes = Vec::with_capacity(ROOM);
    let insert_by_encoding = fastest(|| {
        for keys in &shuffled {
            let mut descriptor = KeyDescriptor::default();
            for key in keys {
                let block = KeyBlock::open(codec, descriptor, &bytes).expect("it was just written");
                let count = block.decode(&mut out).len();
                let at = out[..count].partition_point(|one| one < key);
                if at == count || out[at] != *key {
                    out.copy_within(at..count, at + 1);
                    out[at] = *key;
                    bytes.clear();
                    descriptor = codec.encode(&out[..=count], &mut bytes).expect("keys are sorted");
                }
            }
            bytes.clear();
        }
    });
    let order: Vec<usize> = (1..=count).rev().map(|left| random.random_range(0..left)).collect();
    let delete = fastest(|| {
        for (descriptor, bytes) in &blocks {
            let mut descriptor = *descriptor;
            room[..bytes.len()].copy_from_slice(bytes);
            for &index in &order {
                let mut block = KeyBlockMut::open(codec, &mut descriptor, &mut room).expect("it was just written");
                black_box(block.delete(index));
            }
        }
    });

    let total = BLOCKS * count;
    let billions = |time: Duration| total as f64 / time.as_nanos() as f64;
    let each = |time: Duration, of: usize| time.as_nanos() as f64 / of as f64;
    println!(
        "{:<17} {:<5} {:>4} {:>9.3} {:>8.2} {:>8.2} {:>8.1} {:>8.1} {:>8.1} {:>8.1} {:>9.1} {:>8.1}",
        codec.name(),
        key_type,
        width,
        blocks.iter().map(|(descriptor, _)| descriptor.byte_len).sum::<usize>() as f64 / total as f64,
        billions(encode),
        billions(decode),
        each(select, LOOKUPS),
        each(bound, LOOKUPS),
        each(append, total),
        each(insert, total),
        each(insert_by_encoding, total),
        each(delete, total),
    );
}

/// The best of many: what is left when nothing else disturbs.
fn fastest(mut work: impl FnMut()) -> Duration {
    let mut best = Duration::MAX;
    let end = Instant::now() + Duration::from_millis(20);
    let mut runs = 0;
    while runs < 3 || Instant::now() < end {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed());
        runs += 1;
    }
    best
}
