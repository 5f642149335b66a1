//! How fast a filter and sums run over pressed columns in memory: TPC-H's first and sixth query on columns like
//! lineitem's. `cargo run --release -p sinter-exec --example scan_speed [million rows] [threads]
//! [runs] [query]`.

use arrow::array::{ArrayRef, Date32Array, Decimal128Array, StringArray};
use sinter_codec::{BlockStats, Choice, CompareOp, Scalar};
use sinter_exec::{
    Aggregate, AggregateFunction, ArithmeticOp, Batch, Expr, LogicalType, Memory, Output, Pinned, Pipeline, Result,
    RowIds, ScanColumn, TableSource, Unlimited, edge,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

const NAMES: [&str; 7] = ["shipdate", "discount", "quantity", "extendedprice", "tax", "returnflag", "linestatus"];
const MONEY: LogicalType = LogicalType::Decimal { precision: 15, scale: 2 };

#[derive(Debug)]
struct Lineitem {
    types: Vec<LogicalType>,
    rows: usize,
    groups: Vec<Vec<(Pinned, BlockStats)>>,
}

impl Lineitem {
    const GROUP: usize = sinter_codec::ROW_GROUP_LEN;

    fn new(rows: usize) -> Result<Lineitem> {
        let types = vec![LogicalType::Date, MONEY, MONEY, MONEY, MONEY, LogicalType::Utf8, LogicalType::Utf8];
        let mut random = 1u64;
        let mut below = |end: u64| {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((u128::from(random >> 11) * u128::from(end)) >> 53) as i128
        };
        let mut groups = Vec::new();
        for start in (0..rows).step_by(Lineitem::GROUP) {
            let len = Lineitem::GROUP.min(rows - start);
            let dates: Vec<i32> = (0..len).map(|_| 8036 + below(2526) as i32).collect();
            let returned = dates.iter().map(|&date| match (date < 9280, below(2)) {
                (true, 0) => "A",
                (true, _) => "R",
                (false, _) => "N",
            });
            let returned: ArrayRef = Arc::new(StringArray::from_iter_values(returned));
            let status = dates.iter().map(|&date| if date < 9298 { "F" } else { "O" });
            let status: ArrayRef = Arc::new(StringArray::from_iter_values(status));
            let mut money = |least: i128, count: u64, step: i128| -> ArrayRef {
                let values: Decimal128Array = (0..len).map(|_| Some((least + below(count)) * step)).collect();
                Arc::new(values.with_precision_and_scale(15, 2).expect("a legal type"))
            };
            let dates: ArrayRef = Arc::new(Date32Array::from(dates));
            let (discount, quantity) = (money(0, 11, 1), money(1, 50, 100));
            let columns = [dates, discount, quantity, money(90_000, 10_400_000, 1), money(0, 9, 1), returned, status];
            let press = |(array, ty): (&ArrayRef, &LogicalType)| {
                let mut bytes = Vec::new();
                let stats = edge::encode_segment(array, ty, &Choice::Auto, &mut bytes)?;
                Ok((Pinned::from_vec(bytes), stats))
            };
            groups.push(columns.iter().zip(&types).map(press).collect::<Result<Vec<_>>>()?);
        }
        Ok(Lineitem { types, rows, groups })
    }
}

impl TableSource for Lineitem {
    fn name(&self) -> &str {
        "lineitem"
    }
    fn column_types(&self) -> &[LogicalType] {
        &self.types
    }
    fn column_name(&self, column: usize) -> &str {
        NAMES[column]
    }
    fn group_count(&self) -> usize {
        self.groups.len()
    }
    fn group_rows(&self, group: usize) -> usize {
        Lineitem::GROUP.min(self.rows - group * Lineitem::GROUP)
    }
    fn row_ids(&self, group: usize) -> RowIds {
        RowIds::From((group * Lineitem::GROUP) as u64)
    }
    fn deleted(&self, _group: usize) -> Option<Arc<sinter_codec::Bitmap>> {
        None
    }
    fn zone(&self, group: usize, column: usize) -> Option<&BlockStats> {
        Some(&self.groups[group][column].1)
    }
    fn segment(&self, group: usize, column: usize) -> Result<Pinned> {
        Ok(self.groups[group][column].0.clone())
    }
}

fn compare(op: CompareOp, column: usize, value: i128, ty: LogicalType) -> Expr {
    Expr::Compare(op, Box::new(Expr::Column(column)), Box::new(Expr::Literal(Scalar::Int(value), ty)))
}

fn arithmetic(op: ArithmeticOp, left: Expr, right: Expr, precision: u8, scale: i8) -> Expr {
    let ty = LogicalType::Decimal { precision, scale };
    Expr::Arithmetic { op, left: Box::new(left), right: Box::new(right), ty }
}

fn sum(argument: Expr, scale: i8) -> Aggregate {
    let ty = LogicalType::Decimal { precision: 38, scale };
    Aggregate { function: AggregateFunction::Sum, argument: Some(argument), filter: None, ty }
}

fn average(argument: Expr) -> Aggregate {
    let ty = LogicalType::Decimal { precision: 19, scale: 6 };
    Aggregate { function: AggregateFunction::Average, argument: Some(argument), filter: None, ty }
}

/// Time that this thread has had a core, in milliseconds: on a busy machine, the better clock. Linux only; else 0.
fn busy_ms() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0) / 1e6
}

fn main() -> Result<()> {
    let argument = |index: usize| std::env::args().nth(index).and_then(|text| text.parse().ok());
    let rows = argument(1).unwrap_or(6) * 1_000_000;
    let threads = argument(2).unwrap_or(1);
    let runs = argument(3).unwrap_or(9);
    let table = Arc::new(Lineitem::new(rows)?);
    for (column, name) in NAMES.iter().enumerate() {
        let bytes: usize = table.groups.iter().map(|group| group[column].0.len()).sum();
        let block = sinter_codec::Block::open(&table.groups[0][column].0)?;
        println!("{name}: {:.2} bytes a value, {}", bytes as f64 / rows as f64, block.describe());
    }
    let one = || Expr::Literal(Scalar::Int(1), LogicalType::Decimal { precision: 20, scale: 0 });
    let discounted = || {
        let factor = arithmetic(ArithmeticOp::Subtract, one(), Expr::Column(1), 23, 2);
        arithmetic(ArithmeticOp::Multiply, Expr::Column(3), factor, 38, 4)
    };
    let taxed = arithmetic(
        ArithmeticOp::Multiply,
        discounted(),
        arithmetic(ArithmeticOp::Add, one(), Expr::Column(4), 23, 2),
        38,
        6,
    );
    let revenue = arithmetic(ArithmeticOp::Multiply, Expr::Column(3), Expr::Column(1), 31, 4);
    use CompareOp::*;
    let queries = [
        (
            "Q6",
            vec![
                compare(GreaterOrEqual, 0, 8766, LogicalType::Date),
                compare(Less, 0, 9131, LogicalType::Date),
                compare(GreaterOrEqual, 1, 5, MONEY),
                compare(LessOrEqual, 1, 7, MONEY),
                compare(Less, 2, 2400, MONEY),
            ],
            Output::Aggregate(vec![sum(revenue, 4)]),
        ),
        (
            "sum(price)",
            vec![compare(LessOrEqual, 0, 10_471, LogicalType::Date)],
            Output::Aggregate(vec![sum(Expr::Column(3), 2)]),
        ),
        (
            "Q1",
            vec![compare(LessOrEqual, 0, 10_471, LogicalType::Date)],
            Output::Groups {
                keys: vec![Expr::Column(5), Expr::Column(6)],
                aggregates: vec![
                    sum(Expr::Column(2), 2),
                    sum(Expr::Column(3), 2),
                    sum(discounted(), 4),
                    sum(taxed, 6),
                    average(Expr::Column(2)),
                    average(Expr::Column(3)),
                    average(Expr::Column(1)),
                    Aggregate {
                        function: AggregateFunction::CountStar,
                        argument: None,
                        filter: None,
                        ty: LogicalType::Int64,
                    },
                ],
            },
        ),
    ];
    let wanted = std::env::args().nth(4);
    for (name, filter, output) in
        queries.into_iter().filter(|query| wanted.as_deref().is_none_or(|name| name == query.0))
    {
        let columns = (0..NAMES.len()).map(ScanColumn::Table).collect();
        let pipeline = Pipeline {
            source: sinter_exec::Source::Table(table.clone()),
            columns,
            filter,
            steps: Vec::new(),
            output,
            limit: None,
            on_damage: Default::default(),
        };
        let (mut times, mut busy) = (Vec::new(), Vec::new());
        let mut result = String::new();
        let memory: Arc<dyn Memory> = Arc::new(Unlimited);
        for _ in 0..runs {
            let (start, busy_before) = (Instant::now(), busy_ms());
            let run = pipeline.clone().start()?;
            result = match &run.pipeline.output {
                Output::Groups { .. } => {
                    let mut batch = Batch::default();
                    run.groups(threads, &memory)?.read(0, &mut batch)?;
                    format!("{:?}", batch.columns)
                }
                _ => format!("{:?}", run.aggregate(threads)?),
            };
            times.push(start.elapsed().as_secs_f64() * 1e3);
            busy.push(busy_ms() - busy_before);
            if times.len() == runs {
                let read = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
                println!(
                    "{name}: {} of {} vectors rejected, {} tests encoded and {} decoded, {} rows selected",
                    read(&run.counters.vectors_rejected),
                    read(&run.counters.vectors_total),
                    read(&run.counters.filters_encoded),
                    read(&run.counters.filters_decoded),
                    read(&run.counters.rows_selected),
                );
            }
        }
        times.sort_by(f64::total_cmp);
        busy.sort_by(f64::total_cmp);
        let (least, median, busy) = (times[0], times[runs / 2], busy[runs / 2]);
        println!(
            "{name}: least {least:.1} ms, median {median:.1} ms on {threads} threads ({busy:.1} ms busy): {result}"
        );
    }
    Ok(())
}
