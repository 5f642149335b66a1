//! What the filter rules out is neither pinned nor decoded, and the counters say so.

use crate::support;
use crate::support::exprs::{boxed, int};
use crate::support::table::MemoryTable;
use arrow::array::{ArrayRef, Int64Array, StringArray};
use sinter_codec::{Choice, CompareOp, Scalar};
use sinter_exec::{
    Aggregate, AggregateFunction, ArithmeticOp, Counters, Expr, Join, JoinKind, LogicalType, Memory, Output, Pipeline,
    ScanColumn, Step, Unlimited,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Four groups of 4096 rows: ascending numbers, numbers that repeat every 1024 rows, and words.
fn table() -> MemoryTable {
    table_in(Choice::Auto)
}

/// The same in a scheme, as far as that holds its columns.
fn table_in(choice: Choice) -> MemoryTable {
    let ascending: ArrayRef = Arc::new((0..16384).collect::<Int64Array>());
    let repeating: ArrayRef = Arc::new((0..16384i64).map(|row| row % 1024).collect::<Int64Array>());
    let words: ArrayRef = Arc::new((0..16384).map(|row| Some(format!("word {}", row % 5))).collect::<StringArray>());
    let columns = [(ascending, LogicalType::Int64), (repeating, LogicalType::Int64), (words, LogicalType::Utf8)];
    MemoryTable::new(&columns, 4096, &[choice])
}

fn compare(op: CompareOp, column: usize, value: i128) -> Expr {
    Expr::Compare(op, boxed(Expr::Column(column)), boxed(int(value, LogicalType::Int64)))
}

fn pipeline(table: &Arc<MemoryTable>, filter: Vec<Expr>, output: Output) -> Pipeline {
    let columns = (0..3).map(ScanColumn::Table).collect();
    Pipeline {
        source: sinter_exec::Source::Table(table.clone()),
        columns,
        filter,
        steps: Vec::new(),
        output,
        limit: None,
        on_damage: Default::default(),
    }
}

fn aggregate(function: AggregateFunction, column: usize) -> Aggregate {
    Aggregate { function, argument: Some(Expr::Column(column)), filter: None, ty: LogicalType::Int64 }
}

fn count_star() -> Aggregate {
    Aggregate { function: AggregateFunction::CountStar, argument: None, filter: None, ty: LogicalType::Int64 }
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn vectors(counters: &Counters) -> (u64, u64, u64) {
    (read(&counters.vectors_total), read(&counters.vectors_rejected), read(&counters.vectors_decoded))
}

#[test]
fn a_comparison_runs_on_the_encoded_form_and_decodes_only_what_passes() {
    let table = Arc::new(table_in(Choice::Forced("for".to_owned())));
    // Rows 5000 to 5009: one group of four, one vector of that group's four.
    let filter = vec![compare(CompareOp::GreaterOrEqual, 0, 5000), compare(CompareOp::Less, 0, 5010)];
    let output = Output::Aggregate(vec![aggregate(AggregateFunction::Sum, 1)]);
    let run = pipeline(&table, filter, output).start().expect("ours");
    let expected: i128 = (5000..5010).map(|row: i128| row % 1024).sum();
    assert_eq!(run.aggregate(1).expect("no error"), [Scalar::Int(expected)]);
    let counters = &run.counters;
    assert_eq!((read(&counters.groups_total), read(&counters.groups_pruned)), (4, 3));
    assert_eq!(vectors(counters), (4, 3, 1));
    assert_eq!((read(&counters.rows_scanned), read(&counters.rows_selected)), (4096, 10));
    assert_eq!(read(&counters.rows_selected_encoded), 10);
    assert_eq!(table.pins.load(Ordering::Relaxed), 2, "the filter's column and the sum's, of one group");
    assert_eq!(read(&counters.filters_encoded) + read(&counters.filters_decoded), 4, "both bounds are one test");
}

#[test]
fn a_filter_that_no_row_passes_opens_no_output_column() {
    let table = Arc::new(table());
    // Within the zone maps of both columns, but never together.
    let filter = vec![
        compare(CompareOp::Equal, 1, 7),
        Expr::Compare(
            CompareOp::Equal,
            boxed(Expr::Column(2)),
            boxed(Expr::Literal(Scalar::Bytes(b"word 3x".to_vec()), LogicalType::Utf8)),
        ),
    ];
    let output = Output::Rows(vec![Expr::Column(0)]);
    let run = pipeline(&table, filter, output).start().expect("ours");
    let rows = support::rows_of_run(&run, &[LogicalType::Int64], 2).expect("no error");
    assert!(rows.is_empty());
    assert_eq!(vectors(&run.counters), (16, 16, 0));
    // Of four groups two columns, or the one alone whose condition was seen to drop all.
    assert!((5..=8).contains(&table.pins.load(Ordering::Relaxed)), "two filter columns of four groups at most");
}

#[test]
fn conditions_on_decoded_values_see_survivors_only() {
    let table = Arc::new(table());
    // Division by the row's number modulo 1024 fails on every 1024th row, which the cheap comparison drops before.
    let quotient = Expr::Arithmetic {
        op: ArithmeticOp::Divide,
        left: boxed(int(1_000_000, LogicalType::Int64)),
        right: boxed(Expr::Column(1)),
        ty: LogicalType::Int64,
    };
    let expensive = Expr::Compare(CompareOp::Greater, boxed(quotient), boxed(int(100_000, LogicalType::Int64)));
    let filter = vec![expensive, compare(CompareOp::NotEqual, 1, 0)];
    let output = Output::Aggregate(vec![count_star()]);
    let run = pipeline(&table, filter, output).start().expect("ours");
    assert_eq!(run.aggregate(2).expect("no division by zero"), [Scalar::Int(16 * 9)]);
}

#[test]
fn texts_in_a_dictionary_or_in_runs_are_not_read_for_few_rows() {
    for scheme in ["dict", "rle"] {
        let repeating: ArrayRef = Arc::new((0..16384i64).map(|row| row % 1024).collect::<Int64Array>());
        let words = (0..16384).map(|row| Some(format!("some word {}", row / 16 % 7))).collect::<StringArray>();
        let columns = [(repeating, LogicalType::Int64), (Arc::new(words) as ArrayRef, LogicalType::Utf8)];
        let table = Arc::new(MemoryTable::new(&columns, 4096, &[Choice::Forced(scheme.to_owned())]));
        let like = Expr::Like {
            expr: boxed(Expr::Column(1)),
            pattern: "%word 3%".into(),
            negated: false,
            case_insensitive: false,
        };
        let filter = vec![compare(CompareOp::Equal, 0, 7), like];
        let mut pipeline = pipeline(&table, filter, Output::Aggregate(vec![count_star()]));
        pipeline.columns.truncate(2);
        let run = pipeline.start().expect("ours");
        let expected = (0..16i128).filter(|vector| vector * 64 % 7 == 3).count() as i128;
        assert_eq!(run.aggregate(1).expect("no error"), [Scalar::Int(expected)], "{scheme}");
        let counters = &run.counters;
        assert_eq!((read(&counters.filters_encoded), read(&counters.filters_decoded)), (32, 0), "{scheme}");
    }
}

#[test]
fn what_a_filter_has_to_decode_is_decoded_once() {
    // Sums of steps are compared as values; of texts in a symbol table few are decoded sooner than all are searched.
    let ascending: ArrayRef = Arc::new((0..16384i64).map(|row| 3 * row + row % 2).collect::<Int64Array>());
    let repeating: ArrayRef = Arc::new((0..16384i64).map(|row| row % 1024).collect::<Int64Array>());
    let words = (0..16384).map(|row| Some(format!("some word {}", row * 7919 % 100_003))).collect::<StringArray>();
    let words: ArrayRef = Arc::new(words);
    let table = |column: &ArrayRef, ty: LogicalType, scheme: &str| {
        let columns = [(column.clone(), ty), (repeating.clone(), LogicalType::Int64)];
        let choices = [scheme, "bitpack"].map(|scheme| Choice::Forced(scheme.to_owned()));
        Arc::new(MemoryTable::new(&columns, 4096, &choices))
    };
    let like = |pattern: &str| Expr::Like {
        expr: boxed(Expr::Column(0)),
        pattern: pattern.into(),
        negated: false,
        case_insensitive: false,
    };
    let odd = Expr::Compare(CompareOp::Greater, boxed(Expr::Column(0)), boxed(Expr::Column(1)));
    for (table, ty, filter, vectors, decoded) in [
        (
            table(&ascending, LogicalType::Int64, "delta"),
            LogicalType::Int64,
            vec![compare(CompareOp::Less, 0, 12_000)],
            4,
            4,
        ),
        (
            table(&ascending, LogicalType::Int64, "delta"),
            LogicalType::Int64,
            vec![
                Expr::Not(boxed(Expr::Or(vec![compare(CompareOp::Less, 0, 100), compare(CompareOp::Less, 1, 1000)]))),
                odd,
            ],
            16,
            32,
        ),
        (
            table(&words, LogicalType::Utf8, "fsst"),
            LogicalType::Utf8,
            vec![compare(CompareOp::Equal, 1, 7), like("%word%")],
            16,
            16,
        ),
    ] {
        let mut pipeline = pipeline(&table, filter, Output::Rows(vec![Expr::Column(0)]));
        pipeline.columns.truncate(2);
        let run = pipeline.start().expect("ours");
        let rows = support::rows_of_run(&run, &[ty], 1).expect("no error");
        assert!(!rows.is_empty());
        let counters = &run.counters;
        assert_eq!(read(&counters.vectors_total), vectors);
        assert_eq!((read(&counters.vectors_decoded), read(&counters.vectors_decoded_again)), (decoded, 0));
    }
}

#[test]
fn conditions_that_were_seen_to_drop_more_are_asked_first() {
    let even: ArrayRef = Arc::new((0..16384i64).map(|row| row % 512 * 2).collect::<Int64Array>());
    // Packed numbers are tested, sums of steps that also go down are decoded first.
    for (scheme, counts) in [("for", (20, 0)), ("delta", (0, 20))] {
        let columns = [&even, &even].map(|column| (column.clone(), LogicalType::Int64));
        let table = Arc::new(MemoryTable::new(&columns, 4096, &[Choice::Forced(scheme.to_owned())]));
        // The one drops no row and the other all: after the first group, four times both, the other comes first.
        let filter = vec![compare(CompareOp::NotEqual, 0, 7), compare(CompareOp::Equal, 1, 9)];
        let mut pipeline = pipeline(&table, filter, Output::Aggregate(vec![count_star()]));
        pipeline.columns.truncate(2);
        let run = pipeline.start().expect("ours");
        assert_eq!(run.aggregate(1).expect("no error"), [Scalar::Int(0)], "{scheme}");
        let asked = (read(&run.counters.filters_encoded), read(&run.counters.filters_decoded));
        assert_eq!(asked, counts, "{scheme}");
    }
}

#[test]
fn vectors_of_steps_are_not_decoded_where_their_ends_decide() {
    let keys = |has_nulls: bool| -> ArrayRef {
        let key = |row: i64| (!has_nulls || row % 2 == 0).then_some(3 * row + row % 2);
        Arc::new((0..16384).map(key).collect::<Int64Array>())
    };
    // Of rows 100, 5000 and 16383; and what is none.
    let is_in = |negated: bool| Expr::InList {
        expr: boxed(Expr::Column(0)),
        list: [300, 301, 15_000, 16_001, 49_150].map(Scalar::Int).to_vec(),
        has_null: false,
        negated,
    };
    let at_least = |key: i128| compare(CompareOp::GreaterOrEqual, 0, key);
    for scheme in ["delta", "pfor_delta"] {
        // The condition, whether there are NULLs, and then rows that pass, vectors that are looked at, and those of them that are
        // rejected and decoded.
        for (filter, has_nulls, rows, vectors_seen) in [
            (is_in(false), false, 3, (12, 9, 4)),
            (is_in(true), false, 16384 - 3, (12, 0, 4)),
            (is_in(true), true, 8192 - 2, (16, 0, 16)),
            (at_least(300), false, 16384 - 100, (4, 0, 1)),
            (at_least(300), true, 8192 - 50, (16, 0, 16)),
        ] {
            let columns = [(keys(has_nulls), LogicalType::Int64)];
            let table = Arc::new(MemoryTable::new(&columns, 4096, &[Choice::Forced(scheme.to_owned())]));
            let what = format!("{scheme}, {filter:?}");
            let mut pipeline = pipeline(&table, vec![filter], Output::Aggregate(vec![count_star()]));
            pipeline.columns.truncate(1);
            let run = pipeline.start().expect("ours");
            assert_eq!(run.aggregate(1).expect("no error"), [Scalar::Int(rows)], "{what}");
            assert_eq!(vectors(&run.counters), vectors_seen, "{what}");
        }
    }
}

/// A join by the first column with a table of these keys.
fn join(kind: JoinKind, keys: std::ops::Range<i64>) -> Step {
    let keys: ArrayRef = Arc::new(keys.map(|key| 3 * key).collect::<Int64Array>());
    let table = MemoryTable::new(&[(keys, LogicalType::Int64)], 4096, &[Choice::Auto]);
    let mut build = pipeline(&Arc::new(table), vec![], Output::Rows(vec![Expr::Column(0)]));
    build.columns.truncate(1);
    let keys = vec![Expr::Column(0)];
    Step::Join(Join { kind, build: Box::new(build), keys, nulls_are_equal: false, condition: None })
}

#[test]
fn what_no_key_of_a_joins_table_can_equal_is_not_read() {
    let memory: Arc<dyn Memory> = Arc::new(Unlimited);
    let counted = |steps: Vec<Step>, threads: usize| {
        let table = Arc::new(table());
        let mut pipeline = pipeline(&table, vec![], Output::Aggregate(vec![count_star()]));
        pipeline.steps = steps;
        let run = pipeline.start_measured().expect("ours");
        run.prepare(threads, &memory).expect("no error");
        let count = run.aggregate(threads).expect("no error").remove(0);
        let counters = &run.counters;
        (count, read(&counters.groups_pruned), read(&counters.vectors_rejected), run.explain().to_string())
    };
    // Keys 5001 to 5997 meet rows of the second group alone, of two of its four vectors.
    for kind in [JoinKind::Inner, JoinKind::Semi] {
        let (count, pruned, rejected, explained) = counted(vec![join(kind, 1667..2000)], 1);
        assert_eq!((count, pruned, rejected), (Scalar::Int(333), 3, 2), "{kind:?}");
        assert!(explained.contains("filter pushed to blocks: c0 BETWEEN 5001 AND 5997"), "{explained}");
    }
    // Nobody is there to be met.
    assert_eq!(counted(vec![join(JoinKind::Inner, 0..0)], 2).1, 4);
    // All come out of these, or what comes out of the one depends on whom the other meets.
    assert_eq!(counted(vec![join(JoinKind::Left, 1667..2000)], 1).1, 0);
    assert_eq!(counted(vec![join(JoinKind::Anti, 1667..2000)], 1).0, Scalar::Int(16384 - 333));
    assert_eq!(counted(vec![join(JoinKind::Full, 0..6000), join(JoinKind::Inner, 1667..2000)], 1).1, 0);
    // A table that has nearly all keys says nothing.
    assert_eq!(counted(vec![join(JoinKind::Inner, 100..5400)], 1).1, 0);
}

/// Partners of rows with these keys, two of each: the key, a number that says which it is, and two texts.
fn partners(keys: impl Iterator<Item = i64>) -> Arc<MemoryTable> {
    let keys: Vec<i64> = keys.flat_map(|key| [key, key]).collect();
    let numbers: ArrayRef = Arc::new((0..keys.len() as i64).collect::<Int64Array>());
    let texts = |what: &str| -> ArrayRef {
        Arc::new((0..keys.len()).map(|number| Some(format!("{what} {number}"))).collect::<StringArray>())
    };
    let (names, remarks) = (texts("name"), texts("remark"));
    let keys: ArrayRef = Arc::new(Int64Array::from(keys));
    let columns = [keys, numbers].map(|column| (column, LogicalType::Int64)).into_iter();
    let columns: Vec<_> = columns.chain([names, remarks].map(|column| (column, LogicalType::Utf8))).collect();
    Arc::new(MemoryTable::new(&columns, 4096, &[Choice::Auto]))
}

/// A join by a column with such partners, which brings a number and two texts.
fn join_with(partners: &Arc<MemoryTable>, key: usize) -> Step {
    let mut build = pipeline(partners, vec![], Output::Rows((0..4).map(Expr::Column).collect()));
    build.columns.push(ScanColumn::Table(3));
    let (kind, keys) = (JoinKind::Inner, vec![Expr::Column(key)]);
    Step::Join(Join { kind, build: Box::new(build), keys, nulls_are_equal: false, condition: None })
}

/// Rows that come out of a pipeline over [`table`], in any order, and how many vectors were decoded for them.
fn rows_and_decoded(steps: Vec<Step>, outputs: &[usize]) -> (Vec<Vec<Scalar>>, u64) {
    let output = Output::Rows(outputs.iter().map(|&column| Expr::Column(column)).collect());
    let pipeline = Pipeline { steps, ..pipeline(&Arc::new(table()), vec![], output) };
    let (types, run) = (pipeline.output_types(), pipeline.start().expect("ours"));
    let memory: Arc<dyn Memory> = Arc::new(Unlimited);
    run.prepare(2, &memory).expect("no error");
    let rows = support::rows_of_run(&run, &types, 2).expect("no error");
    assert_eq!(read(&run.counters.vectors_decoded_again), 0);
    (rows, read(&run.counters.vectors_decoded))
}

#[test]
fn what_nobody_wants_behind_a_join_with_several_partners_is_not_decoded() {
    // Every eighth row has two of 4096 partners, of which the filter behind the join passes one in 40.
    let partners = partners((0..2048).map(|key| 8 * key));
    let steps = [join_with(&partners, 0), Step::Filter(compare(CompareOp::Less, 3, 100))];
    // Keys and numbers of 4 vectors of theirs, keys of 16 of ours; and what comes out.
    let always = 2 * 4 + 16;
    for (outputs, decoded) in [
        (vec![], always),
        (vec![3], always),
        (vec![0], always),
        (vec![1], always + 16),
        (vec![4], always + 4),
        (vec![1, 2, 3, 4, 5], always + 2 * 16 + 2 * 4),
    ] {
        let (rows, found) = rows_and_decoded(steps.to_vec(), &outputs);
        assert_eq!((rows.len(), found), (100, decoded), "{outputs:?}");
    }
}

#[test]
fn rows_without_any_of_several_partners_are_not_decoded() {
    // Only the first vector of ours has some, and the last one.
    let keys = (0..1024).chain(15 * 1024..16 * 1024);
    let (rows, decoded) = rows_and_decoded(vec![join_with(&partners(keys), 0)], &[1]);
    assert_eq!((rows.len(), decoded), (4096, 4 + 16 + 2));
}

#[test]
fn columns_come_through_two_joins_with_several_partners_when_they_are_asked_for() {
    let partners = partners((0..2048).map(|key| 8 * key));
    let steps = vec![
        join_with(&partners, 0),
        Step::Filter(compare(CompareOp::GreaterOrEqual, 3, 16)),
        join_with(&partners, 3),
        Step::Filter(compare(CompareOp::Less, 6, 100)),
        Step::Filter(compare(CompareOp::NotEqual, 6, 7)),
    ];
    let (mut rows, decoded) = rows_and_decoded(steps, &[0, 3, 4, 6]);
    // The second join brings no text that anybody wants.
    assert_eq!(decoded, 3 * 4 + 2 * 4 + 16);
    let two = |key: i64| [key / 4, key / 4 + 1];
    let first = (0..16384).step_by(8).flat_map(|row| two(row).map(|partner| (row, partner)));
    let met = first.filter(|(_, partner)| *partner >= 16 && partner % 8 == 0);
    let both = met.flat_map(|(row, partner)| two(partner).map(|other| (row, partner, other)));
    let wanted = both.filter(|(.., other)| *other < 100 && *other != 7).map(|(row, partner, other)| {
        let name = Scalar::Bytes(format!("name {partner}").into_bytes());
        vec![Scalar::Int(row.into()), Scalar::Int(partner.into()), name, Scalar::Int(other.into())]
    });
    let text = |row: &Vec<Scalar>| format!("{row:?}");
    let mut wanted: Vec<_> = wanted.collect();
    wanted.sort_by_cached_key(text);
    rows.sort_by_cached_key(text);
    assert_eq!(rows, wanted);
}

#[test]
fn statistics_answer_for_whole_groups() {
    let table = Arc::new(table());
    let all = vec![
        count_star(),
        aggregate(AggregateFunction::Count, 2),
        aggregate(AggregateFunction::Min, 0),
        aggregate(AggregateFunction::Max, 0),
        aggregate(AggregateFunction::Sum, 0),
    ];
    // The filter holds for all rows of the last two groups, as their zone maps know.
    let filter = vec![compare(CompareOp::GreaterOrEqual, 0, 8192)];
    let run = pipeline(&table, filter, Output::Aggregate(all)).start().expect("ours");
    let sum: i128 = (8192..16384).sum();
    let expected = [8192, 8192, 8192, 16383, sum].map(Scalar::Int);
    assert_eq!(run.aggregate(1).expect("no error"), expected);
    assert_eq!((read(&run.counters.groups_pruned), read(&run.counters.groups_answered)), (2, 2));
    assert_eq!(table.pins.load(Ordering::Relaxed), 0);
}

#[test]
fn groups_whose_rows_are_all_deleted_are_never_pinned() {
    let mut table = table();
    table.delete(|row| row < 8192 || row % 1024 < 1000);
    let table = Arc::new(table);
    let run = pipeline(&table, vec![], Output::Aggregate(vec![count_star(), aggregate(AggregateFunction::Min, 0)]));
    let run = run.start().expect("ours");
    assert_eq!(run.aggregate(1).expect("no error"), [Scalar::Int(8 * 24), Scalar::Int(8192 + 1000)]);
    assert_eq!((read(&run.counters.groups_pruned), read(&run.counters.groups_answered)), (2, 0));
    assert_eq!(table.pins.load(Ordering::Relaxed), 2);
}

#[test]
fn explain_says_what_runs_on_the_encoded_form() {
    let table = Arc::new(table());
    let filter = vec![
        compare(CompareOp::GreaterOrEqual, 0, 5000),
        compare(CompareOp::Less, 0, 5010),
        Expr::Compare(CompareOp::Less, boxed(Expr::Column(0)), boxed(Expr::Column(1))),
    ];
    let text = pipeline(&table, filter, Output::Aggregate(vec![count_star()])).to_string();
    assert_eq!(
        text,
        "Scan memory [c0, c1, c2]\n  filter pushed to blocks: c0 BETWEEN 5000 AND 5009\n  \
         filter on values: c0 < c1\n  aggregate: count(*)"
    );
}
