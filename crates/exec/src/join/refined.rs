//! Several integer keys: the rank of one of them says where the few rows are that have it, and the others are compared.
//!
//! Where no more than a few rows share one key, such as the suppliers of a part, that takes a bitmap and a line of memory,
//! where a hash of all keys takes a table larger than any cache.

use super::by_number::{counted, placed};
use super::ranks::{Ranks, each_integer};
use crate::aggregate::Argument;
use crate::error::check_cancelled;
use crate::group::{IntScratch, Ints};
use crate::parallel::on_shares;
use crate::store::{NONE, RowStore};
use crate::{Error, LogicalType, Result};
use sinter_codec::{Bitmap, Physical};
use std::sync::atomic::AtomicBool;

/// Rows that share one key: so many on average at most, and so many at worst.
const ENTRIES_PER_RANK: usize = 8;
const ENTRIES_MAX: u32 = 64;

/// An index over several integer keys. Keys have the number of the first entry with them.
#[derive(Debug)]
pub(super) struct Refined {
    /// The key that is ranked.
    lead: usize,
    ranks: Ranks,
    /// Where the entries of each rank begin, and where those of the last end.
    offsets: Vec<u32>,
    /// Of each entry the other keys, side by side.
    words: Vec<u64>,
    others: Vec<Other>,
}

/// A key's place in words.
#[derive(Debug)]
struct Other {
    key: usize,
    min: i64,
    /// From the least to the greatest.
    span: u64,
    shift: u32,
}

/// Memory to look keys up in.
#[derive(Debug, Default)]
pub(super) struct RefinedScratch {
    ints: IntScratch,
    words: Vec<u64>,
}

impl Refined {
    /// Over the first columns of a store, which are keys of these types and within these bounds, with the number of each row's
    /// keys and how many there are at most. Rows with a NULL among their keys have none. `None` where it does not suit.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub(super) fn new(
        store: &RowStore,
        types: &[LogicalType],
        bounds: &[Option<(i128, i128)>],
        nulls_are_equal: bool,
        threads: usize,
        cancelled: &AtomicBool,
    ) -> Result<Option<(Refined, Vec<u32>, usize)>> {
        let suiting = Refined::unfilled(store, types, bounds, nulls_are_equal, threads);
        let Some(mut refined) = suiting else { return Ok(None) };
        let numbers = refined.fill(store, threads, cancelled)?;
        Ok(numbers.map(|numbers| {
            let count = refined.words.len();
            (refined, numbers, count)
        }))
    }

    /// The same without entries.
    fn unfilled(
        store: &RowStore,
        types: &[LogicalType],
        bounds: &[Option<(i128, i128)>],
        nulls_are_equal: bool,
        threads: usize,
    ) -> Option<Refined> {
        let has_nulls = (0..types.len()).any(|key| store.validity(key).is_some());
        let are_integers = types.iter().all(|ty| ty.physical().is_some_and(Physical::is_integer));
        if types.len() < 2 || !are_integers || nulls_are_equal && has_nulls {
            return None;
        }
        let key_bounds: Vec<_> = bounds.iter().copied().collect::<Option<_>>()?;
        let all_ranks =
            (0..types.len()).filter_map(|key| Some((key, Ranks::of(store, key, key_bounds[key], threads)?)));
        let (lead, ranks) = all_ranks.max_by_key(|(_, ranks)| ranks.count())?;
        let (mut others, mut shift) = (Vec::new(), 0);
        for (key, &(min, max)) in key_bounds.iter().enumerate().filter(|(key, _)| *key != lead) {
            let (min, span) = (i64::try_from(min).ok()?, u64::try_from(max.checked_sub(min)?).ok()?);
            others.push(Other { key, min, span, shift });
            shift += u64::BITS - span.leading_zeros();
        }
        if shift > u64::BITS || store.rows() > ranks.count().saturating_mul(ENTRIES_PER_RANK) {
            return None;
        }
        Some(Refined { lead, ranks, offsets: Vec::new(), words: Vec::new(), others })
    }

    /// Which integers occur as the key, where it is the one that is ranked.
    pub(super) fn ranks(&self, key: usize) -> Option<&Ranks> {
        (key == self.lead).then_some(&self.ranks)
    }

    /// Makes the entries, and returns the number of each row's keys; `None` where too many share one key.
    fn fill(&mut self, store: &RowStore, threads: usize, cancelled: &AtomicBool) -> Result<Option<Vec<u32>>> {
        check_cancelled(cancelled)?;
        let keys = std::iter::once(self.lead).chain(self.others.iter().map(|other| other.key));
        let validities: Vec<&Bitmap> = keys.filter_map(|key| store.validity(key)).collect();
        let mut numbers = self.ranks.numbers(store.values(self.lead), &validities, threads);
        let counts = counted(&numbers, self.ranks.count(), threads);
        if counts.iter().any(|count| *count > ENTRIES_MAX) {
            return Ok(None);
        }
        check_cancelled(cancelled)?;
        let mut row_words = vec![0; store.rows()];
        on_shares(&mut row_words, threads, |first, words| {
            for other in &self.others {
                let mut places = words.iter_mut();
                let keys = store.values(other.key).slice(first..first + places.len());
                each_integer(keys, |value| {
                    if let Some(word) = places.next() {
                        *word |= (value.wrapping_sub(other.min) as u64).wrapping_shl(other.shift);
                    }
                });
            }
        });
        check_cancelled(cancelled)?;
        (self.offsets, self.words) = placed(counts, &numbers, threads, |row| row_words[row]);
        check_cancelled(cancelled)?;
        on_shares(&mut numbers, threads, |first, numbers| {
            numbers.iter_mut().zip(&row_words[first..]).for_each(|(number, &word)| *number = self.entry(*number, word));
        });
        Ok(Some(numbers))
    }

    /// The first entry of a rank with these other keys; [`NONE`] where there is none.
    #[inline]
    fn entry(&self, rank: u32, word: u64) -> u32 {
        if rank == NONE {
            return NONE;
        }
        let (first, end) = (self.offsets[rank as usize], self.offsets[rank as usize + 1]);
        let same = self.words[first as usize..end as usize].iter().position(|other| *other == word);
        same.map_or(NONE, |place| first + place as u32)
    }

    /// Writes over `out` the number of each row's keys; [`NONE`] where nobody has them. What stands at a NULL is any.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for keys that are no integers.
    pub(super) fn find(&self, keys: &[Argument<'_>], scratch: &mut RefinedScratch, out: &mut Vec<u32>) -> Result<()> {
        let no_integers = || Error::Unsupported("keys that are no integers among integers".into());
        let RefinedScratch { ints, words } = scratch;
        self.ranks.find_all(ints.ints(keys[self.lead]).ok_or_else(no_integers)?, out);
        words.clear();
        words.resize(out.len(), 0);
        for other in &self.others {
            let mut add = |row: usize, distance: Option<u64>| match distance {
                Some(distance) if distance <= other.span => words[row] |= distance.wrapping_shl(other.shift),
                _ => out[row] = NONE,
            };
            match ints.ints(keys[other.key]).ok_or_else(no_integers)? {
                Ints::Narrow { values, .. } => {
                    let distances = values.iter().map(|value| Some(value.wrapping_sub(other.min) as u64));
                    distances.enumerate().for_each(|(row, distance)| add(row, distance));
                }
                Ints::Wide(values) => {
                    let distances = values.iter().map(|value| value.checked_sub(other.min.into())?.try_into().ok());
                    distances.enumerate().for_each(|(row, distance)| add(row, distance));
                }
            }
        }
        out.iter_mut().zip(&*words).for_each(|(rank, &word)| *rank = self.entry(*rank, word));
        Ok(())
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        self.ranks.bytes() + size_of_val(&self.offsets[..]) + size_of_val(&self.words[..])
    }
}
