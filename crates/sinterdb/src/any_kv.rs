//! Key-value trees whose types are known only when the program runs.

use crate::{Connection, Result};
use sinter_sql::{
    Condition, Find, KeyType, KvChanges, KvCursor, KvHandle, KvKey, KvLoad, KvOptions, KvSums, ValueType,
};
use std::fmt;
use std::ops::{Bound, ControlFlow};

/// A key-value tree of any type, for bindings of other languages; in Rust, [`Kv`](crate::Kv) is the better way. What its
/// operations mean and which errors they have stands there.
#[derive(Clone)]
pub struct AnyKv {
    connection: Connection,
    handle: KvHandle,
}

impl AnyKv {
    pub(crate) fn open(connection: Connection, name: &str, options: &KvOptions) -> Result<AnyKv> {
        let handle = connection.session().kv(name, options)?;
        Ok(AnyKv { connection, handle })
    }

    /// What it is called.
    pub fn name(&self) -> String {
        self.handle.name()
    }

    /// What its keys are.
    pub fn key_type(&self) -> KeyType {
        self.handle.key_type()
    }

    /// What its values are. Numbers are little-endian.
    pub fn value_type(&self) -> ValueType {
        self.handle.value_type()
    }

    /// Whether a key has any number of values.
    pub fn has_duplicates(&self) -> bool {
        self.handle.has_duplicates()
    }

    /// Shows the key's value to `use_it`, where it lies.
    ///
    /// # Errors
    /// As [`Kv::get_with`](crate::Kv::get_with).
    pub fn get_with<R>(&self, key: KvKey<'_>, use_it: impl FnOnce(Option<&[u8]>) -> R) -> Result<R> {
        self.connection.session().kv_get(&self.handle, key, use_it)
    }

    /// Whether the key is there.
    ///
    /// # Errors
    /// As [`Kv::contains`](crate::Kv::contains).
    pub fn contains(&self, key: KvKey<'_>) -> Result<bool> {
        self.connection.session().kv_contains(&self.handle, key)
    }

    /// Gives the key this value, or takes it away, if the condition holds. Whether it did.
    ///
    /// # Errors
    /// As [`Kv::put`](crate::Kv::put).
    pub fn change(&self, key: KvKey<'_>, value: Option<&[u8]>, condition: Condition<'_>) -> Result<bool> {
        self.connection.session().kv_change(&self.handle, key, value, condition)
    }

    /// Changes to be made by [`AnyKv::update`].
    pub fn changes(&self) -> KvChanges<'_> {
        KvChanges::new(&self.handle)
    }

    /// Makes changes, in one commit.
    ///
    /// # Errors
    /// As [`Kv::update`](crate::Kv::update).
    pub fn update(&self, changes: KvChanges<'_>) -> Result<()> {
        self.connection.session().kv_update(changes)
    }

    /// Takes the keys of a range away, in one commit. How many there were.
    ///
    /// # Errors
    /// As [`Kv::delete_range`](crate::Kv::delete_range).
    pub fn delete_range(&self, start: Bound<KvKey<'_>>, end: Bound<KvKey<'_>>) -> Result<u64> {
        self.connection.session().kv_delete_range(&self.handle, (start, end))
    }

    /// Shows the nearest entry to `use_it`; without a key, the first (`Greater`) or the last (`Less`).
    ///
    /// # Errors
    /// As [`Kv::find`](crate::Kv::find).
    pub fn find<R>(
        &self,
        find: Find,
        key: Option<KvKey<'_>>,
        use_it: impl FnOnce(Option<(KvKey<'_>, &[u8])>) -> R,
    ) -> Result<R> {
        self.connection.session().kv_find(&self.handle, find, key, use_it)
    }

    /// How many keys there are.
    ///
    /// # Errors
    /// As [`Kv::len`](crate::Kv::len).
    pub fn count(&self) -> Result<u64> {
        self.connection.session().kv_len(&self.handle)
    }

    /// Shows the entries of a range to `visit`, where they lie, until it breaks off.
    ///
    /// # Errors
    /// As [`Kv::for_each_while`](crate::Kv::for_each_while).
    pub fn for_each(
        &self,
        start: Bound<KvKey<'_>>,
        end: Bound<KvKey<'_>>,
        visit: &mut dyn FnMut(KvKey<'_>, &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        self.connection.session().kv_for_each(&self.handle, (start, end), visit)
    }

    /// What there is of the keys of a range.
    ///
    /// # Errors
    /// As [`Kv::sums`](crate::Kv::sums); [`crate::Error::Data`] where keys are no whole numbers.
    pub fn sums(&self, start: Bound<KvKey<'_>>, end: Bound<KvKey<'_>>) -> Result<KvSums> {
        self.connection.session().kv_sums(&self.handle, start, end)
    }

    /// A cursor, on no entry yet.
    ///
    /// # Errors
    /// As [`Kv::cursor`](crate::Kv::cursor).
    pub fn cursor(&self) -> Result<AnyCursor> {
        Ok(AnyCursor { kv: self.clone(), cursor: self.connection.session().kv_cursor(&self.handle)? })
    }
}

impl fmt::Debug for AnyKv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AnyKv").field(&self.name()).finish()
    }
}

/// A place in a tree of any type, on an entry or on none.
#[derive(Debug)]
pub struct AnyCursor {
    kv: AnyKv,
    cursor: KvCursor,
}

impl AnyCursor {
    /// The entry that it is on, if it is on one.
    pub fn entry(&self) -> Option<(KvKey<'_>, &[u8])> {
        self.cursor.entry()
    }

    /// Goes to the entry that is looked for, or to none; without a key, to the first (`Greater`) or the last (`Less`).
    /// What is behind `until` need not be found, and a transaction has not read it.
    ///
    /// # Errors
    /// As [`Cursor::seek`](crate::Cursor::seek).
    pub fn seek(&mut self, find: Find, key: Option<KvKey<'_>>, until: Bound<KvKey<'_>>) -> Result<()> {
        self.cursor.seek_until(self.kv.connection.session(), find, key, until)
    }

    /// Goes to the next entry; from none to none.
    ///
    /// # Errors
    /// As [`Cursor::seek`](crate::Cursor::seek).
    pub fn next(&mut self, until: Bound<KvKey<'_>>) -> Result<()> {
        self.cursor.next_until(self.kv.connection.session(), until)
    }

    /// Shows the entry that it has come to, where that lay behind an earlier `until`, and lies before this one.
    ///
    /// # Errors
    /// As [`Cursor::seek`](crate::Cursor::seek).
    pub fn go_on(&mut self, until: Bound<KvKey<'_>>) -> Result<()> {
        self.cursor.go_on_until(until)
    }

    /// Goes to the entry before; from none to none.
    ///
    /// # Errors
    /// As [`Cursor::seek`](crate::Cursor::seek).
    pub fn previous(&mut self) -> Result<()> {
        self.cursor.previous(self.kv.connection.session())
    }
}

/// A tree of any type that is being loaded. See [`Load`](crate::Load).
#[derive(Debug)]
pub struct AnyLoad {
    connection: Connection,
    load: KvLoad,
}

impl AnyLoad {
    pub(crate) fn begin(connection: Connection, name: &str, options: &KvOptions) -> Result<AnyLoad> {
        let load = connection.session().kv_load(name, options)?;
        Ok(AnyLoad { connection, load })
    }

    /// Adds a key, which is to be greater than all before, with its value.
    ///
    /// # Errors
    /// As [`Load::push`](crate::Load::push).
    pub fn push(&mut self, key: KvKey<'_>, value: &[u8]) -> Result<()> {
        self.load.push(key, value)
    }

    /// What the values are. Numbers are little-endian.
    pub fn value_type(&self) -> ValueType {
        self.load.value_type()
    }

    /// The tree, in one commit.
    ///
    /// # Errors
    /// As [`Load::finish`](crate::Load::finish).
    pub fn finish(self) -> Result<AnyKv> {
        let AnyLoad { connection, load } = self;
        let handle = connection.session().kv_loaded(load)?;
        Ok(AnyKv { connection, handle })
    }
}
