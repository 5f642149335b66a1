//! The kernels as methods of a block: resolves the rows that count, takes what statistics know, and asks the reader.

use super::bounds::Bounds;
use super::moments::{Moments, SquareSum};
use super::span::{Marks, Rows, Selection, Span};
use super::tally::{Histogram, Tally};
use super::walk::walk;
use super::wide_sum::WideSum;
use crate::condition::{Condition, Prepared};
use crate::kernels::{FloatSum, square_floats, sum_floats};
use crate::scratch::Scratch;
use crate::values_mut::ValuesMut;
use crate::{Bitmap, Block, CompareOp, Physical, Predicate, Result, Scalar, VECTOR_LEN, Values, ValuesBuf};
use std::ops::Range;

/// The sum of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Sum {
    /// Of integers, exact.
    Integer(WideSum),
    /// Of floats, in the order that the crate's kernels have: the same bits on every machine.
    Float(f64),
}

impl Sum {
    /// The sum as a float, the nearest one.
    pub fn to_f64(self) -> f64 {
        match self {
            Sum::Integer(sum) => sum.to_f64(),
            Sum::Float(sum) => sum,
        }
    }

    /// The sum as a value; `None` where 128 bits do not hold it.
    pub fn to_scalar(self) -> Option<Scalar> {
        match self {
            Sum::Integer(sum) => sum.to_i128().map(Scalar::Int),
            Sum::Float(sum) => Some(Scalar::Float(sum)),
        }
    }
}

/// Kernels. NULLs never count; what does is in the docs of [`Span`] and [`Selection`].
///
/// All fail with [`crate::Error::Damaged`] where the values themselves contradict the headers, and all panic when the range
/// reaches past [`Block::value_count`], a bitmap has not one bit per row of the range, or a position lies past its end:
/// mistakes of the caller.
impl Block<'_> {
    /// How many rows count.
    pub fn count(&self, span: &Span<'_>) -> Result<usize> {
        if self.is_whole(span) {
            return Ok(self.value_count() - self.stats().null_count);
        }
        self.with_rows(span, |rows, _| Ok(rows.count()))
    }

    /// The sum: zero where no row counts.
    ///
    /// # Panics
    /// For a block of bytes.
    pub fn sum(&self, span: &Span<'_>) -> Result<Sum> {
        match (self.physical(), self.stats().sum) {
            (Physical::Bytes, _) => panic!("the sum of bytes"),
            (Physical::F32 | Physical::F64, _) => {
                self.with_rows(span, |rows, scratch| Ok(Sum::Float(self.sum_of_floats(rows, scratch)?)))
            }
            (_, Some(sum)) if self.is_whole(span) => Ok(Sum::Integer(sum.into())),
            _ => self.with_rows(span, |rows, scratch| Ok(Sum::Integer(self.sum_of_integers(rows, scratch)?))),
        }
    }

    /// The least value; `Null` where no row counts.
    pub fn min(&self, span: &Span<'_>) -> Result<Scalar> {
        Ok(self.bounds(span)?.least)
    }

    /// The greatest value, NaN if there is one; `Null` where no row counts.
    pub fn max(&self, span: &Span<'_>) -> Result<Scalar> {
        Ok(self.bounds(span)?.greatest)
    }

    /// The first row (of the block) that has the least value; `None` where no row counts.
    pub fn argmin(&self, span: &Span<'_>) -> Result<Option<usize>> {
        let least = self.min(span)?;
        self.first_equal(span, least)
    }

    /// The first row (of the block) that has the greatest value; `None` where no row counts.
    pub fn argmax(&self, span: &Span<'_>) -> Result<Option<usize>> {
        let greatest = self.max(span)?;
        self.first_equal(span, greatest)
    }

    /// The mean; `None` where no row counts. That of integers is the exact sum, rounded, divided by the count.
    ///
    /// # Panics
    /// For a block of bytes.
    pub fn mean(&self, span: &Span<'_>) -> Result<Option<f64>> {
        let count = self.count(span)?;
        Ok(if count == 0 { None } else { Some(self.sum(span)?.to_f64() / count as f64) })
    }

    /// Count, mean, and squares of the distances from it, from which come standard deviations; `None` where no row counts.
    ///
    /// # Panics
    /// For a block of bytes.
    pub fn moments(&self, span: &Span<'_>) -> Result<Option<Moments>> {
        assert!(self.physical() != Physical::Bytes, "the mean of bytes");
        self.with_rows(span, |rows, scratch| {
            let count = rows.count();
            if count == 0 {
                return Ok(None);
            }
            if !self.physical().is_integer() {
                let mean = self.sum_of_floats(rows, scratch)? / count as f64;
                let mut squares = FloatSum::default();
                walk(&*self.values.reader, rows, self.physical(), scratch, &mut |values| {
                    squares.add(match values {
                        Values::F32(values) => square_floats(values, mean),
                        Values::F64(values) => square_floats(values, mean),
                        other => unreachable!("{} values are no floats", other.physical().name()),
                    });
                    Ok(())
                })?;
                return Ok(Some(Moments { count, mean, squares: squares.total() }));
            }
            let sum = match self.stats().sum {
                Some(sum) if self.is_whole(span) => sum.into(),
                _ => self.sum_of_integers(rows, scratch)?,
            };
            // Distances are taken from an integer near the mean, which is exact, and what that is off by is taken away.
            let pivot = sum.divided(count as u64);
            let mut squares = SquareSum::default();
            self.values.reader.squares(rows, self.physical(), pivot, &mut squares, scratch)?;
            let off = sum.less_product(pivot, count as u64).to_f64() / count as f64;
            let squares = (squares.to_f64() - off * off * count as f64).max(0.0);
            Ok(Some(Moments { count, mean: sum.to_f64() / count as f64, squares }))
        })
    }

    /// The different values in order, and how many rows have each.
    pub fn histogram(&self, span: &Span<'_>) -> Result<Histogram> {
        self.with_rows(span, |rows, scratch| Ok(self.tally(rows, scratch)?.into_histogram()))
    }

    /// How many different values there are.
    pub fn distinct(&self, span: &Span<'_>) -> Result<usize> {
        self.with_rows(span, |rows, scratch| Ok(self.tally(rows, scratch)?.into_distinct()))
    }

    /// Writes over `counts` how many rows have each entry of [`Block::dictionary`]; false (and `counts` unspecified) where
    /// the outermost scheme has none.
    pub fn count_entries(&self, span: &Span<'_>, counts: &mut Vec<u64>) -> Result<bool> {
        self.with_rows(span, |rows, scratch| self.values.reader.count_entries(rows, counts, scratch))
    }

    /// For each fraction the value that so large a part of the rows is not above: SQL's `percentile_disc`, 0.5 for the
    /// median. Nothing where no row counts.
    ///
    /// # Panics
    /// When a fraction is not in `0.0..=1.0`.
    pub fn percentiles(&self, span: &Span<'_>, fractions: &[f64]) -> Result<Vec<Scalar>> {
        self.with_rows(span, |rows, scratch| {
            let count = rows.count();
            if count == 0 {
                return Ok(Vec::new());
            }
            let rank = |fraction: f64| {
                assert!((0.0..=1.0).contains(&fraction), "{fraction} is no part of the rows");
                ((fraction * count as f64).ceil() as usize).clamp(1, count) - 1
            };
            let mut ranks: Vec<usize> = fractions.iter().map(|&fraction| rank(fraction)).collect();
            let asked = ranks.clone();
            ranks.sort_unstable();
            let found = self.tally(rows, scratch)?.into_ranked(&ranks);
            let value = |rank: usize| found.get(ranks.partition_point(|&other| other < rank)).cloned();
            Ok(asked.into_iter().map(|rank| value(rank).unwrap_or_default()).collect())
        })
    }

    /// The first row of `range` whose value is not below `constant`, or its end. A search where statistics say that the
    /// block is sorted and no row of the range is NULL; else rows are looked at in order.
    ///
    /// # Panics
    /// When the constant has not the block's type, too.
    pub fn lower_bound(&self, range: Range<usize>, constant: &Scalar) -> Result<usize> {
        let span = range.clone().into();
        self.with_rows(&span, |rows, scratch| {
            if self.stats().sorted && rows.count() == range.len() {
                let below = Condition::new(&Predicate::Compare(CompareOp::Less, constant.clone()), self.physical());
                return match below {
                    Condition::Never => Ok(range.start),
                    Condition::Always => Ok(range.end),
                    below => self.values.reader.lower_bound(range.clone(), &below, self.physical(), scratch),
                };
            }
            let not_below = Predicate::Compare(CompareOp::GreaterOrEqual, constant.clone());
            Ok(self.first_passing(rows, &not_below, scratch)?.unwrap_or(range.end))
        })
    }

    /// Replaces the content of `out` by the values of the selected rows, in order; NULL slots hold an unspecified value.
    pub fn gather_span(&self, span: &Span<'_>, out: &mut ValuesBuf) -> Result<()> {
        let range = &span.range;
        let of_marks = |marks: &Bitmap, rows: &mut Vec<u32>| {
            rows.extend(marks.ones().map(|position| (range.start + position) as u32));
        };
        self.check_span(span);
        Scratch::with(|scratch| {
            let mut rows = std::mem::take(&mut scratch.rows);
            rows.clear();
            match span.selection {
                Selection::All => {
                    scratch.rows = rows;
                    let out = ValuesMut::over(out, self.physical(), range.len());
                    return self.values.reader.decode(range.clone(), out, scratch);
                }
                Selection::Bitmap(marks) => of_marks(marks, &mut rows),
                Selection::Positions(positions) => rows.extend(positions.iter().map(|at| range.start as u32 + at)),
            }
            let out = ValuesMut::over(out, self.physical(), rows.len());
            let gathered = self.values.reader.gather(&rows, out, scratch);
            scratch.rows = rows;
            gathered
        })
    }

    /// Least and greatest value.
    pub(super) fn bounds(&self, span: &Span<'_>) -> Result<Bounds> {
        let stats = self.stats();
        let numbers_only = stats.bounds_exact && !stats.has_nan;
        if self.is_whole(span) && numbers_only && !stats.min.is_null() && !stats.max.is_null() {
            return Ok(Bounds { least: stats.min.clone(), greatest: stats.max.clone() });
        }
        self.with_rows(span, |rows, scratch| {
            let mut found = Bounds::default();
            self.values.reader.bounds(rows, self.physical(), &mut found, scratch)?;
            Ok(found)
        })
    }

    fn tally(&self, rows: &Rows<'_>, scratch: &mut Scratch) -> Result<Tally> {
        let mut tally = Tally::new(self.physical());
        self.values.reader.tally(rows, self.physical(), &mut tally, scratch)?;
        Ok(tally)
    }

    fn sum_of_integers(&self, rows: &Rows<'_>, scratch: &mut Scratch) -> Result<WideSum> {
        let mut total = WideSum::default();
        self.values.reader.sum(rows, self.physical(), &mut total, scratch)?;
        Ok(total)
    }

    fn sum_of_floats(&self, rows: &Rows<'_>, scratch: &mut Scratch) -> Result<f64> {
        let mut total = FloatSum::default();
        walk(&*self.values.reader, rows, self.physical(), scratch, &mut |values| {
            total.add(match values {
                Values::F32(values) => sum_floats(values),
                Values::F64(values) => sum_floats(values),
                other => unreachable!("{} values are no floats", other.physical().name()),
            });
            Ok(())
        })?;
        Ok(total.total())
    }

    fn first_equal(&self, span: &Span<'_>, value: Scalar) -> Result<Option<usize>> {
        if value.is_null() {
            return Ok(None);
        }
        let equal = Predicate::Compare(CompareOp::Equal, value);
        self.with_rows(span, |rows, scratch| self.first_passing(rows, &equal, scratch))
    }

    /// The first row that counts and passes.
    fn first_passing(&self, rows: &Rows<'_>, predicate: &Predicate, scratch: &mut Scratch) -> Result<Option<usize>> {
        let condition = Condition::new(predicate, self.physical());
        let prepared = match condition {
            Condition::Never | Condition::Always => Prepared::plain(condition),
            condition => self.values.reader.prepare(&condition, scratch)?,
        };
        let (mut words, mut passing) = ([0; VECTOR_LEN / 64], Bitmap::default());
        for part in rows.vectors() {
            let marks = rows.marks(part.clone(), &mut words);
            if marks == Marks::None {
                continue;
            }
            passing.reset(0, false);
            self.values.filter(part.clone(), &prepared, &mut passing, scratch)?;
            let found = passing.words().iter().zip(words).enumerate().find_map(|(index, (word, marked))| {
                let both = if marks == Marks::All { *word } else { word & marked };
                (both != 0).then(|| part.start + 64 * index + both.trailing_zeros() as usize)
            });
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Statistics are about all rows.
    fn is_whole(&self, span: &Span<'_>) -> bool {
        self.check_span(span);
        matches!(span.selection, Selection::All) && span.range == (0..self.value_count())
    }

    fn check_span(&self, span: &Span<'_>) {
        self.check(&span.range);
        let len = span.range.len();
        match span.selection {
            Selection::All => {}
            Selection::Bitmap(marks) => assert!(marks.len() == len, "{} bits for {len} rows", marks.len()),
            Selection::Positions(positions) => {
                let last = positions.last().copied().unwrap_or(0) as usize;
                assert!(positions.is_empty() || last < len, "position {last} of {len} rows");
            }
        }
    }

    /// Runs `work` on the rows that count, with this thread's scratch.
    fn with_rows<A>(&self, span: &Span<'_>, work: impl FnOnce(&Rows<'_>, &mut Scratch) -> Result<A>) -> Result<A> {
        self.check_span(span);
        let range = span.range.clone();
        Scratch::with(|scratch| {
            let mut present = std::mem::take(&mut scratch.present);
            let answer = self.validity.read(range.clone(), &mut present).and_then(|some_null| {
                let mut selected;
                let rows = match span.selection {
                    Selection::All if some_null => Rows::marked(range, &present),
                    Selection::All => Rows::all(range),
                    Selection::Bitmap(marks) if some_null => {
                        present.and(marks);
                        Rows::marked(range, &present)
                    }
                    Selection::Bitmap(marks) => Rows::marked(range, marks),
                    Selection::Positions(positions) => {
                        selected = Bitmap::new(range.len(), false);
                        positions.iter().for_each(|position| selected.set(*position as usize, true));
                        if some_null {
                            selected.and(&present);
                        }
                        Rows::marked(range, &selected)
                    }
                };
                work(&rows, scratch)
            });
            scratch.present = present;
            answer
        })
    }
}
