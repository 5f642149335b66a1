//! The interactive shell, driven through a pseudo terminal.
#![cfg(unix)]

use rexpect::session::{PtySession, spawn_command};
use std::path::Path;
use std::process::Command;

const TAB: &str = "\t";

/// A shell whose history lies in `state`, without colours, so that the screen holds what it says.
fn shell(state: &Path) -> PtySession {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sinter"));
    command.env("XDG_STATE_HOME", state).env("NO_COLOR", "1").env("TERM", "xterm").env_remove("INPUTRC");
    let mut session = spawn_command(command, Some(20_000)).expect("sinter starts");
    session.exp_string("sinter> ").expect("a prompt");
    session
}

/// Waits for `text`; says what came instead.
fn expect(session: &mut PtySession, text: &str) {
    if let Err(error) = session.exp_string(text) {
        panic!("waited for {text:?}: {error}");
    }
}

/// Types without pressing Enter.
fn type_keys(session: &mut PtySession, keys: &str) {
    session.send(keys).and_then(|_| session.flush()).expect("the terminal takes keys");
}

fn leave(mut session: PtySession) {
    session.send_control('d').unwrap();
    session.exp_eof().expect("the shell ends");
}

#[test]
fn a_statement_may_take_several_lines() {
    let state = tempfile::tempdir().unwrap();
    let mut session = shell(state.path());
    session.send_line("SELECT ';' AS a,").unwrap();
    expect(&mut session, "   ...> ");
    session.send_line("41 + 1 AS answer;").unwrap();
    expect(&mut session, "42 ");
    expect(&mut session, "1 row");
    expect(&mut session, "sinter> ");
    leave(session);
}

#[test]
fn errors_are_told_and_the_session_goes_on() {
    let state = tempfile::tempdir().unwrap();
    let mut session = shell(state.path());
    session.send_line("SELECT * FROM nowhere;").unwrap();
    expect(&mut session, "error: ");
    session.send_line("CREATE TABLE t AS SELECT 1 AS a;").unwrap();
    expect(&mut session, "CREATE TABLE");
    expect(&mut session, "sinter> ");
    leave(session);
}

#[test]
fn control_c_clears_the_line_and_stops_a_running_statement() {
    let state = tempfile::tempdir().unwrap();
    let mut session = shell(state.path());
    type_keys(&mut session, "SELECT 'never finished");
    expect(&mut session, "finished");
    session.send_control('c').unwrap();
    expect(&mut session, "sinter> ");
    session.send_line("SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 1000000) b;").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    session.send_control('c').unwrap();
    expect(&mut session, "cancelled");
    session.send_line("SELECT 40 + 2 AS answer;").unwrap();
    expect(&mut session, "42");
    expect(&mut session, "sinter> ");
    leave(session);
}

#[test]
fn tab_completes_keywords_tables_and_columns() {
    let state = tempfile::tempdir().unwrap();
    let mut session = shell(state.path());
    session.send_line("CREATE TABLE harbours AS SELECT 17 AS depth_metres;").unwrap();
    expect(&mut session, "CREATE TABLE");
    expect(&mut session, "sinter> ");
    type_keys(&mut session, &format!("SEL{TAB}"));
    expect(&mut session, "SELECT");
    // Columns are known once the table has been named.
    session.send_control('u').unwrap();
    type_keys(&mut session, &format!("SELECT max(depth_metres) AS deepest FROM harb{TAB}"));
    expect(&mut session, "harbours");
    type_keys(&mut session, &format!(" WHERE dep{TAB}"));
    expect(&mut session, "WHERE depth_metres");
    session.send_line(" > 0;").unwrap();
    expect(&mut session, "17 ");
    expect(&mut session, "sinter> ");
    leave(session);
}

#[test]
fn the_history_outlives_the_session() {
    let state = tempfile::tempdir().unwrap();
    let mut session = shell(state.path());
    session.send_line("SELECT 'remember me' AS a;").unwrap();
    expect(&mut session, "1 row");
    expect(&mut session, "sinter> ");
    leave(session);
    assert!(state.path().join("sinter/history").exists());

    let mut session = shell(state.path());
    type_keys(&mut session, "\u{1b}[A");
    expect(&mut session, "remember me");
    session.send_line("").unwrap();
    expect(&mut session, "1 row");
    expect(&mut session, "sinter> ");
    leave(session);
}
