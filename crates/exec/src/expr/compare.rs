//! Comparisons: values in, bits out.
//!
//! Six operators are three kernels: `<>` is `=` turned round, `>` and `>=` are `<` and `<=` with the sides changed.

use super::logic::known_only;
use super::slot::{Each, Input, Lane, Same, Slot};
use sinter_codec::{Bitmap, BytesView, CompareOp, Values, at_memory};
use std::cmp::Ordering;

/// Compares values of one physical type.
pub(super) fn compare(op: CompareOp, left: Input<'_>, right: Input<'_>, rows: usize, out: &mut Slot) {
    out.set_strict(&[left, right], rows);
    out.truth.reset(rows, false);
    if out.all_null() {
        return;
    }
    let (left, right, kernel, invert) = match op {
        CompareOp::Equal => (left, right, Kernel::Equal, false),
        CompareOp::NotEqual => (left, right, Kernel::Equal, true),
        CompareOp::Less => (left, right, Kernel::Less, false),
        CompareOp::LessOrEqual => (left, right, Kernel::LessOrEqual, false),
        CompareOp::Greater => (right, left, Kernel::Less, false),
        CompareOp::GreaterOrEqual => (right, left, Kernel::LessOrEqual, false),
    };
    macro_rules! numbers {
        ($left:expr, $right:expr) => {
            kernel.run_numbers($left, left.constant, $right, right.constant, &mut out.truth)
        };
    }
    macro_rules! floats {
        ($left:expr, $right:expr) => {
            match (left.constant, right.constant) {
                (false, false) => kernel.run::<i64>(&Keys($left), &Keys($right), &mut out.truth),
                (false, true) => kernel.run::<i64>(&Keys($left), &Same(float_key($right[0].into())), &mut out.truth),
                (true, false) => kernel.run::<i64>(&Same(float_key($left[0].into())), &Keys($right), &mut out.truth),
                (true, true) => {
                    kernel.run::<i64>(
                        &Same(float_key($left[0].into())),
                        &Same(float_key($right[0].into())),
                        &mut out.truth,
                    );
                }
            }
        };
    }
    match (left.values, right.values) {
        (Values::I8(left), Values::I8(right)) => numbers!(left, right),
        (Values::I16(left), Values::I16(right)) => numbers!(left, right),
        (Values::I32(left), Values::I32(right)) => numbers!(left, right),
        (Values::I64(left), Values::I64(right)) => numbers!(left, right),
        (Values::I128(left), Values::I128(right)) => numbers!(left, right),
        (Values::U8(left), Values::U8(right)) => numbers!(left, right),
        (Values::U16(left), Values::U16(right)) => numbers!(left, right),
        (Values::U32(left), Values::U32(right)) => numbers!(left, right),
        (Values::U64(left), Values::U64(right)) => numbers!(left, right),
        (Values::F32(left), Values::F32(right)) => floats!(left, right),
        (Values::F64(left), Values::F64(right)) => floats!(left, right),
        (Values::Bytes(l), Values::Bytes(r)) => match (left.constant, right.constant) {
            (false, false) => kernel.run(&Strings(l), &Strings(r), &mut out.truth),
            (false, true) => kernel.run(&Strings(l), &Same(at_memory(r.get(0))), &mut out.truth),
            (true, false) => kernel.run(&Same(at_memory(l.get(0))), &Strings(r), &mut out.truth),
            (true, true) => kernel.run(&Same(at_memory(l.get(0))), &Same(at_memory(r.get(0))), &mut out.truth),
        },
        _ => debug_assert!(false, "sides of a comparison have one physical type"),
    }
    if invert {
        out.truth.invert();
    }
    known_only(out);
}

/// Compares decimals of different scales exactly, where 128 bits cannot hold them at one scale.
pub(super) fn compare_scaled(
    op: CompareOp,
    (left, left_scale): (Input<'_>, i8),
    (right, right_scale): (Input<'_>, i8),
    rows: usize,
    out: &mut Slot,
) {
    out.set_strict(&[left, right], rows);
    out.truth.reset(rows, false);
    let (Values::I128(l), Values::I128(r)) = (left.values, right.values) else { return };
    if out.all_null() {
        return;
    }
    for row in 0..rows {
        let (l, r) = (l[if left.constant { 0 } else { row }], r[if right.constant { 0 } else { row }]);
        if holds(op, order_scaled(l, left_scale, r, right_scale)) {
            out.truth.set(row, true);
        }
    }
    known_only(out);
}

/// The order of `left * 10^-left_scale` and `right * 10^-right_scale`.
pub(crate) fn order_scaled(left: i128, left_scale: i8, right: i128, right_scale: i8) -> Ordering {
    if left_scale < right_scale {
        return order_scaled(right, right_scale, left, left_scale).reverse();
    }
    let up = 10i128.checked_pow((i32::from(left_scale) - i32::from(right_scale)) as u32);
    match up.map(|up| (right.checked_mul(up), up)) {
        Some((Some(right), _)) => left.cmp(&right),
        // The right side is beyond all 128-bit numbers at the left one's scale.
        _ => 0.cmp(&right),
    }
}

/// True when two values in this order pass the operator.
pub(crate) fn holds(op: CompareOp, order: Ordering) -> bool {
    match op {
        CompareOp::Equal => order.is_eq(),
        CompareOp::NotEqual => order.is_ne(),
        CompareOp::Less => order.is_lt(),
        CompareOp::LessOrEqual => order.is_le(),
        CompareOp::Greater => order.is_gt(),
        CompareOp::GreaterOrEqual => order.is_ge(),
    }
}

/// A number that orders as floats do in PostgreSQL: `-0.0 = 0.0`, NaN equals itself and is the greatest.
#[inline(always)]
pub(crate) fn float_key(value: f64) -> i64 {
    // Adding zero turns -0.0 into 0.0.
    let bits = (value + 0.0).to_bits() as i64;
    let key = bits ^ ((bits >> 63) as u64 >> 1) as i64;
    if value.is_nan() { i64::MAX } else { key }
}

/// A float that has this [`float_key`].
pub(crate) fn float_of_key(key: i64) -> f64 {
    f64::from_bits((key ^ ((key >> 63) as u64 >> 1) as i64) as u64)
}

#[derive(Clone, Copy)]
enum Kernel {
    Equal,
    Less,
    LessOrEqual,
}

impl Kernel {
    fn run_numbers<T: Copy + PartialOrd>(
        self,
        left: &[T],
        left_constant: bool,
        right: &[T],
        right_constant: bool,
        out: &mut Bitmap,
    ) {
        match (left_constant, right_constant) {
            (false, false) => self.run::<T>(&Each(left), &Each(right), out),
            (false, true) => self.run::<T>(&Each(left), &Same(right[0]), out),
            (true, false) => self.run::<T>(&Same(left[0]), &Each(right), out),
            (true, true) => self.run::<T>(&Same(left[0]), &Same(right[0]), out),
        }
    }

    fn run<T: PartialOrd>(self, left: &impl Lane<T>, right: &impl Lane<T>, out: &mut Bitmap) {
        match self {
            Kernel::Equal => fill(out, |row| left.at(row) == right.at(row)),
            Kernel::Less => fill(out, |row| left.at(row) < right.at(row)),
            Kernel::LessOrEqual => fill(out, |row| left.at(row) <= right.at(row)),
        }
    }
}

/// Writes every bit. Tests go into bytes first, which the compiler vectorises; eight bytes of 0 and 1 become eight bits
/// by one multiplication.
#[inline(always)]
pub(super) fn fill(out: &mut Bitmap, mut test: impl FnMut(usize) -> bool) {
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let rows = out.len();
    for (index, word) in out.words_mut().iter_mut().enumerate() {
        let start = index * 64;
        let mut passed = [0u8; 64];
        for (offset, passed) in passed[..64.min(rows - start)].iter_mut().enumerate() {
            *passed = u8::from(test(start + offset));
        }
        let (eights, _) = passed.as_chunks::<8>();
        *word = eights.iter().enumerate().fold(0, |word, (place, eight)| {
            word | (u64::from_le_bytes(*eight).wrapping_mul(GATHER) >> 56) << (8 * place)
        });
    }
}

/// Floats as numbers that order like them.
struct Keys<'a, S>(&'a [S]);

impl<S: Copy + Into<f64>> Lane<i64> for Keys<'_, S> {
    #[inline(always)]
    fn at(&self, row: usize) -> i64 {
        float_key(self.0[row].into())
    }
}

/// Byte strings.
pub(super) struct Strings<'a>(pub(super) BytesView<'a>);

impl<'a> Lane<&'a [u8]> for Strings<'a> {
    #[inline(always)]
    fn at(&self, row: usize) -> &'a [u8] {
        self.0.get(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_order_as_in_postgresql() {
        let ascending = [f64::NEG_INFINITY, -1.5, -f64::MIN_POSITIVE, 0.0, 1e-300, 2.5, f64::INFINITY, f64::NAN];
        for pair in ascending.windows(2) {
            assert!(float_key(pair[0]) < float_key(pair[1]), "{pair:?}");
        }
        assert_eq!(float_key(-0.0), float_key(0.0));
        assert_eq!(float_key(-f64::NAN), float_key(f64::NAN));
    }

    #[test]
    fn scales_do_not_matter_to_decimals() {
        assert_eq!(order_scaled(150, 2, 15, 1), Ordering::Equal);
        assert_eq!(order_scaled(i128::MAX, 38, 1, -38), Ordering::Less);
        assert_eq!(order_scaled(-1, -38, i128::MIN, 38), Ordering::Less);
    }
}
