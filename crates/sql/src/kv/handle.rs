//! What a session does with a tree: each operation a commit of its own, or part of the session's transaction.

use super::any_tree::{Entry, Key, KeyRef};
use super::cursor::KvCursor;
use super::overflow::{Apart, Overflow, is_apart, record_of, show, value_in};
use super::pair::{Pair, PairShape};
use super::ranges::{AnyRange, is_behind};
use super::{Condition, Find, KeyType, KvOptions, KvTree, ValueType};
use crate::catalog::{Catalog, TableName};
use crate::statement::parse_table_name;
use crate::{Database, Error, Result, Session};
use sinter_storage::{Built, CommitNumber, Numbered, Reservation, Use};
use std::cell::Cell;
use std::fmt;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A key as users have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KvKey<'a> {
    /// Of trees of whole numbers.
    Int(i128),
    /// Of trees of bytes.
    Bytes(&'a [u8]),
    /// Of trees of texts.
    Text(&'a str),
}

macro_rules! from {
    ($($native:ty => |$key:ident| $make:expr),* $(,)?) => {
        $(impl<'a> From<$native> for KvKey<'a> {
            fn from($key: $native) -> KvKey<'a> {
                $make
            }
        })*
    };
}

from! {
    u32 => |key| KvKey::Int(key.into()),
    u64 => |key| KvKey::Int(key.into()),
    i64 => |key| KvKey::Int(key.into()),
    &'a str => |key| KvKey::Text(key),
    &'a [u8] => |key| KvKey::Bytes(key),
}

impl fmt::Display for KvKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KvKey::Int(key) => write!(f, "{key}"),
            KvKey::Bytes(key) => write!(f, "a key of {} bytes", key.len()),
            KvKey::Text(key) => write!(f, "'{key}'"),
        }
    }
}

/// A tree that a session has opened. It stays good while the tree is not dropped.
#[derive(Clone, Debug)]
pub struct KvHandle {
    name: TableName,
    tree: Arc<KvTree>,
}

impl KvHandle {
    pub(super) fn new(name: TableName, tree: Arc<KvTree>) -> KvHandle {
        KvHandle { name, tree }
    }

    /// What it is called.
    pub fn name(&self) -> String {
        self.name.to_string()
    }

    /// What its keys are.
    pub fn key_type(&self) -> KeyType {
        self.tree.shape().key
    }

    /// What its values are.
    pub fn value_type(&self) -> ValueType {
        self.tree.shape().value
    }

    /// Whether a key has any number of values, in order, each once. Then giving it one adds that to the others, the one that it
    /// is said to have is the first, and an entry is a key with one of its values.
    pub fn has_duplicates(&self) -> bool {
        self.tree.shape().has_duplicates
    }

    pub(super) fn tree(&self) -> &Arc<KvTree> {
        &self.tree
    }

    pub(super) fn encode<'k>(&self, key: KvKey<'k>) -> Result<KeyRef<'k>> {
        self.key_type().encode(key)
    }

    pub(super) fn encode_bound<'k>(&self, bound: Bound<KvKey<'k>>) -> Result<Bound<KeyRef<'k>>> {
        Ok(match bound {
            Bound::Included(key) => Bound::Included(self.encode(key)?),
            Bound::Excluded(key) => Bound::Excluded(self.encode(key)?),
            Bound::Unbounded => Bound::Unbounded,
        })
    }

    /// Where a range of keys is in the tree.
    pub(super) fn range(&self, (start, end): (Bound<KvKey<'_>>, Bound<KvKey<'_>>)) -> Result<AnyRange> {
        let range = (self.encode_bound(start)?.map(KeyRef::to_key), self.encode_bound(end)?.map(KeyRef::to_key));
        Ok(self.pairs().map_or_else(|| range.clone(), |pairs| pairs.range(&range)))
    }

    /// Where a key has any number of values.
    pub(super) fn pairs(&self) -> Option<PairShape> {
        self.tree.shape().pairs()
    }

    /// The key and the value as a tree of pairs has them.
    ///
    /// # Errors
    /// [`Error::Data`]: the tree takes no such key or value.
    pub(super) fn pair(&self, pairs: PairShape, key: KeyRef<'_>, value: &[u8]) -> Result<Vec<u8>> {
        pair(&self.name, self.value_type(), pairs, self.tree.bytes_max().0, key, value)
    }

    /// Whether the tree takes this key and value.
    pub(super) fn check(&self, key: KeyRef<'_>, value: Option<&[u8]>) -> Result<()> {
        check(&self.name, self.value_type(), self.tree.bytes_max(), key, value)
    }

    /// Shows the value of a record to `use_it`, of the state after commit `at`, which somebody holds.
    fn show<R>(&self, record: Option<&[u8]>, at: CommitNumber, use_it: impl FnOnce(Option<&[u8]>) -> R) -> Result<R> {
        let Some(overflow) = self.tree.overflow() else { return Ok(use_it(record)) };
        match show(record, use_it) {
            Ok(shown) => Ok(shown),
            Err((apart, use_it)) => Ok(use_it(Some(&overflow.read(apart, None, at)?))),
        }
    }

    /// Whether the database has the tree.
    pub(super) fn check_live(&self, database: &Database) -> Result<()> {
        match self.tree.is_live() {
            Some(true) => Ok(()),
            Some(false) => Err(self.dropped()),
            None => self.check_known(&database.catalog()),
        }
    }

    fn dropped(&self) -> Error {
        Error::Sql(format!("'{}' was dropped", self.name))
    }

    /// Whether this catalog has the tree.
    fn check_known(&self, catalog: &Catalog) -> Result<()> {
        if self.tree.was_seen_in(catalog.edition) {
            return Ok(());
        }
        match catalog.tree_by_id(self.tree.id()) {
            Some(_) => {
                self.tree.note_seen_in(catalog.edition);
                Ok(())
            }
            None => Err(self.dropped()),
        }
    }
}

/// The pair of a key and a value, in a tree whose keys have so many bytes at most.
///
/// # Errors
/// [`Error::Data`]: it has more.
pub(super) fn pair(
    name: &TableName,
    value_type: ValueType,
    pairs: PairShape,
    bytes_max: usize,
    key: KeyRef<'_>,
    value: &[u8],
) -> Result<Vec<u8>> {
    check(name, value_type, (usize::MAX, usize::MAX), key, Some(value))?;
    let pair = pairs.pair(key, value);
    match pair.len() <= bytes_max {
        true => Ok(pair),
        false => Err(Error::Data(format!(
            "a key and its value take {} bytes, where '{name}', which has duplicates, has place for {bytes_max}",
            pair.len()
        ))),
    }
}

/// Whether a tree with these values, whose keys and values have so many bytes at most, takes this key and value.
///
/// # Errors
/// [`Error::Data`]: it does not.
pub(super) fn check(
    name: &TableName,
    value_type: ValueType,
    (key_bytes_max, value_bytes_max): (usize, usize),
    key: KeyRef<'_>,
    value: Option<&[u8]>,
) -> Result<()> {
    if let KeyRef::Bytes(key) = key
        && key.len() > key_bytes_max
    {
        return Err(Error::Data(format!(
            "a key of {} bytes is too long for '{name}', whose keys have {key_bytes_max} at most",
            key.len()
        )));
    }
    let Some(value) = value else { return Ok(()) };
    match value_type.width() {
        Some(width) if value.len() != width => {
            Err(Error::Data(format!("a value of {} bytes, where those of '{name}' have {width} each", value.len())))
        }
        None if value.len() > value_bytes_max => Err(Error::Data(format!(
            "a value of {} bytes is too long for '{name}', whose values have {value_bytes_max} at most",
            value.len()
        ))),
        _ => Ok(()),
    }
}

impl Session {
    /// The tree of that name, which is made where there is none.
    ///
    /// # Errors
    /// [`Error::Sql`] where a table has the name, or the tree is another than `options` say.
    pub fn kv(&self, name: &str, options: &KvOptions) -> Result<KvHandle> {
        let name = parse_table_name(name)?;
        let seen = self.readable()?;
        if let Some(tree) = seen.catalog.kv_tree(&name) {
            seen.reads.name(&name);
            options.check(&name.to_string(), tree.shape())?;
            return Ok(KvHandle { name, tree: Arc::clone(tree) });
        }
        let shape = options.shape()?;
        let tree = self.change(|transaction| {
            if let Some(tree) = transaction.find_tree(&name) {
                options.check(&name.to_string(), tree.shape())?;
                return Ok(tree);
            }
            transaction.create_tree(&self.database, name.clone(), shape)
        })?;
        Ok(KvHandle { name, tree })
    }

    /// Shows the value of a key to `use_it`: in the session's transaction, or the last that is durable. `use_it` is to be
    /// quick, and to leave the session and the tree alone: its leaf is latched.
    ///
    /// # Errors
    /// [`Error::Data`]: it is no key of the tree's type. The tree was dropped, or cannot be read.
    pub fn kv_get<R>(&self, kv: &KvHandle, key: KvKey<'_>, use_it: impl FnOnce(Option<&[u8]>) -> R) -> Result<R> {
        if kv.pairs().is_some() {
            return self.kv_find(kv, Find::Equal, Some(key), |found| use_it(found.map(|(_, value)| value)));
        }
        let key = kv.encode(key)?;
        if let Some(transaction) = self.transaction().as_mut() {
            transaction.check_usable()?;
            return transaction.with_tree(&kv.tree, |draft, at, notes_reads| draft.get(key, at, notes_reads, use_it));
        }
        kv.check_live(&self.database)?;
        self.database.runtime()?;
        let timeline = self.database.timeline();
        if kv.tree.overflow().is_none() {
            return kv.tree.tree().get(key, || timeline.visible_commit(), use_it);
        }
        let use_it = match kv.tree.tree().get(key, || timeline.visible_commit(), |record| show(record, use_it))? {
            Ok(shown) => return Ok(shown),
            Err((_, use_it)) => use_it,
        };
        // Its pieces are to be of the same state, and read with no leaf latched.
        let snapshot = timeline.snapshot();
        let commit = snapshot.commit();
        match (kv.tree.tree().get(key, || commit, |record| show(record, use_it))?, kv.tree.overflow()) {
            (Ok(shown), _) => Ok(shown),
            (Err((apart, use_it)), Some(overflow)) => Ok(use_it(Some(&overflow.read(apart, None, commit)?))),
            (Err(_), None) => Err(Error::Internal("a value is apart in a tree without overflow".to_owned())),
        }
    }

    /// Whether the key is there, as [`Session::kv_get`] would show it.
    ///
    /// # Errors
    /// As there.
    pub fn kv_contains(&self, kv: &KvHandle, key: KvKey<'_>) -> Result<bool> {
        if kv.pairs().is_some() {
            return self.kv_find(kv, Find::Equal, Some(key), |found| found.is_some());
        }
        let key = kv.encode(key)?;
        if let Some(transaction) = self.transaction().as_mut() {
            transaction.check_usable()?;
            return transaction.with_tree(&kv.tree, |draft, at, notes_reads| draft.has(key, at, notes_reads));
        }
        kv.check_live(&self.database)?;
        self.database.runtime()?;
        let timeline = self.database.timeline();
        kv.tree.tree().get(key, || timeline.visible_commit(), |record| record.is_some())
    }

    /// Gives a key this value, or takes it away, if `condition` holds; says whether it did.
    ///
    /// # Errors
    /// [`Error::Data`]: the tree takes no such key or value. The tree was dropped, or cannot be read or written. Nothing
    /// has happened then.
    pub fn kv_change(
        &self,
        kv: &KvHandle,
        key: KvKey<'_>,
        value: Option<&[u8]>,
        condition: Condition<'_>,
    ) -> Result<bool> {
        self.check_changeable()?;
        let encoded = kv.encode(key)?;
        match kv.pairs() {
            Some(pairs) => self.change_pairs(kv, pairs, key, value, condition),
            None => {
                kv.check(encoded, value)?;
                self.change_entry(kv, encoded, value, condition)
            }
        }
    }

    /// The same, of what the tree takes.
    pub(super) fn change_entry(
        &self,
        kv: &KvHandle,
        key: KeyRef<'_>,
        value: Option<&[u8]>,
        condition: Condition<'_>,
    ) -> Result<bool> {
        if let Some(transaction) = self.transaction().as_mut() {
            transaction.check_changeable()?;
            return transaction
                .with_tree(&kv.tree, |draft, at, notes_reads| draft.change_if(key, value, condition, at, notes_reads));
        }
        kv.check_live(&self.database)?;
        self.database.runtime()?;
        let changed = match kv.tree.overflow() {
            None => self.change_record(kv, key, value, condition, || true),
            Some(overflow) => self.change_where_in_records(kv, overflow, key, value, condition),
        }?;
        if let Some(has_changed) = changed {
            return Ok(has_changed);
        }
        // Pieces come or go with it.
        self.change(|transaction| {
            transaction
                .with_tree(&kv.tree, |draft, at, notes_reads| draft.change_if(key, value, condition, at, notes_reads))
        })
    }

    /// Changes a key of a tree with an overflow, where neither its old value nor its new one is apart; else nothing has
    /// happened, and `None` is returned.
    fn change_where_in_records(
        &self,
        kv: &KvHandle,
        overflow: &Overflow,
        key: KeyRef<'_>,
        value: Option<&[u8]>,
        condition: Condition<'_>,
    ) -> Result<Option<bool>> {
        let (_, record_bytes_max) = kv.tree.tree().bytes_max();
        let is_long = |value: &[u8]| is_apart(value, record_bytes_max);
        let asks_for_value = match condition {
            Condition::Equals(value) => is_long(value),
            Condition::Where(_) => true,
            Condition::Always | Condition::Absent | Condition::Present => false,
        };
        if asks_for_value || value.is_some_and(is_long) {
            return Ok(None);
        }
        let record = value.map(record_of);
        if !overflow.is_used() {
            let expected = if let Condition::Equals(value) = condition { Some(record_of(value)) } else { None };
            let condition = expected.as_deref().map_or(condition, Condition::Equals);
            // Whoever puts the first long value says so before he latches its leaf, which is latched here.
            return self.change_record(kv, key, record.as_deref(), condition, || !overflow.is_used());
        }
        let was_apart = AtomicBool::new(false);
        let holds = |record: Option<&[u8]>| {
            let is_apart = record.is_some_and(|record| Apart::of(record).is_some());
            was_apart.store(is_apart, Ordering::Relaxed);
            !is_apart && condition.holds(|| record.map(value_in))
        };
        let changed = self.change_record(kv, key, record.as_deref(), Condition::Where(&holds), || true)?;
        Ok(changed.filter(|_| !was_apart.load(Ordering::Relaxed)))
    }

    /// Gives a key this record, or takes it away, in a commit of its own, if `condition` holds. `None` where `may_stand` says
    /// no, with the key's leaf latched; nothing has happened then.
    fn change_record(
        &self,
        kv: &KvHandle,
        key: KeyRef<'_>,
        record: Option<&[u8]>,
        condition: Condition<'_>,
        may_stand: impl FnOnce() -> bool,
    ) -> Result<Option<bool>> {
        let timeline = self.database.timeline();
        let mut entered = timeline.enter(None);
        let logged = kv.tree.tree().log_record(kv.tree.id(), key, record);
        let stands = Cell::new(true);
        let changed = kv.tree.tree().change(key, record, condition, || {
            if !may_stand() {
                stands.set(false);
                return Err(Error::Internal("a value is apart by now".to_owned()));
            }
            let numbered: Option<Numbered> = entered.number(|pending| -> Result<_> {
                kv.check_known(pending)?;
                Ok(Some(Built { root: Arc::clone(pending), records: vec![logged], pages: Vec::new() }))
            })?;
            numbered.ok_or_else(|| Error::Internal("a commit got no number".to_owned()))
        });
        if !stands.get() {
            return Ok(None);
        }
        let has_changed = changed?;
        entered.finish()?;
        match has_changed {
            true => self.database.after_kv_commit(kv.tree.id()),
            // What it saw is told: so it has to be durable.
            false => timeline.catch_up()?,
        }
        Ok(Some(has_changed))
    }

    /// Gives keys values, or takes them away, all in one commit.
    ///
    /// # Errors
    /// As [`Session::kv_change`]: nothing has happened then.
    pub fn kv_update(&self, changes: KvChanges<'_>) -> Result<()> {
        let KvChanges { kv, changes, .. } = changes;
        self.change(|transaction| {
            transaction.check_changeable()?;
            transaction.with_tree(&kv.tree, |draft, at, notes_reads| {
                changes.iter().try_for_each(|change| match change {
                    Planned::Entry(key, value) => draft.change(key.lent(), value.as_deref(), at),
                    Planned::Range(range) => draft.delete_range(range, at, notes_reads).map(drop),
                })
            })
        })
    }

    /// Takes the keys of a range away, in one commit, and says how many there were.
    ///
    /// # Errors
    /// As [`Session::kv_change`]: nothing has happened then.
    pub fn kv_delete_range(&self, kv: &KvHandle, range: (Bound<KvKey<'_>>, Bound<KvKey<'_>>)) -> Result<u64> {
        let range = kv.range(range)?;
        self.change(|transaction| {
            transaction.check_changeable()?;
            transaction.with_tree(&kv.tree, |draft, at, notes_reads| draft.delete_range(&range, at, notes_reads))
        })
    }

    /// The entry that is looked for, shown to `use_it`; without a key, the first (`Greater`) or the last (`Less`).
    ///
    /// # Errors
    /// As [`Session::kv_get`].
    pub fn kv_find<R>(
        &self,
        kv: &KvHandle,
        find: Find,
        key: Option<KvKey<'_>>,
        use_it: impl FnOnce(Option<(KvKey<'_>, &[u8])>) -> R,
    ) -> Result<R> {
        let key = key.map(|key| kv.encode(key)).transpose()?;
        let ty = kv.key_type();
        match kv.pairs() {
            None => self.find_entry(kv, find, key, Bound::Unbounded, |found| {
                use_it(found.map(|(key, value)| (ty.decode(key), value)))
            }),
            Some(pairs) => self.find_pair(kv, pairs, find, key, |found| {
                use_it(found.map(|pair| (ty.decode(pair.key()), pair.value())))
            }),
        }
    }

    /// The same, of what the tree has; forward none behind `until`.
    pub(super) fn find_entry<R>(
        &self,
        kv: &KvHandle,
        find: Find,
        key: Option<KeyRef<'_>>,
        until: Bound<KeyRef<'_>>,
        use_it: impl FnOnce(Option<(KeyRef<'_>, &[u8])>) -> R,
    ) -> Result<R> {
        if let Some(transaction) = self.transaction().as_mut() {
            transaction.check_usable()?;
            let found: Option<Entry> = transaction
                .with_tree(&kv.tree, |draft, at, notes_reads| draft.find(find, key, until, at, notes_reads))?;
            return Ok(use_it(found.as_ref().map(|found| (found.key.lent(), &*found.record))));
        }
        kv.check_live(&self.database)?;
        self.database.runtime()?;
        // What one step after the other sees is of one state.
        let snapshot = self.database.timeline().snapshot();
        let mut cursor = kv.tree.tree().cursor(snapshot.commit());
        cursor.seek(find, key)?;
        match cursor.entry().filter(|(key, _)| !is_behind(*key, until)) {
            Some((key, record)) => {
                kv.show(Some(record), snapshot.commit(), |value| use_it(Some((key, value.unwrap_or_default()))))
            }
            None => Ok(use_it(None)),
        }
    }

    /// A cursor over the tree, on no entry yet: of one state, the last that is durable, or of the session's transaction.
    ///
    /// # Errors
    /// As [`Session::kv_get`].
    pub fn kv_cursor(&self, kv: &KvHandle) -> Result<KvCursor> {
        self.database.runtime()?;
        match self.transaction().as_ref() {
            Some(transaction) => {
                transaction.check_usable()?;
                Ok(KvCursor::in_transaction(kv.clone(), transaction.id()))
            }
            None => {
                kv.check_live(&self.database)?;
                Ok(KvCursor::new(kv.clone(), self.database.timeline().snapshot()))
            }
        }
    }

    /// Shows the entries of a range to `visit`, in the order of keys, where they lie: of one state, the last that is durable, or
    /// of the session's transaction; until `visit` breaks off. It is to be quick, and to leave the session and the tree alone: a leaf is latched.
    ///
    /// # Errors
    /// As [`Session::kv_get`].
    pub fn kv_for_each(
        &self,
        kv: &KvHandle,
        (start, end): (Bound<KvKey<'_>>, Bound<KvKey<'_>>),
        visit: &mut dyn FnMut(KvKey<'_>, &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        if self.in_transaction() {
            let mut cursor = self.kv_cursor(kv)?;
            match start {
                Bound::Included(key) => cursor.seek_until(self, Find::GreaterEqual, Some(key), end)?,
                Bound::Excluded(key) => cursor.seek_until(self, Find::Greater, Some(key), end)?,
                Bound::Unbounded => cursor.seek_until(self, Find::Greater, None, end)?,
            }
            while let Some((key, value)) = cursor.entry() {
                if visit(key, value).is_break() {
                    break;
                }
                cursor.next_until(self, end)?;
            }
            return Ok(());
        }
        let range = kv.range((start, end))?;
        kv.check_live(&self.database)?;
        self.database.runtime()?;
        let (ty, snapshot) = (kv.key_type(), self.database.timeline().snapshot());
        let (commit, mut shown) = (snapshot.commit(), Ok(()));
        let (pairs, mut pair) = (kv.pairs(), Pair::new());
        kv.tree.tree().for_each(&range, commit, &mut |key, record| {
            let goes_on = match (pairs, key) {
                (Some(pairs), KeyRef::Bytes(bytes)) => {
                    pairs.read(bytes, &mut pair).map(|()| visit(ty.decode(pair.key()), pair.value()))
                }
                _ => kv.show(Some(record), commit, |value| visit(ty.decode(key), value.unwrap_or_default())),
            };
            goes_on.unwrap_or_else(|error| {
                shown = Err(error);
                ControlFlow::Break(())
            })
        })?;
        shown
    }

    /// How many keys there are; of one with several values each counts.
    ///
    /// # Errors
    /// As [`Session::kv_get`].
    pub fn kv_len(&self, kv: &KvHandle) -> Result<u64> {
        if let Some(transaction) = self.transaction().as_mut() {
            transaction.check_usable()?;
            return transaction.with_tree(&kv.tree, |draft, at, notes_reads| draft.len(at, notes_reads));
        }
        kv.check_live(&self.database)?;
        self.database.runtime()?;
        let snapshot = self.database.timeline().snapshot();
        kv.tree.tree().len(snapshot.commit())
    }
}

/// Changes that are to be one commit. They are checked as they come, and made by [`Session::kv_update`].
#[derive(Debug)]
pub struct KvChanges<'a> {
    kv: &'a KvHandle,
    changes: Vec<Planned>,
    memory: Reservation,
}

/// One of them.
#[derive(Debug)]
enum Planned {
    /// An entry gets this value, or goes.
    Entry(Key, Option<Box<[u8]>>),
    /// All entries of a range go.
    Range(AnyRange),
}

impl<'a> KvChanges<'a> {
    /// None yet.
    pub fn new(kv: &'a KvHandle) -> KvChanges<'a> {
        KvChanges { kv, changes: Vec::new(), memory: kv.tree.budget().take(Use::Query, 0) }
    }

    /// Gives the key this value, or takes it away; where it has any number of values, all of them.
    ///
    /// # Errors
    /// [`Error::Data`]: the tree takes no such key or value. There is no memory for it.
    pub fn push(&mut self, key: KvKey<'_>, value: Option<&[u8]>) -> Result<()> {
        let encoded = self.kv.encode(key)?;
        let key_bytes = if let KeyRef::Bytes(key) = encoded { key.len() } else { 0 };
        self.memory.grow(size_of::<Planned>() + key_bytes + value.map_or(0, <[u8]>::len))?;
        self.changes.push(match (self.kv.pairs(), value) {
            (Some(pairs), Some(value)) => {
                Planned::Entry(Key::Bytes(self.kv.pair(pairs, encoded, value)?), Some(Box::default()))
            }
            (Some(_), None) => Planned::Range(self.kv.range((Bound::Included(key), Bound::Included(key)))?),
            (None, _) => {
                self.kv.check(encoded, value)?;
                Planned::Entry(encoded.to_key(), value.map(Box::from))
            }
        });
        Ok(())
    }
}
