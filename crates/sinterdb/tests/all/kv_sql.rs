//! Key-value trees as tables of SQL: what a query sees of them, alone and in transactions.

use crate::answers::{lines, rows, value};
use crate::engine::counted;
use crate::kv::is_conflict;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinterdb::{Connection, Database, Error, Kv, KvOptions, ValueType};
use std::collections::BTreeMap;

fn of_values(value: ValueType) -> KvOptions {
    KvOptions { value: Some(value), ..KvOptions::default() }
}

/// A tree of numbers and their squares.
fn squares(conn: &Connection, count: u32) -> Kv<u32> {
    let kv = conn.kv_with::<u32>("squares", of_values(ValueType::U64)).unwrap();
    kv.update((0..count).map(|key| (key, Some((u64::from(key) * u64::from(key)).to_le_bytes())))).unwrap();
    kv
}

#[test]
fn every_type_of_keys_and_values_is_a_type_of_sql() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    let types = |table: &str| {
        let sql = format!(
            "SELECT column_name, data_type, is_nullable FROM information_schema.columns WHERE table_name = '{table}'"
        );
        lines(&conn, &sql)
    };
    let numbers = conn.kv_with::<i64>("numbers", of_values(ValueType::F64)).unwrap();
    for key in [0, -1, i64::MAX, i64::MIN] {
        numbers.put(key, (key as f64 / 2.0).to_le_bytes()).unwrap();
    }
    assert_eq!(types("numbers"), ["key Int64 NO", "value Float64 NO"]);
    assert_eq!(lines(&conn, "SELECT * FROM numbers WHERE key > -5 AND key < 5 ORDER BY key"), ["-1 -0.5", "0 0.0"]);
    assert_eq!(value(&conn, "SELECT max(key) FROM numbers"), i64::MAX.to_string());
    let names = conn.kv_with::<str>("names", of_values(ValueType::Text)).unwrap();
    names.update([("b", Some("bee")), ("a", Some("")), ("ä", Some("ant"))]).unwrap();
    assert_eq!(types("names"), ["key Utf8View NO", "value Utf8View NO"]);
    assert_eq!(lines(&conn, "SELECT * FROM names ORDER BY key"), ["a (empty)", "b bee", "ä ant"]);
    let wide = conn.kv_with::<u64>("wide", of_values(ValueType::U32)).unwrap();
    wide.put(u64::MAX, 7_u32.to_le_bytes()).unwrap();
    assert_eq!(types("wide"), ["key UInt64 NO", "value UInt32 NO"]);
    assert_eq!(value(&conn, "SELECT key, value FROM wide"), format!("{} 7", u64::MAX));
    let bytes = conn.kv_with::<[u8]>("bytes", of_values(ValueType::Fixed(2))).unwrap();
    bytes.put(&[255, 0], [1, 2]).unwrap();
    assert_eq!(types("bytes"), ["key BinaryView NO", "value BinaryView NO"]);
    assert_eq!(value(&conn, "SELECT key, value FROM bytes WHERE key = X'ff00'"), "ff00 0102");
    let set = conn.kv_with::<u32>("set", of_values(ValueType::Nothing)).unwrap();
    set.put(5, "").unwrap();
    assert_eq!(types("set"), ["key UInt32 NO"]);
    assert_eq!(value(&conn, "SELECT * FROM \"set\""), "5");
    let counts = conn.kv_with::<u32>("counts", of_values(ValueType::I64)).unwrap();
    counts.put(1, (-9_i64).to_le_bytes()).unwrap();
    assert_eq!(value(&conn, "SELECT sum(value) FROM counts"), "-9");
    let empty = conn.kv::<u32>("empty").unwrap();
    assert!(empty.is_empty().unwrap());
    assert_eq!(value(&conn, "SELECT count(*), min(key), max(value) FROM empty"), "0 NULL NULL");
    let listed = "SELECT count(*) FROM information_schema.tables WHERE table_type = 'BASE TABLE'";
    assert_eq!(value(&conn, listed), "7");
    let of = |columns: &str| lines(&conn, &format!("SELECT {columns} FROM trees() ORDER BY tree"));
    assert_eq!(
        of("tree, key, value, codec, keys, leaves"),
        [
            "bytes bytes fixed(2) prefix 1 1",
            "counts u32 i64 bp128_d1 1 1",
            "empty u32 bytes bp128_d1 0 1",
            "names str str prefix 3 1",
            "numbers i64 f64 bp128_d1 4 1",
            "set u32 none bp128_d1 1 1",
            "wide u64 u32 bp128_d1 1 1",
        ]
    );
    assert_eq!(lines(&conn, "SHOW TREES").len(), 7);
    assert!(of("resident_leaves = leaves AND value_bytes >= 0 AND key_bytes >= 0").iter().all(|all| all == "true"));
}

#[test]
fn text_that_is_none_is_an_error() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    let names = conn.kv_with::<str>("names", of_values(ValueType::Text)).unwrap();
    names.put("a", [0xff]).unwrap();
    let error = rows(&conn, "SELECT value FROM names").unwrap_err().to_string();
    assert!(error.contains("the value of key X'61' in 'names' is not UTF-8"), "{error}");
    assert_eq!(value(&conn, "SELECT key FROM names"), "a");
}

#[test]
fn a_condition_on_keys_reads_no_more_than_it_lets_through() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    let kv = squares(&conn, 100_000);
    let names = conn.kv_with::<str>("names", of_values(ValueType::Nothing)).unwrap();
    let all_names: Vec<String> = (0..10_000).map(|number| format!("name {number:05}")).collect();
    names.update(all_names.iter().map(|name| (name.as_str(), Some("")))).unwrap();
    let vectors = |table: &str, condition: &str| {
        let sql = format!("SELECT sum(length(CAST(key AS VARCHAR))) FROM {table} WHERE {condition}");
        counted(&conn, &sql).vectors
    };
    let count = |table: &str, condition: &str| {
        value(&conn, &format!("SELECT count(*) FROM {table} WHERE {condition}")).parse::<u64>().unwrap()
    };
    for (table, condition, rows) in [
        ("squares", "key = 70000", 1),
        ("squares", "70000 = key", 1),
        ("squares", "key BETWEEN 5 AND 9", 5),
        ("squares", "key > 5 AND key <= 9 AND value > 0", 4),
        ("squares", "9 > key", 9),
        ("squares", "key IN (3, 70000, 200000, -5)", 2),
        ("squares", "key IN (3, 70000) AND key < 50", 1),
        ("squares", "key >= 99999", 1),
        ("squares", "key < 0", 0),
        ("squares", "key > 5000000000", 0),
        ("squares", "key < 5000000000 AND key >= 99990", 10),
        ("squares", "key > 9 AND key < 5", 0),
        ("names", "key = 'name 00007'", 1),
        ("names", "key LIKE 'name 0001%'", 10),
        ("names", "key >= 'name 09990' AND key < 'name 09995'", 5),
        ("names", "key > 'z'", 0),
        ("names", "key IN ('a', 'name 00000')", 1),
    ] {
        assert_eq!(count(table, condition), rows, "{table} WHERE {condition}");
        assert!(vectors(table, condition) <= rows.min(1), "{table} WHERE {condition}");
    }
    let seek = |condition: &str| {
        let plan = lines(&conn, &format!("EXPLAIN SELECT value FROM squares WHERE {condition}"));
        plan.iter().find_map(|line| line.trim().strip_prefix("seek: ").map(str::to_owned))
    };
    assert_eq!(seek("key = 5 AND value > 3").as_deref(), Some("key = 5"));
    assert_eq!(seek("key > 5 AND key <= 9").as_deref(), Some("key > 5 AND key <= 9"));
    assert_eq!(seek("key IN (1, 2, 3)").as_deref(), Some("3 ranges of keys"));
    assert_eq!(seek("value > 3"), None);
    // Those that need more of the row are asked of what is read.
    assert_eq!(count("squares", "key <> 5"), 99_999);
    assert_eq!(count("squares", "key % 2 = 0 OR key = 5"), 50_001);
    assert_eq!(count("names", "key NOT LIKE 'name 0001%'"), 9_990);
    drop(kv);
}

#[test]
fn trees_meet_tables_views_and_each_other() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    squares(&conn, 50_000);
    conn.execute("CREATE TABLE t AS SELECT CAST(key AS BIGINT) AS n FROM squares WHERE key < 1000", &[]).unwrap();
    conn.execute("CREATE VIEW roots AS SELECT value AS square, key AS root FROM squares", &[]).unwrap();
    assert_eq!(value(&conn, "SELECT count(*), sum(s.value) FROM t JOIN squares AS s ON t.n = s.key"), "1000 332833500");
    assert_eq!(value(&conn, "SELECT root FROM roots WHERE square = 2500"), "50");
    assert_eq!(
        value(&conn, "SELECT count(*) FROM squares AS a JOIN squares AS b ON a.value = b.key WHERE b.key > 0"),
        "223"
    );
    let by_sql = lines(&conn, "SELECT key % 3, count(*), sum(value) FROM squares GROUP BY 1 ORDER BY 1");
    let by_hand = (0..3_u64).map(|rest| {
        let keys = (0..50_000_u64).filter(|key| key % 3 == rest);
        format!("{rest} {} {}", keys.clone().count(), keys.map(|key| key * key).sum::<u64>())
    });
    assert_eq!(by_sql, by_hand.collect::<Vec<_>>());
    assert_eq!(lines(&conn, "SELECT key FROM squares ORDER BY value DESC LIMIT 2"), ["49999", "49998"]);
    for sql in ["SET sinter.engine = 'datafusion'", "SET sinter.decompression = 'page'"] {
        conn.execute(sql, &[]).unwrap();
        assert_eq!(value(&conn, "SELECT count(*), max(value) FROM squares WHERE key < 100"), "100 9801");
    }
}

#[test]
fn what_sql_cannot_do_to_a_tree_it_says() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    let kv = squares(&conn, 10);
    for sql in [
        "MERGE INTO squares USING (SELECT 1 AS k) AS s ON squares.key = s.k WHEN MATCHED THEN DELETE",
        "ALTER TABLE squares ADD COLUMN more INT",
        "CREATE TABLE squares (a INT)",
        "CREATE VIEW squares AS SELECT 1 AS a",
    ] {
        let error = conn.execute(sql, &[]).unwrap_err();
        assert!(matches!(&error, Error::Sql(message) if message.contains("squares")), "{sql}: {error}");
    }
    assert_eq!(kv.len().unwrap(), 10);
}

#[test]
fn a_query_in_a_transaction_sees_what_that_has_written() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    squares(&conn, 40_000);
    let model = "SELECT count(*), sum(value), min(key), max(key) FROM squares";
    let before = value(&conn, model);
    let transaction = database.connect();
    transaction.begin(false).unwrap();
    let kv = transaction.kv::<u32>("squares").unwrap();
    let mut expected: BTreeMap<u32, u64> = (0..40_000).map(|key| (key, u64::from(key) * u64::from(key))).collect();
    let mut random = SmallRng::seed_from_u64(11);
    let check = |expected: &BTreeMap<u32, u64>, within: std::ops::Range<u32>| {
        let sql = format!(
            "SELECT count(*), sum(value), min(key), max(key) FROM squares WHERE key >= {} AND key < {}",
            within.start, within.end
        );
        let found: Vec<_> = expected.range(within).collect();
        let sum: u64 = found.iter().map(|(_, value)| **value).sum();
        let ends = found.first().zip(found.last()).map(|(first, last)| format!("{} {}", first.0, last.0));
        let sums = if found.is_empty() { "NULL".to_owned() } else { sum.to_string() };
        let row = format!("{} {sums} {}", found.len(), ends.unwrap_or_else(|| "NULL NULL".to_owned()));
        assert_eq!(value(&transaction, &sql), row, "{sql}");
    };
    for round in 0..20 {
        for _ in 0..1 << random.random_range(0..12) {
            let key = random.random_range(0..60_000);
            if random.random_range(0..3) == 0 {
                kv.delete(key).unwrap();
                expected.remove(&key);
            } else {
                kv.put(key, u64::from(key * round).to_le_bytes()).unwrap();
                expected.insert(key, u64::from(key * round));
            }
        }
        let start = random.random_range(0..60_000);
        check(&expected, start..start + random.random_range(0..10_000));
        check(&expected, 0..100_000);
        assert_eq!(value(&conn, model), before, "nobody else sees it");
    }
    transaction.execute("SAVEPOINT a", &[]).unwrap();
    kv.put(1_000_000, 5_u64.to_le_bytes()).unwrap();
    assert_eq!(value(&transaction, "SELECT value FROM squares WHERE key = 1000000"), "5");
    transaction.execute("ROLLBACK TO a", &[]).unwrap();
    assert!(lines(&transaction, "SELECT value FROM squares WHERE key = 1000000").is_empty());
    let fresh = transaction.kv::<str>("fresh").unwrap();
    fresh.put("a", "x").unwrap();
    assert_eq!(value(&transaction, "SELECT key FROM fresh"), "a");
    check(&expected, 0..100_000);
    let after = value(&transaction, model);
    transaction.commit().unwrap();
    assert_eq!((value(&conn, model), value(&conn, "SELECT key FROM fresh")), (after, "a".to_owned()));
}

#[test]
fn a_query_sees_one_state_while_others_write() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    let kv = squares(&conn, 100_000);
    let begun = conn.sql("SELECT key, value FROM squares").unwrap();
    kv.update((0..100_000).map(|key| (key, (key % 2 == 0).then_some(0_u64.to_le_bytes())))).unwrap();
    kv.put(200_000, 1_u64.to_le_bytes()).unwrap();
    let batches = begun.collect().unwrap();
    assert_eq!(batches.iter().map(|batch| batch.num_rows()).sum::<usize>(), 100_000);
    assert_eq!(value(&conn, "SELECT count(*), sum(value) FROM squares"), "50001 1");
    // In a transaction, too, what a statement reads is what was there when it began.
    let transaction = database.connect();
    transaction.begin(false).unwrap();
    let own = transaction.kv::<u32>("squares").unwrap();
    own.put(1, 1_u64.to_le_bytes()).unwrap();
    let begun = transaction.sql("SELECT key, value FROM squares").unwrap();
    own.update((0..100_000).map(|key| (key, None::<[u8; 8]>))).unwrap();
    assert_eq!(begun.collect().unwrap().iter().map(|batch| batch.num_rows()).sum::<usize>(), 50_002);
    assert_eq!(value(&transaction, "SELECT count(*) FROM squares"), "1");
}

#[test]
fn a_transaction_whose_queries_of_trees_have_changed_conflicts() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    let kv = squares(&conn, 1000);
    conn.execute("CREATE TABLE t (a INT)", &[]).unwrap();
    conn.execute("CREATE VIEW low AS SELECT key FROM squares WHERE key < 10", &[]).unwrap();
    let attempt = |query: &str, beside: &dyn Fn()| {
        let transaction = database.connect();
        transaction.begin(false).unwrap();
        lines(&transaction, query);
        transaction.execute("INSERT INTO t VALUES (1)", &[]).unwrap();
        beside();
        transaction.commit()
    };
    let put = |key: u32| kv.put(key, 0_u64.to_le_bytes()).unwrap();
    let conflicts = |query: &str, key: u32| match attempt(query, &|| put(key)) {
        Ok(()) => false,
        Err(Error::Conflict(_)) => true,
        Err(error) => panic!("{error}"),
    };
    let of_range = "SELECT sum(value) FROM squares WHERE key BETWEEN 10 AND 20";
    assert!(conflicts(of_range, 15) && conflicts(of_range, 20) && !conflicts(of_range, 21));
    let of_keys = "SELECT value FROM squares WHERE key IN (5, 2000)";
    assert!(conflicts(of_keys, 5) && conflicts(of_keys, 2000) && !conflicts(of_keys, 6));
    let of_all = "SELECT count(*) FROM squares WHERE value > 5";
    assert!(conflicts(of_all, 999) && conflicts(of_all, 5000));
    assert!(conflicts("SELECT * FROM low", 3) && !conflicts("SELECT * FROM low", 11));
    let of_join = "SELECT count(*) FROM t JOIN squares ON t.a = squares.key";
    assert!(conflicts(of_join, 700));
    assert!(!conflicts("SELECT count(*) FROM squares WHERE key < 0", 0));
    let rows_from_trees = database.connect();
    rows_from_trees.begin(false).unwrap();
    rows_from_trees.execute("INSERT INTO t SELECT CAST(key AS INT) FROM squares WHERE key < 3", &[]).unwrap();
    put(2);
    assert!(matches!(rows_from_trees.commit(), Err(Error::Conflict(_))));
    let gone = attempt(of_range, &|| assert_eq!(conn.execute("DROP TABLE squares", &[]).unwrap(), 0));
    assert!(matches!(gone, Err(Error::Conflict(_))));
}

#[test]
fn a_statement_that_changes_a_table_by_a_tree_is_run_again_where_that_changed() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    let kv = squares(&conn, 100);
    conn.execute("CREATE TABLE t AS SELECT CAST(key AS BIGINT) AS k, CAST(value AS BIGINT) AS v FROM squares", &[])
        .unwrap();
    kv.put(5, 7_u64.to_le_bytes()).unwrap();
    conn.execute("UPDATE t SET v = (SELECT CAST(value AS BIGINT) FROM squares WHERE key = t.k)", &[]).unwrap();
    assert_eq!(value(&conn, "SELECT v FROM t WHERE k = 5"), "7");
    conn.execute("DELETE FROM t WHERE k IN (SELECT key FROM squares WHERE value > 100)", &[]).unwrap();
    assert_eq!(value(&conn, "SELECT count(*) FROM t"), "11");
    // One of two: a row where the key has 0, or another value where there is no row.
    conn.execute("CREATE TABLE rows (a BIGINT)", &[]).unwrap();
    let writer = database.connect();
    for _ in 0..200 {
        conn.execute("DELETE FROM rows", &[]).unwrap();
        kv.put(0, 0_u64.to_le_bytes()).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                loop {
                    writer.begin(false).unwrap();
                    if value(&writer, "SELECT count(*) FROM rows") == "0" {
                        writer.kv::<u32>("squares").unwrap().put(0, 1_u64.to_le_bytes()).unwrap();
                    }
                    let outcome = writer.commit();
                    if !is_conflict(&outcome) {
                        return outcome.unwrap();
                    }
                }
            });
            let insert = "INSERT INTO rows SELECT CAST(key AS BIGINT) FROM squares WHERE key = 0 AND value = 0";
            conn.execute(insert, &[]).unwrap();
        });
        let both = "SELECT (SELECT count(*) FROM rows), (SELECT value FROM squares WHERE key = 0)";
        assert!(["1 0", "0 1"].contains(&&*value(&conn, both)), "{}", value(&conn, both));
    }
}

#[test]
fn trees_of_attached_databases_are_read_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("other.sinter");
    {
        let other = Database::open(&path).unwrap();
        squares(&other.connect(), 10);
        other.close().unwrap();
    }
    let database = Database::memory().unwrap();
    let conn = database.connect();
    squares(&conn, 5);
    conn.execute(&format!("ATTACH '{}' AS o", path.display()), &[]).unwrap();
    assert_eq!(value(&conn, "SELECT (SELECT count(*) FROM o.squares), (SELECT count(*) FROM squares)"), "10 5");
    assert_eq!(value(&conn, "SELECT count(*) FROM information_schema.columns WHERE table_name = 'squares'"), "4");
    conn.execute("CREATE TABLE o.t AS SELECT CAST(key AS BIGINT) AS k FROM squares", &[]).unwrap();
    conn.execute("INSERT INTO o.t SELECT CAST(key AS BIGINT) FROM o.squares", &[]).unwrap();
    assert_eq!(value(&conn, "SELECT count(*) FROM o.t"), "15");
    conn.begin(false).unwrap();
    assert_eq!(value(&conn, "SELECT sum(key) FROM o.squares"), "45");
    conn.roll_back().unwrap();
}

#[test]
fn a_tree_is_described_as_a_table_is() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    squares(&conn, 5);
    conn.execute("CREATE TABLE t (key UINTEGER NOT NULL, value UBIGINT NOT NULL)", &[]).unwrap();
    let without_compression = |name: &str| -> Vec<Vec<String>> {
        let rows = rows(&conn, &format!("DESCRIBE {name}")).unwrap();
        rows.into_iter().map(|row| row[..4].to_vec()).collect()
    };
    assert_eq!(without_compression("squares"), without_compression("t"));
}

#[test]
fn long_keys_and_values_are_pruned_and_found() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    let kv = conn.kv_with::<str>("long", of_values(ValueType::Text)).unwrap();
    let key = |number: usize| format!("{}{number:05}{}", "ä".repeat(20), "\u{10ffff}".repeat(number % 3));
    let entries: Vec<(String, String)> = (0..3000).map(|number| (key(number), "v".repeat(3000))).collect();
    for chunk in entries.chunks(100) {
        kv.update(chunk.iter().map(|(key, value)| (key.as_str(), Some(value.as_str())))).unwrap();
    }
    assert_eq!(value(&conn, "SELECT count(*), sum(length(value)) FROM long"), "3000 9000000");
    assert_eq!(value(&conn, "SELECT min(key), max(key) FROM long"), format!("{} {}", key(0), key(2999)));
    for number in [0, 1, 1499, 2999] {
        let of_one = format!("SELECT length(value) FROM long WHERE key = '{}'", key(number));
        assert_eq!(value(&conn, &of_one), "3000");
    }
    let after = format!("SELECT count(*) FROM long WHERE key > '{}' AND length(value) = 3000", key(1000));
    assert_eq!(value(&conn, &after), "1999");
    conn.begin(false).unwrap();
    let own = conn.kv::<str>("long").unwrap();
    for (key, _) in &entries[500..1200] {
        own.put(key.as_str(), "w".repeat(3500)).unwrap();
    }
    assert_eq!(value(&conn, "SELECT count(*), sum(length(value)) FROM long"), "3000 9350000");
    conn.roll_back().unwrap();
}

#[test]
fn conditions_on_keys_let_through_what_sql_says() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    let kv = conn.kv_with::<str>("t", of_values(ValueType::Nothing)).unwrap();
    let texts = ["", "%", "_", "a", "a%", "a%b", "a_", "ab", "a\\", "b", "ÿ", "\u{10ffff}", "\u{10ffff}x"];
    kv.update(texts.map(|text| (text, Some("")))).unwrap();
    let numbers = conn.kv_with::<u64>("n", of_values(ValueType::Nothing)).unwrap();
    numbers.update([0, 1, 5, 9, u64::MAX].map(|key| (key, Some("")))).unwrap();
    let signed = conn.kv_with::<i64>("s", of_values(ValueType::Nothing)).unwrap();
    signed.update([i64::MIN, -5, 0, 5, i64::MAX].map(|key| (key, Some("")))).unwrap();
    for (tree, copy, ty) in [("t", "tt", "VARCHAR"), ("n", "nt", "UBIGINT"), ("s", "st", "BIGINT")] {
        conn.execute(&format!("CREATE TABLE {copy} (key {ty})"), &[]).unwrap();
        conn.execute(&format!("INSERT INTO {copy} SELECT key FROM {tree}"), &[]).unwrap();
    }
    let of_texts = [
        "key LIKE 'a%'",
        "key LIKE 'a\\%%'",
        "key LIKE '%'",
        "key LIKE '_'",
        "key LIKE 'a_'",
        "key LIKE ''",
        "key LIKE '\u{10ffff}%'",
        "key ILIKE 'A%'",
        "key IN ('a', NULL, 'b')",
        "key NOT IN ('a', 'b')",
        "key < 'a' OR key > 'b'",
        "(key < 'a' OR key = 'ab') AND key <> ''",
        "key = 'a' OR length(key) = 3",
        "NOT (key > 'a')",
        "key BETWEEN 'a' AND 'b' OR key BETWEEN 'aa' AND 'z'",
        "key = NULL",
        "key IS NULL OR key = 'a'",
    ];
    let of_numbers = [
        "key > 1.5",
        "key >= -1",
        "key < 1e3",
        "key IN (1, -1, 5)",
        "key = 18446744073709551615",
        "key < 18446744073709551615",
        "key > 18446744073709551615",
        "CAST(key AS DECIMAL(20, 0)) > 5",
        "CAST(key AS DECIMAL(21, 1)) > 5.5",
        "key = 5 OR key = 9 OR key = 5",
        "NOT (key = 5)",
        "key BETWEEN 9 AND 1",
        "key % 5 = 0",
    ];
    let cases = of_texts.iter().map(|condition| ("t", "tt", condition));
    let cases = cases.chain(of_numbers.iter().flat_map(|condition| [("n", "nt", condition), ("s", "st", condition)]));
    for (tree, table, condition) in cases {
        let found = |name: &str| lines(&conn, &format!("SELECT key FROM {name} WHERE {condition} ORDER BY key"));
        assert_eq!(found(tree), found(table), "{tree} WHERE {condition}");
    }
}

#[test]
fn aggregates_are_found_within_the_leaves() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    squares(&conn, 100_000);
    let signed = conn.kv_with::<i64>("signed", of_values(ValueType::I64)).unwrap();
    let number = |key: i64| (key - 30_000) * 1_000_003;
    signed.update((0..50_000).map(|key| (number(key), Some((-number(key)).to_le_bytes())))).unwrap();
    let wide = conn.kv_with::<u64>("wide", of_values(ValueType::Nothing)).unwrap();
    wide.update((0..1000).map(|key| (u64::MAX - key * key, Some("")))).unwrap();
    let found = |sql: &str| (value(&conn, sql), counted(&conn, sql).bytes_decoded);
    let sums = |range: std::ops::Range<u64>| {
        let keys = range.clone().sum::<u64>();
        format!("{} {keys} {} {}", range.clone().count(), range.map(|key| key * key).sum::<u64>(), 0)
    };
    let of_squares = "SELECT count(*), sum(key), sum(value), 0 FROM squares";
    assert_eq!(found(of_squares), (sums(0..100_000), 0));
    assert_eq!(found(&format!("{of_squares} WHERE key >= 777 AND key < 90001")), (sums(777..90_001), 0));
    assert_eq!(
        found("SELECT min(value), max(value), min(key), max(key), sum(key) FROM squares WHERE key > 50000").1,
        0
    );
    assert_eq!(
        value(&conn, "SELECT min(value), max(value), avg(key) FROM squares WHERE key > 50000"),
        "2500100001 9999800001 75000.0"
    );
    let all = || (0..50_000).map(number);
    assert_eq!(
        found("SELECT sum(key), sum(value), min(value), max(key) FROM signed"),
        (format!("{} {} {} {}", all().sum::<i64>(), -all().sum::<i64>(), -number(49_999), number(49_999)), 0)
    );
    let error = rows(&conn, "SELECT sum(key) FROM wide").unwrap_err().to_string();
    assert!(error.contains("out of range"), "{error}");
    let exact = (0..1000_u64).map(|key| i128::from(u64::MAX - key * key)).sum::<i128>();
    assert_eq!(value(&conn, "SELECT sum(CAST(key AS DECIMAL(20, 0))) FROM wide"), exact.to_string());
    let plan = lines(&conn, "EXPLAIN SELECT sum(key), max(value) FROM squares WHERE key > 5");
    assert!(plan.iter().any(|line| line.contains("aggregate: ") && line.ends_with(", within leaves")), "{plan:?}");
    let plan = lines(&conn, "EXPLAIN SELECT max(value) FROM signed GROUP BY key");
    assert!(!plan.iter().any(|line| line.contains("within leaves")), "{plan:?}");
    // What a transaction has written itself, and what only some rows pass, is read.
    conn.begin(false).unwrap();
    conn.kv::<u32>("squares").unwrap().put(5, 0_u64.to_le_bytes()).unwrap();
    assert_eq!(value(&conn, "SELECT sum(key), sum(value), min(value) FROM squares WHERE key < 10"), "45 260 0");
    conn.roll_back().unwrap();
    assert_eq!(value(&conn, "SELECT sum(key) FROM squares WHERE value < 100"), "45");
}

#[test]
fn keys_are_summed_without_sql_too() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    let kv = squares(&conn, 40_000);
    let sums = |kv: &Kv<u32>, range: std::ops::Range<u32>| {
        let sums = kv.sums(range).unwrap();
        (sums.count, sums.sum, sums.min, sums.max)
    };
    let of = |keys: &[u32]| {
        let ends = keys.iter().min().zip(keys.iter().max()).map(|(min, max)| (i128::from(*min), i128::from(*max)));
        let sum = keys.iter().map(|key| i128::from(*key)).sum::<i128>();
        (keys.len() as u64, sum, ends.map(|ends| ends.0), ends.map(|ends| ends.1))
    };
    for (start, end) in [(0, 50_000), (777, 39_000), (5, 6), (39_999, 40_000), (40_000, 50_000), (9, 3)] {
        let keys: Vec<u32> = (start..end.min(40_000)).collect();
        assert_eq!(sums(&kv, start..end), of(&keys), "{start}..{end}");
    }
    assert_eq!(kv.sums(..).unwrap().average(), Some(19_999.5));
    conn.begin(false).unwrap();
    let own = conn.kv::<u32>("squares").unwrap();
    own.delete(10).unwrap();
    own.put(11, 0_u64.to_le_bytes()).unwrap();
    own.put(1_000_000, 0_u64.to_le_bytes()).unwrap();
    let keys: Vec<u32> = (0..40_000).filter(|key| *key != 10).chain([1_000_000]).collect();
    assert_eq!(sums(&own, 0..2_000_000), of(&keys));
    assert_eq!(sums(&own, 10..12), of(&[11]));
    // What it has summed is to be as it was when it commits.
    database.connect().kv::<u32>("squares").unwrap().put(70_000, 0_u64.to_le_bytes()).unwrap();
    assert!(is_conflict(&conn.commit()));
    let names = conn.kv::<str>("names").unwrap();
    assert!(names.sums(..).unwrap_err().to_string().contains("have no sum"));
    let signed = conn.kv::<i64>("signed").unwrap();
    signed.update([i64::MIN, -1, i64::MAX].map(|key| (key, Some("")))).unwrap();
    let all = signed.sums(..).unwrap();
    assert_eq!((all.count, all.sum, all.min), (3, -2, Some(i64::MIN.into())));
}

#[test]
fn storage_says_what_keys_and_values_take() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.sinter");
    let database = Database::open(&path).unwrap();
    let kv = squares(&database.connect(), 5000);
    drop(kv);
    database.close().unwrap();
    // Of leaves that are in pages, too.
    let conn = Database::open(&path).unwrap().connect();
    let sql = "SELECT \"column\", type, scheme, \"values\", plain_bytes, bytes < plain_bytes FROM storage('squares')";
    assert_eq!(
        lines(&conn, sql),
        ["key INTEGER UNSIGNED bp128_d1 5000 20000 true", "value BIGINT UNSIGNED raw 5000 40000 false"]
    );
    assert_eq!(lines(&conn, "SHOW STORAGE squares").len(), 2);
    assert_eq!(lines(&conn, "SHOW STORAGE").len(), 2);
}
