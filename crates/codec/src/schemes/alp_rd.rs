//! ALP for real doubles: floats cut in two, because sign, exponent and first digits repeat where the rest does not.
//!
//! ALP (Afroozeh et al., SIGMOD 2023), section 3.4, keeps the left part in a dictionary of eight entries, with
//! exceptions. Here the left part is an integer column of its own, so that the chooser may also find runs, a frame of
//! reference or a larger dictionary in it; the right part is bit-packed, for nothing can be done about noise.
//!
//! Input: `f32`, `f64`. Output: docs/format/codecs/alp_rd.md. Cost: a shift and an OR per value on top of the parts.

use crate::encoder::{Encoder, Role};
use crate::fixed::Fixed;
use crate::node::{Node, Opened};
use crate::sample::Sample;
use crate::scheme::{DecodeCost, Reader, Scheme, unsuitable};
use crate::scratch::Scratch;
use crate::values_mut::ValuesMut;
use crate::{Physical, Result, Values, ValuesBuf};
use std::ops::Range;

/// The scheme.
#[derive(Debug)]
pub(crate) struct AlpRd;

/// Values that the cut is chosen by.
const CUT_SAMPLE_LEN: usize = 4096;

/// Bits of the left part at most, as in the paper.
const LEFT_BITS_MAX: u32 = 16;

impl Scheme for AlpRd {
    fn name(&self) -> &'static str {
        "alp_rd"
    }

    fn holds(&self, physical: Physical) -> bool {
        matches!(physical, Physical::F32 | Physical::F64)
    }

    fn decode_rank(&self) -> u32 {
        30
    }

    fn decode_cost(&self, _physical: Physical) -> DecodeCost {
        DecodeCost::of_value(0.3)
    }

    fn nests(&self) -> bool {
        true
    }

    fn estimate(&self, sample: &Sample<'_>, encoder: &Encoder<'_>) -> Option<usize> {
        encoder.try_on_sample(self.name(), sample)
    }

    fn encode(&self, values: Values<'_>, encoder: &mut Encoder<'_>, out: &mut Vec<u8>) -> Result<()> {
        match values {
            Values::F32(values) => {
                let halves = Halves::of(values);
                let rights: Vec<u32> = halves.rights.iter().map(|&right| right as u32).collect();
                out.push(halves.right_bits as u8);
                encoder.part(Values::U16(&halves.lefts), Role::Values, out);
                encoder.part(Values::U32(&rights), Role::Counts, out);
            }
            Values::F64(values) => {
                let halves = Halves::of(values);
                out.push(halves.right_bits as u8);
                encoder.part(Values::U16(&halves.lefts), Role::Values, out);
                encoder.part(Values::U64(&halves.rights), Role::Counts, out);
            }
            _ => return Err(unsuitable(self, values.physical())),
        }
        Ok(())
    }

    fn open<'a>(&self, node: Node<'a>) -> Result<Box<dyn Reader + 'a>> {
        let mut cursor = node.cursor();
        let right_bits = u32::from(cursor.u8("width of the right part")?);
        let value_bits = if node.physical == Physical::F32 { 32 } else { 64 };
        if !cuts(value_bits).contains(&right_bits) {
            let what = format!("right parts of {right_bits} bits in values of {value_bits}");
            return Err(cursor.damaged(what));
        }
        let (lefts, rights) = (cursor.part()?, cursor.part()?);
        let right_type = if node.physical == Physical::F32 { Physical::U32 } else { Physical::U64 };
        for (part, physical, name) in [(&lefts, Physical::U16, "left"), (&rights, right_type, "right")] {
            if part.physical != physical || part.value_count != node.value_count {
                let (found, found_type) = (part.value_count, part.physical.name());
                let (wanted, wanted_type) = (node.value_count, physical.name());
                let what = format!("it has {found} {name} parts of type {found_type}, not {wanted} of {wanted_type}");
                return Err(cursor.damaged(what));
            }
        }
        cursor.finish()?;
        Ok(Box::new(AlpRdReader { right_bits, lefts, rights }))
    }
}

/// A column cut in two.
struct Halves {
    right_bits: u32,
    lefts: Vec<u16>,
    rights: Vec<u64>,
}

impl Halves {
    fn of<F: Fixed>(values: &[F]) -> Halves {
        let value_bits = 8 * F::BYTES as u32;
        let step = values.len().div_ceil(CUT_SAMPLE_LEN);
        let right_bits = choose_cut(values.iter().step_by(step).map(|value| value.bits() as u64).collect(), value_bits);
        let lefts = values.iter().map(|value| (value.bits() as u64 >> right_bits) as u16).collect();
        let rights = values.iter().map(|value| value.bits() as u64 & ((1 << right_bits) - 1)).collect();
        Halves { right_bits, lefts, rights }
    }
}

/// Widths that the right part can have.
fn cuts(value_bits: u32) -> std::ops::RangeInclusive<u32> {
    value_bits - LEFT_BITS_MAX..=value_bits - 1
}

/// The width of the right part with which a dictionary of the left parts and its codes take the fewest bits.
fn choose_cut(mut bits: Vec<u64>, value_bits: u32) -> u32 {
    bits.sort_unstable();
    let cost = |cut: u32| {
        let distinct = bits.chunk_by(|a, b| a >> cut == b >> cut).count();
        let code_bits = usize::BITS - (distinct - 1).leading_zeros();
        (cut + code_bits) as usize * bits.len() + 16 * distinct
    };
    cuts(value_bits).min_by_key(|&cut| cost(cut)).unwrap_or(value_bits - 1)
}

#[derive(Debug)]
struct AlpRdReader<'a> {
    right_bits: u32,
    lefts: Opened<'a>,
    rights: Opened<'a>,
}

impl AlpRdReader<'_> {
    /// Lets `read` fill buffers for `len` left and right parts, and joins them into `out`.
    fn join(
        &self,
        len: usize,
        out: ValuesMut<'_>,
        scratch: &mut Scratch,
        read: impl Fn(&Opened<'_>, ValuesMut<'_>, &mut Scratch) -> Result<()>,
    ) -> Result<()> {
        let right_type = self.rights.physical;
        let (mut lefts, mut rights) = (scratch.take_values(Physical::U16), scratch.take_values(right_type));
        let mut done = read(&self.lefts, ValuesMut::over(&mut lefts, Physical::U16, len), scratch);
        if done.is_ok() {
            done = read(&self.rights, ValuesMut::over(&mut rights, right_type, len), scratch);
        }
        if done.is_ok() {
            match (out, &lefts, &rights) {
                (ValuesMut::F32(out), ValuesBuf::U16(lefts), ValuesBuf::U32(rights)) => {
                    for ((out, &left), &right) in out.iter_mut().zip(lefts).zip(rights) {
                        *out = f32::from_bits(u32::from(left) << self.right_bits | right);
                    }
                }
                (ValuesMut::F64(out), ValuesBuf::U16(lefts), ValuesBuf::U64(rights)) => {
                    for ((out, &left), &right) in out.iter_mut().zip(lefts).zip(rights) {
                        *out = f64::from_bits(u64::from(left) << self.right_bits | right);
                    }
                }
                _ => unreachable!("the types were checked when the node was opened"),
            }
        }
        scratch.give_values(lefts);
        scratch.give_values(rights);
        done
    }
}

impl Reader for AlpRdReader<'_> {
    fn describe(&self) -> String {
        format!("alp_rd({}, {})", self.lefts.reader.describe(), self.rights.reader.describe())
    }

    fn parts(&self) -> Vec<&Opened<'_>> {
        vec![&self.lefts, &self.rights]
    }

    fn decode(&self, range: Range<usize>, out: ValuesMut<'_>, scratch: &mut Scratch) -> Result<()> {
        self.join(range.len(), out, scratch, |part, target, scratch| part.reader.decode(range.clone(), target, scratch))
    }

    fn gather(&self, rows: &[u32], out: ValuesMut<'_>, scratch: &mut Scratch) -> Result<()> {
        self.join(rows.len(), out, scratch, |part, target, scratch| part.reader.gather(rows, target, scratch))
    }
}
