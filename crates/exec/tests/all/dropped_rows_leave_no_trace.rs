//! Groups of few rows fewer than a vector has are summed with the dead rows still among them. Nothing of these may show:
//! no group, no number, no error.

use crate::support;
use crate::support::exprs::{boxed, int};
use crate::support::model;
use crate::support::table::MemoryTable;
use arrow::array::{ArrayRef, Decimal128Array, Float64Array, Int32Array, Int64Array, StringArray};
use sinter_codec::{Choice, CompareOp, Scalar};
use sinter_exec::{
    Aggregate, AggregateFunction, ArithmeticOp, Batch, Error, Expr, LogicalType, Memory, Output, Pipeline, Result,
    ScanColumn, Source, Unlimited, edge,
};
use std::collections::BTreeMap;
use std::sync::Arc;

const MONEY: LogicalType = LogicalType::Decimal { precision: 15, scale: 2 };
const WIDE: LogicalType = LogicalType::Decimal { precision: 38, scale: 4 };

/// A row of the table.
struct Row {
    is_alive: bool,
    key: &'static str,
    price: i64,
    discount: i64,
    divisor: i64,
    weight: f64,
    number: Option<i32>,
}

fn rows(count: usize, key_count: usize) -> Vec<Row> {
    const KEYS: [&str; 12] = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
    let row = |index: usize| {
        let mixed = (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let is_alive = mixed >> 20 & 15 != 0;
        Row {
            is_alive,
            key: if is_alive { KEYS[(mixed >> 40) as usize % key_count] } else { "dead" },
            price: if is_alive { (mixed >> 30 & 0xffff) as i64 - 1000 } else { 999_999_999_999_999 },
            discount: (mixed >> 12 & 7) as i64,
            divisor: if is_alive { 1 + (mixed >> 8 & 3) as i64 } else { 0 },
            weight: if is_alive { (mixed & 0xff) as f64 / 8.0 } else { f64::NAN },
            number: (mixed >> 50 & 3 != 0).then_some(if is_alive { (mixed >> 33 & 0xff) as i32 } else { i32::MIN }),
        }
    };
    (0..count).map(row).collect()
}

fn table(rows: &[Row], choice: &Choice) -> Arc<MemoryTable> {
    let money = |value: fn(&Row) -> i64| -> ArrayRef {
        let values: Decimal128Array = rows.iter().map(|row| Some(i128::from(value(row)))).collect();
        Arc::new(values.with_precision_and_scale(15, 2).expect("a legal type"))
    };
    let columns: [(ArrayRef, LogicalType); 7] = [
        (Arc::new(rows.iter().map(|row| Some(i64::from(row.is_alive))).collect::<Int64Array>()), LogicalType::Int64),
        (Arc::new(rows.iter().map(|row| Some(row.key)).collect::<StringArray>()), LogicalType::Utf8),
        (money(|row| row.price), MONEY),
        (money(|row| row.discount), MONEY),
        (Arc::new(rows.iter().map(|row| Some(row.divisor)).collect::<Int64Array>()), LogicalType::Int64),
        (Arc::new(rows.iter().map(|row| Some(row.weight)).collect::<Float64Array>()), LogicalType::Float64),
        (Arc::new(rows.iter().map(|row| row.number).collect::<Int32Array>()), LogicalType::Int32),
    ];
    Arc::new(MemoryTable::new(&columns, 5000, std::slice::from_ref(choice)))
}

fn arithmetic(op: ArithmeticOp, left: Expr, right: Expr, ty: LogicalType) -> Expr {
    Expr::Arithmetic { op, left: boxed(left), right: boxed(right), ty }
}

fn aggregates() -> Vec<Aggregate> {
    use AggregateFunction::{Average, Count, CountStar, Max, Min, Sum};
    let one = || int(1, LogicalType::Decimal { precision: 20, scale: 0 });
    let rest =
        arithmetic(ArithmeticOp::Subtract, one(), Expr::Column(3), LogicalType::Decimal { precision: 23, scale: 2 });
    let product = arithmetic(ArithmeticOp::Multiply, Expr::Column(2), rest, WIDE);
    let quotient = arithmetic(ArithmeticOp::Divide, int(1000, LogicalType::Int64), Expr::Column(4), LogicalType::Int64);
    let heavy = Expr::Compare(
        CompareOp::GreaterOrEqual,
        boxed(Expr::Column(5)),
        boxed(Expr::Literal(Scalar::Float(16.0), LogicalType::Float64)),
    );
    let of = |function, argument, ty| Aggregate { function, argument, filter: None, ty };
    vec![
        of(CountStar, None, LogicalType::Int64),
        of(Sum, Some(Expr::Column(2)), LogicalType::Decimal { precision: 25, scale: 2 }),
        of(Sum, Some(product), WIDE),
        of(Sum, Some(quotient), LogicalType::Int64),
        of(Sum, Some(Expr::Column(5)), LogicalType::Float64),
        of(Average, Some(Expr::Column(5)), LogicalType::Float64),
        of(Count, Some(Expr::Column(6)), LogicalType::Int64),
        of(Sum, Some(Expr::Column(6)), LogicalType::Int64),
        of(Min, Some(Expr::Column(6)), LogicalType::Int32),
        of(Max, Some(Expr::Column(1)), LogicalType::Utf8),
        Aggregate { filter: Some(heavy), ..of(CountStar, None, LogicalType::Int64) },
    ]
}

/// What these aggregates are over the rows of one key.
fn expected(rows: &[&Row]) -> Vec<Scalar> {
    let sum = |value: fn(&Row) -> i128| Scalar::Int(rows.iter().map(|row| value(row)).sum());
    let numbers = || rows.iter().filter_map(|row| row.number);
    let weight: f64 = rows.iter().map(|row| row.weight).sum();
    vec![
        Scalar::Int(rows.len() as i128),
        sum(|row| row.price.into()),
        sum(|row| i128::from(row.price) * i128::from(100 - row.discount)),
        sum(|row| 1000 / i128::from(row.divisor)),
        Scalar::Float(weight),
        Scalar::Float(weight / rows.len() as f64),
        Scalar::Int(numbers().count() as i128),
        Scalar::Int(numbers().map(i128::from).sum()),
        numbers().min().map_or(Scalar::Null, |number| Scalar::Int(number.into())),
        Scalar::Bytes(rows[0].key.into()),
        Scalar::Int(rows.iter().filter(|row| row.weight >= 16.0).count() as i128),
    ]
}

fn groups(table: &Arc<MemoryTable>, aggregates: Vec<Aggregate>) -> Result<BTreeMap<Vec<u8>, Vec<Scalar>>> {
    let is_alive = Expr::Compare(CompareOp::Equal, boxed(Expr::Column(0)), boxed(int(1, LogicalType::Int64)));
    let pipeline = Pipeline {
        source: Source::Table(Arc::clone(table) as _),
        columns: (0..7).map(ScanColumn::Table).collect(),
        filter: vec![is_alive],
        steps: Vec::new(),
        output: Output::Groups { keys: vec![Expr::Column(1)], aggregates },
        limit: None,
        on_damage: Default::default(),
    };
    let types = pipeline.output_types();
    let memory: Arc<dyn Memory> = Arc::new(Unlimited);
    let groups = pipeline.start()?.groups(2, &memory)?;
    let mut batch = Batch::default();
    groups.read(0, &mut batch)?;
    let columns = batch.columns.iter().zip(&types).map(|(column, ty)| {
        let array = edge::to_arrow(column, ty, batch.rows)?;
        Ok(model::scalars(&array, ty))
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let row = |row: usize| {
        let Scalar::Bytes(key) = &columns[0][row] else { panic!("keys are text") };
        (key.clone(), columns[1..].iter().map(|column| column[row].clone()).collect())
    };
    Ok((0..batch.rows).map(row).collect())
}

#[test]
fn neither_groups_nor_numbers_nor_errors() {
    let schemes = ["raw", "for", "dict", "rle", "multiple"];
    let choices = schemes.map(|name| Choice::Forced(name.into())).into_iter().chain([Choice::Auto]);
    for choice in choices {
        for key_count in [1, 3, 4, 5, 8, 9, 12] {
            let rows = rows(20_000, key_count);
            let mut by_key = BTreeMap::<Vec<u8>, Vec<&Row>>::new();
            rows.iter().filter(|row| row.is_alive).for_each(|row| by_key.entry(row.key.into()).or_default().push(row));
            let found = groups(&table(&rows, &choice), aggregates()).expect("dead rows alone divide by zero");
            assert_eq!(found.len(), by_key.len(), "{choice:?}, {key_count} keys");
            for (key, rows) in by_key {
                let (found, expected) = (&found[&key], expected(&rows));
                for (number, (found, expected)) in found.iter().zip(&expected).enumerate() {
                    let same = support::aggregates::close(found, expected);
                    assert!(same, "{choice:?}, {key_count} keys, aggregate {number}: {found:?}, not {expected:?}");
                }
            }
        }
    }
}

#[test]
fn an_error_of_a_living_row_is_one() {
    let mut rows = rows(20_000, 3);
    let living = (0..rows.len()).rfind(|&index| rows[index].is_alive).expect("most are");
    rows[living].divisor = 0;
    let found = groups(&table(&rows, &Choice::Auto), aggregates());
    assert!(matches!(found, Err(Error::DivisionByZero)), "{found:?}");
}

#[test]
fn sums_of_few_groups_leave_64_bits_behind() {
    let mut rows = rows(20_000, 2);
    rows.iter_mut().for_each(|row| row.price = 999_999_999_999_990 + row.discount);
    let by_key = |key: &str| rows.iter().filter(|row| row.is_alive && row.key == key).collect::<Vec<_>>();
    let found = groups(&table(&rows, &Choice::Auto), aggregates()).expect("128 bits hold them");
    for key in ["a", "b"] {
        assert_eq!(found[key.as_bytes()][1..3], expected(&by_key(key))[1..3], "{key}");
    }
}
