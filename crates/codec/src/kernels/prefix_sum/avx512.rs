//! In registers of 512 bits.

use super::scalar;
use crate::fixed::Integer;
use std::arch::x86_64::*;

/// Sixteen at a time. `T` has 32 bits.
#[target_feature(enable = "avx512f")]
pub(super) fn of_32_bits<T: Integer>(before: T, steps: &mut [T]) {
    assert_eq!(size_of::<T>(), 4);
    let (groups, rest) = steps.as_chunks_mut::<16>();
    let zero = _mm512_setzero_si512();
    let last = _mm512_set1_epi32(15);
    let mut carry = _mm512_set1_epi32(before.bits() as i32);
    for group in &mut *groups {
        let place: *mut __m512i = group.as_mut_ptr().cast();
        // SAFETY: a group has 16 numbers of 4 bytes; loads need no alignment.
        #[expect(unsafe_code, reason = "a load takes a pointer")]
        let mut sums = unsafe { _mm512_loadu_si512(place) };
        sums = _mm512_add_epi32(sums, _mm512_alignr_epi32::<15>(sums, zero));
        sums = _mm512_add_epi32(sums, _mm512_alignr_epi32::<14>(sums, zero));
        sums = _mm512_add_epi32(sums, _mm512_alignr_epi32::<12>(sums, zero));
        sums = _mm512_add_epi32(sums, _mm512_alignr_epi32::<8>(sums, zero));
        // SAFETY: as above; `place` comes from a mutable borrow.
        #[expect(unsafe_code, reason = "a store takes a pointer")]
        unsafe {
            _mm512_storeu_si512(place, _mm512_add_epi32(sums, carry));
        }
        carry = _mm512_add_epi32(carry, _mm512_permutexvar_epi32(last, sums));
    }
    let before = groups.last().map_or(before, |group| group[15]);
    scalar::prefix_sum(before, rest);
}

/// Eight at a time. `T` has 64 bits.
#[target_feature(enable = "avx512f")]
pub(super) fn of_64_bits<T: Integer>(before: T, steps: &mut [T]) {
    assert_eq!(size_of::<T>(), 8);
    let (groups, rest) = steps.as_chunks_mut::<8>();
    let zero = _mm512_setzero_si512();
    let last = _mm512_set1_epi64(7);
    let mut carry = _mm512_set1_epi64(before.bits() as i64);
    for group in &mut *groups {
        let place: *mut __m512i = group.as_mut_ptr().cast();
        // SAFETY: a group has 8 numbers of 8 bytes; loads need no alignment.
        #[expect(unsafe_code, reason = "a load takes a pointer")]
        let mut sums = unsafe { _mm512_loadu_si512(place) };
        sums = _mm512_add_epi64(sums, _mm512_alignr_epi64::<7>(sums, zero));
        sums = _mm512_add_epi64(sums, _mm512_alignr_epi64::<6>(sums, zero));
        sums = _mm512_add_epi64(sums, _mm512_alignr_epi64::<4>(sums, zero));
        // SAFETY: as above; `place` comes from a mutable borrow.
        #[expect(unsafe_code, reason = "a store takes a pointer")]
        unsafe {
            _mm512_storeu_si512(place, _mm512_add_epi64(sums, carry));
        }
        carry = _mm512_add_epi64(carry, _mm512_permutexvar_epi64(last, sums));
    }
    let before = groups.last().map_or(before, |group| group[7]);
    scalar::prefix_sum(before, rest);
}
