//! `masked_vbyte`: the bytes of [`vbyte`], read by SIMD (section 2.3; Plaisance, Kurz and Lemire, *Vectorized VByte
//! decoding*, 2015).
//!
//! The high bits of 16 bytes, gathered in a mask, say where differences end. A table has, for each mask, the shuffle
//! that brings the bytes of the next two to six differences into lanes of their own, where two to five shifts take out
//! the high bits. So no branch depends on a length. The differences are summed up afterwards, in registers too; the
//! paper does both at once.
//!
//! To look for one key, the paper decodes all before it. With AVX-512 we only add them up ([`sums`]): 64 bytes at a
//! time, the bytes that are first of a difference, second, and so on, each kind by one instruction.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod sums;
#[cfg(target_arch = "x86_64")]
mod table;

use super::block::{KeyBlock, KeyDescriptor};
use super::block_mut::KeyChange;
use super::coding::{Coding, Keys};
use super::count_less::count_less;
use super::key::Key;
use super::vbyte::{self, Place, Vbyte};
#[cfg(target_arch = "x86_64")]
use crate::isa::{Isa, isa};
use crate::kernels::prefix_sum;

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
        let out = &mut out[..block.descriptor.count];
        unpack(block.bytes, &mut out[1..]);
        prefix_sum(block.descriptor.first, out);
    }

    fn select<K: Key>(block: &KeyBlock<'_, K>, index: usize) -> K {
        let place = walk_to_index(block.bytes, block.descriptor.first, index);
        place.before.add(place.step)
    }

    fn lower_bound<K: Key>(block: &KeyBlock<'_, K>, key: K) -> (usize, K) {
        if key <= block.descriptor.first {
            return (0, block.descriptor.first);
        }
        let (index, found, _) = find(block.bytes, &block.descriptor, key);
        (index, found)
    }

    fn append<K: Key>(descriptor: &mut KeyDescriptor<K>, room: &mut [u8], key: K) -> Option<KeyChange> {
        Vbyte::append(descriptor, room, key)
    }

    fn insert<K: Key>(descriptor: &mut KeyDescriptor<K>, room: &mut [u8], key: K) -> Option<KeyChange> {
        Some(vbyte::insert(descriptor, room, key, |bytes, descriptor, key| {
            let (index, _, start) = find(bytes, descriptor, key);
            walk(bytes, start, index)
        }))
    }

    fn delete<K: Key>(descriptor: &mut KeyDescriptor<K>, room: &mut [u8], index: usize) -> Option<KeyChange> {
        Some(vbyte::delete(descriptor, room, index, walk_to_index))
    }
}

/// Differences that end in the first bytes.
struct Taken {
    count: usize,
    byte_count: usize,
    sum: u64,
}

/// Bytes that are looked at together: those of a register.
const CHUNK_BYTES: usize = 64;

/// The first key that is not less than `key`, which is greater than the first, with its index; and a place not far
/// before.
fn find<K: Key>(bytes: &[u8], descriptor: &KeyDescriptor<K>, key: K) -> (usize, K, Place<K>) {
    let mut start = Place { index: 1, before: descriptor.first, step: K::default(), at: 0, end: 0 };
    let count = loop {
        let Taken { count, byte_count, sum } = take(bytes.get(start.at..).unwrap_or_default(), CHUNK_BYTES);
        let (index, before) = (start.index + count, start.before.add(K::from_delta(sum)));
        if count == 0 || index >= descriptor.count || before >= key {
            break count.clamp(1, descriptor.count - start.index);
        }
        (start.index, start.before, start.at) = (index, before, start.at + byte_count);
    };
    let mut keys = [K::default(); CHUNK_BYTES + 1];
    let keys = &mut keys[..=count];
    unpack(bytes.get(start.at..).unwrap_or_default(), &mut keys[1..]);
    prefix_sum(start.before, keys);
    let within = count_less(keys, key).clamp(1, count);
    (start.index - 1 + within, keys[within], start)
}

/// The place of the key at `index`, which is at least 1.
fn walk_to_index<K: Key>(bytes: &[u8], first: K, index: usize) -> Place<K> {
    walk(bytes, Place { index: 1, before: first, step: K::default(), at: 0, end: 0 }, index)
}

/// The place of the key at `index`, from one that is not behind it.
fn walk<K: Key>(bytes: &[u8], mut start: Place<K>, index: usize) -> Place<K> {
    while start.index < index {
        let Taken { count, byte_count, sum } = take(bytes.get(start.at..).unwrap_or_default(), index - start.index);
        if count == 0 {
            break;
        }
        start.index += count;
        (start.before, start.at) = (start.before.add(K::from_delta(sum)), start.at + byte_count);
    }
    let (step, end) = vbyte::get(bytes, start.at);
    Place { index, step, end, ..start }
}

/// The first differences, `most` of them at most and one at least, that end in the first [`CHUNK_BYTES`].
fn take(bytes: &[u8], most: usize) -> Taken {
    #[cfg(target_arch = "x86_64")]
    if isa() == Isa::Avx512 {
        // SAFETY: `isa` gives only sets of which `Isa::is_available` found every feature.
        #[expect(unsafe_code, reason = "the one way to call a form that was compiled for more")]
        return unsafe { sums::take(bytes, most) };
    }
    take_each(bytes, most)
}

/// The reference of [`take`].
fn take_each(bytes: &[u8], most: usize) -> Taken {
    let bytes = &bytes[..bytes.len().min(CHUNK_BYTES)];
    let mut taken = Taken { count: 0, byte_count: 0, sum: 0 };
    while taken.count < most && bytes[taken.byte_count..].iter().any(|byte| byte & 0x80 == 0) {
        let (step, end) = vbyte::get::<u64>(bytes, taken.byte_count);
        taken = Taken { count: taken.count + 1, byte_count: end, sum: taken.sum.wrapping_add(step) };
    }
    taken
}

/// Writes as many differences as `out` has space for, zeros where there are no more.
fn unpack<K: Key>(bytes: &[u8], out: &mut [K]) {
    #[cfg(target_arch = "x86_64")]
    if isa() >= Isa::Avx2 {
        // SAFETY: `isa` gives only sets of which `Isa::is_available` found every feature.
        #[expect(unsafe_code, reason = "the one way to call a form that was compiled for more")]
        return unsafe { avx2::unpack(bytes, out) };
    }
    unpack_each(bytes, out);
}

/// The reference of [`unpack`].
fn unpack_each<K: Key>(bytes: &[u8], out: &mut [K]) {
    let mut at = 0;
    for out in out {
        (*out, at) = vbyte::get(bytes, at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::forms;
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    /// Differences of every mix of lengths, cut anywhere.
    #[test]
    fn every_form_takes_and_unpacks_alike() {
        let mut random = SmallRng::seed_from_u64(3);
        for round in 0..2000 {
            let bits = random.random_range(1..=64);
            let mut bytes: Vec<u8> = Vec::new();
            for _ in 0..random.random_range(1..100) {
                let mut rest = random.random::<u64>() >> random.random_range(64 - bits..64);
                while rest >= 0x80 {
                    bytes.push(rest as u8 | 0x80);
                    rest >>= 7;
                }
                bytes.push(rest as u8);
            }
            let most = if round % 3 == 0 { CHUNK_BYTES } else { random.random_range(1..CHUNK_BYTES) };
            let expected = take_each(&bytes, most);
            let mut numbers = [(); 2].map(|()| vec![0u64; most + 3]);
            let mut cut = [(); 2].map(|()| vec![0u32; most + 3]);
            unpack_each(&bytes, &mut numbers[0]);
            unpack_each(&bytes, &mut cut[0]);
            forms(|isa| {
                let Taken { count, byte_count, sum } = take(&bytes, most);
                let what = format!("{isa}, {most} of {bytes:02x?}");
                assert_eq!((count, byte_count, sum), (expected.count, expected.byte_count, expected.sum), "{what}");
                unpack(&bytes, &mut numbers[1]);
                assert_eq!(numbers[0], numbers[1], "{what}");
                if bits <= 32 {
                    unpack(&bytes, &mut cut[1]);
                    assert_eq!(cut[0], cut[1], "{what}");
                }
            });
        }
    }
}
