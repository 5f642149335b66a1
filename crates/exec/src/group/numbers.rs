//! Numbers for keys: 0, 1, 2, ... in the order in which they first occur.
//!
//! Open addressing with linear probing. A slot holds a number and half of its key's hash, in 8 bytes; keys stand apart,
//! by their numbers. So a probe that meets another key nearly always knows it by the half alone, a table that grows moves
//! its slots without looking at keys, and keys that came together lie together.

use crate::{Error, Result};
use foldhash::fast::RandomState;
use std::hash::BuildHasher;

/// Different keys, at most: numbers have 32 bits, and one of them more is wanted for NULL.
const NUMBERS_MAX: usize = u32::MAX as usize - 2;

/// A slot without a key: no key has the last number.
const EMPTY: u64 = u64::MAX;

/// Slots of a table with few keys.
const SLOTS_MIN: usize = 64;

/// Slots of a table that is in no near cache: half a megabyte.
const SLOTS_LARGE: usize = 1 << 16;

/// Keys by their numbers.
pub(super) trait Keys {
    /// One of them.
    type Key<'a>: Copy;
    /// The upper half of it is used. Nobody can tell from the outside which keys have the same.
    fn hash(&self, key: Self::Key<'_>) -> u64;
    /// Whether this is the key with this number.
    fn is(&self, number: u32, key: Self::Key<'_>) -> bool;
    /// The key with this number.
    fn key(&self, number: u32) -> Self::Key<'_>;
    /// Adds a key: it has the next number.
    fn push(&mut self, key: Self::Key<'_>);
    /// Gives the next number to any key.
    fn push_none(&mut self);
    /// How many there are.
    fn len(&self) -> usize;
    /// Bytes that they take.
    fn bytes(&self) -> usize;
    /// Something of what is read to compare the key with this number, so that it comes near.
    fn touch(&self, number: u32) -> u64;
}

/// Memory in which many keys are looked up together.
#[derive(Debug, Default)]
pub(super) struct Lookups {
    hashes: Vec<u64>,
    slots: Vec<u64>,
}

/// A table of keys and their numbers.
#[derive(Debug)]
pub(super) struct Numbers<K> {
    keys: K,
    /// A power of two of them, three quarters full at most. The lower half is a number; the upper one is that of the
    /// key's hash, whose lowest bits say where the slot should be.
    slots: Vec<u64>,
}

impl<K: Keys + Default> Default for Numbers<K> {
    fn default() -> Self {
        Numbers::of(K::default())
    }
}

impl<K: Keys> Numbers<K> {
    /// An empty table whose keys stand in `keys`.
    pub(super) fn of(keys: K) -> Numbers<K> {
        Numbers { keys, slots: vec![EMPTY; SLOTS_MIN] }
    }

    /// The keys.
    pub(super) fn keys(&self) -> &K {
        &self.keys
    }

    /// The same; whoever changes their hashes tells [`Numbers::rehash`].
    pub(super) fn keys_mut(&mut self) -> &mut K {
        &mut self.keys
    }

    /// How many numbers there are.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&self.slots[..]) + self.keys.bytes()
    }

    /// The number of a key, a new one where it was not there.
    ///
    /// # Errors
    /// [`Error::TooManyKeys`].
    #[inline]
    pub(super) fn number(&mut self, key: K::Key<'_>) -> Result<u32> {
        self.number_hashed(self.keys.hash(key), key)
    }

    /// The same for a key with this hash.
    ///
    /// # Errors
    /// [`Error::TooManyKeys`].
    #[inline]
    pub(super) fn number_hashed(&mut self, hash: u64, key: K::Key<'_>) -> Result<u32> {
        let half = hash >> 32;
        let mask = self.slots.len() - 1;
        let mut place = half as usize & mask;
        loop {
            let slot = self.slots[place];
            if slot >> 32 == half && slot != EMPTY && self.keys.is(slot as u32, key) {
                return Ok(slot as u32);
            }
            if slot == EMPTY {
                return self.insert(place, half, key);
            }
            place = (place + 1) & mask;
        }
    }

    /// The number of a key; `None` where it is not there.
    #[inline]
    pub(super) fn find(&self, key: K::Key<'_>) -> Option<u32> {
        self.find_hashed(self.keys.hash(key), key)
    }

    /// The same for a key with this hash.
    #[inline]
    fn find_hashed(&self, hash: u64, key: K::Key<'_>) -> Option<u32> {
        let half = hash >> 32;
        let mask = self.slots.len() - 1;
        let mut place = half as usize & mask;
        loop {
            let slot = self.slots[place];
            if slot == EMPTY {
                return None;
            }
            if slot >> 32 == half && self.keys.is(slot as u32, key) {
                return Some(slot as u32);
            }
            place = (place + 1) & mask;
        }
    }

    /// Leaves in `lookups` the hash and the first slot of each key. All slots are read before any is looked at, and then, of a
    /// large table, something of all keys that may be the same, so that nothing waits for memory but memory.
    fn look_up<'k>(&self, keys: impl Iterator<Item = K::Key<'k>>, lookups: &mut Lookups) {
        let (Lookups { hashes, slots }, mask) = (lookups, self.slots.len() - 1);
        hashes.clear();
        hashes.extend(keys.map(|key| self.keys.hash(key)));
        slots.clear();
        slots.extend(hashes.iter().map(|hash| self.slots[(hash >> 32) as usize & mask]));
        if self.is_large() {
            let met = slots.iter().zip(&*hashes).filter(|(slot, hash)| may_be(**slot, **hash));
            std::hint::black_box(met.fold(0, |all, (&slot, _)| all ^ self.keys.touch(slot as u32)));
        }
    }

    /// Shows the rows of keys with their numbers, new ones where they were not there.
    ///
    /// # Errors
    /// [`Error::TooManyKeys`].
    pub(super) fn number_all<'k>(
        &mut self,
        keys: impl Iterator<Item = (usize, K::Key<'k>)> + Clone,
        lookups: &mut Lookups,
        mut visit: impl FnMut(usize, u32),
    ) -> Result<()> {
        if !self.is_large() {
            for (row, key) in keys {
                visit(row, self.number(key)?);
            }
            return Ok(());
        }
        self.look_up(keys.clone().map(|(_, key)| key), lookups);
        for ((row, key), (&slot, &hash)) in keys.zip(lookups.slots.iter().zip(&lookups.hashes)) {
            // Numbers stay, wherever slots go.
            let number = match may_be(slot, hash) && self.keys.is(slot as u32, key) {
                true => slot as u32,
                false => self.number_hashed(hash, key)?,
            };
            visit(row, number);
        }
        Ok(())
    }

    /// Whether it is so large that slots are in no cache.
    pub(super) fn is_large(&self) -> bool {
        self.slots.len() >= SLOTS_LARGE
    }

    /// Replaces each of `numbers` that is not `absent` by that of its key; `absent` where it is not there.
    pub(super) fn find_all<'k>(
        &self,
        keys: impl Iterator<Item = K::Key<'k>> + Clone,
        lookups: &mut Lookups,
        absent: u32,
        numbers: &mut [u32],
    ) {
        self.look_up(keys.clone(), lookups);
        for ((key, number), (&slot, &hash)) in keys.zip(numbers).zip(lookups.slots.iter().zip(&lookups.hashes)) {
            *number = match *number != absent && slot != EMPTY {
                true if may_be(slot, hash) && self.keys.is(slot as u32, key) => slot as u32,
                true => self.find_hashed(hash, key).unwrap_or(absent),
                false => absent,
            };
        }
    }

    /// Gives the next number to a key that is not there and will not be looked up.
    ///
    /// # Errors
    /// [`Error::TooManyKeys`].
    pub(super) fn append(&mut self, key: K::Key<'_>) -> Result<u32> {
        let number = self.next()?;
        self.keys.push(key);
        Ok(number)
    }

    /// Gives the next number to nobody: no key is found by it.
    ///
    /// # Errors
    /// [`Error::TooManyKeys`].
    pub(super) fn skip(&mut self) -> Result<u32> {
        let number = self.next()?;
        self.keys.push_none();
        Ok(number)
    }

    fn next(&self) -> Result<u32> {
        let number = self.keys.len();
        if number < NUMBERS_MAX { Ok(number as u32) } else { Err(Error::TooManyKeys) }
    }

    #[cold]
    #[inline(never)]
    fn insert(&mut self, place: usize, half: u64, key: K::Key<'_>) -> Result<u32> {
        let number = self.next()?;
        self.keys.push(key);
        self.slots[place] = half << 32 | u64::from(number);
        if self.keys.len() * 4 > self.slots.len() * 3 {
            self.grow();
        }
        Ok(number)
    }

    /// Finds every key by another hash from now on, which is given by number. Not where a number was skipped.
    pub(super) fn rehash(&mut self, hashes: &[u64]) {
        let mut slots = vec![EMPTY; self.slots.len()];
        for (number, hash) in hashes.iter().enumerate() {
            put(&mut slots, hash >> 32 << 32 | number as u64);
        }
        self.slots = slots;
    }

    /// Twice as many slots; four times where there are few, as moving costs more than the memory.
    fn grow(&mut self) {
        let factor = if self.slots.len() < 1 << 16 { 4 } else { 2 };
        let mut slots = vec![EMPTY; self.slots.len() * factor];
        self.slots.iter().filter(|&&slot| slot != EMPTY).for_each(|&slot| put(&mut slots, slot));
        self.slots = slots;
    }
}

/// Whether a slot may be that of a key with this hash.
#[inline(always)]
fn may_be(slot: u64, hash: u64) -> bool {
    slot != EMPTY && slot >> 32 == hash >> 32
}

/// Puts a slot at the first empty place from where it should be.
fn put(slots: &mut [u64], slot: u64) {
    let mask = slots.len() - 1;
    let mut place = (slot >> 32) as usize & mask;
    while slots[place] != EMPTY {
        place = (place + 1) & mask;
    }
    slots[place] = slot;
}

/// A key of a known number of bits, in a word.
pub(super) trait Word: Copy + Eq + Default + std::fmt::Debug + Send + Sync {
    /// With `code` in the bits from `shift` on, which were 0.
    fn with(self, code: u64, shift: u32) -> Self;
    /// What is in the `bits` (1 to 64) from `shift` on.
    fn code(self, shift: u32, bits: u32) -> u64;
    /// A hash.
    fn mixed(self, seed: u64) -> u64;
}

/// Both halves of a product, mixed.
#[inline(always)]
fn folded(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

/// An odd number without a pattern: the golden ratio.
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

impl Word for u64 {
    #[inline(always)]
    fn with(self, code: u64, shift: u32) -> u64 {
        self | code << shift
    }

    #[inline(always)]
    fn code(self, shift: u32, bits: u32) -> u64 {
        self >> shift & u64::MAX >> (64 - bits)
    }

    #[inline(always)]
    fn mixed(self, seed: u64) -> u64 {
        folded(self ^ seed, MULTIPLIER)
    }
}

impl Word for u128 {
    #[inline(always)]
    fn with(self, code: u64, shift: u32) -> u128 {
        self | u128::from(code) << shift
    }

    #[inline(always)]
    fn code(self, shift: u32, bits: u32) -> u64 {
        (self >> shift) as u64 & u64::MAX >> (64 - bits)
    }

    #[inline(always)]
    fn mixed(self, seed: u64) -> u64 {
        let low = folded(self as u64 ^ seed, MULTIPLIER);
        folded(low ^ (self >> 64) as u64, MULTIPLIER)
    }
}

/// Words as keys.
#[derive(Debug)]
pub(super) struct Words<W> {
    /// By number.
    pub(super) words: Vec<W>,
    seed: u64,
}

impl<W> Default for Words<W> {
    fn default() -> Self {
        Words { words: Vec::new(), seed: RandomState::default().hash_one(0u64) }
    }
}

impl<W: Word> Keys for Words<W> {
    type Key<'a> = W;

    #[inline(always)]
    fn hash(&self, key: W) -> u64 {
        key.mixed(self.seed)
    }

    #[inline(always)]
    fn is(&self, number: u32, key: W) -> bool {
        self.words[number as usize] == key
    }

    #[inline(always)]
    fn key(&self, number: u32) -> W {
        self.words[number as usize]
    }

    fn push(&mut self, key: W) {
        self.words.push(key);
    }

    fn push_none(&mut self) {
        self.words.push(W::default());
    }

    fn len(&self) -> usize {
        self.words.len()
    }

    fn bytes(&self) -> usize {
        self.words.capacity() * size_of::<W>()
    }

    #[inline(always)]
    fn touch(&self, number: u32) -> u64 {
        self.words[number as usize].code(0, u64::BITS)
    }
}

impl<W: Word> Numbers<Words<W>> {
    /// The word with a number.
    #[inline]
    pub(super) fn word(&self, number: u32) -> W {
        self.keys.words[number as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::super::texts::{Text, Texts};
    use super::*;

    #[test]
    fn each_key_has_one_number_however_many_there_are() {
        let mut words = Numbers::<Words<u64>>::default();
        let mut wide = Numbers::<Words<u128>>::default();
        let mut texts = Numbers::<Texts>::default();
        for round in 0..2 {
            for key in 0..100_000u64 {
                assert_eq!(words.number(key << 40).unwrap(), key as u32, "round {round}");
                assert_eq!(wide.number(u128::from(key) << 90).unwrap(), key as u32, "round {round}");
                // Some of them are longer than their heads.
                let (text, long) = (key.to_string(), format!("the number {key}"));
                let text = if key % 3 == 0 { &long } else { &text };
                assert_eq!(texts.number(Text::from(text.as_bytes())).unwrap(), key as u32, "round {round}");
            }
        }
        // Some that are there, and some that are not, in tables of all sizes.
        let (mut lookups, mut again) = (Lookups::default(), Numbers::<Texts>::default());
        for first in (0..150_000usize).step_by(1000) {
            let names: Vec<String> = (first / 2..first / 2 + 1000).map(|name| name.to_string()).collect();
            let keys = names.iter().enumerate().map(|(row, name)| (row, Text::from(name.as_bytes())));
            let mut numbers = vec![0; names.len()];
            again.number_all(keys, &mut lookups, |row, number| numbers[row] = number).unwrap();
            assert!(numbers.iter().zip(first / 2..).all(|(&number, name)| number as usize == name), "from {first} on");
        }
        assert_eq!(words.keys().words[77], 77 << 40);
        assert_eq!(texts.keys().get(4711), b"4711");
        assert_eq!(texts.keys().get(4712), b"4712");
        assert_eq!(texts.keys().get(0), b"the number 0");
        assert_eq!(texts.keys().get(99_999), b"the number 99999");
    }

    #[test]
    fn keys_are_found_by_their_new_hashes() {
        let mut words = Numbers::<Words<u64>>::default();
        (0..1000u64).for_each(|key| assert_eq!(words.number(key).unwrap(), key as u32));
        let new_hash = |key: u64| (key % 7) << 40;
        words.rehash(&(0..1000).map(new_hash).collect::<Vec<_>>());
        (0..1000u64).for_each(|key| assert_eq!(words.number_hashed(new_hash(key), key).unwrap(), key as u32));
        assert_eq!(words.number_hashed(new_hash(1000), 1000).unwrap(), 1000);
    }

    #[test]
    fn codes_stand_where_they_were_put() {
        assert_eq!(0u64.with(5, 0).with(u64::MAX >> 3, 3).code(3, 61), u64::MAX >> 3);
        assert_eq!(0u128.with(u64::MAX, 0).with(u64::MAX, 64).code(64, 64), u64::MAX);
        assert_eq!(0u128.with(5, 60).code(60, 64), 5);
    }
}
