//! Row groups on their way through the codec: while more rows are gathered, threads press those of some row groups.
//!
//! The columns of a row group are pressed apart, and so are the row groups: a thread takes a column of the first row group of
//! which one can be had. A column's encoder knows what suited its last row group, so row groups of one *lane* come one after
//! the other, and those of several lanes side by side, once the first row group of all has shown what suits. Which lane a row
//! group has does not depend on the number of threads, so neither do the bytes.

use crate::chunk::Pressed;
use crate::group_writer::concatenated;
use crate::{Result, TableSchema};
use arrow::array::ArrayRef;
use sinter_codec::{BlockStats, Choice};
use sinter_exec::edge::{self, SegmentEncoder};
use sinter_exec::{LogicalType, RowIds};
use sinter_storage::Reservation;
use sinter_storage::page::PAYLOAD_BYTES_MAX;
use std::collections::VecDeque;
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
    encoders: Vec<Turn>,
    /// Of row groups that are under way.
    made: Vec<(usize, usize, Result<Pressed>)>,
    is_over: bool,
}

/// An encoder, unless a thread has it or the first row group is still to be pressed, and what it presses next: number of the
/// row group, and pieces of the column.
#[derive(Debug)]
struct Turn {
    encoder: Option<SegmentEncoder>,
    next: VecDeque<(usize, Vec<ArrayRef>)>,
}

/// A column of a row group and its encoder, which is none of others' until it is given back.
struct Work {
    turn: usize,
    group: usize,
    pieces: Vec<ArrayRef>,
    encoder: SegmentEncoder,
}

impl Press {
    /// For a table's columns, on so many threads, this one included.
    pub(crate) fn new(schema: &Arc<TableSchema>, threads: usize) -> Press {
        let first = schema.columns.iter().map(|column| Some(SegmentEncoder::new(&column.ty, &column.choice())));
        let all = first.chain((1..LANES).flat_map(|_| schema.columns.iter().map(|_| None)));
        let encoders = all.map(|encoder| Turn { encoder, next: VecDeque::new() }).collect();
        let state = State { encoders, made: Vec::new(), is_over: false };
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
        self.under_way.iter().map(|group| group.memory.bytes()).sum()
    }

    /// Whether the first row group can be [taken](Press::first) without waiting.
    pub(crate) fn is_first_made(&self) -> bool {
        !self.under_way.is_empty()
            && self.shared.state().made_of(self.first_group()) == self.shared.schema.columns.len()
    }

    fn first_group(&self) -> usize {
        self.begun - self.under_way.len()
    }

    /// Begins with a row group, whose memory is given back when it is taken.
    pub(crate) fn begin(&mut self, rows: usize, row_ids: RowIds, columns: Pieces, memory: Reservation) {
        let first = self.begun % LANES * columns.len();
        let mut state = self.shared.state();
        for (turn, pieces) in state.encoders[first..].iter_mut().zip(columns) {
            turn.next.push_back((self.begun, pieces));
        }
        drop(state);
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
        while state.made_of(group) < self.shared.schema.columns.len() {
            state = match state.take() {
                Some(work) => {
                    drop(state);
                    self.shared.make(work)
                }
                None => self.shared.wait(state),
            };
        }
        let mut made: Vec<_> = state.made.extract_if(.., |(number, ..)| *number == group).collect();
        drop(state);
        made.sort_unstable_by_key(|(_, column, _)| *column);
        let segments = made.into_iter().map(|(.., segment)| segment).collect::<Result<_>>()?;
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

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// What another thread does until the end.
    fn work(&self) {
        let mut state = self.state();
        while !state.is_over {
            state = match state.take() {
                Some(work) => {
                    drop(state);
                    self.make(work)
                }
                None => self.wait(state),
            };
        }
    }

    /// Makes a segment, and gives the encoder back.
    fn make(&self, work: Work) -> MutexGuard<'_, State> {
        let Work { turn, group, pieces, mut encoder } = work;
        let number = turn % self.schema.columns.len();
        let column = &self.schema.columns[number];
        let made = catch_unwind(AssertUnwindSafe(|| {
            press(&mut encoder, &concatenated(&pieces)?, &column.ty, &column.choice())
        }));
        let died = |_| {
            let error = format!("pressing column '{}': a thread died before it was done", column.name);
            Err(sinter_exec::Error::Unsupported(error).into())
        };
        drop(pieces);
        let mut state = self.state();
        state.made.push((group, number, made.unwrap_or_else(died)));
        if group == 0 {
            let of_lanes = state.encoders.iter_mut().skip(number).step_by(self.schema.columns.len());
            of_lanes.for_each(|turn| turn.encoder = Some(encoder.clone()));
        } else {
            state.encoders[turn].encoder = Some(encoder);
        }
        self.changed.notify_all();
        state
    }
}

impl State {
    /// How many segments of a row group are made.
    fn made_of(&self, group: usize) -> usize {
        self.made.iter().filter(|(number, ..)| *number == group).count()
    }

    /// A column of the first row group of which one can be pressed.
    fn take(&mut self) -> Option<Work> {
        let next = |turn: &Turn| Some(turn.encoder.as_ref().and(turn.next.front())?.0);
        let (group, turn) =
            self.encoders.iter().enumerate().filter_map(|(index, turn)| Some((next(turn)?, index))).min()?;
        let Turn { encoder, next } = &mut self.encoders[turn];
        let (encoder, (_, pieces)) = (encoder.take()?, next.pop_front()?);
        Some(Work { turn, group, pieces, encoder })
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
