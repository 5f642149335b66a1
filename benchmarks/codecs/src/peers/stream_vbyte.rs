//! Crate streamvbyte64: Stream VByte, a group varint with lengths and bytes in streams of their own (Lemire, Kurz and
//! Rupp, 2018). Numbers of 32 bits are decoded by SSSE3 where the crate finds it, those of 64 bits one by one.

use crate::Failure;
use crate::bits::Bits;
use crate::codec::{Codec, Opened};
use sinter_codec::{VECTOR_LEN, Values, ValuesBuf};
use streamvbyte64::Coder;

/// The crate, of numbers or of differences between sorted ones.
pub struct StreamVByte<C> {
    coder: C,
    is_delta: bool,
    tags: Vec<u8>,
    data: Vec<u8>,
}

impl<C: Coder> StreamVByte<C> {
    /// Of numbers, or of differences between sorted ones.
    pub fn new(is_delta: bool) -> StreamVByte<C> {
        StreamVByte { coder: C::new(), is_delta, tags: Vec::new(), data: Vec::new() }
    }
}

/// Tags of a vector: one for four numbers.
const VECTOR_TAGS: usize = VECTOR_LEN / 4;

impl<C: Coder<Elem = B> + 'static, B: Bits> Codec for StreamVByte<C> {
    fn name(&self) -> String {
        format!("stream vbyte{}", if self.is_delta { " d1" } else { "" })
    }

    fn encode(&mut self, values: Values<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
        let values = B::of(values);
        if !values.len().is_multiple_of(4) {
            return Err("numbers come in fours".into());
        }
        let (tags, data) = C::max_compressed_bytes(values.len());
        self.tags.resize(tags, 0);
        self.data.resize(data, 0);
        let bytes = match self.is_delta {
            true => self.coder.encode_deltas(B::default(), values, &mut self.tags, &mut self.data),
            false => self.coder.encode(values, &mut self.tags, &mut self.data),
        };
        out.extend_from_slice(&self.tags);
        out.extend_from_slice(&self.data[..bytes]);
        Ok(())
    }

    fn open<'b>(&self, bytes: &'b [u8], value_count: usize) -> Result<Box<dyn Opened + 'b>, Failure> {
        let (tags, data) = bytes.split_at(value_count / 4);
        let mut starts = vec![0];
        if !self.is_delta {
            for tags in tags.chunks(VECTOR_TAGS) {
                starts.push(starts[starts.len() - 1] + self.coder.data_len(tags));
            }
        }
        Ok(Box::new(Groups { coder: self.coder, is_delta: self.is_delta, tags, data, starts }))
    }
}

struct Groups<'b, C> {
    coder: C,
    is_delta: bool,
    tags: &'b [u8],
    data: &'b [u8],
    /// Where each vector starts in `data`; of differences, which are decoded as a whole, the first alone.
    starts: Vec<usize>,
}

impl<C: Coder<Elem = B>, B: Bits> Opened for Groups<'_, C> {
    fn vector(&self, index: usize, out: &mut ValuesBuf) -> bool {
        if self.is_delta {
            return false;
        }
        let tags = self.tags.chunks(VECTOR_TAGS).nth(index).unwrap_or_default();
        let data = &self.data[self.starts[index]..self.starts[index + 1]];
        self.coder.decode(tags, data, B::room(out, 4 * tags.len()));
        true
    }

    fn whole(&self, out: &mut ValuesBuf) {
        let room = B::room(out, 4 * self.tags.len());
        match self.is_delta {
            true => self.coder.decode_deltas(B::default(), self.tags, self.data, room),
            false => self.coder.decode(self.tags, self.data, room),
        };
    }
}
