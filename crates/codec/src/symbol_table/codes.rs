//! Codes in bytes: one each with 8 bits, two in three bytes with 12.
//!
//! ```text
//! 12 bits:   byte 0      byte 1      byte 2
//!          [ a7 .. a0 ][ b3..b0 a11..a8 ][ b11 .. b4 ]
//! ```
//!
//! Codes of one string follow those of the string before without a gap, so a string may begin in the middle of a byte.
//! Beginning each at a whole byte would cost half a byte for every other string: 4 % on TPC-H's line item comments.

use super::Width;

/// Bytes that `code_count` codes take.
pub(crate) fn packed_bytes(width: Width, code_count: usize) -> usize {
    match width {
        Width::Narrow => code_count,
        Width::Wide => code_count + code_count.div_ceil(2),
    }
}

/// How many codes `bytes` have room for.
pub(crate) fn code_capacity(width: Width, bytes: usize) -> usize {
    match width {
        Width::Narrow => bytes,
        Width::Wide => bytes / 3 * 2 + usize::from(bytes % 3 == 2),
    }
}

/// Appends `codes`, packed. Spare bits at the end are zero.
pub(crate) fn pack(width: Width, codes: &[u16], out: &mut Vec<u8>) {
    out.reserve(packed_bytes(width, codes.len()));
    match width {
        Width::Narrow => out.extend(codes.iter().map(|&code| code as u8)),
        Width::Wide => {
            let (pairs, last) = codes.as_chunks::<2>();
            for &[a, b] in pairs {
                out.extend_from_slice(&[a as u8, (a >> 8) as u8 | (b << 4) as u8, (b >> 4) as u8]);
            }
            if let &[a] = last {
                out.extend_from_slice(&a.to_le_bytes());
            }
        }
    }
}

/// The code at `index`. For comparing; decoding reads several at once.
///
/// # Panics
/// When `index` is past [`code_capacity`].
#[inline]
pub(super) fn code_at(width: Width, packed: &[u8], index: usize) -> u16 {
    match width {
        Width::Narrow => u16::from(packed[index]),
        Width::Wide => {
            let first = index / 2 * 3 + index % 2;
            u16::from_le_bytes([packed[first], packed[first + 1]]) >> (index % 2 * 4) & 0xFFF
        }
    }
}
