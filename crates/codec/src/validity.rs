//! Which rows of a block are present.
//!
//! Nothing is kept when all are or none is. Else a bitmap, or the rows where presence flips (beginning with present), as
//! a node of their own: runs of NULLs and single NULLs far apart both become few flips, and those compress as deltas.

use crate::encoder::{Role, write_values};
use crate::node::{Cursor, Opened};
use crate::scratch::Scratch;
use crate::values_mut::ValuesMut;
use crate::{Bitmap, Physical, Result, Values, ValuesBuf};
use std::ops::Range;
use std::sync::OnceLock;

/// How presence is kept: two bits of the block's flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum ValidityKind {
    AllPresent = 0,
    AllNull = 1,
    Bitmap = 2,
    Flips = 3,
}

impl ValidityKind {
    /// From the lowest two bits.
    pub(crate) fn from_bits(bits: u16) -> ValidityKind {
        match bits & 3 {
            0 => ValidityKind::AllPresent,
            1 => ValidityKind::AllNull,
            2 => ValidityKind::Bitmap,
            _ => ValidityKind::Flips,
        }
    }

    /// Some rows are present, some not.
    pub(crate) fn is_mixed(self) -> bool {
        matches!(self, ValidityKind::Bitmap | ValidityKind::Flips)
    }
}

/// The smallest form for this bitmap, and its section; `level` is that of its node.
pub(crate) fn encode(validity: Option<&Bitmap>, level: usize) -> (ValidityKind, Vec<u8>) {
    let Some(validity) = validity else {
        return (ValidityKind::AllPresent, Vec::new());
    };
    match validity.count_ones() {
        present if present == validity.len() => return (ValidityKind::AllPresent, Vec::new()),
        0 => return (ValidityKind::AllNull, Vec::new()),
        _ => {}
    }
    let bitmap_bytes = validity.len().div_ceil(8);
    // A flip takes a byte at best: beyond this many the bitmap wins without trying.
    if let Some(flips) = flips(validity, bitmap_bytes) {
        let mut section = Vec::new();
        write_values(Values::U32(&flips), Role::Counts, None, level, &mut section);
        if section.len() < bitmap_bytes {
            return (ValidityKind::Flips, section);
        }
    }
    let mut section: Vec<u8> = validity.words().iter().flat_map(|word| word.to_le_bytes()).collect();
    section.truncate(bitmap_bytes);
    (ValidityKind::Bitmap, section)
}

/// The rows where presence differs from the row before, which for row 0 is present; `None` when they are more than `limit`.
fn flips(validity: &Bitmap, limit: usize) -> Option<Vec<u32>> {
    let mut flips = Vec::new();
    let mut before = 1;
    for (index, &word) in validity.words().iter().enumerate() {
        let mut changes = word ^ (word << 1 | before);
        before = word >> 63;
        while changes != 0 {
            flips.push(index as u32 * 64 + changes.trailing_zeros());
            changes &= changes - 1;
        }
        if flips.len() > limit {
            return None;
        }
    }
    while flips.last().is_some_and(|&last| last as usize >= validity.len()) {
        flips.pop();
    }
    Some(flips)
}

/// Presence of a block's rows, readable by range.
#[derive(Debug)]
pub(crate) enum Validity<'a> {
    AllPresent,
    AllNull,
    Bitmap(&'a [u8]),
    Flips { node: Opened<'a>, rows: OnceLock<Vec<u32>> },
}

impl<'a> Validity<'a> {
    /// Takes the section from the front of `cursor`.
    pub(crate) fn open(kind: ValidityKind, value_count: usize, cursor: &mut Cursor<'a>) -> Result<Validity<'a>> {
        Ok(match kind {
            ValidityKind::AllPresent => Validity::AllPresent,
            ValidityKind::AllNull => Validity::AllNull,
            ValidityKind::Bitmap => Validity::Bitmap(cursor.take(value_count.div_ceil(8), "validity bitmap")?),
            ValidityKind::Flips => {
                let node = cursor.part()?;
                if node.physical != Physical::U32 || node.value_count > value_count {
                    let (count, physical) = (node.value_count, node.physical.name());
                    return Err(
                        cursor.damaged(format!("validity flips are {count} {physical} values for {value_count} rows"))
                    );
                }
                Validity::Flips { node, rows: OnceLock::new() }
            }
        })
    }

    /// Writes the presence of `range` over `out`; false when all are present.
    pub(crate) fn read(&self, range: Range<usize>, out: &mut Bitmap) -> Result<bool> {
        match self {
            Validity::AllPresent => return Ok(false),
            Validity::AllNull => out.reset(range.len(), false),
            Validity::Bitmap(bytes) => read_bitmap(bytes, range, out),
            Validity::Flips { node, rows } => read_flips(flip_rows(node, rows)?, range, out),
        }
        Ok(!out.all())
    }
}

fn read_bitmap(bytes: &[u8], range: Range<usize>, out: &mut Bitmap) {
    out.reset(0, false);
    let mut row = range.start;
    while row < range.end {
        let first = row / 8;
        let mut word = [0; 9];
        let available = (bytes.len() - first).min(9);
        word[..available].copy_from_slice(&bytes[first..first + available]);
        let low = u64::from_le_bytes([word[0], word[1], word[2], word[3], word[4], word[5], word[6], word[7]]);
        let shift = row % 8;
        let high = if shift == 0 { 0 } else { u64::from(word[8]) << (64 - shift) };
        let count = (range.end - row).min(64);
        let bits = low >> shift | high;
        out.push_word(if count == 64 { bits } else { bits & ((1 << count) - 1) }, count);
        row += count;
    }
}

fn flip_rows<'r>(node: &Opened<'_>, rows: &'r OnceLock<Vec<u32>>) -> Result<&'r [u32]> {
    if let Some(rows) = rows.get() {
        return Ok(rows);
    }
    let mut values = ValuesBuf::new(Physical::U32);
    let out = ValuesMut::over(&mut values, Physical::U32, node.value_count);
    Scratch::with(|scratch| node.reader.decode(0..node.value_count, out, scratch))?;
    match values {
        ValuesBuf::U32(flips) => Ok(rows.get_or_init(|| flips)),
        _ => unreachable!("the buffer was made for u32"),
    }
}

fn read_flips(flips: &[u32], range: Range<usize>, out: &mut Bitmap) {
    out.reset(0, false);
    let mut index = flips.partition_point(|&flip| flip as usize <= range.start);
    let mut row = range.start;
    while row < range.end {
        let end = flips.get(index).map_or(range.end, |&flip| (flip as usize).clamp(row, range.end));
        out.extend_with(end - row, index % 2 == 0);
        row = end;
        index += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: ValidityKind, section: &[u8], len: usize, range: Range<usize>) -> Bitmap {
        let mut cursor = Cursor { place: "test", bytes: section, level: 0 };
        let validity = Validity::open(kind, len, &mut cursor).unwrap();
        let mut out = Bitmap::default();
        if !validity.read(range.clone(), &mut out).unwrap() {
            out.reset(range.len(), true);
        }
        out
    }

    #[test]
    fn few_nulls_become_flips_and_many_a_bitmap() {
        let len = 10_000;
        for (step, kind) in [(1000, ValidityKind::Flips), (3, ValidityKind::Bitmap)] {
            let validity = Bitmap::from_bools((0..len).map(|row| row % step != 7 % step));
            let (found, section) = encode(Some(&validity), 1);
            assert_eq!(found, kind);
            for range in [0..len, 7..8, 5..1029, 6007..6008, 9990..len] {
                assert_eq!(read(found, &section, len, range.clone()), validity.slice(range));
            }
        }
    }

    #[test]
    fn flips_out_of_order_only_give_wrong_bits() {
        let mut out = Bitmap::default();
        for flips in [&[9, 3, 20][..], &[0, 0, 0], &[u32::MAX, 5], &[5, 4, 3, 2, 1]] {
            read_flips(flips, 2..30, &mut out);
            assert_eq!(out.len(), 28);
        }
    }

    #[test]
    fn nothing_is_kept_for_all_or_none() {
        assert_eq!(encode(Some(&Bitmap::new(100, true)), 1), (ValidityKind::AllPresent, Vec::new()));
        assert_eq!(encode(Some(&Bitmap::new(100, false)), 1), (ValidityKind::AllNull, Vec::new()));
    }
}
