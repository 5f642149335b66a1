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
use crate::fixed::Integer;
use crate::isa::{Proof, each_isa};

/// Bytes of one word of every lane.
pub(crate) const WORD_ROW_BYTES: usize = VECTOR_LEN / 8;

/// Numbers as wide as a lane: 8, 16, 32 or 64 bits.
pub(crate) trait Lane: Integer + Into<u64> {
    /// Packs distances from `base`, `width` bits each, `width` from 1 to that of the lane; appends `128 * width` bytes. Of
    /// a wider distance, or one below `base`, the low bits are packed.
    fn pack<T: Integer>(values: &[T; VECTOR_LEN], base: T, width: usize, out: &mut Vec<u8>);

    /// Unpacks what [`Lane::pack`] wrote, and adds `base`. `packed` has `128 * width` bytes, `width` is from 1 to that of
    /// the lane.
    fn unpack<T: Integer>(packed: &[u8], width: usize, base: T, out: &mut [T; VECTOR_LEN]);

    /// Numbers `lane..lane + N` of a row, which are in as many lanes. For kernels: it is compiled into them.
    fn numbers<const N: usize>(packed: &[u8], width: usize, row: usize, lane: usize) -> [Self; N];

    /// The number at `index` alone.
    fn unpack_one(packed: &[u8], width: usize, index: usize) -> Self;
}

/// `$answer`, compiled once for each of these widths, and once for others. A width that is known when the kernel is compiled
/// needs no branch to find a number and shifts by constants.
macro_rules! known_width {
    ($width:ident, [$($known:literal)*], $answer:expr) => {
        match $width {
            $($known => {
                let $width = $known;
                $answer
            })*
            $width => $answer,
        }
    };
}
pub(crate) use known_width;

/// `$work` for each row: one after the other where they are listed, else in a loop.
macro_rules! each_row {
    ([], $row:ident => $work:block) => {
        for $row in 0..BITS $work
    };
    ([$($listed:literal)*], $row:ident => $work:block) => {
        $({
            let $row: usize = $listed;
            $work
        })*
    };
}
pub(crate) use each_row;

macro_rules! lanes {
    ($($lane:ty, [$($known:literal)*], $rows:tt;)*) => {$(
        impl Lane for $lane {
            fn pack<T: Integer>(values: &[T; VECTOR_LEN], base: T, width: usize, out: &mut Vec<u8>) {
                const BITS: usize = <$lane>::BITS as usize;
                const LANES: usize = VECTOR_LEN / BITS;
                #[inline(always)]
                fn body<T: Integer>(values: &[T; VECTOR_LEN], base: T, width: usize, words: &mut [u8]) {
                    let (word_rows, _) = words.as_chunks_mut::<WORD_ROW_BYTES>();
                    let mask = <$lane>::MAX >> (BITS - width);
                    let number = |value: T| value.sub(base).to_delta() as $lane & mask;
                    let (mut word, mut filled) = ([0 as $lane; LANES], 0);
                    let mut word_rows = word_rows.iter_mut();
                    for values in values.as_chunks::<LANES>().0 {
                        let mut numbers = [0 as $lane; LANES];
                        for lane in 0..LANES {
                            numbers[lane] = number(values[lane]);
                        }
                        for lane in 0..LANES {
                            word[lane] |= numbers[lane] << filled;
                        }
                        filled += width;
                        if filled >= BITS {
                            filled -= BITS;
                            if let Some(row) = word_rows.next() {
                                for (bytes, word) in row.as_chunks_mut().0.iter_mut().zip(&word) {
                                    *bytes = word.to_le_bytes();
                                }
                            }
                            // What of the number did not fit; of one that did, nothing.
                            for lane in 0..LANES {
                                word[lane] = (numbers[lane] >> 1) >> (width - 1 - filled.min(width - 1));
                            }
                            if filled == 0 {
                                word = [0; LANES];
                            }
                        }
                    }
                }
                each_isa! {
                    fn run<T: Integer>(values: &[T; VECTOR_LEN], base: T, width: usize, words: &mut [u8]) = body;
                }
                assert!((1..=BITS).contains(&width));
                let start = out.len();
                out.resize(start + width * WORD_ROW_BYTES, 0);
                run(values, base, width, &mut out[start..]);
            }

            fn unpack<T: Integer>(packed: &[u8], width: usize, base: T, out: &mut [T; VECTOR_LEN]) {
                const BITS: usize = <$lane>::BITS as usize;
                const LANES: usize = VECTOR_LEN / BITS;
                /// Lanes of one register of the widest set.
                const PART: usize = LANES / 2;
                #[inline(always)]
                fn rows<T: Integer>(packed: &[u8], width: usize, base: T, out: &mut [T; VECTOR_LEN]) {
                    let (parts, _) = out.as_chunks_mut::<PART>();
                    for part in 0..2 {
                        each_row!($rows, row => {
                            add(<$lane>::numbers(packed, width, row, part * PART), base, &mut parts[2 * row + part]);
                        });
                    }
                }
                #[inline(always)]
                fn add<T: Integer>(numbers: [$lane; PART], base: T, out: &mut [T; PART]) {
                    for (out, number) in out.iter_mut().zip(numbers) {
                        *out = base.add(T::from_delta(number.into()));
                    }
                }
                #[inline(always)]
                fn body<P: Proof, T: Integer>(
                    _proof: P, packed: &[u8], width: usize, base: T, out: &mut [T; VECTOR_LEN],
                ) {
                    assert!((1..=BITS).contains(&width) && packed.len() >= width * WORD_ROW_BYTES);
                    if P::IS_WIDE && T::BYTES <= 8 {
                        known_width!(width, [$($known)*], rows(packed, width, base, out));
                    } else {
                        rows(packed, width, base, out);
                    }
                }
                each_isa! {
                    fn run<T: Integer>(packed: &[u8], width: usize, base: T, out: &mut [T; VECTOR_LEN]) = body, proof;
                }
                run(packed, width, base.unsigned(), T::unsigned_vector(out));
            }

            #[inline(always)]
            fn numbers<const N: usize>(packed: &[u8], width: usize, row: usize, lane: usize) -> [Self; N] {
                const BITS: usize = <$lane>::BITS as usize;
                const BYTES: usize = BITS / 8;
                let (word, shift) = (row * width / BITS, row * width % BITS);
                let mask = <$lane>::MAX >> (BITS - width);
                let read = |word: usize| {
                    let words = &packed[word * WORD_ROW_BYTES + lane * BYTES..][..N * BYTES];
                    words.as_chunks::<BYTES>().0
                };
                let mut numbers = [0; N];
                let low = read(word);
                if shift + width <= BITS {
                    for index in 0..N {
                        numbers[index] = <$lane>::from_le_bytes(low[index]) >> shift & mask;
                    }
                } else {
                    let high = read(word + 1);
                    for index in 0..N {
                        let low = <$lane>::from_le_bytes(low[index]) >> shift;
                        numbers[index] = (low | <$lane>::from_le_bytes(high[index]) << (BITS - shift)) & mask;
                    }
                }
                numbers
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

lanes! {
    // Lane; the widths that unpacking is compiled for each, a third faster; the rows where they are not looped over. Lanes of
    // 64 bits took minutes to compile.
    u8, [1 2 3 4 5 6 7 8], [0 1 2 3 4 5 6 7];
    u16, [9 10 11 12 13 14 15 16], [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15];
    u32, [17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32],
        [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31];
    u64, [], [];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::forms;
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    /// Numbers of each width, those next to the borders among them.
    fn every_width<L: Lane>(mut check: impl FnMut(usize, &[L; VECTOR_LEN])) {
        let mut random = SmallRng::seed_from_u64(7);
        for width in 1..=8 * size_of::<L>() {
            let mut numbers = [L::default(); VECTOR_LEN];
            numbers.iter_mut().for_each(|number| *number = L::from_delta(random.random::<u64>() >> (64 - width)));
            numbers[17] = L::from_delta(u64::MAX >> (64 - width));
            check(width, &numbers);
        }
    }

    fn comes_back<L: Lane>() {
        every_width::<L>(|width, numbers| {
            let (mut of_scalar, mut unpacked) = (Vec::new(), [L::default(); VECTOR_LEN]);
            forms(|isa| {
                let mut packed = Vec::new();
                L::pack(numbers, L::default(), width, &mut packed);
                assert_eq!(packed.len(), WORD_ROW_BYTES * width);
                if of_scalar.is_empty() {
                    of_scalar.clone_from(&packed);
                }
                assert_eq!(packed, of_scalar, "{isa} packs width {width} in another way");
                L::unpack(&packed, width, L::default(), &mut unpacked);
                assert_eq!(&unpacked, numbers, "{isa}, width {width}");
            });
            for index in (0..VECTOR_LEN).step_by(37) {
                assert_eq!(L::unpack_one(&of_scalar, width, index), numbers[index], "width {width}, number {index}");
            }
        });
    }

    /// Values of a wider type above a base, some of them not in the frame.
    fn comes_back_above<L: Lane, T: Integer>(base: T) {
        every_width::<L>(|width, numbers| {
            if width >= 8 * size_of::<T>() || width == 64 {
                return;
            }
            let mut values = numbers.map(|number| base.add(T::from_delta(number.into())));
            values[5] = base.sub(T::from_delta(1));
            values[900] = base.add(T::from_delta(1 << width));
            let mut of_scalar = Vec::new();
            forms(|isa| {
                let (mut packed, mut unpacked) = (Vec::new(), [T::default(); VECTOR_LEN]);
                L::pack(&values, base, width, &mut packed);
                if of_scalar.is_empty() {
                    of_scalar.clone_from(&packed);
                }
                assert_eq!(packed, of_scalar, "{isa} packs width {width} in another way");
                L::unpack(&packed, width, base, &mut unpacked);
                for (index, (found, value)) in unpacked.iter().zip(values).enumerate() {
                    let is_outside = index == 5 || index == 900;
                    let low = T::from_delta(value.sub(base).to_delta() & (u64::MAX >> (64 - width)));
                    assert_eq!(*found, base.add(low), "{isa}, width {width}, value {index}");
                    assert!(is_outside || *found == value, "{isa}, width {width}, value {index}");
                }
            });
        });
    }

    #[test]
    fn every_width_comes_back_in_every_lane() {
        comes_back::<u8>();
        comes_back::<u16>();
        comes_back::<u32>();
        comes_back::<u64>();
    }

    #[test]
    fn every_width_comes_back_above_a_base_and_the_low_bits_of_what_is_outside() {
        comes_back_above::<u8, i8>(-100);
        comes_back_above::<u8, i64>(-1_000_000);
        comes_back_above::<u8, i128>(1 << 100);
        comes_back_above::<u16, u32>(3_000_000_000);
        comes_back_above::<u16, i64>(i64::MIN + 1);
        comes_back_above::<u32, i32>(-70_000);
        comes_back_above::<u32, i64>(1 << 40);
        comes_back_above::<u64, i128>(-5);
        comes_back_above::<u64, u64>(77);
    }
}
