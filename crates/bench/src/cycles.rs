//! Where the processor's time of a query goes, and how far it is from the time in which memory alone could bring its bytes.
//!
//! All is in memory and warm. `perf record` samples a process of its own that runs the query again and again; a sample counts
//! for the innermost function of ours on its stack, so that what the C library copies or clears counts for who asked. Small
//! loops that the codec compiles for callers ([`sinter_codec::map_rows`]) count for these. The limit is what a sum over a
//! gigabyte of plain numbers reaches with as many threads, for the bytes that the query's scans read compressed.

use crate::perf::{SAMPLES_PER_SECOND, sampled};
use crate::throttled::build;
use crate::{Failure, machine};
use serde_json::{Value, json};
use sinterdb::{Config, Database};
use std::ffi::OsStr;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What is to be measured.
#[derive(Debug, Clone, clap::Args)]
pub struct Settings {
    /// Scale factor.
    #[arg(long, default_value_t = 1.0)]
    pub sf: f64,
    /// Folder for the database; what is made there is removed.
    #[arg(long, value_name = "DIR")]
    pub folder: PathBuf,
    /// Queries of TPC-H.
    #[arg(long, value_delimiter = ',', default_value = "1,3,9,18")]
    pub queries: Vec<usize>,
    /// Threads of a query.
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Folder with the queries: q01.sql and so on.
    #[arg(long, value_name = "DIR", default_value = "tpch/queries")]
    pub texts: PathBuf,
}

/// What perf watches.
#[derive(Debug, Clone, clap::Args)]
pub struct ProfiledSettings {
    /// The database.
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
    /// The query.
    #[arg(long, value_name = "FILE")]
    sql: PathBuf,
    /// Threads of the query.
    #[arg(long)]
    threads: usize,
}

/// How long a query runs under perf.
const PROFILED: Duration = Duration::from_secs(3);

/// Parts of the work, and what the path of a function of each has in it; the first that fits counts.
const PARTS: [(&str, &[&str]); 8] = [
    ("tests on the encoded form", &["sinter_codec::condition", "::filter", "passing", "sinter_codec::needle"]),
    ("decoding", &["sinter_codec", "sinter_column", "sinter_storage"]),
    ("joins", &["sinter_exec::join"]),
    ("groups and aggregates", &["sinter_exec::group", "sinter_exec::aggregate"]),
    ("expressions", &["sinter_exec::expr"]),
    ("sorting", &["sinter_exec::sort", "sinter_exec::window"]),
    ("rows between operators", &["sinter_exec"]),
    ("planning", &["datafusion", "sqlparser", "sinter_sql", "sinterdb", "arrow"]),
];

/// What belongs to no part.
const OTHER: &str = "other";

/// Measures, and returns it as text and as JSON.
///
/// # Errors
/// Where something fails, or perf is missing.
pub fn measure(settings: &Settings) -> Result<(String, Value), Failure> {
    let machine = machine::describe();
    std::fs::create_dir_all(&settings.folder)?;
    let file = settings.folder.join(format!("cycles-{}", std::process::id()));
    build(&file, "dsm", "auto", settings.sf)?;
    let bytes_per_second = memory_speed(settings.threads);
    let clock_hz = clock_hz();
    let mut text = format!(
        "TPC-H, scale factor {}, {} thread(s), from memory; memory brings {:.1} GB/s to as many; clock {:.2} GHz\n",
        settings.sf,
        settings.threads,
        bytes_per_second / 1e9,
        clock_hz / 1e9
    );
    let mut results = Vec::new();
    for number in &settings.queries {
        let sql = settings.texts.join(format!("q{number:02}.sql"));
        let (time, read) = once(&file, &std::fs::read_to_string(&sql)?, settings.threads)?;
        let parts = seconds_in_parts(&file, &sql, settings.threads)?;
        let all: f64 = parts.iter().map(|(_, seconds)| seconds).sum();
        let limit_s = read.bytes as f64 / bytes_per_second;
        let ms = time.as_secs_f64() * 1e3;
        text += &format!(
            "\nq{number:02}: {ms:.1} ms, {:.0} million cycles, {:.1} for each of {} scanned rows; {:.1} MB compressed, {:.1} MB \
             decoded; memory's limit {:.2} ms, {:.0} times as fast\n",
            all * clock_hz / 1e6,
            all * clock_hz / read.rows as f64,
            read.rows,
            read.bytes as f64 / 1e6,
            read.decoded as f64 / 1e6,
            limit_s * 1e3,
            ms / 1e3 / limit_s
        );
        for (part, seconds) in &parts {
            text += &format!(
                "  {part:<26} {:>5.1} % {:>8.2} ms {:>8.1} cycles a row\n",
                seconds / all * 100.0,
                seconds * 1e3,
                seconds * clock_hz / read.rows as f64
            );
        }
        let parts: serde_json::Map<String, Value> =
            parts.iter().map(|(part, seconds)| ((*part).to_owned(), json!(seconds))).collect();
        results.push(json!({
            "query": format!("q{number:02}"), "time_s": time.as_secs_f64(), "processor_s": all, "parts_s": parts,
            "rows_scanned": read.rows, "bytes_compressed": read.bytes, "bytes_decoded": read.decoded,
            "memory_limit_s": limit_s,
        }));
    }
    std::fs::remove_file(&file)?;
    let record = json!({
        "suite": "cycles",
        "scale_factor": settings.sf,
        "machine": machine,
        "commit": machine::commit(),
        "versions": machine::versions(&["sinterdb"]),
        "threads": settings.threads,
        "clock_hz": clock_hz,
        "memory_bytes_per_second": bytes_per_second,
        "results": results,
    });
    Ok((text, record))
}

/// What a query's scans read.
#[derive(Debug, Clone, Copy)]
struct Read {
    rows: u64,
    bytes: u64,
    decoded: u64,
}

fn open(file: &Path, threads: usize) -> Result<Database, Failure> {
    Ok(Database::open_with(file, Config::builder().threads(threads).read_only(true))?)
}

/// The median of some warm runs, and what they read as EXPLAIN ANALYZE tells.
fn once(file: &Path, sql: &str, threads: usize) -> Result<(Duration, Read), Failure> {
    let connection = open(file, threads)?.connect();
    let plan = connection.sql(&format!("EXPLAIN ANALYZE {sql}"))?.collect()?;
    let lines = crate::throttled::lines(&plan)?;
    let words: Vec<&str> = lines.iter().flat_map(|line| line.split_whitespace()).collect();
    // "rows: A of B selected", "bytes: C compressed, D decoded"
    let after = |name: &str, places: usize| {
        let all = words.windows(places + 1).filter(|words| words[0] == name);
        all.filter_map(|words| words[places].parse::<u64>().ok()).next_back()
    };
    let read = Read {
        rows: after("rows:", 3).ok_or("EXPLAIN ANALYZE tells no rows")?,
        bytes: after("bytes:", 1).ok_or("EXPLAIN ANALYZE tells no bytes")?,
        decoded: after("bytes:", 3).ok_or("EXPLAIN ANALYZE tells no decoded bytes")?,
    };
    let mut times: Vec<Duration> = Vec::new();
    for _ in 0..11 {
        let begun = Instant::now();
        black_box(connection.sql(sql)?.collect()?);
        times.push(begun.elapsed());
    }
    times.sort();
    Ok((times[times.len() / 2], read))
}

/// Runs a query again and again, and prints how often.
///
/// # Errors
/// Where the query fails.
pub fn run_profiled(settings: &ProfiledSettings) -> Result<(), Failure> {
    let sql = std::fs::read_to_string(&settings.sql)?;
    let connection = open(&settings.file, settings.threads)?.connect();
    let (begun, mut runs) = (Instant::now(), 0);
    while begun.elapsed() < PROFILED {
        black_box(connection.sql(&sql)?.collect()?);
        runs += 1;
    }
    println!("{runs}");
    Ok(())
}

/// Processor seconds of one run in each part.
fn seconds_in_parts(file: &Path, sql: &Path, threads: usize) -> Result<Vec<(&'static str, f64)>, Failure> {
    let threads = threads.to_string();
    let options = ["cycles-profiled", "--threads", &threads, "--file"].map(OsStr::new);
    let rest = [file.as_os_str(), OsStr::new("--sql"), sql.as_os_str()];
    let (runs, script) = sampled(file, &[&options[..], &rest].concat())?;
    let seconds = |count: usize| count as f64 / f64::from(SAMPLES_PER_SECOND) / f64::from(runs.max(1));
    Ok(counted(&script).into_iter().map(|(part, count)| (part, seconds(count))).collect())
}

/// Samples of each part.
fn counted(script: &str) -> Vec<(&'static str, usize)> {
    let mut counts: Vec<(&'static str, usize)> = PARTS.iter().map(|(part, _)| (*part, 0)).collect();
    counts.push((OTHER, 0));
    for sample in script.split("\n\n").filter(|sample| !sample.trim().is_empty()) {
        let part = sample.lines().skip(1).find_map(|frame| {
            // What it is compiled for is said by who calls it.
            let is_for_callers = frame.contains("sinter_codec::kernels::rows");
            let part = PARTS.iter().find(|(_, paths)| paths.iter().any(|path| frame.contains(path)));
            part.filter(|_| !is_for_callers).map(|(part, _)| *part)
        });
        let part = part.unwrap_or(OTHER);
        counts.iter_mut().filter(|(name, _)| *name == part).for_each(|(_, count)| *count += 1);
    }
    counts
}

/// Bytes a second that so many threads can read.
fn memory_speed(threads: usize) -> f64 {
    const NUMBERS: usize = 1 << 27;
    let numbers = vec![1u64; NUMBERS];
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let begun = Instant::now();
        std::thread::scope(|scope| {
            for part in numbers.chunks(NUMBERS.div_ceil(threads.max(1))) {
                scope.spawn(move || black_box(part.iter().fold(0u64, |sum, number| sum.wrapping_add(*number))));
            }
        });
        best = best.min(begun.elapsed());
    }
    (NUMBERS * 8) as f64 / best.as_secs_f64()
}

/// Of the processor, as a chain shows it of which each link, a rotation and an XOR, takes two cycles.
fn clock_hz() -> f64 {
    const LINKS: u64 = 100_000_000;
    let begun = Instant::now();
    black_box((0..black_box(LINKS)).fold(0u64, |chain, number| chain.rotate_left(1) ^ number));
    (2 * LINKS) as f64 / begun.elapsed().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_counts_for_the_innermost_of_ours() {
        let script = "cpu-clock:u: \n  1 memcpy\n  2 sinter_exec::join::table::gather\n  3 sinter_exec::group::sink\n\n\
                      cpu-clock:u: \n  1 sinter_codec::kernels::rows::map::avx512\n  2 sinter_exec::expr::machine\n\n\
                      cpu-clock:u: \n  1 sinter_codec::packed::unpack\n  2 sinter_exec::scan::load\n\n\
                      cpu-clock:u: \n  1 malloc\n  2 main\n\n";
        let counts = counted(script);
        let of = |part: &str| counts.iter().find(|(name, _)| *name == part).map(|(_, count)| *count);
        assert_eq!((of("joins"), of("expressions"), of("decoding"), of(OTHER)), (Some(1), Some(1), Some(1), Some(1)));
    }
}
