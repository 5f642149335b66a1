//! Which values a frame does not hold.
//!
//! Zukowski et al., ICDE 2006, section 3.1, writes a position for every value, and keeps it by moving on or not, so that there
//! is nothing to predict. Registers that compare 16 values at once make that the slowest step; so we write one for every bit
//! that a comparison sets, four at a time, whether there are so many or not.

use crate::VECTOR_LEN;
use crate::fixed::Integer;
use crate::isa::{Proof, each_isa};

each_isa! {
    /// Writes the positions of values outside `base..=base + 2^width - 1` to the front of `positions`, ascending, and returns
    /// how many there are; what is behind them is of no use. `values` are a vector at most, `width` is at most 64.
    pub(crate) fn misses<T: Integer>(values: &[T], base: T, width: usize, positions: &mut Positions) -> usize
        = misses_body, proof;

    /// How many values lie outside `base..=base + 2^width - 1`; `width` is at most 64.
    pub(crate) fn count_misses<T: Integer>(values: &[T], base: T, width: usize) -> usize = count_misses_body;

    /// The greatest distance at which a value lies below `base`, of those that are at most `slack`; zero if there is none.
    /// Distances have no sign.
    pub(crate) fn farthest_below<T: Integer>(values: &[T], base: T, slack: T) -> T = farthest_below_body;
}

/// Positions in a vector, and room for those that are written and not kept.
pub(crate) type Positions = [u16; VECTOR_LEN + AT_ONCE];

/// Positions that are written at once.
const AT_ONCE: usize = 4;

#[inline(always)]
fn misses_body<P: Proof, T: Integer>(
    proof: P,
    values: &[T],
    base: T,
    width: usize,
    positions: &mut Positions,
) -> usize {
    let greatest = greatest::<T>(width);
    let mut count = 0;
    for (index, values) in values.chunks(64).take(VECTOR_LEN / 64).enumerate() {
        let mut flags = [0; 64];
        for (flag, &value) in flags.iter_mut().zip(values) {
            *flag = u8::from((value < base) | (value.sub(base).bits() > greatest.bits()));
        }
        let mut bits = proof.bits(&flags);
        let end = count + bits.count_ones() as usize;
        while count < end {
            for slot in &mut positions[count..count + AT_ONCE] {
                *slot = (64 * index) as u16 + bits.trailing_zeros() as u16;
                bits &= bits.wrapping_sub(1);
            }
            count += AT_ONCE;
        }
        count = end;
    }
    count
}

/// The greatest number of `width` bits.
#[inline(always)]
fn greatest<T: Integer>(width: usize) -> T {
    if width == 0 { T::default() } else { T::from_delta(u64::MAX >> (64 - width)) }
}

#[inline(always)]
fn count_misses_body<T: Integer>(values: &[T], base: T, width: usize) -> usize {
    let greatest = greatest::<T>(width);
    let miss = |value: &T| usize::from((*value < base) | (value.sub(base).bits() > greatest.bits()));
    values.iter().map(miss).sum()
}

#[inline(always)]
fn farthest_below_body<T: Integer>(values: &[T], base: T, slack: T) -> T {
    let mut farthest = T::default();
    for &value in values {
        let distance = base.sub(value);
        let counts = (value < base) & (distance.bits() <= slack.bits());
        let distance = if counts { distance } else { T::default() };
        farthest = if distance.bits() > farthest.bits() { distance } else { farthest };
    }
    farthest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::forms;

    fn agree<T: Integer>(base: T) {
        let values: Vec<T> = (0..1000i64).map(|i| base.add(T::cut(i128::from(i * i % 613 - 200)))).collect();
        for width in 0..=(8 * T::BYTES).min(64) {
            let holds = |value: &T| {
                let distance = value.wide().checked_sub(base.wide());
                distance.is_none_or(|distance| (0..1i128 << width).contains(&distance)) && *value >= base
            };
            let expected: Vec<u16> = (0..values.len()).filter(|i| !holds(&values[*i])).map(|i| i as u16).collect();
            forms(|isa| {
                let mut positions = [0; _];
                let count = misses(&values, base, width, &mut positions);
                assert_eq!(positions[..count], expected, "{isa}, width {width}");
                assert_eq!(count_misses(&values, base, width), count, "{isa}, width {width}");
            });
        }
        for slack in [0u64, 1, 7, 50, 120] {
            let distance = |value: &T| base.wide() - value.wide();
            let near = values.iter().map(distance).filter(|distance| (1..=i128::from(slack)).contains(distance));
            let expected = T::cut(near.max().unwrap_or(0));
            forms(|isa| assert_eq!(farthest_below(&values, base, T::from_delta(slack)), expected, "{isa}, {slack}"));
        }
    }

    #[test]
    fn every_type_knows_what_a_frame_does_not_hold() {
        agree(-20i8);
        agree(130u8);
        agree(-5000i16);
        agree(70u16);
        agree(i32::MIN + 300);
        agree(u32::MAX - 100);
        agree(-1i64);
        agree(u64::MAX - 400);
        agree(1i128 << 90);
    }
}
