//! `none`: keys as they are, one after the other. What the other codecs are measured against.

use super::block::{KeyBlock, KeyDescriptor};
use super::block_mut::{KeyChange, move_tail};
use super::coding::{Coding, Keys, check_len};
use super::key::{Key, Word};
use crate::Result;
use crate::isa::each_isa;

/// See the module.
pub(super) struct Uncompressed;

impl Coding for Uncompressed {
    const IS_DELETE_STABLE: bool = true;

    fn size<K: Key>(keys: &[K]) -> usize {
        keys.len() * K::BYTES
    }

    fn write<K: Key>(keys: &[K], out: &mut [u8]) {
        for (out, key) in out.chunks_exact_mut(K::BYTES).zip(keys) {
            key.write_word(out);
        }
    }

    fn check<K: Key>(block: &KeyBlock<'_, K>) -> Result<()> {
        check_len(block, block.descriptor.count * K::BYTES)
    }

    fn decode<K: Key>(block: &KeyBlock<'_, K>, out: &mut Keys<K>) {
        for (out, bytes) in out.iter_mut().zip(block.bytes.chunks_exact(K::BYTES)) {
            *out = K::read_word(bytes);
        }
    }

    fn select<K: Key>(block: &KeyBlock<'_, K>, index: usize) -> K {
        K::read_word(&block.bytes[index * K::BYTES..])
    }

    fn lower_bound<K: Key>(block: &KeyBlock<'_, K>, key: K) -> (usize, K) {
        let index = count_less_bytes(block.bytes, key).min(block.descriptor.count - 1);
        (index, Self::select(block, index))
    }

    fn append<K: Key>(descriptor: &mut KeyDescriptor<K>, room: &mut [u8], key: K) -> Option<KeyChange> {
        let index = descriptor.count;
        Some(put(descriptor, room, index, key))
    }

    fn insert<K: Key>(descriptor: &mut KeyDescriptor<K>, room: &mut [u8], key: K) -> Option<KeyChange> {
        let index = count_less_bytes(&room[..descriptor.byte_len], key).min(descriptor.count - 1);
        if K::read_word(&room[index * K::BYTES..]) == key {
            return Some(KeyChange::Present(index));
        }
        Some(put(descriptor, room, index, key))
    }

    fn delete<K: Key>(descriptor: &mut KeyDescriptor<K>, room: &mut [u8], index: usize) -> Option<KeyChange> {
        let at = index * K::BYTES;
        move_tail(descriptor, room, at + K::BYTES, at);
        descriptor.count -= 1;
        descriptor.first = K::read_word(room);
        descriptor.last = K::read_word(&room[descriptor.byte_len - K::BYTES..]);
        Some(KeyChange::Done(index))
    }
}

/// Makes `key` the one at `index`.
fn put<K: Key>(descriptor: &mut KeyDescriptor<K>, room: &mut [u8], index: usize, key: K) -> KeyChange {
    let needed = descriptor.byte_len + K::BYTES;
    if needed > room.len() {
        return KeyChange::NoRoom(needed);
    }
    let at = index * K::BYTES;
    move_tail(descriptor, room, at, at + K::BYTES);
    key.write_word(&mut room[at..]);
    descriptor.count += 1;
    descriptor.first = K::read_word(room);
    descriptor.last = K::read_word(&room[needed - K::BYTES..]);
    KeyChange::Done(index)
}

/// Keys that are looked at first, evenly spread.
const STRIDE: usize = 16;

each_isa! {
    /// How many of the keys in `bytes` are less than `key`: first of every [`STRIDE`]th, then of those after the last that is.
    fn count_less_bytes<K: Key>(bytes: &[u8], key: K) -> usize = body;
}

#[inline(always)]
fn body<K: Word>(bytes: &[u8], key: K) -> usize {
    let less = |keys: std::slice::ChunksExact<'_, u8>| -> u32 {
        keys.map(|bytes| u32::from(K::read_word(&bytes[..K::BYTES]) < key)).sum()
    };
    let strides = less(bytes.chunks_exact(STRIDE * K::BYTES)) as usize;
    let Some(before) = strides.checked_sub(1) else {
        return less(bytes[..bytes.len().min(STRIDE * K::BYTES)].chunks_exact(K::BYTES)) as usize;
    };
    let rest = &bytes[before * STRIDE * K::BYTES..];
    // The keys after the last whole stride may belong to it.
    before * STRIDE + less(rest[..rest.len().min(2 * STRIDE * K::BYTES)].chunks_exact(K::BYTES)) as usize
}
