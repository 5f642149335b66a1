//! How long a client that commits single rows waits, at worst, while TPC-H is loaded into the same database and one
//! checkpoint follows the other; and how many transactions of clients with keys of their own abort.
//!
//! A commit at `synchronous = full` waits for the disk, so a disk that is slow under this load is seen here whatever the
//! database does. The same load therefore runs once beside a thread that writes and syncs a small file of its own and
//! has nothing to do with the database. And a stall is divided: a file system below the database notes which calls took
//! long, and the scheduler's account says for how long the client was running, or could have run while others did.

mod clients;
mod loading;
mod stall;

use crate::timed_disk::TimedDisk;
use crate::{Failure, machine};
use clients::{insert_rows, syncs, transactions};
use loading::{Load, Opened, beside_load};
use serde_json::{Value, json};
use sinter_stores_benchmark::Latencies;
use stall::{Commit, Stall};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What a client may have to wait.
const GOAL: Duration = Duration::from_millis(50);

/// So many of the longest stalls are looked into.
const STALLS_SHOWN: usize = 8;

/// Rows of each client that it updates.
const ROWS_PER_CLIENT: i64 = 1000;

/// What is to be measured.
#[derive(Debug, Clone, clap::Args)]
pub struct Settings {
    /// Folder with TPC-H's tables as Parquet (`sinter-bench tpch-gen`).
    #[arg(long, value_name = "DIR")]
    pub data: PathBuf,
    /// Folder for the databases; what is made there is removed.
    #[arg(long, value_name = "DIR")]
    pub folder: PathBuf,
    /// Clients on disjoint keys.
    #[arg(long, default_value_t = 8)]
    pub clients: usize,
    /// Threads of the load.
    #[arg(long)]
    pub threads: Option<usize>,
    /// How long the parts without a load last.
    #[arg(long, default_value_t = 10.0)]
    pub idle_seconds: f64,
}

/// One part of the measurement.
struct Part {
    name: &'static str,
    latencies: Latencies,
    seconds: f64,
    load: Option<Load>,
    aborted: Option<usize>,
    stalls: Vec<Stall>,
}

/// Measures all parts and returns them as text and as JSON.
///
/// # Errors
/// Where something fails, or rows are missing at the end.
pub fn measure(settings: &Settings) -> Result<(String, Value), Failure> {
    let machine = machine::describe();
    let idle = Duration::from_secs_f64(settings.idle_seconds);
    let until = |end: Instant| move || Instant::now() < end;
    let mut parts = Vec::new();

    let begun = Instant::now();
    let times = syncs(&settings.folder, until(begun + idle))?;
    parts.push(Part::of_disk("disk alone, fdatasync", times, begun, None));

    let database = Opened::new(settings, 1)?;
    let begun = Instant::now();
    let commits = insert_rows(&database.database.connect(), until(begun + idle))?;
    parts.push(Part::of_commits("database alone, 1 client", vec![commits], begun, None, &database.disk));
    database.close()?;

    let database = Opened::new(settings, 1)?;
    let begun = Instant::now();
    let (load, times) = beside_load(settings, &database, 1, |_, is_loading| syncs(&settings.folder, is_loading))?;
    parts.push(Part::of_disk("beside the load, fdatasync", times.into_iter().flatten().collect(), begun, Some(load)));
    database.close()?;

    let database = Opened::new(settings, 1)?;
    let begun = Instant::now();
    let (load, commits) =
        beside_load(settings, &database, 1, |_, is_loading| insert_rows(&database.database.connect(), is_loading))?;
    let rows = commits.iter().map(Vec::len).sum::<usize>() as i64;
    parts.push(Part::of_commits("beside the load, 1 client", commits, begun, Some(load), &database.disk));
    database.check(rows + ROWS_PER_CLIENT, None)?;
    database.close()?;

    let database = Opened::new(settings, settings.clients)?;
    let begun = Instant::now();
    let (load, clients) = beside_load(settings, &database, settings.clients, |client, is_loading| {
        transactions(&database.database, client as i64, is_loading)
    })?;
    let aborted = clients.iter().map(|client| client.aborted).sum();
    let amounts: i64 = clients.iter().map(|client| client.commits.len() as i64).sum();
    let commits = clients.into_iter().map(|client| client.commits).collect();
    let mut part = Part::of_commits("beside the load, disjoint keys", commits, begun, Some(load), &database.disk);
    part.aborted = Some(aborted);
    parts.push(part);
    let rows = settings.clients as i64 * ROWS_PER_CLIENT + amounts;
    database.check(rows, Some(amounts))?;
    database.close()?;

    let record = json!({
        "suite": "stalls",
        "machine": machine,
        "commit": machine::commit(),
        "versions": machine::versions(&["sinterdb"]),
        "data": machine::shown(&settings.data),
        "clients": settings.clients,
        "goal_ms": GOAL.as_millis() as u64,
        "answers": "same",
        "parts": parts.iter().map(Part::record).collect::<Vec<_>>(),
    });
    Ok((table(&parts), record))
}

impl Part {
    fn of_disk(name: &'static str, times: Vec<Duration>, begun: Instant, load: Option<Load>) -> Part {
        let (latencies, seconds) = (Latencies::of([times]), begun.elapsed().as_secs_f64());
        Part { name, latencies, seconds, load, aborted: None, stalls: Vec::new() }
    }

    fn of_commits(
        name: &'static str,
        clients: Vec<Vec<Commit>>,
        begun: Instant,
        load: Option<Load>,
        disk: &TimedDisk,
    ) -> Part {
        let seconds = begun.elapsed().as_secs_f64();
        let latencies = Latencies::of(clients.iter().map(|commits| commits.iter().map(Commit::time).collect()));
        let mut longest: Vec<Commit> = clients.into_iter().flatten().collect();
        longest.sort_by_key(|commit| std::cmp::Reverse(commit.time()));
        longest.truncate(STALLS_SHOWN);
        let calls = disk.calls();
        let stalls = longest.iter().map(|commit| commit.divided(begun, &calls)).collect();
        Part { name, latencies, seconds, load, aborted: None, stalls }
    }

    /// Aborted ones of all that were tried.
    fn abort_share(&self) -> Option<f64> {
        let aborted = self.aborted?;
        Some(aborted as f64 / (aborted + self.latencies.count()).max(1) as f64)
    }

    fn record(&self) -> Value {
        let mut record = json!({
            "part": self.name,
            "seconds": self.seconds,
            "latency": self.latencies.record(),
            "longer_than_goal": self.latencies.longer_than(GOAL),
        });
        if let Some(load) = self.load {
            record["load_s"] = load.seconds.into();
            record["checkpoints"] = load.checkpoints.into();
            record["checkpoint_s"] = load.checkpoint_seconds.into();
        }
        if let Some(aborted) = self.aborted {
            record["aborted"] = aborted.into();
            record["aborted_share"] = self.abort_share().into();
        }
        if !self.stalls.is_empty() {
            record["longest"] = self.stalls.iter().map(Stall::record).collect();
        }
        record
    }
}

fn table(parts: &[Part]) -> String {
    let mut text = format!(
        "{:<31} {:>8} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>9}\n",
        "", "calls", "a second", "p50, ms", "p99", "p99.9", "longest", "> 50 ms", "aborted"
    );
    for part in parts {
        let Part { name, latencies, seconds, .. } = part;
        text += &format!(
            "{name:<31} {:>8} {:>9.0} {:>8.2} {:>8.2} {:>8.2} {:>8.1} {:>8} {:>9}\n",
            latencies.count(),
            latencies.count() as f64 / part.load.map_or(*seconds, |load| load.seconds),
            latencies.ms_at(0.5),
            latencies.ms_at(0.99),
            latencies.ms_at(0.999),
            latencies.ms_at(1.0),
            latencies.longer_than(GOAL),
            part.abort_share().map_or_else(|| "-".to_owned(), |share| format!("{:.3} %", share * 100.0)),
        );
    }
    for part in parts {
        if let Some(load) = part.load {
            text += &format!(
                "{}: the load took {:.1} s, with {} checkpoints of {:.1} s together\n",
                part.name, load.seconds, load.checkpoints, load.checkpoint_seconds
            );
        }
        if !part.stalls.is_empty() {
            text += &format!("{}, the longest:\n", part.name);
            part.stalls.iter().for_each(|stall| text += &stall.text());
        }
    }
    text
}
