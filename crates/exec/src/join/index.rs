//! From the keys of a row to the rows that have the same.

use super::NONE;
use super::store::RowStore;
use crate::aggregate::{Argument, Form};
use crate::dispatch::each_type;
use crate::group::{ABSENT, Finder, GroupIndex, IndexPlan, IntScratch, Ints};
use crate::{Error, LogicalType, Result};
use sinter_codec::{Bitmap, Values};
use std::ops::Range;

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
    /// One integer key, by its distance from the least.
    Distance {
        min: i64,
        span: usize,
    },
    Groups(Box<GroupIndex>),
}

/// The rows with each number.
#[derive(Debug)]
enum Rows {
    /// One at most, or [`NONE`].
    One(Vec<u32>),
    /// Those from one offset to the next.
    Several { offsets: Vec<u32>, rows: Vec<u32> },
}

/// What one worker needs to look keys up.
#[derive(Debug, Default)]
pub(super) struct Lookup {
    finder: Finder,
    ints: IntScratch,
}

/// Positions that an array by distance may have for each row, and without being asked.
const POSITIONS_PER_ROW: usize = 16;
const POSITIONS_MIN: usize = 1 << 16;

/// Rows that are numbered at a time.
const STRETCH: usize = 1024;

impl JoinIndex {
    /// Over the first columns of a store, which are keys of these types. Rows with a NULL among their keys are left out
    /// unless `nulls_are_equal`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for nested keys; [`Error::TooManyKeys`].
    pub(super) fn new(store: &RowStore, types: &[LogicalType], nulls_are_equal: bool) -> Result<JoinIndex> {
        let mut numbers = Vec::with_capacity(store.rows());
        let (numbering, count) = match Numbering::by_distance(store, types, nulls_are_equal) {
            Some((numbering, span)) => {
                distances(store, &numbering, &mut numbers);
                (numbering, span)
            }
            None => Numbering::by_groups(store, types, &mut numbers)?,
        };
        // Distances have no place for NULL, and are taken only where there is none.
        let nulls_are_left_out = !nulls_are_equal || matches!(numbering, Numbering::Distance { .. });
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

    /// Whether no key has more than one row; then its number is that of the row.
    pub(super) fn is_unique(&self) -> bool {
        matches!(self.rows, Rows::One(_))
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let numbering = match &self.numbering {
            Numbering::Distance { .. } => 0,
            Numbering::Groups(index) => index.bytes(),
        };
        numbering
            + match &self.rows {
                Rows::One(rows) => 4 * rows.len(),
                Rows::Several { offsets, rows } => 4 * (offsets.len() + rows.len()),
            }
    }

    /// The rows with a number. Of an index with several rows to a key.
    pub(super) fn rows(&self, number: u32) -> &[u32] {
        match &self.rows {
            Rows::One(_) => &[],
            Rows::Several { offsets, rows } => {
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
            Numbering::Distance { min, span } => {
                let Some(ints) = lookup.ints.ints(keys[0]) else {
                    return Err(Error::Unsupported("keys that are no integers among integers".into()));
                };
                out.clear();
                match ints {
                    Ints::Narrow { values, .. } => out.extend(values.iter().map(|&value| {
                        let distance = value.wrapping_sub(*min) as u64;
                        if distance < *span as u64 { distance as u32 } else { NONE }
                    })),
                    Ints::Wide(values) => out.extend(values.iter().map(|&value| {
                        let distance = value.wrapping_sub(i128::from(*min)) as u128;
                        if distance < *span as u128 { distance as u32 } else { NONE }
                    })),
                }
            }
            Numbering::Groups(index) => index.find(keys, count, &mut lookup.finder, out)?,
        }
        const { assert!(ABSENT == NONE) };
        if self.nulls_are_left_out {
            keys.iter().for_each(|key| leave_nulls_out(*key, out));
        }
        match &self.rows {
            Rows::One(rows) => {
                out.iter_mut().for_each(|number| *number = rows.get(*number as usize).copied().unwrap_or(NONE));
            }
            Rows::Several { offsets, .. } => out.iter_mut().for_each(|number| {
                let next = (*number as usize).wrapping_add(1);
                let is_empty = offsets.get(next).is_none_or(|end| offsets[*number as usize] == *end);
                *number = if is_empty { NONE } else { *number };
            }),
        }
        Ok(())
    }
}

/// Writes [`NONE`] over the numbers of the rows where a key is NULL.
fn leave_nulls_out(key: Argument<'_>, numbers: &mut [u32]) {
    match (key.form, key.validity) {
        (Form::Null, _) => numbers.fill(NONE),
        (_, Some(validity)) => {
            numbers
                .iter_mut()
                .enumerate()
                .filter(|(row, _)| !validity.get(*row))
                .for_each(|(_, number)| *number = NONE);
        }
        _ => {}
    }
}

impl Numbering {
    /// `None` where keys are several, or no integers, or too far apart.
    fn by_distance(store: &RowStore, types: &[LogicalType], nulls_are_equal: bool) -> Option<(Numbering, usize)> {
        let [_] = types else { return None };
        if nulls_are_equal && store.validity(0).is_some() {
            return None;
        }
        let (min, max) = bounds(store.values(0), store.validity(0))?;
        let (min, max) = (i64::try_from(min).ok()?, i64::try_from(max).ok()?);
        let span = usize::try_from(i128::from(max) - i128::from(min) + 1).ok()?;
        let fits = span <= store.rows().saturating_mul(POSITIONS_PER_ROW).max(POSITIONS_MIN) && span < NONE as usize;
        fits.then_some((Numbering::Distance { min, span }, span))
    }

    fn by_groups(store: &RowStore, types: &[LogicalType], numbers: &mut Vec<u32>) -> Result<(Numbering, usize)> {
        let key_bounds = |key| bounds(store.values(key), store.validity(key));
        let bounds: Vec<_> = (0..types.len()).map(key_bounds).collect();
        let plan = IndexPlan::new(types.to_vec(), &bounds);
        let plan = plan.ok_or_else(|| Error::Unsupported("joins by nested values".into()))?;
        let mut index = GroupIndex::new(&plan);
        let (mut stretch, mut bits) = (Vec::new(), vec![Bitmap::default(); types.len()]);
        for start in (0..store.rows()).step_by(STRETCH) {
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
fn bounds(values: Values<'_>, validity: Option<&Bitmap>) -> Option<(i128, i128)> {
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

/// Writes over `numbers` the distance of each key.
fn distances(store: &RowStore, numbering: &Numbering, numbers: &mut Vec<u32>) {
    let Numbering::Distance { min, span } = numbering else { return };
    // What is outside stands at a NULL, or is one.
    let within = |distance: u64| if distance < *span as u64 { distance as u32 } else { NONE };
    macro_rules! of {
        ($values:expr) => {
            numbers.extend($values.iter().map(|&value| within((i128::from(value) - i128::from(*min)) as u64)))
        };
    }
    match store.values(0) {
        Values::I8(values) => of!(values),
        Values::I16(values) => of!(values),
        Values::I32(values) => of!(values),
        Values::I64(values) => numbers.extend(values.iter().map(|&value| within(value.wrapping_sub(*min) as u64))),
        Values::I128(values) => of!(values),
        Values::U8(values) => of!(values),
        Values::U16(values) => of!(values),
        Values::U32(values) => of!(values),
        Values::U64(values) => of!(values),
        // Bounds were found, so there are none of these.
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
            return Rows::One(one);
        }
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
        Rows::Several { offsets, rows }
    }
}
