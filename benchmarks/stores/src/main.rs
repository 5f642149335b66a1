//! Measures one of the other stores, and prints JSON; `sinter-bench stores` does so for SinterDB, and `python -m benchmarks
//! stores` puts them side by side.

mod engines;

use clap::Parser;
use sinter_stores_benchmark::{Failure, Settings, measure};

#[derive(Parser)]
#[command(name = "stores", about = "Measures an ordered key-value store, and prints what it found as JSON.")]
struct Arguments {
    #[command(flatten)]
    settings: Settings,
}

fn main() -> Result<(), Failure> {
    println!("{}", measure(&Arguments::parse().settings, engines::open)?);
    Ok(())
}
