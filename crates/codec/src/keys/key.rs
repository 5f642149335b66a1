//! The types of keys: `u32` and `u64`.

use crate::fixed::Integer;
use std::fmt::{Debug, Display};
use std::ops::{BitAnd, BitOr, Shl, Shr};

/// A key: `u32` or `u64`. Signed numbers and times are mapped to these by whoever gives them an order.
#[expect(private_bounds, reason = "sealed: a codec knows just these two types")]
pub trait Key: Word + Copy + Ord + Debug + Display + Default + Send + Sync + 'static {}

impl Key for u32 {}
impl Key for u64 {}

/// What the codecs need of a key: unsigned arithmetic that wraps ([`Integer`]), and bits.
pub(crate) trait Word:
    Integer + Shl<u32, Output = Self> + Shr<u32, Output = Self> + BitAnd<Output = Self> + BitOr<Output = Self> + Display
{
    /// Bits of a key.
    const BITS: u32;

    /// Bits that this number needs: 0 for 0, 1 for 1, 2 for 2 and 3.
    fn width(self) -> u32;

    /// The number in the first bytes of `bytes`, of which there are at least as many as it has.
    fn read_word(bytes: &[u8]) -> Self;

    /// Over the first bytes of `out`.
    fn write_word(self, out: &mut [u8]);
}

macro_rules! words {
    ($($word:ty),*) => {$(
        impl Word for $word {
            const BITS: u32 = <$word>::BITS;

            #[inline(always)]
            fn width(self) -> u32 {
                <$word>::BITS - self.leading_zeros()
            }

            #[inline(always)]
            fn read_word(bytes: &[u8]) -> Self {
                match bytes.first_chunk() {
                    Some(bytes) => <$word>::from_le_bytes(*bytes),
                    None => 0,
                }
            }

            #[inline(always)]
            fn write_word(self, out: &mut [u8]) {
                if let Some(out) = out.first_chunk_mut() {
                    *out = self.to_le_bytes();
                }
            }
        }
    )*};
}

words!(u32, u64);
