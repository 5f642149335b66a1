//! A leaf's keys against a `BTreeSet`: integers in every codec, and bytes.

use super::{DecodedKeys, IntegerKeys, KeyList, KeyShape, Listed, NoRoom, Position, lent};
use crate::test_keys::TestKey;
use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinter_codec::{KEY_CODECS, KeyCodec};
use std::collections::BTreeSet;

fn to_vec<K: Listed + ?Sized>(keys: &K::List) -> Vec<K::Owned> {
    let mut all = Vec::new();
    let mut block = <K::List as KeyList<K>>::Block::default();
    for block_index in 0..keys.block_count() {
        keys.decode(block_index, &mut block);
        assert_eq!(block.len(), keys.indices_of(block_index).len());
        all.extend((0..block.len()).map(|index| block.key(index).to_owned()));
    }
    all
}

fn check<K: TestKey + ?Sized>(keys: &K::List, model: &BTreeSet<K::Owned>, asked: &K::Owned) {
    assert_eq!(keys.len(), model.len());
    let index = model.range::<K::Owned, _>(..asked).count();
    assert_eq!(keys.position(lent(asked)), Position { index, is_found: model.contains::<K::Owned>(asked) });
    assert_eq!(keys.is_after_all(lent(asked)), model.last().is_none_or(|last| last < asked));
    if let Some(key) = model.range::<K::Owned, _>(asked..).next() {
        assert_eq!(keys.get(index), *key);
        assert!(keys.indices_of(keys.block_of(index)).contains(&index));
    }
}

fn all_the_same<K: Listed + ?Sized>(keys: &K::List, model: &BTreeSet<K::Owned>) {
    let all = to_vec::<K>(keys);
    assert!(all.iter().eq(model), "{all:?} {model:?}");
}

fn random_changes<K: TestKey + ?Sized>(codec: KeyCodec, block_len: usize, seed: u64) {
    let mut random = SmallRng::seed_from_u64(seed);
    let shape = KeyShape { codec, block_len };
    let (mut keys, mut model) = (K::List::new(&shape), BTreeSet::<K::Owned>::new());
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
                let position = keys.insert(lent(&key), usize::MAX).unwrap();
                let index = model.range::<K::Owned, _>(..&key).count();
                let was_there = !model.insert(key.clone());
                assert_eq!(position, Position { index, is_found: was_there }, "{key:?} with seed {seed}");
            } else if let Some(key) = model.range::<K::Owned, _>(&key..).next().cloned() {
                keys.remove(model.range::<K::Owned, _>(..&key).count(), usize::MAX).unwrap();
                model.remove::<K::Owned>(&key);
            }
            check::<K>(&keys, &model, &K::of(random.random_range(0..range)));
        }
        all_the_same::<K>(&keys, &model);
        if random.random_range(0..2) == 0 {
            let size = keys.size();
            let gained = keys.vacuum(1);
            assert_eq!(gained, keys.size() < size);
            all_the_same::<K>(&keys, &model);
        }
        if random.random_range(0..3) == 0 {
            let index = random.random_range(0..=model.len());
            let upper = keys.split_off(index);
            let upper_model = match model.iter().nth(index).cloned() {
                Some(first) => model.split_off::<K::Owned>(&first),
                None => BTreeSet::new(),
            };
            all_the_same::<K>(&keys, &model);
            all_the_same::<K>(&upper, &upper_model);
            if random.random_range(0..2) == 0 {
                (keys, model) = (upper, upper_model);
            }
        }
    }
}

fn nothing_changes_without_room<K: TestKey + ?Sized>(codec: KeyCodec, is_delete_stable: bool, seed: u64) {
    let mut random = SmallRng::seed_from_u64(seed);
    let shape = KeyShape { codec, block_len: 64 };
    let (mut keys, mut model) = (K::List::new(&shape), BTreeSet::<K::Owned>::new());
    let size_max = 1000;
    let mut refused = 0;
    while refused < 50 {
        let key = K::of(random.random_range(0..1 << 30));
        match keys.insert(lent(&key), size_max) {
            Ok(position) => assert_eq!(position.is_found, !model.insert(key.clone())),
            Err(NoRoom) => refused += 1,
        }
        assert!(keys.size() <= size_max);
        check::<K>(&keys, &model, &key);
        if refused > 0 && random.random_range(0..4) == 0 {
            let index = random.random_range(0..model.len());
            let key = keys.get(index);
            match keys.remove(index, size_max) {
                Ok(()) => assert!(model.remove::<K::Owned>(&key)),
                Err(NoRoom) => assert!(!is_delete_stable),
            }
            all_the_same::<K>(&keys, &model);
        }
    }
    all_the_same::<K>(&keys, &model);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn keys_are_those_of_a_set(seed in any::<u64>()) {
        for block_len in [2, 7, 128, 256] {
            for &codec in KEY_CODECS {
                random_changes::<u32>(codec, block_len, seed);
                random_changes::<u64>(codec, block_len, seed);
            }
            random_changes::<[u8]>(KeyCodec::None, block_len, seed);
        }
    }

    #[test]
    fn what_has_no_room_changes_nothing(seed in any::<u64>()) {
        for &codec in KEY_CODECS {
            nothing_changes_without_room::<u32>(codec, codec.is_delete_stable(), seed);
        }
        nothing_changes_without_room::<[u8]>(KeyCodec::None, true, seed);
    }
}

#[test]
fn keys_in_order_fill_their_blocks() {
    for &codec in KEY_CODECS {
        for descending in [false, true] {
            let mut keys = IntegerKeys::<u64>::new(&KeyShape { codec, block_len: 128 });
            for number in 0..1280_u64 {
                let key = if descending { 5000 - number } else { number };
                keys.insert(&key, usize::MAX).unwrap();
            }
            assert_eq!(keys.block_count(), 10, "{} descending: {descending}", codec.name());
        }
    }
}

#[test]
fn a_vacuum_is_made_only_where_it_gains_enough() {
    let mut keys = IntegerKeys::<u32>::new(&KeyShape { codec: KeyCodec::Vbyte, block_len: 256 });
    (0..2560).for_each(|key| assert!(!keys.insert(&key, usize::MAX).unwrap().is_found));
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
