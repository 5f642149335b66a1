//! The pages in docs/format and the constants in the code say the same: offsets, sizes, tags, and the examples in hex.

use crate::support;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sinter_storage::testing::CrashingFileSystem;
use sinter_storage::{FileSystem, Options, PageId, PageKind, RecordTag, Store, UNIT_BYTES, header, log, map, page};

fn page_text(name: &str) -> String {
    let path: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "docs", "format", name].iter().collect();
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The cells of all table rows below a heading, up to the next heading; without a heading, from the top.
fn rows(text: &str, heading: &str) -> Vec<Vec<String>> {
    let from = if heading.is_empty() { 0 } else { text.find(&format!("\n## {heading}\n")).expect(heading) + 1 };
    let section = &text[from..];
    let section = &section[..section[1..].find("\n## ").map_or(section.len(), |end| end + 1)];
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_string()).collect();
    section.lines().filter(|line| line.starts_with("| ") && line.ends_with('|')).map(cells).collect()
}

/// A field of a byte table.
type Field<'a> = (&'a str, usize, Option<usize>);

/// Checks a byte table: names and offsets as given, each field ending where the next begins, the last at `end`.
fn assert_fields(file: &str, heading: &str, expected: &[(&str, usize)], end: usize) {
    let text = page_text(file);
    let found: Vec<_> = rows(&text, heading)
        .into_iter()
        .filter(|row| row.len() == 5 && row[0].parse::<usize>().is_ok())
        .map(|row| (row[3].clone(), row[0].parse::<usize>().unwrap(), row[1].parse::<usize>().ok()))
        .collect();
    let found: Vec<Field<'_>> = found.iter().map(|(name, offset, size)| (name.as_str(), *offset, *size)).collect();
    let names: Vec<_> = found.iter().map(|(name, offset, _)| (*name, *offset)).collect();
    assert_eq!(names, expected, "{file}, {heading}");
    for (index, (name, offset, size)) in found.iter().enumerate() {
        let next = found.get(index + 1).map_or(end, |next| next.1);
        assert_eq!(offset + size.unwrap_or(0), next, "{file}, {heading}: the end of {name}");
    }
}

#[test]
fn the_file_header() {
    let fields = [
        ("magic", 0),
        ("format version", header::FORMAT_VERSION_AT),
        ("unit bytes", header::UNIT_BYTES_AT),
        ("compatible features", header::COMPATIBLE_FEATURES_AT),
        ("incompatible features", header::INCOMPATIBLE_FEATURES_AT),
        ("database", header::DATABASE_AT),
        ("checkpoint", header::CHECKPOINT_AT),
        ("log", header::LOG_AT),
        ("commit", header::COMMIT_AT),
        ("next page", header::NEXT_PAGE_AT),
        ("catalog root", header::CATALOG_ROOT_AT),
        ("file units", header::FILE_UNITS_AT),
        ("map root", header::MAP_ROOT_AT),
        ("map depth", header::MAP_DEPTH_AT),
        ("state", header::STATE_AT),
        ("zero", header::ZERO_AT),
        ("checksum", header::CHECKSUM_AT),
    ];
    assert_fields("file.md", "The header", &fields, UNIT_BYTES);
    let text = page_text("file.md");
    assert!(text.contains(std::str::from_utf8(&header::MAGIC).unwrap()));
    assert_eq!(rows(&text, "The header")[2][4], header::FORMAT_VERSION.to_string(), "the version in the table");
    assert_eq!(rows(&text, "Versions").last().unwrap()[0], header::FORMAT_VERSION.to_string());
    const { assert!(header::COPIES == 2 && header::INCOMPATIBLE_FEATURES_KNOWN == 0) };
}

#[test]
fn pages() {
    let fields = [
        ("magic", 0),
        ("kind", page::KIND_AT),
        ("zero", page::ZERO_AT),
        ("page id", page::PAGE_ID_AT),
        ("commit", page::COMMIT_AT),
        ("payload bytes", page::PAYLOAD_BYTES_AT),
        ("checksum", page::CHECKSUM_AT),
        ("payload", page::HEADER_BYTES),
    ];
    assert_fields("page.md", "", &fields, page::HEADER_BYTES);
    let text = page_text("page.md");
    assert!(text.contains(std::str::from_utf8(&page::MAGIC).unwrap()));
    assert!(text.contains("2^28 - 32") && page::PAYLOAD_BYTES_MAX == (1 << 28) - 32);
    assert!(text.contains("2^56 - 1") && PageId::MAX.0 == (1 << 56) - 1);
    let listed: Vec<_> = rows(&text, "Kinds")[1..].iter().map(|row| (row[0].clone(), row[1].clone())).collect();
    let known = PageKind::ALL.iter().map(|kind| (kind.0.to_string(), kind.to_string()));
    assert_eq!(listed[..], known.collect::<Vec<_>>());
}

#[test]
fn the_page_map() {
    let fields =
        [("place", map::PLACE_AT), ("kind", map::KIND_AT), ("bytes", map::BYTES_AT), ("checksum", map::CHECKSUM_AT)];
    assert_fields("page-map.md", "An entry", &fields, map::ENTRY_BYTES);
    assert_eq!(map::ENTRIES_PER_NODE, 256);
    assert!(page_text("file.md").contains(&format!("levels of nodes, 0 to {}", map::DEPTH_MAX)));
}

#[test]
fn the_log() {
    let fields = [
        ("magic", 0),
        ("version", log::LOG_VERSION_AT),
        ("zero", log::LOG_VERSION_AT + 4),
        ("database", log::LOG_DATABASE_AT),
        ("number", log::LOG_NUMBER_AT),
        ("start commit", log::START_COMMIT_AT),
        ("nonce", log::LOG_NONCE_AT),
        ("zero", log::LOG_ZERO_AT),
        ("checksum", log::HEADER_CHECKSUM_AT),
    ];
    assert_fields("log.md", "The header", &fields, log::HEADER_BYTES);
    let fields = [
        ("length", log::LENGTH_AT),
        ("checksum", log::CHECKSUM_AT),
        ("previous", log::PREVIOUS_AT),
        ("flags", log::FLAGS_AT),
        ("commit", log::COMMIT_AT),
        ("payload", log::FRAME_HEADER_BYTES),
    ];
    assert_fields("log.md", "A frame", &fields, log::FRAME_HEADER_BYTES);
    let fields = [
        ("tag", log::TAG_AT),
        ("zero", log::TAG_AT + 2),
        ("payload bytes", log::PAYLOAD_BYTES_AT),
        ("object", log::OBJECT_AT),
        ("payload", log::RECORD_HEADER_BYTES),
    ];
    assert_fields("log.md", "A record", &fields, log::RECORD_HEADER_BYTES);

    let text = page_text("log.md");
    assert!(text.contains(std::str::from_utf8(&log::LOG_MAGIC).unwrap()));
    assert!(text.contains(&format!("at most {}", log::FRAME_PAYLOAD_BYTES_MAX)));
    assert_eq!(rows(&text, "Versions").last().unwrap()[0], log::LOG_FORMAT_VERSION.to_string());
    let flags: Vec<_> = rows(&text, "A frame")
        .into_iter()
        .filter(|row| row.len() == 3)
        .map(|row| (row[0].clone(), row[1].clone()))
        .collect();
    let known = [("flag", "name".to_string())].into_iter().map(|(a, b)| (a.to_string(), b)).chain([
        (log::IS_FIRST.to_string(), "first".to_string()),
        (log::IS_LAST.to_string(), "last".to_string()),
        (log::IS_SYNCED.to_string(), "synced".to_string()),
    ]);
    assert_eq!(flags, known.collect::<Vec<_>>());
    let tags: Vec<_> = rows(&text, "A record")
        .into_iter()
        .filter(|row| row.len() == 3 && row[0].parse::<u16>().is_ok())
        .map(|row| (row[0].clone(), row[1].clone()))
        .collect();
    let known = RecordTag::ALL.iter().map(|tag| (tag.0.to_string(), tag.to_string()));
    assert_eq!(tags, known.collect::<Vec<_>>());
}

/// The bytes of a page's example: lines of an offset and up to sixteen bytes; what is left out is zero.
fn example(name: &str, length: usize) -> Vec<u8> {
    let text = page_text(name);
    let block = text.split("```hex\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let mut bytes = vec![0; length];
    for line in block.lines() {
        let (offset, hex) = line.split_once("  ").expect("an offset and bytes");
        let offset = usize::from_str_radix(offset, 16).unwrap();
        for (index, byte) in hex.split(' ').enumerate() {
            bytes[offset + index] = u8::from_str_radix(byte, 16).unwrap();
        }
    }
    bytes
}

#[test]
fn the_example_is_a_database() {
    let file = example("file.md", 20480);
    let disk = CrashingFileSystem::new();
    disk.put(Path::new(support::PATH), file.clone());
    let (store, recovery) = Store::open(Arc::new(disk), Path::new(support::PATH), Options::default()).unwrap();
    assert_eq!((recovery.root, recovery.notes.len(), recovery.commit.0), (Some(PageId(2)), 0, 1));
    assert_eq!(*store.pin(PageId(1)).unwrap(), *b"compressed columns");
    assert_eq!(*store.pin(PageId(2)).unwrap(), *b"catalog");
    store.check(&mut |error| panic!("{error}")).unwrap();
    // The other pages show parts of the same file.
    assert_eq!(example("page.md", 20480)[0x2000..0x3000], file[0x2000..0x3000]);
    assert_eq!(example("page-map.md", 20480)[0x4000..], file[0x4000..]);
}

/// Put beside the file as it was when the log was written, the example log brings page and record back.
#[test]
fn the_example_is_a_log() {
    let mut file = example("file.md", 20480);
    for start in [0, UNIT_BYTES] {
        // Back to checkpoint 0: no map, no root, nothing committed, one unit of pages written and not yet named, log
        // needed.
        file[start + header::CHECKPOINT_AT..start + header::ZERO_AT].fill(0);
        file[start + header::NEXT_PAGE_AT] = 1;
        file[start + header::FILE_UNITS_AT] = 2;
        let checksum = crc32c::crc32c(&file[start..start + header::CHECKSUM_AT]);
        file[start + header::CHECKSUM_AT..start + UNIT_BYTES].copy_from_slice(&checksum.to_le_bytes());
    }
    let disk = CrashingFileSystem::new();
    disk.put(Path::new(support::PATH), file);
    disk.put(Path::new("shop.sinter-log.0"), example("log.md", 152));
    assert!(disk.exists(Path::new("shop.sinter-log.0")).unwrap());
    let (store, recovery) = Store::open(Arc::new(disk), Path::new(support::PATH), Options::default()).unwrap();
    assert_eq!(recovery.notes.len(), 0);
    let transactions: Vec<_> = recovery.transactions.map(|transaction| transaction.unwrap()).collect();
    assert_eq!(transactions.len(), 1);
    assert_eq!(transactions[0].records[0].tag, RecordTag::ROW_GROUPS_ATTACHED);
    assert_eq!(*store.pin(PageId(1)).unwrap(), *b"compressed columns");
}
