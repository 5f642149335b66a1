//! From the keys of a row to the rows that have the same.

use super::by_number::{counted, placed};
use super::ranks::Ranks;
use super::refined::{Refined, RefinedScratch};
use crate::aggregate::{Argument, Form};
use crate::error::check_cancelled;
use crate::group::{ABSENT, Finder, GroupIndex, IndexPlan, IntScratch, Ints};
use crate::parallel::{on_shares, readers_for};
use crate::store::{NONE, RowStore};
use crate::{Error, LogicalType, Result};
use sinter_codec::{Bitmap, VECTOR_LEN};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

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

/// Rows that are numbered at a time.
const STRETCH: usize = 1024;

impl JoinIndex {
    /// Over the first columns of a store, which are keys of these types and, where integers, within these bounds; on so many
    /// threads. Rows with a NULL among their keys are left out unless `nulls_are_equal`.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for nested keys; [`Error::TooManyKeys`], [`Error::Cancelled`].
    pub(super) fn new(
        store: &RowStore,
        types: &[LogicalType],
        bounds: &[Option<(i128, i128)>],
        nulls_are_equal: bool,
        threads: usize,
        cancelled: &AtomicBool,
    ) -> Result<JoinIndex> {
        let ranks = match *bounds {
            [Some(bounds)] if !nulls_are_equal || store.validity(0).is_none() => Ranks::of(store, 0, bounds, threads),
            _ => None,
        };
        let (numbering, mut numbers, count) = match ranks {
            Some(ranks) => {
                let validities: Vec<&Bitmap> = store.validity(0).into_iter().collect();
                let (numbers, count) = (ranks.numbers(store.values(0), &validities, threads), ranks.count());
                (Numbering::Ranks(ranks), numbers, count)
            }
            None if types.is_empty() => (Numbering::Same, vec![0; store.rows()], 1),
            None => match Refined::new(store, types, bounds, nulls_are_equal, threads, cancelled)? {
                Some((refined, numbers, count)) => (Numbering::Refined(refined), numbers, count),
                None => Numbering::by_groups(store, types, bounds, cancelled)?,
            },
        };
        check_cancelled(cancelled)?;
        // Ranks have no place for NULL, and are taken only where there is none: then it is nobody's.
        let has_ranks = matches!(numbering, Numbering::Ranks(_) | Numbering::Refined(_));
        let nulls_are_left_out = !nulls_are_equal || has_ranks;
        if nulls_are_left_out && !has_ranks {
            for validity in (0..types.len()).filter_map(|key| store.validity(key)) {
                numbers
                    .iter_mut()
                    .enumerate()
                    .filter(|(row, _)| !validity.get(*row))
                    .for_each(|(_, number)| *number = NONE);
            }
        }
        let rows = Rows::new(&numbers, count, threads, cancelled)?;
        Ok(JoinIndex { numbering, rows, nulls_are_left_out })
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
        bounds: &[Option<(i128, i128)>],
        cancelled: &AtomicBool,
    ) -> Result<(Numbering, Vec<u32>, usize)> {
        let plan = IndexPlan::new(types.to_vec(), bounds, store.rows().saturating_mul(2));
        let plan = plan.ok_or_else(|| Error::Unsupported("joins by nested values".into()))?;
        let mut index = GroupIndex::new(&plan);
        let (mut numbers, mut stretch) = (Vec::with_capacity(store.rows()), Vec::new());
        let mut bits = vec![Bitmap::default(); types.len()];
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
        Ok((Numbering::Groups(Box::new(index)), numbers, count))
    }
}

fn argument<'a>(store: &'a RowStore, key: usize, range: &Range<usize>, bits: &'a Bitmap) -> Argument<'a> {
    let form = Form::Flat(store.values(key).slice(range.clone()));
    Argument { form, validity: store.validity(key).map(|_| bits), rows: range.len() }
}

impl Rows {
    /// Rows that have these of `count` numbers; none for [`NONE`].
    fn new(numbers: &[u32], count: usize, threads: usize, cancelled: &AtomicBool) -> Result<Rows> {
        let mut one = vec![NONE; count];
        // Set by whoever meets a number again.
        let is_several = AtomicBool::new(false);
        on_shares(&mut one, readers_for(threads), |first, one| {
            for (stretch, numbers) in numbers.chunks(VECTOR_LEN).enumerate() {
                if is_several.load(Ordering::Relaxed) {
                    return;
                }
                let mut is_unique = true;
                for (row, &number) in numbers.iter().enumerate() {
                    if let Some(place) = one.get_mut(number.wrapping_sub(first as u32) as usize) {
                        is_unique &= *place == NONE;
                        *place = (stretch * VECTOR_LEN + row) as u32;
                    }
                }
                if !is_unique {
                    is_several.store(true, Ordering::Relaxed);
                }
            }
        });
        check_cancelled(cancelled)?;
        if !is_several.into_inner() {
            let is_same = one.iter().enumerate().all(|(number, &row)| number == row as usize);
            one.push(NONE);
            return Ok(if is_same { Rows::Same } else { Rows::One(one) });
        }
        drop(one);
        let counts = counted(numbers, count, threads);
        let has_empty = counts[..count].contains(&0);
        check_cancelled(cancelled)?;
        let (offsets, rows) = placed(counts, numbers, threads, |row| row as u32);
        Ok(Rows::Several { offsets, rows, has_empty })
    }
}
