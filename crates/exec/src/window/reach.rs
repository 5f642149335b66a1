//! How far frames reach whose ends are so much less or more than a row's own key.

use super::{Bound, Distance, Frame};
use crate::expr::float_key;
use crate::store::RowStore;
use sinter_codec::Values;
use std::cmp::Ordering;
use std::ops::Range;

/// The one key of an order, and which way it goes.
#[derive(Clone, Copy)]
pub(super) struct OneKey<'a> {
    pub(super) store: &'a RowStore,
    pub(super) column: usize,
    pub(super) descending: bool,
}

/// For each group of peers the rows of its partition within the distances of the frame. NULLs are near NULLs alone.
pub(super) fn reach(key: OneKey<'_>, frame: Frame, peers: &[Range<usize>]) -> Vec<Range<usize>> {
    let end = peers.last().map_or(0, |group| group.end);
    // The groups that the last frame began with, and ended before.
    let (mut low, mut high) = (0, 0);
    let reach = |(number, group): (usize, &Range<usize>)| {
        let Some(own) = key.at(group.start) else { return group.clone() };
        // NULLs stand before all others, or behind them.
        let moves_on = |place: usize, is_before: &dyn Fn(Number) -> bool| match peers.get(place) {
            Some(group) => key.at(group.start).map_or(place < number, is_before),
            None => false,
        };
        if let Bound::Distance(distance) = frame.start {
            let target = key.moved(own, distance);
            while moves_on(low, &|other| key.order(other, target).is_lt()) {
                low += 1;
            }
        }
        if let Bound::Distance(distance) = frame.end {
            let target = key.moved(own, distance);
            while moves_on(high, &|other| key.order(other, target).is_le()) {
                high += 1;
            }
        }
        let first = peers.get(low).map_or(end, |group| group.start);
        let last = high.checked_sub(1).map_or(peers[0].start, |last| peers[last].end);
        first..last
    };
    peers.iter().enumerate().map(reach).collect()
}

/// A key.
#[derive(Clone, Copy)]
enum Number {
    Int(i128),
    Float(f64),
}

impl OneKey<'_> {
    /// The key of a row; `None` for NULL.
    fn at(self, row: usize) -> Option<Number> {
        if self.store.validity(self.column).is_some_and(|validity| !validity.get(row)) {
            return None;
        }
        Some(match self.store.values(self.column) {
            Values::I8(values) => Number::Int(values[row].into()),
            Values::I16(values) => Number::Int(values[row].into()),
            Values::I32(values) => Number::Int(values[row].into()),
            Values::I64(values) => Number::Int(values[row].into()),
            Values::I128(values) => Number::Int(values[row]),
            Values::U8(values) => Number::Int(values[row].into()),
            Values::U16(values) => Number::Int(values[row].into()),
            Values::U32(values) => Number::Int(values[row].into()),
            Values::U64(values) => Number::Int(values[row].into()),
            Values::F32(values) => Number::Float(values[row].into()),
            Values::F64(values) => Number::Float(values[row]),
            Values::Bytes(_) => return None,
        })
    }

    /// The key so far behind in the order, or before if negative.
    fn moved(self, key: Number, distance: Distance) -> Number {
        match (key, distance) {
            (Number::Int(key), Distance::Int(by)) if self.descending => Number::Int(key.saturating_sub(by)),
            (Number::Int(key), Distance::Int(by)) => Number::Int(key.saturating_add(by)),
            (Number::Float(key), Distance::Float(by)) if self.descending => Number::Float(key - by),
            (Number::Float(key), Distance::Float(by)) => Number::Float(key + by),
            (key, _) => key,
        }
    }

    /// In which order two keys stand.
    fn order(self, one: Number, other: Number) -> Ordering {
        let order = match (one, other) {
            (Number::Int(one), Number::Int(other)) => one.cmp(&other),
            (Number::Float(one), Number::Float(other)) => float_key(one).cmp(&float_key(other)),
            _ => Ordering::Equal,
        };
        if self.descending { order.reverse() } else { order }
    }
}
