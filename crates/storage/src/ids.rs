//! The numbers by which pages, objects, commits and places are known.

use std::fmt;

/// Bytes in a unit, the grain of the file: places and the file's length are counted in units.
///
/// 4096 is what disks and file systems write as a whole, and one page of memory on the machines we know.
pub const UNIT_BYTES: usize = 4096;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub u64);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// A page's logical name. Given once, never reused; the page map says where the page is. 0 names no page.
    PageId
}
number! {
    /// A commit's place in the one order of all commits. The first commit is 1.
    CommitNumber
}
number! {
    /// What a log record is about: a table, a tree, a stream. The room that wrote the record gives it its meaning.
    ObjectId
}
number! {
    /// A checkpoint's number, which is also the number of the log that starts at its cut. The first is 1.
    CheckpointNumber
}

impl PageId {
    /// The largest id: seven levels of the page map. At a million pages a second, they last for two thousand years.
    pub const MAX: PageId = PageId((1 << 56) - 1);
}

/// A run of units in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Extent {
    /// The first unit.
    pub(crate) place: u64,
    /// How many units.
    pub(crate) units: u64,
}

impl Extent {
    /// The unit after the last; saturates, so that nonsense from disk stays nonsense.
    pub(crate) fn end(&self) -> u64 {
        self.place.saturating_add(self.units)
    }
}

/// How many units hold this many bytes.
pub(crate) fn units_for(bytes: u64) -> u64 {
    bytes.div_ceil(UNIT_BYTES as u64)
}
