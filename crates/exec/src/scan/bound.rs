//! Rows that a sink does not want any more, as it knows on the way: those behind the last of the first few of an order.
//!
//! What it knows is asked with each stretch of a row group. Zone maps may rule out the rest of the group then; else its blocks
//! are asked on their encoded form, before anything of a row is unpacked.

use super::group::{Group, Segments, Tester, prepared};
use super::plan::ScanPlan;
use super::tally::Tally;
use super::test::Test;
use super::zone::Verdict;
use crate::flow::KeyBound;
use crate::{Result, ScanColumn, TableSource};
use sinter_codec::{Bitmap, PreparedPredicate, Scratch};
use std::ops::Range;

/// A bound in a row group.
#[derive(Debug)]
pub(super) struct GroupBound {
    bound: KeyBound,
    prepared: Option<PreparedPredicate>,
    way: Way,
}

/// How a block answers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Unknown,
    Encoded,
    /// It would have to decode: rows are told apart later, by their keys.
    Decoding,
}

impl Group {
    /// Asks rows for a bound from now on, where there is one; false if no row of the group passes, as its zone map knows.
    pub(super) fn set_bound(&mut self, bound: Option<KeyBound>, plan: &ScanPlan, source: &dyn TableSource) -> bool {
        let Some(bound) = bound else { return true };
        let way = match &self.bound {
            Some(known) if known.bound == bound => return true,
            Some(known) => known.way,
            None => Way::Unknown,
        };
        let ScanColumn::Table(column) = plan.columns[bound.column] else { return true };
        let Some(stats) = source.zone(self.index, column) else { return true };
        if bound.keeps_nulls && stats.null_count > 0 {
            return true;
        }
        let test = Test::Column { column: bound.column, predicate: bound.predicate.clone(), negated: false };
        match test.verdict(&|_| Some(stats)) {
            Verdict::None => return false,
            Verdict::Some => self.bound = Some(GroupBound { bound, prepared: None, way }),
            Verdict::All => {}
        }
        true
    }
}

impl Tester<'_, '_> {
    /// Writes over `out` which rows of `range` pass the bound. False where there is none, or its block would have to decode
    /// for it: nothing is known then.
    pub(super) fn ask_bound(&mut self, range: Range<usize>, out: &mut Bitmap) -> Result<bool> {
        let Some(known) = &mut self.group.bound else { return Ok(false) };
        if known.way == Way::Unknown {
            known.way = match known.ask(self.segments, 0..0, self.scratch, self.tally, out)? {
                true => Way::Encoded,
                false => Way::Decoding,
            };
        }
        if known.way == Way::Decoding {
            return Ok(false);
        }
        // The answer holds, however it came about.
        match known.ask(self.segments, range, self.scratch, self.tally, out)? {
            true => self.tally.filters_encoded += 1,
            false => {
                known.way = Way::Decoding;
                self.group.decoded[known.bound.column] = true;
                self.tally.filters_decoded += 1;
            }
        }
        Ok(true)
    }
}

impl GroupBound {
    /// Whether the block answered on its encoded form.
    fn ask(
        &mut self,
        segments: &Segments<'_>,
        range: Range<usize>,
        scratch: &mut Scratch,
        tally: &mut Tally,
        out: &mut Bitmap,
    ) -> Result<bool> {
        let column = self.bound.column;
        let block = segments.block(column, tally)?;
        let prepared = prepared(&mut self.prepared, block, &self.bound.predicate);
        let encoded = prepared.and_then(|prepared| block.filter_prepared(range, prepared, scratch, out));
        encoded.map_err(|error| segments.misread(error, column))
    }
}
