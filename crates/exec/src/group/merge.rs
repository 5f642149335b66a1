//! Many groups of another worker, found among ours by several threads.
//!
//! Keys that are numbered have other numbers there. Each number is translated once; then the words of all groups are
//! translated and looked up, by as many threads as there are, for nobody writes meanwhile. Those that we have not are ours
//! from then on.

use super::index::{GroupIndex, Table};
use super::key::KeyColumn;
use super::numbers::{Lookups, Numbers, Word, Words};
use crate::Result;
use crate::error::check_cancelled;
use sinter_codec::VECTOR_LEN;
use std::sync::atomic::AtomicBool;

/// Fewer groups are not worth other threads.
pub(super) const GROUPS_MIN: usize = 1 << 14;

/// A word that we have not.
const ABSENT: u32 = u32::MAX;

/// How the others merge.
#[derive(Clone, Copy)]
pub(super) struct Merging<'a> {
    pub(super) threads: usize,
    /// Nobody comes after them, so that what is added is never looked up.
    pub(super) is_last: bool,
    pub(super) cancelled: &'a AtomicBool,
}

/// Where a key's code is in a word, and what it becomes.
struct Place {
    shift: u32,
    bits: u32,
    /// By number; as it is where codes are no numbers.
    codes: Option<Vec<u64>>,
}

impl GroupIndex {
    /// Takes over the groups of another worker, which is of no use afterwards; returns which of ours they are, or `None`, and
    /// does nothing, where they are few or their words are not all in one table.
    ///
    /// # Errors
    /// [`crate::Error::TooManyKeys`], [`crate::Error::Cancelled`].
    pub(super) fn merge_many(&mut self, other: &mut GroupIndex, merging: Merging<'_>) -> Result<Option<Vec<u32>>> {
        let group_count = other.len();
        let ([level], [table], [theirs]) = (&self.plan.levels[..], &mut self.tables[..], &mut other.tables[..]) else {
            return Ok(None);
        };
        if group_count < GROUPS_MIN || !matches!(table, Table::Narrow(_) | Table::Wide(_)) {
            return Ok(None);
        }
        let mut places = Vec::with_capacity(level.keys.len());
        for &(key, shift) in &level.keys {
            let codes = self.keys[key].codes_of(&other.keys[key])?;
            places.push(Place { shift, bits: self.keys[key].coding.bits(), codes });
        }
        match (table, theirs) {
            (Table::Narrow(ours), Table::Narrow(theirs)) => merge_words(ours, theirs, &places, merging).map(Some),
            (Table::Wide(ours), Table::Wide(theirs)) => merge_words(ours, theirs, &places, merging).map(Some),
            _ => Ok(None),
        }
    }
}

fn merge_words<W: Word>(
    ours: &mut Numbers<Words<W>>,
    theirs: &mut Numbers<Words<W>>,
    places: &[Place],
    merging: Merging<'_>,
) -> Result<Vec<u32>> {
    let mut words = std::mem::take(&mut theirs.keys_mut().words);
    let mut numbers = vec![0; words.len()];
    let share = words.len().div_ceil(merging.threads.max(1)).max(1);
    let find = |words: &mut [W], numbers: &mut [u32]| -> Result<()> {
        let mut lookups = Lookups::default();
        for (words, numbers) in words.chunks_mut(VECTOR_LEN).zip(numbers.chunks_mut(VECTOR_LEN)) {
            check_cancelled(merging.cancelled)?;
            words.iter_mut().for_each(|word| *word = translated(*word, places));
            ours.find_all(words.iter().copied(), &mut lookups, ABSENT, numbers);
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let shares = words.chunks_mut(share).zip(numbers.chunks_mut(share));
        let find = &find;
        let threads: Vec<_> = shares.map(|(words, numbers)| scope.spawn(move || find(words, numbers))).collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })?;
    for (number, &word) in numbers.iter_mut().zip(&words).filter(|(number, _)| **number == ABSENT) {
        *number = if merging.is_last { ours.append(word)? } else { ours.number(word)? };
    }
    Ok(numbers)
}

/// The word of the same keys with our codes.
#[inline]
fn translated<W: Word>(word: W, places: &[Place]) -> W {
    places.iter().fold(W::default(), |translated, place| {
        let code = word.code(place.shift, place.bits);
        let code = place.codes.as_ref().map_or(code, |codes| codes[code as usize]);
        translated.with(code, place.shift)
    })
}

impl KeyColumn {
    /// Our code of each number that another worker gave; `None` where codes are no numbers.
    fn codes_of(&mut self, other: &KeyColumn) -> Result<Option<Vec<u64>>> {
        if !self.coding.is_numbered() {
            return Ok(None);
        }
        (0..other.number_count() as u32)
            .map(|number| self.translated_code(other, number))
            .collect::<Result<_>>()
            .map(Some)
    }
}
