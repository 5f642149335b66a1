//! What a key codec must do. Each is a unit type that implements [`Coding`]; [`super::codec`] lists them.

use super::block::{KeyBlock, KeyDescriptor};
use super::block_mut::KeyChange;
use super::count_less::count_less;
use super::key::Key;

/// The most keys of a block. 256, as in the paper (section 3.2): a block is decoded into 1 or 2 KiB, well within the L1
/// cache, and its descriptor costs a fraction of a bit a key; smaller ones are quicker to change.
pub const KEYS_MAX: usize = 256;

/// Keys as they are decoded: the first so many of them are filled.
pub(super) type Keys<K> = [K; KEYS_MAX];

/// A way to write keys that never decrease, from 1 to [`KEYS_MAX`] of them. The empty block has no bytes in every
/// codec, and none of these calls is made for it.
///
/// A block that is read may be damaged in whatever [`Coding::fits`] did not look at: calls then give wrong answers, but
/// do not panic, read elsewhere or run on.
pub(super) trait Coding {
    /// Whether no block grows by a key that is taken away (section 2, *delete stability*).
    const IS_DELETE_STABLE: bool;

    /// Bytes that [`Coding::write`] fills for these keys.
    fn size<K: Key>(keys: &[K]) -> usize;

    /// Writes the keys to `out`, which has just [`Coding::size`] bytes.
    fn write<K: Key>(keys: &[K], out: &mut [u8]);

    /// Appends the bytes of these keys to `out`.
    fn encode<K: Key>(keys: &[K], out: &mut Vec<u8>) {
        let start = out.len();
        out.resize(start + Self::size(keys), 0);
        Self::write(keys, &mut out[start..]);
    }

    /// Whether so many keys may take just these bytes, with the widths that they name; found in a time that does not
    /// grow with the count.
    fn fits<K: Key>(descriptor: &KeyDescriptor<K>, bytes: &[u8]) -> bool;

    /// Writes all keys to the front of `out`; what lies behind them there is unspecified.
    fn decode<K: Key>(block: &KeyBlock<'_, K>, out: &mut Keys<K>);

    /// The key at `index`, which is less than the count.
    fn select<K: Key>(block: &KeyBlock<'_, K>, index: usize) -> K;

    /// The first key that is not less than `key`, and its index; the caller saw that the last key is not less. Where a
    /// damaged block has none after all, anything. The default decodes all.
    fn lower_bound<K: Key>(block: &KeyBlock<'_, K>, key: K) -> (usize, K) {
        let mut keys = [K::default(); KEYS_MAX];
        Self::decode(block, &mut keys);
        let keys = &keys[..block.descriptor.count];
        let index = count_less(keys, key).min(keys.len() - 1);
        (index, keys[index])
    }

    /// Adds a key that is not less than the last to a block that is neither empty nor full, without decoding it; `None`
    /// where this cannot be done and the block must be written anew.
    fn append<K: Key>(descriptor: &mut KeyDescriptor<K>, room: &mut [u8], key: K) -> Option<KeyChange>;

    /// Adds a key that is less than the last to a block that is not full; `None` where it must be written anew, as by
    /// default.
    fn insert<K: Key>(_descriptor: &mut KeyDescriptor<K>, _room: &mut [u8], _key: K) -> Option<KeyChange> {
        None
    }

    /// Takes away the key at `index`, which is less than the count, of two keys or more; `None` as for
    /// [`Coding::insert`].
    fn delete<K: Key>(_descriptor: &mut KeyDescriptor<K>, _room: &mut [u8], _index: usize) -> Option<KeyChange> {
        None
    }
}
