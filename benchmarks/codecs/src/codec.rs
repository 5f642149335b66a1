//! What all contenders have in common: values become bytes, and bytes values.

use crate::Failure;
use sinter_codec::{Values, ValuesBuf};

/// A contender.
pub trait Codec {
    /// Its name, and how it was asked to work.
    fn name(&self) -> String;

    /// Appends a block of `values` to `out`.
    ///
    /// # Errors
    /// Where it cannot hold these.
    fn encode(&mut self, values: Values<'_>, out: &mut Vec<u8>) -> Result<(), Failure>;

    /// Reads what stands ahead of the values in a block of `value_count`.
    ///
    /// # Errors
    /// Where that is damaged.
    fn open<'b>(&self, bytes: &'b [u8], value_count: usize) -> Result<Box<dyn Opened + 'b>, Failure>;
}

/// A block that was opened. Buffers to decode to are of its values' type already.
pub trait Opened {
    /// Replaces the content of `out` by vector `index`; false where the block can only be decoded as a whole.
    fn vector(&self, _index: usize, _out: &mut ValuesBuf) -> bool {
        false
    }

    /// Replaces the content of `out` by all values.
    fn whole(&self, out: &mut ValuesBuf);
}

/// How near a contender is to ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kin {
    /// Ours.
    Ours,
    /// It does the same to values: the marks are about these.
    Family,
    /// It works otherwise, or gives less; shown beside.
    Other,
}

/// A contender and its place.
pub struct Entrant {
    /// Its place.
    pub kin: Kin,
    /// The contender.
    pub codec: Box<dyn Codec>,
}

impl Entrant {
    /// Ours.
    pub fn ours(codec: impl Codec + 'static) -> Entrant {
        Entrant { kin: Kin::Ours, codec: Box::new(codec) }
    }

    /// One of the same family.
    pub fn family(codec: impl Codec + 'static) -> Entrant {
        Entrant { kin: Kin::Family, codec: Box::new(codec) }
    }

    /// Another.
    pub fn other(codec: impl Codec + 'static) -> Entrant {
        Entrant { kin: Kin::Other, codec: Box::new(codec) }
    }
}
