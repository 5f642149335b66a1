//! `scripts/benchmark-codecs`: the schemes beside other libraries, and the figures of the papers that they come from.

mod bits;
mod codec;
mod kernels;
mod keys;
mod lists;
mod machine;
mod mark;
mod peers;
mod race;
mod random;
mod reference;
mod schemes;
mod sinter;
mod x100;

use clap::{Parser, ValueEnum};
use race::Effort;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

/// Why a benchmark ended early.
type Failure = Box<dyn std::error::Error>;

#[derive(Parser)]
#[command(name = "benchmark-codecs", about = "Measures SinterDB's schemes beside other libraries.")]
struct Arguments {
    /// What to measure; everything where nothing is named.
    tables: Vec<Table>,
    /// Fewer points and samples: a minute or less, to see that all runs and gives right answers.
    #[arg(long)]
    quick: bool,
    /// Only these schemes of `schemes` and `memory`, these codecs of `keys`.
    #[arg(long, value_name = "SCHEME", value_delimiter = ',')]
    only: Vec<String>,
    /// The folder with roaring_lists/ and imdb_reviews/, for table 4 of `x100`.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Runs one form at a share of exceptions: what `misses` has callgrind look at.
    #[arg(long, hide = true, num_args = 2, value_names = ["FORM", "PERCENT"])]
    probe: Option<Vec<String>>,
    /// Also writes a record as JSON.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Table {
    /// Each scheme, type and width beside its peers, in cache, and the marks.
    Schemes,
    /// Each scheme beside its peers on more pressed bytes than a cache holds, at four widths. Only where it is named.
    Memory,
    /// Each codec of sorted keys, as in figures 6 and 7 of the Upscaledb paper, and the marks.
    Keys,
    /// Sum and filter on pressed values in memory, beside the best loops over plain ones.
    Kernels,
    /// The figures and tables of the X100 paper, ours beside theirs.
    X100,
    /// Branches and cache lines missed by the forms of figures 4 and 5, counted by callgrind. Only where it is named.
    Misses,
}

impl Table {
    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn run(self, arguments: &Arguments, effort: Effort) -> Result<Value, Failure> {
        match self {
            Table::Schemes => schemes::run(&arguments.only, effort),
            Table::Memory => {
                let mut records = schemes::memory::run(&arguments.only, effort)?;
                records.extend(keys::memory::run(&arguments.only, effort)?);
                if records.is_empty() {
                    return Err("--only names nothing that is measured from memory".into());
                }
                Ok(Value::Array(records))
            }
            Table::Keys => keys::run(&arguments.only, effort),
            Table::Kernels => kernels::run(effort),
            Table::X100 => x100::run(arguments.data.as_deref(), effort),
            Table::Misses => x100::run_misses(effort),
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Failure> {
    if let Some([form, percent]) = arguments.probe.as_deref() {
        return x100::probe(form, percent.parse()?);
    }
    let effort = if arguments.quick { Effort::QUICK } else { Effort::FULL };
    let mut record = json!({ "machine": machine::describe(), "is_quick": effort.is_quick });
    let mut tables = Map::new();
    for &table in Table::value_variants() {
        let is_of_all = arguments.tables.is_empty() && !matches!(table, Table::Memory | Table::Misses);
        if is_of_all || arguments.tables.contains(&table) {
            let begun = Instant::now();
            tables.insert(table.name(), table.run(arguments, effort)?);
            println!("\n{}: {:.0} s\n", table.name(), begun.elapsed().as_secs_f64());
        }
    }
    record["tables"] = Value::Object(tables);
    if let Some(out) = &arguments.out {
        std::fs::write(out, serde_json::to_string_pretty(&record)? + "\n")?;
    }
    Ok(())
}
