//! The segments of a column that is added: one value for all rows of a group.

use crate::group::{Segment, SegmentPlace};
use crate::held::Held;
use crate::press::press_column;
use crate::schema::accepts;
use crate::{ColumnSchema, ColumnTable, Error, Result};
use arrow::array::{Array, ArrayRef, UInt32Array, new_null_array};
use sinter_codec::Choice;
use sinter_exec::edge;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// A value that is to stand for all rows may take so many bytes in plain form: readers unpack 1024 at a time, and
/// statistics count each.
const FILL_BYTES_MAX: u64 = 1024;

/// So many bytes may stand beside a row group for a column that is added: they are kept in the table's root.
const FILL_SEGMENT_BYTES_MAX: usize = 16 << 10;

/// One value of the column's type, small enough to stand for many rows.
pub(super) fn check_fill(table: &str, column: &ColumnSchema, fill: &ArrayRef) -> Result<()> {
    let name = &column.name;
    if fill.len() != 1 || !edge::logical_type(fill.data_type()).is_some_and(|ty| accepts(&column.ty, &ty)) {
        return Err(Error::Data(format!(
            "table '{table}', column '{name}' is {}, but {} values of {} were given for the rows that are there",
            column.ty,
            fill.len(),
            fill.data_type()
        )));
    }
    match edge::row_bytes(fill, &column.ty)?.first() {
        Some(&bytes) if bytes > FILL_BYTES_MAX => {
            Err(too_large(table, name, &format!("of {bytes} bytes is larger than the {FILL_BYTES_MAX}")))
        }
        _ => Ok(()),
    }
}

fn too_large(table: &str, column: &str, size: &str) -> Error {
    Error::Data(format!(
        "table '{table}', column '{column}': a DEFAULT {size} that rows can get when a column is added; add it without, set \
         the DEFAULT, and UPDATE the rows"
    ))
}

/// Makes the segments of a column that is added, one for each number of rows that there is.
pub(super) struct Filling<'a> {
    table: &'a ColumnTable,
    column: &'a ColumnSchema,
    fill: Option<&'a ArrayRef>,
    made: HashMap<usize, Segment>,
}

impl<'a> Filling<'a> {
    pub(super) fn new(table: &'a ColumnTable, column: &'a ColumnSchema, fill: Option<&'a ArrayRef>) -> Filling<'a> {
        Filling { table, column, fill, made: HashMap::new() }
    }

    pub(super) fn segment(&mut self, rows: usize) -> Result<Segment> {
        let entry = match self.made.entry(rows) {
            Entry::Occupied(made) => return Ok(made.get().clone()),
            Entry::Vacant(entry) => entry,
        };
        let column = self.column;
        let array = match self.fill {
            None => new_null_array(&edge::arrow_type(&column.ty), rows),
            Some(fill) => arrow::compute::take(fill, &UInt32Array::from(vec![0; rows]), None)
                .map_err(|error| sinter_exec::Error::Foreign(error.to_string()))?,
        };
        let (bytes, stats) = press_column(&array, &column.ty, &Choice::Auto)?;
        if bytes.len() > FILL_SEGMENT_BYTES_MAX {
            let bytes = bytes.len();
            let size = format!("that takes {bytes} bytes for {rows} rows is larger than the {FILL_SEGMENT_BYTES_MAX}");
            return Err(too_large(self.table.name(), &column.name, &size));
        }
        let segment = Segment { place: SegmentPlace::Held(Held::new(self.table.store().budget(), bytes)), stats };
        Ok(entry.insert(segment).clone())
    }
}
