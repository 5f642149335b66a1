//! The points of the table: values that suit a scheme, of a type and a bit width.

use crate::random::Random;
use sinter_codec::{Physical, ValuesBuf};
use tpchgen::generators::{CustomerGenerator, LineItemGenerator};

/// Values in a block that fits the L2 cache.
const BLOCK_LEN: usize = 64 * 1024;

/// Strings in a block that fits the L2 cache.
const TEXT_COUNT: usize = 8 * 1024;

/// One point.
pub struct Point {
    /// The scheme, by its name.
    pub scheme: &'static str,
    /// What is in the values besides their width.
    pub kind: String,
    /// Bits of a packed number, or what else tells points of one kind apart.
    pub width: u32,
    /// The values.
    pub values: ValuesBuf,
}

impl Point {
    /// The type of the values.
    pub fn physical(&self) -> Physical {
        self.values.physical()
    }
}

/// Every width, or some of them.
fn widths(up_to: u32, is_quick: bool) -> Vec<u32> {
    const SOME: [u32; 14] = [1, 2, 3, 5, 7, 8, 10, 12, 16, 17, 20, 25, 31, 32];
    (1..=up_to).filter(|width| !is_quick || SOME.contains(width)).collect()
}

/// A handful of the widths of 64-bit numbers.
const WIDE: [u32; 9] = [1, 4, 8, 12, 16, 24, 32, 48, 60];

/// All points of a scheme; nothing for one that has none.
pub fn of_scheme(scheme: &str, is_quick: bool) -> Vec<Point> {
    match scheme {
        "bitpack" => bitpack(is_quick),
        "for" => frame_of_reference(is_quick),
        "pfor" => pfor(is_quick),
        "delta" => deltas("delta", is_quick),
        "pfor_delta" => deltas("pfor_delta", is_quick),
        "dict" => dict(is_quick),
        "rle" => rle(),
        "base_delta" => base_delta(),
        "alp" | "alp_rd" | "fixed_point" | "single" | "quantise" => floats(scheme),
        "fsst" => fsst(),
        "raw" => raw(),
        _ => Vec::new(),
    }
}

fn narrow(physical: Physical, values: Vec<u64>) -> ValuesBuf {
    match physical {
        Physical::U8 => ValuesBuf::U8(values.iter().map(|&value| value as u8).collect()),
        Physical::U16 => ValuesBuf::U16(values.iter().map(|&value| value as u16).collect()),
        Physical::U32 => ValuesBuf::U32(values.iter().map(|&value| value as u32).collect()),
        Physical::I32 => ValuesBuf::I32(values.iter().map(|&value| value as u32 as i32).collect()),
        Physical::I64 => ValuesBuf::I64(values.iter().map(|&value| value as i64).collect()),
        _ => ValuesBuf::U64(values),
    }
}

fn uniform(bit_width: u32) -> Vec<u64> {
    let mut random = Random::new(bit_width.into());
    (0..BLOCK_LEN).map(|_| random.of_width(bit_width)).collect()
}

fn point(scheme: &'static str, kind: &str, width: u32, values: ValuesBuf) -> Point {
    Point { scheme, kind: kind.to_owned(), width, values }
}

fn bitpack(is_quick: bool) -> Vec<Point> {
    let of = |physical, widths: Vec<u32>| {
        widths.into_iter().map(move |width| point("bitpack", "uniform", width, narrow(physical, uniform(width))))
    };
    let words = of(Physical::U32, widths(32, is_quick));
    let doubles = of(Physical::U64, WIDE.to_vec());
    let bytes = of(Physical::U8, vec![1, 2, 3, 4, 5, 6, 7]);
    words.chain(doubles).chain(bytes).chain(of(Physical::U16, vec![1, 3, 5, 7, 9, 11, 13, 15])).collect()
}

/// Numbers of a width above a base.
fn above(base: u64, width: u32) -> Vec<u64> {
    uniform(width).into_iter().map(|value| value.wrapping_add(base)).collect()
}

fn frame_of_reference(is_quick: bool) -> Vec<Point> {
    let base = |physical: Physical, width: u32| match physical {
        Physical::U32 => ((1u64 << 32) - (1 << width)) / 2,
        Physical::I32 | Physical::I64 => (1u64 << (width - 1)).wrapping_neg() - 1000,
        _ => 1 << 61,
    };
    let of = |physical, widths: Vec<u32>| {
        let values = move |width| narrow(physical, above(base(physical, width), width));
        widths.into_iter().map(move |width| point("for", "above a base", width, values(width)))
    };
    let signed = of(Physical::I32, vec![4, 8, 16, 24]).chain(of(Physical::I64, WIDE.to_vec()));
    of(Physical::U32, widths(32, is_quick)).chain(of(Physical::U64, WIDE.to_vec())).chain(signed).collect()
}

/// Kinds of points that differ in their exceptions only.
pub(crate) const WITHOUT_EXCEPTIONS: &str = "0 % exceptions";
pub(crate) const WITH_EXCEPTIONS: &str = "5 % exceptions";
const EXCEPTIONS_BELOW: &str = "5 % exceptions, below, too";

fn pfor(is_quick: bool) -> Vec<Point> {
    let of = |kind: &'static str, physical: Physical, widths: Vec<u32>| {
        let bits = 8 * physical.value_bytes().unwrap_or(8) as u32;
        let base = 1u64 << (bits - 2);
        let values = move |width| -> Vec<u64> {
            let mut random = Random::new(77);
            let mut number = |value: u64| match random.happens(if kind == WITHOUT_EXCEPTIONS { 0.0 } else { 0.05 }) {
                true if kind == WITH_EXCEPTIONS => base + random.of_width(bits - 2),
                true => random.of_width(bits - 1),
                false => value,
            };
            above(base, width).into_iter().map(&mut number).collect()
        };
        widths.into_iter().map(move |width| point("pfor", kind, width, narrow(physical, values(width))))
    };
    let words = || widths(24, is_quick);
    let doubles = || WIDE[..8].to_vec();
    let without = of(WITHOUT_EXCEPTIONS, Physical::U32, words());
    let with = of(WITH_EXCEPTIONS, Physical::U32, words());
    let below = of(EXCEPTIONS_BELOW, Physical::U32, vec![4, 8, 16]).chain(of(EXCEPTIONS_BELOW, Physical::I64, vec![8]));
    let wide_without = of(WITHOUT_EXCEPTIONS, Physical::U64, doubles());
    let wide_with = of(WITH_EXCEPTIONS, Physical::U64, doubles());
    without.chain(with).chain(below).chain(wide_without).chain(wide_with).collect()
}

/// Ascending numbers with gaps of a width; with `pfor_delta`, one gap in twenty is wider by six bits.
fn deltas(scheme: &'static str, is_quick: bool) -> Vec<Point> {
    let outliers = if scheme == "pfor_delta" { 0.05 } else { 0.0 };
    let of = |physical: Physical, width: u32| {
        let widest = width + if outliers > 0.0 { 6 } else { 0 };
        let count = match physical {
            Physical::U32 => (1 << (32 - widest).min(16)).min(BLOCK_LEN),
            _ => BLOCK_LEN,
        };
        let mut random = Random::new(width.into());
        let mut total = 0u64;
        let mut next = || {
            total += if random.happens(outliers) { random.of_width(widest) } else { random.of_width(width) };
            total
        };
        let values = narrow(physical, (0..count).map(|_| next()).collect());
        point(scheme, if outliers > 0.0 { "5 % wide gaps" } else { "gaps" }, width, values)
    };
    let words = widths(if scheme == "delta" { 20 } else { 14 }, is_quick);
    let doubles = [1, 4, 8, 12, 16, 24, 32].into_iter().map(|width| of(Physical::U64, width));
    words.into_iter().map(|width| of(Physical::U32, width)).chain(doubles).collect()
}

/// Two to the power of the width different values, all over the range of the type.
fn dict(is_quick: bool) -> Vec<Point> {
    let spread = |width| uniform(width).into_iter().map(|value| value.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let of = |physical, width| match physical {
        Physical::U32 => {
            let values: Vec<u64> = spread(width);
            point("dict", "spread", width, narrow(physical, values.into_iter().map(|value| value >> 32).collect()))
        }
        Physical::Bytes => {
            let texts: Vec<String> = uniform(width).iter().take(TEXT_COUNT).map(|n| format!("Clerk#{n:09}")).collect();
            point("dict", "clerks", width, texts_of(&texts))
        }
        physical => point("dict", "spread", width, narrow(physical, spread(width))),
    };
    let words = widths(12, is_quick).into_iter().map(|width| of(Physical::U32, width));
    let doubles = [1, 2, 4, 6, 8, 10, 12].into_iter().map(|width| of(Physical::U64, width));
    words.chain(doubles).chain([of(Physical::Bytes, 4), of(Physical::Bytes, 8)]).collect()
}

fn texts_of(texts: &[String]) -> ValuesBuf {
    ValuesBuf::Bytes(texts.iter().map(|text| text.as_bytes()).collect())
}

/// Runs whose lengths are uniform around a mean, which stands for the width.
fn rle() -> Vec<Point> {
    let of = |physical, mean: u32| {
        let mut random = Random::new(mean.into());
        let mut values = Vec::with_capacity(BLOCK_LEN);
        while values.len() < BLOCK_LEN {
            let (value, length) = (random.of_width(20), 1 + random.below(u64::from(2 * mean - 1)) as usize);
            values.resize(BLOCK_LEN.min(values.len() + length), value);
        }
        point("rle", "runs of so many", mean, narrow(physical, values))
    };
    let means = [2, 4, 16, 64, 256];
    means.into_iter().flat_map(|mean| [of(Physical::U32, mean), of(Physical::U64, mean)]).collect()
}

fn base_delta() -> Vec<Point> {
    let of = |physical: Physical, width: u32| {
        point("base_delta", "above a base", width, narrow(physical, above(1_000_000, width)))
    };
    [7, 15, 30, 40].into_iter().map(|width| of(Physical::I64, width)).chain([of(Physical::U32, 7)]).collect()
}

fn floats(scheme: &str) -> Vec<Point> {
    let of = |name: &'static str, kind: &str, width: u32, number: &dyn Fn(u64) -> f64| {
        point(name, kind, width, ValuesBuf::F64(uniform(width).into_iter().map(number).collect()))
    };
    let single = |name: &'static str, kind: &str, width: u32, number: &dyn Fn(u64) -> f32| {
        point(name, kind, width, ValuesBuf::F32(uniform(width).into_iter().map(number).collect()))
    };
    match scheme {
        "alp" => {
            let cents = [8, 12, 16, 20, 24, 30].map(|width| of("alp", "cents", width, &|n| n as f64 / 100.0));
            let tenths = [8, 16].map(|width| single("alp", "tenths", width, &|n| n as f32 / 10.0));
            cents.into_iter().chain(tenths).collect()
        }
        "alp_rd" => vec![of("alp_rd", "near one", 50, &|n| 1.0 + n as f64 / (1u64 << 50) as f64)],
        "fixed_point" => {
            vec![
                of("fixed_point", "parts of 4096", 16, &|n| n as f64 / 4096.0),
                single("fixed_point", "parts of 4096", 12, &|n| n as f32 / 4096.0),
            ]
        }
        "single" => vec![of("single", "single precision", 24, &|n| f64::from(n as f32 / 7.0))],
        _ => Vec::new(),
    }
}

fn fsst() -> Vec<Point> {
    let comments: Vec<String> =
        LineItemGenerator::new(0.01, 1, 1).iter().take(TEXT_COUNT).map(|item| item.l_comment.to_string()).collect();
    let addresses: Vec<String> = CustomerGenerator::new(0.1, 1, 1)
        .iter()
        .take(TEXT_COUNT)
        .map(|customer| customer.c_address.to_string())
        .collect();
    vec![point("fsst", "l_comment", 0, texts_of(&comments)), point("fsst", "c_address", 0, texts_of(&addresses))]
}

fn raw() -> Vec<Point> {
    [Physical::U32, Physical::U64].map(|physical| point("raw", "random", 64, narrow(physical, uniform(64)))).into()
}
