//! Answers about whole vectors of packed numbers, found while unpacking them: no number is written anywhere.
//!
//! The numbers are those of [`crate::bit_packing`]. Each kernel takes half a row at a time, one register of the widest
//! set, and goes down the rows with it: what it gathers stays in registers until the last. (Both halves at once measured a
//! third slower: the compiler splits rows of two registers in odd ways.)
//!
//! Widths are known when the kernel is compiled for lanes of 8 and 16 bits, where unpacking costs more than the memory it
//! saves; wider ones, but the one that needs no shift, would add a megabyte of code for nothing that shows beside the time
//! of their memory.

use crate::VECTOR_LEN;
use crate::bit_packing::{Lane, WORD_ROW_BYTES, each_row, known_width};
use crate::isa::{Proof, each_isa};

/// Bits of one vector.
pub(crate) type VectorBits = [u64; VECTOR_LEN / 64];

/// Lanes whose packed numbers answer without being written out. All take a vector as [`Lane::pack`] wrote it, and its
/// width, from 1 to that of the lane.
pub(crate) trait Fused: Lane {
    /// The sum of all numbers.
    fn sum(packed: &[u8], width: usize) -> u128;

    /// The sum of all numbers, the first 1024 times, the next 1023 times, and so on: the sum of their running sums. Widths up
    /// to [`RAMP_WIDTH_MAX`].
    fn ramp(packed: &[u8], width: usize) -> u128;

    /// The sum of the first `count` of 128 numbers: of those from number `128 * group` on.
    fn sum_of_first(packed: &[u8], width: usize, group: usize, count: usize) -> u128;

    /// Least and greatest number.
    fn bounds(packed: &[u8], width: usize) -> (Self, Self);

    /// Writes one bit per number: it is from `low` to `high`, which is not less.
    fn within(packed: &[u8], width: usize, low: Self, high: Self, bits: &mut VectorBits);
}

/// Beyond this, [`Fused::ramp`] would overflow.
pub(crate) const RAMP_WIDTH_MAX: usize = 52;

macro_rules! fused {
    ($($module:ident: $lane:ty, sums of $wide:ty, $across:ty, [$($known:literal)*], $rows:tt;)*) => {$(
        mod $module {
            use super::*;

            const BITS: usize = <$lane>::BITS as usize;
            const LANES: usize = VECTOR_LEN / BITS;
            /// Lanes of one register.
            const PART: usize = LANES / 2;

            /// Numbers `lane..lane + N` of a row.
            #[inline(always)]
            fn numbers<const N: usize>(packed: &[u8], width: usize, row: usize, lane: usize) -> [$lane; N] {
                <$lane>::numbers(packed, width, row, lane)
            }

            /// Whether the sum of a vector's numbers fits a wide lane.
            const WIDE_HOLDS_ALL: bool = <$wide>::BITS as usize >= BITS + VECTOR_LEN.ilog2() as usize;

            /// As many numbers as a lane has bits fit it with so many bits more.
            const ROW_BITS: usize = BITS.ilog2() as usize;

            #[inline(always)]
            fn sum_body<P: Proof>(proof: P, packed: &[u8], width: usize) -> u128 {
                assert!((1..=BITS).contains(&width) && packed.len() >= width * WORD_ROW_BYTES);
                if BITS == 8 && width == 8 {
                    let mut sums = [0; 8];
                    let (bytes, _) = packed[..VECTOR_LEN].as_chunks();
                    bytes.iter().for_each(|bytes| proof.add_eights(bytes, &mut sums));
                    return sums.iter().sum::<u64>().into();
                }
                if width == BITS && WIDE_HOLDS_ALL {
                    // They lie one after the other. (From the loops below the compiler would make gathers here.)
                    let (numbers, _) = packed[..BITS * WORD_ROW_BYTES].as_chunks();
                    return numbers.iter().map(|number| <$lane>::from_le_bytes(*number) as $wide).sum::<$wide>() as u128;
                }
                let mut total = 0;
                for part in 0..2 {
                    // In lanes of their own, where they fit; else their halves apart.
                    let (mut low, mut high) = ([0 as $lane; PART], [0 as $lane; PART]);
                    if width + ROW_BITS <= BITS {
                        each_row!($rows, row => {
                            let numbers = numbers::<PART>(packed, width, row, part * PART);
                            for lane in 0..PART {
                                low[lane] += numbers[lane];
                            }
                        });
                    } else {
                        each_row!($rows, row => {
                            let numbers = numbers::<PART>(packed, width, row, part * PART);
                            for lane in 0..PART {
                                low[lane] += numbers[lane] & <$lane>::MAX >> (BITS / 2);
                                high[lane] += numbers[lane] >> (BITS / 2);
                            }
                        });
                    }
                    let across = |lanes: &[$lane; PART]| {
                        lanes.iter().map(|lane| *lane as $across).sum::<$across>() as u128
                    };
                    total += across(&low) + (across(&high) << (BITS / 2));
                }
                total
            }

            #[inline(always)]
            fn sum_of_first_body(packed: &[u8], width: usize, group: usize, count: usize) -> u128 {
                const ROWS: usize = 128 / LANES;
                let mut sums = [0 as $across; LANES];
                for row in 0..ROWS.min(count.div_ceil(LANES)) {
                    let numbers = numbers::<LANES>(packed, width, group * ROWS + row, 0);
                    for lane in 0..LANES {
                        sums[lane] += if row * LANES + lane < count { numbers[lane] as $across } else { 0 };
                    }
                }
                sums.iter().sum::<$across>() as u128
            }

            #[inline(always)]
            fn ramp_body(packed: &[u8], width: usize) -> u128 {
                assert!((1..=BITS.min(RAMP_WIDTH_MAX)).contains(&width) && packed.len() >= width * WORD_ROW_BYTES);
                let mut total = 0;
                for part in 0..2 {
                    // After the last row, the sums of a lane hold its numbers once, and the sums of sums those of the first
                    // row once for every row, those of the last once.
                    let (mut sums, mut sums_of_sums) = ([0 as $wide; PART], [0 as $wide; PART]);
                    for row in 0..BITS {
                        let numbers = numbers::<PART>(packed, width, row, part * PART);
                        for lane in 0..PART {
                            sums[lane] += numbers[lane] as $wide;
                        }
                        for lane in 0..PART {
                            sums_of_sums[lane] += sums[lane];
                        }
                    }
                    let (mut rows, mut lanes) = (0 as $across, 0 as $across);
                    for lane in 0..PART {
                        rows += sums_of_sums[lane] as $across;
                        lanes += sums[lane] as $across * (part * PART + lane) as $across;
                    }
                    total += rows as u128 * LANES as u128 - lanes as u128;
                }
                total
            }

            #[inline(always)]
            fn bounds_body(packed: &[u8], width: usize) -> ($lane, $lane) {
                assert!((1..=BITS).contains(&width) && packed.len() >= width * WORD_ROW_BYTES);
                let (mut least, mut greatest) = ([<$lane>::MAX; PART], [0 as $lane; PART]);
                for part in 0..2 {
                    each_row!($rows, row => {
                        let numbers = numbers::<PART>(packed, width, row, part * PART);
                        for lane in 0..PART {
                            least[lane] = least[lane].min(numbers[lane]);
                            greatest[lane] = greatest[lane].max(numbers[lane]);
                        }
                    });
                }
                let least = least.into_iter().fold(<$lane>::MAX, |least, number| least.min(number));
                (least, greatest.into_iter().fold(0, |greatest, number| greatest.max(number)))
            }

            #[inline(always)]
            fn within_body<P: Proof>(
                proof: P, packed: &[u8], width: usize, low: $lane, high: $lane, bits: &mut VectorBits,
            ) {
                assert!((1..=BITS).contains(&width) && packed.len() >= width * WORD_ROW_BYTES);
                /// Words of bits that a row fills.
                const GROUPS: usize = LANES.div_ceil(64);
                let reach = high.wrapping_sub(low);
                if LANES >= 64 {
                    each_row!($rows, row => {
                        for part in 0..GROUPS {
                            let numbers = numbers::<64>(packed, width, row, 64 * part);
                            let mut flags = [0; 64];
                            for lane in 0..64 {
                                flags[lane] = u8::from(numbers[lane].wrapping_sub(low) <= reach);
                            }
                            bits[row * GROUPS + part] = proof.bits(&flags);
                        }
                    });
                    return;
                }
                const TAKEN: usize = if LANES < 64 { LANES } else { 64 };
                for (group, word) in bits.iter_mut().enumerate() {
                    let mut flags = [0; 64];
                    for (index, flags) in flags.as_chunks_mut::<TAKEN>().0.iter_mut().enumerate() {
                        let numbers = numbers::<TAKEN>(packed, width, group * (64 / TAKEN) + index, 0);
                        for lane in 0..TAKEN {
                            flags[lane] = u8::from(numbers[lane].wrapping_sub(low) <= reach);
                        }
                    }
                    *word = proof.bits(&flags);
                }
            }

            #[inline(always)]
            fn sum_known<P: Proof>(proof: P, packed: &[u8], width: usize) -> u128 {
                known_width!(width, [$($known)*], sum_body(proof, packed, width))
            }

            #[inline(always)]
            fn ramp_known(packed: &[u8], width: usize) -> u128 {
                known_width!(width, [$($known)*], ramp_body(packed, width))
            }

            #[inline(always)]
            fn bounds_known(packed: &[u8], width: usize) -> ($lane, $lane) {
                known_width!(width, [$($known)*], bounds_body(packed, width))
            }

            #[inline(always)]
            fn within_known<P: Proof>(
                proof: P, packed: &[u8], width: usize, low: $lane, high: $lane, bits: &mut VectorBits,
            ) {
                known_width!(width, [$($known)*], within_body(proof, packed, width, low, high, bits));
            }

            each_isa! {
                fn sum(packed: &[u8], width: usize) -> u128 = sum_known, proof;
                fn sum_of_first(packed: &[u8], width: usize, group: usize, count: usize) -> u128 = sum_of_first_body;
                fn ramp(packed: &[u8], width: usize) -> u128 = ramp_known;
                fn bounds(packed: &[u8], width: usize) -> ($lane, $lane) = bounds_known;
                fn within(packed: &[u8], width: usize, low: $lane, high: $lane, bits: &mut VectorBits)
                    = within_known, proof;
            }

            impl Fused for $lane {
                fn sum(packed: &[u8], width: usize) -> u128 {
                    sum(packed, width)
                }

                fn sum_of_first(packed: &[u8], width: usize, group: usize, count: usize) -> u128 {
                    sum_of_first(packed, width, group, count)
                }

                fn ramp(packed: &[u8], width: usize) -> u128 {
                    ramp(packed, width)
                }

                fn bounds(packed: &[u8], width: usize) -> ($lane, $lane) {
                    bounds(packed, width)
                }

                fn within(packed: &[u8], width: usize, low: $lane, high: $lane, bits: &mut VectorBits) {
                    within(packed, width, low, high, bits)
                }
            }
        }
    )*};
}

fused! {
    // Lane; what holds as many sums as there are lanes of a vector's numbers, and what the sum across all of them; the
    // widths compiled each; the rows where they are not looped over.
    bytes: u8, sums of u16, u32, [1 2 3 4 5 6 7 8], [0 1 2 3 4 5 6 7];
    halves: u16, sums of u32, u32, [9 10 11 12 13 14 15 16], [0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15];
    words: u32, sums of u64, u64, [32], [];
    doubles: u64, sums of u64, u128, [], [];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::forms;
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    fn agrees<L: Fused>() {
        let mut random = SmallRng::seed_from_u64(11);
        for width in 1..=8 * size_of::<L>() {
            for shape in 0..3 {
                let greatest = u64::MAX >> (64 - width);
                let mut numbers = [L::from_delta(greatest); VECTOR_LEN];
                if shape > 0 {
                    numbers
                        .iter_mut()
                        .for_each(|n| *n = L::from_delta(random.random::<u64>() & greatest >> (shape - 1)));
                }
                let wide = || numbers.iter().map(|number| -> u64 { (*number).into() });
                let mut packed = Vec::new();
                L::pack(&numbers, L::default(), width, &mut packed);
                let sum: u128 = wide().map(u128::from).sum();
                let ramp: u128 = wide().zip((1..=1024).rev()).map(|(number, times)| u128::from(number) * times).sum();
                let bounds = (numbers.iter().min().copied().unwrap(), numbers.iter().max().copied().unwrap());
                let (a, b) = (numbers[3], numbers[700]);
                let (low, high) = (a.min(b), a.max(b));
                forms(|isa| {
                    assert_eq!(L::sum(&packed, width), sum, "{isa}, width {width}");
                    if width <= RAMP_WIDTH_MAX {
                        assert_eq!(L::ramp(&packed, width), ramp, "{isa}, width {width}");
                    }
                    for (group, count) in [(0, 1), (0, 128), (3, 77), (7, 128), (5, 0)] {
                        let first = wide().skip(128 * group).take(count).map(u128::from).sum::<u128>();
                        assert_eq!(L::sum_of_first(&packed, width, group, count), first, "{isa}, width {width}");
                    }
                    assert_eq!(L::bounds(&packed, width), bounds, "{isa}, width {width}");
                    let mut bits = [0; VECTOR_LEN / 64];
                    L::within(&packed, width, low, high, &mut bits);
                    for (index, number) in numbers.iter().enumerate() {
                        let found = bits[index / 64] >> (index % 64) & 1 == 1;
                        assert_eq!(found, (low..=high).contains(number), "{isa}, width {width}, number {index}");
                    }
                });
            }
        }
    }

    #[test]
    fn every_width_answers_as_if_unpacked() {
        agrees::<u8>();
        agrees::<u16>();
        agrees::<u32>();
        agrees::<u64>();
    }
}
