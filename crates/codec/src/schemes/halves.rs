//! Halves: numbers of 128 bits as their upper and lower 64, each in a scheme of its own.
//!
//! For decimals whose values lie more than 64 bits apart, which packed schemes would keep whole. The upper halves of such
//! columns are seldom more than a few bits each, so that all of it takes about the width of the values.
//!
//! Input: `i128`. Output: docs/format/codecs/halves.md. Cost: that of both parts, and putting them together; kernels decode.

use crate::encoder::{Encoder, Role};
use crate::kernel::Rows;
use crate::kernels::bounds;
use crate::node::{Node, Opened};
use crate::scheme::{Reader, Scheme, unsuitable};
use crate::scratch::Scratch;
use crate::values_mut::{Native, ValuesMut};
use crate::{Physical, Result, Values};
use std::ops::Range;

/// The scheme.
#[derive(Debug)]
pub(crate) struct Halves;

impl Scheme for Halves {
    fn name(&self) -> &'static str {
        "halves"
    }

    fn holds(&self, physical: Physical) -> bool {
        physical == Physical::I128
    }

    fn decode_rank(&self) -> u32 {
        8
    }

    fn nests(&self) -> bool {
        true
    }

    fn encode(&self, values: Values<'_>, encoder: &mut Encoder<'_>, out: &mut Vec<u8>) -> Result<()> {
        let Values::I128(values) = values else { return Err(unsuitable(self, values.physical())) };
        let (least, greatest) = bounds(values);
        if u64::try_from(greatest.wrapping_sub(least) as u128).is_ok() {
            return Err(unsuitable(self, Physical::I128)); // packed schemes need but one number for each
        }
        let upper: Vec<i64> = values.iter().map(|value| (value >> 64) as i64).collect();
        encoder.part(Values::I64(&upper), Role::Values, out);
        let lower: Vec<u64> = values.iter().map(|value| *value as u64).collect();
        encoder.part(Values::U64(&lower), Role::Values, out);
        Ok(())
    }

    fn open<'a>(&self, node: Node<'a>) -> Result<Box<dyn Reader + 'a>> {
        let mut cursor = node.cursor();
        let (upper, lower) = (cursor.part()?, cursor.part()?);
        for (half, physical) in [(&upper, Physical::I64), (&lower, Physical::U64)] {
            if half.physical != physical || half.value_count != node.value_count {
                let (count, found) = (half.value_count, half.physical.name());
                let what = format!("{count} halves of type {found}, not {} of {}", node.value_count, physical.name());
                return Err(cursor.damaged(what));
            }
        }
        cursor.finish()?;
        Ok(Box::new(HalvesReader { upper, lower }))
    }
}

#[derive(Debug)]
struct HalvesReader<'a> {
    upper: Opened<'a>,
    lower: Opened<'a>,
}

impl HalvesReader<'_> {
    /// Has `read` write each half of so many values, and puts them together.
    fn join(
        out: ValuesMut<'_>,
        len: usize,
        scratch: &mut Scratch,
        halves: [&Opened<'_>; 2],
        read: impl Fn(&Opened<'_>, ValuesMut<'_>, &mut Scratch) -> Result<()>,
    ) -> Result<()> {
        let (mut upper, mut lower) = (scratch.take_values(Physical::I64), scratch.take_values(Physical::U64));
        let joined = read(halves[0], ValuesMut::over(&mut upper, Physical::I64, len), scratch)
            .and_then(|()| read(halves[1], ValuesMut::over(&mut lower, Physical::U64, len), scratch))
            .map(|()| {
                let halves = i64::vec_mut(&mut upper).iter().zip(u64::vec_mut(&mut lower));
                for (slot, (upper, lower)) in i128::slice_mut(out).iter_mut().zip(halves) {
                    *slot = i128::from(*upper) << 64 | i128::from(*lower);
                }
            });
        scratch.give_values(upper);
        scratch.give_values(lower);
        joined
    }
}

impl Reader for HalvesReader<'_> {
    fn describe(&self) -> String {
        format!("halves({}, {})", self.upper.reader.describe(), self.lower.reader.describe())
    }

    fn decode(&self, range: Range<usize>, out: ValuesMut<'_>, scratch: &mut Scratch) -> Result<()> {
        let mut left = i128::slice_mut(out);
        Rows::all(range).vectors().try_for_each(|part| {
            let (slots, rest) = std::mem::take(&mut left).split_at_mut(part.len());
            left = rest;
            let halves = [&self.upper, &self.lower];
            Self::join(ValuesMut::I128(slots), part.len(), scratch, halves, |half, out, scratch| {
                half.reader.decode(part.clone(), out, scratch)
            })
        })
    }

    fn gather(&self, rows: &[u32], out: ValuesMut<'_>, scratch: &mut Scratch) -> Result<()> {
        let halves = [&self.upper, &self.lower];
        Self::join(out, rows.len(), scratch, halves, |half, out, scratch| half.reader.gather(rows, out, scratch))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Block, Choice, Values, encode};
    use rand::{Rng, SeedableRng};

    #[test]
    fn wide_decimals_take_their_width() {
        let mut random = rand::rngs::SmallRng::seed_from_u64(7);
        let values: Vec<i128> = (0..10_000).map(|_| random.random::<i128>() >> 48).collect();
        let mut bytes = Vec::new();
        encode(Values::I128(&values), None, &Choice::Auto, &mut bytes).unwrap();
        let block = Block::open(&bytes).unwrap();
        assert!(block.describe().starts_with("halves("), "{}", block.describe());
        assert!(bytes.len() < 10_000 * 81 / 8, "{} bytes", bytes.len());
    }
}
