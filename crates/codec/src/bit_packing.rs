//! Whole vectors of 1024 small numbers, packed side by side in lanes so that plain loops vectorise.
//!
//! The numbers take `width` bits each in lanes of 8, 16, 32 or 64 bits, the narrowest that holds them. A row of 1024 / lane
//! bits consecutive numbers lies across the lanes, one per lane at the same bit of it, so unpacking a row is one shift and
//! one mask over 128 bytes, whatever the width:
//!
//! ```text
//!            lane 0     lane 1     lane 2  ...        (width 5 in lanes of 16 bits: 64 lanes, 16 rows)
//! word 0   |..2 1 0|  |..2 1 0|  |..2 1 0|           row 0 = numbers 0..64, row 1 = numbers 64..128, ...
//! word 1   |..5 4 3|  |..5 4 3|  |..5 4 3|           a number may continue in the same lane of the next word
//! ```
//!
//! FastLanes (Afroozeh and Boncz, VLDB 2023), with plain order of rows instead of its transposed one: that serves deltas, which
//! we undo by a running sum. A packed vector takes `128 * width` bytes.

use crate::VECTOR_LEN;

/// Bytes of one word of every lane.
pub(crate) const WORD_ROW_BYTES: usize = VECTOR_LEN / 8;

/// Numbers as wide as a lane: 8, 16, 32 or 64 bits.
pub(crate) trait Lane: Copy + Default + Ord + Into<u64> {
    /// The low bits of a number.
    fn cut(number: u64) -> Self;

    /// Packs numbers below `2^width`, `width` from 1 to that of the lane; appends `128 * width` bytes.
    fn pack(numbers: &[Self; VECTOR_LEN], width: usize, out: &mut Vec<u8>);

    /// Unpacks what [`Lane::pack`] wrote. `packed` has `128 * width` bytes, `width` is from 1 to that of the lane.
    fn unpack(packed: &[u8], width: usize, out: &mut [Self; VECTOR_LEN]);

    /// The number at `index` alone.
    fn unpack_one(packed: &[u8], width: usize, index: usize) -> Self;
}

macro_rules! lanes {
    ($($lane:ty),*) => {$(
        impl Lane for $lane {
            #[inline]
            fn cut(number: u64) -> Self {
                number as $lane
            }

            fn pack(numbers: &[Self; VECTOR_LEN], width: usize, out: &mut Vec<u8>) {
                const BITS: usize = <$lane>::BITS as usize;
                const LANES: usize = VECTOR_LEN / BITS;
                assert!((1..=BITS).contains(&width));
                let mut words = [0 as $lane; VECTOR_LEN + LANES];
                for (row, numbers) in numbers.chunks_exact(LANES).enumerate() {
                    let (word, shift) = (row * width / BITS, row * width % BITS);
                    let (low, high) = words[word * LANES..][..2 * LANES].split_at_mut(LANES);
                    for lane in 0..LANES {
                        low[lane] |= numbers[lane] << shift;
                    }
                    if shift + width > BITS {
                        for lane in 0..LANES {
                            high[lane] |= numbers[lane] >> (BITS - shift);
                        }
                    }
                }
                out.extend(words[..width * LANES].iter().flat_map(|word| word.to_le_bytes()));
            }

            fn unpack(packed: &[u8], width: usize, out: &mut [Self; VECTOR_LEN]) {
                const BITS: usize = <$lane>::BITS as usize;
                const LANES: usize = VECTOR_LEN / BITS;
                const BYTES: usize = BITS / 8;
                assert!((1..=BITS).contains(&width));
                let mask = <$lane>::MAX >> (BITS - width);
                let word_row = |word: usize| -> &[[u8; BYTES]; LANES] {
                    let (words, _) = packed[word * WORD_ROW_BYTES..][..WORD_ROW_BYTES].as_chunks();
                    words.try_into().expect("a row has a word for each lane")
                };
                for (row, out) in out.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
                    let (word, shift) = (row * width / BITS, row * width % BITS);
                    let low = word_row(word);
                    if shift + width <= BITS {
                        for lane in 0..LANES {
                            out[lane] = <$lane>::from_le_bytes(low[lane]) >> shift & mask;
                        }
                    } else {
                        let high = word_row(word + 1);
                        for lane in 0..LANES {
                            let low = <$lane>::from_le_bytes(low[lane]) >> shift;
                            out[lane] = (low | <$lane>::from_le_bytes(high[lane]) << (BITS - shift)) & mask;
                        }
                    }
                }
            }

            #[inline]
            fn unpack_one(packed: &[u8], width: usize, index: usize) -> Self {
                const BITS: usize = <$lane>::BITS as usize;
                const LANES: usize = VECTOR_LEN / BITS;
                const BYTES: usize = BITS / 8;
                let (row, lane) = (index / LANES, index % LANES);
                let (word, shift) = (row * width / BITS, row * width % BITS);
                let read = |word: usize| {
                    let (words, _) = packed[word * WORD_ROW_BYTES..][..WORD_ROW_BYTES].as_chunks::<BYTES>();
                    <$lane>::from_le_bytes(words[lane])
                };
                let low = read(word) >> shift;
                let high = if shift + width > BITS { read(word + 1) << (BITS - shift) } else { 0 };
                (low | high) & <$lane>::MAX >> (BITS - width)
            }
        }
    )*};
}

lanes!(u8, u16, u32, u64);

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    fn every_width<L: Lane + std::fmt::Debug>() {
        let mut random = SmallRng::seed_from_u64(7);
        for width in 1..=8 * size_of::<L>() {
            let mut numbers = [L::default(); VECTOR_LEN];
            numbers.iter_mut().for_each(|number| *number = L::cut(random.random::<u64>() >> (64 - width)));
            let mut packed = Vec::new();
            L::pack(&numbers, width, &mut packed);
            assert_eq!(packed.len(), WORD_ROW_BYTES * width);
            let mut unpacked = [L::default(); VECTOR_LEN];
            L::unpack(&packed, width, &mut unpacked);
            assert_eq!(unpacked, numbers, "width {width}");
            for index in (0..VECTOR_LEN).step_by(37) {
                assert_eq!(L::unpack_one(&packed, width, index), numbers[index], "width {width}, number {index}");
            }
        }
    }

    #[test]
    fn every_width_comes_back_in_every_lane() {
        every_width::<u8>();
        every_width::<u16>();
        every_width::<u32>();
        every_width::<u64>();
    }
}
