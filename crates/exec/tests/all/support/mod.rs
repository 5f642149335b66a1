//! A table in memory, random values, and a naive model: what the behaviour tests share.

pub(crate) mod aggregates;
pub(crate) mod exprs;
pub(crate) mod joins;
pub(crate) mod memory;
pub(crate) mod model;
pub(crate) mod random;
pub(crate) mod table;

use sinter_codec::Scalar;
use sinter_exec::{
    Batch, Error, Expr, LogicalType, Memory, Output, Pipeline, Result, Run, ScanColumn, Source, Unlimited, edge,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// All rows that a pipeline hands out on this many threads, as scalars, sorted by `sort` where there are several.
pub(crate) fn rows_of(pipeline: Pipeline, types: &[LogicalType], threads: usize) -> Result<Vec<Vec<Scalar>>> {
    let memory: Arc<dyn Memory> = Arc::new(Unlimited);
    rows_within(pipeline, types, threads, &memory)
}

/// The same, with no more than this memory.
pub(crate) fn rows_within(
    pipeline: Pipeline,
    types: &[LogicalType],
    threads: usize,
    memory: &Arc<dyn Memory>,
) -> Result<Vec<Vec<Scalar>>> {
    let run = pipeline.start()?;
    run.prepare(threads, memory)?;
    rows_of_run(&run, types, threads)
}

/// The rows of a pipeline some of which were spilled, and whether they were; without that where it cannot be.
pub(crate) fn rows_spilled(
    pipeline: &Pipeline,
    types: &[LogicalType],
    threads: usize,
    random: &mut random::Random,
) -> (Result<Vec<Vec<Scalar>>>, bool) {
    let refusing = Arc::new(memory::Refusing::at_random(random));
    let memory: Arc<dyn Memory> = Arc::clone(&refusing) as _;
    let found = rows_within(pipeline.clone(), types, threads, &memory);
    assert_eq!(refusing.held(), 0, "all is given back");
    match found {
        Err(Error::OutOfMemory(_)) => (rows_of(pipeline.clone(), types, threads), false),
        found => (found, refusing.files.load(Ordering::Relaxed) > 0),
    }
}

/// The same of a run that is already there.
pub(crate) fn rows_of_run(run: &Arc<Run>, types: &[LogicalType], threads: usize) -> Result<Vec<Vec<Scalar>>> {
    let work = || -> Result<Vec<Vec<Scalar>>> {
        let (mut worker, mut batch, mut rows) = (run.worker(), Batch::default(), Vec::new());
        while worker.next(&mut batch)? {
            assert!(batch.rows > 0 && batch.rows <= 1024 && batch.columns.len() == types.len());
            let mut columns = Vec::new();
            for (column, ty) in batch.columns.iter().zip(types) {
                let array = edge::to_arrow(column, ty, batch.rows)?;
                assert_eq!(array.len(), batch.rows);
                assert_eq!(*array.data_type(), edge::arrow_type(ty));
                columns.push(model::scalars(&array, ty));
            }
            rows.extend((0..batch.rows).map(|row| columns.iter().map(|column| column[row].clone()).collect()));
        }
        assert!(!worker.next(&mut batch)?, "a worker that is done stays done");
        Ok(rows)
    };
    let parts = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(|worker| worker.join().expect("no panic")).collect::<Vec<_>>()
    });
    let mut rows = Vec::new();
    for part in parts {
        rows.extend(part?);
    }
    Ok(rows)
}

/// All rows of what a pipeline gathers, as they come.
pub(crate) fn read_back(gathered: Pipeline) -> Pipeline {
    let columns = gathered.output_types().len();
    Pipeline {
        source: Source::Gathered(Box::new(gathered)),
        columns: (0..columns).map(ScanColumn::Table).collect(),
        filter: Vec::new(),
        steps: Vec::new(),
        output: Output::Rows((0..columns).map(Expr::Column).collect()),
        limit: None,
        on_damage: Default::default(),
    }
}

/// A table of random columns with a random layout, and its rows that are not deleted.
pub(crate) fn random_table(
    random: &mut random::Random,
    rows: usize,
    style: usize,
    choices: &[sinter_codec::Choice],
) -> (table::MemoryTable, Vec<Vec<Scalar>>) {
    let null_percent = *random.pick(&[0, 10, 50]);
    let columns = exprs::columns(random, rows, style, null_percent);
    let arrays: Vec<_> =
        columns.iter().zip(exprs::types()).map(|(column, ty)| (random::array(column, &ty), ty)).collect();
    let group_rows = *random.pick(&[100, 1024, 1500, 5000]);
    let mut table = table::MemoryTable::new(&arrays, group_rows, choices);
    table.vector_rows = *random.pick(&[1024, 1024, 100, 7]);
    let deleted: Vec<bool> = match random.below(3) {
        0 => vec![false; rows],
        1 => (0..rows).map(|_| random.chance(30)).collect(),
        _ => (0..rows).map(|row| (row / group_rows).is_multiple_of(2)).collect(),
    };
    if deleted.contains(&true) {
        table.delete(|row| deleted[row]);
    }
    let alive = (0..rows).filter(|row| !deleted[*row]);
    (table, alive.map(|row| columns.iter().map(|column| column[row].clone()).collect()).collect())
}

/// Every scheme in turn, where it holds the column's type and takes its values; else whatever is best.
pub(crate) fn choice_lists() -> Vec<Vec<sinter_codec::Choice>> {
    use sinter_codec::{Choice, SCHEMES};
    let mut lists = vec![vec![Choice::Raw], vec![Choice::Auto]];
    for scheme in SCHEMES {
        let choice = |ty: LogicalType| match ty.physical() {
            Some(physical) if scheme.holds(physical) => Choice::Forced(scheme.name.into()),
            _ => Choice::Auto,
        };
        lists.push(exprs::types().into_iter().map(choice).collect());
    }
    lists
}
