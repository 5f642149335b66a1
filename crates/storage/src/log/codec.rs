//! Records as bytes: what the frames of a commit carry, one record after the other.
//!
//! ```text
//!  0     2      4               8        16
//!  | tag | zero | payload bytes | object | payload ...
//! ```

use crate::ids::{ObjectId, PageId};
use crate::map::{ENTRY_BYTES, PageEntry};
use crate::page_kind::PageKind;
use crate::record::{Record, RecordTag};

/// Offset of the tag, `u16`; two bytes that are zero follow.
pub const TAG_AT: usize = 0;
/// Offset of the payload's size in bytes, `u32`.
pub const PAYLOAD_BYTES_AT: usize = TAG_AT + 4;
/// Offset of the object id, `u64`.
pub const OBJECT_AT: usize = PAYLOAD_BYTES_AT + 4;
/// Size of a record's header.
pub const RECORD_HEADER_BYTES: usize = OBJECT_AT + 8;
const _: () = assert!(RECORD_HEADER_BYTES == 16);

/// A record that is being written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordRef<'a> {
    pub(crate) tag: RecordTag,
    pub(crate) object: ObjectId,
    pub(crate) payload: &'a [u8],
}

impl RecordRef<'_> {
    pub(crate) fn bytes(&self) -> u64 {
        RECORD_HEADER_BYTES as u64 + self.payload.len() as u64
    }

    pub(crate) fn header(&self) -> [u8; RECORD_HEADER_BYTES] {
        let mut bytes = [0; RECORD_HEADER_BYTES];
        bytes[TAG_AT..TAG_AT + 2].copy_from_slice(&self.tag.0.to_le_bytes());
        bytes[PAYLOAD_BYTES_AT..OBJECT_AT].copy_from_slice(&(self.payload.len() as u32).to_le_bytes());
        bytes[OBJECT_AT..].copy_from_slice(&self.object.0.to_le_bytes());
        bytes
    }
}

/// Takes all records that are whole from the front of `bytes`; what is left is the start of the next.
pub(super) fn take_records(bytes: &mut Vec<u8>, records: &mut Vec<Record>) -> Result<(), String> {
    let mut at = 0;
    while let Some((header, rest)) = bytes[at..].split_first_chunk::<RECORD_HEADER_BYTES>() {
        let [t0, t1, z0, z1, l0, l1, l2, l3, object @ ..] = *header;
        if [z0, z1] != [0, 0] {
            return Err(format!("a record of this commit has {:02x?} where zeros belong", [z0, z1]));
        }
        let payload_bytes = u32::from_le_bytes([l0, l1, l2, l3]) as usize;
        let Some(payload) = rest.get(..payload_bytes) else { break };
        records.push(Record {
            tag: RecordTag(u16::from_le_bytes([t0, t1])),
            object: ObjectId(u64::from_le_bytes(object)),
            payload: payload.to_vec(),
        });
        at += RECORD_HEADER_BYTES + payload_bytes;
    }
    bytes.drain(..at);
    Ok(())
}

/// The payload of a page-reference record: page id `u64`, then the page's map entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PageReference {
    pub(crate) page: PageId,
    pub(crate) entry: PageEntry,
}

impl PageReference {
    pub(crate) fn encode(&self) -> [u8; 8 + ENTRY_BYTES] {
        let mut bytes = [0; 8 + ENTRY_BYTES];
        bytes[..8].copy_from_slice(&self.page.0.to_le_bytes());
        bytes[8..].copy_from_slice(&self.entry.encode());
        bytes
    }

    /// `None` where these bytes cannot be a page reference.
    pub(crate) fn decode(bytes: &[u8]) -> Option<PageReference> {
        let (page, entry) = bytes.split_first_chunk::<8>()?;
        let page = PageId(u64::from_le_bytes(*page));
        let entry = PageEntry::decode(entry.try_into().ok()?);
        let sound = page.0 > 0
            && page <= PageId::MAX
            && entry.kind() != PageKind::MAP_NODE
            && entry.extent().place > 0
            && entry.bytes > 0;
        sound.then_some(PageReference { page, entry })
    }
}
