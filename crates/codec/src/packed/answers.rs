//! Kernels answered on packed numbers.
//!
//! A sum is `base * count` and the sum of the numbers; of steps, each counts as often as values come after it. A vector
//! whose frame lies between the bounds known so far cannot widen them, and is not looked at.

use super::bare::{BareVector, bounds_of_full, sum_of_full};
use super::directory::{PLAIN_WIDTH, PackedVector};
use super::reader::{PackedReader, decode_stepped};
use super::unpack::{self, Numbers};
use crate::bit_packing::Lane;
use crate::condition::IntegerCondition;
use crate::fixed::Integer;
use crate::fused::{Fused, RAMP_WIDTH_MAX};
use crate::kernel::{Bounds, Marks, Rows, VectorMarks, WideSum};
use crate::kernels::{self, fill_unmarked, keep_marked};
use crate::scratch::{Scratch, Unpacked};
use crate::{Result, VECTOR_LEN};
use std::ops::Range;

/// The part of a vector that is asked about.
struct Asked<'w> {
    piece: Range<usize>,
    marks: Marks,
    /// One bit per value of the piece, where only some count.
    words: &'w VectorMarks,
}

impl Asked<'_> {
    /// Whether all values of a full vector count.
    fn is_full_vector(&self) -> bool {
        self.marks == Marks::All && self.piece.len() == VECTOR_LEN
    }

    /// Whether the value at this position of the vector counts.
    fn counts(&self, position: usize) -> bool {
        let is_marked = |at: usize| self.words[at / 64] >> (at % 64) & 1 == 1;
        self.piece.contains(&position) && (self.marks == Marks::All || is_marked(position - self.piece.start))
    }

    /// How many values count.
    fn count(&self) -> usize {
        match self.marks {
            Marks::None => 0,
            Marks::All => self.piece.len(),
            Marks::Some(count) => count,
        }
    }

    /// The values that count, decoded into `spare`.
    fn decode<'s, T: Integer>(
        &self,
        vector: &PackedVector<'_, T>,
        is_stepped: bool,
        room: &mut Unpacked,
        spare: &'s mut Vec<T>,
    ) -> &'s [T] {
        spare.resize(vector.count, T::default());
        if is_stepped {
            decode_stepped(vector, spare, room);
        } else {
            unpack::decode(vector, 0..vector.count, spare, room);
        }
        spare.truncate(self.piece.end);
        spare.drain(..self.piece.start);
        if let Marks::Some(_) = self.marks {
            keep_marked(spare, self.words);
        }
        spare
    }
}

/// A vector in which rows count.
enum Shown<'v, 'a, T> {
    /// All of a bare one.
    Bare(BareVector<'a, T>),
    /// Some or all of one of any kind.
    Part(&'v PackedVector<'a, T>, Asked<'v>),
}

/// Shows each vector in which rows count.
fn for_each_vector<'a, T: Integer>(
    reader: &PackedReader<'a, T>,
    rows: &Rows<'_>,
    scratch: &mut Scratch,
    mut visit: impl FnMut(Shown<'_, 'a, T>, &mut Scratch, &mut Vec<T>),
) -> Result<()> {
    let mut words: VectorMarks = [0; VECTOR_LEN / 64];
    let mut spare = scratch.take_values(T::PHYSICAL);
    let mut visited = Ok(());
    for part in rows.vectors() {
        let marks = rows.marks(part.clone(), &mut words);
        if marks == Marks::None {
            continue;
        }
        let index = part.start / VECTOR_LEN;
        if marks == Marks::All
            && part.len() == VECTOR_LEN
            && let Some(vector) = reader.bare_vector(index)
        {
            visit(Shown::Bare(vector), scratch, T::vec_mut(&mut spare));
            continue;
        }
        match reader.vector(index) {
            Ok(vector) => {
                let piece = part.start - index * VECTOR_LEN..part.end - index * VECTOR_LEN;
                let asked = Asked { piece, marks, words: &words };
                visit(Shown::Part(&vector, asked), scratch, T::vec_mut(&mut spare));
            }
            Err(error) => {
                visited = Err(error);
                break;
            }
        }
    }
    scratch.give_values(spare);
    visited
}

/// [`crate::scheme::Reader::sum`].
pub(super) fn sum<T: Integer>(
    reader: &PackedReader<'_, T>,
    rows: &Rows<'_>,
    total: &mut WideSum,
    scratch: &mut Scratch,
) -> Result<()> {
    let is_stepped = reader.layout.stepped;
    for_each_vector(reader, rows, scratch, |shown, scratch, spare| {
        let (vector, asked) = match shown {
            Shown::Bare(vector) => {
                reader.prefetch_after_small(vector.packed);
                return total.add_sum(vector.sum());
            }
            Shown::Part(vector, asked) => (vector, asked),
        };
        let known = match is_stepped {
            true => sum_of_steps(vector, &asked),
            false => sum_of_numbers(vector, &asked, &mut scratch.unpacked),
        };
        match known {
            Some(sum) => total.add_sum(sum),
            None => {
                scratch.decoded_values += asked.piece.len();
                let values = asked.decode(vector, is_stepped, &mut scratch.unpacked, spare);
                total.add_sum(kernels::sum(values));
            }
        }
    })
}

/// The sum of the values that count; `None` where they are plain.
fn sum_of_numbers<T: Integer>(vector: &PackedVector<'_, T>, asked: &Asked<'_>, room: &mut Unpacked) -> Option<WideSum> {
    fn of<L: Lane>(numbers: &mut [L], asked: &Asked<'_>) -> WideSum {
        let numbers = &mut numbers[asked.piece.clone()];
        if let Marks::Some(_) = asked.marks {
            fill_unmarked(numbers, asked.words, L::default());
        }
        kernels::sum(numbers)
    }
    let (packed, width) = (vector.packed, vector.bit_width);
    let mut sum = if width == PLAIN_WIDTH {
        return None;
    } else if asked.is_full_vector() {
        sum_of_full(packed, width).cast_signed().into()
    } else {
        match unpack::unpack(vector, room) {
            Numbers::Zero => WideSum::default(),
            Numbers::U8(numbers) => of(numbers, asked),
            Numbers::U16(numbers) => of(numbers, asked),
            Numbers::U32(numbers) => of(numbers, asked),
            Numbers::U64(numbers) => of(numbers, asked),
            Numbers::Plain => return None,
        }
    };
    sum.add_product(vector.base.wide(), asked.count() as u64);
    let mut missing_sum = 0;
    let has_missing = vector.exceptions.for_each_missing(|position, missing| {
        missing_sum += if asked.counts(position) { missing } else { 0 };
    });
    sum.add(missing_sum);
    if !has_missing {
        vector.for_each_exception(|position, value| {
            if asked.counts(position) {
                // In place of what stands in its slot.
                sum.add(value.wide());
                sum =
                    sum.less_product(vector.base.wide(), 1).less_product(unpack::number_at(vector, position).into(), 1);
            }
        });
    }
    Some(sum)
}

/// The sum of all values of a full vector of steps, where no value on the way can have wrapped; else `None`.
fn sum_of_steps<T: Integer>(vector: &PackedVector<'_, T>, asked: &Asked<'_>) -> Option<WideSum> {
    let (packed, width) = (vector.packed, vector.bit_width);
    if !asked.is_full_vector() || width > RAMP_WIDTH_MAX || T::BYTES > 8 {
        return None;
    }
    // The number of the first value means nothing: it is taken out again.
    let count = VECTOR_LEN as i128;
    let ramp = match width {
        0 => 0,
        1..=8 => u8::ramp(packed, width),
        9..=16 => u16::ramp(packed, width),
        17..=32 => u32::ramp(packed, width),
        _ => u64::ramp(packed, width),
    };
    let (first, base) = (vector.first.wide(), vector.base.signed().wide());
    let mut sum = first * count + base * (count * (count - 1) / 2) + ramp as i128;
    sum -= count * i128::from(unpack::number_at(vector, 0));
    let mut reach = base.abs().max((base + (1 << width)).abs()) * count;
    let has_missing = vector.exceptions.for_each_missing(|position, missing| {
        if position > 0 {
            sum += missing * (count - position as i128);
            reach = reach.saturating_add(missing.abs());
        }
    });
    let stays = first.saturating_sub(reach) >= T::MIN.wide() && first.saturating_add(reach) <= T::MAX.wide();
    (has_missing && stays).then(|| sum.into())
}

/// [`crate::scheme::Reader::bounds`].
pub(super) fn bounds<T: Integer>(
    reader: &PackedReader<'_, T>,
    rows: &Rows<'_>,
    found: &mut Bounds,
    scratch: &mut Scratch,
) -> Result<()> {
    let is_stepped = reader.layout.stepped;
    for_each_vector(reader, rows, scratch, |shown, scratch, spare| {
        let (vector, asked) = match shown {
            Shown::Bare(vector) => {
                if !vector.is_within(found) {
                    // Only now: the next vectors, too, may not be looked at.
                    reader.prefetch_after_small(vector.packed);
                    vector.widen(found);
                }
                return;
            }
            Shown::Part(vector, asked) => (vector, asked),
        };
        let known = match is_stepped {
            true => bounds_of_steps(vector, &asked, found),
            false => bounds_of_numbers(reader, vector, &asked, found, &mut scratch.unpacked),
        };
        if !known {
            scratch.decoded_values += asked.piece.len();
            found.widen(T::values(asked.decode(vector, is_stepped, &mut scratch.unpacked, spare)));
        }
    })
}

/// Widens bounds by the values that count; false (and nothing done) where they are plain.
fn bounds_of_numbers<T: Integer>(
    reader: &PackedReader<'_, T>,
    vector: &PackedVector<'_, T>,
    asked: &Asked<'_>,
    found: &mut Bounds,
    room: &mut Unpacked,
) -> bool {
    let (packed, width) = (vector.packed, vector.bit_width);
    if width == PLAIN_WIDTH {
        return false;
    }
    let base = vector.base;
    let mut exceptions: Option<(T, T)> = None;
    // What is in its frame: one bit per value of the piece.
    let mut regular: VectorMarks = [u64::MAX; VECTOR_LEN / 64];
    let mut regular_count = asked.count();
    if let Marks::Some(_) = asked.marks {
        regular = *asked.words;
    }
    vector.for_each_exception(|position, value| {
        if asked.counts(position) {
            let (least, greatest) = exceptions.unwrap_or((value, value));
            exceptions = Some((least.min(value), greatest.max(value)));
            let at = position - asked.piece.start;
            regular_count -= (regular[at / 64] >> (at % 64) & 1) as usize;
            regular[at / 64] &= !(1 << (at % 64));
        }
    });
    if let Some((least, greatest)) = exceptions {
        found.widen_integers(least.wide(), greatest.wide());
    }
    if regular_count == 0 || found.hold(base.wide(), base.wide().saturating_add((1 << width) - 1)) {
        return true;
    }
    // Only now: the next vectors, too, may not be looked at.
    reader.prefetch_after_small(vector.packed);
    fn of<L: Lane>(numbers: &mut [L], asked: &Asked<'_>, regular: &VectorMarks, regular_count: usize) -> (u64, u64) {
        let numbers = &mut numbers[asked.piece.clone()];
        if regular_count < numbers.len() {
            let word = regular.iter().position(|word| *word != 0).unwrap_or(0);
            let first = 64 * word + regular[word].trailing_zeros() as usize;
            fill_unmarked(numbers, regular, numbers[first]);
        }
        let (least, greatest) = kernels::bounds(numbers);
        (least.into(), greatest.into())
    }
    let (least, greatest) = if asked.is_full_vector() && regular_count == VECTOR_LEN {
        bounds_of_full(packed, width)
    } else {
        match unpack::unpack(vector, room) {
            Numbers::Zero | Numbers::Plain => (0, 0),
            Numbers::U8(numbers) => of(numbers, asked, &regular, regular_count),
            Numbers::U16(numbers) => of(numbers, asked, &regular, regular_count),
            Numbers::U32(numbers) => of(numbers, asked, &regular, regular_count),
            Numbers::U64(numbers) => of(numbers, asked, &regular, regular_count),
        }
    };
    found.widen_integers(base.add(T::from_delta(least)).wide(), base.add(T::from_delta(greatest)).wide());
    true
}

/// Widens bounds by all values of an ascending vector of steps; false (and nothing done) where it is not that.
fn bounds_of_steps<T: Integer>(vector: &PackedVector<'_, T>, asked: &Asked<'_>, found: &mut Bounds) -> bool {
    let ends =
        if asked.marks == Marks::All && asked.piece.len() == vector.count { ends_of_steps(vector) } else { None };
    if let Some((least, greatest)) = ends {
        found.widen_integers(least, greatest);
    }
    ends.is_some()
}

/// The first and the last value of a vector of steps, where none of them is down or wraps: all others lie between. `None`
/// where that is not certain, or the last one had only by adding up all steps.
pub(super) fn ends_of_steps<T: Integer>(vector: &PackedVector<'_, T>) -> Option<(i128, i128)> {
    let (first, base) = (vector.first.wide(), vector.base.signed().wide());
    if T::BYTES > 8 || vector.bit_width > 64 || base < 0 || !vector.has_points() {
        return None;
    }
    let last = vector.count - 1;
    let mut reach = (base + (1 << vector.bit_width)) * last as i128;
    let mut is_down = false;
    let has_missing = vector.exceptions.for_each_missing(|_, missing| {
        is_down |= missing < 0;
        reach = reach.saturating_add(missing);
    });
    let is_ascending = has_missing && !is_down && first.saturating_add(reach) <= T::MAX.wide();
    is_ascending.then(|| (first, unpack::value_of_steps(vector, last).wide()))
}

/// [`crate::scheme::Reader::lower_bound`]: first the vector by its first values, then the place in it.
pub(super) fn lower_bound<T: Integer>(
    reader: &PackedReader<'_, T>,
    range: Range<usize>,
    below: &IntegerCondition,
    scratch: &mut Scratch,
) -> Result<usize> {
    if range.is_empty() {
        return Ok(range.start);
    }
    let is_stepped = reader.layout.stepped;
    // All vectors up to `first` begin with a value that is below, those from `end` on do not.
    let (mut first, mut end) = (range.start / VECTOR_LEN, range.end.div_ceil(VECTOR_LEN));
    while end - first > 1 {
        let middle = first + (end - first) / 2;
        let vector = reader.vector(middle)?;
        let value = if is_stepped { vector.first } else { vector.value_at(0) };
        if below.passes(value.wide()) { first = middle } else { end = middle }
    }
    let vector = reader.vector(first)?;
    let start = first * VECTOR_LEN;
    let (mut low, mut high) = (range.start.max(start) - start, range.end.min(start + VECTOR_LEN) - start);
    if is_stepped && !vector.has_points() {
        let mut spare = scratch.take_values(T::PHYSICAL);
        let values = T::vec_mut(&mut spare);
        values.resize(vector.count, T::default());
        decode_stepped(&vector, values, &mut scratch.unpacked);
        low += values[low..high].partition_point(|value| below.passes(value.wide()));
        scratch.give_values(spare);
        return Ok(start + low);
    }
    while low < high {
        let middle = low + (high - low) / 2;
        let value = if is_stepped { unpack::value_of_steps(&vector, middle) } else { vector.value_at(middle) };
        if below.passes(value.wide()) { low = middle + 1 } else { high = middle }
    }
    Ok(start + low)
}
