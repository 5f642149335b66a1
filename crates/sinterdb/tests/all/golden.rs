//! A file that any version wrote always opens, and answers as it did on the day that it was written.
//!
//! `golden/NAME.sql` made `golden/NAME.sinter`; `golden/NAME.answers` holds the queries below with their answers. None is
//! ever written again: a later format gets files of its own.
//!
//! - `v1-all-types`: every type with extremes and NULL, every scheme, several row groups and deleted rows;
//! - `v2-living-tables`: schemas, views, rules, altered tables, layouts, rows in the table's root.

use crate::answers::lines;
use sinter_codec::SCHEMES;
use sinterdb::{Config, Connection, Database};
use std::fmt::Write;
use std::path::{Path, PathBuf};

const V1: &str = "v1-all-types";
const V2: &str = "v2-living-tables";

const V1_QUERIES: &[&str] = &[
    "SELECT \"table\", rows FROM tables() ORDER BY 1",
    "SELECT * FROM numbers ORDER BY id",
    "SELECT * FROM texts_and_times ORDER BY id",
    "SELECT * FROM nested ORDER BY id",
    "SELECT count(*), sum(id), min(id), max(id), count(some), sum(some), min(word), max(word) FROM groups",
    "SELECT * FROM groups WHERE id IN (1, 2, 131072, 131073, 262144, 262145, 300000) ORDER BY id",
    "SELECT word, count(*), sum(id) FROM groups GROUP BY word ORDER BY word",
];

const V2_QUERIES: &[&str] = &[
    "SELECT \"schema\", \"table\", rows FROM tables() ORDER BY 1, 2",
    "SELECT * FROM s.checked ORDER BY id",
    "DESCRIBE s.checked",
    "SELECT count(*), sum(a), min(a), max(a), min(bb), max(bb), sum(e), count(e), min(d), max(d) FROM wide",
    "SELECT * FROM wide WHERE a IN (10, 100, 102, 103, 131072, 199999, 300001) ORDER BY a",
    "DESCRIBE wide",
    "SELECT * FROM s.\"Odd name\"",
    "SELECT * FROM late ORDER BY a",
    "SELECT * FROM s.words ORDER BY word",
];

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden").join(name).with_extension("sinter")
}

fn answers(conn: &Connection, name: &str) -> String {
    let mut out = String::new();
    let mut ask = |sql: &str| {
        writeln!(out, "{sql}").unwrap();
        lines(conn, sql).iter().for_each(|line| writeln!(out, "    {line}").unwrap());
    };
    if name == V2 {
        V2_QUERIES.iter().copied().for_each(&mut ask);
        return out;
    }
    V1_QUERIES.iter().copied().for_each(&mut ask);
    for entry in SCHEMES.iter().take_while(|entry| entry.tag <= 11) {
        let name = entry.name;
        ask(&format!("SELECT * FROM scheme_{name} WHERE id < 4 OR id > 1998 ORDER BY id"));
        ask(&format!(
            "SELECT count(*), sum(id), sum(CAST(v AS DECIMAL(30, 3))), min(v), max(v), count(v) FROM scheme_{name}"
        ));
    }
    out
}

fn expected(name: &str) -> String {
    std::fs::read_to_string(golden(name).with_extension("answers")).unwrap()
}

/// A copy of a golden file, opened by this version: only read, then written on by `change`, then opened again.
fn opens_and_answers_as_ever(name: &str, change: impl FnOnce(&Connection)) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("golden.sinter");
    std::fs::copy(golden(name), &path).unwrap();
    let database = Database::open_with(&path, Config::builder().read_only(true)).unwrap();
    assert_eq!(answers(&database.connect(), name), expected(name));
    drop(database);
    let database = Database::open(&path).unwrap();
    let conn = database.connect();
    change(&conn);
    conn.execute("CHECKPOINT", &[]).unwrap();
    drop(conn);
    database.close().unwrap();
    drop(database);
    assert_eq!(answers(&Database::open(&path).unwrap().connect(), name), expected(name));
}

/// Runs the script that made a golden file.
fn made_anew(name: &str, path: &Path) -> Connection {
    let conn = Database::open(path).unwrap().connect();
    let script = std::fs::read_to_string(golden(name).with_extension("sql")).unwrap();
    for statement in conn.statements(&script).unwrap() {
        conn.run(&statement, &[]).unwrap_or_else(|error| panic!("{}: {error}", statement.text));
    }
    conn
}

#[test]
fn the_golden_file_of_version_1_opens_and_answers_as_ever() {
    opens_and_answers_as_ever(V1, |conn| {
        conn.execute("INSERT INTO groups SELECT * FROM groups", &[]).unwrap();
        conn.execute("DELETE FROM groups WHERE id > 0", &[]).unwrap();
        conn.execute("DROP TABLE groups", &[]).unwrap();
        create_groups(conn);
    });
}

#[test]
fn the_golden_file_of_version_2_opens_and_answers_as_ever() {
    opens_and_answers_as_ever(V2, |conn| {
        for sql in [
            "ALTER TABLE wide RENAME COLUMN bb TO b",
            "ALTER TABLE wide RENAME COLUMN b TO bb",
            "UPDATE wide SET e = e",
            "INSERT INTO s.checked SELECT id + 10, word FROM s.checked",
            "DELETE FROM s.checked WHERE id > 10",
        ] {
            conn.execute(sql, &[]).unwrap();
        }
    });
}

/// Three row groups, a few rows of which are deleted.
fn create_groups(conn: &Connection) {
    for sql in [
        "CREATE TABLE groups (id BIGINT NOT NULL, some INT, word VARCHAR)",
        "INSERT INTO groups SELECT value, CASE WHEN value / 1000 % 3 = 0 THEN value / 1000 END, 'word ' || (value / 70000) \
         FROM generate_series(1, 300000)",
        "DELETE FROM groups WHERE id IN (2, 131073) OR id BETWEEN 5000 AND 5100",
    ] {
        conn.execute(sql, &[]).unwrap();
    }
}

/// The scripts still make what the files hold.
#[test]
fn the_golden_scripts_make_the_same_answers() {
    let directory = tempfile::tempdir().unwrap();
    for name in [V1, V2] {
        let conn = made_anew(name, &directory.path().join(name));
        assert_eq!(answers(&conn, name), expected(name));
        if name == V1 {
            for entry in SCHEMES.iter().take_while(|entry| entry.tag <= 11) {
                let name = entry.name;
                let sql = format!("SELECT scheme FROM storage('scheme_{name}') WHERE \"column\" = 'v'");
                let scheme = lines(&conn, &sql);
                assert!(scheme[0].contains(name), "{name} gave way to {scheme:?}");
            }
        }
    }
}
