//! Arrow arrays to segments: one block, or for lists and structs a tree of blocks one after the other.
//!
//! A block holds so many values and no more. Rows are bounded before they come here, the elements of lists are not: they
//! are cut into pieces, each a segment of its own (docs/format/table.md, "Segments").

use super::{foreign, from_null_buffer, import};
use crate::{Error, Field, LogicalType, Result};
use arrow::array::{Array, ArrayRef, AsArray, UInt64Array};
use arrow::datatypes::DataType;
use sinter_codec::{Bitmap, BlockStats, Choice, Chooser, Scalar, VALUE_COUNT_MAX, Values};

/// What the elements of lists may take in plain form where they are several pieces: a reader puts those of many lists into
/// one array.
pub(super) const PIECES_PLAIN_BYTES_MAX: usize = 1 << 30;

/// Encodes the segments of one column, one row group after the other.
///
/// It has a [`Chooser`] for each block of a segment, so that its row groups are chosen for once and share what was found out;
/// a clone goes on from there by itself. Where a column has no next row group, [`encode_segment`] does.
#[derive(Clone, Debug)]
pub struct SegmentEncoder {
    ty: LogicalType,
    /// Of the values; for nested types of lengths or presence.
    chooser: Chooser,
    /// Those of a list's elements or a struct's fields.
    parts: Vec<SegmentEncoder>,
}

impl SegmentEncoder {
    /// For a column of this type.
    pub fn new(ty: &LogicalType, choice: &Choice) -> SegmentEncoder {
        let part = |field: &Field| SegmentEncoder::new(&field.ty, &nested(choice));
        let (choice, parts) = match ty {
            LogicalType::List(field) => (nested(choice), vec![part(field)]),
            LogicalType::Struct(fields) => (nested(choice), fields.iter().map(part).collect()),
            _ => (choice.clone(), Vec::new()),
        };
        SegmentEncoder { ty: ty.clone(), chooser: Chooser::new(choice), parts }
    }

    /// Encodes the next array of the column as a segment, appended to `out`; returns the statistics of its block (of the
    /// outermost block for nested types, where only counts are meaningful).
    ///
    /// # Errors
    /// As [`super::from_arrow`]; the codec's own for a forced choice; [`Error::Foreign`] for more rows, or more elements,
    /// than a segment holds.
    pub fn encode(&mut self, array: &ArrayRef, out: &mut Vec<u8>) -> Result<BlockStats> {
        Ok(self.encode_tree(array, out)?.0)
    }

    /// The statistics of the outermost block, and the bytes that all blocks together stand for.
    fn encode_tree(&mut self, array: &ArrayRef, out: &mut Vec<u8>) -> Result<(BlockStats, usize)> {
        let SegmentEncoder { ty, chooser, parts } = self;
        let validity = from_null_buffer(array.logical_nulls().as_ref());
        match ty {
            LogicalType::List(_) => {
                let (lengths, child) = lists(array)?;
                let stats = block(chooser, Values::U32(&lengths), validity.as_ref(), out)?;
                let mut child_bytes = 0;
                for start in (0..child.len().max(1)).step_by(VALUE_COUNT_MAX) {
                    let piece = child.slice(start, VALUE_COUNT_MAX.min(child.len() - start));
                    child_bytes += parts[0].encode_tree(&piece, out)?.1;
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
                let Some(arrays) = array.as_struct_opt().filter(|arrays| arrays.num_columns() == fields.len()) else {
                    let what = format!("an Arrow array of type {} cannot become {ty}", array.data_type());
                    return Err(Error::Foreign(what));
                };
                let presence = vec![1; array.len()];
                let stats = block(chooser, Values::U8(&presence), validity.as_ref(), out)?;
                let mut plain_bytes = stats.plain_bytes;
                for (part, array) in parts.iter_mut().zip(arrays.columns()) {
                    plain_bytes += part.encode_tree(array, out)?.1;
                }
                Ok((stats, plain_bytes))
            }
            plain => {
                let stats = block(chooser, import::import(array, plain)?.as_values(), validity.as_ref(), out)?;
                check_precision(&stats, plain)?;
                let plain_bytes = stats.plain_bytes;
                Ok((stats, plain_bytes))
            }
        }
    }
}

/// Encodes one array as a segment, appended to `out`: [`SegmentEncoder::encode`] for a column that has no other.
///
/// # Errors
/// As [`SegmentEncoder::encode`].
pub fn encode_segment(array: &ArrayRef, ty: &LogicalType, choice: &Choice, out: &mut Vec<u8>) -> Result<BlockStats> {
    SegmentEncoder::new(ty, choice).encode(array, out)
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

fn block(
    chooser: &mut Chooser,
    values: Values<'_>,
    validity: Option<&Bitmap>,
    out: &mut Vec<u8>,
) -> Result<BlockStats> {
    chooser.encode(values, validity, out).map_err(|error| match error {
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
