//! Results as text, one way for all tests: NULL as `NULL`, an empty text as `(empty)`, a UUID with its hyphens, floats
//! as the shortest text that reads back as the same float, times as ISO 8601.

use sinterdb::arrow::array::{Array, AsArray, RecordBatch};
use sinterdb::arrow::datatypes::{DataType, Field};
use sinterdb::arrow::util::display::{ArrayFormatter, FormatOptions};
use sinterdb::{Connection, Result};

/// The rows of a query as text.
pub(crate) fn rows(conn: &Connection, sql: &str) -> Result<Vec<Vec<String>>> {
    Ok(conn.sql(sql)?.collect()?.iter().flat_map(rows_of).collect())
}

/// The rows of a query, each as one line.
pub(crate) fn lines(conn: &Connection, sql: &str) -> Vec<String> {
    rows(conn, sql).unwrap_or_else(|error| panic!("{sql}: {error}")).iter().map(|row| row.join(" ")).collect()
}

/// The only value of a query that yields one.
pub(crate) fn value(conn: &Connection, sql: &str) -> String {
    let mut lines = lines(conn, sql);
    assert_eq!(lines.len(), 1, "{sql}");
    lines.remove(0)
}

/// The rows of a batch as text.
pub(crate) fn rows_of(batch: &RecordBatch) -> Vec<Vec<String>> {
    let schema = batch.schema();
    let columns: Vec<Vec<String>> =
        batch.columns().iter().zip(schema.fields()).map(|(array, field)| texts(array, field)).collect();
    (0..batch.num_rows()).map(|row| columns.iter().map(|column| column[row].clone()).collect()).collect()
}

fn texts(array: &dyn Array, field: &Field) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let formatter = ArrayFormatter::try_new(array, &options).expect("every type of ours can be shown");
    let text = |row: usize| match array.data_type() {
        _ if array.is_null(row) => "NULL".to_owned(),
        DataType::Utf8 if array.as_string::<i32>().value(row).is_empty() => "(empty)".to_owned(),
        DataType::Binary if array.as_binary::<i32>().value(row).is_empty() => "(empty)".to_owned(),
        DataType::FixedSizeBinary(16) if is_uuid(field) => hyphenated(array.as_fixed_size_binary().value(row)),
        _ => formatter.value(row).to_string(),
    };
    (0..array.len()).map(text).collect()
}

fn is_uuid(field: &Field) -> bool {
    field.metadata().get("ARROW:extension:name").is_some_and(|name| name == "arrow.uuid")
}

fn hyphenated(bytes: &[u8]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}
