//! How long planning takes, from a statement's text to a plan that is ready to run: TPC-H's 22 queries, one row by its
//! key, and a sum over one table.
//!
//! The statements take turns, and the least time of all rounds counts: what else runs on the machine only adds to it.
//! Nothing of a plan is kept from round to round.

use crate::{Failure, tpch};
use serde_json::{Value, json};
use sinterdb::{Connection, Database};
use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What is to be measured.
#[derive(Debug, Clone, clap::Args)]
pub struct Settings {
    /// Scale factor of the data; filters are measured on it when joins get their order.
    #[arg(long, default_value_t = 0.01)]
    pub sf: f64,
    /// Rounds of which the fastest counts.
    #[arg(long, default_value_t = 200)]
    pub rounds: usize,
    /// Folder with the queries: q01.sql and so on.
    #[arg(long, value_name = "DIR", default_value = "tpch")]
    pub tpch: PathBuf,
    /// Only statements of these names.
    #[arg(long, value_delimiter = ',')]
    pub only: Vec<String>,
    /// Runs them as well, and counts that.
    #[arg(long)]
    pub execute: bool,
}

/// Statements beside the 22.
const OTHERS: [(&str, &str); 2] = [
    ("point", "SELECT o_totalprice, o_orderdate FROM orders WHERE o_orderkey = 7"),
    ("sum", "SELECT sum(l_quantity) FROM lineitem"),
];

/// Measures and returns a table for people, and a record.
///
/// # Errors
/// Where data or queries cannot be read, and where a statement fails.
pub fn measure(settings: &Settings) -> Result<(String, Value), Failure> {
    let connection = Database::memory()?.connect();
    load(&connection, settings)?;
    let mut statements: Vec<(String, String)> = Vec::new();
    for number in 1..=22 {
        let name = format!("q{number:02}");
        let sql = std::fs::read_to_string(settings.tpch.join(format!("queries/{name}.sql")))?;
        statements.push((name, sql));
    }
    statements.extend(OTHERS.map(|(name, sql)| (name.to_owned(), sql.to_owned())));
    statements.retain(|(name, _)| settings.only.is_empty() || settings.only.contains(name));
    let mut least = vec![Duration::MAX; statements.len()];
    for _ in 0..settings.rounds {
        for ((_, sql), least) in statements.iter().zip(&mut least) {
            let begun = Instant::now();
            let query = connection.sql(sql)?;
            if settings.execute {
                black_box(query.collect()?);
            } else {
                black_box(&query);
            }
            *least = (*least).min(begun.elapsed());
        }
    }
    let times: Vec<(&str, f64)> =
        statements.iter().zip(&least).map(|((name, _), time)| (name.as_str(), time.as_secs_f64() * 1000.0)).collect();
    let total: f64 = times.iter().map(|(_, ms)| ms).sum();
    let lines = times.iter().map(|(name, ms)| format!("{name:>6} {ms:8.3} ms\n"));
    let text = lines.chain([format!("   all {total:8.3} ms\n")]).collect();
    let record: serde_json::Map<String, Value> =
        times.iter().map(|(name, ms)| ((*name).to_owned(), json!(ms))).collect();
    Ok((text, json!({ "sf": settings.sf, "rounds": settings.rounds, "executed": settings.execute, "ms": record })))
}

fn load(connection: &Connection, settings: &Settings) -> Result<(), Failure> {
    let schema = std::fs::read_to_string(settings.tpch.join("schema.sql"))?;
    for statement in connection.statements(&schema)? {
        connection.run(&statement, &[])?;
    }
    for name in tpch::TABLES {
        let rows = tpch::table(name, settings.sf).ok_or("TABLES names it")?;
        let mut batches = rows.map(|batch| batch.map_err(|error| sinterdb::Error::Internal(error.to_string())));
        connection.append(name, &mut batches)?;
    }
    Ok(())
}
