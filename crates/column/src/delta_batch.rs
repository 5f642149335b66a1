//! Delta batches: few rows, in the shape of a row group, their segments in memory and encoded `raw`. Values are
//! rounded already where their column asks for a loss: what is read does not change when they are pressed.

use crate::group::{RowGroup, Segment, SegmentPlace};
use crate::group_writer::Gathered;
use crate::held::Held;
use crate::press::press_column;
use crate::{ColumnTable, Error, Result};

/// A delta batch of these rows.
///
/// # Errors
/// Those of encoding.
pub(crate) fn delta_batch(table: &ColumnTable, gathered: Gathered) -> Result<RowGroup> {
    let (mut bytes, mut parts) = (Vec::new(), Vec::with_capacity(gathered.columns.len()));
    for (column, array) in table.schema().columns.iter().zip(&gathered.columns) {
        let (segment, stats) = press_column(array, &column.ty, &column.choice().raw())?;
        let start = bytes.len();
        bytes.extend_from_slice(&segment);
        parts.push((start..bytes.len(), stats));
    }
    let budget = table.store().budget();
    let all = Held::new(budget, bytes);
    let cut = |(range, stats)| match all.slice(range) {
        Some(held) => Ok(Segment { place: SegmentPlace::Held(held), stats }),
        None => Err(Error::Data("a delta batch ends before its last segment".to_owned())),
    };
    let segments = parts.into_iter().map(cut).collect::<Result<Vec<_>>>()?;
    Ok(RowGroup::new(budget, gathered.rows, gathered.row_ids, segments))
}
