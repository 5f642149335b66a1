//! ALP: floats that were decimals, as integers under a power of ten for each vector, with exceptions.
//!
//! Where the exponents come from is told in [`crate::alp`]. Integers, exceptions and their positions are parts, for which the
//! chooser finds schemes of their own.
//!
//! Input: `f32`, `f64`. Output: docs/format/codecs/alp.md. Cost: encoding tries a few exponents on 32 values of each vector,
//! then multiplies each value there and back; decoding is two multiplications per value on top of the integers' scheme.
//! Filters are answered on the integers where all vectors have one exponent.

use crate::alp::{self, Exponent};
use crate::condition::{Condition, IntegerCondition};
use crate::encoder::Encoder;
use crate::fixed::Fixed;
use crate::node::Node;
use crate::sample::Sample;
use crate::scaled::{Float, Scale};
use crate::scheme::{DecodeCost, Reader, Scheme, unsuitable};
use crate::stand_ins::{Meaning, StandInReader, StandIns};
use crate::{Physical, Result, VECTOR_LEN, Values};

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

    fn decode_cost(&self, _physical: Physical) -> DecodeCost {
        DecodeCost::of_value(0.15)
    }

    fn nests(&self) -> bool {
        true
    }

    fn estimate(&self, sample: &Sample<'_>, encoder: &Encoder<'_>) -> Option<usize> {
        fn exception_count<F: Float>(values: &[F]) -> usize {
            let mut exponent = Exponent::ZERO;
            let of_vector = |vector: &[F]| {
                exponent = alp::choose(vector, exponent);
                exponent.scale().survey(vector).misses
            };
            values.chunks(VECTOR_LEN).map(of_vector).sum()
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
        fn write<F: Float>(values: &[F], encoder: &mut Encoder<'_>, out: &mut Vec<u8>) {
            let mut stand_ins = StandIns::with_capacity(values.len());
            let mut exponent = Exponent::ZERO;
            for vector in values.chunks(VECTOR_LEN) {
                exponent = alp::choose(vector, exponent);
                let scale = exponent.scale();
                let exceptions =
                    stand_ins.push(vector, |vector, integers, flags| scale.integers(vector, integers, flags));
                out.push(exponent.to_byte());
                (exceptions as u16).write(out);
            }
            stand_ins.write(encoder, out);
        }
        match values {
            Values::F32(values) => write(values, encoder, out),
            Values::F64(values) => write(values, encoder, out),
            _ => return Err(unsuitable(self, values.physical())),
        }
        Ok(())
    }

    fn open<'a>(&self, node: Node<'a>) -> Result<Box<dyn Reader + 'a>> {
        let mut cursor = node.cursor();
        let entries = cursor.take(ENTRY_BYTES * node.value_count.div_ceil(VECTOR_LEN), "vector directory")?;
        let (mut scales, mut counts) = (Vec::new(), Vec::new());
        for &[exponent, low, high] in entries.as_chunks::<ENTRY_BYTES>().0 {
            let number = exponent as i8;
            let exponent = Exponent::from_byte(exponent);
            let exponent =
                exponent.ok_or_else(|| cursor.damaged(format!("an exponent of {number} is out of range")))?;
            scales.push(exponent.scale());
            counts.push(u16::from_le_bytes([low, high]));
        }
        let meaning = ScaleOfEach { scales };
        Ok(match node.physical {
            Physical::F32 => Box::new(StandInReader::<f32, _>::open(&node, cursor, &counts, meaning)?),
            _ => Box::new(StandInReader::<f64, _>::open(&node, cursor, &counts, meaning)?),
        })
    }
}

/// A scale for each vector.
#[derive(Debug)]
struct ScaleOfEach {
    scales: Vec<Scale>,
}

impl<F: Float> Meaning<F> for ScaleOfEach {
    type StandIn = F::Integer;

    fn restore(&self, vector: usize, stand_ins: &[F::Integer], out: &mut [F]) {
        self.scales[vector].values(stand_ins, out);
    }

    fn condition(&self, condition: &IntegerCondition) -> Option<Condition> {
        let first = self.scales.first()?;
        if self.scales.iter().any(|scale| scale != first) {
            return None;
        }
        first.on_integers::<F>(condition)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Block, Choice, ValuesBuf, encode};

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
