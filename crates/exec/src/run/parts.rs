//! Parts of a pipeline's rows: how they come into a file, and what runs over each.

use super::role::{OutputPlan, Role};
use super::spilling::DEPTH_MAX;
use super::{Prepared, Reader, Run, Shares, Worker, brought, panicked, unless_it_fails};
use crate::error::check_cancelled;
use crate::measure::{Measured, Stage};
use crate::spill::{NullKeys, Part, SpillWriter, SpilledColumns, SpilledGroup, Split};
use crate::{Batch, Error, Expr, Gathered, Memory, Output, Pipeline, Result, SpillFile, Spilled};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

impl Run {
    /// Spills the rows of a pipeline with some output of rows, in parts by these keys over its columns.
    ///
    /// # Errors
    /// Those of running it and of writing; [`Error::Unsupported`] for lists and structs.
    #[expect(clippy::too_many_arguments, reason = "all of a spilling")]
    pub(super) fn parts(
        &self,
        mut pipeline: Pipeline,
        keys: &[Expr],
        nulls: NullKeys,
        split: &Split,
        prepared: Option<Prepared>,
        threads: usize,
        memory: &Arc<dyn Memory>,
    ) -> Result<Vec<Part>> {
        if let Output::Rows(rows) = &mut pipeline.output {
            rows.extend_from_slice(keys);
        }
        let role = Role::Parts { key_count: keys.len(), split: split.clone(), nulls };
        let counters = self.new_stage(&pipeline, None);
        let run = Run::with_counters(pipeline, role, Shares { is_measured: false, ..self.shares.clone() }, counters)?;
        match prepared {
            Some(prepared) => run.begin_with(prepared)?,
            None => run.prepare(threads, memory)?,
        }
        let run = run.current();
        let OutputPlan::Parts(plan) = &run.output else {
            return Err(Error::Unsupported("parts of what are no rows".into()));
        };
        let workers = run.on_threads(threads, Worker::parts)?;
        run.release();
        Ok(plan.finish(workers))
    }

    /// Runs pipelines with the same output, each over rows that were parted so often, and spills what they make: so many rows
    /// at most, if there is a limit. Where they are small, each runs on one thread beside others; those that are refused memory
    /// then, once more when all others are done. Large ones run one after the other from the start.
    ///
    /// # Errors
    /// Those of running and writing; [`Error::OutOfMemory`] where a part is refused memory alone, too.
    pub(super) fn each_part(
        &self,
        pipelines: Vec<(Pipeline, u32)>,
        are_small: bool,
        limit: Option<usize>,
        threads: usize,
        memory: &Arc<dyn Memory>,
    ) -> Result<Spilled> {
        let columns = output_columns(pipelines.first().map_or(&self.pipeline, |(pipeline, _)| pipeline));
        let file = memory.spill_file()?.ok_or_else(no_file)?;
        let measured = pipelines.first().and_then(|(first, _)| self.new_stage(first, Some(pipelines.len())));
        let part = |number: usize, depth: u32| {
            let counters = Arc::clone(&self.shares.counters);
            // Of temporary rows nobody asks whether they were decoded before.
            let shares = Shares { counters, stop: self.stop.part(), is_measured: false, decoded: None, depth };
            Run::with_counters(pipelines[number].0.clone(), Role::Whole, shares, measured.clone())
        };
        let (next, rows) = (AtomicUsize::new(0), AtomicUsize::new(0));
        // Those that are to run alone, on all threads.
        let alone = Mutex::new(if are_small { Vec::new() } else { (0..pipelines.len()).collect() });
        let is_enough = || limit.is_some_and(|limit| rows.load(Ordering::Relaxed) >= limit);
        let work = || {
            let mut out = PartsOut::new(&file, &columns, &rows)?;
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= pipelines.len() || is_enough() {
                    return out.finish();
                }
                check_cancelled(self.stop.flag())?;
                // Parted again it is only when it has failed alone.
                if !out.take(&part(number, DEPTH_MAX)?, memory)? {
                    alone.lock().unwrap_or_else(PoisonError::into_inner).push(number);
                }
            }
        };
        let end = || {
            self.stop.halt();
            self.stop.cancel_parts();
        };
        let mut groups = match are_small {
            true => on_threads(threads.min(pipelines.len().max(1)), work, end)?.concat(),
            false => Vec::new(),
        };
        let alone = alone.into_inner().unwrap_or_else(PoisonError::into_inner);
        for number in alone.into_iter().take_while(|_| !is_enough()) {
            check_cancelled(self.stop.flag())?;
            let part = part(number, pipelines[number].1)?;
            let out = || PartsOut::new(&file, &columns, &rows);
            if let Output::Rows(_) = part.pipeline.output {
                part.prepare(threads, memory)?;
                let work = || {
                    let mut out = out()?;
                    out.take_rows(&part)?;
                    out.finish()
                };
                groups.extend(on_threads(threads, work, end)?.concat());
            } else {
                let mut out = out()?;
                out.take_gathered(part.gathered(threads, memory)?)?;
                groups.extend(out.finish()?);
            }
        }
        Ok(Spilled::new(columns.clone(), groups))
    }
}

impl Run {
    /// Counters for a pipeline over spilled rows, and a note of it, where this run is measured.
    fn new_stage(&self, pipeline: &Pipeline, parts: Option<usize>) -> Option<Arc<Measured>> {
        self.measured.as_ref()?;
        let measured = Arc::new(Measured::new(pipeline.steps.len()));
        let stage = Stage { pipeline: pipeline.clone(), measured: Arc::clone(&measured), parts };
        self.stages.lock().unwrap_or_else(PoisonError::into_inner).push(stage);
        Some(measured)
    }
}

/// Does `work` on so many threads, this one included, and returns what each brought. Once one fails, `end` ends the others.
fn on_threads<T: Send>(
    threads: usize,
    work: impl Fn() -> Result<T> + Send + Sync,
    end: impl Fn() + Send + Sync,
) -> Result<Vec<T>> {
    let work = || unless_it_fails(&work, &end);
    brought(std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut all = vec![work()];
        let joined = helpers.into_iter().map(|helper| helper.join().unwrap_or_else(|panic| Err(panicked(&*panic))));
        all.extend(joined);
        all
    }))
}

/// What a pipeline hands out.
pub(super) fn output_columns(pipeline: &Pipeline) -> SpilledColumns {
    let types = pipeline.output_types();
    let names = match &pipeline.output {
        Output::Rows(rows) => rows.iter().map(|expr| pipeline.short_text(expr)).collect(),
        _ => (0..types.len()).map(|column| format!("column {column}")).collect(),
    };
    SpilledColumns { names, types: types.into() }
}

#[cold]
pub(super) fn no_file() -> Error {
    Error::OutOfMemory("rows do not fit the memory, and no file for them can be made; raise memory_limit".into())
}

/// What comes out of parts.
struct PartsOut<'a> {
    writer: SpillWriter,
    groups: Vec<SpilledGroup>,
    /// Of all.
    rows: &'a AtomicUsize,
}

impl<'a> PartsOut<'a> {
    fn new(file: &Arc<dyn SpillFile>, columns: &SpilledColumns, rows: &'a AtomicUsize) -> Result<PartsOut<'a>> {
        Ok(PartsOut { writer: SpillWriter::new(file, columns, 1)?, groups: Vec::new(), rows })
    }

    /// Adds what a part makes, on one thread; false, and nothing, where it is refused memory.
    fn take(&mut self, part: &Arc<Run>, memory: &Arc<dyn Memory>) -> Result<bool> {
        let taken = match part.pipeline.output {
            Output::Rows(_) => part.prepare(1, memory).map(|()| self.take_rows(part)),
            _ => part.gathered(1, memory).map(|gathered| self.take_gathered(gathered)),
        };
        match taken {
            Err(Error::OutOfMemory(_)) => Ok(false),
            taken => taken?.map(|()| true),
        }
    }

    /// Adds a worker's share of the rows of a part that is prepared.
    fn take_rows(&mut self, part: &Arc<Run>) -> Result<()> {
        part.worker().for_each(|batch| self.push(batch).map(ControlFlow::Continue))
    }

    /// Adds what a part made of all its rows.
    fn take_gathered(&mut self, gathered: Gathered) -> Result<()> {
        if let Gathered::Spilled(table) = gathered {
            self.groups.extend_from_slice(table.groups());
            return Ok(());
        }
        let (mut reader, mut batch) = (Reader::new(gathered)?, Batch::default());
        while reader.next(&mut batch)? {
            self.push(&batch)?;
        }
        Ok(())
    }

    fn push(&mut self, batch: &Batch) -> Result<()> {
        self.rows.fetch_add(batch.rows, Ordering::Relaxed);
        self.writer.push(0, &batch.columns, batch.rows)
    }

    fn finish(self) -> Result<Vec<SpilledGroup>> {
        Ok([self.groups, self.writer.finish()?.concat()].concat())
    }
}
