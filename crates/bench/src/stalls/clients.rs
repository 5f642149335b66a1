//! What clients do: commit single rows, run transactions on keys of their own, or sync a file without a database.

use super::ROWS_PER_CLIENT;
use super::stall::Commit;
use crate::Failure;
use sinterdb::{Connection, Database, Error, params};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Commits single rows, one after the other.
pub(super) fn insert_rows(connection: &Connection, goes_on: impl Fn() -> bool) -> Result<Vec<Commit>, Failure> {
    let sql = "INSERT INTO client_rows VALUES (0, ?, 1, 'a text of a client that commits')";
    let mut commits = Vec::new();
    let mut key = ROWS_PER_CLIENT;
    while goes_on() {
        key += 1;
        commits.push(Commit::of(|| connection.execute(sql, params![key]))?.0);
    }
    Ok(commits)
}

/// What a client with keys of its own did.
pub(super) struct Client {
    pub(super) commits: Vec<Commit>,
    pub(super) aborted: usize,
}

/// Transactions that update a row of the client's own by its key, and insert one.
pub(super) fn transactions(database: &Database, client: i64, goes_on: &dyn Fn() -> bool) -> Result<Client, Failure> {
    let (mut commits, mut aborted) = (Vec::new(), 0);
    for round in 0.. {
        if !goes_on() {
            break;
        }
        let key = round % ROWS_PER_CLIENT + 1;
        let (commit, outcome) = Commit::of(|| {
            let work = || -> sinterdb::Result<()> {
                let transaction = database.begin()?;
                let update = "UPDATE client_rows SET amount = amount + 1 WHERE client = ? AND id = ?";
                transaction.execute(update, params![client, key])?;
                let insert = "INSERT INTO client_rows VALUES (?, ?, 0, 'a text of a client that commits')";
                transaction.execute(insert, params![client, ROWS_PER_CLIENT + 1 + round])?;
                transaction.commit()
            };
            match work() {
                Ok(()) => Ok(true),
                Err(Error::Conflict(_)) => Ok(false),
                Err(error) => Err(error),
            }
        })?;
        match outcome {
            true => commits.push(commit),
            false => aborted += 1,
        }
    }
    Ok(Client { commits, aborted })
}

/// Writes 128 bytes to a file that has its length already and syncs it, again and again: what a commit asks of the disk,
/// without a database.
pub(super) fn syncs(folder: &Path, goes_on: impl Fn() -> bool) -> Result<Vec<Duration>, Failure> {
    const FILE_BYTES: u64 = 16 << 20;
    let path = folder.join(format!("syncs-{}", std::process::id()));
    let file = File::create(&path)?;
    for at in (0..FILE_BYTES).step_by(1 << 20) {
        file.write_all_at(&[0; 1 << 20], at)?;
    }
    file.sync_all()?;
    let mut times = Vec::new();
    let mut at = 0;
    while goes_on() {
        let begun = Instant::now();
        file.write_all_at(&[1; 128], at)?;
        file.sync_data()?;
        times.push(begun.elapsed());
        at = (at + 128) % FILE_BYTES;
    }
    std::fs::remove_file(&path)?;
    Ok(times)
}
