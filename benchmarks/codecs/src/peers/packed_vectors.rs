//! Vectors of packed numbers one after the other: what a library that packs leaves to its user.
//!
//! ```text
//! +------------------------+------------------------+---------------------+---------+-----------
//! | a number for each      | bit width of each      | zeros, so that what | vector, | next
//! | vector (its own width) | block (1 byte)         | follows is aligned  | packed  | vector ...
//! +------------------------+------------------------+---------------------+---------+-----------
//! ```

use crate::bits::Bits;
use bytemuck::cast_slice;
use sinter_codec::VECTOR_LEN;

/// What packed numbers are aligned to.
const ALIGNMENT: usize = 8;

/// Writes vectors.
pub(crate) struct Writer<B> {
    widths: Vec<u8>,
    numbers: Vec<B>,
    packed: Vec<u8>,
}

impl<B: Bits> Writer<B> {
    pub(crate) fn new() -> Writer<B> {
        Writer { widths: Vec::new(), numbers: Vec::new(), packed: Vec::new() }
    }

    /// Forgets the vectors, keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.widths.clear();
        self.numbers.clear();
        self.packed.clear();
    }

    /// Notes the number of the next vector.
    pub(crate) fn number(&mut self, number: B) {
        self.numbers.push(number);
    }

    /// Room for the next block, which takes so many bytes.
    pub(crate) fn block(&mut self, bit_width: usize, bytes: usize) -> &mut [u8] {
        self.widths.push(bit_width as u8);
        let start = self.packed.len();
        self.packed.resize(start + bytes, 0);
        &mut self.packed[start..]
    }

    /// Appends all vectors to `out`.
    pub(crate) fn finish(&self, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(cast_slice(&self.numbers));
        out.extend_from_slice(&self.widths);
        out.resize(start + (out.len() - start).next_multiple_of(ALIGNMENT), 0);
        out.extend_from_slice(&self.packed);
    }
}

/// Reads vectors.
pub(crate) struct Reader<'b, B> {
    pub(crate) widths: &'b [u8],
    numbers: &'b [B],
    packed: &'b [u8],
    /// Where each vector starts in `packed`.
    starts: Vec<u32>,
}

impl<'b, B: Bits> Reader<'b, B> {
    /// Of blocks of `block_len` values, whose vectors have `numbers_per_vector` numbers.
    pub(crate) fn new(bytes: &'b [u8], value_count: usize, block_len: usize, numbers_per_vector: usize) -> Self {
        let (vectors, blocks_per_vector) = (value_count / VECTOR_LEN, VECTOR_LEN / block_len);
        let (numbers, rest) = bytes.split_at(vectors * numbers_per_vector * size_of::<B>());
        let (widths, rest) = rest.split_at(vectors * blocks_per_vector);
        let padding = (widths.len() + numbers.len()).next_multiple_of(ALIGNMENT) - widths.len() - numbers.len();
        let mut starts = vec![0];
        for widths in widths.chunks(blocks_per_vector) {
            let bits: usize = widths.iter().map(|&width| usize::from(width)).sum();
            starts.push(starts[starts.len() - 1] + (block_len / 8 * bits) as u32);
        }
        // Blocks begin where numbers may.
        Reader { widths, numbers: cast_slice(numbers), packed: &rest[padding..], starts }
    }

    /// The packed numbers of vector `index`.
    pub(crate) fn packed(&self, index: usize) -> &'b [u8] {
        &self.packed[self.starts[index] as usize..self.starts[index + 1] as usize]
    }

    /// The bytes behind the last vector.
    pub(crate) fn rest(&self) -> &'b [u8] {
        &self.packed[self.starts[self.starts.len() - 1] as usize..]
    }

    /// The numbers of vector `index`, of so many for each.
    pub(crate) fn numbers(&self, index: usize, numbers_per_vector: usize) -> &'b [B] {
        &self.numbers[index * numbers_per_vector..(index + 1) * numbers_per_vector]
    }
}
