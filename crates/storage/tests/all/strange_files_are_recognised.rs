//! Files that are not ours, not whole, newer, or not together: each with the message that says so and the remedy.

use crate::support;
use std::path::Path;
use std::sync::Arc;

use crate::support::{PATH, closed, found, newest_log, open, unclosed};
use sinter_storage::testing::CrashingFileSystem;
use sinter_storage::{Error, FileSystem, Options, RecordTag, Store};
use uuid::Uuid;

fn refused(fs: &CrashingFileSystem) -> (Error, String) {
    let error = open(Arc::new(fs.clone()), Options::default()).expect_err("a strange file");
    let message = error.to_string();
    (error, message)
}

fn file_of(bytes: &[u8]) -> CrashingFileSystem {
    let fs = CrashingFileSystem::new();
    fs.put(Path::new(PATH), bytes.to_vec());
    fs
}

/// Changes a header field in both copies, and makes the checksums right again.
fn with_header_field(fs: &CrashingFileSystem, at: usize, field: &[u8]) -> CrashingFileSystem {
    let copy = fs.copy();
    let mut bytes = copy.bytes(Path::new(PATH));
    for start in [0, 4096] {
        bytes[start + at..start + at + field.len()].copy_from_slice(field);
        let checksum = crc32c::crc32c(&bytes[start..start + 4092]);
        bytes[start + 4092..start + 4096].copy_from_slice(&checksum.to_le_bytes());
    }
    copy.put(Path::new(PATH), bytes);
    copy
}

#[test]
fn foreign_files() {
    for (bytes, message) in [
        (
            &b"SQLite format 3\0 and so on"[..],
            "shop.sinter: not a SinterDB database: it is an SQLite database; check the path",
        ),
        (b"PAR1....", "shop.sinter: not a SinterDB database: it is a Parquet file; check the path"),
        (
            b"id,name\n1,anvil\n",
            "shop.sinter: not a SinterDB database: it starts with [69, 64, 2c, 6e, 61, 6d, 65, 0a], \
             a database with [53, 69, 6e, 74, 65, 72, 44, 42]; check the path",
        ),
    ] {
        let fs = file_of(bytes);
        assert_eq!(refused(&fs).1, message);
        assert_eq!(fs.bytes(Path::new(PATH)), bytes, "and not touched");
    }
}

#[test]
fn an_empty_file_becomes_a_database_and_so_does_one_whose_creation_was_cut_short() {
    let (whole, _) = closed(1, 0);
    let header = whole.bytes(Path::new(PATH))[..4096].to_vec();
    for bytes in [&b""[..], &[0; 8192], &header[..3], &header[..50], &header[..4096]] {
        found(&file_of(bytes)).unwrap();
    }
}

#[test]
fn newer_versions_and_unknown_features() {
    let (fs, _) = closed(1, 30);
    let newer = with_header_field(&fs, 8, &7u32.to_le_bytes());
    assert_eq!(
        refused(&newer).1,
        "shop.sinter: has format version 7, this SinterDB reads up to 1; use a newer SinterDB"
    );
    let features = with_header_field(&fs, 20, &0x10u32.to_le_bytes());
    assert_eq!(
        refused(&features).1,
        "shop.sinter: uses features 0x10 that this SinterDB does not know; use a newer SinterDB"
    );
    let ignorable = with_header_field(&fs, 16, &0x10u32.to_le_bytes());
    found(&ignorable).unwrap();
}

#[test]
fn a_truncated_file() {
    let (fs, _) = closed(1, 60);
    let bytes = fs.bytes(Path::new(PATH));
    for length in [8192, 8193, bytes.len() / 2, bytes.len() - 1] {
        let (error, message) = refused(&file_of(&bytes[..length]));
        assert!(matches!(error, Error::Truncated { .. }), "{message}");
        assert!(message.contains(&format!("truncated: {length} bytes, but checkpoint")), "{message}");
    }
    for length in [4096, 8191] {
        assert!(refused(&file_of(&bytes[..length])).0.is_damage());
    }
}

#[test]
fn a_missing_log() {
    let (fs, _) = unclosed(2, 60);
    let without = fs.copy();
    for path in fs.files().into_iter().filter(|path| *path != Path::new(PATH)) {
        sinter_storage::FileSystem::remove(&without, &path).unwrap();
    }
    let (error, message) = refused(&without);
    assert!(matches!(error, Error::LogMissing { .. }), "{message}");
    assert!(message.contains("put it back beside the database, or restore a backup"), "{message}");
}

#[test]
fn a_log_of_another_database() {
    let (fs, _) = unclosed(2, 10);
    let (other, _) = unclosed(2, 10);
    let log = newest_log(&fs);
    fs.put(&log, other.bytes(&log));
    let (error, message) = refused(&fs);
    assert!(matches!(error, Error::LogForeign { .. }), "{message}");
    assert!(message.ends_with("put the right log in its place"), "{message}");
}

#[test]
fn a_log_that_was_renamed_to_stand_beside_another_database() {
    let fs = CrashingFileSystem::new();
    let [shop, other] = ["shop.sinter", "other.sinter"].map(Path::new);
    for (path, value) in [(shop, 1), (other, 2)] {
        let (store, _) = Store::open(Arc::new(fs.clone()), path, Options::default()).unwrap();
        store.commit(&[support::record(RecordTag::ROWS_INSERTED, 1, vec![value])], &[]).unwrap();
    }
    let [shop_log, other_log, aside] = ["shop.sinter-log.0", "other.sinter-log.0", "aside"].map(Path::new);
    fs.rename(shop_log, aside).unwrap();
    fs.rename(other_log, shop_log).unwrap();
    let uuid = |path: &Path| Uuid::from_slice(&fs.bytes(path)[24..40]).unwrap();
    let before: Vec<_> = fs.files().iter().map(|path| fs.bytes(path)).collect();
    let (error, message) = refused(&fs);
    assert!(matches!(error, Error::LogForeign { .. }), "{message}");
    assert_eq!(
        message,
        format!(
            "shop.sinter-log.0: belongs to database {}, not to {} beside it; put the right log in its place",
            uuid(other),
            uuid(shop)
        )
    );
    assert_eq!(fs.files().iter().map(|path| fs.bytes(path)).collect::<Vec<_>>(), before, "and not touched");
    // As the message says.
    fs.rename(aside, shop_log).unwrap();
    assert_eq!(found(&fs).unwrap().0.slots, [(1, vec![1])].into());
}

#[test]
fn a_log_of_a_later_state_beside_an_older_copy_of_the_file() {
    let (fs, _) = closed(4, 40);
    let backup = fs.bytes(Path::new(PATH));
    for _ in 0..3 {
        let (store, recovery) = open(Arc::new(fs.clone()), Options::default()).unwrap();
        let mut workload = support::Workload::new(9, support::Shelf::recover(&store, recovery).unwrap());
        workload.run(&store, 40).unwrap();
    }
    fs.put(Path::new(PATH), backup);
    let (error, message) = refused(&fs);
    assert!(matches!(error, Error::LogStray { .. } | Error::DamagedLog { .. }), "{message}");
}

#[test]
fn a_newer_log() {
    let (fs, _) = unclosed(2, 10);
    let log = newest_log(&fs);
    let mut bytes = fs.bytes(&log);
    bytes[8] = 9;
    let checksum = crc32c::crc32c(&bytes[..60]);
    bytes[60..64].copy_from_slice(&checksum.to_le_bytes());
    fs.put(&log, bytes);
    let message = refused(&fs).1;
    assert_eq!(
        message,
        format!("{}: has format version 9, this SinterDB reads up to 2; use a newer SinterDB", log.display())
    );
}

#[test]
fn no_file_to_read() {
    let options = Options { read_only: true, ..Options::default() };
    let missing = open(Arc::new(CrashingFileSystem::new()), options).unwrap_err();
    assert_eq!(missing.to_string(), "shop.sinter: there is no such database; opening it for writing would create it");
    assert!(matches!(open(Arc::new(file_of(b"")), options), Err(Error::NotADatabase { .. })));
}

/// Whatever the fields say, as long as the checksum is right: an error or a database, no panic, no endless loop, no
/// huge allocation.
#[test]
fn hostile_header_fields() {
    let (fs, _) = closed(6, 60);
    for at in 8..106 {
        for value in [0x00, 0x01, 0x7F, 0x80, 0xFF] {
            let hostile = with_header_field(&fs, at, &[value]);
            let _ = found(&hostile);
        }
        let _ = found(&with_header_field(&fs, at, &[0xFF; 4]));
    }
}

/// The same for the log: frames whose checksums are right and whose contents are not.
#[test]
fn hostile_frames() {
    let (fs, _) = unclosed(2, 12);
    let log = newest_log(&fs);
    let header = fs.bytes(&log)[..64].to_vec();
    let start_commit = u64::from_le_bytes(header[48 - 8..48].try_into().unwrap());
    let previous = u32::from_le_bytes(header[60..64].try_into().unwrap());
    let frame = |length: u32, flags: u32, payload: &[u8]| {
        let mut bytes = length.to_le_bytes().to_vec();
        bytes.extend([0; 4]);
        bytes.extend(previous.to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        bytes.extend((start_commit + 1).to_le_bytes());
        bytes.extend(payload);
        // The first frame of this very log.
        let parts = [&header[..60], &64u64.to_le_bytes(), &bytes[..4], &bytes[8..]];
        let checksum = crc32c::crc32c(&parts.concat());
        bytes[4..8].copy_from_slice(&checksum.to_le_bytes());
        bytes
    };
    let mut reference = [0u8; 40];
    reference[0] = 1;
    reference[4] = 24;
    for (what, bytes) in [
        ("a length beyond the file", frame(u32::MAX, 3, b"")),
        ("a record of 4 GiB", frame(16, 3, &[16, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0])),
        ("unknown flags", frame(0, 0xFF, b"")),
        ("no end", frame(0, 1, b"")),
        ("nonsense in a record", frame(16, 3, &[255; 16])),
        ("a page reference to nowhere", frame(40, 3, &reference)),
        ("a page reference beyond the file", {
            reference[16] = 99;
            reference[24..40].copy_from_slice(&[0xFF; 16]);
            frame(40, 3, &reference)
        }),
    ] {
        fs.put(&log, [&header[..], &bytes].concat());
        match found(&fs) {
            Ok((_, notes)) => assert!(notes[0].contains("were dropped"), "{what}: {notes:?}"),
            Err(error) => assert!(matches!(error, Error::DamagedLog { .. }), "{what}: {error}"),
        }
    }
}
