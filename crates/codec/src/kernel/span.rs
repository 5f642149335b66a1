//! Which rows of a block a kernel is asked about, and which of them count.

use crate::{Bitmap, VECTOR_LEN};
use std::ops::Range;

/// A stretch of a block's rows, and which of them are meant.
#[derive(Clone, Debug)]
pub struct Span<'s> {
    /// Rows of the block.
    pub range: Range<usize>,
    /// Which of them.
    pub selection: Selection<'s>,
}

/// Which rows of a [`Span`] are meant.
#[derive(Clone, Copy, Debug)]
pub enum Selection<'s> {
    /// All of them.
    All,
    /// Those whose bit is set: one bit per row of the range, the first for its first row.
    Bitmap(&'s Bitmap),
    /// Those at these places, counted from the start of the range, ascending. One that is given twice counts once.
    Positions(&'s [u32]),
}

impl From<Range<usize>> for Span<'_> {
    fn from(range: Range<usize>) -> Self {
        Span { range, selection: Selection::All }
    }
}

impl<'s> Span<'s> {
    /// The rows of `range` that have a set bit.
    pub fn marked(range: Range<usize>, marks: &'s Bitmap) -> Span<'s> {
        Span { range, selection: Selection::Bitmap(marks) }
    }

    /// The rows at these places of `range`.
    pub fn at(range: Range<usize>, positions: &'s [u32]) -> Span<'s> {
        Span { range, selection: Selection::Positions(positions) }
    }
}

/// The rows that count: present and selected.
#[derive(Clone, Debug)]
pub(crate) struct Rows<'s> {
    pub(crate) range: Range<usize>,
    /// One bit per row of the range; `None` when all count.
    marks: Option<&'s Bitmap>,
    count: usize,
}

/// Words of a bitmap over one vector.
pub(crate) type VectorMarks = [u64; VECTOR_LEN / 64];

/// Which rows of a part count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Marks {
    None,
    All,
    /// Those with a set bit, of which there are so many.
    Some(usize),
}

impl<'s> Rows<'s> {
    /// All of them.
    pub(crate) fn all(range: Range<usize>) -> Rows<'s> {
        Rows { count: range.len(), range, marks: None }
    }

    /// Those with a set bit; there is one bit per row.
    pub(crate) fn marked(range: Range<usize>, marks: &'s Bitmap) -> Rows<'s> {
        debug_assert_eq!(range.len(), marks.len());
        let count = marks.count_ones();
        Rows { marks: (count < range.len()).then_some(marks), count, range }
    }

    /// How many count.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// One bit per row of the range: it counts.
    pub(crate) fn to_bitmap(&self) -> Bitmap {
        self.marks.map_or_else(|| Bitmap::new(self.range.len(), true), Bitmap::clone)
    }

    /// Takes the bits of rows that do not count; there is one bit per row of the range.
    pub(crate) fn keep_counted(&self, bits: &mut Bitmap) {
        if let Some(marks) = self.marks {
            bits.and(marks);
        }
    }

    /// How many of `part` count, which lies in the range.
    pub(crate) fn count_in(&self, part: Range<usize>) -> usize {
        let start = self.range.start;
        self.marks.map_or(part.len(), |marks| marks.count_ones_in(part.start - start..part.end - start))
    }

    /// The range cut where vectors of the block end.
    pub(crate) fn vectors(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        let Range { mut start, end } = self.range;
        std::iter::from_fn(move || {
            let part = start..end.min((start / VECTOR_LEN + 1) * VECTOR_LEN);
            start = part.end;
            (!part.is_empty()).then_some(part)
        })
    }

    /// Which rows of `part` count; it lies in the range and is at most a vector long. Bits are written to `words`, unless
    /// all or none do.
    pub(crate) fn marks(&self, part: Range<usize>, words: &mut VectorMarks) -> Marks {
        let Some(marks) = self.marks else { return Marks::All };
        let len = part.len();
        marks.copy_words(part.start - self.range.start..part.end - self.range.start, words);
        match words[..len.div_ceil(64)].iter().map(|word| word.count_ones() as usize).sum() {
            0 => Marks::None,
            count if count == len => Marks::All,
            count => Marks::Some(count),
        }
    }
}
