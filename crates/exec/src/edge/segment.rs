//! Arrow arrays to segments: one block, or for lists and structs a tree of blocks one after the other.

use super::{foreign, from_null_buffer, import};
use crate::{Error, LogicalType, Result};
use arrow::array::{Array, ArrayRef, AsArray, UInt64Array};
use arrow::datatypes::DataType;
use sinter_codec::{Bitmap, BlockStats, Choice, Scalar, Values, encode};

/// Encodes an array as a segment, appended to `out`; returns the statistics of its block (of the outermost block for
/// nested types, where only counts are meaningful).
///
/// # Errors
/// As [`super::from_arrow`]; and the codec's own for a forced choice.
pub fn encode_segment(array: &ArrayRef, ty: &LogicalType, choice: &Choice, out: &mut Vec<u8>) -> Result<BlockStats> {
    let validity = from_null_buffer(array.logical_nulls().as_ref());
    match ty {
        LogicalType::List(field) => {
            let (lengths, child) = lists(array)?;
            let stats = block(Values::U32(&lengths), validity.as_ref(), &nested(choice), out)?;
            encode_segment(&child, &field.ty, &nested(choice), out)?;
            Ok(stats)
        }
        LogicalType::Struct(fields) => {
            let Some(parts) = array.as_struct_opt().filter(|parts| parts.num_columns() == fields.len()) else {
                return Err(Error::Foreign(format!("an Arrow array of type {} cannot become {ty}", array.data_type())));
            };
            let presence = vec![1; array.len()];
            let stats = block(Values::U8(&presence), validity.as_ref(), &nested(choice), out)?;
            for (part, field) in parts.columns().iter().zip(fields.iter()) {
                encode_segment(part, &field.ty, &nested(choice), out)?;
            }
            Ok(stats)
        }
        plain => {
            let stats = block(import::import(array, plain)?.as_values(), validity.as_ref(), choice, out)?;
            check_precision(&stats, plain)?;
            Ok(stats)
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
fn lists(array: &ArrayRef) -> Result<(Vec<u32>, ArrayRef)> {
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
