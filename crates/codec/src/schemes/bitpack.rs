//! Bit packing: numbers from zero up, in as many bits as the greatest of the vector needs.
//!
//! Input: integers, none negative. Output: docs/format/codecs/bitpack.md.
//! Cost: one pass to measure, one to write; decoding touches each value once.

use crate::encoder::Encoder;
use crate::fixed::for_integers;
use crate::node::Node;
use crate::packed::{self, Frames, Layout};
use crate::scheme::{DecodeCost, Reader, Scheme, unsuitable};
use crate::{Physical, Result, Values};

/// The scheme.
#[derive(Debug)]
pub(crate) struct Bitpack;

pub(crate) const LAYOUT: Layout = Layout { scheme: "bitpack", based: false, patched: false, stepped: false };

impl Scheme for Bitpack {
    fn name(&self) -> &'static str {
        LAYOUT.scheme
    }

    fn holds(&self, physical: Physical) -> bool {
        physical.is_integer()
    }

    fn decode_rank(&self) -> u32 {
        2
    }

    fn decode_cost(&self, _physical: Physical) -> DecodeCost {
        DecodeCost::of_value(0.15)
    }

    fn encode(&self, values: Values<'_>, _encoder: &mut Encoder<'_>, out: &mut Vec<u8>) -> Result<()> {
        let written =
            for_integers!(Values, values, values => packed::encode(values, LAYOUT, Frames::FromZero, out), _ => None);
        written.ok_or_else(|| unsuitable(self, values.physical()))
    }

    fn open<'a>(&self, node: Node<'a>) -> Result<Box<dyn Reader + 'a>> {
        packed::open(node, LAYOUT)
    }
}
