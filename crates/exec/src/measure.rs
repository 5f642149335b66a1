//! What each operator of a run did, for EXPLAIN ANALYZE: rows, time, memory.
//!
//! Only a run that is [measured](crate::Pipeline::start_measured) has these; others do not look at a clock. Times are of all
//! threads together, and of an operator without those that its rows reach next; columns are decoded in the time of whoever asks
//! for them first.

use crate::flow::{Flow, KeyBound, Sink};
use crate::{Memory, Pipeline, Result, SpillCompression, SpillFile};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

/// Of one operator.
#[derive(Debug, Default)]
pub(crate) struct OperatorCounters {
    /// That came out of it.
    pub(crate) rows: AtomicU64,
    pub(crate) nanos: AtomicU64,
    /// Bytes written of rows that did not fit the memory.
    pub(crate) spilled: AtomicU64,
}

impl OperatorCounters {
    fn add(&self, rows: usize, begun: Instant) {
        self.rows.fetch_add(rows as u64, Ordering::Relaxed);
        let nanos = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }
}

/// Of all operators of a pipeline.
#[derive(Debug)]
pub(crate) struct Measured {
    /// Where rows come from; the time is that of the whole pipeline.
    pub(crate) source: OperatorCounters,
    pub(crate) steps: Box<[OperatorCounters]>,
    /// Rows are those that came in.
    pub(crate) output: OperatorCounters,
    pub(crate) workers: AtomicUsize,
    pub(crate) memory: Peak,
}

impl Measured {
    pub(crate) fn new(steps: usize) -> Measured {
        Measured {
            source: OperatorCounters::default(),
            steps: (0..steps).map(|_| OperatorCounters::default()).collect(),
            output: OperatorCounters::default(),
            workers: AtomicUsize::new(0),
            memory: Peak::default(),
        }
    }

    /// Adds the time that a worker was at it.
    pub(crate) fn worked(&self, begun: Instant) {
        self.source.add(0, begun);
    }

    /// Adds the time of what is left when all workers are done.
    pub(crate) fn finished(&self, begun: Instant) {
        self.worked(begun);
        self.output.add(0, begun);
    }

    /// Of a step; behind the last step, of the output.
    fn operator(&self, step: usize) -> &OperatorCounters {
        self.steps.get(step).unwrap_or(&self.output)
    }

    /// What the source alone took.
    pub(crate) fn source_nanos(&self) -> u64 {
        let of = |counters: &OperatorCounters| counters.nanos.load(Ordering::Relaxed);
        let others = self.steps.iter().map(of).sum::<u64>() + of(&self.output);
        of(&self.source).saturating_sub(others)
    }
}

/// What went over rows of a pipeline that did not fit the memory: what parted them, or what ran over the parts.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    /// Of parts, that of the first.
    pub(crate) pipeline: Pipeline,
    /// Of all parts together. The time to keep what they join with is that of their source.
    pub(crate) measured: Arc<Measured>,
    /// How many parts; `None` for what parted them.
    pub(crate) parts: Option<usize>,
}

/// Counts for whoever goes through steps, where somebody wants to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock<'a>(pub(crate) Option<&'a Measured>);

impl Clock<'_> {
    pub(crate) fn now(self) -> Option<Instant> {
        self.0.map(|_| Instant::now())
    }

    /// Notes that a step that began then has made so many rows.
    pub(crate) fn note(self, step: usize, begun: Option<Instant>, rows: usize) {
        if let Some((measured, begun)) = self.0.zip(begun) {
            measured.steps[step].add(rows, begun);
        }
    }
}

/// Counts the rows that come to a sink, and the time that it takes where it is the last.
pub(crate) struct MeasuredSink<'a> {
    pub(crate) sink: &'a mut dyn Sink,
    pub(crate) measured: &'a Measured,
    pub(crate) is_output: bool,
}

impl MeasuredSink<'_> {
    fn note(&self, rows: usize, begun: Instant) {
        match self.is_output {
            true => self.measured.output.add(rows, begun),
            false => {
                self.measured.source.rows.fetch_add(rows as u64, Ordering::Relaxed);
            }
        }
    }
}

impl Sink for MeasuredSink<'_> {
    fn columns(&self) -> &[usize] {
        self.sink.columns()
    }

    fn take(&mut self, flow: &mut Flow<'_>) -> Result<ControlFlow<()>> {
        let (rows, begun) = (flow.rows(), Instant::now());
        let taken = self.sink.take(flow);
        self.note(rows, begun);
        taken
    }

    fn resume(&mut self) -> Result<ControlFlow<()>> {
        let begun = Instant::now();
        let taken = self.sink.resume();
        self.note(0, begun);
        taken
    }

    fn take_group(&mut self, group: usize, rows: usize) -> bool {
        let begun = Instant::now();
        let taken = self.sink.take_group(group, rows);
        self.note(if taken { rows } else { 0 }, begun);
        taken
    }

    fn would_take_group(&self, group: usize) -> bool {
        self.sink.would_take_group(group)
    }

    fn bound(&self) -> Option<KeyBound> {
        self.sink.bound()
    }
}

/// The most that was held at once.
#[derive(Debug, Default)]
pub(crate) struct Peak {
    held: AtomicUsize,
    most: AtomicUsize,
}

impl Peak {
    pub(crate) fn bytes(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }
}

/// Memory of which a run notes what its step spills, parts of it included.
#[derive(Debug)]
pub(crate) struct SpillNotedMemory {
    pub(crate) memory: Arc<dyn Memory>,
    pub(crate) measured: Arc<Measured>,
    pub(crate) step: usize,
}

impl Memory for SpillNotedMemory {
    fn grow(&self, bytes: usize) -> Result<()> {
        self.memory.grow(bytes)
    }

    fn shrink(&self, bytes: usize) {
        self.memory.shrink(bytes);
    }

    fn spill_file(&self) -> Result<Option<Arc<dyn SpillFile>>> {
        let file = self.memory.spill_file()?;
        let noted = |file| NotedFile { file, measured: Arc::clone(&self.measured), step: self.step };
        Ok(file.map(|file| Arc::new(noted(file)) as Arc<dyn SpillFile>))
    }

    fn spills_beyond(&self) -> Option<usize> {
        self.memory.spills_beyond()
    }
}

/// A file of such memory.
#[derive(Debug)]
struct NotedFile {
    file: Arc<dyn SpillFile>,
    measured: Arc<Measured>,
    step: usize,
}

impl SpillFile for NotedFile {
    fn append(&self, bytes: &[u8]) -> Result<u64> {
        let offset = self.file.append(bytes)?;
        self.measured.operator(self.step).spilled.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(offset)
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        self.file.read(offset, bytes)
    }

    fn compression(&self) -> SpillCompression {
        self.file.compression()
    }
}

/// Memory of which a run notes how much it held.
#[derive(Debug)]
pub(crate) struct NotedMemory {
    pub(crate) memory: Arc<dyn Memory>,
    pub(crate) measured: Arc<Measured>,
}

impl Memory for NotedMemory {
    fn grow(&self, bytes: usize) -> Result<()> {
        self.memory.grow(bytes)?;
        let peak = &self.measured.memory;
        let held = peak.held.fetch_add(bytes, Ordering::Relaxed) + bytes;
        peak.most.fetch_max(held, Ordering::Relaxed);
        Ok(())
    }

    fn shrink(&self, bytes: usize) {
        self.measured.memory.held.fetch_sub(bytes, Ordering::Relaxed);
        self.memory.shrink(bytes);
    }

    fn spill_file(&self) -> Result<Option<Arc<dyn SpillFile>>> {
        self.memory.spill_file()
    }

    fn spills_beyond(&self) -> Option<usize> {
        self.memory.spills_beyond()
    }
}
