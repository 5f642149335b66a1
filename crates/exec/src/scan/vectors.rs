//! The loop over vectors: test, decode what is left, hand on.

use super::group::{Group, Segment, Segments, Tester};
use super::plan::ScanPlan;
use super::row_ids;
use super::selection::Selection;
use crate::edge::SegmentReader;
use crate::expr::{Machine, Program};
use crate::vector::compact;
use crate::{Counters, Dictionary, Error, Result, ScanColumn, TableSource, Vector};
use sinter_codec::{Bitmap, Block, Encoded, Scratch, ValuesBuf};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// One worker's part in a scan.
#[derive(Debug, Default)]
pub(crate) struct Scanner {
    group: Option<Group>,
    rows: Rows,
    scratch: Scratch,
    alive: Bitmap,
    passed: Bitmap,
    kept: Vec<u16>,
    machines: Vec<Machine>,
    pub(crate) tally: Tally,
}

/// Columns of the surviving rows of a vector, as far as they have been asked for.
#[derive(Debug, Default)]
struct Rows {
    columns: Vec<Vector>,
    loaded: Vec<bool>,
    selection: Selection,
}

/// What one worker has counted since it last added it to the run's counters.
#[derive(Debug, Default)]
#[allow(missing_docs, reason = "as in Counters")]
pub(crate) struct Tally {
    pub(crate) groups_total: u64,
    pub(crate) groups_pruned: u64,
    pub(crate) groups_answered: u64,
    pub(crate) vectors_total: u64,
    pub(crate) vectors_rejected: u64,
    pub(crate) filters_encoded: u64,
    pub(crate) filters_decoded: u64,
    pub(crate) vectors_decoded: u64,
    pub(crate) rows_scanned: u64,
    pub(crate) rows_selected: u64,
    pub(crate) bytes_compressed: u64,
    pub(crate) bytes_decoded: u64,
}

impl Tally {
    /// Adds everything to the shared counters and starts again at zero.
    pub(crate) fn flush(&mut self, counters: &Counters) {
        let Tally {
            groups_total,
            groups_pruned,
            groups_answered,
            vectors_total,
            vectors_rejected,
            filters_encoded,
            filters_decoded,
            vectors_decoded,
            rows_scanned,
            rows_selected,
            bytes_compressed,
            bytes_decoded,
        } = std::mem::take(self);
        for (counter, count) in [
            (&counters.groups_total, groups_total),
            (&counters.groups_pruned, groups_pruned),
            (&counters.groups_answered, groups_answered),
            (&counters.vectors_total, vectors_total),
            (&counters.vectors_rejected, vectors_rejected),
            (&counters.filters_encoded, filters_encoded),
            (&counters.filters_decoded, filters_decoded),
            (&counters.vectors_decoded, vectors_decoded),
            (&counters.rows_scanned, rows_scanned),
            (&counters.rows_selected, rows_selected),
            (&counters.bytes_compressed, bytes_compressed),
            (&counters.bytes_decoded, bytes_decoded),
        ] {
            if count > 0 {
                counter.fetch_add(count, Ordering::Relaxed);
            }
        }
    }
}

/// What the workers of a run share of the scan.
pub(crate) struct Shared<'a> {
    pub(crate) plan: &'a ScanPlan,
    pub(crate) source: &'a dyn TableSource,
    pub(crate) next_group: &'a AtomicUsize,
    pub(crate) cancelled: &'a AtomicBool,
}

/// What takes the vectors.
pub(crate) trait Sink {
    /// The columns it wants, by their place in the scan.
    fn columns(&self) -> &[usize];
    /// Takes a vector's surviving rows, at least one. `Break` pauses the scan; it can go on later.
    fn take(&mut self, columns: &mut [Vector], rows: usize) -> Result<ControlFlow<()>>;
    /// May take a whole group by its statistics: all its rows pass and none is deleted. True when it did.
    fn take_group(&mut self, _group: usize, _rows: usize) -> bool {
        false
    }
}

impl Scanner {
    /// Feeds `sink` until it pauses the scan (true) or no row group is left (false).
    ///
    /// # Errors
    /// What reading and evaluating bring about, and [`Error::Cancelled`].
    pub(crate) fn run(&mut self, shared: &Shared<'_>, sink: &mut dyn Sink) -> Result<bool> {
        loop {
            let mut group = match self.group.take() {
                Some(group) => group,
                None => {
                    let index = shared.next_group.fetch_add(1, Ordering::Relaxed);
                    if index >= shared.source.group_count() {
                        return Ok(false);
                    }
                    check(shared.cancelled)?;
                    self.tally.groups_total += 1;
                    let Some(group) = Group::enter(shared.plan, shared.source, index) else {
                        self.tally.groups_pruned += 1;
                        continue;
                    };
                    if group.is_whole(shared.plan) && sink.take_group(index, group.rows) {
                        self.tally.groups_answered += 1;
                        continue;
                    }
                    group
                }
            };
            let pins = group.take_pins();
            let flow = {
                let segments = Segments::new(shared.plan, shared.source, group.index, group.rows, &pins);
                self.run_group(shared, &segments, &mut group, sink)?
            };
            if flow.is_break() {
                group.put_pins(pins);
                self.group = Some(group);
                return Ok(true);
            }
        }
    }

    fn run_group(
        &mut self,
        shared: &Shared<'_>,
        segments: &Segments<'_>,
        group: &mut Group,
        sink: &mut dyn Sink,
    ) -> Result<ControlFlow<()>> {
        let plan = shared.plan;
        self.rows.columns.resize_with(plan.columns.len(), Vector::default);
        self.machines.resize_with(plan.programs.len(), Machine::default);
        while group.next_vector < group.vectors() {
            check(shared.cancelled)?;
            let range = group.range(group.next_vector);
            group.next_vector += 1;
            self.tally.vectors_total += 1;
            self.tally.rows_scanned += range.len() as u64;
            if !self.filter(plan, segments, group, range.clone())? {
                self.tally.vectors_rejected += 1;
                continue;
            }
            for &column in sink.columns() {
                self.rows.load(column, segments, group, range.clone(), &mut self.tally)?;
            }
            let rows = self.rows.selection.rows();
            self.tally.rows_selected += rows as u64;
            if sink.take(&mut self.rows.columns, rows)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Leaves in `self.rows` the rows of `range` that pass everything; false when there are none.
    fn filter(
        &mut self,
        plan: &ScanPlan,
        segments: &Segments<'_>,
        group: &mut Group,
        range: Range<usize>,
    ) -> Result<bool> {
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
        for index in 0..group.tests.len() {
            let number = group.tests[index];
            let mut leaf = plan.first_leaf[number];
            let mut tester = Tester { segments, group, scratch: &mut self.scratch, tally: &mut self.tally };
            tester.run(&plan.tests[number], &mut leaf, range.clone(), &mut self.passed)?;
            self.alive.and(&self.passed);
            if !self.alive.any() {
                return Ok(false);
            }
        }
        self.rows.selection.set(&self.alive);
        self.rows.loaded.clear();
        self.rows.loaded.resize(plan.columns.len(), false);
        for (index, program) in plan.programs.iter().enumerate() {
            for &column in &program.columns {
                self.rows.load(column, segments, group, range.clone(), &mut self.tally)?;
            }
            self.tally.filters_decoded += 1;
            if !self.rows.evaluate(program, &mut self.machines[index], &mut self.passed, &mut self.kept)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn check(cancelled: &AtomicBool) -> Result<()> {
    if cancelled.load(Ordering::Relaxed) { Err(Error::Cancelled) } else { Ok(()) }
}

impl Rows {
    /// Keeps the rows for which the program's one result is true; false when there are none.
    fn evaluate(
        &mut self,
        program: &Program,
        machine: &mut Machine,
        passed: &mut Bitmap,
        kept: &mut Vec<u16>,
    ) -> Result<bool> {
        let rows = self.selection.rows();
        machine.run(program, &self.columns, rows)?;
        passed.clone_from(machine.frame(program, &self.columns, rows).bits(program.outputs[0].0).0);
        if passed.all() {
            return Ok(true);
        }
        self.selection.keep(passed, kept);
        for (vector, _) in self.columns.iter_mut().zip(&self.loaded).filter(|(_, loaded)| **loaded) {
            compact(vector, kept)?;
        }
        Ok(self.selection.rows() > 0)
    }

    /// Decodes a column for the surviving rows, unless that has been done.
    fn load(
        &mut self,
        column: usize,
        segments: &Segments<'_>,
        group: &mut Group,
        range: Range<usize>,
        tally: &mut Tally,
    ) -> Result<()> {
        if std::mem::replace(&mut self.loaded[column], true) {
            return Ok(());
        }
        let vector = &mut self.columns[column];
        if let (Some(ids), true) = (&group.row_ids, segments.is_row_id(column)) {
            row_ids::load(ids, range.start, range.len(), vector);
            return match self.selection.positions() {
                Some(positions) => compact(vector, positions),
                None => Ok(()),
            };
        }
        tally.vectors_decoded += 1;
        let loaded = match segments.open(column, tally)? {
            Segment::Nested(reader) => load_nested(reader, range, &self.selection, vector, tally),
            Segment::Plain(block) => {
                load_plain(block, range, &self.selection, &mut group.dictionaries[column], vector, tally)
            }
        };
        loaded.map_err(|error| error.at(segments.place(column)))
    }
}

impl Segments<'_> {
    fn is_row_id(&self, column: usize) -> bool {
        self.column(column) == ScanColumn::RowId
    }
}

fn load_nested(
    reader: &SegmentReader<'_>,
    range: Range<usize>,
    selection: &Selection,
    vector: &mut Vector,
    tally: &mut Tally,
) -> Result<()> {
    let keep = selection.positions().map(|_| selection.to_bitmap(range.len()));
    let array = reader.read(range, keep.as_ref())?;
    tally.bytes_decoded += array.get_array_memory_size() as u64;
    (vector.validity, vector.dictionary, vector.nested) = (None, None, Some(array));
    Ok(())
}

/// Below this share of surviving rows, picking them costs less than unpacking all.
const GATHER_BELOW: usize = 4;

fn load_plain(
    block: &Block<'_>,
    range: Range<usize>,
    selection: &Selection,
    dictionary: &mut Option<Arc<Dictionary>>,
    vector: &mut Vector,
    tally: &mut Tally,
) -> Result<()> {
    (vector.dictionary, vector.nested) = (None, None);
    let some_null =
        block.stats().null_count > 0 && block.validity(range.clone(), vector.validity.get_or_insert_default())?;
    if !some_null {
        vector.validity = None;
    }
    match selection.positions() {
        Some(positions) if dictionary.is_none() && positions.len() * GATHER_BELOW < range.len() => {
            if !matches!(vector.values, Encoded::Flat(_)) {
                vector.values = Encoded::default();
            }
            if let Encoded::Flat(values) = &mut vector.values {
                block.gather(range.start, positions, values)?;
                tally.bytes_decoded += plain_bytes(values);
            }
            if let Some(validity) = &mut vector.validity {
                crate::vector::compact_bits(validity, positions);
            }
        }
        positions => {
            block.load(range, &mut vector.values)?;
            tally.bytes_decoded += encoded_bytes(&vector.values);
            if matches!(vector.values, Encoded::Codes(_)) {
                if dictionary.is_none() {
                    let values = block.dictionary()?.ok_or_else(|| codes_without_dictionary())?;
                    tally.bytes_decoded += plain_bytes(&values);
                    *dictionary = Some(Arc::new(Dictionary::new(values)));
                }
                vector.dictionary.clone_from(dictionary);
            }
            if let Some(positions) = positions {
                compact(vector, positions)?;
            }
        }
    }
    Ok(())
}

fn codes_without_dictionary() -> Error {
    sinter_codec::Error::Damaged { place: "block".into(), what: "codes without a dictionary".into() }.into()
}

fn plain_bytes(values: &ValuesBuf) -> u64 {
    (match values {
        ValuesBuf::Bytes(bytes) => bytes.data.len() + 4 * bytes.view().len(),
        numbers => numbers.len() * numbers.physical().value_bytes().unwrap_or(0),
    }) as u64
}

fn encoded_bytes(encoded: &Encoded) -> u64 {
    match encoded {
        Encoded::Constant(values) | Encoded::Flat(values) => plain_bytes(values),
        Encoded::BaseDelta { deltas: narrow, .. } | Encoded::Codes(narrow) => {
            crate::dispatch::each_narrow!(narrow, numbers => size_of_val(&numbers[..]) as u64)
        }
    }
}
