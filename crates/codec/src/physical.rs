//! How a value is kept, as opposed to what it means.

/// The machine type under a column. What the bits mean (a date, a decimal) is the business of the rooms below.
///
/// The numbers are the tags on disk: never reused, never renumbered (docs/format/block.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Physical {
    /// 8-bit signed.
    I8 = 1,
    /// 16-bit signed.
    I16 = 2,
    /// 32-bit signed: also dates and short decimals.
    I32 = 3,
    /// 64-bit signed: also times, timestamps and decimals to 18 digits.
    I64 = 4,
    /// 128-bit signed: decimals to 38 digits, UUIDs (order-preserving), intervals.
    I128 = 5,
    /// 8-bit unsigned: also booleans (0 and 1).
    U8 = 6,
    /// 16-bit unsigned.
    U16 = 7,
    /// 32-bit unsigned: also list lengths.
    U32 = 8,
    /// 64-bit unsigned.
    U64 = 9,
    /// IEEE 754 single.
    F32 = 10,
    /// IEEE 754 double.
    F64 = 11,
    /// Any run of bytes: strings and binary.
    Bytes = 12,
}

impl Physical {
    /// Every physical type, in tag order.
    pub const ALL: [Physical; 12] = [
        Physical::I8,
        Physical::I16,
        Physical::I32,
        Physical::I64,
        Physical::I128,
        Physical::U8,
        Physical::U16,
        Physical::U32,
        Physical::U64,
        Physical::F32,
        Physical::F64,
        Physical::Bytes,
    ];

    /// The type with this tag on disk.
    pub fn from_tag(tag: u8) -> Option<Physical> {
        Physical::ALL.get(usize::from(tag).wrapping_sub(1)).copied()
    }

    /// Bytes of one plain value; `None` for [`Physical::Bytes`].
    pub fn value_bytes(self) -> Option<usize> {
        match self {
            Physical::I8 | Physical::U8 => Some(1),
            Physical::I16 | Physical::U16 => Some(2),
            Physical::I32 | Physical::U32 | Physical::F32 => Some(4),
            Physical::I64 | Physical::U64 | Physical::F64 => Some(8),
            Physical::I128 => Some(16),
            Physical::Bytes => None,
        }
    }

    /// Integers of every width and sign.
    pub fn is_integer(self) -> bool {
        !matches!(self, Physical::F32 | Physical::F64 | Physical::Bytes)
    }

    /// The name in messages and in `sinter codecs`.
    pub fn name(self) -> &'static str {
        match self {
            Physical::I8 => "i8",
            Physical::I16 => "i16",
            Physical::I32 => "i32",
            Physical::I64 => "i64",
            Physical::I128 => "i128",
            Physical::U8 => "u8",
            Physical::U16 => "u16",
            Physical::U32 => "u32",
            Physical::U64 => "u64",
            Physical::F32 => "f32",
            Physical::F64 => "f64",
            Physical::Bytes => "bytes",
        }
    }
}
