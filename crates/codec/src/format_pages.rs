//! Holds the tables on the pages of docs/format and the constants in the code together.

use crate::fixed::Fixed;
use crate::schemes::OPTIONAL;
use crate::{Physical, SCHEMES, block_header, node, packed};

/// The rows of the table on `page` whose header line begins with these columns; cells without backquotes and stars.
fn table(page: &str, columns: &[&str], which: usize) -> Vec<Vec<String>> {
    let path = format!("{}/../../docs/format/{page}.md", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let header = format!("| {} |", columns.join(" | "));
    let rest =
        text.split(&header).nth(which + 1).unwrap_or_else(|| panic!("{path} has no table {which} with {header}"));
    let rows = rest.lines().skip(2).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| {
        let inner = line.trim().trim_matches('|').replace(['`', '*'], "");
        inner.split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    rows.map(cells).collect()
}

const LAYOUT: [&str; 5] = ["offset", "size", "type", "name", "meaning"];

/// Compares offsets and names of the rows that have a number for an offset.
fn check(rows: &[Vec<String>], expected: &[(usize, &str)], value_bytes: usize) {
    let number = |cell: &str| -> Option<usize> {
        let terms = cell.split('+').map(|term| match term.trim() {
            "V" => Some(value_bytes),
            "2V" => Some(2 * value_bytes),
            digits => digits.parse().ok(),
        });
        terms.sum()
    };
    let mut end = 0;
    let mut found = Vec::new();
    for row in rows {
        let Some(offset) = number(&row[0]) else { continue };
        assert_eq!(offset, end, "{row:?} begins where the row above ends");
        end += number(&row[1]).unwrap_or(0);
        found.push((offset, row[3].clone()));
    }
    let expected: Vec<(usize, String)> = expected.iter().map(|(offset, name)| (*offset, (*name).to_owned())).collect();
    assert_eq!(found, expected);
}

#[test]
fn the_block_header_is_as_its_page_says() {
    use block_header::*;
    let rows = table("block", &LAYOUT, 0);
    let expected = [
        (VERSION_AT, "version"),
        (PHYSICAL_AT, "physical"),
        (FLAGS_AT, "flags"),
        (BYTE_LEN_AT, "byte_len"),
        (VALUE_COUNT_AT, "value_count"),
        (STATISTICS_AT, "statistics"),
    ];
    check(&rows, &expected, 0);
    assert!(rows[0][4].contains(&format!("{VERSION:#04x}")));

    let flags = table("block", &["bit", "name", "meaning"], 0);
    let bits = [
        ("HAS_MIN", HAS_MIN),
        ("HAS_MAX", HAS_MAX),
        ("MAX_IS_MIN", MAX_IS_MIN),
        ("BOUNDS_EXACT", BOUNDS_EXACT),
        ("HAS_NAN", HAS_NAN),
        ("HAS_SUM", HAS_SUM),
        ("SORTED", SORTED),
        ("validity", 1 << VALIDITY_SHIFT),
    ];
    for (row, (name, flag)) in flags.iter().zip(bits) {
        let bit: u32 = row[0].split(',').next().and_then(|bit| bit.parse().ok()).expect("a bit");
        assert_eq!((&row[1][..], 1 << bit), (name, flag));
    }
}

#[test]
fn the_node_header_is_as_its_page_says() {
    use node::*;
    let expected = [
        (SCHEME_AT, "scheme"),
        (PHYSICAL_AT, "physical"),
        (VALUE_COUNT_AT, "value_count"),
        (PAYLOAD_BYTES_AT, "payload_bytes"),
        (PAYLOAD_AT, "payload"),
    ];
    check(&table("block", &LAYOUT, 1), &expected, 0);
    let limit = VALUE_COUNT_MAX.to_string();
    let written: String = table("block", &LAYOUT, 1)[2][4].chars().filter(char::is_ascii_digit).collect();
    assert_eq!(written, limit);
}

#[test]
fn tags_are_as_the_page_says() {
    let types = table("block", &["tag", "name", "plain value"], 0);
    let expected: Vec<[String; 2]> = Physical::ALL.map(|p| [(p as u8).to_string(), p.name().to_owned()]).into();
    assert_eq!(types.iter().map(|row| [row[0].clone(), row[1].clone()]).collect::<Vec<_>>(), expected);

    let schemes = table("block", &["tag", "scheme"], 0);
    let here = SCHEMES.iter().map(|entry| (entry.tag, entry.name));
    let elsewhere = OPTIONAL.iter().copied().filter(|(tag, _)| SCHEMES.iter().all(|entry| entry.tag != *tag));
    let mut expected: Vec<(u8, &str)> = here.chain(elsewhere).collect();
    expected.sort_unstable();
    assert_eq!(schemes.len(), expected.len());
    for (row, (tag, name)) in schemes.iter().zip(expected) {
        assert_eq!(row[..], [tag.to_string(), format!("[{name}](codecs/{name}.md)")]);
    }
}

#[test]
fn directory_entries_are_as_their_pages_say() {
    for (scheme, based, patched, stepped) in [
        ("bitpack", false, false, false),
        ("for", true, false, false),
        ("pfor", true, true, false),
        ("delta", true, false, true),
        ("pfor_delta", true, true, true),
    ] {
        let layout = packed::Layout { scheme, based, patched, stepped };
        let rows = table(&format!("codecs/{scheme}"), &LAYOUT, 0);
        let mut offset = 0;
        let mut expected = Vec::new();
        for (there, name, bytes) in [
            (stepped, "first", i64::BYTES),
            (based, "base", i64::BYTES),
            (true, "offset", u32::BYTES),
            (true, "bit_width", u8::BYTES),
            (patched, "exception_form", u8::BYTES),
            (patched, "exception_count", u16::BYTES),
        ] {
            if there {
                expected.push((offset, name));
                offset += bytes;
            }
        }
        check(&rows, &expected, i64::BYTES);
        assert_eq!(layout.entry_bytes(i64::BYTES), offset, "{scheme}");
    }
}

#[test]
fn the_entries_of_base_delta_are_as_their_page_says() {
    let (offset, delta_bytes) = (i64::BYTES, i64::BYTES + u32::BYTES);
    let expected = [(0, "base"), (offset, "offset"), (delta_bytes, "delta_bytes")];
    check(&table("codecs/base_delta", &LAYOUT, 0), &expected, i64::BYTES);
}
