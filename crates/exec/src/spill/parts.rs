//! Rows on their way into parts: rows with equal keys are of one part.

use super::table::{SpillFile, Spilled, SpilledColumns, SpilledGroup};
use super::writer::SpillWriter;
use crate::expr::{Machine, Program, compile};
use crate::flow::{Flow, Sink};
use crate::store::{FlatColumn, RowStore};
use crate::vector::append;
use crate::{Error, Expr, LogicalType, Memory, Result, Unlimited, Vector};
use foldhash::fast::RandomState;
use sinter_codec::{Encoded, Physical, ValuesBuf};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Parts at first, and of a part that is still too large.
pub(crate) const PARTS: usize = 32;
pub(crate) const PARTS_OF_PART: usize = 8;

/// How rows become parts, and where. Those of both sides of a join have the same.
#[derive(Clone, Debug)]
pub(crate) struct Split {
    pub(crate) part_count: usize,
    /// By lists of keys; another one each time, so that what met in a part once parts later.
    pub(crate) hasher: RandomState,
    pub(crate) file: Arc<dyn SpillFile>,
}

/// What becomes of rows of which a key is NULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NullKeys {
    /// NULLs are equal.
    AreEqual,
    /// They meet nobody, and any part will do: there may be many.
    MeetNobody,
    /// They come to nothing.
    AreLeftOut,
}

/// What is spilled of a pipeline's rows, and by what; shared by workers.
#[derive(Debug)]
pub(crate) struct PartsPlan {
    /// Its outputs are what is kept, then the keys.
    program: Program,
    columns: SpilledColumns,
    key_types: Vec<Physical>,
    split: Split,
    nulls: NullKeys,
}

impl PartsPlan {
    /// For rows of which expressions over columns of these types are kept, with their names.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for lists and structs.
    pub(crate) fn new(
        kept: &[(Expr, String)],
        keys: &[Expr],
        types: &[LogicalType],
        split: &Split,
        nulls: NullKeys,
    ) -> Result<PartsPlan> {
        let exprs: Vec<&Expr> = kept.iter().map(|(expr, _)| expr).chain(keys).collect();
        let program = compile(&exprs, types)?;
        let columns = SpilledColumns {
            names: kept.iter().map(|(_, name)| name.clone()).collect(),
            types: kept.iter().map(|(expr, _)| expr.type_over(types)).collect(),
        };
        let key_types: Option<Vec<Physical>> = keys.iter().map(|key| key.type_over(types).physical()).collect();
        let key_types = key_types.ok_or_else(|| Error::Unsupported("parts by lists and structs".into()))?;
        Ok(PartsPlan { program, columns, key_types, split: split.clone(), nulls })
    }

    /// The columns that it reads.
    pub(crate) fn columns(&self) -> &[usize] {
        &self.program.columns
    }

    /// The parts of what all workers took.
    pub(crate) fn finish(&self, workers: Vec<WorkerParts>) -> Vec<Arc<Spilled>> {
        let mut groups = vec![Vec::new(); self.split.part_count];
        for worker in workers {
            groups.iter_mut().zip(worker).for_each(|(groups, more)| groups.extend(more));
        }
        groups.into_iter().map(|groups| Arc::new(Spilled::new(self.columns.clone(), groups, false))).collect()
    }
}

/// What a worker wrote, by part.
pub(crate) type WorkerParts = Vec<Vec<SpilledGroup>>;

/// Takes vectors into parts.
pub(crate) struct PartsSink {
    plan: Arc<PartsPlan>,
    writer: SpillWriter,
    machine: Machine,
    /// What is kept, then the keys.
    vectors: Vec<Vector>,
    keys: RowStore,
    /// 0, 1, 2, ...
    numbers: Vec<u32>,
    hashes: Vec<u64>,
    /// The rows of each part.
    rows: Vec<Vec<u32>>,
    /// Of columns whose vector is not flat, its values.
    flat: Vec<ValuesBuf>,
}

impl PartsSink {
    pub(crate) fn new(plan: &Arc<PartsPlan>) -> Result<PartsSink> {
        let unlimited: Arc<dyn Memory> = Arc::new(Unlimited);
        let vectors = |count: usize| (0..count).map(|_| Vector::default()).collect();
        Ok(PartsSink {
            writer: SpillWriter::new(&plan.split.file, &plan.columns, plan.split.part_count)?,
            machine: Machine::default(),
            vectors: vectors(plan.program.outputs.len()),
            keys: RowStore::new(&plan.key_types, &unlimited),
            numbers: Vec::new(),
            hashes: Vec::new(),
            rows: vec![Vec::new(); plan.split.part_count],
            flat: plan.columns.types.iter().map(|ty| ValuesBuf::new(ty.physical().unwrap_or(Physical::U8))).collect(),
            plan: Arc::clone(plan),
        })
    }

    /// What it wrote, and what still waits for that.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn finish(self) -> Result<WorkerParts> {
        self.writer.finish()
    }

    /// Leaves in `self.rows` which rows of a vector are of each part, by its keys.
    fn split(&mut self, rows: usize) -> Result<()> {
        let PartsSink { plan, keys, numbers, hashes, .. } = self;
        keys.clear();
        keys.push(&self.vectors[plan.columns.types.len()..], rows)?;
        numbers.clear();
        numbers.extend(0..rows as u32);
        hashes.clear();
        hashes.resize(rows, 0);
        (0..keys.columns()).for_each(|key| keys.hash(key, numbers, &plan.split.hasher, hashes));
        self.rows.iter_mut().for_each(Vec::clear);
        let part_count = self.rows.len() as u128;
        let has_nulls = plan.nulls != NullKeys::AreEqual && (0..keys.columns()).any(|key| keys.validity(key).is_some());
        for (&row, &hash) in numbers.iter().zip(&*hashes) {
            let part = ((u128::from(hash) * part_count) >> u64::BITS) as usize;
            let is_null = |key| keys.validity(key).is_some_and(|validity| !validity.get(row as usize));
            match has_nulls && (0..keys.columns()).any(is_null) {
                false => self.rows[part].push(row),
                true if plan.nulls == NullKeys::AreLeftOut => {}
                true => self.rows[row as usize % part_count as usize].push(row),
            }
        }
        Ok(())
    }
}

impl Sink for PartsSink {
    fn columns(&self) -> &[usize] {
        self.plan.columns()
    }

    fn take(&mut self, flow: &mut Flow<'_>) -> Result<ControlFlow<()>> {
        let program = &self.plan.program;
        flow.load(&program.columns)?;
        let rows = flow.rows();
        self.machine.run(program, flow.columns(), rows)?;
        self.machine.outputs(program, flow.columns_mut(), rows, &mut self.vectors);
        self.split(rows)?;
        for (vector, flat) in self.vectors.iter().zip(&mut self.flat) {
            if !matches!(vector.values, Encoded::Flat(_)) {
                flat.clear();
                append(vector, rows, flat)?;
            }
        }
        let columns = self.vectors.iter().zip(&self.flat).map(flat_column);
        for (part, rows) in self.rows.iter().enumerate().filter(|(_, rows)| !rows.is_empty()) {
            self.writer.push_rows(part, columns.clone(), rows)?;
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// The values of a vector: its own where they are flat.
fn flat_column<'a>((vector, flat): (&'a Vector, &'a ValuesBuf)) -> FlatColumn<'a> {
    let values = match &vector.values {
        Encoded::Flat(values) => values.as_values(),
        _ => flat.as_values(),
    };
    (values, vector.validity.as_ref())
}
