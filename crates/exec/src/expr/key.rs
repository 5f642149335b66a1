//! Whether a value is a key of a join's build side.

use super::compare::fill;
use super::logic::known_only;
use super::slot::{Input, Slot};
use crate::join::{KeyFilter, Keys};
use sinter_codec::Values;

/// True where the value is a key, or may be one; unknown where it is NULL.
pub(super) fn is_key(input: Input<'_>, filter: &KeyFilter, rows: usize, out: &mut Slot) {
    out.set_strict(&[input], rows);
    out.truth.reset(rows, false);
    if !out.all_null() {
        match filter.keys() {
            Keys::Bitmap(keys) => each(
                input,
                out,
                |value| keys.has(value),
                |value| i64::try_from(value).is_ok_and(|value| keys.has(value)),
                |_| false,
            ),
            Keys::Bloom(keys) => each(
                input,
                out,
                |value| keys.may_have(value),
                |value| keys.may_have(value),
                |value| keys.may_have(value),
            ),
        }
    }
    known_only(out);
}

/// Asks of each row: of integers up to 64 bits, of those of 128, or of bytes. Floats are no keys of a filter.
fn each(
    input: Input<'_>,
    out: &mut Slot,
    is_key: impl Fn(i64) -> bool,
    is_wide_key: impl Fn(i128) -> bool,
    is_bytes_key: impl Fn(&[u8]) -> bool,
) {
    let at = |row: usize| if input.constant { 0 } else { row };
    macro_rules! integers {
        ($values:expr) => {
            fill(&mut out.truth, |row| is_key($values[at(row)].into()))
        };
    }
    match input.values {
        Values::I8(values) => integers!(values),
        Values::I16(values) => integers!(values),
        Values::I32(values) => integers!(values),
        Values::I64(values) => integers!(values),
        Values::U8(values) => integers!(values),
        Values::U16(values) => integers!(values),
        Values::U32(values) => integers!(values),
        Values::U64(values) => fill(&mut out.truth, |row| is_key(values[at(row)] as i64)),
        Values::I128(values) => fill(&mut out.truth, |row| is_wide_key(values[at(row)])),
        Values::Bytes(view) => fill(&mut out.truth, |row| is_bytes_key(view.get(at(row)))),
        Values::F32(_) | Values::F64(_) => out.truth.reset(out.truth.len(), true),
    }
}
