//! Each output mode, on values that are easy to get wrong: NULL beside an empty string, quotes, line ends, wide numbers.

mod shell;

use shell::{output_of, sinter, sinter_with_input};

const ROWS: &str = "SELECT * FROM (VALUES (1, 'a,\"b\"'), (2, ''), (3, NULL)) AS t(n, s) ORDER BY n";

#[test]
fn a_table_has_types_and_a_count() {
    let expected = "\
┌────────┬─────────┐
│      n │ s       │
│ bigint │ varchar │
├────────┼─────────┤
│      1 │ a,\"b\"   │
│      2 │         │
│      3 │ NULL    │
└────────┴─────────┘
3 rows
";
    assert_eq!(output_of(&["-c", ROWS]), expected);
}

#[test]
fn csv_tells_null_from_an_empty_string() {
    assert_eq!(output_of(&["--csv", "-c", ROWS]), "n,s\n1,\"a,\"\"b\"\"\"\n2,\"\"\n3,\n");
}

#[test]
fn json_keeps_all_digits() {
    let sql = "SELECT 9223372036854775807 AS big, CAST('12345678901234567890.12' AS DECIMAL(38, 2)) AS exact, \
               DATE '2013-01-01' AS day, [1, NULL] AS list, CAST(NULL AS VARCHAR) AS nothing";
    assert_eq!(
        output_of(&["--json", "-c", sql]),
        "[{\"big\":9223372036854775807,\"exact\":12345678901234567890.12,\"day\":\"2013-01-01\",\
         \"list\":[1,null],\"nothing\":null}]\n"
    );
}

#[test]
fn markdown_and_line() {
    assert_eq!(
        output_of(&["--markdown", "-c", ROWS]),
        "|   n | s     |\n|----:|-------|\n|   1 | a,\"b\" |\n|   2 |       |\n|   3 | NULL  |\n"
    );
    assert_eq!(output_of(&["--line", "-c", "SELECT 1 AS a, 'x' AS long"]), "   a = 1\nlong = x\n");
}

#[test]
fn a_mode_can_change_within_a_script() {
    let ran = sinter_with_input(&[], ".mode csv\nSELECT 1 AS a;\n.mode json\nSELECT 2 AS b\n");
    assert_eq!((ran.out.as_str(), ran.err.as_str(), ran.code), ("a\n1\n[{\"b\":2}]\n", "", 0));
}

#[test]
fn long_results_stream() {
    let rows = "SELECT count(*) AS n FROM generate_series(1, 100000)";
    assert_eq!(output_of(&["--csv", "-c", rows]), "n\n100000\n");
    let ran = sinter(&["--csv", "-c", "SELECT * FROM generate_series(1, 100000)"]);
    assert_eq!(ran.out.lines().count(), 100_001);
}

#[test]
fn explain_is_text_and_not_a_table() {
    let plan = output_of(&["-c", "EXPLAIN SELECT 1"]);
    assert!(!plan.is_empty() && !plan.contains('│'), "{plan}");
}

#[test]
fn schemes_and_kernels_are_listed_with_what_they_do() {
    let schemes = output_of(&["codecs", "--csv"]);
    assert!(schemes.starts_with("scheme,") && schemes.contains("\nhalves,"), "{schemes}");
    let kernels = output_of(&["codecs", "--kernels", "--csv"]);
    assert!(kernels.starts_with("scheme,layout,type,kernel,way,values_per_second,speed_up\n"), "{kernels}");
    for (scheme, kernel, way) in [
        ("for", "range", "native"),
        ("delta", "compare", "decode"),
        ("dict", "like", "native"),
        ("fsst", "equal", "native"),
    ] {
        let is_row =
            |line: &&str| line.starts_with(&format!("{scheme},")) && line.contains(&format!(",{kernel},{way},"));
        assert!(kernels.lines().any(|line| is_row(&line)), "{kernel} on {scheme} is not {way}:\n{kernels}");
    }
}

#[test]
fn what_decoding_costs_is_said_and_measured_for_each_scheme() {
    let decoding = output_of(&["codecs", "--decoding", "--csv"]);
    let header = "scheme,layout,type,bytes_per_value,said_nanoseconds,measured_nanoseconds\n";
    let rows = decoding.strip_prefix(header).unwrap_or_else(|| panic!("no such header:\n{decoding}"));
    for row in rows.lines() {
        // From the end: layouts have commas of their own.
        for nanoseconds in row.rsplit(',').take(2) {
            assert!(nanoseconds.parse::<f64>().is_ok_and(|number| number > 0.0), "{nanoseconds} in {row}");
        }
    }
    let schemes = output_of(&["codecs", "--csv"]);
    for scheme in schemes.lines().skip(1).filter_map(|line| line.split(',').next()) {
        assert!(rows.lines().any(|row| row.starts_with(&format!("{scheme},"))), "{scheme} is missing:\n{decoding}");
    }
}
