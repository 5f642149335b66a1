//! Where a reader writes: a slice of just the right length, or a bytes buffer that grows.

use crate::fixed::Fixed;
use crate::{BytesBuf, Physical, Values, ValuesBuf};

/// A fixed-width type and its variants in the enums over physical types: how generic code gets at its own slice.
pub(crate) trait Native: Fixed {
    /// The type's name among physical types.
    const PHYSICAL: Physical;
    /// The slice in `out`, which is one of this type.
    fn slice_mut(out: ValuesMut<'_>) -> &mut [Self];
    /// The vector in `buf`, which is one of this type.
    fn vec_mut(buf: &mut ValuesBuf) -> &mut Vec<Self>;
    /// The same, as values.
    fn values(slice: &[Self]) -> Values<'_>;
}

macro_rules! values_mut {
    ($($variant:ident => $native:ty),* $(,)?) => {
        /// The target of decoding, of one physical type.
        #[derive(Debug)]
        pub(crate) enum ValuesMut<'a> {
            $($variant(&'a mut [$native]),)*
            /// Appended to, not overwritten.
            Bytes(&'a mut BytesBuf),
        }

        $(
        impl Native for $native {
            const PHYSICAL: Physical = Physical::$variant;
            fn slice_mut(out: ValuesMut<'_>) -> &mut [Self] {
                match out {
                    ValuesMut::$variant(slice) => slice,
                    other => panic!("a target for {}, not {}", other.physical().name(), Self::PHYSICAL.name()),
                }
            }
            fn vec_mut(buf: &mut ValuesBuf) -> &mut Vec<Self> {
                match buf {
                    ValuesBuf::$variant(values) => values,
                    other => panic!("a buffer of {}, not {}", other.physical().name(), Self::PHYSICAL.name()),
                }
            }
            fn values(slice: &[Self]) -> Values<'_> {
                Values::$variant(slice)
            }
        }
        )*

        impl<'a> ValuesMut<'a> {
            /// The first `len` values of `buf`, which is made to be of this type and length. Memory that `buf` already has
            /// is not cleared: a reader overwrites all of it. A bytes buffer is emptied.
            #[inline]
            pub(crate) fn over(buf: &'a mut ValuesBuf, physical: Physical, len: usize) -> ValuesMut<'a> {
                if buf.physical() != physical {
                    *buf = ValuesBuf::new(physical);
                }
                match buf {
                    $(ValuesBuf::$variant(values) => {
                        values.resize(len, Default::default());
                        ValuesMut::$variant(values)
                    })*
                    ValuesBuf::Bytes(buf) => {
                        buf.clear();
                        ValuesMut::Bytes(buf)
                    }
                }
            }

            /// The type it takes.
            pub(crate) fn physical(&self) -> Physical {
                match self {
                    $(ValuesMut::$variant(_) => Physical::$variant,)*
                    ValuesMut::Bytes(_) => Physical::Bytes,
                }
            }

            /// The part that values `start..start + len` of it go to. A bytes buffer is its own part: it must be written in order.
            pub(crate) fn part(&mut self, start: usize, len: usize) -> ValuesMut<'_> {
                match self {
                    $(ValuesMut::$variant(values) => ValuesMut::$variant(&mut values[start..start + len]),)*
                    ValuesMut::Bytes(buf) => ValuesMut::Bytes(buf),
                }
            }
        }
    };
}

values_mut! {
    I8 => i8, I16 => i16, I32 => i32, I64 => i64, I128 => i128,
    U8 => u8, U16 => u16, U32 => u32, U64 => u64, F32 => f32, F64 => f64,
}
