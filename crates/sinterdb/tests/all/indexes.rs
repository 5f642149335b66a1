//! Indexes of column tables: by whom they are used, and that they hold what their tables hold, whoever commits at once.

use crate::answers::{lines, rows, value};
use crate::engine::counted;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinterdb::{Config, Connection, Database, Error, KvOptions, ValueType};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

fn run(conn: &Connection, sql: &str) {
    conn.execute(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// How EXPLAIN says that a scan finds its rows.
fn seek(conn: &Connection, sql: &str) -> Option<String> {
    let plan = lines(conn, &format!("EXPLAIN {sql}"));
    plan.iter().find_map(|line| Some(line.trim().strip_prefix("seek: ")?.to_owned()))
}

/// Three row groups of `id`s in no order.
fn shuffled() -> Connection {
    let conn = Database::memory().unwrap().connect();
    run(&conn, "CREATE TABLE t (id BIGINT PRIMARY KEY, part INT, name VARCHAR)");
    run(
        &conn,
        "INSERT INTO t SELECT value * 7919 % 300007, value % 1000, 'name ' || (value % 30000) FROM generate_series(1, 300000)",
    );
    conn
}

#[test]
fn conditions_on_few_rows_are_looked_up() {
    let conn = shuffled();
    run(&conn, "CREATE TABLE plain AS SELECT * FROM t");
    run(&conn, "CREATE INDEX by_name ON t (name, part)");
    let one = "SELECT name FROM t WHERE id = 7919";
    assert_eq!(seek(&conn, one).as_deref(), Some("1 row by index t_pkey"));
    assert_eq!(value(&conn, one), "name 1");
    let counted = counted(&conn, one);
    assert!(counted.vectors <= 128, "one row group is looked into: {counted:?}");
    for (condition, found) in [
        ("id = -1", "0 rows by index t_pkey"),
        ("id IN (7919, 15838, -1)", "2 rows by index t_pkey"),
        ("id BETWEEN 100 AND 110", "11 rows by index t_pkey"),
        ("5 > id", "4 rows by index t_pkey"),
        ("name = 'name 5'", "10 rows by index by_name"),
        ("name = 'name 5' AND part = 5", "10 rows by index by_name"),
        ("name = 'name 5' AND part > 5", "0 rows by index by_name"),
        ("name IN ('name 5', 'name 6') AND id = 7919", "1 row by index t_pkey"),
        ("CAST(id AS DECIMAL(38, 0)) = 7919", "1 row by index t_pkey"),
    ] {
        let sql = format!("SELECT count(*), sum(id) FROM t WHERE {condition}");
        assert_eq!(seek(&conn, &sql).as_deref(), Some(found), "{condition}");
        assert_eq!(lines(&conn, &sql), lines(&conn, &sql.replace("FROM t", "FROM plain")), "{condition}");
    }
    for condition in ["id > 0", "part = 5", "name LIKE '%5'", "id = 5 OR part = 5", "id <> 5", "id IS NULL"] {
        assert_eq!(seek(&conn, &format!("SELECT * FROM t WHERE {condition}")), None, "{condition}");
    }
}

/// How EXPLAIN ANALYZE says that the scan with that found its rows.
fn sought(conn: &Connection, sql: &str) -> Vec<String> {
    let plan = lines(conn, &format!("EXPLAIN ANALYZE {sql}"));
    plan.iter().filter_map(|line| Some(line.trim().strip_prefix("seek: ")?.to_owned())).collect()
}

#[test]
fn few_keys_of_a_join_are_looked_up() {
    let conn = shuffled();
    run(&conn, "CREATE TABLE plain AS SELECT * FROM t");
    run(&conn, "CREATE INDEX by_name ON t (name, part)");
    run(&conn, "CREATE TABLE few (a BIGINT, b INT, c VARCHAR, d SMALLINT)");
    run(
        &conn,
        "INSERT INTO few VALUES (7919, 1, 'name 1', 5), (15838, 2, 'name 2', 6), (-1, 3, 'nobody', 7), (NULL, 3, 'name 3', 8), (7919, 9, 'name 1', 9)",
    );
    let by_id = "SELECT count(*), sum(t.part), min(few.b) FROM few JOIN t ON t.id = few.a";
    assert_eq!(seek(&conn, by_id).as_deref(), Some("by index t_pkey, where the keys of join 1 are few"));
    assert!(counted(&conn, by_id).vectors <= 256, "{:?}", counted(&conn, by_id));
    for (query, found) in [
        (by_id, Some("2 rows by index t_pkey")),
        (
            "SELECT few.*, t.name FROM few, t WHERE t.id = few.a AND t.part > 1 ORDER BY few.b",
            Some("2 rows by index t_pkey"),
        ),
        ("SELECT count(*) FROM t JOIN few ON t.id = few.d", Some("5 rows by index t_pkey")),
        ("SELECT id FROM t WHERE id IN (SELECT a FROM few) ORDER BY id", Some("2 rows by index t_pkey")),
        ("SELECT count(*), sum(t.id) FROM t JOIN few ON t.name = few.c", Some("30 rows by index by_name")),
        (
            "SELECT count(*), sum(t.id) FROM t JOIN few ON t.part = few.b AND t.name = few.c",
            Some("30 rows by index by_name"),
        ),
        (
            "SELECT count(*), sum(t.id) FROM t JOIN few ON t.id = few.a JOIN few AS more ON t.name = more.c",
            Some("2 rows by index t_pkey"),
        ),
        ("SELECT few.b, t.id FROM few LEFT JOIN t ON t.id = few.a ORDER BY 1", Some("2 rows by index t_pkey")),
        ("SELECT count(few.a) FROM t LEFT JOIN few ON t.id = few.a", None),
        ("SELECT count(*) FROM t WHERE id NOT IN (SELECT a FROM few WHERE a IS NOT NULL)", None),
        ("SELECT count(*) FROM t JOIN few ON t.part = few.b", None),
    ] {
        let seeks = sought(&conn, query);
        assert_eq!(seeks.iter().find(|seek| seek.contains("index")).map(String::as_str), found, "{query}: {seeks:?}");
        let without = query.replace("FROM t ", "FROM plain AS t ").replace("JOIN t ", "JOIN plain AS t ");
        let without = without.replace("few, t ", "few, plain AS t ");
        assert_ne!(without, query);
        assert_eq!(lines(&conn, query), lines(&conn, &without), "{query}");
    }
    // Too many keys for that, and too many rows of few keys.
    run(&conn, "CREATE TABLE many AS SELECT value AS a FROM generate_series(1, 2000)");
    assert!(sought(&conn, "SELECT count(*) FROM t JOIN many ON t.id = many.a").is_empty());
    run(&conn, "CREATE INDEX by_part ON t (part)");
    assert!(sought(&conn, "SELECT count(*) FROM t JOIN few ON t.part = few.b").is_empty());
    // What the transaction has written itself is found too, and what was deleted is not.
    conn.begin(false).unwrap();
    run(&conn, "DELETE FROM t WHERE id = 7919");
    run(&conn, "INSERT INTO t VALUES (-1, 77, 'new')");
    assert_eq!(value(&conn, "SELECT count(*), sum(t.part) FROM few JOIN t ON t.id = few.a"), "2 79");
    conn.roll_back().unwrap();
}

#[test]
fn few_keys_of_a_join_are_looked_up_in_trees() {
    let conn = shuffled();
    let kv = conn.kv_with::<u64>("tree", KvOptions { value: Some(ValueType::U64), ..KvOptions::default() }).unwrap();
    kv.update((0..300_000_u64).map(|key| (key * 3, Some((key * 7).to_le_bytes())))).unwrap();
    run(&conn, "CREATE TABLE few AS SELECT v * 1000 AS a FROM generate_series(0, 9) AS g (v)");
    let sql = "SELECT count(*), sum(tree.value) FROM few JOIN tree ON tree.key = few.a";
    let keys: Vec<u64> = (0..10).map(|key| key * 1000).filter(|key| key % 3 == 0).collect();
    let sum: u64 = keys.iter().map(|key| key / 3 * 7).sum();
    assert_eq!(value(&conn, sql), format!("{} {sum}", keys.len()));
    assert!(seek(&conn, sql).is_some_and(|seek| seek.contains("by key, where the keys of join 1 are few")));
    assert!(counted(&conn, sql).vectors <= 64, "{:?}", counted(&conn, sql));
}

#[test]
fn changes_of_few_rows_are_looked_up() {
    let conn = shuffled();
    run(&conn, "UPDATE t SET id = -id, name = 'changed' WHERE id = 7919");
    assert_eq!(lines(&conn, "SELECT name FROM t WHERE id = -7919"), ["changed"]);
    assert_eq!(lines(&conn, "SELECT name FROM t WHERE id = 7919"), Vec::<String>::new());
    run(&conn, "DELETE FROM t WHERE id IN (-7919, 15838)");
    assert_eq!(value(&conn, "SELECT count(*) FROM t"), "299998");
    assert_eq!(value(&conn, "SELECT entries FROM indexes()"), "299998");
    run(&conn, "INSERT INTO t VALUES (15838, 0, 'back')");
    assert_eq!(value(&conn, "SELECT name FROM t WHERE id = 15838"), "back");
}

#[test]
fn indexes_come_back_with_their_database() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("indexed.sinter");
    for turn in 0..3 {
        let database = Database::open(&path).unwrap();
        let conn = database.connect();
        if turn == 0 {
            run(&conn, "CREATE TABLE t (id INT PRIMARY KEY, name VARCHAR UNIQUE)");
            run(&conn, "INSERT INTO t SELECT value, 'n' || value FROM generate_series(1, 5000)");
            run(&conn, "CREATE INDEX by_both ON t (name, id)");
        }
        run(&conn, &format!("INSERT INTO t VALUES ({}, 'turn')", -turn));
        assert_eq!(seek(&conn, "SELECT id FROM t WHERE name = 'turn'").as_deref(), Some("1 row by index t_name_key"));
        assert_eq!(value(&conn, "SELECT id FROM t WHERE name = 'turn'"), (-turn).to_string());
        run(&conn, "DELETE FROM t WHERE name = 'turn'");
        let error = conn.execute("INSERT INTO t VALUES (77, 'x')", &[]).map(drop).unwrap_err();
        assert!(error.to_string().contains("id = 77 already"), "{error}");
        assert_eq!(lines(&conn, "SELECT entries FROM indexes()"), ["5000"; 3]);
        database.close().unwrap();
    }
}

/// Row ids that a transaction gave to its rows are others once somebody else has committed first.
#[test]
fn rows_are_found_whoever_commits_first() {
    let database = Database::memory().unwrap();
    let (one, other) = (database.connect(), database.connect());
    run(&one, "CREATE TABLE t (id INT PRIMARY KEY, n INT, s VARCHAR)");
    run(&one, "CREATE INDEX by_n ON t (n)");
    run(&one, "BEGIN");
    run(&one, "INSERT INTO t VALUES (1, 5, 'one'), (2, 5, 'gone'), (3, 5, 'three')");
    run(&one, "DELETE FROM t WHERE id = 2");
    run(&one, "UPDATE t SET s = 'drei' WHERE id = 3");
    run(&other, "INSERT INTO t VALUES (10, 5, 'ten'), (20, 5, 'twenty'), (30, 6, 'thirty')");
    run(&one, "COMMIT");
    assert_eq!(lines(&other, "SELECT s FROM t WHERE n = 5 ORDER BY s"), ["drei", "one", "ten", "twenty"]);
    for (id, s) in [(1, "one"), (3, "drei"), (10, "ten"), (20, "twenty"), (30, "thirty")] {
        assert_eq!(lines(&one, &format!("SELECT s FROM t WHERE id = {id}")), [s]);
    }
    assert_eq!(lines(&one, "SELECT index, entries FROM indexes() ORDER BY index"), ["by_n 5", "t_pkey 5"]);
}

#[test]
fn of_two_who_insert_the_same_value_one_fails() {
    let database = Database::memory().unwrap();
    let (one, other) = (database.connect(), database.connect());
    run(&one, "CREATE TABLE t (id INT PRIMARY KEY)");
    run(&one, "BEGIN");
    run(&one, "INSERT INTO t VALUES (1)");
    run(&other, "INSERT INTO t VALUES (1)");
    let outcome = one.execute("COMMIT", &[]).map(drop);
    assert!(matches!(outcome, Err(Error::Conflict(_))), "{outcome:?}");
    let outcome = one.execute("INSERT INTO t VALUES (1)", &[]).map(drop);
    assert!(matches!(outcome, Err(Error::Data(_))), "{outcome:?}");
    assert_eq!(value(&one, "SELECT count(*) FROM t"), "1");
    // Who changes a table while an index of it is made does not slip past it.
    run(&one, "BEGIN");
    run(&one, "INSERT INTO t VALUES (2)");
    run(&other, "ALTER TABLE t ADD UNIQUE (id)");
    let outcome = one.execute("COMMIT", &[]).map(drop);
    assert!(matches!(outcome, Err(Error::Conflict(_))), "{outcome:?}");
}

/// What others commit while an index is made is in it, and nobody conflicts with whom he does not meet.
#[test]
fn indexes_are_made_while_others_write() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    run(&conn, "CREATE TABLE t (id INT, n INT)");
    run(&conn, "INSERT INTO t SELECT value * 7919 % 300007, value % 50 FROM generate_series(1, 200000)");
    let is_made = AtomicBool::new(false);
    let written = std::thread::scope(|scope| {
        let other = database.connect();
        let is_made = &is_made;
        let writer = scope.spawn(move || {
            let mut written = 0;
            while !is_made.load(Ordering::Relaxed) {
                run(&other, &format!("INSERT INTO t VALUES ({}, 7)", 1_000_000 + written));
                run(&other, &format!("DELETE FROM t WHERE id = {}", 7919 * (written + 1) % 300_007));
                written += 1;
            }
            written
        });
        run(&conn, "CREATE UNIQUE INDEX of_id ON t (id)");
        run(&conn, "CREATE INDEX of_n ON t (n)");
        is_made.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    assert!(written > 0);
    let count = value(&conn, "SELECT count(*) FROM t");
    assert_eq!(lines(&conn, "SELECT entries FROM indexes()"), [count.clone(), count]);
    assert_eq!(seek(&conn, "SELECT n FROM t WHERE id = 1000000").as_deref(), Some("1 row by index of_id"));
    assert_eq!(value(&conn, "SELECT n FROM t WHERE id = 1000000"), "7");
    assert_eq!(lines(&conn, "SELECT n FROM t WHERE id = 7919"), Vec::<String>::new());
}

#[test]
fn an_index_may_be_made_where_rows_were_changed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.sinter");
    let database = Database::open(&path).unwrap();
    let conn = database.connect();
    run(&conn, "CREATE TABLE t (id INT, n INT)");
    run(&conn, "INSERT INTO t VALUES (1, 10), (1, 11), (2, 20)");
    let refused = conn.execute("CREATE UNIQUE INDEX of_id ON t (id)", &[]).map(drop).unwrap_err();
    assert!(refused.to_string().contains("has a row with id = 1 already"), "{refused}");
    run(&conn, "BEGIN");
    run(&conn, "DELETE FROM t WHERE n = 11");
    run(&conn, "CREATE UNIQUE INDEX of_id ON t (id)");
    run(&conn, "INSERT INTO t VALUES (3, 30)");
    run(&conn, "ALTER TABLE t ADD COLUMN s VARCHAR DEFAULT 'x'");
    run(&conn, "CREATE INDEX of_s ON t (s, n)");
    run(&conn, "COMMIT");
    run(&conn, "CREATE INDEX of_n ON t (n)");
    // Once from the log, once from the checkpoint of the first opening.
    drop((conn, database));
    for _ in 0..2 {
        let database = Database::open(&path).unwrap();
        let conn = database.connect();
        assert_eq!(lines(&conn, "SELECT entries FROM indexes()"), ["3"; 3]);
        for (condition, n) in [("id = 1", "10"), ("id = 3", "30"), ("s = 'x' AND n = 20", "20"), ("n = 30", "30")] {
            let sql = format!("SELECT n FROM t WHERE {condition}");
            assert!(seek(&conn, &sql).is_some(), "{sql}");
            assert_eq!(lines(&conn, &sql), [n], "{sql}");
        }
        database.close().unwrap();
    }
}

/// The log says only that there is an index: who replays it makes it of the rows that were there.
#[test]
fn an_index_is_made_anew_from_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("t.sinter");
    let database = Database::open_with(&path, Config::builder().background(false)).unwrap();
    let conn = database.connect();
    run(&conn, "CREATE TABLE t (id INT, n INT)");
    run(&conn, "INSERT INTO t SELECT value, value % 10 FROM generate_series(1, 200)");
    run(&conn, "DELETE FROM t WHERE id = 50");
    run(&conn, "CREATE UNIQUE INDEX of_id ON t (id)");
    run(&conn, "INSERT INTO t VALUES (50, 77)");
    run(&conn, "DELETE FROM t WHERE id = 60");
    let copied = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(directory.path()).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), copied.path().join(file.file_name())).unwrap();
    }
    let crashed = Database::open(copied.path().join("t.sinter")).unwrap();
    assert!(crashed.notes().iter().any(|note| note.contains("replayed")), "{:?}", crashed.notes());
    let conn = crashed.connect();
    assert_eq!(lines(&conn, "SELECT entries FROM indexes()"), ["199"]);
    for (id, n) in [(49, Some("9")), (50, Some("77")), (60, None)] {
        let sql = format!("SELECT n FROM t WHERE id = {id}");
        assert!(seek(&conn, &sql).is_some(), "{sql}");
        assert_eq!(lines(&conn, &sql), n.into_iter().collect::<Vec<_>>(), "{sql}");
    }
}

/// What was looked up in an index, and led to nothing being written, is held against others, too.
#[test]
fn who_did_nothing_for_a_row_that_went_conflicts() {
    let database = Database::memory().unwrap();
    let (one, other) = (database.connect(), database.connect());
    run(&one, "CREATE TABLE t (id INT PRIMARY KEY, n INT)");
    run(&one, "INSERT INTO t VALUES (1, 1), (2, 2)");
    run(&one, "BEGIN");
    run(&one, "INSERT INTO t VALUES (1, 10), (3, 30) ON CONFLICT DO NOTHING");
    run(&other, "DELETE FROM t WHERE id = 1");
    let outcome = one.execute("COMMIT", &[]).map(drop);
    assert!(matches!(outcome, Err(Error::Conflict(_))), "{outcome:?}");
    // Nor does a row that another one of the same statement replaced make itself forgotten.
    run(&one, "CREATE TABLE two (a INT UNIQUE, b INT UNIQUE)");
    run(&one, "BEGIN");
    run(&one, "INSERT OR REPLACE INTO two VALUES (7, 7), (7, 8)");
    run(&other, "INSERT INTO two VALUES (5, 7)");
    let outcome = one.execute("COMMIT", &[]).map(drop);
    assert!(matches!(outcome, Err(Error::Conflict(_))), "{outcome:?}");
}

/// Threads insert, change and delete; each key has one winner, and in the end each index has what the table has.
#[test]
fn threads_that_write_at_once_leave_whole_indexes() {
    let database = Database::memory().unwrap();
    run(&database.connect(), "CREATE TABLE t (id INT PRIMARY KEY, owner INT, n INT)");
    run(&database.connect(), "CREATE INDEX by_n ON t (n)");
    let inserted = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for owner in 0..3 {
            let (conn, inserted) = (database.connect(), &inserted);
            scope.spawn(move || {
                let mut random = SmallRng::seed_from_u64(owner);
                for _ in 0..120 {
                    let (id, n) = (random.random_range(0..200), random.random_range(0..20));
                    let outcome = match random.random_range(0..4) {
                        0 => conn.execute(&format!("DELETE FROM t WHERE id = {id}"), &[]).map(drop),
                        1 => conn.execute(&format!("UPDATE t SET n = {n} WHERE id = {id}"), &[]).map(drop),
                        2 => {
                            let sql = format!(
                                "INSERT INTO t VALUES ({id}, {owner}, {n}) ON CONFLICT (id) DO UPDATE SET n = t.n + 100"
                            );
                            conn.execute(&sql, &[]).map(drop)
                        }
                        _ => conn.execute(&format!("INSERT INTO t VALUES ({id}, {owner}, {n})"), &[]).map(|_| {
                            inserted.fetch_add(1, Ordering::Relaxed);
                        }),
                    };
                    if let Err(error) = outcome {
                        assert!(matches!(error, Error::Data(_) | Error::Conflict(_)), "{error}");
                    }
                }
            });
        }
    });
    assert!(inserted.load(Ordering::Relaxed) > 0);
    let conn = database.connect();
    let all = rows(&conn, "SELECT id, n FROM t ORDER BY id").unwrap();
    let ids: Vec<&String> = all.iter().map(|row| &row[0]).collect();
    assert!(ids.windows(2).all(|pair| pair[0] != pair[1]), "an id is there twice: {ids:?}");
    assert_whole(&conn, &all);
}

/// By each value of two columns, the index finds the rows that have it.
fn assert_whole(conn: &Connection, all: &[Vec<String>]) {
    let count = all.len();
    assert_eq!(lines(conn, "SELECT entries FROM indexes()"), [count.to_string(), count.to_string()]);
    let mut by_n: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for row in all {
        assert_eq!(lines(conn, &format!("SELECT n FROM t WHERE id = {}", row[0])), [row[1].as_str()]);
        by_n.entry(&row[1]).or_default().push(&row[0]);
    }
    for (n, ids) in by_n {
        assert_eq!(lines(conn, &format!("SELECT id FROM t WHERE n = {n} ORDER BY id")), ids, "of n = {n}");
    }
}

#[test]
fn statements_agree_with_a_map() {
    for seed in 0..6 {
        let mut random = SmallRng::seed_from_u64(seed);
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.sinter");
        let mut database = Database::open(&path).unwrap();
        let mut conn = database.connect();
        run(&conn, "CREATE TABLE t (id INT PRIMARY KEY, n INT)");
        run(&conn, "CREATE INDEX by_n ON t (n)");
        let mut model: BTreeMap<i32, i32> = BTreeMap::new();
        // What it was when the transaction began.
        let mut before: Option<BTreeMap<i32, i32>> = None;
        for _ in 0..150 {
            let (id, n, count) = (random.random_range(0..300), random.random_range(0..15), random.random_range(1..40));
            let insert = format!("INSERT INTO t SELECT value, {n} FROM generate_series({id}, {})", id + count - 1);
            let ids = id..id + count;
            match random.random_range(0..10) {
                0 | 1 => {
                    let meets = ids.clone().any(|id| model.contains_key(&id));
                    // After an error a transaction can only go back.
                    if meets && before.is_some() {
                        continue;
                    }
                    assert_eq!(conn.execute(&insert, &[]).is_err(), meets, "{seed}: {insert}");
                    if !meets {
                        model.extend(ids.map(|id| (id, n)));
                    }
                }
                2 => {
                    run(&conn, &format!("{insert} ON CONFLICT DO NOTHING"));
                    ids.for_each(|id| {
                        model.entry(id).or_insert(n);
                    });
                }
                3 => {
                    run(&conn, &format!("{insert} ON CONFLICT (id) DO UPDATE SET n = t.n + excluded.n"));
                    ids.for_each(|id| *model.entry(id).or_insert(0) += n);
                }
                4 => {
                    run(&conn, &insert.replace("INSERT", "INSERT OR REPLACE"));
                    model.extend(ids.map(|id| (id, n)));
                }
                5 => {
                    run(&conn, &format!("DELETE FROM t WHERE id BETWEEN {id} AND {}", id + count - 1));
                    model.retain(|key, _| !ids.contains(key));
                }
                6 => {
                    run(&conn, &format!("UPDATE t SET id = id + 1000 WHERE n = {n}"));
                    model = model.into_iter().map(|(id, of)| (if of == n { id + 1000 } else { id }, of)).collect();
                    run(&conn, "DELETE FROM t WHERE id >= 1000");
                    model.retain(|id, _| *id < 1000);
                }
                7 if before.is_none() => {
                    run(&conn, "BEGIN");
                    before = Some(model.clone());
                }
                8 if before.is_some() => {
                    let was = before.take().unwrap();
                    if random.random() {
                        run(&conn, "COMMIT");
                    } else {
                        run(&conn, "ROLLBACK");
                        model = was;
                    }
                }
                9 if before.is_none() => {
                    drop(conn);
                    database.close().unwrap();
                    database = Database::open(&path).unwrap();
                    conn = database.connect();
                }
                _ => {}
            }
            let key = random.random_range(0..350);
            let found = lines(&conn, &format!("SELECT n FROM t WHERE id = {key}"));
            assert_eq!(
                found,
                model.get(&key).map(ToString::to_string).into_iter().collect::<Vec<_>>(),
                "{seed}: {key}"
            );
        }
        if before.is_some() {
            run(&conn, "COMMIT");
        }
        let all = rows(&conn, "SELECT id, n FROM t ORDER BY id").unwrap();
        let expected = model.iter().map(|(id, n)| vec![id.to_string(), n.to_string()]).collect::<Vec<_>>();
        assert_eq!(all, expected, "seed {seed}");
        assert_whole(&conn, &all);
    }
}
