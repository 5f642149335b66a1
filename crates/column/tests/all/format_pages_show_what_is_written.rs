//! docs/format/table.md says what the code writes: its tables name the tags, and the bytes of its examples are written
//! here anew.

use crate::support;
use crate::support::{Shop, batch, column, open};
use arrow::array::Int32Array;
use sinter_codec::{BlockStats, Scalar};
use sinter_column::wire::{Reader, Writer};
use sinter_column::{Alteration, Check, ColumnSchema, ColumnTable, Index, IndexRule, TableSchema};
use sinter_exec::{Field, LogicalType, TimeUnit};
use sinter_storage::testing::CrashingFileSystem;
use sinter_storage::{ObjectId, PageKind, Record, RecordTag};
use std::sync::Arc;

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
        version: 3,
        checks: vec![Check { name: Some("c".to_owned()), sql: "id > 0".to_owned() }],
        indexes: Vec::new(),
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
fn one_column(disk: &CrashingFileSystem, scheme: &str) -> Shop {
    let column = ColumnSchema { compression: Some(scheme.to_owned()), ..column("a", LogicalType::Int32) };
    Shop::new(open(disk).0, support::schema(vec![column]))
}

fn insert(shop: &mut Shop, values: impl IntoIterator<Item = Option<i32>>) {
    let values: Int32Array = values.into_iter().collect();
    shop.insert(&batch("a", Arc::new(values))).unwrap();
}

/// The records that the log holds, as the next opening finds them.
fn records(disk: &CrashingFileSystem) -> Vec<Record> {
    open(disk).1
}

#[test]
fn log_records() {
    let disk = CrashingFileSystem::new();
    let mut shop = one_column(&disk, "constant");
    insert(&mut shop, [Some(5), None, Some(7)]);
    shop.delete(vec![1]);
    insert(&mut shop, [Some(7); 1024]);
    drop(shop);
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
    let mut shop = one_column(&disk, "raw");
    insert(&mut shop, [Some(5), None, Some(7)]);
    shop.press();
    shop.delete(vec![1]);
    insert(&mut shop, [Some(9)]);
    assert_eq!(hex(&example("table", "The table root")), hex(&shop.table.root_bytes().unwrap()));
}

/// A root and a schema as version 0.1 wrote them.
#[test]
fn the_first_version_is_read() {
    let disk = CrashingFileSystem::new();
    let mut shop = one_column(&disk, "raw");
    insert(&mut shop, [Some(5), None, Some(7)]);
    shop.press();
    shop.delete(vec![1]);
    let mut root = bytes_of(
        "01 03 00 00 00 00 00 00 00 01 00 00 00 03 00 00 00 00 00 00 00 00 00 00 00 00 01 20 00 00 00 b1 08 6d 00 20 00 00 \
         00 01 00 00 00 01 00 00 00 02 01 01 08 01 00 00 00 04 00 00 00 01 00 00 00 01 00 00 00 01 00 00 00 00 00 00 00 \
         00 00 00 00 2e 00 00 00 01 03 00 00 00 01 00 00 00 0d 01 05 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 01 07 \
         00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 0c 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 02 00 00 00 0c 00 \
         00 00 00 00 00 00",
    );
    let load = |root: &[u8]| {
        let page = shop.store.write_page(PageKind::TABLE_ROOT, root).unwrap();
        ColumnTable::load(ObjectId(1), "t", Arc::clone(shop.table.schema()), Arc::clone(&shop.store), page)
    };
    let loaded = load(&root).unwrap();
    assert_eq!(support::rows(&loaded), support::rows(&*shop.table));
    assert_eq!(loaded.root_bytes().unwrap(), shop.table.root_bytes().unwrap());
    root[0] = 3;
    let error = load(&root).unwrap_err().to_string();
    assert_eq!(error, "table 't': byte 1: table root of version 3; this SinterDB reads 1 to 2, a newer one wrote it");

    let bytes = example("table", "A schema");
    let schema = TableSchema::read(&mut Reader::new("schema", &bytes)).unwrap();
    let first = TableSchema::read_v1(&mut Reader::new("schema", &bytes[1..])).unwrap();
    assert_eq!(first, TableSchema { version: 0, checks: Vec::new(), ..schema });
    let error = TableSchema::read(&mut Reader::new("schema", &[4])).unwrap_err().to_string();
    let what = "schema of version 4; this SinterDB reads 2 and 3 here, a newer one wrote it";
    assert_eq!(error, format!("table 'schema': byte 1: {what}"));

    // One with indexes comes back, and not from a part of its bytes.
    let index =
        |name: &str, rule| Index { name: name.to_owned(), columns: vec!["b".to_owned()], rule, tree: ObjectId(7) };
    let indexes = vec![index("i", IndexRule::Any), index("u", IndexRule::Unique), index("p", IndexRule::Primary)];
    let indexed = TableSchema { indexes, ..TableSchema::new(vec![column("b", LogicalType::Utf8)]) };
    let mut out = Writer::default();
    indexed.write(&mut out);
    let bytes = out.into_bytes();
    assert_eq!(TableSchema::read(&mut Reader::new("schema", &bytes)).unwrap(), indexed);
    for len in 0..bytes.len() {
        TableSchema::read(&mut Reader::new("schema", &bytes[..len])).unwrap_err();
    }
}

/// An inline segment is checked when the root is read, for no page's checksum covers it in memory.
#[test]
fn a_damaged_inline_segment_is_found_at_once() {
    let disk = CrashingFileSystem::new();
    let mut shop = one_column(&disk, "raw");
    insert(&mut shop, [Some(5), None, Some(7)]);
    let root = shop.table.root_bytes().unwrap();
    for at in 0..root.len() {
        for flip in [1, 0x80, 0xff] {
            let mut root = root.clone();
            root[at] ^= flip;
            let page = shop.store.write_page(PageKind::TABLE_ROOT, &root).unwrap();
            let schema = Arc::clone(shop.table.schema());
            // Whatever it is: an error or a table, and no panic.
            let _ = ColumnTable::load(ObjectId(1), "t", schema, Arc::clone(&shop.store), page);
        }
        let page = shop.store.write_page(PageKind::TABLE_ROOT, &root[..at]).unwrap();
        let schema = Arc::clone(shop.table.schema());
        ColumnTable::load(ObjectId(1), "t", schema, Arc::clone(&shop.store), page).unwrap_err();
    }
}

#[test]
fn alterations() {
    let disk = CrashingFileSystem::new();
    let mut shop = one_column(&disk, "raw");
    let named = |name: &str| name.to_owned();
    let check = Check { name: Some(named("p")), sql: named("c > 0") };
    let index = Index { name: named("i"), columns: vec![named("c")], rule: IndexRule::Unique, tree: ObjectId(9) };
    for alteration in [
        Alteration::AddColumn { column: column("b", LogicalType::Utf8), fill: None },
        Alteration::DropColumn { name: named("b") },
        Alteration::RenameColumn { from: named("a"), to: named("c") },
        Alteration::SetNullable { column: named("c"), nullable: false },
        Alteration::SetDefault { column: named("c"), default: Some(named("7")) },
        Alteration::AddCheck { check },
        Alteration::DropCheck { name: named("p") },
        Alteration::AddIndex { index, of_rows: true },
        Alteration::DropIndex { name: named("i") },
    ] {
        shop.alter(alteration).unwrap();
    }
    drop(shop);
    let rows = table("table", "| kind | alteration | after the kind | example |");
    let records = records(&disk);
    assert_eq!(rows.len(), records.len());
    for (row, record) in rows.iter().zip(records) {
        assert_eq!(record.tag, RecordTag::TABLE_ALTERED);
        assert_eq!((&row[0], &row[3]), (&record.payload[4].to_string(), &hex(&record.payload)), "{}", row[1]);
    }
    assert!(page("table").contains(&format!(
        "\n## Log record {}: {}\n",
        RecordTag::TABLE_ALTERED.0,
        RecordTag::TABLE_ALTERED
    )));
}
