//! One codec at one width.

use super::peers;
use crate::Failure;
use crate::race::{Effort, Run, race};
use crate::random::Random;
use sinter_codec::{KEYS_MAX, Key, KeyBlock, KeyBlockMut, KeyCodec, KeyDescriptor};
use std::cell::RefCell;
use std::hint::black_box;

/// Enough that no predictor knows them by heart, few enough for the L2 cache.
pub const BLOCKS: usize = 64;

const QUESTIONS: usize = 4096;

/// More than any codec takes for a full block.
const ROOM_BYTES: usize = 4096;

/// Bytes of a key; 1e9 keys a second; nanoseconds of a key.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    pub bytes_per_key: f64,
    pub encode: f64,
    pub decode: f64,
    pub select: f64,
    pub lower_bound: f64,
    pub append: f64,
    pub insert: f64,
    pub insert_by_encoding: f64,
    pub delete: f64,
}

/// What a peer made of blocks, in the units of [`Figures`].
#[derive(Clone, Copy, Debug)]
pub struct OfPeer {
    pub name: &'static str,
    pub bytes_per_key: f64,
    pub encode: f64,
    pub decode: f64,
}

/// A key from 64 bits.
pub trait FromBits: Key {
    /// The lowest bits.
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

/// A block as a tree keeps it.
type Written<K> = (KeyDescriptor<K>, Vec<u8>);

fn open<K: Key>(codec: KeyCodec, (descriptor, bytes): &Written<K>) -> KeyBlock<'_, K> {
    KeyBlock::open(codec, *descriptor, bytes).expect("it was just encoded")
}

/// All figures.
///
/// # Errors
/// Where an answer is wrong.
pub fn measure<K: FromBits>(codec: KeyCodec, bits: u32, effort: Effort) -> Result<Figures, Failure> {
    let mut random = Random::new(bits.into());
    let keys: Vec<Vec<K>> = (0..BLOCKS).map(|_| sums(&mut random, bits)).collect();
    let mut blocks: Vec<Written<K>> = Vec::new();
    for keys in &keys {
        let mut bytes = Vec::new();
        blocks.push((codec.encode(keys, &mut bytes)?, bytes));
    }
    let questions: Vec<(usize, usize, K)> = (0..QUESTIONS)
        .map(|_| {
            let (block, index) = (random.below(BLOCKS as u64) as usize, random.below(KEYS_MAX as u64) as usize);
            (block, index, keys[block][index])
        })
        .collect();
    check(codec, &keys, &blocks, &questions)?;
    let shuffled: Vec<Vec<K>> = keys.iter().map(|keys| shuffled(keys, &mut random)).collect();
    let order: Vec<usize> = (1..=KEYS_MAX as u64).rev().map(|left| random.below(left) as usize).collect();

    let mut encoded = Vec::with_capacity(BLOCKS * ROOM_BYTES);
    let (mut decoded, mut decoded_again) = ([K::default(); KEYS_MAX], [K::default(); KEYS_MAX]);
    let (mut appended, mut inserted, mut deleted) = (vec![0; ROOM_BYTES], vec![0; ROOM_BYTES], vec![0; ROOM_BYTES]);
    let mut encoded_again = Vec::with_capacity(ROOM_BYTES);
    let mut runs: Vec<Run<'_>> = vec![
        Box::new(|| {
            encoded.clear();
            keys.iter().for_each(|keys| _ = black_box(codec.encode(keys, &mut encoded)));
        }),
        Box::new(|| {
            for block in &blocks {
                black_box(open(codec, block).decode(&mut decoded));
            }
        }),
        Box::new(|| {
            for &(block, index, _) in &questions {
                black_box(open(codec, &blocks[block]).select(index));
            }
        }),
        Box::new(|| {
            for &(block, _, key) in &questions {
                black_box(open(codec, &blocks[block]).lower_bound(key));
            }
        }),
        Box::new(|| change_each(codec, &keys, &mut appended, |block, key| _ = black_box(block.append(key)))),
        Box::new(|| change_each(codec, &shuffled, &mut inserted, |block, key| _ = black_box(block.insert(key)))),
        Box::new(|| {
            for keys in &shuffled {
                let mut descriptor = KeyDescriptor::default();
                encoded_again.clear();
                for &key in keys {
                    let block = KeyBlock::open(codec, descriptor, &encoded_again).expect("it was just written");
                    let count = block.decode(&mut decoded_again).len();
                    let at = decoded_again[..count].partition_point(|one| *one < key);
                    if at == count || decoded_again[at] != key {
                        decoded_again.copy_within(at..count, at + 1);
                        decoded_again[at] = key;
                        encoded_again.clear();
                        descriptor =
                            codec.encode(&decoded_again[..=count], &mut encoded_again).expect("keys are sorted");
                    }
                }
            }
        }),
        Box::new(|| {
            for (descriptor, bytes) in &blocks {
                let mut descriptor = *descriptor;
                deleted[..bytes.len()].copy_from_slice(bytes);
                for &index in &order {
                    let mut block = writable(codec, &mut descriptor, &mut deleted);
                    black_box(block.delete(index));
                }
            }
        }),
    ];
    let times: Vec<f64> = race(&mut runs, effort).iter().map(|times| times.min.as_nanos() as f64).collect();
    drop(runs);
    let key_count = (BLOCKS * KEYS_MAX) as f64;
    Ok(Figures {
        bytes_per_key: blocks.iter().map(|(descriptor, _)| descriptor.byte_len).sum::<usize>() as f64 / key_count,
        encode: key_count / times[0],
        decode: key_count / times[1],
        select: times[2] / QUESTIONS as f64,
        lower_bound: times[3] / QUESTIONS as f64,
        append: times[4] / key_count,
        insert: times[5] / key_count,
        insert_by_encoding: times[6] / key_count,
        delete: times[7] / key_count,
    })
}

/// What peers make of the same blocks of `u32`.
///
/// # Errors
/// Where one does not give back the keys.
pub fn measure_peers(bits: u32, effort: Effort) -> Result<Vec<OfPeer>, Failure> {
    let mut random = Random::new(bits.into());
    let keys: Vec<Vec<u32>> = (0..BLOCKS).map(|_| sums(&mut random, bits)).collect();
    let packers = peers::of_words();
    let mut written: Vec<Vec<Written<u32>>> = Vec::new();
    let mut out = [0; KEYS_MAX];
    for packer in &packers {
        let mut blocks = Vec::new();
        for keys in &keys {
            let mut bytes = Vec::new();
            let descriptor = packer.encode(keys, &mut bytes)?;
            packer.decode(descriptor, &bytes, &mut out);
            if out[..] != keys[..] {
                return Err(format!("{} decodes other keys", packer.label()).into());
            }
            blocks.push((descriptor, bytes));
        }
        written.push(blocks);
    }
    let (encoded, decoded) = (RefCell::new(Vec::with_capacity(BLOCKS * ROOM_BYTES)), RefCell::new(out));
    let (keys, encoded, decoded) = (&keys, &encoded, &decoded);
    let mut runs: Vec<Run<'_>> = Vec::new();
    for (packer, blocks) in packers.iter().zip(&written) {
        runs.push(Box::new(move || {
            let encoded = &mut *encoded.borrow_mut();
            encoded.clear();
            keys.iter().for_each(|keys| _ = black_box(packer.encode(keys, encoded)));
        }));
        runs.push(Box::new(move || {
            let decoded = &mut *decoded.borrow_mut();
            for (descriptor, bytes) in blocks {
                packer.decode(*descriptor, bytes, decoded);
                black_box(&*decoded);
            }
        }));
    }
    let times = race(&mut runs, effort);
    let key_count = (BLOCKS * KEYS_MAX) as f64;
    let mut of_peers = Vec::new();
    for ((packer, blocks), times) in packers.iter().zip(&written).zip(times.chunks(2)) {
        let byte_count: usize = blocks.iter().map(|(_, bytes)| bytes.len()).sum();
        of_peers.push(OfPeer {
            name: packer.label(),
            bytes_per_key: byte_count as f64 / key_count,
            encode: key_count / times[0].min.as_nanos() as f64,
            decode: key_count / times[1].min.as_nanos() as f64,
        });
    }
    Ok(of_peers)
}

/// Running sums of numbers of up to so many bits.
pub fn sums<K: FromBits>(random: &mut Random, bits: u32) -> Vec<K> {
    let mut sum = 0;
    let next = |_| {
        sum += random.of_width(bits);
        K::from_bits(sum)
    };
    (0..KEYS_MAX).map(next).collect()
}

fn shuffled<K: Key>(keys: &[K], random: &mut Random) -> Vec<K> {
    let mut keys = keys.to_vec();
    for end in (2..=keys.len()).rev() {
        keys.swap(end - 1, random.below(end as u64) as usize);
    }
    keys
}

fn writable<'a, K: Key>(
    codec: KeyCodec,
    descriptor: &'a mut KeyDescriptor<K>,
    room: &'a mut [u8],
) -> KeyBlockMut<'a, K> {
    KeyBlockMut::open(codec, descriptor, room).expect("it was just written")
}

/// Builds a block of each of `keys`, key by key.
fn change_each<K: Key>(codec: KeyCodec, keys: &[Vec<K>], room: &mut [u8], change: impl Fn(&mut KeyBlockMut<'_, K>, K)) {
    for keys in keys {
        let mut descriptor = KeyDescriptor::default();
        for &key in keys {
            change(&mut writable(codec, &mut descriptor, room), key);
        }
    }
}

/// Holds the answers to the keys.
fn check<K: Key>(
    codec: KeyCodec,
    keys: &[Vec<K>],
    blocks: &[Written<K>],
    questions: &[(usize, usize, K)],
) -> Result<(), Failure> {
    let mut out = [K::default(); KEYS_MAX];
    for (keys, block) in keys.iter().zip(blocks) {
        if open(codec, block).decode(&mut out) != keys {
            return Err(format!("{} decodes other keys", codec.name()).into());
        }
    }
    for &(block, index, key) in questions {
        let (keys, block) = (&keys[block], open(codec, &blocks[block]));
        let expected = keys.partition_point(|other| *other < key);
        if block.select(index) != key || block.lower_bound(key) != Some((expected, key)) {
            return Err(format!("{} finds another key at {index}", codec.name()).into());
        }
    }
    Ok(())
}
