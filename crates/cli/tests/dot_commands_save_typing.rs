//! `.tables`, `.schema`, `.storage`, `.import` and the rest.

mod shell;

use shell::{argument, sinter, sinter_with_input};

const TABLE: &str =
    "CREATE TABLE t (a INT NOT NULL, \"B c\" VARCHAR, d DECIMAL(15, 2)); INSERT INTO t VALUES (1, 'x', 2);\n";

#[test]
fn tables_and_their_columns() {
    let ran = sinter_with_input(&[], &format!("{TABLE}.tables\n.schema t\n"));
    let expected = "t\nCREATE TABLE t (\n  a INTEGER NOT NULL,\n  \"B c\" VARCHAR,\n  d DECIMAL(15,2)\n);\n";
    assert_eq!((ran.out.as_str(), ran.code), (expected, 0), "{}", ran.err);
}

#[test]
fn storage_has_a_line_per_column() {
    let ran = sinter_with_input(&["--csv"], &format!("{TABLE}.storage t\n.memory\n"));
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.starts_with("column,type,scheme,values,nulls,plain_bytes,bytes,ratio\na,"), "{}", ran.out);
}

#[test]
fn import_creates_the_table_and_then_appends() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("data.csv");
    std::fs::write(&file, "a,b\n1,x\n2,\n").unwrap();
    let import = format!(".import {} t\n", argument(&file));
    let ran = sinter_with_input(&["--csv"], &format!("{import}{import}SELECT a, b FROM t ORDER BY a;\n"));
    assert_eq!((ran.out.as_str(), ran.code), ("a,b\n1,x\n1,x\n2,\n2,\n", 0), "{}", ran.err);
}

#[test]
fn the_timer_goes_to_standard_error() {
    let ran = sinter_with_input(&["--csv"], ".timer on\nSELECT 1 AS a;\n.timer off\nSELECT 2 AS a;\n");
    assert_eq!((ran.out.as_str(), ran.code), ("a\n1\na\n2\n", 0));
    assert!(ran.err.starts_with("time: ") && ran.err.lines().count() == 1, "{}", ran.err);
}

#[test]
fn unknown_commands_and_wrong_arguments_are_errors_with_a_remedy() {
    for (command, message) in [
        (".tabels", "error: unknown command .tabels; .help lists those there are\n"),
        (".mode html", "error: unknown mode html; there are table, box, csv, json, markdown and line\n"),
        (".read", "error: usage: .read FILE\n"),
        (".read nowhere.sql", "error: cannot read nowhere.sql: No such file or directory (os error 2)\n"),
    ] {
        let ran = sinter(&["-c", command]);
        assert_eq!((ran.err.strip_prefix("-c:1: "), ran.code), (Some(message), 1));
    }
}

#[test]
fn help_lists_every_command() {
    let help = sinter(&["-c", ".help"]).out;
    for command in [".tables", ".schema", ".storage", ".memory", ".kv", ".timer", ".mode", ".read", ".import", ".quit"]
    {
        assert!(help.contains(command), "{command}");
    }
}
