//! Key-value trees through the front door: alone and in transactions with tables, closed and opened, lost and recovered.

use crate::answers::value;
use crate::reopen::as_after_a_crash;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinter_storage::testing::{CrashingFileSystem, Fault};
use sinterdb::arrow::array::AsArray;
use sinterdb::arrow::datatypes::Int64Type;
use sinterdb::{Config, Connection, Database, Error, Find, Kv, KvOptions, OnCorruption, ValueType};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};

/// Of the longest value.
const VALUE_BYTES_MAX: usize = 256 << 20;

fn all(kv: &Kv<u32>) -> BTreeMap<u32, Vec<u8>> {
    kv.range(..).unwrap().collect::<Result<_, _>>().unwrap()
}

pub(crate) fn is_conflict<T: std::fmt::Debug>(outcome: &Result<T, Error>) -> bool {
    matches!(outcome, Err(Error::Conflict(_)))
}

#[test]
fn keys_have_values_and_an_order() {
    let database = Database::memory().unwrap();
    let kv = database.connect().kv::<u32>("sessions").unwrap();
    assert!(kv.is_empty().unwrap() && kv.get(7).unwrap().is_none());
    kv.put(7, b"seven").unwrap();
    kv.put(3, "three").unwrap();
    assert!(!kv.insert(3, "drei").unwrap() && kv.insert(5, "five").unwrap());
    assert!(!kv.compare_and_swap(5, b"six", "5").unwrap() && kv.compare_and_swap(5, b"five", "5").unwrap());
    assert_eq!(kv.get(5).unwrap().as_deref(), Some(&b"5"[..]));
    let keys = |entries: Vec<_>| -> Vec<u32> { entries.into_iter().map(|(key, _): (u32, Vec<u8>)| key).collect() };
    let in_range = |range: (std::ops::Bound<u32>, std::ops::Bound<u32>)| {
        keys(kv.range(range).unwrap().collect::<Result<_, _>>().unwrap())
    };
    use std::ops::Bound::{Excluded, Included, Unbounded};
    assert_eq!(in_range((Unbounded, Unbounded)), [3, 5, 7]);
    assert_eq!(in_range((Excluded(3), Included(7))), [5, 7]);
    assert_eq!(in_range((Included(4), Excluded(7))), [5]);
    let found = |find, key| kv.find(find, key).unwrap().map(|(key, _)| key);
    assert_eq!(
        [found(Find::Less, 5), found(Find::LessEqual, 5), found(Find::LessEqual, 6)],
        [Some(3), Some(5), Some(5)]
    );
    assert_eq!(
        [found(Find::Greater, 5), found(Find::GreaterEqual, 6), found(Find::Equal, 6)],
        [Some(7), Some(7), None]
    );
    assert_eq!((kv.first().unwrap().unwrap().0, kv.last().unwrap().unwrap().0, kv.len().unwrap()), (3, 7, 3));
    assert!(kv.delete(5).unwrap() && !kv.delete(5).unwrap());
    assert_eq!(kv.len().unwrap(), 2);
}

#[test]
fn keys_of_every_type_come_back_in_their_order() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    let numbers = conn.kv::<i64>("numbers").unwrap();
    for key in [0, -1, i64::MAX, 5, i64::MIN] {
        numbers.put(key, key.to_le_bytes()).unwrap();
    }
    let keys: Vec<i64> = numbers.range(..).unwrap().map(|entry| entry.unwrap().0).collect();
    assert_eq!(keys, [i64::MIN, -1, 0, 5, i64::MAX]);
    let names = conn.kv::<str>("names").unwrap();
    for key in ["b", "a", "", "ab"] {
        names.put(key, key).unwrap();
    }
    let keys: Vec<String> = names.range("a"..).unwrap().map(|entry| entry.unwrap().0).collect();
    assert_eq!(keys, ["a", "ab", "b"]);
    let bytes = conn.kv::<[u8]>("bytes").unwrap();
    bytes.update([(&[255, 0][..], Some("x")), (&[0, 255], Some("y")), (&[], Some("z"))]).unwrap();
    assert_eq!(bytes.last().unwrap(), Some((vec![255, 0], b"x".to_vec())));
    let options = KvOptions { value: Some(ValueType::U64), ..KvOptions::default() }.with_codec("simd_for").unwrap();
    let counts = conn.kv_with::<u64>("counts", options).unwrap();
    counts.put(u64::MAX, 1_u64.to_le_bytes()).unwrap();
    let error = counts.put(1, "one").unwrap_err().to_string();
    assert!(error.contains("a value of 3 bytes, where those of 'counts' have 8 each"), "{error}");
}

#[test]
fn what_does_not_fit_is_refused_and_leaves_nothing() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    conn.execute("CREATE TABLE t (a INT)", &[]).unwrap();
    let error = conn.kv::<u32>("t").unwrap_err().to_string();
    assert!(error.contains("'t' is no key-value tree"), "{error}");
    let kv = conn.kv::<str>("texts").unwrap();
    let error = conn.kv::<u32>("texts").unwrap_err().to_string();
    assert!(error.contains("'texts' has keys of type str"), "{error}");
    let error = conn.execute("CREATE TABLE texts (a INT)", &[]).unwrap_err().to_string();
    assert!(error.contains("'texts' is a key-value tree"), "{error}");
    let long = "x".repeat(20_000);
    assert!(matches!(kv.put(&long, "v"), Err(Error::Data(_))));
    let many = [("a", Some("1")), (&*long, Some("2")), ("c", Some("3"))];
    assert!(matches!(kv.update(many), Err(Error::Data(_))));
    assert!(matches!(kv.put("k", vec![0; VALUE_BYTES_MAX + 1]), Err(Error::Data(_))));
    assert!(kv.is_empty().unwrap());
}

#[test]
fn a_tree_is_there_after_a_close_and_after_a_crash() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kv.sinter");
    let mut model = BTreeMap::new();
    let write = |conn: &Connection, model: &mut BTreeMap<u32, Vec<u8>>, first: u32| {
        let kv = conn.kv::<u32>("s").unwrap();
        let changes = (first..first + 5000).map(|key| (key * 7 % 20_011, key % 5 > 0));
        kv.update(changes.clone().map(|(key, is_put)| (key, is_put.then(|| key.to_string())))).unwrap();
        for (key, is_put) in changes {
            match is_put {
                true => model.insert(key, key.to_string().into_bytes()),
                false => model.remove(&key),
            };
        }
        for key in (first..first + 200).step_by(20) {
            kv.put(key, "one by one").unwrap();
            model.insert(key, b"one by one".to_vec());
        }
    };
    let database = Database::open(&path).unwrap();
    write(&database.connect(), &mut model, 0);
    database.close().unwrap();
    drop(database);
    let database = Database::open(&path).unwrap();
    let conn = database.connect();
    assert_eq!(all(&conn.kv("s").unwrap()), model);
    write(&conn, &mut model, 3000);
    conn.execute("CHECKPOINT", &[]).unwrap();
    write(&conn, &mut model, 9000);
    conn.kv::<str>("other").unwrap().put("k", "v").unwrap();
    let copies = as_after_a_crash(directory.path());
    let path = copies.path().join("kv.sinter");
    for config in [Config::builder().read_only(true), Config::builder(), Config::builder()] {
        let database = Database::open_with(&path, config).unwrap();
        let conn = database.connect();
        assert_eq!(all(&conn.kv("s").unwrap()), model);
        assert_eq!(conn.kv::<str>("other").unwrap().get("k").unwrap(), Some(b"v".to_vec()));
    }
    assert!(sinterdb::check(&path).unwrap().is_sound());
}

#[test]
fn a_backup_has_the_trees() {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::open(directory.path().join("kv.sinter")).unwrap();
    let conn = database.connect();
    let kv = conn.kv::<u32>("s").unwrap();
    kv.update((0..10_000_u32).map(|key| (key, Some(key.to_le_bytes())))).unwrap();
    conn.execute("CHECKPOINT", &[]).unwrap();
    kv.update((0..10_000).step_by(3).map(|key| (key, None::<[u8; 4]>))).unwrap();
    let copy = directory.path().join("copy.sinter");
    conn.execute(&format!("BACKUP TO '{}'", copy.display()), &[]).unwrap();
    let expected = all(&kv);
    kv.put(1, "later").unwrap();
    let database = Database::open(&copy).unwrap();
    assert_eq!(all(&database.connect().kv("s").unwrap()), expected);
}

#[test]
fn a_transaction_changes_trees_and_tables_or_neither() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    conn.execute("CREATE TABLE t (a INT)", &[]).unwrap();
    let outside = conn.kv::<u32>("s").unwrap();
    outside.update([(1, Some("one")), (2, Some("two")), (4, Some("four"))]).unwrap();
    let transaction = database.begin().unwrap();
    let kv = transaction.kv::<u32>("s").unwrap();
    kv.put(3, "three").unwrap();
    assert!(kv.delete(2).unwrap() && !kv.insert(1, "eins").unwrap());
    transaction.execute("INSERT INTO t VALUES (1)", &[]).unwrap();
    let keys = |kv: &Kv<u32>| all(kv).into_keys().collect::<Vec<_>>();
    assert_eq!((keys(&kv), keys(&outside)), (vec![1, 3, 4], vec![1, 2, 4]));
    let found = |find, key| kv.find(find, key).unwrap().map(|(key, _)| key);
    assert_eq!(
        [found(Find::Less, 3), found(Find::Greater, 1), found(Find::GreaterEqual, 2)],
        [Some(1), Some(3), Some(3)]
    );
    assert_eq!([found(Find::LessEqual, 2), found(Find::Less, 1), found(Find::Greater, 4)], [Some(1), None, None]);
    let mut cursor = kv.cursor().unwrap();
    assert!(cursor.last().unwrap() && cursor.previous().unwrap() && cursor.previous().unwrap());
    assert_eq!(cursor.entry().unwrap().unwrap().0, 1);
    assert!(cursor.next().unwrap() && cursor.entry().unwrap().unwrap().0 == 3);
    assert_eq!(kv.len().unwrap(), 3);
    drop(cursor);
    transaction.commit().unwrap();
    assert_eq!((keys(&outside), value(&conn, "SELECT count(*) FROM t")), (vec![1, 3, 4], "1".to_owned()));
    let transaction = database.begin().unwrap();
    transaction.kv::<u32>("s").unwrap().put(9, "nine").unwrap();
    transaction.kv::<u32>("new").unwrap().put(9, "nine").unwrap();
    transaction.execute("INSERT INTO t VALUES (2)", &[]).unwrap();
    transaction.roll_back();
    assert_eq!((keys(&outside), value(&conn, "SELECT count(*) FROM t")), (vec![1, 3, 4], "1".to_owned()));
    assert!(conn.kv::<u32>("new").unwrap().is_empty().unwrap());
    conn.begin(false).unwrap();
    let never = conn.kv::<u32>("never").unwrap();
    never.put(1, "x").unwrap();
    conn.roll_back().unwrap();
    assert!(never.get(1).is_err() && never.len().is_err() && never.put(1, "x").is_err());
}

#[test]
fn a_savepoint_and_a_failed_statement_take_changes_of_trees_back() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    let outside = conn.kv::<u32>("s").unwrap();
    outside.put(1, "one").unwrap();
    let transaction = database.begin().unwrap();
    let kv = transaction.kv::<u32>("s").unwrap();
    kv.put(2, "two").unwrap();
    transaction.execute("SAVEPOINT a", &[]).unwrap();
    kv.put(2, "zwei").unwrap();
    kv.delete(1).unwrap();
    kv.put(3, "three").unwrap();
    assert_eq!(all(&kv).into_keys().collect::<Vec<_>>(), [2, 3]);
    transaction.execute("ROLLBACK TO a", &[]).unwrap();
    assert_eq!(kv.get(2).unwrap(), Some(b"two".to_vec()));
    kv.put(4, "four").unwrap();
    // All or nothing, and what was before stays.
    let many = [(5, Some(b"five".to_vec())), (6, Some(vec![0; VALUE_BYTES_MAX + 1]))];
    assert!(kv.update(many).is_err());
    transaction.execute("ROLLBACK TO a", &[]).unwrap();
    kv.put(4, "four").unwrap();
    transaction.commit().unwrap();
    assert_eq!(all(&outside).into_keys().collect::<Vec<_>>(), [1, 2, 4]);
}

#[test]
fn a_transaction_whose_reads_have_changed_conflicts() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    conn.execute("CREATE TABLE t (a INT)", &[]).unwrap();
    let kv = conn.kv::<u32>("s").unwrap();
    kv.update((0..1000).map(|key| (key, Some("x")))).unwrap();
    let attempt = |read: &dyn Fn(&Kv<u32>), beside: &dyn Fn()| {
        let transaction = database.begin().unwrap();
        read(&transaction.kv("s").unwrap());
        transaction.execute("INSERT INTO t VALUES (1)", &[]).unwrap();
        beside();
        transaction.commit()
    };
    let get_5 = |kv: &Kv<u32>| drop(kv.get(5).unwrap());
    assert!(is_conflict(&attempt(&get_5, &|| kv.put(5, "y").unwrap())));
    assert!(attempt(&get_5, &|| kv.put(6, "y").unwrap()).is_ok());
    let absent = |kv: &Kv<u32>| assert!(kv.get(5000).unwrap().is_none());
    assert!(is_conflict(&attempt(&absent, &|| kv.put(5000, "y").unwrap())));
    let range = |kv: &Kv<u32>| assert_eq!(kv.range(10..20).unwrap().count(), 10);
    assert!(is_conflict(&attempt(&range, &|| kv.put(15, "y").unwrap())));
    assert!(attempt(&range, &|| kv.put(9, "y").unwrap()).is_ok());
    let last = |kv: &Kv<u32>| assert_eq!(kv.last().unwrap().unwrap().0, 5000);
    assert!(is_conflict(&attempt(&last, &|| kv.put(6000, "y").unwrap())));
    // Behind a key, and then the key itself.
    let both = |kv: &Kv<u32>| {
        assert_eq!(kv.find(Find::Greater, 500).unwrap().unwrap().0, 501);
        assert!(kv.get(500).unwrap().is_some());
    };
    assert!(is_conflict(&attempt(&both, &|| kv.put(500, "y").unwrap())));
    // Of what is behind the end of a range nothing was read.
    let short = |kv: &Kv<u32>| assert_eq!(kv.range(999..1500).unwrap().count(), 1);
    assert!(attempt(&short, &|| kv.put(1500, "y").unwrap()).is_ok());
    assert!(is_conflict(&attempt(&short, &|| kv.put(1499, "y").unwrap())));
    let gone = conn.kv::<u32>("gone").unwrap();
    gone.put(1, "x").unwrap();
    let transaction = database.begin().unwrap();
    assert!(transaction.kv::<u32>("gone").unwrap().get(1).unwrap().is_some());
    transaction.execute("INSERT INTO t VALUES (1)", &[]).unwrap();
    conn.execute("DROP TABLE gone", &[]).unwrap();
    assert!(is_conflict(&transaction.commit()));
    // Who only writes comes second, and that is well.
    let transaction = database.begin().unwrap();
    transaction.kv::<u32>("s").unwrap().put(7, "mine").unwrap();
    kv.put(7, "theirs").unwrap();
    transaction.commit().unwrap();
    assert_eq!(kv.get(7).unwrap(), Some(b"mine".to_vec()));
}

#[test]
fn who_only_reads_changes_nothing() {
    let database = Database::memory().unwrap();
    let kv = database.connect().kv::<u32>("s").unwrap();
    kv.put(1, "one").unwrap();
    let transaction = database.begin_read_only().unwrap();
    let seen = transaction.kv::<u32>("s").unwrap();
    assert_eq!(seen.get(1).unwrap(), Some(b"one".to_vec()));
    assert!(seen.put(2, "two").is_err() && seen.delete(1).is_err());
    assert!(seen.update([(2, Some("two"))]).is_err());
    transaction.roll_back();
    assert_eq!(all(&kv).into_keys().collect::<Vec<_>>(), [1]);
}

#[test]
fn what_is_put_may_be_read_from_the_same_connection() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    let kv = conn.kv::<u32>("s").unwrap();
    kv.update((0..100).map(|key| (key, Some(key.to_string())))).unwrap();
    for in_transaction in [false, true] {
        if in_transaction {
            conn.begin(false).unwrap();
        }
        let doubled = kv.range(..100).unwrap().map(|entry| entry.unwrap()).map(|(key, value)| (key + 100, Some(value)));
        kv.update(doubled).unwrap();
        assert_eq!(kv.len().unwrap(), 200);
        if in_transaction {
            let mut cursor = kv.cursor().unwrap();
            assert!(cursor.first().unwrap());
            conn.commit().unwrap();
            assert!(cursor.next().is_err());
            conn.begin(false).unwrap();
            assert!(cursor.next().is_err(), "another transaction");
            conn.roll_back().unwrap();
        }
    }
}

#[test]
fn a_tree_that_is_dropped_is_gone_and_gives_its_pages_back() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kv.sinter");
    let database = Database::open(&path).unwrap();
    let conn = database.connect();
    let kv = conn.kv::<u32>("s").unwrap();
    kv.update((0..200_000).map(|key| (key, Some([7; 32])))).unwrap();
    conn.execute("CHECKPOINT", &[]).unwrap();
    let full = std::fs::metadata(&path).unwrap().len();
    let transaction = database.begin().unwrap();
    let seen = transaction.kv::<u32>("s").unwrap();
    conn.execute("DROP TABLE s", &[]).unwrap();
    assert!(matches!(kv.get(1), Err(Error::Sql(_))));
    assert!(matches!(kv.put(1, "x"), Err(Error::Sql(_))));
    assert_eq!(seen.get(1).unwrap(), Some(vec![7; 32]), "who began before looks at what was");
    transaction.roll_back();
    drop((seen, kv));
    conn.execute("VACUUM", &[]).unwrap();
    let empty = std::fs::metadata(&path).unwrap().len();
    assert!(empty < full / 10, "{empty} bytes of {full} are left");
    conn.kv::<str>("s").unwrap().put("again", "x").unwrap();
    database.close().unwrap();
    drop((conn, database));
    let database = Database::open(&path).unwrap();
    assert_eq!(database.connect().kv::<str>("s").unwrap().len().unwrap(), 1);
}

#[test]
fn a_tree_larger_than_memory_is_read_and_written() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kv.sinter");
    let database = Database::open_with(&path, Config::builder().memory_limit_bytes(8 << 20)).unwrap();
    let kv = database.connect().kv::<u64>("s").unwrap();
    let key = |number: u64| number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for first in (0..200_000).step_by(100) {
        kv.update((first..first + 100).map(|number| (key(number), Some([number as u8; 100])))).unwrap();
    }
    for number in (0..200_000).step_by(97) {
        assert_eq!(kv.get(key(number)).unwrap(), Some(vec![number as u8; 100]));
    }
    assert_eq!(kv.len().unwrap(), 200_000);
}

/// Amounts move between keys of two trees and a table; whoever looks, sees all of it.
#[test]
fn what_is_moved_between_trees_stays_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::open_with(directory.path().join("kv.sinter"), Config::builder().threads(2)).unwrap();
    let conn = database.connect();
    let [a, b] = ["a", "b"].map(|name| conn.kv::<u32>(name).unwrap());
    for kv in [&a, &b] {
        kv.update((0..50).map(|key| (key * 100, Some(100_u64.to_le_bytes())))).unwrap();
    }
    let amount = |value: Vec<u8>| u64::from_le_bytes(value.try_into().unwrap());
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let database = &database;
        let writers: Vec<_> = (0..3_u32)
            .map(|thread| {
                scope.spawn(move || {
                    for n in 0..100 {
                        let (from, to) = ((n * 7 + thread) % 50 * 100, (n * 11 + thread * 5) % 50 * 100);
                        database
                            .transaction(1000, |transaction| {
                                let [a, b] = [transaction.kv::<u32>("a")?, transaction.kv::<u32>("b")?];
                                let left = amount(a.get(from)?.unwrap());
                                let moved = left.min(u64::from(n % 13));
                                let there = amount(b.get(to)?.unwrap());
                                a.put(from, (left - moved).to_le_bytes())?;
                                b.put(to, (there + moved).to_le_bytes())
                            })
                            .unwrap();
                    }
                })
            })
            .collect();
        let reader = scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                let transaction = database.begin_read_only().unwrap();
                let sum: u64 = ["a", "b"]
                    .map(|name| {
                        let kv = transaction.kv::<u32>(name).unwrap();
                        kv.range(..).unwrap().map(|entry| amount(entry.unwrap().1)).sum::<u64>()
                    })
                    .iter()
                    .sum();
                assert_eq!(sum, 10_000);
            }
        });
        let checkpoints = scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                database.connect().execute("CHECKPOINT", &[]).unwrap();
            }
        });
        let written: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        is_over.store(true, Ordering::Release);
        reader.join().unwrap();
        checkpoints.join().unwrap();
        written.into_iter().for_each(|writer| writer.unwrap());
    });
    let sum: u64 = [&a, &b].map(|kv| all(kv).into_values().map(amount).sum::<u64>()).iter().sum();
    assert_eq!(sum, 10_000);
}

/// What two trees and a table hold.
#[derive(Clone, Debug, Default, PartialEq)]
struct Held {
    numbers: BTreeMap<u32, Vec<u8>>,
    texts: BTreeMap<String, Vec<u8>>,
    rows: u64,
}

impl Held {
    fn of(conn: &Connection) -> Result<Held, Error> {
        let rows = conn.sql("SELECT count(*) FROM t")?.collect()?;
        Ok(Held {
            numbers: conn.kv::<u32>("numbers")?.range(..)?.collect::<Result<_, _>>()?,
            texts: conn.kv::<str>("texts")?.range(..)?.collect::<Result<_, _>>()?,
            rows: rows[0].column(0).as_primitive::<Int64Type>().value(0) as u64,
        })
    }

    /// A random change, of the model first: of one that fails nobody knows whether it was committed.
    fn change(&mut self, conn: &Connection, random: &mut SmallRng) -> Result<(), Error> {
        let (numbers, texts) = (conn.kv::<u32>("numbers")?, conn.kv::<str>("texts")?);
        match random.random_range(0..7) {
            6 => {
                let first = random.random_range(0..3000_u32);
                let range = first..first + random.random_range(0..200);
                let before = self.numbers.len();
                self.numbers.retain(|key, _| !range.contains(key));
                let deleted = numbers.delete_range(range)?;
                assert_eq!(deleted as usize, before - self.numbers.len());
                Ok(())
            }
            0 => {
                self.rows += 1;
                conn.execute("INSERT INTO t VALUES (1)", &[]).map(drop)
            }
            1 | 2 => {
                let first = random.random_range(0..3000_u32);
                let value = vec![7; random.random_range(0..2000)];
                self.numbers.extend((first..first + 100).map(|key| (key, value.clone())));
                numbers.update((first..first + 100).map(|key| (key, Some(&value))))
            }
            3 => {
                let key = format!("key {}", random.random_range(0..3000));
                let was_there = self.texts.remove(&key).is_some();
                assert_eq!(texts.delete(&key)?, was_there, "{key}");
                Ok(())
            }
            _ => {
                let first = random.random_range(0..3000_u32);
                let is_put = random.random_range(0..3) > 0;
                let keys: Vec<String> = (first..first + 300).map(|key| format!("key {key}")).collect();
                for key in &keys {
                    match is_put {
                        true => self.texts.insert(key.clone(), key.clone().into_bytes()),
                        false => self.texts.remove(key),
                    };
                }
                texts.update(keys.iter().map(|key| (&key[..], is_put.then_some(key))))
            }
        }
    }
}

/// Changes alone and in transactions that are committed, taken back or half taken back, checkpoints, backups, too little
/// memory for all leaves, and losses of power at any call.
#[test]
fn what_was_committed_is_there_after_any_loss_of_power() {
    for seed in 0..12 {
        let mut random = SmallRng::seed_from_u64(seed);
        let config = |disk: &CrashingFileSystem| {
            Config::builder()
                .threads(1)
                .memory_limit_bytes(6 << 20)
                .background(false)
                .file_system(std::sync::Arc::new(disk.clone()))
        };
        let path = "/simulated/kv.sinter";
        let mut disk = CrashingFileSystem::new();
        let mut database = Database::open_with(path, config(&disk)).unwrap();
        let mut model = Held::default();
        let conn = database.connect();
        conn.execute("CREATE TABLE t (a INT)", &[]).unwrap();
        assert_eq!(Held::of(&conn).unwrap(), model);
        drop(conn);
        for step in 0..120 {
            if random.random_range(0..15) == 0 {
                let calls = disk.calls().len() as u64;
                disk.plan(calls + random.random_range(0..40), Fault::Crash);
            }
            let (before, mut after) = (model.clone(), model.clone());
            let conn = database.connect();
            let done = match random.random_range(0..8) {
                0 => conn.execute("CHECKPOINT", &[]).map(drop),
                1..=3 => after.change(&conn, &mut random),
                _ => {
                    let mut transact = || -> Result<(), Error> {
                        conn.begin(false)?;
                        for _ in 0..random.random_range(1..4) {
                            after.change(&conn, &mut random)?;
                        }
                        if random.random_range(0..3) == 0 {
                            let kept = after.clone();
                            conn.execute("SAVEPOINT a", &[])?;
                            after.change(&conn, &mut random)?;
                            assert_eq!(Held::of(&conn)?, after, "seed {seed}, step {step}: within");
                            conn.execute("ROLLBACK TO a", &[])?;
                            after = kept;
                        }
                        if random.random_range(0..4) == 0 {
                            after = before.clone();
                            return conn.roll_back();
                        }
                        conn.commit()
                    };
                    transact()
                }
            };
            if disk.is_dead() {
                drop((conn, database));
                disk = disk.restart(random.random());
                database = Database::open_with(path, config(&disk)).unwrap();
                let held = Held::of(&database.connect()).unwrap();
                // Of a commit that was on its way nobody knows before.
                assert!(held == after || (done.is_err() && held == before), "seed {seed}, step {step}");
                model = held;
            } else {
                done.unwrap();
                model = after;
                if random.random_range(0..4) == 0 {
                    assert_eq!(Held::of(&conn).unwrap(), model, "seed {seed}, step {step}");
                }
            }
        }
        drop(database);
        let database = Database::open_with(path, config(&disk.copy())).unwrap();
        assert_eq!(Held::of(&database.connect()).unwrap(), model, "seed {seed}");
    }
}

#[test]
fn a_range_goes_with_what_is_in_it_when_it_goes() {
    let database = Database::memory().unwrap();
    let (conn, other) = (database.connect(), database.connect());
    let (kv, beside) = (conn.kv::<u32>("s").unwrap(), other.kv::<u32>("s").unwrap());
    kv.update((0..1000).map(|key| (key, Some(b"")))).unwrap();
    assert_eq!(kv.delete_range(100..=899).unwrap(), 800);
    assert_eq!(kv.delete_range(100..=899).unwrap(), 0);
    assert_eq!(
        kv.delete_range((Bound::Included(20), Bound::Excluded(10))).unwrap() + kv.delete_range(10..10).unwrap(),
        0
    );
    assert_eq!(kv.len().unwrap(), 200);
    conn.begin(false).unwrap();
    kv.update([(55, None), (150, Some(b""))]).unwrap();
    assert_eq!(kv.delete_range(50..200).unwrap(), 50, "one of them was gone, one is new");
    assert_eq!(all(&kv).len(), 150);
    // Nothing was there, and nobody may put something there meanwhile.
    beside.put(120, b"").unwrap();
    assert!(is_conflict(&conn.commit()));
    assert_eq!(kv.delete_range(..).unwrap(), 201);
    assert!(beside.is_empty().unwrap());
}

fn is_loaded(kv: &Kv<u64>, count: u64) {
    let keys = kv.range(..).unwrap().map(|entry| entry.unwrap());
    assert!(keys.eq((0..count).map(|key| (3 * key, key.to_le_bytes().to_vec()))));
}

fn load(conn: &Connection, name: &str, count: u64) -> sinterdb::Result<Kv<u64>> {
    let options = KvOptions { value: Some(ValueType::U64), ..KvOptions::default() };
    let mut load = conn.load_kv::<u64>(name, options)?;
    (0..count).try_for_each(|key| load.push(3 * key, key.to_le_bytes()))?;
    load.finish()
}

#[test]
fn a_tree_that_is_loaded_is_there_at_once() {
    let database = Database::memory().unwrap();
    let (conn, other) = (database.connect(), database.connect());
    let kv = load(&conn, "s", 30_000).unwrap();
    is_loaded(&kv, 30_000);
    is_loaded(&other.kv::<u64>("s").unwrap(), 30_000);
    let shown = |kv: &Kv<u64>| {
        let mut shown = Vec::new();
        kv.for_each(300..=9000, |key, value| shown.push((key, value.to_vec()))).unwrap();
        shown
    };
    let expected: Vec<_> = (100..=3000_u64).map(|key| (3 * key, key.to_le_bytes().to_vec())).collect();
    assert_eq!(shown(&kv), expected);
    let sums = kv.sums(300..=9000).unwrap();
    assert_eq!((sums.count, sums.sum, sums.min, sums.max), (2901, 4650 * 2901, Some(300), Some(9000)));
    conn.begin(false).unwrap();
    kv.delete(303).unwrap();
    let without = [&expected[..1], &expected[2..]].concat();
    assert_eq!(shown(&kv), without);
    assert_eq!(kv.sums(300..=9000).unwrap().sum, 4650 * 2901 - 303);
    conn.roll_back().unwrap();
    assert!(matches!(load(&conn, "s", 1), Err(Error::Sql(_))), "it is there already");
    let options = || KvOptions { value: Some(ValueType::U64), ..KvOptions::default() };
    let mut begun = conn.load_kv::<u64>("t", options()).unwrap();
    begun.push(7, 7_u64.to_le_bytes()).unwrap();
    for (key, value) in [(7, &[0; 8][..]), (6, &[0; 8]), (8, &[0; 7])] {
        assert!(matches!(begun.push(key, value), Err(Error::Data(_))), "{key}");
    }
    begun.push(8, 8_u64.to_le_bytes()).unwrap();
    other.kv_with::<u64>("t", options()).unwrap();
    assert!(begun.finish().is_err(), "another has the name now");
    // In a transaction, which others do not see, and which may go back.
    conn.begin(false).unwrap();
    let mine = load(&conn, "u", 1000).unwrap();
    mine.put(1, 1_u64.to_le_bytes()).unwrap();
    assert_eq!(mine.len().unwrap(), 1001);
    assert!(other.sql("SELECT count(*) FROM u").is_err());
    conn.roll_back().unwrap();
    assert!(conn.sql("SELECT count(*) FROM u").is_err());
    conn.begin(false).unwrap();
    load(&conn, "u", 1000).unwrap().put(1, 1_u64.to_le_bytes()).unwrap();
    conn.commit().unwrap();
    assert_eq!(other.kv::<u64>("u").unwrap().len().unwrap(), 1001);
    assert_eq!(value(&other, "SELECT sum(key) FROM s"), "1349955000");
    let signed = conn.kv::<i64>("signed").unwrap();
    signed.update((-40..20).map(|key| (key, Some(b"")))).unwrap();
    let sums = signed.sums(-10..5).unwrap();
    assert_eq!((sums.count, sums.sum, sums.min, sums.max), (15, -45, Some(-10), Some(4)));
}

#[test]
fn a_loaded_tree_whose_root_is_damaged_costs_itself_alone() {
    const STEP_BYTES: usize = 512;
    let folder = tempfile::tempdir().unwrap();
    let database = Database::open_with(folder.path().join("a.sinter"), Config::builder().background(false)).unwrap();
    let conn = database.connect();
    conn.execute("CREATE TABLE t (a INT)", &[]).unwrap();
    conn.execute("INSERT INTO t VALUES (7)", &[]).unwrap();
    load(&conn, "s", 3000).unwrap().put(1, [1; 8]).unwrap();
    let crashed = as_after_a_crash(folder.path());
    let path = crashed.path().join("a.sinter");
    let whole = std::fs::read(&path).unwrap();
    let open =
        |on_corruption| Database::open_with(&path, Config::builder().read_only(true).on_corruption(on_corruption));
    let (mut lost, mut errors) = (0, BTreeMap::new());
    for at in (0..whole.len()).step_by(STEP_BYTES) {
        let mut damaged = whole.clone();
        damaged[at + 8..(at + 40).min(whole.len())].iter_mut().for_each(|byte| *byte ^= 0x55);
        std::fs::write(&path, &damaged).unwrap();
        let Err(error) = open(OnCorruption::Error) else { continue };
        errors.insert(at, error.to_string());
        let Ok(database) = open(OnCorruption::Skip) else { continue };
        let conn = database.connect();
        if conn.sql("SELECT count(*) FROM s").and_then(sinterdb::Query::collect).is_ok() {
            continue;
        }
        lost += 1;
        assert_eq!(value(&conn, "SELECT a FROM t"), "7");
        let error = conn.sql("SELECT count(*) FROM s").and_then(sinterdb::Query::collect).unwrap_err();
        assert!(error.to_string().contains("'s' cannot be read"), "{error}");
        drop((conn, database));
        let report = sinterdb::check(&path).unwrap();
        assert!(report.findings.iter().any(|finding| finding.table.as_deref() == Some("s")), "{report:?}");
    }
    assert!(lost >= 2, "its root, and its directory: {errors:#?}");
}

#[test]
fn a_load_is_whole_or_not_there_after_a_loss_of_power() {
    let path = "/simulated/shop.sinter";
    let config = |disk: &CrashingFileSystem| {
        Config::builder().threads(1).background(false).file_system(std::sync::Arc::new(disk.clone()))
    };
    let (mut losses, mut kept) = (0, 0);
    for step in 0.. {
        let disk = CrashingFileSystem::new();
        let database = Database::open_with(path, config(&disk)).unwrap();
        let conn = database.connect();
        conn.execute("CREATE TABLE t (a INT)", &[]).unwrap();
        if step % 2 == 0 {
            conn.execute("CHECKPOINT", &[]).unwrap();
        }
        disk.plan(disk.calls().len() as u64 + step, Fault::Crash);
        let acknowledged = Cell::new(0);
        let run = || {
            conn.begin(false)?;
            conn.execute("INSERT INTO t VALUES (1)", &[])?;
            load(&conn, "s", 5000)?.put(1, [1; 8])?;
            conn.commit()?;
            acknowledged.set(1);
            conn.kv::<u64>("s")?.delete(0)?;
            acknowledged.set(2);
            conn.execute("ALTER TABLE s RENAME TO u", &[])?;
            conn.execute("ALTER TABLE u RENAME TO s", &[])?;
            conn.execute("CHECKPOINT", &[])?;
            conn.kv::<u64>("s")?.delete(3)?;
            acknowledged.set(3);
            Ok::<_, Error>(())
        };
        let done = run();
        let is_dead = disk.is_dead();
        drop((conn, database));
        let disk = if is_dead { disk.restart(step) } else { disk.copy() };
        let database = Database::open_with(path, config(&disk)).unwrap();
        let conn = database.connect();
        let rows = conn.sql("SELECT a FROM t").unwrap().collect().unwrap();
        let has_row = rows.iter().any(|batch| batch.num_rows() > 0);
        let name = ["s", "u"].into_iter().find(|name| conn.sql(&format!("SELECT count(*) FROM {name}")).is_ok());
        assert_eq!(name.is_some(), has_row, "step {step}");
        assert!(has_row || acknowledged.get() == 0, "step {step}: what was acknowledged is lost");
        match name {
            Some(name) => {
                let kv = conn.kv::<u64>(name).unwrap();
                let found: BTreeMap<u64, Vec<u8>> = kv.range(..).unwrap().collect::<Result<_, _>>().unwrap();
                let mut expected: BTreeMap<_, _> =
                    (0..5000_u64).map(|key| (3 * key, key.to_le_bytes().to_vec())).collect();
                expected.insert(1, vec![1; 8]);
                for (deletes, key) in [(2, 0), (3, 3)] {
                    assert!(acknowledged.get() < deletes || !found.contains_key(&key), "step {step}: {key} is back");
                    if !found.contains_key(&key) {
                        expected.remove(&key);
                    }
                }
                assert!(found == expected, "step {step}: {} keys", found.len());
                kept += 1;
            }
            None => losses += 1,
        }
        if !is_dead {
            done.unwrap();
            break;
        }
    }
    assert!(losses > 5 && kept > 5, "{losses} lost, {kept} kept");
}
