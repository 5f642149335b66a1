//! Loops over the rows of a vector whose work is a small function of the caller's: it is compiled into the loop, and with it
//! for every set.
//!
//! Functions should be a few operations that do not branch, and own what they use (`move`): the compiler makes vectors of
//! them only then.

use crate::isa::each_isa;

/// Makes `out` what `compute` gives for each value.
#[inline]
pub fn map_rows<S: Copy, T: Copy + Default, F: Fn(S) -> T>(values: &[S], out: &mut Vec<T>, compute: F) {
    out.resize(values.len(), T::default());
    map(values, out, &compute);
}

/// Makes `out` what `compute` gives for each pair of values; there are as many on both sides.
#[inline]
pub fn zip_rows<L: Copy, R: Copy, T: Copy + Default, F: Fn(L, R) -> T>(
    left: &[L],
    right: &[R],
    out: &mut Vec<T>,
    compute: F,
) {
    out.resize(left.len(), T::default());
    zip(left, right, out, &compute);
}

/// Makes each of `rows` what `compute` gives for it and the value beside it.
#[inline]
pub fn update_rows<S: Copy, T: Copy, F: Fn(T, S) -> T>(rows: &mut [T], values: &[S], compute: F) {
    update(rows, values, &compute);
}

each_isa! {
    fn map<S: Copy, T: Copy, F: Fn(S) -> T>(values: &[S], out: &mut [T], compute: &F) = map_body;

    fn zip<L: Copy, R: Copy, T: Copy, F: Fn(L, R) -> T>(left: &[L], right: &[R], out: &mut [T], compute: &F) = zip_body;

    fn update<S: Copy, T: Copy, F: Fn(T, S) -> T>(rows: &mut [T], values: &[S], compute: &F) = update_body;
}

#[inline(always)]
fn map_body<S: Copy, T: Copy, F: Fn(S) -> T>(values: &[S], out: &mut [T], compute: &F) {
    for (out, &value) in out.iter_mut().zip(values) {
        *out = compute(value);
    }
}

#[inline(always)]
fn zip_body<L: Copy, R: Copy, T: Copy, F: Fn(L, R) -> T>(left: &[L], right: &[R], out: &mut [T], compute: &F) {
    for ((out, &left), &right) in out.iter_mut().zip(left).zip(right) {
        *out = compute(left, right);
    }
}

#[inline(always)]
fn update_body<S: Copy, T: Copy, F: Fn(T, S) -> T>(rows: &mut [T], values: &[S], compute: &F) {
    for (row, &value) in rows.iter_mut().zip(values) {
        *row = compute(*row, value);
    }
}
