//! Singles for doubles: four bytes in place of eight where nothing is lost by it, and whatever singles become smaller by.
//!
//! The 8-to-4-byte compression of AODB (Westmann et al., SIGMOD Record 2000, section 3.2) for columns: values that no single
//! is equal to are exceptions. `single(lossy)` rounds those first, and keeps as exceptions only what is beyond singles.
//!
//! Input: `f64`. Output: docs/format/codecs/single.md. Cost: a conversion per value on top of the singles' scheme; filters
//! are answered on those.

use crate::condition::{Condition, IntegerCondition};
use crate::encoder::Encoder;
use crate::isa::each_isa;
use crate::loss::Loss;
use crate::node::Node;
use crate::sample::Sample;
use crate::scheme::{DecodeCost, Reader, Scheme, unsuitable};
use crate::stand_ins::{self, Meaning, StandInReader};
use crate::{Physical, Result, VECTOR_LEN, Values};

/// The scheme.
#[derive(Debug)]
pub(crate) struct Single;

/// More exceptions than this, of all values, and it is not worth trying.
const EXCEPTIONS_MAX: f64 = 0.1;

impl Scheme for Single {
    fn name(&self) -> &'static str {
        "single"
    }

    fn holds(&self, physical: Physical) -> bool {
        physical == Physical::F64
    }

    fn decode_rank(&self) -> u32 {
        32
    }

    fn decode_cost(&self, _physical: Physical) -> DecodeCost {
        DecodeCost::of_value(1.4)
    }

    fn nests(&self) -> bool {
        true
    }

    fn parameter(&self) -> Option<&'static str> {
        Some("single(lossy), which rounds doubles to singles")
    }

    fn loss(&self, parameter: &str) -> Option<Loss> {
        (parameter == "lossy").then_some(Loss::Singles)
    }

    fn estimate(&self, sample: &Sample<'_>, encoder: &Encoder<'_>) -> Option<usize> {
        let Values::F64(values) = sample.values() else { return None };
        let exceptions = values.iter().filter(|value| !is_single(**value)).count();
        if exceptions as f64 > EXCEPTIONS_MAX * values.len() as f64 {
            return None;
        }
        encoder.try_on_sample(self.name(), sample)
    }

    fn encode(&self, values: Values<'_>, encoder: &mut Encoder<'_>, out: &mut Vec<u8>) -> Result<()> {
        let Values::F64(values) = values else { return Err(unsuitable(self, values.physical())) };
        stand_ins::write(values, narrow, encoder, out);
        Ok(())
    }

    fn open<'a>(&self, node: Node<'a>) -> Result<Box<dyn Reader + 'a>> {
        let mut cursor = node.cursor();
        let counts = stand_ins::read_counts(&mut cursor, &node)?;
        Ok(Box::new(StandInReader::<f64, Widened>::open(&node, cursor, &counts, Widened)?))
    }
}

/// Whether a single has this very value. None has a NaN's: what becomes of its payload is up to the CPU.
#[inline(always)]
fn is_single(value: f64) -> bool {
    f64::from(value as f32).to_bits() == value.to_bits() && !value.is_nan()
}

each_isa! {
    /// Writes the nearest single of each value, and a flag: 1 where it is not the same. Returns whether one is set.
    fn narrow(values: &[f64], singles: &mut [f32], flags: &mut [u8; VECTOR_LEN]) -> bool = narrow_body;

    /// Writes each single as a double.
    fn widen(singles: &[f32], out: &mut [f64]) = widen_body;
}

#[inline(always)]
fn narrow_body(values: &[f64], singles: &mut [f32], flags: &mut [u8; VECTOR_LEN]) -> bool {
    let mut any = 0;
    for ((value, single), flag) in values.iter().zip(singles).zip(flags) {
        *single = *value as f32;
        *flag = u8::from(!is_single(*value));
        any |= *flag;
    }
    any != 0
}

#[inline(always)]
fn widen_body(singles: &[f32], out: &mut [f64]) {
    for (out, single) in out.iter_mut().zip(singles) {
        *out = f64::from(*single);
    }
}

/// Singles that stand for themselves.
#[derive(Debug)]
struct Widened;

impl Meaning<f64> for Widened {
    type StandIn = f32;

    fn restore(&self, _vector: usize, stand_ins: &[f32], out: &mut [f64]) {
        widen(stand_ins, out);
    }

    fn condition(&self, condition: &IntegerCondition) -> Option<Condition> {
        Some(Condition::Floats(condition.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::forms;
    use crate::{Block, Choice, ValuesBuf, encode};

    #[test]
    fn singles_in_doubles_are_found_and_take_four_bytes() {
        let mut state = 1_u32;
        let mut noise = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f32::from_bits(state >> 2 | 0x3000_0000)
        };
        let values: Vec<f64> = (0..20_000).map(|_| f64::from(noise())).collect();
        let mut bytes = Vec::new();
        encode(Values::F64(&values), None, &Choice::Auto, &mut bytes).unwrap();
        let block = Block::open(&bytes).unwrap();
        assert!(block.describe().starts_with("single("), "{}", block.describe());
        assert!(bytes.len() < values.len() * 41 / 10, "{} bytes", bytes.len());
        let mut decoded = ValuesBuf::new(Physical::F64);
        block.decode(0..values.len(), &mut decoded).unwrap();
        assert_eq!(decoded, ValuesBuf::F64(values));
    }

    #[test]
    fn what_is_no_single_is_told_apart() {
        let values = [1.5, -0.0, 0.1, 1e300, 5e-324, 1e-45f32.into(), f64::INFINITY, f64::NAN, 16_777_217.0];
        forms(|isa| {
            let (mut singles, mut flags) = ([0.0; 9], [0; VECTOR_LEN]);
            assert!(narrow(&values, &mut singles, &mut flags));
            assert_eq!(flags[..9], [0, 0, 1, 1, 1, 0, 0, 1, 1], "{isa}");
            let mut back = [0.0; 9];
            widen(&singles, &mut back);
            for index in [0, 1, 5, 6] {
                assert_eq!(back[index].to_bits(), values[index].to_bits(), "{isa}");
            }
        });
    }
}
