//! The records of a leaf, in the order of its keys and apart from them: who looks for keys touches none of these bytes.

use crate::input::{Damage, Input};
use crate::keys::grow;
use std::ops::Range;

/// What the records of a tree look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordShape {
    /// All of so many bytes; of none, where the keys are all there is.
    Fixed(usize),
    /// Each of its own length.
    Variable,
}

impl RecordShape {
    /// How pages say it: the bytes of each, or `u32::MAX`.
    pub(crate) fn width(self) -> u32 {
        match self {
            RecordShape::Fixed(width) => width as u32,
            RecordShape::Variable => u32::MAX,
        }
    }

    /// What [`RecordShape::width`] says.
    pub(crate) fn of_width(width: u32) -> RecordShape {
        match width {
            u32::MAX => RecordShape::Variable,
            width => RecordShape::Fixed(width as usize),
        }
    }
}

/// Beside each record of variable length.
const END_SIZE: usize = size_of::<u16>();

/// Records by index, 64 kB of them at most.
#[derive(Clone, Debug)]
pub(crate) struct Records {
    shape: RecordShape,
    /// One behind the other.
    bytes: Vec<u8>,
    /// Where each one ends, of variable ones.
    ends: Vec<u16>,
}

impl Records {
    /// None yet.
    pub(crate) fn new(shape: RecordShape) -> Records {
        Records { shape, bytes: Vec::new(), ends: Vec::new() }
    }

    pub(crate) fn shape(&self) -> RecordShape {
        self.shape
    }

    /// Bytes that they take.
    pub(crate) fn size(&self) -> usize {
        self.bytes.len() + self.ends.len() * END_SIZE
    }

    /// Bytes that are allocated for them.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.ends.capacity() * END_SIZE
    }

    /// Bytes that a record takes.
    pub(crate) fn size_of(&self, record: &[u8]) -> usize {
        match self.shape {
            RecordShape::Fixed(_) => record.len(),
            RecordShape::Variable => record.len() + END_SIZE,
        }
    }

    /// The record at `index`.
    ///
    /// # Panics
    /// When there are not so many.
    #[inline]
    pub(crate) fn get(&self, index: usize) -> &[u8] {
        match self.shape {
            RecordShape::Fixed(width) => &self.bytes[index * width..][..width],
            RecordShape::Variable => &self.bytes[self.start(index)..usize::from(self.ends[index])],
        }
    }

    /// Puts a record in front of the one at `index`. The caller sees to its size and to the length of fixed ones.
    pub(crate) fn insert(&mut self, index: usize, record: &[u8]) {
        self.replace_bytes(index, 0, record);
        if self.shape == RecordShape::Variable {
            let end = self.start(index) + record.len();
            self.move_ends(index, record.len());
            self.ends.insert(index, end as u16);
        }
    }

    /// Puts a record in the place of the one at `index`.
    pub(crate) fn replace(&mut self, index: usize, record: &[u8]) {
        let old = self.get(index).len();
        self.replace_bytes(index, old, record);
        if self.shape == RecordShape::Variable {
            self.move_ends(index, record.len().wrapping_sub(old));
        }
    }

    /// Takes away the record at `index`.
    pub(crate) fn remove(&mut self, index: usize) {
        let old = self.get(index).len();
        self.replace_bytes(index, old, &[]);
        if self.shape == RecordShape::Variable {
            self.move_ends(index, 0_usize.wrapping_sub(old));
            self.ends.remove(index);
        }
    }

    /// Bytes that some of the records take.
    pub(crate) fn size_of_range(&self, indices: Range<usize>) -> usize {
        let bytes = self.start(indices.end) - self.start(indices.start);
        match self.shape {
            RecordShape::Fixed(_) => bytes,
            RecordShape::Variable => bytes + indices.len() * END_SIZE,
        }
    }

    /// Puts some of the other records behind these. The caller sees to their size.
    pub(crate) fn append(&mut self, other: &Records, indices: Range<usize>) {
        let (from, to) = (other.start(indices.start), self.bytes.len());
        self.bytes.extend_from_slice(&other.bytes[from..other.start(indices.end)]);
        if self.shape == RecordShape::Variable {
            self.ends.extend(other.ends[indices].iter().map(|end| (usize::from(*end) - from + to) as u16));
        }
    }

    /// Takes all away, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Lets go of memory that is allocated and not used.
    pub(crate) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    /// Takes away the records from `index` on, and returns them.
    pub(crate) fn split_off(&mut self, index: usize) -> Records {
        let start = self.start(index);
        let bytes = self.bytes.split_off(start);
        self.bytes.shrink_to_fit();
        let ends = match self.shape {
            RecordShape::Fixed(_) => Vec::new(),
            RecordShape::Variable => self.ends.split_off(index),
        };
        let ends = ends.into_iter().map(|end| end - start as u16).collect();
        Records { shape: self.shape, bytes, ends }
    }

    /// Bytes of the records alone.
    pub(crate) fn byte_len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends the ends of variable records, and the records.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        self.ends.iter().for_each(|end| out.extend(end.to_le_bytes()));
        out.extend_from_slice(&self.bytes);
    }

    /// Reads what [`Records::write`] wrote of `len` records in `byte_len` bytes.
    pub(crate) fn read(
        shape: RecordShape,
        len: usize,
        byte_len: usize,
        input: &mut Input<'_>,
    ) -> Result<Records, Damage> {
        let ends = match shape {
            RecordShape::Fixed(width) if len.checked_mul(width) == Some(byte_len) => Vec::new(),
            RecordShape::Fixed(width) => return Err(format!("{len} records of {width} bytes in {byte_len}")),
            RecordShape::Variable => (0..len).map(|_| input.u16()).collect::<Result<Vec<u16>, Damage>>()?,
        };
        let last = ends.last().map_or(0, |end| usize::from(*end));
        if !ends.is_sorted() || (shape == RecordShape::Variable && last != byte_len) {
            return Err("records do not follow each other".to_owned());
        }
        Ok(Records { shape, bytes: input.bytes(byte_len)?.to_vec(), ends })
    }

    /// The index before which half the bytes are, of `len` records, at least one; not the first of two or more.
    pub(crate) fn middle(&self, len: usize) -> usize {
        let index = match self.shape {
            RecordShape::Fixed(_) => len / 2,
            RecordShape::Variable => self.ends.partition_point(|end| usize::from(*end) < self.bytes.len() / 2),
        };
        index.clamp(1.min(len - 1), len - 1)
    }

    /// Where the record at `index` begins, and where the one before it ends.
    fn start(&self, index: usize) -> usize {
        match self.shape {
            RecordShape::Fixed(width) => index * width,
            RecordShape::Variable => index.checked_sub(1).map_or(0, |before| usize::from(self.ends[before])),
        }
    }

    /// `old` bytes at the start of the record at `index` make way for these.
    fn replace_bytes(&mut self, index: usize, old: usize, new: &[u8]) {
        let (start, end) = (self.start(index), self.bytes.len());
        if new.len() > old {
            grow(&mut self.bytes, new.len() - old);
        }
        self.bytes.copy_within(start + old..end, start + new.len());
        self.bytes.truncate(end - old + new.len());
        self.bytes[start..start + new.len()].copy_from_slice(new);
    }

    fn move_ends(&mut self, index: usize, more: usize) {
        for end in &mut self.ends[index..] {
            *end = end.wrapping_add(more as u16);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shapes() -> impl Strategy<Value = RecordShape> {
        prop_oneof![Just(RecordShape::Variable), (0..20_usize).prop_map(RecordShape::Fixed)]
    }

    proptest! {
        #[test]
        fn records_are_where_a_list_has_them(
            shape in shapes(),
            steps in prop::collection::vec((0..4_u8, any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 0..40)), 0..200),
        ) {
            let (mut records, mut model) = (Records::new(shape), Vec::<Vec<u8>>::new());
            for (step, index, mut record) in steps {
                if let RecordShape::Fixed(width) = shape {
                    record.resize(width, 7);
                }
                match step {
                    0 if !model.is_empty() => {
                        let index = index.index(model.len());
                        records.remove(index);
                        model.remove(index);
                    }
                    1 if !model.is_empty() => {
                        let index = index.index(model.len());
                        records.replace(index, &record);
                        model[index] = record;
                    }
                    2 if model.len() > 100 => {
                        let index = index.index(model.len() + 1);
                        let upper = records.split_off(index);
                        for (index, record) in model.split_off(index).iter().enumerate() {
                            prop_assert_eq!(upper.get(index), &record[..]);
                        }
                    }
                    _ => {
                        let index = index.index(model.len() + 1);
                        records.insert(index, &record);
                        model.insert(index, record);
                    }
                }
                let size: usize = model.iter().map(|record| records.size_of(record)).sum();
                prop_assert_eq!(records.size(), size);
                for (index, record) in model.iter().enumerate() {
                    prop_assert_eq!(records.get(index), &record[..]);
                }
            }
        }
    }
}
