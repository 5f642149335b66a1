//! Adaptive lossless floats: decimals that were stored as binary floats, turned back into integers.
//!
//! Most floats in tables were decimals once: prices, temperatures, coordinates. For such a vector there is an exponent
//! `e` so that `v = n / 10^e` holds bit by bit with small integers `n`. The integers go to the integer schemes; values
//! for which it does not hold (NaN, infinities, -0.0, results of arithmetic) are exceptions, kept whole.
//!
//! ALP (Afroozeh, Kuffó, Boncz: Adaptive Lossless floating-Point Compression, SIGMOD 2023), with two changes.
//! We divide by a power of ten where ALP multiplies by two rounded ones: a division rounds once, so every decimal whose
//! digits fit 2^51 comes back exactly; one exponent replaces the pair of exponent and factor, and there are fewer
//! exceptions. (Where multiplications are fused with additions, two of them give what the division gives: see
//! [`crate::scaled`].) And singles are computed as doubles, for the same reason.
//!
//! Doubles with all their digits (measurements that went through arithmetic) have no such exponent; the scheme `alp_rd`
//! serves those.

mod exponent;

pub(crate) use exponent::{Exponent, choose};

#[cfg(test)]
mod tests;
