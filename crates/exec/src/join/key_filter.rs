//! Which keys a build side has, for a scan that leaves out rows which would meet nobody.
//!
//! Integers close to each other are bits of a bitmap, which is never wrong. Whatever else is hashed into a Bloom filter,
//! which takes a key that is not there for one that is now and then, and never the other way round (Bloom, CACM 1970; all bits of a
//! key are in one word, where the blocks of Putze, Sanders and Singler, WEA 2007, are lines of a cache).

use super::ranks::Ranks;
use crate::memory::Held;
use crate::{Memory, Result};
use foldhash::quality::RandomState;
use sinter_codec::{Bitmap, Values};
use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

/// The values of one key of a build side, for the scan of the other side to look its rows up before the join does.
pub struct KeyFilter {
    keys: Keys,
    /// So many different keys at most.
    count: usize,
    _memory: Held,
}

/// How they are kept.
pub(crate) enum Keys {
    Bitmap(KeyBitmap),
    Bloom(Bloom),
}

impl KeyFilter {
    /// Of integers that are ranked.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`].
    pub(super) fn of_ranks(ranks: &Ranks, memory: &Arc<dyn Memory>) -> Result<KeyFilter> {
        let mut held = Held::new(memory);
        held.need(ranks.bytes() / 2)?;
        let keys = Keys::Bitmap(KeyBitmap { least: ranks.least(), words: ranks.words().collect() });
        Ok(KeyFilter { keys, count: ranks.count(), _memory: held })
    }

    /// Of values that are integers or bytes; `None` of floats, of which some are equal that do not look it.
    ///
    /// # Errors
    /// [`crate::Error::OutOfMemory`].
    pub(super) fn of_values(
        values: Values<'_>,
        validity: Option<&Bitmap>,
        memory: &Arc<dyn Memory>,
    ) -> Result<Option<KeyFilter>> {
        let is_there = |row: usize| validity.is_none_or(|validity| validity.get(row));
        let count = validity.map_or(values.len(), Bitmap::count_ones);
        let mut held = Held::new(memory);
        held.need(Bloom::bytes(count))?;
        let mut bloom = Bloom::new(count);
        macro_rules! insert {
            ($values:expr, $key:expr) => {
                for (_, &value) in $values.iter().enumerate().filter(|(row, _)| is_there(*row)) {
                    bloom.insert($key(value));
                }
            };
        }
        match values {
            Values::I8(values) => insert!(values, i64::from),
            Values::I16(values) => insert!(values, i64::from),
            Values::I32(values) => insert!(values, i64::from),
            Values::I64(values) => insert!(values, i64::from),
            Values::U8(values) => insert!(values, i64::from),
            Values::U16(values) => insert!(values, i64::from),
            Values::U32(values) => insert!(values, i64::from),
            Values::U64(values) => insert!(values, |value| value as i64),
            Values::I128(values) => insert!(values, |value: i128| value),
            Values::Bytes(view) => {
                (0..view.len()).filter(|&row| is_there(row)).for_each(|row| bloom.insert(view.get(row)))
            }
            Values::F32(_) | Values::F64(_) => return Ok(None),
        }
        Ok(Some(KeyFilter { keys: Keys::Bloom(bloom), count, _memory: held }))
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.keys
    }
}

impl fmt::Debug for KeyFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeyFilter({self})")
    }
}

impl fmt::Display for KeyFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.keys {
            Keys::Bitmap(_) => write!(f, "{} keys of a join, in a bitmap", self.count),
            Keys::Bloom(_) => write!(f, "keys of {} rows of a join, in a Bloom filter", self.count),
        }
    }
}

/// A bit for each integer from the least on.
pub(crate) struct KeyBitmap {
    least: i64,
    /// At the end stands one without a key.
    words: Vec<u64>,
}

impl KeyBitmap {
    /// Whether an integer is a key.
    #[inline]
    pub(crate) fn has(&self, value: i64) -> bool {
        let position = value.wrapping_sub(self.least) as u64;
        let end = self.words.len() - 1;
        self.words[((position / 64) as usize).min(end)] >> (position % 64) & 1 == 1
    }
}

/// Bits that a Bloom filter has for each row: of 200 other keys it then takes about one for its own.
const BITS_PER_ROW: usize = 16;

/// Bits that it sets for each key.
const BITS_PER_KEY: u32 = 4;

/// A Bloom filter whose bits for a key are all in one word, so that a look costs one line of memory.
pub(crate) struct Bloom {
    words: Vec<u64>,
    hasher: RandomState,
}

impl Bloom {
    fn new(rows: usize) -> Bloom {
        Bloom { words: vec![0; Bloom::bytes(rows) / 8], hasher: RandomState::default() }
    }

    fn bytes(rows: usize) -> usize {
        8 * (rows * BITS_PER_ROW).div_ceil(64).max(1)
    }

    fn insert(&mut self, key: impl Hash) {
        let (word, bits) = self.place(key);
        self.words[word] |= bits;
    }

    /// Whether this may be a key; never false for one. An integer of 64 bits or fewer is given as `i64`, one of 128 as `i128`.
    #[inline]
    pub(crate) fn may_have(&self, key: impl Hash) -> bool {
        let (word, bits) = self.place(key);
        self.words[word] & bits == bits
    }

    /// The word, by the higher half of the hash, and the bits, by the lower one.
    #[inline]
    fn place(&self, key: impl Hash) -> (usize, u64) {
        let hash = self.hasher.hash_one(key);
        let word = ((hash >> 32) * self.words.len() as u64) >> 32;
        let bits = (0..BITS_PER_KEY).fold(0, |bits, bit| bits | 1 << (hash >> (6 * bit) & 63));
        (word as usize, bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unlimited;
    use sinter_codec::{BytesBuf, ValuesBuf};

    fn memory() -> Arc<dyn Memory> {
        Arc::new(Unlimited)
    }

    fn bloom(filter: &KeyFilter) -> &Bloom {
        match filter.keys() {
            Keys::Bloom(bloom) => bloom,
            Keys::Bitmap(_) => panic!("a bitmap"),
        }
    }

    #[test]
    fn a_bloom_filter_misses_no_key_and_takes_few_others() {
        const KEYS: usize = 20_000;
        let keys: Vec<i64> = (0..KEYS as i64).map(|key| key * 1_000_003 - 77).collect();
        let filter = KeyFilter::of_values(Values::I64(&keys), None, &memory()).expect("memory").expect("integers");
        assert_eq!(filter.count, KEYS);
        assert!(keys.iter().all(|&key| bloom(&filter).may_have(key)));
        let others = keys.iter().filter(|&&key| bloom(&filter).may_have(key + 1)).count();
        assert!(others < KEYS / 20, "{others} of {KEYS} others are taken for keys");
    }

    #[test]
    fn texts_and_wide_integers_are_hashed_as_they_are_looked_up() {
        let texts: Vec<String> = (0..500).map(|number| format!("text {number}")).collect();
        let mut bytes = BytesBuf::default();
        texts.iter().for_each(|text| bytes.push(text.as_bytes()));
        let values = ValuesBuf::Bytes(bytes);
        let filter = KeyFilter::of_values(values.as_values(), None, &memory()).expect("memory").expect("texts");
        assert!(texts.iter().all(|text| bloom(&filter).may_have(text.as_bytes())));
        let wide = [i128::MIN, -1, 0, i128::MAX];
        let filter = KeyFilter::of_values(Values::I128(&wide), None, &memory()).expect("memory").expect("integers");
        assert!(wide.iter().all(|&key| bloom(&filter).may_have(key)));
        let greatest = [u64::MAX];
        let filter = KeyFilter::of_values(Values::U64(&greatest), None, &memory()).expect("memory").expect("integers");
        assert!(bloom(&filter).may_have(u64::MAX as i64));
        assert!(KeyFilter::of_values(Values::F64(&[0.0]), None, &memory()).expect("memory").is_none());
    }

    #[test]
    fn nulls_are_no_keys() {
        let mut validity = Bitmap::new(3, true);
        validity.set(1, false);
        let filter = KeyFilter::of_values(Values::I32(&[1, 2, 3]), Some(&validity), &memory());
        let filter = filter.expect("memory").expect("integers");
        assert_eq!(filter.count, 2);
        assert!(bloom(&filter).may_have(1i64) && bloom(&filter).may_have(3i64));
        // Of a filter that has no key, no bit is set, whatever stands at the NULLs.
        let none = KeyFilter::of_values(Values::I32(&[1, 2, 3]), Some(&Bitmap::new(3, false)), &memory());
        let none = none.expect("memory").expect("integers");
        assert!((1..=3i64).all(|key| !bloom(&none).may_have(key)));
    }

    #[test]
    fn a_bitmap_knows_what_is_outside() {
        let mut ranks = Ranks::between((-100, 63), usize::MAX).expect("a small span");
        [-100, 0, 63].into_iter().for_each(|key| ranks.set(key));
        let ranks = Ranks::merged(vec![ranks], 1).expect("one of them");
        let filter = KeyFilter::of_ranks(&ranks, &memory()).expect("memory");
        let Keys::Bitmap(bits) = filter.keys() else { panic!("a Bloom filter") };
        let found: Vec<i64> = (-300..300).filter(|&value| bits.has(value)).collect();
        assert_eq!(found, [-100, 0, 63]);
        assert!(!bits.has(i64::MIN) && !bits.has(i64::MAX));
        assert_eq!(filter.to_string(), "3 keys of a join, in a bitmap");
    }
}
