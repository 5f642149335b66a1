//! Ours, through the crate's front door.

use crate::Failure;
use crate::codec::{Codec, Opened};
use sinter_codec::{Block, Choice, Chooser, VECTOR_LEN, Values, ValuesBuf};

/// A scheme by its name, with the chooser that a column has: it goes from block to block.
pub struct Sinter {
    scheme: String,
    chooser: Chooser,
}

impl Sinter {
    /// For a column that is yet to come.
    pub fn new(scheme: &str) -> Sinter {
        Sinter { scheme: scheme.to_owned(), chooser: Chooser::new(Choice::Forced(scheme.to_owned())) }
    }

    /// With the scheme left to the chooser.
    pub fn auto() -> Sinter {
        Sinter { scheme: "auto".to_owned(), chooser: Chooser::new(Choice::Auto) }
    }
}

impl Codec for Sinter {
    fn name(&self) -> String {
        format!("sinter {}", self.scheme)
    }

    fn encode(&mut self, values: Values<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
        self.chooser.encode(values, None, out)?;
        Ok(())
    }

    fn open<'b>(&self, bytes: &'b [u8], _value_count: usize) -> Result<Box<dyn Opened + 'b>, Failure> {
        Ok(Box::new(Block::open(bytes)?))
    }
}

impl Opened for Block<'_> {
    fn vector(&self, index: usize, out: &mut ValuesBuf) -> bool {
        let start = index * VECTOR_LEN;
        let end = self.value_count().min(start + VECTOR_LEN);
        self.decode(start..end, out).expect("it was just encoded");
        true
    }

    fn whole(&self, out: &mut ValuesBuf) {
        self.decode(0..self.value_count(), out).expect("it was just encoded");
    }
}
