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
    /// Its outputs are what is kept, then the keys that are not.
    program: Program,
    columns: SpilledColumns,
    /// Which output each key is.
    keys: Vec<usize>,
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
        let mut program = compile(&exprs, types)?;
        let mut places = Vec::with_capacity(keys.len());
        for output in program.outputs.split_off(kept.len()) {
            // Not twice what is kept, too.
            let known = program.outputs.iter().position(|known| *known == output);
            places.push(known.unwrap_or(program.outputs.len()));
            if known.is_none() {
                program.outputs.push(output);
            }
        }
        let are_plain = program.outputs.iter().all(|(_, ty)| ty.physical().is_some());
        if !are_plain {
            return Err(Error::Unsupported("parts of lists and structs".into()));
        }
        let columns = SpilledColumns {
            names: kept.iter().map(|(_, name)| name.clone()).collect(),
            types: kept.iter().map(|(expr, _)| expr.type_over(types)).collect(),
        };
        Ok(PartsPlan { program, columns, keys: places, split: split.clone(), nulls })
    }

    /// The columns that it reads.
    pub(crate) fn columns(&self) -> &[usize] {
        &self.program.columns
    }

    /// The parts of what all workers took.
    pub(crate) fn finish(&self, workers: Vec<WorkerParts>) -> Vec<Part> {
        let mut groups = vec![Vec::new(); self.split.part_count];
        let mut hashes = vec![Hashes::default(); self.split.part_count];
        for worker in workers {
            groups.iter_mut().zip(worker.groups).for_each(|(groups, more)| groups.extend(more));
            hashes.iter_mut().zip(worker.hashes).for_each(|(hashes, more)| hashes.add_all(more));
        }
        let part = |(groups, hashes): (_, Hashes)| Part {
            rows: Arc::new(Spilled::new(self.columns.clone(), groups)),
            has_one_key: hashes.are_one(),
        };
        groups.into_iter().zip(hashes).map(part).collect()
    }
}

/// Rows that were parted from others.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) rows: Arc<Spilled>,
    /// All of them have the same keys, so that they do not part again. (Other keys of one hash are as good as never there.)
    pub(crate) has_one_key: bool,
}

/// What a worker wrote, by part.
pub(crate) struct WorkerParts {
    groups: Vec<Vec<SpilledGroup>>,
    hashes: Vec<Hashes>,
}

/// Whether hashes differ: which bits all of them have, and which any has.
#[derive(Clone, Copy, Debug)]
struct Hashes {
    all: u64,
    any: u64,
}

impl Default for Hashes {
    fn default() -> Hashes {
        Hashes { all: u64::MAX, any: 0 }
    }
}

impl Hashes {
    fn add(&mut self, hash: u64) {
        self.all &= hash;
        self.any |= hash;
    }

    fn add_all(&mut self, other: Hashes) {
        self.all &= other.all;
        self.any |= other.any;
    }

    /// False if there is none.
    fn are_one(self) -> bool {
        self.all == self.any
    }
}

/// Takes vectors into parts.
pub(crate) struct PartsSink {
    plan: Arc<PartsPlan>,
    writer: SpillWriter,
    machine: Machine,
    /// The outputs of the program.
    vectors: Vec<Vector>,
    /// The keys of a vector's rows.
    keys: RowStore,
    /// 0, 1, 2, ...
    numbers: Vec<u32>,
    hashes: Vec<u64>,
    /// Of each part.
    part_hashes: Vec<Hashes>,
    /// The rows of each part.
    rows: Vec<Vec<u32>>,
    /// Of columns whose vector is not flat, its values.
    flat: Vec<ValuesBuf>,
}

impl PartsSink {
    pub(crate) fn new(plan: &Arc<PartsPlan>) -> Result<PartsSink> {
        let unlimited: Arc<dyn Memory> = Arc::new(Unlimited);
        let outputs: Vec<usize> = (0..plan.program.outputs.len()).collect();
        let types = |outputs: &[usize]| -> Vec<Physical> {
            outputs.iter().filter_map(|&output| plan.program.outputs[output].1.physical()).collect()
        };
        Ok(PartsSink {
            writer: SpillWriter::new(&plan.split.file, &plan.columns, plan.split.part_count)?,
            machine: Machine::default(),
            vectors: vec![Vector::default(); outputs.len()],
            keys: RowStore::new(&types(&plan.keys), &unlimited),
            numbers: Vec::new(),
            hashes: Vec::new(),
            part_hashes: vec![Hashes::default(); plan.split.part_count],
            rows: vec![Vec::new(); plan.split.part_count],
            flat: types(&outputs).into_iter().map(ValuesBuf::new).collect(),
            plan: Arc::clone(plan),
        })
    }

    /// What it wrote, and what still waits for that.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn finish(self) -> Result<WorkerParts> {
        Ok(WorkerParts { groups: self.writer.finish()?, hashes: self.part_hashes })
    }

    /// Leaves in `self.rows` which rows of a vector are of each part, by its keys.
    fn split(&mut self, rows: usize) -> Result<()> {
        let PartsSink { plan, keys, numbers, hashes, .. } = self;
        numbers.clear();
        numbers.extend(0..rows as u32);
        keys.clear();
        keys.push_rows(plan.keys.iter().map(|&key| flat_column((&self.vectors[key], &self.flat[key]))), numbers)?;
        hashes.clear();
        hashes.resize(rows, 0);
        (0..keys.columns()).for_each(|key| keys.hash(key, numbers, &plan.split.hasher, hashes));
        self.rows.iter_mut().for_each(Vec::clear);
        let part_count = self.rows.len() as u128;
        let may_be_null = |key: usize| keys.validity(key).is_some_and(|validity| !validity.all());
        let has_nulls = plan.nulls != NullKeys::AreEqual && (0..keys.columns()).any(may_be_null);
        for (&row, &hash) in numbers.iter().zip(&*hashes) {
            let part = ((u128::from(hash) * part_count) >> u64::BITS) as usize;
            let is_null = |key| keys.validity(key).is_some_and(|validity| !validity.get(row as usize));
            match has_nulls && (0..keys.columns()).any(is_null) {
                false => {
                    self.part_hashes[part].add(hash);
                    self.rows[part].push(row);
                }
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
        for (vector, flat) in self.vectors.iter().zip(&mut self.flat) {
            if !matches!(vector.values, Encoded::Flat(_)) {
                flat.clear();
                append(vector, rows, flat)?;
            }
        }
        self.split(rows)?;
        let columns = self.vectors.iter().zip(&self.flat).map(flat_column).take(self.plan.columns.types.len());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_one_only_if_there_are_no_others() {
        let of = |hashes: &[u64]| {
            let mut all = Hashes::default();
            hashes.iter().for_each(|&hash| all.add(hash));
            all
        };
        assert!(of(&[5, 5, 5]).are_one());
        assert!(!of(&[5, 4, 5]).are_one());
        assert!(!of(&[0, u64::MAX]).are_one());
        assert!(!of(&[]).are_one());
        let mut both = of(&[5]);
        both.add_all(of(&[]));
        assert!(both.are_one());
        both.add_all(of(&[7]));
        assert!(!both.are_one());
    }
}
