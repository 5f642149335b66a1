//! Where partitions and groups of peers begin, and where frames reach.

use super::{Bound, Frame, FrameUnit};
use crate::expr::float_key;
use crate::store::RowStore;
use sinter_codec::{Bitmap, Values};
use std::ops::Range;

/// A bit for each row that begins something, and a list of all beginnings, the end behind them.
#[derive(Debug)]
pub(super) struct Borders {
    pub(super) starts: Vec<u32>,
}

/// Notes in `changes` where a column differs from the row before; NULLs are equal, and so are NaNs.
pub(super) fn note_changes(store: &RowStore, column: usize, changes: &mut Bitmap) {
    macro_rules! note {
        ($values:expr, $key:expr) => {{
            let key = $key;
            for (row, pair) in (1..).zip($values.windows(2)) {
                if key(pair[0]) != key(pair[1]) {
                    changes.set(row, true);
                }
            }
        }};
    }
    let Some(validity) = store.validity(column) else {
        match store.values(column) {
            Values::I8(values) => note!(values, |value: i8| value),
            Values::I16(values) => note!(values, |value: i16| value),
            Values::I32(values) => note!(values, |value: i32| value),
            Values::I64(values) => note!(values, |value: i64| value),
            Values::I128(values) => note!(values, |value: i128| value),
            Values::U8(values) => note!(values, |value: u8| value),
            Values::U16(values) => note!(values, |value: u16| value),
            Values::U32(values) => note!(values, |value: u32| value),
            Values::U64(values) => note!(values, |value: u64| value),
            Values::F32(values) => note!(values, |value: f32| float_key(value.into())),
            Values::F64(values) => note!(values, float_key),
            Values::Bytes(view) => {
                for row in 1..view.len() {
                    if view.get(row - 1) != view.get(row) {
                        changes.set(row, true);
                    }
                }
            }
        }
        return;
    };
    let values = store.values(column);
    for row in 1..store.rows() {
        let is_same = match (validity.get(row - 1), validity.get(row)) {
            (true, true) => crate::sort::compare_values((values, row - 1), (values, row)).is_eq(),
            (before, now) => before == now,
        };
        if !is_same {
            changes.set(row, true);
        }
    }
}

impl Borders {
    /// How many bytes they will take.
    pub(super) fn bytes(changes: &Bitmap) -> usize {
        size_of::<u32>() * (2 + changes.count_ones())
    }

    /// Of so many rows, of which those begin something that have a bit.
    pub(super) fn new(changes: &Bitmap, rows: usize) -> Borders {
        let mut starts: Vec<u32> = Vec::new();
        if rows > 0 {
            starts.push(0);
            starts.extend(changes.ones().filter(|row| *row > 0).map(|row| row as u32));
        }
        starts.push(rows as u32);
        Borders { starts }
    }

    /// The rows from one beginning to the next.
    pub(super) fn ranges(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.starts.windows(2).map(|pair| pair[0] as usize..pair[1] as usize)
    }
}

/// The rows of a partition, and how they lie in it.
#[derive(Clone, Copy)]
pub(super) struct Partition<'a> {
    pub(super) first: usize,
    pub(super) end: usize,
    /// Rows that are equal by the order.
    pub(super) peers: &'a [Range<usize>],
    /// For each of these groups the rows within the frame's distances; empty where the frame has none.
    pub(super) reach: &'a [Range<usize>],
}

/// Calls `visit` with each row of a partition and the rows of its frame. Neither end ever moves back, and the first is
/// never behind the last.
pub(super) fn each_frame(partition: Partition<'_>, frame: Frame, mut visit: impl FnMut(usize, Range<usize>)) {
    let Partition { first, end, peers, reach } = partition;
    let row_at = |row: usize, offset: i64| {
        let place = (row as i64).saturating_add(offset);
        (place.max(first as i64) as usize).min(end)
    };
    let group_at = |group: usize, offset: i64| usize::try_from((group as i64).saturating_add(offset));
    for (number, group) in peers.iter().enumerate() {
        if frame.unit == FrameUnit::Rows {
            for row in group.clone() {
                let low = match frame.start {
                    Bound::Unbounded => first,
                    Bound::Offset(offset) => row_at(row, offset),
                    Bound::Current | Bound::Distance(_) => row,
                };
                let high = match frame.end {
                    Bound::Unbounded => end,
                    Bound::Offset(offset) => row_at(row, offset.saturating_add(1)),
                    Bound::Current | Bound::Distance(_) => row + 1,
                };
                visit(row, low.min(high)..high);
            }
            continue;
        }
        let low = match frame.start {
            Bound::Unbounded => first,
            Bound::Current => group.start,
            Bound::Distance(_) => reach[number].start,
            Bound::Offset(offset) => match group_at(number, offset) {
                Ok(other) => peers.get(other).map_or(end, |other| other.start),
                Err(_) => first,
            },
        };
        let high = match frame.end {
            Bound::Unbounded => end,
            Bound::Current => group.end,
            Bound::Distance(_) => reach[number].end,
            Bound::Offset(offset) => match group_at(number, offset) {
                Ok(other) => peers.get(other).map_or(end, |other| other.end),
                Err(_) => first,
            },
        };
        group.clone().for_each(|row| visit(row, low.min(high)..high));
    }
}
