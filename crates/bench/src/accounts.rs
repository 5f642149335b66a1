//! What the system has counted: bytes written, processor time. From `/proc` and `/sys`, so on Linux only.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

/// Bytes written so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Written {
    /// By calls of this process that write, to whatever it is.
    pub(crate) by_calls: u64,
    /// To a device, by the whole machine. What the kernel counts for a process (`write_bytes`) is of no use for small
    /// writes: a write to a page counts for all that lies in one piece of the page cache with it, up to megabytes.
    pub(crate) on_device: u64,
}

impl Written {
    /// For the device that `folder` is on.
    pub(crate) fn so_far(folder: &Path) -> Option<Written> {
        let text = std::fs::read_to_string("/proc/self/io").ok()?;
        let by_calls = text.lines().find_map(|line| line.strip_prefix("wchar:")?.trim().parse().ok())?;
        let device = std::fs::metadata(folder).ok()?.dev();
        let (major, minor) = ((device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xfff00));
        let text = std::fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).ok();
        // <https://docs.kernel.org/block/stat.html>: the seventh number is of sectors written, of 512 bytes.
        let sectors: Option<u64> = text.and_then(|text| text.split_whitespace().nth(6)?.parse().ok());
        Some(Written { by_calls, on_device: sectors.unwrap_or_default() * 512 })
    }
}

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
