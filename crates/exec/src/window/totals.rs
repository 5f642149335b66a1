//! Functions that add up a frame: counts, sums and averages.

use super::Frame;
use super::borders::{Partition, each_frame};
use crate::aggregate::{Sum, overflow};
use crate::store::RowStore;
use crate::{Error, Result};
use sinter_codec::Values;

/// What a frame's values add up to, while rows come in at its end and leave at its beginning.
#[derive(Debug, Default)]
struct Running {
    sum: Sum,
    /// Floats do not become what they were when one is taken away, so the sums of what is left are kept: of those that came
    /// before the last turn, from each on, and of those that came since, all together.
    front: Vec<f64>,
    back: Vec<f64>,
    back_sum: f64,
    /// Rows leave.
    slides: bool,
}

impl Running {
    fn add_float(&mut self, value: f64) {
        self.back_sum += value;
        if self.slides {
            self.back.push(value);
        }
    }

    fn remove_float(&mut self) {
        if self.front.is_empty() {
            let mut sum = 0.0;
            while let Some(value) = self.back.pop() {
                sum += value;
                self.front.push(sum);
            }
            self.back_sum = 0.0;
        }
        self.front.pop();
    }
}

/// Calls `push` with the sum of each row's frame, over a column or over rows.
///
/// # Errors
/// Those of `push`, and [`Error::Overflow`] for sums beyond 128 bits.
pub(super) fn totals(
    partition: Partition<'_>,
    frame: Frame,
    argument: Option<(&RowStore, usize)>,
    wants_sum: bool,
    mut push: impl FnMut(&Sum) -> Result<()>,
) -> Result<()> {
    let (mut from, mut to) = (partition.first, partition.first);
    let mut running = Running { slides: frame.start != super::Bound::Unbounded, ..Running::default() };
    let validity = argument.and_then(|(store, column)| store.validity(column));
    let values = argument.filter(|_| wants_sum).map(|(store, column)| store.values(column));
    let is_there = |row: usize| validity.is_none_or(|validity| validity.get(row));
    let mut done = Ok(());
    each_frame(partition, frame, |_, rows| {
        // Old rows leave before new ones enter: all of them together may be too much for a sum.
        while from < rows.start.min(to) && done.is_ok() {
            if is_there(from) {
                running.sum.count -= 1;
                done = values.map_or(Ok(()), |values| running.leave(values, from));
            }
            from += 1;
        }
        if to < rows.start {
            // Rows between two frames never enter.
            (from, to) = (rows.start, rows.start);
        }
        while to < rows.end && done.is_ok() {
            if is_there(to) {
                running.sum.count += 1;
                done = values.map_or(Ok(()), |values| running.enter(values, to));
            }
            to += 1;
        }
        if done.is_ok() {
            running.sum.float = running.front.last().copied().unwrap_or(0.0) + running.back_sum;
            done = push(&running.sum);
        }
    });
    done
}

impl Running {
    fn enter(&mut self, values: Values<'_>, row: usize) -> Result<()> {
        match values {
            Values::F32(values) => self.add_float(values[row].into()),
            Values::F64(values) => self.add_float(values[row]),
            values => self.sum.exact = self.sum.exact.checked_add(integer(values, row)?).ok_or_else(overflow)?,
        }
        Ok(())
    }

    fn leave(&mut self, values: Values<'_>, row: usize) -> Result<()> {
        match values {
            Values::F32(_) | Values::F64(_) => self.remove_float(),
            values => self.sum.exact = self.sum.exact.checked_sub(integer(values, row)?).ok_or_else(overflow)?,
        }
        Ok(())
    }
}

#[inline(always)]
fn integer(values: Values<'_>, row: usize) -> Result<i128> {
    Ok(match values {
        Values::I8(values) => values[row].into(),
        Values::I16(values) => values[row].into(),
        Values::I32(values) => values[row].into(),
        Values::I64(values) => values[row].into(),
        Values::I128(values) => values[row],
        Values::U8(values) => values[row].into(),
        Values::U16(values) => values[row].into(),
        Values::U32(values) => values[row].into(),
        Values::U64(values) => values[row].into(),
        Values::F32(_) | Values::F64(_) | Values::Bytes(_) => {
            return Err(Error::Unsupported("a sum of something other than numbers".into()));
        }
    })
}
