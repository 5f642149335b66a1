//! The entry of one vector in the directory, and where its parts lie.

use super::exceptions::{Exceptions, Form, Patch};
use super::frame::Frame;
use super::unpack::unpack_one;
use crate::bit_packing::WORD_ROW_BYTES;
use crate::bit_stream::stream_bytes;
use crate::fixed::{Fixed, Integer};
use crate::node::Cursor;
use crate::{Error, Result, VECTOR_LEN};

/// Which fields the entries of a scheme have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) scheme: &'static str,
    /// A base per vector; else it is zero.
    pub(crate) based: bool,
    /// Exceptions.
    pub(crate) patched: bool,
    /// Values are steps from the value before.
    pub(crate) stepped: bool,
}

/// A vector whose numbers do not fit 64 bits keeps them whole, 16 bytes each.
pub(crate) const PLAIN_WIDTH: usize = 128;

/// Steps from one value that is kept to the next: what is known in between takes adding up fewer steps than these.
pub(crate) const POINT_STEPS: usize = 128;

/// Added to the width in the entry of a vector that has entry points; for [`PLAIN_WIDTH`] and none there are the next two.
const HAS_POINTS: u8 = 128;
const PLAIN_WITH_POINTS: u8 = 193;
const NONE_WITH_POINTS: u8 = 194;

/// The width in an entry of a vector with entry points.
pub(crate) fn width_with_points(bit_width: u8) -> u8 {
    match usize::from(bit_width) {
        0 => NONE_WITH_POINTS,
        PLAIN_WIDTH => PLAIN_WITH_POINTS,
        _ => bit_width + HAS_POINTS,
    }
}

/// The width that an entry says, and whether the vector has entry points.
#[inline]
pub(super) fn read_width(byte: u8) -> (usize, bool) {
    match byte {
        0..=HAS_POINTS => (usize::from(byte), false),
        PLAIN_WITH_POINTS => (PLAIN_WIDTH, true),
        NONE_WITH_POINTS => (0, true),
        _ => (usize::from(byte - HAS_POINTS), true),
    }
}

/// An entry as written.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Entry<T> {
    /// The first value, if stepped.
    pub(crate) first: T,
    pub(crate) base: T,
    /// Where the vector begins, counted from the end of the directory.
    pub(crate) offset: u32,
    pub(crate) bit_width: u8,
    /// How exceptions are written: a [`Form`].
    pub(crate) exception_form: u8,
    pub(crate) exception_count: u16,
}

impl Layout {
    /// Bytes of an entry for values of `value_bytes`.
    pub(crate) fn entry_bytes(self, value_bytes: usize) -> usize {
        value_bytes * (usize::from(self.stepped) + usize::from(self.based)) + 4 + 1 + if self.patched { 3 } else { 0 }
    }

    /// Appends an entry.
    pub(crate) fn write_entry<T: Integer>(self, entry: Entry<T>, out: &mut Vec<u8>) {
        if self.stepped {
            entry.first.write(out);
        }
        if self.based {
            entry.base.write(out);
        }
        entry.offset.write(out);
        entry.bit_width.write(out);
        if self.patched {
            entry.exception_form.write(out);
            entry.exception_count.write(out);
        }
    }

    /// The entry at the front of `bytes`, which hold it.
    #[inline]
    pub(crate) fn read_entry<T: Integer>(self, bytes: &[u8]) -> Entry<T> {
        let mut rest = bytes;
        let mut entry = Entry::default();
        if self.stepped {
            entry.first = next(&mut rest);
        }
        if self.based {
            entry.base = next(&mut rest);
        }
        entry.offset = next(&mut rest);
        entry.bit_width = next(&mut rest);
        if self.patched {
            entry.exception_form = next(&mut rest);
            entry.exception_count = next(&mut rest);
        }
        entry
    }
}

#[inline]
fn next<T: Fixed>(rest: &mut &[u8]) -> T {
    let value = T::read(rest);
    *rest = &rest[T::BYTES..];
    value
}

/// Bytes of `count` packed numbers.
#[inline]
pub(crate) fn packed_bytes(count: usize, bit_width: usize) -> usize {
    match bit_width {
        PLAIN_WIDTH => count * 16,
        _ if count == VECTOR_LEN => WORD_ROW_BYTES * bit_width,
        _ => stream_bytes(count, bit_width),
    }
}

/// A vector with its parts in place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackedVector<'a, T> {
    /// Values in it.
    pub(crate) count: usize,
    pub(crate) first: T,
    pub(crate) base: T,
    pub(crate) bit_width: usize,
    pub(crate) packed: &'a [u8],
    pub(crate) exceptions: Exceptions<'a, T>,
    /// What base and numbers add up to at every [`POINT_STEPS`]th value, less the bases; `None` where it is not kept.
    points: Option<Points<'a>>,
}

/// Sums at entry points: so many bytes each.
#[derive(Clone, Copy, Debug)]
struct Points<'a> {
    point_bytes: usize,
    sums: &'a [u8],
}

/// How many entry points so many values have: none at the first value, which is in the entry.
pub(crate) fn point_count(value_count: usize) -> usize {
    value_count.saturating_sub(1) / POINT_STEPS
}

impl<'a, T: Integer> PackedVector<'a, T> {
    /// Checks an entry against the bytes after the directory.
    #[inline]
    pub(crate) fn new(entry: Entry<T>, count: usize, data: &'a [u8], place: &'static str) -> Result<Self> {
        let (bit_width, has_points) = read_width(entry.bit_width);
        let exception_count = usize::from(entry.exception_count);
        let form = Form::read(entry.exception_form);
        let has_width = bit_width <= 8 * T::BYTES && (bit_width <= 64 || bit_width == PLAIN_WIDTH);
        let start = entry.offset as usize;
        let exceptions_at = packed_bytes(count, bit_width);
        let end = exceptions_at + form.bytes_of(exception_count, count);
        let rest = data.get(start..).unwrap_or_default();
        let points = if has_points { Points::read::<T>(rest.get(end..).unwrap_or_default(), count) } else { None };
        match rest.get(..end) {
            Some(bytes)
                if has_width
                    && has_points == points.is_some()
                    && has_exceptions::<T>(form, exception_count, count, bit_width) =>
            {
                let (packed, exceptions) = bytes.split_at(exceptions_at);
                let frame = Frame { base: entry.base, bit_width };
                let exceptions = Exceptions::new(form, exception_count, count, frame, exceptions);
                if !exceptions.has_all_places() {
                    return Err(Self::fault(entry, count, data, place));
                }
                Ok(PackedVector { count, first: entry.first, base: entry.base, bit_width, packed, exceptions, points })
            }
            _ => Err(Self::fault(entry, count, data, place)),
        }
    }

    /// What is wrong with an entry.
    #[cold]
    fn fault(entry: Entry<T>, count: usize, data: &[u8], place: &'static str) -> Error {
        let mut cursor = Cursor { place, bytes: data, level: 0 };
        if let Err(error) = cursor.take(entry.offset as usize, "offset of a vector") {
            return error;
        }
        let (bit_width, _) = read_width(entry.bit_width);
        if bit_width > 8 * T::BYTES || (bit_width > 64 && bit_width != PLAIN_WIDTH) {
            return cursor.damaged(format!("bit width {bit_width} exceeds {}", (8 * T::BYTES).min(64)));
        }
        let (exception_count, form) = (usize::from(entry.exception_count), Form::read(entry.exception_form));
        if !has_exceptions::<T>(form, exception_count, count, bit_width) {
            return cursor.damaged(format!("{exception_count} exceptions as {form:?} for {count} values"));
        }
        let parts =
            [(packed_bytes(count, bit_width), "packed numbers"), (form.bytes_of(exception_count, count), "exceptions")];
        let cut_short = parts.into_iter().find_map(|(bytes, what)| cursor.take(bytes, what).err());
        cut_short.unwrap_or_else(|| cursor.damaged("entry points are too wide, or missing, or count other exceptions"))
    }

    /// Whether a value is had by adding up fewer steps than [`POINT_STEPS`].
    #[inline]
    pub(crate) fn has_points(&self) -> bool {
        self.points.is_some() || self.count <= POINT_STEPS || (self.bit_width == 0 && self.is_unpatched())
    }

    /// The value at the entry point before `position`, or at it: its position, and the value.
    pub(crate) fn point_before(&self, position: usize) -> (usize, T) {
        let index = position / POINT_STEPS;
        let steps = index * POINT_STEPS;
        let sum = match self.points {
            Some(points) if index > 0 => points.sum(index - 1),
            _ => return (0, self.first),
        };
        let bases = T::cut(self.base.wide().wrapping_mul(steps as i128));
        (steps, self.first.add(bases).add(T::from_bits(sum)))
    }

    /// True when every number fits its width.
    #[inline]
    pub(crate) fn is_unpatched(&self) -> bool {
        self.exceptions.is_empty()
    }

    /// Shows positions and values of what did not fit, positions ascending.
    #[inline]
    pub(crate) fn for_each_exception(&self, mut visit: impl FnMut(usize, T)) {
        self.exceptions.for_each(|position, patch| visit(position, self.patched(position, patch)));
    }

    /// The value at a position.
    #[inline]
    pub(crate) fn value_at(&self, position: usize) -> T {
        match self.exceptions.at(position) {
            Some(patch) if !self.is_unpatched() => self.patched(position, patch),
            _ => unpack_one(self, position),
        }
    }

    #[inline]
    fn patched(&self, position: usize, patch: Patch<T>) -> T {
        match patch {
            Patch::Value(value) => value,
            Patch::Add(missing) => unpack_one(self, position).add(missing),
        }
    }
}

impl<'a> Points<'a> {
    /// Those at the front of `bytes`; `None` where they are not there.
    #[inline]
    fn read<T: Integer>(bytes: &'a [u8], count: usize) -> Option<Points<'a>> {
        let (&point_bytes, rest) = bytes.split_first()?;
        let point_bytes = usize::from(point_bytes);
        let sums = rest.get(..point_count(count) * point_bytes)?;
        (point_bytes <= T::BYTES).then_some(Points { point_bytes, sums })
    }

    fn sum(&self, index: usize) -> u128 {
        let mut sum = [0; 16];
        sum[..self.point_bytes].copy_from_slice(&self.sums[index * self.point_bytes..][..self.point_bytes]);
        u128::from_le_bytes(sum)
    }
}

/// Appends the entry points of a vector of steps: how many bytes one takes, then what stands in each.
pub(crate) fn write_points<T: Integer>(vector: &[T], base: T, out: &mut Vec<u8>) {
    let sum = |index: usize| {
        let steps = index * POINT_STEPS;
        let bases = T::cut(base.wide().wrapping_mul(steps as i128));
        vector[steps].sub(vector[0]).sub(bases).bits()
    };
    let indices = || 1..=point_count(vector.len());
    let bits = indices().map(|index| u128::BITS - sum(index).leading_zeros()).max().unwrap_or(0);
    let point_bytes = bits.div_ceil(8) as usize;
    out.push(point_bytes as u8);
    indices().for_each(|index| out.extend_from_slice(&sum(index).to_le_bytes()[..point_bytes]));
}

/// Whether there can be so many exceptions of this form among values of this type.
fn has_exceptions<T: Integer>(form: Form, exception_count: usize, count: usize, bit_width: usize) -> bool {
    let can_be = match form {
        Form::Whole { bytes } => bytes <= T::BYTES && (exception_count == 0 || bytes > 0),
        // Twice as wide types have room for the widest of both.
        Form::Excess { width, is_signed } => {
            bit_width <= 64 && (T::BYTES > 8 || width + bit_width <= 8 * T::BYTES + usize::from(is_signed))
        }
    };
    can_be && exception_count <= count
}
