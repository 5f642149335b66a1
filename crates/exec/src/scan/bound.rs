//! Rows that a sink does not want any more, as it knows on the way: those behind the last of the first few of an order.
//!
//! What it knows is asked with each stretch of a row group. Zone maps may rule out the rest of the group then; else its blocks
//! are asked on their encoded form, behind the tests of the scan.

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
    /// Stretches for which it stays, though the sink knows more by now: for another one, a block may have to look at all of its
    /// dictionary, where that is short or has numbers. Twice as many each time.
    stretches: u32,
    stretches_left: u32,
    /// How many vectors of which all rows passed came one after the other.
    in_vain: u32,
    nulls: Bitmap,
}

/// After so many it is not asked any more, until there is another one.
const IN_VAIN_MAX: u32 = 8;

impl KeyBound {
    fn test(&self) -> Test {
        let column = self.column;
        let values = self.predicate.clone().map(|predicate| Test::Column { column, predicate, negated: false });
        let nulls = self.keeps_nulls.then_some(Test::Null { column, negated: false });
        Test::Any(values.into_iter().chain(nulls).collect())
    }
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
        match (bound.test().verdict(&|_| Some(stats)), &mut self.bound) {
            (Verdict::None, _) => return false,
            (Verdict::All, _) => {}
            (Verdict::Some, Some(known)) if known.stretches_left > 0 => known.stretches_left -= 1,
            (Verdict::Some, known) => {
                let (is_encoded, stretches) =
                    known.as_ref().map_or((None, 0), |known| (known.is_encoded, 2 * known.stretches + 1));
                *known = Some(GroupBound {
                    bound,
                    prepared: None,
                    is_encoded,
                    stretches,
                    stretches_left: stretches,
                    in_vain: 0,
                    nulls: Bitmap::default(),
                });
            }
        }
        true
    }
}

impl Tester<'_, '_> {
    /// Writes over `out` which rows of `range` pass the bound. False where there is none, or its block would have to decode
    /// for it: what is in `out` then means nothing. Where it `is_last` not, of all conditions, nothing is opened for it.
    pub(super) fn ask_bound(&mut self, range: Range<usize>, is_last: bool, out: &mut Bitmap) -> Result<bool> {
        let segments = self.segments;
        let Some(known) = self.group.bound.as_mut().filter(|known| known.in_vain < IN_VAIN_MAX) else {
            return Ok(false);
        };
        let column = known.bound.column;
        if !is_last && !segments.is_pinned(column) {
            return Ok(false);
        }
        match &known.bound.predicate {
            Some(predicate) => {
                let mut ask = |range: Range<usize>| {
                    let state = (&mut *self.scratch, &mut *self.tally);
                    segments.ask((column, predicate), &mut known.prepared, range, state, out)
                };
                // Asked about no row, a block says how it does it.
                let is_encoded = known.is_encoded.map_or_else(|| ask(0..0), Ok)?;
                // The answer holds, however it comes about.
                let was_encoded = is_encoded && ask(range.clone())?;
                known.is_encoded = Some(was_encoded);
                if !is_encoded {
                    return Ok(false);
                }
                self.group.decoded[column] |= !was_encoded;
                self.tally.filters_encoded += u64::from(was_encoded);
                self.tally.filters_decoded += u64::from(!was_encoded);
            }
            None => out.reset(range.len(), false),
        }
        if known.bound.keeps_nulls {
            let some_null = segments.block(column, self.tally)?.validity(range, &mut known.nulls);
            if some_null.map_err(|error| segments.misread(error, column))? {
                known.nulls.invert();
                out.or(&known.nulls);
            }
        }
        known.in_vain = if out.all() { known.in_vain + 1 } else { 0 };
        Ok(true)
    }
}
