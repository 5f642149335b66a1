//! Quantisation: floats as multiples of a step of any width, within a bound that the user gives: `quantise(0.01)`.
//!
//! Values are rounded to the nearest multiple before they come here ([`crate::loss`]); what the bound does not allow, NaN and
//! infinities stay as they are, and are exceptions. The integers choose a scheme for themselves, so those of smooth curves
//! become small steps (as in SZ: Di and Cappello, IPDPS 2016, with the integer schemes in place of its predictor).
//!
//! Input: `f32`, `f64`. Without a bound, whose step nobody would know, the step is the power of two that keeps most values.
//! Output: docs/format/codecs/quantise.md. Cost: a multiplication per value on top of the integers' scheme; filters are
//! answered on those.

use crate::encoder::Encoder;
use crate::fixed::Fixed;
use crate::loss::Loss;
use crate::node::Node;
use crate::sample::Sample;
use crate::scaled::{Float, Point, Scale};
use crate::scheme::{DecodeCost, Reader, Scheme, unsuitable};
use crate::stand_ins::{self, StandInReader};
use crate::{Physical, Result, Values};

/// The scheme.
#[derive(Debug)]
pub(crate) struct Quantise;

impl Scheme for Quantise {
    fn name(&self) -> &'static str {
        "quantise"
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
        Some("the distance that values may read back at, above zero, such as quantise(0.01)")
    }

    fn loss(&self, parameter: &str) -> Option<Loss> {
        let bound: f64 = parameter.parse().ok()?;
        let step = Loss::scale_within(bound).unit();
        Scale::has_step(step).then_some(Loss::Within(bound))
    }

    fn estimate(&self, _sample: &Sample<'_>, _encoder: &Encoder<'_>) -> Option<usize> {
        None // what it keeps without a bound, fixed_point keeps as well
    }

    fn encode(&self, values: Values<'_>, encoder: &mut Encoder<'_>, out: &mut Vec<u8>) -> Result<()> {
        fn write<F: Float>(values: &[F], encoder: &mut Encoder<'_>, out: &mut Vec<u8>) {
            let scale = match encoder.loss() {
                Some(Loss::Within(bound)) => Loss::scale_within(bound),
                _ => Point::of_fractions(values).scale(),
            };
            scale.unit().write(out);
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
        let step = f64::read(cursor.take(8, "step")?);
        if !Scale::has_step(step) {
            return Err(cursor.damaged(format!("a step of {step}")));
        }
        let counts = stand_ins::read_counts(&mut cursor, &node)?;
        let scale = Scale::step(step);
        Ok(match node.physical {
            Physical::F32 => Box::new(StandInReader::<f32, Scale>::open(&node, cursor, &counts, scale)?),
            _ => Box::new(StandInReader::<f64, Scale>::open(&node, cursor, &counts, scale)?),
        })
    }
}
