//! Arrow in, Arrow out: the only place where values leave or enter the engine's own forms.
//!
//! [`logical_type`] and [`arrow_type`] map the types, [`from_arrow`] and [`to_arrow`] map vectors, and
//! [`SegmentEncoder`] and [`decode_segment`] go all the way to and from bytes. Arrow's narrower relatives come in
//! too: seconds and milliseconds become microseconds, all spellings of text become one, dictionaries and runs are
//! written out (the codec finds them again).

mod bits;
mod export;
mod import;
mod interval;
mod reader;
mod row_bytes;
mod segment;
mod text;
mod types;
mod uuid;

pub(crate) use bits::{from_null_buffer, to_null_buffer};
pub(crate) use export::values_to_arrow;
pub use import::strict_cast;
pub(crate) use reader::SegmentReader;
pub use row_bytes::row_bytes;
pub use segment::{SegmentEncoder, encode_segment};
pub use types::{arrow_type, logical_type};

use crate::{Dictionary, Error, LogicalType, Pinned, Result, Vector};
use arrow::array::{Array, ArrayRef, UInt32Array};
use sinter_codec::{Bitmap, Encoded, Narrow, Scalar, ValuesBuf};
use std::ops::Range;

/// A vector as an Arrow array of [`arrow_type`].
///
/// # Errors
/// [`Error::Foreign`] where Arrow refuses the values, such as text that is not UTF-8 (from a damaged file).
pub fn to_arrow(vector: &Vector, ty: &LogicalType, rows: usize) -> Result<ArrayRef> {
    if let Some(nested) = &vector.nested {
        return Ok(nested.clone());
    }
    if let (Encoded::Codes(codes), Some(dictionary)) = (&vector.values, &vector.dictionary)
        && (dictionary.has_arrow() || rows * ENTRIES_PER_ROW_MAX >= dictionary.values.len())
    {
        return entries_to_arrow(dictionary, codes, vector.validity.as_ref(), ty);
    }
    let mut flat = ValuesBuf::new(ty.physical().ok_or_else(|| nested_without_array(ty))?);
    let values = match &vector.values {
        Encoded::Flat(values) => values,
        encoded => {
            crate::vector::flatten(encoded, vector.dictionary.as_deref(), rows, &mut flat);
            &flat
        }
    };
    values_to_arrow(values.as_values(), vector.validity.as_ref(), ty)
}

/// Of a dictionary with more entries for each row, rows are copied: few rows would hold all of it. Where it is an Arrow array
/// already, others hold it in any case.
const ENTRIES_PER_ROW_MAX: usize = 16;

/// The dictionary becomes an Arrow array once; the rows are views into it.
fn entries_to_arrow(
    dictionary: &Dictionary,
    codes: &Narrow,
    validity: Option<&Bitmap>,
    ty: &LogicalType,
) -> Result<ArrayRef> {
    let entries = dictionary.as_arrow(ty)?;
    let last = u32::try_from(entries.len()).unwrap_or(u32::MAX).saturating_sub(1);
    // What stands at a NULL is unspecified, so it may point anywhere.
    let code_at = |code: u32| if validity.is_some() { code.min(last) } else { code };
    let positions: Vec<u32> = match codes {
        Narrow::U8(codes) => codes.iter().map(|&code| code_at(code.into())).collect(),
        Narrow::U16(codes) => codes.iter().map(|&code| code_at(code.into())).collect(),
        Narrow::U32(codes) => codes.iter().map(|&code| code_at(code)).collect(),
    };
    let positions = UInt32Array::new(positions.into(), validity.map(to_null_buffer));
    if entries.is_empty() {
        return Ok(arrow::array::new_null_array(entries.data_type(), positions.len()));
    }
    arrow::compute::take(&entries, &positions, None).map_err(foreign)
}

/// An Arrow array (of any type that [`logical_type`] maps to `ty`) as a flat vector.
///
/// # Errors
/// [`Error::Overflow`] where a time or decimal does not fit, [`Error::Foreign`] where the types do not go together.
pub fn from_arrow(array: &ArrayRef, ty: &LogicalType) -> Result<Vector> {
    if ty.physical().is_none() {
        return Ok(Vector { nested: Some(array.clone()), ..Vector::default() });
    }
    let imported = import::import(array, ty)?;
    let validity = from_null_buffer(array.logical_nulls().as_ref());
    Ok(Vector { values: Encoded::Flat(imported.into_buf()), validity, ..Vector::default() })
}

/// One value as an Arrow array of length one.
///
/// # Errors
/// [`Error::Unsupported`] where the value is not one of the type.
pub fn scalar_to_arrow(scalar: &Scalar, ty: &LogicalType) -> Result<ArrayRef> {
    if scalar.is_null() {
        return Ok(arrow::array::new_null_array(&arrow_type(ty), 1));
    }
    let physical = ty.physical().ok_or_else(|| nested_without_array(ty))?;
    let mut values = ValuesBuf::new(physical);
    if !crate::vector::push_scalar(&mut values, scalar) {
        return Err(Error::Unsupported(format!("{scalar:?} as {ty}")));
    }
    values_to_arrow(values.as_values(), None, ty)
}

/// Rows of a segment as an Arrow array of [`arrow_type`]: all of `range`, or those whose bit is set in `keep`
/// (one bit per row of `range`).
///
/// # Errors
/// [`Error::Damaged`] where the bytes are not such a segment.
pub fn decode_segment(
    segment: &Pinned,
    ty: &LogicalType,
    range: Range<usize>,
    keep: Option<&Bitmap>,
) -> Result<ArrayRef> {
    SegmentReader::open(segment, ty)
        .and_then(|reader| reader.check_rows(&range).and_then(|()| reader.read(range, keep)))
        .map_err(|error| error.at("segment"))
}

fn nested_without_array(ty: &LogicalType) -> Error {
    Error::Unsupported(format!("{ty} as single values"))
}

pub(crate) fn foreign(error: arrow::error::ArrowError) -> Error {
    Error::Foreign(error.to_string())
}
