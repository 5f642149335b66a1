//! `layout = 'dsm'` keeps a column's segments together, `layout = 'pax'` those of the same rows.

use crate::support::{Shop, column, rows};
use arrow::array::{ArrayRef, Int64Array, RecordBatch};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinter_column::*;
use sinter_exec::LogicalType;
use std::collections::BTreeSet;
use std::sync::Arc;

const COLUMNS: [&str; 3] = ["a", "b", "c"];

fn table(layout: Option<&str>, rows: usize, noise: bool) -> Shop {
    let columns = COLUMNS.map(|name| column(name, LogicalType::Int64)).to_vec();
    let options = layout.map(|layout| ("layout".to_owned(), layout.to_owned())).into_iter().collect();
    let schema = TableSchema { columns, options, ..TableSchema::default() };
    schema.validate().unwrap();
    let mut shop = Shop::memory(Arc::new(schema));
    let mut random = SmallRng::seed_from_u64(1);
    let arrays = COLUMNS.map(|name| {
        let value = |row: usize| if noise { random.random() } else { row as i64 % 5000 };
        (name, Arc::new(Int64Array::from_iter_values((0..rows).map(value))) as ArrayRef, true)
    });
    shop.insert(&RecordBatch::try_from_iter_with_nullable(arrays).unwrap()).unwrap();
    shop
}

/// For each row group the chunks that it is in.
fn chunks(shop: &Shop) -> Vec<BTreeSet<u64>> {
    let groups = shop.table.groups().iter();
    groups.map(|entry| entry.group.pages().map(|page| page.id().0).collect()).collect()
}

#[test]
fn large_row_groups() {
    let rows = 5 * 131_072;
    for layout in [None, Some("dsm")] {
        let chunks = chunks(&table(layout, rows, true));
        assert!(chunks.iter().all(|chunks| chunks.len() == 3), "{chunks:?}");
    }
    // Three columns of 1 MiB: one chunk for each row group, and none for two.
    let shop = table(Some("pax"), rows, true);
    let found = chunks(&shop);
    assert!(found.iter().all(|chunks| chunks.len() == 1), "{found:?}");
    assert_eq!(found.iter().flatten().collect::<BTreeSet<_>>().len(), 5);
    shop.assert_no_page_is_lost();
}

#[test]
fn small_row_groups_share_a_chunk() {
    let shop = table(Some("pax"), 12 * 131_072, false);
    let found = chunks(&shop);
    assert!(found.iter().all(|chunks| chunks.len() == 1), "{found:?}");
    let all: BTreeSet<u64> = found.iter().flatten().copied().collect();
    assert!(all.len() < 8, "{found:?}");
    let other = table(None, 12 * 131_072, false);
    assert_eq!(rows(&*shop.table), rows(&*other.table));
}

#[test]
fn other_layouts_are_refused() {
    let options = vec![("layout".to_owned(), "spiral".to_owned())];
    let schema = TableSchema { options, ..TableSchema::default() };
    assert_eq!(schema.validate().unwrap_err().to_string(), "layout 'spiral' is unknown; there are 'dsm' and 'pax'");
}
