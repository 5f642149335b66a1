//! From the keys of a row to the rows that have the same.

use super::refined::{Refined, RefinedScratch};
use crate::aggregate::{Argument, Form};
use crate::dispatch::each_type;
use crate::error::check_cancelled;
use crate::group::{ABSENT, Finder, GroupIndex, IndexPlan, IntScratch, Ints};
use crate::store::{NONE, RowStore};
use crate::{Error, LogicalType, Result};
use sinter_codec::{Bitmap, Values, map_rows};
use std::ops::Range;
use std::sync::atomic::AtomicBool;

/// An index over the keys of a store's rows. Keys have numbers, and a number has rows.
#[derive(Debug)]
pub(super) struct JoinIndex {
    numbering: Numbering,
    rows: Rows,
    /// A key with a NULL is nobody's.
    nulls_are_left_out: bool,
}

/// How keys are numbered.
#[derive(Debug)]
enum Numbering {
    /// One integer key, by its rank among those that occur.
    Ranks(Ranks),
    /// Several, by the rank of one.
    Refined(Refined),
    Groups(Box<GroupIndex>),
    /// Without keys, all rows have the same.
    Same,
}

/// The rows with each number.
#[derive(Debug)]
enum Rows {
    /// The row with the same number.
    Same,
    /// One at most, or [`NONE`], which also stands at the end.
    One(Vec<u32>),
    /// Those from one offset to the next. Some numbers may have none.
    Several { offsets: Vec<u32>, rows: Vec<u32>, has_empty: bool },
}

/// What one worker needs to look keys up.
#[derive(Debug, Default)]
pub(super) struct Lookup {
    finder: Finder,
    ints: IntScratch,
    refined: RefinedScratch,
}

/// Positions that a bitmap may have for each row, and in any case.
const POSITIONS_PER_ROW: usize = 128;
const POSITIONS_MIN: usize = 1 << 23;

/// Rows that are numbered at a time.
const STRETCH: usize = 1024;

impl JoinIndex {
    /// Over the first columns of a store, which are keys of these types. Rows with a NULL among their keys are left out
    /// unless `nulls_are_equal`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for nested keys; [`Error::TooManyKeys`], [`Error::Cancelled`].
    pub(super) fn new(
        store: &RowStore,
        types: &[LogicalType],
        nulls_are_equal: bool,
        cancelled: &AtomicBool,
    ) -> Result<JoinIndex> {
        let mut numbers = Vec::with_capacity(store.rows());
        let (numbering, count) = match Ranks::new(store, types, nulls_are_equal) {
            Some(ranks) => {
                each_integer(store.values(0), |key| numbers.push(ranks.find(key)));
                let count = ranks.count();
                (Numbering::Ranks(ranks), count)
            }
            None if types.is_empty() => {
                numbers.resize(store.rows(), 0);
                (Numbering::Same, 1)
            }
            None => match Refined::new(store, types, nulls_are_equal) {
                Some((refined, of_rows, count)) => {
                    numbers = of_rows;
                    (Numbering::Refined(refined), count)
                }
                None => Numbering::by_groups(store, types, &mut numbers, cancelled)?,
            },
        };
        // Ranks have no place for NULL, and are taken only where there is none: then it is nobody's.
        let has_ranks = matches!(numbering, Numbering::Ranks(_) | Numbering::Refined(_));
        let nulls_are_left_out = !nulls_are_equal || has_ranks;
        if nulls_are_left_out {
            for validity in (0..types.len()).filter_map(|key| store.validity(key)) {
                numbers
                    .iter_mut()
                    .enumerate()
                    .filter(|(row, _)| !validity.get(*row))
                    .for_each(|(_, number)| *number = NONE);
            }
        }
        Ok(JoinIndex { numbering, rows: Rows::new(&numbers, count), nulls_are_left_out })
    }

    /// Over keys of which only one thing is asked: whether they are there.
    pub(super) fn of_keys(ranks: Ranks) -> JoinIndex {
        JoinIndex { numbering: Numbering::Ranks(ranks), rows: Rows::Same, nulls_are_left_out: true }
    }

    /// Whether no key has more than one row; then its number is that of the row.
    pub(super) fn is_unique(&self) -> bool {
        matches!(self.rows, Rows::Same | Rows::One(_))
    }

    /// Which integers occur as one of the keys, where that is known; NULLs apart.
    pub(super) fn ranks(&self, key: usize) -> Option<&Ranks> {
        match &self.numbering {
            Numbering::Ranks(ranks) => Some(ranks),
            Numbering::Refined(refined) => refined.ranks(key),
            Numbering::Groups(_) | Numbering::Same => None,
        }
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let numbering = match &self.numbering {
            Numbering::Ranks(ranks) => ranks.bytes(),
            Numbering::Refined(refined) => refined.bytes(),
            Numbering::Groups(index) => index.bytes(),
            Numbering::Same => 0,
        };
        numbering
            + match &self.rows {
                Rows::Same => 0,
                Rows::One(rows) => 4 * rows.len(),
                Rows::Several { offsets, rows, .. } => 4 * (offsets.len() + rows.len()),
            }
    }

    /// The rows with a number. Of an index with several rows to a key.
    pub(super) fn rows(&self, number: u32) -> &[u32] {
        match &self.rows {
            Rows::Same | Rows::One(_) => &[],
            Rows::Several { offsets, rows, .. } => {
                &rows[offsets[number as usize] as usize..offsets[number as usize + 1] as usize]
            }
        }
    }

    /// Writes over `out` the number of each row's keys; [`NONE`] where nobody has them.
    pub(super) fn find(
        &self,
        keys: &[Argument<'_>],
        count: usize,
        lookup: &mut Lookup,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        match &self.numbering {
            Numbering::Ranks(ranks) => {
                let Some(ints) = lookup.ints.ints(keys[0]) else {
                    return Err(Error::Unsupported("keys that are no integers among integers".into()));
                };
                ranks.find_all(ints, out);
            }
            Numbering::Refined(refined) => refined.find(keys, &mut lookup.refined, out)?,
            Numbering::Groups(index) => index.find(keys, count, &mut lookup.finder, out)?,
            Numbering::Same => {
                out.clear();
                out.resize(count, 0);
            }
        }
        const { assert!(ABSENT == NONE) };
        if self.nulls_are_left_out {
            keys.iter().for_each(|key| write_at_nulls(*key, NONE, out));
        }
        match &self.rows {
            Rows::Same => {}
            Rows::One(rows) => {
                let end = rows.len() - 1;
                out.iter_mut().for_each(|number| *number = rows[(*number as usize).min(end)]);
            }
            Rows::Several { has_empty: false, .. } => {}
            Rows::Several { offsets, .. } => out.iter_mut().for_each(|number| {
                let next = (*number as usize).wrapping_add(1);
                let is_empty = offsets.get(next).is_none_or(|end| offsets[*number as usize] == *end);
                *number = if is_empty { NONE } else { *number };
            }),
        }
        Ok(())
    }
}

impl JoinIndex {
    /// For rows that come to nothing without a partner: writes over `kept` which rows have one, and, where somebody asks
    /// whom, over `out` the numbers of their keys alone. False, and nothing happens, where that is not to be had at once.
    pub(super) fn find_partners(
        &self,
        keys: &[Argument<'_>],
        lookup: &mut Lookup,
        kept: &mut Vec<u16>,
        out: Option<&mut Vec<u32>>,
    ) -> bool {
        let (Numbering::Ranks(ranks), [key]) = (&self.numbering, keys) else { return false };
        if matches!(self.rows, Rows::Several { has_empty: true, .. }) || matches!(key.form, Form::Null) {
            return false;
        }
        let Some(Ints::Narrow { values, .. }) = lookup.ints.ints(*key) else { return false };
        ranks.find_present(values, kept);
        if let Some(validity) = key.validity {
            kept.retain(|&row| validity.get(row.into()));
        }
        let Some(out) = out else { return true };
        out.clear();
        out.extend(kept.iter().map(|&row| ranks.find(values[usize::from(row)])));
        if let Rows::One(rows) = &self.rows {
            out.iter_mut().for_each(|number| *number = rows[*number as usize]);
        }
        true
    }
}

/// Writes `number` over those of the rows where a key is NULL.
pub(super) fn write_at_nulls(key: Argument<'_>, number: u32, numbers: &mut [u32]) {
    match (key.form, key.validity) {
        (Form::Null, _) => numbers.fill(number),
        (_, Some(validity)) => {
            numbers.iter_mut().enumerate().filter(|(row, _)| !validity.get(*row)).for_each(|(_, at)| *at = number);
        }
        _ => {}
    }
}

impl Numbering {
    fn by_groups(
        store: &RowStore,
        types: &[LogicalType],
        numbers: &mut Vec<u32>,
        cancelled: &AtomicBool,
    ) -> Result<(Numbering, usize)> {
        let key_bounds = |key| bounds(store.values(key), store.validity(key));
        let bounds: Vec<_> = (0..types.len()).map(key_bounds).collect();
        let plan = IndexPlan::new(types.to_vec(), &bounds, store.rows().saturating_mul(2));
        let plan = plan.ok_or_else(|| Error::Unsupported("joins by nested values".into()))?;
        let mut index = GroupIndex::new(&plan);
        let (mut stretch, mut bits) = (Vec::new(), vec![Bitmap::default(); types.len()]);
        for start in (0..store.rows()).step_by(STRETCH) {
            check_cancelled(cancelled)?;
            let range = start..store.rows().min(start + STRETCH);
            for (key, bits) in bits.iter_mut().enumerate() {
                if let Some(validity) = store.validity(key) {
                    validity.slice_into(range.clone(), bits);
                }
            }
            let keys: Vec<_> = bits.iter().enumerate().map(|(key, bits)| argument(store, key, &range, bits)).collect();
            index.number(&keys, range.len(), &mut stretch)?;
            numbers.extend_from_slice(&stretch);
        }
        let count = index.len();
        Ok((Numbering::Groups(Box::new(index)), count))
    }
}

fn argument<'a>(store: &'a RowStore, key: usize, range: &Range<usize>, bits: &'a Bitmap) -> Argument<'a> {
    let form = Form::Flat(store.values(key).slice(range.clone()));
    Argument { form, validity: store.validity(key).map(|_| bits), rows: range.len() }
}

/// Between which integers all values are; `None` where there are none, or no integers.
pub(super) fn bounds(values: Values<'_>, validity: Option<&Bitmap>) -> Option<(i128, i128)> {
    if matches!(values, Values::F32(_) | Values::F64(_)) {
        return None;
    }
    macro_rules! of {
        ($values:expr) => {{
            let mut all = $values.iter().enumerate().filter(|(row, _)| validity.is_none_or(|bits| bits.get(*row)));
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
    /// `None` where keys are several, or no integers of 64 bits, or too far apart.
    fn new(store: &RowStore, types: &[LogicalType], nulls_are_equal: bool) -> Option<Ranks> {
        let [_] = types else { return None };
        if nulls_are_equal && store.validity(0).is_some() {
            return None;
        }
        Ranks::of(store, 0, bounds(store.values(0), store.validity(0))?)
    }

    /// Those of a column of integers that lie between these; `None` where so many rows are too few for that.
    pub(super) fn of(store: &RowStore, column: usize, bounds: (i128, i128)) -> Option<Ranks> {
        let (values, validity) = (store.values(column), store.validity(column));
        let mut ranks = Ranks::between(bounds, store.rows())?;
        let mut row = 0;
        each_integer(values, |value| {
            // What stands at a NULL is any.
            if validity.is_none_or(|validity| validity.get(row)) {
                ranks.set(value);
            }
            row += 1;
        });
        ranks.count_bits();
        Some(ranks)
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

    /// Notes that an integer occurs, if it is between those two.
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

    /// Notes all that another worker noted, with the same bounds.
    pub(super) fn add(&mut self, other: &Ranks) {
        self.stretches.iter_mut().zip(&other.stretches).for_each(|(stretch, other)| stretch[BITS] |= other[BITS]);
    }

    /// To be called once all integers are noted.
    pub(super) fn count_bits(&mut self) {
        let mut count = 0;
        for stretch in &mut self.stretches {
            stretch[BEFORE] = count;
            count += u64::from(stretch[BITS].count_ones());
        }
        self.count = count as usize;
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
    fn find_present(&self, values: &[i64], kept: &mut Vec<u16>) {
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

impl Rows {
    /// Rows that have these of `count` numbers; none for [`NONE`].
    fn new(numbers: &[u32], count: usize) -> Rows {
        let mut one = vec![NONE; count];
        let mut is_unique = true;
        for (row, &number) in numbers.iter().enumerate() {
            if let Some(place) = one.get_mut(number as usize) {
                is_unique &= *place == NONE;
                *place = row as u32;
            }
        }
        if is_unique {
            let is_same = one.iter().enumerate().all(|(number, &row)| number == row as usize);
            one.push(NONE);
            return if is_same { Rows::Same } else { Rows::One(one) };
        }
        let has_empty = one.contains(&NONE);
        drop(one);
        // First how many, then where the next one goes, which in the end is where the next number's rows begin.
        let mut offsets = vec![0u32; count + 1];
        for &number in numbers {
            if let Some(offset) = offsets.get_mut(number as usize) {
                *offset += 1;
            }
        }
        let mut end = 0;
        for offset in &mut offsets {
            end += std::mem::replace(offset, end);
        }
        let mut rows = vec![0; end as usize];
        for (row, &number) in numbers.iter().enumerate().filter(|(_, number)| **number != NONE) {
            let offset = &mut offsets[number as usize];
            rows[*offset as usize] = row as u32;
            *offset += 1;
        }
        offsets.rotate_right(1);
        offsets[0] = 0;
        Rows::Several { offsets, rows, has_empty }
    }
}
