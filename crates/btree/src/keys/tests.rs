//! A leaf's keys against a `BTreeSet`, in every codec.

use super::integer::IntegerKeys;
use super::{NoRoom, Position};
use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinter_codec::{KEY_CODECS, KEYS_MAX, Key, KeyCodec};
use std::collections::BTreeSet;

/// What is the same of both types of keys.
trait TestKey: Key {
    fn of(number: u64) -> Self;
}

impl TestKey for u32 {
    fn of(number: u64) -> u32 {
        number as u32
    }
}

impl TestKey for u64 {
    fn of(number: u64) -> u64 {
        number << 9
    }
}

fn check<K: TestKey>(keys: &IntegerKeys<K>, model: &BTreeSet<K>, asked: K) {
    assert_eq!(keys.len(), model.len());
    assert_eq!(keys.last(), model.last().copied());
    let index = model.range(..asked).count();
    assert_eq!(keys.position(asked), Position { index, is_found: model.contains(&asked) });
    if let Some(key) = model.range(asked..).next() {
        assert_eq!(keys.get(index), *key);
        assert!(keys.indices_of(keys.block_of(index)).contains(&index));
    }
}

fn all_the_same<K: TestKey>(keys: &IntegerKeys<K>, model: &BTreeSet<K>) {
    assert!(keys.to_vec().iter().eq(model), "{:?} {:?}", keys.to_vec(), model);
    let mut decoded = [K::default(); KEYS_MAX];
    for block in 0..keys.block_count() {
        assert_eq!(keys.decode_block(block, &mut decoded).len(), keys.indices_of(block).len());
    }
}

fn random_changes<K: TestKey>(codec: KeyCodec, block_len: usize, seed: u64) {
    let mut random = SmallRng::seed_from_u64(seed);
    let (mut keys, mut model) = (IntegerKeys::<K>::new(codec, block_len), BTreeSet::new());
    let range = 1 << random.random_range(6..22);
    let mut next = 0;
    for _ in 0..6 {
        // Now more come, now more go; in order, backwards or anyhow.
        let (inserts, order) = (random.random_range(0..=10), random.random_range(0..3));
        for _ in 0..300 {
            next = match order {
                0 => (next + random.random_range(1..4)) % range,
                1 => (next + range - random.random_range(1..4)) % range,
                _ => random.random_range(0..range),
            };
            let key = K::of(next);
            if random.random_range(0..10) < inserts {
                let was_there = !model.insert(key);
                let position = keys.insert(key, usize::MAX).unwrap();
                let index = model.range(..key).count();
                assert_eq!(position, Position { index, is_found: was_there }, "{key} with seed {seed}");
            } else if let Some(key) = model.range(key..).next().copied() {
                keys.remove(model.range(..key).count(), usize::MAX).unwrap();
                model.remove(&key);
            }
            check(&keys, &model, K::of(random.random_range(0..range)));
        }
        all_the_same(&keys, &model);
        if random.random_range(0..2) == 0 {
            let size = keys.size();
            let gained = keys.vacuum(1);
            assert_eq!(gained, keys.size() < size);
            all_the_same(&keys, &model);
        }
        if random.random_range(0..3) == 0 {
            let index = random.random_range(0..=model.len());
            let size = keys.size();
            let mut upper = keys.split_off(index);
            let upper_model = match model.iter().nth(index).copied() {
                Some(first) => model.split_off(&first),
                None => BTreeSet::new(),
            };
            assert!(keys.size() <= size);
            all_the_same(&keys, &model);
            all_the_same(&upper, &upper_model);
            if random.random_range(0..2) == 0 {
                (keys, model) = (std::mem::replace(&mut upper, IntegerKeys::new(codec, block_len)), upper_model);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn keys_are_those_of_a_set(seed in any::<u64>()) {
        for &codec in KEY_CODECS {
            for block_len in [2, 7, 128, 256] {
                random_changes::<u32>(codec, block_len, seed);
                random_changes::<u64>(codec, block_len, seed);
            }
        }
    }

    #[test]
    fn what_has_no_room_changes_nothing(seed in any::<u64>()) {
        for &codec in KEY_CODECS {
            let mut random = SmallRng::seed_from_u64(seed);
            let (mut keys, mut model) = (IntegerKeys::<u32>::new(codec, 64), BTreeSet::new());
            let size_max = 1000;
            let mut refused = 0;
            while refused < 50 {
                let key: u32 = random.random();
                match keys.insert(key, size_max) {
                    Ok(position) => assert_eq!(position.is_found, !model.insert(key)),
                    Err(NoRoom) => refused += 1,
                }
                assert!(keys.size() <= size_max);
                check(&keys, &model, key);
                if refused > 0 && random.random_range(0..4) == 0 {
                    let index = random.random_range(0..model.len());
                    let key = keys.get(index);
                    match keys.remove(index, size_max) {
                        Ok(()) => assert!(model.remove(&key)),
                        Err(NoRoom) => assert!(!codec.is_delete_stable()),
                    }
                    all_the_same(&keys, &model);
                }
            }
            all_the_same(&keys, &model);
        }
    }
}

#[test]
fn keys_in_order_fill_their_blocks() {
    for &codec in KEY_CODECS {
        for descending in [false, true] {
            let mut keys = IntegerKeys::<u64>::new(codec, 128);
            for number in 0..1280_u64 {
                let key = if descending { 5000 - number } else { number };
                keys.insert(key, usize::MAX).unwrap();
            }
            assert_eq!(keys.block_count(), 10, "{} descending: {descending}", codec.name());
        }
    }
}

#[test]
fn a_vacuum_is_made_only_where_it_gains_enough() {
    let mut keys = IntegerKeys::<u32>::new(KeyCodec::Vbyte, 256);
    (0..2560).for_each(|key| assert!(!keys.insert(key, usize::MAX).unwrap().is_found));
    // Every block keeps somewhat more than what would have it joined to its neighbour.
    for key in (0..2560).rev().filter(|key| key % 256 >= 70) {
        keys.remove(key, usize::MAX).unwrap();
    }
    let (blocks, size) = (keys.block_count(), keys.size());
    assert_eq!(blocks, 10);
    assert!(!keys.vacuum(size));
    assert_eq!(keys.block_count(), blocks);
    assert!(keys.vacuum(20));
    assert_eq!(keys.block_count(), 3);
    assert!(keys.size() + 20 <= size);
}
