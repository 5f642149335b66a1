//! Commands that begin with a dot: they are about the shell, or short for SQL.

use crate::failure::{Failure, Result};
use crate::output::Mode;
use crate::output::types::sql_type;
use crate::script;
use crate::session::{Session, quote_name, quote_text};
use clap::ValueEnum;
use std::io::Write;
use std::path::Path;

/// What comes after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// The next one.
    GoOn,
    /// The end of the session.
    Quit,
}

/// One command: name, arguments, what it does, how.
pub(crate) struct Command {
    /// With its dot.
    pub(crate) name: &'static str,
    /// As in the help.
    pub(crate) arguments: &'static str,
    /// As in the help.
    pub(crate) purpose: &'static str,
    run: fn(&mut Session, &[String], usize) -> Result<Next>,
}

/// The one list of commands: help, completion and dispatch go through it.
pub(crate) const COMMANDS: &[Command] = &[
    Command { name: ".help", arguments: "", purpose: "this list", run: help },
    Command { name: ".tables", arguments: "", purpose: "names of the tables", run: tables },
    Command { name: ".schema", arguments: "[TABLE]", purpose: "columns of a table, or of all", run: schema },
    Command {
        name: ".storage",
        arguments: "TABLE",
        purpose: "scheme and bytes of each column (SHOW STORAGE)",
        run: storage,
    },
    Command { name: ".memory", arguments: "", purpose: "what memory is used for (SHOW MEMORY)", run: memory },
    Command { name: ".kv", arguments: "", purpose: "the key-value trees (SHOW TREES)", run: kv },
    Command { name: ".timer", arguments: "on|off", purpose: "say how long each statement took", run: timer },
    Command {
        name: ".mode",
        arguments: "table|box|csv|json|markdown|line",
        purpose: "how results are written",
        run: mode,
    },
    Command { name: ".read", arguments: "FILE", purpose: "run a script", run: read },
    Command {
        name: ".import",
        arguments: "FILE TABLE",
        purpose: "load a CSV, Parquet, JSON or Arrow file; creates the table if absent",
        run: import,
    },
    Command { name: ".quit", arguments: "", purpose: "leave (as does Ctrl-D)", run: quit },
];

/// Runs one command; `depth` is how many scripts are being read.
///
/// # Errors
/// [`Failure::Input`] for commands and arguments that we do not know; what SQL says.
pub(crate) fn run(session: &mut Session, line: &str, depth: usize) -> Result<Next> {
    let words = words(line)?;
    let Some((name, arguments)) = words.split_first() else { return Ok(Next::GoOn) };
    let name = if name == ".exit" { ".quit" } else { name };
    match COMMANDS.iter().find(|command| command.name == name) {
        Some(command) => (command.run)(session, arguments, depth),
        None => Err(Failure::Input(format!("unknown command {name}; .help lists those there are"))),
    }
}

/// Splits at blanks; quotes keep blanks together.
fn words(line: &str) -> Result<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = line.trim_start();
    while let Some(first) = rest.chars().next() {
        let (word, after) = match first {
            '\'' | '"' => {
                rest[1..].split_once(first).ok_or_else(|| Failure::Input(format!("the quote {first} is not closed")))?
            }
            _ => rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())),
        };
        words.push(word.to_owned());
        rest = after.trim_start();
    }
    // `.quit;` is a habit.
    if let Some(last) = words.last_mut().filter(|last| last.ends_with(';')) {
        last.pop();
    }
    Ok(words)
}

fn usage<const COUNT: usize>(name: &str, arguments: &[String]) -> Result<[String; COUNT]> {
    arguments.to_vec().try_into().map_err(|_| {
        let form = COMMANDS.iter().find(|command| command.name == name).map_or("", |command| command.arguments);
        Failure::Input(format!("usage: {}", format!("{name} {form}").trim_end()))
    })
}

fn help(_session: &mut Session, arguments: &[String], _depth: usize) -> Result<Next> {
    let [] = usage(".help", arguments)?;
    let mut out = std::io::stdout().lock();
    for command in COMMANDS {
        writeln!(out, "{:<42} {}", format!("{} {}", command.name, command.arguments), command.purpose)?;
    }
    writeln!(
        out,
        "\nSQL ends with a semicolon. Ctrl-C stops a statement, Tab completes, Ctrl-R searches the history."
    )?;
    Ok(Next::GoOn)
}

fn tables(session: &mut Session, arguments: &[String], _depth: usize) -> Result<Next> {
    let [] = usage(".tables", arguments)?;
    let mut out = std::io::stdout().lock();
    for (schema, table) in session.connection.table_names() {
        writeln!(out, "{}", qualified(&schema, &table))?;
    }
    Ok(Next::GoOn)
}

/// Without the schema where it is the one that names are looked up in.
fn qualified(schema: &str, table: &str) -> String {
    match schema {
        "" | "public" | "main" => quote_name(table),
        _ => format!("{}.{}", quote_name(schema), quote_name(table)),
    }
}

fn schema(session: &mut Session, arguments: &[String], _depth: usize) -> Result<Next> {
    let names = match arguments {
        [] => session.connection.table_names().iter().map(|(schema, table)| qualified(schema, table)).collect(),
        _ => usage::<1>(".schema", arguments)?.to_vec(),
    };
    let mut out = std::io::stdout().lock();
    for name in names {
        let schema = session.connection.sql(&format!("SELECT * FROM {name}"))?.schema();
        let columns = schema.fields().iter().map(|field| {
            let not_null = if field.is_nullable() { "" } else { " NOT NULL" };
            format!("  {} {}{not_null}", quote_name(field.name()), sql_type(field).to_uppercase())
        });
        let columns: Vec<String> = columns.collect();
        writeln!(out, "CREATE TABLE {name} (\n{}\n);", columns.join(",\n"))?;
    }
    Ok(Next::GoOn)
}

fn storage(session: &mut Session, arguments: &[String], _depth: usize) -> Result<Next> {
    let [table] = usage(".storage", arguments)?;
    session.run(&format!("SHOW STORAGE {table}")).map(|()| Next::GoOn)
}

fn memory(session: &mut Session, arguments: &[String], _depth: usize) -> Result<Next> {
    let [] = usage(".memory", arguments)?;
    session.run("SHOW MEMORY").map(|()| Next::GoOn)
}

fn kv(session: &mut Session, arguments: &[String], _depth: usize) -> Result<Next> {
    let [] = usage(".kv", arguments)?;
    session.run("SHOW TREES").map(|()| Next::GoOn)
}

fn timer(session: &mut Session, arguments: &[String], _depth: usize) -> Result<Next> {
    let [switch] = usage(".timer", arguments)?;
    session.timer = match switch.as_str() {
        "on" => true,
        "off" => false,
        _ => return usage::<0>(".timer", arguments).map(|_| Next::GoOn),
    };
    Ok(Next::GoOn)
}

fn mode(session: &mut Session, arguments: &[String], _depth: usize) -> Result<Next> {
    if arguments.is_empty() {
        writeln!(std::io::stdout(), "{}", session.mode.name())?;
        return Ok(Next::GoOn);
    }
    let [name] = usage(".mode", arguments)?;
    let unknown =
        |_| Failure::Input(format!("unknown mode {name}; there are table, box, csv, json, markdown and line"));
    session.mode = Mode::from_str(&name, true).map_err(unknown)?;
    Ok(Next::GoOn)
}

fn read(session: &mut Session, arguments: &[String], depth: usize) -> Result<Next> {
    let [file] = usage(".read", arguments)?;
    script::run_file(session, Path::new(&file), depth + 1)
}

fn import(session: &mut Session, arguments: &[String], _depth: usize) -> Result<Next> {
    let [file, table] = usage(".import", arguments)?;
    let exists = session.connection.table_names().iter().any(|(schema, name)| {
        table.eq_ignore_ascii_case(name) || table.eq_ignore_ascii_case(&format!("{schema}.{name}"))
    });
    let file = quote_text(&file);
    let sql = if exists {
        format!("COPY {table} FROM {file}")
    } else {
        format!("CREATE TABLE {table} AS SELECT * FROM {file}")
    };
    session.run(&sql).map(|()| Next::GoOn)
}

fn quit(_session: &mut Session, arguments: &[String], _depth: usize) -> Result<Next> {
    let [] = usage(".quit", arguments)?;
    Ok(Next::Quit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_keep_blanks_together() {
        assert_eq!(words(".read 'my file.sql'").unwrap(), [".read", "my file.sql"]);
        assert_eq!(words(".quit;").unwrap(), [".quit"]);
        assert!(words(".read 'open").is_err());
    }

    #[test]
    fn a_command_says_how_it_is_used() {
        let error = usage::<1>(".read", &[]).unwrap_err();
        assert_eq!(error.to_string(), "error: usage: .read FILE");
    }
}
