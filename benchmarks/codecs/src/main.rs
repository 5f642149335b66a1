//! `scripts/benchmark-codecs`: the schemes beside other libraries, and the figures of the papers that they come from.

mod bits;
mod codec;
mod kernels;
mod machine;
mod peers;
mod race;
mod random;
mod schemes;
mod sinter;

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
    /// Only these schemes of `schemes`.
    #[arg(long, value_name = "SCHEME", value_delimiter = ',')]
    only: Vec<String>,
    /// Also writes a record as JSON.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Table {
    /// Each scheme, type and width beside its peers, in cache and in memory, and the marks.
    Schemes,
    /// Sum and filter on pressed values in memory, beside the best loops over plain ones.
    Kernels,
}

impl Table {
    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    fn run(self, arguments: &Arguments, effort: Effort) -> Result<Value, Failure> {
        match self {
            Table::Schemes => schemes::run(&arguments.only, effort),
            Table::Kernels => kernels::run(effort),
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
    let effort = if arguments.quick { Effort::QUICK } else { Effort::FULL };
    let mut record = json!({ "machine": machine::describe(), "is_quick": effort.is_quick });
    let mut tables = Map::new();
    for &table in Table::value_variants() {
        if arguments.tables.is_empty() || arguments.tables.contains(&table) {
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
