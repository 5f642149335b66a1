//! docs/format/table.md says what the code writes: its tables name the tags, and the bytes of its examples are written
//! here anew.

use arrow::array::{ArrayRef, Int32Array, RecordBatch};
use sinter_codec::{BlockStats, Scalar};
use sinter_column::wire::{Reader, Writer};
use sinter_column::{Change, ColumnSchema, ColumnTable, TableSchema};
use sinter_exec::{Field, LogicalType, TimeUnit};
use sinter_storage::testing::CrashingFileSystem;
use sinter_storage::{ObjectId, Options, Record, RecordTag, Store};
use std::path::Path;
use std::sync::Arc;

const PATH: &str = "shop.sinter";

fn page(name: &str) -> String {
    let path = format!("{}/../../docs/format/{name}.md", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn bytes_of(hex: &str) -> Vec<u8> {
    hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).expect("two hex digits")).collect()
}

/// The first block of hex below a heading; what follows two spaces on a line is explanation.
fn example(name: &str, heading: &str) -> Vec<u8> {
    let text = page(name);
    let below = text.split(&format!("\n## {heading}\n")).nth(1);
    let below = below.unwrap_or_else(|| panic!("{name} has no heading '{heading}'"));
    let section = below.split("\n## ").next().unwrap_or_default();
    let block = section.split("```hex\n").nth(1).unwrap_or_else(|| panic!("'{heading}' of {name} has no example"));
    let lines = block.split("```").next().unwrap_or_default().lines();
    lines.flat_map(|line| bytes_of(line.split("  ").next().unwrap_or_default())).collect()
}

/// The rows of the table whose header line begins with these cells; without backquotes.
fn table(name: &str, header: &str) -> Vec<Vec<String>> {
    let text = page(name);
    let rest = text.split(header).nth(1).unwrap_or_else(|| panic!("{name} has no table {header}"));
    let rows = rest.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

fn written(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer::default();
    write(&mut writer);
    writer.into_bytes()
}

/// The type's name on the page. A new type has no name here until somebody gives it one, and a row.
fn name_of(ty: &LogicalType) -> &'static str {
    match ty {
        LogicalType::Boolean => "boolean",
        LogicalType::Int8 => "int8",
        LogicalType::Int16 => "int16",
        LogicalType::Int32 => "int32",
        LogicalType::Int64 => "int64",
        LogicalType::UInt8 => "uint8",
        LogicalType::UInt16 => "uint16",
        LogicalType::UInt32 => "uint32",
        LogicalType::UInt64 => "uint64",
        LogicalType::Float32 => "float32",
        LogicalType::Float64 => "float64",
        LogicalType::Decimal { .. } => "decimal",
        LogicalType::Date => "date",
        LogicalType::Time(_) => "time",
        LogicalType::Timestamp(..) => "timestamp",
        LogicalType::Interval => "interval",
        LogicalType::Utf8 => "utf8",
        LogicalType::Binary => "binary",
        LogicalType::Uuid => "uuid",
        LogicalType::List(_) => "list",
        LogicalType::Struct(_) => "struct",
    }
}

fn field(name: &str, ty: LogicalType) -> Field {
    Field { name: name.to_owned(), ty, nullable: true }
}

#[test]
fn every_type_has_its_row() {
    let types = [
        LogicalType::Boolean,
        LogicalType::Int8,
        LogicalType::Int16,
        LogicalType::Int32,
        LogicalType::Int64,
        LogicalType::UInt8,
        LogicalType::UInt16,
        LogicalType::UInt32,
        LogicalType::UInt64,
        LogicalType::Float32,
        LogicalType::Float64,
        LogicalType::Decimal { precision: 12, scale: 2 },
        LogicalType::Date,
        LogicalType::Time(TimeUnit::Nanosecond),
        LogicalType::Timestamp(TimeUnit::Microsecond, Some(Arc::from("UTC"))),
        LogicalType::Interval,
        LogicalType::Utf8,
        LogicalType::Binary,
        LogicalType::Uuid,
        LogicalType::List(Arc::new(field("x", LogicalType::Int32))),
        LogicalType::Struct(Arc::from([field("a", LogicalType::Utf8)])),
    ];
    let rows = table("table", "| tag | type | after the tag | kept as | example |");
    assert_eq!(rows.len(), types.len());
    for (row, ty) in rows.iter().zip(&types) {
        let bytes = written(|out| out.logical_type(ty));
        assert_eq!((&row[0], &row[1][..]), (&bytes[0].to_string(), name_of(ty)));
        assert_eq!(row[4], hex(&bytes), "{}", row[1]);
        assert_eq!(&Reader::new("type", &bytes).logical_type().unwrap(), ty);
        let kept = ty.physical().map_or("tree of blocks", |physical| physical.name());
        assert!(row[3].contains(kept), "{} is kept as {kept}", row[1]);
    }
}

#[test]
fn schema() {
    let column = |name: &str, ty: LogicalType| ColumnSchema {
        name: name.to_owned(),
        ty,
        nullable: true,
        compression: None,
        default: None,
    };
    let schema = TableSchema {
        columns: vec![
            ColumnSchema { nullable: false, ..column("id", LogicalType::Int64) },
            ColumnSchema {
                compression: Some("dict".to_owned()),
                default: Some("'x'".to_owned()),
                ..column("b", LogicalType::Utf8)
            },
        ],
        options: vec![("layout".to_owned(), "dsm".to_owned())],
    };
    let bytes = written(|out| schema.write(out));
    assert_eq!(hex(&example("table", "A schema")), hex(&bytes));
    assert_eq!(TableSchema::read(&mut Reader::new("schema", &bytes)).unwrap(), schema);
}

#[test]
fn statistics() {
    let stats = BlockStats {
        value_count: 3,
        null_count: 1,
        min: Scalar::Int(5),
        max: Scalar::Int(7),
        bounds_exact: true,
        has_nan: false,
        sum: Some(12),
        distinct_estimate: 2,
        sorted: true,
        plain_bytes: 12,
    };
    let bytes = written(|out| out.stats(&stats));
    assert_eq!(hex(&example("table", "Statistics")), hex(&bytes));
    assert_eq!(Reader::new("stats", &bytes).stats().unwrap(), stats);

    let scalars = [Scalar::Null, Scalar::Int(-2), Scalar::Float(1.5), Scalar::Bytes(b"ab".to_vec())];
    let rows = table("table", "| tag | scalar | after the tag | example |");
    assert_eq!(rows.len(), scalars.len());
    for (row, scalar) in rows.iter().zip(&scalars) {
        let bytes = written(|out| out.scalar(scalar));
        assert_eq!((&row[0], &row[3]), (&bytes[0].to_string(), &hex(&bytes)));
    }
}

/// Table 1 of a database on a disk in memory: one column `a INTEGER`.
fn one_column(disk: &CrashingFileSystem, scheme: &str) -> (Arc<Store>, Arc<ColumnTable>) {
    let (store, _) = Store::open(Arc::new(disk.clone()), Path::new(PATH), Options::default()).unwrap();
    let column = ColumnSchema {
        name: "a".to_owned(),
        ty: LogicalType::Int32,
        nullable: true,
        compression: Some(scheme.to_owned()),
        default: None,
    };
    let schema = TableSchema { columns: vec![column], options: Vec::new() };
    let store = Arc::new(store);
    let table = ColumnTable::create(ObjectId(1), "t", Arc::new(schema), Arc::clone(&store));
    (store, Arc::new(table))
}

fn insert(store: &Store, table: &Arc<ColumnTable>, values: impl IntoIterator<Item = Option<i32>>) {
    let values: Int32Array = values.into_iter().collect();
    let mut change = Change::new(table, 1);
    change.insert(&RecordBatch::try_from_iter([("a", Arc::new(values) as ArrayRef)]).unwrap()).unwrap();
    Change::commit(store, Vec::new(), vec![change]).unwrap();
}

fn delete(store: &Store, table: &Arc<ColumnTable>, row_ids: Vec<u64>) {
    let mut change = Change::new(table, 1);
    change.delete(row_ids).unwrap();
    Change::commit(store, Vec::new(), vec![change]).unwrap();
}

/// The records that the log holds, as the next opening finds them.
fn records(disk: &CrashingFileSystem) -> Vec<Record> {
    let (_, recovery) = Store::open(Arc::new(disk.clone()), Path::new(PATH), Options::default()).unwrap();
    recovery.transactions.flat_map(|transaction| transaction.unwrap().records).collect()
}

#[test]
fn log_records() {
    let disk = CrashingFileSystem::new();
    let (store, table) = one_column(&disk, "constant");
    insert(&store, &table, [Some(5), None, Some(7)]);
    delete(&store, &table, vec![1]);
    insert(&store, &table, [Some(7); 1024]);
    drop((store, table));
    let records = records(&disk);
    let expected = [
        (RecordTag::ROWS_INSERTED, "Log record 18: rows inserted"),
        (RecordTag::ROWS_DELETED, "Log record 19: rows deleted"),
        (RecordTag::ROW_GROUPS_ATTACHED, "Log record 20: row groups attached"),
    ];
    assert_eq!(records.len(), expected.len());
    for (record, (tag, heading)) in records.iter().zip(expected) {
        assert_eq!((record.tag, record.object), (tag, ObjectId(1)));
        assert_eq!(heading, format!("Log record {}: {tag}", tag.0));
        assert_eq!(hex(&example("table", heading)), hex(&record.payload), "{heading}");
    }
}

#[test]
fn table_root() {
    let disk = CrashingFileSystem::new();
    let (store, table) = one_column(&disk, "raw");
    insert(&store, &table, [Some(5), None, Some(7)]);
    table.press(1).unwrap();
    delete(&store, &table, vec![1]);
    table.press(1).unwrap();
    assert_eq!(hex(&example("table", "The table root")), hex(&table.root_bytes().unwrap()));
}
