//! Key-value trees: keys and values cross as Python's own ints, texts, bytes and floats.

use crate::error::{DataError, ProgrammingError, raise};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyInt, PyMemoryView, PyString};
use sinterdb::{AnyCursor, AnyKv, AnyLoad, Condition, Find, KvKey, ValueType};
use std::ops::{Bound as Border, ControlFlow};
use std::sync::{Mutex, PoisonError};

/// A key that was taken out of Python.
enum Key {
    Int(i128),
    Bytes(Vec<u8>),
    Text(String),
}

impl Key {
    fn of(object: &Bound<'_, PyAny>) -> PyResult<Key> {
        if object.is_instance_of::<PyInt>() {
            let number = object.extract().map_err(|_| DataError::new_err(format!("{object} is no key: too large")))?;
            return Ok(Key::Int(number));
        }
        if let Ok(text) = object.cast::<PyString>() {
            return Ok(Key::Text(text.to_cow()?.into_owned()));
        }
        match bytes_of(object)? {
            Some(bytes) => Ok(Key::Bytes(bytes)),
            None => {
                let class = object.get_type().qualname()?;
                Err(DataError::new_err(format!("a {class} is no key; keys are int, str or bytes")))
            }
        }
    }

    fn lent(&self) -> KvKey<'_> {
        match self {
            Key::Int(key) => KvKey::Int(*key),
            Key::Bytes(key) => KvKey::Bytes(key),
            Key::Text(key) => KvKey::Text(key),
        }
    }
}

/// The bytes of what has some; `None` for other things.
fn bytes_of(object: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    if object.is_instance_of::<PyBytes>() || object.is_instance_of::<PyByteArray>() {
        return object.extract().map(Some);
    }
    if object.is_instance_of::<PyMemoryView>() {
        return object.call_method0("tobytes")?.extract().map(Some);
    }
    Ok(None)
}

fn key_to_python(py: Python<'_>, key: KvKey<'_>) -> PyResult<Py<PyAny>> {
    match key {
        KvKey::Int(key) => key.into_py_any(py),
        KvKey::Bytes(key) => Ok(PyBytes::new(py, key).into_any().unbind()),
        KvKey::Text(key) => key.into_py_any(py),
    }
}

/// A value as the tree has it.
fn value_of(ty: ValueType, object: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let refused = || {
        let class = object.get_type().qualname().map_or_else(|_| "value".to_owned(), |name| name.to_string());
        DataError::new_err(format!("a {class} ({object}) is no value of type {ty}"))
    };
    match ty {
        ValueType::Nothing if object.is_none() => Ok(Vec::new()),
        ValueType::U32 => object.extract::<u32>().map(|value| value.to_le_bytes().to_vec()).map_err(|_| refused()),
        ValueType::U64 => object.extract::<u64>().map(|value| value.to_le_bytes().to_vec()).map_err(|_| refused()),
        ValueType::I64 => object.extract::<i64>().map(|value| value.to_le_bytes().to_vec()).map_err(|_| refused()),
        ValueType::F64 => object.extract::<f64>().map(|value| value.to_le_bytes().to_vec()).map_err(|_| refused()),
        ValueType::Text => object.extract::<String>().map(String::into_bytes).map_err(|_| refused()),
        _ => bytes_of(object)?.ok_or_else(refused),
    }
}

/// What [`value_of`] made.
fn value_to_python(py: Python<'_>, ty: ValueType, value: &[u8]) -> PyResult<Py<PyAny>> {
    let damaged = || DataError::new_err(format!("a value of {} bytes is none of type {ty}", value.len()));
    match ty {
        ValueType::Nothing => Ok(py.None()),
        ValueType::U32 => u32::from_le_bytes(value.try_into().map_err(|_| damaged())?).into_py_any(py),
        ValueType::U64 => u64::from_le_bytes(value.try_into().map_err(|_| damaged())?).into_py_any(py),
        ValueType::I64 => i64::from_le_bytes(value.try_into().map_err(|_| damaged())?).into_py_any(py),
        ValueType::F64 => f64::from_le_bytes(value.try_into().map_err(|_| damaged())?).into_py_any(py),
        ValueType::Text => std::str::from_utf8(value).map_err(|_| damaged())?.into_py_any(py),
        _ => Ok(PyBytes::new(py, value).into_any().unbind()),
    }
}

fn find_of(how: &str) -> PyResult<Find> {
    match how {
        "<" => Ok(Find::Less),
        "<=" => Ok(Find::LessEqual),
        "==" => Ok(Find::Equal),
        ">=" => Ok(Find::GreaterEqual),
        ">" => Ok(Find::Greater),
        _ => Err(ProgrammingError::new_err(format!("a key is looked for by <, <=, ==, >= or >, not by '{how}'"))),
    }
}

type Pair = (Py<PyAny>, Py<PyAny>);

fn pair(py: Python<'_>, ty: ValueType, (key, value): (KvKey<'_>, &[u8])) -> PyResult<Pair> {
    Ok((key_to_python(py, key)?, value_to_python(py, ty, value)?))
}

/// A key-value tree of a connection.
#[pyclass(frozen, module = "sinterdb._sinterdb")]
pub(crate) struct Kv {
    kv: AnyKv,
}

impl Kv {
    pub(crate) fn new(kv: AnyKv) -> Kv {
        Kv { kv }
    }

    fn change(&self, py: Python<'_>, key: &Key, value: Option<&[u8]>, condition: Condition<'_>) -> PyResult<bool> {
        py.detach(|| self.kv.change(key.lent(), value, condition)).map_err(raise)
    }
}

#[pymethods]
impl Kv {
    #[getter]
    fn name(&self) -> String {
        self.kv.name()
    }

    /// What its keys are.
    #[getter]
    fn key_type(&self) -> String {
        self.kv.key_type().to_string()
    }

    /// What its values are.
    #[getter]
    fn value_type(&self) -> String {
        self.kv.value_type().to_string()
    }

    /// The key's value, or `default`.
    #[pyo3(signature = (key, default=None))]
    fn get(&self, py: Python<'_>, key: &Bound<'_, PyAny>, default: Option<Py<PyAny>>) -> PyResult<Py<PyAny>> {
        let key = Key::of(key)?;
        let value = py.detach(|| self.kv.get_with(key.lent(), |value| value.map(<[u8]>::to_vec))).map_err(raise)?;
        match value {
            Some(value) => value_to_python(py, self.kv.value_type(), &value),
            None => Ok(default.unwrap_or_else(|| py.None())),
        }
    }

    /// The key's values, in their order: several where the tree has duplicates.
    fn get_all(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Vec<Py<PyAny>>> {
        let (key, mut values) = (Key::of(key)?, Vec::new());
        let only = Border::Included(key.lent());
        py.detach(|| {
            self.kv.for_each(only, only, &mut |_, value| {
                values.push(value.to_vec());
                ControlFlow::Continue(())
            })
        })
        .map_err(raise)?;
        values.iter().map(|value| value_to_python(py, self.kv.value_type(), value)).collect()
    }

    /// Takes one value of the key away; whether it had it.
    fn discard(&self, py: Python<'_>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (key, value) = (Key::of(key)?, value_of(self.kv.value_type(), value)?);
        self.change(py, &key, None, Condition::Equals(&value))
    }

    /// Whether keys have any number of values.
    #[getter]
    fn has_duplicates(&self) -> bool {
        self.kv.has_duplicates()
    }

    fn __contains__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        let key = Key::of(key)?;
        py.detach(|| self.kv.contains(key.lent())).map_err(raise)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let count = py.detach(|| self.kv.count()).map_err(raise)?;
        usize::try_from(count).map_err(|_| DataError::new_err("there are more keys than Python counts"))
    }

    /// Gives the key this value.
    fn put(&self, py: Python<'_>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let (key, value) = (Key::of(key)?, value_of(self.kv.value_type(), value)?);
        self.change(py, &key, Some(&value), Condition::Always).map(drop)
    }

    /// Gives the key this value if it is not there; whether it was not.
    fn insert(&self, py: Python<'_>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (key, value) = (Key::of(key)?, value_of(self.kv.value_type(), value)?);
        self.change(py, &key, Some(&value), Condition::Absent)
    }

    /// Gives the key the value `new` where it has `old`; whether it had.
    fn compare_and_swap(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        old: &Bound<'_, PyAny>,
        new: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let ty = self.kv.value_type();
        let (key, old, new) = (Key::of(key)?, value_of(ty, old)?, value_of(ty, new)?);
        self.change(py, &key, Some(&new), Condition::Equals(&old))
    }

    /// Takes the key away; whether it was there.
    fn delete(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.change(py, &Key::of(key)?, None, Condition::Present)
    }

    /// Gives keys values, in one commit: pairs of a key and its value.
    fn update(&self, py: Python<'_>, pairs: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut changes = self.kv.changes();
        for pair in pairs.try_iter()? {
            let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair?.extract()?;
            let value = value_of(self.kv.value_type(), &value)?;
            changes.push(Key::of(&key)?.lent(), Some(&value)).map_err(raise)?;
        }
        py.detach(|| self.kv.update(changes)).map_err(raise)
    }

    /// Takes keys away, in one commit, whether they are there or not.
    fn remove(&self, py: Python<'_>, keys: &Bound<'_, PyAny>) -> PyResult<()> {
        let mut changes = self.kv.changes();
        for key in keys.try_iter()? {
            changes.push(Key::of(&key?)?.lent(), None).map_err(raise)?;
        }
        py.detach(|| self.kv.update(changes)).map_err(raise)
    }

    /// Takes away the keys from `start` on and before `end`, in one commit; returns how many there were.
    #[pyo3(signature = (start=None, end=None))]
    fn delete_range(
        &self,
        py: Python<'_>,
        start: Option<&Bound<'_, PyAny>>,
        end: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let (start, end) = (start.map(Key::of).transpose()?, end.map(Key::of).transpose()?);
        let from = start.as_ref().map_or(Border::Unbounded, |start| Border::Included(start.lent()));
        let until = end.as_ref().map_or(Border::Unbounded, |end| Border::Excluded(end.lent()));
        py.detach(|| self.kv.delete_range(from, until)).map_err(raise)
    }

    /// The nearest entry: by "<", "<=", "==", ">=" or ">".
    fn find(&self, py: Python<'_>, how: &str, key: &Bound<'_, PyAny>) -> PyResult<Option<Pair>> {
        let (find, key) = (find_of(how)?, Key::of(key)?);
        let mut cursor = py.detach(|| self.kv.cursor()).map_err(raise)?;
        py.detach(|| cursor.seek(find, Some(key.lent()), Border::Unbounded)).map_err(raise)?;
        cursor.entry().map(|entry| pair(py, self.kv.value_type(), entry)).transpose()
    }

    /// How many keys there are from `start` on and before `end`, and their sum.
    #[pyo3(signature = (start=None, end=None))]
    fn sums(
        &self,
        py: Python<'_>,
        start: Option<&Bound<'_, PyAny>>,
        end: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<(u64, i128)> {
        let (start, end) = (start.map(Key::of).transpose()?, end.map(Key::of).transpose()?);
        let from = start.as_ref().map_or(Border::Unbounded, |start| Border::Included(start.lent()));
        let until = end.as_ref().map_or(Border::Unbounded, |end| Border::Excluded(end.lent()));
        let sums = py.detach(|| self.kv.sums(from, until)).map_err(raise)?;
        Ok((sums.count, sums.sum))
    }

    /// A cursor, on no entry yet.
    fn cursor(&self, py: Python<'_>) -> PyResult<KvCursor> {
        let cursor = py.detach(|| self.kv.cursor()).map_err(raise)?;
        Ok(KvCursor { value_type: self.kv.value_type(), cursor: Mutex::new(cursor) })
    }
}

/// Of values that are taken at a time: once there are so many bytes of them, no more.
const TAKEN_BYTES: usize = 4 << 20;

/// Entries that are loaded at a time, with the interpreter free.
const LOADED_AT_A_TIME: usize = 1 << 12;

/// The tree that pairs of a key and its value make.
pub(crate) fn loaded(py: Python<'_>, mut load: AnyLoad, pairs: &Bound<'_, PyAny>) -> PyResult<AnyKv> {
    let mut pairs = pairs.try_iter()?;
    loop {
        let mut entries = Vec::with_capacity(LOADED_AT_A_TIME);
        for pair in pairs.by_ref().take(LOADED_AT_A_TIME) {
            let (key, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = pair?.extract()?;
            entries.push((Key::of(&key)?, value_of(load.value_type(), &value)?));
        }
        if entries.is_empty() {
            return py.detach(|| load.finish()).map_err(raise);
        }
        py.detach(|| entries.iter().try_for_each(|(key, value)| load.push(key.lent(), value))).map_err(raise)?;
        py.check_signals()?;
    }
}

/// A place in a key-value tree, on an entry or on none; in one state, whatever others do.
#[pyclass(frozen, module = "sinterdb._sinterdb")]
pub(crate) struct KvCursor {
    value_type: ValueType,
    cursor: Mutex<AnyCursor>,
}

impl KvCursor {
    /// Does something to the cursor with the interpreter free, and returns the entry that it is on then.
    fn with(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut AnyCursor) -> sinterdb::Result<()> + Send,
    ) -> PyResult<Option<Pair>> {
        let entry = py.detach(|| {
            let mut cursor = self.cursor.lock().unwrap_or_else(PoisonError::into_inner);
            work(&mut cursor)?;
            Ok(cursor.entry().map(|(key, value)| (owned(key), value.to_vec())))
        });
        let entry = entry.map_err(raise)?;
        entry.map(|(key, value)| pair(py, self.value_type, (key.lent(), &value))).transpose()
    }
}

fn owned(key: KvKey<'_>) -> Key {
    match key {
        KvKey::Int(key) => Key::Int(key),
        KvKey::Bytes(key) => Key::Bytes(key.to_vec()),
        KvKey::Text(key) => Key::Text(key.to_owned()),
    }
}

#[pymethods]
impl KvCursor {
    /// The entry that it is on; None on none.
    fn entry(&self, py: Python<'_>) -> PyResult<Option<Pair>> {
        self.with(py, |_| Ok(()))
    }

    /// Goes to the first entry, and returns it.
    fn first(&self, py: Python<'_>) -> PyResult<Option<Pair>> {
        self.with(py, |cursor| cursor.seek(Find::Greater, None, Border::Unbounded))
    }

    /// Goes to the last entry, and returns it.
    fn last(&self, py: Python<'_>) -> PyResult<Option<Pair>> {
        self.with(py, |cursor| cursor.seek(Find::Less, None, Border::Unbounded))
    }

    /// Goes to the nearest entry by "<", "<=", "==", ">=" or ">", and returns it.
    fn seek(&self, py: Python<'_>, how: &str, key: &Bound<'_, PyAny>) -> PyResult<Option<Pair>> {
        let (find, key) = (find_of(how)?, Key::of(key)?);
        self.with(py, |cursor| cursor.seek(find, Some(key.lent()), Border::Unbounded))
    }

    /// Goes to the next entry, and returns it.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Pair>> {
        self.with(py, |cursor| cursor.next(Border::Unbounded))
    }

    /// Goes to the entry before, and returns it.
    fn previous(&self, py: Python<'_>) -> PyResult<Option<Pair>> {
        self.with(py, AnyCursor::previous)
    }

    /// Up to `count` entries from the one on that it is on, and before the key `end`, fewer where they have more than 4 MiB; it
    /// goes behind them. None where there are no more.
    #[pyo3(signature = (count, end=None))]
    fn take(&self, py: Python<'_>, count: usize, end: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<Pair>> {
        let end = end.map(Key::of).transpose()?;
        let taken = py.detach(|| {
            let until = end.as_ref().map_or(Border::Unbounded, |end| Border::Excluded(end.lent()));
            let mut cursor = self.cursor.lock().unwrap_or_else(PoisonError::into_inner);
            let (mut taken, mut bytes) = (Vec::new(), 0);
            cursor.go_on(until)?;
            while taken.len() < count
                && bytes < TAKEN_BYTES
                && let Some((key, value)) = cursor.entry()
                && end.as_ref().is_none_or(|end| key < end.lent())
            {
                bytes += value.len();
                taken.push((owned(key), value.to_vec()));
                cursor.next(until)?;
            }
            Ok(taken)
        });
        let taken = taken.map_err(raise)?;
        taken.iter().map(|(key, value)| pair(py, self.value_type, (key.lent(), value))).collect()
    }
}
