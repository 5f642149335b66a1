//! Rows in a file, as a table.

use crate::{Error, LogicalType, Pinned, Result, RowIds, TableSource};
use sinter_codec::{Bitmap, BlockStats};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A file for rows that do not fit the memory: nobody else's, and gone when it is dropped.
pub trait SpillFile: Send + Sync + fmt::Debug {
    /// Writes bytes behind those that are there; returns where they begin.
    ///
    /// # Errors
    /// [`Error::Source`] where there is no room, or writing fails.
    fn append(&self, bytes: &[u8]) -> Result<u64>;

    /// Reads bytes that were written.
    ///
    /// # Errors
    /// [`Error::Source`] where reading fails.
    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()>;

    /// What is compressed on its way there.
    fn compression(&self) -> SpillCompression;
}

/// Which columns of rows that do not fit the memory are compressed: temporary results may be so or plain, whichever costs less
/// (Westmann et al., section 4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpillCompression {
    /// Numbers, as the chooser says, and texts that repeat: what is written once and read once must not take longer to press
    /// than to write and to read.
    #[default]
    Auto,
    /// No column: all are written plain.
    None,
    /// Every column as the chooser says, texts too.
    All,
}

/// Rows that did not fit the memory: row groups of encoded blocks in a file, for as long as a query needs them.
#[derive(Debug)]
pub struct Spilled {
    columns: SpilledColumns,
    groups: Vec<SpilledGroup>,
}

/// What its columns are.
#[derive(Clone, Debug)]
pub(crate) struct SpilledColumns {
    pub(crate) names: Arc<[String]>,
    /// Not nested.
    pub(crate) types: Arc<[LogicalType]>,
}

/// A row group.
#[derive(Clone, Debug)]
pub(crate) struct SpilledGroup {
    pub(super) rows: usize,
    pub(super) file: Arc<dyn SpillFile>,
    /// By column.
    pub(super) segments: Arc<[Segment]>,
}

/// A block in the file.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) offset: u64,
    pub(super) bytes: usize,
    pub(super) stats: BlockStats,
}

impl Spilled {
    /// Of row groups that have these columns.
    pub(crate) fn new(columns: SpilledColumns, groups: Vec<SpilledGroup>) -> Spilled {
        Spilled { columns, groups }
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.groups.iter().map(|group| group.rows).sum()
    }

    /// A table of some of the row groups.
    pub(crate) fn some(&self, groups: Range<usize>) -> Spilled {
        Spilled { columns: self.columns.clone(), groups: self.groups[groups].to_vec() }
    }

    /// The same row groups, for a table of more.
    pub(crate) fn groups(&self) -> &[SpilledGroup] {
        &self.groups
    }
}

impl TableSource for Spilled {
    fn name(&self) -> &str {
        "spilled rows"
    }

    fn column_types(&self) -> &[LogicalType] {
        &self.columns.types
    }

    fn column_name(&self, column: usize) -> &str {
        self.columns.names.get(column).map_or("", String::as_str)
    }

    fn group_count(&self) -> usize {
        self.groups.len()
    }

    fn group_rows(&self, group: usize) -> usize {
        self.groups[group].rows
    }

    /// Nobody asks for them: those of the rows before they were spilled are a column where they are wanted.
    fn row_ids(&self, group: usize) -> RowIds {
        RowIds::From(self.groups[..group].iter().map(|group| group.rows as u64).sum())
    }

    fn deleted(&self, _group: usize) -> Option<Arc<Bitmap>> {
        None
    }

    fn zone(&self, group: usize, column: usize) -> Option<&BlockStats> {
        self.groups[group].segments.get(column).map(|segment| &segment.stats)
    }

    fn segment(&self, group: usize, column: usize) -> Result<Pinned> {
        let SpilledGroup { file, segments, .. } = &self.groups[group];
        let Some(segment) = segments.get(column) else {
            return Err(Error::Unsupported(format!("column {column} of spilled rows that have {}", segments.len())));
        };
        let mut bytes = vec![0; segment.bytes];
        file.read(segment.offset, &mut bytes)?;
        Ok(Pinned::from_vec(bytes))
    }
}
