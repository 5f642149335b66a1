//! An opened node of packed vectors.

use super::bare::BareVector;
use super::directory::{Layout, PackedVector, read_width};
use super::{answers, filter, load, unpack};
use crate::condition::{Condition, Prepared};
use crate::fixed::Integer;
use crate::isa::prefetch;
use crate::kernel::{Bounds, Rows, WideSum, lower_bound_by_rows};
use crate::kernels::prefix_sum;
use crate::node::Node;
use crate::scheme::{Reader, filter_decoded};
use crate::scratch::{Scratch, Unpacked};
use crate::values_mut::ValuesMut;
use crate::{Bitmap, Encoded, Physical, Result, VECTOR_LEN};
use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::Range;

/// How many bytes behind a vector that is about to be read are asked for. Kernels go through a vector in less time than
/// memory takes, and not in the order of its bytes, so that the machine does not ask by itself: filters of 4-bit numbers
/// from DRAM were a third slower without. From 2 to 8 KiB measured alike, 1 KiB slower.
const PREFETCH_AHEAD_BYTES: usize = 4096;

/// Vectors of more bytes than this, which go through one after the other, the machine does ask for by itself: on an EPYC of
/// the fourth generation, asking for those of 8 to 32 bits as well took a third of their kernels' time.
const PREFETCHED_BYTES_MAX: usize = 512;

/// Opens a payload of this layout.
pub(crate) fn open<'a>(node: Node<'a>, layout: Layout) -> Result<Box<dyn Reader + 'a>> {
    Ok(match node.physical {
        Physical::I8 => Box::new(PackedReader::<i8>::open(node, layout)?),
        Physical::I16 => Box::new(PackedReader::<i16>::open(node, layout)?),
        Physical::I32 => Box::new(PackedReader::<i32>::open(node, layout)?),
        Physical::I64 => Box::new(PackedReader::<i64>::open(node, layout)?),
        Physical::I128 => Box::new(PackedReader::<i128>::open(node, layout)?),
        Physical::U8 => Box::new(PackedReader::<u8>::open(node, layout)?),
        Physical::U16 => Box::new(PackedReader::<u16>::open(node, layout)?),
        Physical::U32 => Box::new(PackedReader::<u32>::open(node, layout)?),
        Physical::U64 => Box::new(PackedReader::<u64>::open(node, layout)?),
        other => unreachable!("{} does not hold {} values", layout.scheme, other.name()),
    })
}

/// Integers of type `T` in packed vectors. Every entry of the directory was checked.
#[derive(Debug)]
pub(crate) struct PackedReader<'a, T> {
    pub(super) layout: Layout,
    value_count: usize,
    directory: &'a [u8],
    data: &'a [u8],
    values: PhantomData<T>,
}

impl<'a, T: Integer> PackedReader<'a, T> {
    fn open(node: Node<'a>, layout: Layout) -> Result<Self> {
        let mut cursor = node.cursor();
        let vectors = node.value_count.div_ceil(VECTOR_LEN);
        let directory = cursor.take(vectors * layout.entry_bytes(T::BYTES), "directory")?;
        let reader =
            PackedReader { layout, value_count: node.value_count, directory, data: cursor.rest(), values: PhantomData };
        for index in 0..vectors {
            reader.vector(index)?;
        }
        Ok(reader)
    }

    /// The vector at `index`.
    pub(super) fn vector(&self, index: usize) -> Result<PackedVector<'a, T>> {
        let entry_bytes = self.layout.entry_bytes(T::BYTES);
        let entry = self.layout.read_entry(&self.directory[index * entry_bytes..][..entry_bytes]);
        let count = (self.value_count - index * VECTOR_LEN).min(VECTOR_LEN);
        PackedVector::new(entry, count, self.data, self.layout.scheme)
    }

    /// The vector at `index` if it is a full one of nothing but packed numbers. In registers: handing it over in memory took
    /// as long as a kernel runs.
    #[inline(always)]
    pub(super) fn bare_vector(&self, index: usize) -> Option<BareVector<'a, T>> {
        BareVector::read(self.layout, self.full_entry(index)?, self.data)
    }

    /// The entry of the vector at `index` if it is full.
    #[inline(always)]
    fn full_entry(&self, index: usize) -> Option<&'a [u8]> {
        let entry_bytes = self.layout.entry_bytes(T::BYTES);
        let is_full = (index + 1) * VECTOR_LEN <= self.value_count;
        is_full.then(|| &self.directory[index * entry_bytes..][..entry_bytes])
    }

    /// Asks for the bytes that come some way behind those of a vector that is about to be read: whoever reads it reads on.
    #[inline]
    pub(super) fn prefetch_after(&self, packed: &[u8]) {
        // A vector that takes no bytes may lie anywhere.
        let start = (packed.as_ptr() as usize).wrapping_sub(self.data.as_ptr() as usize);
        let start = start.saturating_add(PREFETCH_AHEAD_BYTES);
        let end = start.saturating_add(packed.len()).min(self.data.len());
        if start < end {
            prefetch(&self.data[start..end]);
        }
    }

    /// [`PackedReader::prefetch_after`] for a kernel that goes through all of a vector, if it is small.
    #[inline]
    pub(super) fn prefetch_after_small(&self, packed: &[u8]) {
        if packed.len() <= PREFETCHED_BYTES_MAX {
            self.prefetch_after(packed);
        }
    }

    /// The vectors that `range` touches: each with the part of it that is asked for.
    pub(super) fn pieces(&self, range: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
        let first = range.start / VECTOR_LEN;
        let last = if range.is_empty() { first } else { range.end.div_ceil(VECTOR_LEN) };
        (first..last).map(move |index| {
            let start = index * VECTOR_LEN;
            (index, range.start.max(start) - start..range.end.min(start + VECTOR_LEN) - start)
        })
    }

    /// Writes the values of `range`, which are no steps.
    fn decode_numbers(&self, range: Range<usize>, out: &mut [T], scratch: &mut Scratch) -> Result<()> {
        let mut rest = out;
        for (index, piece) in self.pieces(range) {
            let (out, after) = rest.split_at_mut(piece.len());
            rest = after;
            if let Ok(out) = <&mut [T; VECTOR_LEN]>::try_from(&mut *out)
                && let Some(entry) = self.full_entry(index)
            {
                if let Some(vector) = BareVector::read(self.layout, entry, self.data) {
                    vector.decode(out);
                    continue;
                }
                if let Some((vector, excess)) = BareVector::read_patched(self.layout, entry, self.data) {
                    vector.decode(out);
                    excess.add_to(vector.bit_width, out);
                    continue;
                }
            }
            unpack::decode(&self.vector(index)?, piece, out, &mut scratch.unpacked);
        }
        Ok(())
    }

    /// Each piece of `range` with where its values go.
    #[inline]
    fn decode_pieces(
        &self,
        range: Range<usize>,
        out: &mut [T],
        mut decode: impl FnMut(&PackedVector<'a, T>, Range<usize>, &mut [T]),
    ) -> Result<()> {
        let mut rest = out;
        for (index, piece) in self.pieces(range) {
            let (out, after) = rest.split_at_mut(piece.len());
            rest = after;
            decode(&self.vector(index)?, piece, out);
        }
        Ok(())
    }

    /// Writes the values at `rows`, all of the vector at `index`.
    fn gather_vector(&self, index: usize, rows: &[u32], out: &mut [T], scratch: &mut Scratch) -> Result<()> {
        let positions = rows.iter().map(|row| *row as usize % VECTOR_LEN);
        let is_few = rows.len() <= UNPACK_ALL_FROM;
        if is_few && let Some(vector) = self.bare_vector(index) {
            if rows.len() >= PREFETCH_FROM {
                self.prefetch_after(vector.packed);
            }
            out.iter_mut().zip(positions).for_each(|(slot, position)| *slot = vector.value_at(position));
            return Ok(());
        }
        let vector = self.vector(index)?;
        if self.layout.stepped && rows.len() <= SUM_UP_TO && vector.has_points() {
            out.iter_mut().zip(positions).for_each(|(slot, position)| {
                *slot = unpack::value_of_steps(&vector, position);
            });
        } else if self.layout.stepped || !is_few {
            with_spare(scratch, |scratch, spare| {
                scratch.decoded_values += vector.count;
                spare.resize(vector.count, T::default());
                if self.layout.stepped {
                    decode_stepped(&vector, spare, &mut scratch.unpacked);
                } else {
                    unpack::decode(&vector, 0..vector.count, spare, &mut scratch.unpacked);
                }
                out.iter_mut().zip(positions).for_each(|(slot, position)| *slot = spare[position]);
                Ok(())
            })?;
        } else {
            out.iter_mut().zip(positions).for_each(|(slot, position)| *slot = vector.value_at(position));
        }
        Ok(())
    }
}

/// Rows of one vector from which it is likely that the next vectors are read, too, and in many of their lines.
const PREFETCH_FROM: usize = 8;

/// Rows of one vector from which it is cheaper to unpack all of it than to pick them out one by one.
const UNPACK_ALL_FROM: usize = 64;

/// Rows of one vector of steps up to which it is cheaper to add up the steps from an entry point to each.
const SUM_UP_TO: usize = 16;

/// Writes all values of a vector of steps.
pub(super) fn decode_stepped<T: Integer>(vector: &PackedVector<'_, T>, out: &mut [T], room: &mut Unpacked) {
    unpack::decode(vector, 0..vector.count, out, room);
    prefix_sum(vector.first, out);
}

impl<T: Integer> Reader for PackedReader<'_, T> {
    fn describe(&self) -> String {
        let entry_bytes = self.layout.entry_bytes(T::BYTES);
        let entries = self.directory.chunks_exact(entry_bytes).map(|entry| self.layout.read_entry::<T>(entry));
        let mut widths: Vec<usize> = entries.map(|entry| read_width(entry.bit_width).0).collect();
        widths.sort_unstable();
        let typical = if self.layout.patched { widths.len() / 2 } else { widths.len().saturating_sub(1) };
        format!("{}[{}]", self.layout.scheme, widths.get(typical).copied().unwrap_or(0))
    }

    fn decode(&self, range: Range<usize>, out: ValuesMut<'_>, scratch: &mut Scratch) -> Result<()> {
        if !self.layout.stepped {
            return self.decode_numbers(range, T::slice_mut(out), scratch);
        }
        with_spare(scratch, |scratch, spare| {
            self.decode_pieces(range, T::slice_mut(out), |vector, piece, out| {
                if piece.len() == vector.count {
                    return decode_stepped(vector, out, &mut scratch.unpacked);
                }
                spare.resize(vector.count, T::default());
                decode_stepped(vector, spare, &mut scratch.unpacked);
                out.copy_from_slice(&spare[piece]);
            })
        })
    }

    fn gather(&self, rows: &[u32], out: ValuesMut<'_>, scratch: &mut Scratch) -> Result<()> {
        let mut rest = T::slice_mut(out);
        for rows in rows.chunk_by(|a, b| *a as usize / VECTOR_LEN == *b as usize / VECTOR_LEN) {
            let (out, after) = rest.split_at_mut(rows.len());
            rest = after;
            self.gather_vector(rows[0] as usize / VECTOR_LEN, rows, out, scratch)?;
        }
        Ok(())
    }

    fn load(&self, range: Range<usize>, physical: Physical, out: &mut Encoded, scratch: &mut Scratch) -> Result<()> {
        let one_vector = !range.is_empty() && range.start / VECTOR_LEN == (range.end - 1) / VECTOR_LEN;
        if one_vector && !self.layout.stepped {
            let (index, start) = (range.start / VECTOR_LEN, range.start % VECTOR_LEN);
            let piece = start..start + range.len();
            let is_loaded = match self.bare_vector(index) {
                Some(vector) => load::load_bare(&vector, piece, physical, out, &mut scratch.unpacked),
                None => load::load(&self.vector(index)?, piece, physical, out, &mut scratch.unpacked),
            };
            if is_loaded {
                return Ok(());
            }
        }
        let len = range.len();
        self.decode(range, ValuesMut::over(out.flat(physical), physical, len), scratch)
    }

    fn filter(
        &self,
        range: Range<usize>,
        prepared: &Prepared,
        physical: Physical,
        out: &mut Bitmap,
        scratch: &mut Scratch,
    ) -> Result<bool> {
        let condition = match &prepared.condition {
            Condition::Integers(condition) if !self.layout.stepped => condition,
            condition => {
                filter_decoded(self, range, condition, physical, out, scratch)?;
                return Ok(false);
            }
        };
        let mut on_encoded = true;
        for (index, piece) in self.pieces(range) {
            if piece.len() == VECTOR_LEN
                && let Some(vector) = self.bare_vector(index)
                && let Some((low, high, is_outside)) = condition.as_range()
            {
                self.prefetch_after_small(vector.packed);
                filter::push_bare(&vector, low, high, is_outside, out);
                continue;
            }
            let vector = self.vector(index)?;
            self.prefetch_after_small(vector.packed);
            let len = piece.len();
            if !filter::filter(&vector, piece, condition, out, &mut scratch.unpacked) {
                scratch.decoded_values += len;
                on_encoded = false;
            }
        }
        Ok(on_encoded)
    }

    fn decides(&self, range: Range<usize>, prepared: &Prepared) -> Result<Option<bool>> {
        let Condition::Integers(condition) = &prepared.condition else { return Ok(None) };
        let mut decided = None;
        for (index, _) in self.pieces(range).filter(|_| self.layout.stepped) {
            let ends = answers::ends_of_steps(&self.vector(index)?);
            let passes = ends.and_then(|(least, greatest)| condition.decides(least, greatest));
            if passes.is_none() || decided.is_some_and(|before| passes != Some(before)) {
                return Ok(None);
            }
            decided = passes;
        }
        Ok(decided)
    }

    fn sum(&self, rows: &Rows<'_>, _physical: Physical, total: &mut WideSum, scratch: &mut Scratch) -> Result<()> {
        answers::sum(self, rows, total, scratch)
    }

    fn bounds(&self, rows: &Rows<'_>, _physical: Physical, found: &mut Bounds, scratch: &mut Scratch) -> Result<()> {
        answers::bounds(self, rows, found, scratch)
    }

    fn lower_bound(
        &self,
        range: Range<usize>,
        below: &Condition,
        physical: Physical,
        scratch: &mut Scratch,
    ) -> Result<usize> {
        match below {
            Condition::Integers(below) => answers::lower_bound(self, range, below, scratch),
            below => lower_bound_by_rows(self, range, below, physical, scratch),
        }
    }
}

/// Runs `work` with a buffer from scratch.
fn with_spare<T: Integer>(
    scratch: &mut Scratch,
    work: impl FnOnce(&mut Scratch, &mut Vec<T>) -> Result<()>,
) -> Result<()> {
    let mut spare = scratch.take_values(T::PHYSICAL);
    let done = work(scratch, T::vec_mut(&mut spare));
    scratch.give_values(spare);
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::forms;
    use crate::{Block, Choice, Values, ValuesBuf, encode};

    fn each_value_alone<T: Integer>(values: &[T], scheme: &str) {
        let mut bytes = Vec::new();
        encode(T::values(values), None, &Choice::Forced(scheme.to_owned()), &mut bytes).unwrap();
        let mut found = ValuesBuf::new(T::PHYSICAL);
        forms(|isa| {
            let block = Block::open(&bytes).unwrap();
            for row in (0..values.len()).step_by(61).chain([127, 128, 129, values.len() - 1]) {
                block.gather(row, &[0], &mut found).unwrap();
                assert_eq!(T::vec_mut(&mut found)[0], values[row], "{isa}, row {row} as {}", block.describe());
            }
        });
    }

    fn every_width<T: Integer>() {
        for bits in 0..=8 * T::BYTES {
            let step = |row: usize| {
                let mixed = (row as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_ac31_1e05_77b3);
                T::from_bits(mixed.checked_shr(128 - bits as u32).unwrap_or(0))
            };
            let mut value = step(999);
            let values: Vec<T> = (0..2700)
                .map(|row| {
                    value =
                        value.add(step(row)).add(if row % 40 == 3 { step(row + 7).add(step(row)) } else { step(0) });
                    value
                })
                .collect();
            each_value_alone(&values, "delta");
            each_value_alone(&values, "pfor_delta");
        }
    }

    #[test]
    fn a_value_of_steps_is_had_alone() {
        every_width::<i8>();
        every_width::<u16>();
        every_width::<i32>();
        every_width::<u64>();
        every_width::<i128>();
    }

    #[test]
    fn vectors_without_entry_points_are_read() {
        let values: Vec<i64> = (0..1024).map(|row| row * row).collect();
        let mut bytes = Vec::new();
        encode(Values::I64(&values), None, &Choice::Forced("delta".to_owned()), &mut bytes).unwrap();
        // As written before there were any: the width alone. What follows the numbers is then nobody's.
        let width_at = (0..bytes.len()).find(|at| bytes[*at] == 128 + 11 && bytes[*at - 4..*at] == [0; 4]).unwrap();
        bytes[width_at] = 11;
        let block = Block::open(&bytes).unwrap();
        let mut found = ValuesBuf::new(Physical::I64);
        block.decode(0..1024, &mut found).unwrap();
        assert_eq!(found, ValuesBuf::I64(values.clone()));
        block.gather(700, &[0], &mut found).unwrap();
        assert_eq!(found, ValuesBuf::I64(vec![values[700]]));
    }
}
