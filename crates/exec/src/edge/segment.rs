//! Arrow arrays to segments: one block, or for lists and structs a tree of blocks one after the other.
//!
//! A block holds so many values and no more. Rows are bounded before they come here, the elements of lists are not: they
//! are cut into pieces, each a segment of its own (docs/format/table.md, "Segments").

use super::{foreign, from_null_buffer, import};
use crate::{Error, LogicalType, Result};
use arrow::array::{Array, ArrayRef, AsArray, UInt64Array};
use arrow::datatypes::DataType;
use sinter_codec::{Bitmap, BlockStats, Choice, Scalar, VALUE_COUNT_MAX, Values, encode};

/// What the elements of lists may take in plain form where they are several pieces: a reader puts those of many lists into
/// one array.
pub(super) const PIECES_PLAIN_BYTES_MAX: usize = 1 << 30;

/// Encodes an array as a segment, appended to `out`; returns the statistics of its block (of the outermost block for
/// nested types, where only counts are meaningful).
///
/// # Errors
/// As [`super::from_arrow`]; the codec's own for a forced choice; [`Error::Foreign`] for more rows, or more elements,
/// than a segment holds.
pub fn encode_segment(array: &ArrayRef, ty: &LogicalType, choice: &Choice, out: &mut Vec<u8>) -> Result<BlockStats> {
    Ok(encode_tree(array, ty, choice, out)?.0)
}

/// The statistics of the outermost block, and the bytes that all blocks together stand for.
fn encode_tree(array: &ArrayRef, ty: &LogicalType, choice: &Choice, out: &mut Vec<u8>) -> Result<(BlockStats, usize)> {
    let validity = from_null_buffer(array.logical_nulls().as_ref());
    match ty {
        LogicalType::List(field) => {
            let (lengths, child) = lists(array)?;
            let stats = block(Values::U32(&lengths), validity.as_ref(), &nested(choice), out)?;
            let mut child_bytes = 0;
            for start in (0..child.len().max(1)).step_by(VALUE_COUNT_MAX) {
                let piece = child.slice(start, VALUE_COUNT_MAX.min(child.len() - start));
                child_bytes += encode_tree(&piece, &field.ty, &nested(choice), out)?.1;
            }
            if child.len() > VALUE_COUNT_MAX && child_bytes > PIECES_PLAIN_BYTES_MAX {
                return Err(Error::Foreign(format!(
                    "{child_bytes} bytes in the elements of lists are more than the {PIECES_PLAIN_BYTES_MAX} that a \
                     segment holds"
                )));
            }
            let plain_bytes = stats.plain_bytes + child_bytes;
            Ok((stats, plain_bytes))
        }
        LogicalType::Struct(fields) => {
            let Some(parts) = array.as_struct_opt().filter(|parts| parts.num_columns() == fields.len()) else {
                return Err(Error::Foreign(format!("an Arrow array of type {} cannot become {ty}", array.data_type())));
            };
            let presence = vec![1; array.len()];
            let stats = block(Values::U8(&presence), validity.as_ref(), &nested(choice), out)?;
            let mut plain_bytes = stats.plain_bytes;
            for (part, field) in parts.columns().iter().zip(fields.iter()) {
                plain_bytes += encode_tree(part, &field.ty, &nested(choice), out)?.1;
            }
            Ok((stats, plain_bytes))
        }
        plain => {
            let stats = block(import::import(array, plain)?.as_values(), validity.as_ref(), choice, out)?;
            check_precision(&stats, plain)?;
            let plain_bytes = stats.plain_bytes;
            Ok((stats, plain_bytes))
        }
    }
}

/// Arrow does not hold decimals to the digits of their type; arithmetic relies on it.
fn check_precision(stats: &BlockStats, ty: &LogicalType) -> Result<()> {
    let LogicalType::Decimal { precision, .. } = ty else { return Ok(()) };
    let limit = crate::expr::power_of_ten((*precision).into())?;
    for bound in [&stats.min, &stats.max] {
        if let Scalar::Int(value) = bound
            && (*value >= limit || *value <= -limit)
        {
            return Err(Error::Overflow { what: format!("{value} (unscaled)"), type_name: ty.to_string() });
        }
    }
    Ok(())
}

/// A scheme that a user forced on a nested column means nothing to its lengths and parts: they choose for themselves.
fn nested(choice: &Choice) -> Choice {
    match choice {
        Choice::Raw => Choice::Raw,
        _ => Choice::Auto,
    }
}

fn block(values: Values<'_>, validity: Option<&Bitmap>, choice: &Choice, out: &mut Vec<u8>) -> Result<BlockStats> {
    encode(values, validity, choice, out).map_err(|error| match error {
        damaged @ sinter_codec::Error::Damaged { .. } => Error::Damaged { place: "segment".into(), source: damaged },
        other => Error::Foreign(other.to_string()),
    })
}

/// The length of each list (0 where it is NULL) and the elements of all of them, in order, without any that no list
/// refers to.
pub(super) fn lists(array: &ArrayRef) -> Result<(Vec<u32>, ArrayRef)> {
    let (ranges, child): (Vec<(usize, usize)>, &ArrayRef) = match array.data_type() {
        DataType::List(_) => {
            let list = array.as_list::<i32>();
            (list.value_offsets().windows(2).map(|pair| (pair[0] as usize, pair[1] as usize)).collect(), list.values())
        }
        DataType::LargeList(_) => {
            let list = array.as_list::<i64>();
            (list.value_offsets().windows(2).map(|pair| (pair[0] as usize, pair[1] as usize)).collect(), list.values())
        }
        DataType::FixedSizeList(_, width) => {
            let (list, width) = (array.as_fixed_size_list(), *width as usize);
            let first = list.value_offset(0) as usize;
            ((0..list.len()).map(|row| (first + row * width, first + (row + 1) * width)).collect(), list.values())
        }
        other => return Err(Error::Foreign(format!("an Arrow array of type {other} is no list"))),
    };
    let present = |row: usize| !array.is_null(row);
    let too_many = || Error::Foreign("a list holds more than 4294967295 elements".into());
    let length = |(row, &(start, end)): (usize, &(usize, usize))| {
        u32::try_from(if present(row) { end - start } else { 0 }).map_err(|_| too_many())
    };
    let lengths: Vec<u32> = ranges.iter().enumerate().map(length).collect::<Result<_>>()?;

    let first = ranges.first().map_or(0, |range| range.0);
    let last = ranges.last().map_or(0, |range| range.1);
    let referred: usize = lengths.iter().map(|&length| length as usize).sum();
    if referred == last - first {
        return Ok((lengths, child.slice(first, last - first)));
    }
    let positions =
        ranges.iter().enumerate().filter(|&(row, _)| present(row)).flat_map(|(_, &(start, end))| start..end);
    let positions = UInt64Array::from_iter_values(positions.map(|position| position as u64));
    Ok((lengths, arrow::compute::take(child, &positions, None).map_err(foreign)?))
}
