//! Whole databases: ATTACH, DETACH, BACKUP, VACUUM.

use crate::answers::{lines, rows, value};
use sinter_storage::testing::CrashingFileSystem;
use sinterdb::{Config, Connection, Database, Error, Synchronous};
use std::sync::Arc;

fn message<T: std::fmt::Debug>(result: Result<T, Error>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn a_query_reads_several_databases_and_a_statement_changes_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("other.sinter");
    let conn = Database::memory().unwrap().connect();
    conn.execute("CREATE TABLE t (a INT)", &[]).unwrap();
    conn.execute("INSERT INTO t VALUES (1), (2)", &[]).unwrap();
    conn.execute(&format!("ATTACH '{}' AS o", path.display()), &[]).unwrap();
    assert_eq!(conn.execute("CREATE TABLE o.t AS SELECT a + 10 AS a FROM t", &[]).unwrap(), 2);
    assert_eq!(lines(&conn, "SELECT t.a, u.a FROM t JOIN o.t AS u ON u.a = t.a + 10 ORDER BY 1"), ["1 11", "2 12"]);
    assert_eq!(lines(&conn, "SELECT a FROM o.public.t ORDER BY a"), ["11", "12"]);
    assert_eq!(conn.execute("INSERT INTO o.t SELECT a FROM t WHERE a > 1", &[]).unwrap(), 1);
    assert_eq!(conn.execute("UPDATE o.t SET a = t.a + 100 WHERE t.a = 11", &[]).unwrap(), 1);
    assert_eq!(conn.execute("DELETE FROM o.t WHERE a IN (SELECT a FROM t)", &[]).unwrap(), 1);
    assert_eq!(lines(&conn, "SELECT a FROM o.t ORDER BY a"), ["12", "111"]);
    conn.execute("CREATE SCHEMA o.s", &[]).unwrap();
    conn.execute("CREATE TABLE o.s.u (b TEXT, CHECK (b <> ''))", &[]).unwrap();
    conn.execute("ALTER TABLE o.s.u ADD COLUMN c INT DEFAULT 7", &[]).unwrap();
    conn.execute("INSERT INTO o.s.u (b) VALUES ('x')", &[]).unwrap();
    // A view is one of its own database: it reads that one's t.
    conn.execute("CREATE VIEW o.v AS SELECT max(a) AS m FROM t", &[]).unwrap();
    assert_eq!(value(&conn, "SELECT m FROM o.v"), "111");
    assert_eq!(lines(&conn, "DESCRIBE o.s.u").len(), 2);
    assert_eq!(value(&conn, "SELECT count(*) FROM t"), "2", "the own table of that name is another");
    conn.execute("DETACH o", &[]).unwrap();
    assert!(message(conn.sql("SELECT * FROM o.t")).contains('o'));
    let conn = Database::open(&path).unwrap().connect();
    assert_eq!(lines(&conn, "SELECT m, b, c FROM v, s.u"), ["111 x 7"]);
}

#[test]
fn a_transaction_sees_attached_databases_as_they_were_and_changes_its_own() {
    let database = Database::memory().unwrap();
    let (one, two) = (database.connect(), database.connect());
    one.execute("ATTACH ':memory:' AS o", &[]).unwrap();
    one.execute("CREATE TABLE o.t (a INT)", &[]).unwrap();
    one.execute("CREATE TABLE t (a INT)", &[]).unwrap();
    one.begin(false).unwrap();
    two.execute("INSERT INTO o.t VALUES (1)", &[]).unwrap();
    assert_eq!(value(&one, "SELECT count(*) FROM o.t"), "0");
    assert!(message(one.execute("INSERT INTO o.t VALUES (2)", &[])).contains("changes only the database"));
    one.execute("INSERT INTO t VALUES (2)", &[]).unwrap();
    one.commit().unwrap();
    assert_eq!(value(&one, "SELECT count(*) FROM o.t"), "1");
    assert_eq!(value(&two, "SELECT count(*) FROM t"), "1");
}

#[test]
fn names_of_databases_are_not_taken_twice() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("shop.sinter");
    let conn = Database::memory().unwrap().connect();
    conn.execute("CREATE SCHEMA s", &[]).unwrap();
    for taken in ["s", "public", "sinter", "information_schema"] {
        let error = message(conn.execute(&format!("ATTACH '{}' AS {taken}", path.display()), &[]));
        assert!(error.contains("is taken"), "{error}");
    }
    assert!(!path.exists(), "a name that is taken creates nothing");
    conn.execute(&format!("ATTACH '{}'", path.display()), &[]).unwrap();
    assert!(message(conn.execute(&format!("ATTACH '{}'", path.display()), &[])).contains("is taken"));
    conn.execute(&format!("ATTACH IF NOT EXISTS '{}'", path.display()), &[]).unwrap();
    assert_eq!(lines(&conn, "SELECT name FROM databases() ORDER BY name"), ["shop", "sinter"]);
    assert!(message(conn.execute("DETACH nothing", &[])).contains("there is no attached database"));
    conn.execute("DETACH IF EXISTS nothing", &[]).unwrap();
    // The file is held; who else wants it is told by whom.
    assert!(message(Database::open(&path)).contains(&std::process::id().to_string()));
    conn.execute("DETACH shop", &[]).unwrap();
    conn.execute(&format!("ATTACH '{}' AS again (READ_ONLY)", path.display()), &[]).unwrap();
    assert!(message(conn.execute("CREATE TABLE again.t (a INT)", &[])).contains("read-only"));
}

/// What each of these views yields, asked for under the name that their database has now.
fn answers_of_views(conn: &Connection, database: &str, views: &[&str]) -> Vec<Vec<String>> {
    views.iter().map(|view| lines(conn, &format!("SELECT * FROM {database}.public.{view} ORDER BY 1"))).collect()
}

/// Views were stored with the names that databases had when they were made, and read another table, or none, when their
/// file was opened under another name.
#[test]
fn a_view_means_the_same_tables_whatever_its_database_is_called() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("other.sinter");
    let attach = |conn: &Connection, name: &str| conn.execute(&format!("ATTACH '{}' AS {name}", path.display()), &[]);
    let conn = Database::memory().unwrap().connect();
    conn.execute("CREATE TABLE t AS SELECT -1 AS a", &[]).unwrap();
    attach(&conn, "\"O o\"").unwrap();
    for sql in [
        "CREATE SCHEMA \"O o\".s",
        "CREATE TABLE \"O o\".t AS SELECT value AS a FROM generate_series(1, 3)",
        "CREATE TABLE \"O o\".s.u AS SELECT 2 AS b",
        "CREATE VIEW \"O o\".short AS SELECT t.a FROM \"O o\".t",
        "CREATE VIEW \"O o\".full AS SELECT \"O o\".public.t.a, x.b FROM \"O o\".public.t JOIN \"O o\".s.u AS x ON a = b",
        // The name of a CTE is none of a table.
        "CREATE VIEW \"O o\".common AS WITH t AS (SELECT 1000 AS a) SELECT a + (SELECT max(a) FROM \"O o\".t) AS m FROM t",
        "CREATE VIEW \"O o\".nested AS SELECT 1 AS x",
        "CREATE OR REPLACE VIEW \"O o\".nested AS SELECT count(*) FROM \"O o\".public.full WHERE EXISTS \
         (SELECT 1 FROM \"O o\".short WHERE short.a = b) UNION ALL SELECT b FROM \"O o\".s.u",
        // Columns and wildcards that name their table in full.
        "CREATE VIEW \"O o\".columns AS SELECT \"O o\".t.a, \"O o\".s.u.* FROM \"O o\".t JOIN \"O o\".s.u \
         ON \"O o\".t.a = \"O o\".s.u.b ORDER BY \"O o\".t.a",
    ] {
        conn.execute(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    let views = ["short", "full", "common", "nested", "columns"];
    let expected: [&[&str]; 5] = [&["1", "2", "3"], &["2 2"], &["1003"], &["1", "2"], &["2 2"]];
    assert_eq!(answers_of_views(&conn, "\"O o\"", &views), expected);
    conn.execute("DETACH \"O o\"", &[]).unwrap();
    attach(&conn, "p").unwrap();
    assert_eq!(answers_of_views(&conn, "p", &views), expected);
    conn.execute("DETACH p", &[]).unwrap();
    {
        let conn = Database::open(&path).unwrap().connect();
        assert_eq!(answers_of_views(&conn, "sinter", &views), expected);
        conn.execute(
            "CREATE VIEW of_main AS SELECT sum(t.a) AS s FROM Sinter.public.t, sinter.s.u, sinter.t AS x",
            &[],
        )
        .unwrap();
        assert_eq!(value(&conn, "SELECT s FROM of_main"), "18");
        for (view, query) in [
            ("short_columns", "SELECT sinter.t.a FROM sinter.t WHERE sinter.t.a > 2"),
            ("wildcard", "SELECT sinter.public.t.* FROM sinter.public.t WHERE sinter.public.t.a > 2"),
        ] {
            assert_eq!(value(&conn, query), "3");
            conn.execute(&format!("CREATE VIEW {view} AS {query}"), &[]).unwrap();
        }
    }
    attach(&conn, "q").unwrap();
    assert_eq!(answers_of_views(&conn, "q", &["short_columns", "wildcard"]), [["3"], ["3"]]);
    assert_eq!(value(&conn, "SELECT s FROM q.of_main"), "18");
    assert_eq!(answers_of_views(&conn, "q", &views), expected);
}

#[test]
fn a_view_reads_no_other_database() {
    let conn = Database::memory().unwrap().connect();
    conn.execute("CREATE TABLE t AS SELECT 1 AS a", &[]).unwrap();
    conn.execute("ATTACH ':memory:' AS o", &[]).unwrap();
    conn.execute("CREATE TABLE o.t AS SELECT 2 AS a", &[]).unwrap();
    for (sql, table, database) in [
        ("CREATE VIEW v AS SELECT * FROM o.t", "o.t", "o"),
        ("CREATE VIEW v AS SELECT * FROM t WHERE a IN (SELECT a FROM O.public.t)", "O.public.t", "o"),
        ("CREATE VIEW v AS WITH x AS (SELECT * FROM sinter.o.t) SELECT * FROM x", "sinter.o.t", "o"),
        ("CREATE VIEW v AS SELECT * FROM nowhere.public.t", "nowhere.public.t", "nowhere"),
        ("CREATE VIEW o.v AS SELECT t.a FROM t JOIN sinter.t AS x ON x.a = t.a", "sinter.t", "sinter"),
        ("CREATE OR REPLACE VIEW o.v AS SELECT * FROM sinter.public.t", "sinter.public.t", "sinter"),
    ] {
        let error = message(conn.execute(sql, &[]));
        assert!(error.contains(&format!("view 'v' names '{table}', which is of the database '{database}'")), "{error}");
        assert!(error.contains("copy the table"), "{error}");
    }
    // A schema of the name of a database that is not attached is no database.
    conn.execute("DETACH o", &[]).unwrap();
    conn.execute("CREATE SCHEMA o", &[]).unwrap();
    conn.execute("CREATE TABLE o.t AS SELECT 3 AS a", &[]).unwrap();
    conn.execute("CREATE VIEW v AS SELECT * FROM o.t", &[]).unwrap();
    assert_eq!(value(&conn, "SELECT a FROM v"), "3");
}

/// An attached database had the level of the opening, and SET did not come to it.
#[test]
fn commits_of_attached_databases_promise_what_was_set() {
    let disk = CrashingFileSystem::new();
    let config = Config::builder().synchronous(Synchronous::Off).background(false).file_system(Arc::new(disk.clone()));
    let conn = Database::memory_with(config).unwrap().connect();
    let run = |sql: &str| conn.execute(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
    let syncs = |sql: &str| {
        let count = || disk.calls().iter().filter(|call| call.is_sync()).count();
        let before = count();
        run(sql);
        count() - before
    };
    let restarted = |path: &str| {
        let config = Config::builder().file_system(Arc::new(disk.restart(7)));
        lines(&Database::open_with(path, config).unwrap().connect(), "SELECT a FROM t ORDER BY a")
    };
    run("ATTACH 'one.sinter' AS one");
    run("CREATE TABLE one.t (a INT)");
    assert_eq!(syncs("INSERT INTO one.t VALUES (1)"), 0);
    run("SET synchronous = 'full'");
    assert_eq!(restarted("one.sinter"), ["1"]);
    assert!(syncs("INSERT INTO one.t VALUES (2)") > 0);
    run("ATTACH 'two.sinter' AS two");
    run("CREATE TABLE two.t (a INT)");
    assert!(syncs("INSERT INTO two.t VALUES (3)") > 0);
    assert_eq!((restarted("one.sinter"), restarted("two.sinter")), (vec!["1".into(), "2".into()], vec!["3".into()]));
    // Who only reads has nothing to promise.
    run("DETACH two");
    run("ATTACH 'two.sinter' AS two (READ_ONLY)");
    run("SET synchronous = 'off'");
    assert_eq!(syncs("INSERT INTO one.t VALUES (4)"), 0);
    run("SET synchronous = 'full'");
    assert_eq!(restarted("one.sinter"), ["1", "2", "4"]);
}

#[test]
fn what_is_attached_closes_with_the_database() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("other.sinter");
    let database = Database::memory_with(Config::default()).unwrap();
    let conn = database.connect();
    conn.execute(&format!("ATTACH '{}' AS o", path.display()), &[]).unwrap();
    conn.execute("CREATE TABLE o.t AS SELECT 1 AS a", &[]).unwrap();
    drop((conn, database));
    assert_eq!(value(&Database::open(&path).unwrap().connect(), "SELECT a FROM t"), "1");
}

/// A transaction keeps the state that it saw, and with it, for a reader, the lock of a file that was detached.
#[test]
fn what_is_detached_is_free_whoever_looks_at_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("other.sinter");
    let create = |sql: &str| Database::open(&path)?.connect().execute(sql, &[]);
    create("CREATE TABLE t AS SELECT value AS a FROM generate_series(1, 1000)").unwrap();
    let database = Database::memory().unwrap();
    let (one, two) = (database.connect(), database.connect());
    for options in ["(READ_ONLY)", ""] {
        one.execute(&format!("ATTACH '{}' AS o {options}", path.display()), &[]).unwrap();
        two.begin(false).unwrap();
        assert_eq!(value(&two, "SELECT max(a) FROM o.t"), "1000");
        assert!(message(create("DROP TABLE t")).contains("in use by"));
        one.execute("DETACH o", &[]).unwrap();
        create("INSERT INTO t VALUES (7)").unwrap();
        let error = message(rows(&two, "SELECT sum(a) FROM o.t WHERE a % 2 = 0"));
        assert!(error.contains("other.sinter: the database is closed"), "{error}");
        two.roll_back().unwrap();
        assert!(message(rows(&two, "SELECT max(a) FROM o.t")).contains("o.t"));
    }
}

#[test]
fn a_backup_is_the_state_of_one_moment_whatever_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let copy = dir.path().join("copy.sinter");
    let backup = format!("BACKUP TO '{}'", copy.display());
    for database in [Database::memory().unwrap(), Database::open(dir.path().join("shop.sinter")).unwrap()] {
        let conn = database.connect();
        conn.execute("CREATE TABLE t AS SELECT value AS a, 'text ' || value AS b FROM generate_series(1, 200000)", &[])
            .unwrap();
        conn.execute("CREATE VIEW v AS SELECT sum(a) AS s FROM t", &[]).unwrap();
        conn.execute("DELETE FROM t WHERE a % 3 = 0", &[]).unwrap();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let conn = database.connect();
                for _ in 0..20 {
                    // Whole or not at all: the sum stays the same.
                    conn.execute("UPDATE t SET a = CASE WHEN a = 1 THEN 2 ELSE 1 END WHERE a IN (1, 2)", &[]).unwrap();
                }
            });
            conn.execute(&backup, &[]).unwrap();
            writer.join().unwrap();
        });
        let expected = lines(&conn, "SELECT s, (SELECT count(*) FROM t) FROM v");
        assert!(message(conn.execute(&backup, &[])).contains("copy.sinter"), "a backup overwrites nothing");
        let copied = Database::open(&copy).unwrap();
        let other = copied.connect();
        assert_eq!(lines(&other, "SELECT s, (SELECT count(*) FROM t) FROM v"), expected);
        other.execute("INSERT INTO t VALUES (1000, 'own')", &[]).unwrap();
        copied.close().unwrap();
        drop((other, copied));
        std::fs::remove_file(&copy).unwrap();
    }
}

/// A database whose keeper has been given time to work: sees to it that the file is as small as `bytes`.
fn shrinks_to(path: &std::path::Path, bytes: u64) -> bool {
    let small = || std::fs::metadata(path).unwrap().len() <= bytes;
    (0..600).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        small()
    })
}

#[test]
fn space_comes_back_after_a_large_delete_asked_for_or_not() {
    let dir = tempfile::tempdir().unwrap();
    for asks in [true, false] {
        let path = dir.path().join(format!("{asks}.sinter"));
        let database = Database::open(&path).unwrap();
        let conn = database.connect();
        // Random digits are not pressed much: some 40 MB.
        conn.execute("CREATE TABLE t AS SELECT value AS a, random() AS b FROM generate_series(1, 5000000)", &[])
            .unwrap();
        conn.execute("CHECKPOINT", &[]).unwrap();
        let full = std::fs::metadata(&path).unwrap().len();
        assert!(full > 30_000_000, "{full}");
        conn.execute("DELETE FROM t WHERE a > 1000", &[]).unwrap();
        if asks {
            conn.execute("VACUUM", &[]).unwrap();
            assert!(std::fs::metadata(&path).unwrap().len() < full / 20);
        } else {
            assert!(shrinks_to(&path, full / 20), "{}", std::fs::metadata(&path).unwrap().len());
        }
        assert_eq!(value(&conn, "SELECT count(*) FROM t"), "1000");
    }
}
