//! Encoded forms written out as plain values.

use super::{Dictionary, Vector};
use crate::dispatch::{each_narrow, each_type};
use crate::{Error, Result};
use sinter_codec::{Encoded, Scalar, Values, ValuesBuf};

/// Writes `rows` values over `out`, which is a buffer of the vector's physical type.
pub(crate) fn flatten(encoded: &Encoded, dictionary: Option<&Dictionary>, rows: usize, out: &mut ValuesBuf) {
    out.clear();
    extend(encoded, dictionary, rows, out);
}

/// Appends a vector's `rows` values to `out`.
///
/// # Errors
/// [`Error::Unsupported`] for lists and structs, and where `out` is a buffer of another type.
pub(crate) fn append(vector: &Vector, rows: usize, out: &mut ValuesBuf) -> Result<()> {
    if vector.nested.is_some() {
        return Err(Error::Unsupported("nested values as plain ones".into()));
    }
    let physical = match &vector.values {
        Encoded::Constant(values) | Encoded::Flat(values) => Some(values.physical()),
        Encoded::Codes(_) => vector.dictionary.as_ref().map(|dictionary| dictionary.values.physical()),
        Encoded::BaseDelta { .. } => None,
    };
    if physical.is_some_and(|physical| physical != out.physical()) {
        return Err(Error::Unsupported("values of one type among those of another".into()));
    }
    extend(&vector.values, vector.dictionary.as_deref(), rows, out);
    Ok(())
}

fn extend(encoded: &Encoded, dictionary: Option<&Dictionary>, rows: usize, out: &mut ValuesBuf) {
    match encoded {
        Encoded::Constant(one) => repeat(one.as_values(), rows, out),
        Encoded::BaseDelta { base, deltas } => each_narrow!(deltas, deltas => each_type!(ValuesBuf, out,
            out => add_base(*base, deltas, out),
            _bytes => debug_assert!(false, "bytes have no deltas"))),
        Encoded::Codes(codes) => {
            let Some(dictionary) = dictionary else { return out.push_default(rows) };
            each_narrow!(codes, codes => super::gather_values(
                dictionary.values.as_values(), codes.iter().map(|&code| code as usize), out))
        }
        Encoded::Flat(values) => out.extend(values.as_values()),
    }
}

/// Types that deltas are added in.
trait FromBase: Copy {
    fn from_base(base: i128, delta: u32) -> Self;
}

macro_rules! from_base {
    ($($native:ty),*) => {
        $(impl FromBase for $native {
            #[inline(always)]
            fn from_base(base: i128, delta: u32) -> $native {
                (base as $native).wrapping_add(delta as $native)
            }
        })*
    };
}

from_base!(i8, i16, i32, i64, i128, u8, u16, u32, u64);

impl FromBase for f32 {
    fn from_base(base: i128, delta: u32) -> f32 {
        (base + i128::from(delta)) as f32
    }
}

impl FromBase for f64 {
    fn from_base(base: i128, delta: u32) -> f64 {
        (base + i128::from(delta)) as f64
    }
}

/// The sum fits the type, so adding within it is exact, whatever wraps on the way.
fn add_base<T: FromBase>(base: i128, deltas: &[impl Copy + Into<u32>], out: &mut Vec<T>) {
    out.extend(deltas.iter().map(|&delta| T::from_base(base, delta.into())));
}

/// Appends `count` copies of the one value in `one`.
fn repeat(one: Values<'_>, count: usize, out: &mut ValuesBuf) {
    each_type!(Values, one,
    _numbers => match (out, one) {
        (ValuesBuf::I8(out), Values::I8(one)) => out.resize(out.len() + count, one[0]),
        (ValuesBuf::I16(out), Values::I16(one)) => out.resize(out.len() + count, one[0]),
        (ValuesBuf::I32(out), Values::I32(one)) => out.resize(out.len() + count, one[0]),
        (ValuesBuf::I64(out), Values::I64(one)) => out.resize(out.len() + count, one[0]),
        (ValuesBuf::I128(out), Values::I128(one)) => out.resize(out.len() + count, one[0]),
        (ValuesBuf::U8(out), Values::U8(one)) => out.resize(out.len() + count, one[0]),
        (ValuesBuf::U16(out), Values::U16(one)) => out.resize(out.len() + count, one[0]),
        (ValuesBuf::U32(out), Values::U32(one)) => out.resize(out.len() + count, one[0]),
        (ValuesBuf::U64(out), Values::U64(one)) => out.resize(out.len() + count, one[0]),
        (ValuesBuf::F32(out), Values::F32(one)) => out.resize(out.len() + count, one[0]),
        (ValuesBuf::F64(out), Values::F64(one)) => out.resize(out.len() + count, one[0]),
        _ => debug_assert!(false, "a constant of another type"),
    },
    one => if let ValuesBuf::Bytes(out) = out {
        for _ in 0..count {
            out.push(one.get(0));
        }
    });
}

/// Appends a scalar; false when it is not a value of the buffer's type.
pub(crate) fn push_scalar(out: &mut ValuesBuf, scalar: &Scalar) -> bool {
    macro_rules! int {
        ($out:expr, $value:expr) => {
            match (*$value).try_into() {
                Ok(value) => $out.push(value),
                Err(_) => return false,
            }
        };
    }
    match (out, scalar) {
        (ValuesBuf::I8(out), Scalar::Int(value)) => int!(out, value),
        (ValuesBuf::I16(out), Scalar::Int(value)) => int!(out, value),
        (ValuesBuf::I32(out), Scalar::Int(value)) => int!(out, value),
        (ValuesBuf::I64(out), Scalar::Int(value)) => int!(out, value),
        (ValuesBuf::I128(out), Scalar::Int(value)) => out.push(*value),
        (ValuesBuf::U8(out), Scalar::Int(value)) => int!(out, value),
        (ValuesBuf::U16(out), Scalar::Int(value)) => int!(out, value),
        (ValuesBuf::U32(out), Scalar::Int(value)) => int!(out, value),
        (ValuesBuf::U64(out), Scalar::Int(value)) => int!(out, value),
        (ValuesBuf::F32(out), Scalar::Float(value)) => out.push(*value as f32),
        (ValuesBuf::F64(out), Scalar::Float(value)) => out.push(*value),
        (ValuesBuf::Bytes(out), Scalar::Bytes(value)) => out.push(value),
        _ => return false,
    }
    true
}

/// One value, owned.
pub(crate) fn scalar_at(values: Values<'_>, row: usize) -> Scalar {
    match values {
        Values::I8(values) => Scalar::Int(values[row].into()),
        Values::I16(values) => Scalar::Int(values[row].into()),
        Values::I32(values) => Scalar::Int(values[row].into()),
        Values::I64(values) => Scalar::Int(values[row].into()),
        Values::I128(values) => Scalar::Int(values[row]),
        Values::U8(values) => Scalar::Int(values[row].into()),
        Values::U16(values) => Scalar::Int(values[row].into()),
        Values::U32(values) => Scalar::Int(values[row].into()),
        Values::U64(values) => Scalar::Int(values[row].into()),
        Values::F32(values) => Scalar::Float(values[row].into()),
        Values::F64(values) => Scalar::Float(values[row]),
        Values::Bytes(view) => Scalar::Bytes(view.get(row).to_vec()),
    }
}
