//! Many groups of another worker, found among ours by several threads.
//!
//! Keys that are numbered have other numbers there. They are looked up among ours, each once, by as many threads as there
//! are, for nobody writes meanwhile; then the words of all groups are translated and looked up in the same way. Those that
//! we have not are ours from then on.

use super::index::{GroupIndex, Table};
use super::key::{KeyColumn, KeyNumbers};
use super::numbers::{Keys, Lookups, Numbers, Word, Words};
use crate::error::check_cancelled;
use crate::parallel::{on_shares, share, try_on_each};
use crate::{Error, Result};
use sinter_codec::VECTOR_LEN;
use std::sync::atomic::AtomicBool;

/// Fewer groups, or keys, are not worth other threads.
pub(super) const GROUPS_MIN: usize = 1 << 14;

/// A key that we have not.
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
    codes: Option<Vec<u32>>,
}

impl GroupIndex {
    /// Takes over the groups of another worker, which is of no use afterwards; returns which of ours they are, or `None`, and
    /// does nothing, where they are few or their words are not all in one table. Where the first keys are themselves groups,
    /// `first_keys` says which of ours they are.
    ///
    /// # Errors
    /// [`Error::TooManyKeys`], [`Error::Cancelled`].
    pub(super) fn merge_many(
        &mut self,
        other: &mut GroupIndex,
        first_keys: Option<&[u32]>,
        merging: Merging<'_>,
    ) -> Result<Option<Vec<u32>>> {
        if other.len() < GROUPS_MIN
            || !matches!(self.tables[..], [Table::Same { .. } | Table::Narrow(_) | Table::Wide(_)])
        {
            return Ok(None);
        }
        let mut places = Vec::with_capacity(self.keys.len());
        for &(key, shift) in &self.plan.levels[0].keys {
            let codes = match first_keys.filter(|_| key == 0) {
                // NULL has the first code.
                Some(groups) => Some(std::iter::once(0).chain(groups.iter().map(|group| group + 1)).collect()),
                None => self.keys[key].codes_of(&other.keys[key], merging)?,
            };
            places.push(Place { shift, bits: self.keys[key].coding.bits(), codes });
        }
        match (&mut self.tables[0], &mut other.tables[0]) {
            (Table::Same { count }, Table::Same { .. }) => {
                *count = self.keys[0].number_count();
                Ok(places.pop().and_then(|place| place.codes))
            }
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
    let own = share(words.len(), merging.threads);
    try_on_each(words.chunks_mut(own).zip(numbers.chunks_mut(own)).collect(), |(words, numbers)| {
        let mut lookups = Lookups::default();
        for (words, numbers) in words.chunks_mut(VECTOR_LEN).zip(numbers.chunks_mut(VECTOR_LEN)) {
            check_cancelled(merging.cancelled)?;
            words.iter_mut().for_each(|word| *word = translated(*word, places));
            ours.find_all(words.iter().copied(), &mut lookups, ABSENT, numbers);
        }
        Ok(())
    })?;
    for (number, &word) in numbers.iter_mut().zip(&words).filter(|(number, _)| **number == ABSENT) {
        *number = if merging.is_last { ours.append(word)? } else { ours.number(word)? };
    }
    Ok(numbers)
}

/// Our number of each of their keys `but` one, of which it is not asked.
fn merge_keys<K: Keys + Sync>(
    ours: &mut Numbers<K>,
    theirs: &Numbers<K>,
    but: Option<u32>,
    merging: Merging<'_>,
) -> Result<Vec<u32>> {
    let mut numbers = vec![0; theirs.len()];
    if let Some(but) = but {
        numbers[but as usize] = ABSENT;
    }
    let threads = if theirs.len() < GROUPS_MIN { 1 } else { merging.threads };
    let found = on_shares(&mut numbers, threads, |first, numbers| -> Result<()> {
        let mut lookups = Lookups::default();
        for (chunk, numbers) in numbers.chunks_mut(VECTOR_LEN).enumerate() {
            check_cancelled(merging.cancelled)?;
            let first = first + chunk * VECTOR_LEN;
            let keys = (first..first + numbers.len()).map(|number| theirs.keys().key(number as u32));
            ours.find_all(keys, &mut lookups, ABSENT, numbers);
        }
        Ok(())
    });
    found.into_iter().collect::<Result<()>>()?;
    for (number, ours_now) in numbers.iter_mut().enumerate().filter(|(_, ours_now)| **ours_now == ABSENT) {
        let number = number as u32;
        if Some(number) != but {
            let key = theirs.keys().key(number);
            *ours_now = if merging.is_last { ours.append(key)? } else { ours.number(key)? };
        }
    }
    Ok(numbers)
}

/// The word of the same keys with our codes.
#[inline]
fn translated<W: Word>(word: W, places: &[Place]) -> W {
    places.iter().fold(W::default(), |translated, place| {
        let code = word.code(place.shift, place.bits);
        let code = place.codes.as_ref().map_or(code, |codes| codes[code as usize].into());
        translated.with(code, place.shift)
    })
}

impl KeyColumn {
    /// Our code of each number that another worker gave; `None` where codes are no numbers.
    fn codes_of(&mut self, other: &KeyColumn, merging: Merging<'_>) -> Result<Option<Vec<u32>>> {
        let null = other.null;
        let codes = match (&mut self.numbers, &other.numbers) {
            (KeyNumbers::None, KeyNumbers::None) => return Ok(None),
            (KeyNumbers::Words(ours), KeyNumbers::Words(theirs)) => merge_keys(ours, theirs, null, merging),
            (KeyNumbers::WideWords(ours), KeyNumbers::WideWords(theirs)) => merge_keys(ours, theirs, null, merging),
            (KeyNumbers::Texts(ours), KeyNumbers::Texts(theirs)) => merge_keys(ours, theirs, null, merging),
            _ => return Err(Error::Unsupported("groups with keys of different types as one".into())),
        };
        let mut codes = codes?;
        if let Some(null) = null {
            codes[null as usize] = self.null_code()? as u32;
        }
        Ok(Some(codes))
    }
}
