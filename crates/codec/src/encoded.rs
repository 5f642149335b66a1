//! The form nearest to the bytes: what [`crate::Block::load`] gives.

use crate::{BytesBuf, Physical, VECTOR_LEN, Values, ValuesBuf};

/// Small unsigned numbers, in the narrowest of three widths.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the variants are their widths")]
pub enum Narrow {
    U8(Vec<u8>),
    U16(Vec<u16>),
    U32(Vec<u32>),
}

/// The values of a range in the form nearest to their bytes: what [`Block::load`] fills.
#[derive(Clone, Debug)]
pub enum Encoded {
    /// All values are equal; the buffer holds one value.
    Constant(ValuesBuf),
    /// Integers: value = `base` + delta (wrapping in the physical type is already resolved: the sum is exact).
    BaseDelta {
        /// The least value that a delta of zero stands for.
        base: i128,
        /// One per row.
        deltas: Narrow,
    },
    /// Positions in [`Block::dictionary`].
    Codes(Narrow),
    /// Plain values, one per row.
    Flat(ValuesBuf),
}

impl Default for Encoded {
    fn default() -> Self {
        Encoded::Flat(ValuesBuf::Bytes(BytesBuf::default()))
    }
}

impl Narrow {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            Narrow::U8(numbers) => numbers.len(),
            Narrow::U16(numbers) => numbers.len(),
            Narrow::U32(numbers) => numbers.len(),
        }
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The numbers as values of their width.
    pub fn as_values(&self) -> Values<'_> {
        match self {
            Narrow::U8(numbers) => Values::U8(numbers),
            Narrow::U16(numbers) => Values::U16(numbers),
            Narrow::U32(numbers) => Values::U32(numbers),
        }
    }

    /// The number at `index`.
    #[inline]
    pub fn get(&self, index: usize) -> u32 {
        match self {
            Narrow::U8(numbers) => u32::from(numbers[index]),
            Narrow::U16(numbers) => u32::from(numbers[index]),
            Narrow::U32(numbers) => numbers[index],
        }
    }
}

macro_rules! emptied {
    ($($method:ident, $vector:ident => $variant:ident, $native:ty);*) => {
        impl Narrow {
            $(
                /// An empty vector of this width, with the memory there was if it had this width before.
                pub(crate) fn $method(&mut self) -> &mut Vec<$native> {
                    if !matches!(self, Narrow::$variant(_)) {
                        *self = Narrow::$variant(Vec::new());
                    }
                    match self {
                        Narrow::$variant(numbers) => {
                            numbers.clear();
                            numbers
                        }
                        _ => unreachable!("it was just made so"),
                    }
                }

                /// Room for a vector of this width, of any content.
                pub(crate) fn $vector(&mut self) -> &mut [$native; VECTOR_LEN] {
                    if !matches!(self, Narrow::$variant(numbers) if numbers.len() == VECTOR_LEN) {
                        *self = Narrow::$variant(vec![0; VECTOR_LEN]);
                    }
                    match self {
                        Narrow::$variant(numbers) => (&mut numbers[..]).try_into().expect("it has this length"),
                        _ => unreachable!("it was just made so"),
                    }
                }
            )*
        }
    };
}

emptied! { as_u8, u8_vector => U8, u8; as_u16, u16_vector => U16, u16; as_u32, u32_vector => U32, u32 }

impl Encoded {
    /// Where distances from `base` go, which it becomes.
    pub(crate) fn deltas_above(&mut self, base: i128) -> &mut Narrow {
        if !matches!(self, Encoded::BaseDelta { .. }) {
            *self = Encoded::BaseDelta { base: 0, deltas: Narrow::U8(Vec::new()) };
        }
        let Encoded::BaseDelta { base: base_out, deltas } = self else { unreachable!("it was just made so") };
        *base_out = base;
        deltas
    }

    /// The buffer of the flat form, to be overwritten; the form becomes flat.
    pub(crate) fn flat(&mut self, physical: Physical) -> &mut ValuesBuf {
        if !matches!(self, Encoded::Flat(_)) {
            *self = Encoded::Flat(ValuesBuf::new(physical));
        }
        match self {
            Encoded::Flat(values) => values,
            _ => unreachable!("it was just made flat"),
        }
    }
}
