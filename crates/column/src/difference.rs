//! What others did to a table between two of its states: what a transaction's reads are held against.

use crate::group_entry::GroupEntry;
use crate::marks::Marks;
use crate::{ColumnTable, Result};
use sinter_codec::Bitmap;
use std::sync::Arc;

/// Two states of a table, apart from what they share. Each side is a table in which all other rows count as deleted.
#[derive(Debug)]
pub struct Difference {
    /// Rows that only the newer state has.
    pub new: ColumnTable,
    /// Rows that only the older state has.
    pub gone: ColumnTable,
}

/// What became of `then` on the way to `now`, a later state under the same schema. Row ids are never reused, and a row's
/// values never change under its id, so ids tell everything. Takes time for the groups that differ.
///
/// # Errors
/// None in practice.
pub fn differences(then: &ColumnTable, now: &ColumnTable) -> Result<Difference> {
    let (border, budget) = (then.next_row_id(), now.store().budget());
    let (old, kept) = (then.groups(), now.groups());
    // Groups stand in the order of their ids in both; most are the same ones.
    let same = old.iter().zip(kept).take_while(|(old, new)| old.is_same(new)).count();
    let mut gone = Vec::new();
    let mut new = Vec::new();
    let old = &old[same..];
    let kept = &kept[same..];
    for entry in old {
        // A group that was only marked is compared by its marks, one that was rewritten by its ids.
        let group = &entry.group;
        let at = kept.partition_point(|other| other.group.first_row_id() < group.first_row_id());
        let here = kept.get(at).filter(|other| Arc::ptr_eq(&other.group, group));
        let mut alive = match here {
            Some(other) => match &other.deleted {
                None => continue,
                Some(deleted) => not(deleted),
            },
            None => alive_elsewhere(entry, kept),
        };
        // Marked here: alive in the newer state, or dead in the older one already.
        if let Some(deleted) = &entry.deleted {
            alive.or(deleted);
        }
        if !alive.all() {
            gone.push(entry.with_marks(Marks::new(budget, alive)));
        }
    }
    for entry in kept.iter().filter(|entry| entry.group.end_row_id() > border) {
        let group = &entry.group;
        let mut hidden = match &entry.deleted {
            Some(deleted) => (**deleted).clone(),
            None => Bitmap::new(group.rows, false),
        };
        // A merged group may begin with rows that were there before.
        for position in (0..group.rows).take_while(|&position| group.row_id_at(position) < border) {
            hidden.set(position, true);
        }
        if !hidden.all() {
            new.push(entry.with_marks(Marks::new(budget, hidden)));
        }
    }
    Ok(Difference { new: now.with_groups(new), gone: then.with_groups(gone) })
}

fn not(marks: &Bitmap) -> Bitmap {
    let mut inverted = marks.clone();
    inverted.invert();
    inverted
}

/// Which rows of a group are alive in `groups`, by their ids.
fn alive_elsewhere(entry: &GroupEntry, groups: &[GroupEntry]) -> Bitmap {
    let group = &entry.group;
    let mut alive = Bitmap::new(group.rows, false);
    let mut position = 0;
    while position < group.rows {
        let id = group.row_id_at(position);
        let at = groups.partition_point(|other| other.group.end_row_id() <= id);
        let Some(other) = groups.get(at) else { break };
        let end = other.group.end_row_id();
        while position < group.rows && group.row_id_at(position) < end {
            if let Some(there) = other.group.position_of(group.row_id_at(position)) {
                let is_dead = other.deleted.as_ref().is_some_and(|deleted| deleted.get(there));
                alive.set(position, !is_dead);
            }
            position += 1;
        }
    }
    alive
}
