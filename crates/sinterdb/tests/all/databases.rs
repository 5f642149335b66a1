//! ATTACH, DETACH and BACKUP: several databases in one process.

use crate::answers::{lines, value};
use sinterdb::{Config, Database, Error};

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
