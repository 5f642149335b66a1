//! A sync fails: the commit that waited for it is not reported as done and is not seen, later ones are refused with the
//! reason, reading goes on, and what an opening finds is what was durable. At every sync of a life in turn.
//!
//! Here the disk is a model of one. `scripts/inject-sync-errors` lets the kernel fail the calls of a real process.

use crate::full_disk::{State, state, try_state};
use crate::kill::say;
use sinter_storage::testing::{Call, CrashingFileSystem, DiskFault, FaultyFileSystem, Trigger};
use sinter_storage::{FileSystem, RealFileSystem};
use sinterdb::{Config, Connection, Database, Error, Result};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

const PATH: &str = "shop.sinter";

/// A life: each is one commit, or none.
const STATEMENTS: &[&str] = &[
    "CREATE TABLE t (id BIGINT, s VARCHAR)",
    "CREATE TABLE u (id BIGINT, v INT)",
    "INSERT INTO t VALUES (-1, 'first')",
    "INSERT INTO t SELECT value, 'name ' || value FROM generate_series(1, 3000)",
    "INSERT INTO u VALUES (1, 1)",
    "CHECKPOINT",
    "UPDATE t SET s = s || '!' WHERE id % 3 > 0",
    "INSERT INTO u SELECT id, 5 FROM t",
    "DELETE FROM t WHERE id % 2 = 0",
    "ALTER TABLE t ADD COLUMN c INT DEFAULT 7",
    "INSERT INTO t SELECT value, 'more ' || value, value FROM generate_series(3001, 6000)",
    "CHECKPOINT",
    "DROP TABLE u",
    "INSERT INTO t VALUES (-2, 'second', 2)",
    "CREATE TABLE u AS SELECT id FROM t WHERE id < 100",
    "CHECKPOINT",
    "INSERT INTO u VALUES (-3)",
];

fn config(fs: Arc<dyn FileSystem>) -> Config {
    Config::builder().threads(1).memory_limit_bytes(64 << 20).background(false).file_system(fs)
}

/// What there is after so many statements.
fn states() -> Vec<State> {
    let conn = Database::memory_with(config(Arc::new(RealFileSystem))).unwrap().connect();
    let after = |sql: &&str| {
        conn.execute(sql, &[]).unwrap();
        state(&conn)
    };
    std::iter::once(State::new()).chain(STATEMENTS.iter().map(after)).collect()
}

/// Runs statements from the n-th on; returns how many are done by then, and the error that ended it.
fn run_from(conn: &Connection, done: usize) -> (usize, Result<()>) {
    for (index, sql) in STATEMENTS.iter().enumerate().skip(done) {
        if let Err(error) = conn.execute(sql, &[]) {
            return (index, Err(error));
        }
    }
    (STATEMENTS.len(), Ok(()))
}

/// Which of the states it may be is found: that after `done` statements, or after the one in doubt. Returns how many.
#[track_caller]
fn found(conn: &Connection, states: &[State], done: usize, context: &str) -> usize {
    let found = state(conn);
    let in_doubt = (done + 1).min(STATEMENTS.len());
    match (found == states[done], found == states[in_doubt]) {
        (true, _) => done,
        (_, true) => in_doubt,
        _ => panic!("{context}: neither what was done nor one more: {found:?}"),
    }
}

#[track_caller]
fn check_refused(outcome: Result<u64>, context: &str) {
    match outcome {
        Ok(_) => panic!("{context}: another commit was let in"),
        Err(error) => {
            let message = error.to_string();
            assert!(matches!(error, Error::Unavailable(_)), "{context}: {error:?}");
            assert!(
                message.contains(PATH) && message.contains("refuses further changes, because"),
                "{context}: {message}"
            );
            assert!(message.contains("reopen the database"), "{context}: {message}");
        }
    }
}

/// Reading goes on after a failed sync, and sees what is durable. Only where the disk has thrown away what it could not
/// write, a page may be gone that held rows in another form; that is said, and the opening finds them in the log.
#[track_caller]
fn check_reading(conn: &Connection, expected: &State, fault: DiskFault, context: &str) {
    match try_state(conn) {
        Ok(found) => assert_eq!(found, *expected, "{context}"),
        Err(Error::Damaged(message)) if fault == DiskFault::EvictedSync => assert!(message.contains(PATH), "{message}"),
        Err(error) => panic!("{context}: {error}"),
    }
}

#[test]
fn after_a_failed_sync_nothing_more_is_promised_and_nothing_durable_is_lost() {
    let states = states();
    let mut failed: BTreeMap<String, u64> = BTreeMap::new();
    for (fault, step) in [(DiskFault::LostSync, 1), (DiskFault::EvictedSync, 2), (DiskFault::IoError, 3)] {
        for index in (0..).step_by(step) {
            let context = format!("sync {index}: {fault:?}");
            let disk = CrashingFileSystem::new();
            let fs = FaultyFileSystem::on_disk(&disk);
            fs.plan(Trigger::at(index).of(Call::Sync), fault);
            let database = match Database::open_with(PATH, config(Arc::new(fs.clone()))) {
                Ok(database) => database,
                Err(error) => {
                    assert!(error.to_string().contains(PATH), "{context}: {error}");
                    *failed.entry("opening".to_owned()).or_default() += 1;
                    let database = Database::open_with(PATH, config(Arc::new(fs))).expect("the disk is well again");
                    assert_eq!(run_from(&database.connect(), 0).0, STATEMENTS.len(), "{context}");
                    continue;
                }
            };
            let conn = database.connect();
            let (done, outcome) = run_from(&conn, 0);
            match &outcome {
                Ok(()) => {
                    // The rest happens at the close.
                    let closed = database.close();
                    if fs.injected().is_empty() {
                        break;
                    }
                    let error = closed.expect_err("a close that could not sync says so");
                    assert!(error.to_string().contains(PATH), "{context}: {error}");
                    *failed.entry("close".to_owned()).or_default() += 1;
                }
                Err(error) => {
                    // It may come as the reason why nothing can be changed any more.
                    assert!(matches!(error, Error::Io(_) | Error::Unavailable(_)), "{context}: {error:?}");
                    let message = error.to_string();
                    assert!(message.contains(PATH) && message.contains("Input/output error"), "{context}: {message}");
                    *failed.entry(STATEMENTS[done].chars().take(20).collect()).or_default() += 1;
                    check_reading(&conn, &states[done], fault, &format!("{context} of {}", STATEMENTS[done]));
                    for sql in ["INSERT INTO t (id, s) VALUES (99, 'x')", "CREATE TABLE w (a INT)", "CHECKPOINT"] {
                        // Before there is a table, there is nothing to insert into.
                        if done > 0 || !sql.contains("INTO t") {
                            check_refused(conn.execute(sql, &[]), &context);
                        }
                    }
                    let transaction = database.begin().unwrap();
                    transaction
                        .execute("CREATE TABLE x AS SELECT 1 AS a", &[])
                        .and_then(|_| transaction.commit())
                        .unwrap_err();
                    check_reading(&conn, &states[done], fault, &context);
                }
            }
            for (ended, disk) in [("the process died", disk.copy()), ("the power went", disk.restart(index))] {
                let context = format!("{context}, {ended}");
                let database = Database::open_with(PATH, config(Arc::new(disk)));
                let database = database.unwrap_or_else(|error| panic!("{context}: {error}"));
                found(&database.connect(), &states, done, &context);
            }
            // The same process opens it again, on the disk that has forgotten what it could not sync.
            drop((conn, database));
            let database = Database::open_with(PATH, config(Arc::new(fs.clone())));
            let database = database.unwrap_or_else(|error| panic!("{context}, opened again: {error}"));
            let conn = database.connect();
            let done = found(&conn, &states, done, &context);
            let (done, outcome) = run_from(&conn, done);
            outcome.unwrap_or_else(|error| panic!("{context}, opened again: {}: {error}", STATEMENTS[done]));
            database.close().unwrap();
            let database = Database::open_with(PATH, config(Arc::new(disk.restart(index)))).unwrap();
            assert_eq!(state(&database.connect()), states[STATEMENTS.len()], "{context}, at the end");
        }
    }
    println!("syncs that failed: {failed:#?}");
    assert!(failed.values().sum::<u64>() > 40, "{failed:?}");
    for during in ["CHECKPOINT", "close", "INSERT INTO t VALUES"] {
        assert!(failed.keys().any(|key| key.starts_with(during)), "no sync failed during {during}: {failed:?}");
    }
}

/// Runs the test with the kernel's help: see `scripts/inject-sync-errors`.
const STRACE_VARIABLE: &str = "SINTER_STRACE";
/// For the child: the database.
const CHILD_VARIABLE: &str = "SINTER_SYNC_CHILD";

/// Not run by itself: it needs strace, and the right to use it.
#[test]
fn the_kernel_fails_a_sync_of_a_real_process() {
    if std::env::var(STRACE_VARIABLE).is_err() {
        return;
    }
    let states = states();
    let mut failed: BTreeMap<String, u64> = BTreeMap::new();
    for call in ["fdatasync", "fsync"] {
        for when in 1.. {
            let context = format!("{call} number {when}");
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join(PATH);
            let output = Command::new("strace")
                .args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={call}")])
                .args(["-e", &format!("inject={call}:error=EIO:when={when}")])
                .arg(std::env::current_exe().unwrap())
                .args(["--exact", "failed_syncs::child", "--nocapture", "--test-threads=1"])
                .env(CHILD_VARIABLE, &path)
                .output()
                .expect("strace can be run");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{context}: {text}\n{}", String::from_utf8_lossy(&output.stderr));
            let said = |word: &str| text.lines().filter_map(|line| line.strip_prefix(word)).collect::<Vec<_>>();
            let done = said("done ").len();
            let errors = said("failed ");
            let [error] = errors[..] else {
                assert!(errors.is_empty(), "{context}: {text}");
                println!("{context}: nothing failed any more");
                break;
            };
            println!("{context}, after {done} statements: {error}");
            assert!(error.contains(PATH) && error.contains("Input/output error"), "{context}: {error}");
            let place = if text.contains("opened") { STATEMENTS.get(done).unwrap_or(&"close") } else { "opening" };
            *failed.entry(place.chars().take(20).collect()).or_default() += 1;
            if text.contains("opened") && done < STATEMENTS.len() {
                assert_eq!(said("sees "), [format!("{:?}", states[done])], "{context}");
                let [refused] = said("refused ")[..] else { panic!("{context}: {text}") };
                assert!(refused.contains("refuses further changes, because"), "{context}: {refused}");
            }
            let database = Database::open_with(&path, config(Arc::new(RealFileSystem)));
            let database = database.unwrap_or_else(|error| panic!("{context}: {error}"));
            let conn = database.connect();
            let (_, outcome) = run_from(&conn, found(&conn, &states, done, &context));
            outcome.unwrap_or_else(|error| panic!("{context}, opened again: {error}"));
            database.close().unwrap();
            drop((conn, database));
            let database = Database::open_with(&path, config(Arc::new(RealFileSystem))).unwrap();
            assert_eq!(state(&database.connect()), states[STATEMENTS.len()], "{context}, at the end");
        }
    }
    println!("syncs that failed: {failed:#?}");
    assert!(failed.values().sum::<u64>() > 20, "{failed:?}");
}

/// Not a test of its own: the process whose syncs fail.
#[test]
fn child() {
    let Ok(path) = std::env::var(CHILD_VARIABLE) else { return };
    let opened = Database::open_with(Path::new(&path), config(Arc::new(RealFileSystem)));
    let database = match opened {
        Ok(database) => database,
        Err(error) => return say(&format!("failed {error}")),
    };
    say("opened");
    let conn = database.connect();
    for sql in STATEMENTS {
        match conn.execute(sql, &[]) {
            Ok(_) => say(&format!("done {sql}")),
            Err(error) => {
                say(&format!("failed {error}"));
                say(&format!("sees {:?}", state(&conn)));
                match conn.execute("CREATE TABLE w (a INT)", &[]) {
                    Ok(_) => say("accepted"),
                    Err(error) => say(&format!("refused {error}")),
                }
                return;
            }
        }
    }
    if let Err(error) = database.close() {
        say(&format!("failed {error}"));
    }
}
