//! `IN (constants)`.

use super::compare::{fill, float_key};
use super::logic::known_only;
use super::slot::{Input, Slot};
use sinter_codec::{Scalar, Values};
use std::collections::HashSet;

/// The constants, ready to be looked up.
#[derive(Clone, Debug)]
pub(crate) enum Membership {
    /// Integers, and floats by [`float_key`], ascending.
    Sorted(Vec<i128>),
    /// Few and dense integers: one flag per number from `least` on.
    Dense {
        least: i128,
        flags: Vec<bool>,
    },
    Bytes(HashSet<Vec<u8>>),
}

impl Membership {
    /// Flags for a range up to this many numbers: a page of memory, cheaper than any search.
    const DENSE: i128 = 4096;

    pub(super) fn new(list: &[Scalar]) -> Membership {
        if list.iter().any(|scalar| matches!(scalar, Scalar::Bytes(_))) {
            let bytes = |scalar: &Scalar| if let Scalar::Bytes(bytes) = scalar { Some(bytes.clone()) } else { None };
            return Membership::Bytes(list.iter().filter_map(bytes).collect());
        }
        let mut floats = false;
        let number = |scalar: &Scalar| match scalar {
            Scalar::Int(value) => Some(*value),
            Scalar::Float(value) => {
                floats = true;
                Some(float_key(*value).into())
            }
            _ => None,
        };
        let mut numbers: Vec<i128> = list.iter().filter_map(number).collect();
        numbers.sort_unstable();
        numbers.dedup();
        if let (Some(&least), Some(&greatest)) = (numbers.first(), numbers.last())
            && !floats
            && greatest.checked_sub(least).is_some_and(|range| range < Membership::DENSE)
        {
            let mut flags = vec![false; (greatest - least) as usize + 1];
            for number in numbers {
                flags[(number - least) as usize] = true;
            }
            return Membership::Dense { least, flags };
        }
        Membership::Sorted(numbers)
    }

    #[inline]
    fn has_number(&self, value: i128) -> bool {
        match self {
            Membership::Sorted(numbers) => numbers.binary_search(&value).is_ok(),
            Membership::Dense { least, flags } => {
                let index = value.checked_sub(*least).and_then(|index| usize::try_from(index).ok());
                index.and_then(|index| flags.get(index)).copied().unwrap_or(false)
            }
            Membership::Bytes(_) => false,
        }
    }

    fn has_bytes(&self, value: &[u8]) -> bool {
        matches!(self, Membership::Bytes(list) if list.contains(value))
    }
}

/// True where the value is in the list; unknown where it is not but NULL is.
pub(super) fn in_list(input: Input<'_>, list: &Membership, has_null: bool, negated: bool, rows: usize, out: &mut Slot) {
    out.set_strict(&[input], rows);
    out.truth.reset(rows, false);
    if !out.all_null() {
        let at = |row: usize| if input.constant { 0 } else { row };
        macro_rules! integers {
            ($values:expr) => {
                fill(&mut out.truth, |row| list.has_number($values[at(row)].into()))
            };
        }
        match input.values {
            Values::I8(values) => integers!(values),
            Values::I16(values) => integers!(values),
            Values::I32(values) => integers!(values),
            Values::I64(values) => integers!(values),
            Values::I128(values) => integers!(values),
            Values::U8(values) => integers!(values),
            Values::U16(values) => integers!(values),
            Values::U32(values) => integers!(values),
            Values::U64(values) => integers!(values),
            Values::F32(values) => {
                fill(&mut out.truth, |row| list.has_number(float_key(values[at(row)].into()).into()));
            }
            Values::F64(values) => fill(&mut out.truth, |row| list.has_number(float_key(values[at(row)]).into())),
            Values::Bytes(view) => fill(&mut out.truth, |row| list.has_bytes(view.get(at(row)))),
        }
    }
    known_only(out);
    if has_null {
        // Only a match is certain.
        out.validity.clone_from(&out.truth);
        out.has_nulls = true;
    }
    if negated {
        out.truth.invert();
        known_only(out);
    }
}
