//! In registers of 256 bits, which shift only within their halves: the sum of the lower half is added to the upper one.

use super::scalar;
use crate::fixed::Integer;
use std::arch::x86_64::*;

/// Eight at a time. `T` has 32 bits.
#[target_feature(enable = "avx2")]
pub(super) fn of_32_bits<T: Integer>(before: T, steps: &mut [T]) {
    assert_eq!(size_of::<T>(), 4);
    let (groups, rest) = steps.as_chunks_mut::<8>();
    let last = _mm256_set1_epi32(7);
    let mut carry = _mm256_set1_epi32(before.bits() as i32);
    for group in &mut *groups {
        let place: *mut __m256i = group.as_mut_ptr().cast();
        // SAFETY: a group has 8 numbers of 4 bytes; loads need no alignment.
        #[expect(unsafe_code, reason = "a load takes a pointer")]
        let mut sums = unsafe { _mm256_loadu_si256(place) };
        sums = _mm256_add_epi32(sums, _mm256_slli_si256::<4>(sums));
        sums = _mm256_add_epi32(sums, _mm256_slli_si256::<8>(sums));
        let lower = _mm256_shuffle_epi32::<0b11_11_11_11>(_mm256_permute2x128_si256::<0x08>(sums, sums));
        sums = _mm256_add_epi32(sums, lower);
        // SAFETY: as above; `place` comes from a mutable borrow.
        #[expect(unsafe_code, reason = "a store takes a pointer")]
        unsafe {
            _mm256_storeu_si256(place, _mm256_add_epi32(sums, carry));
        }
        carry = _mm256_add_epi32(carry, _mm256_permutevar8x32_epi32(sums, last));
    }
    let before = groups.last().map_or(before, |group| group[7]);
    scalar::prefix_sum(before, rest);
}

/// Four at a time. `T` has 64 bits.
#[target_feature(enable = "avx2")]
pub(super) fn of_64_bits<T: Integer>(before: T, steps: &mut [T]) {
    assert_eq!(size_of::<T>(), 8);
    let (groups, rest) = steps.as_chunks_mut::<4>();
    let mut carry = _mm256_set1_epi64x(before.bits() as i64);
    for group in &mut *groups {
        let place: *mut __m256i = group.as_mut_ptr().cast();
        // SAFETY: a group has 4 numbers of 8 bytes; loads need no alignment.
        #[expect(unsafe_code, reason = "a load takes a pointer")]
        let mut sums = unsafe { _mm256_loadu_si256(place) };
        sums = _mm256_add_epi64(sums, _mm256_slli_si256::<8>(sums));
        let lower = _mm256_permute4x64_epi64::<0b01_01_01_01>(sums);
        sums = _mm256_add_epi64(sums, _mm256_blend_epi32::<0b1111_0000>(_mm256_setzero_si256(), lower));
        // SAFETY: as above; `place` comes from a mutable borrow.
        #[expect(unsafe_code, reason = "a store takes a pointer")]
        unsafe {
            _mm256_storeu_si256(place, _mm256_add_epi64(sums, carry));
        }
        carry = _mm256_add_epi64(carry, _mm256_permute4x64_epi64::<0b11_11_11_11>(sums));
    }
    let before = groups.last().map_or(before, |group| group[3]);
    scalar::prefix_sum(before, rest);
}
