//! Frame of reference: each value as its distance from the least of its vector.
//!
//! Goldstein, Ramakrishnan and Shaft, ICDE 1998; as the base of PFOR in Zukowski et al., ICDE 2006, section 3.
//!
//! Input: integers. Output: docs/format/codecs/for.md.
//! Cost: one pass to measure, one to write; decoding touches each value once.

use crate::encoder::Encoder;
use crate::fixed::for_integers;
use crate::node::Node;
use crate::packed::{self, Frames, Layout};
use crate::scheme::{DecodeCost, Reader, Scheme, unsuitable};
use crate::{Physical, Result, Values};

/// The scheme.
#[derive(Debug)]
pub(crate) struct FrameOfReference;

pub(crate) const LAYOUT: Layout = Layout { scheme: "for", based: true, patched: false, stepped: false };

impl Scheme for FrameOfReference {
    fn name(&self) -> &'static str {
        LAYOUT.scheme
    }

    fn holds(&self, physical: Physical) -> bool {
        physical.is_integer()
    }

    fn decode_rank(&self) -> u32 {
        3
    }

    fn decode_cost(&self, _physical: Physical) -> DecodeCost {
        DecodeCost::of_value(0.15)
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
