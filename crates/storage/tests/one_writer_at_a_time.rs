//! A second writer, in this process or another, is told who holds the file. Readers share; a lock dies with its
//! process.

#[allow(dead_code, reason = "it uses little of it")]
#[path = "all/support/mod.rs"]
mod support;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use sinter_storage::{Error, Options, RealFileSystem, RecordTag, Recovery, Result, Store};
use support::record;

const HOLD: &str = "SINTER_TEST_HOLD";

fn open(path: &Path, read_only: bool) -> Result<(Store, Recovery)> {
    Store::open(Arc::new(RealFileSystem), path, Options { read_only, ..Options::default() })
}

fn holders_told(path: &Path, read_only: bool) -> Vec<u32> {
    match open(path, read_only) {
        Err(Error::Locked { holders, .. }) => holders,
        other => panic!("not refused: {other:?}"),
    }
}

/// Another process, which has the database open until it is killed: this test binary, running only [`holder`].
fn other_process(path: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "holder", "--nocapture"])
        .env(HOLD, path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("held")), "the other process could not open the database");
    child
}

#[test]
fn holder() {
    let Some(path) = std::env::var_os(HOLD) else { return };
    let (store, _) = open(Path::new(&path), false).unwrap();
    store.commit(&[record(RecordTag::ROWS_INSERTED, 1, b"from the other process".to_vec())], &[]).unwrap();
    println!("\nheld");
    std::io::stdout().flush().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(60));
}

#[test]
fn another_process_is_named_and_its_lock_dies_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shop.sinter");
    let mut child = other_process(&path);
    assert_eq!(holders_told(&path, false), [child.id()]);
    assert_eq!(holders_told(&path, true), [child.id()]);
    let message = open(&path, false).unwrap_err().to_string();
    assert!(
        message.ends_with(&format!(
            "shop.sinter: in use by process {}; open it with --readonly when nobody writes, \
             go through `sinter serve`, or read a BACKUP",
            child.id()
        )),
        "{message}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    let (_, recovery) = open(&path, false).unwrap();
    let transactions: Vec<_> = recovery.transactions.map(Result::unwrap).collect();
    assert_eq!(transactions[0].records[0].payload, b"from the other process");
}

#[test]
fn another_handle_of_this_process_is_refused_until_the_close() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shop.sinter");
    let (store, _) = open(&path, false).unwrap();
    assert_eq!(holders_told(&path, false), [std::process::id()]);
    let message = open(&path, false).unwrap_err().to_string();
    assert!(message.contains(&format!("another handle of this process ({})", std::process::id())), "{message}");
    store.close(|_| unreachable!("nothing to write")).unwrap();
    assert!(matches!(store.commit(&[], &[]), Err(Error::Closed { .. })));
    open(&path, false).unwrap();
}

#[test]
fn readers_share_and_keep_writers_out() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("shop.sinter");
    drop(open(&path, false).unwrap());
    let (first, _) = open(&path, true).unwrap();
    let (_second, _) = open(&path, true).unwrap();
    assert_eq!(holders_told(&path, false), [std::process::id()]);
    assert!(matches!(first.commit(&[], &[]), Err(Error::ReadOnly { .. })));
}
