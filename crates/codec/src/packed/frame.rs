//! Which base and bit width suit a vector.

use super::directory::{PLAIN_WIDTH, POSITION_BYTES};
use crate::fixed::Integer;

/// How the frame of a vector is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Frames {
    /// Base zero; the width of the greatest value. For values that are not negative.
    FromZero,
    /// Base the least value; the width of the range.
    Range,
    /// Base and width so that packed numbers and exceptions together are least.
    Patched,
}

/// Base and bit width of a vector. Values outside are exceptions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Frame<T> {
    pub(crate) base: T,
    pub(crate) bit_width: usize,
}

impl<T: Integer> Frame<T> {
    /// Whether `value` is a number of this frame; else it is an exception. A value below the base is one even where the
    /// wrapped distance would fit: filters and [`crate::Encoded::BaseDelta`] count on base and number adding up.
    #[inline]
    pub(crate) fn holds(self, value: T) -> bool {
        (value >= self.base) & (value.sub(self.base).bits() >> self.bit_width == 0)
    }
}

impl Frames {
    /// The frame for `vector`, which is not empty; `None` where this kind has none.
    pub(crate) fn choose<T: Integer>(self, vector: &[T]) -> Option<Frame<T>> {
        let (mut min, mut max) = (vector[0], vector[0]);
        for &value in vector {
            min = min.min(value);
            max = max.max(value);
        }
        let whole = |base: T| Frame { base, bit_width: whole_width(max.sub(base).bits()) };
        match self {
            Frames::FromZero => (min >= T::default()).then(|| whole(T::default())),
            Frames::Range => Some(whole(min)),
            Frames::Patched => Some(patched(vector, whole(min), max)),
        }
    }
}

/// Bits of the greatest distance; [`PLAIN_WIDTH`] beyond 64.
fn whole_width(distance: u128) -> usize {
    match u128::BITS - distance.leading_zeros() {
        bits @ 0..=64 => bits as usize,
        _ => PLAIN_WIDTH,
    }
}

/// Values of a vector that are sorted to find a frame.
const SORTED_VALUES: usize = 128;

/// The paper's PFOR_ANALYZE_BITS on a sorted sample of the vector: for each width the window that holds the most values.
/// The best few by the sample are then counted on the vector itself.
fn patched<T: Integer>(vector: &[T], whole: Frame<T>, max: T) -> Frame<T> {
    if whole.bit_width == 0 {
        return whole;
    }
    let mut sorted = [T::default(); SORTED_VALUES];
    let step = vector.len().div_ceil(SORTED_VALUES);
    let mut sampled = 0;
    for (index, part) in vector.chunks(step).enumerate() {
        // Not every eighth value: columns repeat with such periods.
        sorted[index] = part[(index * 5 % step).min(part.len() - 1)];
        sampled += 1;
    }
    let sorted = &mut sorted[..sampled];
    sorted.sort_unstable();

    let (mut best, mut best_bits) = (whole, vector.len() * whole.bit_width);
    let exception_bits = |frame: Frame<T>| 8 * (POSITION_BYTES + widest_exception(frame, whole.base, max));
    let mut promising: [Option<(usize, Frame<T>, T)>; 3] = [None; 3];
    for bit_width in 0..whole.bit_width.min(64) {
        let (start, held) = fullest_window(sorted, bit_width);
        let frame = Frame { base: sorted[start], bit_width };
        let exceptions = (sampled - held) * vector.len() / sampled;
        let bits = vector.len() * bit_width + exceptions * exception_bits(frame);
        let worst = promising.iter_mut().max_by_key(|slot| slot.map_or(usize::MAX, |(bits, _, _)| bits));
        if let Some(slot) = worst
            && slot.is_none_or(|(slot_bits, _, _)| bits < slot_bits)
        {
            *slot = Some((bits, frame, sorted[start + held - 1]));
        }
    }
    for (_, frame, high) in promising.into_iter().flatten() {
        let frame = lowered(frame, high, vector);
        let exceptions = vector.iter().filter(|value| !frame.holds(**value)).count();
        let bits = vector.len() * frame.bit_width + exceptions * exception_bits(frame);
        if bits < best_bits {
            (best, best_bits) = (frame, bits);
        }
    }
    best
}

/// Where a window of `2^bit_width` values holds the most of `sorted`, and how many.
fn fullest_window<T: Integer>(sorted: &[T], bit_width: usize) -> (usize, usize) {
    let (mut best, mut start) = ((0, 0), 0);
    for end in 0..sorted.len() {
        while sorted[end].sub(sorted[start]).bits() >> bit_width != 0 {
            start += 1;
        }
        if end + 1 - start > best.1 {
            best = (start, end + 1 - start);
        }
    }
    best
}

/// The window moved down by what it has to spare, to the least value of `vector` that it can hold beside `high`: a sample
/// seldom holds the least one.
fn lowered<T: Integer>(frame: Frame<T>, high: T, vector: &[T]) -> Frame<T> {
    let slack = ((1u128 << frame.bit_width) - 1) - high.sub(frame.base).bits();
    let mut below = 0;
    for value in vector.iter().filter(|value| **value < frame.base) {
        let distance = frame.base.sub(*value).bits();
        if distance <= slack {
            below = distance.max(below);
        }
    }
    Frame { base: frame.base.sub(T::from_bits(below)), ..frame }
}

/// Bytes that the farther of least and greatest value takes as an exception.
fn widest_exception<T: Integer>(frame: Frame<T>, min: T, max: T) -> usize {
    distance_bytes(min.sub(frame.base)).max(distance_bytes(max.sub(frame.base)))
}

/// Bytes of a signed distance: 1, 2, 4, 8 or 16.
pub(crate) fn distance_bytes<T: Integer>(distance: T) -> usize {
    let signed = distance.signed().wide();
    let bits = 129 - (signed ^ (signed >> 127)).leading_zeros() as usize;
    bits.div_ceil(8).next_power_of_two().min(T::BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outliers_on_both_sides_do_not_widen_the_frame() {
        let mut vector: Vec<i64> = (0..1024).map(|i| 5000 + i * 37 % 64).collect();
        vector[10] = i64::MIN;
        vector[500] = i64::MAX;
        let frame = Frames::Patched.choose(&vector).unwrap();
        assert_eq!(frame, Frame { base: 5000, bit_width: 6 });
        assert_eq!(vector.iter().filter(|value| !frame.holds(**value)).count(), 2);
        assert_eq!(Frames::Range.choose(&vector).unwrap().bit_width, 64);
    }

    #[test]
    fn a_value_that_would_wrap_into_the_frame_is_an_exception() {
        let frame = Frame { base: 100i8, bit_width: 5 };
        assert!(frame.holds(127) && !frame.holds(99));
        assert!(!frame.holds(-128), "its wrapped distance is 28, but 100 + 28 is no i8");
    }

    #[test]
    fn distances_take_the_bytes_they_need() {
        for (distance, bytes) in [(0i64, 1), (127, 1), (128, 2), (-128, 1), (-129, 2), (40_000, 4), (i64::MIN, 8)] {
            assert_eq!(distance_bytes(distance), bytes, "{distance}");
        }
    }
}
