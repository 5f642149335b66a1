//! Arrow in, Arrow out: the only place where values leave or enter the engine's own forms.

use crate::{LogicalType, Pinned, Result, Vector};
use arrow::array::ArrayRef;
use arrow::datatypes::DataType;
use sinter_codec::{Bitmap, BlockStats, Choice, Scalar};
use std::ops::Range;

/// What a column of this Arrow type means to us; `None` where our tables cannot hold it.
pub fn logical_type(arrow: &DataType) -> Option<LogicalType> {
    let _ = arrow;
    todo!()
}

/// The Arrow type in which columns leave the engine (text as `Utf8View`).
pub fn arrow_type(ty: &LogicalType) -> DataType {
    let _ = ty;
    todo!()
}

/// A vector as an Arrow array of [`arrow_type`].
pub fn to_arrow(vector: &Vector, ty: &LogicalType, rows: usize) -> Result<ArrayRef> {
    let _ = (vector, ty, rows);
    todo!()
}

/// An Arrow array (of any type that [`logical_type`] maps to `ty`) as a flat vector.
pub fn from_arrow(array: &ArrayRef, ty: &LogicalType) -> Result<Vector> {
    let _ = (array, ty);
    todo!()
}

/// One value as an Arrow array of length one.
pub fn scalar_to_arrow(scalar: &Scalar, ty: &LogicalType) -> Result<ArrayRef> {
    let _ = (scalar, ty);
    todo!()
}

/// Encodes an array as a segment, appended to `out`; returns the statistics of its block (of the outermost block for
/// nested types, where only counts are meaningful).
pub fn encode_segment(array: &ArrayRef, ty: &LogicalType, choice: &Choice, out: &mut Vec<u8>) -> Result<BlockStats> {
    let _ = (array, ty, choice, out);
    todo!()
}

/// Rows of a segment as an Arrow array of [`arrow_type`]: all of `range`, or those whose bit is set in `keep`
/// (one bit per row of `range`).
pub fn decode_segment(
    segment: &Pinned,
    ty: &LogicalType,
    range: Range<usize>,
    keep: Option<&Bitmap>,
) -> Result<ArrayRef> {
    let _ = (segment, ty, range, keep);
    todo!()
}
