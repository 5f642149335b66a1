//! Segments read back as Arrow arrays, a range at a time.

use super::segment::PIECES_PLAIN_BYTES_MAX;
use super::types::arrow_field;
use super::{foreign, to_null_buffer, values_to_arrow};
use crate::{Error, LogicalType, Result};
use arrow::array::{Array, ArrayRef, ListArray, StructArray};
use arrow::buffer::OffsetBuffer;
use sinter_codec::{Bitmap, Block, Physical, VALUE_COUNT_MAX, VECTOR_LEN, ValuesBuf};
use std::ops::Range;
use std::sync::Arc;

/// An opened segment: its tree of blocks.
#[derive(Debug)]
pub(crate) struct SegmentReader<'a> {
    ty: LogicalType,
    block: Block<'a>,
    parts: Parts<'a>,
    byte_len: usize,
    /// What all its blocks stand for.
    plain_bytes: usize,
}

#[derive(Debug)]
enum Parts<'a> {
    Plain,
    /// `starts[v]` is the number of elements before the first row of vector `v`; one entry more than there are vectors.
    /// All pieces but the last hold [`VALUE_COUNT_MAX`] elements; there is one at least.
    List {
        starts: Vec<u64>,
        pieces: Vec<SegmentReader<'a>>,
    },
    Struct(Vec<SegmentReader<'a>>),
}

impl<'a> SegmentReader<'a> {
    /// Checks the blocks of the tree and that they fit together.
    pub(crate) fn open(bytes: &'a [u8], ty: &LogicalType) -> Result<SegmentReader<'a>> {
        let block = Block::open(bytes)?;
        let expected = match ty {
            LogicalType::List(_) => Physical::U32,
            LogicalType::Struct(_) => Physical::U8,
            plain => plain.physical().unwrap_or(Physical::U8),
        };
        if block.physical() != expected {
            return Err(damaged(format!("{ty} is kept as {}, found {}", expected.name(), block.physical().name())));
        }
        let mut byte_len = block.byte_len();
        let rest = |byte_len: usize| bytes.get(byte_len..).ok_or_else(|| damaged("the segment ends early".into()));
        let mut plain_bytes = block.stats().plain_bytes;
        let parts = match ty {
            LogicalType::List(field) => {
                let starts = element_starts(&block)?;
                let elements = starts[starts.len() - 1];
                let (mut pieces, mut left, mut child_bytes) = (Vec::new(), elements, 0usize);
                loop {
                    let piece = SegmentReader::open(rest(byte_len)?, &field.ty)?;
                    let (expected, found) = (left.min(VALUE_COUNT_MAX as u64), piece.block.value_count());
                    if expected != found as u64 {
                        return Err(damaged(format!(
                            "lists of {elements} elements in all, piece {} has {found} of them, not {expected}",
                            pieces.len()
                        )));
                    }
                    byte_len += piece.byte_len;
                    child_bytes = child_bytes.saturating_add(piece.plain_bytes);
                    left -= expected;
                    pieces.push(piece);
                    if left == 0 {
                        break;
                    }
                    if child_bytes > PIECES_PLAIN_BYTES_MAX {
                        return Err(damaged(format!("pieces of lists stand for {child_bytes} bytes and more")));
                    }
                }
                plain_bytes = plain_bytes.saturating_add(child_bytes);
                Parts::List { starts, pieces }
            }
            LogicalType::Struct(fields) => {
                let mut parts = Vec::with_capacity(fields.len());
                for field in fields.iter() {
                    let part = SegmentReader::open(rest(byte_len)?, &field.ty)?;
                    if part.block.value_count() != block.value_count() {
                        let (rows, found) = (block.value_count(), part.block.value_count());
                        return Err(damaged(format!("structs of {rows} rows, field '{}' has {found}", field.name)));
                    }
                    byte_len += part.byte_len;
                    plain_bytes = plain_bytes.saturating_add(part.plain_bytes);
                    parts.push(part);
                }
                Parts::Struct(parts)
            }
            _ => Parts::Plain,
        };
        Ok(SegmentReader { ty: ty.clone(), block, parts, byte_len, plain_bytes })
    }

    /// Fails where `range` reaches past the rows that the segment holds.
    pub(crate) fn check_rows(&self, range: &Range<usize>) -> Result<()> {
        let rows = self.block.value_count();
        if range.start <= range.end && range.end <= rows {
            return Ok(());
        }
        Err(damaged(format!("rows {} to {} of {rows}", range.start, range.end)))
    }

    /// The rows of `range`, or those of them whose bit is set in `keep`.
    pub(crate) fn read(&self, range: Range<usize>, keep: Option<&Bitmap>) -> Result<ArrayRef> {
        let keep = keep.filter(|keep| !keep.all());
        let validity = self.read_validity(range.clone(), keep)?;
        match (&self.parts, &self.ty) {
            (Parts::List { starts, pieces }, LogicalType::List(field)) => {
                let (elements, lengths, keep_elements) = self.read_lengths(starts, range, keep, validity.as_ref())?;
                let values = read_pieces(pieces, elements, keep_elements.as_ref())?;
                let nulls = validity.as_ref().map(to_null_buffer);
                let list = ListArray::try_new(Arc::new(arrow_field(field)), lengths, values, nulls);
                Ok(Arc::new(list.map_err(foreign)?))
            }
            (Parts::Struct(parts), LogicalType::Struct(fields)) => {
                let rows = keep.map_or(range.len(), Bitmap::count_ones);
                let arrays = parts.iter().map(|part| part.read(range.clone(), keep)).collect::<Result<Vec<_>>>()?;
                let fields = fields.iter().map(arrow_field).collect();
                let nulls = validity.as_ref().map(to_null_buffer);
                let array = StructArray::try_new_with_length(fields, arrays, nulls, rows);
                Ok(Arc::new(array.map_err(foreign)?))
            }
            _ => {
                let values = self.read_values(range, keep)?;
                values_to_arrow(values.as_values(), validity.as_ref(), &self.ty)
            }
        }
    }

    fn read_validity(&self, range: Range<usize>, keep: Option<&Bitmap>) -> Result<Option<Bitmap>> {
        let mut all = Bitmap::default();
        if !self.block.validity(range, &mut all)? {
            return Ok(None);
        }
        Ok(Some(match keep {
            Some(keep) => Bitmap::from_bools(keep.ones().map(|row| all.get(row))),
            None => all,
        }))
    }

    fn read_values(&self, range: Range<usize>, keep: Option<&Bitmap>) -> Result<ValuesBuf> {
        let mut values = ValuesBuf::new(self.block.physical());
        let Some(keep) = keep else {
            self.block.decode(range, &mut values)?;
            return Ok(values);
        };
        let (mut piece, mut positions) = (ValuesBuf::new(self.block.physical()), Vec::new());
        for start in (0..keep.len()).step_by(VECTOR_LEN) {
            let end = keep.len().min(start + VECTOR_LEN);
            keep.slice(start..end).positions_into(&mut positions);
            if !positions.is_empty() {
                self.block.gather(range.start + start, &positions, &mut piece)?;
                values.extend(piece.as_values());
            }
        }
        Ok(values)
    }

    /// The range of elements that the lists of `range` cover, the offsets of the kept lists among the kept elements,
    /// and which elements those are.
    fn read_lengths(
        &self,
        starts: &[u64],
        range: Range<usize>,
        keep: Option<&Bitmap>,
        kept_validity: Option<&Bitmap>,
    ) -> Result<(Range<usize>, OffsetBuffer<i32>, Option<Bitmap>)> {
        let vector_start = range.start / VECTOR_LEN * VECTOR_LEN;
        let mut lengths = ValuesBuf::new(Physical::U32);
        self.block.decode(vector_start..range.end, &mut lengths)?;
        let ValuesBuf::U32(lengths) = &mut lengths else { return Err(damaged("lengths are not u32".into())) };
        zero_nulls(&self.block, vector_start..range.end, lengths)?;
        let (before, lengths) = lengths.split_at(range.start - vector_start);
        let sum = |lengths: &[u32]| lengths.iter().map(|&length| u64::from(length)).sum::<u64>();
        let first = starts[range.start / VECTOR_LEN] + sum(before);
        let total = sum(lengths);

        let mut keep_elements = keep.map(|_| Bitmap::default());
        let mut offsets = vec![0i32];
        let mut end = 0u64;
        for (row, &length) in lengths.iter().enumerate() {
            let kept = keep.is_none_or(|keep| keep.get(row));
            if let Some(elements) = &mut keep_elements {
                elements.extend_with(length as usize, kept);
            }
            if kept {
                end += u64::from(length);
                offsets.push(
                    i32::try_from(end)
                        .map_err(|_| Error::Foreign("lists of more than 2147483647 elements in one batch".into()))?,
                );
            }
        }
        debug_assert!(kept_validity.is_none_or(|validity| validity.len() + 1 == offsets.len()));
        Ok((first as usize..(first + total) as usize, OffsetBuffer::new(offsets.into()), keep_elements))
    }
}

/// The elements of `range`, or those of them whose bit is set in `keep`, wherever one piece ends and the next begins.
fn read_pieces(pieces: &[SegmentReader<'_>], range: Range<usize>, keep: Option<&Bitmap>) -> Result<ArrayRef> {
    let piece_of = |element: usize| (element / VALUE_COUNT_MAX).min(pieces.len() - 1);
    let (first, last) = (piece_of(range.start), piece_of(range.end.saturating_sub(1).max(range.start)));
    let read = |piece: usize| {
        let base = piece * VALUE_COUNT_MAX;
        let start = range.start.max(base);
        let end = if piece == last { range.end } else { base + VALUE_COUNT_MAX };
        let keep = keep.map(|keep| keep.slice(start - range.start..end - range.start));
        pieces[piece].read(start - base..end - base, keep.as_ref())
    };
    if first == last {
        return read(first);
    }
    let arrays = (first..=last).map(read).collect::<Result<Vec<_>>>()?;
    let arrays: Vec<&dyn Array> = arrays.iter().map(AsRef::as_ref).collect();
    arrow::compute::concat(&arrays).map_err(foreign)
}

/// Number of elements before each vector of lists, and in all.
fn element_starts(lengths: &Block<'_>) -> Result<Vec<u64>> {
    let (rows, mut total, mut starts) = (lengths.value_count(), 0u64, vec![0]);
    let mut values = ValuesBuf::new(Physical::U32);
    for start in (0..rows).step_by(VECTOR_LEN) {
        let range = start..rows.min(start + VECTOR_LEN);
        lengths.decode(range.clone(), &mut values)?;
        let ValuesBuf::U32(values) = &mut values else { return Err(damaged("lengths are not u32".into())) };
        zero_nulls(lengths, range, values)?;
        total += values.iter().map(|&length| u64::from(length)).sum::<u64>();
        starts.push(total);
    }
    Ok(starts)
}

/// What a block holds at a NULL is unspecified; for lengths it must count as zero.
fn zero_nulls(block: &Block<'_>, range: Range<usize>, lengths: &mut [u32]) -> Result<()> {
    let mut validity = Bitmap::default();
    if block.validity(range, &mut validity)? {
        validity.invert();
        for row in validity.ones() {
            lengths[row] = 0;
        }
    }
    Ok(())
}

fn damaged(what: String) -> Error {
    Error::from(sinter_codec::Error::Damaged { place: "segment".into(), what })
}
