//! `masked_vbyte`: the bytes of [`super::vbyte`], read by SIMD (section 2.3).

use super::block::{KeyBlock, KeyDescriptor};
use super::block_mut::KeyChange;
use super::coding::{Coding, Keys};
use super::key::Key;
use super::vbyte::Vbyte;

/// See the module.
pub(super) struct MaskedVbyte;

impl Coding for MaskedVbyte {
    const IS_DELETE_STABLE: bool = true;

    fn size<K: Key>(keys: &[K]) -> usize {
        Vbyte::size(keys)
    }

    fn write<K: Key>(keys: &[K], out: &mut [u8]) {
        Vbyte::write(keys, out);
    }

    #[inline]
    fn fits<K: Key>(descriptor: &KeyDescriptor<K>, bytes: &[u8]) -> bool {
        Vbyte::fits(descriptor, bytes)
    }

    fn decode<K: Key>(block: &KeyBlock<'_, K>, out: &mut Keys<K>) {
        Vbyte::decode(block, out);
    }

    fn select<K: Key>(block: &KeyBlock<'_, K>, index: usize) -> K {
        Vbyte::select(block, index)
    }

    fn lower_bound<K: Key>(block: &KeyBlock<'_, K>, key: K) -> (usize, K) {
        Vbyte::lower_bound(block, key)
    }

    fn append<K: Key>(descriptor: &mut KeyDescriptor<K>, room: &mut [u8], key: K) -> Option<KeyChange> {
        Vbyte::append(descriptor, room, key)
    }

    fn insert<K: Key>(descriptor: &mut KeyDescriptor<K>, room: &mut [u8], key: K) -> Option<KeyChange> {
        Vbyte::insert(descriptor, room, key)
    }

    fn delete<K: Key>(descriptor: &mut KeyDescriptor<K>, room: &mut [u8], index: usize) -> Option<KeyChange> {
        Vbyte::delete(descriptor, room, index)
    }
}
