//! Every type and every awkward text survives the way out and back, in every format.

use super::{file, lines, options, read};
use crate::{ReadOptions, WriteOptions, create, open};
use arrow::array::*;
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::{DataType, Field, Int64Type, IntervalMonthDayNano, Schema, TimeUnit};
use arrow::record_batch::RecordBatch;
use std::sync::Arc;

/// One row of ordinary values, extremes, and a row of NULLs.
fn every_type() -> RecordBatch {
    let integers = |data_type: DataType, low: i64, high: i64| {
        cast(&(Arc::new(Int64Array::from(vec![Some(low), Some(high), None])) as ArrayRef), &data_type).unwrap()
    };
    let text = |values: [Option<&str>; 3], data_type: DataType| {
        cast(&(Arc::new(StringArray::from(values.to_vec())) as ArrayRef), &data_type).unwrap()
    };
    let times = [Some("1969-12-31T23:59:59.999999"), Some("2024-02-29T12:00:00.5"), None];
    let list = ListArray::from_iter_primitive::<Int64Type, _, _>(vec![Some(vec![Some(1), None]), Some(vec![]), None]);
    let fields = vec![Field::new("x", DataType::Int64, true), Field::new("y z", DataType::Utf8, true)];
    let x: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, None]));
    let y: ArrayRef = Arc::new(StringArray::from(vec![Some("a\"b"), Some(""), None]));
    let structs = StructArray::new(fields.into(), vec![x, y], Some(vec![true, true, false].into()));
    let mut uuids = FixedSizeBinaryBuilder::new(16);
    uuids.append_value([7; 16]).unwrap();
    uuids.append_value([0xAB; 16]).unwrap();
    uuids.append_null();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("bool", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None]))),
        ("i8", integers(DataType::Int8, -128, 127)),
        ("i16", integers(DataType::Int16, -32768, 32767)),
        ("i32", integers(DataType::Int32, i64::from(i32::MIN), i64::from(i32::MAX))),
        ("i64", integers(DataType::Int64, i64::MIN, i64::MAX)),
        ("u8", integers(DataType::UInt8, 0, 255)),
        ("u64", Arc::new(UInt64Array::from(vec![Some(u64::MAX), Some(0), None]))),
        ("f32", Arc::new(Float32Array::from(vec![Some(0.1), Some(f32::MIN_POSITIVE), None]))),
        ("f64", Arc::new(Float64Array::from(vec![Some(1e300), Some(-0.0), None]))),
        ("inf", Arc::new(Float64Array::from(vec![Some(f64::INFINITY), Some(f64::NEG_INFINITY), None]))),
        ("dec", text([Some("-123.45"), Some("0.01"), None], DataType::Decimal128(38, 2))),
        ("date", text([Some("0001-01-01"), Some("9999-12-31"), None], DataType::Date32)),
        ("time", text([Some("23:59:59.999999"), Some("00:00:00"), None], DataType::Time64(TimeUnit::Microsecond))),
        ("ts", text(times, DataType::Timestamp(TimeUnit::Microsecond, None))),
        ("ns", text(times, DataType::Timestamp(TimeUnit::Nanosecond, None))),
        ("tz", text(times, DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())))),
        (
            "iv",
            Arc::new(IntervalMonthDayNanoArray::from(vec![
                Some(IntervalMonthDayNano::new(14, 3, 1_500_000_001)),
                Some(IntervalMonthDayNano::new(-1, 2, -3_000_000_000)),
                None,
            ])),
        ),
        ("text", Arc::new(StringArray::from(vec![Some(""), Some("a,\"b\"\r\nü😀|\t;'\\ "), None]))),
        ("bin", Arc::new(BinaryArray::from(vec![Some(&[0u8, 255][..]), Some(&[][..]), None]))),
        ("uuid", Arc::new(uuids.finish())),
        ("list", Arc::new(list)),
        ("struct", Arc::new(structs)),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true))).unwrap()
}

#[test]
fn every_type_in_every_format() {
    let batch = every_type();
    let directory = tempfile::tempdir().unwrap();
    for name in ["t.csv", "t.tsv", "t.psv", "t.csv.gz", "t.jsonl", "t.json.zst", "t.parquet", "t.arrow"] {
        let path = directory.path().join(name);
        let mut writer = create(&path, batch.schema(), &WriteOptions::default()).unwrap();
        writer.write(&batch).unwrap();
        assert!(!path.exists(), "{name} must appear only when it is whole");
        assert_eq!(writer.finish().unwrap(), 3);
        let back: Vec<_> =
            open(&[path], &ReadOptions::default(), Some(batch.schema())).unwrap().map(Result::unwrap).collect();
        let back = concat_batches(&batch.schema(), &back).unwrap();
        for (index, field) in batch.schema().fields().iter().enumerate() {
            assert_eq!(back.column(index), batch.column(index), "{name}: {}", field.name());
        }
    }
}

#[test]
fn null_and_the_empty_string_differ() {
    let values = [Some(""), None, Some("NULL"), Some(" x"), Some("a\rb"), Some("\u{feff}"), None];
    for width in [1, 2] {
        let text: ArrayRef = Arc::new(StringArray::from(values.to_vec()));
        let columns = (0..width).map(|column| (format!("c{column}"), Arc::clone(&text), true));
        let batch = RecordBatch::try_from_iter_with_nullable(columns).unwrap();
        for (header, null) in [("true", ""), ("false", ""), ("true", "NULL")] {
            let (_keep, path) = file("n.csv", "");
            let mut settings = WriteOptions::default();
            settings.set("header", header).unwrap();
            settings.set("null", null).unwrap();
            let mut writer = create(&path, batch.schema(), &settings).unwrap();
            writer.write(&batch).unwrap();
            writer.finish().unwrap();
            let back: Vec<_> = open(&[path], &options(&[("null", null), ("header", header)]), Some(batch.schema()))
                .unwrap()
                .map(Result::unwrap)
                .collect();
            assert_eq!(
                concat_batches(&batch.schema(), &back).unwrap(),
                batch,
                "width {width} header {header} null {null:?}"
            );
        }
    }
}

#[test]
fn a_writer_that_is_dropped_leaves_the_old_file() {
    let (directory, path) = file("old.csv", "a\n1\n");
    let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int64, true)]));
    drop(create(&path, schema, &WriteOptions::default()).unwrap());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "a\n1\n");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn sniffing_reads_what_people_write() {
    let rows = |name: &str, text: &str, settings: &[(&str, &str)]| {
        let (_keep, path) = file(name, text);
        lines(&read(&path, &options(settings)).unwrap())
    };
    assert_eq!(rows("a.csv", "\u{feff}a;b\r\n1;\"x;y\"\r\n\r\n;\"\"\r\n\r\n", &[]), ["1|x;y", "∅|"]);
    assert_eq!(rows("a.csv", "n,z\nNA,01234\n5,1\n", &[]), ["∅|01234", "5|1"]);
    assert_eq!(rows("a.psv", "null|x\n5|null\n", &[("null", "null")]), ["∅|x", "5|∅"]);
    assert_eq!(rows("a.csv", "a\n1\n\n3\n", &[]), ["1", "∅", "3"]);
    assert_eq!(rows("a.csv", "d\n31/12/2024\n", &[("types", "d DATE"), ("dateformat", "%d/%m/%Y")]), ["2024-12-31"]);
    assert_eq!(rows("a.tbl", "1|x|\n2|y|\n", &[]), ["1|x", "2|y"]);
    assert_eq!(rows("a.json", "[{\"a\":1},\n {\"b\":[1.5]}]", &[]), ["1|∅", "∅|[1.5]"]);
    assert_eq!(rows("a.json", "{\"a\":1}\n{\"a\":\"x\"}\n{\"a\":{\"b\":null}}", &[]), ["1", "x", "{\"b\":null}"]);
    assert_eq!(rows("a.csv", "1,2,3\n4\n5\n6,7\n", &[]), ["1,2,3", "4", "5", "6,7"]);
    let long = "x".repeat(9 << 20);
    assert_eq!(rows("a.csv", &format!("a,b\n1,{long}\n2,\"{long}\"\n"), &[]).len(), 2);
}
