//! Entries of trees with duplicates: a key and one of its values, together as one key of bytes, without a record.
//!
//! Pairs are ordered by key, and those of a key by value. So a key's values follow each other, each there once, and what
//! pairs have in common with the one before is not written again (docs/format/tree.md has the bytes).

use super::any_tree::{Key, KeyRef};
use super::ranges::AnyRange;
use super::{Find, KeyType, ValueType};
use crate::index::{number_of, push_bytes, push_number, split_bytes};
use crate::{Error, Result};
use sinter_codec::after_prefix;
use std::ops::Bound;

/// What the keys and values are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PairShape {
    key: KeyType,
    value: ValueType,
}

/// A pair taken apart; made again for the next one without allocating anew.
#[derive(Debug)]
pub(super) struct Pair {
    key: Key,
    value: Vec<u8>,
}

/// Where a pair is looked for.
pub(super) struct Place {
    pub(super) find: Find,
    from: Option<Vec<u8>>,
    until: Bound<Vec<u8>>,
}

impl Place {
    /// From where; `None` for the first or the last of all.
    pub(super) fn from(&self) -> Option<KeyRef<'_>> {
        self.from.as_deref().map(KeyRef::Bytes)
    }

    /// None behind it is found.
    pub(super) fn until(&self) -> Bound<KeyRef<'_>> {
        self.until.as_ref().map(|until| KeyRef::Bytes(until))
    }
}

impl Pair {
    pub(super) fn new() -> Pair {
        Pair { key: Key::Bytes(Vec::new()), value: Vec::new() }
    }

    /// The key as the columns and users have it.
    pub(super) fn key(&self) -> KeyRef<'_> {
        self.key.lent()
    }

    pub(super) fn value(&self) -> &[u8] {
        &self.value
    }
}

impl PairShape {
    pub(super) fn new(key: KeyType, value: ValueType) -> PairShape {
        PairShape { key, value }
    }

    /// What the pairs of a key begin with, and no others.
    fn prefix(key: KeyRef<'_>) -> Vec<u8> {
        let mut prefix = Vec::new();
        match key {
            KeyRef::U32(key) => push_number(u64::from(key) << 32, &mut prefix),
            KeyRef::U64(key) => push_number(key, &mut prefix),
            KeyRef::Bytes(key) => push_bytes(key, &mut prefix),
        }
        if let KeyRef::U32(_) = key {
            prefix.truncate(size_of::<u32>());
        }
        prefix
    }

    /// What is behind the pairs of a key, and before those of the next; `None` where no pair can be.
    fn behind(key: KeyRef<'_>) -> Option<Vec<u8>> {
        match key {
            KeyRef::U32(key) => Some(PairShape::prefix(KeyRef::U32(key.checked_add(1)?))),
            KeyRef::U64(key) => Some(PairShape::prefix(KeyRef::U64(key.checked_add(1)?))),
            KeyRef::Bytes(_) => after_prefix(&PairShape::prefix(key)),
        }
    }

    /// Where pairs end whose keys end so.
    pub(super) fn end(end: Bound<KeyRef<'_>>) -> Bound<Vec<u8>> {
        match end {
            Bound::Included(key) => PairShape::behind(key).map_or(Bound::Unbounded, Bound::Excluded),
            Bound::Excluded(key) => Bound::Excluded(PairShape::prefix(key)),
            Bound::Unbounded => Bound::Unbounded,
        }
    }

    /// The pair of a key and a value.
    pub(super) fn pair(self, key: KeyRef<'_>, value: &[u8]) -> Vec<u8> {
        let mut pair = PairShape::prefix(key);
        let start = pair.len();
        pair.extend_from_slice(value);
        if self.value.is_number() {
            let value = &mut pair[start..];
            value.reverse();
            self.flip(value, value[0] & SIGN != 0);
        }
        pair
    }

    /// Takes a pair apart.
    ///
    /// # Errors
    /// [`Error::Damaged`]: it is none.
    pub(super) fn read(self, pair: &[u8], into: &mut Pair) -> Result<()> {
        let damaged =
            || Error::Damaged("an entry of a key-value tree with duplicates is no key with a value".to_owned());
        let width = self.value.width().filter(|_| self.value.is_number());
        let value = match self.key {
            KeyType::U32 => {
                let (key, value) = pair.split_at_checked(size_of::<u32>()).ok_or_else(damaged)?;
                let key = key.iter().fold(0, |key, byte| key << 8 | u32::from(*byte));
                into.key = Key::U32(key);
                value
            }
            KeyType::U64 | KeyType::I64 => {
                let (key, value) = pair.split_first_chunk().ok_or_else(damaged)?;
                into.key = Key::U64(number_of(*key));
                value
            }
            KeyType::Bytes | KeyType::Text | KeyType::Columns => {
                if !matches!(into.key, Key::Bytes(_)) {
                    into.key = Key::Bytes(Vec::new());
                }
                let Key::Bytes(key) = &mut into.key else { return Err(damaged()) };
                key.clear();
                split_bytes(pair, key).ok_or_else(damaged)?
            }
        };
        if width.is_some_and(|width| width != value.len()) {
            return Err(damaged());
        }
        into.value.clear();
        into.value.extend_from_slice(value);
        if self.value.is_number() {
            self.flip(&mut into.value, value[0] & SIGN == 0);
            into.value.reverse();
        }
        Ok(())
    }

    /// Makes bytes of a number, the highest first, such as are ordered as numbers are, or back.
    fn flip(self, value: &mut [u8], is_negative: bool) {
        match self.value {
            ValueType::F64 if is_negative => value.iter_mut().for_each(|byte| *byte = !*byte),
            ValueType::I64 | ValueType::F64 => value[0] ^= SIGN,
            _ => {}
        }
    }

    /// The pairs whose keys are in a range.
    pub(super) fn range(self, (start, end): &AnyRange) -> AnyRange {
        let start = match start {
            Bound::Included(key) => Bound::Included(PairShape::prefix(key.lent())),
            Bound::Excluded(key) => match PairShape::behind(key.lent()) {
                Some(behind) => Bound::Included(behind),
                None => return NOTHING,
            },
            Bound::Unbounded => Bound::Unbounded,
        };
        let end = PairShape::end(end.as_ref().map(Key::lent));
        (start.map(Key::Bytes), end.map(Key::Bytes))
    }

    /// Where the pair is that is looked for by a key: of several of the nearest key, the nearest; `None` where there can be
    /// none.
    pub(super) fn place(self, find: Find, key: Option<KeyRef<'_>>, until: Bound<KeyRef<'_>>) -> Option<Place> {
        let until = PairShape::end(until);
        let Some(key) = key else { return Some(Place { find, from: None, until }) };
        let (prefix, behind) = (PairShape::prefix(key), PairShape::behind(key));
        let (find, from, until) = match find {
            Find::Less => (Find::Less, Some(prefix), until),
            Find::LessEqual => (Find::Less, behind, until),
            Find::Equal => (Find::GreaterEqual, Some(prefix), PairShape::end(Bound::Included(key))),
            Find::GreaterEqual => (Find::GreaterEqual, Some(prefix), until),
            Find::Greater => (Find::GreaterEqual, Some(behind?), until),
        };
        Some(Place { find, from, until })
    }

    /// The keys whose pairs are in a range of [`PairShape::range`]; `None` where it is no such range.
    pub(super) fn range_of_keys(self, (start, end): &AnyRange) -> Option<AnyRange> {
        let start = match start {
            Bound::Included(Key::Bytes(start)) => match self.key_of_bound(start)? {
                (key, false) => Bound::Included(key),
                (key, true) => Bound::Excluded(key),
            },
            Bound::Unbounded => Bound::Unbounded,
            _ => return None,
        };
        let end = match end {
            Bound::Excluded(Key::Bytes(end)) => match self.key_of_bound(end)? {
                // Of whole numbers the bound behind one is the next one.
                (Key::U32(end), _) => Bound::Included(Key::U32(end.checked_sub(1)?)),
                (Key::U64(end), _) => Bound::Included(Key::U64(end.checked_sub(1)?)),
                (key, true) => Bound::Included(key),
                (key, false) => Bound::Excluded(key),
            },
            Bound::Unbounded => Bound::Unbounded,
            _ => return None,
        };
        Some((start, end))
    }

    /// Of a bound of [`PairShape::range`]: the key, and whether the bound is behind it.
    fn key_of_bound(self, bound: &[u8]) -> Option<(Key, bool)> {
        let mut pair = Pair::new();
        let shape = PairShape { value: ValueType::Nothing, ..self };
        if shape.read(bound, &mut pair).is_ok() && pair.value.is_empty() {
            return Some((pair.key, false));
        }
        // Behind a key of bytes its end has become greater by one.
        let (last, before) = bound.split_last()?;
        let ended = [before, &[last.checked_sub(1)?]].concat();
        (shape.read(&ended, &mut pair).is_ok() && pair.value.is_empty()).then_some((pair.key, true))
    }
}

/// The highest bit of a number's highest byte.
const SIGN: u8 = 0x80;

/// A range that no pair is in.
const NOTHING: AnyRange = (Bound::Excluded(Key::Bytes(Vec::new())), Bound::Excluded(Key::Bytes(Vec::new())));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kv::KvKey;
    use std::ops::RangeBounds;

    fn keys(ty: KeyType) -> Vec<KvKey<'static>> {
        match ty {
            KeyType::U32 => [0, 1, 255, 256, u32::MAX.into()].map(KvKey::Int).to_vec(),
            KeyType::U64 => [0, 255, 1 << 40, u64::MAX.into()].map(KvKey::Int).to_vec(),
            KeyType::I64 => [i64::MIN.into(), -1, 0, 1, i64::MAX.into()].map(KvKey::Int).to_vec(),
            KeyType::Text => ["", "\0", "a", "a\0", "a\u{1}", "ab", "\u{10ffff}"].map(KvKey::Text).to_vec(),
            _ => [&[][..], &[0], &[0, 0], &[0, 255], &[255], &[255, 255]].map(KvKey::Bytes).to_vec(),
        }
    }

    fn values(ty: ValueType) -> Vec<Vec<u8>> {
        match ty {
            ValueType::U32 => [0, 1, 256, u32::MAX].map(|value| value.to_le_bytes().to_vec()).to_vec(),
            ValueType::U64 => [0, 1, 256, u64::MAX].map(|value| value.to_le_bytes().to_vec()).to_vec(),
            ValueType::I64 => [i64::MIN, -1, 0, 1, i64::MAX].map(|value| value.to_le_bytes().to_vec()).to_vec(),
            ValueType::F64 => [f64::NEG_INFINITY, -1.5, -0.0, 0.0, 1e-300, f64::INFINITY, f64::NAN]
                .map(|value| value.to_le_bytes().to_vec())
                .to_vec(),
            _ => [&[][..], &[0], &[0, 1], &[255]].map(<[u8]>::to_vec).to_vec(),
        }
    }

    const KEYS: [KeyType; 5] = [KeyType::U32, KeyType::U64, KeyType::I64, KeyType::Bytes, KeyType::Text];
    const VALUES: [ValueType; 5] = [ValueType::U32, ValueType::U64, ValueType::I64, ValueType::F64, ValueType::Bytes];

    #[test]
    fn pairs_are_ordered_as_keys_and_then_values_are_and_come_back() {
        for (key, value) in KEYS.into_iter().flat_map(|key| VALUES.map(|value| (key, value))) {
            let (shape, mut pair) = (PairShape::new(key, value), Pair::new());
            let mut before: Option<Vec<u8>> = None;
            for user_key in keys(key) {
                for value in values(value) {
                    let encoded = key.encode(user_key).unwrap();
                    let bytes = shape.pair(encoded, &value);
                    assert!(before.is_none_or(|before| before < bytes), "{shape:?}: {user_key:?} {value:?}");
                    shape.read(&bytes, &mut pair).unwrap();
                    assert_eq!((pair.key(), pair.value()), (encoded, &value[..]));
                    before = Some(bytes);
                }
            }
        }
    }

    #[test]
    fn a_range_of_keys_is_one_of_their_pairs() {
        for key in KEYS {
            let shape = PairShape::new(key, ValueType::Bytes);
            let all: Vec<Key> = keys(key).into_iter().map(|of| key.encode(of).unwrap().to_key()).collect();
            let bounds = |key: &Key| [Bound::Included(key.clone()), Bound::Excluded(key.clone()), Bound::Unbounded];
            for range in all
                .iter()
                .flat_map(bounds)
                .flat_map(|start| all.iter().flat_map(bounds).map(move |end| (start.clone(), end)).collect::<Vec<_>>())
            {
                let of_pairs = shape.range(&range);
                for found in &all {
                    for value in values(ValueType::Bytes) {
                        let pair = Key::Bytes(shape.pair(found.lent(), &value));
                        assert_eq!(of_pairs.contains(&pair), range.contains(found), "{range:?}: {found:?}");
                    }
                }
                if let (Bound::Included(start), Bound::Included(Key::Bytes(bound))) = (&range.0, &of_pairs.0) {
                    assert_eq!(shape.key_of_bound(bound), Some((start.clone(), false)));
                }
                if let (Bound::Included(Key::Bytes(end)), Bound::Excluded(Key::Bytes(bound))) = (&range.1, &of_pairs.1)
                {
                    assert_eq!(shape.key_of_bound(bound), Some((Key::Bytes(end.clone()), true)));
                }
            }
        }
    }

    #[test]
    fn what_is_no_pair_is_damage() {
        let mut pair = Pair::new();
        for (key, value, bytes) in [
            (KeyType::U32, ValueType::Bytes, &[0, 0, 0][..]),
            (KeyType::U64, ValueType::U32, &[0; 11]),
            (KeyType::U64, ValueType::U32, &[0; 13]),
            (KeyType::Text, ValueType::Bytes, b"no end"),
            (KeyType::Text, ValueType::Bytes, b"\0\x07"),
            (KeyType::Bytes, ValueType::F64, &[0, 0]),
        ] {
            assert!(matches!(PairShape::new(key, value).read(bytes, &mut pair), Err(Error::Damaged(_))), "{bytes:?}");
        }
    }
}
