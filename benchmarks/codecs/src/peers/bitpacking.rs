//! Crate bitpacking: Lemire's SIMD-BP128 for 128 numbers at once, and the like for 256.
//!
//! Sorted numbers are packed as differences from the one before (D1). Differences from the fourth before (D4 of Lemire,
//! Boytsov and Kurz, 2016) the crate has not; those are made and added up here around the packing of 128.

use super::packed_vectors::{Reader, Writer};
use crate::Failure;
use crate::bits::Bits;
use crate::codec::{Codec, Opened};
use bitpacking::BitPacker;
use sinter_codec::{VECTOR_LEN, Values, ValuesBuf};

/// What is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The numbers.
    Packed,
    /// Differences from the number before.
    D1,
    /// Differences from the fourth number before.
    D4,
}

/// The crate in one of its forms.
pub struct Bitpacking<P> {
    form: Form,
    packer: P,
    writer: Writer<u32>,
}

impl<P: BitPacker> Bitpacking<P> {
    /// In this form.
    pub fn new(form: Form) -> Bitpacking<P> {
        Bitpacking { form, packer: P::new(), writer: Writer::new() }
    }
}

/// Numbers that the differences of a vector begin with.
fn numbers_per_vector(form: Form) -> usize {
    match form {
        Form::Packed => 0,
        Form::D1 => 1,
        Form::D4 => 4,
    }
}

impl<P: BitPacker + 'static> Codec for Bitpacking<P> {
    fn name(&self) -> String {
        let form = match self.form {
            Form::Packed => "",
            Form::D1 => " d1",
            Form::D4 => " d4",
        };
        format!("bp{}{form}", P::BLOCK_LEN)
    }

    fn encode(&mut self, values: Values<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
        let values = u32::of(values);
        if !values.len().is_multiple_of(VECTOR_LEN) {
            return Err("only full vectors are packed here".into());
        }
        self.writer.clear();
        let mut last = [0; 4];
        let mut deltas = [0; VECTOR_LEN];
        for vector in values.chunks_exact(VECTOR_LEN) {
            match self.form {
                Form::Packed => {}
                Form::D1 => self.writer.number(last[3]),
                Form::D4 => {
                    last.iter().for_each(|number| self.writer.number(*number));
                    let before = last.iter().chain(vector);
                    let differences = vector.iter().zip(before).map(|(value, before)| value.wrapping_sub(*before));
                    deltas.iter_mut().zip(differences).for_each(|(delta, difference)| *delta = difference);
                }
            }
            let numbers = if self.form == Form::D4 { &deltas[..] } else { vector };
            for block in numbers.chunks_exact(P::BLOCK_LEN) {
                if self.form == Form::D1 {
                    let bit_width = self.packer.num_bits_sorted(last[3], block);
                    let room = self.writer.block(bit_width.into(), P::compressed_block_size(bit_width));
                    self.packer.compress_sorted(last[3], block, room, bit_width);
                    last[3] = block[P::BLOCK_LEN - 1];
                } else {
                    let bit_width = self.packer.num_bits(block);
                    let room = self.writer.block(bit_width.into(), P::compressed_block_size(bit_width));
                    self.packer.compress(block, room, bit_width);
                }
            }
            last.copy_from_slice(&vector[VECTOR_LEN - 4..]);
        }
        self.writer.finish(out);
        Ok(())
    }

    fn open<'b>(&self, bytes: &'b [u8], value_count: usize) -> Result<Box<dyn Opened + 'b>, Failure> {
        let reader = Reader::new(bytes, value_count, P::BLOCK_LEN, numbers_per_vector(self.form));
        Ok(Box::new(Vectors { form: self.form, packer: self.packer, value_count, reader }))
    }
}

struct Vectors<'b, P> {
    form: Form,
    packer: P,
    value_count: usize,
    reader: Reader<'b, u32>,
}

impl<P: BitPacker> Vectors<'_, P> {
    fn decode(&self, index: usize, out: &mut [u32]) {
        let mut packed = self.reader.packed(index);
        let blocks = VECTOR_LEN / P::BLOCK_LEN;
        let widths = &self.reader.widths[index * blocks..(index + 1) * blocks];
        let numbers = self.reader.numbers(index, numbers_per_vector(self.form));
        let mut last = numbers.first().copied().unwrap_or_default();
        for (block, &bit_width) in out.chunks_exact_mut(P::BLOCK_LEN).zip(widths) {
            let read = match self.form {
                Form::Packed | Form::D4 => self.packer.decompress(packed, block, bit_width),
                Form::D1 => self.packer.decompress_sorted(last, packed, block, bit_width),
            };
            packed = &packed[read..];
            last = block[P::BLOCK_LEN - 1];
        }
        if let (Form::D4, &[a, b, c, d]) = (self.form, numbers) {
            let mut totals = [a, b, c, d];
            for four in out.as_chunks_mut::<4>().0 {
                for (total, delta) in totals.iter_mut().zip(four) {
                    *total = total.wrapping_add(*delta);
                    *delta = *total;
                }
            }
        }
    }
}

impl<P: BitPacker> Opened for Vectors<'_, P> {
    fn vector(&self, index: usize, out: &mut ValuesBuf) -> bool {
        self.decode(index, u32::room(out, VECTOR_LEN));
        true
    }

    fn whole(&self, out: &mut ValuesBuf) {
        let vectors = u32::room(out, self.value_count).chunks_exact_mut(VECTOR_LEN);
        vectors.enumerate().for_each(|(index, vector)| self.decode(index, vector));
    }
}
