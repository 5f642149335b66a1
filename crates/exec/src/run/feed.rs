//! Where the rows of a run come from, and how they reach the sink through its steps.

use super::{OutputPlan, Prepared, Run};
use crate::flow::{Chain, Layout, Rest, Sink, StepsState};
use crate::measure::{Clock, MeasuredSink};
use crate::scan::{Forward, Forwarder, GatheredScanner, Scanner, SharedGathered};
use crate::{Error, Result, Source};
use std::sync::atomic::Ordering;
use std::time::Instant;

/// What a worker keeps between two pauses, apart from its sink.
#[derive(Debug, Default)]
pub(super) struct Feed {
    scanner: Scanner,
    gathered: GatheredScanner,
    union: UnionFeed,
    steps: StepsState,
    /// Whether the source has no more. To be asked once: what others do meanwhile is no business of a worker that has left.
    has_ended: bool,
    /// Once all others are done, if it is us who do that.
    rest: Option<Rest>,
}

impl Feed {
    /// Feeds `sink` through the steps until it pauses or a while has passed (true) or no rows are left (false).
    pub(super) fn run(&mut self, run: &Run, sink: &mut dyn Sink) -> Result<bool> {
        let prepared = run.prepared()?;
        let Some(measured) = run.measured.as_deref() else { return self.run_through(run, &prepared, sink) };
        let begun = Instant::now();
        let more = self.run_through(run, &prepared, &mut MeasuredSink { sink, measured, is_output: true });
        measured.worked(begun);
        more
    }

    fn run_through(&mut self, run: &Run, prepared: &Prepared, sink: &mut dyn Sink) -> Result<bool> {
        if run.steps.is_empty() {
            return self.source().run(run, prepared, sink);
        }
        let mut state = std::mem::take(&mut self.steps);
        let clock = Clock(run.measured.as_deref());
        let (layout, cancelled) = (run.layout(prepared), run.stop.flag());
        let mut chain = Chain { plan: &run.steps, layout, state: &mut state, cancelled, clock, sink };
        let more = self.run_steps(run, prepared, &mut chain);
        self.steps = state;
        more
    }

    fn run_steps(&mut self, run: &Run, prepared: &Prepared, chain: &mut Chain<'_>) -> Result<bool> {
        if !self.has_ended {
            let mut source = self.source();
            if source.run(run, prepared, chain)? {
                return Ok(true);
            }
            let is_last = run.steps.has_rest() && source.is_last(run, prepared);
            self.has_ended = true;
            self.rest = is_last.then(Rest::default);
        }
        match &mut self.rest {
            Some(rest) => chain.run_rest(rest),
            None => Ok(false),
        }
    }

    fn source(&mut self) -> SourceFeed<'_> {
        SourceFeed { scanner: &mut self.scanner, gathered: &mut self.gathered, union: &mut self.union }
    }
}

/// The part of it that has to do with where rows come from.
struct SourceFeed<'f> {
    scanner: &'f mut Scanner,
    gathered: &'f mut GatheredScanner,
    union: &'f mut UnionFeed,
}

/// What a worker keeps of several pipelines.
#[derive(Debug, Default)]
struct UnionFeed {
    /// Of each.
    feeds: Vec<Feed>,
    forwarder: Forwarder,
    /// The first that is not done.
    at: usize,
    /// With how many, some of them perhaps passed over, it has begun.
    begun: usize,
}

impl SourceFeed<'_> {
    /// As [`Feed::run`], from the source alone.
    fn run(&mut self, run: &Run, prepared: &Prepared, sink: &mut dyn Sink) -> Result<bool> {
        match run.measured.as_deref() {
            Some(measured) => self.feed(run, prepared, &mut MeasuredSink { sink, measured, is_output: false }),
            None => self.feed(run, prepared, sink),
        }
    }

    fn feed(&mut self, run: &Run, prepared: &Prepared, sink: &mut dyn Sink) -> Result<bool> {
        let layout = run.layout(prepared);
        match (&run.pipeline.source, &prepared.gathered) {
            (Source::Table(table), _) => {
                let more = self.scanner.run(&run.shared(prepared, &**table, layout), sink);
                self.scanner.tally.flush([&*run.counters, &run.own_counters]);
                more
            }
            (Source::Gathered(_), Some(gathered)) => {
                let (plan, next_vector, cancelled) = (&run.scan, &run.next_vector, run.stop.flag());
                self.gathered.run(&SharedGathered { plan, layout, gathered, next_vector, cancelled }, sink)
            }
            (Source::Gathered(_), None) => Err(Error::Unsupported("gathered rows that are not there yet".into())),
            (Source::Union(_), _) => self.union.run(run, layout, sink),
        }
    }

    /// Whether no other worker feeds rows of the source any more.
    fn is_last(&mut self, run: &Run, prepared: &Prepared) -> bool {
        match &run.pipeline.source {
            Source::Union(_) => run.leave(),
            Source::Table(_) | Source::Gathered(_) => {
                run.is_last(prepared, self.scanner.take_done() + self.gathered.take_done())
            }
        }
    }
}

impl UnionFeed {
    fn run(&mut self, run: &Run, layout: Layout<'_>, sink: &mut dyn Sink) -> Result<bool> {
        if self.feeds.is_empty() {
            self.feeds.resize_with(run.inputs.len(), Feed::default);
            run.feeders.fetch_add(1, Ordering::AcqRel);
        }
        while let Some((input, feed)) = run.inputs.get(self.at).zip(self.feeds.get_mut(self.at)) {
            let input = input.current();
            let OutputPlan::Rows(program) = &input.output else {
                return Err(Error::Unsupported("a union of anything else than rows".into()));
            };
            if input.is_full() {
                self.at += 1;
                continue;
            }
            if self.begun <= self.at {
                self.begun = self.at + 1;
                input.note_worker();
            }
            let admit = |rows: usize| input.admit(rows);
            let own = &mut self.forwarder;
            let mut forward = Forward { own, program, admit: &admit, plan: &run.scan, layout, sink: &mut *sink };
            if feed.run(input, &mut forward)? {
                return Ok(true);
            }
            self.at += 1;
        }
        Ok(false)
    }
}

impl Run {
    /// Notes that a worker is done with so much of the source, and will take no more. True for the one after whom nobody is
    /// left.
    fn is_last(&self, prepared: &Prepared, done: usize) -> bool {
        let done = self.source_done.fetch_add(done, Ordering::AcqRel) + done;
        done >= self.source_len(prepared) && !self.rest_is_taken.swap(true, Ordering::AcqRel)
    }

    /// Notes that a worker has fed all that was left of a union. True for the one after whom nobody does: whoever comes later
    /// finds nothing left.
    fn leave(&self) -> bool {
        self.feeders.fetch_sub(1, Ordering::AcqRel) == 1 && !self.rest_is_taken.swap(true, Ordering::AcqRel)
    }

    /// Whether the limit lets no more rows out.
    pub(super) fn is_full(&self) -> bool {
        self.pipeline.limit.is_some_and(|limit| self.rows_out.load(Ordering::Relaxed) >= limit)
    }

    /// How many of `rows` more rows the limit lets out.
    pub(super) fn admit(&self, rows: usize) -> usize {
        let Some(limit) = self.pipeline.limit else { return rows };
        let before = self.rows_out.fetch_add(rows, Ordering::Relaxed);
        rows.min(limit.saturating_sub(before))
    }
}
