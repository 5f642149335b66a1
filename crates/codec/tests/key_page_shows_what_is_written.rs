//! The worked examples on docs/format/keys.md are the bytes that the code writes, and its table has the tags of the
//! list.

use sinter_codec::{KEY_CODECS, KeyCodec};

fn page() -> String {
    let path = format!("{}/../../docs/format/keys.md", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The bytes in the codec's block of hex; what follows two spaces on a line is explanation.
fn example(page: &str, codec: KeyCodec) -> Vec<u8> {
    let heading = format!("\n## {}\n", codec.name());
    let section = page.split(&heading).nth(1).unwrap_or_else(|| panic!("there is no section{heading}"));
    let section = section.split("\n## ").next().unwrap_or_default();
    let block = section.split("```hex\n").nth(1).unwrap_or_else(|| panic!("no example in{heading}"));
    let lines = block.split("```").next().unwrap_or_default().lines();
    let bytes = lines.flat_map(|line| line.split("  ").next().unwrap_or_default().split_whitespace());
    bytes.map(|byte| u8::from_str_radix(byte, 16).expect("two hex digits")).collect()
}

#[test]
fn examples() {
    let page = page();
    for &codec in KEY_CODECS {
        let keys: Vec<u32> = match codec {
            KeyCodec::Bp128Transposed => (0..=8).chain(8..=126).collect(),
            _ => vec![1000, 1003, 1005, 1300, 1301, 1302],
        };
        let mut bytes = Vec::new();
        codec.encode(&keys, &mut bytes).unwrap();
        let expected = example(&page, codec);
        assert_eq!(bytes, expected, "{} writes {bytes:02x?}, its page says {expected:02x?}", codec.name());
    }
}

#[test]
fn tags_and_what_is_delete_stable() {
    let page = page();
    let table = page.lines().skip_while(|line| !line.starts_with("| tag | codec | delete-stable |")).skip(2);
    let rows: Vec<&str> = table.take_while(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), KEY_CODECS.len());
    for (row, codec) in rows.iter().zip(KEY_CODECS) {
        let is_stable = if codec.is_delete_stable() { "yes" } else { "no" };
        let expected = format!("| {} | [{1}](#{1}) | {is_stable} |", codec.tag(), codec.name());
        assert!(row.starts_with(&expected), "{row} begins {expected}");
    }
}
