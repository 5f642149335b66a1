//! However many threads press the row groups of a load, the same bytes come of it, in the same order, or the same error.

use crate::support::{Rows, Shop, column, rows, text};
use arrow::array::{ArrayRef, Decimal128Array, Int64Array, ListArray, RecordBatch, StringArray, StructArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Int64Type};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinter_codec::ROW_GROUP_LEN;
use sinter_column::*;
use sinter_exec::{TableSource, edge};
use std::ops::Range;
use std::sync::Arc;

/// Rows of a full row group.
const FULL: i64 = ROW_GROUP_LEN as i64;

/// Columns by name.
type Columns = Vec<(&'static str, ArrayRef)>;

/// So many rows, as batches of what `columns` makes of a range of them.
fn batches(row_count: i64, columns: impl Fn(Range<i64>, &mut SmallRng) -> Columns) -> Vec<RecordBatch> {
    let mut random = SmallRng::seed_from_u64(7);
    let firsts = (0..row_count).step_by(50_000);
    let batch = |first: i64| columns(first..row_count.min(first + 50_000), &mut random);
    firsts.map(batch).map(|columns| RecordBatch::try_from_iter(columns).unwrap()).collect()
}

/// Numbers in order and in none, few texts and many; some numbers are NULL.
fn numbers_and_texts(rows: Range<i64>, random: &mut SmallRng) -> Columns {
    let count = (rows.end - rows.start) as usize;
    // More of them as time goes on: what encoders know of a dictionary counts.
    let kinds = 3 + rows.start / 100_000;
    let ordered: Int64Array = rows.map(|value| (value % 11 != 0).then_some(value)).collect();
    let scattered: Int64Array = (0..count).map(|_| Some(random.random_range(0..1i64 << 40))).collect();
    let few: StringArray = (0..count).map(|_| Some(format!("kind {}", random.random_range(0..kinds)))).collect();
    let many: StringArray = (0..count).map(|_| Some(format!("no. {} of them", random.random::<u32>()))).collect();
    vec![
        ("ordered", Arc::new(ordered)),
        ("scattered", Arc::new(scattered)),
        ("few", Arc::new(few)),
        ("many", Arc::new(many)),
    ]
}

/// Without rows, for such ones.
fn shop(batches: &[RecordBatch], layout: &str) -> Shop {
    let fields = batches[0].schema_ref().fields().iter();
    let columns = fields.map(|field| column(field.name(), edge::logical_type(field.data_type()).unwrap())).collect();
    let options = vec![("layout".to_owned(), layout.to_owned())];
    Shop::memory(Arc::new(TableSchema { columns, options, ..TableSchema::default() }))
}

/// A transaction that is a load.
fn load(shop: &mut Shop, batches: &[RecordBatch], threads: usize) -> Result<()> {
    let mut draft = shop.draft();
    let mut change = Change::on(&draft, threads);
    batches.iter().try_for_each(|batch| change.insert(batch))?;
    draft.take(change.finish()?);
    shop.commit(draft).map(drop)
}

fn loaded(batches: &[RecordBatch], layout: &str, threads: usize) -> Shop {
    let mut shop = shop(batches, layout);
    load(&mut shop, batches, threads).unwrap();
    shop
}

/// Loads the rows on one thread and on several, and holds the segments against each other; so many row groups come of it.
/// Returns the rows of the table.
fn the_same(batches: &[RecordBatch], layout: &str, groups: usize) -> Rows {
    let one = loaded(batches, layout, 1);
    let columns = one.table.schema().columns.len();
    assert_eq!(one.table.group_count(), groups);
    for threads in [2, 3, 16] {
        let other = loaded(batches, layout, threads);
        assert_eq!(other.table.group_count(), groups);
        for (group, column) in (0..groups).flat_map(|group| (0..columns).map(move |column| (group, column))) {
            let segment = |shop: &Shop| shop.table.segment(group, column).unwrap().to_vec();
            assert!(segment(&one) == segment(&other), "{threads} threads, row group {group}, column {column}");
        }
        other.assert_no_page_is_lost();
    }
    rows(&*one.table)
}

/// The rows of a table are those of some batches, one after the other.
fn assert_rows<'a>(rows: Rows, batches: impl IntoIterator<Item = &'a RecordBatch>) {
    let mut rows = rows.into_iter();
    for batch in batches {
        for row in 0..batch.num_rows() {
            let expected: Vec<_> = batch.columns().iter().map(|array| text(array, row)).collect();
            let (id, found) = rows.next().expect("as many rows");
            assert_eq!(found, expected, "row {id}");
        }
    }
    assert!(rows.next().is_none(), "more rows");
}

#[test]
fn segments_are_the_same() {
    // Row groups for every lane, more of them than there may be at a time, and a rest.
    let row_count = 11 * FULL + 5000;
    let batches = batches(row_count, numbers_and_texts);
    assert_eq!(the_same(&batches, "dsm", 12).len(), row_count as usize);
}

#[test]
fn segments_of_rows_that_share_chunks_are_the_same() {
    let batches = batches(3 * FULL + 5000, numbers_and_texts);
    assert_rows(the_same(&batches, "pax", 4), &batches);
}

/// All lanes begin with what the first row group came to, which is nothing here.
#[test]
fn a_first_row_group_without_different_values_says_nothing_of_the_next_ones() {
    let columns = |rows: Range<i64>, random: &mut SmallRng| -> Columns {
        let is_later = |row: i64| row >= FULL;
        let mut number = |row: i64| is_later(row).then(|| random.random_range(0..1i64 << 40));
        let null: Int64Array = rows.clone().map(&mut number).collect();
        let equal: Int64Array = rows.clone().map(|row| Some(number(row).unwrap_or(7))).collect();
        let kind = |row: i64| is_later(row).then(|| format!("kind {}", row * 7919 % 5));
        let null_text: StringArray = rows.clone().map(kind).collect();
        let equal_text: StringArray = rows.map(|row| Some(kind(row).unwrap_or_default())).collect();
        vec![
            ("null", Arc::new(null)),
            ("equal", Arc::new(equal)),
            ("null text", Arc::new(null_text)),
            ("equal text", Arc::new(equal_text)),
        ]
    };
    let batches = batches(3 * FULL + 5000, columns);
    assert_rows(the_same(&batches, "dsm", 4), &batches);
}

#[test]
fn lists_and_structs_are_the_same() {
    let columns = |rows: Range<i64>, random: &mut SmallRng| -> Columns {
        let mut number = |row: i64| (row % 5 != 0).then(|| random.random_range(0..1000i64));
        let mut list = |row: i64| (row % 13 != 0).then(|| (row..row + row % 4).map(&mut number).collect::<Vec<_>>());
        let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(rows.clone().map(&mut list));
        // Without elements in the first row group.
        let late = rows.clone().map(|row| if row < FULL { Some(Vec::new()) } else { list(row) });
        let late = ListArray::from_iter_primitive::<Int64Type, _, _>(late);
        let kinds: StringArray = rows.clone().map(|row| Some(format!("kind {}", row * 7919 % 5))).collect();
        let numbers: Int64Array = rows.clone().map(number).collect();
        let fields = vec![Field::new("kind", DataType::Utf8, true), Field::new("number", DataType::Int64, true)];
        let present: Vec<bool> = rows.map(|row| row % 17 != 0).collect();
        let members: Vec<ArrayRef> = vec![Arc::new(kinds), Arc::new(numbers)];
        let structs = StructArray::new(fields.into(), members, Some(NullBuffer::from(present)));
        vec![("lists", Arc::new(lists)), ("late", Arc::new(late)), ("structs", Arc::new(structs))]
    };
    let batches = batches(3 * FULL + 5000, columns);
    assert_rows(the_same(&batches, "dsm", 4), &batches);
}

#[test]
fn a_load_that_is_given_up_leaves_no_page() {
    let batches = batches(5 * FULL, numbers_and_texts);
    for threads in [1, 2, 5] {
        let shop = shop(&batches, "dsm");
        let mut change = Change::new(&shop.table, threads);
        batches.iter().for_each(|batch| change.insert(batch).unwrap());
        drop(change);
        shop.assert_no_page_is_lost();
    }
}

/// Arrow does not hold decimals to the digits of their type. Pressing does, which comes upon one that is too large in a row
/// group behind the first, while more rows are read.
#[test]
fn a_load_that_cannot_be_pressed_leaves_the_table_as_it_was() {
    let decimals = |too_large: Option<i64>| {
        batches(5 * FULL, |rows, _| -> Columns {
            let value = |row: i64| if Some(row) == too_large { 12_345 } else { i128::from(row % 1000) };
            let values = Decimal128Array::from_iter_values(rows.clone().map(value));
            let numbers = Int64Array::from_iter_values(rows);
            vec![("a", Arc::new(numbers)), ("b", Arc::new(values.with_precision_and_scale(4, 0).unwrap()))]
        })
    };
    let (good, bad) = (decimals(None), decimals(Some(2 * FULL + 17)));
    for threads in [1, 2, 5] {
        let mut shop = shop(&good, "dsm");
        load(&mut shop, &good[..1], threads).unwrap();
        let error = load(&mut shop, &bad, threads).unwrap_err().to_string();
        assert!(error.starts_with("12345 (unscaled) is out of range for DECIMAL(4, 0)"), "{threads} threads: {error}");
        shop.assert_no_page_is_lost();
        assert_rows(rows(&*shop.table), &good[..1]);
        load(&mut shop, &good, threads).unwrap();
        shop.assert_no_page_is_lost();
        assert_rows(rows(&*shop.table), good[..1].iter().chain(&good));
    }
}
