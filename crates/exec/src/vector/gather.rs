//! Values picked by position, in any order, into another buffer.

use super::Vector;
use crate::Result;
use crate::edge::foreign;
use arrow::array::UInt32Array;
use sinter_codec::{Bitmap, Encoded, Narrow, Values, ValuesBuf};

/// Appends the values at `positions` to `out`, a buffer of the same type. A position outside, which only the
/// unspecified code of a NULL has, gives the default value.
pub(crate) fn gather_values(values: Values<'_>, positions: impl Iterator<Item = usize>, out: &mut ValuesBuf) {
    macro_rules! numbers {
        ($values:expr, $out:expr) => {
            $out.extend(positions.map(|position| $values.get(position).copied().unwrap_or_default()))
        };
    }
    match (values, out) {
        (Values::I8(values), ValuesBuf::I8(out)) => numbers!(values, out),
        (Values::I16(values), ValuesBuf::I16(out)) => numbers!(values, out),
        (Values::I32(values), ValuesBuf::I32(out)) => numbers!(values, out),
        (Values::I64(values), ValuesBuf::I64(out)) => numbers!(values, out),
        (Values::I128(values), ValuesBuf::I128(out)) => numbers!(values, out),
        (Values::U8(values), ValuesBuf::U8(out)) => numbers!(values, out),
        (Values::U16(values), ValuesBuf::U16(out)) => numbers!(values, out),
        (Values::U32(values), ValuesBuf::U32(out)) => numbers!(values, out),
        (Values::U64(values), ValuesBuf::U64(out)) => numbers!(values, out),
        (Values::F32(values), ValuesBuf::F32(out)) => numbers!(values, out),
        (Values::F64(values), ValuesBuf::F64(out)) => numbers!(values, out),
        (Values::Bytes(view), ValuesBuf::Bytes(out)) => {
            let count = view.len();
            for position in positions {
                out.push(if position < count { view.get(position) } else { &[] });
            }
        }
        (values, out) => {
            debug_assert!(false, "{} values into a {} buffer", values.physical().name(), out.physical().name());
        }
    }
}

/// Writes the bits at `positions` over `out`.
fn gather_bits(bits: &Bitmap, positions: impl Iterator<Item = usize>, out: &mut Bitmap) {
    out.reset(0, false);
    for position in positions {
        out.push(bits.get(position));
    }
}

/// Writes the rows at `positions` over `out`, in the same encoded form.
pub(crate) fn gather_vector(vector: &Vector, positions: &[u32], out: &mut Vector) -> Result<()> {
    if let Some(array) = &vector.nested {
        let positions = UInt32Array::from(positions.to_vec());
        out.nested = Some(arrow::compute::take(array, &positions, None).map_err(foreign)?);
        return Ok(());
    }
    out.nested = None;
    out.dictionary.clone_from(&vector.dictionary);
    match &vector.validity {
        Some(validity) => {
            let bits = out.validity.get_or_insert_default();
            gather_bits(validity, positions.iter().map(|&position| position as usize), bits);
        }
        None => out.validity = None,
    }
    match (&vector.values, &mut out.values) {
        (Encoded::Constant(one), values) => *values = Encoded::Constant(one.clone()),
        (Encoded::BaseDelta { base, deltas }, Encoded::BaseDelta { base: base_out, deltas: out }) => {
            *base_out = *base;
            gather_narrow(deltas, positions, out);
        }
        (Encoded::BaseDelta { base, deltas }, values) => {
            let mut gathered = Narrow::U8(Vec::new());
            gather_narrow(deltas, positions, &mut gathered);
            *values = Encoded::BaseDelta { base: *base, deltas: gathered };
        }
        (Encoded::Codes(codes), Encoded::Codes(out)) => gather_narrow(codes, positions, out),
        (Encoded::Codes(codes), values) => {
            let mut gathered = Narrow::U8(Vec::new());
            gather_narrow(codes, positions, &mut gathered);
            *values = Encoded::Codes(gathered);
        }
        (Encoded::Flat(flat), Encoded::Flat(values)) => {
            values.reset(flat.physical());
            gather_values(flat.as_values(), positions.iter().map(|&position| position as usize), values);
        }
        (Encoded::Flat(flat), values) => {
            let mut gathered = ValuesBuf::new(flat.physical());
            gather_values(flat.as_values(), positions.iter().map(|&position| position as usize), &mut gathered);
            *values = Encoded::Flat(gathered);
        }
    }
    Ok(())
}

/// Writes the numbers at `positions` over `out`, in the memory there is if it has their width.
fn gather_narrow(numbers: &Narrow, positions: &[u32], out: &mut Narrow) {
    macro_rules! gather {
        ($width:ident, $numbers:expr) => {{
            let picked = positions.iter().map(|&position| $numbers[position as usize]);
            match out {
                Narrow::$width(out) => {
                    out.clear();
                    out.extend(picked);
                }
                out => *out = Narrow::$width(picked.collect()),
            }
        }};
    }
    match numbers {
        Narrow::U8(numbers) => gather!(U8, numbers),
        Narrow::U16(numbers) => gather!(U16, numbers),
        Narrow::U32(numbers) => gather!(U32, numbers),
    }
}
