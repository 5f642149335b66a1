//! Rows dropped from a vector in place: what a filter does to values that are already decoded.

use super::Vector;
use crate::Result;
use crate::dispatch::{each_narrow, each_type};
use crate::edge::foreign;
use arrow::array::UInt32Array;
use sinter_codec::{Bitmap, BytesBuf, Encoded, ValuesBuf};

/// Keeps the rows at `positions` (ascending), in order.
pub(crate) fn compact(vector: &mut Vector, positions: &[u16]) -> Result<()> {
    if let Some(array) = &vector.nested {
        let positions = UInt32Array::from_iter_values(positions.iter().map(|&position| position.into()));
        vector.nested = Some(arrow::compute::take(array, &positions, None).map_err(foreign)?);
        return Ok(());
    }
    match &mut vector.values {
        Encoded::Constant(_) => {}
        Encoded::BaseDelta { deltas: narrow, .. } | Encoded::Codes(narrow) => {
            each_narrow!(narrow, numbers => compact_numbers(numbers, positions));
        }
        Encoded::Flat(values) => each_type!(ValuesBuf, values,
            numbers => compact_numbers(numbers, positions),
            bytes => compact_bytes(bytes, positions)),
    }
    if let Some(validity) = &mut vector.validity {
        compact_bits(validity, positions);
    }
    Ok(())
}

/// Keeps the first `rows` rows.
pub(crate) fn truncate(vector: &mut Vector, rows: usize) {
    if let Some(array) = &vector.nested {
        vector.nested = Some(array.slice(0, rows));
        return;
    }
    match &mut vector.values {
        Encoded::Constant(_) => {}
        Encoded::BaseDelta { deltas: narrow, .. } | Encoded::Codes(narrow) => {
            each_narrow!(narrow, numbers => numbers.truncate(rows));
        }
        Encoded::Flat(values) => each_type!(ValuesBuf, values,
        numbers => numbers.truncate(rows),
        bytes => {
            bytes.offsets.truncate(rows + 1);
            bytes.data.truncate(bytes.offsets[rows] as usize);
        }),
    }
    if let Some(validity) = &mut vector.validity {
        *validity = validity.slice(0..rows);
    }
}

fn compact_numbers<T: Copy>(numbers: &mut Vec<T>, positions: &[u16]) {
    for (row, &position) in positions.iter().enumerate() {
        numbers[row] = numbers[usize::from(position)];
    }
    numbers.truncate(positions.len());
}

/// Ascending positions only ever move bytes to the front.
fn compact_bytes(bytes: &mut BytesBuf, positions: &[u16]) {
    let mut end = 0;
    for (row, &position) in positions.iter().enumerate() {
        let position = usize::from(position);
        let (from, to) = (bytes.offsets[position] as usize, bytes.offsets[position + 1] as usize);
        bytes.data.copy_within(from..to, end);
        bytes.offsets[row] = end as u32;
        end += to - from;
    }
    bytes.offsets.truncate(positions.len());
    bytes.offsets.push(end as u32);
    bytes.data.truncate(end);
}

/// Keeps the bits at `positions` (ascending).
pub(crate) fn compact_bits(bits: &mut Bitmap, positions: &[u16]) {
    let mut kept = Bitmap::new(positions.len(), false);
    for (row, &position) in positions.iter().enumerate() {
        if bits.get(usize::from(position)) {
            kept.set(row, true);
        }
    }
    *bits = kept;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_compacted_in_place() {
        let words = ["alpha", "", "gamma", "delta"];
        let mut vector = Vector {
            values: Encoded::Flat(ValuesBuf::Bytes(words.iter().map(|word| word.as_bytes()).collect())),
            validity: Some(Bitmap::from_bools([true, false, true, true])),
            ..Vector::default()
        };
        compact(&mut vector, &[1, 2, 3]).unwrap();
        truncate(&mut vector, 2);
        let Encoded::Flat(ValuesBuf::Bytes(bytes)) = &vector.values else { panic!("flat bytes stay flat bytes") };
        assert_eq!(bytes.view().iter().collect::<Vec<_>>(), [&b""[..], b"gamma"]);
        assert_eq!(vector.validity, Some(Bitmap::from_bools([false, true])));
    }
}
