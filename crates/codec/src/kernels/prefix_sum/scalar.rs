//! One after the other.

use crate::fixed::Integer;

/// Adds to each step all before it, and `before`.
#[inline]
pub(super) fn prefix_sum<T: Integer>(before: T, steps: &mut [T]) {
    let mut value = before;
    for step in steps {
        value = value.add(*step);
        *step = value;
    }
}
