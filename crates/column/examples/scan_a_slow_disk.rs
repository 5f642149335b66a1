//! How long a scan of a file takes on a slow disk, with read-ahead and without, beside its reading and its work alone; and
//! what the process held in memory at most, the load included.
//!
//! ```text
//! cargo run --release -p sinter-column --example scan_a_slow_disk [million rows [memory limit in MB]]
//! ```

use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use sinter_codec::{Bitmap, BlockStats, CompareOp, Scalar};
use sinter_column::{Change, ColumnSchema, ColumnTable, TableSchema};
use sinter_exec::{
    Aggregate, AggregateFunction, ArithmeticOp, Expr, LogicalType, Output, Pinned, Pipeline, RowIds, ScanColumn,
    TableSource,
};
use sinter_storage::testing::ThrottledFileSystem;
use sinter_storage::{FileSystem, ObjectId, Options, PageId, PageKind, RealFileSystem, RecordTag, Store};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const COLUMNS: usize = 4;
const THREADS: usize = 2;

/// The table, of which nobody says what will be read.
#[derive(Debug)]
struct Silent(ColumnTable);

impl TableSource for Silent {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn column_types(&self) -> &[LogicalType] {
        self.0.column_types()
    }
    fn column_name(&self, column: usize) -> &str {
        self.0.column_name(column)
    }
    fn group_count(&self) -> usize {
        self.0.group_count()
    }
    fn group_rows(&self, group: usize) -> usize {
        self.0.group_rows(group)
    }
    fn row_ids(&self, group: usize) -> RowIds {
        self.0.row_ids(group)
    }
    fn deleted(&self, group: usize) -> Option<Arc<Bitmap>> {
        self.0.deleted(group)
    }
    fn zone(&self, group: usize, column: usize) -> Option<&BlockStats> {
        self.0.zone(group, column)
    }
    fn segment(&self, group: usize, column: usize) -> sinter_exec::Result<Pinned> {
        self.0.segment(group, column)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let million_rows: i64 = std::env::args().nth(1).map_or(Ok(10), |rows| rows.parse())?;
    let megabytes: usize = std::env::args().nth(2).map_or(Ok(1000), |megabytes| megabytes.parse())?;
    let options = Options { memory_limit_bytes: megabytes * 1_000_000, ..Options::default() };
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("slow.sinter");
    let root = load(&path, million_rows, options)?;
    println!("{million_rows} million rows, {THREADS} threads, at most {} MB resident to load", peak_megabytes());
    let (_, work) = scan(&path, root, options, None, true)?;
    println!("a second scan, without a limit to the disk: {:.2} s", work.as_secs_f64());
    for per_second in [80, 350] {
        let limit = Some(per_second << 20);
        let (bytes, silent) = scan(&path, root, options, limit, false)?;
        let (_, ahead) = scan(&path, root, options, limit, true)?;
        let reading = bytes as f64 / (per_second << 20) as f64;
        println!(
            "{per_second} MiB/s: reading alone {reading:.2} s; without read-ahead {:.2} s, with {:.2} s",
            silent.as_secs_f64(),
            ahead.as_secs_f64()
        );
    }
    println!("at most {} MB resident, memory_limit {megabytes} MB", peak_megabytes());
    Ok(())
}

/// What the process held in memory at most, as Linux counts it; 0 elsewhere.
fn peak_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    peak.unwrap_or_default() * 1024 / 1_000_000
}

fn schema() -> Arc<TableSchema> {
    let column = |index| ColumnSchema {
        name: format!("c{index}"),
        ty: LogicalType::Int64,
        nullable: true,
        compression: None,
        default: None,
    };
    Arc::new(TableSchema { columns: (0..COLUMNS).map(column).collect(), ..TableSchema::default() })
}

/// Makes the file; returns the table's root.
fn load(path: &Path, million_rows: i64, options: Options) -> Result<PageId, Box<dyn std::error::Error>> {
    let (store, _) = Store::open(Arc::new(RealFileSystem), path, options)?;
    let store = Arc::new(store);
    let table = Arc::new(ColumnTable::create(ObjectId(1), "t", schema(), Arc::clone(&store)));
    let mut change = Change::new(&table, THREADS);
    let fields: Vec<Field> = (0..COLUMNS).map(|index| Field::new(format!("c{index}"), DataType::Int64, true)).collect();
    let arrow_schema = Arc::new(Schema::new(fields));
    for start in 0..million_rows * 10 {
        let noise =
            |row: i64, column: i64| ((row * 4 + column).wrapping_mul(0x9E37_79B9_7F4A_7C15u64 as i64) >> 40) & 0xFFFF;
        let array = |column: i64| -> ArrayRef {
            Arc::new((start * 100_000..(start + 1) * 100_000).map(|row| noise(row, column)).collect::<Int64Array>())
        };
        change.insert(&RecordBatch::try_new(Arc::clone(&arrow_schema), (0..COLUMNS as i64).map(array).collect())?)?;
    }
    let table = change.finish()?.table;
    let pages: Vec<PageId> = table.pages().into_iter().collect();
    store.commit(
        &[sinter_storage::Record { tag: RecordTag::ROW_GROUPS_ATTACHED, object: ObjectId(1), payload: Vec::new() }],
        &pages,
    )?;
    let mut root = None;
    store.close(|out| {
        let bytes = table.root_bytes().map_err(sinter_storage::Error::caller)?;
        root = Some(out.put(None, PageKind::TABLE_ROOT, &bytes)?);
        out.put(None, PageKind::CATALOG, b"root")
    })?;
    Ok(root.ok_or("the close wrote nothing")?)
}

/// Bytes read, and how long it took; without a limit to the disk the second time.
fn scan(
    path: &Path,
    root: PageId,
    options: Options,
    bytes_per_second: Option<u64>,
    is_ahead: bool,
) -> Result<(u64, Duration), Box<dyn std::error::Error>> {
    let disk: Arc<dyn FileSystem> = Arc::new(ThrottledFileSystem::new(Arc::new(RealFileSystem), bytes_per_second));
    let options = Options { read_only: true, ..options };
    let store = Arc::new(Store::open(disk, path, options)?.0);
    let table = ColumnTable::load(ObjectId(1), "t", schema(), Arc::clone(&store), root)?;
    let source: Arc<dyn TableSource> = if is_ahead { Arc::new(table) } else { Arc::new(Silent(table)) };
    let mut elapsed = Duration::ZERO;
    for _ in 0..1 + u32::from(bytes_per_second.is_none()) {
        let begun = Instant::now();
        pipeline(&source).start()?.aggregate(THREADS)?;
        elapsed = begun.elapsed();
    }
    Ok((store.budget().usage().counts.bytes_read, elapsed))
}

/// `sum(c0 * c1), sum(c2 * c3), ... WHERE c0 < 50000 AND c2 > 5000`.
fn pipeline(source: &Arc<dyn TableSource>) -> Pipeline {
    let ty = LogicalType::Int64;
    let column = |index| Box::new(Expr::Column(index));
    let compare =
        |op, index, value| Expr::Compare(op, column(index), Box::new(Expr::Literal(Scalar::Int(value), ty.clone())));
    let sum = |left, right| Aggregate {
        function: AggregateFunction::Sum,
        argument: Some(Expr::Arithmetic {
            op: ArithmeticOp::Multiply,
            left: column(left),
            right: column(right),
            ty: ty.clone(),
        }),
        filter: None,
        ty: ty.clone(),
    };
    Pipeline {
        source: sinter_exec::Source::Table(Arc::clone(source)),
        columns: (0..COLUMNS).map(ScanColumn::Table).collect(),
        filter: vec![compare(CompareOp::Less, 0, 50_000), compare(CompareOp::Greater, 2, 5_000)],
        output: Output::Aggregate(vec![sum(0, 1), sum(2, 3), sum(0, 3), sum(1, 2), sum(1, 3)]),
        steps: Vec::new(),
        limit: None,
        on_damage: sinter_exec::OnDamage::Fail,
    }
}
