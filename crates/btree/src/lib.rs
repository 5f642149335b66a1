//! sinter-btree: ordered key-value trees whose leaves hold compressed keys.
//!
//! # What everything flows through
//!
//! ```text
//! Tree                       one ordered map of keys to records; shared by all states of the database that have it
//!   directory: Directory     an immutable value: inner nodes, from separators to leaves; replaced when a leaf splits
//!     Slot                   one leaf's place, for as long as the leaf is there: a latch, its page, the leaf or nothing
//!       Leaf                 keys and records of a range, changed in place; undo for who must not see that yet
//!         KeyList            blocks of compressed keys, each with first, last, count, place (`IntegerKeys`)
//!         RecordList         the records, in the order of the keys
//!
//! tree.get(key, at)          `at`: the commit whose state is asked for
//! tree.cursor(at)            both ways; a block is decoded once
//! Changes                    what a transaction wrote, by key; private until it commits
//! tree.latch(&changes)       the leaves that it touches, in the order of keys: validate, number, apply, let go
//! tree.checkpoint(at, out)   the pages of what changed since the last one
//! ```
//!
//! **Inner nodes are values, leaves are places.** Whoever looks for a key takes the directory as it is, without a lock
//! that others wait for, and walks it; whoever splits a leaf makes the few inner nodes anew that lead to it, and
//! publishes the directory that has them. Only leaves are latched, one at a time by readers. A reader whose directory is
//! older than a split finds that its leaf ends before the key, and goes on to the right.
//!
//! **Commits, not values.** A column table is a value, and a state of the database has it whole. For a tree a put would
//! cost a copy of the leaf. So a tree is changed in place, and the state of a tree is asked for by commit number: a leaf
//! remembers what its keys were before commits that somebody must not see yet, because they are not durable or because
//! his snapshot is older. The rest is as for tables: transactions keep what they write to themselves, and what they read
//! is validated when they commit, against the undo of the leaves they read.
//!
//! **One latch until there is a number.** A commit latches the leaves that it changes, in the order of keys, then asks
//! the timeline for its place in the order of commits, and lets go of each leaf once it is changed. So whoever knows that
//! a commit is visible, and then latches a leaf, finds it there; and so does a checkpoint, whose cut is a commit number.
//!
//! Lemire and Rupp, *Upscaledb: Efficient integer-key compression in a key-value store using SIMD instructions*,
//! Information Systems 66, 2017, section 3. We differ in that inner nodes are not changed in place, that a block is moved
//! together when it changes instead of leaving gaps, and in all that concerns several threads and snapshots, which theirs
//! does not have.

mod cursor;
mod directory;
mod keys;
mod leaf;
mod published;
mod records;
mod slots;
mod sync;
#[cfg(test)]
mod tests;
mod tree;

pub use cursor::{Cursor, Find};
pub use records::RecordShape;
pub use tree::{Changes, Condition, Numbered, Tree, TreeOptions, TreeShape};
