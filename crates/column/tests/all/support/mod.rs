//! The least that the rooms above do around a table: one current value, commits one after the other.

use arrow::array::{Array, ArrayRef, RecordBatch};
use arrow::util::display::array_value_to_string;
use sinter_column::*;
use sinter_exec::{RowIds, TableSource, edge};
use sinter_storage::testing::CrashingFileSystem;
use sinter_storage::{ObjectId, Options, PageKind, Record, Store};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

pub(crate) const PATH: &str = "shop.sinter";
pub(crate) const TABLE: ObjectId = ObjectId(1);

pub(crate) fn open(disk: &CrashingFileSystem) -> (Arc<Store>, Vec<Record>) {
    let (store, recovery) = Store::open(Arc::new(disk.clone()), Path::new(PATH), Options::default()).unwrap();
    let records = recovery.transactions.flat_map(|transaction| transaction.unwrap().records).collect();
    (Arc::new(store), records)
}

pub(crate) fn schema(columns: Vec<ColumnSchema>) -> Arc<TableSchema> {
    Arc::new(TableSchema { columns, ..TableSchema::default() })
}

pub(crate) fn column(name: &str, ty: sinter_exec::LogicalType) -> ColumnSchema {
    ColumnSchema { name: name.to_owned(), ty, nullable: true, compression: None, default: None }
}

/// A database of one table.
pub(crate) struct Shop {
    pub(crate) store: Arc<Store>,
    pub(crate) table: Arc<ColumnTable>,
}

impl Shop {
    pub(crate) fn new(store: Arc<Store>, schema: Arc<TableSchema>) -> Shop {
        let table = Arc::new(ColumnTable::create(TABLE, "t", schema, Arc::clone(&store)));
        Shop { store, table }
    }

    pub(crate) fn memory(schema: Arc<TableSchema>) -> Shop {
        Shop::new(Arc::new(Store::memory()), schema)
    }

    /// The shop as the next opening finds it, and the records that made it.
    pub(crate) fn reopened(disk: &CrashingFileSystem, schema: Arc<TableSchema>) -> (Shop, Vec<Record>) {
        let (store, records) = open(disk);
        let mut table = ColumnTable::create(TABLE, "t", schema, Arc::clone(&store));
        records.iter().for_each(|record| table.apply(record).unwrap());
        (Shop { store, table: Arc::new(table) }, records)
    }

    pub(crate) fn draft(&self) -> Draft {
        Draft::new(Arc::clone(&self.table))
    }

    pub(crate) fn publish(&mut self, next: ColumnTable) {
        self.table = Arc::new(next);
    }

    pub(crate) fn commit(&mut self, draft: Draft) -> Result<Vec<Record>> {
        let rebased = draft.rebase(&self.table)?;
        self.store.commit(&rebased.records, &rebased.pages)?;
        let records = rebased.records;
        self.publish(rebased.table);
        Ok(records)
    }

    /// A transaction of one statement.
    pub(crate) fn change(&mut self, fill: impl FnOnce(&mut Change) -> Result<()>) -> Result<Vec<Record>> {
        let mut draft = self.draft();
        let mut change = Change::on(&draft, 2);
        fill(&mut change)?;
        draft.take(change.finish()?);
        self.commit(draft)
    }

    pub(crate) fn insert(&mut self, batch: &RecordBatch) -> Result<Vec<Record>> {
        self.change(|change| change.insert(batch))
    }

    pub(crate) fn delete(&mut self, row_ids: Vec<u64>) -> Vec<Record> {
        self.change(|change| change.delete(row_ids)).unwrap()
    }

    pub(crate) fn alter(&mut self, alteration: Alteration) -> Result<Vec<Record>> {
        let mut draft = self.draft();
        draft.alter(alteration)?;
        self.commit(draft)
    }

    /// Publishes a rewrite, if the table is still one that it fits.
    pub(crate) fn rewrite(&mut self, rewrite: &Rewrite) -> bool {
        let Some(next) = rewrite.apply_to(&self.table) else { return false };
        self.publish(next);
        true
    }

    /// Nobody but the table holds pages, and it holds all that there are.
    pub(crate) fn assert_no_page_is_lost(&self) {
        let chunks = self.store.stats().pages.get(&PageKind::CHUNK).map_or(0, |count| count.pages);
        assert_eq!(chunks, self.table.pages().len() as u64, "chunks in the file and in the table");
        self.table.pages().iter().for_each(|&page| drop(self.store.pin(page).unwrap()));
    }

    pub(crate) fn settle(&mut self) {
        while let Some(rewrite) = self.table.settling(2).unwrap() {
            assert!(self.rewrite(&rewrite));
        }
    }

    pub(crate) fn press(&mut self) {
        while let Some(rewrite) = self.table.pressing(2, &mut Unreadable::default()).unwrap() {
            assert!(self.rewrite(&rewrite));
        }
    }
}

/// Living rows by id, each value as text.
pub(crate) type Rows = BTreeMap<u64, Vec<Option<String>>>;

pub(crate) fn rows(source: &dyn TableSource) -> Rows {
    let mut rows = Rows::new();
    for group in 0..source.group_count() {
        let count = source.group_rows(group);
        let keep = source.deleted(group).map(|deleted| {
            let mut keep = (*deleted).clone();
            keep.invert();
            keep
        });
        let ids: Vec<u64> = match source.row_ids(group) {
            RowIds::From(first) => (first..first + count as u64).collect(),
            RowIds::Listed(ids) => ids.to_vec(),
        };
        let mut values: Vec<Vec<Option<String>>> = Vec::new();
        for (column, ty) in source.column_types().iter().enumerate() {
            let segment = source.segment(group, column).unwrap();
            let array = edge::decode_segment(&segment, ty, 0..count, keep.as_ref()).unwrap();
            values.push((0..array.len()).map(|row| text(&array, row)).collect());
        }
        let alive = (0..count).filter(|&row| keep.as_ref().is_none_or(|keep| keep.get(row)));
        for (index, position) in alive.enumerate() {
            let (id, last) = (ids[position], rows.last_key_value().map(|(id, _)| *id));
            assert!(last.is_none_or(|last| last < id), "row {id} follows row {last:?}");
            rows.insert(id, values.iter().map(|column| column[index].clone()).collect());
        }
    }
    rows
}

/// A value in the form of [`rows`].
pub(crate) fn text(array: &ArrayRef, row: usize) -> Option<String> {
    (!array.is_null(row)).then(|| array_value_to_string(array, row).unwrap())
}

pub(crate) fn batch(name: &str, array: ArrayRef) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable([(name, array, true)]).unwrap()
}
