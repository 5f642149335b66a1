//! Delta: each value as its step from the one before, the steps in a frame of reference.
//!
//! For sorted and slowly changing columns. Each vector begins anew, so that one value costs at most one vector.
//!
//! Input: integers. Output: docs/format/codecs/delta.md.
//! Cost: decoding touches each value twice: unpacking, then a running sum.

use crate::encoder::Encoder;
use crate::fixed::for_integers;
use crate::node::Node;
use crate::packed::{self, Frames, Layout};
use crate::scheme::{DecodeCost, Reader, Scheme, unsuitable};
use crate::{Physical, Result, Values};

/// The scheme.
#[derive(Debug)]
pub(crate) struct Delta;

pub(crate) const LAYOUT: Layout = Layout { scheme: "delta", based: true, patched: false, stepped: true };

impl Scheme for Delta {
    fn name(&self) -> &'static str {
        LAYOUT.scheme
    }

    fn holds(&self, physical: Physical) -> bool {
        physical.is_integer()
    }

    fn decode_rank(&self) -> u32 {
        6
    }

    fn decode_cost(&self, _physical: Physical) -> DecodeCost {
        DecodeCost::of_value(0.4)
    }

    fn is_direct(&self) -> bool {
        false
    }

    fn encode(&self, values: Values<'_>, _encoder: &mut Encoder<'_>, out: &mut Vec<u8>) -> Result<()> {
        let written =
            for_integers!(Values, values, values => packed::encode(values, LAYOUT, Frames::Range, out), _ => None);
        written.ok_or_else(|| unsuitable(self, values.physical()))
    }

    fn open<'a>(&self, node: Node<'a>) -> Result<Box<dyn Reader + 'a>> {
        packed::open(node, LAYOUT)
    }
}
