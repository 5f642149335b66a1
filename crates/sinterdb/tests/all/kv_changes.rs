//! Key-value trees changed by SQL: INSERT, UPDATE, DELETE, COPY, and appended batches.

use crate::answers::{lines, value};
use crate::kv::is_conflict;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinterdb::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use sinterdb::{Connection, Database, Error, Kv, KvOptions, ValueType};
use std::collections::BTreeMap;
use std::sync::Arc;

fn of_values(value: ValueType) -> KvOptions {
    KvOptions { value: Some(value), ..KvOptions::default() }
}

fn done(conn: &Connection, sql: &str) -> u64 {
    conn.execute(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

fn refusal(conn: &Connection, sql: &str) -> String {
    conn.execute(sql, &[]).expect_err(sql).to_string()
}

fn scores(conn: &Connection) -> Kv<str> {
    let scores = conn.kv_with::<str>("scores", of_values(ValueType::I64)).unwrap();
    assert_eq!(done(conn, "INSERT INTO scores VALUES ('a', 1), ('b', 2), ('c', 3)"), 3);
    scores
}

const ALL: &str = "SELECT key, value FROM scores ORDER BY key";

#[test]
fn rows_of_every_type_become_entries() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    let numbers = conn.kv_with::<i64>("numbers", of_values(ValueType::F64)).unwrap();
    done(&conn, "INSERT INTO numbers VALUES (-5, 0.5), (9223372036854775807, -1e300), (0, 'NaN')");
    assert_eq!(numbers.get(-5).unwrap().as_deref(), Some(&0.5_f64.to_le_bytes()[..]));
    assert_eq!(lines(&conn, "SELECT value FROM numbers WHERE key <= 0 ORDER BY key"), ["0.5", "NaN"]);
    let wide = conn.kv_with::<u64>("wide", of_values(ValueType::U32)).unwrap();
    done(&conn, "INSERT INTO wide (value, key) VALUES (4294967295, 18446744073709551615)");
    assert_eq!(wide.get(u64::MAX).unwrap().as_deref(), Some(&u32::MAX.to_le_bytes()[..]));
    let narrow = conn.kv_with::<u32>("narrow", of_values(ValueType::U64)).unwrap();
    done(&conn, "INSERT INTO narrow SELECT v, v * v FROM generate_series(1, 5000) AS g (v)");
    assert_eq!(narrow.get(5000).unwrap().as_deref(), Some(&25_000_000_u64.to_le_bytes()[..]));
    assert_eq!(value(&conn, "SELECT count(*), sum(value) FROM narrow"), "5000 41679167500");
    let bytes = conn.kv_with::<[u8]>("bytes", of_values(ValueType::Fixed(2))).unwrap();
    done(&conn, "INSERT INTO bytes VALUES (X'00ff', X'0102'), (X'', X'0304')");
    assert_eq!(bytes.get(&[0, 255]).unwrap().as_deref(), Some(&[1, 2][..]));
    let texts = conn.kv_with::<str>("texts", of_values(ValueType::Text)).unwrap();
    done(&conn, "INSERT INTO texts VALUES ('ä', 'öl'), ('', '')");
    assert_eq!(texts.get("ä").unwrap().as_deref(), Some("öl".as_bytes()));
    let set = conn.kv_with::<u32>("set", of_values(ValueType::Nothing)).unwrap();
    done(&conn, "INSERT INTO \"set\" VALUES (3), (1)");
    assert_eq!(done(&conn, "UPDATE \"set\" SET key = key + 1"), 2);
    assert_eq!(lines(&conn, "SELECT key FROM \"set\" ORDER BY key"), ["2", "4"]);
    assert_eq!(set.len().unwrap(), 2);
    let blobs = conn.kv_with::<u32>("blobs", of_values(ValueType::Bytes)).unwrap();
    conn.execute("INSERT INTO blobs VALUES (?, ?)", &[7.into(), sinterdb::Value::Blob(vec![1, 2, 3])]).unwrap();
    assert_eq!(blobs.get(7).unwrap().as_deref(), Some(&[1, 2, 3][..]));
}

#[test]
fn rows_that_meet_others_do_what_the_insert_says() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    scores(&conn);
    let duplicate = refusal(&conn, "INSERT INTO scores VALUES ('d', 4), ('b', 9)");
    assert!(duplicate.contains("key b already"), "{duplicate}");
    assert!(refusal(&conn, "INSERT INTO scores VALUES ('x', 1), ('x', 2)").contains("key x already"));
    assert_eq!(lines(&conn, ALL), ["a 1", "b 2", "c 3"], "nothing of a statement that fails is left");
    assert_eq!(done(&conn, "INSERT OR IGNORE INTO scores VALUES ('b', 9), ('d', 4), ('d', 5)"), 1);
    assert_eq!(done(&conn, "INSERT INTO scores VALUES ('a', 9) ON CONFLICT (key) DO NOTHING"), 0);
    assert_eq!(done(&conn, "INSERT OR REPLACE INTO scores VALUES ('b', 20), ('e', 5), ('e', 6)"), 3);
    assert_eq!(lines(&conn, ALL), ["a 1", "b 20", "c 3", "d 4", "e 6"]);
    let update = "INSERT INTO scores VALUES ('a', 10), ('f', 7), ('c', 1) \
                  ON CONFLICT (key) DO UPDATE SET value = value + excluded.value WHERE scores.value < 3";
    assert_eq!(done(&conn, update), 2);
    assert_eq!(lines(&conn, ALL), ["a 11", "b 20", "c 3", "d 4", "e 6", "f 7"]);
    let from_query = "INSERT INTO scores SELECT key, 100 FROM scores WHERE key < 'c' \
                      ON CONFLICT DO UPDATE SET value = excluded.value";
    assert_eq!(done(&conn, from_query), 2);
    assert_eq!(lines(&conn, ALL)[..2], ["a 100", "b 100"]);
    let twice = "INSERT INTO scores VALUES ('a', 1), ('a', 2) ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    assert!(refusal(&conn, twice).contains("the same key"));
    let key = "INSERT INTO scores VALUES ('a', 1) ON CONFLICT (key) DO UPDATE SET key = 'z'";
    assert!(refusal(&conn, key).contains("keeps the key"));
    let other = "INSERT INTO scores VALUES ('a', 1) ON CONFLICT (value) DO NOTHING";
    assert!(refusal(&conn, other).contains("ON CONFLICT (key)"));
    let merge = "MERGE INTO scores USING (SELECT 'a' AS k) AS s ON scores.key = s.k WHEN MATCHED THEN DELETE";
    assert!(refusal(&conn, merge).contains("key-value tree"));
    assert_eq!(lines(&conn, ALL), ["a 100", "b 100", "c 3", "d 4", "e 6", "f 7"]);
}

#[test]
fn what_does_not_fit_is_refused_and_leaves_nothing() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    scores(&conn);
    let narrow = conn.kv_with::<u32>("narrow", of_values(ValueType::Fixed(2))).unwrap();
    for (sql, why) in [
        ("INSERT INTO scores VALUES ('d', 1), (NULL, 1)", "'key' is NOT NULL"),
        ("INSERT INTO scores (key) VALUES ('d')", "'value' is NOT NULL"),
        ("INSERT INTO scores VALUES ('d', 'x')", "'value'"),
        ("INSERT INTO scores VALUES ('d')", "2 columns"),
        ("INSERT INTO scores (key, other) VALUES ('d', 1)", "no column 'other'"),
        ("UPDATE scores SET value = NULL", "'value' is NOT NULL"),
        ("UPDATE scores SET key = 'z'", "key z already"),
        ("UPDATE scores SET key = 'b' WHERE key = 'a'", "key b already"),
        ("UPDATE scores SET other = 1", "no column 'other'"),
        ("INSERT INTO narrow VALUES (1, X'01')", "1 bytes"),
        ("INSERT INTO narrow VALUES (-1, X'0102')", "'key'"),
        ("INSERT INTO narrow VALUES (4294967296, X'0102')", "'key'"),
    ] {
        let refusal = refusal(&conn, sql);
        assert!(refusal.contains(why), "{sql}: {refusal}");
    }
    let long = format!("INSERT INTO scores VALUES ('{}', 1)", "x".repeat(100_000));
    assert!(refusal(&conn, &long).contains("too long"));
    assert_eq!(lines(&conn, ALL), ["a 1", "b 2", "c 3"]);
    assert!(narrow.is_empty().unwrap());
    conn.begin(true).unwrap();
    assert!(refusal(&conn, "DELETE FROM scores").contains("read"));
}

#[test]
fn rows_are_updated_and_deleted_by_any_condition() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    scores(&conn);
    assert_eq!(done(&conn, "UPDATE scores AS s SET value = s.value * 10 WHERE s.key >= 'b'"), 2);
    assert_eq!(done(&conn, "UPDATE scores SET key = upper(key), value = value + 1 WHERE value > 5"), 2);
    assert_eq!(lines(&conn, ALL), ["B 21", "C 31", "a 1"]);
    // Each key takes the place of the next, which leaves it.
    conn.kv_with::<u32>("row", of_values(ValueType::U32)).unwrap();
    done(&conn, "INSERT INTO row SELECT v, v FROM generate_series(0, 9999) AS g (v)");
    assert_eq!(done(&conn, "UPDATE row SET key = key + 1"), 10_000);
    assert_eq!(value(&conn, "SELECT min(key), max(key), count(*), sum(key - value) FROM row"), "1 10000 10000 10000");
    conn.execute("CREATE TABLE points (name TEXT, more INT)", &[]).unwrap();
    done(&conn, "INSERT INTO points VALUES ('B', 1), ('B', 2), ('C', 5), ('x', 7)");
    let joined = "UPDATE scores SET value = value + points.more FROM points WHERE points.name = scores.key";
    assert_eq!(done(&conn, joined), 2);
    assert_eq!(value(&conn, "SELECT value FROM scores WHERE key = 'C'"), "36");
    assert!(["22", "23"].contains(&&*value(&conn, "SELECT value FROM scores WHERE key = 'B'")));
    assert_eq!(done(&conn, "DELETE FROM scores USING points WHERE points.name = scores.key"), 2);
    assert_eq!(lines(&conn, ALL), ["a 1"]);
    assert_eq!(done(&conn, "DELETE FROM row WHERE key IN (SELECT value FROM row WHERE value < 10)"), 9);
    assert_eq!(done(&conn, "DELETE FROM row"), 9991);
    assert_eq!(value(&conn, "SELECT count(*) FROM row"), "0");
    done(&conn, "INSERT INTO row SELECT v, v FROM generate_series(0, 99999) AS g (v)");
    let plan = lines(&conn, "EXPLAIN DELETE FROM row WHERE key BETWEEN 500 AND 509").join("\n");
    assert!(plan.contains("seek"), "{plan}");
}

#[test]
fn changes_agree_with_a_map() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    conn.kv_with::<u32>("numbers", of_values(ValueType::I64)).unwrap();
    let (mut random, mut map) = (SmallRng::seed_from_u64(5), BTreeMap::<u32, i64>::new());
    let mut in_transaction: Option<BTreeMap<u32, i64>> = None;
    for _ in 0..400 {
        let (low, len) = (random.random_range(0..500_u32), random.random_range(1..40_u32));
        let (range, mut has_failed) = (low..low + len, false);
        match random.random_range(0..7) {
            0 => {
                let sql =
                    format!("INSERT INTO numbers SELECT v, v FROM generate_series({low}, {}) AS g (v)", low + len - 1);
                let meets = map.range(range.clone()).next().is_some();
                assert_eq!(conn.execute(&sql, &[]).is_err(), meets, "{sql}");
                has_failed = meets;
                if !meets {
                    map.extend(range.map(|key| (key, key.into())));
                }
            }
            1 => {
                done(
                    &conn,
                    &format!(
                        "INSERT OR REPLACE INTO numbers SELECT v, -v FROM generate_series({low}, {}) AS g (v)",
                        low + len - 1
                    ),
                );
                map.extend(range.map(|key| (key, -i64::from(key))));
            }
            2 => {
                let found: Vec<u32> = map.range(range.clone()).map(|(key, _)| *key).collect();
                let sql = format!("DELETE FROM numbers WHERE key >= {low} AND key < {}", range.end);
                assert_eq!(done(&conn, &sql), found.len() as u64);
                map.retain(|key, _| !found.contains(key));
            }
            3 => {
                done(&conn, &format!("UPDATE numbers SET value = value + 1000 WHERE value % 7 = {}", low % 7));
                map.values_mut().filter(|value| **value % 7 == i64::from(low % 7)).for_each(|value| *value += 1000);
            }
            4 => {
                let moved: Vec<(u32, i64)> = map.range(range.clone()).map(|(key, value)| (*key, *value)).collect();
                let sql = format!("UPDATE numbers SET key = key + 3 WHERE key >= {low} AND key < {}", range.end);
                let mut after = map.clone();
                after.retain(|key, _| !range.contains(key));
                let meets = moved.iter().any(|(key, value)| after.insert(key + 3, *value).is_some());
                assert_eq!(conn.execute(&sql, &[]).is_err(), meets, "{sql}");
                has_failed = meets;
                if !meets {
                    map = after;
                }
            }
            5 if in_transaction.is_none() => {
                in_transaction = Some(map.clone());
                conn.begin(false).unwrap();
            }
            _ => {
                if let Some(before) = in_transaction.take() {
                    if random.random_bool(0.5) {
                        conn.commit().unwrap();
                    } else {
                        conn.roll_back().unwrap();
                        map = before;
                    }
                }
            }
        }
        if has_failed && let Some(before) = in_transaction.take() {
            conn.roll_back().unwrap();
            map = before;
        }
        let expected: Vec<String> = map.iter().map(|(key, value)| format!("{key} {value}")).collect();
        assert_eq!(lines(&conn, "SELECT key, value FROM numbers ORDER BY key"), expected);
    }
}

#[test]
fn a_change_whose_rows_have_changed_conflicts() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    let kv = scores(&conn);
    let put = |key: &str| kv.put(key, 0_i64.to_le_bytes()).unwrap();
    let conflicts = |sql: &str, beside: &dyn Fn()| {
        let transaction = database.connect();
        transaction.begin(false).unwrap();
        done(&transaction, sql);
        beside();
        is_conflict(&transaction.commit())
    };
    assert!(conflicts("INSERT INTO scores VALUES ('m', 1)", &|| put("m")));
    assert!(conflicts("INSERT OR IGNORE INTO scores VALUES ('n', 1)", &|| put("n")));
    assert!(!conflicts("INSERT OR REPLACE INTO scores VALUES ('o', 1)", &|| put("o")));
    assert_eq!(value(&conn, "SELECT value FROM scores WHERE key = 'o'"), "1");
    assert!(conflicts("UPDATE scores SET value = value + 1 WHERE key = 'a'", &|| put("a")));
    assert!(!conflicts("UPDATE scores SET value = value + 1 WHERE key = 'a'", &|| put("b")));
    assert!(conflicts("DELETE FROM scores WHERE value > 2", &|| put("p")), "it might have had to go as well");
    // Outside of transactions a statement is run again.
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let conn = database.connect();
                for _ in 0..100 {
                    done(&conn, "UPDATE scores SET value = value + 1 WHERE key = 'c'");
                }
            });
        }
    });
    assert_eq!(value(&conn, "SELECT value FROM scores WHERE key = 'c'"), "203");
}

#[test]
fn batches_and_files_come_into_trees() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trees.sinter");
    {
        let database = Database::open(&path).unwrap();
        let conn = database.connect();
        scores(&conn);
        let columns: [(&str, ArrayRef); 2] =
            [("value", Arc::new(Int64Array::from(vec![7, 8]))), ("key", Arc::new(StringArray::from(vec!["x", "y"])))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        assert_eq!(conn.append("scores", &mut std::iter::once(Ok(batch.clone()))).unwrap(), 2);
        let again = conn.append("scores", &mut std::iter::once(Ok(batch))).unwrap_err();
        assert!(matches!(&again, Error::Data(message) if message.contains("key x already")), "{again}");
        let csv = folder.path().join("rows.csv");
        std::fs::write(&csv, "key,value\nq,5\nr,6\n").unwrap();
        assert_eq!(done(&conn, &format!("COPY scores FROM '{}'", csv.display())), 2);
    }
    let database = Database::open(&path).unwrap();
    let found = lines(&database.connect(), ALL);
    assert_eq!(found, ["a 1", "b 2", "c 3", "q 5", "r 6", "x 7", "y 8"]);
}
