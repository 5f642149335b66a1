//! Alterations of a table: its columns and rules change, no row is rewritten.
//!
//! A column that is added stands in each row group as one value for all rows (scheme `constant`), beside the group's
//! chunks. A column that is dropped is no longer pointed to; its chunks go when no segment in them is left.

mod fill;
mod next_schema;
mod record;

use crate::group::Segment;
use crate::group_entry::GroupEntry;
use crate::{Check, ColumnSchema, ColumnTable, Error, Index, Result, TableSchema};
use arrow::array::{Array, ArrayRef};
use fill::Filling;
use sinter_codec::{Bitmap, Block};
use std::sync::Arc;

/// One change of a table's columns or rules. Conditions and defaults are SQL text that this room does not read: who
/// renames or drops a column sees to those that name it.
#[derive(Clone, Debug, PartialEq)]
pub enum Alteration {
    /// `ADD COLUMN`: the last one from now on.
    AddColumn {
        /// The column.
        column: ColumnSchema,
        /// What the rows that are there have in it: one value. `None` for NULL.
        fill: Option<ArrayRef>,
    },
    /// `DROP COLUMN`.
    DropColumn {
        /// Its name.
        name: String,
    },
    /// `RENAME COLUMN`.
    RenameColumn {
        /// Its name.
        from: String,
        /// Its next name.
        to: String,
    },
    /// `ALTER COLUMN ... DROP NOT NULL`, or `SET NOT NULL`.
    SetNullable {
        /// Its name.
        column: String,
        /// NULL is allowed from now on.
        nullable: bool,
    },
    /// `ALTER COLUMN ... SET DEFAULT`, or `DROP DEFAULT`.
    SetDefault {
        /// Its name.
        column: String,
        /// SQL text.
        default: Option<String>,
    },
    /// `ADD CONSTRAINT ... CHECK`. That the rows keep to it is for the caller to know.
    AddCheck {
        /// The condition.
        check: Check,
    },
    /// `DROP CONSTRAINT`.
    DropCheck {
        /// Its name.
        name: String,
    },
    /// `CREATE INDEX`, `ADD CONSTRAINT ... UNIQUE`. What is in the tree is for the caller to see to.
    AddIndex {
        /// The index.
        index: Index,
        /// What is in it follows from the rows that the table has then: replaying makes it anew. Else it is logged by itself.
        of_rows: bool,
    },
    /// `DROP INDEX`, `DROP CONSTRAINT`.
    DropIndex {
        /// Its name.
        name: String,
    },
}

impl Alteration {
    /// The table with this alteration.
    ///
    /// # Errors
    /// [`Error::Data`] naming the column and the remedy, where the schema or the rows stand against it.
    pub(crate) fn applied(&self, table: &ColumnTable) -> Result<ColumnTable> {
        let schema = self.next_schema(table.name(), table.schema())?;
        for entry in table.groups() {
            self.check_rows(table, entry)?;
        }
        self.rebuilt(table, schema)
    }

    /// The same from the log, whose writer has looked at the rows.
    ///
    /// # Errors
    /// [`Error::Damaged`].
    pub(crate) fn replayed(&self, table: &ColumnTable) -> Result<ColumnTable> {
        let next = self.next_schema(table.name(), table.schema()).and_then(|schema| self.rebuilt(table, schema));
        next.map_err(|error| match error {
            Error::Data(what) => {
                let what = format!("the log alters it in a way that it cannot be: {what}");
                Error::Damaged { table: table.name().to_owned(), what }
            }
            error => error,
        })
    }

    /// Whether living rows stand against it.
    fn check_rows(&self, table: &ColumnTable, entry: &GroupEntry) -> Result<()> {
        match self {
            Alteration::AddColumn { column, fill } => {
                let is_null = fill.as_ref().is_none_or(|fill| fill.is_null(0));
                if !column.nullable && is_null && entry.live_rows() > 0 {
                    return Err(Error::Data(format!(
                        "table '{}' has rows, for which column '{}' would be NULL, but it is NOT NULL; give it a DEFAULT, \
                         or add it without NOT NULL and set that once it is filled",
                        table.name(),
                        column.name
                    )));
                }
            }
            Alteration::SetNullable { column, nullable: false } => {
                if let Some(index) = table.schema().index_of(column)
                    && has_null(entry, &entry.group.segments[index])?
                {
                    return Err(Error::Data(format!(
                        "table '{}', column '{column}': a row has NULL there; fill or delete such rows before it can be \
                         NOT NULL",
                        table.name()
                    )));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The table's groups with the columns of `schema`, which is the next one.
    fn rebuilt(&self, table: &ColumnTable, schema: TableSchema) -> Result<ColumnTable> {
        let groups = match self {
            Alteration::AddColumn { column, fill } => {
                let mut filling = Filling::new(table, column, fill.as_ref());
                with_segments(table, &mut |rows, segments| {
                    segments.push(filling.segment(rows)?);
                    Ok(())
                })?
            }
            Alteration::DropColumn { name } => {
                let index = table.schema().index_of(name);
                with_segments(table, &mut |_, segments| {
                    if let Some(index) = index {
                        segments.remove(index);
                    }
                    Ok(())
                })?
            }
            _ => table.groups().to_vec(),
        };
        Ok(table.with_schema(Arc::new(schema), groups))
    }
}

/// The groups of a table with other segments.
fn with_segments(
    table: &ColumnTable,
    change: &mut dyn FnMut(usize, &mut Vec<Segment>) -> Result<()>,
) -> Result<Vec<GroupEntry>> {
    let altered = |GroupEntry { group, deleted }: &GroupEntry| {
        let mut segments = group.segments.clone();
        change(group.rows, &mut segments)?;
        let group = group.with_segments(group.row_ids.clone(), segments);
        Ok(GroupEntry { group: Arc::new(group), deleted: deleted.clone() })
    };
    table.groups().iter().map(altered).collect()
}

/// Whether a living row has NULL in this segment of its group.
fn has_null(entry: &GroupEntry, segment: &Segment) -> Result<bool> {
    if segment.stats.as_ref().is_some_and(|stats| stats.null_count == 0) {
        return Ok(false);
    }
    let pinned = segment.pin()?;
    let damaged = |source| sinter_exec::Error::Damaged { place: "segment".to_owned(), source };
    let block = Block::open(&pinned).map_err(damaged)?;
    let mut present = Bitmap::default();
    if !block.validity(0..block.value_count(), &mut present).map_err(damaged)? {
        return Ok(false);
    }
    present.invert();
    if let Some(deleted) = &entry.deleted {
        present.and_not(deleted);
    }
    Ok(present.any())
}
