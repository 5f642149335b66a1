//! Functions whose result is the argument's value in another row.

use super::borders::{Partition, each_frame};
use super::{Frame, WindowKind};
use crate::AggregateFunction;
use crate::sort::compare_values;
use crate::store::{NONE, RowStore};
use std::collections::VecDeque;

/// Appends for each row of a partition the row that has its value: [`NONE`] for NULL, `default` where a shift leaves the
/// partition.
pub(super) fn picks(
    kind: &WindowKind,
    partition: Partition<'_>,
    frame: Frame,
    (arguments, column): (&RowStore, usize),
    default: u32,
    out: &mut Vec<u32>,
) {
    match kind {
        WindowKind::Shift(offset, _) => {
            let all = partition.first..partition.end;
            for row in all.clone() {
                let other = (row as i64).checked_add(*offset).and_then(|other| usize::try_from(other).ok());
                out.push(other.filter(|other| all.contains(other)).map_or(default, |other| other as u32));
            }
        }
        WindowKind::First => each_frame(partition, frame, |_, rows| {
            out.push(if rows.is_empty() { NONE } else { rows.start as u32 });
        }),
        WindowKind::Last => each_frame(partition, frame, |_, rows| {
            out.push(if rows.is_empty() { NONE } else { rows.end as u32 - 1 });
        }),
        WindowKind::Nth(number) => each_frame(partition, frame, |_, rows| {
            let place = usize::try_from(*number).ok().and_then(|number| number.checked_sub(1));
            let row = place.and_then(|place| rows.start.checked_add(place)).filter(|row| *row < rows.end);
            out.push(row.map_or(NONE, |row| row as u32));
        }),
        _ => {
            let is_maximum = *kind == WindowKind::Aggregate(AggregateFunction::Max);
            extremes(is_maximum, partition, frame, (arguments, column), out);
        }
    }
}

/// The row with the least or greatest value of each frame: rows that a later one beats can never be it, so what is left of a
/// frame is a queue in which each is better than those behind it.
fn extremes(
    is_maximum: bool,
    partition: Partition<'_>,
    frame: Frame,
    (arguments, column): (&RowStore, usize),
    out: &mut Vec<u32>,
) {
    let (values, validity) = (arguments.values(column), arguments.validity(column));
    let mut best: VecDeque<usize> = VecDeque::new();
    let mut next = partition.first;
    each_frame(partition, frame, |_, rows| {
        while next < rows.end {
            if validity.is_none_or(|validity| validity.get(next)) {
                let is_beaten = |other: usize| {
                    let order = compare_values((values, other), (values, next));
                    if is_maximum { order.is_le() } else { order.is_ge() }
                };
                while best.back().is_some_and(|&other| is_beaten(other)) {
                    best.pop_back();
                }
                best.push_back(next);
            }
            next += 1;
        }
        while best.front().is_some_and(|&row| row < rows.start) {
            best.pop_front();
        }
        out.push(best.front().map_or(NONE, |&row| row as u32));
    });
}
