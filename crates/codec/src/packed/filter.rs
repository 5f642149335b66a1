//! Conditions answered on packed numbers: the constants move into the frame, not the values out of it.

use super::bare::BareVector;
use super::directory::PackedVector;
use super::unpack::{self, Numbers};
use crate::bit_packing::Lane;
use crate::condition::{COMPARED_CONSTANTS, IntegerCondition, Marks};
use crate::fixed::Integer;
use crate::fused::{Fused, VectorBits};
use crate::kernels::push_tests;
use crate::scratch::Unpacked;
use crate::{Bitmap, VECTOR_LEN};
use std::ops::Range;

/// Appends one bit per value of `range` of the vector. Where base and width tell all, nothing is unpacked. Returns true
/// when no value was made of the packed numbers.
pub(crate) fn filter<T: Integer>(
    vector: &PackedVector<'_, T>,
    range: Range<usize>,
    condition: &IntegerCondition,
    out: &mut Bitmap,
    room: &mut Unpacked,
) -> bool {
    if vector.bit_width > 64 {
        filter_values(vector, range, condition, out, room);
        return false;
    }
    let start = out.len();
    match condition {
        IntegerCondition::Within(low, high) => {
            let span = span(vector.base, vector.bit_width, *low, *high);
            push(vector, &range, span, false, out, room);
        }
        IntegerCondition::Outside(low, high) => {
            let span = span(vector.base, vector.bit_width, *low, *high);
            push(vector, &range, span, true, out, room);
        }
        IntegerCondition::OneOf(constants) => {
            let base = vector.base.wide();
            let last = base.saturating_add((1 << vector.bit_width) - 1);
            let first = constants.partition_point(|constant| *constant < base);
            let end = constants.partition_point(|constant| *constant <= last);
            match &constants[first..end.max(first)] {
                [] => out.extend_with(range.len(), false),
                held if held.len() <= 2 => push_one_of::<T, 2>(vector, &range, held, out, room),
                held if held.len() <= COMPARED_CONSTANTS => {
                    push_one_of::<T, COMPARED_CONSTANTS>(vector, &range, held, out, room);
                }
                held => {
                    // Numbers of 64 bits would wrap onto the marks of constants that lie beyond the frame. And where a list
                    // is too wide for marks, what a frame holds of it may not be.
                    let wraps = vector.bit_width == 64 && held.len() < constants.len();
                    let of_all = if wraps { None } else { constants.marks() };
                    let of_held = if of_all.is_none() { Marks::of(held) } else { None };
                    match of_all.or(of_held.as_ref()) {
                        Some(marks) => push_marked(vector, &range, &marks.words, marks.first, out, room),
                        None => push_numbers(vector, &range, out, room, |number| {
                            held.binary_search(&base.saturating_add(number.into())).is_ok()
                        }),
                    }
                }
            }
        }
        IntegerCondition::Marked(marked) => push_marked(vector, &range, marked.words(), 0, out, room),
    }
    vector.for_each_exception(|position, value| {
        if range.contains(&position) {
            out.set(start + position - range.start, condition.passes(value.wide()));
        }
    });
    true
}

/// Unpacks the values, then tests them.
fn filter_values<T: Integer>(
    vector: &PackedVector<'_, T>,
    range: Range<usize>,
    condition: &IntegerCondition,
    out: &mut Bitmap,
    room: &mut Unpacked,
) {
    let mut values = [T::default(); VECTOR_LEN];
    let values = &mut values[..range.len()];
    unpack::decode(vector, range, values, room);
    condition.evaluate_by(values, |value| value, out);
}

/// A range of values as a range of packed numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Span {
    None,
    All,
    Some(u64, u64),
}

/// That of values from `low` to `high`.
#[inline]
fn span<T: Integer>(base: T, bit_width: usize, low: i128, high: i128) -> Span {
    let base = base.wide();
    let (low, high) = (low.saturating_sub(base), high.saturating_sub(base));
    let greatest = (1i128 << bit_width) - 1;
    if high < 0 || low > greatest || low > high {
        Span::None
    } else if low <= 0 && high >= greatest {
        Span::All
    } else {
        Span::Some(low.max(0) as u64, high.min(greatest) as u64)
    }
}

/// Appends one bit per number: it lies in `span`, or not if `outside`.
fn push<T: Integer>(
    vector: &PackedVector<'_, T>,
    range: &Range<usize>,
    span: Span,
    outside: bool,
    out: &mut Bitmap,
    room: &mut Unpacked,
) {
    fn compare<L: Lane>(numbers: &[L], low: u64, high: u64, outside: bool, out: &mut Bitmap) {
        let (low, high) = (L::from_delta(low), L::from_delta(high));
        if outside {
            push_tests(numbers, out, |number| (number < low) | (number > high));
        } else {
            push_tests(numbers, out, |number| (number >= low) & (number <= high));
        }
    }
    let (low, high) = match span {
        Span::None => return out.extend_with(range.len(), outside),
        Span::All => return out.extend_with(range.len(), !outside),
        Span::Some(low, high) => (low, high),
    };
    if range.len() == VECTOR_LEN {
        return push_whole(vector.packed, vector.bit_width, low, high, outside, out);
    }
    match unpack::unpack(vector, room) {
        Numbers::U8(numbers) => compare(&numbers[range.clone()], low, high, outside, out),
        Numbers::U16(numbers) => compare(&numbers[range.clone()], low, high, outside, out),
        Numbers::U32(numbers) => compare(&numbers[range.clone()], low, high, outside, out),
        Numbers::U64(numbers) => compare(&numbers[range.clone()], low, high, outside, out),
        Numbers::Zero | Numbers::Plain => unreachable!("a width of 0 decides, plain values are compared elsewhere"),
    }
}

/// Appends one bit per value: it is from `low` to `high`, or not if `outside`.
#[inline]
pub(super) fn push_bare<T: Integer>(
    vector: &BareVector<'_, T>,
    low: i128,
    high: i128,
    outside: bool,
    out: &mut Bitmap,
) {
    match span(vector.base, vector.bit_width, low, high) {
        Span::None => out.extend_with(VECTOR_LEN, outside),
        Span::All => out.extend_with(VECTOR_LEN, !outside),
        Span::Some(low, high) => push_whole(vector.packed, vector.bit_width, low, high, outside, out),
    }
}

/// [`push`] for all of a full vector, compared while it is unpacked.
fn push_whole(packed: &[u8], width: usize, low: u64, high: u64, outside: bool, out: &mut Bitmap) {
    let write = |bits: &mut VectorBits| {
        match width {
            1..=8 => u8::within(packed, width, low as u8, high as u8, bits),
            9..=16 => u16::within(packed, width, low as u16, high as u16, bits),
            17..=32 => u32::within(packed, width, low as u32, high as u32, bits),
            _ => u64::within(packed, width, low, high, bits),
        }
        if outside {
            bits.iter_mut().for_each(|word| *word = !*word);
        }
    };
    if out.len().is_multiple_of(64) {
        // Where they stay: reading words that were just written as a register took a tenth of the time.
        write(out.push_words(VECTOR_LEN / 64).try_into().expect("as many words as a vector has"));
    } else {
        let mut bits = [0; VECTOR_LEN / 64];
        write(&mut bits);
        bits.into_iter().for_each(|word| out.push_word(word, 64));
    }
}

/// Appends one bit per number: it stands for one of `constants`, which all lie in the frame and are `1..=N`.
fn push_one_of<T: Integer, const N: usize>(
    vector: &PackedVector<'_, T>,
    range: &Range<usize>,
    constants: &[i128],
    out: &mut Bitmap,
    room: &mut Unpacked,
) {
    fn compare<L: Lane, const N: usize>(numbers: &[L], wanted: [u64; N], out: &mut Bitmap) {
        let wanted = wanted.map(L::from_delta);
        push_tests(numbers, out, |number| wanted.iter().fold(false, |found, wanted| found | (number == *wanted)));
    }
    let base = vector.base.wide();
    let mut wanted = [(constants[0] - base) as u64; N];
    wanted.iter_mut().zip(constants).for_each(|(wanted, constant)| *wanted = (constant - base) as u64);
    match unpack::unpack(vector, room) {
        Numbers::Zero | Numbers::Plain => out.extend_with(range.len(), true),
        Numbers::U8(numbers) => compare(&numbers[range.clone()], wanted, out),
        Numbers::U16(numbers) => compare(&numbers[range.clone()], wanted, out),
        Numbers::U32(numbers) => compare(&numbers[range.clone()], wanted, out),
        Numbers::U64(numbers) => compare(&numbers[range.clone()], wanted, out),
    }
}

/// Appends one bit per number: the value that it stands for has a set bit in `marks`, whose first is that of `first`.
fn push_marked<T: Integer>(
    vector: &PackedVector<'_, T>,
    range: &Range<usize>,
    marks: &[u64],
    first: i128,
    out: &mut Bitmap,
    room: &mut Unpacked,
) {
    let distance = vector.base.wide().saturating_sub(first);
    if distance >= 64 * marks.len() as i128 || distance < -i128::from(u64::MAX) {
        return out.extend_with(range.len(), false);
    }
    // What lies before the first wraps to numbers beyond the last.
    let distance = distance as u64;
    push_numbers(vector, range, out, room, |number| {
        let place = number.wrapping_add(distance);
        marks.get((place / 64) as usize).is_some_and(|word| word >> (place % 64) & 1 == 1)
    });
}

/// Appends one bit per number: `test` of it.
fn push_numbers<T: Integer>(
    vector: &PackedVector<'_, T>,
    range: &Range<usize>,
    out: &mut Bitmap,
    room: &mut Unpacked,
    test: impl Fn(u64) -> bool,
) {
    match unpack::unpack(vector, room) {
        Numbers::Zero => out.extend_with(range.len(), test(0)),
        Numbers::U8(numbers) => push_tests(&numbers[range.clone()], out, |number| test(number.into())),
        Numbers::U16(numbers) => push_tests(&numbers[range.clone()], out, |number| test(number.into())),
        Numbers::U32(numbers) => push_tests(&numbers[range.clone()], out, |number| test(number.into())),
        Numbers::U64(numbers) => push_tests(&numbers[range.clone()], out, test),
        Numbers::Plain => unreachable!("plain values are compared elsewhere"),
    }
}
