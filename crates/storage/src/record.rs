//! Log records: what a commit says happened. The list of record tags on disk.

use std::fmt;

use crate::ids::{CommitNumber, ObjectId};

/// What a record says. Tags below [`RecordTag::FIRST_OF_UPPER_ROOMS`] are storage's own and never leave this room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordTag(pub u16);

macro_rules! tags {
    ($($tag:literal => $constant:ident, $name:literal, $doc:literal;)*) => {
        impl RecordTag {
            $(#[doc = $doc] pub const $constant: RecordTag = RecordTag($tag);)*

            /// Every tag that has a name, in order.
            pub const ALL: &'static [RecordTag] = &[$(RecordTag::$constant),*];

            /// The name in messages and in `sinter inspect`, where this build knows one.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($tag => Some($name),)*
                    _ => None,
                }
            }
        }
    };
}

tags! { // tag on disk => constant, name; a tag is never given twice, nor reused
    1 => PAGE_REFERENCE, "page reference", "Storage's own: a page that was written before this commit, and where.";
    16 => CATALOG_PUT, "catalog put", "An object was created or altered; the payload is its whole description.";
    17 => CATALOG_DROP, "catalog drop", "An object is gone.";
    18 => ROWS_INSERTED, "rows inserted", "Rows with their row ids.";
    19 => ROWS_DELETED, "rows deleted", "Row ids.";
    20 => ROW_GROUPS_ATTACHED, "row groups attached", "Row groups whose chunks this commit's page references name.";
    21 => TABLE_ALTERED, "table altered", "A column or rule of a table was added, changed or dropped.";
    22 => TREE_CHANGED, "tree changed", "Keys of a key-value tree with their records, or that they are gone.";
    23 => TREE_LOADED, "tree loaded", "A key-value tree has the keys of pages that this commit's page references name.";
}

impl RecordTag {
    /// Tags from here on belong to the rooms that write them; storage carries their payloads unread.
    pub const FIRST_OF_UPPER_ROOMS: RecordTag = RecordTag(16);
}

impl fmt::Display for RecordTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "record tag {}", self.0),
        }
    }
}

/// One thing that a commit did: an after-image, by row id or key, never an expression. Applying it twice must be the
/// same as applying it once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// What the record says.
    pub tag: RecordTag,
    /// Which object it is about.
    pub object: ObjectId,
    /// The rest, in the form of the room that owns the tag.
    pub payload: Vec<u8>,
}

/// A commit as recovery hands it on: the records of the upper rooms, in the order in which they were given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transaction {
    /// Its number; consecutive from one transaction to the next.
    pub commit: CommitNumber,
    /// What it did.
    pub records: Vec<Record>,
}
