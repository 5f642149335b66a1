//! What is sorted by, and what of the rows is kept.

use super::head::HeadPlan;
use super::ties::TieKey;
use crate::estimate::bounds;
use crate::expr::{Program, compile};
use crate::store::RowStore;
use crate::{Error, Expr, LogicalType, Memory, Pipeline, Result, ScanColumn, Step};
use sinter_codec::Physical;
use std::sync::Arc;

/// One key of an order.
#[derive(Clone, Debug)]
pub struct SortKey {
    /// Over the pipeline's columns; not nested.
    pub expr: Expr,
    /// The greatest comes first. NaN is the greatest float.
    pub descending: bool,
    /// NULL comes before all values instead of after them.
    pub nulls_first: bool,
}

/// In which order rows come out, and which of them.
#[derive(Clone, Debug)]
pub struct Order {
    /// The first counts most. Rows that are equal by all of them come in any order.
    pub keys: Vec<SortKey>,
    /// So many rows are left out at the beginning.
    pub skip: usize,
    /// At most so many come out; all if `None`.
    pub fetch: Option<usize>,
}

impl Order {
    /// How many rows of the beginning have to be known.
    pub(crate) fn row_count(&self) -> Option<usize> {
        self.fetch.map(|fetch| fetch.saturating_add(self.skip))
    }
}

/// Shared by workers.
#[derive(Debug)]
pub(crate) struct SortPlan {
    /// Its outputs are the keys.
    pub(super) keys: Program,
    pub(super) heads: HeadPlan,
    /// Where not all rows are wanted, and the first of several keys reads fewer columns than all: the program with it as
    /// output, and its place's distance from the end of a head.
    pub(super) first_key: Option<(Program, u32)>,
    /// Its outputs are the columns of the store.
    pub(super) rows: Program,
    /// Which column of the store each output of the pipeline is.
    pub(super) columns: Vec<usize>,
    /// The columns of the store that heads may not have whole; of the first of them it depends on its values.
    ties: Vec<TieKey>,
    pub(super) order: Order,
    /// The column of the scan that is the first key, where rows may be kept from the sort that come too late by it.
    pub(super) bounded_column: Option<usize>,
    /// Of all programs.
    all_columns: Vec<usize>,
}

impl SortPlan {
    /// For the rows that a pipeline hands out, with columns of these types.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for lists and structs, and expressions that are none of ours.
    pub(crate) fn new(rows: &[Expr], order: &Order, types: &[LogicalType], pipeline: &Pipeline) -> Result<SortPlan> {
        let exprs: Vec<&Expr> = order.keys.iter().map(|key| &key.expr).collect();
        let keys = compile(&exprs, types)?;
        let known = order.keys.iter().zip(&keys.outputs).map(|(key, (_, ty))| (key, ty, bounds(&key.expr, pipeline)));
        let heads = HeadPlan::new(known).ok_or_else(|| Error::Unsupported("lists and structs as sort keys".into()))?;
        let first_key = match heads.first_shift() {
            Some(shift) if order.fetch.is_some() => {
                let first = compile(&exprs[..1], types)?;
                (first.columns.len() < keys.columns.len()).then_some((first, shift))
            }
            _ => None,
        };
        let open = &order.keys[heads.first_open()..];
        let kept: Vec<&Expr> = open.iter().map(|key| &key.expr).chain(rows).collect();
        let mut program = compile(&kept, types)?;
        // What is the same is kept once.
        let outputs = std::mem::take(&mut program.outputs);
        let mut columns: Vec<usize> = Vec::with_capacity(outputs.len());
        for output in outputs {
            let known = program.outputs.iter().position(|known| *known == output);
            columns.push(known.unwrap_or_else(|| {
                program.outputs.push(output);
                program.outputs.len() - 1
            }));
        }
        let key_columns: Vec<usize> = columns.drain(..open.len()).collect();
        let tie = |(&column, key): (&usize, &SortKey)| TieKey::new(column, key);
        let ties = key_columns.iter().zip(open).map(tie).collect();
        let mut all_columns: Vec<usize> = keys.columns.iter().chain(&program.columns).copied().collect();
        all_columns.sort_unstable();
        all_columns.dedup();
        let bounded_column = bounded_column(order, pipeline);
        let order = order.clone();
        Ok(SortPlan { keys, heads, first_key, rows: program, columns, ties, order, bounded_column, all_columns })
    }

    /// By what rows with equal heads are compared, if some key was longer than its place in them, or none was.
    pub(super) fn ties(&self, has_cut: bool) -> &[TieKey] {
        if has_cut { &self.ties } else { self.ties.get(1..).unwrap_or_default() }
    }

    /// The columns of the pipeline that it reads.
    pub(crate) fn all_columns(&self) -> &[usize] {
        &self.all_columns
    }

    /// A store for rows.
    pub(super) fn store(&self, memory: &Arc<dyn Memory>) -> Result<RowStore> {
        let types: Option<Vec<Physical>> = self.rows.outputs.iter().map(|(_, ty)| ty.physical()).collect();
        let types = types.ok_or_else(|| Error::Unsupported("lists and structs in sorted rows".into()))?;
        Ok(RowStore::new(&types, memory))
    }
}

/// The column of a table that says which rows are too many for an order of the first few: its first key. `None` where rows
/// that are left out could be missed otherwise, by a join that hands out what nobody met, or by a condition that fails. Later
/// keys and outputs are not computed for rows that are too many, whether they would fail or not.
fn bounded_column(order: &Order, pipeline: &Pipeline) -> Option<usize> {
    let Expr::Column(column) = &order.keys.first()?.expr else { return None };
    pipeline.source.table()?;
    let is_stored = matches!(pipeline.columns.get(*column), Some(ScanColumn::Table(_)));
    // Of what joins bring, types are not known here.
    let types = pipeline.scan_types();
    let may_fail = |expr: &Expr| expr.may_fail(&types);
    let misses_none = |step: &Step| match step {
        Step::Filter(condition) => !may_fail(condition),
        Step::Join(join) => !join.kind.has_rest() && !join.keys.iter().chain(&join.condition).any(may_fail),
    };
    let is_free = !pipeline.filter.iter().any(may_fail) && pipeline.steps.iter().all(misses_none);
    (order.fetch.is_some() && is_stored && is_free).then_some(*column)
}
