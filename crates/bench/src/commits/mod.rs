//! Single-row commits: how many a second, by one engine, at one level of durability.
//!
//! A process measures one engine once and prints what it found as JSON; `python -m benchmarks commits` starts them, runs
//! them once more under strace, and puts them side by side. Clients are threads. Each inserts rows of its own, or updates
//! its own rows by their key, one row a commit, as fast as it can. A row has about 100 bytes: a key, an amount, and 84
//! characters that do not repeat. At the end the database is closed, opened again, and its rows are counted and their
//! amounts added up.

mod floor;
#[cfg(feature = "peers")]
mod redb;
mod sinter;
#[cfg(feature = "peers")]
mod sqlite;

use crate::accounts::Written;
use crate::{Failure, machine};
use serde_json::{Value, json};
use sinter_stores_benchmark::Latencies;
use std::path::Path;
use std::sync::Barrier;
use std::time::{Duration, Instant};

/// Rows that are there before the measurement begins; updates go round among them.
pub const ROWS_BEFORE: i64 = 8000;

/// Inserted keys of a client begin at this times its number, counted from one.
const KEYS_PER_CLIENT: i64 = 1 << 40;

/// How much is in a text of a row.
const TEXT_CHARACTERS: usize = 84;

/// A file that does not exist; looking for it marks where a trace of system calls is to begin and to end.
const MARK: &str = "/measured-from-here-to-here";

/// A row.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    key: i64,
    amount: i64,
    text: String,
}

/// What a commit promises, in our words; each engine offers some of these under its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Level {
    /// It survives a power loss.
    Full,
    /// A power loss takes back the last ones, and never damages the database.
    Normal,
    /// A power loss may damage the database.
    Off,
}

/// What clients do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Work {
    /// Each commit inserts a row.
    Insert,
    /// Each commit changes amount and text of the row with a given key.
    Update,
}

/// What is to be measured.
#[derive(Debug, Clone, clap::Args)]
pub struct Settings {
    /// sinter, disk (a write and a sync to a file: what nobody can beat); with --features peers also sqlite and redb.
    #[arg(long)]
    pub engine: String,
    /// What a commit promises.
    #[arg(long, value_enum)]
    pub level: Level,
    /// What clients do.
    #[arg(long, value_enum, default_value = "insert")]
    pub work: Work,
    /// Clients that commit at once.
    #[arg(long, default_value_t = 1)]
    pub clients: usize,
    /// How long.
    #[arg(long, default_value_t = 5.0)]
    pub seconds: f64,
    /// Ends after so many commits of each client instead.
    #[arg(long)]
    pub commits: Option<u64>,
    /// An empty folder for the database.
    #[arg(long, value_name = "DIR")]
    pub folder: std::path::PathBuf,
}

/// A database that is open.
trait Engine: Sync {
    /// Makes the table and puts rows into it.
    fn fill(&self, rows: &[Row]) -> Result<(), Failure>;
    /// Runs `body` with a client that has a connection of its own.
    fn with_client(&self, body: &mut Body<'_>) -> Result<(), Failure>;
    /// How many rows there are, and the sum of their amounts.
    fn totals(&self) -> Result<(i64, i64), Failure>;
    fn close(self: Box<Self>) -> Result<(), Failure>;
}

type Body<'a> = dyn FnMut(&mut dyn Client) -> Result<(), Failure> + 'a;

/// Who commits. Each call is one commit.
trait Client {
    fn insert(&mut self, row: &Row) -> Result<(), Failure>;
    fn update(&mut self, row: &Row) -> Result<(), Failure>;
}

fn open(engine: &str, folder: &Path, level: Level) -> Result<Box<dyn Engine>, Failure> {
    match engine {
        "sinter" => sinter::open(folder, level),
        "disk" => floor::open(folder, level),
        #[cfg(feature = "peers")]
        "sqlite" => sqlite::open(folder, level),
        #[cfg(feature = "peers")]
        "redb" => redb::open(folder, level),
        _ => Err(format!("there is no engine '{engine}' in this build").into()),
    }
}

/// Measures one engine.
///
/// # Errors
/// Where the engine fails, or does not have this level, or has other rows at the end than were committed.
pub fn measure(settings: &Settings) -> Result<Value, Failure> {
    let mut engine = open(&settings.engine, &settings.folder, settings.level)?;
    let texts = Texts(0);
    let before: Vec<Row> = (0..ROWS_BEFORE).map(|key| texts.row(key, 0)).collect();
    engine.fill(&before)?;
    // As after a pause: whatever is done beside the commits begins from a clean file.
    engine.close()?;
    engine = open(&settings.engine, &settings.folder, settings.level)?;

    let start = Barrier::new(settings.clients + 1);
    let (written, begun, clients) = std::thread::scope(|scope| -> Result<_, Failure> {
        let engine = &*engine;
        let start = &start;
        let threads: Vec<_> = (0..settings.clients)
            .map(|client| scope.spawn(move || commit_rows(engine, settings, client, start)))
            .collect();
        // Once when all have connected, and once to set off.
        start.wait();
        let written = Written::so_far(&settings.folder);
        mark();
        start.wait();
        let begun = Instant::now();
        let clients = threads.into_iter().map(|thread| thread.join().map_err(|_| "a client panicked")?);
        Ok((written, begun, clients.collect::<Result<Vec<Committed>, Failure>>()?))
    })?;
    let elapsed = begun.elapsed();
    mark();
    let written_after = Written::so_far(&settings.folder);
    engine.close()?;
    let written_closed = Written::so_far(&settings.folder);

    let inserted: i64 = clients.iter().map(|client| client.rows).sum();
    let amounts: i64 = clients.iter().map(|client| client.amounts).sum();
    let engine = open(&settings.engine, &settings.folder, settings.level)?;
    let (found, wanted) = (engine.totals()?, (ROWS_BEFORE + inserted, amounts));
    engine.close()?;
    if found != wanted {
        return Err(format!("(rows, sum) are {found:?} after the commits, and should be {wanted:?}").into());
    }

    let latencies = Latencies::of(clients.into_iter().map(|client| client.times));
    let commits = latencies.count() as f64;
    let per_commit = |of: fn(Written) -> u64, until: Option<Written>| {
        Some((of(until?).saturating_sub(of(written?))) as f64 / commits.max(1.0))
    };
    Ok(json!({
        "engine": settings.engine,
        "commits": latencies.count(),
        "seconds": elapsed.as_secs_f64(),
        "commits_per_second": commits / elapsed.as_secs_f64(),
        "latency": latencies.record(),
        "bytes_by_calls_per_commit": per_commit(|written| written.by_calls, written_after),
        "bytes_on_device_per_commit": per_commit(|written| written.on_device, written_after),
        "bytes_on_device_per_commit_until_closed": per_commit(|written| written.on_device, written_closed),
        "answer": "same",
        "versions": machine::versions(&["sinterdb", "redb", "rusqlite", "libsqlite3-sys"]),
    }))
}

/// What one client has done.
#[derive(Debug, Default)]
struct Committed {
    times: Vec<Duration>,
    /// Rows more than before.
    rows: i64,
    /// What its rows add up to.
    amounts: i64,
}

/// One client, from its connection to its last commit. It comes to `start` twice, even if it cannot connect.
fn commit_rows(engine: &dyn Engine, settings: &Settings, number: usize, start: &Barrier) -> Result<Committed, Failure> {
    let mut committed = Committed::default();
    let mut has_started = false;
    let outcome = engine.with_client(&mut |client| {
        start.wait();
        start.wait();
        has_started = true;
        commit_rows_of(client, settings, number, &mut committed)
    });
    if !has_started {
        start.wait();
        start.wait();
    }
    outcome.map(|()| committed)
}

fn commit_rows_of(
    client: &mut dyn Client,
    settings: &Settings,
    number: usize,
    committed: &mut Committed,
) -> Result<(), Failure> {
    let end = Instant::now() + Duration::from_secs_f64(settings.seconds);
    let texts = Texts(1 + number as u64);
    let (number, clients) = (number as i64, settings.clients as i64);
    // How many of the rows that are there are this client's.
    let own = (ROWS_BEFORE - number + clients - 1) / clients;
    for count in 0.. {
        let is_over = settings.commits.map_or_else(|| Instant::now() >= end, |commits| count as u64 >= commits);
        if is_over {
            break;
        }
        let row = match settings.work {
            Work::Insert => texts.row((number + 1) * KEYS_PER_CLIENT + count, count + 1),
            Work::Update => texts.row(number + count % own * clients, count / own + 1),
        };
        let begun = Instant::now();
        match settings.work {
            Work::Insert => client.insert(&row)?,
            Work::Update => client.update(&row)?,
        }
        committed.times.push(begun.elapsed());
        match settings.work {
            Work::Insert => {
                committed.rows += 1;
                committed.amounts += row.amount;
            }
            // The amount of a row grows by one each time round.
            Work::Update => committed.amounts += 1,
        }
    }
    Ok(())
}

/// Asks for a file that is not there, so that a trace of system calls shows where we are.
fn mark() {
    let _ = std::fs::metadata(MARK);
}

/// Rows with texts that no scheme can make much smaller: a xorshift generator (Marsaglia, 2003), as hexadecimal digits.
struct Texts(u64);

impl Texts {
    fn row(&self, key: i64, amount: i64) -> Row {
        let mut text = String::with_capacity(TEXT_CHARACTERS + 16);
        let mixed =
            (key as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (amount as u64).wrapping_mul(0xd6e8_feb8_6659_fd93);
        let mut state = (mixed ^ (self.0 << 48)).max(1);
        while text.len() < TEXT_CHARACTERS {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            text += &format!("{state:016x}");
        }
        text.truncate(TEXT_CHARACTERS);
        Row { key, amount, text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn engines() -> Vec<&'static str> {
        if cfg!(feature = "peers") { vec!["sinter", "disk", "sqlite", "redb"] } else { vec!["sinter", "disk"] }
    }

    #[test]
    fn every_engine_keeps_what_its_clients_committed() {
        for engine in engines() {
            for work in [Work::Insert, Work::Update] {
                let folder =
                    std::env::temp_dir().join(format!("sinter-commits-{engine}-{work:?}-{}", std::process::id()));
                std::fs::create_dir_all(&folder).unwrap();
                let settings = Settings {
                    engine: engine.to_owned(),
                    level: Level::Off,
                    work,
                    clients: 3,
                    seconds: 0.0,
                    commits: Some(7),
                    folder: folder.clone(),
                };
                let measured = measure(&settings).unwrap();
                assert_eq!(measured["commits"], 21, "{engine}, {work:?}");
                std::fs::remove_dir_all(&folder).unwrap();
            }
        }
    }

    #[test]
    fn texts_differ_and_have_their_length() {
        let texts = Texts(1);
        let (one, other, again) = (texts.row(1, 0), texts.row(2, 0), texts.row(1, 1));
        assert_eq!([&one, &other, &again].map(|row| row.text.len()), [TEXT_CHARACTERS; 3]);
        assert!(one.text != other.text && one.text != again.text);
    }
}
