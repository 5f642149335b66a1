//! A scan of a table in a file has its chunks read before it needs them, each once, and only those that it needs.

use crate::support::{Shop, TABLE, column, open, schema};
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinter_codec::{CompareOp, Scalar};
use sinter_column::*;
use sinter_exec::{Aggregate, AggregateFunction, Expr, LogicalType, Output, Pipeline, ScanColumn};
use sinter_storage::PageKind;
use sinter_storage::testing::CrashingFileSystem;
use std::sync::Arc;

const ROWS: usize = 2_000_000;

#[test]
fn the_column_of_a_filter() {
    let columns = || schema(vec![column("a", LogicalType::Int64), column("b", LogicalType::Int64)]);
    let disk = CrashingFileSystem::new();
    let mut random = SmallRng::seed_from_u64(10);
    let values: Vec<i64> = (0..ROWS).map(|_| random.random()).collect();
    let array: ArrayRef = Arc::new(Int64Array::from(values.clone()));
    let mut shop = Shop::new(open(&disk).0, columns());
    shop.insert(&RecordBatch::try_from_iter([("a", Arc::clone(&array)), ("b", array)]).unwrap()).unwrap();
    let mut table_root = None;
    let close = shop.store.close(|out| {
        table_root = Some(out.put(None, PageKind::TABLE_ROOT, &shop.table.root_bytes().unwrap())?);
        out.put(None, PageKind::CATALOG, b"root")
    });
    close.unwrap();
    drop(shop);

    let (store, _) = open(&disk);
    let table = ColumnTable::load(TABLE, "t", columns(), Arc::clone(&store), table_root.unwrap()).unwrap();
    let count =
        Aggregate { function: AggregateFunction::CountStar, argument: None, filter: None, ty: LogicalType::Int64 };
    let positive = Expr::Compare(
        CompareOp::Greater,
        Box::new(Expr::Column(0)),
        Box::new(Expr::Literal(Scalar::Int(0), LogicalType::Int64)),
    );
    let pipeline = Pipeline {
        source: sinter_exec::Source::Table(Arc::new(table)),
        columns: vec![ScanColumn::Table(1), ScanColumn::Table(0)],
        filter: vec![positive],
        output: Output::Aggregate(vec![count]),
        steps: Vec::new(),
        limit: None,
        on_damage: sinter_exec::OnDamage::Fail,
    };
    let expected = values.iter().filter(|value| **value > 0).count();
    let run = pipeline.start().unwrap();
    assert_eq!(run.aggregate(2).unwrap(), [Scalar::Int(expected as i128)]);
    drop(run);
    let counts = store.budget().usage().counts;
    let chunks = ROWS.div_ceil(131_072) as u64;
    assert!(counts.read_ahead > 0, "{counts:?}");
    assert_eq!(
        counts.misses + counts.read_ahead,
        chunks + 1,
        "one column's chunks and the root, each once: {counts:?}"
    );
}
