//! Of texts of which only lengths are wanted no text is decoded, and nothing else changes.

use crate::support::table::MemoryTable;
use crate::support::{read_back, rows_of, rows_of_run};
use arrow::array::{ArrayRef, Int64Array, StringArray};
use sinter_codec::{Choice, CompareOp, Physical, SCHEMES, Scalar};
use sinter_exec::{
    Aggregate, AggregateFunction, Expr, LogicalType, Output, Pipeline, ScanColumn, Source, TextFunction, Unlimited,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;

const ROWS: usize = 10_000;

/// Texts of characters of one to four bytes, some NULL and some empty, beside numbers.
fn table(choice: Choice) -> Arc<MemoryTable> {
    let text = |row: usize| {
        let words = ["packages ", "déjà ", "日本語 ", "🎈", "the furiously ", ""];
        let text: String = (0..row % 7).map(|place| words[(row * 31 + place * place) % words.len()]).collect();
        (row % 11 != 3).then_some(text)
    };
    let texts: ArrayRef = Arc::new((0..ROWS).map(text).collect::<StringArray>());
    let numbers: ArrayRef = Arc::new((0..ROWS as i64).collect::<Int64Array>());
    let columns = [(numbers, LogicalType::Int64), (texts, LogicalType::Utf8)];
    Arc::new(MemoryTable::new(&columns, 4096, &[choice]))
}

fn length() -> Expr {
    Expr::Text { function: TextFunction::Length, expr: Box::new(Expr::Column(1)) }
}

fn longer_than(length_min: i128) -> Expr {
    let bound = Expr::Literal(Scalar::Int(length_min), LogicalType::Int32);
    Expr::Compare(CompareOp::Greater, Box::new(length()), Box::new(bound))
}

fn pipeline(table: &Arc<MemoryTable>, filter: Vec<Expr>, output: Output) -> Pipeline {
    Pipeline {
        source: Source::Table(Arc::clone(table) as _),
        columns: vec![ScanColumn::Table(0), ScanColumn::Table(1)],
        filter,
        steps: Vec::new(),
        output,
        limit: None,
        on_damage: Default::default(),
    }
}

/// Every form of a query: all rows, some, few, and groups.
fn pipelines(table: &Arc<MemoryTable>) -> Vec<Pipeline> {
    let rows = || Output::Rows(vec![Expr::Column(0), length()]);
    let below = |end: i128, step: i128| {
        let below = Expr::Literal(Scalar::Int(end), LogicalType::Int64);
        let some = (0..ROWS as i128).step_by(step as usize).map(Scalar::Int).collect();
        let is_some = Expr::InList { expr: Box::new(Expr::Column(0)), list: some, has_null: false, negated: false };
        vec![Expr::Compare(CompareOp::Less, Box::new(Expr::Column(0)), Box::new(below)), is_some]
    };
    let count =
        Aggregate { function: AggregateFunction::CountStar, argument: None, filter: None, ty: LogicalType::Int64 };
    vec![
        pipeline(table, Vec::new(), rows()),
        pipeline(table, below(6000, 2), rows()),
        pipeline(table, below(9000, 100), rows()),
        pipeline(table, vec![longer_than(20)], rows()),
        pipeline(table, Vec::new(), Output::Groups { keys: vec![length()], aggregates: vec![count] }),
    ]
}

#[test]
fn in_every_scheme() {
    let of_texts = SCHEMES.iter().filter(|scheme| scheme.holds(Physical::Bytes));
    let forced = of_texts.map(|scheme| Choice::Forced(scheme.name.into()));
    for choice in [Choice::Raw, Choice::Auto].into_iter().chain(forced) {
        for (number, asked) in pipelines(&table(choice.clone())).into_iter().enumerate() {
            let types = asked.output_types();
            let mut of_lengths = asked.clone();
            of_lengths.bring_lengths();
            assert_eq!(of_lengths.columns, [ScanColumn::Table(0), ScanColumn::Length(1)]);
            assert_eq!(of_lengths.output_types(), types);
            for threads in [1, 3] {
                let sorted = |pipeline: &Pipeline| {
                    let pipeline = match &pipeline.output {
                        Output::Groups { .. } => read_back(pipeline.clone()),
                        _ => pipeline.clone(),
                    };
                    let mut rows = rows_of(pipeline, &types, threads).expect("no error");
                    rows.sort_by_key(|row| format!("{row:?}"));
                    rows
                };
                assert!(sorted(&of_lengths) == sorted(&asked), "query {number} as {choice:?}, {threads} threads");
            }
        }
    }
}

#[test]
fn symbols_are_not_turned_into_texts() {
    let table = table(Choice::Forced("fsst".into()));
    let asked = pipeline(&table, Vec::new(), Output::Rows(vec![length()]));
    let mut of_lengths = asked.clone();
    of_lengths.bring_lengths();
    let [as_texts, as_lengths] = [asked, of_lengths].map(|pipeline| {
        let run = pipeline.start().expect("ours");
        run.prepare(1, &(Arc::new(Unlimited) as _)).expect("nothing to do");
        rows_of_run(&run, &[LogicalType::Int32], 1).expect("no error");
        run.counters.bytes_decoded.load(Ordering::Relaxed)
    });
    assert_eq!(as_lengths, 4 * ROWS as u64);
    assert!(as_texts > 5 * as_lengths, "{as_texts} bytes of texts");
}

#[test]
fn a_text_that_is_asked_for_otherwise_stays_one() {
    let table = table(Choice::Auto);
    let is_there = Expr::IsNotNull(Box::new(Expr::Column(1)));
    let as_rows = |rows: Vec<Expr>| Output::Rows(rows);
    for mut pipeline in [
        pipeline(&table, Vec::new(), as_rows(vec![length(), Expr::Column(1)])),
        pipeline(&table, vec![is_there], as_rows(vec![length()])),
        pipeline(&table, Vec::new(), as_rows(vec![Expr::Column(0)])),
    ] {
        let before = format!("{pipeline:?}");
        pipeline.bring_lengths();
        assert_eq!(format!("{pipeline:?}"), before);
    }
}
