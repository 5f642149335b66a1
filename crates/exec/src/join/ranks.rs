//! Integers as keys: a bit for each that occurs, and its rank among them as its number.
//!
//! Several threads make it without a lock: each reads all keys, and writes the stretches that are its own.

use crate::dispatch::each_type;
use crate::group::Ints;
use crate::parallel::{on_each, on_shares, readers_for, share, threads_for_quick};
use crate::store::{NONE, RowStore};
use sinter_codec::{Bitmap, Values, map_rows};

/// Positions that a bitmap may have for each row, and in any case. 256 of them take 64 bytes, a few times what a table of
/// hashes takes; but whoever looks in it finds the next key near the last one, where keys come in order.
const POSITIONS_PER_ROW: usize = 256;
const POSITIONS_MIN: usize = 1 << 23;

/// Between which integers all values are; `None` where there are none, or no integers.
pub(super) fn bounds(values: Values<'_>, validity: Option<&Bitmap>, threads: usize) -> Option<(i128, i128)> {
    if matches!(values, Values::F32(_) | Values::F64(_) | Values::Bytes(_)) {
        return None;
    }
    let own = share(values.len(), threads);
    let of_part = |first: usize| bounds_of(values.slice(first..values.len().min(first + own)), first, validity);
    let of_parts = on_each((0..values.len()).step_by(own).collect(), of_part);
    of_parts.into_iter().flatten().reduce(|(min, max), (low, high)| (min.min(low), max.max(high)))
}

/// The same of values from a row on.
fn bounds_of(values: Values<'_>, from: usize, validity: Option<&Bitmap>) -> Option<(i128, i128)> {
    macro_rules! of {
        ($values:expr) => {{
            let is_present = |row: usize| validity.is_none_or(|bits| bits.get(from + row));
            let mut all = $values.iter().enumerate().filter(|(row, _)| is_present(*row));
            let (_, &first) = all.next()?;
            let (min, max) = match validity {
                None => $values.iter().fold((first, first), |(min, max), &value| (value.min(min), value.max(max))),
                Some(_) => all.fold((first, first), |(min, max), (_, &value)| (value.min(min), value.max(max))),
            };
            Some((min as i128, max as i128))
        }};
    }
    each_type!(Values, values, values => of!(values), _bytes => None)
}

/// Which integers occur, and how many lesser ones.
#[derive(Debug)]
pub(super) struct Ranks {
    min: i64,
    /// For the integers from `min` on; at the end stands one where none occurs.
    stretches: Vec<RankedBits>,
    /// How many occur.
    count: usize,
}

/// Which of 64 integers occur, and how many before them: side by side, as both are asked for at once. An array, as memory
/// that is zero is there for the asking then.
type RankedBits = [u64; 2];
const BITS: usize = 0;
const BEFORE: usize = 1;

impl Ranks {
    /// Those of a column of integers that lie between these; `None` where so many rows are too few for that.
    pub(super) fn of(store: &RowStore, column: usize, bounds: (i128, i128), threads: usize) -> Option<Ranks> {
        let (values, validity) = (store.values(column), store.validity(column));
        let mut ranks = Ranks::between(bounds, store.rows())?;
        let min = ranks.min;
        ranks.note(readers_for(threads), |first, stretches| {
            let (from, mut row) = (min.wrapping_add(64 * first as i64), 0);
            each_integer(values, |value| {
                let position = value.wrapping_sub(from) as u64;
                // What stands at a NULL is any.
                if let Some(stretch) = stretches.get_mut((position / 64) as usize)
                    && validity.is_none_or(|validity| validity.get(row))
                {
                    stretch[BITS] |= 1 << (position % 64);
                }
                row += 1;
            });
        });
        Some(ranks)
    }

    /// What several workers [set](Ranks::set) between the same two; `None` of none.
    pub(super) fn merged(workers: Vec<Ranks>, threads: usize) -> Option<Ranks> {
        let stretches = workers.iter().map(|ranks| ranks.stretches.len()).sum();
        Ranks::merged_by(workers, threads_for_quick(stretches, threads))
    }

    /// The same by just so many threads.
    fn merged_by(mut workers: Vec<Ranks>, threads: usize) -> Option<Ranks> {
        let mut ranks = workers.pop()?;
        ranks.note(threads, |first, stretches| {
            for other in &workers {
                let others = &other.stretches[first..];
                stretches.iter_mut().zip(others).for_each(|(stretch, other)| stretch[BITS] |= other[BITS]);
            }
        });
        Some(ranks)
    }

    /// Has `note` write on so many threads which integers occur, and counts them. It is shown some stretches, and the number
    /// of the first of them; those of other threads are no business of its own.
    fn note(&mut self, threads: usize, note: impl Fn(usize, &mut [RankedBits]) + Sync) {
        let end = self.stretches.len() - 1;
        let stretches = &mut self.stretches[..end];
        let counts = on_shares(stretches, threads, |first, stretches| {
            note(first, stretches);
            let mut count = 0;
            for stretch in stretches {
                stretch[BEFORE] = count;
                count += u64::from(stretch[BITS].count_ones());
            }
            count
        });
        let (mut firsts, mut before) = (Vec::with_capacity(counts.len()), 0);
        for count in &counts {
            firsts.push(before);
            before += count;
        }
        self.count = before as usize;
        if counts.len() > 1 {
            on_each(stretches.chunks_mut(share(end, threads)).zip(firsts).collect(), |(stretches, first)| {
                stretches.iter_mut().for_each(|stretch| stretch[BEFORE] += first);
            });
        }
    }

    /// The rank of the integer of each row; [`NONE`] where it does not occur, and where a bit is not set.
    pub(super) fn numbers(&self, values: Values<'_>, validities: &[&Bitmap], threads: usize) -> Vec<u32> {
        let mut numbers = vec![0; values.len()];
        on_shares(&mut numbers, threads, |first, numbers| {
            let rows = first..first + numbers.len();
            let mut places = numbers.iter_mut();
            each_integer(values.slice(rows.clone()), |value| {
                if let Some(number) = places.next() {
                    *number = self.find(value);
                }
            });
            for validity in validities {
                let absent = numbers.iter_mut().zip(rows.clone()).filter(|(_, row)| !validity.get(*row));
                absent.for_each(|(number, _)| *number = NONE);
            }
        });
        numbers
    }

    /// Room for the integers between two, none of which occurs yet; `None` where so many rows are too few for that.
    pub(super) fn between((min, max): (i128, i128), rows: usize) -> Option<Ranks> {
        let (min, max) = (i64::try_from(min).ok()?, i64::try_from(max).ok()?);
        let span = usize::try_from(i128::from(max) - i128::from(min) + 1).ok()?;
        let is_small = span <= rows.saturating_mul(POSITIONS_PER_ROW).max(POSITIONS_MIN) && span < NONE as usize;
        is_small.then(|| Ranks { min, stretches: vec![[0; 2]; span.div_ceil(64) + 1], count: 0 })
    }

    /// The least and the greatest that occur; `None` where none does.
    pub(super) fn bounds(&self) -> Option<(i128, i128)> {
        let occurs = |stretch: &RankedBits| stretch[BITS] != 0;
        let end = self.stretches.len() - 1;
        let (first, last) =
            (self.stretches[..end].iter().position(occurs)?, self.stretches[..end].iter().rposition(occurs)?);
        let lowest = 64 * first + self.stretches[first][BITS].trailing_zeros() as usize;
        let highest = 64 * last + self.stretches[last][BITS].ilog2() as usize;
        Some((i128::from(self.min) + lowest as i128, i128::from(self.min) + highest as i128))
    }

    /// Notes that an integer occurs, if it is between those two. [`Ranks::merged`] counts it.
    #[inline]
    pub(super) fn set(&mut self, value: i64) {
        let position = value.wrapping_sub(self.min) as u64;
        let end = self.stretches.len() - 1;
        if let Some(stretch) = self.stretches[..end].get_mut((position / 64) as usize) {
            stretch[BITS] |= 1 << (position % 64);
        }
    }

    pub(super) fn least(&self) -> i64 {
        self.min
    }

    /// For each 64 integers from the least on, which occur; none of the last.
    pub(super) fn words(&self) -> impl Iterator<Item = u64> {
        self.stretches.iter().map(|stretch| stretch[BITS])
    }

    /// All that occur, the least one first.
    pub(super) fn integers(&self) -> impl Iterator<Item = i64> {
        let bits = |word: u64| (0..64).filter(move |bit| word >> bit & 1 == 1);
        self.words().zip(0_i64..).flat_map(move |(word, at)| bits(word).map(move |bit| self.min + 64 * at + bit))
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.stretches[..])
    }

    /// Writes over `out` the rank of each integer.
    pub(super) fn find_all(&self, ints: Ints<'_>, out: &mut Vec<u32>) {
        match ints {
            Ints::Narrow { values, .. } => map_rows(values, out, |value| self.find(value)),
            Ints::Wide(values) => map_rows(values, out, |value| self.find_wide(value)),
        }
    }

    /// Writes over `kept` at which places there are integers that occur.
    pub(super) fn find_present(&self, values: &[i64], kept: &mut Vec<u16>) {
        let end = self.stretches.len() - 1;
        kept.resize(values.len(), 0);
        let mut count = 0;
        for (row, &value) in values.iter().enumerate() {
            let position = value.wrapping_sub(self.min) as u64;
            let bits = self.stretches[((position / 64) as usize).min(end)][BITS];
            // Written whether it occurs or not, and written over by the next one that does.
            kept[count] = row as u16;
            count += (bits >> (position % 64) & 1) as usize;
        }
        kept.truncate(count);
    }

    /// As [`Ranks::find`].
    pub(super) fn find_wide(&self, value: i128) -> u32 {
        i64::try_from(value).map_or(NONE, |value| self.find(value))
    }

    /// The rank of an integer; [`NONE`] where it does not occur.
    #[inline]
    pub(super) fn find(&self, value: i64) -> u32 {
        let position = value.wrapping_sub(self.min) as u64;
        let end = self.stretches.len() - 1;
        let [bits, before] = self.stretches[((position / 64) as usize).min(end)];
        let lower = bits & ((1 << (position % 64)) - 1);
        // Without a branch, which nobody could foresee. What does not occur is no rank, but all ones.
        let occurs = (bits >> (position % 64) & 1) as u32;
        (before as u32 + lower.count_ones()) | occurs.wrapping_sub(1)
    }
}

/// Calls `visit` with each value as 64 bits, those beyond cut.
pub(super) fn each_integer(values: Values<'_>, mut visit: impl FnMut(i64)) {
    match values {
        Values::I8(values) => values.iter().for_each(|&value| visit(value.into())),
        Values::I16(values) => values.iter().for_each(|&value| visit(value.into())),
        Values::I32(values) => values.iter().for_each(|&value| visit(value.into())),
        Values::I64(values) => values.iter().for_each(|&value| visit(value)),
        Values::I128(values) => values.iter().for_each(|&value| visit(value as i64)),
        Values::U8(values) => values.iter().for_each(|&value| visit(value.into())),
        Values::U16(values) => values.iter().for_each(|&value| visit(value.into())),
        Values::U32(values) => values.iter().for_each(|&value| visit(value.into())),
        Values::U64(values) => values.iter().for_each(|&value| visit(value as i64)),
        // They have no bounds, and hence no ranks.
        Values::F32(_) | Values::F64(_) | Values::Bytes(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Unlimited, Vector};
    use sinter_codec::{Encoded, Physical, ValuesBuf};
    use std::sync::Arc;

    /// Some of 5000 integers in no order, every seventh of them NULL, beside which stands what nobody is to see.
    fn some() -> (RowStore, Vec<i64>) {
        let values: Vec<i64> =
            (0..5000).map(|row| if row % 7 == 3 { 1 << 40 } else { row * 37 % 5000 * 3 - 1000 }).collect();
        let validity = Bitmap::from_bools((0..5000).map(|row| row % 7 != 3));
        let present = validity.ones().map(|row| values[row]).collect();
        let mut store = RowStore::new(&[Physical::I64], &(Arc::new(Unlimited) as _));
        for rows in (0..5000).step_by(1000).map(|first| first..first + 1000) {
            let mut part = Bitmap::default();
            validity.slice_into(rows.clone(), &mut part);
            let values = Encoded::Flat(ValuesBuf::I64(values[rows].to_vec()));
            let vector = Vector { values, validity: Some(part), ..Vector::default() };
            store.push(&[vector], 1000).expect("there is memory");
        }
        (store, present)
    }

    #[test]
    fn ranks_are_the_same_whoever_notes_them() {
        let (store, mut present) = some();
        let numbers = |ranks: &Ranks, threads| {
            ranks.numbers(store.values(0), &store.validity(0).into_iter().collect::<Vec<_>>(), threads)
        };
        let wanted: Vec<u32> = {
            let mut sorted = present.clone();
            sorted.sort_unstable();
            let rank = |value: i64| sorted.binary_search(&value).map_or(NONE, |rank| rank as u32);
            (0..5000).map(|row| if row % 7 == 3 { NONE } else { rank(row * 37 % 5000 * 3 - 1000) }).collect()
        };
        for threads in [1, 2, 3, 16] {
            let known = bounds(store.values(0), store.validity(0), threads);
            let (min, max) = (present.iter().min(), present.iter().max());
            assert_eq!(known, min.zip(max).map(|(&min, &max)| (min.into(), max.into())));
            let ranks = Ranks::of(&store, 0, known.expect("there are some"), threads).expect("they are near");
            assert_eq!(ranks.count(), present.len());
            assert!(numbers(&ranks, threads) == wanted, "{threads} threads");
        }
        // Each worker noted some of them.
        let known = bounds(store.values(0), store.validity(0), 1).expect("there are some");
        present.sort_by_key(|value| value % 11);
        let workers = present.chunks(1000).map(|some| {
            let mut ranks = Ranks::between(known, usize::MAX).expect("they are near");
            some.iter().for_each(|&value| ranks.set(value));
            ranks
        });
        let ranks = Ranks::merged_by(workers.collect(), 3).expect("there are workers");
        assert_eq!((ranks.count(), numbers(&ranks, 1) == wanted), (present.len(), true));
    }
}
