//! What must be there before a pipeline's rows flow: tables of its joins, and the rows of another pipeline.

use super::{OutputPlan, Run};
use crate::join::JoinTable;
use crate::scan::{Claims, ScanPlan};
use crate::{Error, Gathered, Memory, OnDamage, Output, Pipeline, Result, Source, TableSource};
use std::sync::{Arc, PoisonError};
use std::time::Instant;

/// What workers find there.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prepared {
    /// By join.
    pub(crate) tables: Vec<Arc<JoinTable>>,
    /// What the other pipeline made of all its rows.
    pub(crate) gathered: Option<Arc<Gathered>>,
    /// What the scan does instead, where the tables tell which rows meet nobody.
    pub(crate) scan: Option<Arc<ScanPlan>>,
    /// Rows of the table that keys of joins lead to: no others meet anybody.
    pub(super) found: Option<Arc<Found>>,
}

/// Some rows of a table, and who has taken which.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) table: Arc<dyn TableSource>,
    pub(super) claims: Claims,
}

/// How far that is.
#[derive(Debug, Default)]
pub(super) enum Preparation {
    #[default]
    Pending,
    Done,
    /// With this error, or one as [`Error::again`] has it.
    Failed(Error),
}

impl Run {
    /// Makes the tables of all joins and the groups that rows come from, on this many threads, this one included. Whoever
    /// comes later waits. Not all pipelines [need it](Pipeline::needs_preparation).
    ///
    /// # Errors
    /// As [`Run::groups`], and those of files where rows are spilled; when another caller's preparation failed, its error, or [`Error::FailedBefore`] with the text.
    pub fn prepare(self: &Arc<Run>, threads: usize, memory: &Arc<dyn Memory>) -> Result<()> {
        let mut preparation = self.preparation.lock().unwrap_or_else(PoisonError::into_inner);
        match &*preparation {
            Preparation::Pending => {}
            Preparation::Done => return Ok(()),
            Preparation::Failed(error) => return Err(error.again()),
        }
        // What a part joins with has no counters of its own.
        let counters = self.measured.as_ref().filter(|_| !self.shares.is_measured);
        let clock = counters.map(|counters| (counters, Instant::now()));
        let prepared = self.prepare_here(threads, memory);
        if let Some((counters, begun)) = clock {
            counters.worked(begun);
        }
        *preparation = match &prepared {
            Ok(()) => Preparation::Done,
            Err(error) => Preparation::Failed(error.again()),
        };
        prepared
    }

    fn prepare_here(self: &Arc<Run>, threads: usize, memory: &Arc<dyn Memory>) -> Result<()> {
        let mut prepared = Prepared::default();
        for input in &self.inputs {
            match &self.pipeline.source {
                Source::Gathered(_) => match input.gathered(threads, memory)? {
                    Gathered::Spilled(table) => {
                        let (source, on_damage) = (Source::Table(table), OnDamage::Fail);
                        let pipeline = Pipeline { source, on_damage, ..self.pipeline.clone() };
                        return self.go_on_with(pipeline, threads, memory);
                    }
                    // Rows that come out stay in their order, which one worker reads.
                    Gathered::Merged(merged) if !matches!(self.pipeline.output, Output::Rows(_)) => {
                        prepared.gathered = Some(Arc::new(Gathered::Merged(Box::new(merged.for_threads(threads)?))));
                    }
                    gathered => prepared.gathered = Some(Arc::new(gathered)),
                },
                Source::Table(_) | Source::Union(_) => input.prepare(threads, memory)?,
            }
        }
        for (number, build) in self.builds.iter().enumerate() {
            match build.table(threads, memory, &self.table_memory(number, memory)) {
                Ok(table) => prepared.tables.push(Arc::new(table)),
                // Unless it was for what it needs itself.
                Err(refused @ Error::OutOfMemory(_)) if build.is_prepared() => {
                    let pipeline = self.joined_in_parts(number, prepared, refused, threads, memory)?;
                    return self.go_on_with(pipeline, threads, memory);
                }
                Err(error) => return Err(error),
            }
        }
        self.begin_with(prepared)
    }

    /// Has another run do what this one is for: that of a pipeline which makes the same of rows that were spilled.
    fn go_on_with(self: &Arc<Run>, pipeline: Pipeline, threads: usize, memory: &Arc<dyn Memory>) -> Result<()> {
        let run = Run::new(pipeline, self.role.clone(), self.shares.clone())?;
        let run = self.replacement.get_or_init(|| run);
        run.prepare(threads, memory)
    }

    /// Lets workers begin with this.
    pub(super) fn begin_with(&self, mut prepared: Prepared) -> Result<()> {
        let conditions = self.pipeline.conditions_of_joins(&prepared.tables);
        let narrowed = || ScanPlan::narrowed(&self.pipeline, &conditions).map(Arc::new);
        prepared.scan = if conditions.is_empty() { None } else { Some(narrowed()?) };
        if let (Some(_), Some(scan)) = (&self.measured, &prepared.scan) {
            self.explained_scan.get_or_init(|| Arc::clone(scan));
        }
        prepared.found = self.found(&prepared.tables)?.map(Arc::new);
        *self.prepared.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(prepared));
        Ok(())
    }

    /// The rows of its table that joins lead to, where their keys are few and something finds rows by them.
    fn found(&self, tables: &[Arc<JoinTable>]) -> Result<Option<Found>> {
        let Some(finder) = self.pipeline.source.table().and_then(|table| table.finder()) else { return Ok(None) };
        let lists = self.pipeline.lists_of_joins(tables);
        if lists.is_empty() {
            return Ok(None);
        }
        let conditions = [&self.pipeline.filter[..], &lists].concat();
        let Some(table) = finder.find(&self.pipeline.columns, &conditions)? else { return Ok(None) };
        let claims = Claims::new(&self.pipeline, Some(&*table), self.shares.decoded.clone());
        self.found_by.get_or_init(|| table.seek().unwrap_or_else(|| "by the keys of joins".to_owned()));
        Ok(Some(Found { table, claims }))
    }

    /// What its workers find there.
    pub(super) fn prepared(&self) -> Result<Arc<Prepared>> {
        let prepared = self.prepared.read().unwrap_or_else(PoisonError::into_inner);
        prepared.clone().ok_or_else(|| Error::Unsupported("a join, or gathered rows, that are not there yet".into()))
    }

    /// Lets go of it, and of that of its inputs: no worker comes any more.
    pub(super) fn release(&self) {
        *self.prepared.write().unwrap_or_else(PoisonError::into_inner) = None;
        self.inputs.iter().for_each(|input| input.current().release());
    }

    fn is_prepared(&self) -> bool {
        matches!(*self.preparation.lock().unwrap_or_else(PoisonError::into_inner), Preparation::Done)
    }

    /// The table of this build side, in memory of its own.
    fn table(
        self: &Arc<Run>,
        threads: usize,
        memory: &Arc<dyn Memory>,
        own_memory: &Arc<dyn Memory>,
    ) -> Result<JoinTable> {
        self.prepare(threads, memory)?;
        let run = self.current();
        let OutputPlan::Build(plan) = &run.output else {
            return Err(Error::Unsupported("rows as a join's table".into()));
        };
        let memory = &run.noted(own_memory);
        let workers_memory = Arc::clone(memory);
        let sinks = run.on_threads(threads, move |worker| worker.build(&workers_memory))?;
        let table = run.finished(|| plan.finish(sinks, threads, memory, run.stop.flag()))?;
        run.release();
        Ok(table)
    }
}
