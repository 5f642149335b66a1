//! Where a page is: the 16 bytes that the page map holds for it. docs/format/page-map.md.
//!
//! ```text
//!  0               6      8         12        16
//!  | place (units) | kind | bytes   | crc32c  |       all zero: no such page
//! ```

use crate::ids::{Extent, UNIT_BYTES, units_for};
use crate::page_kind::PageKind;

/// Offset of the first unit, 48 bits.
pub const PLACE_AT: usize = 0;
/// Offset of the page's kind, `u16`.
pub const KIND_AT: usize = PLACE_AT + 6;
/// Offset of the size in bytes, page header included, padding excluded, `u32`.
pub const BYTES_AT: usize = KIND_AT + 2;
/// Offset of the checksum, `u32`.
pub const CHECKSUM_AT: usize = BYTES_AT + 4;
/// Size of an entry.
pub const ENTRY_BYTES: usize = CHECKSUM_AT + 4;
const _: () = assert!(ENTRY_BYTES == 16);

const PLACE_BITS: u32 = 48;

/// Where a page is, what it holds and the checksum it must have. Kept in memory as tightly as on disk: there is one for
/// every page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PageEntry {
    place_and_kind: u64,
    pub(crate) bytes: u32,
    pub(crate) checksum: u32,
}

impl PageEntry {
    /// What stands where there is no page.
    pub(crate) const ABSENT: PageEntry = PageEntry { place_and_kind: 0, bytes: 0, checksum: 0 };

    pub(crate) fn new(place: u64, kind: PageKind, bytes: u32, checksum: u32) -> PageEntry {
        debug_assert!(place > 0 && place < 1 << PLACE_BITS);
        PageEntry { place_and_kind: place | u64::from(kind.0) << PLACE_BITS, bytes, checksum }
    }

    pub(crate) fn is_absent(&self) -> bool {
        *self == PageEntry::ABSENT
    }

    pub(crate) fn kind(&self) -> PageKind {
        PageKind((self.place_and_kind >> PLACE_BITS) as u16)
    }

    /// The units that it occupies.
    pub(crate) fn extent(&self) -> Extent {
        Extent { place: self.place_and_kind & ((1 << PLACE_BITS) - 1), units: units_for(u64::from(self.bytes)) }
    }

    /// Where its first byte is in the file.
    pub(crate) fn offset(&self) -> u64 {
        self.extent().place * UNIT_BYTES as u64
    }

    pub(crate) fn encode(&self) -> [u8; ENTRY_BYTES] {
        let mut bytes = [0; ENTRY_BYTES];
        bytes[PLACE_AT..BYTES_AT].copy_from_slice(&self.place_and_kind.to_le_bytes());
        bytes[BYTES_AT..CHECKSUM_AT].copy_from_slice(&self.bytes.to_le_bytes());
        bytes[CHECKSUM_AT..].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; ENTRY_BYTES]) -> PageEntry {
        let [p0, p1, p2, p3, p4, p5, p6, p7, b0, b1, b2, b3, c0, c1, c2, c3] = *bytes;
        PageEntry {
            place_and_kind: u64::from_le_bytes([p0, p1, p2, p3, p4, p5, p6, p7]),
            bytes: u32::from_le_bytes([b0, b1, b2, b3]),
            checksum: u32::from_le_bytes([c0, c1, c2, c3]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out() {
        let entry = PageEntry::new((1 << 48) - 1, PageKind(0xABCD), 4097, 0xDEAD_BEEF);
        assert_eq!(PageEntry::decode(&entry.encode()), entry);
        assert_eq!(entry.kind(), PageKind(0xABCD));
        assert_eq!(entry.extent(), Extent { place: (1 << 48) - 1, units: 2 });
    }
}
