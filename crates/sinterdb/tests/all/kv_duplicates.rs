//! Key-value trees whose keys have any number of values.

use crate::answers::{lines, value};
use crate::kv::is_conflict;
use crate::reopen::as_after_a_crash;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinterdb::{Connection, Database, Error, Find, Kv, KvOptions, ValueType};
use std::collections::BTreeSet;

fn several(value: ValueType) -> KvOptions {
    KvOptions { value: Some(value), duplicates: Some(true), ..KvOptions::default() }
}

fn all(kv: &Kv<u32>) -> Vec<(u32, i64)> {
    kv.range(..).unwrap().map(|entry| entry.map(|(key, value)| (key, number(&value))).unwrap()).collect()
}

fn number(value: &[u8]) -> i64 {
    i64::from_le_bytes(value.try_into().unwrap())
}

#[test]
fn a_key_has_its_values_in_order_each_once() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    let kv = conn.kv_with::<str>("tags", several(ValueType::Text)).unwrap();
    for (key, tag) in [("b", "x"), ("a", "z"), ("b", ""), ("b", "w"), ("a\0", "q"), ("b", "x")] {
        kv.put(key, tag).unwrap();
    }
    let texts = |values: Vec<Vec<u8>>| -> Vec<String> {
        values.into_iter().map(|value| String::from_utf8(value).unwrap()).collect()
    };
    assert_eq!(texts(kv.get_all("b").unwrap()), ["", "w", "x"]);
    assert_eq!(texts(kv.get_all("a").unwrap()), ["z"]);
    assert_eq!((kv.get("b").unwrap(), kv.get("c").unwrap()), (Some(Vec::new()), None));
    assert!(kv.contains("b").unwrap() && !kv.contains("").unwrap());
    assert_eq!(kv.len().unwrap(), 5);
    assert!(!kv.insert("b", "w").unwrap() && kv.insert("b", "v").unwrap());
    assert!(kv.compare_and_swap("b", b"v", "y").unwrap() && !kv.compare_and_swap("b", b"v", "y").unwrap());
    assert!(kv.discard("b", b"y").unwrap() && !kv.discard("b", b"y").unwrap());
    let found = |find, key| kv.find(find, key).unwrap().map(|(key, value)| key + ":" + &texts(vec![value])[0]);
    assert_eq!(found(Find::Equal, "b").as_deref(), Some("b:"));
    assert_eq!(found(Find::Equal, "ab"), None);
    assert_eq!(found(Find::Less, "b").as_deref(), Some("a\0:q"));
    assert_eq!(found(Find::LessEqual, "b").as_deref(), Some("b:x"));
    assert_eq!(found(Find::Greater, "a").as_deref(), Some("a\0:q"));
    assert_eq!(found(Find::GreaterEqual, "a").as_deref(), Some("a:z"));
    assert_eq!(found(Find::Greater, "b"), None);
    let mut cursor = kv.cursor().unwrap();
    assert!(!cursor.seek(Find::Equal, "ab").unwrap() && !cursor.next().unwrap() && cursor.entry().unwrap().is_none());
    assert!(cursor.seek(Find::Equal, "b").unwrap() && cursor.next().unwrap());
    assert_eq!(cursor.value(), Some(&b"w"[..]));
    let mut backward = Vec::new();
    let mut is_there = cursor.last().unwrap();
    while is_there {
        backward.push(texts(vec![cursor.value().unwrap().to_vec()]).remove(0));
        is_there = cursor.previous().unwrap();
    }
    assert_eq!(backward, ["x", "w", "", "q", "z"]);
    let keys = |range: std::ops::Range<&'static str>| {
        kv.range(range).unwrap().map(|entry| entry.unwrap().0).collect::<Vec<_>>()
    };
    assert_eq!(keys("a\0".."b"), ["a\0"]);
    assert!(kv.delete("b").unwrap() && !kv.delete("b").unwrap());
    assert_eq!(kv.len().unwrap(), 2);
    kv.update([("a", None), ("n", Some("1")), ("n", Some("0"))]).unwrap();
    assert_eq!(keys("".."z"), ["a\0", "n", "n"]);
    assert_eq!(kv.delete_range(..).unwrap(), 3);
}

#[test]
fn what_does_not_fit_is_refused() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    let nothing = KvOptions { value: Some(ValueType::Nothing), ..several(ValueType::I64) };
    assert!(matches!(conn.kv_with::<u32>("s", nothing), Err(Error::Sql(_))));
    let kv = conn.kv_with::<u32>("s", several(ValueType::Bytes)).unwrap();
    assert!(matches!(kv.put(1, vec![0; 3000]), Err(Error::Data(_))));
    let one = KvOptions { duplicates: Some(false), ..KvOptions::default() };
    let error = conn.kv_with::<u32>("s", one).unwrap_err().to_string();
    assert!(error.contains("several values of type bytes"), "{error}");
    assert_eq!(conn.kv::<u32>("s").unwrap().len().unwrap(), 0, "opened as it is");
}

#[test]
fn queries_and_statements_see_a_row_of_each_value() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    let run = |sql: &str| conn.execute(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let refusal = |sql: &str| conn.execute(sql, &[]).expect_err(sql).to_string();
    run("CREATE TABLE s (key BIGINT, value DOUBLE) WITH (storage = 'tree', duplicates = true)");
    run("INSERT INTO s SELECT v % 1000 - 500, v / 4.0 - 1000 FROM generate_series(0, 19999) AS g (v)");
    assert_eq!(
        value(&conn, "SELECT count(*), count(DISTINCT key), min(value), max(key) FROM s"),
        "20000 1000 -1000.0 499"
    );
    assert_eq!(value(&conn, "SELECT count(*), sum(value) FROM s WHERE key = -500"), "20 27500.0");
    assert_eq!(value(&conn, "SELECT count(*) FROM s WHERE key > 497 AND key <= 600"), "40");
    let plan = lines(&conn, "EXPLAIN SELECT * FROM s WHERE key BETWEEN 3 AND 5").join("\n");
    assert!(plan.contains("key >= 3 AND key <= 5"), "{plan}");
    assert!(refusal("INSERT INTO s VALUES (-500, -1000)").contains("value -1000.0 of key -500 already"));
    assert_eq!(run("INSERT OR IGNORE INTO s VALUES (-500, -1000), (-500, 0.125)"), 1);
    assert_eq!(run("INSERT INTO s VALUES (-500, 0.125) ON CONFLICT (key, value) DO NOTHING"), 0);
    assert!(refusal("INSERT INTO s VALUES (1, 1) ON CONFLICT (key) DO NOTHING").contains("ON CONFLICT (key, value)"));
    assert!(refusal("INSERT INTO s VALUES (1, 1) ON CONFLICT DO UPDATE SET value = 1").contains("nothing to change"));
    assert_eq!(run("DELETE FROM s WHERE key = -500 AND value > 1000"), 11);
    assert_eq!(value(&conn, "SELECT count(*), max(value) FROM s WHERE key = -500"), "10 1000.0");
    conn.begin(false).unwrap();
    assert_eq!(run("UPDATE s SET value = -value WHERE key = 7 AND value <> 0"), 20);
    assert_eq!(run("UPDATE s SET key = key + 10000 WHERE key >= 400"), 2000);
    assert_eq!(value(&conn, "SELECT count(*), count(*) FILTER (WHERE key > 9000) FROM s"), "19990 2000");
    conn.commit().unwrap();
    assert_eq!(value(&conn, "SELECT count(*), sum(value) FROM s WHERE key = 7"), "20 -30035.0");
    let joined = "SELECT count(*) FROM (VALUES (5), (6)) AS v (k) JOIN s ON s.key = v.k";
    assert_eq!(value(&conn, joined), "40");
    run("CREATE TABLE t (key VARCHAR, value VARCHAR) WITH (storage = 'tree', duplicates = true)");
    run("INSERT INTO t VALUES ('b', '2'), ('a', '3'), ('b', '1'), ('', ''), ('b', '')");
    assert_eq!(
        lines(&conn, "SELECT key || ':' || value FROM t WHERE key LIKE 'b%' ORDER BY value"),
        ["b:", "b:1", "b:2"]
    );
    assert_eq!(value(&conn, "SELECT count(*) FROM t WHERE key > 'a'"), "3");
    assert_eq!(value(&conn, "SELECT duplicates FROM trees() WHERE tree = 't'"), "true");
    let both = "CREATE TABLE u (key BIGINT PRIMARY KEY, value BIGINT) WITH (storage = 'tree', duplicates = true)";
    assert!(refusal(both).contains("PRIMARY KEY"));
    assert!(refusal("CREATE TABLE u (key INT) WITH (duplicates = true)").contains("an option of trees"));
}

fn change(conn: &Connection, model: &mut BTreeSet<(u32, i64)>, random: &mut SmallRng) {
    let kv = conn.kv_with::<u32>("s", several(ValueType::I64)).unwrap();
    let in_transaction = random.random_bool(0.4);
    let before = model.clone();
    if in_transaction {
        conn.begin(false).unwrap();
    }
    for _ in 0..random.random_range(1..20) {
        let (key, number) = (random.random_range(0..30_u32), random.random_range(-20..20_i64));
        let of_key = |key| (key, i64::MIN)..=(key, i64::MAX);
        match random.random_range(0..6) {
            0 => assert_eq!(kv.discard(key, &number.to_le_bytes()).unwrap(), model.remove(&(key, number))),
            1 => assert_eq!(kv.insert(key, number.to_le_bytes()).unwrap(), model.insert((key, number))),
            2 if random.random_bool(0.3) => {
                let gone = model.extract_if(of_key(key), |_| true).count();
                assert_eq!(kv.delete(key).unwrap(), gone > 0);
            }
            3 if random.random_bool(0.2) => {
                let end = key + random.random_range(0..3);
                let gone = model.extract_if((key, i64::MIN)..(end, i64::MIN), |_| true).count();
                assert_eq!(kv.delete_range(key..end).unwrap(), gone as u64);
            }
            4 => {
                kv.update([(key + 1, None), (key, Some(number.to_le_bytes())), (key, Some(7_i64.to_le_bytes()))])
                    .unwrap();
                model.retain(|(known, _)| *known != key + 1);
                model.extend([(key, number), (key, 7)]);
            }
            _ => {
                kv.put(key, number.to_le_bytes()).unwrap();
                model.insert((key, number));
            }
        }
        let values: Vec<i64> = kv.get_all(key).unwrap().iter().map(|value| self::number(value)).collect();
        assert_eq!(values, model.range(of_key(key)).map(|(_, number)| *number).collect::<Vec<_>>());
        let first = kv.get(key).unwrap().map(|value| self::number(&value));
        assert_eq!(first, values.first().copied());
        let next = kv.find(Find::Greater, key).unwrap().map(|(key, value)| (key, self::number(&value)));
        assert_eq!(next, model.range((key + 1, i64::MIN)..).next().copied());
        let last = kv.find(Find::LessEqual, key).unwrap().map(|(key, value)| (key, self::number(&value)));
        assert_eq!(last, model.range(..=(key, i64::MAX)).next_back().copied());
    }
    let expected: Vec<String> = model.iter().map(|(key, number)| format!("{key} {number}")).collect();
    assert_eq!(lines(conn, "SELECT * FROM s ORDER BY key, value"), expected);
    assert_eq!(
        kv.sums(5..20).unwrap().sum,
        model.iter().map(|(key, _)| i128::from(*key)).filter(|key| (5..20).contains(key)).sum()
    );
    if in_transaction {
        if random.random_bool(0.3) {
            conn.roll_back().unwrap();
            *model = before;
        } else {
            conn.commit().unwrap();
        }
    }
}

#[test]
fn values_agree_with_a_set_through_closes_and_crashes() {
    let mut folder = tempfile::tempdir().unwrap();
    let (mut random, mut model) = (SmallRng::seed_from_u64(11), BTreeSet::new());
    for round in 0..12 {
        let database = Database::open(folder.path().join("kv.sinter")).unwrap();
        let conn = database.connect();
        for _ in 0..20 {
            change(&conn, &mut model, &mut random);
        }
        if round % 3 == 0 {
            conn.execute("CHECKPOINT", &[]).unwrap();
        }
        assert!(all(&conn.kv("s").unwrap()).into_iter().eq(model.iter().copied()));
        if round % 2 == 0 {
            let copies = as_after_a_crash(folder.path());
            drop((conn, database));
            folder = copies;
        }
    }
    assert!(sinterdb::check(folder.path().join("kv.sinter")).unwrap().is_sound());
}

#[test]
fn who_has_read_the_values_of_a_key_notes_another_one() {
    let database = Database::memory().unwrap();
    let (conn, other) = (database.connect(), database.connect());
    let kv = conn.kv_with::<u32>("s", several(ValueType::I64)).unwrap();
    let beside = other.kv::<u32>("s").unwrap();
    kv.put(1, 1_i64.to_le_bytes()).unwrap();
    conn.begin(false).unwrap();
    assert_eq!(kv.get_all(1).unwrap().len(), 1);
    kv.put(5, 5_i64.to_le_bytes()).unwrap();
    beside.put(1, 2_i64.to_le_bytes()).unwrap();
    assert!(is_conflict(&conn.commit()));
    conn.begin(false).unwrap();
    assert_eq!(kv.get_all(1).unwrap().len(), 2);
    kv.put(5, 5_i64.to_le_bytes()).unwrap();
    beside.put(2, 2_i64.to_le_bytes()).unwrap();
    conn.commit().unwrap();
}

#[test]
fn pairs_are_loaded_in_their_order() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    let mut load = conn.load_kv::<u32>("s", several(ValueType::I64)).unwrap();
    for (key, number) in [(1, -5_i64), (1, 3), (2, -9)] {
        load.push(key, number.to_le_bytes()).unwrap();
    }
    let error = load.push(2, (-9_i64).to_le_bytes()).unwrap_err().to_string();
    assert!(error.contains("the values of each"), "{error}");
    let kv = load.finish().unwrap();
    assert_eq!(all(&kv), [(1, -5), (1, 3), (2, -9)]);
    kv.put(1, 0_i64.to_le_bytes()).unwrap();
    assert_eq!(kv.len().unwrap(), 4);
}
