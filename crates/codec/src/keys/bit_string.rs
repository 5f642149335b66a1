//! `for`: the distance of each key from the first, as one string of bits at the width of the greatest, the lowest bit first
//! (section 2.5; Goldstein, Ramakrishnan and Shaft, ICDE 1998).
//!
//! The block is the string and nothing else: the width is that of the last key's distance, which the descriptor has. A key is
//! had by one read at its bit. To look for one, each 16th key is compared, then those after the last that is less:
//! twice 16 reads that do not wait for each other, where a binary search has eight that do. Delete-stable: without a key
//! there are fewer distances, and none is greater.
//!
//! The paper packs 32 numbers at a time; as a string, a block of any count has no more bits than it needs.

use super::block::{KeyBlock, KeyDescriptor};
use super::block_mut::KeyChange;
use super::coding::{Coding, Keys, check_len};
use super::key::{Key, Word};
use super::simd_for::width;
use crate::Result;

/// See the module.
pub(super) struct For;

impl Coding for For {
    const IS_DELETE_STABLE: bool = true;

    fn size<K: Key>(keys: &[K]) -> usize {
        string_bytes(keys.len(), keys[keys.len() - 1].sub(keys[0]).width())
    }

    fn write<K: Key>(keys: &[K], out: &mut [u8]) {
        let (first, last) = (keys[0], keys[keys.len() - 1]);
        let width = last.sub(first).width();
        if width == 0 {
            return;
        }
        let mask = K::MAX >> (K::BITS - width);
        let (mut bits, mut filled, mut at) = (0u128, 0, 0);
        for key in keys {
            bits |= u128::from((key.sub(first) & mask).to_delta()) << filled;
            filled += width;
            if filled >= u64::BITS {
                (bits as u64).write_word(&mut out[at..]);
                (bits, filled, at) = (bits >> u64::BITS, filled - u64::BITS, at + 8);
            }
        }
        let rest = &mut out[at..];
        rest.copy_from_slice(&bits.to_le_bytes()[..rest.len()]);
    }

    fn check<K: Key>(block: &KeyBlock<'_, K>) -> Result<()> {
        check_len(block, string_bytes(block.descriptor.count, width(&block.descriptor)))
    }

    fn decode<K: Key>(block: &KeyBlock<'_, K>, out: &mut Keys<K>) {
        let KeyDescriptor { first, count, .. } = block.descriptor;
        let string = BitString::new(block.bytes, width(&block.descriptor));
        for (index, out) in out[..count].iter_mut().enumerate() {
            *out = first.add(string.number(index));
        }
    }

    fn select<K: Key>(block: &KeyBlock<'_, K>, index: usize) -> K {
        block.descriptor.first.add(BitString::new(block.bytes, width(&block.descriptor)).number(index))
    }

    fn lower_bound<K: Key>(block: &KeyBlock<'_, K>, key: K) -> (usize, K) {
        const STRIDE: usize = 16;
        let KeyDescriptor { first, count, .. } = block.descriptor;
        let (string, distance) = (BitString::new(block.bytes, width(&block.descriptor)), key.sub(first));
        let is_less = |index: usize| usize::from(string.number::<K>(index) < distance);
        let strides = (STRIDE..count).step_by(STRIDE).map(is_less).sum::<usize>();
        // The first key of the stride is less: the first of all is, or it was compared.
        let from = strides * STRIDE + 1;
        let index = from + (from..count.min(from + STRIDE - 1)).map(is_less).sum::<usize>();
        let index = index.min(count - 1);
        (index, first.add(string.number(index)))
    }

    fn append<K: Key>(descriptor: &mut KeyDescriptor<K>, room: &mut [u8], key: K) -> Option<KeyChange> {
        let KeyDescriptor { first, count, byte_len, .. } = *descriptor;
        let width = width(descriptor);
        if key.sub(first).width() > width {
            return None;
        }
        let needed = string_bytes(count + 1, width);
        let Some(out) = room.get_mut(..needed) else { return Some(KeyChange::NoRoom(needed)) };
        out[byte_len..].fill(0);
        let bit = count * width as usize;
        let bits = u128::from(key.sub(first).to_delta()) << (bit % 8);
        for (out, byte) in out[bit / 8..].iter_mut().zip(bits.to_le_bytes()) {
            *out |= byte;
        }
        (descriptor.last, descriptor.count, descriptor.byte_len) = (key, count + 1, needed);
        Some(KeyChange::Done(count))
    }
}

/// Bytes of so many numbers.
#[inline]
fn string_bytes(count: usize, width: u32) -> usize {
    (count * width as usize).div_ceil(8)
}

/// Numbers of one width, bit behind bit.
#[derive(Clone, Copy)]
struct BitString<'a> {
    bytes: &'a [u8],
    width: u32,
    mask: u64,
}

impl<'a> BitString<'a> {
    #[inline]
    fn new(bytes: &'a [u8], width: u32) -> Self {
        let mask = if width == 0 { 0 } else { u64::MAX >> (u64::BITS - width) };
        BitString { bytes, width, mask }
    }

    /// The number at `index`, of which the bytes have all bits. The word that is read begins at its first byte, or so much
    /// earlier that it ends with the string.
    #[inline]
    fn number<K: Word>(&self, index: usize) -> K {
        /// A number of so many bits lies within eight bytes wherever it begins.
        const WIDTH_IN_WORD: u32 = u64::BITS - 7;
        let bit = index * self.width as usize;
        let number = if self.bytes.len() >= 8 && self.width <= WIDTH_IN_WORD {
            let at = (bit / 8).min(self.bytes.len() - 8);
            u64::read_word(&self.bytes[at..]) >> (bit - 8 * at)
        } else {
            let mut bytes = [0; 16];
            let rest = self.bytes.get(bit / 8..).unwrap_or_default();
            let len = rest.len().min(bytes.len());
            bytes[..len].copy_from_slice(&rest[..len]);
            (u128::from_le_bytes(bytes) >> (bit % 8)) as u64
        };
        K::from_delta(number & self.mask)
    }
}
