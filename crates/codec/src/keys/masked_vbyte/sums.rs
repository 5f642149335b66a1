//! Sums of differences that are not unpacked, in registers of 512 bits.

use super::{CHUNK_BYTES, Taken};
use std::arch::x86_64::*;

/// Bytes of the longest difference.
const STEP_BYTES_MAX: u32 = 10;

/// As [`super::take`].
#[target_feature(enable = "avx512f,avx512bw,bmi1,bmi2,popcnt")]
pub(super) fn take(bytes: &[u8], most: usize) -> Taken {
    let there = match bytes.len() {
        len @ 0..CHUNK_BYTES => (1 << len) - 1,
        _ => u64::MAX,
    };
    // SAFETY: bytes that are not there are not read.
    #[expect(unsafe_code, reason = "a load takes a pointer")]
    let chunk = unsafe { _mm512_maskz_loadu_epi8(there, bytes.as_ptr().cast()) };
    let ends = !_mm512_movepi8_mask(chunk) & there;
    let count = (ends.count_ones() as usize).min(most);
    if count == 0 {
        return Taken { count, byte_count: 0, sum: 0 };
    }
    let last = _pdep_u64(1 << (count - 1), ends);
    let taken = last | (last - 1);
    let bits = _mm512_and_si512(chunk, _mm512_set1_epi8(0x7f));
    // Of the bytes that have so many before them in their difference, or more, those that have just so many are added
    // up.
    let (mut sums, mut with_so_many, mut before) = (_mm512_setzero_si512(), taken, 0);
    while with_so_many != 0 && before < STEP_BYTES_MAX {
        let with_more = (with_so_many & !ends & taken) << 1;
        let these = _mm512_maskz_mov_epi8(with_so_many & !with_more, bits);
        let sum = _mm512_sad_epu8(these, _mm512_setzero_si512());
        sums = _mm512_add_epi64(sums, _mm512_sll_epi64(sum, _mm_cvtsi32_si128(7 * before as i32)));
        (with_so_many, before) = (with_more, before + 1);
    }
    let sum = _mm512_reduce_add_epi64(sums) as u64;
    Taken { count, byte_count: 64 - last.leading_zeros() as usize, sum }
}
