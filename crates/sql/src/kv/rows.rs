//! Rows of a statement as entries of a tree, and records as values of a column.

use super::any_tree::{Key, KeyRef};
use super::handle::{KvHandle, KvKey};
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

    /// The keys that a query of the tree yields in its first column.
    ///
    /// # Errors
    /// [`Error::Internal`]: it yields none.
    pub(crate) fn keys(&self, rows: &RecordBatch) -> Result<Vec<Key>> {
        let (Some(column), Some(key)) = (rows.columns().first(), self.schema.columns.first()) else {
            return Err(Error::Internal("a rewritten statement did not yield keys".to_owned()));
        };
        let (column, ty) = (plain(column, &key.ty)?, self.kv.key_type());
        (0..column.len()).map(|row| Ok(self.kv.encode(key_of(ty, &column, row))?.to_key())).collect()
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

    /// The key of a row, and its record, which may be made in `buffer`.
    ///
    /// # Errors
    /// [`Error::Data`]: the tree takes none of that length.
    pub(crate) fn entry<'e>(&'e self, row: usize, buffer: &'e mut [u8; 8]) -> Result<(KeyRef<'e>, &'e [u8])> {
        let key = key_of(self.kv.key_type(), &self.key, row);
        let record = match (&self.value, self.kv.value_type()) {
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
        };
        let key = self.kv.encode(key)?;
        self.kv.check(key, Some(record))?;
        Ok((key, record))
    }
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
