//! The entry of one vector in the directory, and where its parts lie.

use crate::bit_packing::WORD_ROW_BYTES;
use crate::bit_stream::stream_bytes;
use crate::fixed::{Fixed, Integer};
use crate::node::Cursor;
use crate::{Result, VECTOR_LEN};

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

/// Bytes of the position of an exception.
pub(crate) const POSITION_BYTES: usize = 2;

/// An entry as written.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Entry<T> {
    /// The first value, if stepped.
    pub(crate) first: T,
    pub(crate) base: T,
    /// Where the vector begins, counted from the end of the directory.
    pub(crate) offset: u32,
    pub(crate) bit_width: u8,
    /// Bytes of one exception.
    pub(crate) exception_bytes: u8,
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
            entry.exception_bytes.write(out);
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
            entry.exception_bytes = next(&mut rest);
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
    positions: &'a [u8],
    exceptions: &'a [u8],
    exception_bytes: usize,
}

impl<'a, T: Integer> PackedVector<'a, T> {
    /// Checks an entry against the bytes after the directory.
    pub(crate) fn new(entry: Entry<T>, count: usize, data: &'a [u8], place: &'static str) -> Result<Self> {
        let mut cursor = Cursor { place, bytes: data, level: 0 };
        cursor.take(entry.offset as usize, "offset of a vector")?;
        let bit_width = usize::from(entry.bit_width);
        if bit_width > 8 * T::BYTES || (bit_width > 64 && bit_width != PLAIN_WIDTH) {
            let what = format!("bit width {bit_width} exceeds {}", (8 * T::BYTES).min(64));
            return Err(cursor.damaged(what));
        }
        let exception_count = usize::from(entry.exception_count);
        let exception_bytes = usize::from(entry.exception_bytes);
        if exception_count > count || exception_bytes > T::BYTES || (exception_count > 0 && exception_bytes == 0) {
            let what = format!("{exception_count} exceptions of {exception_bytes} bytes for {count} values");
            return Err(cursor.damaged(what));
        }
        Ok(PackedVector {
            count,
            first: entry.first,
            base: entry.base,
            bit_width,
            packed: cursor.take(packed_bytes(count, bit_width), "packed numbers")?,
            positions: cursor.take(exception_count * POSITION_BYTES, "exception positions")?,
            exceptions: cursor.take(exception_count * exception_bytes, "exceptions")?,
            exception_bytes,
        })
    }

    /// True when every number fits its width.
    #[inline]
    pub(crate) fn is_unpatched(&self) -> bool {
        self.positions.is_empty()
    }

    /// Positions and values of what did not fit, positions ascending and below `count` (others are skipped).
    pub(crate) fn exceptions(&self) -> impl Iterator<Item = (usize, T)> + '_ {
        let positions = self.positions.as_chunks::<POSITION_BYTES>().0;
        let values = self.exceptions.chunks_exact(self.exception_bytes.max(1));
        let pairs = positions
            .iter()
            .zip(values)
            .map(|(position, value)| (usize::from(u16::from_le_bytes(*position)), self.base.add(sign_extended(value))));
        pairs.filter(|(position, _)| *position < self.count)
    }

    /// The exception at this position, if there is one.
    pub(crate) fn exception_at(&self, position: usize) -> Option<T> {
        let positions = self.positions.as_chunks::<POSITION_BYTES>().0;
        let index = positions.binary_search_by_key(&position, |bytes| usize::from(u16::from_le_bytes(*bytes))).ok()?;
        let value = &self.exceptions[index * self.exception_bytes..][..self.exception_bytes];
        Some(self.base.add(sign_extended(value)))
    }
}

/// A distance from the base in as many bytes as it needs.
fn sign_extended<T: Integer>(bytes: &[u8]) -> T {
    let mut wide = [0; 16];
    wide[..bytes.len()].copy_from_slice(bytes);
    let unused = 128 - 8 * bytes.len() as u32;
    T::cut(i128::from_le_bytes(wide) << unused >> unused)
}
