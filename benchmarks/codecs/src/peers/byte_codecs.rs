//! Codecs of bytes: LZ4, Zstandard, LZRW1, LZO, and copying.

use crate::Failure;
use crate::bits::{plain_bytes, plain_room};
use crate::codec::{Codec, Opened};
use crate::reference::lzrw1;
use sinter_codec::{Physical, VECTOR_LEN, Values, ValuesBuf};

/// Presses bytes.
pub(crate) trait ByteCodec: Clone + 'static {
    fn name(&self) -> &'static str;
    fn press(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Failure>;
    fn restore(&self, pressed: &[u8], bytes: &mut [u8]) -> Result<(), Failure>;
}

/// Crate lz4_flex, with its unchecked loops.
#[derive(Clone)]
pub(crate) struct Lz4;

impl ByteCodec for Lz4 {
    fn name(&self) -> &'static str {
        "lz4_flex"
    }

    fn press(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        let start = out.len();
        out.resize(start + lz4_flex::block::get_maximum_output_size(bytes.len()), 0);
        let pressed = lz4_flex::block::compress_into(bytes, &mut out[start..])?;
        out.truncate(start + pressed);
        Ok(())
    }

    fn restore(&self, pressed: &[u8], bytes: &mut [u8]) -> Result<(), Failure> {
        lz4_flex::block::decompress_into(pressed, bytes)?;
        Ok(())
    }
}

/// Crate zstd, at its fastest regular level.
#[derive(Clone)]
pub(crate) struct Zstd;

impl ByteCodec for Zstd {
    fn name(&self) -> &'static str {
        "zstd -1"
    }

    fn press(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        let start = out.len();
        out.resize(start + zstd::zstd_safe::compress_bound(bytes.len()), 0);
        let pressed = zstd::bulk::compress_to_buffer(bytes, &mut out[start..], 1)?;
        out.truncate(start + pressed);
        Ok(())
    }

    fn restore(&self, pressed: &[u8], bytes: &mut [u8]) -> Result<(), Failure> {
        zstd::bulk::decompress_to_buffer(pressed, bytes)?;
        Ok(())
    }
}

/// Williams' LZRW1 of 1991.
#[derive(Clone)]
pub(crate) struct Lzrw1;

impl ByteCodec for Lzrw1 {
    fn name(&self) -> &'static str {
        "lzrw1"
    }

    fn press(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        lzrw1::press(bytes, out);
        Ok(())
    }

    fn restore(&self, pressed: &[u8], bytes: &mut [u8]) -> Result<(), Failure> {
        lzrw1::restore(pressed, bytes);
        Ok(())
    }
}

/// Crate lzokay: LZO1X.
#[derive(Clone)]
pub(crate) struct Lzo;

impl ByteCodec for Lzo {
    fn name(&self) -> &'static str {
        "lzo1x"
    }

    fn press(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        let pressed = lzokay::compress::compress(bytes).map_err(|error| format!("{error:?}"))?;
        out.extend_from_slice(&pressed);
        Ok(())
    }

    fn restore(&self, pressed: &[u8], bytes: &mut [u8]) -> Result<(), Failure> {
        lzokay::decompress::decompress(pressed, bytes).map_err(|error| format!("{error:?}"))?;
        Ok(())
    }
}

/// A codec of bytes over the bytes of values that have a width.
pub(crate) struct Bytes<C> {
    codec: C,
}

impl<C: ByteCodec> Bytes<C> {
    pub(crate) fn new(codec: C) -> Bytes<C> {
        Bytes { codec }
    }
}

impl<C: ByteCodec> Codec for Bytes<C> {
    fn name(&self) -> String {
        self.codec.name().to_owned()
    }

    fn encode(&mut self, values: Values<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
        self.codec.press(plain_bytes(values), out)
    }

    fn open<'b>(&self, bytes: &'b [u8], value_count: usize) -> Result<Box<dyn Opened + 'b>, Failure> {
        Ok(Box::new(Pressed { codec: self.codec.clone(), bytes, value_count }))
    }
}

struct Pressed<'b, C> {
    codec: C,
    bytes: &'b [u8],
    value_count: usize,
}

impl<C: ByteCodec> Opened for Pressed<'_, C> {
    fn whole(&self, out: &mut ValuesBuf) {
        self.codec.restore(self.bytes, plain_room(out, self.value_count)).expect("it was just encoded");
    }
}

/// Copies.
pub(crate) struct Copy {
    physical: Physical,
}

impl Copy {
    pub(crate) fn new(physical: Physical) -> Copy {
        Copy { physical }
    }
}

impl Codec for Copy {
    fn name(&self) -> String {
        "memcpy".to_owned()
    }

    fn encode(&mut self, values: Values<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
        out.extend_from_slice(plain_bytes(values));
        Ok(())
    }

    fn open<'b>(&self, bytes: &'b [u8], _value_count: usize) -> Result<Box<dyn Opened + 'b>, Failure> {
        let value_bytes = self.physical.value_bytes().ok_or("strings have no width")?;
        Ok(Box::new(Plain { bytes, value_bytes }))
    }
}

struct Plain<'b> {
    bytes: &'b [u8],
    value_bytes: usize,
}

impl Opened for Plain<'_> {
    fn vector(&self, index: usize, out: &mut ValuesBuf) -> bool {
        let vector = self.value_bytes * VECTOR_LEN;
        let bytes = &self.bytes[index * vector..self.bytes.len().min((index + 1) * vector)];
        plain_room(out, bytes.len() / self.value_bytes).copy_from_slice(bytes);
        true
    }

    fn whole(&self, out: &mut ValuesBuf) {
        plain_room(out, self.bytes.len() / self.value_bytes).copy_from_slice(self.bytes);
    }
}
