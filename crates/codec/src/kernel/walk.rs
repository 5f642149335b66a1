//! The way of schemes that have none of their own: decode a vector at a time, keep what counts, loop over it.

use super::span::{Marks, Rows, VectorMarks};
use super::wide_sum::WideSum;
use crate::condition::Condition;
use crate::fixed::{for_fixed, for_integers};
use crate::kernels::{keep_marked, sum};
use crate::node::Opened;
use crate::scheme::Reader;
use crate::scratch::Scratch;
use crate::values_mut::{Native, ValuesMut};
use crate::{Physical, Result, VECTOR_LEN, Values, ValuesBuf};
use std::ops::Range;

/// Rows of a vector that count up to which they are gathered, not all of it decoded.
const GATHERED_ROWS_MAX: usize = 64;

/// Shows the values of the rows that count, in order: those of one vector of the block at a time.
pub(super) fn walk<R: Reader + ?Sized>(
    reader: &R,
    rows: &Rows<'_>,
    physical: Physical,
    scratch: &mut Scratch,
    visit: &mut dyn FnMut(Values<'_>) -> Result<()>,
) -> Result<()> {
    let mut values = scratch.take_values(physical);
    let mut picked = std::mem::take(&mut scratch.rows);
    let mut words: VectorMarks = [0; VECTOR_LEN / 64];
    let mut walked = Ok(());
    for part in rows.vectors() {
        let marks = rows.marks(part.clone(), &mut words);
        walked = match marks {
            Marks::None => continue,
            Marks::Some(count) if count <= GATHERED_ROWS_MAX || physical == Physical::Bytes => {
                picked.clear();
                for (index, &word) in words[..part.len().div_ceil(64)].iter().enumerate() {
                    let mut rest = word;
                    while rest != 0 {
                        picked.push((part.start + 64 * index) as u32 + rest.trailing_zeros());
                        rest &= rest - 1;
                    }
                }
                scratch.decoded_values += count;
                reader.gather(&picked, ValuesMut::over(&mut values, physical, count), scratch)
            }
            Marks::All | Marks::Some(_) => {
                scratch.decoded_values += part.len();
                let len = part.len();
                reader.decode(part, ValuesMut::over(&mut values, physical, len), scratch)
            }
        };
        walked = walked.and_then(|()| {
            if let Marks::Some(count) = marks
                && values.len() > count
            {
                for_fixed!(ValuesBuf, &mut values, values => keep_marked(values, &words), _ => ());
            }
            visit(values.as_values())
        });
        if walked.is_err() {
            break;
        }
    }
    scratch.rows = picked;
    scratch.give_values(values);
    walked
}

/// [`Reader::sum`] of a scheme that has none.
pub(crate) fn sum_decoded<R: Reader + ?Sized>(
    reader: &R,
    rows: &Rows<'_>,
    physical: Physical,
    total: &mut WideSum,
    scratch: &mut Scratch,
) -> Result<()> {
    walk(reader, rows, physical, scratch, &mut |values| {
        for_integers!(Values, values, values => total.add_sum(sum(values)),
            other => unreachable!("{} values have no exact sum", other.physical().name()));
        Ok(())
    })
}

/// [`Reader::lower_bound`] of a scheme that has none: a binary search that gathers single rows.
pub(crate) fn lower_bound_by_rows<R: Reader + ?Sized>(
    reader: &R,
    range: Range<usize>,
    below: &Condition,
    physical: Physical,
    scratch: &mut Scratch,
) -> Result<usize> {
    let Range { mut start, mut end } = range;
    let mut value = scratch.take_values(physical);
    let mut found = Ok(());
    while start < end && found.is_ok() {
        let middle = start + (end - start) / 2;
        scratch.decoded_values += 1;
        found = reader.gather(&[middle as u32], ValuesMut::over(&mut value, physical, 1), scratch);
        if found.is_ok() && below.passes(value.as_values(), 0) {
            start = middle + 1;
        } else {
            end = middle;
        }
    }
    scratch.give_values(value);
    found.map(|()| start)
}

/// A reader without its own ways: what the answers of a scheme are compared with, and its speed measured against.
#[derive(Debug)]
pub(crate) struct DecodeOnly<'a> {
    pub(crate) reader: Box<dyn Reader + 'a>,
}

impl Reader for DecodeOnly<'_> {
    fn describe(&self) -> String {
        self.reader.describe()
    }

    fn parts(&self) -> Vec<&Opened<'_>> {
        self.reader.parts()
    }

    fn decode(&self, range: Range<usize>, out: ValuesMut<'_>, scratch: &mut Scratch) -> Result<()> {
        self.reader.decode(range, out, scratch)
    }

    /// Decodes all from the first to the last row of each vector.
    fn gather(&self, rows: &[u32], mut out: ValuesMut<'_>, scratch: &mut Scratch) -> Result<()> {
        let physical = out.physical();
        let mut decoded = scratch.take_values(physical);
        let (mut gathered, mut start) = (Ok(()), 0);
        for rows in rows.chunk_by(|a, b| *a as usize / VECTOR_LEN == *b as usize / VECTOR_LEN) {
            let widened = |(first, last): (u32, u32), &row: &u32| (first.min(row), last.max(row));
            let (first, last) = rows.iter().fold((rows[0], rows[0]), widened);
            let len = (last - first) as usize + 1;
            let target = ValuesMut::over(&mut decoded, physical, len);
            gathered = self.reader.decode(first as usize..first as usize + len, target, scratch);
            gathered = gathered.and_then(|()| pick(&mut decoded, rows, first, out.part(start, rows.len())));
            if gathered.is_err() {
                break;
            }
            start += rows.len();
        }
        scratch.give_values(decoded);
        gathered
    }
}

/// Writes the values at `rows` of those from row `first` on.
fn pick(values: &mut ValuesBuf, rows: &[u32], first: u32, out: ValuesMut<'_>) -> Result<()> {
    fn fixed<T: Native>(values: &mut ValuesBuf, rows: &[u32], first: u32, out: &mut [T]) {
        let values = T::vec_mut(values);
        out.iter_mut().zip(rows).for_each(|(out, row)| *out = values[(row - first) as usize]);
    }
    for_fixed!(ValuesMut, out, out => fixed(values, rows, first, out), out => {
        let Values::Bytes(texts) = values.as_values() else { unreachable!("decoded for a buffer of bytes") };
        for row in rows {
            out.push_decoded(texts.get((row - first) as usize), "a decoded vector")?;
        }
    });
    Ok(())
}
