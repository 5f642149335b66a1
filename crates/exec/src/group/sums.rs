//! Sums by group.

use super::ints::{IntScratch, Ints};
use super::rows::Grouped;
use crate::aggregate::{Argument, Form, Sum, overflow};
use crate::dispatch::each_narrow;
use crate::vector::Progression;
use crate::{Error, Result};
use sinter_codec::{GROUPS_FEW, Values, add_by_group, bounds_of};
use std::ops::Range;

/// Running sums. Integers are summed in 64 bits as long as no sum can have passed them, and then in 128.
#[derive(Debug, Default)]
pub(super) struct Sums {
    narrow: Vec<i64>,
    /// In their place, once 64 bits are too few.
    wide: Option<Vec<i128>>,
    /// No sum in 64 bits is further from zero.
    reach: u128,
    floats: Vec<f64>,
    scratch: IntScratch,
}

impl Sums {
    /// For values of this kind.
    fn resize(&mut self, groups: usize, is_float: bool) {
        match &mut self.wide {
            _ if is_float => self.floats.resize(groups, 0.0),
            Some(wide) => wide.resize(groups, 0),
            None => self.narrow.resize(groups, 0),
        }
    }

    /// Bytes that they take.
    pub(super) fn bytes(&self) -> usize {
        let wide = self.wide.as_ref().map_or(0, Vec::capacity);
        8 * (self.narrow.capacity() + self.floats.capacity()) + 16 * wide
    }

    /// Adds a vector whose rows are of `groups`, of `group_count` in all.
    pub(super) fn add(&mut self, argument: Argument<'_>, groups: &[u32], group_count: usize) -> Result<()> {
        let floats = match argument.form {
            Form::Flat(values) | Form::Constant(values) => Some(values),
            Form::Codes(_, dictionary) => Some(dictionary.values.as_values()),
            _ => None,
        };
        match floats {
            Some(Values::F32(_) | Values::F64(_)) => {
                self.resize(group_count, true);
                self.add_floats(argument, groups)
            }
            _ => {
                self.resize(group_count, false);
                self.add_ints(argument, groups)
            }
        }
    }

    /// Adds a vector of integers without NULLs, none of them wider than 64 bits, to the sums of few groups. False, and nothing
    /// happens, for any other.
    pub(super) fn add_few(&mut self, argument: Argument<'_>, rows: Grouped<'_>) -> bool {
        let Some(few) = rows.few.filter(|_| argument.validity.is_none()) else { return false };
        // Every value is `base`, and its number times `step`.
        let (base, step, numbers) = match argument.form {
            Form::BaseDelta(base, deltas) => (base, 1, deltas.as_values()),
            Form::Flat(values) => (0, 1, values),
            Form::Codes(codes, dictionary) => match dictionary.progression() {
                Some(Progression { first, step }) => (first.into(), step, codes.as_values()),
                None => return false,
            },
            _ => return false,
        };
        let bounds = match numbers {
            Values::F32(_) | Values::F64(_) | Values::I128(_) | Values::U64(_) | Values::Bytes(_) => None,
            integers => bounds_of(integers),
        };
        let Some((least, greatest)) = bounds else { return false };
        let value = |number: i128| base.checked_add(number.checked_mul(step.into())?);
        let (Some(first), Some(last)) = (value(least), value(greatest)) else { return false };
        self.resize(rows.group_count, false);
        let reach = first.unsigned_abs().max(last.unsigned_abs());
        if !reach.checked_mul(argument.rows as u128).is_some_and(|more| self.reserve(more)) {
            return false;
        }
        let mut numbers_sums = [0; GROUPS_FEW];
        if !add_by_group(numbers, few.groups, &mut numbers_sums[..rows.group_count]) {
            return false;
        }
        // Sums of the numbers alone may be further away and wrap, but what comes out is right.
        for ((sum, of_numbers), &count) in self.narrow.iter_mut().zip(numbers_sums).zip(few.counts) {
            let bases = (base as i64).wrapping_mul(count as i64);
            *sum = sum.wrapping_add(bases).wrapping_add(of_numbers.wrapping_mul(step));
        }
        true
    }

    fn add_floats(&mut self, argument: Argument<'_>, groups: &[u32]) -> Result<()> {
        let sums = &mut self.floats[..];
        macro_rules! add {
            ($row:ident => $value:expr) => {
                match argument.validity {
                    None => (0..argument.rows).for_each(|$row| sums[groups[$row] as usize] += f64::from($value)),
                    Some(validity) => validity.ones().for_each(|$row| sums[groups[$row] as usize] += f64::from($value)),
                }
            };
        }
        match argument.form {
            Form::Flat(Values::F32(values)) => add!(row => values[row]),
            Form::Flat(Values::F64(values)) => add!(row => values[row]),
            Form::Constant(Values::F32(one)) => add!(_row => one[0]),
            Form::Constant(Values::F64(one)) => add!(_row => one[0]),
            Form::Codes(codes, dictionary) => match dictionary.values.as_values() {
                Values::F32(entries) => each_narrow!(codes, codes => add!(row => entries[codes[row] as usize])),
                Values::F64(entries) => each_narrow!(codes, codes => add!(row => entries[codes[row] as usize])),
                _ => return Err(not_a_number()),
            },
            _ => return Err(not_a_number()),
        }
        Ok(())
    }

    fn add_ints(&mut self, argument: Argument<'_>, groups: &[u32]) -> Result<()> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let done = match scratch.ints(argument) {
            Some(Ints::Narrow { values, reach }) => self.add_narrow(values, reach, argument, groups),
            Some(Ints::Wide(values)) => self.add_wide(|row| values[row], argument, groups),
            None => Err(not_a_number()),
        };
        self.scratch = scratch;
        done
    }

    fn add_narrow(&mut self, values: &[i64], reach: u64, argument: Argument<'_>, groups: &[u32]) -> Result<()> {
        if !self.reserve(u128::from(reach) * argument.rows as u128) {
            return self.add_wide(|row| values[row].into(), argument, groups);
        }
        let sums = &mut self.narrow[..];
        match argument.validity {
            None if sums.len() <= FEW => add_by_turns(sums, values, groups),
            None => {
                for (&value, &group) in values.iter().zip(groups) {
                    sums[group as usize] += value;
                }
            }
            Some(validity) => validity.ones().for_each(|row| sums[groups[row] as usize] += values[row]),
        }
        Ok(())
    }

    /// Whether sums stay within 64 bits if they get so much further from zero.
    fn reserve(&mut self, more: u128) -> bool {
        const REACH_MAX: u128 = i64::MAX as u128;
        if self.wide.is_some() {
            return false;
        }
        self.reach += more;
        if self.reach > REACH_MAX {
            // As far as they may have come; now as far as they have.
            let furthest = self.narrow.iter().map(|sum| sum.unsigned_abs()).max().unwrap_or(0);
            self.reach = u128::from(furthest) + more;
        }
        self.reach <= REACH_MAX
    }

    fn add_wide(&mut self, value: impl Fn(usize) -> i128, argument: Argument<'_>, groups: &[u32]) -> Result<()> {
        let sums = self.widened();
        let mut fits = true;
        argument.for_each_present(|row| {
            let sum = &mut sums[groups[row] as usize];
            let (next, overflows) = sum.overflowing_add(value(row));
            *sum = next;
            fits &= !overflows;
        });
        if fits { Ok(()) } else { Err(overflow()) }
    }

    /// In 128 bits from now on.
    fn widened(&mut self) -> &mut [i128] {
        let narrow = &mut self.narrow;
        self.wide.get_or_insert_with(|| std::mem::take(narrow).into_iter().map(i128::from).collect())
    }

    /// Adds what another worker found, of each pair of a group of its and the one of ours that it is.
    pub(super) fn merge(
        &mut self,
        other: &Sums,
        pairs: impl Iterator<Item = (usize, usize)>,
        group_count: usize,
    ) -> Result<()> {
        if !other.floats.is_empty() {
            self.resize(group_count, true);
            pairs.for_each(|(theirs, ours)| self.floats[ours] += other.floats.get(theirs).copied().unwrap_or(0.0));
            return Ok(());
        }
        self.resize(group_count, false);
        if other.wide.is_none() && self.reserve(other.reach) {
            pairs.for_each(|(theirs, ours)| self.narrow[ours] += other.narrow.get(theirs).copied().unwrap_or(0));
            return Ok(());
        }
        let (sums, mut fits) = (self.widened(), true);
        for (theirs, ours) in pairs {
            let (next, overflows) = sums[ours].overflowing_add(other.exact(theirs));
            sums[ours] = next;
            fits &= !overflows;
        }
        if fits { Ok(()) } else { Err(overflow()) }
    }

    /// A group's sum of integers.
    fn exact(&self, group: usize) -> i128 {
        match &self.wide {
            Some(wide) => wide.get(group).copied().unwrap_or(0),
            None => self.narrow.get(group).copied().unwrap_or(0).into(),
        }
    }

    /// The sums of these groups, where they are integers and 64 bits are enough.
    pub(super) fn in_64_bits(&self, groups: Range<usize>) -> Option<&[i64]> {
        self.narrow.get(groups).filter(|_| self.wide.is_none() && self.floats.is_empty())
    }

    /// The sum of a group, over so many values.
    pub(super) fn get(&self, group: usize, count: u64) -> Sum {
        Sum { exact: self.exact(group), float: self.floats.get(group).copied().unwrap_or(0.0), count }
    }
}

/// So few groups that the next row often is of the same one: its addition would wait for the last one.
const FEW: usize = 16;

/// Adds rows by turns to four sums of each group.
fn add_by_turns(sums: &mut [i64], values: &[i64], groups: &[u32]) {
    let mut lanes = [[0i64; FEW]; 4];
    let (values, values_rest) = values.as_chunks::<4>();
    let (groups, groups_rest) = groups.as_chunks::<4>();
    for (values, groups) in values.iter().zip(groups) {
        for lane in 0..4 {
            lanes[lane][groups[lane] as usize % FEW] += values[lane];
        }
    }
    for (&value, &group) in values_rest.iter().zip(groups_rest) {
        lanes[0][group as usize % FEW] += value;
    }
    for (group, sum) in sums.iter_mut().enumerate() {
        *sum += lanes.iter().map(|lane| lane[group]).sum::<i64>();
    }
}

fn not_a_number() -> Error {
    Error::Unsupported("a sum of something other than numbers".into())
}
