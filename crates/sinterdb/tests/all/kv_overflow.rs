//! Values of any length in key-value trees: those that are too long for a leaf are kept beside it.

use crate::answers::{lines, value};
use crate::kv::is_conflict;
use crate::reopen::as_after_a_crash;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinterdb::arrow::array::{AsArray, RecordBatch};
use sinterdb::arrow::datatypes::UInt32Type;
use sinterdb::{Config, Connection, Database, Error, Find, Kv, KvOptions, OnCorruption, ValueType};
use std::collections::BTreeMap;

/// Of so many bytes, of which no two are alike that lie close to each other; 255, by which leaves tell, among the first.
fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| (255 - at % 251 + seed) as u8 ^ (at / 3200) as u8).collect()
}

/// Short, as long as a leaf takes in, a byte more, a piece, and many.
const LENS: [usize; 13] = [0, 1, 2, 18, 3200, 3201, 4079, 4080, 4081, 4082, 4083, 16_000, 1_000_003];

fn all(kv: &Kv<u32>) -> BTreeMap<u32, Vec<u8>> {
    kv.range(..).unwrap().collect::<Result<_, _>>().unwrap()
}

/// The same by a query.
fn by_sql(conn: &Connection) -> BTreeMap<u32, Vec<u8>> {
    let batches = conn.sql("SELECT key, value FROM s").unwrap().collect().unwrap();
    let of_batch = |batch: &RecordBatch| -> Vec<(u32, Vec<u8>)> {
        let (keys, values) = (batch.column(0).as_primitive::<UInt32Type>(), batch.column(1).as_binary::<i32>());
        (0..batch.num_rows()).map(|row| (keys.value(row), values.value(row).to_vec())).collect()
    };
    batches.iter().flat_map(of_batch).collect()
}

/// What the trees' values take, short ones and pieces.
fn value_bytes(conn: &Connection) -> u64 {
    value(conn, "SELECT value_bytes FROM trees()").parse().unwrap()
}

#[test]
fn values_of_any_length_are_found_by_every_way() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    let kv = conn.kv::<u32>("s").unwrap();
    let model: BTreeMap<u32, Vec<u8>> = (0..).zip(LENS.map(|len| bytes(len, len))).collect();
    for (key, value) in &model {
        kv.put(*key, value).unwrap();
        assert_eq!(kv.get(*key).unwrap().as_ref(), Some(value));
    }
    assert_eq!(all(&kv), model);
    let mut shown = BTreeMap::new();
    kv.for_each(.., |key, value| drop(shown.insert(key, value.to_vec()))).unwrap();
    assert_eq!(shown, model);
    let mut cursor = kv.cursor().unwrap();
    cursor.last().unwrap();
    for (key, value) in model.iter().rev() {
        assert_eq!(cursor.entry().unwrap(), Some((*key, value.clone())));
        cursor.previous().unwrap();
    }
    let last = LENS.len() as u32 - 1;
    assert_eq!(kv.find(Find::Less, 1000).unwrap(), Some((last, model[&last].clone())));
    assert_eq!(by_sql(&conn), model);
    assert_eq!(value(&conn, "SELECT count(*), sum(key) FROM s"), "13 78");
    // Each condition is one on values, wherever they are.
    let (long, short) = (&model[&last], b"short");
    assert!(!kv.insert(last, "x").unwrap() && !kv.compare_and_swap(last, b"x", "y").unwrap());
    assert!(!kv.compare_and_swap(last, &bytes(1_000_003, 1), "y").unwrap());
    assert!(kv.compare_and_swap(last, long, short).unwrap() && kv.compare_and_swap(last, short, long).unwrap());
    assert_eq!(kv.get(last).unwrap().as_ref(), Some(long));
    // What is gone takes no place.
    assert_eq!(kv.delete_range(5..9).unwrap(), 4);
    assert!((0..20).all(|key| kv.delete(key).unwrap() == ((0..5).contains(&key) || (9..13).contains(&key))));
    assert_eq!(value_bytes(&conn), 0);
    let error = kv.put(1, vec![0; (256 << 20) + 1]).unwrap_err();
    assert!(matches!(&error, Error::Data(message) if message.contains("268435456 at most")), "{error}");
}

#[test]
fn statements_put_and_change_long_values() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    let of_text = KvOptions { value: Some(ValueType::Text), ..KvOptions::default() };
    let kv = conn.kv_with::<u32>("texts", of_text).unwrap();
    let run = |sql: &str| conn.execute(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
    run("INSERT INTO texts SELECT v, repeat('ä' || v, v * 40) FROM generate_series(1, 300) AS g (v)");
    let expected: usize = (1..=300_usize).map(|v| (2 + v.to_string().len()) * v * 40).sum();
    let total = "SELECT sum(octet_length(value)) FROM texts";
    assert_eq!(value(&conn, total), expected.to_string());
    assert_eq!(
        value(&conn, "SELECT count(*) FROM texts WHERE value LIKE 'ä299ä%' AND value = repeat('ä299', 11960)"),
        "1"
    );
    assert_eq!(run("UPDATE texts SET value = value || '!' WHERE key > 150"), 150);
    assert_eq!(value(&conn, total), (expected + 150).to_string());
    conn.begin(false).unwrap();
    run("INSERT OR REPLACE INTO texts VALUES (300, 'short')");
    run("INSERT INTO texts VALUES (1000, repeat('x', 100000)) ON CONFLICT (key) DO UPDATE SET value = 'never'");
    run("INSERT INTO texts VALUES (299, '?') ON CONFLICT (key) DO UPDATE SET value = texts.value || excluded.value");
    let own = "SELECT key, octet_length(value), right(value, 2) FROM texts WHERE key IN (299, 300, 1000) ORDER BY key";
    assert_eq!(lines(&conn, own), ["299 59802 !?", "300 5 rt", "1000 100000 xx"]);
    conn.commit().unwrap();
    assert_eq!(lines(&conn, own), ["299 59802 !?", "300 5 rt", "1000 100000 xx"]);
    assert_eq!(run("UPDATE texts SET key = key + 5000 WHERE octet_length(value) > 50000"), 51);
    assert_eq!(kv.get(6000).unwrap().unwrap(), "x".repeat(100_000).into_bytes());
    assert_eq!(run("DELETE FROM texts WHERE key <> 300"), 300);
    assert_eq!(value_bytes(&conn), 7, "a value of 5 bytes, and where it ends");
    run("DROP TABLE texts");
    run("CREATE TABLE texts (key BIGINT, value BLOB) WITH (storage = 'tree')");
    run("INSERT INTO texts SELECT -1, CAST(repeat('y', 70000) AS BLOB)");
    assert_eq!(conn.kv::<i64>("texts").unwrap().get(-1).unwrap(), Some(vec![b'y'; 70_000]));
    assert_eq!(run("INSERT OR IGNORE INTO texts VALUES (-1, X'00'), (1, X'01')"), 1);
    // What a transaction has written over lies beside what it has not.
    conn.begin(false).unwrap();
    assert_eq!(run("DELETE FROM texts WHERE key = -1"), 1);
    assert_eq!(lines(&conn, "SELECT * FROM texts"), ["1 01"]);
    run("INSERT INTO texts SELECT key + 1, value FROM texts");
    conn.commit().unwrap();
    assert_eq!(value(&conn, "SELECT count(*), max(key) FROM texts"), "2 2");
}

/// A change of some keys, in a transaction or not, which may go back in part or as a whole.
fn change(conn: &Connection, model: &mut BTreeMap<u32, Vec<u8>>, random: &mut SmallRng) {
    let kv = conn.kv::<u32>("s").unwrap();
    let in_transaction = random.random_bool(0.5);
    let (before, mut saved) = (model.clone(), None);
    if in_transaction {
        conn.begin(false).unwrap();
    }
    for _ in 0..random.random_range(1..12) {
        let key = random.random_range(0..40);
        let len = LENS[random.random_range(0..LENS.len())].min(30_000);
        let value = bytes(len, random.random_range(0..1000));
        match random.random_range(0..7) {
            0 => assert_eq!(kv.delete(key).unwrap(), model.remove(&key).is_some()),
            1 => {
                assert_eq!(kv.insert(key, &value).unwrap(), !model.contains_key(&key));
                model.entry(key).or_insert(value);
            }
            2 => {
                let old = model.get(&key).cloned().unwrap_or_default();
                assert_eq!(kv.compare_and_swap(key, &old, &value).unwrap(), model.contains_key(&key));
                model.entry(key).and_modify(|known| *known = value);
            }
            3 => {
                let end = key + random.random_range(0..6);
                let count = kv.delete_range(key..end).unwrap();
                assert_eq!(count, model.extract_if(key..end, |_, _| true).count() as u64);
            }
            4 if in_transaction => {
                match saved.take() {
                    Some(saved) => {
                        conn.execute("ROLLBACK TO a", &[]).unwrap();
                        *model = saved;
                    }
                    None => {
                        conn.execute("SAVEPOINT a", &[]).unwrap();
                        saved = Some(model.clone());
                    }
                };
            }
            _ => {
                kv.put(key, &value).unwrap();
                model.insert(key, value);
            }
        }
        assert_eq!(kv.get(key).unwrap().as_ref(), model.get(&key));
        let next = kv.find(Find::Greater, key).unwrap();
        assert_eq!(next, model.range(key + 1..).next().map(|(key, value)| (*key, value.clone())));
    }
    if in_transaction {
        assert_eq!(all(&kv), *model);
        assert_eq!(by_sql(conn), *model);
        assert_eq!(kv.len().unwrap(), model.len() as u64);
        if random.random_bool(0.3) {
            conn.roll_back().unwrap();
            *model = before;
        } else {
            conn.commit().unwrap();
        }
    }
}

#[test]
fn long_values_agree_with_a_map_through_closes_and_crashes() {
    let mut folder = tempfile::tempdir().unwrap();
    let (mut random, mut model) = (SmallRng::seed_from_u64(3), BTreeMap::new());
    for round in 0..24 {
        let path = folder.path().join("kv.sinter");
        let config = || Config::builder().memory_limit_bytes(8 << 20);
        let database = Database::open_with(&path, config()).unwrap();
        let conn = database.connect();
        for _ in 0..12 {
            change(&conn, &mut model, &mut random);
        }
        if round % 3 == 0 {
            conn.execute("CHECKPOINT", &[]).unwrap();
            change(&conn, &mut model, &mut random);
        }
        let kv = conn.kv::<u32>("s").unwrap();
        assert_eq!(all(&kv), model);
        if round % 4 == 3 {
            let copy = folder.path().join("copy.sinter");
            conn.execute(&format!("BACKUP TO '{}'", copy.display()), &[]).unwrap();
            assert_eq!(all(&Database::open(&copy).unwrap().connect().kv("s").unwrap()), model);
            std::fs::remove_file(&copy).unwrap();
        }
        if round % 2 == 0 {
            let copies = as_after_a_crash(folder.path());
            drop((kv, conn, database));
            folder = copies;
        }
    }
    let path = folder.path().join("kv.sinter");
    assert!(sinterdb::check(&path).unwrap().is_sound());
    let database = Database::open(&path).unwrap();
    let conn = database.connect();
    let kv = conn.kv::<u32>("s").unwrap();
    assert_eq!(all(&kv), model);
    kv.delete_range(..).unwrap();
    // All leaves are in memory, whose bytes this tells.
    assert_eq!(value(&conn, "SELECT keys, value_bytes FROM trees()"), "0 0", "no piece is left");
}

#[test]
fn a_long_value_goes_with_its_key_whoever_writes_beside() {
    let database = Database::memory().unwrap();
    let (conn, other) = (database.connect(), database.connect());
    let (kv, beside) = (conn.kv::<u32>("s").unwrap(), other.kv::<u32>("s").unwrap());
    // Nobody had a long value yet when this began: it does not know of the one it would write over.
    conn.begin(false).unwrap();
    kv.put(1, "short").unwrap();
    beside.put(1, bytes(50_000, 1)).unwrap();
    assert!(is_conflict(&conn.commit()));
    let long = bytes(50_000, 2);
    std::thread::scope(|scope| {
        for thread in 0..3_u32 {
            let (database, long) = (&database, &long);
            scope.spawn(move || {
                let conn = database.connect();
                let kv = conn.kv::<u32>("s").unwrap();
                for step in 0..200_u32 {
                    let key = (step * 7 + thread) % 5;
                    match (step + thread) % 4 {
                        0 => kv.put(key, long).unwrap(),
                        1 => kv.put(key, "short").unwrap(),
                        2 => kv.update([(key, Some(&long[..20_000])), (key + 1, None)]).unwrap(),
                        _ => {
                            let read = kv.get(key).unwrap();
                            let is_one =
                                |value: &[u8]| [long, &long[..20_000], b"short", &bytes(50_000, 1)].contains(&value);
                            assert!(read.as_deref().is_none_or(is_one));
                            assert!(by_sql(&conn).values().all(|value| is_one(value)));
                        }
                    }
                }
            });
        }
    });
    kv.delete_range(..).unwrap();
    assert_eq!(value_bytes(&conn), 0, "no piece is left");
}

#[test]
fn who_looks_at_a_state_sees_its_long_values() {
    let database = Database::memory().unwrap();
    let (conn, other) = (database.connect(), database.connect());
    let (kv, beside) = (conn.kv::<u32>("s").unwrap(), other.kv::<u32>("s").unwrap());
    kv.update((0..50).map(|key| (key, Some(bytes(20_000, key as usize))))).unwrap();
    let expected = all(&kv);
    let mut cursor = kv.cursor().unwrap();
    assert!(cursor.first().unwrap());
    other.begin(true).unwrap();
    assert_eq!(beside.get(0).unwrap().as_ref(), expected.get(&0));
    kv.update((0..50).map(|key| (key, (key % 2 == 0).then(|| bytes(30_000, 1))))).unwrap();
    assert_eq!(all(&beside), expected);
    for (key, value) in &expected {
        assert_eq!(cursor.entry().unwrap(), Some((*key, value.clone())));
        cursor.next().unwrap();
    }
    assert_eq!(by_sql(&other), expected);
    other.roll_back().unwrap();
    assert_eq!(by_sql(&other), all(&kv));
}

#[test]
fn long_values_are_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kv.sinter");
    let database = Database::open(&path).unwrap();
    let conn = database.connect();
    let mut load = conn.load_kv::<u32>("s", KvOptions::default()).unwrap();
    let model: BTreeMap<u32, Vec<u8>> = (0..500).map(|key| (key, bytes(key as usize * 37, key as usize))).collect();
    for (key, value) in &model {
        load.push(*key, value).unwrap();
    }
    let kv = load.finish().unwrap();
    kv.put(1000, bytes(9000, 9)).unwrap();
    let copies = as_after_a_crash(folder.path());
    drop((kv, conn, database));
    for path in [path, copies.path().join("kv.sinter")] {
        let database = Database::open(&path).unwrap();
        let conn = database.connect();
        let kv = conn.kv::<u32>("s").unwrap();
        kv.put(7, bytes(40_000, 7)).unwrap();
        assert_eq!(kv.get(1000).unwrap(), Some(bytes(9000, 9)), "its pieces have other numbers than the new ones");
        let mut expected = model.clone();
        expected.extend([(7, bytes(40_000, 7)), (1000, bytes(9000, 9))]);
        assert_eq!(all(&kv), expected);
        let storage = "SELECT sum(bytes) FROM storage('s') WHERE \"column\" = 'value'";
        let total: usize = expected.values().map(Vec::len).sum();
        let stored: usize = value(&conn, storage).parse().unwrap();
        assert!((total..total + total / 50).contains(&stored), "{stored} bytes of {total}");
        drop((kv, conn, database));
        assert!(sinterdb::check(&path).unwrap().is_sound());
    }
}

#[test]
fn a_tree_with_long_values_gets_another_name_and_goes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kv.sinter");
    let database = Database::open(&path).unwrap();
    let conn = database.connect();
    conn.kv::<u32>("s").unwrap().put(1, bytes(5_000_000, 1)).unwrap();
    conn.execute("CHECKPOINT", &[]).unwrap();
    conn.execute("ALTER TABLE s RENAME TO t", &[]).unwrap();
    drop((conn, database));
    let database = Database::open(&path).unwrap();
    let conn = database.connect();
    assert_eq!(conn.kv::<u32>("t").unwrap().get(1).unwrap(), Some(bytes(5_000_000, 1)));
    let full = std::fs::metadata(&path).unwrap().len();
    conn.execute("DROP TABLE t", &[]).unwrap();
    conn.execute("VACUUM", &[]).unwrap();
    let empty = std::fs::metadata(&path).unwrap().len();
    assert!(empty < full / 10, "{empty} bytes of {full} are left");
}

#[test]
fn leaves_whose_pieces_are_gone_are_given_back_whatever_the_order() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    let kv = conn.kv::<u32>("s").unwrap();
    for key in 0..400 {
        kv.put(key, bytes(16_000, key as usize)).unwrap();
    }
    let leaves = || value(&conn, "SELECT leaves FROM trees()").parse::<u64>().unwrap();
    assert!((400..420).contains(&leaves()), "{}", leaves());
    // From the last to the first, but for one.
    for key in (0..400).rev().filter(|key| *key != 200) {
        kv.delete(key).unwrap();
    }
    assert!(leaves() < 20, "{} leaves are left", leaves());
    assert_eq!(all(&kv), BTreeMap::from([(200, bytes(16_000, 200))]));
}

#[test]
fn leaves_that_one_commit_emptied_are_not_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kv.sinter");
    let database = Database::open(&path).unwrap();
    let conn = database.connect();
    let kv = conn.kv::<u32>("s").unwrap();
    for key in 0..300 {
        kv.put(key, bytes(16_000, key as usize)).unwrap();
    }
    let beside = database.begin_read_only().unwrap();
    kv.delete_range(..299).unwrap();
    assert_eq!(beside.kv::<u32>("s").unwrap().get(7).unwrap(), Some(bytes(16_000, 7)));
    drop(beside);
    drop((kv, conn, database));
    let database = Database::open(&path).unwrap();
    let conn = database.connect();
    let kv = conn.kv::<u32>("s").unwrap();
    assert_eq!(all(&kv), BTreeMap::from([(299, bytes(16_000, 299))]));
    let leaves: u64 = value(&conn, "SELECT leaves FROM trees()").parse().unwrap();
    assert!(leaves < 10, "{leaves} leaves are left");
}

#[test]
fn damage_of_the_pieces_costs_long_values_alone() {
    const STEP_BYTES: usize = 512;
    let folder = tempfile::tempdir().unwrap();
    let config = Config::builder().background(false);
    let database = Database::open_with(folder.path().join("kv.sinter"), config).unwrap();
    let conn = database.connect();
    conn.execute("CREATE TABLE t AS SELECT 7 AS a", &[]).unwrap();
    let kv = conn.kv::<u32>("s").unwrap();
    kv.put(1, "short").unwrap();
    kv.put(2, bytes(30_000, 2)).unwrap();
    conn.execute("CHECKPOINT", &[]).unwrap();
    kv.put(3, bytes(30_000, 3)).unwrap();
    // With its log.
    let whole = as_after_a_crash(folder.path());
    let clean = std::fs::read(whole.path().join("kv.sinter")).unwrap();
    let (mut lost, mut costs_long_alone) = (0, 0);
    for at in (8192..clean.len()).step_by(STEP_BYTES) {
        let copies = as_after_a_crash(whole.path());
        let path = copies.path().join("kv.sinter");
        let mut damaged = clean.clone();
        damaged[at] ^= 1;
        std::fs::write(&path, &damaged).unwrap();
        let skip = Config::builder().on_corruption(OnCorruption::Skip);
        let database = match Database::open_with(&path, skip) {
            Ok(database) => database,
            Err(error) => {
                assert!(!error.to_string().contains("does not know"), "a byte of {at} is another: {error}");
                continue;
            }
        };
        let conn = database.connect();
        let Ok(kv) = conn.kv::<u32>("s") else {
            assert_eq!(value(&conn, "SELECT a FROM t"), "7", "a byte of {at} is another");
            lost += 1;
            continue;
        };
        let found = [(1, b"short".to_vec()), (2, bytes(30_000, 2)), (3, bytes(30_000, 3))].map(|(key, value)| {
            let found = kv.get(key);
            match &found {
                Ok(found) => assert_eq!(found.as_ref(), Some(&value), "a byte of {at} is another"),
                Err(error) => assert!(!matches!(error, Error::Internal(_)), "{error}"),
            }
            found.is_ok()
        });
        if found[0] {
            costs_long_alone += u32::from(found.contains(&false));
            assert_eq!(value(&conn, "SELECT count(*), sum(key) FROM s"), "3 6");
            let short = conn.sql("SELECT value FROM s WHERE key = 1").and_then(|query| query.collect());
            assert!(short.is_ok(), "{short:?}");
        }
        if found != [true; 3] {
            assert_eq!(value(&conn, "SELECT a FROM t"), "7", "a byte of {at} is another");
            drop((kv, conn, database));
            let report = sinterdb::check(&path).unwrap();
            assert!(!report.is_sound(), "a byte of {at} is another: {report:?}");
        }
    }
    assert!(lost > 0 && costs_long_alone > 0, "{lost} times lost, {costs_long_alone} times not whole");
}
