//! Filters and joins between a scan and a sink.
//!
//! A join whose rows meet one row each at most works in place. One in which a row may meet several has a [`Level`]: the
//! rows before it stand still there, and vectors of joined rows are made of them one after the other, each of which runs
//! through the steps that follow before the next one is made. So whatever a join multiplies, few rows are in memory, and
//! a sink may pause between any two vectors.

use super::survivors::{FilterScratch, Repeated, Survivors};
use super::{Flow, KeyBound, Layout, Sink};
use crate::error::check_cancelled;
use crate::expr::Program;
use crate::join::{JoinKind, JoinTable, Probe, ProbePlan};
use crate::measure::Clock;
use crate::store::NONE;
use crate::{Error, Result};
use sinter_codec::VECTOR_LEN;
use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;

/// Vectors of joined rows after which a worker pauses, whether or not one of them reached the sink: a few milliseconds.
const VECTORS_BETWEEN_PAUSES: usize = 1024;

/// The steps of a pipeline, compiled once and shared by its workers.
#[derive(Debug)]
pub(crate) struct StepsPlan {
    steps: Vec<StepPlan>,
    /// Columns that are wanted after each step, ascending.
    live: Vec<Vec<usize>>,
    /// Columns of the scan that a sink or a step wants, in that order.
    scan_columns: Vec<usize>,
}

/// What is done with rows.
#[derive(Debug)]
pub(crate) enum StepPlan {
    Filter(Program),
    Join(ProbePlan),
}

impl StepPlan {
    /// The columns that it reads.
    fn columns(&self) -> &[usize] {
        match self {
            StepPlan::Filter(program) => &program.columns,
            StepPlan::Join(probe) => probe.columns(),
        }
    }

    /// Those that it reads of pairs of rows.
    fn condition_columns(&self) -> &[usize] {
        match self {
            StepPlan::Filter(_) => &[],
            StepPlan::Join(probe) => probe.condition_columns(),
        }
    }
}

impl StepsPlan {
    /// Steps before a sink that wants `sink_columns`, over a scan of so many columns.
    pub(crate) fn new(steps: Vec<StepPlan>, sink_columns: &[usize], scan_columns: usize) -> StepsPlan {
        let mut live = Vec::with_capacity(steps.len());
        let mut wanted = sink_columns.to_vec();
        for step in steps.iter().rev() {
            wanted.extend(step.condition_columns());
            live.push(wanted.clone());
            wanted.extend(step.columns());
        }
        live.reverse();
        live.iter_mut().for_each(|columns| {
            columns.sort_unstable();
            columns.dedup();
        });
        let steps_columns = steps.iter().flat_map(|step| step.columns().iter().chain(step.condition_columns()));
        let mut scanned: Vec<usize> = steps_columns.chain(sink_columns).copied().collect();
        let mut seen = vec![false; scan_columns];
        scanned.retain(|&column| column < scan_columns && !std::mem::replace(&mut seen[column], true));
        StepsPlan { steps, live, scan_columns: scanned }
    }

    /// Whether a step reads this column.
    pub(crate) fn wants(&self, column: usize) -> bool {
        self.steps.iter().any(|step| step.columns().contains(&column) || step.condition_columns().contains(&column))
    }

    /// The step with this number.
    pub(super) fn step(&self, number: usize) -> Option<&StepPlan> {
        self.steps.get(number)
    }

    /// Whether some rows come out after all others.
    pub(crate) fn has_rest(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, StepPlan::Join(probe) if probe.kind.has_rest()))
    }

    /// True when rows go from the scan to the sink as they are.
    pub(crate) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }
}

/// What one worker keeps of its steps, also while the sink pauses.
#[derive(Debug, Default)]
pub(crate) struct StepsState {
    filters: Vec<FilterScratch>,
    probes: Vec<Probe>,
    levels: Vec<Level>,
    /// How many of the levels have rows left.
    depth: usize,
}

/// Rows that meet several others, and how far they are.
#[derive(Debug, Default)]
struct Level {
    /// The join that they stand before.
    step: usize,
    before: Survivors,
    /// What each of them meets.
    numbers: Vec<u32>,
    /// The row that comes next, and how many of its matches are done.
    row: usize,
    done: usize,
    /// Of a join with a condition: the rows that had a partner, and whether what is left of the others came out.
    passed: Vec<bool>,
    is_done: bool,
    /// The next vector: which row each of its rows comes from, and what it meets.
    from: Vec<u32>,
    matches: Vec<u32>,
    after: Survivors,
    /// Which row each of those comes from that are alive still.
    alive: Vec<u32>,
}

impl Level {
    /// Makes the next vector of pairs; false when no row is left.
    fn advance(&mut self, table: &JoinTable, probe: &ProbePlan) -> bool {
        self.from.clear();
        self.matches.clear();
        let has_condition = probe.condition.is_some();
        // Without a condition, whether a row has a partner is known at once.
        let stays_alone = !has_condition && matches!(probe.kind, JoinKind::Left | JoinKind::Full);
        // Where one partner is enough, others are not looked at.
        let needs_one = has_condition && (probe.kind == JoinKind::Mark || !probe.kind.has_payload());
        let is_unique = table.is_unique();
        while self.row < self.numbers.len() && self.from.len() < VECTOR_LEN {
            let row = self.row as u32;
            let number = self.numbers[self.row];
            if number == NONE || needs_one && self.passed[self.row] {
                if number == NONE && stays_alone {
                    self.from.push(row);
                    self.matches.push(NONE);
                }
                (self.row, self.done) = (self.row + 1, 0);
                continue;
            }
            let one = [number];
            let all = if is_unique { &one } else { table.matches(number) };
            let part = &all[self.done..all.len().min(self.done + VECTOR_LEN - self.from.len())];
            self.from.resize(self.from.len() + part.len(), row);
            self.matches.extend_from_slice(part);
            self.done += part.len();
            if self.done == all.len() {
                (self.row, self.done) = (self.row + 1, 0);
            }
        }
        self.start(probe)
    }

    /// Makes the vector of `from` and `matches`; false when there are none.
    fn start(&mut self, probe: &ProbePlan) -> bool {
        if !self.from.is_empty() {
            self.after.start_with(&self.before, &self.from);
            self.after.meet(probe.join, &mut self.matches);
        }
        !self.from.is_empty()
    }

    /// Makes the vector of rows that come out, or stay, because of the partners that they had or had not; false when there
    /// are none, or the join has no condition.
    fn finish(&mut self, probe: &ProbePlan) -> bool {
        if std::mem::replace(&mut self.is_done, true) {
            return false;
        }
        let comes_out = |passed: bool| match probe.kind {
            JoinKind::Semi => passed,
            JoinKind::Anti | JoinKind::Left | JoinKind::Full => !passed,
            JoinKind::Mark => true,
            _ => false,
        };
        self.from.clear();
        self.from.extend((0..self.passed.len()).filter(|&row| comes_out(self.passed[row])).map(|row| row as u32));
        self.matches.clear();
        let is_mark = probe.kind == JoinKind::Mark;
        let met = |&row: &u32| match self.passed[row as usize] {
            true if is_mark => self.numbers[row as usize],
            _ => NONE,
        };
        self.matches.extend(self.from.iter().map(met));
        self.start(probe)
    }
}

/// A worker's steps in front of its sink.
pub(crate) struct Chain<'a> {
    pub(crate) plan: &'a StepsPlan,
    pub(crate) layout: Layout<'a>,
    pub(crate) state: &'a mut StepsState,
    pub(crate) cancelled: &'a AtomicBool,
    pub(crate) clock: Clock<'a>,
    pub(crate) sink: &'a mut dyn Sink,
}

impl Sink for Chain<'_> {
    fn columns(&self) -> &[usize] {
        &self.plan.scan_columns
    }

    fn bound(&self) -> Option<KeyBound> {
        self.sink.bound()
    }

    fn take(&mut self, flow: &mut Flow<'_>) -> Result<ControlFlow<()>> {
        match self.run(0, flow)? {
            ControlFlow::Break(()) => Ok(ControlFlow::Break(())),
            ControlFlow::Continue(()) => self.resume(),
        }
    }

    fn resume(&mut self) -> Result<ControlFlow<()>> {
        // Below a union the sink has steps of its own, and rows that wait there.
        if self.sink.resume()?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let mut patience = VECTORS_BETWEEN_PAUSES;
        while let Some(index) = self.state.depth.checked_sub(1) {
            check_cancelled(self.cancelled)?;
            if patience == 0 {
                return Ok(ControlFlow::Break(()));
            }
            patience -= 1;
            let begun = self.clock.now();
            let level = &mut self.state.levels[index];
            let step = level.step;
            let StepPlan::Join(probe) = &self.plan.steps[step] else { return Err(misplaced()) };
            let are_pairs = level.advance(&self.layout.tables[probe.join], probe);
            if !are_pairs && !level.finish(probe) {
                self.clock.note(step, begun, 0);
                self.state.depth = index;
                continue;
            }
            let (before, from) = (std::mem::take(&mut level.before), std::mem::take(&mut level.from));
            let (mut after, mut alive) = (std::mem::take(&mut level.after), std::mem::take(&mut level.alive));
            let mut repeated = Repeated::new(&before, &from, &mut alive);
            let mut rows = Flow::new(&mut after, self.layout, Some(&mut repeated));
            let goes_on = if are_pairs { self.judge(probe, index, &from, &mut rows) } else { Ok(true) };
            self.clock.note(step, begun, if matches!(goes_on, Ok(true)) { rows.rows() } else { 0 });
            let done = goes_on.and_then(|goes_on| match goes_on {
                true => self.run(step + 1, &mut rows),
                false => Ok(ControlFlow::Continue(())),
            });
            let level = &mut self.state.levels[index];
            (level.before, level.from, level.after, level.alive) = (before, from, after, alive);
            if done?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

impl Chain<'_> {
    /// Keeps the pairs of a level that are partners, and notes which of the rows that they come from has one; false when no
    /// pair comes out.
    fn judge(&mut self, probe: &ProbePlan, level: usize, from: &[u32], pairs: &mut Flow<'_>) -> Result<bool> {
        if let Some(condition) = &probe.condition {
            let Level { step, passed, .. } = &mut self.state.levels[level];
            let scratch = &mut self.state.filters[*step];
            let before = pairs.rows();
            if !pairs.filter(condition, scratch)? {
                return Ok(false);
            }
            match pairs.rows() == before {
                true => from.iter().for_each(|&row| passed[row as usize] = true),
                false => scratch.kept().iter().for_each(|&pair| passed[from[usize::from(pair)] as usize] = true),
            }
        }
        if probe.kind.has_rest() {
            self.layout.tables[probe.join].mark(pairs.met(probe.join));
        }
        Ok(probe.kind.has_pairs())
    }

    /// Takes rows through the steps from `first` on into the sink, or to a level, where [`Sink::resume`] finds them.
    pub(super) fn run(&mut self, first: usize, flow: &mut Flow<'_>) -> Result<ControlFlow<()>> {
        let state = &mut *self.state;
        state.filters.resize_with(self.plan.steps.len(), FilterScratch::default);
        state.probes.resize_with(self.plan.steps.len(), Probe::default);
        for (step, plan) in self.plan.steps.iter().enumerate().skip(first) {
            let live = &self.plan.live[step];
            let begun = self.clock.now();
            let some = match plan {
                StepPlan::Filter(program) => flow.filter(program, &mut state.filters[step])?,
                StepPlan::Join(probe) => {
                    let table = &*self.layout.tables[probe.join];
                    flow.load(probe.columns())?;
                    let scratch = &mut state.probes[step];
                    scratch.find(probe, table, flow.columns(), flow.rows())?;
                    flow.survivors.keep_columns(live);
                    if probe.may_expand(table) {
                        // What the others would have had is not even loaded.
                        if probe.kind.needs_partner() && !scratch.keep_partners(flow.survivors)? {
                            self.clock.note(step, begun, 0);
                            return Ok(ControlFlow::Continue(()));
                        }
                        flow.load_scanned(live)?;
                        state.push_level(step, probe.condition.is_some(), flow);
                        self.clock.note(step, begun, 0);
                        return Ok(ControlFlow::Continue(()));
                    }
                    scratch.narrow(probe, table, flow.survivors)?
                }
            };
            self.clock.note(step, begun, if some { flow.rows() } else { 0 });
            if !some {
                return Ok(ControlFlow::Continue(()));
            }
        }
        self.sink.take(flow)
    }
}

impl StepsState {
    /// Moves rows, whose numbers were found, to a level of their own.
    fn push_level(&mut self, step: usize, has_condition: bool, flow: &mut Flow<'_>) {
        if self.levels.len() == self.depth {
            self.levels.push(Level::default());
        }
        let level = &mut self.levels[self.depth];
        (level.step, level.row, level.done) = (step, 0, 0);
        std::mem::swap(&mut level.numbers, self.probes[step].numbers_mut());
        level.passed.clear();
        level.is_done = !has_condition;
        if has_condition {
            level.passed.resize(level.numbers.len(), false);
        }
        std::mem::swap(&mut level.before, flow.survivors);
        self.depth += 1;
    }
}

fn misplaced() -> Error {
    Error::Unsupported("rows that wait for a join where there is none".into())
}
