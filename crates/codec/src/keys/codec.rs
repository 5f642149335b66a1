//! The one list of key codecs. A new one is a file in this folder that implements [`Coding`], and a line here.

use super::block::{KeyBlock, KeyDescriptor};
use super::block_mut::KeyChange;
use super::coding::{Coding, KEYS_MAX, Keys};
use super::key::Key;
use super::order::never_decrease;
use super::{bit_string, bp128, masked_vbyte, none, simd_for, transposed, varint_gb, vbyte};
use crate::{Error, Result};

macro_rules! key_codecs {
    ($($(#[$doc:meta])* $tag:literal => $variant:ident, $name:literal, $coding:ty;)*) => {
        /// How a block of keys is written. The numbers are the tags on disk: never given twice, nor reused.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum KeyCodec {
            $($(#[$doc])* $variant = $tag),*
        }

        /// Every key codec, in the order of tags. Tests, benchmark and whoever lets a user choose iterate over it.
        pub static KEY_CODECS: &[KeyCodec] = &[$(KeyCodec::$variant),*];

        impl KeyCodec {
            /// The name in messages and for users.
            pub fn name(self) -> &'static str {
                match self {
                    $(KeyCodec::$variant => $name),*
                }
            }

            /// Whether no block grows by a key that is taken away; otherwise [`super::KeyBlockMut::delete`] may refuse.
            pub fn is_delete_stable(self) -> bool {
                match self {
                    $(KeyCodec::$variant => <$coding>::IS_DELETE_STABLE),*
                }
            }

            #[inline]
            pub(super) fn size<K: Key>(self, keys: &[K]) -> usize {
                match self {
                    $(KeyCodec::$variant => <$coding>::size(keys)),*
                }
            }

            #[inline]
            pub(super) fn write<K: Key>(self, keys: &[K], out: &mut [u8]) {
                match self {
                    $(KeyCodec::$variant => <$coding>::write(keys, out)),*
                }
            }

            #[inline]
            fn append_block<K: Key>(self, keys: &[K], out: &mut Vec<u8>) {
                match self {
                    $(KeyCodec::$variant => <$coding>::encode(keys, out)),*
                }
            }

            #[inline]
            pub(super) fn fits<K: Key>(self, descriptor: &KeyDescriptor<K>, bytes: &[u8]) -> bool {
                match self {
                    $(KeyCodec::$variant => <$coding>::fits(descriptor, bytes)),*
                }
            }

            #[inline]
            pub(super) fn decode<K: Key>(self, block: &KeyBlock<'_, K>, out: &mut Keys<K>) {
                match self {
                    $(KeyCodec::$variant => <$coding>::decode(block, out)),*
                }
            }

            #[inline]
            pub(super) fn select<K: Key>(self, block: &KeyBlock<'_, K>, index: usize) -> K {
                match self {
                    $(KeyCodec::$variant => <$coding>::select(block, index)),*
                }
            }

            #[inline]
            pub(super) fn lower_bound<K: Key>(self, block: &KeyBlock<'_, K>, key: K) -> (usize, K) {
                match self {
                    $(KeyCodec::$variant => <$coding>::lower_bound(block, key)),*
                }
            }

            #[inline]
            pub(super) fn append<K: Key>(
                self,
                descriptor: &mut KeyDescriptor<K>,
                room: &mut [u8],
                key: K,
            ) -> Option<KeyChange> {
                match self {
                    $(KeyCodec::$variant => <$coding>::append(descriptor, room, key)),*
                }
            }

            #[inline]
            pub(super) fn insert<K: Key>(
                self,
                descriptor: &mut KeyDescriptor<K>,
                room: &mut [u8],
                key: K,
            ) -> Option<KeyChange> {
                match self {
                    $(KeyCodec::$variant => <$coding>::insert(descriptor, room, key)),*
                }
            }

            #[inline]
            pub(super) fn delete<K: Key>(
                self,
                descriptor: &mut KeyDescriptor<K>,
                room: &mut [u8],
                index: usize,
            ) -> Option<KeyChange> {
                match self {
                    $(KeyCodec::$variant => <$coding>::delete(descriptor, room, index)),*
                }
            }
        }
    };
}

key_codecs! { // tag on disk => variant, name, what it does
    /// Keys as they are.
    0 => None, "none", none::Uncompressed;
    /// Differences, seven bits a byte.
    1 => Vbyte, "vbyte", vbyte::Vbyte;
    /// The bytes of [`KeyCodec::Vbyte`], read by SIMD.
    2 => MaskedVbyte, "masked_vbyte", masked_vbyte::MaskedVbyte;
    /// Differences in groups of four with their lengths in front.
    3 => VarintGb, "varint_gb", varint_gb::VarintGb;
    /// Differences from key to key, packed in frames of 128.
    4 => Bp128D1, "bp128_d1", bp128::D1;
    /// Differences from the fourth key before, packed in frames of 128.
    5 => Bp128D4, "bp128_d4", bp128::D4;
    /// Differences from key to key, packed in frames of 128 so that registers add them without waiting.
    6 => Bp128Transposed, "bp128_transposed", transposed::Transposed;
    /// Distances from the first key, as one string of bits.
    7 => For, "for", bit_string::For;
    /// Distances from the first key, packed in frames of 128.
    8 => SimdFor, "simd_for", simd_for::SimdFor;
}

impl KeyCodec {
    /// The number on disk.
    pub fn tag(self) -> u8 {
        self as u8
    }

    /// Appends these keys, which never decrease, to `out`, and returns what a tree keeps of them.
    ///
    /// # Errors
    /// [`Error::TooLarge`] for more than [`KEYS_MAX`], [`Error::Unsorted`] where one is less than the one before.
    pub fn encode<K: Key>(self, keys: &[K], out: &mut Vec<u8>) -> Result<KeyDescriptor<K>> {
        if keys.len() > KEYS_MAX {
            return Err(Error::TooLarge { what: "keys", found: keys.len(), limit: KEYS_MAX });
        }
        let (Some(&first), Some(&last)) = (keys.first(), keys.last()) else { return Ok(KeyDescriptor::default()) };
        if !never_decrease(keys) {
            let index = keys.windows(2).take_while(|pair| pair[0] <= pair[1]).count() + 1;
            return Err(Error::Unsorted { index });
        }
        let start = out.len();
        self.append_block(keys, out);
        Ok(KeyDescriptor { first, last, count: keys.len(), byte_len: out.len() - start })
    }
}

/// The codec with this tag on disk.
pub fn key_codec_by_tag(tag: u8) -> Option<KeyCodec> {
    KEY_CODECS.iter().copied().find(|codec| codec.tag() == tag)
}

/// The codec of this name.
///
/// # Errors
/// [`Error::NoSuchScheme`], with the names there are.
pub fn key_codec_by_name(name: &str) -> Result<KeyCodec> {
    KEY_CODECS.iter().copied().find(|codec| codec.name() == name).ok_or_else(|| {
        let known: Vec<&str> = KEY_CODECS.iter().map(|codec| codec.name()).collect();
        Error::NoSuchScheme { name: name.to_owned(), known: known.join(", ") }
    })
}
