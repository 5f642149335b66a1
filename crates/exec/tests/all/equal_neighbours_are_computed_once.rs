//! A function of one column sees one row of each run of equal values, whatever the scheme.

use crate::support::rows_of;
use crate::support::table::MemoryTable;
use arrow::array::{ArrayRef, AsArray, Int64Array, StringArray};
use arrow::datatypes::Int64Type;
use sinter_codec::{Choice, Physical, SCHEMES, Scalar};
use sinter_exec::{Expr, Foreign, LogicalType, Output, Pipeline, Result, ScanColumn, Source, TextFunction};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const ROWS: i64 = 20_000;

/// Ten times a number, and -1 of NULL; counts the rows that it is asked about.
#[derive(Debug, Default)]
struct Tenfold {
    rows: AtomicUsize,
}

impl Foreign for Tenfold {
    fn evaluate(&self, arguments: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        self.rows.fetch_add(rows, Ordering::Relaxed);
        let numbers = arguments[0].as_primitive::<Int64Type>();
        assert_eq!(numbers.len(), rows);
        Ok(Arc::new(numbers.iter().map(|number| Some(number.map_or(-1, |number| 10 * number))).collect::<Int64Array>()))
    }

    fn text(&self) -> String {
        "tenfold".into()
    }
}

fn output(table: &Arc<MemoryTable>, exprs: Vec<Expr>) -> Pipeline {
    Pipeline {
        source: Source::Table(Arc::clone(table) as _),
        columns: vec![ScanColumn::Table(0), ScanColumn::Table(1)],
        filter: Vec::new(),
        steps: Vec::new(),
        output: Output::Rows(exprs),
        limit: None,
        on_damage: Default::default(),
    }
}

/// How many rows the function was asked about, once its results were found right.
fn rows_asked(numbers: &[Option<i64>], choice: Choice) -> usize {
    let column: ArrayRef = Arc::new(numbers.iter().copied().collect::<Int64Array>());
    let table = Arc::new(MemoryTable::new(
        &[(Arc::clone(&column), LogicalType::Int64), (column, LogicalType::Int64)],
        5000,
        std::slice::from_ref(&choice),
    ));
    let function = Arc::new(Tenfold::default());
    let counted: Arc<dyn Foreign> = Arc::clone(&function) as _;
    let tenfold = Expr::Foreign { function: counted, arguments: vec![Expr::Column(0)], ty: LogicalType::Int64 };
    let found = rows_of(output(&table, vec![tenfold]), &[LogicalType::Int64], 1).expect("no error");
    let expected: Vec<_> =
        numbers.iter().map(|number| vec![Scalar::Int(number.map_or(-1, |number| 10 * i128::from(number)))]).collect();
    assert!(found == expected, "{choice:?}");
    function.rows.load(Ordering::Relaxed)
}

#[test]
fn in_every_scheme() {
    let sorted: Vec<_> = (0..ROWS).map(|row| Some(row / 100)).collect();
    let with_nulls: Vec<_> = (0..ROWS).map(|row| (row / 50 % 3 > 0).then_some(row / 100)).collect();
    let of_integers = SCHEMES.iter().filter(|scheme| scheme.holds(Physical::I64));
    let forced = of_integers.map(|scheme| Choice::Forced(scheme.name.into()));
    for choice in [Choice::Raw, Choice::Auto].into_iter().chain(forced) {
        // Vectors and row groups end within runs.
        let asked = rows_asked(&sorted, choice.clone());
        assert!(asked <= 300, "{asked} rows of 200 runs, {choice:?}");
        let asked = rows_asked(&with_nulls, choice.clone());
        assert!(asked <= 600, "{asked} rows of 400 runs, {choice:?}");
    }
}

#[test]
fn truths_and_texts_and_errors_are_those_of_the_rows() {
    // Runs of ten: the second digit of the row.
    let numbers: ArrayRef = Arc::new((0..ROWS).map(|row| row / 10 % 10).collect::<Int64Array>());
    let texts: ArrayRef =
        Arc::new((0..ROWS).map(|row| Some(format!("text {}", row / 10 % 10))).collect::<StringArray>());
    let columns = [(numbers, LogicalType::Int64), (texts, LogicalType::Utf8)];
    let table = Arc::new(MemoryTable::new(&columns, 5000, &[Choice::Raw]));
    let some = (0..5).map(|number| Scalar::Int(2 * number)).collect();
    let is_even = Expr::InList { expr: Box::new(Expr::Column(0)), list: some, has_null: false, negated: false };
    let digit =
        Expr::Text { function: TextFunction::Substring { skipped: 5, taken: 1 }, expr: Box::new(Expr::Column(1)) };
    let branches = vec![(is_even.clone(), digit.clone())];
    let digit_of_even = Expr::Case { branches, otherwise: None, ty: LogicalType::Utf8 };
    let exprs = vec![is_even, digit, digit_of_even];
    let found = rows_of(output(&table, exprs), &[LogicalType::Boolean, LogicalType::Utf8, LogicalType::Utf8], 1);
    let expected: Vec<Vec<Scalar>> = (0..ROWS)
        .map(|row| {
            let digit = row / 10 % 10;
            let text = Scalar::Bytes(digit.to_string().into_bytes());
            let of_even = if digit % 2 == 0 { text.clone() } else { Scalar::Null };
            vec![Scalar::Int(i128::from(digit % 2 == 0)), text, of_even]
        })
        .collect();
    assert!(found.expect("no error") == expected);
}

#[test]
fn what_does_not_repeat_is_asked_about_row_by_row() {
    let numbers: Vec<_> = (0..ROWS).map(|row| Some(row * 7919 % 10_007)).collect();
    let asked = rows_asked(&numbers, Choice::Raw);
    assert_eq!(asked, ROWS as usize);
}
