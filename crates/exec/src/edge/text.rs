//! Byte strings as Arrow's view arrays: short values inside their views, long ones in one shared buffer.

use super::{foreign, to_null_buffer};
use crate::Result;
use arrow::array::{ArrayRef, BinaryViewArray, StringViewArray, make_view};
use arrow::buffer::{Buffer, ScalarBuffer};
use sinter_codec::{Bitmap, BytesView};
use std::sync::Arc;

/// Values up to this length need no buffer.
const INLINE_BYTES: u32 = 12;

/// Text. Fails where the bytes are not UTF-8, which only a damaged file or a foolish caller brings about.
pub(super) fn string_views(view: BytesView<'_>, validity: Option<&Bitmap>) -> Result<ArrayRef> {
    let (views, buffers) = views(view, validity);
    let array = StringViewArray::try_new(views, buffers, validity.map(to_null_buffer)).map_err(foreign)?;
    Ok(Arc::new(array))
}

/// Any bytes.
pub(super) fn binary_views(view: BytesView<'_>, validity: Option<&Bitmap>) -> Result<ArrayRef> {
    let (views, buffers) = views(view, validity);
    let array = BinaryViewArray::try_new(views, buffers, validity.map(to_null_buffer)).map_err(foreign)?;
    Ok(Arc::new(array))
}

/// What stands at a NULL becomes the empty string: it need not be text.
fn views(view: BytesView<'_>, validity: Option<&Bitmap>) -> (ScalarBuffer<u128>, Vec<Buffer>) {
    let first = view.offsets[0];
    let last = view.offsets[view.len()];
    let mut views = Vec::with_capacity(view.len());
    let mut long = false;
    for row in 0..view.len() {
        if validity.is_some_and(|validity| !validity.get(row)) {
            views.push(0);
            continue;
        }
        let (start, end) = (view.offsets[row], view.offsets[row + 1]);
        long |= end - start > INLINE_BYTES;
        views.push(make_view(&view.data[start as usize..end as usize], 0, start - first));
    }
    let buffers =
        if long { vec![Buffer::from_vec(view.data[first as usize..last as usize].to_vec())] } else { Vec::new() };
    (views.into(), buffers)
}
