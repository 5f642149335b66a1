//! Every kernel on every scheme: what it answers is what a plain loop over the rows that count answers, with and without
//! the scheme's own ways, on every instruction set.

use super::list::{Answer, KERNELS};
use super::*;
use crate::columns::{self, Column, Shape, column};
use crate::isa::forms;
use crate::{Bitmap, Block, Choice, CompareOp, Physical, Predicate, SCHEMES, Scalar, ValuesBuf, encode};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;

/// An owned selection.
#[derive(Clone, Debug)]
enum Chosen {
    All,
    Marks(Bitmap),
    Positions(Vec<u32>),
}

impl Chosen {
    fn any(len: usize, random: &mut SmallRng) -> Chosen {
        let one_in = [1, 2, 10, 100, 10_000][random.random_range(0..5)];
        let picked: Vec<u32> = (0..len as u32).filter(|_| random.random_range(0..one_in) == 0).collect();
        match random.random_range(0..4) {
            0 => Chosen::All,
            1 => Chosen::Positions(picked),
            _ => {
                let mut marks = Bitmap::new(len, false);
                picked.iter().for_each(|position| marks.set(*position as usize, true));
                Chosen::Marks(marks)
            }
        }
    }

    fn span(&self, range: std::ops::Range<usize>) -> Span<'_> {
        match self {
            Chosen::All => range.into(),
            Chosen::Marks(marks) => Span::marked(range, marks),
            Chosen::Positions(positions) => Span::at(range, positions),
        }
    }

    fn rows(&self, range: std::ops::Range<usize>) -> Vec<usize> {
        match self {
            Chosen::All => range.collect(),
            Chosen::Marks(marks) => marks.ones().map(|position| range.start + position).collect(),
            Chosen::Positions(positions) => positions.iter().map(|at| range.start + *at as usize).collect(),
        }
    }
}

/// What a plain loop over the rows answers.
fn expected(name: &str, column: &Column, span: &Span<'_>, selected: &[usize], constant: &Scalar) -> Answer {
    let counted: Vec<(usize, Scalar)> = selected
        .iter()
        .filter(|row| column.is_present(**row))
        .map(|row| (*row, columns::scalar(&column.values, *row)))
        .collect();
    let mut in_order: Vec<Scalar> = counted.iter().map(|(_, value)| normal(value)).collect();
    in_order.sort_by(columns::compare);
    let passing = |predicate: Predicate| {
        Answer::Rows(Bitmap::from_bools(span.range.clone().map(|row| column.passes(row, &predicate))))
    };
    let first = |value: Option<&Scalar>| {
        let found = counted.iter().find(|(_, other)| value.is_some_and(|value| columns::compare(value, other).is_eq()));
        Answer::Row(found.map(|(row, _)| *row))
    };
    let whole = || {
        let mut sum = WideSum::default();
        in_order.iter().for_each(|value| {
            if let Scalar::Int(value) = value {
                sum.add(*value);
            }
        });
        sum
    };
    let is_float = matches!(column.values.physical(), Physical::F32 | Physical::F64);
    let total = || if is_float { Sum::Float(lanes(&counted, |value| value)) } else { Sum::Integer(whole()) };
    let mean = || (!counted.is_empty()).then(|| total().to_f64() / counted.len() as f64);
    match name {
        "compare" => passing(Predicate::Compare(CompareOp::Less, constant.clone())),
        "equal" => passing(Predicate::Compare(CompareOp::Equal, constant.clone())),
        "range" => passing(Predicate::Between(constant.clone(), list::above(constant))),
        "in" => passing(Predicate::In(vec![constant.clone(), list::above(&list::above(constant))])),
        "prefix" => passing(Predicate::Prefix(list::half(constant))),
        "contains" => passing(Predicate::Contains(list::middle(constant))),
        "like" => passing(list::like(constant)),
        "is null" => Answer::Rows(Bitmap::from_bools(span.range.clone().map(|row| !column.is_present(row)))),
        "count" => Answer::Count(counted.len()),
        "sum" => Answer::Sum(total()),
        "min" => Answer::Value(in_order.first().cloned().unwrap_or_default()),
        "max" => Answer::Value(in_order.last().cloned().unwrap_or_default()),
        "argmin" => first(in_order.first()),
        "argmax" => first(in_order.last()),
        "mean" => Answer::Mean(mean()),
        "deviation" => Answer::Moments(mean().map(|mean| {
            let squares = if is_float {
                lanes(&counted, |value| (value - mean) * (value - mean))
            } else {
                let floats = in_order.iter().map(|value| match value {
                    Scalar::Int(value) => (*value as f64 - mean).powi(2),
                    _ => unreachable!("integers"),
                });
                floats.sum()
            };
            Moments { count: counted.len(), mean, squares }
        })),
        "distinct" | "histogram" => {
            let mut different: Vec<(Scalar, u64)> = Vec::new();
            for value in in_order {
                match different.last_mut() {
                    Some((last, count)) if columns::compare(last, &value).is_eq() => *count += 1,
                    _ => different.push((value, 1)),
                }
            }
            if name == "distinct" {
                return Answer::Count(different.len());
            }
            let (values, counts): (Vec<Scalar>, Vec<u64>) = different.into_iter().unzip();
            Answer::Histogram(Histogram { values: buf(&values, column.values.physical()), counts })
        }
        "percentiles" if in_order.is_empty() => Answer::Values(Vec::new()),
        "percentiles" => Answer::Values(
            [0.9, 0.0, 0.5, 1.0]
                .map(|fraction: f64| {
                    in_order[((fraction * in_order.len() as f64).ceil() as usize).clamp(1, in_order.len()) - 1].clone()
                })
                .into(),
        ),
        "lower bound" => {
            let not_below = Predicate::Compare(CompareOp::GreaterOrEqual, constant.clone());
            let found = span.range.clone().find(|row| column.passes(*row, &not_below));
            Answer::Row(Some(found.unwrap_or(span.range.end)))
        }
        _ => panic!("what should {name} answer?"),
    }
}

/// -0.0 counts as 0.0, and there is one NaN.
fn normal(value: &Scalar) -> Scalar {
    match value {
        Scalar::Float(value) if value.is_nan() => Scalar::Float(f64::NAN),
        Scalar::Float(value) => Scalar::Float(value + 0.0),
        other => other.clone(),
    }
}

/// The order in which floats are summed, as `kernel/mod.rs` states it.
fn lanes(counted: &[(usize, Scalar)], term: impl Fn(f64) -> f64) -> f64 {
    let mut vectors: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for (row, value) in counted {
        let Scalar::Float(value) = value else { unreachable!("floats") };
        vectors.entry(row / 1024).or_default().push(term(*value));
    }
    let (mut sum, mut lost) = (0.0f64, 0.0);
    for vector in vectors.values() {
        let mut lanes = vec![0.0; 16];
        vector.iter().enumerate().for_each(|(index, value)| lanes[index % 16] += value);
        while lanes.len() > 1 {
            let upper = lanes.split_off(lanes.len() / 2);
            lanes.iter_mut().zip(upper).for_each(|(lower, upper)| *lower += upper);
        }
        let next = sum + lanes[0];
        lost += if sum.abs() >= lanes[0].abs() { (sum - next) + lanes[0] } else { (lanes[0] - next) + sum };
        sum = next;
    }
    let total = if sum.is_finite() { sum + lost } else { sum };
    if total.is_nan() { f64::NAN } else { total }
}

fn buf(values: &[Scalar], physical: Physical) -> ValuesBuf {
    macro_rules! integers {
        ($variant:ident, $native:ty) => {
            ValuesBuf::$variant(
                values.iter().map(|value| if let Scalar::Int(value) = value { *value as $native } else { 0 }).collect(),
            )
        };
    }
    let float = |value: &Scalar| if let Scalar::Float(value) = value { *value } else { 0.0 };
    let bytes = |value: &Scalar| if let Scalar::Bytes(value) = value { value.clone() } else { Vec::new() };
    match physical {
        Physical::I8 => integers!(I8, i8),
        Physical::I16 => integers!(I16, i16),
        Physical::I32 => integers!(I32, i32),
        Physical::I64 => integers!(I64, i64),
        Physical::I128 => integers!(I128, i128),
        Physical::U8 => integers!(U8, u8),
        Physical::U16 => integers!(U16, u16),
        Physical::U32 => integers!(U32, u32),
        Physical::U64 => integers!(U64, u64),
        Physical::F32 => ValuesBuf::F32(values.iter().map(|value| float(value) as f32).collect()),
        Physical::F64 => ValuesBuf::F64(values.iter().map(float).collect()),
        Physical::Bytes => {
            let strings: Vec<Vec<u8>> = values.iter().map(bytes).collect();
            ValuesBuf::Bytes(strings.iter().map(|string| &string[..]).collect())
        }
    }
}

/// Equal to the bit; squares of integers, which the plain loop rounds at every step, nearly.
fn assert_agree(found: &Answer, expected: &Answer, what: &str) {
    if let (Answer::Moments(Some(found)), Answer::Moments(Some(expected))) = (found, expected) {
        assert_eq!(found.count, expected.count, "{what}");
        assert_eq!(found.mean.to_bits(), expected.mean.to_bits(), "{what}");
        let scale = (expected.mean * expected.mean * expected.count as f64).abs();
        let is_near = (found.squares - expected.squares).abs() <= 1e-9 * expected.squares.abs() + 1e-13 * scale;
        let same = found.squares.to_bits() == expected.squares.to_bits();
        assert!(is_near || same, "{what}: {found:?}, not {expected:?}");
        return;
    }
    assert_eq!(format!("{found:?}"), format!("{expected:?}"), "{what}");
}

fn check(column: &Column, choice: &Choice, random: &mut SmallRng) {
    let len = column.values.len();
    let mut bytes = Vec::new();
    encode(column.values.as_values(), column.validity.as_ref(), choice, &mut bytes).unwrap();
    let block = Block::open(&bytes).unwrap();
    let decoding = Block::open(&bytes).unwrap().decode_only();
    let constants: Vec<Scalar> = match len {
        0 => vec![Scalar::Null],
        _ => (0..2).map(|_| columns::scalar(&column.values, random.random_range(0..len))).collect(),
    };
    for turn in 0..3 {
        let start = if turn < 2 { 0 } else { random.random_range(0..=len) };
        let range = start..if turn < 2 { len } else { random.random_range(start..=len) };
        let chosen = if turn == 0 { Chosen::All } else { Chosen::any(range.len(), random) };
        let (span, selected) = (chosen.span(range.clone()), chosen.rows(range.clone()));
        for kernel in KERNELS.iter().filter(|kernel| kernel.takes(block.physical())) {
            for constant in &constants {
                if kernel.name == "lower bound" && constant.is_null() {
                    continue;
                }
                let what = format!(
                    "{} of {} rows ({range:?}) of {choice:?} as {}, {} values, constant {constant:?}",
                    kernel.name,
                    selected.len(),
                    block.describe(),
                    block.physical().name(),
                );
                let decoded = kernel.run(&decoding, &span, constant).unwrap();
                if let (Answer::Gathered(found), "gather") = (&decoded, kernel.name) {
                    assert_eq!(found.len(), selected.len(), "{what}");
                    for (index, row) in selected.iter().enumerate().filter(|(_, row)| column.is_present(**row)) {
                        assert_eq!(columns::bits(found, index), columns::bits(&column.values, *row), "{what}");
                    }
                } else {
                    let expected = expected(kernel.name, column, &span, &selected, constant);
                    assert_agree(&decoded, &expected, &format!("{what}, decoded"));
                }
                forms(|isa| {
                    let found = kernel.run(&block, &span, constant).unwrap();
                    assert_eq!(format!("{found:?}"), format!("{decoded:?}"), "{what}, {isa}");
                });
            }
        }
    }
}

/// Every way to encode a column of this type.
fn choices(physical: Physical) -> impl Iterator<Item = Choice> {
    let forced = SCHEMES.iter().filter(move |entry| entry.holds(physical));
    std::iter::once(Choice::Auto).chain(forced.map(|entry| Choice::Forced(entry.name.to_owned())))
}

#[test]
fn every_kernel_answers_what_a_plain_loop_does() {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(60);
    for seed in 0..cases {
        let mut random = SmallRng::seed_from_u64(seed);
        let physical = Physical::ALL[random.random_range(0..Physical::ALL.len())];
        let shape = columns::SHAPES[random.random_range(0..columns::SHAPES.len())];
        let len = match random.random_range(0..6) {
            0 => random.random_range(0..3),
            1 => random.random_range(3..200),
            2 => random.random_range(1020..1030),
            3 => 2048,
            _ => random.random_range(2000..6000),
        };
        let null_percent = [0, 0, 0, 2, 50, 100][random.random_range(0..6)];
        let mut column = column(physical, shape, len, null_percent, random.random());
        if random.random_range(0..4) == 0 {
            column = sorted(&column);
        }
        println!("seed {seed}: {} values, {shape:?}, {} rows", physical.name(), column.values.len());
        for choice in choices(physical) {
            check(&column, &choice, &mut random);
        }
    }
}

/// The same values in order: what a lower bound is found in.
fn sorted(column: &Column) -> Column {
    let mut values: Vec<Scalar> = (0..column.values.len()).map(|row| columns::scalar(&column.values, row)).collect();
    values.sort_by(columns::compare);
    Column { values: buf(&values, column.values.physical()), validity: column.validity.clone() }
}

#[test]
fn a_row_group_answers_as_its_vectors_do() {
    // Long enough that sums of many vectors, and bounds that let vectors be passed over, come together.
    for (seed, shape) in [Shape::Narrow, Shape::Outliers, Shape::Ascending].into_iter().enumerate() {
        let mut random = SmallRng::seed_from_u64(seed as u64);
        let column = column(Physical::I64, shape, 40 * 1024 + 17, 0, 5);
        for scheme in ["bitpack", "for", "pfor", "delta", "pfor_delta", "rle", "dict"] {
            check(&column, &Choice::Forced(scheme.to_owned()), &mut random);
        }
    }
}
