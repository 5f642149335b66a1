//! Who packs blocks of sorted keys: ours, and crates that have something of the kind. These can only be asked for all keys.

use super::measure::FromBits;
use crate::Failure;
use bitpacking::{BitPacker, BitPacker4x, BitPacker8x};
use sinter_codec::{KEYS_MAX, Key, KeyBlock, KeyCodec, KeyDescriptor};
use streamvbyte64::{Coder, Coder1234};

/// A way to keep full blocks of keys.
pub trait Packer<K: Key> {
    /// Its name.
    fn label(&self) -> &'static str;

    /// Appends a block.
    ///
    /// # Errors
    /// Where it cannot hold these.
    fn encode(&self, keys: &[K], out: &mut Vec<u8>) -> Result<KeyDescriptor<K>, Failure>;

    /// All keys of a block; a descriptor tells ours what peers have among their bytes.
    fn decode(&self, descriptor: KeyDescriptor<K>, bytes: &[u8], out: &mut [K; KEYS_MAX]);
}

/// Crates that pack `u32`.
pub fn of_words() -> Vec<Box<dyn Packer<u32>>> {
    vec![
        Box::new(Packed { name: "crate bp128 d1", packer: BitPacker4x::new() }),
        Box::new(Packed { name: "crate bp256 d1", packer: BitPacker8x::new() }),
        Box::new(Bytes(Coder1234::new())),
    ]
}

impl<K: FromBits> Packer<K> for KeyCodec {
    fn label(&self) -> &'static str {
        KeyCodec::name(*self)
    }

    fn encode(&self, keys: &[K], out: &mut Vec<u8>) -> Result<KeyDescriptor<K>, Failure> {
        Ok(KeyCodec::encode(*self, keys, out)?)
    }

    fn decode(&self, descriptor: KeyDescriptor<K>, bytes: &[u8], out: &mut [K; KEYS_MAX]) {
        KeyBlock::open(*self, descriptor, bytes).expect("it was just encoded").decode(out);
    }
}

/// Crate bitpacking: the width of each of its blocks, then its differences.
struct Packed<P> {
    name: &'static str,
    packer: P,
}

impl<P: BitPacker> Packer<u32> for Packed<P> {
    fn label(&self) -> &'static str {
        self.name
    }

    fn encode(&self, keys: &[u32], out: &mut Vec<u8>) -> Result<KeyDescriptor<u32>, Failure> {
        let mut last = 0;
        for block in keys.chunks_exact(P::BLOCK_LEN) {
            let bit_width = self.packer.num_bits_sorted(last, block);
            out.push(bit_width);
            let start = out.len();
            out.resize(start + P::compressed_block_size(bit_width), 0);
            self.packer.compress_sorted(last, block, &mut out[start..], bit_width);
            last = block[P::BLOCK_LEN - 1];
        }
        Ok(KeyDescriptor::default())
    }

    fn decode(&self, _descriptor: KeyDescriptor<u32>, mut bytes: &[u8], out: &mut [u32; KEYS_MAX]) {
        let mut last = 0;
        for block in out.chunks_exact_mut(P::BLOCK_LEN) {
            let read = self.packer.decompress_sorted(last, &bytes[1..], block, bytes[0]);
            bytes = &bytes[1 + read..];
            last = block[P::BLOCK_LEN - 1];
        }
    }
}

/// Crate streamvbyte64, a group varint: lengths, then the bytes of differences.
struct Bytes(Coder1234);

impl Packer<u32> for Bytes {
    fn label(&self) -> &'static str {
        "crate stream vbyte d1"
    }

    fn encode(&self, keys: &[u32], out: &mut Vec<u8>) -> Result<KeyDescriptor<u32>, Failure> {
        let (tag_bytes, data_bytes) = Coder1234::max_compressed_bytes(keys.len());
        let start = out.len();
        out.resize(start + tag_bytes + data_bytes, 0);
        let (tags, data) = out[start..].split_at_mut(tag_bytes);
        let used = self.0.encode_deltas(0, keys, tags, data);
        out.truncate(start + tag_bytes + used);
        Ok(KeyDescriptor::default())
    }

    fn decode(&self, _descriptor: KeyDescriptor<u32>, bytes: &[u8], out: &mut [u32; KEYS_MAX]) {
        let (tags, data) = bytes.split_at(KEYS_MAX / 4);
        self.0.decode_deltas(0, tags, data, out);
    }
}
