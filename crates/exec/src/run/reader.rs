//! What was gathered, read from its first row to its last.

use super::Worker;
use crate::{Batch, Expr, Gathered, Merged, Output, Pipeline, Result, Spilled, TableSource};
use sinter_codec::VECTOR_LEN;
use std::sync::Arc;

/// Reads what a pipeline made of all its rows.
#[derive(Debug)]
pub struct Reader(Rows);

#[derive(Debug)]
enum Rows {
    Gathered {
        gathered: Gathered,
        /// Where the rows begin that were not read: at vectors, as workers read them.
        next: usize,
    },
    Merged {
        merged: Box<Merged>,
        taken: Option<usize>,
    },
    Spilled(Box<Worker>),
}

impl Reader {
    /// From the first row on.
    ///
    /// # Errors
    /// As [`Pipeline::start`], and of rows that are skipped as [`Reader::next`].
    pub fn new(gathered: Gathered) -> Result<Reader> {
        Ok(Reader(match gathered {
            Gathered::Merged(merged) => {
                merged.begin()?;
                Rows::Merged { merged, taken: None }
            }
            Gathered::Spilled(table) => {
                let columns = (0..table.column_types().len()).map(Expr::Column);
                let pipeline = Pipeline::of_table(table, Output::Rows(columns.collect()));
                Rows::Spilled(Box::new(pipeline.start()?.worker()))
            }
            gathered => Rows::Gathered { gathered, next: 0 },
        }))
    }

    /// Of spilled rows no more vectors at a time than a row group has, where many are read beside each other.
    ///
    /// # Errors
    /// As [`Reader::new`].
    pub(crate) fn by_group(table: Arc<Spilled>) -> Result<Reader> {
        let vectors = (0..table.group_count()).map(|group| table.group_rows(group).div_ceil(VECTOR_LEN)).max();
        let mut reader = Reader::new(Gathered::Spilled(table))?;
        if let Rows::Spilled(worker) = &mut reader.0 {
            worker.rows.set_ahead_max(vectors.unwrap_or(1));
        }
        Ok(reader)
    }

    /// Writes the next rows over `batch`, a vector's worth at most; false when none is left.
    ///
    /// # Errors
    /// As [`Groups::read`](crate::Groups::read); those of reading what was spilled.
    pub fn next(&mut self, batch: &mut Batch) -> Result<bool> {
        match &mut self.0 {
            Rows::Gathered { gathered, next } => {
                let more = gathered.read(*next, batch)?;
                *next += if more { VECTOR_LEN } else { 0 };
                Ok(more)
            }
            Rows::Merged { merged, taken } => merged.read(taken, batch),
            Rows::Spilled(worker) => worker.next(batch),
        }
    }
}
