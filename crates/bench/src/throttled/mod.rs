//! Eleven queries of TPC-H on a disk of a given bandwidth and from memory, with all tables compressed and not, by column
//! (`dsm`) and by row group (`pax`): the time, and how it divides into I/O, decompression and other work. After table 2 and
//! figure 8 of Zukowski et al., ICDE 2006, whose two disks gave 80 and 350 MB/s, and whose queries ran on one CPU. Theirs
//! was scale factor 100, so ratios are compared with theirs, and not times.
//!
//! On [`ThrottledFileSystem`] each read takes at least as long as on such a disk. The database is opened anew before each
//! run, so its pool is empty, but from memory, where it runs once before. Scans read ahead, so reads and work overlap: *I/O*
//! is the time in which nothing ran, that is, in which there was nothing to do but wait for the disk. How long reads took all
//! in all is in the record as `reads_s`.
//!
//! *Decompression* is measured in runs of their own, on a disk without a limit but with an empty pool, under
//! `perf record`: the samples that have a function of `sinter-codec` on their stack, times what a sample stands for, per
//! run. What the codec does to compare values on their encoded form counts too, and is given separately. Raw values pass
//! through the codec as well, where they are copied. Without `perf` there is no such column.
//!
//! *Other* is what remains.

mod paper;
mod profile;

pub(crate) use paper::QUERIES;
pub use profile::{ProfiledSettings, run_profiled};

use crate::accounts::Scheduled;
use crate::{Failure, machine, tpch};
use arrow::array::RecordBatch;
use arrow::util::display::array_value_to_string;
use paper::{PAPER_DISKS, PaperQuery};
use profile::Profile;
use serde_json::{Value, json};
use sinter_storage::RealFileSystem;
use sinter_storage::testing::ThrottledFileSystem;
use sinterdb::{Config, Database};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The four forms: name, layout, scheme of all columns.
const FORMS: [(&str, &str, &str); 4] = [
    ("dsm", "dsm", "raw"),
    ("dsm, compressed", "dsm", "auto"),
    ("pax", "pax", "raw"),
    ("pax, compressed", "pax", "auto"),
];

const SCHEMA: &str = include_str!("../../../../tpch/schema.sql");

/// What is to be measured.
#[derive(Debug, Clone, clap::Args)]
pub struct Settings {
    /// Scale factor.
    #[arg(long, default_value_t = 1.0)]
    pub sf: f64,
    /// Folder for the databases; what is made there is removed.
    #[arg(long, value_name = "DIR")]
    pub folder: PathBuf,
    /// Bandwidths of the disk.
    #[arg(long, value_delimiter = ',', default_value = "80,350")]
    pub mb_per_second: Vec<u64>,
    /// Of the paper's eleven: q01,q06 and so on; all where none is given.
    #[arg(long, value_delimiter = ',')]
    pub queries: Vec<String>,
    /// Threads of a query. With more than one, I/O and work of different threads overlap, and shares say less.
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Runs of which the median counts.
    #[arg(long, default_value_t = 3)]
    pub runs: usize,
}

/// One run of a query.
#[derive(Debug, Clone, Copy)]
struct Run {
    time: Duration,
    /// In reads, of all threads together.
    reads: Duration,
    running: Duration,
    /// It could have run, but other processes did: to be little, or the machine was not quiet.
    queued: Duration,
    bytes_read: u64,
}

/// A query on a form, at a bandwidth.
struct Cell {
    form: &'static str,
    query: &'static PaperQuery,
    /// `None` where all was in memory.
    mb_per_second: Option<u64>,
    file_bytes: u64,
    median: Run,
    profile: Option<Profile>,
}

/// Measures all, and returns it as text and as JSON.
///
/// # Errors
/// Where something fails, or a form answers otherwise than the others.
pub fn measure(settings: &Settings) -> Result<(String, Value), Failure> {
    let machine = machine::describe();
    std::fs::create_dir_all(&settings.folder)?;
    let is_chosen = |query: &&'static PaperQuery| {
        settings.queries.is_empty() || settings.queries.iter().any(|chosen| chosen == query.name)
    };
    let queries: Vec<&'static PaperQuery> = QUERIES.iter().filter(is_chosen).collect();
    let disks: Vec<Option<u64>> = settings.mb_per_second.iter().copied().map(Some).chain([None]).collect();
    let mut cells = Vec::new();
    let mut answers: Vec<Option<Vec<String>>> = vec![None; queries.len()];
    for (form, layout, scheme) in FORMS {
        let file = settings.folder.join(format!("throttled-{layout}-{scheme}-{}", std::process::id()));
        build(&file, layout, scheme, settings.sf)?;
        let file_bytes = std::fs::metadata(&file)?.len();
        for (query, known) in queries.iter().zip(&mut answers) {
            eprintln!("{form}, {} MB: {}", file_bytes / 1_000_000, query.name);
            let profile = Profile::sample(&file, query.name, settings.threads)
                .inspect_err(|error| eprintln!("{form}, {}: no profile: {error}", query.name))
                .ok();
            for &mb_per_second in &disks {
                let mut runs = Vec::new();
                for _ in 0..settings.runs.max(1) {
                    let bytes_per_second = mb_per_second.map(|mb| mb * 1_000_000);
                    let warm_ups = usize::from(mb_per_second.is_none());
                    let (run, answer) = measured(&file, query.sql, bytes_per_second, settings.threads, warm_ups)?;
                    if known.get_or_insert_with(|| answer.clone()) != &answer {
                        return Err(format!("{form}, {}: {answer:?} instead of {known:?}", query.name).into());
                    }
                    runs.push(run);
                }
                runs.sort_by_key(|run| run.time);
                let median = runs[runs.len() / 2];
                cells.push(Cell { form, query, mb_per_second, file_bytes, median, profile });
            }
        }
        std::fs::remove_file(&file)?;
    }
    let record = json!({
        "suite": "throttled",
        "scale_factor": settings.sf,
        "machine": machine,
        "commit": machine::commit(),
        "versions": machine::versions(&["sinterdb"]),
        "threads": settings.threads,
        "runs": settings.runs,
        "answers": "same",
        "results": cells.iter().map(Cell::record).collect::<Vec<_>>(),
    });
    Ok((table(&cells, settings) + &beside_paper(&cells, &queries), record))
}

/// Makes a database with all tables in the given form.
pub(crate) fn build(file: &Path, layout: &str, scheme: &str, scale_factor: f64) -> Result<(), Failure> {
    let database = Database::open(file)?;
    let connection = database.connect();
    for table in tpch::TABLES {
        let rows = tpch::table(table, scale_factor).ok_or("TABLES names it")?;
        let columns = rows.schema();
        let schemes = columns.fields().iter().map(|column| format!(", compression_{} = '{scheme}'", column.name()));
        let options = schemes.collect::<String>();
        let (_, declared) = SCHEMA.split_once(&format!("CREATE TABLE {table} (")).ok_or("the schema has all tables")?;
        let (declared, _) = declared.split_once(");").ok_or("a table ends")?;
        let sql = format!("CREATE TABLE {table} ({declared}) WITH (layout = '{layout}'{options})");
        connection.execute(&sql, &[])?;
        let mut rows = rows.map(|batch| batch.map_err(|error| sinterdb::Error::Data(error.to_string())));
        connection.append(table, &mut rows)?;
    }
    Ok(database.close()?)
}

/// Opens the database, runs a query `warm_ups` times, and then once more, measured; so without any the pool is empty.
fn measured(
    file: &Path,
    sql: &str,
    bytes_per_second: Option<u64>,
    threads: usize,
    warm_ups: usize,
) -> Result<(Run, Vec<String>), Failure> {
    let disk = ThrottledFileSystem::new(Arc::new(RealFileSystem), None);
    let config = Config::builder().threads(threads).read_only(true).file_system(Arc::new(disk.clone()));
    let database = Database::open_with(file, config)?;
    let connection = database.connect();
    for _ in 0..warm_ups {
        connection.sql(sql)?.collect()?;
    }
    disk.set_bytes_per_second(bytes_per_second);
    let (before, scheduled) = (disk.stats(), Scheduled::of_this_process());
    let begun = Instant::now();
    let rows = connection.sql(sql)?.collect()?;
    let time = begun.elapsed();
    let spent = disk.stats().since(&before);
    let Scheduled { running, queued } = Scheduled::of_this_process().since(scheduled);
    let run = Run { time, reads: spent.wait, running, queued, bytes_read: spent.bytes_read };
    Ok((run, lines(&rows)?))
}

pub(crate) fn lines(batches: &[RecordBatch]) -> Result<Vec<String>, Failure> {
    let mut lines = Vec::new();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let cells = batch.columns().iter().map(|column| array_value_to_string(column, row));
            lines.push(cells.collect::<Result<Vec<_>, _>>()?.join(" "));
        }
    }
    Ok(lines)
}

impl Cell {
    /// When nothing ran.
    fn waited(&self) -> Duration {
        self.median.time.saturating_sub(self.median.running + self.median.queued)
    }

    fn decompression(&self) -> Option<Duration> {
        Some(self.profile?.decompression.min(self.median.time.saturating_sub(self.waited())))
    }

    /// What remains of the time.
    fn other(&self) -> Duration {
        self.median.time.saturating_sub(self.waited()).saturating_sub(self.decompression().unwrap_or_default())
    }

    fn share(&self, part: Duration) -> f64 {
        part.as_secs_f64() / self.median.time.as_secs_f64()
    }

    fn record(&self) -> Value {
        let Run { time, reads, running, queued, bytes_read } = self.median;
        let mut record = json!({
            "query": self.query.name,
            "form": self.form,
            "mb_per_second": self.mb_per_second, // null: from memory
            "file_bytes": self.file_bytes,
            "bytes_read": bytes_read,
            "time_s": time.as_secs_f64(),
            "io_s": self.waited().as_secs_f64(),
            "reads_s": reads.as_secs_f64(),
            "processor_s": running.as_secs_f64(),
            "queued_s": queued.as_secs_f64(),
            "io_share": self.share(self.waited()),
        });
        if let (Some(profile), Some(decompression)) = (self.profile, self.decompression()) {
            record["decompression_s"] = profile.decompression.as_secs_f64().into();
            record["decompression_share"] = self.share(decompression).into();
            record["of_it_filters_s"] = profile.filters.as_secs_f64().into();
            record["other_s"] = self.other().as_secs_f64().into();
            record["other_share"] = self.share(self.other()).into();
            record["sampled_s"] = profile.all.as_secs_f64().into();
            record["samples"] = profile.samples.into();
        }
        record
    }
}

fn table(cells: &[Cell], settings: &Settings) -> String {
    let mut text = format!(
        "TPC-H, scale factor {}, {} thread(s), medians of {} runs, on disks with an empty pool\n\n{:<6} {:>6} {:<16} {:>8} {:>8} {:>9} {:>6} {:>14} {:>12} {:>7}\n",
        settings.sf,
        settings.threads,
        settings.runs,
        "query",
        "MB/s",
        "form",
        "file, MB",
        "read, MB",
        "time, s",
        "I/O",
        "decompression",
        "(filters)",
        "other"
    );
    for cell in cells {
        let percent = |part: Duration| format!("{:.0} %", cell.share(part) * 100.0);
        let of_profile = |part: Option<Duration>| part.map_or_else(|| "-".to_owned(), percent);
        text += &format!(
            "{:<6} {:>6} {:<16} {:>8.0} {:>8.1} {:>9.3} {:>6} {:>14} {:>12} {:>7}\n",
            cell.query.name,
            disk(cell.mb_per_second),
            cell.form,
            cell.file_bytes as f64 / 1e6,
            cell.median.bytes_read as f64 / 1e6,
            cell.median.time.as_secs_f64(),
            percent(cell.waited()),
            of_profile(cell.decompression()),
            of_profile(cell.profile.map(|profile| profile.filters)),
            percent(cell.other()),
        );
    }
    text
}

fn disk(mb_per_second: Option<u64>) -> String {
    mb_per_second.map_or_else(|| "memory".to_owned(), |mb| mb.to_string())
}

/// Ours beside theirs: how much less is read, how much sooner the answer is there, and how fast values are decompressed.
fn beside_paper(cells: &[Cell], queries: &[&'static PaperQuery]) -> String {
    let cell = |query: &PaperQuery, mb_per_second: Option<u64>, form: usize| {
        cells.iter().find(|cell| {
            cell.query.name == query.name && cell.mb_per_second == mb_per_second && cell.form == FORMS[form].0
        })
    };
    let shown = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2}"));
    let mut text = "\nours beside the paper's (in brackets): uncompressed over compressed\n\n".to_owned();
    text += &format!(
        "{:<6} {:>6} {:>14} {:>14} {:>14} {:>14} {:>19}\n",
        "query", "MB/s", "bytes, DSM", "bytes, PAX", "time, DSM", "time, PAX", "plain MB/s, DSM"
    );
    for query in queries {
        let disks: Vec<Option<u64>> = cells
            .iter()
            .filter(|cell| cell.query.name == query.name && cell.form == FORMS[0].0)
            .map(|cell| cell.mb_per_second)
            .collect();
        for mb_per_second in disks {
            let theirs = PAPER_DISKS.iter().position(|&disk| Some(disk) == mb_per_second).map(|disk| query.on[disk]);
            text += &format!("{:<6} {:>6}", query.name, disk(mb_per_second));
            let two = |form: usize| Some((cell(query, mb_per_second, form)?, cell(query, mb_per_second, form + 1)?));
            let bytes_read = |cell: &Cell| cell.median.bytes_read as f64;
            for (form, ratio) in [(0, query.ratios[0]), (2, query.ratios[1])] {
                let read = two(form).filter(|_| mb_per_second.is_some());
                let ours = read.map(|(plain, pressed)| bytes_read(plain) / bytes_read(pressed));
                text += &format!(" {:>14}", format!("{} ({ratio:.2})", shown(ours)));
            }
            for form in [0, 2] {
                let ours = two(form).map(|(plain, pressed)| plain.median.time.div_duration_f64(pressed.median.time));
                let theirs = theirs.map(|theirs| theirs.seconds[form] / theirs.seconds[form + 1]);
                text += &format!(" {:>14}", format!("{} ({})", shown(ours), shown(theirs)));
            }
            let speed = two(0)
                .filter(|_| mb_per_second.is_some())
                .and_then(|(plain, pressed)| Some(bytes_read(plain) / 1e6 / pressed.decompression()?.as_secs_f64()));
            let speed = speed.map_or_else(|| "-".to_owned(), |speed| format!("{speed:.0}"));
            let theirs = theirs.map_or_else(|| "-".to_owned(), |run| format!("{:.0}", run.decompression_mb_per_second));
            text += &format!(" {:>19}\n", format!("{speed} ({theirs})"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_answer_the_same() {
        let folder = std::env::temp_dir().join(format!("sinter-throttled-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut answers = Vec::new();
        for (_, layout, scheme) in FORMS {
            let file = folder.join(format!("{layout}-{scheme}"));
            build(&file, layout, scheme, 0.01).unwrap();
            let (run, answer) = measured(&file, QUERIES[4].sql, Some(1 << 40), 1, 0).unwrap();
            assert!(run.bytes_read > 0);
            answers.push(answer);
        }
        assert!(answers.windows(2).all(|two| two[0] == two[1]), "{answers:?}");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
