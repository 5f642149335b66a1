//! Processor time of a query in the codec, sampled by `perf`.

use super::{QUERIES, measured};
use crate::Failure;
use crate::perf::{SAMPLES_PER_SECOND, sampled};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a profiled process is to be at work.
const PROFILED: Duration = Duration::from_secs(2);

/// What is to be profiled, in a process of its own.
#[derive(Debug, Clone, clap::Args)]
pub struct ProfiledSettings {
    /// The database.
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
    /// Of the paper's: q01 and so on.
    #[arg(long)]
    query: String,
    /// Threads of the query.
    #[arg(long)]
    threads: usize,
}

/// Processor time of one run in the codec.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Profile {
    pub(super) decompression: Duration,
    /// Of which it compared values on their encoded form.
    pub(super) filters: Duration,
    /// Of the whole query, as far as sampled.
    pub(super) all: Duration,
    pub(super) samples: usize,
}

/// Runs a query again and again, each time on an empty pool, and prints how often. What `Profile::sample` starts.
///
/// # Errors
/// Where the query fails.
pub fn run_profiled(settings: &ProfiledSettings) -> Result<(), Failure> {
    let query = QUERIES.iter().find(|query| query.name == settings.query).ok_or("there is no such query")?;
    let mut runs = 0;
    let mut time = Duration::ZERO;
    while time < PROFILED {
        let (run, _) = measured(&settings.file, query.sql, None, settings.threads, 0)?;
        time += run.time;
        runs += 1;
    }
    println!("{runs}");
    Ok(())
}

impl Profile {
    /// Samples a query in a process of its own.
    pub(super) fn sample(file: &Path, query: &str, threads: usize) -> Result<Profile, Failure> {
        let threads = threads.to_string();
        let options = ["throttled-profiled", "--query", query, "--threads", &threads, "--file"].map(OsStr::new);
        let (runs, script) = sampled(file, &[&options[..], &[file.as_os_str()]].concat())?;
        Ok(Profile::of(&script, runs))
    }

    /// Counts samples: paragraphs of one line for the event, and one for each function on the stack, innermost first.
    fn of(script: &str, runs: u32) -> Profile {
        let (mut codec, mut filters, mut all) = (0, 0, 0);
        for sample in script.split("\n\n") {
            // Opening, planning and answering are not what a sample of a scan is compared with.
            let in_query = sample.contains("sinter_exec") || sample.contains("datafusion");
            let Some(inner) = sample.lines().rfind(|frame| frame.contains("sinter_codec")) else {
                all += usize::from(in_query);
                continue;
            };
            all += 1;
            codec += 1;
            // The outermost function of the codec is what the engine called.
            filters += usize::from(inner.contains("filter"));
        }
        let per_run = |samples: usize| {
            Duration::from_secs_f64(samples as f64 / f64::from(SAMPLES_PER_SECOND) / f64::from(runs.max(1)))
        };
        Profile { decompression: per_run(codec), filters: per_run(filters), all: per_run(all), samples: all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_count_where_the_engine_called() {
        let script = "cpu-clock:u: \n  1 memcpy\n  2 sinter_codec::block::Block::load\n  3 sinter_exec::scan\n\n\
                      cpu-clock:u: \n  1 sinter_codec::unpack\n  2 sinter_codec::block::Block::filter_prepared\n  3 main\n\n\
                      cpu-clock:u: \n  1 sinter_exec::aggregate\n  2 main\n\n\
                      cpu-clock:u: \n  1 sinter_storage::open\n  2 main\n\n";
        let profile = Profile::of(script, 1);
        let samples = |time: Duration| (time.as_secs_f64() * f64::from(SAMPLES_PER_SECOND)).round() as usize;
        let counted = (samples(profile.decompression), samples(profile.filters), samples(profile.all));
        assert_eq!(counted, (2, 1, 3));
    }
}
