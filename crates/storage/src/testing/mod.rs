//! For tests, of this room and of those above: a disk that crashes and fails on demand, the same way for the same seed.

mod crashing;
mod disk;
mod random;

pub use crashing::{CrashingFileSystem, Fault};
pub use disk::Call;
