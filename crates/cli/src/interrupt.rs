//! Ctrl-C: stops the running statement, and the shell when there is none.

use sinterdb::Interrupt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Exit code of a program that Ctrl-C ended.
const EXIT_INTERRUPTED: i32 = 130;
/// [`Signals::presses`] while no statement runs.
const IDLE: u32 = u32::MAX;

/// What the signal handler and the shell share. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Signals {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// Ctrl-C pressed during the running statement, or [`IDLE`].
    presses: AtomicU32,
    statement: Mutex<Interrupt>,
}

impl Signals {
    /// Catches Ctrl-C from now on. Where the system refuses, Ctrl-C ends the program, as without us.
    pub(crate) fn install(statement: Interrupt) -> Signals {
        let signals =
            Signals { shared: Arc::new(Shared { presses: AtomicU32::new(IDLE), statement: Mutex::new(statement) }) };
        let handler = signals.clone();
        let _ = ctrlc::set_handler(move || handler.pressed());
        signals
    }

    /// A statement runs until the guard is dropped.
    pub(crate) fn running(&self) -> Running<'_> {
        self.shared.presses.store(0, Ordering::SeqCst);
        Running(self)
    }

    /// Ctrl-C was pressed during the running statement.
    pub(crate) fn is_interrupted(&self) -> bool {
        !matches!(self.shared.presses.load(Ordering::SeqCst), 0 | IDLE)
    }

    /// The first press asks the statement to stop, the next ends the program: the file is safe at any moment.
    fn pressed(&self) {
        let count = |presses: u32| (presses != IDLE).then(|| presses.saturating_add(1).min(IDLE - 1));
        match self.shared.presses.fetch_update(Ordering::SeqCst, Ordering::SeqCst, count) {
            Ok(0) => self.shared.statement.lock().unwrap_or_else(PoisonError::into_inner).interrupt(),
            _ => std::process::exit(EXIT_INTERRUPTED),
        }
    }
}

/// A statement runs.
pub(crate) struct Running<'a>(&'a Signals);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.shared.presses.store(IDLE, Ordering::SeqCst);
    }
}
