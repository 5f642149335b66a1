//! What stands at a NULL is not kept, so it may be whatever compresses best.
//!
//! Numbers repeat the last present value: no new value, no wider range, longer runs. Bytes become empty, which costs
//! nothing in any scheme, unless all present values are equal: then the block is constant.

use crate::fixed::Fixed;
use crate::{Bitmap, BytesBuf, BytesView, Values, ValuesBuf};

/// The values with every NULL replaced.
pub(crate) fn fill_nulls(values: Values<'_>, validity: &Bitmap) -> ValuesBuf {
    let Some(first) = validity.ones().next() else {
        let mut none = ValuesBuf::new(values.physical());
        none.push_default(values.len());
        return none;
    };
    macro_rules! per_type {
        ($($variant:ident),*) => {
            match values {
                $(Values::$variant(values) => ValuesBuf::$variant(repeat_last(values, validity, values[first])),)*
                Values::Bytes(view) => ValuesBuf::Bytes(empty_at_nulls(view, validity, view.get(first))),
            }
        };
    }
    per_type!(I8, I16, I32, I64, I128, U8, U16, U32, U64, F32, F64)
}

fn repeat_last<T: Fixed>(values: &[T], validity: &Bitmap, first: T) -> Vec<T> {
    let mut last = first;
    let filled = values.iter().enumerate().map(|(index, &value)| {
        last = if validity.get(index) { value } else { last };
        last
    });
    filled.collect()
}

fn empty_at_nulls(view: BytesView<'_>, validity: &Bitmap, first: &[u8]) -> BytesBuf {
    let constant = validity.ones().all(|index| view.get(index) == first);
    let filler = if constant { first } else { &[] };
    view.iter().enumerate().map(|(index, value)| if validity.get(index) { value } else { filler }).collect()
}
