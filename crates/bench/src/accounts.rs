//! What the system has counted: processor time. From `/proc`, so on Linux only.

use std::time::Duration;

/// What the scheduler gave to a thread or a process.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Scheduled {
    /// Time on a processor.
    pub(crate) running: Duration,
    /// Time in which it could have run, but others did.
    pub(crate) queued: Duration,
}

impl Scheduled {
    /// Of the calling thread; zeros where the system does not tell.
    pub(crate) fn of_this_thread() -> Scheduled {
        read("/proc/thread-self/schedstat").unwrap_or_default()
    }

    /// Of all threads that this process has now.
    pub(crate) fn of_this_process() -> Scheduled {
        let mut sum = Scheduled::default();
        for thread in std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten() {
            // A thread may end between the listing and the reading.
            if let Some(one) = thread.path().join("schedstat").to_str().and_then(read) {
                sum.running += one.running;
                sum.queued += one.queued;
            }
        }
        sum
    }

    pub(crate) fn since(self, earlier: Scheduled) -> Scheduled {
        Scheduled {
            running: self.running.saturating_sub(earlier.running),
            queued: self.queued.saturating_sub(earlier.queued),
        }
    }
}

/// <https://docs.kernel.org/scheduler/sched-stats.html>: nanoseconds on a processor, nanoseconds waiting for one, slices.
fn read(path: &str) -> Option<Scheduled> {
    let text = std::fs::read_to_string(path).ok()?;
    let mut numbers = text.split_whitespace().map(|number| number.parse().map(Duration::from_nanos));
    Some(Scheduled { running: numbers.next()?.ok()?, queued: numbers.next()?.ok()? })
}
