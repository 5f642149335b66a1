//! MIN and MAX by group.

use super::ints::{IntScratch, Ints};
use crate::aggregate::{Argument, Form};
use crate::expr::{float_key, float_of_key};
use crate::{Error, Result};
use sinter_codec::{Scalar, Values};

/// The least or greatest value of each group.
#[derive(Debug)]
pub(super) struct Extremes {
    is_minimum: bool,
    best: Best,
    scratch: IntScratch,
}

/// By group.
#[derive(Debug)]
enum Best {
    /// Only NULLs came yet.
    Nothing,
    /// Groups without a value have what every value beats.
    Ints(Vec<i128>),
    /// By [`float_key`].
    Floats(Vec<i128>),
    Texts(Vec<Option<Box<[u8]>>>),
}

impl Extremes {
    pub(super) fn new(is_minimum: bool) -> Extremes {
        Extremes { is_minimum, best: Best::Nothing, scratch: IntScratch::default() }
    }

    /// Bytes that they take, but for texts.
    pub(super) fn bytes(&self) -> usize {
        16 * match &self.best {
            Best::Nothing => 0,
            Best::Ints(best) | Best::Floats(best) => best.capacity(),
            Best::Texts(best) => best.capacity(),
        }
    }

    /// Looks at a vector whose rows are of `groups`, of `group_count` in all.
    pub(super) fn add(&mut self, argument: Argument<'_>, groups: &[u32], group_count: usize) -> Result<()> {
        if argument.present() == 0 {
            return Ok(());
        }
        let values = match argument.form {
            Form::Flat(values) | Form::Constant(values) => Some(values),
            Form::Codes(_, dictionary) => Some(dictionary.values.as_values()),
            _ => None,
        };
        let at = |row: usize| match argument.form {
            Form::Codes(codes, _) => codes.get(row) as usize,
            Form::Constant(_) => 0,
            _ => row,
        };
        let is_minimum = self.is_minimum;
        match values {
            Some(Values::Bytes(view)) => {
                let best = self.texts(group_count)?;
                argument
                    .for_each_present(|row| offer_text(&mut best[groups[row] as usize], view.get(at(row)), is_minimum));
            }
            Some(Values::F64(values)) => {
                let best = self.floats(group_count)?;
                let key = |row: usize| float_key(values[at(row)]).into();
                argument.for_each_present(|row| offer(&mut best[groups[row] as usize], key(row), is_minimum));
            }
            Some(Values::F32(values)) => {
                let best = self.floats(group_count)?;
                let key = |row: usize| float_key(values[at(row)].into()).into();
                argument.for_each_present(|row| offer(&mut best[groups[row] as usize], key(row), is_minimum));
            }
            _ => {
                let mut scratch = std::mem::take(&mut self.scratch);
                let best = self.ints(group_count)?;
                match scratch.ints(argument).ok_or_else(unsuitable)? {
                    Ints::Narrow { values, .. } => argument.for_each_present(|row| {
                        offer(&mut best[groups[row] as usize], values[row].into(), is_minimum);
                    }),
                    Ints::Wide(values) => argument.for_each_present(|row| {
                        offer(&mut best[groups[row] as usize], values[row], is_minimum);
                    }),
                }
                self.scratch = scratch;
            }
        }
        Ok(())
    }

    /// Adds what another worker found; its groups are `map`ped to ours.
    pub(super) fn merge(&mut self, other: Extremes, map: &[u32], group_count: usize) -> Result<()> {
        let is_minimum = self.is_minimum;
        let best = match other.best {
            Best::Nothing => return Ok(()),
            Best::Texts(texts) => {
                let best = self.texts(group_count)?;
                for (text, &group) in texts.iter().zip(map) {
                    if let Some(text) = text {
                        offer_text(&mut best[group as usize], text, is_minimum);
                    }
                }
                return Ok(());
            }
            Best::Ints(others) => (self.ints(group_count)?, others),
            Best::Floats(others) => (self.floats(group_count)?, others),
        };
        best.1.into_iter().zip(map).for_each(|(value, &group)| offer(&mut best.0[group as usize], value, is_minimum));
        Ok(())
    }

    /// The best value of a group that has one.
    pub(super) fn get(&self, group: usize) -> Scalar {
        match &self.best {
            Best::Nothing => Scalar::Null,
            Best::Ints(best) => best.get(group).map_or(Scalar::Null, |&value| Scalar::Int(value)),
            Best::Floats(best) => best.get(group).map_or(Scalar::Null, |&key| Scalar::Float(float_of_key(key as i64))),
            Best::Texts(best) => match best.get(group) {
                Some(Some(text)) => Scalar::Bytes(text.to_vec()),
                _ => Scalar::Null,
            },
        }
    }

    /// What every value beats.
    fn worst(&self) -> i128 {
        if self.is_minimum { i128::MAX } else { i128::MIN }
    }

    fn ints(&mut self, group_count: usize) -> Result<&mut [i128]> {
        let worst = self.worst();
        if matches!(self.best, Best::Nothing) {
            self.best = Best::Ints(Vec::new());
        }
        let Best::Ints(best) = &mut self.best else { return Err(unsuitable()) };
        best.resize(group_count, worst);
        Ok(best)
    }

    fn floats(&mut self, group_count: usize) -> Result<&mut [i128]> {
        let worst = self.worst();
        if matches!(self.best, Best::Nothing) {
            self.best = Best::Floats(Vec::new());
        }
        let Best::Floats(best) = &mut self.best else { return Err(unsuitable()) };
        best.resize(group_count, worst);
        Ok(best)
    }

    fn texts(&mut self, group_count: usize) -> Result<&mut [Option<Box<[u8]>>]> {
        if matches!(self.best, Best::Nothing) {
            self.best = Best::Texts(Vec::new());
        }
        let Best::Texts(best) = &mut self.best else { return Err(unsuitable()) };
        best.resize(group_count, None);
        Ok(best)
    }
}

#[inline(always)]
fn offer(best: &mut i128, value: i128, is_minimum: bool) {
    let beats = if is_minimum { value < *best } else { value > *best };
    *best = if beats { value } else { *best };
}

fn offer_text(best: &mut Option<Box<[u8]>>, text: &[u8], is_minimum: bool) {
    let beats = match best {
        None => true,
        Some(best) if is_minimum => text < &best[..],
        Some(best) => text > &best[..],
    };
    if beats {
        *best = Some(text.into());
    }
}

fn unsuitable() -> Error {
    Error::Unsupported("extremes of values of several types".into())
}
