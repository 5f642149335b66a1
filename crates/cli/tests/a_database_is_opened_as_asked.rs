//! Files, `--readonly`, options, exit codes.

mod shell;

use shell::{argument, output_of, sinter, sinter_in};

#[test]
fn a_new_database_is_announced_once_and_keeps_its_tables() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("shop.sinter");
    let ran = sinter(&[argument(&file), "-c", "CREATE TABLE t AS SELECT 42 AS a"]);
    assert_eq!((ran.out.as_str(), ran.code), ("", 0));
    assert_eq!(ran.err, format!("note: new database {}\n", file.display()));
    assert_eq!(output_of(&[argument(&file), "--csv", "-c", "SELECT a FROM t"]), "a\n42\n");
}

#[test]
fn readonly_never_creates() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("absent.sinter");
    let ran = sinter(&[argument(&file), "--readonly", "-c", "SELECT 1"]);
    assert_eq!((ran.out.as_str(), ran.code), ("", 1));
    assert!(ran.err.contains("absent.sinter"), "{}", ran.err);
    assert!(!file.exists());
}

#[test]
fn readonly_refuses_changes_and_answers_questions() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("shop.sinter");
    assert_eq!(sinter(&[argument(&file), "-c", "CREATE TABLE t AS SELECT 42 AS a"]).code, 0);
    let before = std::fs::read(&file).unwrap();
    let ran = sinter(&[argument(&file), "--readonly", "-c", "INSERT INTO t VALUES (43)"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    assert_eq!(output_of(&[argument(&file), "--readonly", "--csv", "-c", "SELECT a FROM t"]), "a\n42\n");
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

#[test]
fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("notes.txt");
    std::fs::write(&file, "these are my notes\n".repeat(1000)).unwrap();
    let ran = sinter(&[argument(&file), "-c", "SELECT 1"]);
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("notes.txt"), "{}", ran.err);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "these are my notes\n".repeat(1000));
}

#[test]
fn options_reach_the_engine() {
    let options = ["--threads", "1", "--memory-limit", "512MB", "--synchronous", "off", "--no-progress", "--csv"];
    let arguments: Vec<&str> = options.into_iter().chain(["-c", "SELECT 1 AS a"]).collect();
    assert_eq!(output_of(&arguments), "a\n1\n");
}

#[test]
fn a_wrong_command_line_is_exit_code_2() {
    for arguments in [&["--csv", "--json"][..], &["--threads", "0"], &["--memory-limit", "lots"], &["--no-such-option"]]
    {
        assert_eq!(sinter(arguments).code, 2, "{arguments:?}");
    }
}

/// `sinter serve shop.sinter` once opened a new database named serve.
#[test]
fn commands_of_later_versions_say_so_and_create_nothing() {
    let directory = tempfile::tempdir().unwrap();
    for arguments in [
        &["bench"][..],
        &["bench", "tpch", "--sf", "1"],
        &["serve", "shop.sinter", "--pg", "127.0.0.1:5433"],
        &["--csv", "serve"],
        &["--no-progress", "--threads", "1", "bench", "-c", "SELECT 1"],
    ] {
        let ran = sinter_in(directory.path(), arguments);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{arguments:?}: {}", ran.err);
        let name = arguments.iter().find(|word| ["bench", "serve"].contains(*word)).unwrap();
        assert!(ran.err.starts_with(&format!("error: 'sinter {name}' is not there yet")), "{}", ran.err);
        assert!(ran.err.ends_with(&format!(": sinter ./{name}\n")), "{}", ran.err);
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    assert!(!sinter(&["--help"]).out.contains("bench"));
}

#[test]
fn a_file_named_like_a_command_is_opened_by_its_path() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["bench", "demo"] {
        let path = format!("./{name}");
        let ran = sinter_in(directory.path(), &[&path, "-c", "CREATE TABLE t AS SELECT 42 AS a"]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(directory.path().join(name).is_file());
        let ran = sinter_in(directory.path(), &["--csv", &path, "-c", "SELECT a FROM t"]);
        assert_eq!((ran.code, ran.out.as_str()), (0, "a\n42\n"), "{}", ran.err);
    }
    let ran = sinter_in(directory.path(), &["--csv", "codecs"]);
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(ran.err.contains("'codecs' is a command") && ran.err.ends_with("sinter ./codecs\n"), "{}", ran.err);
    assert!(!directory.path().join("codecs").exists());
}

#[test]
fn help_and_version_succeed() {
    assert!(sinter(&["--help"]).out.contains("Usage: sinter"));
    assert!(sinter(&["help"]).out.contains("demo"));
    assert!(sinter(&["--version"]).out.starts_with("sinter "));
}

#[test]
fn codecs_lists_the_schemes() {
    let codecs = output_of(&["codecs", "--csv"]);
    assert!(codecs.lines().count() > 5 && codecs.contains("bitpack"), "{codecs}");
}
