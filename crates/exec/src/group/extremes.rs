//! MIN and MAX by group.

use super::ints::{IntScratch, Ints};
use crate::aggregate::{Argument, Form};
use crate::expr::{float_key, float_of_key};
use crate::text_head::TextHead;
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
    Texts(BestTexts),
}

/// Texts by group: the [numbers](TextHead::number) of their heads, and what is longer.
#[derive(Debug, Default)]
struct BestTexts {
    /// Groups without a value have what every text beats.
    heads: Vec<u128>,
    /// Nothing beyond the last group whose best text is longer than its head; of no use where it is not.
    longer: Vec<Box<[u8]>>,
    longer_bytes: usize,
}

impl Extremes {
    pub(super) fn new(is_minimum: bool) -> Extremes {
        Extremes { is_minimum, best: Best::Nothing, scratch: IntScratch::default() }
    }

    /// Bytes that they take.
    pub(super) fn bytes(&self) -> usize {
        match &self.best {
            Best::Nothing => 0,
            Best::Ints(best) | Best::Floats(best) => 16 * best.capacity(),
            Best::Texts(best) => 16 * (best.heads.capacity() + best.longer.capacity()) + best.longer_bytes,
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
                argument.for_each_present(|row| {
                    let text = at(row);
                    let head = TextHead::at(&view, text).number();
                    best.offer(groups[row] as usize, head, || view.get(text), is_minimum);
                });
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

    /// Adds what another worker found, of each pair of a group of its and the one of ours that it is.
    pub(super) fn merge(
        &mut self,
        other: &Extremes,
        pairs: impl Iterator<Item = (usize, usize)>,
        group_count: usize,
    ) -> Result<()> {
        let is_minimum = self.is_minimum;
        let (best, others) = match &other.best {
            Best::Nothing => return Ok(()),
            Best::Texts(texts) => {
                let best = self.texts(group_count)?;
                for (theirs, ours) in pairs {
                    if let Some(&head) = texts.heads.get(theirs) {
                        best.offer(ours, head, || texts.longer.get(theirs).map_or(&[], |text| text), is_minimum);
                    }
                }
                return Ok(());
            }
            Best::Ints(others) => (self.ints(group_count)?, others),
            Best::Floats(others) => (self.floats(group_count)?, others),
        };
        for (theirs, ours) in pairs {
            if let Some(&value) = others.get(theirs) {
                offer(&mut best[ours], value, is_minimum);
            }
        }
        Ok(())
    }

    /// The best value of a group that has one.
    pub(super) fn get(&self, group: usize) -> Scalar {
        match &self.best {
            Best::Nothing => Scalar::Null,
            Best::Ints(best) => best.get(group).map_or(Scalar::Null, |&value| Scalar::Int(value)),
            Best::Floats(best) => best.get(group).map_or(Scalar::Null, |&key| Scalar::Float(float_of_key(key as i64))),
            Best::Texts(best) => best.get(group).map_or(Scalar::Null, Scalar::Bytes),
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

    fn texts(&mut self, group_count: usize) -> Result<&mut BestTexts> {
        if matches!(self.best, Best::Nothing) {
            self.best = Best::Texts(BestTexts::default());
        }
        let worst = if self.is_minimum { u128::MAX } else { 0 };
        let Best::Texts(best) = &mut self.best else { return Err(unsuitable()) };
        best.heads.resize(group_count, worst);
        Ok(best)
    }
}

impl BestTexts {
    /// Offers a text, or what every text beats, by the number of its head.
    #[inline(always)]
    fn offer<'a>(&mut self, group: usize, head: u128, text: impl FnOnce() -> &'a [u8], is_minimum: bool) {
        let best = self.heads[group];
        let beats = if is_minimum { head < best } else { head > best };
        if beats || head == best && !is_whole(head) {
            self.offer_longer(group, head, text(), is_minimum);
        }
    }

    /// The same for one that beats the best of its group, or at least has the same head as it, which is not all of it.
    #[cold]
    fn offer_longer(&mut self, group: usize, head: u128, text: &[u8], is_minimum: bool) {
        if head == self.heads[group] {
            let best = &self.longer[group][..];
            if if is_minimum { text >= best } else { text <= best } {
                return;
            }
        }
        self.heads[group] = head;
        if !is_whole(head) {
            self.longer.resize(self.longer.len().max(group + 1), Box::default());
            self.longer_bytes += text.len();
            self.longer_bytes -= self.longer[group].len();
            self.longer[group] = text.into();
        }
    }

    /// The best text of a group that has one.
    fn get(&self, group: usize) -> Option<Vec<u8>> {
        let head = self.heads.get(group).copied().filter(|&head| head != 0 && head != u128::MAX)?;
        Some(TextHead::of_number(head).text().unwrap_or_else(|| &self.longer[group]).to_vec())
    }
}

/// Whether a head with this number is all of its text; so is what stands for none.
fn is_whole(head: u128) -> bool {
    head == u128::MAX || TextHead::of_number(head).is_whole()
}

#[inline(always)]
fn offer(best: &mut i128, value: i128, is_minimum: bool) {
    let beats = if is_minimum { value < *best } else { value > *best };
    *best = if beats { value } else { *best };
}

fn unsuitable() -> Error {
    Error::Unsupported("extremes of values of several types".into())
}
