//! What is kept of each group: its rows, and the running results of its aggregates.

use super::distinct::Distinct;
use super::extremes::Extremes;
use super::foreign::ForeignState;
use super::index::IndexPlan;
use super::merge::Merging;
use super::moments::Moments;
use super::plan::GroupPlan;
use super::rows::Grouped;
use super::sums::Sums;
use crate::aggregate::{Argument, ForeignPart, Form, Part, average, averages, sum, takes_sums_as_they_are, variance};
use crate::expr::Frame;
use crate::vector::push_scalar;
use crate::{AggregateFunction, Error, Result, Vector};
use sinter_codec::{Bitmap, Encoded, Physical, Scalar, ValuesBuf};
use std::ops::Range;
use std::sync::atomic::AtomicBool;

/// Counts by group.
#[derive(Debug, Default)]
pub(super) struct Counts {
    counts: Vec<u64>,
}

impl Counts {
    /// The count of a group.
    pub(super) fn get(&self, group: usize) -> u64 {
        self.counts.get(group).copied().unwrap_or(0)
    }

    pub(super) fn bytes(&self) -> usize {
        8 * self.counts.capacity()
    }

    /// Counts one for the group of each row that is alive.
    pub(super) fn add(&mut self, rows: Grouped<'_>) {
        self.counts.resize(rows.group_count, 0);
        match (rows.few, rows.alive) {
            (Some(few), _) => self.counts.iter_mut().zip(few.counts).for_each(|(count, more)| *count += more),
            (None, Some(alive)) => alive.ones().for_each(|row| self.counts[rows.numbers[row] as usize] += 1),
            (None, None) => rows.numbers.iter().for_each(|&group| self.counts[group as usize] += 1),
        }
    }

    /// Counts one for the group of each row that is alive and has its bit.
    fn add_where(&mut self, bits: impl Fn(usize) -> bool, rows: Grouped<'_>) {
        self.counts.resize(rows.group_count, 0);
        let is_alive = |row: usize| rows.alive.is_none_or(|alive| alive.get(row));
        for (row, &group) in rows.numbers.iter().enumerate() {
            self.counts[group as usize] += u64::from(bits(row) && is_alive(row));
        }
    }

    /// Adds what another worker counted, of each pair of a group of its and the one of ours that it is.
    pub(super) fn merge(&mut self, other: &Counts, pairs: impl Iterator<Item = (usize, usize)>, group_count: usize) {
        if !other.counts.is_empty() {
            self.counts.resize(group_count, 0);
            pairs.for_each(|(theirs, ours)| self.counts[ours] += other.get(theirs));
        }
    }
}

/// One aggregate of all groups.
#[derive(Debug)]
pub(super) struct State {
    kind: Kind,
    /// Rows of which the argument was NULL. Whoever counts values counts rows, and these.
    nulls: Counts,
    /// Which rows of a vector count, in memory that is used again.
    counted: Bitmap,
}

#[derive(Debug)]
enum Kind {
    /// Rows, or rows with a value.
    Count,
    /// Rows for which a condition is true.
    CountTrue(Counts),
    Sum(Sums),
    Extreme(Extremes),
    Moments(Box<Moments>),
    Distinct(Box<Distinct>),
    Foreign(ForeignState),
}

impl State {
    /// Different values are numbered by `pairs`.
    ///
    /// # Errors
    /// Those of foreign aggregates.
    pub(super) fn new(part: &Part, pairs: Option<&IndexPlan>, has_keys: bool) -> Result<State> {
        let kind = match (&part.foreign, pairs) {
            (Some(foreign), _) => Kind::Foreign(ForeignState::new(foreign, has_keys)?),
            (None, Some(pairs)) => Kind::Distinct(Box::new(Distinct::new(pairs, has_keys))),
            (None, None) => return State::plain(part),
        };
        Ok(State { kind, nulls: Counts::default(), counted: Bitmap::default() })
    }

    /// What becomes of values that count, whichever do.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for foreign aggregates.
    pub(super) fn plain(part: &Part) -> Result<State> {
        let kind = match part.function.plain() {
            _ if part.counts_true => Kind::CountTrue(Counts::default()),
            AggregateFunction::CountStar | AggregateFunction::Count => Kind::Count,
            AggregateFunction::Sum | AggregateFunction::Average => Kind::Sum(Sums::default()),
            AggregateFunction::Min => Kind::Extreme(Extremes::new(true)),
            AggregateFunction::Max => Kind::Extreme(Extremes::new(false)),
            AggregateFunction::Variance { .. } | AggregateFunction::Deviation { .. } => Kind::Moments(Box::default()),
            AggregateFunction::Distinct(_) | AggregateFunction::Foreign(_) => {
                return Err(Error::Unsupported(format!("{:?} as a plain aggregate", part.function)));
            }
        };
        Ok(State { kind, nulls: Counts::default(), counted: Bitmap::default() })
    }

    /// True when one state has the results of both, if their arguments are the same.
    pub(super) fn is_shared(one: &Part, other: &Part) -> bool {
        let kind = |part: &Part| match part.function.plain() {
            AggregateFunction::Average => Some(AggregateFunction::Sum),
            AggregateFunction::Variance { .. } | AggregateFunction::Deviation { .. } => {
                Some(AggregateFunction::Variance { of_sample: true })
            }
            _ => None,
        };
        let kind = |part: &Part| kind(part).unwrap_or_else(|| part.function.plain().clone());
        let is_distinct = |part: &Part| matches!(part.function, AggregateFunction::Distinct(_));
        one.counts_true == other.counts_true && is_distinct(one) == is_distinct(other) && kind(one) == kind(other)
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let own = match &self.kind {
            Kind::Count => 0,
            Kind::CountTrue(counts) => counts.bytes(),
            Kind::Sum(sums) => sums.bytes(),
            Kind::Extreme(extremes) => extremes.bytes(),
            Kind::Moments(moments) => moments.bytes(),
            Kind::Distinct(distinct) => distinct.bytes(),
            Kind::Foreign(state) => state.bytes(),
        };
        own + self.nulls.bytes()
    }

    /// Whether rows that are dead may be among those that it takes.
    pub(super) fn takes_dead_rows(&self) -> bool {
        !matches!(self.kind, Kind::Distinct(_) | Kind::Foreign(_))
    }

    /// Whether it matters what values are, and not only whether they are NULL.
    pub(super) fn reads_values(&self) -> bool {
        !matches!(self.kind, Kind::Count)
    }

    /// Takes a vector by what the plan's program made of it.
    pub(super) fn take(&mut self, plan: &GroupPlan, part: &Part, frame: Frame<'_>, rows: Grouped<'_>) -> Result<()> {
        match &mut self.kind {
            Kind::Foreign(state) => state.add(foreign(part)?, frame, rows.numbers, rows.group_count),
            _ => self.add(plan.operand(part).map(|operand| Argument::new(frame, operand)), rows),
        }
    }

    /// Takes a vector.
    pub(super) fn add(&mut self, argument: Option<Argument<'_>>, rows: Grouped<'_>) -> Result<()> {
        let Some(argument) = argument else { return Ok(()) };
        if let Kind::Distinct(distinct) = &mut self.kind {
            return distinct.add(argument, rows.numbers);
        }
        if let Kind::CountTrue(counts) = &mut self.kind {
            let Form::Truth(bits) = argument.form else {
                return Err(Error::Unsupported("a condition of values".into()));
            };
            counts.add_where(|row| bits.get(row), rows);
            return Ok(());
        }
        match (argument.form, argument.validity) {
            (Form::Null, _) => self.nulls.add_where(|_| true, rows),
            (Form::Nested(array), _) => self.nulls.add_where(|row| array.is_null(row), rows),
            (_, Some(validity)) if !validity.all() => self.nulls.add_where(|row| !validity.get(row), rows),
            _ => {}
        }
        match &mut self.kind {
            _ if matches!(argument.form, Form::Null) => return Ok(()),
            Kind::Count | Kind::CountTrue(_) | Kind::Distinct(_) | Kind::Foreign(_) => return Ok(()),
            Kind::Sum(sums) => {
                if sums.add_few(argument, rows) {
                    return Ok(());
                }
            }
            Kind::Extreme(_) | Kind::Moments(_) => {}
        }
        // A dead row is left out as one that is NULL.
        let validity = match (rows.alive, argument.validity) {
            (Some(alive), Some(validity)) => {
                self.counted.clone_from(alive);
                self.counted.and(validity);
                Some(&self.counted)
            }
            (alive, validity) => alive.or(validity),
        };
        let argument = Argument { validity, ..argument };
        match &mut self.kind {
            Kind::Sum(sums) => sums.add(argument, rows.numbers, rows.group_count),
            Kind::Extreme(extremes) => extremes.add(argument, rows.numbers, rows.group_count),
            Kind::Moments(moments) => moments.add(argument, rows.numbers, rows.group_count),
            Kind::Count | Kind::CountTrue(_) | Kind::Distinct(_) | Kind::Foreign(_) => Ok(()),
        }
    }

    /// Adds what another worker found for the same aggregate; its groups are `map`ped to ours.
    pub(super) fn merge(&mut self, other: State, map: &[u32], group_count: usize, merging: Merging<'_>) -> Result<()> {
        if self.merges_by_group() {
            return self.merge_groups(&other, map.iter().map(|&ours| ours as usize).enumerate(), group_count);
        }
        match (&mut self.kind, other.kind) {
            (Kind::Distinct(distinct), Kind::Distinct(other)) => distinct.merge(*other, map, merging),
            (Kind::Foreign(state), Kind::Foreign(other)) => state.merge(other, map, group_count),
            _ => Err(different()),
        }
    }

    /// Whether some groups of another worker may be merged without the others.
    pub(super) fn merges_by_group(&self) -> bool {
        !matches!(self.kind, Kind::Distinct(_) | Kind::Foreign(_))
    }

    /// Adds what another worker found for the same aggregate, of each pair of a group of its and the one of ours that it is.
    /// Only where it [may be](State::merges_by_group) done so.
    pub(super) fn merge_groups(
        &mut self,
        other: &State,
        pairs: impl Iterator<Item = (usize, usize)> + Clone,
        group_count: usize,
    ) -> Result<()> {
        self.nulls.merge(&other.nulls, pairs.clone(), group_count);
        match (&mut self.kind, &other.kind) {
            (Kind::Count, Kind::Count) => Ok(()),
            (Kind::CountTrue(counts), Kind::CountTrue(other)) => {
                counts.merge(other, pairs, group_count);
                Ok(())
            }
            (Kind::Sum(sums), Kind::Sum(other)) => sums.merge(other, pairs, group_count),
            (Kind::Extreme(extremes), Kind::Extreme(other)) => extremes.merge(other, pairs, group_count),
            (Kind::Moments(moments), Kind::Moments(other)) => {
                moments.merge(other, pairs, group_count);
                Ok(())
            }
            _ => Err(different()),
        }
    }

    /// Makes what can only be made once no more rows come.
    pub(super) fn finish(&mut self, part: &Part, group_count: usize, cancelled: &AtomicBool) -> Result<()> {
        match &mut self.kind {
            Kind::Foreign(state) => state.finish(foreign(part)?, group_count),
            Kind::Distinct(distinct) => distinct.finish(part, group_count, cancelled),
            _ => Ok(()),
        }
    }

    /// Writes over `out` the results of these groups, which have so many rows.
    ///
    /// # Errors
    /// [`Error::Overflow`] where a result does not fit its type.
    pub(super) fn results(&self, part: &Part, rows: &Counts, groups: Range<usize>, out: &mut Vector) -> Result<()> {
        match &self.kind {
            Kind::Foreign(state) => return state.results(groups, &part.ty, out),
            Kind::Distinct(distinct) => return distinct.results(part, groups, out),
            _ => {}
        }
        if let Some(values) = self.plain_results(part, rows, groups.clone()) {
            out.values = Encoded::Flat(values);
            (out.validity, out.dictionary, out.nested) = (None, None, None);
            return Ok(());
        }
        let mut values = ValuesBuf::new(part.ty.physical().unwrap_or(Physical::I64));
        let mut validity = Bitmap::new(groups.len(), true);
        for (row, group) in groups.enumerate() {
            let present = rows.get(group) - self.nulls.get(group);
            let result = match &self.kind {
                Kind::Count => Scalar::Int(present.into()),
                Kind::CountTrue(counts) => Scalar::Int(counts.get(group).into()),
                _ if present == 0 => Scalar::Null,
                Kind::Sum(sums) if *part.function.plain() == AggregateFunction::Sum => {
                    sum(&sums.get(group, present), &part.argument_type, &part.ty)?
                }
                Kind::Sum(sums) => average(&sums.get(group, present), &part.argument_type, &part.ty)?,
                Kind::Extreme(extremes) => extremes.get(group),
                Kind::Moments(moments) => variance(moments.get(group), &part.function, &part.argument_type),
                Kind::Distinct(_) | Kind::Foreign(_) => Scalar::Null,
            };
            if result.is_null() {
                validity.set(row, false);
                values.push_default(1);
            } else if !push_scalar(&mut values, &result) {
                return Err(Error::Overflow { what: "an aggregate's result".into(), type_name: part.ty.to_string() });
            }
        }
        out.values = Encoded::Flat(values);
        out.validity = (!validity.all()).then_some(validity);
        (out.dictionary, out.nested) = (None, None);
        Ok(())
    }
}

impl State {
    /// The results of these groups where they come straight from counts and sums in 64 bits of integers, each of some values.
    fn plain_results(&self, part: &Part, rows: &Counts, groups: Range<usize>) -> Option<ValuesBuf> {
        let counted = rows.counts.get(groups.clone())?;
        if !self.nulls.counts.is_empty() {
            return None;
        }
        match (&self.kind, part.ty.physical()?) {
            (Kind::Count, Physical::I64) => Some(ValuesBuf::I64(counted.iter().map(|&count| count as i64).collect())),
            (Kind::Sum(sums), physical)
                if *part.function.plain() == AggregateFunction::Sum
                    && takes_sums_as_they_are(&part.ty, &part.argument_type) =>
            {
                let sums = sums.in_64_bits(groups).filter(|_| !counted.contains(&0))?;
                match physical {
                    Physical::I64 => Some(ValuesBuf::I64(sums.to_vec())),
                    Physical::I128 => Some(ValuesBuf::I128(sums.iter().map(|&sum| sum.into()).collect())),
                    _ => None,
                }
            }
            (Kind::Sum(sums), _) if *part.function.plain() == AggregateFunction::Average => {
                averages(sums.in_64_bits(groups)?, counted, &part.argument_type, &part.ty)
            }
            _ => None,
        }
    }
}

#[cold]
fn different() -> Error {
    Error::Unsupported("states of different aggregates as one".into())
}

fn foreign(part: &Part) -> Result<&ForeignPart> {
    part.foreign.as_ref().ok_or_else(|| Error::Unsupported("an aggregate of ours as a foreign one".into()))
}
