//! The worked examples on the format pages of `fsst`, `front`, `alp`, `alp_rd` and `zfp` are the bytes that those
//! schemes write.

use sinter_codec::{BytesBuf, Choice, Values, encode};

/// The bytes in the page's block of hex; what follows two spaces on a line is explanation.
fn example(page: &str) -> Vec<u8> {
    let block = page.split("```hex\n").nth(1).expect("the page has an example").split("```").next().unwrap_or_default();
    let bytes = block.lines().flat_map(|line| line.split("  ").next().unwrap_or_default().split_whitespace());
    bytes.map(|byte| u8::from_str_radix(byte, 16).expect("two hex digits")).collect()
}

/// The payload of the outermost node is the end of the block.
fn check(page: &str, scheme: &str, values: Values<'_>) {
    let mut block = Vec::new();
    encode(values, None, &Choice::Forced(scheme.into()), &mut block).unwrap();
    let expected = example(page);
    assert!(expected.len() > 10 && block.ends_with(&expected), "{scheme} writes {block:02x?}");
}

#[test]
fn fsst() {
    let texts: BytesBuf = (0..16).map(|row| if row % 2 == 0 { &b"yes"[..] } else { b"no" }).collect();
    check(include_str!("../../../docs/format/codecs/fsst.md"), "fsst", Values::Bytes(texts.view()));
}

#[test]
fn front() {
    let strings: BytesBuf = [&b"deposits"[..], b"depot", b"depots"].into_iter().collect();
    check(include_str!("../../../docs/format/codecs/front.md"), "front", Values::Bytes(strings.view()));
}

#[test]
fn alp() {
    check(include_str!("../../../docs/format/codecs/alp.md"), "alp", Values::F64(&[1.25, f64::NAN, 1.25]));
}

#[test]
fn alp_rd() {
    check(include_str!("../../../docs/format/codecs/alp_rd.md"), "alp_rd", Values::F64(&[1.5, 1.5]));
}

#[cfg(feature = "zfp")]
#[test]
fn zfp() {
    check(include_str!("../../../docs/format/codecs/zfp.md"), "zfp", Values::F64(&[1.0, 2.0, 3.0, 4.0]));
}
