//! Key-value trees: ordered maps whose keys stay compressed.

use crate::any_kv::{AnyCursor, AnyKv, AnyLoad};
use crate::{Connection, Error, Result};
use sinter_sql::{Condition, Find, KeyType, KvKey, KvOptions, KvSums};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, ControlFlow, RangeBounds};

/// A type that is a key of a tree: `u32`, `u64`, `i64`, `str` or `[u8]`.
pub trait Key: private::Sealed + 'static {
    /// How calls take a key.
    type Lent<'a>: Copy + Into<KvKey<'a>>;
    /// How results have it.
    type Owned: fmt::Debug + Clone + Ord;
}

mod private {
    use super::{Key, KeyType, KvKey};

    pub trait Sealed {
        const TYPE: KeyType;

        /// `None` where it is of another type.
        fn owned(key: KvKey<'_>) -> Option<Self::Owned>
        where
            Self: Key;

        /// As [`Sealed::owned`].
        fn lent(key: KvKey<'_>) -> Option<Self::Lent<'_>>
        where
            Self: Key;

        fn key(owned: &Self::Owned) -> KvKey<'_>
        where
            Self: Key;
    }
}

macro_rules! key_types {
    ($($key:ty, $lent:ty, $owned:ty, $ty:ident, $pattern:pat => $own:expr, $found:expr, |$lent_of:ident| $lend:expr;)*) => {$(
        impl Key for $key {
            type Lent<'a> = $lent;
            type Owned = $owned;
        }

        impl private::Sealed for $key {
            const TYPE: KeyType = KeyType::$ty;

            fn owned(key: KvKey<'_>) -> Option<$owned> {
                match key {
                    $pattern => $own,
                    _ => None,
                }
            }

            fn lent(key: KvKey<'_>) -> Option<<Self as Key>::Lent<'_>> {
                match key {
                    $pattern => $found,
                    _ => None,
                }
            }

            fn key($lent_of: &$owned) -> KvKey<'_> {
                $lend
            }
        }
    )*};
}

key_types! {
    u32, u32, u32, U32, KvKey::Int(key) => key.try_into().ok(), key.try_into().ok(), |key| KvKey::Int((*key).into());
    u64, u64, u64, U64, KvKey::Int(key) => key.try_into().ok(), key.try_into().ok(), |key| KvKey::Int((*key).into());
    i64, i64, i64, I64, KvKey::Int(key) => key.try_into().ok(), key.try_into().ok(), |key| KvKey::Int((*key).into());
    str, &'a str, String, Text, KvKey::Text(key) => Some(key.to_owned()), Some(key), |key| KvKey::Text(key);
    [u8], &'a [u8], Vec<u8>, Bytes, KvKey::Bytes(key) => Some(key.to_vec()), Some(key), |key| KvKey::Bytes(key);
}

/// An entry: a key with its value.
pub type Entry<K> = (<K as Key>::Owned, Vec<u8>);

/// A key-value tree of a database. [`Connection::kv`] opens it.
///
/// Outside of a transaction each change is a commit of its own, and each reading is of the last state that is durable.
/// Between [`Connection::begin`] and its end all of it is part of the transaction, whose other changes may be of tables.
/// Queries read it as a table of two columns, `key` and `value`.
///
/// Where [`KvOptions::duplicates`] says so, a key has any number of values, in their order, each once, of 2000 bytes together
/// with their key: [`Kv::put`] adds one, [`Kv::insert`] says whether it was new, [`Kv::discard`] takes one away and
/// [`Kv::delete`] all. [`Kv::get`] has the first, [`Kv::get_all`] all of them; ranges and cursors have each, beside its key.
///
/// ```
/// # let conn = sinterdb::Database::memory()?.connect();
/// let sessions = conn.kv::<u32>("sessions")?;
/// sessions.put(7, b"seven")?;
/// sessions.update((10..20).map(|key| (key, Some("x"))))?;
/// assert_eq!(sessions.range(8..12)?.count(), 2);
/// let after = conn.sql("SELECT key, value FROM sessions WHERE key > 15 ORDER BY key")?.collect()?;
/// assert_eq!(after[0].num_rows(), 4);
/// # Ok::<(), sinterdb::Error>(())
/// ```
pub struct Kv<K: Key + ?Sized> {
    any: AnyKv,
    key: PhantomData<fn(&K)>,
}

impl<K: Key + ?Sized> Kv<K> {
    pub(crate) fn open(connection: Connection, name: &str, options: KvOptions) -> Result<Kv<K>> {
        let options = KvOptions { key: Some(K::TYPE), ..options };
        Ok(Kv { any: AnyKv::open(connection, name, &options)?, key: PhantomData })
    }

    /// The key's value.
    ///
    /// # Errors
    /// [`Error`]: the tree was dropped, or cannot be read.
    pub fn get(&self, key: K::Lent<'_>) -> Result<Option<Vec<u8>>> {
        self.get_with(key, |value| value.map(<[u8]>::to_vec))
    }

    /// Shows the key's value to `use_it`, where it lies. That is to be quick, since who writes near it waits, and to call
    /// nothing of the database.
    ///
    /// # Errors
    /// As [`Kv::get`].
    pub fn get_with<R>(&self, key: K::Lent<'_>, use_it: impl FnOnce(Option<&[u8]>) -> R) -> Result<R> {
        self.any.get_with(key.into(), use_it)
    }

    /// The key's values, in their order: several where the tree has duplicates ([`KvOptions::duplicates`]).
    ///
    /// # Errors
    /// As [`Kv::get`].
    pub fn get_all(&self, key: K::Lent<'_>) -> Result<Vec<Vec<u8>>> {
        let mut values = Vec::new();
        self.for_each(key..=key, |_, value| values.push(value.to_vec()))?;
        Ok(values)
    }

    /// Takes one value of the key away; whether it had it.
    ///
    /// # Errors
    /// As [`Kv::put`].
    pub fn discard(&self, key: K::Lent<'_>, value: &[u8]) -> Result<bool> {
        self.change(key, None, Condition::Equals(value))
    }

    /// Whether the key is there.
    ///
    /// # Errors
    /// As [`Kv::get`].
    pub fn contains(&self, key: K::Lent<'_>) -> Result<bool> {
        self.any.contains(key.into())
    }

    /// Gives the key this value, of up to 256 MiB, whether it is there or not. One that is longer than a quarter of a leaf (4 kB)
    /// is kept beside the tree, in pieces, and put together where it is read.
    ///
    /// # Errors
    /// [`Error::Data`]: the tree takes no such key or value. It was dropped, or cannot be written. Nothing has happened then.
    pub fn put(&self, key: K::Lent<'_>, value: impl AsRef<[u8]>) -> Result<()> {
        self.change(key, Some(value.as_ref()), Condition::Always).map(drop)
    }

    /// Gives the key this value if it is not there. Whether it was not.
    ///
    /// # Errors
    /// As [`Kv::put`].
    pub fn insert(&self, key: K::Lent<'_>, value: impl AsRef<[u8]>) -> Result<bool> {
        self.change(key, Some(value.as_ref()), Condition::Absent)
    }

    /// Gives the key the value `new` where it has `old`. Whether it had.
    ///
    /// # Errors
    /// As [`Kv::put`].
    pub fn compare_and_swap(&self, key: K::Lent<'_>, old: &[u8], new: impl AsRef<[u8]>) -> Result<bool> {
        self.change(key, Some(new.as_ref()), Condition::Equals(old))
    }

    /// Takes the key away. Whether it was there.
    ///
    /// # Errors
    /// As [`Kv::put`].
    pub fn delete(&self, key: K::Lent<'_>) -> Result<bool> {
        self.change(key, None, Condition::Present)
    }

    fn change(&self, key: K::Lent<'_>, value: Option<&[u8]>, condition: Condition<'_>) -> Result<bool> {
        self.any.change(key.into(), value, condition)
    }

    /// Gives keys values, in one commit; `None` takes a key away.
    ///
    /// # Errors
    /// As [`Kv::put`]; nothing of it has happened then.
    pub fn update<'a, V: AsRef<[u8]>>(
        &self,
        changes: impl IntoIterator<Item = (K::Lent<'a>, Option<V>)>,
    ) -> Result<()> {
        let mut all = self.any.changes();
        changes.into_iter().try_for_each(|(key, value)| all.push(key.into(), value.as_ref().map(AsRef::as_ref)))?;
        self.any.update(all)
    }

    /// Takes the keys of a range away, in one commit. How many there were. The commit is held in memory,
    /// and the leaves of all these keys with it.
    ///
    /// # Errors
    /// As [`Kv::put`]; nothing of it has happened then.
    pub fn delete_range<'a>(&self, range: impl RangeBounds<K::Lent<'a>>) -> Result<u64> {
        let lent = |bound: Bound<&K::Lent<'a>>| bound.map(|key| (*key).into());
        self.any.delete_range(lent(range.start_bound()), lent(range.end_bound()))
    }

    /// The entry of this key, or the nearest on one side of it.
    ///
    /// # Errors
    /// As [`Kv::get`].
    pub fn find(&self, find: Find, key: K::Lent<'_>) -> Result<Option<Entry<K>>> {
        self.nearest(find, Some(key.into()))
    }

    /// The entry with the least key.
    ///
    /// # Errors
    /// As [`Kv::get`].
    pub fn first(&self) -> Result<Option<Entry<K>>> {
        self.nearest(Find::Greater, None)
    }

    /// The entry with the greatest key.
    ///
    /// # Errors
    /// As [`Kv::get`].
    pub fn last(&self) -> Result<Option<Entry<K>>> {
        self.nearest(Find::Less, None)
    }

    fn nearest(&self, find: Find, key: Option<KvKey<'_>>) -> Result<Option<Entry<K>>> {
        let found = |entry: Option<(KvKey<'_>, &[u8])>| entry.map(owned::<K>).transpose();
        self.any.find(find, key, found)?
    }

    /// How many keys there are; of one with several values each counts.
    ///
    /// # Errors
    /// As [`Kv::get`].
    pub fn len(&self) -> Result<u64> {
        self.any.count()
    }

    /// Whether there are no keys.
    ///
    /// # Errors
    /// As [`Kv::get`].
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.first()?.is_none())
    }

    /// Count, sum, least and greatest of the keys of a range that are whole numbers, found within the leaves.
    ///
    /// # Errors
    /// As [`Kv::get`]; [`Error::Data`] where keys are text or bytes.
    pub fn sums<'a>(&self, range: impl RangeBounds<K::Lent<'a>>) -> Result<KvSums> {
        let lent = |bound: Bound<&K::Lent<'a>>| bound.map(|key| (*key).into());
        self.any.sums(lent(range.start_bound()), lent(range.end_bound()))
    }

    /// Shows the entries whose keys are in the range to `visit`, in their order and where they lie, of one state: outside
    /// of a transaction the quickest way over many. `visit` is to be quick, since who writes near it waits, and to call nothing of the database.
    ///
    /// # Errors
    /// As [`Kv::get`]; [`Error::Damaged`]: a key is none of the type.
    pub fn for_each<'a>(
        &self,
        range: impl RangeBounds<K::Lent<'a>>,
        mut visit: impl FnMut(K::Lent<'_>, &[u8]),
    ) -> Result<()> {
        self.for_each_while(range, |key, value| {
            visit(key, value);
            ControlFlow::Continue(())
        })
    }

    /// [`Kv::for_each`], until `visit` breaks off: the quickest way over the next few.
    ///
    /// ```
    /// # use std::ops::ControlFlow;
    /// # let kv = sinterdb::Database::memory()?.connect().kv::<u32>("sessions")?;
    /// kv.update((0..100).map(|key| (key * 3, Some("x"))))?;
    /// let mut next = Vec::new();
    /// kv.for_each_while(50.., |key, _| {
    ///     next.push(key);
    ///     if next.len() < 3 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    /// })?;
    /// assert_eq!(next, [51, 54, 57]);
    /// # Ok::<(), sinterdb::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Kv::for_each`].
    pub fn for_each_while<'a>(
        &self,
        range: impl RangeBounds<K::Lent<'a>>,
        mut visit: impl FnMut(K::Lent<'_>, &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let lent = |bound: Bound<&K::Lent<'a>>| bound.map(|key| (*key).into());
        let mut is_damaged = false;
        self.any.for_each(
            lent(range.start_bound()),
            lent(range.end_bound()),
            &mut |key, value| match K::lent(key) {
                Some(key) => visit(key, value),
                None => {
                    is_damaged = true;
                    ControlFlow::Break(())
                }
            },
        )?;
        if is_damaged { Err(other_type()) } else { Ok(()) }
    }

    /// A cursor, on no entry yet: over one state, or over the transaction that is under way.
    ///
    /// # Errors
    /// As [`Kv::get`].
    pub fn cursor(&self) -> Result<Cursor<K>> {
        Ok(Cursor { any: self.any.cursor()?, key: PhantomData })
    }

    /// The entries whose keys are in the range, in their order, of one state.
    ///
    /// # Errors
    /// As [`Kv::get`]; so may each entry be one.
    pub fn range<'a>(&self, range: impl RangeBounds<K::Lent<'a>>) -> Result<Entries<K>> {
        let owned =
            |bound: Bound<&K::Lent<'a>>| bound.map(|key| K::owned((*key).into()).expect("a key of the type is one"));
        let (start, end) = (owned(range.start_bound()), owned(range.end_bound()));
        Ok(Entries { cursor: self.cursor()?, start, end, state: State::Before })
    }
}

fn owned<K: Key + ?Sized>((key, value): (KvKey<'_>, &[u8])) -> Result<Entry<K>> {
    Ok((K::owned(key).ok_or_else(other_type)?, value.to_vec()))
}

fn other_type() -> Error {
    Error::Damaged("a key of the tree is of another type".to_owned())
}

impl<K: Key + ?Sized> Clone for Kv<K> {
    fn clone(&self) -> Kv<K> {
        Kv { any: self.any.clone(), key: PhantomData }
    }
}

impl<K: Key + ?Sized> fmt::Debug for Kv<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Kv").field(&self.any.name()).finish()
    }
}

/// A tree that is being loaded: made at once, of keys in their order. [`Connection::load_kv`] begins it.
///
/// Full leaves go to the file as they come, and the commit logs none of the keys: the quickest way to a large tree, and the
/// smallest. Until [`Load::finish`] nobody sees it; dropped before, it leaves nothing behind.
///
/// ```
/// # let conn = sinterdb::Database::memory()?.connect();
/// let mut load = conn.load_kv::<u64>("squares", Default::default())?;
/// for key in 0..1000_u64 {
///     load.push(key, (key * key).to_le_bytes())?;
/// }
/// let squares = load.finish()?;
/// assert_eq!(squares.get(12)?.as_deref(), Some(&144_u64.to_le_bytes()[..]));
/// # Ok::<(), sinterdb::Error>(())
/// ```
#[derive(Debug)]
pub struct Load<K: Key + ?Sized> {
    any: AnyLoad,
    key: PhantomData<fn(&K)>,
}

impl<K: Key + ?Sized> Load<K> {
    pub(crate) fn begin(connection: Connection, name: &str, options: KvOptions) -> Result<Load<K>> {
        let options = KvOptions { key: Some(K::TYPE), ..options };
        Ok(Load { any: AnyLoad::begin(connection, name, &options)?, key: PhantomData })
    }

    /// Adds a key, which is to be greater than all before, with its value.
    ///
    /// # Errors
    /// [`Error::Data`]: it is not, or the tree takes no such key or value: others may still come. A page cannot be written, or
    /// there is no memory: then the load is of no use any more.
    pub fn push(&mut self, key: K::Lent<'_>, value: impl AsRef<[u8]>) -> Result<()> {
        self.any.push(key.into(), value.as_ref())
    }

    /// The tree, in one commit, or as a part of the transaction that is under way.
    ///
    /// # Errors
    /// [`Error::Sql`]: something has got the name meanwhile. A page cannot be written. There is no tree then.
    pub fn finish(self) -> Result<Kv<K>> {
        Ok(Kv { any: self.any.finish()?, key: PhantomData })
    }
}

/// A place in a tree, on an entry or on none. Others may change the tree meanwhile: it stays where it is, and in its state.
pub struct Cursor<K: Key + ?Sized> {
    any: AnyCursor,
    key: PhantomData<fn(&K)>,
}

impl<K: Key + ?Sized> Cursor<K> {
    /// The entry that it is on, if it is on one.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the key is none of the type.
    pub fn entry(&self) -> Result<Option<Entry<K>>> {
        self.any.entry().map(owned::<K>).transpose()
    }

    /// The entry that it is on, if it is on one, where it lies.
    ///
    /// # Errors
    /// [`Error::Damaged`]: the key is none of the type.
    pub fn entry_lent(&self) -> Result<Option<(K::Lent<'_>, &[u8])>> {
        let Some((key, value)) = self.any.entry() else { return Ok(None) };
        Ok(Some((K::lent(key).ok_or_else(other_type)?, value)))
    }

    /// The value that it is on, where it lies.
    pub fn value(&self) -> Option<&[u8]> {
        self.any.entry().map(|(_, value)| value)
    }

    /// Goes to the entry that is looked for, or to none; whether there is one.
    ///
    /// # Errors
    /// As [`Kv::get`]; [`Error::Sql`] when the transaction is over in which it was made.
    pub fn seek(&mut self, find: Find, key: K::Lent<'_>) -> Result<bool> {
        self.any.seek(find, Some(key.into()), Bound::Unbounded)?;
        Ok(self.is_on_entry())
    }

    /// Goes to the first entry; whether there is one.
    ///
    /// # Errors
    /// As [`Cursor::seek`].
    pub fn first(&mut self) -> Result<bool> {
        self.any.seek(Find::Greater, None, Bound::Unbounded)?;
        Ok(self.is_on_entry())
    }

    /// Goes to the last entry; whether there is one.
    ///
    /// # Errors
    /// As [`Cursor::seek`].
    pub fn last(&mut self) -> Result<bool> {
        self.any.seek(Find::Less, None, Bound::Unbounded)?;
        Ok(self.is_on_entry())
    }

    /// Goes to the next entry; whether there is one.
    ///
    /// # Errors
    /// As [`Cursor::seek`].
    #[expect(clippy::should_implement_trait, reason = "it goes both ways")]
    pub fn next(&mut self) -> Result<bool> {
        self.any.next(Bound::Unbounded)?;
        Ok(self.is_on_entry())
    }

    /// Goes to the entry before; whether there is one.
    ///
    /// # Errors
    /// As [`Cursor::seek`].
    pub fn previous(&mut self) -> Result<bool> {
        self.any.previous()?;
        Ok(self.is_on_entry())
    }

    fn is_on_entry(&self) -> bool {
        self.any.entry().is_some()
    }
}

impl<K: Key + ?Sized> fmt::Debug for Cursor<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cursor").field(&self.any).finish()
    }
}

/// Entries of a range, one after the other. See [`Kv::range`].
pub struct Entries<K: Key + ?Sized> {
    cursor: Cursor<K>,
    start: Bound<K::Owned>,
    end: Bound<K::Owned>,
    state: State,
}

/// Where [`Entries`] are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Before,
    Within,
    Over,
}

impl<K: Key + ?Sized> Entries<K> {
    fn step(&mut self) -> Result<Option<Entry<K>>> {
        let until = self.end.as_ref().map(|key| K::key(key));
        let cursor = &mut self.cursor.any;
        match (self.state, &self.start) {
            (State::Over, _) => return Ok(None),
            (State::Within, _) => cursor.next(until)?,
            (State::Before, Bound::Included(key)) => cursor.seek(Find::GreaterEqual, Some(K::key(key)), until)?,
            (State::Before, Bound::Excluded(key)) => cursor.seek(Find::Greater, Some(K::key(key)), until)?,
            (State::Before, Bound::Unbounded) => cursor.seek(Find::Greater, None, until)?,
        }
        self.state = State::Within;
        Ok(self.cursor.entry()?.filter(|(key, _)| match &self.end {
            Bound::Included(end) => key <= end,
            Bound::Excluded(end) => key < end,
            Bound::Unbounded => true,
        }))
    }
}

impl<K: Key + ?Sized> Iterator for Entries<K> {
    type Item = Result<Entry<K>>;

    fn next(&mut self) -> Option<Result<Entry<K>>> {
        let entry = self.step();
        if !matches!(entry, Ok(Some(_))) {
            self.state = State::Over;
        }
        entry.transpose()
    }
}

impl<K: Key + ?Sized> fmt::Debug for Entries<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Entries").field(&self.cursor).finish()
    }
}
