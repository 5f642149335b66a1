//! Random numbers that repeat with their seed, and columns made of them.

use arrow::array::*;
use sinter_codec::Scalar;
use sinter_exec::{LogicalType, edge};
use std::sync::Arc;

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    pub(crate) fn between(&mut self, low: i128, high: i128) -> i128 {
        low + (self.next() as i128) % (high - low + 1)
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

const WORDS: [&str; 8] =
    ["", "alpha", "beta", "gamma", "alphabet", "übermut", "a long word of more than twelve bytes", "GAMMA"];

/// A value of a type: from a narrow range mostly, an extreme one now and then.
pub(crate) fn value(random: &mut Random, ty: &LogicalType, style: usize) -> Scalar {
    let narrow = random.between(-20, 20);
    let wild = style == 2 && random.chance(10);
    let signed = |bits: u32, random: &mut Random| {
        let (min, max) = (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1);
        if wild { *random.pick(&[min, max, min + 1, max - 1, 0, -1]) } else { narrow }
    };
    match ty {
        LogicalType::Boolean => Scalar::Int(random.between(0, 1)),
        LogicalType::Int8 => Scalar::Int(signed(8, random)),
        LogicalType::Int16 => Scalar::Int(signed(16, random)),
        LogicalType::Int32 | LogicalType::Date => Scalar::Int(signed(32, random)),
        LogicalType::Int64 | LogicalType::Timestamp(..) | LogicalType::Time(_) => Scalar::Int(signed(64, random)),
        LogicalType::UInt8 => Scalar::Int(if wild { 255 } else { narrow + 20 }),
        LogicalType::UInt16 => Scalar::Int(if wild { 65535 } else { narrow + 20 }),
        LogicalType::UInt32 => Scalar::Int(if wild { u32::MAX.into() } else { narrow + 20 }),
        LogicalType::UInt64 => Scalar::Int(if wild { u64::MAX.into() } else { narrow + 20 }),
        LogicalType::Float32 | LogicalType::Float64 => {
            let special = [f64::NAN, -f64::NAN, -0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY];
            Scalar::Float(if style > 0 && random.chance(20) { *random.pick(&special) } else { narrow as f64 / 4.0 })
        }
        LogicalType::Decimal { precision, .. } => {
            let most = 10i128.pow((*precision).into()) - 1;
            let narrow = narrow * 25;
            let narrow = narrow.clamp(-most, most);
            Scalar::Int(if wild { *random.pick(&[most, -most, 0]) } else { narrow })
        }
        LogicalType::Utf8 | LogicalType::Binary => Scalar::Bytes(match style {
            0 => random.pick(&WORDS[..3]).as_bytes().to_vec(),
            1 => random.pick(&WORDS).as_bytes().to_vec(),
            _ => format!("{}{}", random.pick(&WORDS), random.below(50)).into_bytes(),
        }),
        LogicalType::Interval | LogicalType::Uuid => {
            Scalar::Int((i128::from(random.next() as i64) << 64) | i128::from(random.next()))
        }
        LogicalType::List(_) | LogicalType::Struct(_) => Scalar::Null,
    }
}

/// A column of random values: style 0 tame, 1 with special values, 2 with extremes; about `null_percent` NULLs. Some
/// stretches are constant, some sorted, so that every scheme finds something to press.
pub(crate) fn column(
    random: &mut Random,
    ty: &LogicalType,
    rows: usize,
    style: usize,
    null_percent: usize,
) -> Vec<Scalar> {
    let mut values = Vec::with_capacity(rows);
    while values.len() < rows {
        let stretch = (1 + random.below(1500)).min(rows - values.len());
        let constant = random.chance(15).then(|| value(random, ty, style));
        for _ in 0..stretch {
            if null_percent > 0 && random.chance(null_percent) {
                values.push(Scalar::Null);
            } else {
                values.push(constant.clone().unwrap_or_else(|| value(random, ty, style)));
            }
        }
    }
    values
}

/// The values as an Arrow array of a type that [`edge::logical_type`] maps back.
pub(crate) fn array(values: &[Scalar], ty: &LogicalType) -> ArrayRef {
    if values.is_empty() {
        return new_empty_array(&edge::arrow_type(ty));
    }
    let ints = || values.iter().map(|value| if let Scalar::Int(value) = value { Some(*value) } else { None });
    macro_rules! integers {
        ($array:ty, $native:ty) => {
            Arc::new(ints().map(|value| value.map(|value| value as $native)).collect::<$array>()) as ArrayRef
        };
    }
    match ty {
        LogicalType::Int8 => integers!(Int8Array, i8),
        LogicalType::Int16 => integers!(Int16Array, i16),
        LogicalType::Int32 => integers!(Int32Array, i32),
        LogicalType::Int64 => integers!(Int64Array, i64),
        LogicalType::UInt8 => integers!(UInt8Array, u8),
        LogicalType::UInt16 => integers!(UInt16Array, u16),
        LogicalType::UInt32 => integers!(UInt32Array, u32),
        LogicalType::UInt64 => integers!(UInt64Array, u64),
        LogicalType::Date => integers!(Date32Array, i32),
        LogicalType::Boolean => Arc::new(ints().map(|value| value.map(|value| value != 0)).collect::<BooleanArray>()),
        LogicalType::Decimal { precision, scale } => {
            let array: Decimal128Array = ints().collect();
            Arc::new(array.with_precision_and_scale(*precision, *scale).expect("a legal decimal type"))
        }
        LogicalType::Utf8 => {
            let text = |value: &Scalar| match value {
                Scalar::Bytes(bytes) => Some(String::from_utf8(bytes.clone()).expect("words are text")),
                _ => None,
            };
            Arc::new(values.iter().map(text).collect::<StringArray>())
        }
        _ => {
            // By way of single values, for the rest.
            let one = |value: &Scalar| edge::scalar_to_arrow(value, ty).expect("a value of the type");
            let ones: Vec<ArrayRef> = values.iter().map(one).collect();
            arrow::compute::concat(&ones.iter().map(|one| one.as_ref()).collect::<Vec<_>>()).expect("one type")
        }
    }
}
