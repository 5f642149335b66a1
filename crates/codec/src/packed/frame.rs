//! Which base and bit width suit a vector.

use super::directory::PLAIN_WIDTH;
use super::exceptions::Form;
use crate::fixed::Integer;
use crate::kernels::{bounds, count_misses, farthest_below};

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
    #[cfg(test)]
    pub(crate) fn holds(self, value: T) -> bool {
        (value >= self.base) & (value.sub(self.base).bits() >> self.bit_width == 0)
    }

    /// What a vector with these bounds takes with so many exceptions, in bits.
    fn bits_with(self, value_count: usize, exceptions: usize, min: T, max: T) -> usize {
        let form = if exceptions == 0 { Form::read(0) } else { Form::of(self, min, max) };
        value_count * self.bit_width + 8 * form.bytes_of(exceptions, value_count)
    }

    /// What a vector with these bounds takes, in bits.
    fn bits_of(self, vector: &[T], min: T, max: T) -> usize {
        self.bits_with(vector.len(), count_misses(vector, self.base, self.bit_width), min, max)
    }
}

/// Finds the frames of vectors that follow one another.
#[derive(Clone, Debug)]
pub(crate) struct FrameChooser<T> {
    frames: Frames,
    last: Option<Chosen<T>>,
}

/// A frame that was chosen by looking at all of them.
#[derive(Clone, Debug)]
struct Chosen<T> {
    frame: Frame<T>,
    /// It left no value of its vector out. Then others serve that do, and are no wider.
    is_whole: bool,
    /// What the vector took in it, in bits.
    bits: usize,
    /// How many vectors it has served.
    served: u32,
}

/// Vectors after which a frame is looked for again, even if the last one still serves: there may be a better one.
const VECTORS_PER_CHOICE: u32 = 16;

impl<T: Integer> FrameChooser<T> {
    pub(crate) fn new(frames: Frames) -> FrameChooser<T> {
        FrameChooser { frames, last: None }
    }

    /// The frame for the next vector, which is not empty; `None` where this kind has none.
    pub(crate) fn choose(&mut self, vector: &[T]) -> Option<Frame<T>> {
        let (min, max) = bounds(vector);
        let whole = |base: T| Frame { base, bit_width: whole_width(max.sub(base).bits()) };
        match self.frames {
            Frames::FromZero => (min >= T::default()).then(|| whole(T::default())),
            Frames::Range => Some(whole(min)),
            Frames::Patched => Some(self.choose_patched(vector, whole(min), max)),
        }
    }

    /// The last frame, if it serves as well as when it was chosen; else another.
    fn choose_patched(&mut self, vector: &[T], whole: Frame<T>, max: T) -> Frame<T> {
        if let Some(last) = &mut self.last
            && last.served < VECTORS_PER_CHOICE
        {
            let frame = if last.is_whole { whole } else { last.frame };
            let serves = match last.is_whole {
                true => whole.bit_width <= last.frame.bit_width,
                false => {
                    last.frame.bit_width < whole.bit_width
                        && frame.bits_of(vector, whole.base, max) <= last.bits + last.bits / 64
                }
            };
            if serves {
                last.served += 1;
                return frame;
            }
        }
        let (frame, bits) = patched(vector, whole, max);
        self.last = Some(Chosen { frame, is_whole: frame == whole, bits, served: 1 });
        frame
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

/// How many of the sorted values a frame may leave out: it is as narrow as the narrowest window over the others. Few steps
/// are enough, as each has its own width or none.
const LEFT_OUT: [usize; 14] = [0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96];

/// The paper's PFOR_ANALYZE_BITS on a sorted sample of the vector, the other way round: for so many values left out, the
/// narrowest window over the others. The best few by the sample are then counted on the vector itself. Returns what the
/// vector takes, too, in bits.
fn patched<T: Integer>(vector: &[T], whole: Frame<T>, max: T) -> (Frame<T>, usize) {
    let mut best = (whole, vector.len() * whole.bit_width);
    if whole.bit_width == 0 {
        return best;
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

    let mut promising: [Option<(usize, Frame<T>, T)>; 3] = [None; 3];
    let mut least_width = whole.bit_width.min(65);
    for left_out in LEFT_OUT.into_iter().filter(|left_out| *left_out < sampled) {
        let (low, high) = narrowest_window(sorted, sampled - left_out);
        let frame = Frame { base: low, bit_width: whole_width(high.sub(low).bits()) };
        if frame.bit_width >= least_width {
            continue; // not narrower with more left out
        }
        least_width = frame.bit_width;
        let exceptions = left_out * vector.len() / sampled;
        let bits = frame.bits_with(vector.len(), exceptions, whole.base, max);
        let worst = promising.iter_mut().max_by_key(|slot| slot.map_or(usize::MAX, |(bits, _, _)| bits));
        if let Some(slot) = worst
            && slot.is_none_or(|(slot_bits, _, _)| bits < slot_bits)
        {
            *slot = Some((bits, frame, high));
        }
    }
    for (_, frame, high) in promising.into_iter().flatten() {
        let frame = lowered(frame, high, vector);
        let bits = frame.bits_of(vector, whole.base, max);
        if bits < best.1 {
            best = (frame, bits);
        }
    }
    best
}

/// Least and greatest value of the window of `held` sorted values in which they are nearest to each other.
fn narrowest_window<T: Integer>(sorted: &[T], held: usize) -> (T, T) {
    let (mut low, mut high) = (sorted[0], sorted[held - 1]);
    for (first, last) in sorted.iter().zip(&sorted[held - 1..]) {
        if last.sub(*first).bits() < high.sub(low).bits() {
            (low, high) = (*first, *last);
        }
    }
    (low, high)
}

/// The window moved down by what it has to spare, to the least value of `vector` that it can hold beside `high`: a sample
/// seldom holds the least one.
fn lowered<T: Integer>(frame: Frame<T>, high: T, vector: &[T]) -> Frame<T> {
    let slack = ((1u128 << frame.bit_width) - 1) - high.sub(frame.base).bits();
    let below = farthest_below(vector, frame.base, T::from_bits(slack));
    Frame { base: frame.base.sub(below), ..frame }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outliers_on_both_sides_do_not_widen_the_frame() {
        let mut vector: Vec<i64> = (0..1024).map(|i| 5000 + i * 37 % 64).collect();
        vector[10] = i64::MIN;
        vector[500] = i64::MAX;
        let frame = FrameChooser::new(Frames::Patched).choose(&vector).unwrap();
        assert_eq!(frame, Frame { base: 5000, bit_width: 6 });
        assert_eq!(vector.iter().filter(|value| !frame.holds(**value)).count(), 2);
        assert_eq!(FrameChooser::new(Frames::Range).choose(&vector).unwrap().bit_width, 64);
    }

    #[test]
    fn a_value_that_would_wrap_into_the_frame_is_an_exception() {
        let frame = Frame { base: 100i8, bit_width: 5 };
        assert!(frame.holds(127) && !frame.holds(99));
        assert!(!frame.holds(-128), "its wrapped distance is 28, but 100 + 28 is no i8");
    }
}
