//! What a table shows to the engine: the row groups of one snapshot.

use crate::{Expr, LogicalType, Pinned, Result};
use sinter_codec::{Bitmap, BlockStats};
use std::fmt;
use std::sync::Arc;

/// The ids of the rows of a group, in order.
#[derive(Clone, Debug)]
pub enum RowIds {
    /// `first`, `first + 1`, ...
    From(u64),
    /// One per row, increasing.
    Listed(Arc<[u64]>),
}

/// What a source does because of [`TableSource::will_read`], until this is dropped.
pub struct ReadAhead(#[expect(dead_code, reason = "only held")] Box<dyn Send + Sync>);

impl ReadAhead {
    /// Keeps something, and drops it with itself.
    pub fn new(kept: impl Send + Sync + 'static) -> ReadAhead {
        ReadAhead(Box::new(kept))
    }
}

impl fmt::Debug for ReadAhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadAhead")
    }
}

/// A column that a scan can produce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ScanColumn {
    /// By position in the table.
    Table(usize),
    /// How many characters each text of that column has (`Int32`), counted on its symbols where it is stored as such.
    Length(usize),
    /// The 64-bit row id (`UInt64`), never NULL.
    RowId,
}

impl ScanColumn {
    /// The table's column that is read for it, if one is.
    pub fn table_column(self) -> Option<usize> {
        match self {
            ScanColumn::Table(column) | ScanColumn::Length(column) => Some(column),
            ScanColumn::RowId => None,
        }
    }
}

/// One immutable snapshot of a table, as row groups. Pressed groups and fresh inserts look the same.
///
/// A segment of a plain type is one block ([`sinter_codec::Block`]); of a list, the block of lengths followed by the
/// child's segment; of a struct, the block of presence followed by each field's segment.
pub trait TableSource: Send + Sync + std::fmt::Debug {
    /// Name for plans and messages.
    fn name(&self) -> &str;
    /// The columns' types, in table order.
    fn column_types(&self) -> &[LogicalType];
    /// The columns' names, in table order.
    fn column_name(&self, column: usize) -> &str;
    /// Which part of a table in order this is, for plans; `None` where it is all of one.
    fn seek(&self) -> Option<String> {
        None
    }
    /// How many row groups.
    fn group_count(&self) -> usize;
    /// Rows of a group, deleted ones included; at most [`sinter_codec::ROW_GROUP_LEN`].
    fn group_rows(&self, group: usize) -> usize;
    /// Ids of those rows.
    fn row_ids(&self, group: usize) -> RowIds;
    /// Which of them are deleted (1 = deleted); `None` when none is.
    fn deleted(&self, group: usize) -> Option<Arc<Bitmap>>;
    /// Statistics of a segment, deleted rows included; `None` for nested types or where they are not known.
    fn zone(&self, group: usize, column: usize) -> Option<&BlockStats>;
    /// What [`TableSource::look_into`] looks into for a column, for plans; `None` where it finds nothing.
    fn looks_into(&self, _column: usize) -> Option<&'static str> {
        None
    }
    /// Statistics of a segment, the sum among them, found where the segment would be made of: for sources that would have to
    /// make it. `None` as well where that cannot be read, which [`TableSource::segment`] then says.
    fn look_into(&self, _group: usize, _column: usize) -> Option<BlockStats> {
        None
    }
    /// The bytes of a segment.
    ///
    /// # Errors
    /// Whatever reading and checking a page can raise.
    fn segment(&self, group: usize, column: usize) -> Result<Pinned>;
    /// About how long it takes to decode a row of a segment, in nanoseconds ([`sinter_codec::Block::decode_nanos`]); `None` for
    /// nested types or where it is not known. Planning asks, so that it is to be had at once, of a segment that was asked before.
    fn decode_nanos(&self, _group: usize, _column: usize) -> Option<f64> {
        None
    }
    /// How many bytes of a segment are stored; `None` where it is not known before it is read.
    fn segment_bytes(&self, _group: usize, _column: usize) -> Option<usize> {
        None
    }
    /// What a row group is, the same for all sources that have it: of which table, and which of its rows comes first. `None` where
    /// no other source has it. So it is told which fields two scans of a plan both decode.
    fn group_id(&self, _group: usize) -> Option<(u64, u64)> {
        None
    }
    /// Where the value is in memory that the row groups belong to, in whatever way they are read.
    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }
    /// How many rows operators take at a time, [`sinter_codec::VECTOR_LEN`] at most; fewer are for tests.
    fn vector_rows(&self) -> usize {
        sinter_codec::VECTOR_LEN
    }
    /// What finds rows of it by their values, if anything does.
    fn finder(&self) -> Option<&dyn Finder> {
        None
    }
    /// The same without [`TableSource::finder`], of which it holds what that needs; `None` where it has none.
    fn without_finder(&self) -> Option<Arc<dyn TableSource>> {
        None
    }
    /// Says that these segments of a group will probably be asked for soon, in this order. A source that has to fetch
    /// them may begin, and goes on as long as what it returns is held.
    fn will_read(&self, _group: usize, _columns: &[usize]) -> Option<ReadAhead> {
        None
    }
}

/// Finds rows of a table by their values, where that is quicker than to scan all: an index, or the order of a tree. Asked once the
/// keys of a join are known.
pub trait Finder: Send + Sync + fmt::Debug {
    /// What it would find rows by for conditions over these columns, for plans; `None` where it finds none by them.
    fn finds_by(&self, columns: &[ScanColumn], conditions: &[Expr]) -> Option<String>;
    /// The rows that the conditions let through, and perhaps others; `None` where they are too many for that to be quicker.
    ///
    /// # Errors
    /// As [`TableSource::segment`].
    fn find(&self, columns: &[ScanColumn], conditions: &[Expr]) -> Result<Option<Arc<dyn TableSource>>>;
}
