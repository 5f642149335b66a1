//! A file is closed, opened again, opened for reading, opened twice, lost half-way, and damaged.

use crate::answers::{lines, value};
use sinterdb::{Config, Database, Error};
use std::path::{Path, PathBuf};

fn files_in(directory: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Copies of the files as a crash would leave them: this process still holds the lock on the originals.
pub(crate) fn as_after_a_crash(directory: &Path) -> tempfile::TempDir {
    let copies = tempfile::tempdir().unwrap();
    for file in files_in(directory) {
        std::fs::copy(&file, copies.path().join(file.file_name().unwrap())).unwrap();
    }
    copies
}

/// A closed database with a table of several row groups.
fn closed(path: &Path) {
    let database = Database::open(path).unwrap();
    let conn = database.connect();
    conn.execute("CREATE TABLE t AS SELECT value AS id, 'name ' || value AS s FROM generate_series(1, 200000)", &[])
        .unwrap();
    conn.execute("DELETE FROM t WHERE id % 10 = 0", &[]).unwrap();
    database.close().unwrap();
}

fn read_only() -> Config {
    Config::builder().read_only(true)
}

#[test]
fn a_closed_database_is_one_file_and_opens_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("one.sinter");
    closed(&path);
    assert_eq!(files_in(directory.path()), std::slice::from_ref(&path));
    for _ in 0..2 {
        let database = Database::open(&path).unwrap();
        assert!(!database.is_new());
        assert_eq!(database.notes(), [] as [String; 0]);
        let conn = database.connect();
        assert_eq!(lines(&conn, "SELECT count(*), sum(id), max(s) FROM t"), ["180000 18000000000 name 99999"]);
    }
    assert_eq!(files_in(directory.path()), [path]);
}

#[test]
fn what_was_committed_is_replayed_when_nobody_closed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lost.sinter");
    closed(&path);
    let database = Database::open(&path).unwrap();
    let conn = database.connect();
    conn.execute("INSERT INTO t VALUES (-1, 'late')", &[]).unwrap();
    conn.execute("UPDATE t SET s = 'changed' WHERE id = 7", &[]).unwrap();
    conn.execute("DELETE FROM t WHERE id BETWEEN 100 AND 199", &[]).unwrap();
    conn.execute("CREATE TABLE u AS SELECT 5 AS five", &[]).unwrap();
    let copies = as_after_a_crash(directory.path());
    let path = copies.path().join("lost.sinter");
    for config in [read_only(), Config::builder(), Config::builder()] {
        let database = Database::open_with(&path, config).unwrap();
        let conn = database.connect();
        assert_eq!(lines(&conn, "SELECT count(*), min(id) FROM t"), ["179911 -1"]);
        assert_eq!(value(&conn, "SELECT s FROM t WHERE id = 7"), "changed");
        assert_eq!(value(&conn, "SELECT five FROM u"), "5");
    }
}

#[test]
fn a_reader_changes_nothing_and_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("read.sinter");
    closed(&path);
    let before = std::fs::read(&path).unwrap();
    let first = Database::open_with(&path, read_only()).unwrap();
    let second = Database::open_with(&path, read_only()).unwrap();
    for database in [&first, &second] {
        let conn = database.connect();
        assert_eq!(value(&conn, "SELECT count(*) FROM t"), "180000");
        for sql in
            ["INSERT INTO t VALUES (1, 'x')", "DELETE FROM t", "DROP TABLE t", "CREATE TABLE x (a INT)", "CHECKPOINT"]
        {
            let error = conn.execute(sql, &[]).unwrap_err();
            assert!(matches!(error, Error::Unavailable(_)), "{sql}: {error:?}");
            assert!(error.to_string().contains("read-only"), "{sql}: {error}");
        }
    }
    drop((first, second));
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(files_in(directory.path()), [path]);
}

#[test]
fn a_missing_file_is_not_made_by_those_who_only_want_to_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("absent.sinter");
    for config in [read_only(), Config::builder().create(false)] {
        let error = Database::open_with(&path, config).unwrap_err();
        assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
        assert!(error.to_string().contains("absent.sinter"), "{error}");
    }
    assert!(files_in(directory.path()).is_empty());
}

#[test]
fn a_second_opener_is_refused_and_told_who_holds_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("held.sinter");
    let held = Database::open(&path).unwrap();
    for config in [Config::builder(), read_only()] {
        let error = Database::open_with(&path, config).unwrap_err();
        assert!(matches!(error, Error::Unavailable(_)), "{error:?}");
        let message = error.to_string();
        assert!(message.contains("held.sinter"), "{message}");
        assert!(message.contains(&std::process::id().to_string()), "{message}");
    }
    drop(held);
    Database::open(&path).unwrap();
}

#[test]
fn a_closed_database_refuses_its_old_connections() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    conn.execute("CREATE TABLE t (a INT)", &[]).unwrap();
    database.close().unwrap();
    let error = conn.execute("SELECT * FROM t", &[]).unwrap_err();
    assert!(error.to_string().contains("closed"), "{error}");
}

#[test]
fn a_damaged_page_is_an_error_that_names_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("damaged.sinter");
    closed(&path);
    let whole = std::fs::read(&path).unwrap();
    // Far inside the text column's pages.
    let mut damaged = whole.clone();
    let middle = whole.len() / 2;
    damaged[middle] ^= 1;
    std::fs::write(&path, &damaged).unwrap();
    let error = Database::open_with(&path, read_only())
        .and_then(|database| {
            database.connect().sql("SELECT sum(id), max(s), min(s), count(DISTINCT s) FROM t")?.collect()
        })
        .unwrap_err();
    assert!(matches!(error, Error::Damaged(_)), "{error:?}");
    assert!(error.to_string().contains("damaged.sinter"), "{error}");
}

#[test]
fn other_files_and_halves_of_ours_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("other.sinter");
    closed(&path);
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let error = Database::open_with(&path, read_only()).unwrap_err();
    assert!(matches!(error, Error::Damaged(_)), "{error:?}");
    std::fs::write(&path, "id,name\n1,one\n".repeat(1000)).unwrap();
    let error = Database::open(&path).unwrap_err();
    assert!(matches!(error, Error::Damaged(_)), "{error:?}");
    assert!(error.to_string().contains("not a SinterDB database"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap().len(), 14_000, "it was left alone");
}

#[test]
fn an_opening_that_fails_leaves_everything_for_the_next() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lost.sinter");
    let database = Database::open(&path).unwrap();
    let conn = database.connect();
    conn.execute("CREATE TABLE t AS SELECT value AS id, 'name ' || value AS s FROM generate_series(1, 3000)", &[])
        .unwrap();
    conn.execute("CREATE TABLE u AS SELECT 5 AS five", &[]).unwrap();
    conn.execute("CHECKPOINT", &[]).unwrap();
    conn.execute("INSERT INTO t VALUES (-1, 'late')", &[]).unwrap();
    let copies = as_after_a_crash(directory.path());
    let path = copies.path().join("lost.sinter");
    let whole: Vec<(PathBuf, Vec<u8>)> =
        files_in(copies.path()).into_iter().map(|file| (file.clone(), std::fs::read(&file).unwrap())).collect();
    let mut failed = 0;
    for (file, bytes) in &whole {
        for at in (0..bytes.len()).step_by(bytes.len() / 60 + 1) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            std::fs::write(file, &damaged).unwrap();
            if Database::open(&path).is_err() {
                failed += 1;
                let changed: Vec<PathBuf> = files_in(copies.path());
                assert_eq!(changed.len(), whole.len(), "byte {at} of {}: {changed:?}", file.display());
                assert_eq!(std::fs::read(file).unwrap(), damaged, "byte {at} of {}", file.display());
            }
            for file in files_in(copies.path()) {
                std::fs::remove_file(file).unwrap();
            }
            whole.iter().for_each(|(file, bytes)| std::fs::write(file, bytes).unwrap());
        }
    }
    assert!(failed > 0, "no damage was noticed");
    let conn = Database::open(&path).unwrap().connect();
    assert_eq!(lines(&conn, "SELECT count(*), min(id), (SELECT five FROM u) FROM t"), ["3001 -1 5"]);
}
