//! Threads that wait for work.
//!
//! A thread costs a hundred microseconds to start and eight to wake, and every statement needs one ([`crate::run`]): so
//! they are kept. There are as many as statements ever ran at once.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{io, process, thread};

/// Does the work and returns what hands the answer over.
pub(crate) type Job = Box<dyn FnOnce() -> Deliver + Send>;
pub(crate) type Deliver = Box<dyn FnOnce() + Send>;

/// Planning recurses on deeply nested statements; only the part that is touched takes memory.
const STACK_BYTES: usize = 16 << 20;

/// The ways to the threads that wait.
struct Idle {
    /// Threads do not survive a fork: in another process than this one there are none.
    process: u32,
    threads: Vec<Sender<Job>>,
}

static IDLE: Mutex<Idle> = Mutex::new(Idle { process: 0, threads: Vec::new() });

fn idle() -> MutexGuard<'static, Idle> {
    let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    if idle.process != process::id() {
        *idle = Idle { process: process::id(), threads: Vec::new() };
    }
    idle
}

/// Gives `job`, which must not panic, to a thread that waits, or to a new one.
///
/// # Errors
/// Where the system refuses a thread.
pub(crate) fn submit(job: Job) -> io::Result<()> {
    let waiting = idle().threads.pop();
    let worker = match waiting {
        Some(worker) => worker,
        None => start()?,
    };
    worker.send(job).expect("a worker holds a sender to itself, so it waits forever");
    Ok(())
}

fn start() -> io::Result<Sender<Job>> {
    let (sender, receiver) = channel();
    let own = sender.clone();
    thread::Builder::new().name("sinterdb".to_owned()).stack_size(STACK_BYTES).spawn(move || serve(&receiver, &own))?;
    Ok(sender)
}

fn serve(jobs: &Receiver<Job>, own: &Sender<Job>) {
    for job in jobs {
        let deliver = job();
        // First, so that whoever gets the answer finds this thread for the next job.
        idle().threads.push(own.clone());
        deliver();
    }
}
