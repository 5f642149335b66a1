//! Columns of every type and shape for the property tests, and a plain model to compare blocks with.
#![allow(dead_code, reason = "each test file uses its part")]

use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinter_codec::{Bitmap, CompareOp, Pattern, PatternPart, Physical, Predicate, Scalar, ValuesBuf};
use std::cmp::Ordering;

/// So many cases, unless `PROPTEST_CASES` says otherwise.
pub(crate) fn cases(count: u32) -> ProptestConfig {
    let wanted = std::env::var("PROPTEST_CASES").ok().and_then(|count| count.parse().ok());
    ProptestConfig { cases: wanted.unwrap_or(count), failure_persistence: None, ..ProptestConfig::default() }
}

/// How the values of a column behave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Constant,
    Runs,
    FewDifferent,
    Narrow,
    Ascending,
    Outliers,
    /// At both ends of 64 bits.
    Ends,
    Anything,
}

pub(crate) const SHAPES: [Shape; 8] = [
    Shape::Constant,
    Shape::Runs,
    Shape::FewDifferent,
    Shape::Narrow,
    Shape::Ascending,
    Shape::Outliers,
    Shape::Ends,
    Shape::Anything,
];

/// Values and which of them are present.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) values: ValuesBuf,
    pub(crate) validity: Option<Bitmap>,
}

/// Any column: lengths around the borders of words and vectors, all types, shapes and shares of NULLs.
pub(crate) fn any_column() -> impl Strategy<Value = Column> {
    let len = prop_oneof![Just(0usize), Just(1), 2..70usize, 1020..1030usize, 2040..2060usize, 2000..6000usize];
    let nulls = prop_oneof![3 => Just(0u32), 1 => Just(2), 1 => Just(50), 1 => Just(100)];
    let shape = prop::sample::select(&SHAPES[..]);
    (prop::sample::select(&Physical::ALL[..]), shape, len, nulls, any::<u64>())
        .prop_map(|(physical, shape, len, nulls, seed)| column(physical, shape, len, nulls, seed))
}

/// A column with these properties.
pub(crate) fn column(physical: Physical, shape: Shape, len: usize, null_percent: u32, seed: u64) -> Column {
    let mut random = SmallRng::seed_from_u64(seed);
    let bits = integers(shape, len, &mut random);
    let values = match physical {
        Physical::I8 => ValuesBuf::I8(bits.iter().map(|&n| n as i8).collect()),
        Physical::I16 => ValuesBuf::I16(bits.iter().map(|&n| n as i16).collect()),
        Physical::I32 => ValuesBuf::I32(bits.iter().map(|&n| n as i32).collect()),
        Physical::I64 => ValuesBuf::I64(bits.iter().map(|&n| n as i64).collect()),
        Physical::I128 => ValuesBuf::I128(bits),
        Physical::U8 => ValuesBuf::U8(bits.iter().map(|&n| n as u8).collect()),
        Physical::U16 => ValuesBuf::U16(bits.iter().map(|&n| n as u16).collect()),
        Physical::U32 => ValuesBuf::U32(bits.iter().map(|&n| n as u32).collect()),
        Physical::U64 => ValuesBuf::U64(bits.iter().map(|&n| n as u64).collect()),
        Physical::F32 => ValuesBuf::F32(bits.iter().map(|&n| float(n, &mut random) as f32).collect()),
        Physical::F64 => ValuesBuf::F64(bits.iter().map(|&n| float(n, &mut random)).collect()),
        Physical::Bytes => {
            let strings: Vec<Vec<u8>> = bits.iter().map(|&n| string(n)).collect();
            ValuesBuf::Bytes(strings.iter().map(|string| &string[..]).collect())
        }
    };
    let validity =
        (null_percent > 0).then(|| Bitmap::from_bools((0..len).map(|_| random.random_range(0..100) >= null_percent)));
    Column { values, validity }
}

const EXTREMES: [i128; 16] = [
    0,
    -1,
    1,
    i8::MIN as i128,
    u8::MAX as i128,
    i16::MIN as i128,
    u16::MAX as i128,
    i32::MIN as i128,
    u32::MAX as i128,
    i64::MIN as i128,
    i64::MAX as i128,
    u64::MAX as i128,
    i128::MIN,
    i128::MAX,
    1 << 64,
    1 << 100,
];

fn integers(shape: Shape, len: usize, random: &mut SmallRng) -> Vec<i128> {
    let base =
        if random.random() { EXTREMES[random.random_range(0..EXTREMES.len())] } else { random.random_range(0..1000) };
    let reach = 1i128 << random.random_range(1..20);
    let mut last = base;
    let mut next = |random: &mut SmallRng| {
        last = match shape {
            Shape::Constant => base,
            Shape::Runs if random.random_range(0..10) > 0 => last,
            Shape::FewDifferent => EXTREMES[random.random_range(0..5)],
            Shape::Runs | Shape::Narrow => base.wrapping_add(random.random_range(0..reach)),
            Shape::Ascending => last.wrapping_add(random.random_range(0..reach)),
            Shape::Outliers if random.random_range(0..50) > 0 => base.wrapping_add(random.random_range(0..reach)),
            Shape::Outliers => EXTREMES[random.random_range(0..EXTREMES.len())],
            Shape::Ends if random.random() => base.wrapping_add(random.random_range(0..reach)),
            Shape::Ends => base.wrapping_add(u64::MAX.into()).wrapping_sub(random.random_range(0..reach)),
            Shape::Anything => random.random(),
        };
        last
    };
    (0..len).map(|_| next(random)).collect()
}

/// Mostly decimals with two digits; some of what breaks float codecs; some full mantissas.
fn float(integer: i128, random: &mut SmallRng) -> f64 {
    match random.random_range(0..200) {
        0 => f64::NAN,
        1 => f64::INFINITY,
        2 => -0.0,
        3 => 5e-324,
        4 => f64::from_bits(0x7ff8_0000_0000_0001),
        5 => f64::NEG_INFINITY,
        6 => std::f64::consts::PI * integer as f64,
        _ => (integer as i32) as f64 / 100.0,
    }
}

fn string(integer: i128) -> Vec<u8> {
    match integer.rem_euclid(7) {
        0 => Vec::new(),
        1 => (integer as u16).to_le_bytes().to_vec(),
        2 => format!("special requests about order {integer}").repeat((integer.rem_euclid(5)) as usize).into_bytes(),
        _ => format!("Customer#{:09}", integer as u32 % 1000).into_bytes(),
    }
}

/// The value at `row`.
pub(crate) fn scalar(values: &ValuesBuf, row: usize) -> Scalar {
    match values {
        ValuesBuf::I8(values) => Scalar::Int(values[row].into()),
        ValuesBuf::I16(values) => Scalar::Int(values[row].into()),
        ValuesBuf::I32(values) => Scalar::Int(values[row].into()),
        ValuesBuf::I64(values) => Scalar::Int(values[row].into()),
        ValuesBuf::I128(values) => Scalar::Int(values[row]),
        ValuesBuf::U8(values) => Scalar::Int(values[row].into()),
        ValuesBuf::U16(values) => Scalar::Int(values[row].into()),
        ValuesBuf::U32(values) => Scalar::Int(values[row].into()),
        ValuesBuf::U64(values) => Scalar::Int(values[row].into()),
        ValuesBuf::F32(values) => Scalar::Float(values[row].into()),
        ValuesBuf::F64(values) => Scalar::Float(values[row]),
        ValuesBuf::Bytes(values) => Scalar::Bytes(values.view().get(row).to_vec()),
    }
}

/// The bytes of the value at `row`: equal exactly when all bits are.
pub(crate) fn bits(values: &ValuesBuf, row: usize) -> Vec<u8> {
    match values {
        ValuesBuf::F32(values) => values[row].to_bits().to_le_bytes().to_vec(),
        ValuesBuf::F64(values) => values[row].to_bits().to_le_bytes().to_vec(),
        values => format!("{:?}", scalar(values, row)).into_bytes(),
    }
}

impl Column {
    /// Whether `row` is not NULL.
    pub(crate) fn is_present(&self, row: usize) -> bool {
        self.validity.as_ref().is_none_or(|validity| validity.get(row))
    }

    /// Panics unless `found` are the values of rows `start..`, wherever present.
    pub(crate) fn assert_rows(&self, start: usize, found: &ValuesBuf, what: &str) {
        for index in 0..found.len() {
            if self.is_present(start + index) {
                let (found, expected) = (bits(found, index), bits(&self.values, start + index));
                assert_eq!(found, expected, "{what}, row {}", start + index);
            }
        }
    }

    /// What a filter must answer for `row`.
    pub(crate) fn passes(&self, row: usize, predicate: &Predicate) -> bool {
        self.is_present(row) && passes(&scalar(&self.values, row), predicate)
    }
}

/// PostgreSQL's order: -0.0 is 0.0, NaN is above all and equal to itself.
pub(crate) fn compare(a: &Scalar, b: &Scalar) -> Ordering {
    match (a, b) {
        (Scalar::Int(a), Scalar::Int(b)) => a.cmp(b),
        (Scalar::Bytes(a), Scalar::Bytes(b)) => a.cmp(b),
        (Scalar::Float(a), Scalar::Float(b)) => match (a.is_nan(), b.is_nan()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => a.partial_cmp(b).unwrap(),
        },
        _ => panic!("{a:?} against {b:?}"),
    }
}

fn passes(value: &Scalar, predicate: &Predicate) -> bool {
    match (predicate, value) {
        (Predicate::Compare(_, Scalar::Null), _) => false,
        (Predicate::Compare(op, constant), _) => {
            let order = compare(value, constant);
            match op {
                CompareOp::Equal => order.is_eq(),
                CompareOp::NotEqual => order.is_ne(),
                CompareOp::Less => order.is_lt(),
                CompareOp::LessOrEqual => order.is_le(),
                CompareOp::Greater => order.is_gt(),
                CompareOp::GreaterOrEqual => order.is_ge(),
            }
        }
        (Predicate::Between(low, high), _) => {
            (low.is_null() || compare(value, low).is_ge()) && (high.is_null() || compare(value, high).is_le())
        }
        (Predicate::In(constants), _) => constants.iter().any(|constant| compare(value, constant).is_eq()),
        (Predicate::Prefix(prefix), Scalar::Bytes(bytes)) => bytes.starts_with(prefix),
        (Predicate::Contains(needle), Scalar::Bytes(bytes)) => {
            needle.is_empty() || bytes.windows(needle.len()).any(|window| window == needle)
        }
        (Predicate::Like(pattern), Scalar::Bytes(bytes)) => pattern.matches(bytes),
        _ => panic!("{predicate:?} on {value:?}"),
    }
}

/// Predicates with constants from the column, beside its values, and far outside.
pub(crate) fn predicates(column: &Column, random: &mut SmallRng) -> Vec<Predicate> {
    use CompareOp::*;
    let len = column.values.len();
    let mut constant = || {
        let near =
            if len > 0 { scalar(&column.values, random.random_range(0..len)) } else { zero(column.values.physical()) };
        match (near, random.random_range(0..6)) {
            (Scalar::Int(value), 0) => Scalar::Int(value.saturating_add(1)),
            (Scalar::Int(_), 1) => Scalar::Int(EXTREMES[random.random_range(0..EXTREMES.len())]),
            (Scalar::Float(_), 0) => Scalar::Float([f64::NAN, f64::INFINITY, -0.0, 0.1][random.random_range(0..4)]),
            (Scalar::Bytes(bytes), 0) => Scalar::Bytes(bytes[..bytes.len() / 2].to_vec()),
            (near, _) => near,
        }
    };
    let mut predicates: Vec<Predicate> = [Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual]
        .into_iter()
        .map(|op| Predicate::Compare(op, constant()))
        .collect();
    predicates.push(Predicate::Compare(Equal, Scalar::Null));
    predicates.push(Predicate::Between(constant(), constant()));
    predicates.push(Predicate::Between(Scalar::Null, constant()));
    predicates.push(Predicate::Between(constant(), Scalar::Null));
    for count in [0, 1, 2, 5, 20, 60] {
        predicates.push(Predicate::In((0..count).map(|_| constant()).collect()));
    }
    // Long lists are marked in a bitmap where their constants lie close; of these, some lie beyond a frame of 64 bits.
    let nears: Vec<Scalar> = (0..9).map(|_| constant()).collect();
    for (index, near) in nears.into_iter().enumerate() {
        let Scalar::Int(near) = near else { break };
        let beyond = [0, 1 << 64, -1 << 64][index % 3];
        let step = [2, 3, 300, 1 << 40][random.random_range(0..4)];
        let number = |place: i128| near.saturating_add(beyond).saturating_add((place - 15) * step);
        predicates.push(Predicate::In((0..24).map(|place| Scalar::Int(number(place))).collect()));
    }
    if column.values.physical() == Physical::Bytes {
        for text in ["", "Customer#", "Customer#00000001", "request", "zzz"] {
            predicates.push(Predicate::Prefix(text.into()));
            predicates.push(Predicate::Contains(text.into()));
        }
        let part = |letter| match letter {
            b'%' => PatternPart::AnyBytes,
            b'_' => PatternPart::AnyChar,
            letter => PatternPart::Byte(letter),
        };
        for pattern in ["", "_", "%7", "Cust%3%", "%e_t%", "%a%e%s%", "_u%_"] {
            predicates.extend(Pattern::new(pattern.bytes().map(part)).map(Predicate::Like));
        }
    }
    predicates
}

fn zero(physical: Physical) -> Scalar {
    match physical {
        Physical::Bytes => Scalar::Bytes(Vec::new()),
        physical if physical.is_integer() => Scalar::Int(0),
        _ => Scalar::Float(0.0),
    }
}
