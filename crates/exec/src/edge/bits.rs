//! Validity: Arrow's null buffers and our bitmaps hold the same bits.

use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use sinter_codec::Bitmap;

/// Arrow's bits, from wherever they start; `None` when nothing is NULL.
pub(crate) fn from_null_buffer(nulls: Option<&NullBuffer>) -> Option<Bitmap> {
    let nulls = nulls.filter(|nulls| nulls.null_count() > 0)?;
    Some(from_boolean_buffer(nulls.inner()))
}

/// One bit per element.
pub(crate) fn from_boolean_buffer(bits: &BooleanBuffer) -> Bitmap {
    Bitmap::from_words(bits.bit_chunks().iter_padded().collect(), bits.len())
}

/// Our bits for Arrow.
pub(crate) fn to_null_buffer(validity: &Bitmap) -> NullBuffer {
    NullBuffer::new(to_boolean_buffer(validity))
}

/// One element per bit.
pub(crate) fn to_boolean_buffer(bits: &Bitmap) -> BooleanBuffer {
    BooleanBuffer::new(Buffer::from_vec(bits.words().to_vec()), 0, bits.len())
}
