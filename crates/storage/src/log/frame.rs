//! A frame: the piece in which the log is written and checked.
//!
//! ```text
//!  0        4          8           12      16       24
//!  | length | checksum | previous  | flags | commit | payload ...
//! ```
//!
//! The checksum covers the length and everything after the checksum, the predecessor's checksum among it. So frames
//! form a chain from the log's header; yet each can be checked by itself, which tells a torn tail from damage in the
//! middle.
//!
//! It begins with the frame's [`Position`], which the frame does not hold. Commits carry whatever users store, the bytes
//! of logs among it: a whole frame that is part of a value must not look like one of the log.

use crate::ids::CommitNumber;

/// Offset of the payload's size in bytes, `u32`.
pub const LENGTH_AT: usize = 0;
/// Offset of the checksum, `u32`.
pub const CHECKSUM_AT: usize = LENGTH_AT + 4;
/// Offset of the checksum of the frame before, or of the log's header, `u32`.
pub const PREVIOUS_AT: usize = CHECKSUM_AT + 4;
/// Offset of the flags, `u32`.
pub const FLAGS_AT: usize = PREVIOUS_AT + 4;
/// Offset of the commit's number, `u64`.
pub const COMMIT_AT: usize = FLAGS_AT + 4;
/// Size of a frame's header.
pub const FRAME_HEADER_BYTES: usize = COMMIT_AT + 8;
const _: () = assert!(FRAME_HEADER_BYTES == 24);

/// The most payload in a frame: what a reader has to hold to check it. Longer commits have several frames.
pub const FRAME_PAYLOAD_BYTES_MAX: usize = 1 << 20;

/// Flag: the commit starts here.
pub const IS_FIRST: u32 = 1;
/// Flag: the commit ends here, and counts.
pub const IS_LAST: u32 = 2;
/// Flag: everything before this frame was durable when it was written. Only on first frames.
pub const IS_SYNCED: u32 = 4;
const FLAGS_KNOWN: u32 = IS_FIRST | IS_LAST | IS_SYNCED;

/// Where a frame stands: a part of its checksum. A copy of the frame, elsewhere in this log or in another one, fails it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    /// The checksum of the log's header. It covers a nonce, so that logs which are otherwise the same differ in it too.
    pub(crate) log: u32,
    /// Where in the log the frame starts.
    pub(crate) offset: u64,
}

impl Position {
    /// What the checksum of a frame continues: that of the log's header, and then the offset.
    ///
    /// A frame that is read with another seed than it was written with never has the right checksum: from there on a
    /// CRC maps different states to different states. Two offsets in a log of up to 4 GiB always make different seeds,
    /// two logs in all but one of 2^32 cases.
    fn seed(self) -> u32 {
        crc32c::crc32c_append(self.log, &self.offset.to_le_bytes())
    }
}

/// A frame's header, decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) length: u32,
    pub(crate) checksum: u32,
    pub(crate) previous: u32,
    pub(crate) flags: u32,
    pub(crate) commit: CommitNumber,
}

impl Frame {
    /// The header of a frame with this payload.
    pub(crate) fn new(position: Position, payload: &[u8], previous: u32, flags: u32, commit: CommitNumber) -> Frame {
        let mut frame = Frame { length: payload.len() as u32, checksum: 0, previous, flags, commit };
        frame.checksum = frame.checksum_of(position, payload);
        frame
    }

    pub(crate) fn encode(&self) -> [u8; FRAME_HEADER_BYTES] {
        let mut bytes = [0; FRAME_HEADER_BYTES];
        bytes[LENGTH_AT..CHECKSUM_AT].copy_from_slice(&self.length.to_le_bytes());
        bytes[CHECKSUM_AT..PREVIOUS_AT].copy_from_slice(&self.checksum.to_le_bytes());
        bytes[PREVIOUS_AT..FLAGS_AT].copy_from_slice(&self.previous.to_le_bytes());
        bytes[FLAGS_AT..COMMIT_AT].copy_from_slice(&self.flags.to_le_bytes());
        bytes[COMMIT_AT..].copy_from_slice(&self.commit.0.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; FRAME_HEADER_BYTES]) -> Frame {
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|index| bytes[at + index]));
        Frame {
            length: u32_at(LENGTH_AT),
            checksum: u32_at(CHECKSUM_AT),
            previous: u32_at(PREVIOUS_AT),
            flags: u32_at(FLAGS_AT),
            commit: CommitNumber(u64::from_le_bytes(std::array::from_fn(|index| bytes[COMMIT_AT + index]))),
        }
    }

    /// The checksum that a frame with this header and payload must have at this position.
    pub(crate) fn checksum_of(&self, position: Position, payload: &[u8]) -> u32 {
        let bytes = self.encode();
        let length = crc32c::crc32c_append(position.seed(), &bytes[..CHECKSUM_AT]);
        let header = crc32c::crc32c_append(length, &bytes[PREVIOUS_AT..]);
        crc32c::crc32c_append(header, payload)
    }

    /// Whether a payload of this length and these flags can be, in a log with so many bytes after the header.
    pub(crate) fn is_plausible(&self, bytes_left: u64) -> bool {
        self.length as usize <= FRAME_PAYLOAD_BYTES_MAX
            && u64::from(self.length) <= bytes_left
            && self.flags & !FLAGS_KNOWN == 0
    }
}
