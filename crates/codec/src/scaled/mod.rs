//! Floats as integers under a scale: what `alp`, `fixed_point` and `quantise` have in common.
//!
//! A [`Scale`] says which float an integer stands for: `n / 10^e`, or `n` steps of any width. Both ways are kernels over a
//! vector; those that find integers check each by the way back, so that whatever they take comes back bit by bit, and the
//! rest is told apart. Floats are computed as doubles, singles too: only the result is rounded to them.
//!
//! The way back is monotone, so a range of floats is a range of integers, and filters can be answered on those
//! ([`Scale::on_integers`]).

mod arithmetic;
mod condition;
mod float;
mod kernels;
mod point;

pub(crate) use arithmetic::Scale;
pub(crate) use float::Float;
pub(crate) use point::Point;

#[cfg(test)]
mod tests;
