//! What rows are in an index.

use super::key::{KeyForm, row_id_bytes};
use crate::kv::{KeyRef, KvTree};
use crate::{Error, Result};
use arrow::array::{Array, ArrayRef, RecordBatch, UInt64Array};
use arrow::compute::{concat, take};
use arrow::util::display::array_value_to_string;
use sinter_codec::{Bitmap, Physical, ValuesBuf};
use sinter_column::{ColumnTable, Index, SelectedRows, TableSchema};
use sinter_exec::{Batch, Expr, OnDamage, Output, Pipeline, ScanColumn, Source, TableSource, Vector, edge};
use sinter_storage::CommitNumber;
use std::sync::Arc;

/// Makes the keys of rows in an index, of which it is shown a batch at a time.
#[derive(Debug)]
pub(crate) struct KeyMaker {
    /// Where the columns are in the table.
    positions: Vec<usize>,
    columns: Vec<KeyColumn>,
    key: Vec<u8>,
}

/// The values of a batch in one column of an index.
#[derive(Debug)]
struct KeyColumn {
    form: KeyForm,
    values: ValuesBuf,
    validity: Option<Bitmap>,
}

impl KeyMaker {
    /// For an index of tables of this schema.
    ///
    /// # Errors
    /// [`Error::Internal`]: it is of a type that cannot be a key.
    pub(crate) fn new(schema: &TableSchema, index: &Index) -> Result<KeyMaker> {
        let positions = schema.columns_of(index);
        let column = |position: &usize| {
            let ty = &schema.columns[*position].ty;
            match (KeyForm::of(ty), ty.physical()) {
                (Some(form), Some(physical)) => {
                    Ok(KeyColumn { form, values: ValuesBuf::new(physical), validity: None })
                }
                _ => Err(Error::Internal(format!("an index of {ty}"))),
            }
        };
        let columns = positions.iter().map(column).collect::<Result<_>>()?;
        Ok(KeyMaker { positions, columns, key: Vec::new() })
    }

    /// Takes the next batch: these columns of the index, with so many rows.
    fn take(&mut self, vectors: &[Vector], rows: usize) -> Result<()> {
        for (column, vector) in self.columns.iter_mut().zip(vectors) {
            vector.plain(rows, &mut column.values)?;
            column.validity.clone_from(&vector.validity);
        }
        Ok(())
    }

    /// Takes the next batch: rows in the shape of the table.
    ///
    /// # Errors
    /// [`Error::Internal`]: they are of another shape.
    pub(crate) fn take_rows(&mut self, schema: &TableSchema, rows: &RecordBatch) -> Result<()> {
        let columns: Vec<ArrayRef> = self.positions.iter().map(|&position| Arc::clone(rows.column(position))).collect();
        self.take_columns(schema, &columns, rows.num_rows())
    }

    /// The same of the columns of the index alone.
    ///
    /// # Errors
    /// As [`KeyMaker::take_rows`].
    pub(crate) fn take_columns(&mut self, schema: &TableSchema, columns: &[ArrayRef], rows: usize) -> Result<()> {
        let vector = |(&position, array): (&usize, _)| edge::from_arrow(array, &schema.columns[position].ty);
        let vectors = self.positions.iter().zip(columns).map(vector).collect::<sinter_exec::Result<Vec<_>>>()?;
        self.take(&vectors, rows)
    }

    /// The values of a row of the batch, and whether none is NULL.
    pub(crate) fn key(&mut self, row: usize) -> (&mut Vec<u8>, bool) {
        let KeyMaker { columns, key, .. } = self;
        key.clear();
        let mut is_whole = true;
        for KeyColumn { form, values, validity } in columns {
            if validity.as_ref().is_none_or(|validity| validity.get(row)) {
                form.push(values.as_values(), row, key);
            } else {
                is_whole = false;
                KeyForm::push_null(key);
            }
        }
        (key, is_whole)
    }
}

/// Shows the key of each living row of `rows` in an index of theirs, and the row's id. Rows that are not in it are left out.
///
/// # Errors
/// A row cannot be read; those of `visit`.
pub(super) fn for_each_entry(
    rows: &Arc<ColumnTable>,
    index: &Index,
    visit: &mut dyn FnMut(&[u8], u64) -> Result<()>,
) -> Result<()> {
    if rows.group_count() == 0 {
        return Ok(());
    }
    let mut keys = KeyMaker::new(rows.schema(), index)?;
    let positions = keys.positions.clone();
    let mut ids = ValuesBuf::new(Physical::U64);
    for_each_batch(Arc::clone(rows) as _, &positions, &mut |batch| {
        let (of_row_id, of_index) = batch.columns.split_last().expect("row ids are asked for");
        keys.take(of_index, batch.rows)?;
        of_row_id.plain(batch.rows, &mut ids)?;
        let ValuesBuf::U64(ids) = &ids else { return Err(Error::Internal("row ids are no u64".to_owned())) };
        for (row, &id) in ids.iter().enumerate() {
            let (key, is_whole) = keys.key(row);
            match index.rule.is_unique() {
                true if is_whole => visit(key, id)?,
                true => {}
                false => {
                    key.extend(row_id_bytes(id));
                    visit(key, id)?;
                }
            }
        }
        Ok(())
    })
}

/// The rows of a table with these ids, all of which are there, in the order of the ids; the table's columns.
///
/// # Errors
/// A row cannot be read.
pub(crate) fn rows_by_id(table: &Arc<ColumnTable>, row_ids: &[u64]) -> Result<Vec<ArrayRef>> {
    let mut ascending = row_ids.to_vec();
    ascending.sort_unstable();
    ascending.dedup();
    let selected = SelectedRows::new(Arc::clone(table), &ascending, String::new());
    let schema = table.schema();
    let positions: Vec<usize> = (0..schema.columns.len()).collect();
    let mut parts: Vec<Vec<ArrayRef>> = vec![Vec::new(); positions.len()];
    for_each_batch(Arc::new(selected), &positions, &mut |batch| {
        for ((part, vector), column) in parts.iter_mut().zip(&batch.columns).zip(&schema.columns) {
            part.push(edge::to_arrow(vector, &column.ty, batch.rows)?);
        }
        Ok(())
    })?;
    let wanted: Vec<u64> = row_ids.iter().map(|id| ascending.partition_point(|known| known < id) as u64).collect();
    let wanted = UInt64Array::from(wanted);
    let column = |part: Vec<ArrayRef>| -> Result<ArrayRef> {
        let parts: Vec<&dyn Array> = part.iter().map(AsRef::as_ref).collect();
        let rows = concat(&parts)?;
        if rows.len() != ascending.len() {
            return Err(Error::Damaged(format!(
                "an index of table '{}' leads to rows that are not there",
                table.name()
            )));
        }
        Ok(take(&rows, &wanted, None)?)
    };
    parts.into_iter().map(column).collect()
}

/// What an index lacks of its table's rows, or has beside them, in the state after commit `at`; `None` where it is whole.
///
/// # Errors
/// A row or a leaf cannot be read.
pub(crate) fn index_flaw(
    table: &Arc<ColumnTable>,
    index: &Index,
    tree: &KvTree,
    at: CommitNumber,
) -> Result<Option<String>> {
    let (mut rows, mut found) = (0, 0);
    for_each_entry(table, index, &mut |key, id| {
        rows += 1;
        let is_of_row = |record: &[u8]| !index.rule.is_unique() || record == row_id_bytes(id);
        found += u64::from(tree.tree().get(KeyRef::Bytes(key), || at, |record| record.is_some_and(is_of_row))?);
        Ok(())
    })?;
    let entries = tree.tree().len(at)?;
    Ok((rows != found || entries != found).then(|| {
        format!(
            "index '{}' lacks {} rows of its table, and has {} entries of none",
            index.name,
            rows - found,
            entries - found.min(entries)
        )
    }))
}

/// The values of a row that an index has, for messages: `a = 1, b = 'x'`.
pub(super) fn values_text(rows: &Arc<ColumnTable>, index: &Index, row_id: u64) -> Result<String> {
    let positions = rows.schema().columns_of(index);
    let one = SelectedRows::new(Arc::clone(rows), &[row_id], String::new());
    let mut texts = Vec::new();
    for_each_batch(Arc::new(one), &positions, &mut |batch| {
        for (&position, vector) in positions.iter().zip(&batch.columns) {
            let column = &rows.schema().columns[position];
            let value = array_value_to_string(&edge::to_arrow(vector, &column.ty, batch.rows)?, 0)?;
            texts.push(format!("{} = {value}", column.name));
        }
        Ok(())
    })?;
    Ok(texts.join(", "))
}

/// Shows these columns of the living rows, and behind them the rows' ids.
fn for_each_batch(
    rows: Arc<dyn TableSource>,
    positions: &[usize],
    visit: &mut dyn FnMut(&Batch) -> Result<()>,
) -> Result<()> {
    let columns: Vec<ScanColumn> =
        positions.iter().map(|&position| ScanColumn::Table(position)).chain([ScanColumn::RowId]).collect();
    let output = Output::Rows((0..columns.len()).map(Expr::Column).collect());
    let (source, on_damage) = (Source::Table(rows), OnDamage::Fail);
    let pipeline = Pipeline { source, columns, filter: Vec::new(), steps: Vec::new(), output, limit: None, on_damage };
    let mut worker = pipeline.start()?.worker();
    let mut batch = Batch::default();
    while worker.next(&mut batch)? {
        visit(&batch)?;
    }
    Ok(())
}
