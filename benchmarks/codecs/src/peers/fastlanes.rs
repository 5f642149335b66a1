//! Crate fastlanes: numbers packed in an order that suits wide registers (Afroozeh and Boncz, VLDB 2023).
//!
//! The crate has kernels; which width and base suit a vector is found here as its users do. With patches, as Vortex has
//! them, the width is the cheapest by the histogram of widths; positions and values of the others stand apart.

use super::packed_vectors::{Reader, Writer};
use crate::Failure;
use crate::bits::Bits;
use crate::codec::{Codec, Opened};
use bytemuck::{cast_slice, cast_slice_mut, pod_read_unaligned};
use sinter_codec::{VECTOR_LEN, Values, ValuesBuf};
use sinter_codec_benchmark_lanes::{Lane, Vector};

/// What is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The numbers.
    Packed,
    /// Distances from the least of a vector.
    Based,
    /// Distances from the least of a vector, with patches.
    Patched,
    /// Differences of a vector in transposed order; decoding puts it back in order.
    Delta,
    /// Differences of a vector in transposed order; decoding leaves it so.
    DeltaTransposed,
    /// The values of runs, and of each number the run that it is in, packed.
    Runs,
}

/// The crate in one of its forms, for numbers as wide as `B`.
pub struct FastLanes<B> {
    form: Form,
    /// The sign bit of numbers that have one: with it flipped, they are in the order of unsigned ones.
    sign: B,
    writer: Writer<B>,
    patches: Patches<B>,
}

/// Of all vectors of a block; values of runs, too, which have no positions.
struct Patches<B> {
    counts: Vec<u16>,
    positions: Vec<u16>,
    values: Vec<B>,
}

impl<B: Lane + Bits> FastLanes<B> {
    /// In this form.
    pub fn new(form: Form, is_signed: bool) -> FastLanes<B> {
        let patches = Patches { counts: Vec::new(), positions: Vec::new(), values: Vec::new() };
        let sign = if is_signed { B::one() << (8 * size_of::<B>() - 1) } else { B::zero() };
        FastLanes { form, sign, writer: Writer::new(), patches }
    }

    fn write(&mut self, vector: &Vector<B>) {
        let writer = &mut self.writer;
        let sign = self.sign;
        let bounds = || {
            let first = vector[0] ^ sign;
            let (least, greatest) = vector.iter().fold((first, first), |(least, greatest), &value| {
                let value = value ^ sign;
                (least.min(value), greatest.max(value))
            });
            (least ^ sign, greatest ^ sign)
        };
        match self.form {
            Form::Packed => {
                let bit_width = bounds().1.bit_width();
                B::pack_in(bit_width, vector, cast_slice_mut(writer.block(bit_width, 128 * bit_width)));
            }
            Form::Based => {
                let (least, greatest) = bounds();
                let bit_width = greatest.less(least).bit_width();
                writer.number(least);
                B::pack_above(bit_width, vector, least, cast_slice_mut(writer.block(bit_width, 128 * bit_width)));
            }
            Form::Patched => {
                let (least, _) = bounds();
                let bit_width = cheapest_width(vector, least);
                let patches = &mut self.patches;
                let before = patches.values.len();
                for (position, &value) in vector.iter().enumerate() {
                    if value.less(least).bit_width() > bit_width {
                        patches.positions.push(position as u16);
                        patches.values.push(value);
                    }
                }
                patches.counts.push((patches.values.len() - before) as u16);
                writer.number(least);
                B::pack_above(bit_width, vector, least, cast_slice_mut(writer.block(bit_width, 128 * bit_width)));
            }
            Form::Delta | Form::DeltaTransposed => {
                let (mut transposed, mut deltas) = ([B::default(); 1024], [B::default(); 1024]);
                B::transpose(vector, &mut transposed);
                // Each running total begins at the first of its numbers, so that all differences are small.
                let totals = &transposed[..B::TOTALS];
                B::deltas(&transposed, totals, &mut deltas);
                let bit_width = deltas.iter().max().map_or(0, |greatest| greatest.bit_width());
                totals.iter().for_each(|total| writer.number(*total));
                B::pack_in(bit_width, &deltas, cast_slice_mut(writer.block(bit_width, 128 * bit_width)));
            }
            Form::Runs => {
                let (mut values, mut runs) = ([B::default(); 1024], [0; 1024]);
                let count = B::runs(vector, &mut values, &mut runs);
                let bit_width = Lane::bit_width(count as u16 - 1);
                u16::pack_in(bit_width, &runs, cast_slice_mut(writer.block(bit_width, 128 * bit_width)));
                self.patches.counts.push(count as u16);
                self.patches.values.extend_from_slice(&values[..count]);
            }
        }
    }
}

/// The width with the fewest bits for packed numbers and patches together.
fn cheapest_width<B: Lane + Bits>(vector: &Vector<B>, least: B) -> usize {
    let mut counts = [0; 65];
    vector.iter().for_each(|value| counts[value.less(least).bit_width()] += 1);
    let patch_bits = 16 + 8 * size_of::<B>();
    let mut wider = VECTOR_LEN;
    let cost = |(bit_width, count): (usize, &usize)| {
        wider -= count;
        (VECTOR_LEN * bit_width + wider * patch_bits, bit_width)
    };
    counts[..=8 * size_of::<B>()].iter().enumerate().map(cost).min().map_or(0, |(_, bit_width)| bit_width)
}

impl<B: Lane + Bits> Codec for FastLanes<B> {
    fn name(&self) -> String {
        let form = match self.form {
            Form::Packed => "",
            Form::Based => " FFOR",
            Form::Patched => " patched",
            Form::Delta => " delta",
            Form::DeltaTransposed => " delta, transposed",
            Form::Runs => " RLE",
        };
        format!("fastlanes{form}")
    }

    fn encode(&mut self, values: Values<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
        self.writer.clear();
        let (vectors, rest) = B::of(values).as_chunks();
        if !rest.is_empty() {
            return Err("fastlanes packs full vectors only".into());
        }
        let Patches { counts, positions, values } = &mut self.patches;
        counts.clear();
        positions.clear();
        values.clear();
        vectors.iter().for_each(|vector| self.write(vector));
        self.writer.finish(out);
        out.extend_from_slice(cast_slice(&self.patches.counts));
        out.extend_from_slice(cast_slice(&self.patches.positions));
        out.extend_from_slice(cast_slice(&self.patches.values));
        Ok(())
    }

    fn open<'b>(&self, bytes: &'b [u8], value_count: usize) -> Result<Box<dyn Opened + 'b>, Failure> {
        let numbers_per_vector = match self.form {
            Form::Packed | Form::Runs => 0,
            Form::Based | Form::Patched => 1,
            Form::Delta | Form::DeltaTransposed => B::TOTALS,
        };
        let reader = Reader::new(bytes, value_count, VECTOR_LEN, numbers_per_vector);
        let (mut patch_starts, mut positions, mut values) = (vec![0], &[][..], &[][..]);
        if matches!(self.form, Form::Patched | Form::Runs) {
            let (counts, rest) = reader.rest().split_at(2 * (value_count / VECTOR_LEN));
            for count in counts.chunks(2) {
                patch_starts.push(patch_starts[patch_starts.len() - 1] + usize::from(pod_read_unaligned::<u16>(count)));
            }
            let position_bytes = if self.form == Form::Runs { 0 } else { 2 };
            (positions, values) = rest.split_at(position_bytes * patch_starts[patch_starts.len() - 1]);
        }
        Ok(Box::new(Vectors::<B> { form: self.form, numbers_per_vector, reader, patch_starts, positions, values }))
    }
}

struct Vectors<'b, B> {
    form: Form,
    numbers_per_vector: usize,
    reader: Reader<'b, B>,
    patch_starts: Vec<usize>,
    positions: &'b [u8],
    values: &'b [u8],
}

impl<B: Lane + Bits> Vectors<'_, B> {
    fn decode(&self, index: usize, out: &mut Vector<B>) {
        let bit_width = usize::from(self.reader.widths[index]);
        let packed = cast_slice(self.reader.packed(index));
        let numbers = self.reader.numbers(index, self.numbers_per_vector);
        match self.form {
            Form::Packed => B::unpack_from(bit_width, packed, out),
            Form::Based => B::unpack_above(bit_width, packed, numbers[0], out),
            Form::Patched => {
                B::unpack_above(bit_width, packed, numbers[0], out);
                let patches = self.patch_starts[index]..self.patch_starts[index + 1];
                let positions = self.positions[2 * patches.start..2 * patches.end].as_chunks().0;
                let size = size_of::<B>();
                let values = self.values[size * patches.start..size * patches.end].chunks_exact(size);
                for (position, value) in positions.iter().zip(values) {
                    out[usize::from(u16::from_le_bytes(*position))] = pod_read_unaligned(value);
                }
            }
            Form::Delta => {
                let mut transposed = [B::default(); 1024];
                B::unpack_deltas(bit_width, packed, numbers, &mut transposed);
                B::untranspose(&transposed, out);
            }
            Form::DeltaTransposed => B::unpack_deltas(bit_width, packed, numbers, out),
            Form::Runs => {
                let (mut runs, mut of_runs) = ([0; 1024], [B::default(); 1024]);
                u16::unpack_from(bit_width, cast_slice(self.reader.packed(index)), &mut runs);
                let (start, end) = (self.patch_starts[index], self.patch_starts[index + 1]);
                let of_runs = &mut of_runs[..end - start];
                cast_slice_mut(of_runs).copy_from_slice(&self.values[size_of::<B>() * start..size_of::<B>() * end]);
                B::repeat(of_runs, &runs, out);
            }
        }
    }
}

impl<B: Lane + Bits> Opened for Vectors<'_, B> {
    fn vector(&self, index: usize, out: &mut ValuesBuf) -> bool {
        let (vectors, _) = B::room(out, VECTOR_LEN).as_chunks_mut();
        self.decode(index, &mut vectors[0]);
        true
    }

    fn whole(&self, out: &mut ValuesBuf) {
        let count = self.reader.widths.len();
        let (vectors, _) = B::room(out, count * VECTOR_LEN).as_chunks_mut();
        vectors.iter_mut().enumerate().for_each(|(index, vector)| self.decode(index, vector));
    }
}
