//! Trees against `BTreeMap`: all states that somebody may still see, in every codec, alone and among threads.

mod durable;
mod loading;

use crate::test_keys::TestKey;
use crate::{Changes, Condition, Error, Find, KeyRange, Reads, RecordShape, Result, Tree, TreeKey, TreeOptions};
use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinter_codec::{KEY_CODECS, KeyCodec};
use sinter_storage::{CommitNumber, Numbered, ObjectId, Record, RecordTag, Store};
use std::borrow::Borrow;
use std::collections::{BTreeMap, VecDeque};
use std::ops::{Bound, RangeBounds};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Why a commit came to nothing.
#[derive(Debug)]
enum Failed {
    Refused,
    Error(Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Failed {
        Failed::Error(error)
    }
}

type Model<K> = BTreeMap<<K as ToOwned>::Owned, Vec<u8>>;
type Owned<K> = Option<(<K as ToOwned>::Owned, Vec<u8>)>;

fn options(codec: KeyCodec, records: RecordShape) -> TreeOptions {
    TreeOptions { block_len: 16, leaf_bytes: 1 << 10, ..TreeOptions::new(codec, records) }
}

fn entry<K: TreeKey + ?Sized>(entry: Option<(&K, &[u8])>) -> Owned<K> {
    entry.map(|(key, record)| (key.to_owned(), record.to_vec()))
}

fn of_model<K: TreeKey + ?Sized>(entry: Option<(&K::Owned, &Vec<u8>)>) -> Owned<K> {
    entry.map(|(key, record)| (key.clone(), record.clone()))
}

/// The state after a commit is that of the model.
fn check_state<K: TestKey + ?Sized>(
    tree: &Tree<K>,
    at: CommitNumber,
    model: &Model<K>,
    random: &mut SmallRng,
    range: u64,
) {
    for _ in 0..8 {
        let key = K::of(random.random_range(0..range));
        let found = tree.get(key.borrow(), || at, |record| record.map(<[u8]>::to_vec)).unwrap();
        assert_eq!(found.as_ref(), model.get::<K::Owned>(&key), "key {key:?} after commit {at}");
    }
    let key = K::of(random.random_range(0..range));
    let before = || model.iter().rev().skip_while(|(other, _)| **other >= key);
    let from = || model.iter().skip_while(|(other, _)| **other < key);
    let same = || from().next().filter(|(other, _)| **other == key);
    let lent: &K = key.borrow();
    let mut cursor = tree.cursor(at);
    assert_eq!(entry(cursor.entry()), None);
    assert_eq!(entry(cursor.seek(Find::Less, lent).unwrap()), of_model::<K>(before().next()));
    assert_eq!(entry(cursor.seek(Find::LessEqual, lent).unwrap()), of_model::<K>(same().or(before().next())));
    assert_eq!(entry(cursor.seek(Find::Equal, lent).unwrap()), of_model::<K>(same()));
    let after = from().find(|(other, _)| **other != key);
    assert_eq!(entry(cursor.seek(Find::Greater, lent).unwrap()), of_model::<K>(after));
    assert_eq!(entry(cursor.seek(Find::GreaterEqual, lent).unwrap()), of_model::<K>(from().next()));
    for expected in from().skip(1).take(40) {
        assert_eq!(entry(cursor.next().unwrap()), of_model::<K>(Some(expected)));
    }
    assert_eq!(entry(cursor.seek(Find::Less, lent).unwrap()), of_model::<K>(before().next()));
    for expected in before().skip(1).take(40) {
        assert_eq!(entry(cursor.previous().unwrap()), of_model::<K>(Some(expected)));
    }
    assert_eq!(entry(cursor.first().unwrap()), of_model::<K>(model.iter().next()));
    assert_eq!(entry(cursor.previous().unwrap()), None);
    assert_eq!(entry(cursor.last().unwrap()), of_model::<K>(model.iter().next_back()));
    assert_eq!(entry(cursor.next().unwrap()), None);
    assert_eq!(tree.len(at).unwrap(), model.len() as u64);
    let mut bound = || {
        let key = K::of(random.random_range(0..range));
        [Bound::Included(key.clone()), Bound::Excluded(key), Bound::Unbounded][random.random_range(0..3)].clone()
    };
    check_range(tree, at, model, (bound(), bound()));
}

/// The entries of a range are those of the model, leaf by leaf and in pieces.
fn check_range<K: TestKey + ?Sized>(tree: &Tree<K>, at: CommitNumber, model: &Model<K>, range: KeyRange<K>) {
    let expected: Vec<_> = model.iter().filter(|(key, _)| range.contains(*key)).collect();
    let lent = || (range.0.as_ref().map(Borrow::<K>::borrow), range.1.as_ref().map(Borrow::<K>::borrow));
    let (mut keys, mut records) = (Vec::<K::Owned>::new(), Vec::new());
    tree.for_each_entries(lent(), at, &mut |entries| {
        let first = keys.len();
        entries.for_each_key(&mut |key| keys.push(key.to_owned()));
        records.extend(entries.records().map(<[u8]>::to_vec));
        assert_eq!((keys.len() - first, records.len()), (entries.len(), keys.len()));
        assert_eq!((&entries.first(), Some(&entries.last())), (&keys[first], keys.last()));
    })
    .unwrap();
    assert!(keys.iter().zip(&records).eq(expected.iter().copied()), "{range:?} after commit {at}");
    let pieces = tree.pieces(lent(), at, 20, 3).unwrap();
    let mut index = 0;
    for piece in &pieces {
        assert_eq!((expected[index].0, expected[index + piece.len - 1].0), (&piece.first, &piece.last));
        index += piece.len;
    }
    assert_eq!(index, expected.len());
}

fn record_of(shape: RecordShape, random: &mut SmallRng) -> Vec<u8> {
    let len = match shape {
        RecordShape::Fixed(width) => width,
        RecordShape::Variable if random.random_range(0..20) == 0 => random.random_range(0..=240),
        RecordShape::Variable => random.random_range(0..20),
    };
    (0..len).map(|_| random.random()).collect()
}

/// Commits in a row, some of which are refused their number; the states of the last ones can all be read.
fn random_commits<K: TestKey + ?Sized>(options: TreeOptions, seed: u64) {
    let mut random = SmallRng::seed_from_u64(seed);
    let tree = Tree::<K>::new(options);
    let range = 1 << random.random_range(4..14);
    let mut states = VecDeque::from([(CommitNumber(0), Model::<K>::new())]);
    let states_max = random.random_range(1..6);
    for number in 1..400 {
        let mut model = states.back().unwrap().1.clone();
        let commit = CommitNumber(number);
        if states.len() == states_max {
            states.pop_front();
        }
        let horizon = states.front().map_or(commit, |(commit, _)| *commit);
        let is_refused = random.random_range(0..8) == 0;
        let place = || if is_refused { Err(Failed::Refused) } else { Ok(Numbered { commit, horizon }) };
        // Fills, empties, fills again.
        let inserts = if number / 100 % 2 == 0 { 8 } else { 2 };
        let first = random.random_range(0..range);
        let stretch = random.random_range(1..=range);
        let count = 1 << random.random_range(0..8);
        let mut changes = Changes::<K>::new();
        for _ in 0..count {
            let key = K::of(first + random.random_range(0..stretch));
            let is_insert = random.random_range(0..10) < inserts;
            let record = is_insert.then(|| record_of(options.records, &mut random).into_boxed_slice());
            changes.insert(key, record);
        }
        let before = model.clone();
        if count == 1 {
            let (key, record) = changes.first_key_value().unwrap();
            let old = model.get::<K::Owned>(key).cloned();
            let (condition, holds) = match random.random_range(0..5) {
                0 => (Condition::Absent, old.is_none()),
                1 => (Condition::Present, old.is_some()),
                2 => (Condition::Equals(old.as_deref().unwrap_or(b"no")), old.is_some()),
                _ => (Condition::Always, true),
            };
            match tree.change(key.borrow(), record.as_deref(), condition, place) {
                Ok(done) => assert!(done == holds && (!holds || !is_refused)),
                Err(Failed::Refused) => assert!(holds && is_refused),
                Err(Failed::Error(error)) => panic!("{error}"),
            }
            if !holds {
                changes.clear();
            }
        } else {
            assert_eq!(tree.commit(&changes, place).is_err(), is_refused);
        }
        for (key, record) in changes {
            match record {
                Some(record) => model.insert(key, record.into_vec()),
                None => model.remove::<K::Owned>(&key),
            };
        }
        states.push_back((commit, if is_refused { before } else { model }));
        let (at, model) = &states[random.random_range(0..states.len())];
        check_state(&tree, *at, model, &mut random, 2 * range);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn every_state_is_that_of_a_map(seed in any::<u64>()) {
        for &codec in KEY_CODECS {
            for records in [RecordShape::Fixed(0), RecordShape::Fixed(8), RecordShape::Variable] {
                random_commits::<u32>(options(codec, records), seed);
                random_commits::<u64>(options(codec, records), seed);
            }
        }
        for records in [RecordShape::Fixed(0), RecordShape::Fixed(8), RecordShape::Variable] {
            random_commits::<[u8]>(options(KeyCodec::None, records), seed);
        }
    }
}

/// The order of commits, as the timeline will have it: commits are visible once they have a number, and who reads a state
/// says so before.
#[derive(Default)]
struct Order {
    last: u64,
    readers: BTreeMap<u64, usize>,
    /// Gives the numbers, if there is one.
    store: Option<Arc<Store>>,
}

impl Order {
    fn place(order: &Mutex<Order>) -> Result<Numbered> {
        let mut order = order.lock().unwrap();
        order.last = match &order.store {
            Some(store) => {
                let record = Record { tag: RecordTag::TREE_CHANGED, object: ObjectId(1), payload: Vec::new() };
                store.append(&[record], &[])?.0
            }
            None => order.last + 1,
        };
        Ok(Numbered { commit: CommitNumber(order.last), horizon: order.horizon() })
    }

    fn horizon(&self) -> CommitNumber {
        let horizon = CommitNumber(self.readers.first_key_value().map_or(self.last, |(first, _)| *first));
        if let Some(store) = &self.store {
            store.raise_horizon(horizon);
        }
        horizon
    }

    fn begin(&mut self) -> u64 {
        *self.readers.entry(self.last).or_default() += 1;
        self.last
    }

    fn end(&mut self, at: u64) {
        let readers = self.readers.get_mut(&at).unwrap();
        *readers -= 1;
        if *readers == 0 {
            self.readers.remove(&at);
        }
    }

    fn read<R>(order: &Mutex<Order>, read: impl FnOnce(CommitNumber) -> R) -> R {
        let at = order.lock().unwrap().begin();
        let result = read(CommitNumber(at));
        order.lock().unwrap().end(at);
        result
    }
}

/// All threads end when one does, however it does.
struct SetWhenDropped<'a>(&'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

const ACCOUNTS: u64 = 64;
const AMOUNT: u64 = 1000;

/// Where an account is: between two of them there are others that have nothing.
fn account(number: u64) -> u64 {
    number * 97
}

/// Two threads move amounts between accounts of their own, and put and delete others that have nothing, so that leaves
/// come and go; two read all accounts; one each does what happens `beside`.
fn move_amounts(tree: &Tree<u64>, order: &Mutex<Order>, beside: &[&(dyn Fn() + Sync)]) {
    for number in 0..ACCOUNTS {
        let amount = AMOUNT.to_le_bytes();
        tree.change(&account(number), Some(&amount), Condition::Absent, || Order::place(order)).unwrap();
    }
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for writer in 0..2 {
            let is_over = &is_over;
            scope.spawn(move || {
                let _over = SetWhenDropped(is_over);
                let mut random = SmallRng::seed_from_u64(writer);
                let mut amounts = BTreeMap::new();
                for _ in 0..6000 {
                    if is_over.load(Ordering::Acquire) {
                        break;
                    }
                    let mut own = || random.random_range(0..ACCOUNTS / 2) * 2 + writer;
                    let (from, to) = (own(), own());
                    let moved = random.random_range(0..=*amounts.get(&from).unwrap_or(&AMOUNT));
                    if from != to {
                        let mut changes = Changes::<u64>::new();
                        *amounts.entry(from).or_insert(AMOUNT) -= moved;
                        *amounts.entry(to).or_insert(AMOUNT) += moved;
                        for number in [from, to] {
                            changes.insert(account(number), Some(Box::from(amounts[&number].to_le_bytes())));
                        }
                        tree.commit(&changes, || Order::place(order)).unwrap();
                    }
                    let mut others = Changes::<u64>::new();
                    let is_put = random.random_range(0..2) == 0;
                    let first = random.random_range(0..account(ACCOUNTS));
                    for key in (first..first + 200).filter(|key| key % 97 != 0 && key % 2 == writer) {
                        others.insert(key, is_put.then(|| Box::from([0; 8])));
                    }
                    let is_refused = random.random_range(0..8) == 0;
                    let place = || if is_refused { Err(Error::InMemory) } else { Order::place(order) };
                    assert_eq!(tree.commit(&others, place).is_err(), is_refused);
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                let _over = SetWhenDropped(&is_over);
                let mut states = 0;
                while !is_over.load(Ordering::Acquire) || states < 10 {
                    Order::read(order, |at| check_amounts(tree, at));
                    states += 1;
                }
            });
        }
        for beside in beside {
            scope.spawn(|| {
                let _over = SetWhenDropped(&is_over);
                while !is_over.load(Ordering::Acquire) {
                    beside();
                }
            });
        }
    });
}

/// Reads all accounts, by block and by cursor, back and forth. At any commit the amounts add up.
fn check_amounts(tree: &Tree<u64>, at: CommitNumber) {
    let (mut sum, mut accounts) = (0, 0);
    let mut cursor = tree.cursor(at);
    let mut entry = cursor.first().unwrap();
    while let Some((key, record)) = entry {
        sum += u64::from_le_bytes(record.try_into().unwrap());
        accounts += u64::from(key % 97 == 0);
        entry = cursor.next().unwrap();
    }
    assert_eq!((sum, accounts), (ACCOUNTS * AMOUNT, ACCOUNTS), "forth, after commit {at}");
    let (mut sum, mut keys) = (0, Vec::new());
    let mut entry = cursor.last().unwrap();
    while let Some((key, record)) = entry {
        sum += u64::from_le_bytes(record.try_into().unwrap());
        keys.push(*key);
        entry = cursor.previous().unwrap();
    }
    assert_eq!(sum, ACCOUNTS * AMOUNT, "back, after commit {at}");
    keys.reverse();
    let mut blocks = Vec::new();
    tree.for_each_block(.., at, &mut |block| blocks.extend_from_slice(block)).unwrap();
    assert!(keys == blocks, "after commit {at}");
    let amount = |record: Option<&[u8]>| u64::from_le_bytes(record.unwrap().try_into().unwrap());
    let sum: u64 = (0..ACCOUNTS).map(|number| tree.get(&account(number), || at, amount).unwrap()).sum();
    assert_eq!(sum, ACCOUNTS * AMOUNT, "one by one, after commit {at}");
}

#[test]
fn every_state_that_a_thread_reads_is_whole() {
    let tree = Tree::<u64>::new(options(KeyCodec::Bp128D1, RecordShape::Fixed(8)));
    move_amounts(&tree, &Mutex::default(), &[]);
    let shape = tree.shape();
    assert!(shape.leaves > 1, "{shape:?}");
}

#[test]
fn keys_of_a_range_come_block_by_block() {
    let tree = Tree::<u32>::new(options(KeyCodec::MaskedVbyte, RecordShape::Fixed(0)));
    let place = || Ok::<_, Error>(Numbered { commit: CommitNumber(1), horizon: CommitNumber(1) });
    let changes: Changes<u32> = (0..5000).map(|key| (3 * key, Some(Box::default()))).collect();
    tree.commit(&changes, place).unwrap();
    let mut random = SmallRng::seed_from_u64(5);
    for _ in 0..500 {
        let mut bound = || {
            let key = random.random_range(0..15_010);
            [Bound::Included(key), Bound::Excluded(key), Bound::Unbounded][random.random_range(0..3)]
        };
        let range = (bound(), bound());
        let mut keys = Vec::new();
        tree.for_each_block(range, CommitNumber(1), &mut |block| keys.extend_from_slice(block)).unwrap();
        assert!(keys.iter().eq(changes.keys().filter(|key| range.contains(key))), "{range:?}");
    }
}

#[test]
fn what_was_read_is_known_to_have_changed() {
    let tree = Tree::<u64>::new(options(KeyCodec::SimdFor, RecordShape::Fixed(8)));
    let mut random = SmallRng::seed_from_u64(3);
    let mut model = Model::<u64>::new();
    // By commit, the key that it changed.
    let mut changed = vec![0];
    for step in 0..3000 {
        let key = random.random_range(0..2000);
        let record = (random.random_range(0..3) > 0 || !model.contains_key(&key)).then(|| vec![step as u8; 8]);
        let commit = CommitNumber(changed.len() as u64);
        let place = || Ok::<_, Error>(Numbered { commit, horizon: CommitNumber(commit.0.saturating_sub(40)) });
        tree.change(&key, record.as_deref(), Condition::Always, place).unwrap();
        match record {
            Some(record) => model.insert(key, record),
            None => model.remove(&key),
        };
        changed.push(key);
        let at = commit.0 - random.random_range(0..=commit.0.min(40));
        let mut bound = || {
            let key = random.random_range(0..2000);
            [Bound::Included(key), Bound::Excluded(key), Bound::Unbounded][random.random_range(0..20).min(2)]
        };
        let mut ranges: Vec<(Bound<u64>, Bound<u64>)> = Vec::new();
        for _ in 0..step % 5 {
            let (start, end) = (bound(), bound());
            let are_in_order = |start: u64, end: u64| start < end;
            match (start, end) {
                (Bound::Included(one) | Bound::Excluded(one), Bound::Included(other) | Bound::Excluded(other))
                    if !are_in_order(one, other) =>
                {
                    ranges.push((Bound::Included(other), Bound::Included(other)));
                }
                range => ranges.push(range),
            }
        }
        let is_read = |key: &u64| ranges.iter().any(|range| range.contains(key));
        let expected = changed[at as usize + 1..].iter().any(is_read);
        let mut changes = sequence_of(random.random_range(0..3), &mut random);
        let prepared = tree.prepare(&changes, &Reads::new(CommitNumber(at), ranges.clone())).unwrap();
        // Where ranges touch, the key between them may count as read.
        if prepared.is_none() != expected {
            let touches = |key: &u64| {
                ranges.iter().any(|(start, _)| *start == Bound::Excluded(*key))
                    && ranges.iter().any(|(_, end)| *end == Bound::Excluded(*key))
            };
            assert!(!expected && changed[at as usize + 1..].iter().any(touches), "{ranges:?} since commit {at}");
        }
        // Nothing of it comes to be.
        drop(prepared);
        changes.clear();
        check_state(&tree, commit, &model, &mut random, 2000);
    }
}

/// Changes of a few keys.
fn sequence_of(count: usize, random: &mut SmallRng) -> Changes<u64> {
    (0..count).map(|_| (random.random_range(0..2000), Some(Box::from([9; 8])))).collect()
}

/// Numbers, of which so many are not visible yet when the next one is given.
fn numbers(lag: u64) -> impl FnMut() -> Result<Numbered> {
    let mut number = 0;
    move || {
        number += 1;
        Ok(Numbered { commit: CommitNumber(number), horizon: CommitNumber(number - lag.min(number)) })
    }
}

#[test]
fn leaves_that_are_nearly_empty_are_merged() {
    for lag in [0, 1, 5] {
        let tree = Tree::<u64>::new(options(KeyCodec::Vbyte, RecordShape::Fixed(8)));
        let mut place = numbers(lag);
        for key in 0..100_000 {
            tree.change(&key, Some(&key.to_le_bytes()), Condition::Always, &mut place).unwrap();
        }
        let full = tree.shape();
        assert!(full.leaves > 900 && full.height == 3, "{full:?}");
        // Keys in order leave full leaves behind.
        assert!(full.key_bytes + full.record_bytes > full.leaves * 900, "{full:?}");
        for key in (0..100_000).filter(|key| key % 64 != 0) {
            tree.change(&key, None, Condition::Always, &mut place).unwrap();
        }
        let sparse = tree.shape();
        assert!(sparse.leaves < full.leaves / 4, "{sparse:?}");
        assert_eq!(sparse.keys, 100_000_u64.div_ceil(64));
        assert!(sparse.undo <= lag, "{sparse:?}");
    }
}

#[test]
fn a_queue_has_leaves_for_what_is_in_it() {
    for lag in [0, 1] {
        let tree = Tree::<u64>::new(options(KeyCodec::Bp128D1, RecordShape::Fixed(8)));
        let mut place = numbers(lag);
        for key in 0..200_000_u64 {
            tree.change(&key, Some(&[0; 8]), Condition::Absent, &mut place).unwrap();
            if let Some(first) = key.checked_sub(1000) {
                assert!(tree.change(&first, None, Condition::Present, &mut place).unwrap());
            }
        }
        let shape = tree.shape();
        assert_eq!(shape.keys, 1000);
        assert!(shape.leaves < 30 && shape.height < 4, "{shape:?}");
    }
}

/// Keys without gaps take so few bytes that a leaf has all the keys it may have before it is full.
#[test]
fn leaves_of_very_many_keys_stay_apart() {
    let tree =
        Tree::<u32>::new(TreeOptions { block_len: 256, ..TreeOptions::new(KeyCodec::Bp128D1, RecordShape::Fixed(0)) });
    let mut number = 0;
    let mut place = || {
        number += 1;
        Ok::<_, Error>(Numbered { commit: CommitNumber(number), horizon: CommitNumber(number) })
    };
    for key in 0..200_000_u32 {
        tree.change(&key, Some(&[]), Condition::Always, &mut place).unwrap();
    }
    let full = tree.shape();
    assert_eq!(full.leaves, 200_000_u64.div_ceil(u64::from(u16::MAX)), "{full:?}");
    // The second leaf becomes nearly empty, beside others that have no place for one more key.
    let second = u32::from(u16::MAX)..2 * u32::from(u16::MAX);
    for key in second.clone().skip(1) {
        tree.change(&key, None, Condition::Always, &mut place).unwrap();
    }
    let mut keys = Vec::new();
    tree.for_each_block(.., CommitNumber(number), &mut |block| keys.extend_from_slice(block)).unwrap();
    assert!(keys.into_iter().eq((0..=second.start).chain(second.end..200_000)));
}

#[test]
fn a_delete_splits_a_leaf_where_the_rest_takes_more() {
    let mut options = TreeOptions::new(KeyCodec::Bp128D1, RecordShape::Fixed(0));
    options.leaf_bytes = 1 << 10;
    let tree = Tree::<u64>::new(options);
    let mut number = 0;
    let mut place = || {
        number += 1;
        Ok::<_, Error>(Numbered { commit: CommitNumber(number), horizon: CommitNumber(number) })
    };
    // Differences of one, until the leaf is full but for a few bytes.
    let mut key = 0;
    while tree.shape().leaves == 1 {
        tree.change(&key, Some(&[]), Condition::Always, &mut place).unwrap();
        key += 1;
    }
    let leaves = tree.shape().leaves;
    let mut deleted = 0;
    // A key in the midst of each block: the differences there need one bit more.
    for victim in (0..key).filter(|key| key % 128 == 64) {
        tree.change(&victim, None, Condition::Always, &mut place).unwrap();
        deleted += 1;
        if tree.shape().leaves > leaves {
            break;
        }
    }
    assert!(tree.shape().leaves > leaves, "{deleted} deletes split nothing: {:?}", tree.shape());
    assert_eq!(tree.len(CommitNumber(number)).unwrap(), key - deleted);
}

proptest! {
    /// Ranges that are put together have the keys that each of them had, and no others.
    #[test]
    fn reads_are_the_keys_of_all_ranges(
        ends in prop::collection::vec((0..3_u8, 0..30_u32, 0..3_u8, 0..10_u32), 0..12),
    ) {
        let bound = |kind, key| match kind {
            0 => Bound::Included(key),
            1 => Bound::Excluded(key),
            _ => Bound::Unbounded,
        };
        let ranges: Vec<_> = ends
            .into_iter()
            .map(|(start, first, end, more)| (bound(start, first), bound(end, first + more)))
            .collect();
        let has = |ranges: &[KeyRange<u32>], key: u32| ranges.iter().any(|range| range.contains(&key));
        let apart = Reads::<u32>::new(CommitNumber(0), ranges.clone()).into_ranges();
        for key in 0..45 {
            // Between two keys that exclude each other there may be none; more is read than was, which is no harm.
            prop_assert!(!has(&ranges, key) || has(&apart, key), "{key} of {ranges:?} in {apart:?}");
            let is_near = |near: u32| has(&ranges, near);
            prop_assert!(
                !has(&apart, key) || is_near(key) || is_near(key + 1) || key.checked_sub(1).is_some_and(is_near),
                "{key} of {ranges:?} in {apart:?}"
            );
        }
    }
}
