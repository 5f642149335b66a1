//! For tests and benchmarks, of this room and of those above: disks that crash, fail and fill up on demand, the same way
//! for the same seed, and disks that are slow.
//!
//! | file system | what it does |
//! |---|---|
//! | [`CrashingFileSystem`] | a disk in memory: a power loss keeps, loses, tears and reorders what was not synced |
//! | [`FaultyFileSystem`] | on top of any other: errors, full disks, failed syncs, wrong reads, at the n-th call |
//! | [`ThrottledFileSystem`] | on top of any other: so many bytes per second, and how long was waited for them |
//!
//! A crashing disk can keep a [`Recording`] of its calls, from which a crash in each of them is had without doing them again.
//! All that a disk can do is had by putting the second onto the first: [`FaultyFileSystem::on_disk`].

mod call;
mod crashing;
mod disk;
mod disk_space;
mod fault_plan;
mod faulty;
mod random;
mod recording;
mod throttled;

pub use call::Call;
pub use crashing::{CrashingFileSystem, Fault};
pub use fault_plan::{DiskFault, Injection, Trigger};
pub use faulty::FaultyFileSystem;
pub use recording::{Crashes, Death, RecordedCall, Recording};
pub use throttled::{IoStats, ThrottledFileSystem};
