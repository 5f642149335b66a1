//! Kernel: how many keys are less than another. In sorted keys, that is where the other belongs.

use super::key::{Key, Word};
use crate::isa::each_isa;

/// Keys that are compared before looking whether it was enough.
const STRIDE: usize = 64;

each_isa! {
    /// How many of the keys, which never decrease, are less than `key`. Compares whole strides side by side instead of
    /// searching: what a binary search waits for, one comparison after the other, takes longer for so few.
    pub(super) fn count_less<K: Key>(keys: &[K], key: K) -> usize = body;
}

#[inline(always)]
fn body<K: Word>(keys: &[K], key: K) -> usize {
    let (strides, rest) = keys.as_chunks::<STRIDE>();
    let before = strides.iter().take_while(|stride| stride[STRIDE - 1] < key).count();
    let less = |keys: &[K]| keys.iter().map(|one| usize::from(*one < key)).sum::<usize>();
    let within = match strides.get(before) {
        Some(stride) => less_in_stride(stride, key),
        None => less(rest),
    };
    before * STRIDE + within
}

#[inline(always)]
fn less_in_stride<K: Word>(keys: &[K; STRIDE], key: K) -> usize {
    let mut less = [0u8; STRIDE];
    for (less, one) in less.iter_mut().zip(keys) {
        *less = u8::from(*one < key);
    }
    less.iter().map(|less| usize::from(*less)).sum()
}
