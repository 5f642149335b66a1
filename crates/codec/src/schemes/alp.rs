//! ALP: floats that were decimals, as integers under a power of ten for each vector, with exceptions.
//!
//! The kernel and its source are in [`crate::alp`]. Integers, exceptions and their positions are parts, for which the
//! chooser finds schemes of their own.
//!
//! Input: `f32`, `f64`. Output: docs/format/codecs/alp.md. Cost: encoding tries 33 exponents on 32 values of each vector;
//! decoding is a division per value on top of the integers' scheme.

use crate::alp::{self, Exception, Exponent, Float};
use crate::encoder::{Encoder, Role};
use crate::fixed::Fixed;
use crate::node::{Node, Opened};
use crate::sample::Sample;
use crate::scheme::{Reader, Scheme, unsuitable};
use crate::scratch::Scratch;
use crate::values_mut::ValuesMut;
use crate::{Physical, Result, VECTOR_LEN, Values, ValuesBuf};
use std::ops::Range;

/// The scheme.
#[derive(Debug)]
pub(crate) struct Alp;

/// Bytes of a vector's entry in the directory: exponent and number of exceptions.
const ENTRY_BYTES: usize = 3;

/// More exceptions than this, of all values, and the floats are no decimals: not worth trying.
const EXCEPTIONS_MAX: f64 = 0.5;

impl Scheme for Alp {
    fn name(&self) -> &'static str {
        "alp"
    }

    fn holds(&self, physical: Physical) -> bool {
        matches!(physical, Physical::F32 | Physical::F64)
    }

    fn decode_rank(&self) -> u32 {
        30
    }

    fn nests(&self) -> bool {
        true
    }

    fn estimate(&self, sample: &Sample<'_>, encoder: &Encoder<'_>) -> Option<usize> {
        fn exception_count<F: Float>(values: &[F]) -> usize {
            Decimals::of(values).positions.len()
        }
        let exceptions = match sample.values() {
            Values::F32(values) => exception_count(values),
            Values::F64(values) => exception_count(values),
            _ => return None,
        };
        if exceptions as f64 > EXCEPTIONS_MAX * sample.values().len() as f64 {
            return None;
        }
        encoder.try_on_sample(self.name(), sample)
    }

    fn encode(&self, values: Values<'_>, encoder: &mut Encoder<'_>, out: &mut Vec<u8>) -> Result<()> {
        match values {
            Values::F32(values) => {
                let decimals = Decimals::of(values);
                out.extend_from_slice(&decimals.directory);
                encoder.part(Values::I32(&decimals.integers), Role::Values, out);
                encoder.part(Values::U16(&decimals.positions), Role::Counts, out);
                encoder.part(Values::F32(&decimals.exceptions), Role::Values, out);
            }
            Values::F64(values) => {
                let decimals = Decimals::of(values);
                out.extend_from_slice(&decimals.directory);
                encoder.part(Values::I64(&decimals.integers), Role::Values, out);
                encoder.part(Values::U16(&decimals.positions), Role::Counts, out);
                encoder.part(Values::F64(&decimals.exceptions), Role::Values, out);
            }
            _ => return Err(unsuitable(self, values.physical())),
        }
        Ok(())
    }

    fn open<'a>(&self, node: Node<'a>) -> Result<Box<dyn Reader + 'a>> {
        let mut cursor = node.cursor();
        let entries = cursor.take(ENTRY_BYTES * node.value_count.div_ceil(VECTOR_LEN), "vector directory")?;
        let mut exponents = Vec::new();
        let mut exception_starts = vec![0];
        for &[exponent, low, high] in entries.as_chunks::<ENTRY_BYTES>().0 {
            let number = exponent as i8;
            let exponent = Exponent::from_byte(exponent);
            exponents.push(exponent.ok_or_else(|| cursor.damaged(format!("an exponent of {number} is out of range")))?);
            let count = usize::from(u16::from_le_bytes([low, high]));
            exception_starts.push(exception_starts[exception_starts.len() - 1] + count);
        }
        let exception_count = exception_starts[exception_starts.len() - 1];
        let (integers, positions, exceptions) = (cursor.part()?, cursor.part()?, cursor.part()?);
        let integer_type = if node.physical == Physical::F32 { Physical::I32 } else { Physical::I64 };
        for (part, physical, value_count, name) in [
            (&integers, integer_type, node.value_count, "integers"),
            (&positions, Physical::U16, exception_count, "positions"),
            (&exceptions, node.physical, exception_count, "exceptions"),
        ] {
            if part.physical != physical || part.value_count != value_count {
                let (found, found_type) = (part.value_count, part.physical.name());
                let what =
                    format!("it has {found} {name} of type {found_type}, not {value_count} of {}", physical.name());
                return Err(cursor.damaged(what));
            }
        }
        cursor.finish()?;
        Ok(Box::new(AlpReader { exponents, exception_starts, integers, positions, exceptions }))
    }
}

/// A column taken apart.
struct Decimals<F: Float> {
    directory: Vec<u8>,
    integers: Vec<F::Integer>,
    positions: Vec<u16>,
    exceptions: Vec<F>,
}

impl<F: Float> Decimals<F> {
    fn of(values: &[F]) -> Decimals<F> {
        let integers = Vec::with_capacity(values.len());
        let mut decimals = Decimals { directory: Vec::new(), integers, positions: Vec::new(), exceptions: Vec::new() };
        let mut exponent = Exponent::ZERO;
        let mut exceptions: Vec<Exception<F>> = Vec::new();
        for vector in values.chunks(VECTOR_LEN) {
            exponent = alp::choose(vector, exponent);
            exceptions.clear();
            alp::encode(vector, exponent, &mut decimals.integers, &mut exceptions);
            decimals.directory.push(exponent.to_byte());
            decimals.directory.extend_from_slice(&(exceptions.len() as u16).to_le_bytes());
            decimals.positions.extend(exceptions.iter().map(|exception| exception.position));
            decimals.exceptions.extend(exceptions.iter().map(|exception| exception.value));
        }
        decimals
    }
}

#[derive(Debug)]
struct AlpReader<'a> {
    exponents: Vec<Exponent>,
    /// Index of the first exception of each vector, then how many there are.
    exception_starts: Vec<usize>,
    integers: Opened<'a>,
    positions: Opened<'a>,
    exceptions: Opened<'a>,
}

/// A float whose slices can be told apart at run time.
trait Column: Float + Fixed {
    const PHYSICAL: Physical;
    const INTEGER: Physical;
    fn of(buf: &ValuesBuf) -> &[Self];
    fn integers(buf: &ValuesBuf) -> &[Self::Integer];
}

macro_rules! columns {
    ($($native:ty, $float:ident, $integer:ident);*) => {$(
        impl Column for $native {
            const PHYSICAL: Physical = Physical::$float;
            const INTEGER: Physical = Physical::$integer;

            fn of(buf: &ValuesBuf) -> &[Self] {
                let ValuesBuf::$float(values) = buf else { unreachable!("the buffer was made for them") };
                values
            }

            fn integers(buf: &ValuesBuf) -> &[Self::Integer] {
                let ValuesBuf::$integer(integers) = buf else { unreachable!("the buffer was made for them") };
                integers
            }
        }
    )*};
}

columns! { f32, F32, I32; f64, F64, I64 }

impl AlpReader<'_> {
    fn decode_floats<F: Column>(&self, range: Range<usize>, out: &mut [F], scratch: &mut Scratch) -> Result<()> {
        let mut integers = scratch.take_values(F::INTEGER);
        let mut row = range.start;
        let mut decoded = Ok(());
        while row < range.end && decoded.is_ok() {
            let vector = row / VECTOR_LEN;
            let end = range.end.min((vector + 1) * VECTOR_LEN);
            let target = ValuesMut::over(&mut integers, F::INTEGER, end - row);
            decoded = self.integers.reader.decode(row..end, target, scratch);
            let out = &mut out[row - range.start..end - range.start];
            if decoded.is_ok() {
                alp::decode(F::integers(&integers), self.exponents[vector], out);
                let first = row % VECTOR_LEN;
                decoded = self.for_exceptions::<F>(vector, scratch, |positions, values| {
                    for (&position, &value) in positions.iter().zip(values) {
                        if let Some(out) = usize::from(position).checked_sub(first).and_then(|index| out.get_mut(index))
                        {
                            *out = value;
                        }
                    }
                });
            }
            row = end;
        }
        scratch.give_values(integers);
        decoded
    }

    fn gather_floats<F: Column>(&self, rows: &[u32], out: &mut [F], scratch: &mut Scratch) -> Result<()> {
        let mut integers = scratch.take_values(F::INTEGER);
        let target = ValuesMut::over(&mut integers, F::INTEGER, rows.len());
        let mut gathered = self.integers.reader.gather(rows, target, scratch);
        let mut done = 0;
        for rows in rows.chunk_by(|a, b| *a as usize / VECTOR_LEN == *b as usize / VECTOR_LEN) {
            let vector = rows[0] as usize / VECTOR_LEN;
            if gathered.is_err() {
                break;
            }
            let out = &mut out[done..done + rows.len()];
            alp::decode(&F::integers(&integers)[done..done + rows.len()], self.exponents[vector], out);
            gathered = self.for_exceptions::<F>(vector, scratch, |positions, values| {
                for (out, &row) in out.iter_mut().zip(rows) {
                    if let Ok(index) = positions.binary_search(&((row as usize % VECTOR_LEN) as u16)) {
                        *out = values[index];
                    }
                }
            });
            done += rows.len();
        }
        scratch.give_values(integers);
        gathered
    }

    /// Calls `visit` with positions and values of the exceptions of a vector, unless there are none.
    fn for_exceptions<F: Column>(
        &self,
        vector: usize,
        scratch: &mut Scratch,
        visit: impl FnOnce(&[u16], &[F]),
    ) -> Result<()> {
        let range = self.exception_starts[vector]..self.exception_starts[vector + 1];
        if range.is_empty() {
            return Ok(());
        }
        let (mut positions, mut values) = (scratch.take_values(Physical::U16), scratch.take_values(F::PHYSICAL));
        let target = ValuesMut::over(&mut positions, Physical::U16, range.len());
        let decoded = self.positions.reader.decode(range.clone(), target, scratch).and_then(|()| {
            let target = ValuesMut::over(&mut values, F::PHYSICAL, range.len());
            self.exceptions.reader.decode(range, target, scratch)
        });
        if let (Ok(()), ValuesBuf::U16(positions)) = (&decoded, &positions) {
            visit(positions, F::of(&values));
        }
        scratch.give_values(positions);
        scratch.give_values(values);
        decoded
    }
}

impl Reader for AlpReader<'_> {
    fn describe(&self) -> String {
        if self.exceptions.value_count == 0 {
            return format!("alp({})", self.integers.reader.describe());
        }
        format!("alp({}, exceptions {})", self.integers.reader.describe(), self.exceptions.reader.describe())
    }

    fn decode(&self, range: Range<usize>, out: ValuesMut<'_>, scratch: &mut Scratch) -> Result<()> {
        match out {
            ValuesMut::F32(out) => self.decode_floats(range, out, scratch),
            ValuesMut::F64(out) => self.decode_floats(range, out, scratch),
            _ => unreachable!("only for floats"),
        }
    }

    fn gather(&self, rows: &[u32], out: ValuesMut<'_>, scratch: &mut Scratch) -> Result<()> {
        match out {
            ValuesMut::F32(out) => self.gather_floats(rows, out, scratch),
            ValuesMut::F64(out) => self.gather_floats(rows, out, scratch),
            _ => unreachable!("only for floats"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Block, Choice, encode};

    fn comes_back(values: Values<'_>, scheme: &str) -> usize {
        let mut bytes = Vec::new();
        encode(values, None, &Choice::Forced(scheme.into()), &mut bytes).unwrap();
        let block = Block::open(&bytes).unwrap();
        assert!(block.describe().starts_with(scheme), "{}", block.describe());
        let bits = |values: Values<'_>| -> Vec<u64> {
            match values {
                Values::F32(values) => values.iter().map(|value| u64::from(value.to_bits())).collect(),
                Values::F64(values) => values.iter().map(|value| value.to_bits()).collect(),
                _ => unreachable!(),
            }
        };
        let mut out = ValuesBuf::new(values.physical());
        for range in [0..values.len(), 1000..values.len().min(1030), 5..6] {
            block.decode(range.clone(), &mut out).unwrap();
            assert_eq!(bits(out.as_values()), bits(values.slice(range)));
        }
        let positions: Vec<u16> = (0..values.len() as u16).filter(|position| position % 5 == 0).collect();
        block.gather(0, &positions, &mut out).unwrap();
        let all = bits(values);
        assert!(bits(out.as_values()).into_iter().eq(positions.iter().map(|&position| all[usize::from(position)])));
        bytes.len()
    }

    #[test]
    fn decimals_with_exceptions_come_back() {
        let mut state = 3_u32;
        let values: Vec<f64> = (0..3000)
            .map(|row| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                match row % 50 {
                    0 => f64::NAN,
                    20 => -0.0,
                    35 => 1.0 / 3.0,
                    _ => f64::from(state >> 16) / 100.0,
                }
            })
            .collect();
        let singles: Vec<f32> = values.iter().map(|&value| value as f32).collect();
        let bytes = comes_back(Values::F64(&values), "alp");
        assert!(bytes < 3 * values.len(), "{bytes} bytes for {} values", values.len());
        comes_back(Values::F32(&singles), "alp");
        comes_back(Values::F64(&values), "alp_rd");
        comes_back(Values::F32(&singles), "alp_rd");
    }

    #[test]
    fn real_doubles_are_cut_in_two() {
        let values: Vec<f64> = (0..3000).map(|row| 1000.0 + f64::from(row).sqrt().sin()).collect();
        let bytes = comes_back(Values::F64(&values), "alp_rd");
        assert!(bytes < 7 * values.len(), "{bytes} bytes for {} values", values.len());
    }
}
