//! Which expressions may fail: overflow, division by zero, a cast out of range, whatever a foreign function says.

use super::{ArithmeticOp, Expr, digits};
use crate::LogicalType;

impl Expr {
    /// Whether evaluating it over columns of these types may fail; some that cannot are taken for such.
    pub fn may_fail(&self, columns: &[LogicalType]) -> bool {
        let mut open = vec![self];
        while let Some(expr) = open.pop() {
            if expr.may_fail_itself(columns) {
                return true;
            }
            open.extend(expr.children());
        }
        false
    }

    /// The same where its operands are there already.
    pub(super) fn may_fail_itself(&self, columns: &[LogicalType]) -> bool {
        match self {
            Expr::Arithmetic { ty, .. } if ty.is_float() => false,
            Expr::Arithmetic { op, left, right, ty } => {
                !has_room(*op, &left.type_over(columns), &right.type_over(columns), ty)
            }
            Expr::Cast { expr, ty } => !always_fits(&expr.type_over(columns), ty),
            Expr::Foreign { .. } => true,
            _ => false,
        }
    }
}

/// Whether decimals have room for every result of values of these types.
fn has_room(op: ArithmeticOp, left: &LogicalType, right: &LogicalType, ty: &LogicalType) -> bool {
    let LogicalType::Decimal { precision, scale } = *ty else { return false };
    let (Some((left, left_scale)), Some((right, right_scale))) = (digits(left), digits(right)) else { return false };
    let (left, right) = (whole(left, left_scale), whole(right, right_scale));
    let (needed, exact) = match op {
        ArithmeticOp::Add | ArithmeticOp::Subtract => (left.max(right) + 1, left_scale.max(right_scale).into()),
        ArithmeticOp::Multiply => (left + right, i16::from(left_scale) + i16::from(right_scale)),
        ArithmeticOp::Divide | ArithmeticOp::Modulo => return false,
    };
    exact == i16::from(scale) && needed <= whole(precision, scale)
}

/// The digits before the point.
fn whole(precision: u8, scale: i8) -> i16 {
    i16::from(precision) - i16::from(scale)
}

/// Whether every value of one type has a counterpart in another.
pub(crate) fn always_fits(from: &LogicalType, to: &LogicalType) -> bool {
    use LogicalType::{Decimal, Int8, Int16, Int32, Int64, UInt8, UInt16, UInt32, UInt64};
    if to.is_float() {
        return true;
    }
    let (Some((precision, scale)), Some((to_precision, to_scale))) = (digits(from), digits(to)) else { return false };
    let (needed, room) = (whole(precision, scale), whole(to_precision, to_scale));
    match to {
        Decimal { .. } => scale <= to_scale && needed <= room,
        // The last digit of an integer's type is not a full one.
        Int8 | Int16 | Int32 | Int64 => scale <= to_scale && needed < room,
        UInt16 | UInt32 | UInt64 => matches!(from, UInt8 | UInt16 | UInt32) && needed < room,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LogicalType::{Boolean, Decimal, Float32, Float64, Int16, Int32, Int64, UInt8, UInt32, UInt64, Utf8};

    const fn decimal(precision: u8, scale: i8) -> LogicalType {
        Decimal { precision, scale }
    }

    #[test]
    fn decimals_with_room_for_all_digits_cannot_fail() {
        use ArithmeticOp::{Add, Divide, Multiply, Subtract};
        let price = decimal(15, 2);
        assert!(has_room(Add, &price, &price, &decimal(16, 2)));
        assert!(has_room(Subtract, &decimal(20, 0), &price, &decimal(23, 2)));
        assert!(has_room(Multiply, &price, &decimal(23, 2), &decimal(38, 4)));
        assert!(!has_room(Add, &price, &price, &price));
        assert!(!has_room(Multiply, &price, &decimal(24, 2), &decimal(38, 4)));
        assert!(!has_room(Multiply, &price, &price, &decimal(38, 3)));
        assert!(!has_room(Divide, &price, &price, &decimal(38, 6)));
        assert!(!has_room(Add, &Int64, &Int64, &Int64));
    }

    #[test]
    fn only_casts_with_room_for_all_values_cannot_fail() {
        for (from, to) in [
            (Int32, Int64),
            (UInt8, Int16),
            (UInt32, Int64),
            (UInt64, Float32),
            (decimal(38, 10), Float64),
            (UInt64, decimal(38, 0)),
            (decimal(9, 0), Int32),
            (decimal(9, 2), decimal(12, 5)),
        ] {
            assert!(always_fits(&from, &to), "{from} to {to}");
        }
        for (from, to) in [
            (Int64, Int32),
            (UInt32, Int32),
            (Int16, UInt32),
            (Float64, Int64),
            (Boolean, Int64),
            (Utf8, Int64),
            (decimal(10, 0), Int32),
            (decimal(9, 2), Int64),
            (decimal(9, 2), decimal(11, 5)),
            (decimal(9, 2), decimal(38, 1)),
            (Int32, decimal(9, 0)),
        ] {
            assert!(!always_fits(&from, &to), "{from} to {to}");
        }
    }
}
