//! Rows of a statement as entries of a tree, and records as values of a column.

use super::any_tree::{Key, KeyRef};
use super::handle::{KvHandle, KvKey};
use super::pair::PairShape;
use super::{KeyType, KvShape, KvTree, ValueType};
use crate::catalog::TableName;
use crate::statement::storage_type;
use crate::{Error, Result};
use arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow::compute::cast;
use arrow::datatypes::{Float64Type, Int64Type, UInt32Type, UInt64Type};
use sinter_column::{ColumnSchema, TableSchema};
use sinter_exec::LogicalType;
use std::sync::Arc;

/// A tree as a table that statements change.
#[derive(Clone, Debug)]
pub(crate) struct TreeRows {
    kv: KvHandle,
    name: String,
    schema: Arc<TableSchema>,
}

impl TreeRows {
    pub(crate) fn new(name: &TableName, tree: &Arc<KvTree>) -> TreeRows {
        let schema = Arc::new(schema_of(tree.shape()));
        TreeRows { kv: KvHandle::new(name.clone(), Arc::clone(tree)), name: name.to_string(), schema }
    }

    /// What it is called.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// `key`, and `value` where there are values, none of them NULL.
    pub(crate) fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    pub(crate) fn tree(&self) -> &Arc<KvTree> {
        self.kv.tree()
    }

    /// These rows, which have the columns of the schema, as entries.
    ///
    /// # Errors
    /// [`Error::Data`]: a column is of another type, or has NULL.
    pub(crate) fn entries(&self, rows: &RecordBatch) -> Result<EntriesOfRows<'_>> {
        let columns = self.schema.check(rows)?;
        // Views, dictionaries and wider offsets come as the plain type.
        let plain = columns.iter().zip(&self.schema.columns).map(|(array, column)| plain(array, &column.ty));
        let mut columns = plain.collect::<Result<Vec<_>>>()?.into_iter();
        let key = columns.next().ok_or_else(|| Error::Internal("rows of a tree without keys".to_owned()))?;
        Ok(EntriesOfRows { kv: &self.kv, key, value: columns.next() })
    }

    /// Whether a key has any number of values.
    pub(crate) fn has_duplicates(&self) -> bool {
        self.kv.pairs().is_some()
    }

    /// The columns that tell an entry from all others: the key, and the value where a key has several.
    pub(crate) fn identity(&self) -> &[ColumnSchema] {
        &self.schema.columns[..if self.has_duplicates() { 2 } else { 1 }]
    }

    /// The keys of the tree's entries that a query of it yields, in its first columns, which are [`TreeRows::identity`].
    ///
    /// # Errors
    /// [`Error::Internal`]: it yields none.
    pub(crate) fn keys(&self, rows: &RecordBatch) -> Result<Vec<Key>> {
        let identity = self.identity();
        if rows.num_columns() < identity.len() {
            return Err(Error::Internal("a rewritten statement did not yield keys".to_owned()));
        }
        let columns = rows.columns().iter().zip(identity).map(|(array, column)| plain(array, &column.ty));
        let mut columns = columns.collect::<Result<Vec<_>>>()?.into_iter();
        let key = columns.next().ok_or_else(|| Error::Internal("rows of a tree without keys".to_owned()))?;
        let entries = EntriesOfRows { kv: &self.kv, key, value: columns.next() };
        let mut buffer = EntryBuffer::default();
        (0..entries.len()).map(|row| Ok(entries.key(row, &mut buffer)?.to_key())).collect()
    }

    /// The values that these records stand for.
    ///
    /// # Errors
    /// [`Error::Data`]: one is none of the type, as who puts bytes may do.
    pub(crate) fn values_of(&self, records: &[Vec<u8>]) -> Result<ArrayRef> {
        fn numbers<T, const N: usize, A: FromIterator<T>>(records: &[Vec<u8>], of: fn([u8; N]) -> T) -> Option<A> {
            records.iter().map(|record| record.as_slice().try_into().ok().map(of)).collect()
        }
        let values: Option<ArrayRef> = match self.kv.value_type() {
            ValueType::Nothing => None,
            ValueType::U32 => {
                numbers(records, u32::from_le_bytes).map(|of: Vec<_>| Arc::new(UInt32Array::from(of)) as _)
            }
            ValueType::U64 => {
                numbers(records, u64::from_le_bytes).map(|of: Vec<_>| Arc::new(UInt64Array::from(of)) as _)
            }
            ValueType::I64 => {
                numbers(records, i64::from_le_bytes).map(|of: Vec<_>| Arc::new(Int64Array::from(of)) as _)
            }
            ValueType::F64 => {
                numbers(records, f64::from_le_bytes).map(|of: Vec<_>| Arc::new(Float64Array::from(of)) as _)
            }
            ValueType::Fixed(_) | ValueType::Bytes => {
                Some(Arc::new(BinaryArray::from_iter_values(records.iter())) as _)
            }
            ValueType::Text => {
                let texts: Option<Vec<&str>> = records.iter().map(|record| std::str::from_utf8(record).ok()).collect();
                texts.map(|texts| Arc::new(StringArray::from(texts)) as _)
            }
        };
        values.ok_or_else(|| {
            Error::Data(format!("a value of '{}' is no {}; put another one there", self.name, self.kv.value_type()))
        })
    }
}

/// The table that statements see of a tree.
fn schema_of(shape: &KvShape) -> TableSchema {
    let column = |(name, ty): (&str, _)| ColumnSchema {
        name: name.to_owned(),
        ty,
        nullable: false,
        compression: None,
        default: None,
    };
    TableSchema { columns: shape.columns().into_iter().map(column).collect(), ..TableSchema::default() }
}

/// Rows as entries of a tree.
pub(crate) struct EntriesOfRows<'t> {
    kv: &'t KvHandle,
    key: ArrayRef,
    value: Option<ArrayRef>,
}

impl EntriesOfRows<'_> {
    pub(crate) fn len(&self) -> usize {
        self.key.len()
    }

    /// The key of a row in the tree, and what is put there, which may be made in `buffer`.
    ///
    /// # Errors
    /// [`Error::Data`]: the tree takes none of that length.
    pub(crate) fn entry<'e>(&'e self, row: usize, buffer: &'e mut EntryBuffer) -> Result<(KeyRef<'e>, &'e [u8])> {
        let key = self.kv.encode(key_of(self.kv.key_type(), &self.key, row))?;
        match self.kv.pairs() {
            Some(pairs) => Ok((self.pair(pairs, row, key, buffer)?, &[])),
            None => {
                let value = self.value(row, &mut buffer.number);
                self.kv.check(key, Some(value))?;
                Ok((key, value))
            }
        }
    }

    /// The key of a row in the tree.
    fn key<'e>(&'e self, row: usize, buffer: &'e mut EntryBuffer) -> Result<KeyRef<'e>> {
        let key = self.kv.encode(key_of(self.kv.key_type(), &self.key, row))?;
        match self.kv.pairs() {
            Some(pairs) => self.pair(pairs, row, key, buffer),
            None => Ok(key),
        }
    }

    fn pair<'e>(
        &'e self,
        pairs: PairShape,
        row: usize,
        key: KeyRef<'_>,
        buffer: &'e mut EntryBuffer,
    ) -> Result<KeyRef<'e>> {
        buffer.pair = self.kv.pair(pairs, key, self.value(row, &mut buffer.number))?;
        Ok(KeyRef::Bytes(&buffer.pair))
    }

    /// The value of a row, which may be made in `buffer`.
    fn value<'e>(&'e self, row: usize, buffer: &'e mut [u8; 8]) -> &'e [u8] {
        match (&self.value, self.kv.value_type()) {
            (None, _) | (_, ValueType::Nothing) => &[],
            (Some(value), ValueType::U32) => {
                written(buffer, value.as_primitive::<UInt32Type>().value(row).to_le_bytes())
            }
            (Some(value), ValueType::U64) => {
                written(buffer, value.as_primitive::<UInt64Type>().value(row).to_le_bytes())
            }
            (Some(value), ValueType::I64) => {
                written(buffer, value.as_primitive::<Int64Type>().value(row).to_le_bytes())
            }
            (Some(value), ValueType::F64) => {
                written(buffer, value.as_primitive::<Float64Type>().value(row).to_le_bytes())
            }
            (Some(value), ValueType::Fixed(_) | ValueType::Bytes) => value.as_binary::<i32>().value(row),
            (Some(value), ValueType::Text) => value.as_string::<i32>().value(row).as_bytes(),
        }
    }
}

/// What an entry is made in.
#[derive(Debug, Default)]
pub(crate) struct EntryBuffer {
    number: [u8; 8],
    pair: Vec<u8>,
}

/// The same values as an array of the plain type.
fn plain(array: &ArrayRef, ty: &LogicalType) -> Result<ArrayRef> {
    let wanted = storage_type(ty);
    if *array.data_type() == wanted { Ok(Arc::clone(array)) } else { Ok(cast(array, &wanted)?) }
}

fn key_of(ty: KeyType, column: &ArrayRef, row: usize) -> KvKey<'_> {
    match ty {
        KeyType::U32 => column.as_primitive::<UInt32Type>().value(row).into(),
        KeyType::U64 => column.as_primitive::<UInt64Type>().value(row).into(),
        KeyType::I64 => column.as_primitive::<Int64Type>().value(row).into(),
        KeyType::Bytes | KeyType::Columns => KvKey::Bytes(column.as_binary::<i32>().value(row)),
        KeyType::Text => KvKey::Text(column.as_string::<i32>().value(row)),
    }
}

fn written<const N: usize>(buffer: &mut [u8; 8], bytes: [u8; N]) -> &[u8] {
    buffer[..N].copy_from_slice(&bytes);
    &buffer[..N]
}
