//! What was gathered, read from its first row to its last.

use super::Worker;
use crate::spill::GROUP_VECTORS;
use crate::{Batch, Expr, Gathered, Output, Pipeline, Result, Spilled, TableSource};
use std::sync::Arc;

/// Reads what a pipeline made of all its rows.
#[derive(Debug)]
pub struct Reader(Rows);

#[derive(Debug)]
enum Rows {
    InMemory {
        gathered: Gathered,
        /// The first row that was not read.
        next: usize,
    },
    Spilled(Box<Worker>),
}

impl Reader {
    /// From the first row on.
    ///
    /// # Errors
    /// As [`Pipeline::start`].
    pub fn new(gathered: Gathered) -> Result<Reader> {
        let Gathered::Spilled(table) = gathered else { return Ok(Reader(Rows::InMemory { gathered, next: 0 })) };
        let columns = (0..table.column_types().len()).map(Expr::Column);
        let pipeline = Pipeline::of_table(table, Output::Rows(columns.collect()));
        Ok(Reader(Rows::Spilled(Box::new(pipeline.start()?.worker()))))
    }

    /// Of spilled rows no more than a row group at a time, where many are read beside each other.
    ///
    /// # Errors
    /// As [`Reader::new`].
    pub(crate) fn by_group(table: Arc<Spilled>) -> Result<Reader> {
        let mut reader = Reader::new(Gathered::Spilled(table))?;
        if let Rows::Spilled(worker) = &mut reader.0 {
            worker.rows.set_ahead_max(GROUP_VECTORS);
        }
        Ok(reader)
    }

    /// Writes the next rows over `batch`, a vector's worth at most; false when none is left.
    ///
    /// # Errors
    /// As [`Groups::read`](crate::Groups::read); those of reading what was spilled.
    pub fn next(&mut self, batch: &mut Batch) -> Result<bool> {
        match &mut self.0 {
            Rows::InMemory { gathered, next } => {
                let more = gathered.read(*next, batch)?;
                *next += if more { batch.rows } else { 0 };
                Ok(more)
            }
            Rows::Spilled(worker) => worker.next(batch),
        }
    }
}
