//! A page's bytes: a header that says what it is, then the payload. docs/format/page.md.
//!
//! ```text
//!  0        4      6      8              16             24              28        32
//!  | magic  | kind | zero | page id      | commit       | payload bytes | crc32c  | payload ...
//! ```
//!
//! The checksum covers the header before it and the payload. The page map repeats it, so a whole but older version of
//! the same page is found out too.

use crate::ids::{CommitNumber, PageId};
use crate::page_kind::PageKind;

/// First bytes of every page: "SPAG".
pub const MAGIC: [u8; 4] = *b"SPAG";
/// Offset of the kind, `u16`.
pub const KIND_AT: usize = MAGIC.len();
/// Offset of two bytes that are zero.
pub const ZERO_AT: usize = KIND_AT + 2;
/// Offset of the page id, `u64`.
pub const PAGE_ID_AT: usize = ZERO_AT + 2;
/// Offset of the last commit before the page was written, `u64`.
pub const COMMIT_AT: usize = PAGE_ID_AT + 8;
/// Offset of the payload's size in bytes, `u32`.
pub const PAYLOAD_BYTES_AT: usize = COMMIT_AT + 8;
/// Offset of the checksum, `u32`.
pub const CHECKSUM_AT: usize = PAYLOAD_BYTES_AT + 4;
/// Size of the header; the payload follows.
pub const HEADER_BYTES: usize = CHECKSUM_AT + 4;
const _: () = assert!(HEADER_BYTES == 32);

/// The largest payload. Large enough for any chunk, small enough that a page can be held and checked in memory.
pub const PAYLOAD_BYTES_MAX: usize = (256 << 20) - HEADER_BYTES;

/// The header of a page with this payload, and the checksum in it.
pub(crate) fn header(page: PageId, kind: PageKind, commit: CommitNumber, payload: &[u8]) -> ([u8; HEADER_BYTES], u32) {
    let mut header = [0; HEADER_BYTES];
    header[..KIND_AT].copy_from_slice(&MAGIC);
    header[KIND_AT..ZERO_AT].copy_from_slice(&kind.0.to_le_bytes());
    header[PAGE_ID_AT..COMMIT_AT].copy_from_slice(&page.0.to_le_bytes());
    header[COMMIT_AT..PAYLOAD_BYTES_AT].copy_from_slice(&commit.0.to_le_bytes());
    header[PAYLOAD_BYTES_AT..CHECKSUM_AT].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&header[..CHECKSUM_AT]), payload);
    header[CHECKSUM_AT..].copy_from_slice(&checksum.to_le_bytes());
    (header, checksum)
}

/// Checks that `bytes` are the page that was asked for, whole. Says what is wrong if not.
pub(crate) fn verify(bytes: &[u8], page: PageId, kind: PageKind, checksum: u32) -> Result<(), String> {
    let Some((header, payload)) = bytes.split_at_checked(HEADER_BYTES) else {
        return Err(format!("{} bytes, a page has at least {HEADER_BYTES}", bytes.len()));
    };
    let u32_at = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    if header[..KIND_AT] != MAGIC {
        return Err(format!("starts with {:02x?}, a page starts with {MAGIC:02x?}", &header[..KIND_AT]));
    }
    let mut found_page = [0; 8];
    found_page.copy_from_slice(&header[PAGE_ID_AT..COMMIT_AT]);
    let found_page = u64::from_le_bytes(found_page);
    if found_page != page.0 {
        return Err(format!("is page {found_page}"));
    }
    let found_kind = PageKind(u16::from_le_bytes([header[KIND_AT], header[KIND_AT + 1]]));
    if found_kind != kind {
        return Err(format!("is of kind {found_kind}"));
    }
    if header[ZERO_AT..PAGE_ID_AT] != [0, 0] {
        return Err("bytes 6 and 7 are not zero".to_string());
    }
    if u32_at(PAYLOAD_BYTES_AT) as usize != payload.len() {
        return Err(format!("payload of {} bytes, the page map says {}", u32_at(PAYLOAD_BYTES_AT), payload.len()));
    }
    let computed = crc32c::crc32c_append(crc32c::crc32c(&header[..CHECKSUM_AT]), payload);
    if computed != u32_at(CHECKSUM_AT) || computed != checksum {
        let stored = u32_at(CHECKSUM_AT);
        return Err(format!(
            "checksum of the bytes {computed:08x}, of the page {stored:08x}, of the map {checksum:08x}"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_changed_byte_is_found() {
        let payload = b"the payload";
        let (header, checksum) = header(PageId(7), PageKind::CHUNK, CommitNumber(3), payload);
        let mut bytes = [&header[..], payload].concat();
        verify(&bytes, PageId(7), PageKind::CHUNK, checksum).unwrap();
        for at in 0..bytes.len() {
            bytes[at] ^= 0x10;
            verify(&bytes, PageId(7), PageKind::CHUNK, checksum).unwrap_err();
            bytes[at] ^= 0x10;
        }
        for cut in 0..bytes.len() {
            verify(&bytes[..cut], PageId(7), PageKind::CHUNK, checksum).unwrap_err();
        }
        assert_eq!(verify(&bytes, PageId(8), PageKind::CHUNK, checksum).unwrap_err(), "is page 7");
    }
}
