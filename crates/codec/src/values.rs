//! Slices of values: borrowed where they are read, owned and reused where they are written.

use crate::{Error, Physical, Result};

/// A few bytes can claim to be many long strings; this is what one call decodes at most.
pub(crate) const DECODED_BYTES_MAX: usize = 1 << 30;

/// Byte strings: `offsets` has one more entry than there are values, starts anywhere and never decreases.
#[derive(Clone, Copy, Debug)]
pub struct BytesView<'a> {
    /// Where each value starts in `data`, and where the last one ends.
    pub offsets: &'a [u32],
    /// All values, one after the other.
    pub data: &'a [u8],
}

/// The same bytes; where there are none, at an address that is memory. That of an empty vector is not, and where bytes are
/// compared by masked loads, a processor takes over 100 ns to find that it need not look there. For what is compared with
/// many values.
pub fn at_memory(bytes: &[u8]) -> &[u8] {
    static MEMORY: [u8; 1] = [0];
    if bytes.is_empty() { &MEMORY[..0] } else { bytes }
}

impl<'a> BytesView<'a> {
    /// How many values.
    pub fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value at `index`.
    #[inline]
    pub fn get(&self, index: usize) -> &'a [u8] {
        &self.data[self.offsets[index] as usize..self.offsets[index + 1] as usize]
    }

    /// All values in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone {
        (0..self.len()).map(move |index| self.get(index))
    }

    /// The values of `range`.
    pub fn slice(&self, range: std::ops::Range<usize>) -> BytesView<'a> {
        BytesView { offsets: &self.offsets[range.start..=range.end], data: self.data }
    }

    /// Bytes of all values together.
    pub fn data_bytes(&self) -> usize {
        (self.offsets[self.offsets.len() - 1] - self.offsets[0]) as usize
    }
}

/// Owned byte strings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BytesBuf {
    /// One more entry than there are values; the first is 0.
    pub offsets: Vec<u32>,
    /// All values, one after the other.
    pub data: Vec<u8>,
}

impl Default for BytesBuf {
    fn default() -> Self {
        BytesBuf { offsets: vec![0], data: Vec::new() }
    }
}

impl BytesBuf {
    /// Forgets the values, keeps the memory.
    pub fn clear(&mut self) {
        self.offsets.clear();
        self.offsets.push(0);
        self.data.clear();
    }

    /// Appends one value.
    ///
    /// # Panics
    /// When the data would pass 4 GiB: callers bound their batches.
    #[inline]
    pub fn push(&mut self, value: &[u8]) {
        self.data.extend_from_slice(value);
        self.offsets.push(u32::try_from(self.data.len()).expect("a batch holds less than 4 GiB of bytes"));
    }

    /// Appends values, all at once.
    ///
    /// # Panics
    /// As [`BytesBuf::push`].
    pub fn extend(&mut self, view: BytesView<'_>) {
        let (first, end) = (view.offsets[0], view.offsets[view.len()]);
        let start = self.data.len() as u32;
        self.data.extend_from_slice(&view.data[first as usize..end as usize]);
        u32::try_from(self.data.len()).expect("a batch holds less than 4 GiB of bytes");
        self.offsets.extend(view.offsets[1..].iter().map(|offset| start + (offset - first)));
    }

    /// Appends one value that a block claims to hold, unless the buffer passes [`DECODED_BYTES_MAX`] by it.
    #[inline]
    pub(crate) fn push_decoded(&mut self, value: &[u8], place: &'static str) -> Result<()> {
        if self.data.len() + value.len() > DECODED_BYTES_MAX {
            let what = format!("{} bytes decoded at once pass the limit of 1 GiB", self.data.len() + value.len());
            return Err(Error::damaged(place, what));
        }
        self.push(value);
        Ok(())
    }

    /// The same, borrowed.
    pub fn view(&self) -> BytesView<'_> {
        BytesView { offsets: &self.offsets, data: &self.data }
    }
}

impl<'a> FromIterator<&'a [u8]> for BytesBuf {
    fn from_iter<I: IntoIterator<Item = &'a [u8]>>(values: I) -> Self {
        let mut buf = BytesBuf::default();
        for value in values {
            buf.push(value);
        }
        buf
    }
}

macro_rules! values {
    ($($variant:ident => $native:ty),* $(,)?) => {
        /// A borrowed slice of values of one physical type.
        #[derive(Clone, Copy, Debug)]
        #[allow(missing_docs, reason = "each variant is the physical type of the same name")]
        pub enum Values<'a> {
            $($variant(&'a [$native]),)*
            Bytes(BytesView<'a>),
        }

        /// An owned, reusable buffer of values of one physical type.
        #[derive(Clone, Debug, PartialEq)]
        #[allow(missing_docs, reason = "each variant is the physical type of the same name")]
        pub enum ValuesBuf {
            $($variant(Vec<$native>),)*
            Bytes(BytesBuf),
        }

        impl<'a> Values<'a> {
            /// The type of these values.
            pub fn physical(&self) -> Physical {
                match self {
                    $(Values::$variant(_) => Physical::$variant,)*
                    Values::Bytes(_) => Physical::Bytes,
                }
            }

            /// How many.
            pub fn len(&self) -> usize {
                match self {
                    $(Values::$variant(values) => values.len(),)*
                    Values::Bytes(view) => view.len(),
                }
            }

            /// The values of `range`.
            pub fn slice(&self, range: std::ops::Range<usize>) -> Values<'a> {
                match self {
                    $(Values::$variant(values) => Values::$variant(&values[range]),)*
                    Values::Bytes(view) => Values::Bytes(view.slice(range)),
                }
            }

            /// A copy.
            pub fn to_buf(&self) -> ValuesBuf {
                let mut buf = ValuesBuf::new(self.physical());
                buf.extend(*self);
                buf
            }

            /// A copy of the values at these rows.
            pub(crate) fn at(&self, rows: impl Iterator<Item = usize>) -> ValuesBuf {
                match self {
                    $(Values::$variant(values) => ValuesBuf::$variant(rows.map(|row| values[row]).collect()),)*
                    Values::Bytes(view) => ValuesBuf::Bytes(rows.map(|row| view.get(row)).collect()),
                }
            }
        }

        impl ValuesBuf {
            /// An empty buffer for this type.
            pub fn new(physical: Physical) -> ValuesBuf {
                match physical {
                    $(Physical::$variant => ValuesBuf::$variant(Vec::new()),)*
                    Physical::Bytes => ValuesBuf::Bytes(BytesBuf::default()),
                }
            }

            /// The type of these values.
            pub fn physical(&self) -> Physical {
                self.as_values().physical()
            }

            /// How many.
            pub fn len(&self) -> usize {
                self.as_values().len()
            }

            /// Forgets the values, keeps the memory.
            pub fn clear(&mut self) {
                match self {
                    $(ValuesBuf::$variant(values) => values.clear(),)*
                    ValuesBuf::Bytes(buf) => buf.clear(),
                }
            }

            /// Forgets the values and makes the buffer one for `physical`, keeping memory where the type stays.
            pub fn reset(&mut self, physical: Physical) {
                if self.physical() == physical {
                    self.clear();
                } else {
                    *self = ValuesBuf::new(physical);
                }
            }

            /// The same, borrowed.
            pub fn as_values(&self) -> Values<'_> {
                match self {
                    $(ValuesBuf::$variant(values) => Values::$variant(values),)*
                    ValuesBuf::Bytes(buf) => Values::Bytes(buf.view()),
                }
            }

            /// Appends a copy of `values`.
            ///
            /// # Panics
            /// When the physical types differ.
            pub fn extend(&mut self, values: Values<'_>) {
                match (self, values) {
                    $((ValuesBuf::$variant(buf), Values::$variant(values)) => buf.extend_from_slice(values),)*
                    (ValuesBuf::Bytes(buf), Values::Bytes(view)) => buf.extend(view),
                    (buf, values) => panic!("{} values for a {} buffer", values.physical().name(), buf.physical().name()),
                }
            }

            /// Makes room for just so many more values, with so many bytes of text.
            pub fn reserve(&mut self, count: usize, text_bytes: usize) {
                match self {
                    $(ValuesBuf::$variant(values) => values.reserve_exact(count),)*
                    ValuesBuf::Bytes(buf) => {
                        buf.offsets.reserve_exact(count);
                        buf.data.reserve_exact(text_bytes);
                    }
                }
            }

            /// Appends the value that stands for "nothing here": zero or the empty string.
            pub fn push_default(&mut self, count: usize) {
                match self {
                    $(ValuesBuf::$variant(values) => values.resize(values.len() + count, Default::default()),)*
                    ValuesBuf::Bytes(buf) => {
                        let end = buf.data.len() as u32;
                        buf.offsets.resize(buf.offsets.len() + count, end);
                    }
                }
            }
        }
    };
}

values! {
    I8 => i8, I16 => i16, I32 => i32, I64 => i64, I128 => i128,
    U8 => u8, U16 => u16, U32 => u32, U64 => u64, F32 => f32, F64 => f64,
}

impl Values<'_> {
    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl ValuesBuf {
    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
