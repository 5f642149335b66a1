//! `none`: keys as they are, one after the other. What the other codecs are measured against.

use super::block::{KeyBlock, KeyDescriptor};
use super::block_mut::{KeyChange, move_tail};
use super::coding::{Coding, Keys};
use super::key::{Key, Word};
use super::lanes::LANES;
use super::rows::{HasRows, Row};
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

    #[inline]
    fn fits<K: Key>(descriptor: &KeyDescriptor<K>, bytes: &[u8]) -> bool {
        bytes.len() == descriptor.count * K::BYTES
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

/// Rows of keys that are compared together.
const ROWS: usize = 4;

each_isa! {
    /// How many of the keys in `bytes` are less than `key`. Compares whole rows instead of searching: what a binary
    /// search waits for, one comparison after the other, takes longer for so few.
    fn count_less_bytes<K: Key>(bytes: &[u8], key: K) -> usize = body, proof;
}

#[inline(always)]
fn body<P: HasRows, K: Word>(proof: P, bytes: &[u8], key: K) -> usize {
    let row_bytes = LANES * K::BYTES;
    let chunks = bytes.chunks_exact(ROWS * row_bytes);
    let rest = chunks.remainder();
    let before = chunks.clone().filter(|chunk| K::read_word(&chunk[chunk.len() - K::BYTES..]) < key).count();
    let sought = proof.row([key; LANES]);
    let less_in =
        |rows: &[u8]| -> usize { rows.chunks_exact(row_bytes).map(|row| proof.read(row).first_not_less(sought)).sum() };
    let within = match bytes.get(before * ROWS * row_bytes..).unwrap_or_default().split_at_checked(ROWS * row_bytes) {
        Some((chunk, _)) => less_in(chunk),
        None => {
            let keys = rest[rest.len() / row_bytes * row_bytes..].chunks_exact(K::BYTES);
            less_in(rest) + keys.filter(|bytes| K::read_word(bytes) < key).count()
        }
    };
    before * ROWS * LANES + within
}
