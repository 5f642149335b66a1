//! sinter-btree: ordered key-value trees whose leaves hold compressed keys.
//!
//! # What everything flows through
//!
//! ```text
//! Tree                       one ordered map of keys to records; shared by all states of the database that have it
//!   Directory                an immutable value: inner nodes, from separators to leaves; replaced when a leaf splits
//!   Slots                    numbered places of leaves, each with a latch; a leaf is in memory, or in a page
//!     Leaf                   keys and records of a range, changed in place; undo for who must not see that yet
//!       KeyList              blocks of compressed keys: `IntegerKeys`, `BytesKeys`
//!       Records              the records, in the order of the keys
//!
//! tree.get(&key, || at, |record| ..)        the record after commit `at`
//! tree.cursor(at)                           both ways, with approximate find; a block is decoded once
//! tree.for_each_entries(range, at, |entries| ..)  a leaf's keys and records at a time: within the leaves
//! tree.pieces(range, at, ..) -> [Piece]     a range divided, for threads that scan it
//! tree.change(&key, record, condition, || number)    one key: put, insert if absent, compare and swap, delete
//! tree.commit(&changes, || number)          many keys; their leaves are latched when the number is asked for
//! tree.prepare(&changes, &reads) -> Prepared   the same in two steps, for a transaction over several trees, and tables: what
//!     prepared.settle(&numbered)            it has read is validated, and stays as it is until it is settled
//!
//! Tree::log_record(id, changes)             what a commit changes, for the log
//! tree.replay(&record, commit)              at recovery
//! tree.write(out) -> Written                in a checkpoint, while others commit; `.root()` is the page to open it by
//!     written.adopt()                       once that is durable
//! tree.copy(out)                            in a backup
//! Loader::new(options, store), .push(key, record), .finish() -> Loaded   a tree made at once of keys in their order
//! Tree::open(store, root)                   leaves are read when they are asked for
//! LeafMemory                                what leaves take of `memory_limit`; where that is wanted, others are let go of
//! ```
//!
//! To users they are `db.kv("name")` (`crates/sql/src/kv`).
//!
//! **Inner nodes are values, leaves are places.** Whoever looks for a key takes the directory as it is, without a lock
//! that others wait for, and walks it; whoever splits a leaf makes the few inner nodes anew that lead to it, and
//! publishes the directory that has them. Only leaves are latched, one at a time by readers. A reader whose directory is
//! older than a split finds that its leaf ends before the key, and looks into the newest.
//!
//! **Commits, not values.** A column table is a value, and a state of the database has it whole. For a tree a put would
//! cost a copy of the leaf. So a tree is changed in place, and the state of a tree is asked for by commit number: a leaf
//! remembers what its keys were before commits that somebody must not see yet, because they are not durable or because
//! his snapshot is older. The rest is as for tables: transactions keep what they write to themselves, and what they read
//! is validated when they commit, against the undo of the leaves that have it.
//!
//! **One latch until there is a number.** A commit latches the leaves that it changes, in the order of keys, then asks
//! the timeline for its place in the order of commits, and lets go of each leaf once it is changed. So whoever knows that
//! a commit is visible, and then latches a leaf, finds it there; and so does a checkpoint, whose cut is a commit number.
//!
//! Lemire and Rupp, *Upscaledb: Efficient integer-key compression in a key-value store using SIMD instructions*,
//! Information Systems 66, 2017, section 3. We differ in that inner nodes are not changed in place, that a block is moved
//! together when it changes instead of leaving gaps, and in all that concerns several threads and snapshots, which theirs
//! does not have.

mod change;
mod change_record;
mod checkpoint;
mod cursor;
mod directory;
mod directory_draft;
mod directory_page;
mod error;
#[cfg(test)]
mod format_page;
mod home;
mod input;
mod keys;
mod leaf;
mod leaf_page;
mod load;
mod memory;
mod prepared;
mod published;
mod range;
mod records;
mod slots;
mod sync;
#[cfg(test)]
mod test_keys;
#[cfg(test)]
mod tests;
mod tree;
mod work;

pub use change::{Changes, Condition};
pub use checkpoint::Written;
pub use cursor::{Cursor, Find};
pub use error::{Error, Result};
pub use keys::{IntegerKey, TreeKey};
pub use load::{Loaded, Loader};
pub use prepared::{KeyRange, Prepared, Reads};
pub use range::{Entries, Piece, TreeSizes};
pub use records::RecordShape;
pub use tree::{Tree, TreeOptions, TreeShape};
