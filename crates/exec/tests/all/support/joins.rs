//! Pipelines with joins, and groups of what comes out of them.

use super::table::MemoryTable;
use super::{read_back, rows_within};
use sinter_codec::Scalar;
use sinter_exec::{
    Aggregate, AggregateFunction, Expr, LogicalType, Memory, Output, Pipeline, Result, ScanColumn, Source, Unlimited,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Memory that is always granted.
pub(crate) fn unlimited() -> Arc<dyn Memory> {
    Arc::new(Unlimited)
}

/// A table's first columns, and these expressions over them.
pub(crate) fn scan(table: &Arc<MemoryTable>, columns: usize, output: Vec<Expr>) -> Pipeline {
    Pipeline {
        source: Source::Table(Arc::clone(table) as _),
        columns: (0..columns).map(ScanColumn::Table).collect(),
        filter: Vec::new(),
        steps: Vec::new(),
        output: Output::Rows(output),
        limit: None,
        on_damage: Default::default(),
    }
}

/// Something that is equal, as text, where keys are; `None` where a NULL is equal to nothing.
pub(crate) fn identity(keys: &[Scalar], nulls_are_equal: bool) -> Option<String> {
    let canonical = |key: &Scalar| match key {
        Scalar::Null if !nulls_are_equal => None,
        Scalar::Float(value) if value.is_nan() => Some("NaN".to_owned()),
        Scalar::Float(value) => Some(format!("{:?}", value + 0.0)),
        other => Some(format!("{other:?}")),
    };
    Some(keys.iter().map(canonical).collect::<Option<Vec<_>>>()?.join("|"))
}

/// How many rows have which keys.
pub(crate) fn counted(keys: impl Iterator<Item = Vec<Scalar>>) -> BTreeMap<String, i128> {
    let mut counts = BTreeMap::new();
    keys.filter_map(|keys| identity(&keys, true)).for_each(|keys| *counts.entry(keys).or_insert(0) += 1);
    counts
}

/// The same, of the rows that a pipeline makes.
pub(crate) fn grouped(
    pipeline: &Pipeline,
    keys: &[usize],
    types: &[LogicalType],
    threads: usize,
) -> Result<BTreeMap<String, i128>> {
    grouped_within(pipeline, keys, types, threads, &unlimited())
}

/// The same, with no more than this memory.
pub(crate) fn grouped_within(
    pipeline: &Pipeline,
    keys: &[usize],
    types: &[LogicalType],
    threads: usize,
    memory: &Arc<dyn Memory>,
) -> Result<BTreeMap<String, i128>> {
    let count =
        Aggregate { function: AggregateFunction::CountStar, argument: None, filter: None, ty: LogicalType::Int64 };
    let output = Output::Groups { keys: keys.iter().map(|&key| Expr::Column(key)).collect(), aggregates: vec![count] };
    let groups = Pipeline { output, ..pipeline.clone() };
    let types: Vec<LogicalType> = keys.iter().map(|&key| types[key].clone()).chain([LogicalType::Int64]).collect();
    let mut counts = BTreeMap::new();
    for row in rows_within(read_back(groups), &types, threads, memory)? {
        let (count, keys) = row.split_last().expect("there is a count");
        let Scalar::Int(count) = count else { panic!("{count:?} is no count") };
        let twice = counts.insert(identity(keys, true).expect("NULLs are equal"), *count);
        assert!(twice.is_none(), "two groups with {keys:?}");
    }
    Ok(counts)
}
