//! Scripts from standard input, `-c` and `.read`: where they stop, what they say, what they leave behind.

mod shell;

use shell::{argument, sinter, sinter_with_input};

#[test]
fn what_ran_before_the_error_stays_and_the_place_is_named() {
    let script = "CREATE TABLE t (a INT);\nINSERT INTO t VALUES (1);\nSELECT count(*) AS n FROM t;\n\nSELECT a FROM\n  nowhere;\nSELECT 'not reached';\n";
    let ran = sinter_with_input(&["--csv"], script);
    assert_eq!((ran.out.as_str(), ran.code), ("n\n1\n", 1));
    assert!(ran.err.starts_with("stdin:5: error: ") && ran.err.contains("nowhere"), "{}", ran.err);
}

#[test]
fn a_syntax_error_names_line_and_column_of_the_script() {
    let ran = sinter_with_input(&[], "SELECT 1;\n\n  SELECT 2 2;\n");
    assert_eq!(ran.code, 1);
    assert!(ran.err.starts_with("stdin:3: error: "), "{}", ran.err);
    assert!(ran.err.ends_with("at line 3, column 12\n"), "{}", ran.err);
}

#[test]
fn semicolons_in_strings_and_comments_end_nothing() {
    let ran = sinter_with_input(&["--csv"], "SELECT ';' AS a -- ;\n, /* ; */ 'it''s;' AS b;");
    assert_eq!((ran.out.as_str(), ran.code), ("a,b\n;,it's;\n", 0), "{}", ran.err);
}

#[test]
fn several_commands_run_in_order() {
    let ran =
        sinter(&["--csv", "-c", "CREATE TABLE t AS SELECT 7 AS a", "-c", "SELECT a FROM t; SELECT a + 1 AS b FROM t"]);
    assert_eq!((ran.out.as_str(), ran.code), ("a\n7\nb\n8\n", 0), "{}", ran.err);
}

#[test]
fn a_script_reads_a_script_and_errors_name_the_inner_one() {
    let directory = tempfile::tempdir().unwrap();
    let inner = directory.path().join("in ner.sql");
    std::fs::write(&inner, "SELECT 1 AS a;\nSELECT wrong;\n").unwrap();
    let ran = sinter_with_input(&["--csv"], &format!(".read '{}'\n", argument(&inner)));
    assert_eq!((ran.out.as_str(), ran.code), ("a\n1\n", 1));
    assert!(ran.err.starts_with(&format!("{}:2: error: ", argument(&inner))), "{}", ran.err);
}

#[test]
fn a_script_that_reads_itself_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("circle.sql");
    std::fs::write(&script, format!(".read {}\n", argument(&script))).unwrap();
    let ran = sinter(&["-c", &format!(".read {}", argument(&script))]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("scripts read each other"), "{}", ran.err);
}

#[test]
fn binary_input_is_an_error_and_not_a_panic() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("noise");
    std::fs::write(&file, [0xff, 0xfe, b'\n', 0x80]).unwrap();
    let ran = sinter(&["-c", &format!(".read {}", argument(&file))]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("not UTF-8"), "{}", ran.err);
}

#[test]
fn quit_ends_a_script() {
    let ran = sinter_with_input(&["--csv"], "SELECT 1 AS a;\n.quit\nSELECT wrong;\n");
    assert_eq!((ran.out.as_str(), ran.code), ("a\n1\n", 0));
}
