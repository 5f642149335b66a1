//! Numbers of one width, whatever the type that they are columns of: what peers work on.

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use sinter_codec::{Values, ValuesBuf};

/// An unsigned number that stands for the bits of values of its width.
pub trait Bits: Pod + Ord + Default {
    /// The values as such numbers.
    ///
    /// # Panics
    /// Where they are of another width: a mistake of the caller.
    fn of(values: Values<'_>) -> &[Self];

    /// Room for `len` such numbers in `out`, whose type stays what it is.
    ///
    /// # Panics
    /// Where its values are of another width: a mistake of the caller.
    fn room(out: &mut ValuesBuf, len: usize) -> &mut [Self];
}

macro_rules! bits {
    ($($type:ty: $($variant:ident)|+;)*) => {$(
        impl Bits for $type {
            fn of(values: Values<'_>) -> &[Self] {
                match values {
                    $(Values::$variant(values) => cast_slice(values),)+
                    other => panic!("{} values are not as wide as {}", other.physical().name(), stringify!($type)),
                }
            }

            fn room(out: &mut ValuesBuf, len: usize) -> &mut [Self] {
                match out {
                    $(ValuesBuf::$variant(values) => {
                        values.resize(len, Default::default());
                        cast_slice_mut(values)
                    })+
                    other => panic!("{} values are not as wide as {}", other.physical().name(), stringify!($type)),
                }
            }
        }
    )*};
}

bits! {
    u8: U8 | I8;
    u16: U16 | I16;
    u32: U32 | I32 | F32;
    u64: U64 | I64 | F64;
    u128: I128;
}

/// The bytes of values that have a width.
///
/// # Panics
/// For strings: a mistake of the caller.
pub fn plain_bytes(values: Values<'_>) -> &[u8] {
    match values.physical().value_bytes() {
        Some(1) => cast_slice(u8::of(values)),
        Some(2) => cast_slice(u16::of(values)),
        Some(4) => cast_slice(u32::of(values)),
        Some(8) => cast_slice(u64::of(values)),
        Some(16) => cast_slice(u128::of(values)),
        _ => panic!("{} values have no width", values.physical().name()),
    }
}

/// Room for the bytes of `value_count` values of the buffer's type.
///
/// # Panics
/// For strings: a mistake of the caller.
pub fn plain_room(out: &mut ValuesBuf, value_count: usize) -> &mut [u8] {
    match out.physical().value_bytes() {
        Some(1) => cast_slice_mut(u8::room(out, value_count)),
        Some(2) => cast_slice_mut(u16::room(out, value_count)),
        Some(4) => cast_slice_mut(u32::room(out, value_count)),
        Some(8) => cast_slice_mut(u64::room(out, value_count)),
        Some(16) => cast_slice_mut(u128::room(out, value_count)),
        _ => panic!("{} values have no width", out.physical().name()),
    }
}
