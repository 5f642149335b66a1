//! Constant: all values are equal, so one is kept.
//!
//! Input: any type, one or more equal values (floats by their bits). Output: docs/format/codecs/constant.md.
//! Cost: decoding fills; filtering tests one value.

use crate::condition::Prepared;
use crate::encoder::{Encoder, all_equal};
use crate::fixed::{Fixed, for_fixed};
use crate::node::Node;
use crate::sample::Sample;
use crate::scheme::{Reader, Scheme, unsuitable};
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

impl Reader for ConstantReader<'_> {
    fn describe(&self) -> String {
        "constant".to_owned()
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
        let mut value = scratch.take_values(physical);
        self.fill(1, ValuesMut::over(&mut value, physical, 1))?;
        let mut passes = Bitmap::default();
        prepared.condition.evaluate(value.as_values(), &mut passes);
        scratch.give_values(value);
        out.extend_with(range.len(), passes.any());
        Ok(true)
    }
}
