//! Rows with what the functions say of them.

use super::borders::{Borders, Partition, note_changes};
use super::plan::WindowPlan;
use super::reach::{OneKey, reach};
use super::{WindowFunction, WindowKind, numbers, picks, totals};
use crate::aggregate::{average, sum};
use crate::error::check_cancelled;
use crate::memory::Held;
use crate::parallel;
use crate::sort::Sorted;
use crate::store::{NONE, RowStore};
use crate::vector::push_scalar;
use crate::{AggregateFunction, Batch, Error, LogicalType, Memory, Result, Vector};
use sinter_codec::{Bitmap, Encoded, Physical, Scalar, VECTOR_LEN, ValuesBuf};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Bytes of a text that is a function's result, and of what says where it is, where nothing is known of its length.
const TEXT_BYTES: usize = 16;

/// Rows, partition by partition in the order of the window, and behind their columns those of the functions.
#[derive(Debug)]
pub struct Windowed {
    sorted: Sorted,
    row_count: usize,
    /// By row.
    results: RowStore,
}

impl Windowed {
    /// Asks the functions about sorted rows, on so many threads.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; [`Error::Overflow`] where a sum does not fit its type; [`Error::Cancelled`].
    pub(crate) fn new(
        plan: &WindowPlan,
        sorted: Sorted,
        threads: usize,
        memory: &Arc<dyn Memory>,
        cancelled: &AtomicBool,
    ) -> Result<Windowed> {
        let hidden = hidden(plan, &sorted, threads, memory, cancelled)?;
        let rows = hidden.rows();
        // While functions are asked; the results have their own.
        let mut held = Held::new(memory);
        let mut changes = Bitmap::new(rows, false);
        (0..plan.partition_count).for_each(|key| note_changes(&hidden, key, &mut changes));
        held.need(Borders::bytes(&changes))?;
        let partitions = Borders::new(&changes, rows);
        // Without an order all rows of a partition are peers; and where nobody looks at them, it makes no difference.
        let peer_keys = plan.partition_count..plan.partition_count + plan.peer_key_count;
        peer_keys.for_each(|key| note_changes(&hidden, key, &mut changes));
        let (partition_count, peer_count) = (partitions.starts.len(), 1 + changes.count_ones());
        let of_borders = 2 * Borders::bytes(&changes)
            + peer_count * size_of::<Range<usize>>()
            + partition_count * (size_of::<Range<usize>>() + size_of::<&[Range<usize>]>());
        held.need(of_borders)?;
        let peers: Vec<Range<usize>> = Borders::new(&changes, rows).ranges().collect();
        let mut left = &peers[..];
        let with_peers = |rows: Range<usize>| {
            let (mine, others) = left.split_at(left.partition_point(|group| group.start < rows.end));
            left = others;
            (rows, mine)
        };
        let all: Vec<OfPartition<'_>> = partitions.ranges().map(with_peers).collect();
        let pieces = pieces(&all, rows.div_ceil(parallel::threads_for(rows, threads)));
        let key = OneKey { store: &hidden, column: plan.partition_count, descending: plan.descending };
        let types: Option<Vec<Physical>> = plan.functions.iter().map(|function| function.ty.physical()).collect();
        let types = types.ok_or_else(|| Error::Unsupported("nested results of window functions".into()))?;
        let mut results = RowStore::new(&types, memory);
        let mut columns = Vec::with_capacity(types.len());
        let mut of_columns = 0;
        for ((function, argument), ty) in plan.functions.iter().zip(&plan.arguments).zip(&types) {
            // Until all of them are in the store, they are there twice.
            of_columns += rows * (ty.value_bytes().unwrap_or(TEXT_BYTES) + size_of::<u32>());
            let of_reach = match function.frame.has_distance() {
                true => peer_count * size_of::<Range<usize>>() + partition_count * size_of::<Vec<Range<usize>>>(),
                false => 0,
            };
            held.need(of_borders + of_columns + of_reach)?;
            let argument = argument.map(|column| (&hidden, column));
            let ty = argument.map_or(LogicalType::Int64, |(_, column)| plan.types[column].clone());
            let reach_of = |(_, peers): &OfPartition<'_>| match function.frame.has_distance() {
                true => reach(key, function.frame, peers),
                false => Vec::new(),
            };
            let of_piece = |piece: &[OfPartition<'_>]| -> Result<Vector> {
                let reach: Vec<Vec<Range<usize>>> = piece.iter().map(reach_of).collect();
                check_cancelled(cancelled)?;
                let partitions = piece.iter().zip(&reach).map(|((rows, peers), reach)| {
                    let Range { start: first, end } = *rows;
                    Partition { first, end, peers, reach }
                });
                let partitions = partitions.take_while(|_| check_cancelled(cancelled).is_ok());
                let column = column(function, argument, &ty, partitions)?;
                check_cancelled(cancelled)?;
                Ok(column)
            };
            columns.push(parallel::try_on_each(pieces.clone(), of_piece)?.into_iter());
        }
        for piece in &pieces {
            let of_piece: Vec<Vector> = columns.iter_mut().filter_map(Iterator::next).collect();
            let rows = piece.iter().map(|(rows, _)| rows.len()).sum::<usize>();
            results.push(&of_piece, rows)?;
        }
        Ok(Windowed { sorted, row_count: plan.row_count, results })
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the rows from `first` on over `batch`, a vector's worth at most. False when none is left.
    pub fn read(&self, first: usize, batch: &mut Batch) -> bool {
        let range = first.min(self.len())..self.len().min(first + VECTOR_LEN);
        batch.rows = range.len();
        batch.columns.resize_with(self.row_count + self.results.columns(), Vector::default);
        let (rows, results) = batch.columns.split_at_mut(self.row_count);
        self.sorted.read_columns(range.clone(), 0, rows);
        let places: Vec<u32> = range.clone().map(|row| row as u32).collect();
        for (column, out) in results.iter_mut().enumerate() {
            self.results.gather(column, &places, out);
        }
        !range.is_empty()
    }
}

/// Stands for the row that a shift does not find, where it has a default: no store has so many rows.
const DEFAULT: u32 = NONE - 1;

/// The rows of a partition, and those of each group of peers among them.
type OfPartition<'a> = (Range<usize>, &'a [Range<usize>]);

/// Partitions that follow each other, in pieces of so many rows, or a partition more.
fn pieces<'a, 'p>(partitions: &'a [OfPartition<'p>], rows: usize) -> Vec<&'a [OfPartition<'p>]> {
    let (mut pieces, mut left) = (Vec::new(), partitions);
    while let Some((first, _)) = left.first() {
        let end = first.start + rows.max(1);
        let (piece, others) = left.split_at(left.partition_point(|(range, _)| range.start < end));
        pieces.push(piece);
        left = others;
    }
    pieces
}

/// Keys and arguments in the order of the rows.
fn hidden(
    plan: &WindowPlan,
    sorted: &Sorted,
    threads: usize,
    memory: &Arc<dyn Memory>,
    cancelled: &AtomicBool,
) -> Result<RowStore> {
    let types: Option<Vec<Physical>> = plan.types.iter().map(LogicalType::physical).collect();
    let types = types.ok_or_else(|| Error::Unsupported("nested values in windows".into()))?;
    let pieces = parallel::threads_for(sorted.len(), threads);
    let len = sorted.len().div_ceil(pieces).next_multiple_of(VECTOR_LEN);
    let ranges = (0..pieces).map(|piece| piece * len..sorted.len().min((piece + 1) * len)).collect();
    let stores = parallel::try_on_each(ranges, |range: Range<usize>| {
        let mut store = RowStore::new(&types, memory);
        let mut vectors = vec![Vector::default(); types.len()];
        for first in range.clone().step_by(VECTOR_LEN) {
            check_cancelled(cancelled)?;
            let range = first..range.end.min(first + VECTOR_LEN);
            sorted.read_columns(range.clone(), plan.row_count, &mut vectors);
            store.push(&vectors, range.len())?;
        }
        Ok(store)
    })?;
    Ok(RowStore::joined(stores, threads, cancelled)?.unwrap_or_else(|| RowStore::new(&types, memory)))
}

/// What a function says of all rows.
fn column<'a>(
    function: &WindowFunction,
    argument: Option<(&RowStore, usize)>,
    argument_type: &LogicalType,
    partitions: impl Iterator<Item = Partition<'a>>,
) -> Result<Vector> {
    let (kind, frame, ty) = (&function.kind, function.frame, &function.ty);
    let mut values = ValuesBuf::new(ty.physical().unwrap_or(Physical::I64));
    let mut validity = Bitmap::default();
    let misfit = || Error::Overflow { what: "a window function's result".into(), type_name: ty.to_string() };
    match (kind, argument) {
        (kind, Some((store, at))) if kind.is_pick() => {
            let mut rows = Vec::new();
            // Of a shift with a default, the rows without partner; others have NULL there.
            let default = match kind {
                WindowKind::Shift(_, default) if !default.is_null() => DEFAULT,
                _ => NONE,
            };
            for partition in partitions {
                picks::picks(kind, partition, frame, (store, at), default, &mut rows);
            }
            let mut out = Vector::default();
            match kind {
                WindowKind::Shift(_, default) if !default.is_null() => {
                    for run in rows.chunk_by(|one, next| (*one == DEFAULT) == (*next == DEFAULT)) {
                        if run[0] != DEFAULT {
                            let rows = run.iter().map(|&row| row as usize);
                            crate::vector::gather_values(store.values(at), rows, &mut values);
                        } else if !run.iter().all(|_| push_scalar(&mut values, default)) {
                            return Err(misfit());
                        }
                    }
                    let is_there =
                        |&row: &u32| row == DEFAULT || store.validity(at).is_none_or(|bits| bits.get(row as usize));
                    out.validity = Some(Bitmap::from_bools(rows.iter().map(is_there)));
                    out.values = Encoded::Flat(values);
                }
                _ => store.gather(at, &rows, &mut out),
            }
            return Ok(out);
        }
        (WindowKind::PercentRank | WindowKind::CumeDist, _) => {
            let ValuesBuf::F64(out) = &mut values else { return Err(misfit()) };
            for partition in partitions {
                numbers::shares(kind, partition, |share| out.push(share));
            }
        }
        (WindowKind::Aggregate(aggregate), argument) => {
            let wants_sum = matches!(aggregate, AggregateFunction::Sum | AggregateFunction::Average);
            for partition in partitions {
                totals::totals(partition, frame, argument, wants_sum, |total| {
                    let result = match aggregate {
                        AggregateFunction::Sum => sum(total, argument_type, ty)?,
                        AggregateFunction::Average => average(total, argument_type, ty)?,
                        _ => Scalar::Int(total.count.into()),
                    };
                    validity.push(!result.is_null());
                    if result.is_null() {
                        values.push_default(1);
                    } else if !push_scalar(&mut values, &result) {
                        return Err(misfit());
                    }
                    Ok(())
                })?;
            }
        }
        (kind, _) => {
            let mut fits = true;
            for partition in partitions {
                numbers::integers(kind, partition, |number| match &mut values {
                    ValuesBuf::U64(out) => out.push(number),
                    other => fits &= push_scalar(other, &Scalar::Int(number.into())),
                });
            }
            if !fits {
                return Err(misfit());
            }
        }
    }
    let validity = (!validity.is_empty() && !validity.all()).then_some(validity);
    Ok(Vector { values: Encoded::Flat(values), validity, ..Vector::default() })
}
