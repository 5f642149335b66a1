//! Where a reader writes: a slice of just the right length, or a bytes buffer that grows.

use crate::{BytesBuf, Physical, ValuesBuf};

macro_rules! values_mut {
    ($($variant:ident => $native:ty),* $(,)?) => {
        /// The target of decoding, of one physical type.
        #[derive(Debug)]
        pub(crate) enum ValuesMut<'a> {
            $($variant(&'a mut [$native]),)*
            /// Appended to, not overwritten.
            Bytes(&'a mut BytesBuf),
        }

        impl<'a> ValuesMut<'a> {
            /// The first `len` values of `buf`, which is made to be of this type and length. Memory that `buf` already has
            /// is not cleared: a reader overwrites all of it. A bytes buffer is emptied.
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
