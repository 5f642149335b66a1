//! Crate pco: numbers binned and entropy-coded, at its default level.

use crate::Failure;
use crate::bits::Bits;
use crate::codec::{Codec, Opened};
use pco::data_types::Number;
use pco::standalone::{simple_compress_into, simple_decompress_into};
use pco::{ChunkConfig, DEFAULT_COMPRESSION_LEVEL};
use sinter_codec::{Physical, Values, ValuesBuf};

/// The crate.
pub struct Pco {
    physical: Physical,
}

impl Pco {
    /// For values of this type.
    pub fn new(physical: Physical) -> Pco {
        Pco { physical }
    }
}

/// Bytes are numbers here.
fn config() -> ChunkConfig {
    let mut config = ChunkConfig::default().with_compression_level(DEFAULT_COMPRESSION_LEVEL);
    config.enable_8_bit = true;
    config
}

fn press<T: Number>(values: &[T], out: &mut Vec<u8>) -> Result<(), Failure> {
    simple_compress_into(values, &config(), out)?;
    Ok(())
}

impl Codec for Pco {
    fn name(&self) -> String {
        "pco".to_owned()
    }

    fn encode(&mut self, values: Values<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
        match values {
            Values::F32(values) => press(values, out),
            Values::F64(values) => press(values, out),
            values => match self.physical.value_bytes() {
                Some(1) => press(u8::of(values), out),
                Some(2) => press(u16::of(values), out),
                Some(4) => press(u32::of(values), out),
                _ => press(u64::of(values), out),
            },
        }
    }

    fn open<'b>(&self, bytes: &'b [u8], value_count: usize) -> Result<Box<dyn Opened + 'b>, Failure> {
        Ok(Box::new(Pressed { bytes, value_count, physical: self.physical }))
    }
}

struct Pressed<'b> {
    bytes: &'b [u8],
    value_count: usize,
    physical: Physical,
}

impl Opened for Pressed<'_> {
    fn whole(&self, out: &mut ValuesBuf) {
        let (bytes, count) = (self.bytes, self.value_count);
        let progress = match (out, self.physical.value_bytes()) {
            (ValuesBuf::F32(values), _) => {
                values.resize(count, 0.0);
                simple_decompress_into(bytes, values)
            }
            (ValuesBuf::F64(values), _) => {
                values.resize(count, 0.0);
                simple_decompress_into(bytes, values)
            }
            (out, Some(1)) => simple_decompress_into(bytes, u8::room(out, count)),
            (out, Some(2)) => simple_decompress_into(bytes, u16::room(out, count)),
            (out, Some(4)) => simple_decompress_into(bytes, u32::room(out, count)),
            (out, _) => simple_decompress_into(bytes, u64::room(out, count)),
        };
        assert!(progress.expect("it was just encoded").finished, "pco left something out");
    }
}
