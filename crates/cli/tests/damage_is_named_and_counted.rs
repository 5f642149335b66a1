//! `sinter check`, `sinter inspect` and `--on-corruption skip`, on files that are whole and on files that are not.

mod shell;

use shell::{argument, output_of, sinter};
use std::path::{Path, PathBuf};

/// A closed database with two tables of two row groups each.
fn shop(directory: &Path) -> PathBuf {
    let file = directory.join("shop.sinter");
    let sql =
        "CREATE TABLE t AS SELECT value AS id, 'name ' || value AS name FROM generate_series(1, 1100) AS g (value);
        INSERT INTO t SELECT value, 'name ' || value FROM generate_series(2001, 3100) AS g (value);
        CREATE TABLE u AS SELECT value AS id FROM generate_series(1, 1100) AS g (value);";
    assert_eq!(sinter(&[argument(&file), "-c", sql]).code, 0);
    file
}

/// Changes a byte within the first page that `sinter check` then says is this.
fn damage(file: &Path, what: &str) -> String {
    let whole = std::fs::read(file).unwrap();
    for at in (8192 + 40..whole.len()).step_by(4096) {
        let mut bytes = whole.clone();
        bytes[at] ^= 4;
        std::fs::write(file, &bytes).unwrap();
        let ran = sinter(&["check", argument(file)]);
        if ran.out.contains(what) {
            assert_eq!(ran.code, 1, "{}", ran.err);
            assert_eq!(std::fs::read(file).unwrap(), bytes, "it was only looked at");
            return ran.out;
        }
    }
    panic!("no page is {what}");
}

#[test]
fn a_whole_database_passes() {
    let directory = tempfile::tempdir().unwrap();
    let file = shop(directory.path());
    let ran = sinter(&["check", argument(&file)]);
    assert_eq!((ran.code, ran.out.as_str()), (0, ""), "{}", ran.err);
    assert!(ran.err.contains("in 2 tables") && ran.err.contains("nothing is damaged"), "{}", ran.err);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
    assert_eq!(output_of(&["inspect", argument(&file), "--json"]).matches("\"checkpoint\":").count(), 2);
    let shown = output_of(&["inspect", argument(&file)]);
    for title in ["headers\n", "logs\n", "space\n", "pages\n", "columns\n", "table root", "closed"] {
        assert!(shown.contains(title), "{title}: {shown}");
    }
}

#[test]
fn a_damaged_chunk_is_named_and_skipped_on_demand() {
    let directory = tempfile::tempdir().unwrap();
    let file = shop(directory.path());
    let found = damage(&file, "table t, columns id, name, 1100 rows with ids 1100 to 2199");
    assert!(
        found.contains("page ") && found.contains("(chunk) at byte ") && found.contains("restore a backup"),
        "{found}"
    );
    let select = ["-c", "SELECT sum(length(name)) AS s FROM t", "--csv"];
    let ran = sinter(&[&[argument(&file)], &select[..]].concat());
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{}", ran.err);
    assert!(ran.err.contains("shop.sinter: page "), "{}", ran.err);
    let ran = sinter(&[&[argument(&file), "--on-corruption", "skip"], &select[..]].concat());
    assert_eq!((ran.code, ran.out.as_str()), (0, "s\n8793\n"), "{}", ran.err);
    assert!(ran.err.contains("note: 1 row group (1,100 rows) of table t was left out: "), "{}", ran.err);
    let json = sinter(&["check", argument(&file), "--json"]).out;
    assert!(json.contains("\"first_row_id\":1100") || json.contains("\"first_row_id\": 1100"), "{json}");
}

#[test]
fn a_lost_table_leaves_the_other() {
    let directory = tempfile::tempdir().unwrap();
    let file = shop(directory.path());
    let found = damage(&file, "(table root)");
    let (lost, left) = if found.contains("table t:") { ("t", "u") } else { ("u", "t") };
    let sql = format!("SELECT count(*) AS n FROM {left}");
    assert_eq!(sinter(&[argument(&file), "-c", &sql]).code, 1);
    let ran = sinter(&[argument(&file), "--on-corruption", "skip", "--csv", "-c", &sql]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains(&format!("table '{lost}' cannot be read")), "{}", ran.err);
    let sql = format!("SELECT count(*) AS n FROM {lost}");
    let ran = sinter(&[argument(&file), "--on-corruption", "skip", "-c", &sql]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains(&format!("table '{lost}' cannot be read")), "{}", ran.err);
}

#[test]
fn what_cannot_be_looked_at_is_exit_code_2() {
    let directory = tempfile::tempdir().unwrap();
    let absent = directory.path().join("absent.sinter");
    for command in ["check", "inspect"] {
        let ran = sinter(&[command, argument(&absent)]);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.err);
        assert!(ran.err.contains("there is no database"), "{}", ran.err);
        let text = directory.path().join("notes.txt");
        std::fs::write(&text, "these are my notes\n".repeat(1000)).unwrap();
        let ran = sinter(&[command, argument(&text)]);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains("not a SinterDB database"), "{}", ran.err);
    }
    assert!(!absent.exists());
}
