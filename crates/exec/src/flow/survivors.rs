//! Columns of the rows that are alive, loaded when first asked for and at most once.

use super::Layout;
use super::selection::{Selection, write_positions};
use crate::expr::{Machine, Program};
use crate::store::NONE;
use crate::vector::{compact, gather_vector};
use crate::{Batch, Error, Result, Vector};
use sinter_codec::Bitmap;

/// What has the columns of the rows that stand in front: of a vector that is being scanned, or of rows that met several.
pub(crate) trait LoadColumn {
    /// Writes a column of the selected rows over `vector`.
    fn load(&mut self, column: usize, selection: &Selection, vector: &mut Vector) -> Result<()>;

    /// Whether a join's column is there, too.
    fn has_payload(&self, _column: usize) -> bool {
        false
    }
}

/// The rows that are alive, with their columns as far as they have been asked for.
#[derive(Debug, Default)]
pub(crate) struct Survivors {
    columns: Vec<Vector>,
    /// Which columns are there.
    loaded: Vec<bool>,
    /// Which of the rows in front these are, if they are: of a scan's vector, or of [`Repeated`].
    selection: Selection,
    is_scanned: bool,
    /// Whether the columns that are there have the scan's dead rows, too.
    is_spread: bool,
    /// Whether these are rows of a join that no row of the scan stands before.
    is_rest: bool,
    /// For each join so far, which of its table's rows each row met.
    matches: Vec<Vec<u32>>,
    rows: usize,
}

impl Survivors {
    /// Starts a new vector with these rows, and no column yet.
    pub(crate) fn start(&mut self, alive: &Bitmap, column_count: usize) {
        self.clear(column_count);
        self.selection.set(alive);
        self.is_scanned = true;
        self.rows = self.selection.rows();
    }

    /// Starts with rows that are there with some of their columns: which column of `batch` each of the first ones is. The
    /// memory is exchanged.
    pub(crate) fn start_loaded(&mut self, batch: &mut Batch, columns: &[usize], column_count: usize) {
        self.clear(column_count);
        self.rows = batch.rows;
        for (place, &column) in columns.iter().enumerate() {
            match columns[place + 1..].contains(&column) {
                true => self.columns[place].clone_from(&batch.columns[column]),
                false => std::mem::swap(&mut self.columns[place], &mut batch.columns[column]),
            }
            self.loaded[place] = true;
        }
    }

    fn clear(&mut self, column_count: usize) {
        self.columns.resize_with(column_count, Vector::default);
        self.loaded.clear();
        self.loaded.resize(column_count, false);
        self.matches.iter_mut().for_each(Vec::clear);
        (self.is_scanned, self.is_rest, self.is_spread) = (false, false, false);
    }

    /// Starts with rows of a join's table alone: all that comes before that join is NULL.
    pub(super) fn start_with_rest(&mut self, join: usize, rows: &mut Vec<u32>, column_count: usize) {
        self.clear(column_count);
        self.is_rest = true;
        self.rows = rows.len();
        self.matches.resize_with(self.matches.len().max(join + 1), Vec::new);
        self.matches[..join].iter_mut().for_each(|matches| matches.resize(rows.len(), NONE));
        std::mem::swap(&mut self.matches[join], rows);
    }

    /// Starts with rows of `from`, some of them perhaps more than once. [`Repeated`] has their columns.
    pub(super) fn start_with(&mut self, from: &Survivors, rows: &[u32]) {
        self.clear(from.columns.len());
        self.selection.set_whole(rows.len());
        (self.is_scanned, self.rows) = (true, rows.len());
        self.matches.resize_with(from.matches.len(), Vec::new);
        for (matches, from) in self.matches.iter_mut().zip(&from.matches) {
            matches.clear();
            matches.extend(rows.iter().map(|&row| from.get(row as usize).copied().unwrap_or_default()));
        }
    }

    /// How many rows are alive.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn columns(&self) -> &[Vector] {
        &self.columns
    }

    pub(crate) fn columns_mut(&mut self) -> &mut [Vector] {
        &mut self.columns
    }

    /// Loads a column, unless that has been done.
    pub(crate) fn load(
        &mut self,
        column: usize,
        layout: Layout<'_>,
        scan: Option<&mut (dyn LoadColumn + '_)>,
    ) -> Result<()> {
        if std::mem::replace(&mut self.loaded[column], true) {
            return Ok(());
        }
        let vector = &mut self.columns[column];
        match (column.checked_sub(layout.scan_columns), scan) {
            (Some(_), Some(front)) if front.has_payload(column) => {
                self.selection.write();
                front.load(column, &self.selection, vector)
            }
            (Some(payload), _) => {
                let (join, column) = layout.payload[payload];
                layout.tables[join].gather(column, &self.matches[join], vector);
                Ok(())
            }
            (None, _) if self.is_rest => {
                *vector = Vector::of_nulls(&layout.scan_types[column], self.rows)?;
                Ok(())
            }
            (None, Some(scan)) => {
                self.selection.write();
                scan.load(column, &self.selection, vector)
            }
            (None, None) => Err(gone()),
        }
    }

    /// Loads columns with the dead rows of the scan's vector, if they are few: to leave them out of what is computed can cost
    /// less than to drop them. False, and nothing happens, where some column is there, or all rows are alive.
    pub(super) fn load_spread(
        &mut self,
        columns: &[usize],
        layout: Layout<'_>,
        scan: &mut (dyn LoadColumn + '_),
    ) -> Result<bool> {
        let Some(alive) = self.selection.most().filter(|_| self.is_scanned) else { return Ok(false) };
        if self.loaded.contains(&true) || columns.iter().any(|&column| column >= layout.scan_columns) {
            return Ok(false);
        }
        let whole = Selection::whole(alive.len());
        for &column in columns {
            scan.load(column, &whole, &mut self.columns[column])?;
            self.loaded[column] = true;
        }
        self.is_spread = true;
        Ok(true)
    }

    /// Which rows are alive of those that the columns have, where these are not the same.
    pub(super) fn spread(&self) -> Option<&Bitmap> {
        self.selection.most().filter(|_| self.is_spread)
    }

    /// Drops the dead rows.
    pub(super) fn gather(&mut self) -> Result<()> {
        if std::mem::take(&mut self.is_spread) {
            self.selection.write();
            let positions = self.selection.positions().unwrap_or_default();
            for (vector, _) in self.columns.iter_mut().zip(&self.loaded).filter(|(_, loaded)| **loaded) {
                compact(vector, positions)?;
            }
        }
        Ok(())
    }

    /// Keeps the rows for which the program's one result is true; false when there are none. Its columns are loaded.
    pub(crate) fn evaluate(&mut self, program: &Program, scratch: &mut FilterScratch) -> Result<bool> {
        scratch.machine.run(program, &self.columns, self.rows)?;
        let frame = scratch.machine.frame(program, &self.columns, self.rows);
        let passed = frame.bits(program.outputs[0].0).0;
        if passed.all() {
            return Ok(true);
        }
        write_positions(passed, &mut scratch.kept);
        self.keep(&scratch.kept)?;
        Ok(self.rows > 0)
    }

    /// Which row of a join's table each row met.
    pub(super) fn met(&self, join: usize) -> &[u32] {
        &self.matches[join]
    }

    /// Keeps the rows at these positions, which ascend.
    pub(crate) fn keep(&mut self, kept: &[u16]) -> Result<()> {
        if self.is_scanned {
            self.selection.keep(kept);
        }
        self.rows = kept.len();
        for (vector, _) in self.columns.iter_mut().zip(&self.loaded).filter(|(_, loaded)| **loaded) {
            compact(vector, kept)?;
        }
        for matches in &mut self.matches {
            if !matches.is_empty() {
                kept.iter().enumerate().for_each(|(row, &from)| matches[row] = matches[usize::from(from)]);
                matches.truncate(kept.len());
            }
        }
        Ok(())
    }

    /// Lets go of columns that nobody will ask for any more.
    pub(super) fn keep_columns(&mut self, live: &[usize]) {
        let mut live = live.iter().copied().peekable();
        for (column, loaded) in self.loaded.iter_mut().enumerate() {
            *loaded &= live.next_if_eq(&column).is_some();
        }
    }

    /// Notes which row of a join's table each row met; the numbers move.
    pub(crate) fn meet(&mut self, join: usize, rows: &mut Vec<u32>) {
        if self.matches.len() <= join {
            self.matches.resize_with(join + 1, Vec::new);
        }
        std::mem::swap(&mut self.matches[join], rows);
    }
}

/// The columns of rows that come from others, some of them perhaps more than once: in the place of the scan's vector.
pub(super) struct Repeated<'a> {
    before: &'a Survivors,
    /// Which of them each row comes from.
    from: &'a [u32],
    /// The same of rows that are alive.
    alive: &'a mut Vec<u32>,
}

impl<'a> Repeated<'a> {
    pub(super) fn new(before: &'a Survivors, from: &'a [u32], alive: &'a mut Vec<u32>) -> Repeated<'a> {
        alive.clear();
        Repeated { before, from, alive }
    }
}

impl LoadColumn for Repeated<'_> {
    fn load(&mut self, column: usize, selection: &Selection, vector: &mut Vector) -> Result<()> {
        if !self.before.loaded[column] {
            return Err(gone());
        }
        let rows = match selection.positions() {
            None => self.from,
            Some(positions) => {
                // Rows only become fewer, so these are the same if they are as many.
                if self.alive.len() != positions.len() {
                    self.alive.clear();
                    self.alive.extend(positions.iter().map(|&position| self.from[usize::from(position)]));
                }
                self.alive.as_slice()
            }
        };
        gather_vector(&self.before.columns[column], rows, vector)
    }

    fn has_payload(&self, column: usize) -> bool {
        self.before.loaded[column]
    }
}

#[cold]
fn gone() -> Error {
    Error::Unsupported("a column of rows that are no longer at hand".into())
}

/// Memory in which a condition is evaluated.
#[derive(Debug, Default)]
pub(crate) struct FilterScratch {
    machine: Machine,
    kept: Vec<u16>,
}

impl FilterScratch {
    /// The rows that the last filter kept, if it did not keep all.
    pub(super) fn kept(&self) -> &[u16] {
        &self.kept
    }
}
