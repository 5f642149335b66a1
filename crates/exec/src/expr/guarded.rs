//! AND and OR with parts that may fail: each of those only for the rows that the parts before it leave undecided, so that
//! `x <> 0 AND 1 / x > y` divides by no zero. Parts that cannot fail come first, wherever they stand; where there are none,
//! the first that may fail is asked about all rows.

use super::case::gather_columns;
use super::machine::{Frame, Machine};
use super::program::{Operand, Program};
use super::slot::{Scratch, Slot};
use crate::{Result, Vector};
use sinter_codec::Bitmap;

/// Memory of one such operation.
#[derive(Debug, Default)]
pub(crate) struct GuardedScratch {
    /// By group of parts.
    machines: Vec<Machine>,
    /// Columns gathered for the open rows.
    gathered: Vec<Vector>,
    /// Rows that no part has decided yet.
    open: Vec<u32>,
}

/// `first` are the parts asked about all rows, as one; those of a group of the rest are its outputs. A row is decided by a part
/// that is `decisive`: true for OR, false for AND.
pub(super) fn guarded(
    first: Operand,
    rest: &[Program],
    decisive: bool,
    frame: Frame<'_>,
    out: &mut Slot,
) -> Result<()> {
    if !matches!(out.scratch, Scratch::Guarded(_)) {
        out.scratch = Scratch::Guarded(Box::default());
    }
    let Scratch::Guarded(scratch) = &mut out.scratch else { return Ok(()) };
    let GuardedScratch { machines, gathered, open } = scratch.as_mut();
    machines.resize_with(rest.len(), Machine::default);

    let (truth, known) = frame.bits(first);
    out.truth.clone_from(truth);
    match known {
        Some(known) => out.validity.clone_from(known),
        None => out.validity.reset(frame.rows, true),
    }
    let is_known = |bits: Option<&Bitmap>, row: usize| bits.is_none_or(|bits| bits.get(row));
    open.clear();
    let decided = |row: usize| truth.get(row) == decisive && is_known(known, row);
    open.extend((0..frame.rows).filter(|&row| !decided(row)).map(|row| row as u32));

    for (group, machine) in rest.iter().zip(machines) {
        if open.is_empty() {
            break;
        }
        let rows = open.len();
        let columns = gather_columns(group, frame, open, gathered)?;
        machine.run(group, columns, rows)?;
        let found = machine.frame(group, columns, rows);
        let mut index = 0;
        open.retain(|&row| {
            let row = row as usize;
            let is_open = group.outputs.iter().all(|(part, _)| {
                let (truth, known) = found.bits(*part);
                let is_known = is_known(known, index);
                let is_decided = is_known && truth.get(index) == decisive;
                if is_decided || !is_known {
                    out.truth.set(row, is_decided && decisive);
                    out.validity.set(row, is_known);
                }
                !is_decided
            });
            index += 1;
            is_open
        });
    }
    out.has_nulls = !out.validity.all();
    Ok(())
}
