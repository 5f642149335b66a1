//! PFOR-DELTA: each value as its step from the one before, the steps in a patched frame of reference.
//!
//! Zukowski et al., ICDE 2006, section 3, for sorted columns with gaps: postings, keys, timestamps.
//!
//! Input: integers. Output: docs/format/codecs/pfor_delta.md.
//! Cost: as `delta`, and each exception once more.

use crate::encoder::Encoder;
use crate::fixed::for_integers;
use crate::node::Node;
use crate::packed::{self, Frames, Layout};
use crate::scheme::{DecodeCost, Reader, Scheme, unsuitable};
use crate::{Physical, Result, Values};

/// The scheme.
#[derive(Debug)]
pub(crate) struct PforDelta;

pub(crate) const LAYOUT: Layout = Layout { scheme: "pfor_delta", based: true, patched: true, stepped: true };

impl Scheme for PforDelta {
    fn name(&self) -> &'static str {
        LAYOUT.scheme
    }

    fn holds(&self, physical: Physical) -> bool {
        physical.is_integer()
    }

    fn decode_rank(&self) -> u32 {
        7
    }

    fn decode_cost(&self, _physical: Physical) -> DecodeCost {
        DecodeCost::of_value(0.5)
    }

    fn is_direct(&self) -> bool {
        false
    }

    fn encode(&self, values: Values<'_>, _encoder: &mut Encoder<'_>, out: &mut Vec<u8>) -> Result<()> {
        let written =
            for_integers!(Values, values, values => packed::encode(values, LAYOUT, Frames::Patched, out), _ => None);
        written.ok_or_else(|| unsuitable(self, values.physical()))
    }

    fn open<'a>(&self, node: Node<'a>) -> Result<Box<dyn Reader + 'a>> {
        packed::open(node, LAYOUT)
    }
}
