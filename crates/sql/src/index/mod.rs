//! Indexes of column tables: key-value trees that lead from the values of some columns to row ids.
//!
//! ```text
//! TableSchema::indexes   of which columns, whether unique, and the number of the tree, which has a name in the catalog
//! KeyForm                how a value is written in a key: so that bytes are ordered as the values are
//! KeyMaker               the keys of rows in an index; for_each_entry(..): those of rows of a table, with their ids
//! rows_by_id(..)         rows that an index led to; index_flaw(..): whether it leads to all
//! RowChanges             what a statement did to a table, done to its indexes in the same transaction
//! IndexBuild             the tree of an index that is made of the rows that are there
//! IndexesSeen            what a statement sees of them: `rows(..)` are those that conditions let through
//! ```
//!
//! A key is the values one after the other. In an index of which rows may have the same values, the id of the row follows, and
//! there is no record; in a unique one the record is the id, and rows with a NULL among the values are not there.
//!
//! **Ids are not final before the commit.** The rows that a transaction inserts have ids from the next one of the table on
//! that it began with, until its commit moves them behind those that others inserted meanwhile. So a commit takes the
//! [numbering](crate::kv::KvTree::numbering) of the tables whose indexes it changes, and gives the entries their final ids
//! ([`AnyDraft::renumber`](crate::kv::AnyDraft::renumber)), before it latches leaves; until it has its place in the order,
//! nobody else can insert into those tables.
//!
//! **An index that is made is not logged.** Its tree is filled at once, in the order of keys, while nobody sees it, and the log
//! says only that there is one: who replays that makes it of the rows that the table has at this place. Others may change the
//! table meanwhile; the commit brings the index up to what they did, and those who come later, with a schema that has no index,
//! conflict and are run again. Only where the transaction has changed rows of the table itself, what is in the index is kept as
//! its other changes of trees are, and logged.
//!
//! **An index narrows, and decides nothing.** The rows that it finds are scanned as a part of the table, with all conditions;
//! and what a transaction has read is noted by conditions on the table. Only that a value is not there yet is read of the
//! index itself: so two transactions that insert the same one conflict.

mod build;
mod entries;
mod key;
mod look_up;
mod upkeep;

pub(crate) use build::IndexBuild;
pub(crate) use entries::{KeyMaker, index_flaw, rows_by_id};
pub(crate) use key::{can_be_key, number_of, push_bytes, push_number, row_id_bytes, row_id_of, split_bytes};
pub(crate) use look_up::IndexesSeen;
pub(crate) use upkeep::RowChanges;
