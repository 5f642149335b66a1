//! Queries over more rows than memory holds: their answers, what they hold, and how they end.

use crate::support::memory::{Limited, Refusing};
use crate::support::table::MemoryTable;
use crate::support::{read_back, rows_of, rows_of_run, rows_within};
use arrow::array::{ArrayRef, Int64Array, StringArray};
use sinter_codec::{Choice, Scalar};
use sinter_exec::{
    Aggregate, AggregateFunction, Error, Expr, GroupingSet, Join, JoinKind, LogicalType, Memory, Order, Output,
    Pipeline, Reader, Result, ScanColumn, SortKey, Source, SpillCompression, SpillFile, Step,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const ROWS: i64 = 200_000;

/// Numbers that come in no order, and their texts.
fn table() -> Arc<MemoryTable> {
    let number = |row: i64| row * 7919 % ROWS;
    let numbers: ArrayRef = Arc::new((0..ROWS).map(number).collect::<Int64Array>());
    let texts: ArrayRef = Arc::new((0..ROWS).map(|row| Some(format!("row {}", number(row)))).collect::<StringArray>());
    let columns = [(numbers, LogicalType::Int64), (texts, LogicalType::Utf8)];
    Arc::new(MemoryTable::new(&columns, 20_000, &[Choice::Auto, Choice::Auto]))
}

fn scan(table: &Arc<MemoryTable>, output: Output) -> Pipeline {
    Pipeline {
        source: Source::Table(Arc::clone(table) as _),
        columns: vec![ScanColumn::Table(0), ScanColumn::Table(1)],
        filter: Vec::new(),
        steps: Vec::new(),
        output,
        limit: None,
        on_damage: Default::default(),
    }
}

fn columns(columns: &[usize]) -> Vec<Expr> {
    columns.iter().map(|&column| Expr::Column(column)).collect()
}

fn grouped(table: &Arc<MemoryTable>) -> Pipeline {
    let count =
        Aggregate { function: AggregateFunction::CountStar, argument: None, filter: None, ty: LogicalType::Int64 };
    scan(table, Output::Groups { keys: columns(&[1]), aggregates: vec![count] })
}

/// By each text, by each number, and all as one.
fn grouped_by_sets(table: &Arc<MemoryTable>) -> Pipeline {
    let Output::Groups { aggregates, .. } = grouped(table).output else { unreachable!() };
    let set = |keys: &[usize], number| GroupingSet { keys: keys.to_vec(), number };
    let sets = vec![set(&[0], 1), set(&[1], 2), set(&[], 3)];
    let number_type = LogicalType::UInt8;
    scan(table, Output::GroupingSets { keys: columns(&[1, 0]), sets, number_type, aggregates })
}

fn joined(table: &Arc<MemoryTable>) -> Pipeline {
    let build = Box::new(scan(table, Output::Rows(columns(&[1, 0, 1]))));
    let join = Join { kind: JoinKind::Inner, build, keys: columns(&[1]), nulls_are_equal: false, condition: None };
    Pipeline { steps: vec![Step::Join(join)], ..scan(table, Output::Rows(columns(&[0, 2, 3]))) }
}

fn sorted(table: &Arc<MemoryTable>) -> Pipeline {
    let key = SortKey { expr: Expr::Column(0), descending: true, nulls_first: false };
    scan(table, Output::Sorted { rows: columns(&[0, 1]), order: Order { keys: vec![key], skip: 0, fetch: None } })
}

/// Grants so many bytes, and has files.
#[derive(Debug)]
struct Small {
    limited: Limited,
    files: Refusing,
    spills_beyond: Option<usize>,
}

impl Small {
    fn new(bytes: usize) -> Arc<Small> {
        Arc::new(Small { limited: Limited::new(bytes), files: Refusing::new(Vec::new()), spills_beyond: None })
    }

    /// All that there is, and whoever can is to spill at once.
    fn wanting_nothing_kept() -> Arc<Small> {
        let (limited, files) = (Limited::new(1 << 40), Refusing::new(Vec::new()));
        Arc::new(Small { limited, files, spills_beyond: Some(1) })
    }
}

impl Memory for Small {
    fn grow(&self, bytes: usize) -> Result<()> {
        self.limited.grow(bytes)
    }

    fn shrink(&self, bytes: usize) {
        self.limited.shrink(bytes);
    }

    fn spill_file(&self) -> Result<Option<Arc<dyn SpillFile>>> {
        self.files.spill_file()
    }

    fn spills_beyond(&self) -> Option<usize> {
        self.spills_beyond
    }
}

#[test]
fn many_runs_are_merged_in_passes() -> Result<()> {
    // One for each vector, and so more than are merged at a time.
    let table = table();
    for (skip, fetch) in [(0, None), (1000, None), (70_000, Some(30_000))] {
        let Pipeline { output: Output::Sorted { rows, order }, .. } = sorted(&table) else { unreachable!() };
        let order = Order { skip, fetch, ..order };
        let pipeline = read_back(scan(&table, Output::Sorted { rows, order }));
        let memory: Arc<dyn Memory> = Small::wanting_nothing_kept();
        let run = pipeline.clone().start()?;
        run.prepare(2, &memory)?;
        let found = rows_of_run(&run, &pipeline.output_types(), 1)?;
        let count = (ROWS as usize - skip).min(fetch.unwrap_or(usize::MAX));
        let numbers = (0..ROWS as i128).rev().skip(skip).take(count);
        let wanted =
            numbers.map(|number| vec![Scalar::Int(number), Scalar::Bytes(format!("row {number}").into_bytes())]);
        assert!(found == wanted.collect::<Vec<_>>(), "skip {skip}, fetch {fetch:?}");
    }
    Ok(())
}

#[test]
fn limits_hold_where_rows_are_spilled() -> Result<()> {
    let table = table();
    let pipeline = Pipeline { limit: Some(12_345), ..joined(&table) };
    let small = Small::new(1 << 20);
    let memory: Arc<dyn Memory> = Arc::clone(&small) as _;
    assert_eq!(rows_within(pipeline.clone(), &pipeline.output_types(), 2, &memory)?.len(), 12_345);
    assert!(small.files.files.load(Ordering::Relaxed) > 0);
    Ok(())
}

#[test]
fn plans_say_how_much_was_spilled() -> Result<()> {
    let table = table();
    for pipeline in [grouped(&table), grouped_by_sets(&table), joined(&table), sorted(&table)] {
        let small = Small::new(1 << 20);
        let memory: Arc<dyn Memory> = Arc::clone(&small) as _;
        let run = pipeline.clone().start_measured()?;
        match pipeline.output {
            Output::Rows(_) => run.prepare(2, &memory)?,
            _ => drop(run.gathered(2, &memory)?),
        }
        let plan = run.explain().to_string();
        let said: Vec<usize> =
            plan.split(" bytes spilled").filter_map(|before| before.rsplit([' ', ',']).next()?.parse().ok()).collect();
        assert_eq!(said.iter().sum::<usize>(), small.files.bytes.load(Ordering::Relaxed), "{plan}");
    }
    Ok(())
}

/// Of parts that a plan tells of, the rows behind `what`, such as `output`.
fn rows_of_parts(plan: &str, what: &str) -> Vec<usize> {
    let (_, parts) = plan.split_once("\n  then in 32 parts\n").unwrap_or_else(|| panic!("no parts in {plan}"));
    let notes = parts.lines().filter(|line| line.trim_start().starts_with(what)).filter_map(|line| {
        let (_, note) = line.rsplit_once(" -- ")?;
        note.trim_start_matches("of ").split(' ').next()?.parse().ok()
    });
    notes.collect()
}

#[test]
fn plans_say_what_was_done_with_the_parts() -> Result<()> {
    let table = table();
    let explained = |pipeline: Pipeline| {
        let memory: Arc<dyn Memory> = Small::new(1 << 20);
        let is_rows = matches!(pipeline.output, Output::Rows(_));
        let run = pipeline.start_measured()?;
        if is_rows {
            run.prepare(2, &memory)?
        } else {
            drop(run.gathered(2, &memory)?)
        }
        Ok::<_, Error>(run.explain().to_string())
    };
    let plan = explained(grouped(&table))?;
    assert!(plan.contains("\n  did not fit the memory; spilled by\n    Scan"), "{plan}");
    assert_eq!(rows_of_parts(&plan, "group by"), [ROWS as usize], "{plan}");
    let plan = explained(joined(&table))?;
    assert_eq!(plan.matches("did not fit the memory; spilled by").count(), 2, "both sides, in {plan}");
    assert_eq!(rows_of_parts(&plan, "inner join"), [ROWS as usize], "{plan}");
    assert_eq!(rows_of_parts(&plan, "output")[0], ROWS as usize, "{plan}");
    Ok(())
}

#[test]
fn answers_are_those_of_enough_memory() -> Result<()> {
    let table = table();
    for (name, pipeline) in [
        ("groups", read_back(grouped(&table))),
        ("join", joined(&table)),
        ("groups of a join", {
            let Pipeline { output: Output::Groups { keys: _, aggregates }, .. } = grouped(&table) else {
                unreachable!()
            };
            read_back(Pipeline { output: Output::Groups { keys: columns(&[3]), aggregates }, ..joined(&table) })
        }),
        ("grouping sets", read_back(grouped_by_sets(&table))),
        ("grouping sets of a join", {
            let Output::GroupingSets { sets, number_type, aggregates, .. } = grouped_by_sets(&table).output else {
                unreachable!()
            };
            let output = Output::GroupingSets { keys: columns(&[3, 2]), sets, number_type, aggregates };
            read_back(Pipeline { output, ..joined(&table) })
        }),
        ("sort", read_back(sorted(&table))),
        // Sorted rows are read once more for this.
        ("groups of sorted rows", {
            read_back(Pipeline { output: grouped(&table).output, ..read_back(sorted(&table)) })
        }),
        ("sorted rows beside all", {
            let Pipeline { output: Output::Sorted { rows, order }, .. } = sorted(&table) else { unreachable!() };
            let order = Order { skip: 10_000, fetch: Some(90_000), ..order };
            let Pipeline { mut steps, output, .. } = joined(&table);
            if let Step::Join(join) = &mut steps[0] {
                join.kind = JoinKind::Right;
            }
            Pipeline { steps, output, ..read_back(scan(&table, Output::Sorted { rows, order })) }
        }),
    ] {
        let types = pipeline.output_types();
        let text = |row: &Vec<Scalar>| format!("{row:?}");
        for bytes in [1 << 20, 4 << 20] {
            let small = Small::new(bytes);
            let memory: Arc<dyn Memory> = Arc::clone(&small) as _;
            let run = pipeline.clone().start()?;
            run.prepare(2, &memory)?;
            let mut found = rows_of_run(&run, &types, if name == "sort" { 1 } else { 2 })?;
            drop(run);
            assert!(small.files.files.load(Ordering::Relaxed) > 0, "{name} fits {bytes} bytes");
            assert_eq!(small.limited.left(), bytes, "{name} gives back what it took");
            if name == "sort" {
                assert!(found.is_sorted_by_key(|row| if let Scalar::Int(number) = row[0] { -number } else { 0 }));
            }
            let mut wanted = rows_of(pipeline.clone(), &types, 2)?;
            found.sort_by_cached_key(text);
            wanted.sort_by_cached_key(text);
            assert!(found == wanted, "other {name} with {bytes} bytes");
        }
    }
    Ok(())
}

#[test]
fn what_no_parting_helps_is_refused() {
    let one: ArrayRef = Arc::new((0..ROWS).map(|_| 7).collect::<Int64Array>());
    let texts: ArrayRef = Arc::new((0..ROWS).map(|row| Some(format!("row {row}"))).collect::<StringArray>());
    let columns_of_one = [(one, LogicalType::Int64), (texts, LogicalType::Utf8)];
    let table = Arc::new(MemoryTable::new(&columns_of_one, 20_000, &[Choice::Auto, Choice::Auto]));
    let build = Box::new(scan(&table, Output::Rows(columns(&[0, 1]))));
    let join = Join { kind: JoinKind::Inner, build, keys: columns(&[0]), nulls_are_equal: false, condition: None };
    let pipeline = Pipeline { steps: vec![Step::Join(join)], ..scan(&table, Output::Rows(columns(&[2]))) };
    let small = Small::new(1 << 20);
    let memory: Arc<dyn Memory> = Arc::clone(&small) as _;
    let refused = rows_within(pipeline, &[LogicalType::Utf8], 2, &memory);
    assert!(matches!(refused, Err(Error::OutOfMemory(_))), "all rows have one key");
    assert_eq!(small.limited.left(), 1 << 20);
}

#[test]
fn what_has_no_file_is_refused() {
    let table = self::table();
    for pipeline in [grouped(&table), grouped_by_sets(&table)] {
        let memory: Arc<dyn Memory> = Arc::new(Limited::new(1 << 20));
        let refused = pipeline.start().expect("ours").gathered(2, &memory);
        assert!(matches!(&refused, Err(Error::OutOfMemory(why)) if why == "enough"), "{refused:?}");
    }
}

/// Little memory, and files that fail after so many calls.
#[derive(Debug)]
struct Failing {
    calls_left: AtomicUsize,
    small: Arc<Small>,
}

#[derive(Debug)]
struct FailingFile {
    memory: Arc<Failing>,
    file: Arc<dyn SpillFile>,
}

impl FailingFile {
    fn check(&self) -> Result<()> {
        let left = &self.memory.calls_left;
        let more = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        more.map(drop).map_err(|_| Error::Source("no space left on device".into()))
    }
}

impl SpillFile for FailingFile {
    fn append(&self, bytes: &[u8]) -> Result<u64> {
        self.check()?;
        self.file.append(bytes)
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        self.check()?;
        self.file.read(offset, bytes)
    }

    fn compression(&self) -> SpillCompression {
        self.file.compression()
    }
}

#[derive(Debug)]
struct FailingMemory(Arc<Failing>);

impl Memory for FailingMemory {
    fn grow(&self, bytes: usize) -> Result<()> {
        self.0.small.grow(bytes)
    }

    fn shrink(&self, bytes: usize) {
        self.0.small.shrink(bytes);
    }

    fn spill_file(&self) -> Result<Option<Arc<dyn SpillFile>>> {
        let file = self.0.small.spill_file()?;
        Ok(file.map(|file| Arc::new(FailingFile { memory: Arc::clone(&self.0), file }) as Arc<dyn SpillFile>))
    }
}

#[test]
fn a_file_that_fails_ends_the_query() {
    let table = table();
    let mut failed = 0;
    let [groups, sets, sorted] = [grouped(&table), grouped_by_sets(&table), sorted(&table)].map(read_back);
    for pipeline in [groups, sets, sorted, joined(&table)] {
        let types = pipeline.output_types();
        for calls in [0, 1, 10, 60, 100_000] {
            let failing = Arc::new(Failing { calls_left: AtomicUsize::new(calls), small: Small::new(1 << 20) });
            let memory: Arc<dyn Memory> = Arc::new(FailingMemory(Arc::clone(&failing)));
            match rows_within(pipeline.clone(), &types, 2, &memory) {
                Ok(_) => assert_eq!(calls, 100_000),
                Err(error) => {
                    assert!(error.to_string().contains("no space left"), "{error}");
                    failed += 1;
                }
            }
            assert_eq!(failing.small.limited.left(), 1 << 20, "what was held is given back");
        }
    }
    assert!(failed >= 9, "{failed} queries failed");
}

#[test]
fn rows_that_are_passed_over_can_be_cancelled() -> Result<()> {
    let Pipeline { output: Output::Sorted { rows, order }, .. } = sorted(&table()) else { unreachable!() };
    let order = Order { skip: ROWS as usize - 1, ..order };
    let run = scan(&table(), Output::Sorted { rows, order }).start()?;
    let memory: Arc<dyn Memory> = Small::new(1 << 20);
    let gathered = run.gathered(2, &memory)?;
    run.cancel();
    assert!(matches!(Reader::new(gathered), Err(Error::Cancelled)));
    Ok(())
}

#[test]
fn a_query_that_spills_can_be_cancelled() {
    let table = table();
    for pipeline in [read_back(grouped(&table)), read_back(grouped_by_sets(&table)), joined(&table)] {
        let small = Small::new(1 << 20);
        let memory: Arc<dyn Memory> = Arc::clone(&small) as _;
        let run = pipeline.start().expect("ours");
        let cancelled = std::thread::scope(|scope| {
            let prepared = scope.spawn(|| run.prepare(2, &memory));
            while small.files.files.load(Ordering::Relaxed) == 0 && !prepared.is_finished() {
                std::thread::yield_now();
            }
            run.cancel();
            prepared.join().expect("no panic")
        });
        assert!(matches!(cancelled, Err(Error::Cancelled)), "{cancelled:?}");
        drop(run);
        assert_eq!(small.limited.left(), 1 << 20);
    }
}
