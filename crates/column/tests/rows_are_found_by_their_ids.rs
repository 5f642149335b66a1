//! A set of row ids is looked at without the rest of the table.

mod support;

use arrow::array::{ArrayRef, Int64Array};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinter_column::*;
use sinter_exec::{LogicalType, TableSource};
use std::collections::BTreeSet;
use std::sync::Arc;
use support::{Rows, Shop, batch, column, rows, schema};

#[test]
fn whatever_they_are_and_wherever() {
    let mut random = SmallRng::seed_from_u64(7);
    let mut shop = Shop::memory(schema(vec![column("a", LogicalType::Int64)]));
    for round in 0..12 {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(round * 1000..round * 1000 + 400));
        shop.insert(&batch("a", numbers)).unwrap();
        let gone = (0..shop.table.next_row_id()).filter(|_| random.random_bool(0.1)).collect();
        shop.delete(gone);
        if round == 6 {
            shop.press();
        }
    }
    let (all, end) = (rows(&*shop.table), shop.table.next_row_id());
    for _ in 0..300 {
        let (mut set, mut ids) = (RowSet::default(), BTreeSet::new());
        for _ in 0..random.random_range(0..4) {
            let start = random.random_range(0..end + 10);
            let range = start..start + random.random_range(0..600);
            set.add_range(range.clone());
            ids.extend(range);
        }
        let listed: Vec<u64> = (0..random.random_range(0..10)).map(|_| random.random_range(0..end + 10)).collect();
        set.add_ids(&listed);
        ids.extend(listed);
        let expected: Rows =
            all.iter().filter(|(id, _)| ids.contains(id)).map(|(id, row)| (*id, row.clone())).collect();
        let found = shop.table.rows_of(&set);
        assert_eq!(rows(&found), expected, "{set:?}");
        assert_eq!(found.live_rows(), expected.len() as u64);
        assert!((0..found.group_count()).all(|group| found.group_rows(group) > 0));
        assert!(found.group_count() <= expected.len());
    }
    assert!(RowSet::default().is_empty());
    assert_eq!(shop.table.rows_of(&RowSet::default()).group_count(), 0);
}
