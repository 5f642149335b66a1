//! Runs the built binary.

#![allow(dead_code, reason = "each test file uses its part of this")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// What a run of `sinter` gave.
#[derive(Debug)]
pub(crate) struct Ran {
    /// Standard output.
    pub(crate) out: String,
    /// Standard error.
    pub(crate) err: String,
    /// Exit code; -1 when a signal ended it.
    pub(crate) code: i32,
}

/// `sinter` with these arguments and nothing on standard input.
pub(crate) fn sinter(arguments: &[&str]) -> Ran {
    sinter_with_input(arguments, "")
}

/// `sinter` with these arguments and this script on standard input.
pub(crate) fn sinter_with_input(arguments: &[&str], input: &str) -> Ran {
    ran(Command::new(env!("CARGO_BIN_EXE_sinter")).args(arguments), input)
}

/// `sinter` with these arguments in a directory, and nothing on standard input.
pub(crate) fn sinter_in(directory: &Path, arguments: &[&str]) -> Ran {
    ran(Command::new(env!("CARGO_BIN_EXE_sinter")).args(arguments).current_dir(directory), "")
}

fn ran(command: &mut Command, input: &str) -> Ran {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("sinter starts");
    let mut stdin = child.stdin.take().expect("stdin is a pipe");
    let input = input.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("sinter ends");
    // A script that stops at an error leaves input unread.
    let _ = writer.join();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("output is UTF-8");
    Ran { out: text(output.stdout), err: text(output.stderr), code: output.status.code().unwrap_or(-1) }
}

/// The output of statements that must succeed and say nothing on standard error.
pub(crate) fn output_of(arguments: &[&str]) -> String {
    let ran = sinter(arguments);
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{arguments:?}");
    ran.out
}

/// A path as an argument.
pub(crate) fn argument(path: &Path) -> &str {
    path.to_str().expect("temporary paths are UTF-8")
}
