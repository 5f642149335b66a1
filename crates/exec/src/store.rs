//! Rows that are kept, as columns: those of a join's build side, and those that are sorted.

use crate::dispatch::each_type;
use crate::error::check_cancelled;
use crate::group::{canonical_f32, canonical_f64};
use crate::memory::Held;
use crate::parallel::{deal, threads_for_quick};
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
            debug_assert_eq!(column.values.len(), self.rows + rows, "a value for each row");
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
    /// none. Of a column that a thread is at, values are there twice; where there is no memory for that, one thread does it.
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
        let bytes_of = |(column, others): (&StoredColumn, &Vec<(StoredColumn, usize)>)| {
            column.bytes() + others.iter().map(|(column, _)| column.bytes()).sum::<usize>()
        };
        let bytes = all.columns.iter().zip(&others).map(bytes_of);
        let (largest, bytes) = (bytes.clone().max().unwrap_or(0), bytes.sum::<usize>());
        let threads = threads_for_quick(more, threads).min(all.columns.len());
        // Where that is refused, one thread goes on all the same, and nobody is asked for its copy of a column.
        let is_room = all.memory.need(bytes + largest * threads).is_ok();
        let (rows, threads) = (all.rows, if is_room { threads } else { 1 });
        let columns = all.columns.iter_mut().zip(others).collect();
        let appended = deal(columns, threads, |(column, others)| column.append(rows, others, cancelled));
        appended.into_iter().collect::<Result<()>>()?;
        all.added(more)?;
        all.memory.keep(all.column_bytes());
        Ok(Some(all))
    }

    /// The bytes of the column with most text.
    pub(crate) fn text_bytes(&self) -> usize {
        self.columns.iter().map(StoredColumn::text_bytes).max().unwrap_or(0)
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
        let text_bytes = others.iter().map(|(other, _)| other.text_bytes()).sum();
        if self.text_bytes() + text_bytes > TEXT_BYTES_MAX {
            return Err(too_many());
        }
        self.values.reserve(others.iter().map(|(_, rows)| rows).sum(), text_bytes);
        for (other, more) in others {
            check_cancelled(cancelled)?;
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

    /// Bytes of text; 0 of numbers.
    fn text_bytes(&self) -> usize {
        match self.values.as_values() {
            Values::Bytes(view) => view.data_bytes(),
            _ => 0,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Unlimited;

    /// Of so many rows from a number on: the numbers, and their texts, of which every so many are NULL.
    fn stored(first: i64, rows: usize, null_every: Option<usize>, memory: &Arc<dyn Memory>) -> RowStore {
        let mut store = RowStore::new(&[Physical::I64, Physical::Bytes], memory);
        let numbers = ValuesBuf::I64((first..first + rows as i64).collect());
        let texts: Vec<String> = (first..first + rows as i64).map(|number| format!("number {number}")).collect();
        let texts = ValuesBuf::Bytes(texts.iter().map(|text| text.as_bytes()).collect());
        let validity = null_every.map(|every| Bitmap::from_bools((0..rows).map(|row| row % every != 0)));
        let all: Vec<u32> = (0..rows as u32).collect();
        let columns = [(numbers.as_values(), None), (texts.as_values(), validity.as_ref())];
        store.push_rows(columns.into_iter(), &all).expect("there is memory");
        store
    }

    /// The number and the text of each row.
    fn rows(store: &RowStore) -> Vec<(i64, Option<Vec<u8>>)> {
        let (Values::I64(numbers), Values::Bytes(texts)) = (store.values(0), store.values(1)) else {
            panic!("an integer and a text")
        };
        assert_eq!((numbers.len(), texts.len()), (store.rows(), store.rows()));
        let text = |row| store.place(1, row).map(|row| texts.get(row).to_vec());
        (0..store.rows()).map(|row| (numbers[row], text(row as u32))).collect()
    }

    #[test]
    fn stores_are_joined_in_their_order_by_any_number_of_threads() {
        // Enough for several threads; with and without NULLs, and with nothing in one.
        let parts = [(100_000, None), (0, Some(1)), (300_000, Some(7)), (1, None), (50_000, Some(1))];
        let memory: Arc<dyn Memory> = Arc::new(Unlimited);
        let all = || {
            let mut first = 0;
            let stores = parts.iter().map(|&(rows, null_every)| {
                first += rows as i64;
                stored(first - rows as i64, rows, null_every, &memory)
            });
            stores.collect::<Vec<_>>()
        };
        let wanted: Vec<_> = all().iter().flat_map(rows).collect();
        for threads in [1, 2, 8] {
            let joined = RowStore::joined(all(), threads, &AtomicBool::new(false)).expect("there is memory");
            assert!(rows(&joined.expect("of some")) == wanted, "{threads} threads");
        }
    }

    #[test]
    fn stores_without_columns_or_rows_are_joined() {
        let memory: Arc<dyn Memory> = Arc::new(Unlimited);
        let not_cancelled = AtomicBool::new(false);
        assert!(RowStore::joined(Vec::new(), 4, &not_cancelled).expect("of none").is_none());
        let mut counted = RowStore::new(&[], &memory);
        counted.push(&[], 3).expect("there is memory");
        let stores = vec![RowStore::new(&[], &memory), counted, RowStore::new(&[], &memory)];
        let joined = RowStore::joined(stores, 4, &not_cancelled).expect("there is memory").expect("of some");
        assert_eq!((joined.rows(), joined.columns()), (3, 0));
        let stores = (0..3).map(|_| stored(0, 0, None, &memory)).collect();
        let joined = RowStore::joined(stores, 4, &not_cancelled).expect("there is memory").expect("of some");
        assert_eq!(rows(&joined), []);
    }

    #[test]
    fn joining_ends_when_it_is_cancelled() {
        let memory: Arc<dyn Memory> = Arc::new(Unlimited);
        let stores = (0..3).map(|part| stored(part, 10, None, &memory)).collect();
        assert!(matches!(RowStore::joined(stores, 2, &AtomicBool::new(true)), Err(Error::Cancelled)));
    }

    /// Grants so many bytes.
    #[derive(Debug)]
    struct Limited(std::sync::atomic::AtomicUsize);

    impl Memory for Limited {
        fn grow(&self, bytes: usize) -> Result<()> {
            use std::sync::atomic::Ordering::Relaxed;
            let granted = self.0.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(bytes));
            granted.map(drop).map_err(|left| Error::OutOfMemory(format!("{left} bytes are left")))
        }

        fn shrink(&self, bytes: usize) {
            self.0.fetch_add(bytes, std::sync::atomic::Ordering::Relaxed);
        }
    }

    #[test]
    fn with_memory_for_one_copy_only_stores_are_joined_and_all_is_given_back() {
        let bytes = 2 * stored(0, 200_000, Some(3), &(Arc::new(Unlimited) as _)).column_bytes();
        let limited = Arc::new(Limited((bytes * 5 / 4 + 100).into()));
        let granted = limited.0.load(std::sync::atomic::Ordering::Relaxed);
        let memory: Arc<dyn Memory> = limited.clone();
        let stores: Vec<_> = (0..2).map(|part| stored(part * 200_000, 200_000, Some(3), &memory)).collect();
        let wanted: Vec<_> = stores.iter().flat_map(rows).collect();
        let joined = RowStore::joined(stores, 4, &AtomicBool::new(false)).expect("one thread needs no more");
        assert!(rows(&joined.expect("of some")) == wanted);
        assert_eq!(limited.0.load(std::sync::atomic::Ordering::Relaxed), granted);
    }
}
