//! Whether keys never decrease.

use super::key::Key;
use crate::isa::each_isa;

each_isa! {
    /// Whether none of these is less than the one before.
    pub(super) fn never_decrease<K: Key>(keys: &[K]) -> bool = never_decrease_body;
}

/// Looks at all of them, whatever it finds: so the compiler compares many at once.
#[inline(always)]
fn never_decrease_body<K: Key>(keys: &[K]) -> bool {
    let next = keys.get(1..).unwrap_or_default();
    keys.iter().zip(next).fold(true, |ascend, (key, next)| ascend & (key <= next))
}
