//! `sinter-bench`: makes the data that benchmarks run on, and runs those that need Rust.

use clap::{Parser, Subcommand, ValueEnum};
use sinter_bench::{
    Failure, Invocation, beyond_memory, commits, cycles, page_wise, planning, stalls, stores, strings, throttled, tpch,
    trees, write_csv, write_parquet,
};
use std::path::{Path, PathBuf};
use std::time::Instant;

#[derive(Parser)]
#[command(
    name = "sinter-bench",
    version,
    about = "Makes the data that SinterDB's benchmarks run on, and runs those that need Rust."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Writes TPC-H's eight tables as files: DIR/region.parquet and so on.
    TpchGen {
        /// Scale factor; 1 is about 1 GB of text.
        #[arg(long, default_value_t = 1.0)]
        sf: f64,
        /// Folder to write to; created where absent. Tables already there are kept unless --overwrite is given.
        #[arg(long, value_name = "DIR")]
        out: PathBuf,
        /// Of the files.
        #[arg(long, value_enum, default_value = "parquet")]
        format: Format,
        /// Write tables again that are already there.
        #[arg(long)]
        overwrite: bool,
    },
    /// Compares our schemes for text with other libraries (build with --features peers) on columns of TPC-H.
    Strings {
        /// Scale factor of the data.
        #[arg(long, default_value_t = 0.1)]
        sf: f64,
        /// Also writes a record as JSON.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Measures single-row commits of one engine, and prints JSON. `python -m benchmarks commits` compares engines.
    Commits(commits::Settings),
    /// Measures how long commits wait at worst, and how many abort, while TPC-H is loaded and checkpoints are made.
    Stalls {
        #[command(flatten)]
        settings: stalls::Settings,
        /// Also writes a record as JSON.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Measures how long planning takes: TPC-H's queries and two short ones.
    Planning {
        #[command(flatten)]
        settings: planning::Settings,
        /// Also writes a record as JSON.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Measures eleven queries of TPC-H on slow disks and from memory, compressed and not, and how the time divides.
    Throttled {
        #[command(flatten)]
        settings: throttled::Settings,
        /// Also writes a record as JSON.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Measures queries whose segments are decoded whole beside vector by vector: time, and cache lines missed (valgrind).
    PageWise {
        #[command(flatten)]
        settings: page_wise::Settings,
        /// Also writes a record as JSON.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Measures where the processor's time of TPC-H's queries goes, and how far that is from memory's speed (perf).
    Cycles {
        #[command(flatten)]
        settings: cycles::Settings,
        /// Also writes a record as JSON.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Measures key-value trees as the Upscaledb paper does: keys without records, in each codec, beside keys as they are.
    Trees {
        #[command(flatten)]
        settings: trees::Settings,
        /// Also writes a record as JSON.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Measures a key-value tree that is much larger than memory_limit: load, look-ups, inserts, a scan.
    BeyondMemory {
        #[command(flatten)]
        settings: beyond_memory::Settings,
        /// Also writes a record as JSON.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
    /// Measures key-value trees as a store among others, and prints JSON. `python -m benchmarks stores` compares engines.
    Stores(sinter_stores_benchmark::Settings),
    /// What `cycles` profiles.
    #[command(hide = true)]
    CyclesProfiled(cycles::ProfiledSettings),
    /// What `page-wise` counts.
    #[command(hide = true)]
    PageWiseProbed(page_wise::ProbedSettings),
    /// What `throttled` profiles.
    #[command(hide = true)]
    ThrottledProfiled(throttled::ProfiledSettings),
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Parquet,
    Csv,
}

fn main() -> Result<(), Failure> {
    let invocation = Invocation::now(std::env::args());
    match Arguments::parse().command {
        Command::TpchGen { sf, out, format, overwrite } => generate_tpch(sf, &out, format, overwrite),
        Command::Strings { sf, out } => compare_strings(sf, &invocation, out.as_deref()),
        Command::Commits(settings) => {
            println!("{}", commits::measure(&settings)?);
            Ok(())
        }
        Command::Stores(settings) => {
            println!("{}", stores::measure(&settings)?);
            Ok(())
        }
        Command::Stalls { settings, out } => show(stalls::measure(&settings)?, &invocation, out.as_deref()),
        Command::Planning { settings, out } => show(planning::measure(&settings)?, &invocation, out.as_deref()),
        Command::Throttled { settings, out } => show(throttled::measure(&settings)?, &invocation, out.as_deref()),
        Command::Cycles { settings, out } => show(cycles::measure(&settings)?, &invocation, out.as_deref()),
        Command::BeyondMemory { settings, out } => {
            show(beyond_memory::measure(&settings)?, &invocation, out.as_deref())
        }
        Command::Trees { settings, out } => show(trees::measure(&settings)?, &invocation, out.as_deref()),
        Command::CyclesProfiled(settings) => cycles::run_profiled(&settings),
        Command::PageWise { settings, out } => show(page_wise::measure(&settings)?, &invocation, out.as_deref()),
        Command::PageWiseProbed(settings) => page_wise::run_probed(&settings),
        Command::ThrottledProfiled(settings) => throttled::run_profiled(&settings),
    }
}

/// Prints the text, and writes the record where asked to.
fn show(
    (text, record): (String, serde_json::Value),
    invocation: &Invocation,
    out: Option<&Path>,
) -> Result<(), Failure> {
    print!("{text}");
    if let Some(out) = out {
        std::fs::write(out, serde_json::to_string_pretty(&invocation.of(record))? + "\n")?;
    }
    Ok(())
}

fn compare_strings(scale_factor: f64, invocation: &Invocation, out: Option<&Path>) -> Result<(), Failure> {
    let measured = strings::measure(scale_factor)?;
    show((strings::table(&measured), strings::record(&measured, scale_factor)), invocation, out)
}

/// A table takes its final name only when it is complete, so that a run cut short leaves no half table behind.
fn generate_tpch(scale_factor: f64, folder: &Path, format: Format, overwrite: bool) -> Result<(), Failure> {
    if !(scale_factor > 0.0 && scale_factor <= 100_000.0) {
        return Err(format!("scale factor {scale_factor} is not between 0 and 100000").into());
    }
    std::fs::create_dir_all(folder)?;
    let extension = match format {
        Format::Parquet => "parquet",
        Format::Csv => "csv",
    };
    for name in tpch::TABLES {
        let path = folder.join(format!("{name}.{extension}"));
        if path.exists() && !overwrite {
            eprintln!("{name}: there already");
            continue;
        }
        let begin = Instant::now();
        let partial = folder.join(format!("{name}.{extension}.partial"));
        let rows = tpch::table(name, scale_factor).ok_or("TABLES names it")?;
        let row_count = match format {
            Format::Parquet => write_parquet(&partial, rows)?,
            Format::Csv => write_csv(&partial, rows)?,
        };
        std::fs::rename(&partial, &path)?;
        eprintln!("{name}: {row_count} rows in {:.1} s", begin.elapsed().as_secs_f64());
    }
    Ok(())
}
