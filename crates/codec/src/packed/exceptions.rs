//! Values that their frame does not hold: where they are, and what is missing of them.
//!
//! Zukowski et al., ICDE 2006, section 3, keeps such values whole, and chains their places through the packed slots. We keep
//! the low bits of their distance in the slot, like those of any other value, and apart from it only the bits above
//! (Lemire and Boytsov, "Decoding billions of integers per second through vectorization", 2015): there are no compulsory
//! exceptions, and patching adds what is missing. The places are apart, too, with an entry point for every 128 values. Where
//! more is missing than 64 bits, values are whole as in the paper.

use super::excess::{Excess, WIDTH_MAX};
use super::frame::Frame;
use crate::VECTOR_LEN;
use crate::bit_stream::{read_one, stream_bytes, write_stream};
use crate::fixed::Integer;

/// Values from entry point to entry point.
pub(crate) const ENTRY_LEN: usize = 128;

/// Up to so many exceptions, two bytes for each place are less than entry points and one.
pub(super) const WIDE_PLACES_MAX: usize = 8;

/// Set in the form of exceptions of which only what is missing is kept, and never in that of whole ones, which is a number
/// of bytes.
const IS_EXCESS: u8 = 0x80;
/// Exceptions lie below the base, too: what is missing is zigzag.
const IS_SIGNED: u8 = 0x40;

/// How the exceptions of a vector are written: the byte in its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Distances from the base, of so many bytes, behind positions of two: where more is missing than 64 bits, and all of
    /// version 1.
    Whole { bytes: usize },
    /// What is above the bits in the slot, in so many bits, before the places.
    Excess { width: usize, is_signed: bool },
}

impl Form {
    /// The form in an entry.
    #[inline]
    pub(crate) fn read(byte: u8) -> Form {
        match byte & IS_EXCESS {
            0 => Form::Whole { bytes: usize::from(byte) },
            _ => Form::Excess { width: usize::from(byte & 0x3f) + 1, is_signed: byte & IS_SIGNED != 0 },
        }
    }

    fn byte(self) -> u8 {
        match self {
            Form::Whole { bytes } => bytes as u8,
            Form::Excess { width, is_signed } => IS_EXCESS | u8::from(is_signed) << 6 | (width - 1) as u8,
        }
    }

    /// The form for values between these, outside of this frame.
    pub(crate) fn of<T: Integer>(frame: Frame<T>, min: T, max: T) -> Form {
        let is_signed = min < frame.base;
        let bits = |value: T| 128 - missing(frame, value, is_signed).leading_zeros() as usize;
        match bits(min).max(bits(max)).max(1) {
            width @ 1..=64 => Form::Excess { width, is_signed },
            _ => {
                let distance = |value: T| match value < frame.base {
                    true => frame.base.sub(value).bits(),
                    false => value.sub(frame.base).bits(),
                };
                let bits = 128 - distance(min).max(distance(max)).leading_zeros() as usize;
                Form::Whole { bytes: (bits + 1).div_ceil(8).min(T::BYTES) } // a bit for the sign
            }
        }
    }

    /// Whether the places of so many exceptions are positions of two bytes.
    #[inline]
    fn has_wide_places(self, exception_count: usize) -> bool {
        matches!(self, Form::Whole { .. }) || exception_count <= WIDE_PLACES_MAX
    }

    /// Bytes that so many exceptions of a vector take.
    #[inline]
    pub(crate) fn bytes_of(self, exception_count: usize, value_count: usize) -> usize {
        match self {
            Form::Whole { bytes } => exception_count * (2 + bytes),
            Form::Excess { width, .. } => {
                let places_bytes = match self.has_wide_places(exception_count) {
                    true => 2 * exception_count,
                    false => value_count.div_ceil(ENTRY_LEN) + exception_count,
                };
                stream_bytes(exception_count, width) + places_bytes
            }
        }
    }
}

/// What of a value's distance is above the bits in its slot; all bits are set where it is more than 128 hold.
fn missing<T: Integer>(frame: Frame<T>, value: T, is_signed: bool) -> u128 {
    if value >= frame.base {
        let above = value.sub(frame.base).bits() >> frame.bit_width;
        if is_signed { above.saturating_mul(2) } else { above }
    } else {
        // Rounded down: the bits in the slot count upwards from there.
        let below = frame.base.sub(value).bits().div_ceil(1 << frame.bit_width);
        below.checked_mul(2).map_or(u128::MAX, |doubled| doubled - 1)
    }
}

/// Appends exceptions at these positions, ascending, and returns their form.
pub(crate) fn write<T: Integer>(vector: &[T], frame: Frame<T>, positions: &[u16], out: &mut Vec<u8>) -> u8 {
    let exceptions = || positions.iter().map(|position| vector[usize::from(*position)]);
    let (Some(min), Some(max)) = (exceptions().min(), exceptions().max()) else { return 0 };
    let form = Form::of(frame, min, max);
    if let Form::Excess { width, is_signed } = form {
        write_stream(exceptions().map(|value| missing(frame, value, is_signed) as u64), width, out);
    }
    if form.has_wide_places(positions.len()) {
        out.extend(positions.iter().flat_map(|position| position.to_le_bytes()));
        if let Form::Whole { bytes } = form {
            let distances = exceptions().map(|value| value.sub(frame.base).bits().to_le_bytes());
            distances.for_each(|distance| out.extend_from_slice(&distance[..bytes]));
        }
    } else {
        let entries_at = out.len();
        out.resize(entries_at + vector.len().div_ceil(ENTRY_LEN), 0);
        positions.iter().for_each(|position| out[entries_at + usize::from(*position) / ENTRY_LEN] += 1);
        out.extend(positions.iter().map(|position| (usize::from(*position) % ENTRY_LEN) as u8));
    }
    form.byte()
}

/// What makes a value of an exception.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Patch<T> {
    /// The value itself.
    Value(T),
    /// To be added to what base and slot give.
    Add(T),
}

/// The exceptions of a vector.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exceptions<'a, T> {
    form: Form,
    count: usize,
    value_count: usize,
    frame: Frame<T>,
    /// As many bytes as the form says.
    bytes: &'a [u8],
}

impl<'a, T: Integer> Exceptions<'a, T> {
    /// Over bytes of the right number.
    #[inline]
    pub(crate) fn new(form: Form, count: usize, value_count: usize, frame: Frame<T>, bytes: &'a [u8]) -> Self {
        Exceptions { form, count, value_count, frame, bytes }
    }

    /// Whether entry points count as many exceptions as there are.
    #[inline]
    pub(crate) fn has_all_places(&self) -> bool {
        let entries = self.value_count.div_ceil(ENTRY_LEN);
        self.has_wide_places()
            || self.places()[..entries].iter().map(|count| usize::from(*count)).sum::<usize>() == self.count
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The greatest distance from the base that there can be, where none lies below it; `None` where one may, or there are
    /// no exceptions.
    pub(crate) fn reach(&self) -> Option<u128> {
        match self.form {
            Form::Excess { width, is_signed: false } if self.count > 0 => {
                let bits = (width + self.frame.bit_width) as u32;
                Some(1u128.checked_shl(bits).map_or(u128::MAX, |beyond| beyond - 1))
            }
            _ => None,
        }
    }

    /// Shows all of them, positions ascending; those behind the end of the vector are passed over.
    #[inline]
    pub(crate) fn for_each(&self, mut visit: impl FnMut(usize, Patch<T>)) {
        self.for_each_place(|position, index| visit(position, self.patch(index)));
    }

    /// Shows all of them with what is to be added to base and slot, exactly, not modulo the width; false (and nothing shown)
    /// where that is not kept or may pass 128 bits.
    #[inline]
    pub(crate) fn for_each_missing(&self, mut visit: impl FnMut(usize, i128)) -> bool {
        let has_missing = T::BYTES <= 8 && matches!(self.form, Form::Excess { .. });
        if has_missing {
            self.for_each_place(|position, index| visit(position, self.missing(index)));
        }
        has_missing || self.is_empty()
    }

    /// Makes values of all exceptions of a full vector, `out`, that was unpacked as if there were none.
    #[inline]
    pub(crate) fn patch_vector(&self, out: &mut [T; VECTOR_LEN]) {
        match self.form {
            _ if self.is_empty() => {}
            Form::Excess { width, is_signed }
                if T::BYTES <= 8 && width <= WIDTH_MAX && !self.has_wide_places() && self.value_count == VECTOR_LEN =>
            {
                let (bytes, count) = (self.bytes, self.count);
                Excess { bytes, count, width, is_signed }.add_to(self.frame.bit_width, out);
            }
            _ => self.for_each(|position, patch| {
                out[position] = match patch {
                    Patch::Value(value) => value,
                    Patch::Add(missing) => out[position].add(missing),
                };
            }),
        }
    }

    /// [`Exceptions::for_each`] of those among the [`ENTRY_LEN`] values from this entry point on.
    pub(crate) fn for_each_from(&self, entry: usize, mut visit: impl FnMut(usize, Patch<T>)) {
        let start = entry * ENTRY_LEN;
        if self.has_wide_places() {
            return self.for_each(|position, patch| {
                if (start..start + ENTRY_LEN).contains(&position) {
                    visit(position, patch);
                }
            });
        }
        let (entries, places) = self.places().split_at(self.value_count.div_ceil(ENTRY_LEN));
        let before: usize = entries[..entry].iter().map(|count| usize::from(*count)).sum();
        let count = usize::from(entries[entry]);
        for (index, place) in (before..self.count).zip(places.get(before..).unwrap_or_default()).take(count) {
            visit(start + usize::from(*place) % ENTRY_LEN, self.patch(index));
        }
    }

    /// Shows the position and index of each.
    #[inline]
    fn for_each_place(&self, mut visit: impl FnMut(usize, usize)) {
        let mut visit = |position: usize, index: usize| {
            if position < self.value_count {
                visit(position, index);
            }
        };
        if self.has_wide_places() {
            for (index, place) in self.places().as_chunks().0.iter().enumerate().take(self.count) {
                visit(usize::from(u16::from_le_bytes(*place)), index);
            }
            return;
        }
        let (entries, places) = self.places().split_at(self.value_count.div_ceil(ENTRY_LEN));
        let mut index = 0;
        for (entry, count) in entries.iter().enumerate() {
            let end = (index + usize::from(*count)).min(self.count);
            for (index, place) in (index..end).zip(&places[index..end]) {
                visit(entry * ENTRY_LEN + usize::from(*place) % ENTRY_LEN, index);
            }
            index = end;
        }
    }

    /// That of the value at `position`, if it is one.
    pub(crate) fn at(&self, position: usize) -> Option<Patch<T>> {
        if self.has_wide_places() {
            // Behind the places of whole exceptions are the exceptions themselves.
            let places = self.places().as_chunks().0;
            let places = places.get(..self.count).unwrap_or(places);
            let found = places.binary_search_by_key(&position, |place| usize::from(u16::from_le_bytes(*place)));
            return found.ok().map(|index| self.patch(index));
        }
        let (entries, places) = self.places().split_at(self.value_count.div_ceil(ENTRY_LEN));
        let entry = position / ENTRY_LEN;
        let before: usize = entries[..entry].iter().map(|count| usize::from(*count)).sum();
        let places = places.get(before..)?;
        let places = places.get(..usize::from(entries[entry])).unwrap_or(places);
        let found = places.iter().position(|place| usize::from(*place) % ENTRY_LEN == position % ENTRY_LEN)?;
        Some(self.patch(before + found))
    }

    #[inline]
    fn has_wide_places(&self) -> bool {
        self.form.has_wide_places(self.count)
    }

    #[inline]
    fn places(&self) -> &'a [u8] {
        match self.form {
            Form::Whole { .. } => self.bytes,
            Form::Excess { width, .. } => &self.bytes[stream_bytes(self.count, width)..],
        }
    }

    #[inline]
    fn patch(&self, index: usize) -> Patch<T> {
        match self.form {
            Form::Whole { bytes } => {
                let distance = &self.bytes[2 * self.count + index * bytes..][..bytes];
                Patch::Value(self.frame.base.add(sign_extended(distance)))
            }
            Form::Excess { .. } => Patch::Add(T::cut(self.missing(index))),
        }
    }

    /// What is to be added to base and slot, for exceptions that are not whole.
    #[inline]
    fn missing(&self, index: usize) -> i128 {
        let Form::Excess { width, is_signed } = self.form else { return 0 };
        let missing = read_one(self.bytes, width, index);
        let missing = match is_signed {
            false => i128::from(missing),
            true => i128::from(missing >> 1) ^ -i128::from(missing & 1),
        };
        missing << self.frame.bit_width
    }
}

/// A distance from the base in as many bytes as it needs.
fn sign_extended<T: Integer>(bytes: &[u8]) -> T {
    let mut wide = [0; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    let unused = 128 - 8 * bytes.len() as u32;
    T::cut(i128::from_le_bytes(wide) << unused >> unused)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All exceptions of values between `low` and `high`, and what comes of patching.
    fn come_back<T: Integer>(vector: &[T], frame: Frame<T>) {
        let positions: Vec<u16> =
            (0..vector.len() as u16).filter(|position| !frame.holds(vector[usize::from(*position)])).collect();
        let mut bytes = Vec::new();
        let form = Form::read(write(vector, frame, &positions, &mut bytes));
        assert_eq!(bytes.len(), form.bytes_of(positions.len(), vector.len()));
        let exceptions = Exceptions::new(form, positions.len(), vector.len(), frame, &bytes);
        let mask = (1u128 << frame.bit_width) - 1;
        let patched = |position: usize, patch: Patch<T>| match patch {
            Patch::Value(value) => value,
            Patch::Add(missing) => {
                frame.base.add(T::from_bits(vector[position].sub(frame.base).bits() & mask)).add(missing)
            }
        };
        let mut seen = Vec::new();
        exceptions.for_each(|position, patch| {
            assert_eq!(patched(position, patch), vector[position], "value {position} of {frame:?}");
            seen.push(position as u16);
        });
        assert_eq!(seen, positions);
        for (position, value) in vector.iter().enumerate() {
            match exceptions.at(position) {
                None => assert!(frame.holds(*value)),
                Some(patch) => assert_eq!(patched(position, patch), *value),
            }
        }
    }

    #[test]
    fn exceptions_of_every_width_and_side_come_back() {
        for step in [7, 40, 300] {
            for (count, bit_width) in [(1024, 3), (1024, 10), (1000, 1), (130, 6), (9, 0), (3, 2)] {
                let value = |i: i64| match i % step {
                    3 => 5000 + i * i,
                    5 if i % 2 == 0 => -i * 17,
                    _ => 100 + i % (1 << bit_width),
                };
                let vector: Vec<i64> = (0..count).map(value).collect();
                come_back(&vector, Frame { base: 100, bit_width });
                let above: Vec<u32> = vector.iter().map(|value| (*value).max(100) as u32).collect();
                come_back(&above, Frame { base: 100, bit_width });
                let small: Vec<i8> = vector.iter().map(|value| *value as i8).collect();
                come_back(&small, Frame { base: -100, bit_width: bit_width.min(7) });
            }
        }
        come_back(&[i64::MIN, i64::MAX, 0, 1, 2, -1], Frame { base: 0, bit_width: 2 });
        come_back(&[u64::MAX, 0, 7], Frame { base: 1, bit_width: 1 });
        come_back(&[1i128 << 60, -(1 << 60), 3], Frame { base: 1, bit_width: 4 });
        come_back(&[1i128 << 100, i128::MIN, i128::MAX, 3, 0, -7], Frame { base: 1, bit_width: 4 });
        come_back(&[u64::MAX, 0, 7], Frame { base: 1, bit_width: 0 });
        come_back(&[i64::MIN, i64::MAX, 1, 0], Frame { base: 1, bit_width: 0 });
        for bits in 64..127 {
            come_back(&[5, (1i128 << bits) + 5, (1 << bits) + 4, 6 - (1 << bits)], Frame { base: 5, bit_width: 0 });
        }
        let wide: Vec<i128> = (0..1024).map(|i| if i % 50 == 7 { (i - 500) << 90 } else { i % 16 }).collect();
        come_back(&wide, Frame { base: 1, bit_width: 3 });
    }
}
