//! The interactive shell.

use crate::complete::candidates;
use crate::dot::{self, Next};
use crate::failure::{Failure, Result};
use crate::highlight::coloured;
use crate::lex::Inside;
use crate::session::Session;
use crate::split::{Piece, Splitter};
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::history::FileHistory;
use rustyline::{ColorMode, CompletionType, Config, Context, Editor, Helper, Hinter, Validator};
use sinterdb::Connection;
use std::borrow::Cow;
use std::path::PathBuf;

const PROMPT: &str = "sinter> ";
/// Between BEGIN and its end: what is typed is not done yet.
const PROMPT_IN_TRANSACTION: &str = "sinter*> ";
const PROMPT_CONTINUED: &str = "   ...> ";
const HISTORY_ENTRIES_MAX: usize = 10_000;

/// Reads and runs until the user leaves. Errors are printed and the session goes on.
///
/// # Errors
/// The terminal cannot be read or written.
pub(crate) fn run(session: &mut Session) -> Result<()> {
    session.interactive = true;
    let mut editor = editor(session)?;
    let history = history_file();
    if let Some(path) = &history {
        let _ = editor.load_history(path);
    }
    let mut splitter = Splitter::default();
    let mut entry = String::new();
    loop {
        let prompt = match (splitter.is_waiting(), session.connection.in_transaction()) {
            (true, _) => PROMPT_CONTINUED,
            (false, true) => PROMPT_IN_TRANSACTION,
            (false, false) => PROMPT,
        };
        if let Some(helper) = editor.helper_mut() {
            helper.pending = splitter.pending().to_owned();
            helper.inside = splitter.inside().clone();
        }
        match editor.readline(prompt) {
            Ok(line) => {
                entry.push_str(&line);
                entry.push('\n');
                let pieces = splitter.push(&(line + "\n"));
                if !splitter.is_waiting() {
                    remember(&mut editor, history.as_ref(), &std::mem::take(&mut entry));
                }
                for piece in &pieces {
                    if run_piece(session, piece)? == Next::Quit {
                        return Ok(());
                    }
                }
            }
            Err(ReadlineError::Interrupted) => {
                splitter.clear();
                entry.clear();
            }
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(Failure::Input(format!("cannot read the terminal: {error}"))),
        }
    }
}

fn run_piece(session: &mut Session, piece: &Piece) -> Result<Next> {
    let ran = match piece {
        Piece::Statement(statement) => session.run(&statement.text).map(|()| Next::GoOn),
        Piece::Dot(command) => dot::run(session, &command.text, 0),
    };
    ran.or_else(|failure| {
        if failure.is_closed_pipe() {
            return Err(failure);
        }
        crate::notice::failure(&failure);
        Ok(Next::GoOn)
    })
}

fn editor(session: &Session) -> Result<Editor<ShellHelper, FileHistory>> {
    let colour = console::colors_enabled();
    let config = Config::builder()
        .max_history_size(HISTORY_ENTRIES_MAX)
        .and_then(|config| config.history_ignore_dups(true))
        .map(|config| {
            let colour_mode = if colour { ColorMode::Enabled } else { ColorMode::Disabled };
            config.completion_type(CompletionType::List).color_mode(colour_mode).build()
        });
    let editor = config.and_then(Editor::with_config);
    let mut editor = editor.map_err(|error| Failure::Input(format!("cannot use the terminal: {error}")))?;
    editor.set_helper(Some(ShellHelper {
        connection: session.connection.clone(),
        colour,
        pending: String::new(),
        inside: Inside::Nothing,
    }));
    Ok(editor)
}

/// Keeps an entry, in memory and on disk. A history that cannot be written is no reason to disturb.
fn remember(editor: &mut Editor<ShellHelper, FileHistory>, file: Option<&PathBuf>, entry: &str) {
    let entry = entry.trim();
    if entry.is_empty() || !matches!(editor.add_history_entry(entry), Ok(true)) {
        return;
    }
    if let Some(path) = file {
        if let Some(directory) = path.parent() {
            let _ = std::fs::create_dir_all(directory);
        }
        let _ = editor.append_history(path);
    }
}

/// `$XDG_STATE_HOME/sinter/history`, or below `~/.local/state`.
fn history_file() -> Option<PathBuf> {
    let directory = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = directory("XDG_STATE_HOME").or_else(|| directory("HOME").map(|home| home.join(".local/state")));
    state.map(|state| state.join("sinter/history"))
}

/// What rustyline asks while a line is typed.
#[derive(Helper, Hinter, Validator)]
struct ShellHelper {
    connection: Connection,
    colour: bool,
    /// The lines before this one.
    pending: String,
    /// What they have left open.
    inside: Inside,
}

impl Completer for ShellHelper {
    type Candidate = Pair;

    fn complete(&self, line: &str, position: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        Ok(candidates(&self.connection, &self.pending, line, position))
    }
}

impl Highlighter for ShellHelper {
    fn highlight<'l>(&self, line: &'l str, _position: usize) -> Cow<'l, str> {
        if self.colour { Cow::Owned(coloured(line, &self.inside)) } else { Cow::Borrowed(line) }
    }

    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _default: bool) -> Cow<'b, str> {
        if self.colour {
            Cow::Owned(console::style(prompt).force_styling(true).cyan().to_string())
        } else {
            Cow::Borrowed(prompt)
        }
    }

    fn highlight_char(&self, _line: &str, _position: usize, kind: CmdKind) -> bool {
        self.colour && kind != CmdKind::MoveCursor
    }
}
