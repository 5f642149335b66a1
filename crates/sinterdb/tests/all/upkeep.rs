//! What is done for a database beside the rows: pressing, checkpoints, vacuums and the close. One of them does not end
//! another that does not need it, whoever asked for it can stop it, and what failed can be tried again.

use crate::answers::value;
use crate::full_disk::{State, state};
use crate::simulation::beside::{Beside, Interruption};
use sinter_storage::FileSystem;
use sinter_storage::testing::{Call, CrashingFileSystem, DiskFault, FaultyFileSystem, Trigger};
use sinterdb::{Config, Connection, Database, Error};
use std::path::Path;
use std::sync::Arc;

const PATH: &str = "shop.sinter";

fn config(fs: Arc<dyn FileSystem>) -> Config {
    Config::builder().threads(1).memory_limit_bytes(64 << 20).background(false).file_system(fs)
}

fn open(fs: impl FileSystem + 'static) -> Database {
    Database::open_with(PATH, config(Arc::new(fs))).unwrap()
}

/// Row groups of which little is alive, and delta batches.
fn start(conn: &Connection) {
    for sql in [
        "CREATE TABLE t (id BIGINT, s VARCHAR)",
        "CREATE TABLE u (id BIGINT, s VARCHAR)",
        "INSERT INTO t SELECT value, 'name ' || value FROM generate_series(1, 3000)",
        "INSERT INTO u SELECT value, 'name ' || value FROM generate_series(1, 3000)",
        "CHECKPOINT",
        "DELETE FROM t WHERE id % 10 > 0",
        "DELETE FROM u WHERE id % 10 > 0",
        "INSERT INTO t VALUES (-1, 'late')",
        "INSERT INTO u VALUES (-1, 'late')",
    ] {
        conn.execute(sql, &[]).unwrap();
    }
}

/// Whether the file has everything, and the log nothing, when the process dies now.
fn is_all_in_the_file(disk: &CrashingFileSystem, expected: &State) -> bool {
    let database = open(disk.copy());
    assert_eq!(state(&database.connect()), *expected);
    !database.notes().iter().any(|note| note.contains("were replayed"))
}

/// A page that cannot be written while rows are pressed once kept the checkpoint, which needs no pressing, from being made:
/// the log grew, and a close left it behind.
#[test]
fn a_checkpoint_and_a_close_do_not_need_the_pressing() {
    for closes in [false, true] {
        let disk = CrashingFileSystem::new();
        let fs = FaultyFileSystem::on_disk(&disk);
        let database = open(fs.clone());
        let conn = database.connect();
        start(&conn);
        let before = state(&conn);
        assert!(!is_all_in_the_file(&disk, &before));
        fs.plan(Trigger::next().of(Call::Write).ending_with(".sinter"), DiskFault::IoError);
        let outcome = if closes { database.close() } else { conn.execute("CHECKPOINT", &[]).map(drop) };
        let error = outcome.expect_err("the error of the pressing is told");
        assert!(matches!(&error, Error::Io(message) if message.contains("writing a page")), "{error}");
        assert!(is_all_in_the_file(&disk, &before), "closes: {closes}");
        if closes {
            assert_eq!(disk.files(), [Path::new(PATH)], "the log is gone");
        }
        // There is nothing more to be done, or it is done now.
        database.close().unwrap();
        assert!(is_all_in_the_file(&disk, &before), "closes: {closes}");
    }
}

/// A page that cannot be read while rows are pressed is as a damaged one: nothing else has to wait for it.
#[test]
fn a_page_that_the_disk_does_not_give_ends_no_checkpoint() {
    let disk = CrashingFileSystem::new();
    let database = open(disk.clone());
    start(&database.connect());
    let before = state(&database.connect());
    for index in 0.. {
        // As after the end of the process: nothing is in the pool.
        let copy = disk.copy();
        let fs = FaultyFileSystem::on_disk(&copy);
        let other = open(fs.clone());
        fs.plan(Trigger::at(index).of(Call::Read).ending_with(".sinter"), DiskFault::IoError);
        for sql in ["CHECKPOINT", "VACUUM"] {
            other.connect().execute(sql, &[]).unwrap_or_else(|error| panic!("read {index}, {sql}: {error}"));
        }
        other.close().unwrap_or_else(|error| panic!("read {index}: {error}"));
        assert!(is_all_in_the_file(&copy, &before), "read {index}");
        if fs.injected().is_empty() {
            assert!(index > 1, "{index} reads");
            return;
        }
    }
}

/// At each write of a page in turn, as when Ctrl-C is pressed then.
#[test]
fn a_checkpoint_and_a_vacuum_end_when_they_are_interrupted() {
    for sql in ["CHECKPOINT", "VACUUM"] {
        let (mut cancelled, mut in_a_row) = (0, 0);
        for writes_left in 1.. {
            let disk = CrashingFileSystem::new();
            let fs = Arc::new(Beside::new(disk.clone()));
            let database = Database::open_with(PATH, config(fs.clone())).unwrap();
            let conn = database.connect();
            start(&conn);
            let before = state(&conn);
            let interrupt = conn.interrupt();
            let (told, is_told) = std::sync::mpsc::channel();
            let work = Box::new(move || {
                interrupt.interrupt();
                told.send(()).unwrap();
            });
            fs.interrupt(Interruption { writes_left, work });
            let outcome = conn.execute(sql, &[]);
            fs.leave_alone();
            match outcome {
                Err(Error::Cancelled) => (cancelled, in_a_row) = (cancelled + 1, 0),
                Err(error) => panic!("{sql}, write {writes_left}: {error}"),
                // The last writes come when nothing is left that could be given up.
                Ok(_) => in_a_row += 1,
            }
            assert_eq!(state(&conn), before, "{sql}, write {writes_left}");
            conn.execute(sql, &[]).unwrap();
            assert!(is_all_in_the_file(&disk, &before), "{sql}, write {writes_left}");
            if is_told.try_recv().is_err() {
                println!("{sql}: {cancelled} of {writes_left} were given up, the last {in_a_row} not");
                assert!(cancelled > 0, "{sql}");
                break;
            }
        }
    }
}

/// One vacuum waits for another, and can be interrupted while it waits.
#[test]
fn one_vacuum_waits_for_another() {
    let fs = Arc::new(Beside::new(CrashingFileSystem::new()));
    let database = Database::open_with(PATH, config(fs.clone())).unwrap();
    let conn = database.connect();
    start(&conn);
    let before = state(&conn);
    let other = database.connect();
    // In the midst of the first vacuum, which goes on when the other has ended.
    let work = Box::new(move || {
        let interrupt = other.interrupt();
        let waiting = std::thread::spawn(move || other.execute("VACUUM", &[]));
        while !waiting.is_finished() {
            interrupt.interrupt();
            std::thread::yield_now();
        }
        assert!(matches!(waiting.join().unwrap(), Err(Error::Cancelled)));
    });
    fs.interrupt(Interruption { writes_left: 1, work });
    conn.execute("VACUUM", &[]).unwrap();
    assert_eq!(state(&conn), before);
    database.close().unwrap();
}

/// An attached database that could not be closed is closed by the next call.
#[test]
fn a_close_that_failed_can_be_tried_again() {
    for attached in [false, true] {
        let disk = CrashingFileSystem::new();
        let fs = FaultyFileSystem::on_disk(&disk);
        let database = open(fs.clone());
        let conn = database.connect();
        start(&conn);
        conn.execute("ATTACH 'other.sinter' AS other", &[]).unwrap();
        conn.execute("CREATE TABLE other.t AS SELECT 7 AS a", &[]).unwrap();
        let before = state(&conn);
        let name = if attached { "other.sinter" } else { PATH };
        fs.plan(Trigger::next().of(Call::SetLength).ending_with(name).for_ever(), DiskFault::IoError);
        database.close().unwrap_err();
        fs.clear_plan();
        assert!(matches!(conn.execute("SELECT 1", &[]), Err(Error::Unavailable(_))));
        database.close().unwrap();
        let mut files = disk.files();
        files.sort();
        assert_eq!(files, [Path::new("other.sinter"), Path::new(PATH)], "the logs are gone");
        assert_eq!(state(&open(disk.clone()).connect()), before);
        let other = Database::open_with("other.sinter", config(Arc::new(disk))).unwrap();
        assert_eq!(value(&other.connect(), "SELECT a FROM t"), "7");
    }
}
