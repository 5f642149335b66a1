//! What expressions mean, row by row, written to be obviously right rather than fast.

use arrow::array::*;
use sinter_codec::{CompareOp, Encoded, Scalar, Values};
use sinter_exec::{ArithmeticOp, Expr, LogicalType, TextFunction, edge};
use std::cmp::Ordering;

/// An array's values, one by one.
pub(crate) fn scalars(array: &ArrayRef, ty: &LogicalType) -> Vec<Scalar> {
    let vector = edge::from_arrow(array, ty).expect("our own types come back");
    let Encoded::Flat(values) = &vector.values else { panic!("arrow comes in flat") };
    let one = |row: usize| match values.as_values() {
        _ if vector.validity.as_ref().is_some_and(|validity| !validity.get(row)) => Scalar::Null,
        Values::I8(values) => Scalar::Int(values[row].into()),
        Values::I16(values) => Scalar::Int(values[row].into()),
        Values::I32(values) => Scalar::Int(values[row].into()),
        Values::I64(values) => Scalar::Int(values[row].into()),
        Values::I128(values) => Scalar::Int(values[row]),
        Values::U8(values) => Scalar::Int(values[row].into()),
        Values::U16(values) => Scalar::Int(values[row].into()),
        Values::U32(values) => Scalar::Int(values[row].into()),
        Values::U64(values) => Scalar::Int(values[row].into()),
        Values::F32(values) => Scalar::Float(values[row].into()),
        Values::F64(values) => Scalar::Float(values[row]),
        Values::Bytes(view) => Scalar::Bytes(view.get(row).to_vec()),
    };
    (0..array.len()).map(one).collect()
}

/// PostgreSQL's order of floats, byte order of text.
pub(crate) fn order(left: &Scalar, right: &Scalar) -> Ordering {
    match (left, right) {
        (Scalar::Int(left), Scalar::Int(right)) => left.cmp(right),
        (Scalar::Bytes(left), Scalar::Bytes(right)) => left.cmp(right),
        (Scalar::Float(left), Scalar::Float(right)) => match (left.is_nan(), right.is_nan()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => left.partial_cmp(right).expect("no NaN"),
        },
        other => panic!("no order between {other:?}"),
    }
}

/// Equal, with NaN equal to itself and zeros told apart by nothing.
pub(crate) fn same(left: &Scalar, right: &Scalar) -> bool {
    match (left, right) {
        (Scalar::Null, Scalar::Null) => true,
        (Scalar::Null, _) | (_, Scalar::Null) => false,
        (left, right) => order(left, right).is_eq(),
    }
}

fn truth(value: Option<bool>) -> Scalar {
    value.map_or(Scalar::Null, |value| Scalar::Int(value.into()))
}

/// AND where false is decisive, OR where true is.
fn joined(left: Option<bool>, right: Option<bool>, decisive: bool) -> Option<bool> {
    match (left, right) {
        (Some(left), _) if left == decisive => Some(decisive),
        (_, Some(right)) if right == decisive => Some(decisive),
        (None, _) | (_, None) => None,
        _ => Some(!decisive),
    }
}

fn known(value: &Scalar) -> Option<bool> {
    match value {
        Scalar::Null => None,
        Scalar::Int(value) => Some(*value != 0),
        other => panic!("{other:?} is no truth value"),
    }
}

fn scale_of(ty: &LogicalType) -> i32 {
    if let LogicalType::Decimal { scale, .. } = ty { (*scale).into() } else { 0 }
}

fn range_of(ty: &LogicalType) -> (i128, i128) {
    match ty {
        LogicalType::Int8 => (i8::MIN.into(), i8::MAX.into()),
        LogicalType::Int16 => (i16::MIN.into(), i16::MAX.into()),
        LogicalType::Int32 => (i32::MIN.into(), i32::MAX.into()),
        LogicalType::Int64 => (i64::MIN.into(), i64::MAX.into()),
        LogicalType::UInt8 => (0, u8::MAX.into()),
        LogicalType::UInt16 => (0, u16::MAX.into()),
        LogicalType::UInt32 => (0, u32::MAX.into()),
        LogicalType::UInt64 => (0, u64::MAX.into()),
        LogicalType::Decimal { precision, .. } => {
            (1 - 10i128.pow((*precision).into()), 10i128.pow((*precision).into()) - 1)
        }
        _ => (i128::MIN, i128::MAX),
    }
}

/// `Err` where the engine must fail.
pub(crate) type Outcome = Result<Scalar, String>;

fn fit(value: Option<i128>, ty: &LogicalType) -> Outcome {
    let (low, high) = range_of(ty);
    value.filter(|value| (low..=high).contains(value)).map(Scalar::Int).ok_or_else(|| format!("out of range for {ty}"))
}

fn power(exponent: i32) -> Option<i128> {
    10i128.checked_pow(exponent.try_into().ok()?)
}

fn rounded(value: i128, divisor: i128) -> i128 {
    let away = if value < 0 { -divisor / 2 } else { divisor / 2 };
    (value + away) / divisor
}

/// The value of an expression for a row.
pub(crate) fn evaluate(expr: &Expr, row: &[Scalar], types: &[LogicalType]) -> Outcome {
    let eval = |expr: &Expr| evaluate(expr, row, types);
    let type_of = |expr: &Expr| super::model::type_of(expr, types);
    Ok(match expr {
        Expr::Column(column) => row[*column].clone(),
        Expr::IsKey { .. } => unreachable!("only joins bring it"),
        Expr::Literal(scalar, _) => scalar.clone(),
        Expr::Compare(op, left, right) => {
            let (l, r) = (eval(left)?, eval(right)?);
            if l.is_null() || r.is_null() {
                return Ok(Scalar::Null);
            }
            let (ls, rs) = (scale_of(&type_of(left)), scale_of(&type_of(right)));
            let order = match (&l, &r) {
                (Scalar::Int(l), Scalar::Int(r)) if ls != rs => {
                    let scale = ls.max(rs);
                    let (l, r) = (l.checked_mul(power(scale - ls).unwrap()), r.checked_mul(power(scale - rs).unwrap()));
                    l.expect("test data is not that long").cmp(&r.expect("test data is not that long"))
                }
                _ => order(&l, &r),
            };
            truth(Some(match op {
                CompareOp::Equal => order.is_eq(),
                CompareOp::NotEqual => order.is_ne(),
                CompareOp::Less => order.is_lt(),
                CompareOp::LessOrEqual => order.is_le(),
                CompareOp::Greater => order.is_gt(),
                CompareOp::GreaterOrEqual => order.is_ge(),
            }))
        }
        Expr::Arithmetic { op, left, right, ty } => match (eval(left)?, eval(right)?) {
            (Scalar::Null, _) | (_, Scalar::Null) => Scalar::Null,
            (Scalar::Float(l), Scalar::Float(r)) => {
                let value = match op {
                    ArithmeticOp::Add => l + r,
                    ArithmeticOp::Subtract => l - r,
                    ArithmeticOp::Multiply => l * r,
                    ArithmeticOp::Divide => l / r,
                    ArithmeticOp::Modulo => l % r,
                };
                Scalar::Float(if *ty == LogicalType::Float32 { f64::from(value as f32) } else { value })
            }
            (Scalar::Int(l), Scalar::Int(r)) => {
                let (ls, rs, scale) = (scale_of(&type_of(left)), scale_of(&type_of(right)), scale_of(ty));
                let common = ls.max(rs);
                if matches!(op, ArithmeticOp::Divide | ArithmeticOp::Modulo) && r == 0 {
                    return Err("division by zero".into());
                }
                let up = |value: i128, by: i32| value.checked_mul(power(by).ok_or("power")?).ok_or("too long");
                let (value, natural) = match op {
                    ArithmeticOp::Add => (up(l, common - ls)?.checked_add(up(r, common - rs)?), common),
                    ArithmeticOp::Subtract => (up(l, common - ls)?.checked_sub(up(r, common - rs)?), common),
                    ArithmeticOp::Multiply => (l.checked_mul(r), ls + rs),
                    ArithmeticOp::Divide => {
                        let by = scale - ls + rs;
                        (Some(up(l, by.max(0))? / up(r, (-by).max(0))?), scale)
                    }
                    ArithmeticOp::Modulo => (Some(up(l, common - ls)? % up(r, common - rs)?), common),
                };
                let value = value.ok_or("too long")?;
                let value = if scale >= natural {
                    up(value, scale - natural)?
                } else {
                    rounded(value, power(natural - scale).unwrap())
                };
                fit(Some(value), ty)?
            }
            other => panic!("arithmetic of {other:?}"),
        },
        Expr::And(_) | Expr::Or(_) => {
            let decisive = matches!(expr, Expr::Or(_));
            // A part that may fail is asked where none that cannot, and none before it, has decided.
            let (failing, sure): (Vec<&Expr>, Vec<&Expr>) =
                expr.children().into_iter().partition(|part| part.may_fail(types));
            let mut result = Some(!decisive);
            for part in sure {
                result = joined(result, known(&eval(part)?), decisive);
            }
            for part in failing {
                if result == Some(decisive) {
                    break;
                }
                result = joined(result, known(&eval(part)?), decisive);
            }
            truth(result)
        }
        Expr::Not(inner) => truth(known(&eval(inner)?).map(|value| !value)),
        Expr::IsNull(inner) => truth(Some(eval(inner)?.is_null())),
        Expr::IsNotNull(inner) => truth(Some(!eval(inner)?.is_null())),
        Expr::InList { expr, list, has_null, negated } => {
            let value = eval(expr)?;
            if value.is_null() {
                return Ok(Scalar::Null);
            }
            let found = list.iter().any(|entry| same(entry, &value));
            truth(if found {
                Some(!negated)
            } else if *has_null {
                None
            } else {
                Some(*negated)
            })
        }
        Expr::Like { expr, pattern, negated, case_insensitive } => match eval(expr)? {
            Scalar::Null => Scalar::Null,
            Scalar::Bytes(text) => {
                let text = String::from_utf8(text).expect("text");
                let fold = |text: &str| if *case_insensitive { text.to_lowercase() } else { text.to_owned() };
                let (pattern, text): (Vec<char>, Vec<char>) =
                    (fold(pattern).chars().collect(), fold(&text).chars().collect());
                truth(Some(like(&pattern, &text) != *negated))
            }
            other => panic!("{other:?} LIKE"),
        },
        Expr::Text { function, expr } => match (eval(expr)?, function) {
            (Scalar::Null, _) => Scalar::Null,
            (Scalar::Bytes(text), function) => {
                let text = String::from_utf8(text).expect("text");
                match *function {
                    TextFunction::Length => Scalar::Int(text.chars().count() as i128),
                    TextFunction::Substring { skipped, taken } => {
                        let part: String = text.chars().skip(skipped as usize).take(taken as usize).collect();
                        Scalar::Bytes(part.into())
                    }
                }
            }
            other => panic!("{other:?} of something other than text"),
        },
        Expr::Cast { expr, ty } => {
            let from = type_of(expr);
            match (eval(expr)?, ty) {
                (Scalar::Null, _) => Scalar::Null,
                (Scalar::Int(value), LogicalType::Float32) if scale_of(&from) == 0 => {
                    Scalar::Float(f64::from(value as f32))
                }
                (Scalar::Int(value), LogicalType::Float32) => {
                    Scalar::Float((value as f64 / 10f64.powi(scale_of(&from))) as f32 as f64)
                }
                (Scalar::Int(value), LogicalType::Float64) => Scalar::Float(value as f64 / 10f64.powi(scale_of(&from))),
                (Scalar::Float(value), LogicalType::Float32) => Scalar::Float(value as f32 as f64),
                (Scalar::Float(value), LogicalType::Float64) => Scalar::Float(value),
                (Scalar::Int(value), ty) => {
                    let by = scale_of(ty) - scale_of(&from);
                    let cut = !matches!(ty, LogicalType::Decimal { .. });
                    let value = match power(by.abs()) {
                        Some(power) if by >= 0 => value.checked_mul(power),
                        Some(power) if cut => Some(value / power),
                        Some(power) => Some(rounded(value, power)),
                        None => panic!("scales in tests are moderate"),
                    };
                    fit(value, ty)?
                }
                (Scalar::Float(value), ty) => {
                    let decimal = matches!(ty, LogicalType::Decimal { .. });
                    let value = if decimal { (value * 10f64.powi(scale_of(ty))).round() } else { value.trunc() };
                    fit((value.abs() < 1e38).then_some(value as i128), ty)?
                }
                other => panic!("cast of {other:?}"),
            }
        }
        Expr::Case { branches, otherwise, .. } => {
            for (condition, result) in branches {
                if known(&eval(condition)?) == Some(true) {
                    return eval(result);
                }
            }
            otherwise.as_ref().map_or(Ok(Scalar::Null), |otherwise| eval(otherwise))?
        }
        Expr::Foreign { function, arguments, ty } => {
            let arrays: Vec<ArrayRef> = arguments
                .iter()
                .map(|argument| Ok(edge::scalar_to_arrow(&eval(argument)?, &type_of(argument)).expect("an argument")))
                .collect::<Result<_, String>>()?;
            let result = function.evaluate(&arrays, 1).map_err(|error| error.to_string())?;
            scalars(&result, ty).remove(0)
        }
    })
}

fn like(pattern: &[char], text: &[char]) -> bool {
    match pattern {
        [] => text.is_empty(),
        ['%', rest @ ..] => (0..=text.len()).any(|skip| like(rest, &text[skip..])),
        ['\\', escaped, rest @ ..] => text.first() == Some(escaped) && like(rest, &text[1..]),
        ['_', rest @ ..] => !text.is_empty() && like(rest, &text[1..]),
        [char, rest @ ..] => text.first() == Some(char) && like(rest, &text[1..]),
    }
}

/// The type of an expression.
pub(crate) fn type_of(expr: &Expr, types: &[LogicalType]) -> LogicalType {
    match expr {
        Expr::Column(column) => types[*column].clone(),
        Expr::Literal(_, ty)
        | Expr::Arithmetic { ty, .. }
        | Expr::Cast { ty, .. }
        | Expr::Case { ty, .. }
        | Expr::Foreign { ty, .. } => ty.clone(),
        Expr::Text { function, .. } => function.ty(),
        _ => LogicalType::Boolean,
    }
}
