//! The disk is full during a load, a commit, a checkpoint, a close: that fails with an error that names the file and the
//! remedy, and nothing of it is done. Reading goes on, and so does everything once there is space again. What is found
//! after the process died or the power went is what was committed.
//!
//! The levels below have their own tests of this; here it is said in SQL. `scripts/inject-sync-errors` does the same with
//! a small disk of the operating system's.

use crate::answers::{lines, rows};
use sinter_storage::RealFileSystem;
use sinter_storage::testing::{CrashingFileSystem, FaultyFileSystem};
use sinterdb::{Config, Connection, Database, Error, Result};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

const PATH: &str = "shop.sinter";

/// Each limit on what the disk holds is this much larger than the one before, and 1000 bytes: from nothing on.
const FACTOR: f64 = 1.35;

/// What is done on a disk without space: statements, as one deed.
struct Deed {
    name: &'static str,
    sql: &'static [&'static str],
}

const DEEDS: &[Deed] = &[
    Deed { name: "INSERT VALUES", sql: &["INSERT INTO t VALUES (-1, repeat('long ', 100000), 1.5)"] },
    Deed {
        name: "load",
        sql: &[
            "INSERT INTO t SELECT value, 'text ' || (value * 48271 % 2147483647), value FROM generate_series(1, 20000)",
        ],
    },
    Deed { name: "CREATE TABLE AS", sql: &["CREATE TABLE made AS SELECT id, s || id AS s, v FROM t"] },
    Deed { name: "INSERT SELECT", sql: &["INSERT INTO u SELECT id, id % 17 FROM t"] },
    Deed { name: "UPDATE", sql: &["UPDATE t SET v = v + 1, s = s || 'x' WHERE id % 3 > 0"] },
    Deed { name: "DELETE", sql: &["DELETE FROM t WHERE id % 2 = 0"] },
    Deed { name: "VACUUM", sql: &["VACUUM"] },
    Deed {
        name: "COMMIT",
        sql: &["BEGIN", "UPDATE t SET v = 0 WHERE id < 1500", "INSERT INTO u SELECT id, 7 FROM t", "COMMIT"],
    },
    Deed {
        name: "definitions",
        sql: &["BEGIN", "CREATE VIEW few AS SELECT * FROM t WHERE id < 3", "DROP TABLE u", "COMMIT"],
    },
    Deed { name: "ALTER TABLE", sql: &["ALTER TABLE t ADD COLUMN w VARCHAR DEFAULT 'new'"] },
    Deed { name: "CHECKPOINT", sql: &["CHECKPOINT"] },
];

impl Deed {
    fn run(&self, conn: &Connection) -> Result<()> {
        let outcome = self.sql.iter().try_for_each(|sql| conn.execute(sql, &[]).map(drop));
        if outcome.is_err() && conn.in_transaction() {
            conn.roll_back().expect("what failed can be taken back");
        }
        outcome
    }
}

/// Leads to row groups in the file, delta batches and deletes in the log.
const START: &[&str] = &[
    "CREATE TABLE t (id BIGINT, s VARCHAR, v DOUBLE)",
    "CREATE TABLE u (id BIGINT, v INT)",
    "INSERT INTO t SELECT value, 'name ' || value, value * 0.5 FROM generate_series(1, 2200)",
    "CHECKPOINT",
    "INSERT INTO t SELECT value, 'late ' || value, value * 0.25 FROM generate_series(2201, 3300)",
    "DELETE FROM t WHERE id % 10 = 0",
    "INSERT INTO u VALUES (1, 1), (2, 2)",
];

fn start(conn: &Connection) {
    for sql in START {
        conn.execute(sql, &[]).unwrap();
    }
}

/// A database in the middle of its life, on a disk that can be full.
struct Life {
    disk: CrashingFileSystem,
    fs: FaultyFileSystem,
    database: Database,
    conn: Connection,
}

fn config(fs: impl sinter_storage::FileSystem + 'static) -> Config {
    Config::builder().threads(1).memory_limit_bytes(64 << 20).background(false).file_system(Arc::new(fs))
}

impl Life {
    fn new(growth_takes_space: bool) -> Life {
        let disk = CrashingFileSystem::new();
        let fs = FaultyFileSystem::on_disk(&disk);
        fs.set_growth_takes_space(growth_takes_space);
        let database = Database::open_with(PATH, config(fs.clone())).unwrap();
        let conn = database.connect();
        start(&conn);
        Life { disk, fs, database, conn }
    }

    /// Closed and opened again: there is no log until the first commit.
    fn reopened(self) -> Life {
        let Life { disk, fs, database, conn } = self;
        database.close().unwrap();
        drop((database, conn));
        let database = Database::open_with(PATH, config(fs.clone())).unwrap();
        let conn = database.connect();
        Life { disk, fs, database, conn }
    }

    /// Checks what is found if the process dies now, and if the power goes.
    fn check_ends(&self, expected: &State, seed: u64, context: &str) {
        for (disk, died) in [(self.disk.copy(), "process"), (self.disk.restart(seed), "machine")] {
            let database = Database::open_with(PATH, config(disk));
            let database = database.unwrap_or_else(|error| panic!("{context}, the {died} died: {error}"));
            assert_eq!(state(&database.connect()), *expected, "{context}, the {died} died");
        }
    }
}

/// All that a database holds: the names of its tables and views, and what queries over each say of all of its values.
pub(crate) type State = BTreeMap<String, String>;

pub(crate) fn state(conn: &Connection) -> State {
    try_state(conn).unwrap_or_else(|error| panic!("{error}"))
}

pub(crate) fn try_state(conn: &Connection) -> Result<State> {
    let names = conn.table_names().into_iter().map(|(_, name)| name);
    names.map(|name| Ok((name.clone(), held(conn, &name)?))).collect()
}

fn held(conn: &Connection, table: &str) -> Result<String> {
    let mut sql = "SELECT count(*), sum(id)".to_owned();
    for column in conn.column_names(table) {
        write!(sql, ", count(DISTINCT {column}), min({column}), max({column})").unwrap();
    }
    Ok(format!("{:?}", rows(conn, &format!("{sql} FROM {table}"))?))
}

/// All but those that need few bytes failed at least once: logs have room for some.
fn check_short(failed: &dyn Fn(&str) -> bool) {
    for deed in DEEDS.iter().filter(|deed| !["DELETE", "definitions", "ALTER TABLE"].contains(&deed.name)) {
        assert!(failed(deed.name), "{} was never short of space", deed.name);
    }
}

/// Bytes that the disk has left, from none on.
fn limits() -> impl Iterator<Item = u64> {
    std::iter::successors(Some(0u64), |bytes| Some(bytes + 1000 + (*bytes as f64 * (FACTOR - 1.0)) as u64))
}

#[track_caller]
fn check_error(error: &Error, context: &str) {
    let message = error.to_string();
    assert!(matches!(error, Error::Io(_)), "{context}: {error:?}");
    assert!(message.contains(PATH) && message.contains("no space left while"), "{context}: {message}");
    assert!(message.contains("free some space and try again"), "{context}: {message}");
}

#[test]
fn a_full_disk_undoes_one_deed_and_nothing_else() {
    let mut failures: BTreeMap<String, u64> = BTreeMap::new();
    for (deed, growth_takes_space) in DEEDS.iter().flat_map(|deed| [(deed, false), (deed, true)]) {
        for bytes in limits() {
            let context = format!("{}, {bytes} bytes free, growth takes space: {growth_takes_space}", deed.name);
            let life = Life::new(growth_takes_space);
            let life = if growth_takes_space { life.reopened() } else { life };
            let before = state(&life.conn);
            // Whoever began before reads on, whatever comes of it.
            let reader = life.database.begin_read_only().unwrap();
            let seen = "SELECT count(*), sum(id), max(s) FROM t";
            let seen_before = format!("{:?}", reader.sql(seen).unwrap().collect().unwrap());
            life.fs.set_bytes_free(Some(bytes));
            let Err(error) = deed.run(&life.conn) else { break };
            check_error(&error, &context);
            *failures.entry(format!("{}: {error}", deed.name)).or_default() += 1;
            assert_eq!(state(&life.conn), before, "{context}: what failed left something behind");
            life.check_ends(&before, bytes, &context);
            life.fs.set_bytes_free(None);
            deed.run(&life.conn).unwrap_or_else(|error| panic!("{context}: there is space again, and yet: {error}"));
            let after = state(&life.conn);
            assert_eq!(format!("{:?}", reader.sql(seen).unwrap().collect().unwrap()), seen_before, "{context}");
            life.check_ends(&after, bytes, &context);
            drop(reader);
            life.database.close().unwrap_or_else(|error| panic!("{context}: {error}"));
            life.check_ends(&after, bytes, &format!("{context}, closed"));
        }
    }
    println!("{failures:#?}");
    check_short(&|name| failures.keys().any(|failure| failure.starts_with(name)));
}

#[test]
fn a_full_disk_at_the_close_loses_nothing() {
    let mut failed = 0;
    for growth_takes_space in [false, true] {
        for bytes in limits() {
            let context = format!("close, {bytes} bytes free, growth takes space: {growth_takes_space}");
            let life = Life::new(growth_takes_space);
            let before = state(&life.conn);
            life.fs.set_bytes_free(Some(bytes));
            let Err(error) = life.database.close() else { break };
            failed += 1;
            check_error(&error, &context);
            life.check_ends(&before, bytes, &context);
            life.fs.set_bytes_free(None);
            // It once did nothing the second time, and said that all was well.
            life.database.close().unwrap_or_else(|error| panic!("{context}, closed again: {error}"));
            assert_eq!(life.disk.files(), [Path::new(PATH)], "{context}: the log is gone");
            let life = life.reopened();
            assert_eq!(state(&life.conn), before, "{context}");
            life.conn.execute("INSERT INTO u VALUES (3, 3)", &[]).unwrap();
            let after = state(&life.conn);
            life.check_ends(&after, bytes, &context);
            life.database.close().unwrap();
            life.check_ends(&after, bytes, &context);
        }
    }
    assert!(failed > 3, "{failed}");
}

/// Files of others, which COPY reads and writes, may be on another disk; the table is on the full one.
#[test]
fn a_copy_onto_a_full_disk_leaves_no_row() {
    let directory = tempfile::tempdir().unwrap();
    let csv = directory.path().join("rows.csv");
    let text: String =
        (0..60_000).map(|n: u64| format!("{n},{:x},{}.5\n", n.wrapping_mul(0x9e37_79b9_7f4a_7c15), n % 1000)).collect();
    std::fs::write(&csv, format!("id,s,v\n{text}")).unwrap();
    let copy = format!("COPY t FROM '{}' (FORMAT csv, HEADER true)", csv.display());
    let life = Life::new(false);
    let before = state(&life.conn);
    let mut failed = 0;
    for bytes in limits() {
        life.fs.set_bytes_free(Some(bytes));
        let Err(error) = life.conn.execute(&copy, &[]) else { break };
        failed += 1;
        check_error(&error, &format!("COPY, {bytes} bytes free"));
        assert_eq!(state(&life.conn), before, "COPY, {bytes} bytes free");
        life.fs.set_bytes_free(None);
        // One after the other on the same database: what a copy had written before it failed is given back.
        life.check_ends(&before, bytes, &format!("COPY, {bytes} bytes free"));
    }
    assert!(failed > 5, "{failed}");
    life.fs.set_bytes_free(None);
    assert_eq!(lines(&life.conn, "SELECT count(*) FROM t"), ["62970"]);
    let after = state(&life.conn);
    life.check_ends(&after, 1, "COPY");
    life.conn.execute("CHECKPOINT", &[]).unwrap();
    let bytes = life.disk.bytes(PATH.as_ref()).len();
    assert!(bytes < 8 << 20, "what failed still takes space: {bytes} bytes");
}

/// Several write while the disk fills up and is made larger, again and again, with pressing and checkpoints beside them.
#[test]
fn writers_go_on_whenever_there_is_space() {
    let disk = CrashingFileSystem::new();
    let fs = FaultyFileSystem::on_disk(&disk);
    let database = Database::open_with(PATH, config(fs.clone()).background(true)).unwrap();
    database.connect().execute("CREATE TABLE t (writer INT, n INT, s VARCHAR)", &[]).unwrap();
    let done: Vec<(u64, u64)> = std::thread::scope(|scope| {
        let write = |writer: u64| {
            let (database, fs) = (&database, &fs);
            move || {
                let conn = database.connect();
                let (mut full, mut in_a_row, mut n) = (0, 0, 0);
                while n < 60 {
                    let sql = format!(
                        "INSERT INTO t SELECT {writer}, {n}, 'text ' || (value * 48271 % 2147483647) FROM generate_series(1, {})",
                        if n % 7 == 0 { 5000 } else { 20 }
                    );
                    let outcome = conn.execute(&sql, &[]);
                    if writer == 0 && n % 10 == 3 {
                        let _ = conn.execute("CHECKPOINT", &[]);
                    }
                    match outcome {
                        Ok(_) => (in_a_row, n) = (0, n + 1),
                        Err(Error::Io(message)) => {
                            assert!(message.contains("no space left"), "{message}");
                            (full, in_a_row) = (full + 1, in_a_row + 1);
                            fs.set_bytes_free(Some(20_000 << in_a_row.min(8)));
                        }
                        Err(error) => panic!("{sql}: {error}"),
                    }
                }
                (n, full)
            }
        };
        fs.set_bytes_free(Some(50_000));
        let writers: Vec<_> = (0..3).map(|writer| scope.spawn(write(writer))).collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    println!("statements and full disks by writer: {done:?}");
    assert!(done.iter().map(|(_, full)| full).sum::<u64>() > 5, "{done:?}");
    let sql = "SELECT writer, n, count(*) FROM t GROUP BY writer, n ORDER BY writer, n";
    let row = |writer: u64, n: u64| format!("{writer} {n} {}", if n.is_multiple_of(7) { 5000 } else { 20 });
    let expected: Vec<String> = (0..3).flat_map(|writer| (0..60).map(move |n| row(writer, n))).collect();
    assert_eq!(lines(&database.connect(), sql), expected);
    for disk in [disk.copy(), disk.restart(7)] {
        let database = Database::open_with(PATH, config(disk)).unwrap();
        assert_eq!(lines(&database.connect(), sql), expected);
    }
    fs.set_bytes_free(None);
    database.close().unwrap();
    let database = Database::open_with(PATH, config(disk.restart(8))).unwrap();
    assert_eq!(lines(&database.connect(), sql), expected);
}

/// With the path of a small disk, which this test fills and empties: see `scripts/inject-sync-errors`.
const SMALL_DISK_VARIABLE: &str = "SINTER_SMALL_DISK";

/// Not run by itself: it needs a disk of its own.
#[test]
fn a_small_disk_of_the_operating_system_undoes_one_deed_and_nothing_else() {
    let Ok(directory) = std::env::var(SMALL_DISK_VARIABLE) else { return };
    let (directory, elsewhere) = (Path::new(&directory), tempfile::tempdir().unwrap());
    let path = directory.join(PATH);
    let mut failures: BTreeMap<&str, u64> = BTreeMap::new();
    for deed in DEEDS {
        for bytes in limits() {
            let context = format!("{}, {bytes} bytes free", deed.name);
            let database = Database::open_with(&path, config(RealFileSystem)).unwrap();
            let conn = database.connect();
            start(&conn);
            let before = state(&conn);
            let check_end = |expected: &State| {
                for file in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
                    if file.extension().is_none_or(|extension| extension != "ballast") {
                        std::fs::copy(&file, elsewhere.path().join(file.file_name().unwrap())).unwrap();
                    }
                }
                let copy = Database::open_with(elsewhere.path().join(PATH), config(RealFileSystem)).unwrap();
                assert_eq!(state(&copy.connect()), *expected, "{context}");
                drop(copy);
                std::fs::read_dir(&elsewhere)
                    .unwrap()
                    .for_each(|entry| std::fs::remove_file(entry.unwrap().path()).unwrap());
            };
            let ballast = directory.join("all.ballast");
            fill(&ballast, bytes);
            let outcome = deed.run(&conn);
            if let Err(error) = &outcome {
                check_error(error, &context);
                *failures.entry(deed.name).or_default() += 1;
                assert_eq!(state(&conn), before, "{context}: what failed left something behind");
                check_end(&before);
            }
            std::fs::remove_file(ballast).unwrap();
            let has_failed = outcome.is_err();
            if has_failed {
                deed.run(&conn).unwrap_or_else(|error| panic!("{context}: there is space again, and yet: {error}"));
            }
            let after = state(&conn);
            check_end(&after);
            database.close().unwrap();
            check_end(&after);
            drop((conn, database));
            std::fs::remove_file(&path).unwrap();
            if !has_failed {
                break;
            }
        }
    }
    println!("no space left during {failures:?}");
    check_short(&|name| failures.contains_key(name));
}

/// Writes a file until the disk holds only so many bytes more, in blocks of the disk's.
fn fill(path: &Path, bytes_left: u64) {
    let mut file = std::fs::File::create(path).unwrap();
    let (block, mut bytes) = ([7; 4096], 0);
    while let Ok(written) = std::io::Write::write(&mut file, &block) {
        bytes += written as u64;
    }
    file.set_len(bytes.saturating_sub(bytes_left)).unwrap();
}
