//! The loop over vectors: test, decode what is left, hand on.

use super::ahead::Ahead;
use super::claims::{Claim, Claims};
use super::group::{Group, Segments, Tester};
use super::load::GroupVector;
use super::order::Observed;
use super::plan::ScanPlan;
use super::tally::Tally;
use crate::error::check_cancelled;
use crate::flow::{FilterScratch, Flow, Layout, Sink, Survivors};
use crate::{OnDamage, Result, TableSource};
use sinter_codec::{Bitmap, Scratch, VECTOR_LEN};
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::Instant;

/// Vectors after which a scan pauses though nobody asked it to: a few milliseconds.
const VECTORS_BETWEEN_PAUSES: usize = 1024;

/// A sample reads so many groups at most, and so many vectors of each.
const SAMPLE_GROUPS: usize = 8;
const SAMPLE_VECTORS: usize = 2;

/// One worker's part in a scan.
#[derive(Debug, Default)]
pub(crate) struct Scanner {
    group: Option<Group>,
    ahead: Ahead,
    survivors: Survivors,
    scratch: Scratch,
    alive: Bitmap,
    passed: Bitmap,
    /// Of programs, and of tests that are asked by value.
    filters: Vec<FilterScratch>,
    test_filters: Vec<FilterScratch>,
    /// Tests of this vector that are asked by value.
    by_value: Vec<usize>,
    tests: Observed,
    programs: Observed,
    /// The order of the programs.
    program_order: Vec<usize>,
    /// Vectors until it pauses.
    patience: usize,
    /// What it took, but is not in yet.
    claim: Option<Claim>,
    /// Vectors that it took since somebody asked.
    done: usize,
    pub(crate) tally: Tally,
}

/// What the workers of a run share of the scan.
pub(crate) struct Shared<'a> {
    pub(crate) plan: &'a ScanPlan,
    /// Of the pipeline's columns.
    pub(crate) layout: Layout<'a>,
    pub(crate) source: &'a dyn TableSource,
    pub(crate) claims: &'a Claims,
    /// The first group of which nobody was told that it will be read.
    pub(crate) next_announced: &'a AtomicUsize,
    /// A few rows may be enough.
    pub(crate) is_limited: bool,
    pub(crate) cancelled: &'a AtomicBool,
    pub(crate) on_damage: &'a OnDamage,
}

impl Scanner {
    /// Feeds `sink` until it pauses the scan, or many vectors have passed (true), or no row group is left (false).
    ///
    /// # Errors
    /// What reading and evaluating bring about, and [`Error::Cancelled`].
    pub(crate) fn run(&mut self, shared: &Shared<'_>, sink: &mut dyn Sink) -> Result<bool> {
        if sink.resume()?.is_break() {
            return Ok(true);
        }
        self.patience = VECTORS_BETWEEN_PAUSES;
        loop {
            let mut group = match self.group.take() {
                Some(group) => group,
                None => {
                    let claim = self.claim.take().or_else(|| self.take_claim(None, shared));
                    let Some(Claim { group: index, vectors }) = claim else { return Ok(false) };
                    check_cancelled(shared.cancelled)?;
                    // Whoever helps others does not count it once more.
                    let groups = u64::from(vectors.start == 0);
                    self.tally.groups_total += groups;
                    let Some(mut group) = Group::enter(shared.plan, shared.source, index) else {
                        self.tally.groups_pruned += groups;
                        self.done += shared.claims.take_rest(index, shared.source);
                        continue;
                    };
                    group.turn_to(vectors);
                    if !group.set_bound(sink.bound(), shared.plan, shared.source) {
                        self.tally.groups_pruned += groups;
                        self.done += shared.claims.take_rest(index, shared.source);
                        continue;
                    }
                    self.order_filters(shared.plan, &mut group);
                    if group.is_whole(shared.plan) && sink.take_group(index, group.rows) {
                        self.tally.groups_answered += 1;
                        continue;
                    }
                    self.ahead.announce(shared, sink, index);
                    if let OnDamage::LeaveOut(left_out) = shared.on_damage
                        && let Err(error) = group.open_all(shared, &mut self.tally)
                    {
                        if !error.is_damage() {
                            return Err(error);
                        }
                        left_out.add(shared.source, index, group.live_rows(), error.to_string());
                        self.tally.groups_left_out += 1;
                        self.tally.rows_left_out += group.live_rows();
                        continue;
                    }
                    group
                }
            };
            let pins = group.take_pins();
            let flow = {
                let segments = Segments::new(shared, group.index, group.rows, &pins);
                loop {
                    let flow = self.run_group(shared, &segments, &mut group, sink)?;
                    if flow.is_break() {
                        break flow;
                    }
                    match self.take_claim(Some(group.index), shared) {
                        Some(claim) if claim.group == group.index => {
                            let end = claim.vectors.end;
                            group.turn_to(claim.vectors);
                            if !group.set_bound(sink.bound(), shared.plan, shared.source) {
                                group.turn_to(end..end);
                                self.done += shared.claims.take_rest(group.index, shared.source);
                            }
                        }
                        other => {
                            self.claim = other;
                            break flow;
                        }
                    }
                }
            };
            if flow.is_break() {
                group.put_pins(pins);
                self.group = Some(group);
                return Ok(true);
            }
            self.ahead.learn(pins.iter().map(|pin| pin.get().is_some()).collect());
        }
    }

    /// Puts conditions into the order that was best so far.
    fn order_filters(&mut self, plan: &ScanPlan, group: &mut Group) {
        self.filters.resize_with(plan.programs.len(), FilterScratch::default);
        self.test_filters.resize_with(plan.tests.len(), FilterScratch::default);
        if self.program_order.len() != plan.programs.len() {
            self.program_order = (0..plan.programs.len()).collect();
        }
        self.tests.begin(plan.tests.len(), &mut group.tests);
        self.programs.begin(plan.programs.len(), &mut self.program_order[..plan.infallible_programs]);
    }

    fn take_claim(&mut self, within: Option<usize>, shared: &Shared<'_>) -> Option<Claim> {
        let claim = shared.claims.take(within, shared.source)?;
        self.done += claim.vectors.len();
        Some(claim)
    }

    /// How many vectors it took since it was last asked.
    pub(crate) fn take_done(&mut self) -> usize {
        std::mem::take(&mut self.done)
    }

    /// Which share of all rows passes, as some vectors of some groups show among those that zone maps do not rule out.
    /// 1 where there is no row, and never less than half a row of those that were looked at.
    ///
    /// # Errors
    /// As [`Scanner::run`].
    pub(crate) fn sample(&mut self, shared: &Shared<'_>) -> Result<f64> {
        let source = shared.source;
        let rows = |index: usize| source.group_rows(index);
        let all: usize = (0..source.group_count()).map(rows).sum();
        let open: Vec<usize> =
            (0..source.group_count()).filter(|&index| Group::enter(shared.plan, source, index).is_some()).collect();
        let (mut seen, mut passed) = (0, 0);
        for &index in open.iter().step_by(open.len().div_ceil(SAMPLE_GROUPS).max(1)) {
            check_cancelled(shared.cancelled)?;
            let Some(mut group) = Group::enter(shared.plan, source, index) else { continue };
            let vector_count = rows(index).div_ceil(VECTOR_LEN);
            self.order_filters(shared.plan, &mut group);
            let pins = group.take_pins();
            let segments = Segments::new(shared, group.index, group.rows, &pins);
            // Not always the same places of a group.
            let first = index * 7 % vector_count.max(1);
            for turn in 0..SAMPLE_VECTORS.min(vector_count) {
                let vector = (first + turn * vector_count.div_ceil(SAMPLE_VECTORS)) % vector_count;
                let range = group.range(vector);
                seen += range.len();
                if self.filter(shared, &segments, &mut group, range)? {
                    passed += self.survivors.rows();
                }
            }
        }
        if all == 0 {
            return Ok(1.0);
        }
        let open_rows: usize = open.into_iter().map(rows).sum();
        let share = (passed as f64).max(0.5) / seen.max(1) as f64;
        Ok((share * open_rows.max(1) as f64 / all as f64).min(1.0))
    }

    fn run_group(
        &mut self,
        shared: &Shared<'_>,
        segments: &Segments<'_>,
        group: &mut Group,
        sink: &mut dyn Sink,
    ) -> Result<ControlFlow<()>> {
        while !group.is_done() {
            check_cancelled(shared.cancelled)?;
            if self.patience == 0 {
                return Ok(ControlFlow::Break(()));
            }
            self.patience -= 1;
            let range = group.next_range();
            self.tally.vectors_total += 1;
            self.tally.rows_scanned += range.len() as u64;
            if !self.filter(shared, segments, group, range.clone())? {
                self.tally.vectors_rejected += 1;
                continue;
            }
            self.tally.rows_selected += self.survivors.rows() as u64;
            let mut vector = GroupVector { segments, group, range, tally: &mut self.tally };
            if sink.take(&mut Flow::new(&mut self.survivors, shared.layout, Some(&mut vector)))?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Leaves in `self.survivors` the rows of `range` that pass everything; false when there are none.
    fn filter(
        &mut self,
        shared: &Shared<'_>,
        segments: &Segments<'_>,
        group: &mut Group,
        range: Range<usize>,
    ) -> Result<bool> {
        let (plan, layout) = (shared.plan, shared.layout);
        match &group.deleted {
            Some(deleted) => {
                deleted.slice_into(range.clone(), &mut self.alive);
                self.alive.invert();
                if !self.alive.any() {
                    return Ok(false);
                }
            }
            None => self.alive.reset(range.len(), true),
        }
        // Where there is one, there is no order.
        let is_timed = group.tests.len() > 1 && self.tests.is_timed();
        self.by_value.clear();
        group.decoded.fill(false);
        for index in 0..group.tests.len() {
            let number = group.tests[index];
            let planned = &plan.tests[number];
            let begun = is_timed.then(|| (Instant::now(), self.alive.count_ones()));
            let mut tester = Tester { segments, group, scratch: &mut self.scratch, tally: &mut self.tally };
            if tester.is_by_value(number, planned, &self.alive)? {
                match tester.decides(planned, range.clone())? {
                    Some(true) => {}
                    Some(false) => return Ok(false),
                    None => self.by_value.push(number),
                }
                continue;
            }
            tester.ask(number, planned, range.clone(), &mut self.passed)?;
            self.alive.and(&self.passed);
            if let Some((begun, rows)) = begun {
                self.tests.add(number, begun, 1, (rows, self.alive.count_ones()));
            }
            if !self.alive.any() {
                return Ok(false);
            }
        }
        // Behind the tests: what they reject has nothing opened for it.
        let mut tester = Tester { segments, group, scratch: &mut self.scratch, tally: &mut self.tally };
        let is_last = self.by_value.is_empty() && self.program_order.is_empty();
        let is_bounded = tester.ask_bound(range.clone(), is_last, &mut self.passed)?;
        if is_bounded {
            self.alive.and(&self.passed);
            if !self.alive.any() {
                return Ok(false);
            }
        }
        if is_bounded || self.by_value.len() < group.tests.len() {
            self.tally.rows_selected_encoded += self.alive.count_ones() as u64;
        }
        self.survivors.start(&self.alive, layout.columns());
        let mut vector = GroupVector { segments, group, range, tally: &mut self.tally };
        for &number in &self.by_value {
            vector.tally.filters_decoded += 1;
            let begun = is_timed.then(|| (Instant::now(), self.survivors.rows()));
            let mut flow = Flow::new(&mut self.survivors, layout, Some(&mut vector));
            let passes = flow.filter(&plan.tests[number].by_value, &mut self.test_filters[number])?;
            if let Some((begun, rows)) = begun {
                let passed = if passes { self.survivors.rows() } else { 0 };
                self.tests.add(number, begun, 1, (rows, passed));
            }
            if !passes {
                return Ok(false);
            }
        }
        let is_timed = plan.infallible_programs > 1 && self.programs.is_timed();
        for &number in &self.program_order {
            vector.tally.filters_decoded += 1;
            let begun = is_timed.then(|| (Instant::now(), self.survivors.rows()));
            let mut flow = Flow::new(&mut self.survivors, layout, Some(&mut vector));
            let passes = flow.filter(&plan.programs[number], &mut self.filters[number])?;
            if let Some((begun, rows)) = begun {
                let passed = if passes { self.survivors.rows() } else { 0 };
                self.programs.add(number, begun, rows, (rows, passed));
            }
            if !passes {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
