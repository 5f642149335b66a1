//! Constant: all values are equal, so one is kept.
//!
//! Input: any type, one or more equal values (floats by their bits). Output: docs/format/codecs/constant.md.
//! Cost: decoding fills; filtering tests one value.

use crate::condition::{Condition, Prepared};
use crate::encoder::{Encoder, all_equal};
use crate::fixed::{Fixed, Integer, for_fixed, for_integers};
use crate::kernel::{Bounds, Rows, SquareSum, Tally, WideSum, add_code};
use crate::node::Node;
use crate::sample::Sample;
use crate::scheme::{DecodeCost, Reader, Scheme, unsuitable};
use crate::scratch::Scratch;
use crate::values_mut::ValuesMut;
use crate::{Bitmap, Encoded, Physical, Result, Values, ValuesBuf};
use std::ops::Range;

/// The scheme.
#[derive(Debug)]
pub(crate) struct Constant;

impl Scheme for Constant {
    fn name(&self) -> &'static str {
        "constant"
    }

    fn holds(&self, _physical: Physical) -> bool {
        true
    }

    fn decode_rank(&self) -> u32 {
        0
    }

    fn decode_cost(&self, physical: Physical) -> DecodeCost {
        match physical {
            Physical::Bytes => DecodeCost::of_value(4.0),
            _ => DecodeCost::of_value(0.15),
        }
    }

    fn estimate(&self, _sample: &Sample<'_>, _encoder: &Encoder<'_>) -> Option<usize> {
        None // equal values never come to a choice
    }

    fn encode(&self, values: Values<'_>, _encoder: &mut Encoder<'_>, out: &mut Vec<u8>) -> Result<()> {
        if !all_equal(values) {
            return Err(unsuitable(self, values.physical()));
        }
        for_fixed!(Values, values, values => values[0].write(out), view => out.extend_from_slice(view.get(0)));
        Ok(())
    }

    fn open<'a>(&self, node: Node<'a>) -> Result<Box<dyn Reader + 'a>> {
        let cursor = node.cursor();
        if node.value_count == 0 {
            return Err(cursor.damaged("it claims no values; one is needed"));
        }
        if let Some(bytes) = node.physical.value_bytes()
            && node.payload.len() != bytes
        {
            return Err(cursor.damaged(format!("its value has {} bytes, not {bytes}", node.payload.len())));
        }
        Ok(Box::new(ConstantReader { value: node.payload }))
    }
}

#[derive(Debug)]
struct ConstantReader<'a> {
    value: &'a [u8],
}

impl ConstantReader<'_> {
    fn fill(&self, len: usize, out: ValuesMut<'_>) -> Result<()> {
        fn fixed<T: Fixed>(value: &[u8], out: &mut [T]) {
            out.fill(T::read(value));
        }
        for_fixed!(ValuesMut, out, out => fixed(self.value, out), buf => {
            for _ in 0..len {
                buf.push_decoded(self.value, "constant")?;
            }
        });
        Ok(())
    }
}

impl ConstantReader<'_> {
    /// Runs `work` on the value.
    fn with_value<A>(
        &self,
        physical: Physical,
        scratch: &mut Scratch,
        work: impl FnOnce(Values<'_>) -> Result<A>,
    ) -> Result<A> {
        let mut value = scratch.take_values(physical);
        let done = self.fill(1, ValuesMut::over(&mut value, physical, 1)).and_then(|()| work(value.as_values()));
        scratch.give_values(value);
        done
    }
}

impl Reader for ConstantReader<'_> {
    fn describe(&self) -> String {
        "constant".to_owned()
    }

    fn tests_entries(&self) -> bool {
        true
    }

    fn decode(&self, range: Range<usize>, out: ValuesMut<'_>, _scratch: &mut Scratch) -> Result<()> {
        self.fill(range.len(), out)
    }

    fn gather(&self, rows: &[u32], out: ValuesMut<'_>, _scratch: &mut Scratch) -> Result<()> {
        self.fill(rows.len(), out)
    }

    fn load(&self, _range: Range<usize>, physical: Physical, out: &mut Encoded, _scratch: &mut Scratch) -> Result<()> {
        if !matches!(out, Encoded::Constant(_)) {
            *out = Encoded::Constant(ValuesBuf::new(physical));
        }
        if let Encoded::Constant(value) = out {
            self.fill(1, ValuesMut::over(value, physical, 1))?;
        }
        Ok(())
    }

    fn filter(
        &self,
        range: Range<usize>,
        prepared: &Prepared,
        physical: Physical,
        out: &mut Bitmap,
        scratch: &mut Scratch,
    ) -> Result<bool> {
        let passes = self.with_value(physical, scratch, |value| Ok(prepared.condition.passes(value, 0)))?;
        out.extend_with(range.len(), passes);
        Ok(true)
    }
    fn sum(&self, rows: &Rows<'_>, physical: Physical, total: &mut WideSum, scratch: &mut Scratch) -> Result<()> {
        self.with_value(physical, scratch, |value| {
            for_integers!(Values, value, value => total.add_product(value[0].wide(), rows.count() as u64),
                other => unreachable!("{} values have no exact sum", other.physical().name()));
            Ok(())
        })
    }

    fn bounds(&self, rows: &Rows<'_>, physical: Physical, found: &mut Bounds, scratch: &mut Scratch) -> Result<()> {
        if rows.count() == 0 {
            return Ok(());
        }
        self.with_value(physical, scratch, |value| {
            found.widen(value);
            Ok(())
        })
    }

    fn squares(
        &self,
        rows: &Rows<'_>,
        physical: Physical,
        pivot: i128,
        found: &mut SquareSum,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.with_value(physical, scratch, |value| {
            for_integers!(Values, value, value => found.add(value[0], Integer::cut(pivot), rows.count() as u64),
                other => unreachable!("{} values have no exact squares", other.physical().name()));
            Ok(())
        })
    }

    fn tally(&self, rows: &Rows<'_>, physical: Physical, tally: &mut Tally, scratch: &mut Scratch) -> Result<()> {
        if rows.count() == 0 {
            return Ok(());
        }
        self.with_value(physical, scratch, |value| tally.add(value, rows.count() as u64))
    }

    fn count_codes(&self, rows: &Rows<'_>, counts: &mut [u64], _scratch: &mut Scratch) -> Result<()> {
        add_code(u32::read(self.value), rows.count() as u64, counts)
    }

    fn lower_bound(
        &self,
        range: Range<usize>,
        below: &Condition,
        physical: Physical,
        scratch: &mut Scratch,
    ) -> Result<usize> {
        self.with_value(physical, scratch, |value| Ok(if below.passes(value, 0) { range.end } else { range.start }))
    }
}
