//! Keys for tests, made of numbers.

use crate::keys::TreeKey;

/// A key that a number stands for; different ones for different numbers.
pub(crate) trait TestKey: TreeKey {
    fn of(number: u64) -> <Self as ToOwned>::Owned;
}

impl TestKey for u32 {
    fn of(number: u64) -> u32 {
        number as u32
    }
}

impl TestKey for u64 {
    fn of(number: u64) -> u64 {
        number * 1_000_003
    }
}

impl TestKey for [u8] {
    /// Digits of different lengths behind beginnings that many share; some are the beginning of others.
    fn of(number: u64) -> Vec<u8> {
        let (group, within) = (number / 40, number % 40);
        let mut key = format!("{}{group:06}", "=".repeat(group as usize % 23)).into_bytes();
        key.extend(std::iter::repeat_n(b'x', within as usize));
        key
    }
}
