//! Every codec against a plain list of keys, on every instruction set.

use super::coding::KEYS_MAX;
use super::*;
use crate::isa::forms;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Sorted keys whose differences have up to `width` bits.
fn keys_of<K: Key>(count: usize, width: u32, random: &mut SmallRng) -> Vec<K> {
    let mut key = K::from_delta(random.random::<u64>() >> (64 - K::BITS / 2));
    let mut keys = Vec::new();
    for _ in 0..count {
        keys.push(key);
        let step = if width == 0 { 0 } else { random.random::<u64>() >> (64 - width) };
        let next = key.add(K::from_delta(step));
        key = if next < key { K::MAX } else { next };
    }
    keys
}

const COUNTS: [usize; 17] = [1, 2, 3, 4, 5, 15, 16, 17, 31, 100, 127, 128, 129, 130, 200, 255, 256];

/// Calls `check` with keys of every count and width that is different from others somewhere.
fn every_shape<K: Key>(mut check: impl FnMut(&[K])) {
    let mut random = SmallRng::seed_from_u64(5);
    for width in 0..=K::BITS {
        for count in COUNTS {
            check(&keys_of(count, width, &mut random));
        }
    }
}

fn answers_on_every_set<K: Key>() {
    every_shape::<K>(|keys| {
        for &codec in KEY_CODECS {
            let what = || format!("{}, {} keys of {} bits, {keys:?}", codec.name(), keys.len(), K::BITS);
            let (mut of_scalar, mut decoded) = (Vec::new(), [K::MAX; KEYS_MAX]);
            forms(|isa| {
                let mut bytes = Vec::new();
                let descriptor = codec.encode(keys, &mut bytes).unwrap();
                if of_scalar.is_empty() {
                    of_scalar.clone_from(&bytes);
                }
                assert_eq!(bytes, of_scalar, "{isa} writes other bytes: {}", what());
                let block = KeyBlock::open(codec, descriptor, &bytes).unwrap();
                assert_eq!(block.decode(&mut decoded), keys, "{isa}: {}", what());
                for index in (0..keys.len()).step_by(7).chain([keys.len() - 1]) {
                    assert_eq!(block.select(index), keys[index], "{isa}, {index}: {}", what());
                    for key in [keys[index], keys[index].add(K::from_delta(1)), keys[index].sub(K::from_delta(1))] {
                        let at = keys.partition_point(|one| *one < key);
                        let expected = keys.get(at).map(|found| (at, *found));
                        assert_eq!(block.lower_bound(key), expected, "{isa}, {key}: {}", what());
                    }
                }
            });
        }
    });
}

#[test]
fn every_set_gives_the_same_bytes_and_answers() {
    answers_on_every_set::<u32>();
    answers_on_every_set::<u64>();
}

#[test]
fn what_the_page_calls_in_place_does_not_encode_anew() {
    changes_in_place_as_the_page_says::<u32>();
    changes_in_place_as_the_page_says::<u64>();
}

fn changes_in_place_as_the_page_says<K: Key>() {
    let path = format!("{}/../../docs/format/keys.md", env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let key = K::from_delta;
    let keys: Vec<K> = (0..100).map(|index| key(10 * index)).collect();
    for &codec in KEY_CODECS {
        let begins = format!("| {} | [{}]", codec.tag(), codec.name());
        let row = page.lines().find(|line| line.starts_with(&begins)).unwrap_or_else(|| panic!("{path}: {begins}"));
        let in_place: Vec<bool> = row.split('|').skip(4).take(2).map(|cell| cell.trim() != "no").collect();
        let block = || {
            let mut room = Vec::new();
            let descriptor = codec.encode(&keys, &mut room).unwrap();
            room.resize(4096, 0);
            (descriptor, room)
        };
        let [(mut inserted, mut room_to_insert), (mut deleted, mut room_to_delete)] = [block(), block()];
        let is_found = [
            codec.insert(&mut inserted, &mut room_to_insert, key(505)) == Some(KeyChange::Done(51)),
            codec.delete(&mut deleted, &mut room_to_delete, 50) == Some(KeyChange::Done(50)),
        ];
        assert_eq!(is_found[..], in_place, "{row}");
        let (mut descriptor, mut room) = block();
        let appended = codec.append(&mut descriptor, &mut room, key(1000));
        assert_eq!(appended, Some(KeyChange::Done(100)), "{}", codec.name());
    }
}

fn appended_blocks_are_as_if_encoded<K: Key>() {
    let mut random = SmallRng::seed_from_u64(9);
    for width in [0, 1, 3, 7, 8, 9, 17, K::BITS - 9] {
        let keys = keys_of::<K>(KEYS_MAX, width, &mut random);
        for &codec in KEY_CODECS {
            let mut room = vec![0xee; 4096];
            let mut descriptor = KeyDescriptor::default();
            for (index, key) in keys.iter().enumerate() {
                let change = KeyBlockMut::open(codec, &mut descriptor, &mut room).unwrap().append(*key);
                assert_eq!(change, KeyChange::Done(index));
                let mut out = [K::default(); KEYS_MAX];
                let block = KeyBlock::open(codec, descriptor, &room).unwrap();
                assert_eq!(block.decode(&mut out), &keys[..=index], "{}, width {width}", codec.name());
                let mut bytes = Vec::new();
                let encoded = codec.encode(&keys[..=index], &mut bytes).unwrap();
                assert_eq!(encoded, KeyDescriptor { byte_len: encoded.byte_len, ..descriptor });
                // An appended frame is as wide as was needed when it was last written: no wider than all need, as it
                // holds the widest.
                assert_eq!(&room[..descriptor.byte_len], &bytes[..], "{}, key {index}", codec.name());
            }
            let mut block = KeyBlockMut::open(codec, &mut descriptor, &mut room).unwrap();
            assert_eq!(block.append(keys[KEYS_MAX - 1]), KeyChange::Full);
        }
    }
}

#[test]
fn appending_writes_what_encoding_writes() {
    appended_blocks_are_as_if_encoded::<u32>();
    appended_blocks_are_as_if_encoded::<u64>();
}

/// Section 2. Neighbours are at most 2 apart, and each key is 7 above the fourth before it: without the second key, 4 and 9,
/// which take a bit more.
#[test]
fn bp128_is_not_delete_stable() {
    let keys: Vec<u32> = (0..100).map(|index| index / 4 * 7 + index % 4 * 2).collect();
    for codec in [KeyCodec::Bp128D1, KeyCodec::Bp128D4, KeyCodec::Bp128Transposed] {
        let (mut room, mut bytes) = (vec![0; 4096], Vec::new());
        let mut descriptor = codec.encode(&keys, &mut bytes).unwrap();
        let before = descriptor.byte_len;
        room[..before].copy_from_slice(&bytes);
        let mut exact = bytes.clone();
        let mut unchanged = descriptor;
        let change = KeyBlockMut::open(codec, &mut unchanged, &mut exact).unwrap().delete(1);
        assert!(matches!(change, KeyChange::NoRoom(needed) if needed > before));
        assert_eq!((unchanged, &exact), (descriptor, &bytes), "what is refused changes nothing");
        KeyBlockMut::open(codec, &mut descriptor, &mut room).unwrap().delete(1);
        assert!(descriptor.byte_len > before && !codec.is_delete_stable());
    }
}
