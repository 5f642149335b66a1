//! The points of the table: values that suit a scheme, of a type and a bit width.

use crate::random::Random;
use sinter_codec::{Block, Choice, Physical, ValuesBuf, encode};
use tpchgen::generators::{CustomerGenerator, LineItemGenerator};

/// Values in a block that fits the L2 cache.
const BLOCK_LEN: usize = 64 * 1024;

/// Numbers of 128 bits in one that fits as well.
const WIDE_BLOCK_LEN: usize = 16 * 1024;

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
    /// The scheme with what may be lost, where something may: `base_delta(64)`.
    pub lossy: Option<&'static str>,
}

impl Point {
    /// The scheme as a user asks for it.
    pub fn request(&self) -> &'static str {
        self.lossy.unwrap_or(self.scheme)
    }

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
    let lossless = match scheme {
        "bitpack" => bitpack(is_quick),
        "for" => frame_of_reference(is_quick),
        "pfor" => pfor(is_quick),
        "delta" => deltas("delta", is_quick),
        "pfor_delta" => deltas("pfor_delta", is_quick),
        "dict" => dict(is_quick),
        "pdict" => pdict(is_quick),
        "constant" => constant(),
        "multiple" => multiple(),
        "halves" => halves(),
        "front" => front(),
        "rle" => rle(),
        "base_delta" => base_delta(),
        "alp" | "alp_rd" | "fixed_point" | "single" | "quantise" | "zfp" => floats(scheme),
        "fsst" => fsst(),
        "raw" => raw(),
        _ => Vec::new(),
    };
    lossless.into_iter().chain(lossy(scheme)).collect()
}

fn narrow(physical: Physical, values: Vec<u64>) -> ValuesBuf {
    match physical {
        Physical::U8 => ValuesBuf::U8(values.iter().map(|&value| value as u8).collect()),
        Physical::U16 => ValuesBuf::U16(values.iter().map(|&value| value as u16).collect()),
        Physical::I8 => ValuesBuf::I8(values.iter().map(|&value| value as i8).collect()),
        Physical::I16 => ValuesBuf::I16(values.iter().map(|&value| value as i16).collect()),
        Physical::U32 => ValuesBuf::U32(values.iter().map(|&value| value as u32).collect()),
        Physical::I32 => ValuesBuf::I32(values.iter().map(|&value| value as u32 as i32).collect()),
        Physical::I64 => ValuesBuf::I64(values.iter().map(|&value| value as i64).collect()),
        Physical::I128 => {
            ValuesBuf::I128(values.iter().take(WIDE_BLOCK_LEN).map(|&value| i128::from(value as i64)).collect())
        }
        Physical::F64 => ValuesBuf::F64(values.iter().map(|&value| value as f64 / 7.0).collect()),
        _ => ValuesBuf::U64(values),
    }
}

fn uniform(bit_width: u32) -> Vec<u64> {
    let mut random = Random::new(bit_width.into());
    (0..BLOCK_LEN).map(|_| random.of_width(bit_width)).collect()
}

fn point(scheme: &'static str, kind: &str, width: u32, values: ValuesBuf) -> Point {
    Point { scheme, kind: kind.to_owned(), width, values, lossy: None }
}

fn bitpack(is_quick: bool) -> Vec<Point> {
    let of = |physical, widths: Vec<u32>| {
        widths.into_iter().map(move |width| point("bitpack", "uniform", width, narrow(physical, uniform(width))))
    };
    let words = of(Physical::U32, widths(32, is_quick));
    let doubles = of(Physical::U64, WIDE.to_vec());
    let bytes = [Physical::U8, Physical::I8].into_iter().flat_map(|physical| of(physical, vec![1, 2, 3, 4, 5, 6, 7]));
    let halves = [Physical::U16, Physical::I16];
    let halves = halves.into_iter().flat_map(|physical| of(physical, vec![1, 3, 5, 7, 9, 11, 13, 15]));
    let signed = of(Physical::I32, vec![4, 8, 16, 24, 31]).chain(of(Physical::I64, WIDE.to_vec()));
    words.chain(doubles).chain(bytes).chain(halves).chain(signed).chain(of(Physical::I128, WIDE.to_vec())).collect()
}

/// Numbers of a width above a base.
fn above(base: u64, width: u32) -> Vec<u64> {
    uniform(width).into_iter().map(|value| value.wrapping_add(base)).collect()
}

fn frame_of_reference(is_quick: bool) -> Vec<Point> {
    let base = |physical: Physical, width: u32| match physical {
        Physical::U32 => ((1u64 << 32) - (1 << width)) / 2,
        Physical::I32 | Physical::I64 | Physical::I128 => (1u64 << (width - 1)).wrapping_neg() - 1000,
        Physical::I8 | Physical::I16 => (1u64 << (width - 1)).wrapping_neg() + 1,
        Physical::U8 | Physical::U16 => 1,
        _ => 1 << 61,
    };
    let of = |physical, widths: Vec<u32>| {
        let values = move |width| narrow(physical, above(base(physical, width), width));
        widths.into_iter().map(move |width| point("for", "above a base", width, values(width)))
    };
    let signed = of(Physical::I32, vec![4, 8, 16, 24]).chain(of(Physical::I64, WIDE.to_vec()));
    let bytes = [Physical::U8, Physical::I8].into_iter().flat_map(|physical| of(physical, vec![1, 3, 5, 7]));
    let halves = [Physical::U16, Physical::I16].into_iter().flat_map(|physical| of(physical, vec![1, 4, 8, 12, 15]));
    let wide = of(Physical::U64, WIDE.to_vec()).chain(of(Physical::I128, WIDE.to_vec()));
    of(Physical::U32, widths(32, is_quick)).chain(wide).chain(signed).chain(bytes).chain(halves).collect()
}

/// Kinds of points that differ in their exceptions only.
pub(crate) const WITHOUT_EXCEPTIONS: &str = "0 % exceptions";
pub(crate) const WITH_EXCEPTIONS: &str = "5 % exceptions";
const EXCEPTIONS_BELOW: &str = "5 % exceptions, below, too";

fn pfor(is_quick: bool) -> Vec<Point> {
    let of = |kind: &'static str, physical: Physical, widths: Vec<u32>| {
        let bits = 8 * physical.value_bytes().unwrap_or(8).min(8) as u32;
        // Values of up to all but two bits above it, and exceptions above those.
        let (base, exceptional) = (1u64 << (bits - 3), 1u64 << (bits - 1));
        let values = move |width| -> Vec<u64> {
            let mut random = Random::new(77);
            let mut number = |value: u64| match random.happens(if kind == WITHOUT_EXCEPTIONS { 0.0 } else { 0.05 }) {
                true if kind == WITH_EXCEPTIONS => exceptional + random.of_width(bits - 2),
                true => random.of_width(bits - 1),
                false => value,
            };
            above(base, width).into_iter().map(&mut number).collect()
        };
        widths.into_iter().map(move |width| point("pfor", kind, width, narrow(physical, values(width))))
    };
    let words = || widths(30, is_quick);
    let doubles = || WIDE.to_vec();
    let without = of(WITHOUT_EXCEPTIONS, Physical::U32, words());
    let with = of(WITH_EXCEPTIONS, Physical::U32, words());
    let below = of(EXCEPTIONS_BELOW, Physical::U32, vec![4, 8, 16]).chain(of(EXCEPTIONS_BELOW, Physical::I64, vec![8]));
    let wide_without = of(WITHOUT_EXCEPTIONS, Physical::U64, doubles());
    let wide_with = of(WITH_EXCEPTIONS, Physical::U64, doubles());
    let others = [(Physical::U8, vec![2, 4]), (Physical::I16, vec![2, 6, 10]), (Physical::I32, vec![4, 8, 16])]
        .into_iter()
        .chain([(Physical::I8, vec![2, 4]), (Physical::U16, vec![4, 8])])
        .chain([(Physical::I64, vec![4, 12, 24]), (Physical::I128, vec![4, 12, 24])]);
    let others = others.flat_map(|(physical, widths)| of(WITH_EXCEPTIONS, physical, widths));
    without.chain(with).chain(below).chain(wide_without).chain(wide_with).chain(others).collect()
}

/// Ascending numbers with gaps of a width; with `pfor_delta`, one gap in twenty is wider by six bits. Where so many would
/// pass the greatest number, steps go both ways.
fn deltas(scheme: &'static str, is_quick: bool) -> Vec<Point> {
    let outliers = if scheme == "pfor_delta" { 0.05 } else { 0.0 };
    let wider = if outliers > 0.0 { 6 } else { 0 };
    let of = |physical: Physical, width: u32, both_ways: bool| {
        let bits = 8 * physical.value_bytes().unwrap_or(8).min(8) as u32;
        let count = match both_ways {
            true => BLOCK_LEN,
            false => (1usize << (bits - width - wider).min(16)).min(BLOCK_LEN),
        };
        let mut random = Random::new(width.into());
        let mut total = if both_ways { 1u64 << (bits - 2) } else { 0 };
        let mut next = || {
            let width = if random.happens(outliers) { width + wider } else { width };
            let step = random.of_width(width);
            let back = if both_ways { 1 << (width - 1) } else { 0 };
            let (low, high) = (total.wrapping_sub(back - step.min(back)), total + step - step.min(back));
            // Back into what the type holds, by a step as wide.
            let is_within = high >> (bits - 1) == 0 && low >> (bits - 1) == 0;
            total = if !both_ways {
                total + step
            } else if step < back {
                low
            } else {
                high
            };
            if both_ways && !is_within {
                total = 1 << (bits - 2);
            }
            total
        };
        let values = narrow(physical, (0..count).map(|_| next()).collect());
        let kind = match (outliers > 0.0, both_ways) {
            (false, false) => "gaps",
            (false, true) => "steps both ways",
            (true, false) => "5 % wide gaps",
            (true, true) => "5 % wide steps both ways",
        };
        point(scheme, kind, width, values)
    };
    let ascending = if scheme == "delta" { 20 } else { 14 };
    let words = widths(30 - wider, is_quick).into_iter().map(|width| of(Physical::U32, width, width > ascending));
    let doubles = [1, 4, 8, 12, 16, 24, 32].into_iter();
    let doubles = doubles.flat_map(|width| [Physical::U64, Physical::I64].map(|physical| of(physical, width, false)));
    let others =
        [(Physical::I16, 4), (Physical::I32, 8), (Physical::I32, 16), (Physical::I128, 8), (Physical::I128, 24)];
    // A wider gap would not fit these.
    let narrow = if scheme == "delta" { &[(Physical::U8, 3), (Physical::I8, 3), (Physical::U16, 6)][..] } else { &[] };
    let others = others.iter().chain(narrow).map(|&(physical, width)| of(physical, width, true));
    words.chain(doubles).chain(others).collect()
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
        Physical::F64 => {
            let numbers: Vec<u64> = spread(width);
            let floats = numbers.into_iter().map(|number| number as f64 / 7.0).collect();
            point("dict", "spread", width, ValuesBuf::F64(floats))
        }
        Physical::F32 => {
            let numbers: Vec<u64> = uniform(width);
            let floats = numbers.into_iter().map(|number| number as f32 / 7.0).collect();
            point("dict", "sevenths", width, ValuesBuf::F32(floats))
        }
        physical => point("dict", "spread", width, narrow(physical, spread(width))),
    };
    let words = widths(15, is_quick).into_iter().map(|width| of(Physical::U32, width));
    let doubles = [1, 2, 4, 6, 8, 10, 12].into_iter().map(|width| of(Physical::U64, width));
    let others = [(Physical::I16, 6), (Physical::I32, 8), (Physical::I64, 8), (Physical::I128, 8), (Physical::F64, 8)];
    let small = [(Physical::U8, 4), (Physical::I8, 4), (Physical::U16, 8), (Physical::F32, 8)];
    let others = others.into_iter().chain(small).chain([(Physical::Bytes, 4), (Physical::Bytes, 8)]);
    words.chain(doubles).chain(others.map(|(physical, width)| of(physical, width))).collect()
}

/// As `dict`, but for one value in twenty, which is any other.
fn pdict(is_quick: bool) -> Vec<Point> {
    let spread = |number: u64| number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let of = |physical: Physical, width: u32| {
        let count = if physical == Physical::Bytes { TEXT_COUNT } else { BLOCK_LEN };
        let mut random = Random::new(31);
        let mut number = |frequent: &u64| match random.happens(0.05) {
            true => random.of_width(63),
            false => spread(*frequent) >> 1,
        };
        let numbers: Vec<u64> = uniform(width).iter().take(count).map(&mut number).collect();
        let values = match physical {
            Physical::U32 => narrow(physical, numbers.into_iter().map(|value| value >> 31).collect()),
            Physical::Bytes => {
                texts_of(&numbers.iter().map(|number| format!("user {number:016x}")).collect::<Vec<_>>())
            }
            physical => narrow(physical, numbers),
        };
        point("pdict", WITH_EXCEPTIONS, width, values)
    };
    let words = widths(12, is_quick).into_iter().map(|width| of(Physical::U32, width));
    let doubles = [1, 2, 4, 6, 8, 10, 12].into_iter().map(|width| of(Physical::U64, width));
    words.chain(doubles).chain([of(Physical::I64, 8), of(Physical::I128, 8), of(Physical::Bytes, 8)]).collect()
}

fn constant() -> Vec<Point> {
    let numbers = [Physical::U8, Physical::U32, Physical::U64, Physical::I128];
    let numbers = numbers.map(|physical| point("constant", "one value", 0, narrow(physical, vec![42; BLOCK_LEN])));
    let texts = vec!["Clerk#000000042".to_owned(); TEXT_COUNT];
    numbers.into_iter().chain([point("constant", "one value", 0, texts_of(&texts))]).collect()
}

/// Times of whole seconds in microseconds.
fn multiple() -> Vec<Point> {
    let of = |physical, unit: u64, width| {
        let values = uniform(width).into_iter().map(|number| unit * (number + 7)).collect();
        point("multiple", "whole units", width, narrow(physical, values))
    };
    let times = [8, 12, 16, 20, 24].map(|width| of(Physical::I64, 1_000_000, width));
    times
        .into_iter()
        .chain([of(Physical::U32, 100, 12), of(Physical::U32, 100, 20), of(Physical::I16, 100, 8)])
        .collect()
}

/// Numbers of a width beyond 64 bits.
fn halves() -> Vec<Point> {
    let of = |width: u32| {
        let mut random = Random::new(width.into());
        let mut next = || i128::from(random.of_width(width - 64)) << 64 | i128::from(random.of_width(64));
        point("halves", "uniform", width, ValuesBuf::I128((0..WIDE_BLOCK_LEN).map(|_| next()).collect()))
    };
    [65, 68, 72, 80, 96, 112, 126].map(of).into()
}

/// Sorted texts that begin alike.
fn front() -> Vec<Point> {
    let path = |row: usize| format!("/usr/share/doc/package-{:05}/file{:02}.html", row / 7 * 3, row % 7 * 5);
    let customer = |row: usize| format!("Customer#{:09}", row * 3);
    let texts = |text: &dyn Fn(usize) -> String| texts_of(&(0..TEXT_COUNT).map(text).collect::<Vec<_>>());
    vec![point("front", "sorted paths", 0, texts(&path)), point("front", "sorted customers", 0, texts(&customer))]
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
    let types = [Physical::U32, Physical::U64, Physical::I128];
    let numbers = means.into_iter().flat_map(|mean| types.map(|physical| of(physical, mean)));
    let others = [Physical::U8, Physical::I16, Physical::F64].into_iter();
    let others = others.flat_map(|physical| [4, 64].map(|mean| of(physical, mean)));
    let texts = [4, 64].map(|mean: u32| {
        let ValuesBuf::U64(numbers) = of(Physical::U64, mean).values else { unreachable!("asked for as u64") };
        let texts: Vec<String> = numbers.iter().take(TEXT_COUNT).map(|number| format!("Clerk#{number:09}")).collect();
        point("rle", "runs of so many", mean, texts_of(&texts))
    });
    numbers.chain(others).chain(texts).collect()
}

fn base_delta() -> Vec<Point> {
    let of = |physical: Physical, width: u32| {
        point("base_delta", "above a base", width, narrow(physical, above(1_000_000, width)))
    };
    let wide = [7, 15, 30, 40].into_iter().map(|width| of(Physical::I64, width));
    wide.chain([7, 15].map(|width| of(Physical::U32, width)))
        .chain([of(Physical::I32, 15), of(Physical::U64, 15), of(Physical::I16, 7), of(Physical::I128, 15)])
        .collect()
}

/// What schemes that round where they are asked to make of values. All get these: ours rounds them once more, which changes
/// nothing and costs the same.
fn lossy(scheme: &str) -> Vec<Point> {
    let of = |scheme, request: &'static str, kind, width, values: ValuesBuf| {
        let (mut plain, mut rounded) = (Vec::new(), ValuesBuf::new(values.physical()));
        encode(values.as_values(), None, &Choice::RawRounded(request.to_owned()), &mut plain).expect("a rounding");
        let block = Block::open(&plain).expect("it was just encoded");
        block.decode(0..values.len(), &mut rounded).expect("it was just encoded");
        Point { lossy: Some(request), ..point(scheme, kind, width, rounded) }
    };
    let hundred = |number: &u64| 100.0 * *number as f64 / (1u64 << 50) as f64;
    let floats: Vec<f64> = uniform(50).iter().map(hundred).collect();
    let singles = floats.iter().map(|&float| float as f32).collect();
    match scheme {
        // Microseconds, of which a vector has about half a second: most have a base alone.
        "base_delta" => {
            let mut time = 1_700_000_000_000_000;
            let mut next = |gap: &u64| {
                time += *gap;
                time as i64
            };
            let times = uniform(10).iter().map(&mut next).collect();
            vec![of("base_delta", "base_delta(1000000)", "times by the second", 10, ValuesBuf::I64(times))]
        }
        "quantise" => vec![
            of("quantise", "quantise(0.01)", "within 0.01", 50, ValuesBuf::F64(floats)),
            of("quantise", "quantise(0.01)", "within 0.01", 50, ValuesBuf::F32(singles)),
        ],
        "single" => vec![of("single", "single(lossy)", "rounded to singles", 50, ValuesBuf::F64(floats))],
        _ => Vec::new(),
    }
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
        // Multiples of a step, which it finds by itself.
        "quantise" => {
            let sixteenths = [8, 14, 20].map(|width| of("quantise", "sixteenths", width, &|n| n as f64 / 16.0));
            sixteenths.into_iter().chain([single("quantise", "sixteenths", 12, &|n| n as f32 / 16.0)]).collect()
        }
        "zfp" => {
            let curve = |row: usize| 1000.0 * (row as f64 / 500.0).sin();
            vec![point("zfp", "a sine", 0, ValuesBuf::F64((0..BLOCK_LEN).map(curve).collect()))]
        }
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
