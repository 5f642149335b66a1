//! The `sinter` shell: SQL from a terminal, a script or the command line; results for people and for programs.
//!
//! Everything goes through the front door (the `sinterdb` crate). The way of a statement: [`split`] finds its end,
//! [`session`] runs it, [`output`] writes what it gives. [`repl`], [`script`] and the command line only differ in where
//! statements come from.
//!
//! Exit codes: 0; 1 for an error in SQL or data, or damage that `check` finds; 2 for a wrong command line, or a database
//! that `check` and `inspect` cannot look at; 130 after Ctrl-C.

mod args;
mod complete;
mod demo;
mod dot;
mod failure;
mod highlight;
mod interrupt;
mod lex;
mod look;
mod notice;
mod output;
mod progress;
mod repl;
mod script;
mod session;
mod split;
mod words;

use crate::args::{Args, Command};
use crate::dot::Next;
use crate::failure::{Failure, Result};
use crate::session::Session;
use clap::Parser;
use sinterdb::Database;
use std::io::IsTerminal;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = Args::parse();
    let ran = match &args.command {
        None => shell(&args),
        Some(Command::Demo(args)) => demo::run(args),
        Some(Command::Codecs { kernels, decoding, format }) => codecs(*kernels, *decoding, format.mode()),
        Some(Command::Bench(_)) => Err(args::not_yet("bench")),
        Some(Command::Check(args)) => look::check(args),
        Some(Command::Inspect(args)) => look::inspect(args),
        Some(Command::Serve(_)) => Err(args::not_yet("serve")),
    };
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            notice::failure(&failure);
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Opens the database and runs what the command line, a script or somebody at the terminal says.
fn shell(args: &Args) -> Result<()> {
    let database = open(args)?;
    let mut session = Session::new(database.connect(), args.format.mode());
    session.timer = args.timer;
    session.progress = !args.no_progress && std::io::stderr().is_terminal();
    let ran = statements(args, &mut session);
    // Both errors matter: what went wrong first is told first.
    let closed = database.close().map_err(Failure::from);
    match (ran, closed) {
        (Err(failure), Err(second)) => {
            notice::failure(&second);
            Err(failure)
        }
        (ran, closed) => ran.and(closed),
    }
}

fn open(args: &Args) -> Result<Database> {
    let config = args.engine.config();
    let Some(path) = args.file()?.filter(|path| *path != Path::new(":memory:")) else {
        return Ok(Database::memory_with(config)?);
    };
    let database = Database::open_with(path, config)?;
    if database.is_new() {
        notice::note(&format!("new database {}", path.display()));
    }
    database.notes().iter().for_each(|text| notice::note(text));
    Ok(database)
}

fn statements(args: &Args, session: &mut Session) -> Result<()> {
    if !args.statements.is_empty() {
        for sql in &args.statements {
            if script::run(session, "-c", &mut sql.as_bytes(), 0)? == Next::Quit {
                break;
            }
        }
        return Ok(());
    }
    if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        println!("SinterDB {}. SQL ends with a semicolon; .help lists commands.", env!("CARGO_PKG_VERSION"));
        return repl::run(session);
    }
    script::run(session, "stdin", &mut std::io::stdin().lock(), 0).map(drop)
}

/// `sinter codecs`: the engine's one list of schemes, or that of the kernels on each, or of what decoding costs.
fn codecs(kernels: bool, decoding: bool, mode: output::Mode) -> Result<()> {
    let list = match (kernels, decoding) {
        (true, _) => "SELECT * FROM kernels()",
        (_, true) => "SELECT * FROM decoding()",
        _ => "SELECT * FROM codecs()",
    };
    Session::new(Database::memory()?.connect(), mode).run(list)
}
