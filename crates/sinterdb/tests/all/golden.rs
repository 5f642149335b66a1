//! A file written by version 1 of the format always opens, and answers as it did on the day that it was written.
//!
//! `golden/v1-all-types.sinter` holds every type with extremes and NULL, every scheme, several row groups and deleted
//! rows; `golden/v1-all-types.answers` holds the queries below with their answers. Neither is ever written again: a later
//! format gets files of its own.

use crate::answers::lines;
use sinter_codec::SCHEMES;
use sinterdb::{Config, Connection, Database};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Larger than this a file is a burden to every clone.
const GOLDEN_BYTES_MAX: u64 = 300_000;

const QUERIES: &[&str] = &[
    "SELECT \"table\", rows FROM tables() ORDER BY 1",
    "SELECT * FROM numbers ORDER BY id",
    "SELECT * FROM texts_and_times ORDER BY id",
    "SELECT * FROM nested ORDER BY id",
    "SELECT count(*), sum(id), min(id), max(id), count(some), sum(some), min(word), max(word) FROM groups",
    "SELECT * FROM groups WHERE id IN (1, 2, 131072, 131073, 262144, 262145, 300000) ORDER BY id",
    "SELECT word, count(*), sum(id) FROM groups GROUP BY word ORDER BY word",
];

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/v1-all-types.sinter")
}

fn answers(conn: &Connection) -> String {
    let mut out = String::new();
    let mut ask = |sql: &str| {
        writeln!(out, "{sql}").unwrap();
        lines(conn, sql).iter().for_each(|line| writeln!(out, "    {line}").unwrap());
    };
    QUERIES.iter().copied().for_each(&mut ask);
    for entry in SCHEMES.iter().take_while(|entry| entry.tag <= 11) {
        let name = entry.name;
        ask(&format!("SELECT * FROM scheme_{name} WHERE id < 4 OR id > 1998 ORDER BY id"));
        ask(&format!(
            "SELECT count(*), sum(id), sum(CAST(v AS DECIMAL(30, 3))), min(v), max(v), count(v) FROM scheme_{name}"
        ));
    }
    out
}

#[test]
fn the_golden_file_of_version_1_opens_and_answers_as_ever() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("golden.sinter");
    std::fs::copy(golden(), &path).unwrap();
    let expected = std::fs::read_to_string(golden().with_extension("answers")).unwrap();
    let database = Database::open_with(&path, Config::builder().read_only(true)).unwrap();
    assert_eq!(answers(&database.connect()), expected);
    drop(database);
    // It can be written on, and answers the same from what this version writes.
    let database = Database::open(&path).unwrap();
    let conn = database.connect();
    conn.execute("INSERT INTO groups SELECT * FROM groups", &[]).unwrap();
    conn.execute("DELETE FROM groups WHERE id > 0", &[]).unwrap();
    conn.execute("DROP TABLE groups", &[]).unwrap();
    create_groups(&conn);
    conn.execute("CHECKPOINT", &[]).unwrap();
    database.close().unwrap();
    drop(database);
    assert_eq!(answers(&Database::open(&path).unwrap().connect()), expected);
}

/// Writes the two files, once in the life of a format: `cargo test -p sinterdb -- --ignored write_the_golden_file`.
#[test]
#[ignore = "golden files are written once"]
fn write_the_golden_file() {
    let path = golden();
    assert!(!path.exists(), "{} is there; a golden file is never written again", path.display());
    let database = Database::open(&path).unwrap();
    let conn = database.connect();
    for sql in TABLES {
        conn.execute(sql, &[]).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    create_groups(&conn);
    for entry in SCHEMES {
        let name = entry.name;
        let (ty, value) = match name {
            "fsst" => ("VARCHAR", "CAST(value % 700 AS VARCHAR) || '.125'"),
            "alp" => ("DOUBLE", "CAST(value % 700 AS DOUBLE) / 8"),
            "alp_rd" => ("DOUBLE", "CAST(value AS DOUBLE) / 7"),
            "constant" => ("INT", "7"),
            "rle" => ("INT", "value / 100"),
            "pfor" | "pfor_delta" => ("BIGINT", "CASE WHEN value % 500 = 0 THEN value * 1000000 ELSE value % 60 END"),
            _ => ("BIGINT", "value % 60"),
        };
        let value =
            if name == "constant" { value.to_owned() } else { format!("CASE WHEN value % 9 <> 0 THEN {value} END") };
        conn.execute(&format!("CREATE TABLE scheme_{name} (id INT, v {ty}) WITH (compression_v = '{name}')"), &[])
            .unwrap();
        conn.execute(&format!("INSERT INTO scheme_{name} SELECT value, {value} FROM generate_series(1, 2000)"), &[])
            .unwrap();
    }
    conn.execute("CHECKPOINT", &[]).unwrap();
    for entry in SCHEMES {
        let name = entry.name;
        let schemes = lines(&conn, &format!("SELECT scheme FROM storage('scheme_{name}') WHERE \"column\" = 'v'"));
        assert!(schemes[0].contains(name), "{name} gave way to {schemes:?}");
    }
    database.close().unwrap();
    drop(conn);
    drop(database);
    let bytes = std::fs::metadata(&path).unwrap().len();
    assert!(bytes <= GOLDEN_BYTES_MAX, "{bytes} bytes");
    let database = Database::open_with(&path, Config::builder().read_only(true)).unwrap();
    std::fs::write(path.with_extension("answers"), answers(&database.connect())).unwrap();
}

/// Three row groups, a few rows of which are deleted.
fn create_groups(conn: &Connection) {
    for sql in [
        "CREATE TABLE groups (id BIGINT NOT NULL, some INT, word VARCHAR)",
        "INSERT INTO groups SELECT value, CASE WHEN value / 1000 % 3 = 0 THEN value / 1000 END, 'word ' || (value / 70000) \
         FROM generate_series(1, 300000)",
        "DELETE FROM groups WHERE id IN (2, 131073) OR id BETWEEN 5000 AND 5100",
    ] {
        conn.execute(sql, &[]).unwrap();
    }
}

const TABLES: &[&str] = &[
    "CREATE TABLE numbers (id INT, i8 TINYINT, i16 SMALLINT, i32 INT, i64 BIGINT, u8 TINYINT UNSIGNED, \
     u16 SMALLINT UNSIGNED, u32 INT UNSIGNED, u64 BIGINT UNSIGNED, f32 REAL, f64 DOUBLE, d9 DECIMAL(9, 2), \
     d18 DECIMAL(18, 6), d38 DECIMAL(38, 10), b BOOLEAN)",
    "INSERT INTO numbers VALUES (1, -128, -32768, -2147483648, -9223372036854775808, 0, 0, 0, 0, '-0.0', '5e-324', \
     -9999999.99, -999999999999.999999, -9999999999999999999999999999.9999999999, true)",
    "INSERT INTO numbers VALUES (2, 127, 32767, 2147483647, 9223372036854775807, 255, 65535, 4294967295, \
     18446744073709551615, '3.4028235e38', 'NaN', 9999999.99, 999999999999.999999, \
     9999999999999999999999999999.9999999999, false)",
    "INSERT INTO numbers (id) VALUES (3)",
    "CREATE TABLE texts_and_times (id INT, s VARCHAR NOT NULL DEFAULT 'none', x BLOB, u UUID, d DATE, t TIME, t9 TIME(9), \
     ts TIMESTAMP, ns TIMESTAMP(9), tz TIMESTAMP WITH TIME ZONE, i INTERVAL)",
    "INSERT INTO texts_and_times VALUES (1, 'héllo 日本 🦀', X'00FF', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '0001-01-01', \
     '00:00:00', '23:59:59.999999999', '1969-12-31 23:59:59.999999', '2262-04-11 23:47:16.854775807', \
     '2024-06-01 12:00:00+05:30', '13 months -2 days 3.5 seconds')",
    "INSERT INTO texts_and_times VALUES (2, '', X'', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '9999-12-31', \
     '23:59:59.999999', '00:00:00', '9999-12-31 23:59:59.999999', '1970-01-01 00:00:00.000000001', \
     '1970-01-01 00:00:00+00:00', '0 seconds')",
    "INSERT INTO texts_and_times (id) VALUES (3)",
    "CREATE TABLE nested (id INT, l INT[], ll VARCHAR[][], s STRUCT<a INT, b VARCHAR>, ls STRUCT<x DOUBLE>[])",
    "INSERT INTO nested VALUES (1, [1, NULL, 3], [['a'], ['b', NULL]], struct(1 AS a, 'x' AS b), [struct(1.5 AS x)]), \
     (2, [], [[]], struct(NULL AS a, '' AS b), NULL), (3, NULL, NULL, NULL, [])",
];
