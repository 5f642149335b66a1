//! Transactions through the front door: from several threads, over a crash, and beside what goes on in the background.

use crate::answers::{lines, value};
use sinterdb::{Config, Database, Error, params};
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn a_transaction_that_is_dropped_was_never_there() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    conn.execute("CREATE TABLE t (a INT)", &[]).unwrap();
    {
        let transaction = database.begin().unwrap();
        transaction.execute("INSERT INTO t VALUES (1)", &[]).unwrap();
        transaction.execute("CREATE TABLE u (a INT)", &[]).unwrap();
    }
    let transaction = database.begin().unwrap();
    transaction.execute("INSERT INTO t VALUES (2)", &[]).unwrap();
    transaction.roll_back();
    assert_eq!(value(&conn, "SELECT count(*) FROM t"), "0");
    assert!(conn.sql("SELECT * FROM u").is_err());
}

#[test]
fn conflicts_are_run_again() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    conn.execute("CREATE TABLE t (a INT)", &[]).unwrap();
    conn.execute("INSERT INTO t VALUES (0)", &[]).unwrap();
    let mut tries = 0;
    database
        .transaction(3, |transaction| {
            tries += 1;
            transaction.execute("UPDATE t SET a = a + 1", &[])?;
            if tries < 3 {
                conn.execute("UPDATE t SET a = a + 10", &[])?;
            }
            Ok(())
        })
        .unwrap();
    assert_eq!((tries, value(&conn, "SELECT a FROM t").as_str()), (3, "21"));
    let gives_up = database.transaction(1, |transaction| {
        transaction.execute("UPDATE t SET a = a + 1", &[])?;
        conn.execute("UPDATE t SET a = a + 10", &[]).map(drop)
    });
    assert!(matches!(gives_up, Err(Error::Conflict(_))), "{gives_up:?}");
    assert_eq!(value(&conn, "SELECT a FROM t"), "41");
}

/// Threads move money between accounts; whoever looks, sees all of it. With a file, so that commits wait for each other's
/// syncs, and with a table that is pressed and checkpointed meanwhile.
#[test]
fn money_that_is_moved_by_many_stays_the_same() {
    const ACCOUNTS: usize = 40;
    const THREADS: usize = 4;
    const MOVES: usize = 60;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("bank.sinter");
    let database = Database::open_with(&path, Config::builder().threads(2)).unwrap();
    let conn = database.connect();
    conn.execute("CREATE TABLE accounts (id INT, balance INT)", &[]).unwrap();
    conn.execute("CREATE TABLE moves (thread INT, n INT)", &[]).unwrap();
    for id in 0..ACCOUNTS {
        conn.execute("INSERT INTO accounts VALUES (?, 100)", params![id as i64]).unwrap();
    }
    let total = (ACCOUNTS * 100).to_string();
    let moved = AtomicUsize::new(0);
    let begin = Barrier::new(THREADS + 1);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (database, begin, moved) = (&database, &begin, &moved);
            scope.spawn(move || {
                begin.wait();
                for n in 0..MOVES {
                    let (from, to) = ((n * 7 + thread * 3) % ACCOUNTS, (n * 11 + thread * 5 + 1) % ACCOUNTS);
                    database
                        .transaction(1000, |transaction| {
                            let change = "UPDATE accounts SET balance = balance + ? WHERE id = ?";
                            transaction.execute(change, params![-1, from as i64])?;
                            transaction.execute(change, params![1, to as i64])?;
                            transaction.execute("INSERT INTO moves VALUES (?, ?)", params![thread as i64, n as i64])?;
                            Ok(())
                        })
                        .unwrap();
                    moved.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        begin.wait();
        while moved.load(Ordering::Relaxed) < THREADS * MOVES {
            assert_eq!(value(&conn, "SELECT sum(balance) FROM accounts"), total);
            conn.execute("CHECKPOINT", &[]).unwrap();
        }
    });
    assert_eq!(value(&conn, "SELECT count(*) FROM moves"), (THREADS * MOVES).to_string());
    let balances = lines(&conn, "SELECT id, balance FROM accounts ORDER BY id");
    drop((conn, database));
    let database = Database::open(&path).unwrap();
    let conn = database.connect();
    assert_eq!(lines(&conn, "SELECT id, balance FROM accounts ORDER BY id"), balances);
    assert_eq!(value(&conn, "SELECT sum(balance) FROM accounts"), total);
}

/// Statements outside of transactions are run again where they conflict, so that nobody hears of it.
#[test]
fn single_statements_on_one_row_all_count() {
    const THREADS: usize = 4;
    const TIMES: usize = 50;
    let database = Database::memory().unwrap();
    let conn = database.connect();
    conn.execute("CREATE TABLE t (a INT)", &[]).unwrap();
    conn.execute("INSERT INTO t VALUES (0)", &[]).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            let conn = database.connect();
            scope.spawn(move || {
                for _ in 0..TIMES {
                    conn.execute("UPDATE t SET a = a + 1", &[]).unwrap();
                }
            });
        }
    });
    assert_eq!(value(&conn, "SELECT a FROM t"), (THREADS * TIMES).to_string());
}

#[test]
fn a_long_reader_sees_one_state() {
    let database = Database::memory().unwrap();
    let conn = database.connect();
    conn.execute("CREATE TABLE t AS SELECT value AS a FROM generate_series(1, 300000)", &[]).unwrap();
    let reader = database.begin_read_only().unwrap();
    let before = reader.sql("SELECT count(*), sum(a) FROM t").unwrap().collect().unwrap();
    // A query that has begun goes on over everything that follows.
    let mut streamed = reader.sql("SELECT a FROM t").unwrap().stream().unwrap();
    let mut rows = streamed.next().unwrap().unwrap().num_rows();
    conn.execute("DELETE FROM t WHERE a % 2 = 0", &[]).unwrap();
    conn.execute("INSERT INTO t SELECT value FROM generate_series(1, 10000)", &[]).unwrap();
    conn.execute("CHECKPOINT", &[]).unwrap();
    conn.execute("DROP TABLE t", &[]).unwrap();
    rows += streamed.map(|batch| batch.unwrap().num_rows()).sum::<usize>();
    assert_eq!(rows, 300_000);
    let after = reader.sql("SELECT count(*), sum(a) FROM t").unwrap().collect().unwrap();
    assert_eq!(before, after);
    reader.commit().unwrap();
}

/// What an old state costs is that state, and not the states between: SHOW MEMORY tells it as `undo`.
#[test]
fn a_long_reader_holds_one_state_however_much_others_change() {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::open(directory.path().join("long.sinter")).unwrap();
    let conn = database.connect();
    // Few enough rows to stay in memory.
    conn.execute("CREATE TABLE t AS SELECT value AS id, value AS v FROM generate_series(1, 200)", &[]).unwrap();
    let undo = || -> u64 { value(&conn, "SELECT bytes FROM memory() WHERE what = 'undo'").parse().unwrap() };
    let reader = database.begin_read_only().unwrap();
    let seen = || reader.sql("SELECT sum(v), count(*) FROM t").unwrap().collect().unwrap();
    let before = seen();
    let state: u64 = value(&conn, "SELECT bytes FROM memory() WHERE what = 'tables'").parse().unwrap();
    let mut most = 0;
    for round in 0..300i64 {
        conn.execute("UPDATE t SET v = v + ? WHERE id % 10 = ?", params![round, round % 10]).unwrap();
        most = most.max(undo());
    }
    // The keeper may hold a state of its own for a moment, to press it.
    assert!(most > 0 && most < 4 * state + 100_000, "{most} bytes for an old state of {state}");
    assert_eq!(seen(), before);
    reader.commit().unwrap();
    let gone = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(25));
        undo() == 0
    });
    assert!(gone, "{} bytes of states that nobody looks at", undo());
}

/// The thread that presses may be at work when the last handle goes.
#[test]
fn a_file_is_free_once_its_last_handle_is_dropped() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("often.sinter");
    for round in 0..40i64 {
        let database = Database::open(&path).unwrap_or_else(|error| panic!("round {round}: {error}"));
        let conn = database.connect();
        conn.execute("CREATE TABLE IF NOT EXISTS t AS SELECT value AS a FROM generate_series(1, 200000)", &[]).unwrap();
        conn.execute("INSERT INTO t SELECT value FROM generate_series(1, 3000)", &[]).unwrap();
    }
    let database = Database::open(&path).unwrap();
    assert_eq!(value(&database.connect(), "SELECT count(*) FROM t"), (200_000 + 40 * 3000).to_string());
}
