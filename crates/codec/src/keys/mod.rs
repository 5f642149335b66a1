//! Sorted keys in small blocks: what the leaves of a key-value tree hold, and the answers that they give without
//! decoding.
//!
//! A block has up to [`KEYS_MAX`] keys, `u32` or `u64`, which never decrease. What a tree needs to find its way stands
//! beside the block, in a [`KeyDescriptor`]: first key, last key, count, and length in bytes. The block itself has no
//! header. One [`KeyCodec`] of [`KEY_CODECS`] writes it; [`KeyBlock`] reads it (all keys, one by its index, the first
//! that is not less than another), [`KeyBlockMut`] changes it where it lies.
//!
//! Lemire and Rupp, *Upscaledb: Efficient integer-key compression in a key-value store using SIMD instructions*,
//! Information Systems 66, 2017; sections 2 (codecs), 3.2 to 3.4 (what a tree asks of them). We differ in that keys may
//! have 64 bits, that the packed codecs lie in lanes for registers of 512 bits instead of 128 ([`lanes`]), that a
//! partly filled block takes only the rows that it has, and that there is a transposed form ([`transposed`]). The bytes
//! are in docs/format/keys.md.
//!
//! Where each idea lives: [`vbyte`], [`varint_gb`] and [`none`] write bytes, [`bit_string`] (`for`) and [`lanes`]
//! (`simd_for`, `bp128`) write bits. [`coding`] says what a codec must do, [`codec`] has the list.

mod bit_string;
mod block;
mod block_mut;
mod bp128;
mod codec;
mod coding;
mod count_less;
mod key;
mod lanes;
mod masked_vbyte;
mod none;
mod order;
mod packed_frames;
mod rows;
mod simd_for;
#[cfg(test)]
mod tests;
mod transposed;
mod varint_gb;
mod vbyte;

pub use block::{KeyBlock, KeyDescriptor};
pub use block_mut::{KeyBlockMut, KeyChange};
pub use codec::{KEY_CODECS, KeyCodec, key_codec_by_name, key_codec_by_tag};
pub use coding::KEYS_MAX;
pub use key::Key;
