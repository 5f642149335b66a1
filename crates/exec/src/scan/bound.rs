//! Rows that a sink does not want any more, as it knows on the way: those behind the last of the first few of an order.
//!
//! What it knows is asked with each stretch of a row group. Zone maps may rule out the rest of the group then; else its blocks
//! are asked on their encoded form, before anything of a row is unpacked.

use super::group::{Group, Tester};
use super::plan::ScanPlan;
use super::test::Test;
use super::zone::Verdict;
use crate::flow::KeyBound;
use crate::{Result, ScanColumn, TableSource};
use sinter_codec::{Bitmap, PreparedPredicate};
use std::ops::Range;

/// A bound in a row group.
#[derive(Debug)]
pub(super) struct GroupBound {
    bound: KeyBound,
    prepared: Option<PreparedPredicate>,
    /// Whether the block answers on its encoded form, once that is known. If not, rows are told apart later, by their keys.
    is_encoded: Option<bool>,
    /// Stretches for which it stays, though the sink knows more by now: a block may have to look at its whole dictionary for
    /// another one. Twice as many each time.
    stretches: u32,
    stretches_left: u32,
}

impl Group {
    /// Asks rows for a bound from now on, where there is one; false if no row of the group passes, as its zone map knows.
    pub(super) fn set_bound(&mut self, bound: Option<KeyBound>, plan: &ScanPlan, source: &dyn TableSource) -> bool {
        let Some(bound) = bound else { return true };
        if self.bound.as_ref().is_some_and(|known| known.bound == bound) {
            return true;
        }
        let ScanColumn::Table(column) = plan.columns[bound.column] else { return true };
        let Some(stats) = source.zone(self.index, column) else { return true };
        if bound.keeps_nulls && stats.null_count > 0 {
            return true;
        }
        let test = Test::Column { column: bound.column, predicate: bound.predicate.clone(), negated: false };
        match (test.verdict(&|_| Some(stats)), &mut self.bound) {
            (Verdict::None, _) => return false,
            (Verdict::All, _) => {}
            (Verdict::Some, Some(known)) if known.stretches_left > 0 => known.stretches_left -= 1,
            (Verdict::Some, known) => {
                let (is_encoded, stretches) =
                    known.as_ref().map_or((None, 0), |known| (known.is_encoded, 2 * known.stretches + 1));
                *known = Some(GroupBound { bound, prepared: None, is_encoded, stretches, stretches_left: stretches });
            }
        }
        true
    }
}

impl Tester<'_, '_> {
    /// Writes over `out` which rows of `range` pass the bound. False where there is none, or its block would have to decode
    /// for it: what is in `out` then means nothing.
    pub(super) fn ask_bound(&mut self, range: Range<usize>, out: &mut Bitmap) -> Result<bool> {
        let Some(known) = &mut self.group.bound else { return Ok(false) };
        let mut ask = |range: Range<usize>| {
            let (asked, state) = ((known.bound.column, &known.bound.predicate), (&mut *self.scratch, &mut *self.tally));
            self.segments.ask(asked, &mut known.prepared, range, state, out)
        };
        // Asked about no row, a block says how it does it.
        let is_encoded = known.is_encoded.map_or_else(|| ask(0..0), Ok)?;
        // The answer holds, however it comes about.
        let was_encoded = is_encoded && ask(range)?;
        known.is_encoded = Some(was_encoded);
        if is_encoded {
            self.group.decoded[known.bound.column] |= !was_encoded;
            self.tally.filters_encoded += u64::from(was_encoded);
            self.tally.filters_decoded += u64::from(!was_encoded);
        }
        Ok(is_encoded)
    }
}
