//! Real threads.

use super::check_acyclic;
use super::steps::{Answer, Key, Rows, Step, TABLES, Trees};
use crate::answers::lines;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use sinterdb::{Config, Database, Error, Transaction};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

/// What a transaction of [`threads_are_serializable`] read and wrote. The values say which version of a row it was.
#[derive(Default)]
struct Access {
    reads: Vec<(Key, i64)>,
    /// The value before, and the new one.
    writes: Vec<(Key, i64, i64)>,
}

/// Keys of each table in [`threads_are_serializable`].
const FEW_KEYS: i64 = 3;

/// A column table and a key-value tree.
const TREES: Trees = Trees([false, true]);

/// Real threads, on a file, where a commit waits for its sync while others read, validate and commit. Nobody knows the
/// order of the commits; so every write is a value of its own, and the versions of each row tell who depends on whom.
/// Each reads several of a few rows and writes one: what two read and write mostly crosses.
#[test]
fn threads_are_serializable() {
    const THREADS: i64 = 6;
    const TRANSACTIONS: i64 = 80;
    let directory = tempfile::tempdir().unwrap();
    let database = Database::open_with(directory.path().join("threads.sinter"), Config::builder().threads(1)).unwrap();
    let conn = database.connect();
    for (number, table) in TABLES.iter().enumerate() {
        for sql in TREES.create(number) {
            conn.execute(&sql, &[]).unwrap();
        }
        conn.execute(
            &format!("INSERT INTO {table} SELECT value, -1 - value FROM generate_series(0, {})", FEW_KEYS - 1),
            &[],
        )
        .unwrap();
    }
    let committed: Mutex<Vec<Access>> = Mutex::default();
    let conflicts: Mutex<usize> = Mutex::default();
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (database, committed, conflicts) = (&database, &committed, &conflicts);
            scope.spawn(move || {
                let mut random = SmallRng::seed_from_u64(thread.cast_unsigned());
                for n in 0..TRANSACTIONS {
                    let transaction = database.begin().unwrap();
                    let value = thread * 1_000_000 + n * 100;
                    let access = read_and_write(&transaction, &mut random, value);
                    match transaction.commit() {
                        Ok(()) => committed.lock().unwrap().push(access),
                        Err(Error::Conflict(_)) => *conflicts.lock().unwrap() += 1,
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    let (committed, conflicts) = (committed.into_inner().unwrap(), conflicts.into_inner().unwrap());
    let mut writer: BTreeMap<(Key, i64), usize> = BTreeMap::new();
    let mut next: BTreeMap<(Key, i64), (usize, i64)> = BTreeMap::new();
    for (index, one) in committed.iter().enumerate() {
        for (key, before, after) in &one.writes {
            writer.insert((*key, *after), index);
            let lost = next.insert((*key, *before), (index, *after));
            assert!(lost.is_none(), "two changed the value {before} of {key:?}: {lost:?} and {after}");
        }
    }
    let mut edges: BTreeSet<(usize, usize)> = BTreeSet::new();
    for (index, one) in committed.iter().enumerate() {
        let replaced = one.writes.iter().map(|(key, before, _)| (*key, *before));
        edges.extend(replaced.filter_map(|version| Some((*writer.get(&version)?, index))));
        for version in &one.reads {
            edges.extend(writer.get(version).map(|writer| (*writer, index)));
            edges.extend(next.get(version).map(|(writer, _)| (index, *writer)));
        }
    }
    check_acyclic(committed.len(), &mut edges, "threads");
    for (number, table) in TABLES.iter().enumerate() {
        let last = |key: i64| {
            let mut value = -1 - key;
            while let Some((_, after)) = next.get(&((number, key), value)) {
                value = *after;
            }
            format!("{key} {value}")
        };
        let expected: Vec<String> = (0..FEW_KEYS).map(last).collect();
        assert_eq!(lines(&conn, &format!("SELECT k, v FROM all_{table} ORDER BY k")), expected);
    }
    println!("{} transactions committed, {conflicts} conflicts, {} edges", committed.len(), edges.len());
    assert!(committed.len() > 60 && conflicts > 20, "{} committed, {conflicts} conflicts", committed.len());
}

/// Reads some rows, and gives one of them a new value.
fn read_and_write(transaction: &Transaction, random: &mut SmallRng, value: i64) -> Access {
    let mut access = Access::default();
    for _ in 0..2 {
        let (table, key) = (random.random_range(0..2), random.random_range(0..FEW_KEYS));
        let rows = *[Rows::Key(key), Rows::Range(key, key + 1), Rows::All].choose(random).unwrap();
        let Ok(Answer::Rows(rows)) = Step::Read(table, rows).run(transaction, TREES) else { panic!("a read fails") };
        access.reads.extend(rows.into_iter().map(|(key, value)| ((table, key), value)));
    }
    let (key, before) = *access.reads.choose(random).unwrap();
    let [k, v] = TREES.columns(key.0);
    let sql = format!("UPDATE {} SET {v} = {value} WHERE {k} = {}", TABLES[key.0], key.1);
    assert_eq!(transaction.execute(&sql, &[]).unwrap(), 1);
    access.writes.push((key, before, value));
    access
}
