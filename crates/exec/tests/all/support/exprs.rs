//! Random expressions over a fixed table with a column of every kind.

use super::random::{self, Random};
use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use sinter_codec::{CompareOp, Scalar};
use sinter_exec::{ArithmeticOp, Expr, Foreign, LogicalType, Result, TextFunction};
use std::sync::Arc;

/// The table's columns.
pub(crate) fn types() -> Vec<LogicalType> {
    vec![
        LogicalType::Int32,
        LogicalType::Int64,
        LogicalType::Float64,
        LogicalType::Utf8,
        LogicalType::Utf8,
        LogicalType::Decimal { precision: 15, scale: 2 },
        LogicalType::Decimal { precision: 30, scale: 4 },
        LogicalType::Decimal { precision: 7, scale: 1 },
        LogicalType::Date,
        LogicalType::Boolean,
        LogicalType::UInt8,
        LogicalType::Float32,
    ]
}

/// Its values, column by column. Style 0 has no value with which arithmetic could overflow.
pub(crate) fn columns(random: &mut Random, rows: usize, style: usize, null_percent: usize) -> Vec<Vec<Scalar>> {
    let styled = |index: usize| if index == 4 { style.max(1) } else { style };
    let types = types();
    types.iter().enumerate().map(|(index, ty)| random::column(random, ty, rows, styled(index), null_percent)).collect()
}

pub(crate) fn int(value: i128, ty: LogicalType) -> Expr {
    Expr::Literal(Scalar::Int(value), ty)
}

pub(crate) fn boxed(expr: Expr) -> Box<Expr> {
    Box::new(expr)
}

const OPS: [CompareOp; 6] = [
    CompareOp::Equal,
    CompareOp::NotEqual,
    CompareOp::Less,
    CompareOp::LessOrEqual,
    CompareOp::Greater,
    CompareOp::GreaterOrEqual,
];

/// A column with a constant, as filters on the encoded form have it.
pub(crate) fn simple_condition(random: &mut Random) -> Expr {
    let types = types();
    let column = random.below(types.len());
    let ty = types[column].clone();
    let literal = |random: &mut Random| {
        let style = random.below(3);
        if random.chance(3) { Scalar::Null } else { random::value(random, &ty, style) }
    };
    match random.below(10) {
        0 => Expr::IsNull(boxed(Expr::Column(column))),
        1 => Expr::IsNotNull(boxed(Expr::Column(column))),
        2 => Expr::InList {
            expr: boxed(Expr::Column(column)),
            list: (0..random.below(6)).map(|_| random::value(random, &ty, 1)).collect(),
            has_null: random.chance(20),
            negated: random.chance(50),
        },
        3 | 4 => {
            let pattern =
                *random.pick(&["alpha%", "%bet%", "alpha", "%", "a%a", "_eta%", "%a", "ALPHA%", "gam\\%%", ""]);
            Expr::Like {
                expr: boxed(Expr::Column(3 + random.below(2))),
                pattern: pattern.into(),
                negated: random.chance(30),
                case_insensitive: random.chance(20),
            }
        }
        5 => {
            // Another scale than the column's.
            let ty = LogicalType::Decimal { precision: 12, scale: 3 };
            let column = *random.pick(&[5, 6, 7]);
            let value = random.between(-6000, 6000);
            Expr::Compare(*random.pick(&OPS), boxed(Expr::Column(column)), boxed(int(value, ty)))
        }
        6 => {
            let column = Expr::Column(9);
            if random.chance(50) { column } else { Expr::Not(boxed(column)) }
        }
        _ => {
            let (left, right) = (boxed(Expr::Column(column)), boxed(Expr::Literal(literal(random), ty)));
            let (left, right) = if random.chance(20) { (right, left) } else { (left, right) };
            Expr::Compare(*random.pick(&OPS), left, right)
        }
    }
}

/// Any condition, this deep.
pub(crate) fn condition(random: &mut Random, depth: usize) -> Expr {
    if depth == 0 {
        return simple_condition(random);
    }
    match random.below(7) {
        0 => Expr::And((0..1 + random.below(3)).map(|_| condition(random, depth - 1)).collect()),
        1 => Expr::Or((0..1 + random.below(3)).map(|_| condition(random, depth - 1)).collect()),
        2 => Expr::Not(boxed(condition(random, depth - 1))),
        3 => {
            let ty = random.pick(&types()).clone();
            let (left, right) = (value(random, &ty, depth - 1), value(random, &ty, depth - 1));
            Expr::Compare(*random.pick(&OPS), boxed(left), boxed(right))
        }
        4 => {
            let ty = random.pick(&types()).clone();
            Expr::IsNull(boxed(value(random, &ty, depth - 1)))
        }
        5 => {
            // Decimals of different scales.
            let decimals = [5, 6, 7];
            let (left, right) = (Expr::Column(*random.pick(&decimals)), Expr::Column(*random.pick(&decimals)));
            Expr::Compare(*random.pick(&OPS), boxed(left), boxed(right))
        }
        _ => simple_condition(random),
    }
}

fn arithmetic(random: &mut Random, left: Expr, right: Expr, ty: &LogicalType) -> Expr {
    let ops =
        [ArithmeticOp::Add, ArithmeticOp::Subtract, ArithmeticOp::Multiply, ArithmeticOp::Divide, ArithmeticOp::Modulo];
    // Division by zero would end most tests at once.
    let op = if random.chance(10) { *random.pick(&ops) } else { *random.pick(&ops[..3]) };
    Expr::Arithmetic { op, left: boxed(left), right: boxed(right), ty: ty.clone() }
}

/// An expression of this type, this deep.
pub(crate) fn value(random: &mut Random, ty: &LogicalType, depth: usize) -> Expr {
    let types = types();
    let columns: Vec<usize> = (0..types.len()).filter(|column| types[*column] == *ty).collect();
    if depth == 0 || random.chance(20) {
        return if random.chance(75) && !columns.is_empty() {
            Expr::Column(*random.pick(&columns))
        } else {
            let literal = if random.chance(5) { Scalar::Null } else { random::value(random, ty, 0) };
            Expr::Literal(literal, ty.clone())
        };
    }
    if random.chance(25) {
        return Expr::Case {
            branches: (0..1 + random.below(2))
                .map(|_| (condition(random, depth - 1), value(random, ty, depth - 1)))
                .collect(),
            otherwise: random.chance(70).then(|| boxed(value(random, ty, depth - 1))),
            ty: ty.clone(),
        };
    }
    match ty {
        LogicalType::Boolean => condition(random, depth),
        LogicalType::Decimal { .. } if random.chance(50) => {
            let from = random.pick(&[types[5].clone(), types[7].clone(), LogicalType::Int32]).clone();
            let (left, right) = (value(random, &from, depth - 1), value(random, &types[7], depth - 1));
            arithmetic(random, left, right, ty)
        }
        LogicalType::Int32 | LogicalType::Int64 | LogicalType::UInt8 | LogicalType::Float32 | LogicalType::Float64
            if random.chance(60) =>
        {
            let (left, right) = (value(random, ty, depth - 1), value(random, ty, depth - 1));
            arithmetic(random, left, right, ty)
        }
        LogicalType::Int64 if random.chance(40) => {
            let argument = value(random, &LogicalType::Utf8, depth - 1);
            Expr::Foreign { function: Arc::new(Length), arguments: vec![argument], ty: ty.clone() }
        }
        LogicalType::Int32 if random.chance(40) => {
            let expr = boxed(value(random, &LogicalType::Utf8, depth - 1));
            Expr::Text { function: TextFunction::Length, expr }
        }
        LogicalType::Utf8 if random.chance(40) => {
            let (skipped, taken) = (random.below(4) as u32, *random.pick(&[0, 1, 2, 5, u32::MAX]));
            let expr = boxed(value(random, ty, depth - 1));
            Expr::Text { function: TextFunction::Substring { skipped, taken }, expr }
        }
        LogicalType::Utf8 | LogicalType::Date => value(random, ty, depth - 1),
        _ => {
            let numbers = [0, 1, 2, 5, 6, 7, 10, 11];
            let from = types[*random.pick(&numbers)].clone();
            Expr::Cast { expr: boxed(value(random, &from, depth - 1)), ty: ty.clone() }
        }
    }
}

/// Bytes of a text; -1 for NULL, so that NULL matters.
#[derive(Debug)]
pub(crate) struct Length;

impl Foreign for Length {
    fn evaluate(&self, arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let text = arguments[0].as_string_view();
        assert_eq!(text.len(), rows);
        Ok(Arc::new(text.iter().map(|text| Some(text.map_or(-1, |text| text.len() as i64))).collect::<Int64Array>()))
    }

    fn text(&self) -> String {
        "length".into()
    }
}
