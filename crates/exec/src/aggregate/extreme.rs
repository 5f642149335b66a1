//! MIN and MAX.

use super::form::{Argument, Form};
use crate::Dictionary;
use crate::dispatch::each_narrow;
use crate::expr::float_key;
use crate::vector::scalar_at;
use sinter_codec::{Bitmap, Scalar, Values};
use std::cmp::Ordering;
use std::sync::Arc;

/// The least or greatest value so far.
#[derive(Clone, Debug)]
pub(super) struct Extreme {
    /// The order in which a value beats the best one so far.
    wanted: Ordering,
    best: Scalar,
    /// Which entries of a dictionary have occurred; looked at when another dictionary comes, or at the end.
    seen: Option<(Arc<Dictionary>, Bitmap)>,
}

impl Extreme {
    pub(super) fn new(minimum: bool) -> Extreme {
        let wanted = if minimum { Ordering::Less } else { Ordering::Greater };
        Extreme { wanted, best: Scalar::Null, seen: None }
    }

    /// Looks at a vector.
    pub(super) fn add(&mut self, argument: Argument<'_>) {
        if argument.present() == 0 {
            return;
        }
        match argument.form {
            Form::Null | Form::Nested(_) => {}
            Form::Constant(one) => self.offer(scalar_at(one, 0)),
            Form::Truth(bits) => {
                let all_true = bits.count_ones() == argument.present();
                let value = if self.wanted == Ordering::Less { all_true } else { bits.any() };
                self.offer(Scalar::Int(value.into()));
            }
            Form::BaseDelta(base, deltas) => {
                let delta = each_narrow!(deltas, deltas => self.of_numbers(deltas, argument).map(i128::from));
                if let Some(delta) = delta {
                    self.offer(Scalar::Int(base + delta));
                }
            }
            Form::Codes(codes, dictionary) => {
                if self.seen.as_ref().is_none_or(|(seen, _)| seen.id != dictionary.id) {
                    self.settle();
                    let none = Bitmap::new(dictionary.values.len(), false);
                    self.seen = Some((Arc::clone(dictionary), none));
                }
                if let Some((_, seen)) = &mut self.seen {
                    let count = seen.len();
                    let words = seen.words_mut();
                    each_narrow!(codes, codes => argument.for_each_present(|row| {
                        let code = codes[row] as usize;
                        if code < count {
                            words[code / 64] |= 1 << (code % 64);
                        }
                    }));
                }
            }
            Form::Flat(values) => self.of_values(values, argument),
        }
    }

    /// Adds what another worker found.
    pub(super) fn merge(&mut self, mut other: Extreme) {
        other.settle();
        self.offer(other.best);
    }

    /// The result; NULL where no value was present.
    pub(super) fn finish(mut self) -> Scalar {
        self.settle();
        self.best
    }

    /// Takes a value over if it beats the best one so far.
    pub(super) fn offer(&mut self, value: Scalar) {
        let beats = match (&value, &self.best) {
            (Scalar::Null, _) => false,
            (_, Scalar::Null) => true,
            (Scalar::Int(value), Scalar::Int(best)) => value.cmp(best) == self.wanted,
            (Scalar::Float(value), Scalar::Float(best)) => float_key(*value).cmp(&float_key(*best)) == self.wanted,
            (Scalar::Bytes(value), Scalar::Bytes(best)) => value.cmp(best) == self.wanted,
            _ => false,
        };
        if beats {
            self.best = value;
        }
    }

    /// Looks at the entries that have occurred.
    fn settle(&mut self) {
        if let Some((dictionary, seen)) = self.seen.take() {
            for entry in seen.ones() {
                self.offer_at(dictionary.values.as_values(), entry);
            }
        }
    }

    fn offer_at(&mut self, values: Values<'_>, row: usize) {
        // Bytes are compared before they are copied.
        if let (Values::Bytes(view), Scalar::Bytes(best)) = (values, &self.best)
            && view.get(row).cmp(&best[..]) != self.wanted
        {
            return;
        }
        self.offer(scalar_at(values, row));
    }

    fn of_values(&mut self, values: Values<'_>, argument: Argument<'_>) {
        macro_rules! integers {
            ($values:expr) => {
                if let Some(value) = self.of_numbers($values, argument) {
                    self.offer(Scalar::Int(value.into()));
                }
            };
        }
        match values {
            Values::I8(values) => integers!(values),
            Values::I16(values) => integers!(values),
            Values::I32(values) => integers!(values),
            Values::I64(values) => integers!(values),
            Values::I128(values) => integers!(values),
            Values::U8(values) => integers!(values),
            Values::U16(values) => integers!(values),
            Values::U32(values) => integers!(values),
            Values::U64(values) => integers!(values),
            Values::F32(_) | Values::F64(_) | Values::Bytes(_) => {
                argument.for_each_present(|row| self.offer_at(values, row));
            }
        }
    }

    /// The best of a slice of numbers.
    fn of_numbers<T: Copy + Ord>(&self, values: &[T], argument: Argument<'_>) -> Option<T> {
        let minimum = self.wanted == Ordering::Less;
        match argument.validity {
            None if minimum => values.iter().copied().min(),
            None => values.iter().copied().max(),
            Some(validity) if minimum => validity.ones().map(|row| values[row]).min(),
            Some(validity) => validity.ones().map(|row| values[row]).max(),
        }
    }
}
