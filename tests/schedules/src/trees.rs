//! A key-value tree whose commits go through the timeline: what snapshots read of it, beside evictions, checkpoints that are
//! given up or not, and a power loss at the end.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use shuttle::rand::{Rng, thread_rng};
use shuttle::thread;
use sinter_btree::{Changes, Condition, Error, RecordShape, Tree, TreeOptions};
use sinter_codec::KeyCodec;
use sinter_storage::testing::CrashingFileSystem;
use sinter_storage::{Built, CommitNumber, ObjectId, Options, PageId, Recovery, Store, Synchronous, Timeline};

use crate::commits::open;
use crate::explore::{explore, repeats};

const TREE: ObjectId = ObjectId(1);
const WRITERS: u64 = 2;
const AMOUNT: u64 = 100;

/// Accounts of a writer, between whom others are put and deleted, so that leaves are divided and merged.
const ACCOUNTS: u64 = 3;

fn account(writer: u64, number: u64) -> u64 {
    (number * WRITERS + writer) * 1000
}

/// A root that leads to one tree.
type Root = Arc<Tree<u64>>;

fn options() -> TreeOptions {
    // Four records of 200 bytes are a leaf.
    TreeOptions { leaf_bytes: 1 << 10, block_len: 4, ..TreeOptions::new(KeyCodec::Vbyte, RecordShape::Fixed(200)) }
}

fn record(amount: u64) -> Box<[u8]> {
    let mut record = vec![0; 200];
    record[..8].copy_from_slice(&amount.to_le_bytes());
    record.into()
}

fn amount(record: &[u8]) -> u64 {
    u64::from_le_bytes(*record.first_chunk().unwrap())
}

fn opened(disk: &CrashingFileSystem) -> (Arc<Store>, Root) {
    let (store, recovery): (Arc<Store>, Recovery) = open(disk, Options::default());
    let tree = match recovery.root {
        Some(root) => Tree::open(Arc::clone(&store), root).unwrap(),
        None => Tree::create(options(), Arc::clone(&store)),
    };
    for transaction in recovery.transactions {
        let transaction = transaction.unwrap();
        transaction.records.iter().for_each(|record| tree.replay(record, transaction.commit).unwrap());
    }
    (store, tree)
}

/// `is_refused`: by who would validate it.
fn commit(timeline: &Timeline<Root>, tree: &Tree<u64>, changes: &Changes<u64>, is_refused: bool) {
    let mut entered = timeline.enter(None);
    let changed = changes.iter().map(|(key, record)| (key, record.as_deref()));
    let log = Tree::<u64>::log_record(TREE, changed);
    let number = || {
        let build = |pending: &Arc<Root>| match is_refused {
            true => Err(Error::InMemory),
            false => Ok(Some(Built { root: Arc::clone(pending), records: vec![log], pages: Vec::new() })),
        };
        Ok::<_, Error>(entered.number(build)?.unwrap())
    };
    let done = match &changes.iter().collect::<Vec<_>>()[..] {
        [(key, record)] => tree.change(*key, record.as_deref(), Condition::Always, number).map(drop),
        _ => tree.commit(changes, number).map(drop),
    };
    assert_eq!(done.is_err(), is_refused);
    entered.finish().unwrap();
}

/// All amounts add up, forth and back, and one by one; returns what there is.
fn check(tree: &Tree<u64>, at: CommitNumber) -> BTreeMap<u64, u64> {
    let mut found = BTreeMap::new();
    let mut cursor = tree.cursor(at);
    let mut entry = cursor.first().unwrap();
    while let Some((key, record)) = entry {
        assert!(found.insert(*key, amount(record)).is_none(), "key {key} twice, after commit {at}");
        entry = cursor.next().unwrap();
    }
    assert_eq!(found.values().sum::<u64>(), WRITERS * ACCOUNTS * AMOUNT, "{found:?} after commit {at}");
    let mut back = Vec::new();
    let mut entry = cursor.last().unwrap();
    while let Some((key, record)) = entry {
        back.push((*key, amount(record)));
        entry = cursor.previous().unwrap();
    }
    assert!(back.into_iter().rev().eq(found.clone()), "after commit {at}");
    for (key, expected) in &found {
        let got = tree.get(key, || at, |record| record.map(amount)).unwrap();
        assert_eq!(got, Some(*expected), "key {key} after commit {at}");
    }
    found
}

fn write(timeline: &Timeline<Root>, tree: &Tree<u64>, writer: u64) {
    let mut amounts = vec![AMOUNT; ACCOUNTS as usize];
    for _ in 0..3 {
        let mut changes = Changes::<u64>::new();
        let (from, to) = (thread_rng().gen_range(0..ACCOUNTS), thread_rng().gen_range(0..ACCOUNTS));
        let moved = thread_rng().gen_range(0..=amounts[from as usize]);
        amounts[from as usize] -= moved;
        amounts[to as usize] += moved;
        for number in [from, to] {
            changes.insert(account(writer, number), Some(record(amounts[number as usize])));
        }
        commit(timeline, tree, &changes, false);
        let first = thread_rng().gen_range(0..ACCOUNTS * WRITERS * 1000);
        let is_put = thread_rng().gen_bool(0.5);
        let others = (first..first + 6000).step_by(700).filter(|key| key % 1000 != 0 && key % WRITERS == writer);
        let changes: Changes<u64> = others.map(|key| (key, is_put.then(|| record(0)))).collect();
        if !changes.is_empty() {
            commit(timeline, tree, &changes, thread_rng().gen_bool(0.2));
        }
    }
}

fn checkpoint(timeline: &Timeline<Root>, gives_up: bool) {
    let mut written = None;
    let done = timeline.checkpoint(|tree: &Root, out| {
        let tree = tree.write(out)?;
        let root = tree.root();
        written = Some(tree);
        match gives_up {
            true => Err(Error::InMemory),
            false => Ok::<PageId, Error>(root),
        }
    });
    assert_eq!(done.is_err(), gives_up);
    if done.is_ok() {
        written.unwrap().adopt().unwrap();
    }
}

/// The copy holds what was visible.
fn back_up(timeline: &Timeline<Root>) {
    let (copies, path) = (CrashingFileSystem::new(), Path::new("copy.sinter"));
    let go_on = &mut |_| ControlFlow::Continue(());
    timeline.backup(&copies, path, go_on, |tree, out| tree.copy(out)).unwrap();
    let (store, recovery) = Store::open(Arc::new(copies), path, Options::default()).unwrap();
    let tree = Tree::open(Arc::new(store), recovery.root.unwrap()).unwrap();
    check(&tree, recovery.commit);
}

fn share() {
    let disk = CrashingFileSystem::new();
    let (store, tree) = opened(&disk);
    let level = [Synchronous::Full, Synchronous::Normal, Synchronous::Off][thread_rng().gen_range(0..3)];
    store.set_synchronous(level).unwrap();
    let timeline = Timeline::new(Arc::clone(&store), Arc::clone(&tree));
    let all = (0..WRITERS).flat_map(|writer| (0..ACCOUNTS).map(move |number| account(writer, number)));
    commit(&timeline, &tree, &all.map(|key| (key, Some(record(AMOUNT)))).collect(), false);
    thread::scope(|scope| {
        let (timeline, tree) = (&timeline, &tree);
        for writer in 0..WRITERS {
            scope.spawn(move || write(timeline, tree, writer));
        }
        scope.spawn(move || {
            for _ in 0..3 {
                let snapshot = timeline.snapshot();
                let first = check(tree, snapshot.commit());
                if thread_rng().gen_bool(0.5) {
                    assert_eq!(check(tree, snapshot.commit()), first);
                }
            }
        });
        scope.spawn(move || {
            for _ in 0..thread_rng().gen_range(0..6) {
                tree.evict(thread_rng().gen_range(1..6) << 10).unwrap();
            }
        });
        scope.spawn(move || {
            for _ in 0..3 {
                match thread_rng().gen_bool(0.6) {
                    true => checkpoint(timeline, thread_rng().gen_bool(0.3)),
                    false => back_up(timeline),
                }
            }
        });
    });
    let last = check(&tree, timeline.visible_commit());
    checkpoint(&timeline, false);
    // Leaves that waited for the end of the first one are merged, and have left its pages.
    checkpoint(&timeline, false);
    let (mut of_tree, mut of_store) = (Vec::new(), Vec::new());
    tree.for_each_page(&mut |page| of_tree.push(page));
    store.for_each_page(&mut |page| of_store.push(page.page));
    of_tree.sort_unstable();
    assert_eq!(of_tree, of_store, "no page is lost");
    if level != Synchronous::Off && thread_rng().gen_bool(0.5) {
        let (_store, tree) = opened(&disk.restart(thread_rng().gen_range(0..u64::MAX)));
        assert_eq!(check(&tree, CommitNumber(u64::MAX - 1)), last);
    }
}

#[test]
fn every_state_of_a_tree_is_whole_whatever_others_do() {
    explore(200, share);
}

#[test]
fn a_seed_repeats_it() {
    repeats(share);
}
