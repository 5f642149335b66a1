//! The loops over plain values that kernels are measured against: as wide as the machine's registers, with sums in
//! several of them, so that nothing but the memory holds them up.

/// A number that plain loops run over.
pub trait Plain: Copy + Ord + Into<u64> + Send + Sync + 'static {
    /// The sum of all.
    fn sum(values: &[Self]) -> u64;

    /// Writes one bit for each value to `words`: it is less than the constant. `values` are a multiple of 64.
    fn less(values: &[Self], constant: Self, words: &mut [u64]);
}

macro_rules! plain {
    ($type:ty, $sum:ident, $less:ident) => {
        impl Plain for $type {
            fn sum(values: &[Self]) -> u64 {
                #[cfg(target_arch = "x86_64")]
                if is_x86_feature_detected!("avx512f") {
                    // SAFETY: the machine has the one set of instructions that the function is compiled for.
                    #[expect(unsafe_code, reason = "the loop that ours is measured against")]
                    return unsafe { avx512::$sum(values) };
                }
                values.iter().fold(0, |sum, &value| sum.wrapping_add(value.into()))
            }

            fn less(values: &[Self], constant: Self, words: &mut [u64]) {
                #[cfg(target_arch = "x86_64")]
                if is_x86_feature_detected!("avx512f") {
                    // SAFETY: as above.
                    #[expect(unsafe_code, reason = "the loop that ours is measured against")]
                    return unsafe { avx512::$less(values, constant, words) };
                }
                for (values, word) in values.as_chunks::<64>().0.iter().zip(words) {
                    let bit = |(index, &value): (usize, &Self)| u64::from(value < constant) << index;
                    *word = values.iter().enumerate().map(bit).sum();
                }
            }
        }
    };
}

plain!(u32, sum_words, less_words);
plain!(u64, sum_doubles, less_doubles);

#[cfg(target_arch = "x86_64")]
mod avx512 {
    use bytemuck::cast;
    use std::arch::x86_64::*;

    /// Registers that sums are gathered in.
    const SUMS: usize = 8;

    #[target_feature(enable = "avx512f")]
    pub(super) fn sum_words(values: &[u32]) -> u64 {
        let mut sums = [_mm512_setzero_si512(); SUMS];
        let (chunks, rest) = values.as_chunks::<{ 8 * SUMS }>();
        for chunk in chunks {
            for (sum, eight) in sums.iter_mut().zip(chunk.as_chunks::<8>().0) {
                *sum = _mm512_add_epi64(*sum, _mm512_cvtepu32_epi64(cast(*eight)));
            }
        }
        total(sums, rest.iter().map(|&value| value.into()))
    }

    #[target_feature(enable = "avx512f")]
    pub(super) fn sum_doubles(values: &[u64]) -> u64 {
        let mut sums = [_mm512_setzero_si512(); SUMS];
        let (chunks, rest) = values.as_chunks::<{ 8 * SUMS }>();
        for chunk in chunks {
            for (sum, eight) in sums.iter_mut().zip(chunk.as_chunks::<8>().0) {
                *sum = _mm512_add_epi64(*sum, cast(*eight));
            }
        }
        total(sums, rest.iter().copied())
    }

    fn total(sums: [__m512i; SUMS], rest: impl Iterator<Item = u64>) -> u64 {
        let sums: [[u64; 8]; SUMS] = sums.map(cast);
        sums.iter().flatten().copied().chain(rest).fold(0, u64::wrapping_add)
    }

    #[target_feature(enable = "avx512f")]
    pub(super) fn less_words(values: &[u32], constant: u32, words: &mut [u64]) {
        let constant = _mm512_set1_epi32(constant as i32);
        for (values, word) in values.as_chunks::<64>().0.iter().zip(words) {
            let mut masks = [0u16; 4];
            for (mask, sixteen) in masks.iter_mut().zip(values.as_chunks::<16>().0) {
                *mask = _mm512_cmplt_epu32_mask(cast(*sixteen), constant);
            }
            *word = masks.iter().rev().fold(0, |word, &mask| word << 16 | u64::from(mask));
        }
    }

    #[target_feature(enable = "avx512f")]
    pub(super) fn less_doubles(values: &[u64], constant: u64, words: &mut [u64]) {
        let constant = _mm512_set1_epi64(constant as i64);
        for (values, word) in values.as_chunks::<64>().0.iter().zip(words) {
            let mut masks = [0u8; 8];
            for (mask, eight) in masks.iter_mut().zip(values.as_chunks::<8>().0) {
                *mask = _mm512_cmplt_epu64_mask(cast(*eight), constant);
            }
            *word = u64::from_le_bytes(masks);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Plain;
    use crate::random::Random;

    #[test]
    fn wide_loops_agree_with_narrow_ones() {
        let mut random = Random::new(3);
        let doubles: Vec<u64> = (0..64 * 9).map(|_| random.of_width(40)).collect();
        let words: Vec<u32> = doubles.iter().map(|&value| value as u32).collect();
        assert_eq!(u64::sum(&doubles), doubles.iter().sum::<u64>());
        assert_eq!(u32::sum(&words[1..]), words[1..].iter().map(|&value| u64::from(value)).sum::<u64>());
        let (mut of_doubles, mut of_words) = ([0; 9], [0; 9]);
        u64::less(&doubles, 1 << 38, &mut of_doubles);
        u32::less(&words, 1 << 30, &mut of_words);
        for index in 0..doubles.len() {
            assert_eq!(of_doubles[index / 64] >> (index % 64) & 1 == 1, doubles[index] < 1 << 38);
            assert_eq!(of_words[index / 64] >> (index % 64) & 1 == 1, words[index] < 1 << 30);
        }
    }
}
