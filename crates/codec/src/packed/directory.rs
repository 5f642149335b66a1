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
}

impl<'a, T: Integer> PackedVector<'a, T> {
    /// Checks an entry against the bytes after the directory.
    #[inline]
    pub(crate) fn new(entry: Entry<T>, count: usize, data: &'a [u8], place: &'static str) -> Result<Self> {
        let bit_width = usize::from(entry.bit_width);
        let exception_count = usize::from(entry.exception_count);
        let form = Form::read(entry.exception_form);
        let has_width = bit_width <= 8 * T::BYTES && (bit_width <= 64 || bit_width == PLAIN_WIDTH);
        let start = entry.offset as usize;
        let exceptions_at = packed_bytes(count, bit_width);
        let end = exceptions_at + form.bytes_of(exception_count, count);
        match data.get(start..).and_then(|rest| rest.get(..end)) {
            Some(bytes) if has_width && has_exceptions::<T>(form, exception_count, count, bit_width) => {
                let (packed, exceptions) = bytes.split_at(exceptions_at);
                let frame = Frame { base: entry.base, bit_width };
                let exceptions = Exceptions::new(form, exception_count, count, frame, exceptions);
                Ok(PackedVector { count, first: entry.first, base: entry.base, bit_width, packed, exceptions })
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
        let bit_width = usize::from(entry.bit_width);
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
        cut_short.unwrap_or_else(|| cursor.damaged("it is as it should be"))
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

/// Whether there can be so many exceptions of this form among values of this type.
fn has_exceptions<T: Integer>(form: Form, exception_count: usize, count: usize, bit_width: usize) -> bool {
    let can_be = match form {
        Form::Whole { bytes } => bytes <= T::BYTES && (exception_count == 0 || bytes > 0),
        Form::Excess { .. } => bit_width <= 64,
    };
    can_be && exception_count <= count
}
