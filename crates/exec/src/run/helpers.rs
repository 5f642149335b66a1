//! Threads that help with a query.
//!
//! A query that takes a millisecond has no time to make threads, which takes a hundred microseconds, nor to wait for one
//! that is late. So threads stay and wait for work, and work that nobody has begun when the rest is done is taken back.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::{process, thread};

/// Does the work and returns what tells that it is done.
type Job = Box<dyn FnOnce() -> Tell + Send>;
type Tell = Box<dyn FnOnce() + Send>;

/// Helpers for each processor, unless one query wants more.
const HELPERS_PER_PROCESSOR: usize = 2;

/// The helpers that there are.
struct Helpers {
    /// Threads do not survive a fork: in another process than this one there are none. (Nor would this lock, were it held just
    /// then; it never is for long.)
    process: u32,
    count: usize,
    /// The ways to those that wait. The last that came is the first to go: its memory is near.
    waiting: Vec<Sender<Job>>,
}

static HELPERS: Mutex<Helpers> = Mutex::new(Helpers { process: 0, count: 0, waiting: Vec::new() });

fn helpers() -> MutexGuard<'static, Helpers> {
    let mut helpers = HELPERS.lock().unwrap_or_else(PoisonError::into_inner);
    if helpers.process != process::id() {
        *helpers = Helpers { process: process::id(), count: 0, waiting: Vec::new() };
    }
    helpers
}

/// Has a helper do a job, or nobody where there are so many already and all of them are busy, or none can be made.
fn submit(job: Job, count_max: usize) {
    let mut helpers = helpers();
    if let Some(helper) = helpers.waiting.pop() {
        // It holds a sender to itself, so it is there to receive.
        let _ = helper.send(job);
    } else if helpers.count < count_max {
        let (sender, receiver) = channel();
        let _ = sender.send(job);
        let helper = thread::Builder::new().name("sinter-helper".to_owned()).spawn(move || help(&receiver, &sender));
        helpers.count += usize::from(helper.is_ok());
    }
}

fn help(jobs: &Receiver<Job>, own: &Sender<Job>) {
    for job in jobs {
        let tell = job();
        // First, so that whoever is told finds this thread for the next job.
        helpers().waiting.push(own.clone());
        tell();
    }
}

/// What becomes of work that a helper may do.
enum Task<W, T> {
    Waiting(W),
    /// Or taken back.
    Begun,
    Done(T),
}

/// Such work, and a bell for when it is done.
type Shared<W, T> = Arc<(Mutex<Task<W, T>>, Condvar)>;

fn lock<W, T>(task: &Shared<W, T>) -> MutexGuard<'_, Task<W, T>> {
    task.0.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does `work` here, and at the same time on up to `threads - 1` others. Returns what each brought: those that have not
/// begun when it is done here do not any more. `work` must not panic.
pub(super) fn on_threads<T: Send + 'static>(threads: usize, work: impl Fn() -> T + Send + Sync + 'static) -> Vec<T> {
    let work = Arc::new(work);
    // Asking the system reads files.
    static PROCESSORS: LazyLock<usize> = LazyLock::new(|| thread::available_parallelism().map_or(1, usize::from));
    let count_max = threads.max(if threads > 1 { HELPERS_PER_PROCESSOR * *PROCESSORS } else { 0 });
    let tasks: Vec<Shared<_, T>> = (1..threads).map(|_| begin(Arc::clone(&work), count_max)).collect();
    let mut all = vec![work()];
    // All of them are taken back before any is waited for.
    let is_begun = |task: &Shared<_, T>| {
        let mut state = lock(task);
        let is_waiting = matches!(*state, Task::Waiting(_));
        if is_waiting {
            *state = Task::Begun;
        }
        !is_waiting
    };
    let begun: Vec<_> = tasks.into_iter().filter(is_begun).collect();
    for task in begun {
        let mut state = lock(&task);
        while let Task::Begun = *state {
            state = task.1.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if let Task::Done(brought) = std::mem::replace(&mut *state, Task::Begun) {
            all.push(brought);
        }
    }
    all
}

fn begin<W: Fn() -> T + Send + Sync + 'static, T: Send + 'static>(work: Arc<W>, count_max: usize) -> Shared<Arc<W>, T> {
    let task = Arc::new((Mutex::new(Task::Waiting(work)), Condvar::new()));
    let shared = Arc::clone(&task);
    let job = move || -> Tell {
        let begun = std::mem::replace(&mut *lock(&shared), Task::Begun);
        let Task::Waiting(work) = begun else { return Box::new(|| {}) };
        let brought = work();
        // Whoever is told finds that nobody else holds what the work did.
        drop(work);
        Box::new(move || {
            *lock(&shared) = Task::Done(brought);
            shared.1.notify_one();
        })
    };
    submit(Box::new(job), count_max);
    task
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn all_work_that_is_begun_is_brought() {
        for threads in 1..6 {
            for _ in 0..200 {
                let left = Arc::new(AtomicUsize::new(100));
                let all = on_threads(threads, move || {
                    let take = || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
                    std::iter::from_fn(|| take().ok()).count()
                });
                assert!(all.len() <= threads);
                assert_eq!(all.iter().sum::<usize>(), 100);
            }
        }
    }

    #[test]
    fn nothing_is_held_when_all_is_brought() {
        for _ in 0..1000 {
            let held = Arc::new(());
            let work = Arc::clone(&held);
            on_threads(4, move || std::hint::black_box(Arc::strong_count(&work)));
            assert_eq!(Arc::strong_count(&held), 1);
        }
    }

    #[test]
    fn helpers_that_are_busy_are_not_waited_for() {
        let (end, ends) = channel::<()>();
        let ends = Arc::new(Mutex::new(ends));
        // All that there may be, and more.
        for _ in 0..64 {
            let ends = Arc::clone(&ends);
            let job = move || -> Tell {
                let _ = ends.lock().map(|ends| ends.recv());
                Box::new(|| {})
            };
            submit(Box::new(job), 8);
        }
        assert!(helpers().count >= 8);
        let brought = on_threads(4, || ());
        assert!(!brought.is_empty());
        drop(end);
    }
}
