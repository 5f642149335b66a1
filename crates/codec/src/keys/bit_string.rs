//! `for`: the distance of each key from the first, as one string of bits at the width of the greatest, the lowest bit
//! first (section 2.5; Goldstein, Ramakrishnan and Shaft, ICDE 1998).
//!
//! The block is the string and nothing else: the width is that of the last key's distance, which the descriptor has. A
//! key is had by one read at its bit. To look for one, each 64th key is compared, then each 16th, each 4th, each: four
//! times three reads that do not wait for each other, where a binary search has eight that do. Delete-stable: without a
//! key there are fewer distances, and none is greater.
//!
//! The paper packs 32 numbers at a time; as a string, a block of any count has no more bits than it needs.

use super::block::{KeyBlock, KeyDescriptor};
use super::block_mut::KeyChange;
use super::coding::{Coding, KEYS_MAX, Keys};
use super::key::{Key, Word};
use super::simd_for::width;
use crate::isa::each_isa;

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

    #[inline]
    fn fits<K: Key>(descriptor: &KeyDescriptor<K>, bytes: &[u8]) -> bool {
        bytes.len() == string_bytes(descriptor.count, width(descriptor))
    }

    fn decode<K: Key>(block: &KeyBlock<'_, K>, out: &mut Keys<K>) {
        let KeyDescriptor { first, count, .. } = block.descriptor;
        let string = BitString::new(block.bytes, width(&block.descriptor));
        let out = out[..count].iter_mut().enumerate();
        match string.as_words() {
            Some(words) => out.for_each(|(index, out)| *out = first.add(words.number(index))),
            None => out.for_each(|(index, out)| *out = first.add(string.number(index))),
        }
    }

    fn select<K: Key>(block: &KeyBlock<'_, K>, index: usize) -> K {
        let string = BitString::new(block.bytes, width(&block.descriptor));
        block.descriptor.first.add(string.as_words().map_or_else(|| string.number(index), |words| words.number(index)))
    }

    fn lower_bound<K: Key>(block: &KeyBlock<'_, K>, key: K) -> (usize, K) {
        let KeyDescriptor { first, count, .. } = block.descriptor;
        let (index, distance) = find(block.bytes, width(&block.descriptor), count, key.sub(first));
        (index, first.add(distance))
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

each_isa! {
    /// The first of `count` numbers that is not less than `sought`, and its index; the first is, and the last is not.
    fn find<K: Key>(bytes: &[u8], width: u32, count: usize, sought: K) -> (usize, K) = find_body;
}

#[inline(always)]
fn find_body<K: Word>(bytes: &[u8], width: u32, count: usize, sought: K) -> (usize, K) {
    let string = BitString::new(bytes, width);
    // Where the last is not less, neither is what is sought behind it.
    let last = count - 1;
    let Some(words) = string.as_words() else {
        let index = (last_less(1, |index| string.number::<K>(index.min(last)) < sought) + 1).min(last);
        return (index, string.number(index));
    };
    let width = width as usize;
    let before = match count {
        KEYS_MAX => last_less(width, |bit| words.is_less(bit, sought)),
        _ => last_less(width, |bit| words.is_less(bit.min(last * width), sought)),
    };
    let index = (before + 1).min(last);
    (index, words.number(index))
}

/// The last index below [`KEYS_MAX`] of which `is_less` holds, as it does for the first; it is asked for indexes times
/// `width`. Asks for each 64th, then for each 16th from the last of them that is less, and so on. (Two steps by eight and
/// one by four wait less often, but take more instructions: 5 % slower where look-ups overlap.)
#[inline(always)]
fn last_less(width: usize, is_less: impl Fn(usize) -> bool) -> usize {
    const { assert!(KEYS_MAX == 4 * 4 * 4 * 4) };
    let step = |(from, from_bit): (usize, usize), by: usize, times: usize| {
        let less: usize = (1..times).map(|time| usize::from(is_less(from_bit + time * (by * width)))).sum();
        (from + less * by, from_bit + less * (by * width))
    };
    step(step(step(step((0, 0), 64, 4), 16, 4), 4, 4), 1, 4).0
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

    /// The same string, if it has a word, and words have its numbers wherever they begin.
    #[inline]
    fn as_words(self) -> Option<Words<'a>> {
        const WIDTH_MAX: u32 = u64::BITS - 7;
        let last_at = self.bytes.len().checked_sub(size_of::<u64>())?;
        (self.width <= WIDTH_MAX).then_some(Words { string: self, last_at })
    }

    /// The number at `index`, of which the bytes have all bits.
    #[inline]
    fn number<K: Word>(&self, index: usize) -> K {
        let bit = index * self.width as usize;
        let mut bytes = [0; 16];
        let rest = self.bytes.get(bit / 8..).unwrap_or_default();
        let len = rest.len().min(bytes.len());
        bytes[..len].copy_from_slice(&rest[..len]);
        K::from_delta((u128::from_le_bytes(bytes) >> (bit % 8)) as u64 & self.mask)
    }
}

/// A string whose numbers are read by words.
#[derive(Clone, Copy)]
struct Words<'a> {
    string: BitString<'a>,
    /// Where the last whole word begins.
    last_at: usize,
}

impl Words<'_> {
    /// As [`BitString::number`]. The word that is read begins at the number's first byte, or so much earlier that it
    /// ends with the string.
    #[inline(always)]
    fn number<K: Word>(&self, index: usize) -> K {
        let bit = index * self.string.width as usize;
        let at = (bit / 8).min(self.last_at);
        K::from_delta(u64::read_word(&self.string.bytes[at..]) >> (bit - 8 * at) & self.string.mask)
    }

    /// Whether the number that begins at `bit` is less. Compares at the upper end of a word, where what lies below the
    /// number makes no difference.
    #[inline(always)]
    fn is_less<K: Word>(&self, bit: usize, sought: K) -> bool {
        let above = u64::BITS - self.string.width;
        let at = (bit / 8).min(self.last_at);
        let word = self.string.bytes.get(at..at + size_of::<u64>()).map_or(0, u64::read_word);
        word << (above - (bit - 8 * at) as u32) < sought.to_delta() << above
    }
}
