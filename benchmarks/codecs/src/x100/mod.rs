//! The figures of "Super-Scalar RAM-CPU Cache Compression" (Zukowski, Héman, Nes and Boncz, ICDE 2006) on this machine.
//!
//! Theirs stand beside ours where the paper's text or tables give numbers; those of 2005 are of a Pentium 4 with 3 GHz,
//! an Opteron with 2 GHz and an Itanium 2. Reference forms that SinterDB does not ship are in `reference/`.

mod columns;
mod figure_2;
mod figure_4;
mod figure_6;
mod figure_7;
mod misses;
mod single_values;
mod skewed;

use crate::Failure;
use crate::race::Effort;
use serde_json::{Value, json};
use std::path::Path;

pub use misses::{probe, run as run_misses};

/// Measures, prints, and returns the record.
///
/// # Errors
/// Where a contender does not give back what it got.
pub fn run(data: Option<&Path>, effort: Effort) -> Result<Value, Failure> {
    let figure_2 = figure_2::run(effort)?;
    let (figure_4, figure_5) = figure_4::run(effort)?;
    let figure_6 = figure_6::run()?;
    let figure_7 = figure_7::run(effort)?;
    let table_4 = match data {
        Some(data) => crate::lists::run(data, effort)?,
        None => {
            println!("\nTable 4 needs lists: --data DIR");
            Value::Null
        }
    };
    let single_values = single_values::run(effort)?;
    Ok(json!({
        "figure_2": figure_2, "figure_4": figure_4, "figure_5": figure_5, "figure_6": figure_6, "figure_7": figure_7,
        "table_4": table_4, "single_values": single_values,
    }))
}
