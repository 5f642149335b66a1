//! Rows on their way from a scan to a sink.
//!
//! A vector's rows flow through the steps of a pipeline in place: a filter drops some, a join notes for each which row
//! of its table it met. Columns come when they are first asked for, for the rows that are alive then: those of the scan
//! out of their segments, those of a join out of its table. Behind a join in which a row meets several, they come out of the
//! columns in front of it ([`steps`]).

mod rest;
mod selection;
mod steps;
mod survivors;

pub(crate) use rest::Rest;
pub(crate) use selection::Selection;
pub(crate) use steps::{Chain, StepPlan, StepsPlan, StepsState};
pub(crate) use survivors::{FilterScratch, LoadColumn, Survivors};

use crate::expr::Program;
use crate::join::JoinTable;
use crate::{LogicalType, Result, Vector};
use sinter_codec::{Bitmap, Predicate};
use std::ops::ControlFlow;
use std::sync::Arc;

/// What takes vectors.
pub(crate) trait Sink {
    /// The columns it wants, by their place in the pipeline.
    fn columns(&self) -> &[usize];
    /// Takes the rows of a vector, at least one. `Break` pauses the scan; it goes on when it is asked
    /// again.
    fn take(&mut self, flow: &mut Flow<'_>) -> Result<ControlFlow<()>>;
    /// Goes on with what was left when it last paused; `Break` pauses again.
    fn resume(&mut self) -> Result<ControlFlow<()>> {
        Ok(ControlFlow::Continue(()))
    }
    /// May take a whole group by its statistics: all its rows pass and none is deleted. True when it did.
    fn take_group(&mut self, _group: usize, _rows: usize) -> bool {
        false
    }
    /// Whether it is going to do so, as far as one can tell.
    fn would_take_group(&self, _group: usize) -> bool {
        false
    }
    /// What rows have to pass that it still wants; more than before, or the same. Others may be kept from it.
    fn bound(&self) -> Option<KeyBound> {
        None
    }
}

/// A condition on a column of the scan that is known only on the way.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeyBound {
    pub(crate) column: usize,
    /// What values pass; `None` where none does.
    pub(crate) predicate: Option<Predicate>,
    /// Whether NULLs pass.
    pub(crate) keeps_nulls: bool,
}

/// Where the columns of a pipeline are: first those of its scan, then what its joins bring.
#[derive(Clone, Copy)]
pub(crate) struct Layout<'a> {
    pub(crate) scan_columns: usize,
    /// Of these.
    pub(crate) scan_types: &'a [LogicalType],
    /// Of which join they are, and which of its table's columns.
    pub(crate) payload: &'a [(usize, usize)],
    /// By join.
    pub(crate) tables: &'a [Arc<JoinTable>],
}

impl Layout<'_> {
    /// How many columns there are.
    pub(crate) fn columns(&self) -> usize {
        self.scan_columns + self.payload.len()
    }
}

/// The rows of a vector that are alive, with their columns on demand.
pub(crate) struct Flow<'a> {
    survivors: &'a mut Survivors,
    layout: Layout<'a>,
    /// The scan's vector, while it is at hand.
    scan: Option<&'a mut (dyn LoadColumn + 'a)>,
}

impl<'a> Flow<'a> {
    pub(crate) fn new(
        survivors: &'a mut Survivors,
        layout: Layout<'a>,
        scan: Option<&'a mut (dyn LoadColumn + 'a)>,
    ) -> Flow<'a> {
        Flow { survivors, layout, scan }
    }

    /// How many rows there are.
    pub(crate) fn rows(&self) -> usize {
        self.survivors.rows()
    }

    /// Which row of a join's table each row met.
    pub(crate) fn met(&self, join: usize) -> &[u32] {
        self.survivors.met(join)
    }

    /// Makes these columns be there.
    ///
    /// # Errors
    /// What reading them brings about.
    pub(crate) fn load(&mut self, columns: &[usize]) -> Result<()> {
        columns.iter().try_for_each(|&column| {
            let scan = self.scan.as_mut().map(|scan| &mut **scan as &mut dyn LoadColumn);
            self.survivors.load(column, self.layout, scan)
        })
    }

    /// Makes these columns be there with rows that are dead, if those are few and that is to be had; [`Flow::spread`] tells
    /// which. False, and nothing happens, otherwise. Whoever asks is the last one to read the columns, or gathers them.
    ///
    /// # Errors
    /// As [`Flow::load`].
    pub(crate) fn load_spread(&mut self, columns: &[usize]) -> Result<bool> {
        match &mut self.scan {
            Some(scan) => self.survivors.load_spread(columns, self.layout, &mut **scan),
            None => Ok(false),
        }
    }

    /// The columns after [`Flow::load_spread`], and which of their rows are alive.
    pub(crate) fn spread(&self) -> Option<(&[Vector], &Bitmap)> {
        self.survivors.spread().map(|alive| (self.survivors.columns(), alive))
    }

    /// Drops the dead rows of the columns that [`Flow::load_spread`] loaded.
    ///
    /// # Errors
    /// Where a nested column cannot be gathered.
    pub(crate) fn gather(&mut self) -> Result<()> {
        self.survivors.gather()
    }

    /// Keeps the rows at these positions, which ascend.
    ///
    /// # Errors
    /// As [`Flow::load`].
    pub(crate) fn keep(&mut self, kept: &[u16]) -> Result<()> {
        if kept.len() == self.rows() { Ok(()) } else { self.survivors.keep(kept) }
    }

    /// Makes those of these columns be there that only the scan has.
    fn load_scanned(&mut self, columns: &[usize]) -> Result<()> {
        let scanned = columns.iter().take_while(|&&column| column < self.layout.scan_columns).count();
        self.load(&columns[..scanned])
    }

    /// All columns; only those that were loaded hold anything.
    pub(crate) fn columns(&self) -> &[Vector] {
        self.survivors.columns()
    }

    /// The same, for whoever takes them away.
    pub(crate) fn columns_mut(&mut self) -> &mut [Vector] {
        self.survivors.columns_mut()
    }

    /// Keeps the rows for which the program's one result is true; false when there are none.
    ///
    /// # Errors
    /// What loading and evaluating bring about.
    pub(crate) fn filter(&mut self, program: &Program, scratch: &mut FilterScratch) -> Result<bool> {
        self.load(&program.columns)?;
        self.survivors.evaluate(program, scratch)
    }
}
