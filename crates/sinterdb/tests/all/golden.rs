//! A file written by version 1 of the format always opens, and answers as it did on the day that it was written.
//!
//! `golden/v1-all-types.sinter` holds every type with extremes and NULL, every scheme, several row groups and deleted
//! rows, as `golden/v1-all-types.sql` made them; `golden/v1-all-types.answers` holds the queries below with their answers.
//! None is ever written again: a later format gets files of its own.

use crate::answers::lines;
use sinter_codec::SCHEMES;
use sinterdb::{Config, Connection, Database};
use std::fmt::Write;
use std::path::{Path, PathBuf};

const QUERIES: &[&str] = &[
    "SELECT \"table\", rows FROM tables() ORDER BY 1",
    "SELECT * FROM numbers ORDER BY id",
    "SELECT * FROM texts_and_times ORDER BY id",
    "SELECT * FROM nested ORDER BY id",
    "SELECT count(*), sum(id), min(id), max(id), count(some), sum(some), min(word), max(word) FROM groups",
    "SELECT * FROM groups WHERE id IN (1, 2, 131072, 131073, 262144, 262145, 300000) ORDER BY id",
    "SELECT word, count(*), sum(id) FROM groups GROUP BY word ORDER BY word",
];

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/v1-all-types.sinter")
}

fn answers(conn: &Connection) -> String {
    let mut out = String::new();
    let mut ask = |sql: &str| {
        writeln!(out, "{sql}").unwrap();
        lines(conn, sql).iter().for_each(|line| writeln!(out, "    {line}").unwrap());
    };
    QUERIES.iter().copied().for_each(&mut ask);
    for entry in SCHEMES.iter().take_while(|entry| entry.tag <= 11) {
        let name = entry.name;
        ask(&format!("SELECT * FROM scheme_{name} WHERE id < 4 OR id > 1998 ORDER BY id"));
        ask(&format!(
            "SELECT count(*), sum(id), sum(CAST(v AS DECIMAL(30, 3))), min(v), max(v), count(v) FROM scheme_{name}"
        ));
    }
    out
}

#[test]
fn the_golden_file_of_version_1_opens_and_answers_as_ever() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("golden.sinter");
    std::fs::copy(golden(), &path).unwrap();
    let expected = std::fs::read_to_string(golden().with_extension("answers")).unwrap();
    let database = Database::open_with(&path, Config::builder().read_only(true)).unwrap();
    assert_eq!(answers(&database.connect()), expected);
    drop(database);
    // It can be written on, and answers the same from what this version writes.
    let database = Database::open(&path).unwrap();
    let conn = database.connect();
    conn.execute("INSERT INTO groups SELECT * FROM groups", &[]).unwrap();
    conn.execute("DELETE FROM groups WHERE id > 0", &[]).unwrap();
    conn.execute("DROP TABLE groups", &[]).unwrap();
    create_groups(&conn);
    conn.execute("CHECKPOINT", &[]).unwrap();
    database.close().unwrap();
    drop(database);
    assert_eq!(answers(&Database::open(&path).unwrap().connect()), expected);
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

/// The script still makes what the file holds.
#[test]
fn the_golden_script_makes_the_same_answers() {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::open(directory.path().join("anew.sinter")).unwrap();
    let conn = database.connect();
    let script = std::fs::read_to_string(golden().with_extension("sql")).unwrap();
    for statement in conn.statements(&script).unwrap() {
        conn.run(&statement, &[]).unwrap_or_else(|error| panic!("{}: {error}", statement.text));
    }
    let expected = std::fs::read_to_string(golden().with_extension("answers")).unwrap();
    assert_eq!(answers(&conn), expected);
    for entry in SCHEMES.iter().take_while(|entry| entry.tag <= 11) {
        let name = entry.name;
        let scheme = lines(&conn, &format!("SELECT scheme FROM storage('scheme_{name}') WHERE \"column\" = 'v'"));
        assert!(scheme[0].contains(name), "{name} gave way to {scheme:?}");
    }
}
