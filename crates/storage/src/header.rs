//! The file header: the only bytes that are changed in place. docs/format/file.md.
//!
//! There are two copies, a unit each. A checkpoint overwrites the older one after everything that it names is durable,
//! so at any moment one copy is whole. The checksum stands at the end of the unit and covers all of it.

use uuid::Uuid;

use crate::ids::{CheckpointNumber, CommitNumber, PageId, UNIT_BYTES};
use crate::map::{DEPTH_MAX, ENTRY_BYTES, PageEntry};

/// First bytes of a database.
pub const MAGIC: [u8; 8] = *b"SinterDB";
/// The newest format version this build reads and the one it writes.
pub const FORMAT_VERSION: u32 = 1;
/// Incompatible features that this build understands.
pub const INCOMPATIBLE_FEATURES_KNOWN: u32 = 0;

/// Offset of the format version, `u32`.
pub const FORMAT_VERSION_AT: usize = MAGIC.len();
/// Offset of the unit's size in bytes, `u32`.
pub const UNIT_BYTES_AT: usize = FORMAT_VERSION_AT + 4;
/// Offset of the features that a reader may ignore, `u32`.
pub const COMPATIBLE_FEATURES_AT: usize = UNIT_BYTES_AT + 4;
/// Offset of the features that a reader must know, `u32`.
pub const INCOMPATIBLE_FEATURES_AT: usize = COMPATIBLE_FEATURES_AT + 4;
/// Offset of the database's UUID, 16 bytes.
pub const DATABASE_AT: usize = INCOMPATIBLE_FEATURES_AT + 4;
/// Offset of the checkpoint's number, `u64`.
pub const CHECKPOINT_AT: usize = DATABASE_AT + 16;
/// Offset of the number of the first log to replay, `u64`.
pub const LOG_AT: usize = CHECKPOINT_AT + 8;
/// Offset of the last commit that the checkpoint holds, `u64`.
pub const COMMIT_AT: usize = LOG_AT + 8;
/// Offset of the next page id to give, `u64`.
pub const NEXT_PAGE_AT: usize = COMMIT_AT + 8;
/// Offset of the catalog's root page id, `u64`.
pub const CATALOG_ROOT_AT: usize = NEXT_PAGE_AT + 8;
/// Offset of the length in units that the file has at least, `u64`.
pub const FILE_UNITS_AT: usize = CATALOG_ROOT_AT + 8;
/// Offset of the entry of the page map's root, 16 bytes.
pub const MAP_ROOT_AT: usize = FILE_UNITS_AT + 8;
/// Offset of the page map's depth, `u8`.
pub const MAP_DEPTH_AT: usize = MAP_ROOT_AT + ENTRY_BYTES;
/// Offset of the state, `u8`: 0 open (the log is needed), 1 closed (there is no log).
pub const STATE_AT: usize = MAP_DEPTH_AT + 1;
/// Offset of bytes that are zero, up to the checksum.
pub const ZERO_AT: usize = STATE_AT + 1;
/// Offset of the checksum, `u32`.
pub const CHECKSUM_AT: usize = UNIT_BYTES - 4;
/// Copies of the header; they are the file's first units.
pub const COPIES: usize = 2;
const _: () = assert!(ZERO_AT == 106 && CHECKSUM_AT == 4092);

/// One copy, decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) compatible_features: u32,
    pub(crate) database: Uuid,
    pub(crate) checkpoint: CheckpointNumber,
    /// The first log to replay. The same number, so far: a log starts at its checkpoint's cut.
    pub(crate) log: CheckpointNumber,
    pub(crate) commit: CommitNumber,
    pub(crate) next_page: PageId,
    pub(crate) catalog_root: Option<PageId>,
    pub(crate) file_units: u64,
    pub(crate) map_root: PageEntry,
    pub(crate) map_depth: u8,
    pub(crate) is_closed: bool,
}

/// Why a copy cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// It does not start with our magic.
    Foreign,
    /// It does, but is not whole.
    Damaged(String),
    /// It is whole, and of a version above ours.
    Newer(u32),
    /// It is whole, and has incompatible features above ours.
    Features(u32),
}

impl Header {
    /// The header of a database that holds nothing yet.
    pub(crate) fn new(database: Uuid) -> Header {
        Header {
            compatible_features: 0,
            database,
            checkpoint: CheckpointNumber(0),
            log: CheckpointNumber(0),
            commit: CommitNumber(0),
            next_page: PageId(1),
            catalog_root: None,
            file_units: COPIES as u64,
            map_root: PageEntry::ABSENT,
            map_depth: 0,
            is_closed: true,
        }
    }

    pub(crate) fn encode(&self) -> [u8; UNIT_BYTES] {
        let mut bytes = [0; UNIT_BYTES];
        let mut put = |at: usize, field: &[u8]| bytes[at..at + field.len()].copy_from_slice(field);
        put(0, &MAGIC);
        put(FORMAT_VERSION_AT, &FORMAT_VERSION.to_le_bytes());
        put(UNIT_BYTES_AT, &(UNIT_BYTES as u32).to_le_bytes());
        put(COMPATIBLE_FEATURES_AT, &self.compatible_features.to_le_bytes());
        put(DATABASE_AT, self.database.as_bytes());
        put(CHECKPOINT_AT, &self.checkpoint.0.to_le_bytes());
        put(LOG_AT, &self.log.0.to_le_bytes());
        put(COMMIT_AT, &self.commit.0.to_le_bytes());
        put(NEXT_PAGE_AT, &self.next_page.0.to_le_bytes());
        put(CATALOG_ROOT_AT, &self.catalog_root.map_or(0, |page| page.0).to_le_bytes());
        put(FILE_UNITS_AT, &self.file_units.to_le_bytes());
        put(MAP_ROOT_AT, &self.map_root.encode());
        put(MAP_DEPTH_AT, &[self.map_depth, u8::from(self.is_closed)]);
        let checksum = crc32c::crc32c(&bytes[..CHECKSUM_AT]);
        bytes[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; UNIT_BYTES]) -> Result<Header, Unusable> {
        if bytes[..FORMAT_VERSION_AT] != MAGIC {
            return Err(Unusable::Foreign);
        }
        let (computed, stored) = (crc32c::crc32c(&bytes[..CHECKSUM_AT]), u32_at(bytes, CHECKSUM_AT));
        if computed != stored {
            return Err(Unusable::Damaged(format!("checksum {stored:08x}, of the bytes {computed:08x}")));
        }
        let version = u32_at(bytes, FORMAT_VERSION_AT);
        if version > FORMAT_VERSION {
            return Err(Unusable::Newer(version));
        }
        let unknown = u32_at(bytes, INCOMPATIBLE_FEATURES_AT) & !INCOMPATIBLE_FEATURES_KNOWN;
        if unknown != 0 {
            return Err(Unusable::Features(unknown));
        }
        let mut database = [0; 16];
        database.copy_from_slice(&bytes[DATABASE_AT..CHECKPOINT_AT]);
        let mut map_root = [0; ENTRY_BYTES];
        map_root.copy_from_slice(&bytes[MAP_ROOT_AT..MAP_DEPTH_AT]);
        let catalog_root = u64_at(bytes, CATALOG_ROOT_AT);
        let header = Header {
            compatible_features: u32_at(bytes, COMPATIBLE_FEATURES_AT),
            database: Uuid::from_bytes(database),
            checkpoint: CheckpointNumber(u64_at(bytes, CHECKPOINT_AT)),
            log: CheckpointNumber(u64_at(bytes, LOG_AT)),
            commit: CommitNumber(u64_at(bytes, COMMIT_AT)),
            next_page: PageId(u64_at(bytes, NEXT_PAGE_AT)),
            catalog_root: (catalog_root != 0).then_some(PageId(catalog_root)),
            file_units: u64_at(bytes, FILE_UNITS_AT),
            map_root: PageEntry::decode(&map_root),
            map_depth: bytes[MAP_DEPTH_AT],
            is_closed: bytes[STATE_AT] == 1,
        };
        // The checksum is right, so these would be mistakes of the writer; the reader depends on them all the same.
        let sound = u32_at(bytes, UNIT_BYTES_AT) as usize == UNIT_BYTES
            && header.map_depth <= DEPTH_MAX
            && bytes[STATE_AT] <= 1
            && header.file_units >= COPIES as u64
            && header.file_units < 1 << 48
            && header.next_page <= PageId::MAX
            && header.checkpoint.0 < u64::MAX / 2
            && header.log == header.checkpoint;
        if sound { Ok(header) } else { Err(Unusable::Damaged(format!("fields that cannot be: {header:?}"))) }
    }
}

fn u32_at(bytes: &[u8; UNIT_BYTES], at: usize) -> u32 {
    let mut field = [0; 4];
    field.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(field)
}

fn u64_at(bytes: &[u8; UNIT_BYTES], at: usize) -> u64 {
    let mut field = [0; 8];
    field.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(field)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page_kind::PageKind;

    #[test]
    fn every_changed_byte_is_found() {
        let header = Header {
            checkpoint: CheckpointNumber(7),
            log: CheckpointNumber(7),
            commit: CommitNumber(99),
            catalog_root: Some(PageId(3)),
            map_root: PageEntry::new(5, PageKind::MAP_NODE, 4096, 0xDEAD_BEEF),
            map_depth: 1,
            is_closed: false,
            ..Header::new(Uuid::from_u128(0x1234))
        };
        let mut bytes = header.encode();
        assert_eq!(Header::decode(&bytes), Ok(header));
        for at in 0..bytes.len() {
            bytes[at] ^= 1;
            assert!(matches!(Header::decode(&bytes), Err(Unusable::Foreign | Unusable::Damaged(_))), "byte {at}");
            bytes[at] ^= 1;
        }
    }
}
