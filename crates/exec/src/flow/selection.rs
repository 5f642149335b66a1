//! Which rows of a vector are alive.

use sinter_codec::Bitmap;

/// All rows of a vector, or some by their positions. Tests on the encoded form work on bitmaps; as soon as values are
/// decoded for some of the rows, positions say which, because that is what gathering wants.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    /// Ascending; meaningful unless `all`, and once they are written.
    positions: Vec<u16>,
    are_written: bool,
    /// One bit per row of the vector; meaningful until rows are dropped.
    alive: Bitmap,
    rows: usize,
    all: bool,
}

/// Most rows are alive where at least one of so many is.
const MOST: usize = 2;

impl Selection {
    /// Takes the set bits over.
    pub(crate) fn set(&mut self, alive: &Bitmap) {
        self.rows = alive.count_ones();
        self.all = self.rows == alive.len();
        self.are_written = false;
        if !self.all {
            self.alive.clone_from(alive);
        }
    }

    /// All rows of a vector.
    pub(crate) fn whole(rows: usize) -> Selection {
        Selection { rows, all: true, ..Selection::default() }
    }

    /// Becomes all rows of a vector.
    pub(super) fn set_whole(&mut self, rows: usize) {
        (self.rows, self.all, self.are_written) = (rows, true, false);
    }

    /// Writes the positions, unless that has been done: where most rows are alive, whoever wants columns may not want them.
    pub(crate) fn write(&mut self) {
        if !self.all && !self.are_written {
            write_positions(&self.alive, &mut self.positions);
            self.are_written = true;
        }
    }

    /// The rows as bits, where they are some and not few of all, and no position was asked for.
    pub(super) fn most(&self) -> Option<&Bitmap> {
        let is_most = !self.all && !self.are_written && self.rows * MOST >= self.alive.len();
        is_most.then_some(&self.alive)
    }

    /// How many rows are alive.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The positions, which [`Selection::write`] wrote, or `None` when all rows are alive.
    pub(crate) fn positions(&self) -> Option<&[u16]> {
        debug_assert!(self.all || self.are_written, "positions are written before they are asked for");
        (!self.all).then_some(&self.positions)
    }

    /// Keeps these of the alive rows, which are counted from 0 and ascend.
    pub(crate) fn keep(&mut self, kept: &[u16]) {
        self.write();
        if self.all {
            self.are_written = true;
            self.positions.clear();
            self.positions.extend_from_slice(kept);
        } else {
            for (index, &row) in kept.iter().enumerate() {
                self.positions[index] = self.positions[usize::from(row)];
            }
            self.positions.truncate(kept.len());
        }
        self.all &= kept.len() == self.rows;
        self.rows = kept.len();
    }

    /// One bit per row of a vector of `len` rows.
    pub(crate) fn to_bitmap(&self, len: usize) -> Bitmap {
        let mut bits = Bitmap::new(len, self.all);
        if !self.all {
            for &position in &self.positions {
                bits.set(position.into(), true);
            }
        }
        bits
    }
}

/// For each byte, the places of its set bits, in order.
static PLACES: [[u8; 8]; 256] = {
    let mut places = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut count) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                places[byte][count] = bit as u8;
                count += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    places
};

/// Fewer than one in so many are written one by one.
const FEW: usize = 16;

/// Positions of the set bits of a vector: eight are written at a time, however many of them count, unless they are few.
pub(super) fn write_positions(bits: &Bitmap, out: &mut Vec<u16>) {
    out.clear();
    if bits.count_ones() * FEW < bits.len() {
        bits.positions_into(out);
        return;
    }
    out.resize(bits.len() + 8, 0);
    let mut count = 0;
    for (index, word) in bits.words().iter().enumerate() {
        for (place, byte) in word.to_le_bytes().into_iter().enumerate() {
            let first = (index * 64 + place * 8) as u16;
            if let Some(eight) = out[count..].first_chunk_mut::<8>() {
                *eight = PLACES[usize::from(byte)].map(|place| first + u16::from(place));
            }
            count += byte.count_ones() as usize;
        }
    }
    out.truncate(count);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_one_after_the_other() {
        let mut selection = Selection::default();
        selection.set(&Bitmap::new(5, true));
        selection.write();
        assert_eq!(selection.positions(), None);
        selection.keep(&[0, 2, 3]);
        assert_eq!(selection.positions(), Some(&[0, 2, 3][..]));
        selection.keep(&[1, 2]);
        assert_eq!((selection.positions(), selection.rows()), (Some(&[2, 3][..]), 2));
        assert_eq!(selection.to_bitmap(5), Bitmap::from_bools([false, false, true, true, false]));
    }
}
