//! Four queries of TPC-H with segments decoded whole as they are fetched, and vector by vector as they are needed: time, and
//! lines missed in a cache of the size of a core's L2. After table 3 of Zukowski et al., ICDE 2006.
//!
//! All is in memory, with one thread. *Page-wise* is `SET sinter.decompression = 'page'`: a row group's segments are decoded
//! into memory when a scan comes to them, each time anew, and the engine reads plain values. Their pages were larger than
//! the caches of their machines; a segment has 131,072 values, a megabyte
//! where each takes eight bytes.
//!
//! Misses are counted by callgrind's model of a processor, whose last level has the size of an L2 here: a process runs the
//! query once, another one three times, and half of what they differ by is that of one run.

use crate::throttled::{QUERIES, build, lines};
use crate::{Failure, machine};
use serde_json::{Value, json};
use sinterdb::{Config, Connection, Database};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A query of table 3, with the paper's seconds and millions of L2 misses: page-wise, vector-wise.
const PAPER: [(&str, [f64; 2], [f64; 2]); 4] = [
    ("q03", [7.1, 6.2], [58.70, 21.00]),
    ("q04", [2.3, 1.8], [14.78, 0.10]),
    ("q06", [6.0, 4.6], [64.91, 0.38]),
    ("q18", [21.5, 14.3], [195.32, 4.44]),
];

/// As `SET sinter.decompression` names them.
const WAYS: [&str; 2] = ["page", "vector"];

/// What the last level of callgrind's model is: bytes, ways, bytes of a line.
const LAST_LEVEL: &str = "1048576,16,64";

/// What is to be measured.
#[derive(Debug, Clone, clap::Args)]
pub struct Settings {
    /// Scale factor.
    #[arg(long, default_value_t = 1.0)]
    pub sf: f64,
    /// Folder for the database; what is made there is removed.
    #[arg(long, value_name = "DIR")]
    pub folder: PathBuf,
    /// Timed runs of which the median counts.
    #[arg(long, default_value_t = 11)]
    pub runs: usize,
}

/// What valgrind runs.
#[derive(Debug, Clone, clap::Args)]
pub struct ProbedSettings {
    /// The database.
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
    /// q03 and so on.
    #[arg(long)]
    query: String,
    /// page or vector.
    #[arg(long)]
    way: String,
    /// How often it runs.
    #[arg(long)]
    runs: usize,
}

/// Measures all, and returns it as text and as JSON.
///
/// # Errors
/// Where something fails, valgrind included, or the two ways answer differently.
pub fn measure(settings: &Settings) -> Result<(String, Value), Failure> {
    let machine = machine::describe();
    std::fs::create_dir_all(&settings.folder)?;
    let file = settings.folder.join(format!("page-wise-{}", std::process::id()));
    build(&file, "dsm", "auto", settings.sf)?;
    let mut text = format!(
        "TPC-H, scale factor {}, 1 thread, from memory, medians of {} runs; the paper's in brackets\n\n\
         {:<6} {:>13} {:>13} {:>16} {:>15} {:>15} {:>18}\n",
        settings.sf,
        settings.runs,
        "query",
        "page, ms",
        "vector, ms",
        "page/vector",
        "page, misses",
        "vector, misses",
        "page/vector"
    );
    let mut results = Vec::new();
    for (name, paper_s, paper_misses) in PAPER {
        let [page, vector] = times(&file, name, settings.runs)?.map(|time| time.as_secs_f64() * 1e3);
        eprintln!("{name}: {page:.1} and {vector:.1} ms");
        let mut misses = [0, 0];
        for (way, misses) in WAYS.iter().zip(&mut misses) {
            *misses = count(&file, name, way, 3)?.saturating_sub(count(&file, name, way, 1)?) / 2;
        }
        let ratio = |of: [f64; 2]| of[0] / of[1];
        let [page_misses, vector_misses] = misses;
        let misses = misses.map(|misses| misses as f64);
        text += &format!(
            "{name:<6} {page:>13.1} {vector:>13.1} {:>16} {page_misses:>15} {vector_misses:>15} {:>18}\n",
            format!("{:.2} ({:.2})", page / vector, ratio(paper_s)),
            format!("{:.1} ({:.1})", ratio(misses), ratio(paper_misses)),
        );
        results.push(json!({
            "query": name, "page_ms": page, "vector_ms": vector,
            "page_misses": page_misses, "vector_misses": vector_misses,
            "paper": { "page_s": paper_s[0], "vector_s": paper_s[1],
                       "page_misses": paper_misses[0] * 1e6, "vector_misses": paper_misses[1] * 1e6 },
        }));
    }
    std::fs::remove_file(&file)?;
    let record = json!({
        "suite": "page-wise",
        "scale_factor": settings.sf,
        "machine": machine,
        "commit": machine::commit(),
        "versions": machine::versions(&["sinterdb"]),
        "threads": 1,
        "runs": settings.runs,
        "last_level": LAST_LEVEL,
        "answers": "same",
        "results": results,
    });
    Ok((text, record))
}

/// Medians of both ways, which take turns.
fn times(file: &Path, query: &str, runs: usize) -> Result<[Duration; 2], Failure> {
    let database = open(file)?;
    let sql = text_of(query)?;
    let connections = [connect(&database, WAYS[0])?, connect(&database, WAYS[1])?];
    let mut answers = Vec::new();
    for connection in &connections {
        answers.push(lines(&connection.sql(sql)?.collect()?)?);
    }
    if answers[0] != answers[1] {
        return Err(format!("{query}: page-wise {:?}, vector-wise {:?}", answers[0], answers[1]).into());
    }
    let mut times = [Vec::new(), Vec::new()];
    for _ in 0..runs.max(1) {
        for (connection, times) in connections.iter().zip(&mut times) {
            let begun = Instant::now();
            connection.sql(sql)?.collect()?;
            times.push(begun.elapsed());
        }
    }
    Ok(times.map(|mut times| {
        times.sort();
        times[times.len() / 2]
    }))
}

fn open(file: &Path) -> Result<Database, Failure> {
    Ok(Database::open_with(file, Config::builder().threads(1).read_only(true))?)
}

fn connect(database: &Database, way: &str) -> Result<Connection, Failure> {
    let connection = database.connect();
    connection.execute(&format!("SET sinter.decompression = '{way}'"), &[])?;
    Ok(connection)
}

fn text_of(query: &str) -> Result<&'static str, Failure> {
    let known = QUERIES.iter().find(|known| known.name == query);
    Ok(known.ok_or("there is no such query")?.sql)
}

/// Runs a query some times. What valgrind watches.
///
/// # Errors
/// Where the query fails.
pub fn run_probed(settings: &ProbedSettings) -> Result<(), Failure> {
    let database = open(&settings.file)?;
    let connection = connect(&database, &settings.way)?;
    for _ in 0..settings.runs {
        connection.sql(text_of(&settings.query)?)?.collect()?;
    }
    Ok(())
}

/// Lines that such a process misses in the last level.
fn count(file: &Path, query: &str, way: &str, runs: usize) -> Result<u64, Failure> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--cache-sim=yes", "--callgrind-out-file=/dev/null"])
        .arg(format!("--LL={LAST_LEVEL}"))
        .arg(std::env::current_exe()?)
        .args(["page-wise-probed", "--query", query, "--way", way, "--runs", &runs.to_string(), "--file"])
        .arg(file)
        .output()
        .map_err(|error| format!("valgrind does not start: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("valgrind failed, {}: {text}", output.status).into());
    }
    let after =
        |label: &str| Some(text.lines().find_map(|line| line.split_once(label))?.1.trim_start_matches([' ', ':']));
    let (events, counts) = after("Events").zip(after("Collected")).ok_or("valgrind printed no counts")?;
    let counted = events.split_whitespace().zip(counts.split_whitespace());
    let misses = counted.filter(|(event, _)| ["DLmr", "DLmw"].contains(event));
    Ok(misses.map(|(_, count)| count.parse::<u64>()).sum::<Result<u64, _>>()?)
}
