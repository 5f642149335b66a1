//! Cases that have names.

use super::steps::TABLES;
use crate::answers::lines;
use sinterdb::{Database, Error, Transaction};

/// Two transactions over the same two rows, and what each does between its beginning and its commit.
fn both(first: &[&str], second: &[&str]) -> (Result<(), Error>, Result<(), Error>, Vec<String>) {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    conn.execute("CREATE TABLE t (k INT, v INT)", &[]).unwrap();
    conn.execute("INSERT INTO t VALUES (1, 1), (2, 1)", &[]).unwrap();
    let (one, two) = (database.begin().unwrap(), database.begin().unwrap());
    let run = |transaction: &Transaction, statements: &[&str]| {
        for sql in statements {
            transaction.execute(sql, &[]).unwrap();
        }
    };
    run(&one, first);
    run(&two, second);
    let (one, two) = (one.commit(), two.commit());
    (one, two, lines(&conn, "SELECT k, v FROM t ORDER BY k, v"))
}

#[test]
fn write_skew_is_a_conflict() {
    // Each looks whether the other's row is still on call, and takes its own away.
    let (one, two, rows) = both(
        &["SELECT sum(v) FROM t", "UPDATE t SET v = 0 WHERE k = 1"],
        &["SELECT sum(v) FROM t", "UPDATE t SET v = 0 WHERE k = 2"],
    );
    assert!(one.is_ok() && matches!(two, Err(Error::Conflict(_))), "{two:?}");
    assert_eq!(rows, ["1 0", "2 1"]);
}

#[test]
fn write_skew_over_two_tables_is_a_conflict() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    for table in TABLES {
        conn.execute(&format!("CREATE TABLE {table} AS SELECT 1 AS k, 1 AS v"), &[]).unwrap();
    }
    // Each takes the last one away if the other table still has one.
    let (one, two) = (database.begin().unwrap(), database.begin().unwrap());
    one.execute("DELETE FROM t WHERE (SELECT count(*) FROM u) > 0", &[]).unwrap();
    two.execute("DELETE FROM u WHERE (SELECT count(*) FROM t) > 0", &[]).unwrap();
    one.commit().unwrap();
    assert!(matches!(two.commit(), Err(Error::Conflict(_))));
    assert_eq!(lines(&conn, "SELECT count(*), (SELECT count(*) FROM t) FROM u"), ["1 0"]);
}

#[test]
fn what_was_read_behind_a_savepoint_counts_after_going_back() {
    let (one, two, _) = both(
        &["UPDATE t SET v = 5 WHERE k = 1"],
        &["SAVEPOINT s", "SELECT v FROM t WHERE k = 1", "ROLLBACK TO SAVEPOINT s", "UPDATE t SET v = 7 WHERE k = 2"],
    );
    assert!(one.is_ok() && matches!(two, Err(Error::Conflict(_))), "{two:?}");
}

#[test]
fn a_phantom_is_a_conflict() {
    let (one, two, rows) = both(
        &["INSERT INTO t SELECT 10 + count(*), 5 FROM t WHERE v > 3"],
        &["INSERT INTO t SELECT 10 + count(*), 6 FROM t WHERE v > 3"],
    );
    assert!(one.is_ok() && matches!(two, Err(Error::Conflict(_))), "{two:?}");
    assert_eq!(rows, ["1 1", "2 1", "10 5"]);
}

#[test]
fn a_read_that_statistics_answer_is_a_read() {
    for read in
        ["SELECT count(*) FROM t", "SELECT max(v) FROM t", "SELECT (SELECT count(*) FROM t), k FROM t WHERE k = 1"]
    {
        let (one, two, _) = both(&["INSERT INTO t VALUES (9, 9)"], &[read, "INSERT INTO t VALUES (8, 8)"]);
        assert!(one.is_ok() && matches!(two, Err(Error::Conflict(_))), "{read}: {two:?}");
    }
}

#[test]
fn disjoint_rows_are_no_conflict() {
    let (one, two, rows) = both(
        &["UPDATE t SET v = v + 1 WHERE k = 1", "INSERT INTO t VALUES (3, 3)", "DELETE FROM t WHERE k = 3"],
        &["UPDATE t SET v = v + 2 WHERE k = 2", "INSERT INTO t VALUES (4, 4)", "UPDATE t SET v = 5 WHERE k = 4"],
    );
    one.unwrap();
    two.unwrap();
    assert_eq!(rows, ["1 2", "2 3", "4 5"]);
}

#[test]
fn whoever_only_reads_never_conflicts() {
    let (one, two, _) = both(&["DELETE FROM t"], &["SELECT * FROM t", "SELECT sum(v) FROM t"]);
    one.unwrap();
    two.unwrap();
}

#[test]
fn two_definitions_of_one_name_are_a_conflict() {
    for (first, second) in [
        ("CREATE TABLE x (a INT)", "CREATE TABLE x (b INT)"),
        ("CREATE VIEW x AS SELECT 1 AS a", "CREATE TABLE x (b INT)"),
        ("DROP TABLE t", "DROP TABLE t"),
        ("DROP TABLE t", "INSERT INTO t VALUES (7, 7)"),
        ("ALTER TABLE t ADD COLUMN c INT", "INSERT INTO t VALUES (7, 7)"),
        ("INSERT INTO t VALUES (7, 7)", "ALTER TABLE t ADD COLUMN c INT NOT NULL DEFAULT 1"),
        ("ALTER TABLE t RENAME TO u", "ALTER TABLE t RENAME TO w"),
        ("ALTER TABLE t RENAME TO u", "INSERT INTO t VALUES (7, 7)"),
        ("ALTER TABLE t RENAME COLUMN v TO w", "ALTER TABLE t RENAME COLUMN v TO x"),
    ] {
        let (one, two, _) = {
            let database = Database::memory().unwrap();
            let conn = database.connect();
            conn.execute("CREATE TABLE t (k INT, v INT)", &[]).unwrap();
            let (one, two) = (database.begin().unwrap(), database.begin().unwrap());
            one.execute(first, &[]).unwrap();
            two.execute(second, &[]).unwrap();
            (one.commit(), two.commit(), ())
        };
        assert!(one.is_ok() && matches!(two, Err(Error::Conflict(_))), "{first} | {second}: {one:?} {two:?}");
    }
}

#[test]
fn names_that_were_looked_up_are_read() {
    for (first, second) in [
        // Each takes a name that the other one looked up and found free, and leaves it free again.
        (
            ["CREATE TABLE x (a INT)", "ALTER TABLE x RENAME TO y"],
            ["CREATE TABLE y (a INT)", "ALTER TABLE y RENAME TO x"],
        ),
        (["CREATE TABLE x (a INT)", ""], ["CREATE TABLE x (a INT)", "ALTER TABLE x RENAME TO y"]),
        (["CREATE TABLE x (a INT)", ""], ["DROP TABLE IF EXISTS x", "INSERT INTO t VALUES (1, 1)"]),
        (["CREATE TABLE x (a INT)", ""], ["ALTER TABLE IF EXISTS x ADD COLUMN b INT", "INSERT INTO t VALUES (1, 1)"]),
        (["CREATE VIEW x AS SELECT 1 AS a", ""], ["CREATE TABLE x (a INT)", "DROP TABLE x; CREATE TABLE z (a INT)"]),
        (["DROP TABLE t", ""], ["CREATE TABLE IF NOT EXISTS t (k INT)", "CREATE TABLE z (a INT)"]),
        (["CREATE SCHEMA s", ""], ["DROP SCHEMA IF EXISTS s", "CREATE TABLE z (a INT)"]),
        (["CREATE SCHEMA s", ""], ["CREATE SCHEMA s; DROP SCHEMA s", "CREATE TABLE z (a INT)"]),
        (["CREATE TABLE empty.x (a INT)", ""], ["DROP SCHEMA empty", "CREATE SCHEMA empty"]),
    ] {
        let database = Database::memory().unwrap();
        let conn = database.connect();
        conn.execute("CREATE TABLE t (k INT, v INT)", &[]).unwrap();
        conn.execute("CREATE SCHEMA empty", &[]).unwrap();
        let (one, two) = (database.begin().unwrap(), database.begin().unwrap());
        for (transaction, statements) in [(&one, first), (&two, second)] {
            for sql in statements.iter().flat_map(|statements| statements.split(';')).filter(|sql| !sql.is_empty()) {
                transaction.execute(sql, &[]).unwrap();
            }
        }
        let (one, two) = (one.commit(), two.commit());
        assert!(one.is_ok() && matches!(two, Err(Error::Conflict(_))), "{first:?} | {second:?}: {one:?} {two:?}");
    }
}

/// How many rows went in is an answer, too: after the other one they would not have fitted. (History 3550 of the simulation.)
#[test]
fn rows_that_are_gone_again_have_read_the_definition() {
    for statements in [
        ["INSERT INTO t VALUES (1, 1)", "DROP TABLE t"],
        ["INSERT INTO t VALUES (1, 1)", "CREATE OR REPLACE TABLE t (a INT)"],
        ["SAVEPOINT s; INSERT INTO t VALUES (1, 1); ROLLBACK TO s", "CREATE TABLE z (a INT)"],
    ] {
        for other in ["ALTER TABLE t ADD COLUMN c INT", "ALTER TABLE t ADD CHECK (v > 5)"] {
            let database = Database::memory().unwrap();
            let conn = database.connect();
            conn.execute("CREATE TABLE t (k INT, v INT)", &[]).unwrap();
            let transaction = database.begin().unwrap();
            for sql in statements.iter().flat_map(|statements| statements.split("; ")) {
                transaction.execute(sql, &[]).unwrap();
            }
            conn.execute(other, &[]).unwrap();
            let committed = transaction.commit();
            assert!(matches!(committed, Err(Error::Conflict(_))), "{statements:?} | {other}: {committed:?}");
        }
    }
}

/// No row can pass, so the optimizer drops the scan. (History 7988 of the simulation.)
#[test]
fn a_scan_that_is_optimised_away_has_read_the_definition() {
    for filter in ["k IS NULL", "false"] {
        for other in ["ALTER TABLE t DROP COLUMN v", "ALTER TABLE t ALTER COLUMN k DROP NOT NULL"] {
            let database = Database::memory().unwrap();
            let conn = database.connect();
            conn.execute("CREATE TABLE t (k INT NOT NULL, v INT)", &[]).unwrap();
            let transaction = database.begin().unwrap();
            transaction.execute(&format!("CREATE TABLE x AS SELECT v FROM t WHERE {filter}"), &[]).unwrap();
            conn.execute(other, &[]).unwrap();
            let committed = transaction.commit();
            assert!(matches!(committed, Err(Error::Conflict(_))), "{filter} | {other}: {committed:?}");
        }
    }
}

#[test]
fn a_name_that_was_not_found_is_read() {
    let database = Database::memory().unwrap();
    let transaction = database.begin().unwrap();
    transaction.execute("CREATE TABLE t (k INT)", &[]).unwrap();
    transaction.execute("SELECT * FROM x", &[]).unwrap_err();
    database.connect().execute("CREATE TABLE x (a INT)", &[]).unwrap();
    assert!(matches!(transaction.commit(), Err(Error::Conflict(_))));
}

#[test]
fn what_functions_list_is_read() {
    for (list, change) in [
        ("SELECT rows FROM tables()", "INSERT INTO t VALUES (1)"),
        ("SELECT \"table\" FROM tables()", "CREATE TABLE x (a INT)"),
        ("SELECT \"values\" FROM storage('t')", "INSERT INTO t VALUES (1)"),
        ("SHOW STORAGE t", "DROP TABLE t"),
        ("DESCRIBE t", "ALTER TABLE t ADD COLUMN b INT"),
        ("SELECT table_name FROM information_schema.tables", "CREATE VIEW x AS SELECT 1 AS a"),
        ("SELECT schema_name FROM information_schema.schemata", "CREATE SCHEMA s"),
    ] {
        let database = Database::memory().unwrap();
        let conn = database.connect();
        conn.execute("CREATE TABLE t (k INT)", &[]).unwrap();
        conn.execute("CREATE TABLE u (k INT)", &[]).unwrap();
        let transaction = database.begin().unwrap();
        transaction.sql(list).unwrap().collect().unwrap();
        transaction.execute("INSERT INTO u VALUES (1)", &[]).unwrap();
        conn.execute(change, &[]).unwrap();
        assert!(matches!(transaction.commit(), Err(Error::Conflict(_))), "{list} | {change}");
    }
}

#[test]
fn a_schema_that_was_not_found_is_read() {
    let database = Database::memory().unwrap();
    let transaction = database.begin().unwrap();
    transaction.execute("CREATE TABLE t (k INT)", &[]).unwrap();
    transaction.execute("SELECT * FROM nowhere.x", &[]).unwrap_err();
    database.connect().execute("CREATE SCHEMA nowhere", &[]).unwrap();
    assert!(matches!(transaction.commit(), Err(Error::Conflict(_))));
}

/// The plan of a view that is created was taken for a scan of all rows.
#[test]
fn a_new_view_conflicts_with_definitions_and_with_no_row() {
    for (other, conflicts) in [
        ("INSERT INTO t VALUES (3, 3)", false),
        ("UPDATE t SET v = v + 1", false),
        ("DELETE FROM t", false),
        ("DROP TABLE t", true),
        ("ALTER TABLE t ADD COLUMN c INT", true),
        ("ALTER TABLE t RENAME TO x", true),
        ("CREATE OR REPLACE VIEW below AS SELECT 1 AS k", true),
    ] {
        let database = Database::memory().unwrap();
        let conn = database.connect();
        conn.execute("CREATE TABLE t AS SELECT 1 AS k, 1 AS v UNION ALL SELECT 2, 1", &[]).unwrap();
        conn.execute("CREATE VIEW below AS SELECT k FROM t WHERE v > 0", &[]).unwrap();
        let transaction = database.begin().unwrap();
        let view = "CREATE VIEW above AS SELECT t.k FROM t JOIN below ON below.k = (SELECT count(*) FROM t)";
        transaction.execute(view, &[]).unwrap();
        conn.execute(other, &[]).unwrap();
        let committed = transaction.commit();
        assert_eq!(matches!(committed, Err(Error::Conflict(_))), conflicts, "{other}: {committed:?}");
        assert_eq!(committed.is_ok(), !conflicts, "{other}: {committed:?}");
    }
}
