//! The worked examples on the pages of docs/format are the bytes that the code writes.

use sinter_codec::{Bitmap, BytesBuf, Choice, SCHEMES, Values, encode};

/// The bytes in the page's first block of hex.
fn example(page: &str) -> Vec<u8> {
    example_at(page, 0)
}

/// The bytes in the page's block of hex of this number; what follows two spaces on a line is explanation.
fn example_at(page: &str, number: usize) -> Vec<u8> {
    let path = format!("{}/../../docs/format/{page}.md", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let block = text.split("```hex\n").nth(1 + number).unwrap_or_else(|| panic!("{path} has no example {number}"));
    let lines = block.split("```").next().unwrap_or_default().lines();
    let bytes = lines.flat_map(|line| line.split("  ").next().unwrap_or_default().split_whitespace());
    bytes.map(|byte| u8::from_str_radix(byte, 16).expect("two hex digits")).collect()
}

/// The payload of the outermost node is the end of the block.
fn check(scheme: &str, values: Values<'_>) {
    check_at(scheme, 0, values);
}

/// [`check`] for the example of this number.
fn check_at(scheme: &str, number: usize, values: Values<'_>) {
    let mut block = Vec::new();
    encode(values, None, &Choice::Forced(scheme.into()), &mut block).unwrap();
    let expected = example_at(&format!("codecs/{scheme}"), number);
    assert!(block.ends_with(&expected), "{scheme} writes {block:02x?}, its page says {expected:02x?}");
    let payload_bytes = &block[block.len() - expected.len() - 4..][..4];
    assert_eq!(payload_bytes, (expected.len() as u32).to_le_bytes(), "{scheme}: the example is the whole payload");
}

#[test]
fn block() {
    let mut block = Vec::new();
    let validity = Bitmap::from_bools([true, false, true]);
    encode(Values::I32(&[5, 0, 7]), Some(&validity), &Choice::Raw, &mut block).unwrap();
    assert_eq!(example("block"), block);
}

#[test]
fn raw() {
    let strings: BytesBuf = [&b"ab"[..], b"", b"c"].into_iter().collect();
    check("raw", Values::Bytes(strings.view()));
}

#[test]
fn constant_and_rle() {
    check("constant", Values::I32(&[7; 5]));
    check("rle", Values::I32(&[7, 7, 7, 9, 9]));
}

#[test]
fn packed_integers() {
    check("bitpack", Values::U8(&[1, 2, 3, 4, 5]));
    check("for", Values::I32(&[100, 103, 101]));
    check("delta", Values::I64(&[1000, 1003, 1005, 1010]));
}

#[test]
fn patched_integers() {
    let mut values: Vec<i32> = (0..24).map(|position| 10 + position % 4).collect();
    (values[5], values[9]) = (1000, -1);
    check("pfor", Values::I32(&values));
    check_at("pfor", 1, Values::I128(&[6, 1 << 80, 5]));

    let steps = (0..24).map(|position| if position == 7 { 5000 } else { 1 + position % 2 });
    let values: Vec<u32> = steps
        .scan(0, |value, step| {
            Some({
                *value += step;
                *value
            })
        })
        .collect();
    check("pfor_delta", Values::U32(&values));
}

#[test]
fn bytes_above_a_base() {
    check("base_delta", Values::I32(&[1000, 1300, 1100]));
}

#[test]
fn floats_with_stand_ins() {
    check("single", Values::F64(&[1.5, 0.1, 1.5]));
    check("fixed_point", Values::F64(&[0.5, f64::NAN, 0.5]));
    check("quantise", Values::F64(&[0.5, f64::INFINITY, 0.5]));
}

#[test]
fn dict() {
    check("dict", Values::I32(&[500, -3, 500, 500]));
    check("pdict", Values::I32(&[500, -3, 500, 500, 70000, 500, -3, -3]));
}

#[test]
fn every_scheme_has_a_page_with_an_example() {
    for entry in SCHEMES {
        assert!(!example(&format!("codecs/{}", entry.name)).is_empty());
    }
}

#[test]
fn multiples() {
    check("multiple", Values::U16(&[5, 1005, 2005, 1005]));
}

#[test]
fn halves() {
    check("halves", Values::I128(&[(1 << 64) + 5, -1, 7]));
}
