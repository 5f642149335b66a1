//! All 22 TPC-H queries at scale factor 0.1, compared with DuckDB's answers (tpch/README.md says how equal they must
//! be), in memory and from a file that was closed and opened again.

use crate::answers::rows;
use sinterdb::arrow::array::RecordBatchReader;
use sinterdb::{Connection, Database, Error};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RegionArrow, SupplierArrow,
};

const SCALE_FACTOR: f64 = 0.1;

/// Relative, where one side computes in doubles.
const TOLERANCE: f64 = 1e-9;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tpch")
}

/// A scan over the whole of a database of this size takes all cores; so do these tests, one after the other.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Creates and fills the eight tables.
pub(crate) fn load(conn: &Connection) {
    let schema = std::fs::read_to_string(folder().join("schema.sql")).unwrap();
    for statement in conn.statements(&schema).unwrap() {
        conn.run(&statement, &[]).unwrap();
    }
    let sf = SCALE_FACTOR;
    append(conn, "region", RegionArrow::new(RegionGenerator::new(sf, 1, 1)));
    append(conn, "nation", NationArrow::new(NationGenerator::new(sf, 1, 1)));
    append(conn, "supplier", SupplierArrow::new(SupplierGenerator::new(sf, 1, 1)));
    append(conn, "part", PartArrow::new(PartGenerator::new(sf, 1, 1)));
    append(conn, "partsupp", PartSuppArrow::new(PartSuppGenerator::new(sf, 1, 1)));
    append(conn, "customer", CustomerArrow::new(CustomerGenerator::new(sf, 1, 1)));
    append(conn, "orders", OrderArrow::new(OrderGenerator::new(sf, 1, 1)));
    append(conn, "lineitem", LineItemArrow::new(LineItemGenerator::new(sf, 1, 1)));
}

fn append(conn: &Connection, table: &str, batches: impl RecordBatchReader) {
    let mut batches = batches.map(|batch| batch.map_err(|error| Error::Internal(error.to_string())));
    conn.append(table, &mut batches).unwrap();
}

/// The text of a query.
pub(crate) fn query(number: usize) -> String {
    std::fs::read_to_string(folder().join(format!("queries/q{number:02}.sql"))).unwrap()
}

/// Compares the answers of all queries; all that differ are told at once.
fn check_all(conn: &Connection) {
    let mut wrong = Vec::new();
    for number in 1..=22 {
        let sql = query(number);
        let answers = std::fs::read_to_string(folder().join(format!("answers/sf0.1/q{number:02}.csv"))).unwrap();
        let expected: Vec<Vec<String>> = answers.lines().skip(1).map(csv_fields).collect();
        match rows(conn, &sql) {
            Err(error) => wrong.push(format!("Q{number}: {error}")),
            Ok(got) if got.len() != expected.len() => {
                wrong.push(format!("Q{number}: {} rows instead of {}", got.len(), expected.len()));
            }
            Ok(got) => {
                let differ = got.iter().zip(&expected).position(|(got, expected)| !same_row(got, expected));
                if let Some(row) = differ {
                    wrong.push(format!("Q{number}, row {row}: {:?} instead of {:?}", got[row], expected[row]));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// No operator of any query is DataFusion's; all that are, are told at once.
fn check_plans(conn: &Connection) {
    let theirs = (1..=22).flat_map(|number| {
        let plan = rows(conn, &format!("EXPLAIN {}", query(number))).unwrap();
        let lines = plan.into_iter().filter_map(|mut row| row.pop()).filter(|line| line.contains("datafusion:"));
        lines.map(move |line| format!("Q{number}: {line}")).collect::<Vec<_>>()
    });
    let theirs: Vec<String> = theirs.collect();
    assert!(theirs.is_empty(), "{}", theirs.join("\n"));
}

/// Groups of which a join asks few are made of the rows that it will ask for.
fn check_reduced(conn: &Connection) {
    for (number, join) in
        [(2, " semi join: ps_partkey ="), (17, " semi join: l_partkey ="), (20, " semi join: l_partkey =")]
    {
        let plan = rows(conn, &format!("EXPLAIN {}", query(number))).unwrap();
        let lines: Vec<String> = plan.into_iter().filter_map(|mut row| row.pop()).collect();
        assert!(lines.iter().any(|line| line.contains(join)), "Q{number}: {}", lines.join("\n"));
    }
}

/// Of no vector does a scan decode a column for a filter and then once more.
/// Of these two scans of a table decode the same fields: they name it twice, or reduce a join by it.
const SCANS_A_TABLE_TWICE: [usize; 10] = [2, 7, 8, 11, 15, 17, 18, 20, 21, 22];

fn check_decoded_once(conn: &Connection) {
    for number in 1..=22 {
        let lines = rows(conn, &format!("EXPLAIN ANALYZE {}", query(number))).unwrap();
        let told: Vec<String> = lines.into_iter().filter_map(|mut row| row.pop()).collect();
        let bytes: Vec<&String> = told.iter().filter(|line| line.contains(" vectors, of which ")).collect();
        assert!(!bytes.is_empty(), "Q{number}: {}", told.join("\n"));
        for line in bytes {
            assert!(line.contains("of which 0 twice by one scan, "), "Q{number}: {line}");
            let by_two = !line.ends_with(", 0 by two");
            assert_eq!(by_two, SCANS_A_TABLE_TWICE.contains(&number), "Q{number}: {line}");
        }
    }
}

/// The fields of one line; quotes stand around fields that hold commas.
fn csv_fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '"' if quoted && chars.peek() == Some(&'"') => {
                chars.next();
                fields.last_mut().unwrap().push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            other => fields.last_mut().unwrap().push(other),
        }
    }
    fields
}

fn same_row(got: &[String], expected: &[String]) -> bool {
    got.len() == expected.len() && got.iter().zip(expected).all(|(got, expected)| same_value(got, expected))
}

/// Exactly equal; or numbers of which one side is coarser, see tpch/README.md.
fn same_value(got: &str, expected: &str) -> bool {
    if got == expected {
        return true;
    }
    let (Ok(a), Ok(b)) = (got.parse::<f64>(), expected.parse::<f64>()) else { return false };
    // Keys and counts have no point; decimals of the same scale must be the same text.
    if digits_behind_point(got) == digits_behind_point(expected) {
        return got.contains(['e', 'E']) && close(a, b);
    }
    let last_digit = 10f64.powi(-(digits_behind_point(got).min(digits_behind_point(expected)) as i32));
    close(a, b) || (a - b).abs() <= last_digit
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= TOLERANCE * a.abs().max(b.abs())
}

fn digits_behind_point(text: &str) -> usize {
    text.split_once('.').map_or(0, |(_, digits)| digits.len())
}

#[test]
fn all_queries_answer_as_duckdb_does_in_memory() {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let conn = Database::memory().unwrap().connect();
    load(&conn);
    check_all(&conn);
    check_plans(&conn);
    check_reduced(&conn);
    check_decoded_once(&conn);
    conn.execute("SET sinter.engine = 'datafusion'", &[]).unwrap();
    check_all(&conn);
    conn.execute("SET sinter.engine = 'auto'", &[]).unwrap();
    conn.execute("SET sinter.decompression = 'page'", &[]).unwrap();
    check_all(&conn);
}

#[test]
fn all_queries_answer_as_duckdb_does_from_a_file() {
    let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tpch.sinter");
    let database = Database::open(&path).unwrap();
    load(&database.connect());
    database.close().unwrap();
    drop(database);
    println!("TPC-H at scale factor {SCALE_FACTOR}: {} bytes", std::fs::metadata(&path).unwrap().len());
    check_all(&Database::open(&path).unwrap().connect());
}
