//! What rows take in plain form, before they are encoded: how those who gather rows know when they have enough.

use super::import::normalise;
use super::segment::lists;
use crate::{LogicalType, Result};
use arrow::array::{Array, ArrayRef, AsArray, OffsetSizeTrait};
use arrow::datatypes::DataType;
use std::borrow::Cow;

/// What a list takes beside its elements, and a string beside its bytes.
const LENGTH_BYTES: u64 = 4;

/// The bytes of each row in plain form, counted as [`sinter_codec::BlockStats::plain_bytes`] counts them and for nested
/// types over all their blocks. Rows that share memory count in full, for they will not share it once they are encoded.
///
/// # Errors
/// [`crate::Error::Foreign`] for an array that is none of type `ty`.
pub fn row_bytes(array: &ArrayRef, ty: &LogicalType) -> Result<Vec<u64>> {
    match ty {
        LogicalType::List(field) => {
            let (lengths, child) = lists(array)?;
            let elements = row_bytes(&child, &field.ty)?;
            let mut rest = &elements[..];
            let list = |&length: &u32| {
                let (list, after) = rest.split_at(length as usize);
                rest = after;
                LENGTH_BYTES + list.iter().sum::<u64>()
            };
            Ok(lengths.iter().map(list).collect())
        }
        LogicalType::Struct(fields) => {
            let mut rows = vec![1; array.len()];
            let parts = array.as_struct_opt().map_or(&[][..], |parts| parts.columns());
            for (part, field) in parts.iter().zip(fields.iter()) {
                for (row, bytes) in rows.iter_mut().zip(row_bytes(part, &field.ty)?) {
                    *row += bytes;
                }
            }
            Ok(rows)
        }
        plain => match plain.physical().and_then(|physical| physical.value_bytes()) {
            Some(bytes) => Ok(vec![bytes as u64; array.len()]),
            None => string_bytes(array, plain),
        },
    }
}

fn string_bytes(array: &ArrayRef, ty: &LogicalType) -> Result<Vec<u64>> {
    Ok(match array.data_type() {
        DataType::Utf8 => spans(array.as_string::<i32>().value_offsets()),
        DataType::LargeUtf8 => spans(array.as_string::<i64>().value_offsets()),
        DataType::Binary => spans(array.as_binary::<i32>().value_offsets()),
        DataType::LargeBinary => spans(array.as_binary::<i64>().value_offsets()),
        DataType::Utf8View => views(array, array.as_string_view().views()),
        DataType::BinaryView => views(array, array.as_binary_view().views()),
        DataType::FixedSizeBinary(width) => vec![LENGTH_BYTES + *width as u64; array.len()],
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let entries = row_bytes(dictionary.values(), ty)?;
            if entries.is_empty() {
                return Ok(vec![LENGTH_BYTES; array.len()]);
            }
            let keys = dictionary.normalized_keys();
            let entry = |(row, &key): (usize, &usize)| match array.is_null(row) {
                true => LENGTH_BYTES,
                false => entries[key],
            };
            keys.iter().enumerate().map(entry).collect()
        }
        _ => match normalise(array, ty)? {
            Cow::Owned(plain) => return string_bytes(&plain, ty),
            Cow::Borrowed(_) => vec![LENGTH_BYTES; array.len()],
        },
    })
}

fn spans<O: OffsetSizeTrait>(offsets: &[O]) -> Vec<u64> {
    offsets.windows(2).map(|pair| LENGTH_BYTES + (pair[1] - pair[0]).as_usize() as u64).collect()
}

/// The lowest 32 bits of a view are the length. NULLs are written as empty strings.
fn views(array: &ArrayRef, views: &[u128]) -> Vec<u64> {
    let nulls = array.nulls();
    let bytes = |(row, &view): (usize, &u128)| match nulls.is_some_and(|nulls| nulls.is_null(row)) {
        true => LENGTH_BYTES,
        false => LENGTH_BYTES + u64::from(view as u32),
    };
    views.iter().enumerate().map(bytes).collect()
}
