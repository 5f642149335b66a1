//! Values of fixed width, and the integers among them: what generic code needs to know of a native type.

use crate::VECTOR_LEN;
use crate::values_mut::Native;
use std::fmt::Debug;

/// A number of fixed width, compared and kept by its bits: `-0.0` differs from `0.0`, a NaN equals itself.
pub(crate) trait Fixed: Copy + Default + Debug + Send + Sync + 'static {
    /// Bytes of one value.
    const BYTES: usize;
    /// The value in the first bytes of `bytes`.
    fn read(bytes: &[u8]) -> Self;
    /// Appends the value.
    fn write(self, out: &mut Vec<u8>);
    /// The bits, zero-extended. Equal values have equal bits; the order of integers is not kept.
    fn bits(self) -> u128;
    /// The value with these bits.
    fn from_bits(bits: u128) -> Self;
}

/// An integer of any width and sign. Arithmetic wraps.
pub(crate) trait Integer: Native + Ord {
    /// The signed type of the same width: what differences are.
    type Signed: Integer;
    /// The unsigned type of the same width, but for `I128`, which is itself: of two types with the same bits, code that is
    /// long is compiled for this one only.
    type Unsigned: Integer;
    /// Least and greatest value.
    const MIN: Self;
    /// See [`Integer::MIN`].
    const MAX: Self;
    /// `self + other`, modulo the width.
    fn add(self, other: Self) -> Self;
    /// `self - other`, modulo the width.
    fn sub(self, other: Self) -> Self;
    /// The low bits of `delta`, zero-extended for wider types.
    fn from_delta(delta: u64) -> Self;
    /// The value as an unsigned number of its own width; what lies above 64 bits is cut.
    fn to_delta(self) -> u64;
    /// Exact, but for `U64` and below; `I128` is itself.
    fn wide(self) -> i128;
    /// Cuts to the width.
    fn cut(wide: i128) -> Self;
    /// The same bits, signed.
    fn signed(self) -> Self::Signed;
    /// The same bits again.
    fn from_signed(signed: Self::Signed) -> Self;
    /// The same bits, unsigned.
    fn unsigned(self) -> Self::Unsigned;
    /// A vector by its bits.
    fn unsigned_vector(vector: &mut [Self; VECTOR_LEN]) -> &mut [Self::Unsigned; VECTOR_LEN];
}

macro_rules! fixed {
    ($($native:ty, $bits:ty, $to:expr, $from:expr);* $(;)?) => {$(
        impl Fixed for $native {
            const BYTES: usize = size_of::<$native>();
            #[inline]
            fn read(bytes: &[u8]) -> Self {
                let mut array = [0; size_of::<$native>()];
                array.copy_from_slice(&bytes[..size_of::<$native>()]);
                <$native>::from_le_bytes(array)
            }
            #[inline]
            fn write(self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }
            #[inline]
            fn bits(self) -> u128 {
                let bits: $bits = $to(self);
                u128::from(bits)
            }
            #[inline]
            fn from_bits(bits: u128) -> Self {
                $from(bits as $bits)
            }
        }
    )*};
}

macro_rules! integers {
    ($($native:ty, $unsigned:ty, $signed:ty, $vector_of:ty);* $(;)?) => {
        fixed! { $($native, $unsigned, |value| value as $unsigned, |bits: $unsigned| bits as $native);* }
        $(
        impl Integer for $native {
            type Signed = $signed;
            type Unsigned = $vector_of;
            const MIN: Self = <$native>::MIN;
            const MAX: Self = <$native>::MAX;
            #[inline]
            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline]
            fn sub(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline]
            fn from_delta(delta: u64) -> Self {
                delta as $native
            }
            #[inline]
            fn to_delta(self) -> u64 {
                self as $unsigned as u64
            }
            #[inline]
            fn wide(self) -> i128 {
                self as i128
            }
            #[inline]
            fn cut(wide: i128) -> Self {
                wide as $native
            }
            #[inline]
            fn signed(self) -> $signed {
                self as $signed
            }
            #[inline]
            fn from_signed(signed: $signed) -> Self {
                signed as $native
            }
            #[inline]
            fn unsigned(self) -> $vector_of {
                self as $vector_of
            }
            #[inline]
            fn unsigned_vector(vector: &mut [$native; VECTOR_LEN]) -> &mut [$vector_of; VECTOR_LEN] {
                zerocopy::transmute_mut!(vector)
            }
        }
    )*};
}

integers! {
    i8, u8, i8, u8; i16, u16, i16, u16; i32, u32, i32, u32; i64, u64, i64, u64; i128, u128, i128, i128;
    u8, u8, i8, u8; u16, u16, i16, u16; u32, u32, i32, u32; u64, u64, i64, u64;
}
fixed! { f32, u32, f32::to_bits, f32::from_bits; f64, u64, f64::to_bits, f64::from_bits }

/// Runs `$body` with `$values` bound to the slice in whichever integer variant of `$kind` it is.
macro_rules! for_integers {
    ($kind:ident, $value:expr, $values:ident => $body:expr, $other:pat => $otherwise:expr) => {
        match $value {
            $kind::I8($values) => $body,
            $kind::I16($values) => $body,
            $kind::I32($values) => $body,
            $kind::I64($values) => $body,
            $kind::I128($values) => $body,
            $kind::U8($values) => $body,
            $kind::U16($values) => $body,
            $kind::U32($values) => $body,
            $kind::U64($values) => $body,
            $other => $otherwise,
        }
    };
}
pub(crate) use for_integers;

/// Like `for_integers`, for all types of fixed width; `$view` is bound for bytes.
macro_rules! for_fixed {
    ($kind:ident, $value:expr, $values:ident => $body:expr, $view:pat => $otherwise:expr) => {
        match $value {
            $kind::I8($values) => $body,
            $kind::I16($values) => $body,
            $kind::I32($values) => $body,
            $kind::I64($values) => $body,
            $kind::I128($values) => $body,
            $kind::U8($values) => $body,
            $kind::U16($values) => $body,
            $kind::U32($values) => $body,
            $kind::U64($values) => $body,
            $kind::F32($values) => $body,
            $kind::F64($values) => $body,
            $kind::Bytes($view) => $otherwise,
        }
    };
}
pub(crate) use for_fixed;
