//! One aggregate's running result.

use super::average;
use super::average::variance;
use super::extreme::Extreme;
use super::form::{Argument, Form};
use super::plan::Part;
use super::sum::Sum;
use crate::group::Moments;
use crate::{AggregateFunction, Result};
use sinter_codec::{Scalar, VECTOR_LEN};

/// The group of each row of a vector.
static ONE_GROUP: [u32; VECTOR_LEN] = [0; VECTOR_LEN];

/// What is kept per aggregate.
#[derive(Clone, Debug)]
pub(super) enum Accumulator {
    /// Rows, or rows with a value.
    Count(u64),
    /// Rows for which a condition is true.
    CountTrue(u64),
    Sum(Sum),
    Extreme(Extreme),
    /// Of one group.
    Moments(Box<Moments>),
}

impl Accumulator {
    pub(super) fn new(part: &Part) -> Accumulator {
        match part.function {
            _ if part.counts_true => Accumulator::CountTrue(0),
            AggregateFunction::CountStar | AggregateFunction::Count => Accumulator::Count(0),
            AggregateFunction::Sum | AggregateFunction::Average => Accumulator::Sum(Sum::default()),
            AggregateFunction::Min => Accumulator::Extreme(Extreme::new(true)),
            AggregateFunction::Max => Accumulator::Extreme(Extreme::new(false)),
            AggregateFunction::Variance { .. } | AggregateFunction::Deviation { .. } => {
                Accumulator::Moments(Box::default())
            }
            AggregateFunction::Distinct(_) | AggregateFunction::Foreign(_) => {
                unreachable!("a plan of one row has none of these")
            }
        }
    }

    /// Takes a vector.
    pub(super) fn add(&mut self, argument: Option<Argument<'_>>, rows: usize) -> Result<()> {
        match (self, argument) {
            (Accumulator::Count(count), None) => *count += rows as u64,
            (Accumulator::Count(count), Some(argument)) => *count += argument.present() as u64,
            (Accumulator::CountTrue(count), Some(Argument { form: Form::Truth(bits), .. })) => {
                *count += bits.count_ones() as u64;
            }
            (Accumulator::CountTrue(_), _) => debug_assert!(false, "conditions are compiled to bits"),
            (Accumulator::Sum(sum), Some(argument)) => sum.add(argument)?,
            (Accumulator::Extreme(extreme), Some(argument)) => extreme.add(argument),
            (Accumulator::Moments(moments), Some(argument)) => moments.add(argument, &ONE_GROUP[..rows], 1)?,
            (Accumulator::Sum(_) | Accumulator::Extreme(_) | Accumulator::Moments(_), None) => {}
        }
        Ok(())
    }

    /// Adds what another worker found for the same aggregate.
    pub(super) fn merge(&mut self, other: Accumulator) -> Result<()> {
        match (self, other) {
            (Accumulator::Count(count), Accumulator::Count(other))
            | (Accumulator::CountTrue(count), Accumulator::CountTrue(other)) => *count += other,
            (Accumulator::Sum(sum), Accumulator::Sum(other)) => sum.merge(&other)?,
            (Accumulator::Extreme(extreme), Accumulator::Extreme(other)) => extreme.merge(other),
            (Accumulator::Moments(moments), Accumulator::Moments(other)) => {
                moments.merge(&other, std::iter::once((0, 0)), 1)
            }
            _ => debug_assert!(false, "accumulators of one aggregate are alike"),
        }
        Ok(())
    }

    /// The result.
    pub(super) fn finish(self, part: &Part) -> Result<Scalar> {
        match self {
            Accumulator::Count(count) | Accumulator::CountTrue(count) => Ok(Scalar::Int(count.into())),
            Accumulator::Sum(sum) if part.function == AggregateFunction::Sum => {
                average::sum(&sum, &part.argument_type, &part.ty)
            }
            Accumulator::Sum(sum) => average::average(&sum, &part.argument_type, &part.ty),
            Accumulator::Extreme(extreme) => Ok(extreme.finish()),
            Accumulator::Moments(moments) => Ok(variance(moments.get(0), &part.function, &part.argument_type)),
        }
    }
}
