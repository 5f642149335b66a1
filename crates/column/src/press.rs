//! Row groups on their way through the codec: while more rows are gathered, threads press those of some row groups.
//!
//! The columns of a row group are pressed apart, and so are the row groups: a thread takes a column of the first row group of
//! which one can be had. A column's encoder knows what suited its last row group, so row groups of one *lane* come one after
//! the other, and those of several lanes side by side, once the first row group of all has shown what suits. Which lane a row
//! group has does not depend on the number of threads, so neither do the bytes.
//!
//! What suits may be a dictionary, for which no memory is reserved. The codec remembers none of more than 64 KiB, and none
//! for long that changes from row group to row group; lanes share that of the first row group for as long as it suits them.
//! So a column takes at most 64 KiB for each dictionary in its schemes, or half a mebibyte once every lane has met values of
//! its own.

use crate::chunk::Pressed;
use crate::group_writer::concatenated;
use crate::{Result, TableSchema};
use arrow::array::ArrayRef;
use sinter_codec::{BlockStats, Choice};
use sinter_exec::edge::{self, SegmentEncoder};
use sinter_exec::{LogicalType, RowIds};
use sinter_storage::Reservation;
use sinter_storage::page::PAYLOAD_BYTES_MAX;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::iter::repeat_n;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

/// How many row groups are pressed side by side at most: more threads than a table has columns that take long find work, and
/// each lane's encoders remember dictionaries of their own.
const LANES: usize = 8;

/// A row group in Arrow form: for each column, pieces of it.
pub(crate) type Pieces = Vec<Vec<ArrayRef>>;

/// A row group whose segments are made.
pub(crate) struct PressedGroup {
    pub(crate) row_ids: RowIds,
    pub(crate) rows: usize,
    /// One per column.
    pub(crate) segments: Vec<Pressed>,
}

/// Presses row groups one after the other, as far as others can tell.
#[derive(Debug)]
pub(crate) struct Press {
    shared: Arc<Shared>,
    threads: usize,
    /// All but the one that asks, from the first row group on.
    others: Vec<JoinHandle<()>>,
    /// In order; the first is number `begun - under_way.len()`.
    under_way: VecDeque<UnderWay>,
    begun: usize,
}

#[derive(Debug)]
struct UnderWay {
    row_ids: RowIds,
    rows: usize,
    /// Of its rows.
    memory: Reservation,
}

#[derive(Debug)]
struct Shared {
    schema: Arc<TableSchema>,
    state: Mutex<State>,
    /// Whenever a segment is made, or there is more to do.
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// Those of the first lane, column by column, then those of the next.
    lane_columns: Vec<LaneColumn>,
    /// What can be pressed now: numbers of row groups, each with the place of its lane's column among all.
    ready: BTreeSet<(usize, usize)>,
    /// By the number of the row group, of those that are under way.
    made: BTreeMap<usize, Made>,
    is_over: bool,
}

/// A column of the row groups that are one lane's.
#[derive(Debug)]
struct LaneColumn {
    /// None while a thread has it, and in all lanes but the first until the first row group has shown what suits.
    encoder: Option<SegmentEncoder>,
    /// Numbers of row groups, and pieces of the column in each.
    queued: VecDeque<(usize, Vec<ArrayRef>)>,
}

/// What has come of a row group so far.
#[derive(Debug)]
struct Made {
    /// One per column, from when it is made.
    segments: Vec<Option<Result<Pressed>>>,
    /// How many are still to be made.
    missing: usize,
}

/// A column of a row group and its encoder, which is none of others' until it is given back.
struct Work {
    group: usize,
    lane_column: usize,
    pieces: Vec<ArrayRef>,
    encoder: SegmentEncoder,
}

impl Press {
    /// For a table's columns, on so many threads, this one included.
    pub(crate) fn new(schema: &Arc<TableSchema>, threads: usize) -> Press {
        let first = schema.columns.iter().map(|column| Some(SegmentEncoder::new(&column.ty, &column.choice())));
        let encoders = first.chain(repeat_n(None, (LANES - 1) * schema.columns.len()));
        let lane_columns = encoders.map(|encoder| LaneColumn { encoder, queued: VecDeque::new() }).collect();
        let state = State { lane_columns, ready: BTreeSet::new(), made: BTreeMap::new(), is_over: false };
        let shared = Shared { schema: Arc::clone(schema), state: Mutex::new(state), changed: Condvar::new() };
        Press {
            shared: Arc::new(shared),
            threads: threads.max(1),
            others: Vec::new(),
            under_way: VecDeque::new(),
            begun: 0,
        }
    }

    /// Whether a row group has to be [taken](Press::first) before another can begin.
    pub(crate) fn is_full(&self) -> bool {
        self.under_way.len() >= self.threads.min(LANES)
    }

    /// What was reserved for the row groups that are under way.
    pub(crate) fn bytes(&self) -> usize {
        self.under_way.iter().map(|under_way| under_way.memory.bytes()).sum()
    }

    /// Whether the first row group can be [taken](Press::first) without waiting.
    pub(crate) fn is_first_made(&self) -> bool {
        self.shared.state().is_made(self.first_group())
    }

    /// The number of the first row group that is under way, or of the next one to begin.
    fn first_group(&self) -> usize {
        self.begun - self.under_way.len()
    }

    /// Begins with a row group, whose memory is given back when it is taken.
    pub(crate) fn begin(&mut self, rows: usize, row_ids: RowIds, columns: Pieces, memory: Reservation) {
        self.shared.state().queue(self.begun, columns);
        self.shared.changed.notify_all();
        self.under_way.push_back(UnderWay { row_ids, rows, memory });
        self.begun += 1;
        // Where no thread can be made, fewer do it.
        while self.others.len() + 1 < self.threads.min(self.under_way.len() * self.shared.schema.columns.len()) {
            let shared = Arc::clone(&self.shared);
            let Ok(other) = thread::Builder::new().spawn(move || shared.work()) else { break };
            self.others.push(other);
        }
    }

    /// The first row group that was begun and not taken, if there is one: waits for it, and lends a hand.
    ///
    /// # Errors
    /// Those of pressing.
    pub(crate) fn first(&mut self) -> Result<Option<PressedGroup>> {
        let group = self.first_group();
        let Some(UnderWay { row_ids, rows, memory: _memory }) = self.under_way.pop_front() else { return Ok(None) };
        let mut state = self.shared.state();
        while !state.is_made(group) {
            state = self.shared.step(state);
        }
        let made = state.made.remove(&group);
        drop(state);
        let segments = made.into_iter().flat_map(|made| made.segments).flatten().collect::<Result<_>>()?;
        Ok(Some(PressedGroup { row_ids, rows, segments }))
    }
}

impl Drop for Press {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.is_over = true;
        drop(state);
        self.shared.changed.notify_all();
        for other in self.others.drain(..) {
            // It does not panic: what presses is caught.
            let _ = other.join();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What another thread does until the end.
    fn work(&self) {
        let mut state = self.state();
        while !state.is_over {
            state = self.step(state);
        }
    }

    /// Makes a segment, or waits until more can be done or is done.
    fn step<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let Some(work) = state.take() else {
            return self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        drop(state);
        self.make(work)
    }

    /// Makes a segment, and gives the encoder back.
    fn make(&self, work: Work) -> MutexGuard<'_, State> {
        let Work { group, lane_column, pieces, mut encoder } = work;
        let column = &self.schema.columns[lane_column % self.schema.columns.len()];
        let made = catch_unwind(AssertUnwindSafe(|| {
            press(&mut encoder, &concatenated(&pieces)?, &column.ty, &column.choice())
        }));
        let segment = made.unwrap_or_else(|panic| {
            let error = format!("pressing column '{}': {}", column.name, sinter_exec::panicked(&*panic));
            Err(sinter_exec::Error::Foreign(error).into())
        });
        drop(pieces);
        let mut state = self.state();
        state.put(group, lane_column, segment, encoder);
        self.changed.notify_all();
        state
    }
}

impl State {
    /// Puts the columns of a row group behind those of earlier ones of its lane.
    fn queue(&mut self, group: usize, columns: Pieces) {
        let column_count = columns.len();
        let segments = columns.iter().map(|_| None).collect();
        self.made.insert(group, Made { segments, missing: column_count });
        for (lane_column, pieces) in (group % LANES * column_count..).zip(columns) {
            self.lane_columns[lane_column].queued.push_back((group, pieces));
            self.note_ready(lane_column);
        }
    }

    /// A column of the first row group of which one can be pressed.
    fn take(&mut self) -> Option<Work> {
        let (group, lane_column) = self.ready.pop_first()?;
        let LaneColumn { encoder, queued } = &mut self.lane_columns[lane_column];
        let (encoder, (_, pieces)) = (encoder.take()?, queued.pop_front()?);
        Some(Work { group, lane_column, pieces, encoder })
    }

    /// Puts a segment to those of its row group, and the encoder where it was. That of the first row group is copied to all
    /// lanes.
    fn put(&mut self, group: usize, lane_column: usize, segment: Result<Pressed>, encoder: SegmentEncoder) {
        let column_count = self.lane_columns.len() / LANES;
        if let Some(made) = self.made.get_mut(&group) {
            made.segments[lane_column % column_count] = Some(segment);
            made.missing -= 1;
        }
        let lanes = if group == 0 { LANES } else { 1 };
        for (lane_column, encoder) in (lane_column..).step_by(column_count).zip(repeat_n(encoder, lanes)) {
            self.lane_columns[lane_column].encoder = Some(encoder);
            self.note_ready(lane_column);
        }
    }

    /// Notes what a lane's column can be pressed next, if it has its encoder: whenever that, or a row group, has come to it.
    fn note_ready(&mut self, lane_column: usize) {
        if let LaneColumn { encoder: Some(_), queued } = &self.lane_columns[lane_column]
            && let Some((group, _)) = queued.front()
        {
            self.ready.insert((*group, lane_column));
        }
    }

    /// Whether a row group that is under way has all its segments.
    fn is_made(&self, group: usize) -> bool {
        self.made.get(&group).is_some_and(|made| made.missing == 0)
    }
}

/// Encodes one column as a segment, which has no next one. What a scheme makes too large for a page is kept plain.
pub(crate) fn press_column(array: &ArrayRef, ty: &LogicalType, choice: &Choice) -> Result<Pressed> {
    press(&mut SegmentEncoder::new(ty, choice), array, ty, choice)
}

/// [`press_column`] with the column's encoder.
fn press(encoder: &mut SegmentEncoder, array: &ArrayRef, ty: &LogicalType, choice: &Choice) -> Result<Pressed> {
    let mut bytes = Vec::new();
    let mut stats: BlockStats = encoder.encode(array, &mut bytes)?;
    if bytes.len() > PAYLOAD_BYTES_MAX && *choice != choice.raw() {
        bytes.clear();
        stats = edge::encode_segment(array, ty, &choice.raw(), &mut bytes)?;
    }
    bytes.shrink_to_fit();
    Ok((bytes, ty.physical().map(|_| stats)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ColumnSchema;
    use arrow::array::Int64Array;
    use sinter_storage::{Store, Use};

    fn numbers() -> Vec<ArrayRef> {
        vec![Arc::new(Int64Array::from_iter_values(0..100))]
    }

    /// What comes of row groups, said to be of 1, 2, 3 and so on rows: how many rows that is, of each. `second` makes the
    /// pieces of the second column.
    fn pressed(threads: usize, groups: usize, second: impl Fn(usize) -> Vec<ArrayRef>) -> Vec<Result<Option<usize>>> {
        let (ty, store) = (LogicalType::Int64, Store::memory());
        let columns = ["a", "b"].map(|name| ColumnSchema {
            name: name.to_owned(),
            ty: ty.clone(),
            nullable: true,
            compression: None,
            default: None,
        });
        let mut press = Press::new(&Arc::new(TableSchema::new(columns.into())), threads);
        for group in 0..groups {
            let memory = store.budget().take(Use::Scratch, 0);
            press.begin(group + 1, RowIds::From(0), vec![numbers(), second(group)], memory);
        }
        (0..=groups).map(|_| press.first().map(|pressed| pressed.map(|group| group.rows))).collect()
    }

    #[test]
    fn row_groups_come_in_order_however_many_begin() {
        for threads in [1, 2, 5] {
            let row_counts = pressed(threads, 3 * LANES, |_| numbers()).into_iter().map(Result::unwrap);
            assert!(row_counts.eq((1..=3 * LANES).map(Some).chain([None])), "{threads} threads");
        }
    }

    #[test]
    fn a_panic_is_an_error_of_its_row_group_and_of_no_other() {
        for (threads, at) in [1, 2, 5].into_iter().flat_map(|threads| [0, 3].map(|at| (threads, at))) {
            // Of no piece there is no array to be made. The lane goes on with its next row group.
            let second = |group: usize| if group == at { Vec::new() } else { numbers() };
            let mut row_counts = pressed(threads, 2 * LANES, second);
            let error = row_counts.remove(at).unwrap_err().to_string();
            assert!(error.starts_with("pressing column 'b': a worker panicked: index out of bounds"), "{error}");
            let others = (1..=2 * LANES).filter(|rows| *rows != at + 1).map(Some).chain([None]);
            assert!(row_counts.into_iter().map(Result::unwrap).eq(others), "{threads} threads, row group {at}");
        }
    }
}
