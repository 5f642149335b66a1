//! Values with how often each occurs: what histograms, distinct counts and percentiles are made from.

use super::span::Rows;
use super::walk::walk;
use crate::condition::{float_of_order, float_order};
use crate::fixed::{Fixed, Integer, for_integers};
use crate::kernels::{bounds, greatest};
use crate::scheme::Reader;
use crate::scratch::Scratch;
use crate::values::DECODED_BYTES_MAX;
use crate::{BytesBuf, Error, Physical, Result, Scalar, Values, ValuesBuf};

/// Different values in order, and how often each occurs.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// Ascending, none twice. Of floats that are equal, 0.0 and one NaN.
    pub values: ValuesBuf,
    /// For each value how many rows have it, at least one.
    pub counts: Vec<u64>,
}

/// Values in any order, some more than once, each with a number of times it occurs.
#[derive(Debug)]
pub(crate) struct Tally {
    values: ValuesBuf,
    /// `None` while each occurs once.
    counts: Option<Vec<u64>>,
}

impl Tally {
    /// Of values of this type.
    pub(super) fn new(physical: Physical) -> Tally {
        Tally { values: ValuesBuf::new(physical), counts: None }
    }

    /// Adds values that occur once each.
    pub(crate) fn extend(&mut self, values: Values<'_>) -> Result<()> {
        if let (ValuesBuf::Bytes(buf), Values::Bytes(view)) = (&self.values, values)
            && buf.data.len() + view.data_bytes() > DECODED_BYTES_MAX
        {
            let what =
                format!("{} bytes of strings at once pass the limit of 1 GiB", buf.data.len() + view.data_bytes());
            return Err(Error::damaged("values", what));
        }
        self.values.extend(values);
        if let Some(counts) = &mut self.counts {
            counts.resize(self.values.len(), 1);
        }
        Ok(())
    }

    /// Adds a value, alone in `value`, that occurs `count` times.
    pub(crate) fn add(&mut self, value: Values<'_>, count: u64) -> Result<()> {
        let before = self.values.len();
        self.extend(value)?;
        self.counts.get_or_insert_with(|| vec![1; before]).resize(before, 1);
        if let Some(counts) = &mut self.counts {
            counts.push(count);
        }
        Ok(())
    }

    /// The values in order.
    pub(super) fn into_histogram(self) -> Histogram {
        fn integers<T: Integer>(values: Vec<T>, counts: Option<Vec<u64>>) -> Histogram {
            let (sorted, counts) = counted_integers(values, counts);
            let mut values = ValuesBuf::new(T::PHYSICAL);
            *T::vec_mut(&mut values) = sorted;
            Histogram { values, counts }
        }
        let counts = self.counts;
        match self.values {
            ValuesBuf::F32(values) => {
                let (orders, counts) = counted(orders(&values), counts);
                let values = orders.into_iter().map(|order| float_of_order(order) as f32).collect();
                Histogram { values: ValuesBuf::F32(values), counts }
            }
            ValuesBuf::F64(values) => {
                let (orders, counts) = counted(orders(&values), counts);
                let values = orders.into_iter().map(float_of_order).collect();
                Histogram { values: ValuesBuf::F64(values), counts }
            }
            ValuesBuf::Bytes(buf) => {
                let (sorted, counts) = counted(buf.view().iter().collect(), counts);
                Histogram { values: ValuesBuf::Bytes(sorted.into_iter().collect::<BytesBuf>()), counts }
            }
            values => {
                for_integers!(ValuesBuf, values, values => integers(values, counts), _ => unreachable!("all others are above"))
            }
        }
    }

    /// How many different values there are.
    pub(super) fn into_distinct(self) -> usize {
        let counts = self.counts;
        match self.values {
            ValuesBuf::F32(values) => counted(orders(&values), counts).0.len(),
            ValuesBuf::F64(values) => counted(orders(&values), counts).0.len(),
            ValuesBuf::Bytes(buf) => counted(buf.view().iter().collect(), counts).0.len(),
            values => {
                for_integers!(ValuesBuf, values, values => counted_integers(values, counts).0.len(), _ => unreachable!("all others are above"))
            }
        }
    }

    /// The values that come at these places in order, the first at 0; `ranks` ascend and are less than there are values.
    pub(super) fn into_ranked(self, ranks: &[usize]) -> Vec<Scalar> {
        let counts = self.counts;
        let float = |order: i64| Scalar::Float(float_of_order(order));
        match self.values {
            ValuesBuf::F32(values) => ranked(orders(&values), counts, ranks).into_iter().map(float).collect(),
            ValuesBuf::F64(values) => ranked(orders(&values), counts, ranks).into_iter().map(float).collect(),
            ValuesBuf::Bytes(buf) => ranked(buf.view().iter().collect(), counts, ranks)
                .into_iter()
                .map(|value| Scalar::Bytes(value.to_vec()))
                .collect(),
            values => for_integers!(ValuesBuf, values, values => {
                ranked(values, counts, ranks).into_iter().map(|value| Scalar::Int(value.wide())).collect()
            }, _ => unreachable!("all others are above")),
        }
    }
}

fn orders<T: Fixed + Into<f64>>(values: &[T]) -> Vec<i64> {
    values.iter().map(|&value| float_order(value.into())).collect()
}

/// Different values in order, and how often each occurs.
fn counted<T: Ord + Copy>(mut values: Vec<T>, counts: Option<Vec<u64>>) -> (Vec<T>, Vec<u64>) {
    let counts = match counts {
        None => {
            values.sort_unstable();
            vec![1; values.len()]
        }
        Some(counts) => {
            let mut pairs: Vec<(T, u64)> = values.into_iter().zip(counts).collect();
            pairs.sort_unstable_by_key(|(value, _)| *value);
            values = pairs.iter().map(|(value, _)| *value).collect();
            pairs.into_iter().map(|(_, count)| count).collect()
        }
    };
    let mut merged: Vec<u64> = Vec::new();
    let mut last = None;
    for (value, count) in values.iter().zip(counts) {
        match merged.last_mut() {
            Some(slot) if last == Some(value) => *slot += count,
            _ => merged.push(count),
        }
        last = Some(value);
    }
    values.dedup();
    (values, merged)
}

/// Between integers so near to each other there is a counter for each.
const COUNTERS_MAX: u128 = 1 << 16;

/// [`counted`], without sorting where all values are near to each other.
fn counted_integers<T: Integer>(values: Vec<T>, counts: Option<Vec<u64>>) -> (Vec<T>, Vec<u64>) {
    if counts.is_some() || values.is_empty() {
        return counted(values, counts);
    }
    let (least, most) = bounds(&values);
    let reach = most.sub(least).bits();
    if reach >= COUNTERS_MAX || reach > 4 * values.len() as u128 {
        return counted(values, counts);
    }
    let mut counters = vec![0u64; reach as usize + 1];
    values.iter().for_each(|value| counters[value.sub(least).to_delta() as usize] += 1);
    let found = counters.iter().enumerate().filter(|(_, count)| **count > 0);
    found.map(|(distance, count)| (least.add(T::from_delta(distance as u64)), *count)).unzip()
}

/// The values at these places in order; `ranks` ascend.
fn ranked<T: Ord + Copy>(mut values: Vec<T>, counts: Option<Vec<u64>>, ranks: &[usize]) -> Vec<T> {
    if counts.is_none() {
        let (mut rest, mut start) = (&mut values[..], 0);
        let mut found = Vec::with_capacity(ranks.len());
        for &rank in ranks {
            let part = std::mem::take(&mut rest);
            found.push(*part.select_nth_unstable(rank - start).1);
            rest = &mut part[rank - start..];
            start = rank;
        }
        return found;
    }
    let (values, counts) = counted(values, counts);
    let mut found = Vec::with_capacity(ranks.len());
    let mut below = 0;
    let mut pairs = values.iter().zip(counts);
    let mut current = pairs.next();
    for &rank in ranks {
        while let Some((_, count)) = current
            && below + count <= rank as u64
        {
            below += count;
            current = pairs.next();
        }
        found.extend(current.map(|(value, _)| *value));
    }
    found
}

/// [`Reader::tally`] of a scheme that has none.
pub(crate) fn tally_decoded<R: Reader + ?Sized>(
    reader: &R,
    rows: &Rows<'_>,
    physical: Physical,
    tally: &mut Tally,
    scratch: &mut Scratch,
) -> Result<()> {
    walk(reader, rows, physical, scratch, &mut |values| tally.extend(values))
}

/// Dictionaries up to this size are counted in [`COUNTED_APART`] tables in turn: a counter need not wait for the row before.
const COUNTED_APART_MAX: usize = 256;
const COUNTED_APART: usize = 4;

/// [`Reader::count_codes`] of a scheme that has none.
pub(crate) fn count_codes_decoded<R: Reader + ?Sized>(
    reader: &R,
    rows: &Rows<'_>,
    counts: &mut [u64],
    scratch: &mut Scratch,
) -> Result<()> {
    let mut apart = [[0u32; COUNTED_APART_MAX]; COUNTED_APART];
    let values_before = scratch.decoded_values;
    walk(reader, rows, Physical::U32, scratch, &mut |codes| {
        let Values::U32(codes) = codes else { unreachable!("codes were asked for") };
        let code = greatest(codes);
        if code as usize >= counts.len() && !codes.is_empty() {
            return Err(missing_code(code, counts.len()));
        }
        if counts.len() > COUNTED_APART_MAX {
            codes.iter().for_each(|code| counts[*code as usize] += 1);
            return Ok(());
        }
        let (groups, rest) = codes.as_chunks::<COUNTED_APART>();
        for group in groups {
            for (counts, code) in apart.iter_mut().zip(group) {
                counts[*code as usize & (COUNTED_APART_MAX - 1)] += 1;
            }
        }
        rest.iter().for_each(|code| apart[0][*code as usize] += 1);
        Ok(())
    })?;
    // What was unpacked are codes: no value was looked up.
    scratch.decoded_values = values_before;
    for counted in apart {
        counts.iter_mut().zip(counted).for_each(|(count, counted)| *count += u64::from(counted));
    }
    Ok(())
}

/// Counts a code that occurs `count` times.
pub(crate) fn add_code(code: u32, count: u64, counts: &mut [u64]) -> Result<()> {
    let code_count = counts.len();
    *counts.get_mut(code as usize).ok_or_else(|| missing_code(code, code_count))? += count;
    Ok(())
}

fn missing_code(code: u32, count: usize) -> Error {
    Error::damaged("dict", format!("code {code} of {count} values"))
}
