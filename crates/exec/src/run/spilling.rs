//! What a run does that is refused memory: where its pipeline is cut, and how it goes on. See [`crate::spill`].

use super::parts::no_file;
use super::role::Role;
use super::{Prepared, Run};
use crate::measure::SpillNotedMemory;
use crate::memory::Capped;
use crate::sort::{SortPlan, SpilledRun};
use crate::spill::{NullKeys, PARTS, PARTS_OF_PART, Part, Split};
use crate::{
    Error, Expr, Gathered, Join, JoinKind, LogicalType, Memory, Merged, OnDamage, Output, Pipeline, Result, Sorted,
    Source, Spilled, Step,
};
use sinter_codec::Scalar;
use std::sync::Arc;

/// So often are rows parted; those of a part of this depth are not, whatever memory they take. Each time, two keys stay
/// together in one of eight cases.
pub(super) const DEPTH_MAX: u32 = 5;

impl Run {
    /// As [`Run::gathered`], after that was refused memory with this error.
    ///
    /// # Errors
    /// The same, where there are no keys to part rows by; as [`Run::gathered`].
    pub(super) fn gathered_in_parts(
        self: &Arc<Run>,
        refused: Error,
        threads: usize,
        memory: &Arc<dyn Memory>,
    ) -> Result<Gathered> {
        if self.can_halve_sets() {
            return self.sets_by_halves(refused, threads, memory);
        }
        let Some(cut) = self.output_cut() else { return Err(refused) };
        let memory = &self.spill_noted(cut.step, memory);
        let Some(split) = self.split(memory)? else { return Err(refused) };
        self.stop.resume()?;
        let prepared = self.shared_preparation(self.steps.has_rest());
        self.release();
        let before = self.pipeline.before(cut.step, &cut.kept);
        let parts = self.parts(before, cut.keys, NullKeys::AreEqual, &split, prepared, threads, memory)?;
        let parts = parts.into_iter().filter(|part| part.rows.rows() > 0);
        let pipeline = |part: Part| {
            let depth = self.depth_of(&part);
            (self.pipeline.after(cut.step, &cut.kept, part.rows), depth)
        };
        let pipelines = parts.map(pipeline).collect();
        Ok(Gathered::Spilled(Arc::new(self.each_part(pipelines, true, None, threads, memory)?)))
    }

    /// The groups by half of the sets, then by the others; by one alone as by any keys, which rows are parted by.
    ///
    /// # Errors
    /// That they were `refused` it, where there is no file; as [`Run::gathered`].
    fn sets_by_halves(self: &Arc<Run>, refused: Error, threads: usize, memory: &Arc<dyn Memory>) -> Result<Gathered> {
        if memory.spill_file()?.is_none() {
            return Err(refused);
        }
        self.stop.resume()?;
        self.release();
        let memory = &self.spill_noted(self.pipeline.steps.len(), memory);
        let halves = self.pipeline.halves_of_sets().into_iter().map(|half| (half, self.shares.depth)).collect();
        Ok(Gathered::Spilled(Arc::new(self.each_part(halves, false, None, threads, memory)?)))
    }

    /// Whether it groups by several sets, and fewer at a time would do: the rows are the same each time, and none is left out
    /// because of keys that only some of the sets have.
    fn can_halve_sets(&self) -> bool {
        matches!(self.pipeline.output, Output::GroupingSets { .. })
            && matches!(self.pipeline.on_damage, OnDamage::Fail)
            && self.pipeline.has_repeatable_rows()
            && self.pipeline.output_types().iter().all(is_plain)
            && self.shares.depth < DEPTH_MAX
    }

    /// The memory of what is made of the pipeline's rows: no more than whoever can spill is to hold, if that can.
    pub(super) fn output_memory(&self, memory: &Arc<dyn Memory>) -> Arc<dyn Memory> {
        let can_spill = || match self.pipeline.output {
            Output::Sorted { .. } => true,
            Output::GroupingSets { .. } => self.can_halve_sets(),
            _ => self.output_cut().is_some(),
        };
        Capped::of(memory, can_spill)
    }

    /// The same of the table of a join.
    pub(super) fn table_memory(&self, number: usize, memory: &Arc<dyn Memory>) -> Arc<dyn Memory> {
        Capped::of(memory, || self.join_cut(number).is_some())
    }

    /// How the rows of groups or windows can be parted; `None` where they cannot.
    fn output_cut(&self) -> Option<Cut<'_>> {
        let keys = match &self.pipeline.output {
            Output::Groups { keys, .. } => &keys[..],
            Output::Windows { window, .. } => &window.partition,
            Output::Rows(_) | Output::Aggregate(_) | Output::GroupingSets { .. } | Output::Sorted { .. } => {
                return None;
            }
        };
        let step = self.pipeline.steps.len();
        let are_plain = self.pipeline.output_types().iter().all(is_plain);
        self.cut(step, keys).filter(|_| are_plain)
    }

    /// How both sides of a join can be parted; `None` where they cannot.
    fn join_cut(&self, number: usize) -> Option<(&Join, Cut<'_>, TheirRows)> {
        let joins = self.pipeline.steps.iter().enumerate().filter_map(|(step, of)| match of {
            Step::Join(join) => Some((step, join)),
            Step::Filter(_) => None,
        });
        let (step, join) = joins.into_iter().nth(number)?;
        // Whether a key is none of theirs depends on all of theirs.
        if join.kind == JoinKind::NotIn {
            return None;
        }
        let theirs = TheirRows::of(self.builds[number].current())?;
        Some((join, self.cut(step, &join.keys)?, theirs))
    }

    /// In front of a step, by these keys.
    fn cut<'a>(&self, step: usize, keys: &'a [Expr]) -> Option<Cut<'a>> {
        let (kept, types) = (self.pipeline.columns_wanted(step), self.pipeline.column_types());
        let are_plain = kept.iter().all(|&column| is_plain(&types[column]))
            && keys.iter().all(|key| is_plain(&key.type_over(&types)));
        let is_possible = !keys.is_empty() && are_plain && self.shares.depth < DEPTH_MAX;
        is_possible.then_some(Cut { step, keys, kept })
    }

    /// Sorted rows, of which those are spilled that do not fit the memory.
    ///
    /// # Errors
    /// As [`Run::gathered`].
    pub(super) fn sorted_or_spilled(
        self: &Arc<Run>,
        plan: &Arc<SortPlan>,
        threads: usize,
        memory: &Arc<dyn Memory>,
    ) -> Result<Gathered> {
        let memory = &self.noted(&self.spill_noted(self.pipeline.steps.len(), memory));
        let runs = self.sorted_runs(plan, true, threads, memory)?;
        let (mut in_memory, mut spilled) = (Vec::new(), Vec::new());
        for runs in runs {
            in_memory.extend(runs.in_memory);
            spilled.extend(runs.spilled);
        }
        self.finished(|| {
            let room = if spilled.is_empty() { Some(Sorted::room(plan, &in_memory, memory)) } else { None };
            let file = match room {
                Some(Ok(room)) => {
                    return Ok(Gathered::Sorted(Sorted::new(plan, in_memory, room, threads, self.stop.flag())?));
                }
                Some(Err(refused)) => memory.spill_file()?.ok_or(refused)?,
                None => memory.spill_file()?.ok_or_else(no_file)?,
            };
            for run in in_memory.drain(..) {
                spilled.push(SpilledRun::write(plan, &run, &file, self.stop.flag())?);
            }
            let merged = Merged::new(plan, spilled, &file, &self.stop, self.measured.clone())?;
            Ok(Gathered::Merged(Box::new(merged)))
        })
    }

    /// What this pipeline becomes when rows of the build side of a join do not fit the memory: the rest of it over the joined
    /// rows.
    ///
    /// # Errors
    /// That they were `refused` it, where there are no keys to part rows by; as [`Run::prepare`].
    pub(super) fn joined_in_parts(
        self: &Arc<Run>,
        number: usize,
        prepared: Prepared,
        refused: Error,
        threads: usize,
        memory: &Arc<dyn Memory>,
    ) -> Result<Pipeline> {
        let Some((join, Cut { step, keys, kept }, theirs)) = self.join_cut(number) else { return Err(refused) };
        let memory = &self.spill_noted(step, memory);
        let Some(split) = self.split(memory)? else { return Err(refused) };
        let build = self.builds[number].current();
        self.stop.resume()?;

        let nulls = |come_to_nothing: bool| match (join.nulls_are_equal, come_to_nothing) {
            (true, _) => NullKeys::AreEqual,
            (false, true) => NullKeys::AreLeftOut,
            (false, false) => NullKeys::MeetNobody,
        };
        let their_parts = {
            let prepared = build.shared_preparation(build.steps.has_rest());
            build.release();
            let before = Pipeline { output: Output::Rows(theirs.kept.clone()), ..build.pipeline.clone() };
            build.parts(before, &theirs.keys, nulls(!join.kind.has_rest()), &split, prepared, threads, memory)?
        };
        let our_parts = {
            // No row of ours has met anybody yet.
            let prepared = Some(prepared).filter(|_| !matches!(self.pipeline.source, Source::Union(_)));
            if prepared.is_none() {
                // What its inputs have is made anew.
                self.release();
            }
            let before = self.pipeline.before(step, &kept);
            self.parts(before, keys, nulls(join.kind.needs_partner()), &split, prepared, threads, memory)?
        };
        self.release();

        let mut rest = Vec::with_capacity(split.part_count);
        for (our_part, their_part) in our_parts.into_iter().zip(their_parts) {
            let is_empty = our_part.rows.rows() == 0 && their_part.rows.rows() == 0;
            let depth = self.depth_of(&their_part);
            let mut pipeline = self.pipeline.after(step, &kept, our_part.rows);
            if let Some(Step::Join(join)) = pipeline.steps.first_mut() {
                *join.build = theirs.pipeline(their_part.rows);
            }
            // One that is empty still says what comes after all parts.
            if !is_empty || rest.is_empty() {
                rest.push((pipeline, depth));
            }
        }
        // There is one at least.
        let Some((first, _)) = rest.first().cloned() else { return Err(refused) };
        // Conditions on pairs come along.
        let filters = first.steps[1..].iter().take_while(|step| matches!(step, Step::Filter(_))).count();
        let done = 1 + filters;
        let kept = first.columns_wanted(done);
        let limit = first.limit.filter(|_| done == first.steps.len() && matches!(first.output, Output::Rows(_)));
        let joined =
            rest.iter().map(|(rest, depth)| (Pipeline { limit, ..rest.before(done, &kept) }, *depth)).collect();
        drop(rest);
        let table = self.each_part(joined, true, limit, threads, memory)?;
        Ok(first.after(done, &kept, Arc::new(table)))
    }

    /// How rows are parted; `None` where there is no file for that.
    fn split(&self, memory: &Arc<dyn Memory>) -> Result<Option<Split>> {
        let part_count = if self.shares.depth == 0 { PARTS } else { PARTS_OF_PART };
        Ok(memory.spill_file()?.map(|file| Split { part_count, hasher: Default::default(), file }))
    }

    /// How often rows of a part have been parted.
    fn depth_of(&self, part: &Part) -> u32 {
        if part.has_one_key { DEPTH_MAX } else { self.shares.depth + 1 }
    }

    /// What is prepared already, where another run that goes through all rows may begin with it: not the pipelines of a
    /// union, nor tables in which it was noted who was met.
    fn shared_preparation(&self, is_marked: bool) -> Option<Prepared> {
        let is_shareable = !is_marked && !matches!(self.pipeline.source, Source::Union(_));
        let prepared = self.prepared().ok().filter(|_| is_shareable)?;
        let mut prepared = Prepared::clone(&prepared);
        if let Some(Gathered::Merged(merged)) = prepared.gathered.as_deref() {
            prepared.gathered = Some(Arc::new(Gathered::Merged(Box::new(merged.again()))));
        }
        Some(prepared)
    }

    /// The memory, with a note of what is spilled at a step where that is wanted.
    fn spill_noted(&self, step: usize, memory: &Arc<dyn Memory>) -> Arc<dyn Memory> {
        match &self.measured {
            // Of a part, it is noted by the run that has the parts.
            Some(measured) if self.shares.is_measured => {
                Arc::new(SpillNotedMemory { memory: Arc::clone(memory), measured: Arc::clone(measured), step })
            }
            _ => Arc::clone(memory),
        }
    }
}

/// Where a pipeline is cut, and by what its rows are parted there.
struct Cut<'a> {
    /// In front of it.
    step: usize,
    keys: &'a [Expr],
    /// The columns that come later.
    kept: Vec<usize>,
}

fn is_plain(ty: &LogicalType) -> bool {
    ty.physical().is_some()
}

/// What is spilled of a build side.
struct TheirRows {
    /// Of what it hands out.
    kept: Vec<Expr>,
    keys: Vec<Expr>,
    /// Which of the kept each of its outputs is; those of this type are not wanted.
    places: Vec<std::result::Result<usize, LogicalType>>,
}

impl TheirRows {
    /// Keys, and the payload that is wanted; `None` where that is nested.
    fn of(build: &Run) -> Option<TheirRows> {
        let (Output::Rows(exprs), Role::Build(wanted)) = (&build.pipeline.output, &build.role) else { return None };
        let types = build.pipeline.column_types();
        let key_count = wanted.key_types.len();
        let mut theirs = TheirRows { kept: Vec::new(), keys: exprs.get(..key_count)?.to_vec(), places: Vec::new() };
        for (output, expr) in exprs.iter().enumerate() {
            let ty = expr.type_over(&types);
            let payload = output.checked_sub(key_count);
            if payload.is_some_and(|payload| !wanted.is_wanted.get(payload).copied().unwrap_or(false)) {
                theirs.places.push(Err(ty));
                continue;
            }
            ty.physical()?;
            let is_known =
                |known: &Expr| matches!((known, expr), (Expr::Column(one), Expr::Column(other)) if one == other);
            let place = theirs.kept.iter().position(is_known).unwrap_or(theirs.kept.len());
            if place == theirs.kept.len() {
                theirs.kept.push(expr.clone());
            }
            theirs.places.push(Ok(place));
        }
        Some(theirs)
    }

    /// The build side over a part of them.
    fn pipeline(&self, table: Arc<Spilled>) -> Pipeline {
        let expr = |place: &std::result::Result<usize, LogicalType>| match place {
            Ok(column) => Expr::Column(*column),
            Err(ty) => Expr::Literal(Scalar::Null, ty.clone()),
        };
        Pipeline::of_table(table, Output::Rows(self.places.iter().map(expr).collect()))
    }
}
