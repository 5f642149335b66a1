//! The values of the golden blocks, made from their names. Nothing here may ever change, nor come from a crate or a
//! function that may: no random numbers but these, and no arithmetic on floats but what IEEE 754 fixes to the bit.
#![allow(dead_code, reason = "each test file uses its part")]

use crate::columns::Column;
use sinter_codec::*;

/// Numbers from a seed: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
struct Numbers(u64);

impl Numbers {
    /// Those of a name: its FNV-1a hash is the seed.
    fn of(name: &str) -> Numbers {
        let hash = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Numbers(name.bytes().fold(0xcbf2_9ce4_8422_2325, hash))
    }

    /// So many random bits, up to 64.
    fn bits(&mut self, width: u32) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31).checked_shr(64 - width).unwrap_or(0)
    }

    /// A number below `end`.
    fn below(&mut self, end: u64) -> u64 {
        self.bits(32) % end
    }
}

/// How many values a golden block has, how wide they are and whether some are NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A vector and a short one after it, of narrow values.
    All,
    /// A short vector of values as wide as their type, with NULLs.
    Nulls,
    /// A vector of numbers of so many bits.
    Vector(u32),
    /// A short vector of numbers of so many bits.
    Short(u32),
    /// So much text that there are symbols of 12 bits.
    Long,
    /// A vector and a short one after it, of narrow values and some that are more than 64 bits away.
    Far,
}

impl Shape {
    /// How it is written in the name of a block.
    pub(crate) fn name(self) -> String {
        match self {
            Shape::All => "all".to_owned(),
            Shape::Nulls => "nulls".to_owned(),
            Shape::Vector(width) => format!("vector {width}"),
            Shape::Short(width) => format!("short {width}"),
            Shape::Long => "long".to_owned(),
            Shape::Far => "far".to_owned(),
        }
    }
}

/// The column behind a golden block: values that suit the scheme of `request`, so that it does not give way.
pub(crate) fn column(request: &str, physical: Physical, shape: Shape) -> Column {
    let mut numbers = Numbers::of(&format!("{request} {} {}", physical.name(), shape.name()));
    let scheme = request.split('(').next().unwrap_or(request);
    let len = match (shape, scheme) {
        (Shape::All, "raw") => 100,
        (Shape::All, "alp_rd" | "fsst" | "front" | "zfp") => 1024 + 9,
        (Shape::All | Shape::Far, _) => 1024 + 76,
        (Shape::Vector(_), _) => 1024,
        (Shape::Nulls, _) => 150,
        (Shape::Short(_), _) => 50,
        (Shape::Long, _) => 1400,
    };
    let value_bits = 8 * physical.value_bytes().unwrap_or(8) as u32;
    let width = match shape {
        Shape::All | Shape::Long | Shape::Far => 1 + (numbers.below(6) as u32),
        Shape::Nulls => (value_bits - 2).min(62),
        Shape::Vector(width) | Shape::Short(width) => width,
    };
    let values = match physical {
        Physical::F32 | Physical::F64 => floats(scheme, physical, len, &mut numbers),
        Physical::Bytes => {
            let strings = match shape {
                Shape::Long => long_strings(len, &mut numbers),
                _ => strings(scheme, len, &mut numbers),
            };
            ValuesBuf::Bytes(strings.iter().map(|string| &string[..]).collect())
        }
        _ => integers(scheme, physical, len, width, if shape == Shape::Far { 40 } else { 0 }, &mut numbers),
    };
    let is_null = |numbers: &mut Numbers| scheme == "constant" && numbers.below(9) > 0 || numbers.below(3) == 0;
    let validity = (shape == Shape::Nulls)
        .then(|| Bitmap::from_bools((0..len).map(|_| !is_null(&mut numbers)).collect::<Vec<_>>()));
    Column { values, validity }
}

/// Integers of a type, cut to it where they pass it; outliers are so many bits wider than they are random.
fn integers(
    scheme: &str,
    physical: Physical,
    len: usize,
    width: u32,
    outlier_shift: u32,
    numbers: &mut Numbers,
) -> ValuesBuf {
    let is_signed = matches!(physical, Physical::I8 | Physical::I16 | Physical::I32 | Physical::I64 | Physical::I128);
    let value_bits = 8 * physical.value_bytes().unwrap_or(8) as u32;
    let eighth = 1i128 << (value_bits - 3);
    let base = if is_signed { -eighth } else { eighth };
    let mut last = base;
    let mut row = 0;
    let mut next = || {
        row += 1;
        let outlier =
            if row % 40 == 7 { i128::from(numbers.bits((value_bits - 1).min(63))) << outlier_shift } else { 0 };
        let number = i128::from(numbers.bits(width));
        last = match scheme {
            "raw" => (i128::from(numbers.bits(64)) << 64) | i128::from(numbers.bits(64)),
            "constant" => base + 5,
            "rle" if numbers.below(9) > 0 => last,
            "bitpack" => number,
            "pfor" | "pdict" if outlier > 0 => base + outlier,
            "delta" => last.wrapping_add(number),
            "pfor_delta" => last.wrapping_add(number).wrapping_add(outlier),
            "dict" | "pdict" => base + i128::from(numbers.below(12).pow(2)) * (eighth / 144).max(1),
            "halves" => (number << 66) + i128::from(numbers.bits(64)),
            "multiple" => base + 6 * i128::from(numbers.bits(width.clamp(4, 60) - 3)),
            _ => base.wrapping_add(number),
        };
        last
    };
    macro_rules! cut {
        ($($variant:ident => $native:ty),*) => {
            match physical {
                $(Physical::$variant => ValuesBuf::$variant((0..len).map(|_| next() as $native).collect()),)*
                _ => unreachable!("integers"),
            }
        };
    }
    cut!(I8 => i8, I16 => i16, I32 => i32, I64 => i64, I128 => i128, U8 => u8, U16 => u16, U32 => u32, U64 => u64)
}

/// Floats, with a few of those that break codecs.
fn floats(scheme: &str, physical: Physical, len: usize, numbers: &mut Numbers) -> ValuesBuf {
    const ODD: [u64; 6] = [
        0x8000_0000_0000_0000, // -0.0
        0x7ff0_0000_0000_0000, // infinity
        0xfff0_0000_0000_0000, // its negative
        0x7ff8_0000_0000_1234, // NaN with a payload
        0x0000_0000_0000_0001, // the least above zero
        0x4009_21fb_5444_2d18, // pi
    ];
    let mut last = 0.0;
    let mut double = |numbers: &mut Numbers| {
        let number = numbers.bits(14) as f64;
        if numbers.below(80) == 0 && scheme != "constant" {
            return f64::from_bits(ODD[numbers.below(6) as usize]);
        }
        last = match scheme {
            "raw" => f64::from_bits(numbers.bits(64)),
            "constant" => 0.1,
            "rle" if numbers.below(9) > 0 => last,
            "dict" => numbers.below(12) as f64 / 8.0,
            "alp_rd" => f64::from_bits(0x3ff0_0000_0000_0000 | numbers.bits(40)),
            "single" => f64::from(number as f32 / 3.0),
            "quantise" | "zfp" => last + (number - 8192.0) / 65_536.0,
            _ => number / 100.0,
        };
        last
    };
    match physical {
        Physical::F32 if scheme == "raw" || scheme == "alp_rd" => {
            let bits = |numbers: &mut Numbers| match scheme {
                "raw" => numbers.bits(32) as u32,
                _ => 0x3f80_0000 | numbers.bits(18) as u32,
            };
            ValuesBuf::F32((0..len).map(|_| f32::from_bits(bits(numbers))).collect())
        }
        Physical::F32 => ValuesBuf::F32((0..len).map(|_| double(numbers) as f32).collect()),
        _ => ValuesBuf::F64((0..len).map(|_| double(numbers)).collect()),
    }
}

fn strings(scheme: &str, len: usize, numbers: &mut Numbers) -> Vec<Vec<u8>> {
    const WORDS: [&str; 8] = ["furiously ", "special ", "requests ", "sleep ", "above ", "packages ", "", "final "];
    let mut last = 0;
    let mut next = |row: usize| match scheme {
        "raw" => (0..numbers.below(12)).map(|_| numbers.bits(8) as u8).collect(),
        "constant" => b"one and the same".to_vec(),
        "fsst" => (0..2).flat_map(|_| WORDS[numbers.below(8) as usize].bytes()).collect(),
        "front" => format!("/usr/share/doc/{:04}/{}.html", row / 9, (b'a' + (row % 9) as u8) as char).into_bytes(),
        "pdict" if row % 40 == 7 => format!("seldom {}", numbers.bits(20)).into_bytes(),
        _ => {
            if scheme != "rle" || numbers.below(9) == 0 {
                last = numbers.below(12);
            }
            format!("item {last}").repeat(last as usize % 3).into_bytes()
        }
    };
    (0..len).map(&mut next).collect()
}

/// Strings of four words of twelve letters, of which there are some hundred.
fn long_strings(len: usize, numbers: &mut Numbers) -> Vec<Vec<u8>> {
    let word = |letters: &mut Numbers| -> Vec<u8> { (0..12).map(|_| b'a' + letters.below(26) as u8).collect() };
    let mut letters = Numbers(7);
    let words: Vec<Vec<u8>> = (0..600).map(|_| word(&mut letters)).collect();
    (0..len).map(|_| (0..4).flat_map(|_| words[numbers.below(600) as usize].clone()).collect()).collect()
}

/// Keys of a golden block: `dense`, `steps`, `wide` or `few`.
pub(crate) fn keys(shape: &str, bits: u32) -> Vec<u64> {
    let mut numbers = Numbers::of(&format!("{shape} u{bits}"));
    let count = if shape == "few" { 5 } else { 256 };
    let mut key = numbers.bits(bits / 2);
    let mut next = || {
        key += match shape {
            "dense" => 1,
            "wide" => numbers.bits(bits - 10),
            _ if numbers.below(30) == 0 => numbers.bits(17),
            _ => numbers.bits(7),
        };
        key
    };
    (0..count).map(|_| next()).collect()
}
