//! Sums: exact in 128 bits for integers and decimals, in double precision for floats.

use super::form::{Argument, Form};
use crate::dispatch::each_narrow;
use crate::{Error, Result};
use sinter_codec::{Bitmap, Values};

/// A running sum of either kind, with the number of values in it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    pub(crate) exact: i128,
    pub(crate) float: f64,
    pub(crate) count: u64,
}

impl Sum {
    /// Adds a vector.
    pub(super) fn add(&mut self, argument: Argument<'_>) -> Result<()> {
        let present = argument.present();
        if present == 0 {
            return Ok(());
        }
        self.count += present as u64;
        match argument.form {
            Form::Null | Form::Nested(_) => {}
            Form::Truth(bits) => self.add_exact(bits.count_ones() as i128)?,
            Form::Constant(Values::F32(one)) => self.float += f64::from(one[0]) * present as f64,
            Form::Constant(Values::F64(one)) => self.float += one[0] * present as f64,
            Form::Constant(one) => match crate::vector::scalar_at(one, 0) {
                sinter_codec::Scalar::Int(value) => {
                    self.add_exact(value.checked_mul(present as i128).ok_or_else(overflow)?)?;
                }
                _ => return Err(not_a_number()),
            },
            Form::BaseDelta(base, deltas) => {
                let deltas = each_narrow!(deltas, deltas => small(argument.validity, deltas));
                let bases = base.checked_mul(present as i128).ok_or_else(overflow)?;
                self.add_exact(bases.checked_add(deltas.into()).ok_or_else(overflow)?)?;
            }
            Form::Codes(codes, dictionary) => {
                each_narrow!(codes, codes => {
                    self.add_picked(dictionary.values.as_values(), argument, |row| codes[row] as usize)?;
                });
            }
            Form::Flat(values) => self.add_flat(values, argument)?,
        }
        Ok(())
    }

    /// Adds what another worker found.
    pub(super) fn merge(&mut self, other: &Sum) -> Result<()> {
        self.count += other.count;
        self.float += other.float;
        self.add_exact(other.exact)
    }

    /// Adds a sum that is known from elsewhere.
    pub(super) fn add_known(&mut self, sum: i128, count: u64) -> Result<()> {
        self.count += count;
        self.add_exact(sum)
    }

    fn add_exact(&mut self, value: i128) -> Result<()> {
        self.exact = self.exact.checked_add(value).ok_or_else(overflow)?;
        Ok(())
    }

    fn add_flat(&mut self, values: Values<'_>, argument: Argument<'_>) -> Result<()> {
        let validity = argument.validity;
        match values {
            Values::I8(values) => self.add_exact(small(validity, values).into()),
            Values::I16(values) => self.add_exact(small(validity, values).into()),
            Values::I32(values) => self.add_exact(small(validity, values).into()),
            Values::U8(values) => self.add_exact(small(validity, values).into()),
            Values::U16(values) => self.add_exact(small(validity, values).into()),
            Values::U32(values) => self.add_exact(small(validity, values).into()),
            Values::I64(values) => self.add_exact(large(validity, values)),
            Values::U64(values) => self.add_exact(large(validity, values)),
            Values::I128(values) => {
                if let (None, Some(sum)) = (validity, wide(values)) {
                    return self.add_exact(sum);
                }
                let mut sum = Some(self.exact);
                argument.for_each_present(|row| sum = sum.and_then(|sum| sum.checked_add(values[row])));
                self.exact = sum.ok_or_else(overflow)?;
                Ok(())
            }
            Values::F32(values) => {
                self.float += floating(validity, values);
                Ok(())
            }
            Values::F64(values) => {
                self.float += floating(validity, values);
                Ok(())
            }
            Values::Bytes(_) => Err(not_a_number()),
        }
    }

    /// Values by position: entries of a dictionary.
    fn add_picked(&mut self, entries: Values<'_>, argument: Argument<'_>, pick: impl Fn(usize) -> usize) -> Result<()> {
        macro_rules! integers {
            ($entries:expr) => {{
                let mut sum = Some(self.exact);
                argument.for_each_present(|row| {
                    let entry = i128::from($entries.get(pick(row)).copied().unwrap_or_default());
                    sum = sum.and_then(|sum| sum.checked_add(entry));
                });
                self.exact = sum.ok_or_else(overflow)?;
            }};
        }
        macro_rules! floats {
            ($entries:expr) => {
                argument.for_each_present(|row| {
                    self.float += f64::from($entries.get(pick(row)).copied().unwrap_or_default());
                })
            };
        }
        match entries {
            Values::I8(entries) => integers!(entries),
            Values::I16(entries) => integers!(entries),
            Values::I32(entries) => integers!(entries),
            Values::I64(entries) => integers!(entries),
            Values::I128(entries) => integers!(entries),
            Values::U8(entries) => integers!(entries),
            Values::U16(entries) => integers!(entries),
            Values::U32(entries) => integers!(entries),
            Values::U64(entries) => integers!(entries),
            Values::F32(entries) => floats!(entries),
            Values::F64(entries) => floats!(entries),
            Values::Bytes(_) => return Err(not_a_number()),
        }
        Ok(())
    }
}

/// Numbers of up to 32 bits: 2^31 of them fit a sum of 64 bits, far more than a vector has.
fn small<T: Copy + Into<i64>>(validity: Option<&Bitmap>, values: &[T]) -> i64 {
    match validity {
        None => values.iter().map(|&value| value.into()).sum(),
        Some(validity) => {
            masked(validity, values, 0i64, |sum, value, kept| *sum += value & kept as i64).into_iter().sum()
        }
    }
}

/// Numbers of 64 bits: 2^63 of them fit a sum of 128 bits.
fn large<T: Copy + Into<i128>>(validity: Option<&Bitmap>, values: &[T]) -> i128 {
    match validity {
        None => values.iter().map(|&value| value.into()).sum(),
        Some(validity) => validity.ones().map(|row| values[row].into()).sum(),
    }
}

/// Numbers of 128 bits, if none of them is so large that their sum might overflow on the way.
fn wide(values: &[i128]) -> Option<i128> {
    let (mut sum, mut bits) = (0i128, 0);
    for &value in values {
        sum = sum.wrapping_add(value);
        bits |= value ^ (value >> 127);
    }
    let needed = 128 - bits.leading_zeros() + usize::BITS - values.len().leading_zeros();
    (needed < 127).then_some(sum)
}

/// Floats, in eight sums side by side, since each addition waits for the one before it.
fn floating<T: Copy + Into<f64>>(validity: Option<&Bitmap>, values: &[T]) -> f64 {
    if let Some(validity) = validity {
        let add = |sum: &mut f64, value: f64, kept: u64| *sum += f64::from_bits(value.to_bits() & kept);
        return masked(validity, values, 0.0, add).into_iter().sum();
    }
    let (eights, rest) = values.as_chunks::<8>();
    let mut sums = [0.0; 8];
    for eight in eights {
        for (sum, &value) in sums.iter_mut().zip(eight) {
            *sum += value.into();
        }
    }
    sums.iter().sum::<f64>() + rest.iter().map(|&value| value.into()).sum::<f64>()
}

/// By eight bits of a bitmap, which bits of eight values to keep: all, or none.
static KEPT: [[u64; 8]; 256] = {
    let mut kept = [[0; 8]; 256];
    let mut bits = 0;
    while bits < 256 {
        let mut value = 0;
        while value < 8 {
            kept[bits][value] = if bits >> value & 1 == 1 { u64::MAX } else { 0 };
            value += 1;
        }
        bits += 1;
    }
    kept
};

/// Eight sums side by side of the values that are there; `add` has to mask the others by the bits that it is told to keep.
#[inline(always)]
fn masked<T: Copy + Into<S>, S: Copy>(
    validity: &Bitmap,
    values: &[T],
    zero: S,
    add: impl Fn(&mut S, S, u64) + Copy,
) -> [S; 8] {
    let mut sums = [zero; 8];
    let mut add_each = |values: &[T], bits: u64| {
        for ((sum, &value), &kept) in sums.iter_mut().zip(values).zip(&KEPT[usize::from(bits as u8)]) {
            add(sum, value.into(), kept);
        }
    };
    for (values, &word) in values.chunks(64).zip(validity.words()) {
        let (eights, rest) = values.as_chunks::<8>();
        let mut bits = word;
        for eight in eights {
            add_each(eight, bits);
            bits >>= 8;
        }
        add_each(rest, bits);
    }
    sums
}

pub(crate) fn overflow() -> Error {
    Error::Overflow { what: "a sum beyond 128 bits".into(), type_name: "DECIMAL(38)".into() }
}

fn not_a_number() -> Error {
    Error::Unsupported("a sum of something other than numbers".into())
}
