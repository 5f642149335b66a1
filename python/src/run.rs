//! Runs work with the interpreter free, and lets Ctrl-C end it.
//!
//! Python handles signals on its main thread, and only when that thread asks. So the work goes to another thread while
//! the caller waits and asks every [`POLL`]. A pending KeyboardInterrupt stops the work, is waited for, and is then
//! raised: nothing goes on behind the caller's back. On other threads than the main one, asking does nothing.

use crate::error::{InternalError, OperationalError, raise};
use crate::workers::{self, Deliver};
use pyo3::prelude::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;

/// How long a Ctrl-C may go unnoticed.
const POLL: Duration = Duration::from_millis(50);

/// Runs `work` and returns what it returns. `stop` asks it to end early; it may be called several times, and `work` may
/// end with [`sinterdb::Error::Cancelled`] then.
///
/// # Errors
/// What `work` fails with, a panic in it as InternalError, or KeyboardInterrupt.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    stop: impl Fn(),
    work: impl FnOnce() -> sinterdb::Result<T> + Send + 'static,
) -> PyResult<T> {
    let (sender, mut receiver) = sync_channel(1);
    let job = Box::new(move || {
        let answer = guard(work);
        // The caller waits, whatever happens.
        Box::new(move || drop(sender.send(answer))) as Deliver
    });
    workers::submit(job).map_err(|error| OperationalError::new_err(format!("cannot start a thread: {error}")))?;
    let mut signal = None;
    loop {
        let (received, back) = py.detach(move || wait(receiver));
        receiver = back;
        match received {
            Ok(answer) => {
                let Some(signal) = signal else { return answer.map_err(raise) };
                py.detach(move || drop(answer));
                return Err(signal);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(InternalError::new_err("a worker thread is gone")),
        }
        if signal.is_none() {
            signal = py.check_signals().err();
        }
        if signal.is_some() {
            stop();
        }
    }
}

/// Waits for a while; gives the receiver back, which only one thread at a time may hold.
fn wait<T>(receiver: Receiver<T>) -> (Result<T, RecvTimeoutError>, Receiver<T>) {
    (receiver.recv_timeout(POLL), receiver)
}

/// Turns a panic into an error.
pub(crate) fn guard<T>(work: impl FnOnce() -> sinterdb::Result<T>) -> sinterdb::Result<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(sinterdb::Error::Internal(message(&*panic))))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("panic").to_owned()
}

/// Runs `work` with the interpreter free, whether or not this thread holds it. For calls that come from outside: a
/// consumer of Arrow data may hold the interpreter while it waits for us, and our threads may need it to release data
/// that Python lent.
pub(crate) fn detached<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let mut work = Some(work);
    let answer = Python::try_attach(|py| {
        let work = work.take()?;
        Some(py.detach(work))
    });
    match (answer.flatten(), work) {
        (Some(answer), _) => answer,
        // The interpreter is shutting down: nobody waits for it any more.
        (None, Some(work)) => work(),
        (None, None) => unreachable!("work that was taken has answered"),
    }
}
