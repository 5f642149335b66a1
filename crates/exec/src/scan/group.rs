//! One row group at work: its pins, its opened segments, and what was made ready for it.

use super::bound::GroupBound;
use super::claims::Claims;
use super::load::Entries;
use super::plan::{PlannedTest, ScanPlan};
use super::tally::Tally;
use super::test::Test;
use super::vectors::Shared;
use super::zone::Verdict;
use crate::edge::SegmentReader;
use crate::{Error, LogicalType, Pinned, Result, RowIds, ScanColumn, TableSource};
use sinter_codec::{Bitmap, Block, Predicate, PreparedPredicate, Scratch, VECTOR_LEN};
use std::cell::OnceCell;
use std::ops::Range;
use std::sync::Arc;

/// What a worker keeps of the group it is in, also between two calls. Pins last until the group is done.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) index: usize,
    pub(super) rows: usize,
    next_row: usize,
    /// Where the worker's piece of it ends.
    end_row: usize,
    /// Rows that are taken at a time.
    vector_rows: usize,
    pub(super) deleted: Option<Arc<Bitmap>>,
    pub(super) row_ids: Option<RowIds>,
    /// Tests that zone maps do not decide, by their place in the plan.
    pub(super) tests: Vec<usize>,
    /// Per column of the scan.
    pins: Vec<OnceCell<Pinned>>,
    /// Per column of the scan.
    pub(super) entries: Vec<Entries>,
    /// Per leaf of the tests.
    prepared: Vec<Option<PreparedPredicate>>,
    /// Per column: whether a test has decoded it for the vector at hand.
    pub(super) decoded: Vec<bool>,
    /// Per test, once it is known.
    ways: Vec<Option<Way>>,
    pub(super) bound: Option<GroupBound>,
}

/// How a test is best answered in a group.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    /// By its blocks, on the encoded form.
    Encoded,
    /// So, unless few rows are left: their texts are decoded sooner than all are searched.
    EncodedForMany,
    /// On decoded values, which blocks would need as well.
    ByValue,
}

impl Group {
    /// The group as zone maps and delete marks show it; `None` where they rule all rows out.
    pub(super) fn enter(plan: &ScanPlan, source: &dyn TableSource, index: usize) -> Option<Group> {
        let rows = source.group_rows(index);
        let deleted = source.deleted(index).filter(|deleted| deleted.any());
        if rows == 0 || deleted.as_ref().is_some_and(|deleted| deleted.all()) {
            return None;
        }
        let stats = |column: usize| match plan.columns[column] {
            ScanColumn::Table(column) => source.zone(index, column),
            ScanColumn::Length(_) | ScanColumn::RowId => None,
        };
        let mut tests = Vec::new();
        for (number, planned) in plan.tests.iter().enumerate() {
            match planned.test.verdict(&stats) {
                Verdict::None => return None,
                Verdict::Some => tests.push(number),
                Verdict::All => {}
            }
        }
        let row_ids = plan.columns.contains(&ScanColumn::RowId).then(|| source.row_ids(index));
        Some(Group {
            index,
            rows,
            next_row: 0,
            end_row: rows,
            vector_rows: source.vector_rows().clamp(1, VECTOR_LEN),
            deleted,
            row_ids,
            tests,
            pins: plan.columns.iter().map(|_| OnceCell::new()).collect(),
            entries: plan.columns.iter().map(|_| Entries::default()).collect(),
            prepared: (0..plan.leaf_count).map(|_| None).collect(),
            decoded: vec![false; plan.columns.len()],
            ways: vec![None; plan.tests.len()],
            bound: None,
        })
    }

    /// Every row passes and none is deleted.
    pub(super) fn is_whole(&self, plan: &ScanPlan) -> bool {
        self.tests.is_empty() && plan.programs.is_empty() && self.deleted.is_none()
    }

    /// Pins and opens all columns of the scan, so that a group which cannot be read is known before one of its rows is
    /// used.
    ///
    /// # Errors
    /// What opening a segment brings about.
    pub(super) fn open_all(&mut self, shared: &Shared<'_>, tally: &mut Tally) -> Result<()> {
        let pins = self.take_pins();
        let segments = Segments::new(shared, self.index, self.rows, &pins);
        let columns = &shared.plan.columns;
        let mut columns = (0..columns.len()).filter(|&column| columns[column] != ScanColumn::RowId);
        let opened = columns.try_for_each(|column| segments.open(column, tally).map(drop));
        drop(segments);
        self.put_pins(pins);
        opened
    }

    /// Rows that are not deleted.
    pub(super) fn live_rows(&self) -> u64 {
        (self.rows - self.deleted.as_ref().map_or(0, |deleted| deleted.count_ones())) as u64
    }

    /// Rows of a vector.
    pub(super) fn range(&self, vector: usize) -> Range<usize> {
        vector * VECTOR_LEN..self.rows.min((vector + 1) * VECTOR_LEN)
    }

    /// Goes on with these vectors.
    pub(super) fn turn_to(&mut self, vectors: Range<usize>) {
        (self.next_row, self.end_row) = (vectors.start * VECTOR_LEN, self.rows.min(vectors.end * VECTOR_LEN));
    }

    /// Whether all of these are done.
    pub(super) fn is_done(&self) -> bool {
        self.next_row >= self.end_row
    }

    /// The next rows of these: a vector, or as much of one as the source wants to be taken at a time.
    pub(super) fn next_range(&mut self) -> Range<usize> {
        let start = self.next_row;
        let end_of_vector = (start / VECTOR_LEN + 1) * VECTOR_LEN;
        self.next_row = self.end_row.min(end_of_vector).min(start + self.vector_rows);
        start..self.next_row
    }

    /// The pins apart from the rest, so that opened segments may point into them while the rest changes.
    pub(super) fn take_pins(&mut self) -> Vec<OnceCell<Pinned>> {
        std::mem::take(&mut self.pins)
    }

    pub(super) fn put_pins(&mut self, pins: Vec<OnceCell<Pinned>>) {
        self.pins = pins;
    }
}

/// Segments of a group, opened when first asked for.
pub(super) struct Segments<'p> {
    plan: &'p ScanPlan,
    source: &'p dyn TableSource,
    claims: &'p Claims,
    group: usize,
    rows: usize,
    pins: &'p [OnceCell<Pinned>],
    opened: Vec<OnceCell<Segment<'p>>>,
}

/// A column of the group.
pub(super) enum Segment<'p> {
    Plain(Block<'p>),
    Nested(SegmentReader<'p>),
}

impl<'p> Segments<'p> {
    pub(super) fn new(shared: &Shared<'p>, group: usize, rows: usize, pins: &'p [OnceCell<Pinned>]) -> Segments<'p> {
        let Shared { plan, source, claims, .. } = *shared;
        let opened = pins.iter().map(|_| OnceCell::new()).collect();
        Segments { plan, source, claims, group, rows, pins, opened }
    }

    pub(super) fn column(&self, column: usize) -> ScanColumn {
        self.plan.columns[column]
    }

    /// Whether its bytes are in memory for this scan.
    pub(super) fn is_pinned(&self, column: usize) -> bool {
        self.pins[column].get().is_some()
    }

    /// Whether another scan of the plan has decoded this vector of a column before, where that is measured.
    pub(super) fn was_decoded(&self, column: usize, range: &Range<usize>) -> bool {
        let Some(decoded) = self.claims.decoded() else { return false };
        let field = self.source.group_id(self.group).zip(self.plan.columns[column].table_column());
        field.is_some_and(|(group, column)| decoded.note(group, column, range.start))
    }

    /// For messages.
    pub(super) fn place(&self, column: usize) -> String {
        let name = match self.plan.columns[column] {
            ScanColumn::Table(column) | ScanColumn::Length(column) => self.source.column_name(column),
            ScanColumn::RowId => "row id",
        };
        format!("{}, row group {}, column \"{name}\"", self.source.name(), self.group)
    }

    /// An error of a column's block.
    pub(super) fn misread(&self, error: sinter_codec::Error, column: usize) -> Error {
        Error::from(error).at(self.place(column))
    }

    /// A column of the table; the caller knows that it is none of row ids.
    pub(super) fn open(&self, column: usize, tally: &mut Tally) -> Result<&Segment<'p>> {
        if let Some(segment) = self.opened[column].get() {
            return Ok(segment);
        }
        let pinned = match self.pins[column].get() {
            Some(pinned) => pinned,
            None => {
                let Some(table_column) = self.plan.columns[column].table_column() else {
                    return Err(Error::Unsupported("row ids as a segment".into()));
                };
                let pinned = self.source.segment(self.group, table_column)?;
                if self.claims.opens_first(self.group, column) {
                    let stored = self.source.segment_bytes(self.group, table_column);
                    tally.bytes_compressed += stored.unwrap_or(pinned.len()) as u64;
                }
                self.pins[column].get_or_init(|| pinned)
            }
        };
        let segment = self.read(pinned, column).map_err(|error| error.at(self.place(column)))?;
        Ok(self.opened[column].get_or_init(|| segment))
    }

    /// Opens a segment and holds it to what the table says about it.
    fn read(&self, pinned: &'p Pinned, column: usize) -> Result<Segment<'p>> {
        let ty = match self.plan.columns[column] {
            ScanColumn::Length(_) => &LogicalType::Utf8,
            ScanColumn::Table(_) | ScanColumn::RowId => &self.plan.types[column],
        };
        let Some(physical) = ty.physical() else {
            let reader = SegmentReader::open(pinned, ty)?;
            reader.check_rows(&(0..self.rows))?;
            return Ok(Segment::Nested(reader));
        };
        let block = Block::open(pinned)?;
        if block.physical() != physical || block.value_count() != self.rows {
            let what = format!(
                "{} values of {} where the table has {} of {}",
                block.value_count(),
                block.physical().name(),
                self.rows,
                physical.name()
            );
            return Err(sinter_codec::Error::Damaged { place: "block".into(), what }.into());
        }
        Ok(Segment::Plain(block))
    }

    /// Asks the block of a column which rows of `range` pass a predicate, and writes that over `out`; whether it answers on its
    /// encoded form. `prepared` is what it made of the predicate.
    pub(super) fn ask(
        &self,
        (column, predicate): (usize, &Predicate),
        prepared: &mut Option<PreparedPredicate>,
        range: Range<usize>,
        (scratch, tally): (&mut Scratch, &mut Tally),
        out: &mut Bitmap,
    ) -> Result<bool> {
        let block = self.block(column, tally)?;
        let made = match prepared.take() {
            Some(made) => Ok(made),
            None => block.prepare(predicate),
        };
        let answered = made.and_then(|made| block.filter_prepared(range, prepared.insert(made), scratch, out));
        answered.map_err(|error| self.misread(error, column))
    }

    /// A column of a plain type.
    pub(super) fn block(&self, column: usize, tally: &mut Tally) -> Result<&Block<'p>> {
        match self.open(column, tally)? {
            Segment::Plain(block) => Ok(block),
            Segment::Nested(_) => Err(Error::Unsupported("a nested column as a block".into())),
        }
    }
}

/// Evaluates tests on the vectors of a group.
pub(super) struct Tester<'a, 'p> {
    pub(super) segments: &'a Segments<'p>,
    pub(super) group: &'a mut Group,
    pub(super) scratch: &'a mut Scratch,
    pub(super) tally: &'a mut Tally,
}

/// Texts are decoded to be searched where at least so many others would be searched in vain for each. A symbol table's
/// whole vector is searched about as fast as a tenth of it is decoded.
const ROWS_PER_SEARCHED: usize = 16;

impl Tester<'_, '_> {
    /// Whether values should be decoded for a test, and its program be asked about those that are `alive`: they are decoded
    /// once then, and not once more when they are wanted.
    pub(super) fn is_by_value(&mut self, number: usize, planned: &PlannedTest, alive: &Bitmap) -> Result<bool> {
        let way = match self.group.ways[number] {
            Some(way) => way,
            None => {
                let way = self.way(planned)?;
                *self.group.ways[number].insert(way)
            }
        };
        Ok(match way {
            Way::Encoded => false,
            Way::EncodedForMany => alive.count_ones() * ROWS_PER_SEARCHED <= alive.len(),
            Way::ByValue => true,
        })
    }

    /// Whether all rows of `range` pass a test of one column that would ask for its values (true) or none (false), where the
    /// block knows without them.
    pub(super) fn decides(&mut self, planned: &PlannedTest, range: Range<usize>) -> Result<Option<bool>> {
        let Test::Column { column, negated, .. } = planned.test else { return Ok(None) };
        let Some(prepared) = &self.group.prepared[planned.first_leaf] else { return Ok(None) };
        let (segments, block) = (self.segments, self.segments.block(column, self.tally)?);
        let misread = |error| segments.misread(error, column);
        let passes = block.decides(range, prepared).map_err(misread)?.map(|passes| passes != negated);
        // NULL passes nothing.
        if passes == Some(true) && block.stats().null_count > 0 {
            return Ok(None);
        }
        self.tally.filters_encoded += u64::from(passes.is_some());
        Ok(passes)
    }

    /// Asks the blocks of a test about no row, to see how they do it.
    fn way(&mut self, planned: &PlannedTest) -> Result<Way> {
        let mut leaves = Vec::new();
        planned.test.leaves(&mut leaves);
        let (mut way, mut none, segments) = (Way::Encoded, Bitmap::default(), self.segments);
        for (place, leaf) in leaves.into_iter().enumerate() {
            let Test::Column { column, predicate, .. } = leaf else { continue };
            let prepared = &mut self.group.prepared[planned.first_leaf + place];
            if !segments.ask((*column, predicate), prepared, 0..0, (self.scratch, self.tally), &mut none)? {
                return Ok(Way::ByValue);
            }
            if leaf.is_search() && !segments.block(*column, self.tally)?.tests_entries() {
                way = Way::EncodedForMany;
            }
        }
        Ok(way)
    }

    /// Writes over `out` which rows of `range` pass a test. Where a block turns out to decode for it, values will be asked from
    /// the next vector on.
    pub(super) fn ask(
        &mut self,
        number: usize,
        planned: &PlannedTest,
        range: Range<usize>,
        out: &mut Bitmap,
    ) -> Result<()> {
        let (mut leaf, decoded) = (planned.first_leaf, self.tally.filters_decoded);
        self.run(&planned.test, &mut leaf, range, out)?;
        if self.tally.filters_decoded > decoded {
            self.group.ways[number] = Some(Way::ByValue);
        }
        Ok(())
    }

    fn run(&mut self, test: &Test, leaf: &mut usize, range: Range<usize>, out: &mut Bitmap) -> Result<()> {
        let segments = self.segments;
        match test {
            Test::Never => out.reset(range.len(), false),
            Test::All(parts) => {
                out.reset(range.len(), true);
                let mut bits = Bitmap::default();
                for part in parts {
                    self.run(part, leaf, range.clone(), &mut bits)?;
                    out.and(&bits);
                }
            }
            Test::Any(parts) => {
                out.reset(range.len(), false);
                let mut bits = Bitmap::default();
                for part in parts {
                    self.run(part, leaf, range.clone(), &mut bits)?;
                    out.or(&bits);
                }
            }
            Test::Null { column, negated } => {
                *leaf += 1;
                let block = segments.block(*column, self.tally)?;
                let some_null = block.validity(range.clone(), out).map_err(|error| segments.misread(error, *column))?;
                if !some_null {
                    out.reset(range.len(), true);
                }
                if !negated {
                    out.invert();
                }
                self.tally.filters_encoded += 1;
            }
            Test::Column { column, predicate, negated } => {
                let number = *leaf;
                *leaf += 1;
                let prepared = &mut self.group.prepared[number];
                let (asked, state) = ((*column, predicate), (&mut *self.scratch, &mut *self.tally));
                let encoded = segments.ask(asked, prepared, range.clone(), state, out)?;
                if *negated {
                    out.invert();
                    let block = segments.block(*column, self.tally)?;
                    let mut present = Bitmap::default();
                    if block.validity(range, &mut present).map_err(|error| segments.misread(error, *column))? {
                        out.and(&present);
                    }
                }
                self.group.decoded[*column] |= !encoded;
                self.tally.filters_encoded += u64::from(encoded);
                self.tally.filters_decoded += u64::from(!encoded);
            }
        }
        Ok(())
    }
}
