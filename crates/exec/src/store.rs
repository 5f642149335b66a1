//! Rows that are kept, as columns: those of a join's build side, and those that are sorted.

use crate::dispatch::each_type;
use crate::error::check_cancelled;
use crate::group::{canonical_f32, canonical_f64};
use crate::memory::Held;
use crate::parallel::{each, share, threads_for_quick};
use crate::vector::{append, gather_values};
use crate::{Error, Memory, Result, Vector};
use foldhash::fast::RandomState;
use sinter_codec::{Bitmap, Encoded, Physical, Values, ValuesBuf};
use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// No row.
pub(crate) const NONE: u32 = u32::MAX;

/// Columns of rows that are numbered in the order in which they came.
#[derive(Debug)]
pub(crate) struct RowStore {
    columns: Vec<StoredColumn>,
    rows: usize,
    memory: Held,
}

#[derive(Debug)]
struct StoredColumn {
    /// What stands at a NULL is any.
    values: ValuesBuf,
    /// 1 where a value is present; `None` when all are.
    validity: Option<Bitmap>,
}

/// A vector's values, one for each row, and which of them are there if not all.
pub(crate) type FlatColumn<'a> = (Values<'a>, Option<&'a Bitmap>);

/// Bytes of text that offsets of 32 bits can reach.
const TEXT_BYTES_MAX: usize = u32::MAX as usize;

impl RowStore {
    pub(crate) fn new(types: &[Physical], memory: &Arc<dyn Memory>) -> RowStore {
        let column = |&physical| StoredColumn { values: ValuesBuf::new(physical), validity: None };
        RowStore { columns: types.iter().map(column).collect(), rows: 0, memory: Held::new(memory) }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// How many columns there are.
    pub(crate) fn columns(&self) -> usize {
        self.columns.len()
    }

    /// The values of a column.
    pub(crate) fn values(&self, column: usize) -> Values<'_> {
        self.columns[column].values.as_values()
    }

    /// Where a column has values; `None` when everywhere.
    pub(crate) fn validity(&self, column: usize) -> Option<&Bitmap> {
        self.columns[column].validity.as_ref()
    }

    /// Adds a vector's rows.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], also where there are more rows, or bytes of text, than 32 bits can number.
    pub(crate) fn push(&mut self, vectors: &[Vector], rows: usize) -> Result<()> {
        for (column, vector) in self.columns.iter_mut().zip(vectors) {
            column.make_room(self.rows, vector.validity.is_some());
            append(vector, rows, &mut column.values)?;
            if let Some(validity) = &mut column.validity {
                match &vector.validity {
                    Some(bits) => validity.extend(bits),
                    None => validity.extend_with(rows, true),
                }
            }
        }
        self.added(rows)
    }

    /// Adds some rows of a vector.
    ///
    /// # Errors
    /// As [`RowStore::push`].
    pub(crate) fn push_rows<'a>(&mut self, columns: impl Iterator<Item = FlatColumn<'a>>, rows: &[u32]) -> Result<()> {
        for (column, (values, validity)) in self.columns.iter_mut().zip(columns) {
            column.make_room(self.rows, validity.is_some());
            gather_values(values, rows.iter().map(|&row| row as usize), &mut column.values);
            if let Some(bits) = &mut column.validity {
                match validity {
                    Some(validity) => rows.iter().for_each(|&row| bits.push(validity.get(row as usize))),
                    None => bits.extend_with(rows.len(), true),
                }
            }
        }
        self.added(rows.len())
    }

    /// The rows of several stores with the same columns, one store after the other, put together by so many threads; `None` of
    /// none. Of one column a thread, values are there twice at a time.
    ///
    /// # Errors
    /// As [`RowStore::push`], and [`Error::Cancelled`].
    pub(crate) fn joined(stores: Vec<RowStore>, threads: usize, cancelled: &AtomicBool) -> Result<Option<RowStore>> {
        let mut stores = stores.into_iter();
        let Some(mut all) = stores.next() else { return Ok(None) };
        let mut others: Vec<_> = all.columns.iter().map(|_| Vec::with_capacity(stores.len())).collect();
        let mut more = 0;
        for RowStore { columns, rows, memory } in stores {
            others.iter_mut().zip(columns).for_each(|(others, column)| others.push((column, rows)));
            all.memory.take_over(memory);
            more += rows;
        }
        if more == 0 {
            return Ok(Some(all));
        }
        let (rows, own) = (all.rows, share(all.columns.len(), threads_for_quick(more, threads)));
        let mut columns: Vec<_> = all.columns.iter_mut().zip(others).collect();
        let mut shares = Vec::with_capacity(threads);
        while !columns.is_empty() {
            shares.push(columns.split_off(columns.len().saturating_sub(own)));
        }
        each(shares, |columns| {
            columns.into_iter().try_for_each(|(column, others)| column.append(rows, others, cancelled))
        })?;
        all.added(more)?;
        all.memory.keep(all.column_bytes());
        Ok(Some(all))
    }

    /// The bytes of the column with most text.
    pub(crate) fn text_bytes(&self) -> usize {
        let text = self.columns.iter().map(|column| match column.values.as_values() {
            Values::Bytes(view) => view.data_bytes(),
            _ => 0,
        });
        text.max().unwrap_or(0)
    }

    /// Bytes that the values take, with what of texts says where they are.
    pub(crate) fn value_bytes(&self) -> usize {
        let bytes = |column: &StoredColumn| match column.values.as_values() {
            Values::Bytes(view) => view.data_bytes() + size_of::<u32>() * self.rows,
            values => values.physical().value_bytes().unwrap_or(0) * self.rows,
        };
        self.columns.iter().map(bytes).sum()
    }

    /// Forgets all rows, and keeps the memory for others.
    pub(crate) fn clear(&mut self) {
        self.rows = 0;
        for StoredColumn { values, validity } in &mut self.columns {
            values.clear();
            validity.iter_mut().for_each(|bits| bits.reset(0, false));
        }
    }

    fn added(&mut self, rows: usize) -> Result<()> {
        self.rows += rows;
        if self.rows >= NONE as usize || self.text_bytes() > TEXT_BYTES_MAX / 2 {
            return Err(too_many());
        }
        self.memory.need(self.column_bytes())
    }

    /// Bytes of the memory of all columns; that of texts counts whether used or not.
    fn column_bytes(&self) -> usize {
        self.columns.iter().map(StoredColumn::bytes).sum()
    }

    /// Forgets the values of a column.
    pub(crate) fn forget(&mut self, column: usize) {
        let stored = &mut self.columns[column];
        *stored = StoredColumn { values: ValuesBuf::new(stored.values.physical()), validity: None };
    }

    /// Where a row stands, if it has a value in a column.
    fn place(&self, column: usize, row: u32) -> Option<usize> {
        let is_there = row != NONE && self.validity(column).is_none_or(|validity| validity.get(row as usize));
        is_there.then_some(row as usize)
    }

    /// Mixes what rows have in a column into their `hashes`, the same for equal values, for NaNs, and for NULLs, which
    /// [`NONE`] has.
    #[expect(clippy::unnecessary_cast, reason = "one of the types has 128 bits already")]
    pub(crate) fn hash(&self, column: usize, rows: &[u32], hasher: &RandomState, hashes: &mut [u64]) {
        macro_rules! mix {
            ($row:ident => $value:expr) => {
                for (hash, &row) in hashes.iter_mut().zip(rows) {
                    *hash = match self.place(column, row) {
                        Some($row) => hasher.hash_one((*hash, $value)),
                        None => hasher.hash_one(*hash),
                    };
                }
            };
        }
        match self.values(column) {
            Values::F32(values) => mix!(row => canonical_f32(values[row])),
            Values::F64(values) => mix!(row => canonical_f64(values[row])),
            values => {
                each_type!(Values, values, values => mix!(row => values[row] as i128), texts => mix!(row => texts.get(row)))
            }
        }
    }

    /// Whether two rows have the same in a column, or NaNs, or NULLs.
    pub(crate) fn is_same(&self, column: usize, one: u32, other: u32) -> bool {
        let (Some(one), Some(other)) = (self.place(column, one), self.place(column, other)) else {
            return self.place(column, one).is_none() && self.place(column, other).is_none();
        };
        match self.values(column) {
            Values::F32(values) => canonical_f32(values[one]) == canonical_f32(values[other]),
            Values::F64(values) => canonical_f64(values[one]) == canonical_f64(values[other]),
            values => each_type!(Values, values,
                values => values[one] == values[other],
                texts => texts.get(one) == texts.get(other)),
        }
    }

    /// Writes a column of these rows over `out`; NULL for [`NONE`].
    pub(crate) fn gather(&self, column: usize, rows: &[u32], out: &mut Vector) {
        let stored = &self.columns[column];
        (out.dictionary, out.nested) = (None, None);
        if !matches!(out.values, Encoded::Flat(_)) {
            out.values = Encoded::default();
        }
        if let Encoded::Flat(values) = &mut out.values {
            values.reset(stored.values.physical());
            gather_values(stored.values.as_values(), rows.iter().map(|&row| row as usize), values);
        }
        let all_met = rows.iter().fold(true, |all, &row| all & (row != NONE));
        if all_met && stored.validity.is_none() {
            out.validity = None;
            return;
        }
        let bits = out.validity.get_or_insert_default();
        bits.reset(0, false);
        match &stored.validity {
            None => rows.iter().for_each(|&row| bits.push(row != NONE)),
            Some(validity) => rows.iter().for_each(|&row| bits.push(row != NONE && validity.get(row as usize))),
        }
    }
}

/// Writes rows of several stores over `out`, which have the same columns: rows of a store count from its first, which
/// ascend.
pub(crate) fn gather_from(stores: &[RowStore], firsts: &[u32], column: usize, rows: &[u32], out: &mut Vector) {
    let place = |row: u32| {
        let store = firsts.partition_point(|&first| first <= row) - 1;
        (store, (row - firsts[store]) as usize)
    };
    let all: Vec<Values<'_>> = stores.iter().map(|store| store.values(column)).collect();
    let Some(physical) = all.first().map(Values::physical) else { return };
    (out.dictionary, out.nested) = (None, None);
    if !matches!(out.values, Encoded::Flat(_)) {
        out.values = Encoded::default();
    }
    let Encoded::Flat(values) = &mut out.values else { return };
    values.reset(physical);
    macro_rules! gather {
        ($($variant:ident),*) => {
            match values {
                $(ValuesBuf::$variant(out) => {
                    let slices = all.iter().map(|values| if let Values::$variant(slice) = values { slice } else { &[][..] });
                    let slices: Vec<&[_]> = slices.collect();
                    out.extend(rows.iter().map(|&row| {
                        let (store, row) = place(row);
                        slices[store][row]
                    }));
                })*
                ValuesBuf::Bytes(out) => rows.iter().for_each(|&row| {
                    let (store, row) = place(row);
                    if let Values::Bytes(texts) = all[store] {
                        out.push(texts.get(row));
                    }
                }),
            }
        };
    }
    gather!(I8, I16, I32, I64, I128, U8, U16, U32, U64, F32, F64);
    if stores.iter().all(|store| store.validity(column).is_none()) {
        out.validity = None;
        return;
    }
    let bits = out.validity.get_or_insert_default();
    bits.reset(0, false);
    for &row in rows {
        let (store, row) = place(row);
        bits.push(stores[store].validity(column).is_none_or(|validity| validity.get(row)));
    }
}

impl StoredColumn {
    /// Adds others, each of so many rows, behind its own `rows`.
    fn append(&mut self, mut rows: usize, others: Vec<(StoredColumn, usize)>, cancelled: &AtomicBool) -> Result<()> {
        for (other, more) in others {
            check_cancelled(cancelled)?;
            if let (Values::Bytes(ours), Values::Bytes(theirs)) = (self.values.as_values(), other.values.as_values())
                && ours.data_bytes() + theirs.data_bytes() > TEXT_BYTES_MAX
            {
                return Err(too_many());
            }
            self.make_room(rows, other.validity.is_some());
            self.values.extend(other.values.as_values());
            if let Some(validity) = &mut self.validity {
                match &other.validity {
                    Some(bits) => validity.extend(bits),
                    None => validity.extend_with(more, true),
                }
            }
            rows += more;
        }
        Ok(())
    }

    /// Gets a bitmap for the rows so far, if there are to be NULLs.
    fn make_room(&mut self, rows: usize, has_nulls: bool) {
        if has_nulls && self.validity.is_none() {
            self.validity = Some(Bitmap::new(rows, true));
        }
    }

    fn bytes(&self) -> usize {
        let values = match &self.values {
            ValuesBuf::Bytes(bytes) => bytes.data.capacity() + 4 * bytes.offsets.capacity(),
            numbers => numbers.len() * numbers.physical().value_bytes().unwrap_or(0),
        };
        values + self.validity.as_ref().map_or(0, |bits| 8 * bits.words().len())
    }
}

#[cold]
fn too_many() -> Error {
    Error::OutOfMemory(
        "a join or a sort keeps more rows, or text of a column, than 32 bits can number; filter the rows".into(),
    )
}
