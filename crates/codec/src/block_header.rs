//! The front of a block: what it is, how long, and its statistics, of which only those present take room.
//!
//! ```text
//! +---------+----------+-------+----------+-------------+------------+----------+------------+
//! | version | physical | flags | byte_len | value_count | statistics | validity | value node |
//! |   u8    |    u8    |  u16  |   u32    |     u32     |    ...     |   ...    |    ...     |
//! +---------+----------+-------+----------+-------------+------------+----------+------------+
//! ```
//!
//! The layout is in docs/format/block.md; a test holds the page and the constants here together.

use crate::fixed::Fixed;
use crate::node::{Cursor, VALUE_COUNT_MAX};
use crate::validity::ValidityKind;
use crate::varint::{read_varint, unzigzag, write_varint, zigzag};
use crate::{BlockStats, Error, Physical, Result, Scalar};

pub(crate) const VERSION_AT: usize = 0;
pub(crate) const PHYSICAL_AT: usize = VERSION_AT + 1;
pub(crate) const FLAGS_AT: usize = PHYSICAL_AT + 1;
pub(crate) const BYTE_LEN_AT: usize = FLAGS_AT + 2;
pub(crate) const VALUE_COUNT_AT: usize = BYTE_LEN_AT + 4;
pub(crate) const STATISTICS_AT: usize = VALUE_COUNT_AT + 4;

/// First byte of a block: the mark 0xB and the version 1.
pub(crate) const VERSION: u8 = 0xb1;

pub(crate) const HAS_MIN: u16 = 1 << 0;
pub(crate) const HAS_MAX: u16 = 1 << 1;
pub(crate) const MAX_IS_MIN: u16 = 1 << 2;
pub(crate) const BOUNDS_EXACT: u16 = 1 << 3;
pub(crate) const HAS_NAN: u16 = 1 << 4;
pub(crate) const HAS_SUM: u16 = 1 << 5;
pub(crate) const SORTED: u16 = 1 << 6;
pub(crate) const VALIDITY_SHIFT: u32 = 7;
const FLAGS_KNOWN: u16 = (1 << 9) - 1;

/// A header as read: statistics, and where the rest begins.
#[derive(Debug)]
pub(crate) struct BlockHeader {
    pub(crate) physical: Physical,
    pub(crate) byte_len: usize,
    pub(crate) validity: ValidityKind,
    pub(crate) stats: BlockStats,
    /// Bytes of header and statistics.
    pub(crate) header_bytes: usize,
}

/// Appends header and statistics. The block's length is filled in by [`finish`].
pub(crate) fn write(physical: Physical, validity: ValidityKind, stats: &BlockStats, out: &mut Vec<u8>) {
    let same = stats.max == stats.min;
    let mut flags = (validity as u16) << VALIDITY_SHIFT;
    for (flag, set) in [
        (HAS_MIN, !stats.min.is_null()),
        (HAS_MAX, !stats.max.is_null() && !same),
        (MAX_IS_MIN, !stats.max.is_null() && same),
        (BOUNDS_EXACT, stats.bounds_exact),
        (HAS_NAN, stats.has_nan),
        (HAS_SUM, stats.sum.is_some()),
        (SORTED, stats.sorted),
    ] {
        flags |= if set { flag } else { 0 };
    }
    out.push(VERSION);
    out.push(physical as u8);
    out.extend_from_slice(&flags.to_le_bytes());
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&(stats.value_count as u32).to_le_bytes());
    if validity.is_mixed() {
        write_varint(stats.null_count as u128, out);
    }
    if flags & HAS_MIN != 0 {
        write_bound(&stats.min, physical, out);
    }
    if flags & HAS_MAX != 0 {
        write_bound(&stats.max, physical, out);
    }
    if let Some(sum) = stats.sum {
        write_varint(zigzag(sum), out);
    }
    write_varint(stats.distinct_estimate as u128, out);
    if physical == Physical::Bytes {
        write_varint(stats.plain_bytes as u128, out);
    }
}

/// Fills in the length of the block that begins at `start` and ends with `out`.
///
/// # Panics
/// When it passes 4 GiB: what is encoded is bounded before.
pub(crate) fn finish(start: usize, out: &mut [u8]) {
    let byte_len = u32::try_from(out.len() - start).expect("a block holds less than 4 GiB");
    out[start + BYTE_LEN_AT..start + VALUE_COUNT_AT].copy_from_slice(&byte_len.to_le_bytes());
}

/// Reads and checks header and statistics.
pub(crate) fn read(bytes: &[u8]) -> Result<BlockHeader> {
    let mut cursor = Cursor { place: "block header", bytes, level: 0 };
    let version = cursor.u8("version")?;
    if version != VERSION {
        return Err(cursor.damaged(format!("it begins with {version:#04x}, a block with {VERSION:#04x}")));
    }
    let tag = cursor.u8("physical type")?;
    let physical = Physical::from_tag(tag).ok_or_else(|| cursor.damaged(format!("there is no physical type {tag}")))?;
    let flags = u16::read(cursor.take(2, "flags")?);
    if flags & !FLAGS_KNOWN != 0 {
        return Err(cursor.damaged(format!("flags {flags:#06x} include unknown ones, known are {FLAGS_KNOWN:#06x}")));
    }
    let byte_len = cursor.u32("length")? as usize;
    if byte_len > bytes.len() || byte_len < STATISTICS_AT {
        return Err(cursor.damaged(format!("it claims {byte_len} bytes, {} are there", bytes.len())));
    }
    cursor.bytes = &cursor.bytes[..byte_len - BYTE_LEN_AT - 4];
    let value_count = cursor.u32("value count")? as usize;
    if value_count > VALUE_COUNT_MAX {
        return Err(cursor.damaged(format!("it claims {value_count} values, at most {VALUE_COUNT_MAX} are possible")));
    }
    let validity = ValidityKind::from_bits(flags >> VALIDITY_SHIFT);
    let mut stats = BlockStats { value_count, ..BlockStats::default() };
    stats.null_count = match validity {
        ValidityKind::AllPresent => 0,
        ValidityKind::AllNull => value_count,
        ValidityKind::Bitmap | ValidityKind::Flips => count(&mut cursor, "null count", value_count)?,
    };
    if flags & HAS_MIN != 0 {
        stats.min = read_bound(&mut cursor, physical)?;
    }
    if flags & HAS_MAX != 0 {
        stats.max = read_bound(&mut cursor, physical)?;
    } else if flags & MAX_IS_MIN != 0 {
        stats.max = stats.min.clone();
    }
    if flags & HAS_SUM != 0 {
        stats.sum = Some(unzigzag(read_varint(&mut cursor, "sum")?));
    }
    stats.bounds_exact = flags & BOUNDS_EXACT != 0;
    stats.has_nan = flags & HAS_NAN != 0;
    stats.sorted = flags & SORTED != 0;
    stats.distinct_estimate = count(&mut cursor, "distinct estimate", value_count)?;
    stats.plain_bytes = match physical.value_bytes() {
        Some(bytes) => bytes * value_count,
        None => count(&mut cursor, "plain size", usize::MAX)?,
    };
    let header_bytes = byte_len - cursor.bytes.len();
    Ok(BlockHeader { physical, byte_len, validity, stats, header_bytes })
}

fn count(cursor: &mut Cursor<'_>, what: &str, limit: usize) -> Result<usize> {
    let found = read_varint(cursor, what)?;
    match usize::try_from(found) {
        Ok(count) if count <= limit => Ok(count),
        _ => Err(cursor.damaged(format!("{what} is {found}, at most {limit} is possible"))),
    }
}

fn write_bound(bound: &Scalar, physical: Physical, out: &mut Vec<u8>) {
    match bound {
        Scalar::Null => {}
        Scalar::Int(value) => out.extend_from_slice(&value.to_le_bytes()[..physical.value_bytes().unwrap_or(16)]),
        Scalar::Float(value) if physical == Physical::F32 => (*value as f32).write(out),
        Scalar::Float(value) => value.write(out),
        Scalar::Bytes(bytes) => {
            out.push(bytes.len() as u8);
            out.extend_from_slice(bytes);
        }
    }
}

fn read_bound(cursor: &mut Cursor<'_>, physical: Physical) -> Result<Scalar> {
    let Some(bytes) = physical.value_bytes() else {
        let len = usize::from(cursor.u8("bound")?);
        if len > BlockStats::BOUND_BYTES {
            let what = format!("a bound has {len} bytes, at most {} are possible", BlockStats::BOUND_BYTES);
            return Err(cursor.damaged(what));
        }
        return Ok(Scalar::Bytes(cursor.take(len, "bound")?.to_vec()));
    };
    let plain = cursor.take(bytes, "bound")?;
    Ok(match physical {
        Physical::F32 => Scalar::Float(f64::from(f32::read(plain))),
        Physical::F64 => Scalar::Float(f64::read(plain)),
        _ => Scalar::Int(sign_extended(plain, physical)),
    })
}

fn sign_extended(plain: &[u8], physical: Physical) -> i128 {
    let mut wide = [0; 16];
    wide[..plain.len()].copy_from_slice(plain);
    let unused = 128 - 8 * plain.len() as u32;
    let value = i128::from_le_bytes(wide);
    let unsigned = matches!(physical, Physical::U8 | Physical::U16 | Physical::U32 | Physical::U64);
    if unsigned { value } else { value << unused >> unused }
}

/// A block cannot be this if its parts disagree about their count.
pub(crate) fn expect_count(place: &'static str, found: usize, expected: usize) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::damaged(place, format!("it holds {found} values, not {expected}")))
}
