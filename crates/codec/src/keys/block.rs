//! A block of keys that is read.

use super::codec::KeyCodec;
use super::coding::{KEYS_MAX, Keys};
use super::key::Key;
use crate::{Error, Result};

/// What a tree keeps of a block beside it (section 3.2, and 3.4 for the last key). All zero for the empty block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyDescriptor<K> {
    /// The first key, the least.
    pub first: K,
    /// The last key, the greatest.
    pub last: K,
    /// How many keys there are, [`KEYS_MAX`] at most.
    pub count: usize,
    /// The bytes that they take.
    pub byte_len: usize,
}

/// Keys in one codec, opened for reading.
///
/// [`KeyBlock::open`] checks lengths and widths, not every key. Where other bytes are damaged, answers are wrong, and
/// nothing worse: a page's checksum is what finds that.
#[derive(Clone, Copy, Debug)]
pub struct KeyBlock<'a, K> {
    pub(super) codec: KeyCodec,
    pub(super) descriptor: KeyDescriptor<K>,
    pub(super) bytes: &'a [u8],
}

impl<'a, K: Key> KeyBlock<'a, K> {
    /// The block that begins `bytes`, in a time that does not grow with its size. What follows it there is not its
    /// business.
    ///
    /// # Errors
    /// [`Error::Damaged`] where the descriptor contradicts itself or the bytes.
    #[inline(always)]
    pub fn open(codec: KeyCodec, descriptor: KeyDescriptor<K>, bytes: &'a [u8]) -> Result<KeyBlock<'a, K>> {
        let KeyDescriptor { first, last, count, byte_len } = descriptor;
        if let Some(bytes) = bytes.get(..byte_len) {
            let fits = match count {
                0 => byte_len == 0 && first == last,
                1..=KEYS_MAX => first <= last && (count > 1 || first == last) && codec.fits(&descriptor, bytes),
                _ => false,
            };
            if fits {
                return Ok(KeyBlock { codec, descriptor, bytes });
            }
        }
        Err(contradiction(codec, &descriptor, bytes))
    }

    /// What was given to [`KeyBlock::open`].
    pub fn descriptor(&self) -> KeyDescriptor<K> {
        self.descriptor
    }

    /// Writes all keys to the front of `out` and returns them. What is behind them in `out` is overwritten, by
    /// anything.
    #[inline]
    pub fn decode<'o>(&self, out: &'o mut [K; KEYS_MAX]) -> &'o [K] {
        if self.descriptor.count > 0 {
            self.codec.decode(self, out);
        }
        &out[..self.descriptor.count]
    }

    /// The key at `index`, counted from 0.
    ///
    /// # Panics
    /// When there are not so many keys.
    #[inline]
    pub fn select(&self, index: usize) -> K {
        let KeyDescriptor { first, last, count, .. } = self.descriptor;
        assert!(index < count, "key {index} of {count}");
        match index {
            0 => first,
            _ if index + 1 == count => last,
            _ => self.codec.select(self, index),
        }
    }

    /// The first key that is not less than `key`, and its index; `None` where all are less.
    #[inline]
    pub fn lower_bound(&self, key: K) -> Option<(usize, K)> {
        let KeyDescriptor { first, last, count, .. } = self.descriptor;
        match count {
            0 => None,
            _ if key <= first => Some((0, first)),
            _ if key > last => None,
            _ => Some(self.codec.lower_bound(self, key)),
        }
    }
}

/// What [`KeyBlock::open`] says of a block that cannot be.
#[cold]
#[inline(never)]
fn contradiction<K: Key>(codec: KeyCodec, descriptor: &KeyDescriptor<K>, bytes: &[u8]) -> Error {
    let KeyDescriptor { first, last, count, byte_len } = *descriptor;
    let claim = format!("it claims {count} keys from {first} to {last} in {byte_len} bytes");
    let contradicted = match bytes.get(..byte_len) {
        _ if count > KEYS_MAX => format!("{KEYS_MAX} keys are possible at most"),
        None => format!("{} bytes are there", bytes.len()),
        Some(bytes) => format!("bytes that begin {:02x?} are of another length or width", &bytes[..byte_len.min(4)]),
    };
    Error::damaged(codec.name(), format!("{claim}; {contradicted}"))
}

/// All keys of a block of at least one, in an array of this call.
pub(super) fn decoded<K: Key>(block: &KeyBlock<'_, K>) -> Keys<K> {
    let mut keys = [K::default(); KEYS_MAX];
    block.codec.decode(block, &mut keys);
    keys
}
