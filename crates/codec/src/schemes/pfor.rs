//! Patched frame of reference: most values as distances from a base, the outliers kept apart.
//!
//! Zukowski et al., ICDE 2006, section 3. Base and width are chosen per vector by the sorted sample of the paper's
//! PFOR_ANALYZE_BITS; the base need not be the least value, so outliers may lie on both sides. We differ from the paper in
//! how exceptions are kept: only the bits that the slot does not hold, apart from the slots (`packed/exceptions.rs`).
//!
//! Input: integers. Output: docs/format/codecs/pfor.md.
//! Cost: decoding touches each value once and each exception once more.

use crate::encoder::Encoder;
use crate::fixed::for_integers;
use crate::node::Node;
use crate::packed::{self, Frames, Layout};
use crate::scheme::{DecodeCost, Reader, Scheme, unsuitable};
use crate::{Physical, Result, Values};

/// The scheme.
#[derive(Debug)]
pub(crate) struct Pfor;

pub(crate) const LAYOUT: Layout = Layout { scheme: "pfor", based: true, patched: true, stepped: false };

impl Scheme for Pfor {
    fn name(&self) -> &'static str {
        LAYOUT.scheme
    }

    fn holds(&self, physical: Physical) -> bool {
        physical.is_integer()
    }

    fn decode_rank(&self) -> u32 {
        5
    }

    fn decode_cost(&self, _physical: Physical) -> DecodeCost {
        DecodeCost::of_value(0.2)
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
