//! A vector's integers as a slice of one type, whatever their form.

use crate::aggregate::{Argument, Form};
use crate::dispatch::each_narrow;
use sinter_codec::{Narrow, Values, map_rows};

/// The integers of a vector, one per row; those at NULLs are any.
pub(crate) enum Ints<'a> {
    /// All of them fit 64 bits, and none is further from zero than `reach`.
    Narrow {
        values: &'a [i64],
        reach: u64,
    },
    Wide(&'a [i128]),
}

/// Where integers are written that are not there as such.
#[derive(Clone, Debug, Default)]
pub(crate) struct IntScratch {
    narrow: Vec<i64>,
    wide: Vec<i128>,
}

impl IntScratch {
    /// The integers of `argument`; `None` where it holds others than integers.
    pub(crate) fn ints<'a>(&'a mut self, argument: Argument<'a>) -> Option<Ints<'a>> {
        self.narrow.clear();
        self.wide.clear();
        match argument.form {
            Form::Null | Form::Nested(_) => self.narrow.resize(argument.rows, 0),
            Form::Truth(bits) => self.narrow.extend((0..argument.rows).map(|row| i64::from(bits.get(row)))),
            Form::Constant(one) => {
                let value = int_at(one, 0)?;
                match i64::try_from(value) {
                    Ok(value) => self.narrow.resize(argument.rows, value),
                    Err(_) => self.wide.resize(argument.rows, value),
                }
            }
            Form::BaseDelta(base, deltas) => self.add_deltas(base, deltas),
            Form::Codes(codes, dictionary) => each_narrow!(codes, codes => {
                self.add_all(codes.iter().map(|&code| code as usize), dictionary.values.as_values())?;
            }),
            Form::Flat(Values::I64(values)) => return Some(Ints::Narrow { values, reach: reach(values) }),
            Form::Flat(Values::I128(values)) if !fit(values) => return Some(Ints::Wide(values)),
            Form::Flat(values) => self.add_all(0..argument.rows, values)?,
        }
        Some(match self.wide.is_empty() {
            true => Ints::Narrow { values: &self.narrow, reach: reach(&self.narrow) },
            false => Ints::Wide(&self.wide),
        })
    }

    fn add_deltas(&mut self, base: i128, deltas: &Narrow) {
        let greatest = base.saturating_add(u32::MAX.into());
        match (i64::try_from(base), i64::try_from(greatest)) {
            (Ok(base), Ok(_)) => {
                each_narrow!(deltas, deltas => map_rows(deltas, &mut self.narrow, move |delta| base + i64::from(delta)));
            }
            _ => each_narrow!(deltas, deltas => self.wide.extend(deltas.iter().map(|&delta| base + i128::from(delta)))),
        }
    }

    /// Values at these positions; what is outside, which only a NULL is, as zero.
    fn add_all(&mut self, positions: impl Iterator<Item = usize> + Clone, values: Values<'_>) -> Option<()> {
        macro_rules! add {
            ($values:expr) => {
                self.narrow.extend(positions.map(|at| $values.get(at).map_or(0, |&value| value as i64)))
            };
        }
        macro_rules! add_wide {
            ($values:expr) => {
                self.wide.extend(positions.map(|at| $values.get(at).map_or(0, |&value| i128::from(value))))
            };
        }
        match values {
            Values::I8(values) => add!(values),
            Values::I16(values) => add!(values),
            Values::I32(values) => add!(values),
            Values::I64(values) => add!(values),
            Values::U8(values) => add!(values),
            Values::U16(values) => add!(values),
            Values::U32(values) => add!(values),
            Values::U64(values) if values.iter().fold(0, |all, value| all | value) >> 63 == 0 => add!(values),
            Values::U64(values) => add_wide!(values),
            Values::I128(values) if fit(values) => add!(values),
            Values::I128(values) => add_wide!(values),
            Values::F32(_) | Values::F64(_) | Values::Bytes(_) => return None,
        }
        Some(())
    }
}

fn int_at(values: Values<'_>, row: usize) -> Option<i128> {
    match crate::vector::scalar_at(values, row) {
        sinter_codec::Scalar::Int(value) => Some(value),
        _ => None,
    }
}

/// How far from zero none of them is.
fn reach(values: &[i64]) -> u64 {
    // A negative number's complement is one less than its distance.
    values.iter().fold(0, |all, value| all | (value ^ (value >> 63)) as u64) + 1
}

/// Whether all of them are numbers of 64 bits.
fn fit(values: &[i128]) -> bool {
    values.iter().fold(0, |all, value| all | (value ^ (value >> 127))) >> 63 == 0
}
