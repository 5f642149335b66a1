//! In registers of 128 bits, with the wider ones to widen what they have.

use super::super::key::Word;
use super::super::vbyte;
use super::table::{FOUR, MASK_BITS, SHUFFLES, SIX, STEPS, TWO};
use std::arch::x86_64::*;

/// Differences that one step may write: the sixteen of one byte each.
const AT_ONCE: usize = 16;

/// Bytes whose continuation bits are gathered together, so that a step does not wait for the bytes of the one before.
const WINDOW_BYTES: usize = 64;

/// As [`super::unpack`].
#[target_feature(enable = "avx2")]
pub(super) fn unpack<K: Word>(bytes: &[u8], out: &mut [K]) {
    let (mut at, mut count) = (0, 0);
    while count < out.len() {
        let rest = bytes.get(at..).unwrap_or_default();
        // Behind the end nothing ends.
        let mut padded = [0x80; WINDOW_BYTES];
        let window = rest.first_chunk::<WINDOW_BYTES>().unwrap_or_else(|| {
            padded[..rest.len()].copy_from_slice(rest);
            &padded
        });
        let (mask, mut used) = (continuation_bits(window), 0);
        while count < out.len()
            && let Some(bytes) = window.get(used..).and_then(|bytes| bytes.first_chunk())
        {
            let out = &mut out[count..];
            let left = out.len();
            let step = match out.first_chunk_mut() {
                Some(out) => unpack_some(bytes, mask >> used, out),
                None => unpack_last(bytes, mask >> used, out),
            };
            let Some((byte_count, number_count)) = step else { break };
            (used, count) = (used + byte_count, count + number_count.min(left));
        }
        at += used;
        if used == 0 {
            (out[count], at) = vbyte::get(bytes, at);
            count += 1;
        }
    }
}

/// [`unpack_some`] where `out` has space for fewer.
#[cold]
#[target_feature(enable = "avx2")]
fn unpack_last<K: Word>(bytes: &[u8; 16], mask: u64, out: &mut [K]) -> Option<(usize, usize)> {
    let mut last = [K::default(); AT_ONCE];
    let (byte_count, number_count) = unpack_some(bytes, mask, &mut last)?;
    for (out, number) in out.iter_mut().zip(&last[..number_count]) {
        *out = *number;
    }
    Some((byte_count, number_count))
}

/// The high bit of each byte, that of the first the lowest.
#[inline]
#[target_feature(enable = "avx2")]
fn continuation_bits(window: &[u8; WINDOW_BYTES]) -> u64 {
    // SAFETY: both halves of 32 bytes lie in the array; loads need no alignment.
    #[expect(unsafe_code, reason = "a load takes a pointer")]
    let half = |at: usize| unsafe { _mm256_loadu_si256(window.as_ptr().add(at).cast()) };
    let bits = |half: __m256i| u64::from(_mm256_movemask_epi8(half) as u32);
    bits(half(0)) | bits(half(32)) << 32
}

/// Unpacks the first differences, of which `mask` has the continuation bits: so many bytes, so many numbers. `None`
/// where the first two have more than five bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn unpack_some<K: Word>(bytes: &[u8; 16], mask: u64, out: &mut [K; AT_ONCE]) -> Option<(usize, usize)> {
    let out = out.as_mut_ptr();
    // SAFETY: the array has 16 bytes; loads need no alignment.
    #[expect(unsafe_code, reason = "a load takes a pointer")]
    let bytes = unsafe { _mm_loadu_si128(bytes.as_ptr().cast()) };
    if mask & 0xffff == 0 {
        // SAFETY: `out` has 16 numbers.
        #[expect(unsafe_code, reason = "a store takes a pointer")]
        unsafe {
            store_8(_mm_cvtepu8_epi16(bytes), out);
            store_8(_mm_cvtepu8_epi16(_mm_unpackhi_epi64(bytes, bytes)), out.add(8));
        }
        return Some((16, 16));
    }
    let step = STEPS[mask as usize % (1 << MASK_BITS)];
    // SAFETY: a shuffle has 16 bytes; loads need no alignment.
    #[expect(unsafe_code, reason = "a load takes a pointer")]
    let shuffle = unsafe { _mm_loadu_si128(SHUFFLES[usize::from(step.shuffle)].as_ptr().cast()) };
    let lanes = _mm_shuffle_epi8(bytes, shuffle);
    // SAFETY: `out` has 16 numbers, and no more than 8 are written.
    #[expect(unsafe_code, reason = "a store takes a pointer")]
    let count = unsafe {
        match step.shuffle {
            0..64 if step.byte_count == 0 => return None,
            0..64 => {
                let low = _mm_and_si128(lanes, _mm_set1_epi16(0x7f));
                let high = _mm_srli_epi16::<1>(_mm_and_si128(lanes, _mm_set1_epi16(0x7f00)));
                store_8(_mm_or_si128(low, high), out);
                SIX.count
            }
            64..145 => {
                let part = |mask: i32| _mm_and_si128(lanes, _mm_set1_epi32(mask));
                let low = _mm_or_si128(part(0x7f), _mm_srli_epi32::<1>(part(0x7f00)));
                store_4(_mm_or_si128(low, _mm_srli_epi32::<2>(part(0x7f_0000))), out);
                FOUR.count
            }
            _ => {
                let part = |byte: i64| _mm_and_si128(lanes, _mm_set1_epi64x(0x7f << (8 * byte)));
                let low = _mm_or_si128(part(0), _mm_srli_epi64::<1>(part(1)));
                let middle = _mm_or_si128(_mm_srli_epi64::<2>(part(2)), _mm_srli_epi64::<3>(part(3)));
                store_2(_mm_or_si128(_mm_or_si128(low, middle), _mm_srli_epi64::<4>(part(4))), out);
                TWO.count
            }
        }
    };
    Some((step.byte_count.into(), count))
}

/// Eight numbers of 16 bits.
///
/// # Safety
/// The set is there, and `out` has eight numbers.
#[inline]
#[target_feature(enable = "avx2")]
#[expect(unsafe_code, reason = "a store takes a pointer")]
unsafe fn store_8<K: Word>(numbers: __m128i, out: *mut K) {
    // SAFETY: eight numbers are one register or two; stores need no alignment.
    unsafe {
        if K::BYTES == 4 {
            _mm256_storeu_si256(out.cast(), _mm256_cvtepu16_epi32(numbers));
        } else {
            _mm256_storeu_si256(out.cast(), _mm256_cvtepu16_epi64(numbers));
            let high = _mm_unpackhi_epi64(numbers, numbers);
            _mm256_storeu_si256(out.add(4).cast(), _mm256_cvtepu16_epi64(high));
        }
    }
}

/// Four numbers of 32 bits.
///
/// # Safety
/// The set is there, and `out` has four numbers.
#[inline]
#[target_feature(enable = "avx2")]
#[expect(unsafe_code, reason = "a store takes a pointer")]
unsafe fn store_4<K: Word>(numbers: __m128i, out: *mut K) {
    // SAFETY: four numbers are half a register or one; stores need no alignment.
    unsafe {
        match K::BYTES {
            4 => _mm_storeu_si128(out.cast(), numbers),
            _ => _mm256_storeu_si256(out.cast(), _mm256_cvtepu32_epi64(numbers)),
        }
    }
}

/// Two numbers of 64 bits, cut where they have more than a key.
///
/// # Safety
/// The set is there, and `out` has two numbers.
#[inline]
#[target_feature(enable = "avx2")]
#[expect(unsafe_code, reason = "a store takes a pointer")]
unsafe fn store_2<K: Word>(numbers: __m128i, out: *mut K) {
    // SAFETY: two numbers are half a register or one; stores need no alignment.
    unsafe {
        match K::BYTES {
            4 => _mm_storel_epi64(out.cast(), _mm_shuffle_epi32::<0b10_00_10_00>(numbers)),
            _ => _mm_storeu_si128(out.cast(), numbers),
        }
    }
}
