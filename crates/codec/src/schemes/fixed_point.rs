//! Fixed point: floats as integers, with the point at one place for all, by a power of ten or of two.
//!
//! Pekhimenko et al., USENIX ATC 2018 (TerseCades), section 3.3: integers have what compresses. There it is lossy; here it is
//! exact, with exceptions, where nobody asked for a step (`fixed_point(0.01)`). Decimals are mostly better off with `alp`,
//! which looks for the point in each vector; binary fractions (samples, readings of converters) have no few digits there.
//!
//! Input: `f32`, `f64`. Output: docs/format/codecs/fixed_point.md. Cost: a multiplication per value on top of the integers'
//! scheme; filters are answered on those.

use crate::condition::{Condition, IntegerCondition};
use crate::encoder::Encoder;
use crate::fixed::Fixed;
use crate::loss::Loss;
use crate::node::Node;
use crate::sample::Sample;
use crate::scaled::{Float, Point, Scale};
use crate::scheme::{DecodeCost, Reader, Scheme, unsuitable};
use crate::stand_ins::{self, Meaning, StandInReader};
use crate::{Physical, Result, Values};

/// The scheme.
#[derive(Debug)]
pub(crate) struct FixedPoint;

/// More exceptions than this, of all values, and it is not worth trying.
const EXCEPTIONS_MAX: f64 = 0.1;

impl Scheme for FixedPoint {
    fn name(&self) -> &'static str {
        "fixed_point"
    }

    fn holds(&self, physical: Physical) -> bool {
        matches!(physical, Physical::F32 | Physical::F64)
    }

    fn decode_rank(&self) -> u32 {
        31
    }

    fn decode_cost(&self, _physical: Physical) -> DecodeCost {
        DecodeCost::of_value(0.15)
    }

    fn nests(&self) -> bool {
        true
    }

    fn parameter(&self) -> Option<&'static str> {
        Some("a step, a power of ten or two such as fixed_point(0.01), to whose multiples values are rounded")
    }

    fn loss(&self, parameter: &str) -> Option<Loss> {
        Some(Loss::Steps(Point::of_step(parameter.parse().ok()?)?))
    }

    fn estimate(&self, sample: &Sample<'_>, encoder: &Encoder<'_>) -> Option<usize> {
        fn pays<F: Float>(values: &[F]) -> bool {
            let point = Point::of_values(values);
            // Decimals are alp's.
            !point.is_decimal() && point.scale().survey(values).misses as f64 <= EXCEPTIONS_MAX * values.len() as f64
        }
        let pays = match sample.values() {
            Values::F32(values) => pays(values),
            Values::F64(values) => pays(values),
            _ => false,
        };
        if pays { encoder.try_on_sample(self.name(), sample) } else { None }
    }

    fn encode(&self, values: Values<'_>, encoder: &mut Encoder<'_>, out: &mut Vec<u8>) -> Result<()> {
        fn write<F: Float>(values: &[F], encoder: &mut Encoder<'_>, out: &mut Vec<u8>) {
            let point = match encoder.loss() {
                Some(Loss::Steps(point)) => point,
                _ => Point::of_values(values),
            };
            let (base, exponent) = point.parts();
            out.push(base);
            exponent.write(out);
            let scale = point.scale();
            let find =
                |values: &[F], integers: &mut [F::Integer], flags: &mut _| scale.integers(values, integers, flags);
            stand_ins::write(values, find, encoder, out);
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
        let (base, exponent) = (cursor.u8("base")?, i16::read(cursor.take(2, "exponent")?));
        let point = Point::new(base, exponent)
            .ok_or_else(|| cursor.damaged(format!("there is no point of base {base} and exponent {exponent}")))?;
        let counts = stand_ins::read_counts(&mut cursor, &node)?;
        let scale = point.scale();
        Ok(match node.physical {
            Physical::F32 => Box::new(StandInReader::<f32, Scale>::open(&node, cursor, &counts, scale)?),
            _ => Box::new(StandInReader::<f64, Scale>::open(&node, cursor, &counts, scale)?),
        })
    }
}

/// One scale for all vectors.
impl<F: Float> Meaning<F> for Scale {
    type StandIn = F::Integer;

    fn restore(&self, _vector: usize, stand_ins: &[F::Integer], out: &mut [F]) {
        self.values(stand_ins, out);
    }

    fn condition(&self, condition: &IntegerCondition) -> Option<Condition> {
        self.on_integers::<F>(condition)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Block, Choice, Values, ValuesBuf, encode};

    #[test]
    fn binary_fractions_are_found_and_take_their_bits() {
        let samples: Vec<f64> = (0..20_000).map(|i| f64::from(i * 7919 % 65_536 - 32_768) / 32_768.0).collect();
        let mut bytes = Vec::new();
        encode(Values::F64(&samples), None, &Choice::Auto, &mut bytes).unwrap();
        let block = Block::open(&bytes).unwrap();
        assert!(block.describe().contains("fixed_point("), "{}", block.describe());
        assert!(bytes.len() < samples.len() * 17 / 8, "{} bytes", bytes.len());
        let mut decoded = ValuesBuf::new(crate::Physical::F64);
        block.decode(0..samples.len(), &mut decoded).unwrap();
        assert_eq!(decoded, ValuesBuf::F64(samples));
    }
}
