//! What the shell tells the person at the terminal, as opposed to results: on standard error, so that results stay clean.
//!
//! Nobody may be listening (`2>&1 | head`), which is no reason to stop.

use crate::failure::Failure;
use console::style;
use std::fmt::Display;
use std::io::Write;

/// Something worth knowing that is no error.
pub(crate) fn note(text: &str) {
    say(format_args!("{} {text}", style("note:").for_stderr().yellow()));
}

/// What went wrong.
pub(crate) fn failure(failure: &Failure) {
    if !failure.is_closed_pipe() {
        say(style(failure).for_stderr().red());
    }
}

/// How long a statement took.
pub(crate) fn time(text: &str) {
    say(style(format_args!("time: {text}")).for_stderr().dim());
}

fn say(text: impl Display) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
