//! Statements that nobody types: `-c`, standard input, `.read FILE`.
//!
//! A script stops at its first error. Statements run as soon as they are whole, so a script may be a pipe that is still
//! being written, and only one statement is in memory.

use crate::dot::{self, Next};
use crate::failure::{Failure, Result};
use crate::session::Session;
use crate::split::{Located, Piece, Splitter};
use sinterdb::Error;
use std::io::BufRead;
use std::path::Path;

/// Scripts that read scripts that read scripts: more than this is a circle.
const DEPTH_MAX: usize = 32;

/// Runs the script that `lines` holds; `name` stands before the line in errors.
///
/// # Errors
/// The first error, with its place.
pub(crate) fn run(session: &mut Session, name: &str, lines: &mut dyn BufRead, depth: usize) -> Result<Next> {
    if depth > DEPTH_MAX {
        return Err(Failure::Input(format!("scripts read each other more than {DEPTH_MAX} deep")));
    }
    let mut splitter = Splitter::default();
    let mut bytes = Vec::new();
    let mut line_number = 0;
    loop {
        bytes.clear();
        line_number += 1;
        let count = lines.read_until(b'\n', &mut bytes).map_err(|error| cannot_read(name, &error))?;
        let line = std::str::from_utf8(&bytes)
            .map_err(|_| Failure::Input("the script is not UTF-8 text".into()).at(format!("{name}:{line_number}")))?;
        // Some editors begin a file with a byte order mark.
        let line = if line_number == 1 { line.trim_start_matches('\u{feff}') } else { line };
        let pieces = if count > 0 { splitter.push(line) } else { splitter.finish().into_iter().collect() };
        for piece in pieces {
            if run_piece(session, name, &piece, depth)? == Next::Quit {
                return Ok(Next::Quit);
            }
        }
        if count == 0 {
            return Ok(Next::GoOn);
        }
    }
}

/// Runs the script in a file.
///
/// # Errors
/// The first error, with its place.
pub(crate) fn run_file(session: &mut Session, path: &Path, depth: usize) -> Result<Next> {
    let name = path.display().to_string();
    let file = std::fs::File::open(path).map_err(|error| cannot_read(&name, &error))?;
    run(session, &name, &mut std::io::BufReader::new(file), depth)
}

fn run_piece(session: &mut Session, name: &str, piece: &Piece, depth: usize) -> Result<Next> {
    match piece {
        Piece::Statement(statement) => run_statement(session, name, statement).map(|()| Next::GoOn),
        Piece::Dot(command) => {
            let place = |failure: Failure| failure.at(format!("{name}:{}", command.line));
            dot::run(session, &command.text, depth).map_err(place)
        }
    }
}

fn run_statement(session: &Session, name: &str, statement: &Located) -> Result<()> {
    session.run(&statement.text).map_err(|failure| {
        let failure = if session.connection.statements(&statement.text).is_err() {
            syntax_error_in_script(session, statement).unwrap_or(failure)
        } else {
            failure
        };
        failure.at(format!("{name}:{}", statement.line))
    })
}

/// The parser counts lines from the start of what it is given. Given the statement at its place in a script of blanks, it
/// names the line and column of the script.
fn syntax_error_in_script(session: &Session, statement: &Located) -> Option<Failure> {
    let blanks = "\n".repeat(statement.line - 1) + &" ".repeat(statement.indent);
    let error: Error = session.connection.statements(&(blanks + &statement.text)).err()?;
    Some(error.into())
}

fn cannot_read(name: &str, error: &std::io::Error) -> Failure {
    Failure::Input(format!("cannot read {name}: {error}"))
}
