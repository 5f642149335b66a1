//! What a session does with a tree: each operation a commit of its own, or part of the session's transaction.

use super::any_tree::{AnyCursor, Entry, Key, KeyRef};
use super::overflow::{Apart, Overflow, is_apart, record_of, show, value_in};
use super::{Condition, Find, KeyType, KvOptions, KvTree, ValueType};
use crate::catalog::{Catalog, TableName};
use crate::statement::parse_table_name;
use crate::{Database, Error, Result, Session};
use sinter_storage::{Built, CommitNumber, Numbered, Reservation, Snapshot, Use};
use std::cell::Cell;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

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
        // Its pieces are to be of the same state.
        let snapshot = timeline.snapshot();
        let commit = snapshot.commit();
        kv.tree.tree().get(key, || commit, |record| kv.show(record, commit, use_it))?
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
        let key = kv.encode(key)?;
        kv.check(key, value)?;
        if let Some(transaction) = self.transaction().as_mut() {
            transaction.check_changeable()?;
            return transaction.with_tree(&kv.tree, |draft, at, notes_reads| {
                let holds = match condition {
                    Condition::Always => true,
                    condition => draft.get(key, at, notes_reads, |newest| condition.holds(|| newest))?,
                };
                if holds {
                    draft.change(key, value, at)?;
                }
                Ok(holds)
            });
        }
        kv.check_live(&self.database)?;
        self.database.runtime()?;
        let changed = match kv.tree.overflow() {
            None => self.change_record(kv, key, value, condition, || Ok(true)),
            Some(overflow) => self.change_where_in_records(kv, overflow, key, value, condition),
        }?;
        if let Some(has_changed) = changed {
            return Ok(has_changed);
        }
        // Pieces come or go with it.
        self.change(|transaction| {
            transaction.with_tree(&kv.tree, |draft, at, notes_reads| {
                let holds = draft.get(key, at, notes_reads, |newest| condition.holds(|| newest))?;
                if holds {
                    draft.change(key, value, at)?;
                }
                Ok(holds)
            })
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
        if value.is_some_and(is_long) || matches!(condition, Condition::Equals(value) if is_long(value)) {
            return Ok(None);
        }
        let record = value.map(record_of);
        if !overflow.is_used()? {
            let expected = if let Condition::Equals(value) = condition { Some(record_of(value)) } else { None };
            let condition = expected.as_deref().map_or(condition, Condition::Equals);
            // Whoever puts the first long value says so before he latches its leaf, which is latched here.
            return self.change_record(kv, key, record.as_deref(), condition, || Ok(!overflow.is_used()?));
        }
        let was_apart = Cell::new(false);
        let holds = |record: Option<&[u8]>| {
            was_apart.set(record.is_some_and(|record| Apart::of(record).is_some()));
            !was_apart.get() && condition.holds(|| record.map(value_in))
        };
        let changed = self.change_record(kv, key, record.as_deref(), Condition::Where(&holds), || Ok(true))?;
        Ok(changed.filter(|_| !was_apart.get()))
    }

    /// Gives a key this record, or takes it away, in a commit of its own, if `condition` holds. `None` where `may_stand` says
    /// no, with the key's leaf latched; nothing has happened then.
    fn change_record(
        &self,
        kv: &KvHandle,
        key: KeyRef<'_>,
        record: Option<&[u8]>,
        condition: Condition<'_>,
        may_stand: impl FnOnce() -> Result<bool>,
    ) -> Result<Option<bool>> {
        let timeline = self.database.timeline();
        let mut entered = timeline.enter(None);
        let logged = kv.tree.tree().log_record(kv.tree.id(), key, record);
        let stands = Cell::new(true);
        let changed = kv.tree.tree().change(key, record, condition, || {
            if !may_stand()? {
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
            transaction.with_tree(&kv.tree, |draft, at, _| {
                changes.iter().try_for_each(|(key, value)| draft.change(key.lent(), value.as_deref(), at))
            })
        })
    }

    /// Takes the keys of a range away, in one commit, and says how many there were.
    ///
    /// # Errors
    /// As [`Session::kv_change`]: nothing has happened then.
    pub fn kv_delete_range(&self, kv: &KvHandle, (start, end): (Bound<KvKey<'_>>, Bound<KvKey<'_>>)) -> Result<u64> {
        let range = (kv.encode_bound(start)?.map(KeyRef::to_key), kv.encode_bound(end)?.map(KeyRef::to_key));
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
        if let Some(transaction) = self.transaction().as_mut() {
            transaction.check_usable()?;
            let found: Option<Entry> = transaction.with_tree(&kv.tree, |draft, at, notes_reads| {
                draft.find(find, key, Bound::Unbounded, at, notes_reads)
            })?;
            return Ok(use_it(found.as_ref().map(|found| (found.key.decoded(ty), &*found.record))));
        }
        kv.check_live(&self.database)?;
        self.database.runtime()?;
        // What one step after the other sees is of one state.
        let snapshot = self.database.timeline().snapshot();
        let mut cursor = kv.tree.tree().cursor(snapshot.commit());
        cursor.seek(find, key)?;
        match cursor.entry() {
            Some((key, record)) => kv.show(Some(record), snapshot.commit(), |value| {
                use_it(Some((ty.decode(key), value.unwrap_or_default())))
            }),
            None => Ok(use_it(None)),
        }
    }

    /// A cursor over the tree, on no entry yet: of one state, the last that is durable, or of the session's transaction.
    ///
    /// # Errors
    /// As [`Session::kv_get`].
    pub fn kv_cursor(&self, kv: &KvHandle) -> Result<KvCursor> {
        self.database.runtime()?;
        let place = match self.transaction().as_ref() {
            Some(transaction) => {
                transaction.check_usable()?;
                Place::InTransaction { id: transaction.id(), at: None }
            }
            None => {
                kv.check_live(&self.database)?;
                let snapshot = self.database.timeline().snapshot();
                Place::InSnapshot { cursor: kv.tree.tree().cursor(snapshot.commit()), apart: None, snapshot }
            }
        };
        Ok(KvCursor { kv: kv.clone(), place })
    }

    /// Shows the entries of a range to `visit`, in the order of keys, where they lie: of one state, the last that is durable, or
    /// of the session's transaction. `visit` is to be quick, and to leave the session and the tree alone: a leaf is latched.
    ///
    /// # Errors
    /// As [`Session::kv_get`].
    pub fn kv_for_each(
        &self,
        kv: &KvHandle,
        (start, end): (Bound<KvKey<'_>>, Bound<KvKey<'_>>),
        visit: &mut dyn FnMut(KvKey<'_>, &[u8]),
    ) -> Result<()> {
        if self.in_transaction() {
            let mut cursor = self.kv_cursor(kv)?;
            match start {
                Bound::Included(key) => cursor.seek_until(self, Find::GreaterEqual, Some(key), end)?,
                Bound::Excluded(key) => cursor.seek_until(self, Find::Greater, Some(key), end)?,
                Bound::Unbounded => cursor.seek_until(self, Find::Greater, None, end)?,
            }
            while let Some((key, value)) = cursor.entry() {
                visit(key, value);
                cursor.next_until(self, end)?;
            }
            return Ok(());
        }
        let range = (kv.encode_bound(start)?.map(KeyRef::to_key), kv.encode_bound(end)?.map(KeyRef::to_key));
        kv.check_live(&self.database)?;
        self.database.runtime()?;
        let (ty, snapshot) = (kv.key_type(), self.database.timeline().snapshot());
        let (commit, mut shown) = (snapshot.commit(), Ok(()));
        kv.tree.tree().for_each(&range, commit, &mut |key, record| {
            if shown.is_ok() {
                shown = kv.show(Some(record), commit, |value| visit(ty.decode(key), value.unwrap_or_default()));
            }
        })?;
        shown
    }

    /// How many keys there are.
    ///
    /// # Errors
    /// As [`Session::kv_get`].
    pub fn kv_len(&self, kv: &KvHandle) -> Result<u64> {
        if !self.in_transaction() {
            kv.check_live(&self.database)?;
            self.database.runtime()?;
            let snapshot = self.database.timeline().snapshot();
            return kv.tree.tree().len(snapshot.commit());
        }
        let (mut len, mut cursor) = (0, self.kv_cursor(kv)?);
        cursor.seek(self, Find::GreaterEqual, None)?;
        while cursor.entry().is_some() {
            len += 1;
            cursor.next(self)?;
        }
        Ok(len)
    }
}

/// Changes that are to be one commit. They are checked as they come, and made by [`Session::kv_update`].
#[derive(Debug)]
pub struct KvChanges<'a> {
    kv: &'a KvHandle,
    changes: Vec<(Key, Option<Box<[u8]>>)>,
    memory: Reservation,
}

impl<'a> KvChanges<'a> {
    /// None yet.
    pub fn new(kv: &'a KvHandle) -> KvChanges<'a> {
        KvChanges { kv, changes: Vec::new(), memory: kv.tree.budget().take(Use::Query, 0) }
    }

    /// Gives the key this value, or takes it away.
    ///
    /// # Errors
    /// [`Error::Data`]: the tree takes no such key or value. There is no memory for it.
    pub fn push(&mut self, key: KvKey<'_>, value: Option<&[u8]>) -> Result<()> {
        let key = self.kv.encode(key)?;
        self.kv.check(key, value)?;
        let key_bytes = if let KeyRef::Bytes(key) = key { key.len() } else { 0 };
        self.memory.grow(size_of::<(Key, Option<Box<[u8]>>)>() + key_bytes + value.map_or(0, <[u8]>::len))?;
        self.changes.push((key.to_key(), value.map(Box::from)));
        Ok(())
    }
}

/// A place in a tree, on an entry or on none. See [`Session::kv_cursor`].
#[derive(Debug)]
pub struct KvCursor {
    kv: KvHandle,
    place: Place,
}

#[derive(Debug)]
enum Place {
    InSnapshot {
        cursor: AnyCursor,
        /// The value of its entry, where that is not in the record.
        apart: Option<Vec<u8>>,
        /// What the cursor reads stays.
        snapshot: Snapshot<Catalog>,
    },
    /// What the transaction writes later is seen by later steps.
    InTransaction { id: u64, at: Option<Entry> },
}

impl KvCursor {
    /// The entry that it is on, if it is on one.
    pub fn entry(&self) -> Option<(KvKey<'_>, &[u8])> {
        let ty = self.kv.key_type();
        match &self.place {
            Place::InSnapshot { cursor, apart, .. } => {
                let (key, record) = cursor.entry()?;
                let value = match self.kv.tree.overflow() {
                    Some(_) if Apart::of(record).is_some() => apart.as_deref()?,
                    Some(_) => value_in(record),
                    None => record,
                };
                Some((ty.decode(key), value))
            }
            Place::InTransaction { at, .. } => at.as_ref().map(|entry| (entry.key.decoded(ty), &*entry.record)),
        }
    }

    /// Goes to the entry that is looked for, or to none; without a key, to the first (`Greater`) or the last (`Less`).
    ///
    /// # Errors
    /// As [`Session::kv_get`]; [`Error::Sql`] when the transaction is over in which it was made.
    pub fn seek(&mut self, session: &Session, find: Find, key: Option<KvKey<'_>>) -> Result<()> {
        self.seek_until(session, find, key, Bound::Unbounded)
    }

    /// The same; forward to none that is behind `until`, of which a transaction has then read nothing. (Out of one it may
    /// be on an entry behind it.)
    ///
    /// # Errors
    /// As [`KvCursor::seek`].
    pub fn seek_until(
        &mut self,
        session: &Session,
        find: Find,
        key: Option<KvKey<'_>>,
        until: Bound<KvKey<'_>>,
    ) -> Result<()> {
        let key = key.map(|key| self.kv.encode(key)).transpose()?;
        let until = self.kv.encode_bound(until)?;
        match &mut self.place {
            Place::InSnapshot { cursor, .. } => {
                cursor.seek(find, key)?;
                self.fetch()
            }
            Place::InTransaction { id, at } => {
                *at = session.find_in_transaction(*id, &self.kv, find, key, until)?;
                Ok(())
            }
        }
    }

    /// Goes to the next entry; from none to none.
    ///
    /// # Errors
    /// As [`KvCursor::seek`].
    pub fn next(&mut self, session: &Session) -> Result<()> {
        self.next_until(session, Bound::Unbounded)
    }

    /// The same, as [`KvCursor::seek_until`].
    ///
    /// # Errors
    /// As [`KvCursor::seek`].
    pub fn next_until(&mut self, session: &Session, until: Bound<KvKey<'_>>) -> Result<()> {
        let until = self.kv.encode_bound(until)?;
        match &mut self.place {
            Place::InSnapshot { cursor, .. } => {
                cursor.next()?;
                self.fetch()
            }
            Place::InTransaction { id, at } => step(session, *id, &self.kv, at, Find::Greater, until),
        }
    }

    /// Goes to the entry before; from none to none.
    ///
    /// # Errors
    /// As [`KvCursor::seek`].
    pub fn previous(&mut self, session: &Session) -> Result<()> {
        match &mut self.place {
            Place::InSnapshot { cursor, .. } => {
                cursor.previous()?;
                self.fetch()
            }
            Place::InTransaction { id, at } => step(session, *id, &self.kv, at, Find::Less, Bound::Unbounded),
        }
    }

    /// Reads the value of its entry, where that is not in the record.
    fn fetch(&mut self) -> Result<()> {
        if let (Place::InSnapshot { cursor, apart, snapshot }, Some(overflow)) =
            (&mut self.place, self.kv.tree.overflow())
        {
            *apart = None;
            let found = cursor.entry().and_then(|(_, record)| Apart::of(record));
            *apart = found.map(|found| overflow.read(found, None, snapshot.commit())).transpose()?;
        }
        Ok(())
    }
}

fn step(
    session: &Session,
    id: u64,
    kv: &KvHandle,
    at: &mut Option<Entry>,
    find: Find,
    until: Bound<KeyRef<'_>>,
) -> Result<()> {
    if let Some(entry) = at {
        *at = session.find_in_transaction(id, kv, find, Some(entry.key.lent()), until)?;
    }
    Ok(())
}

impl Session {
    fn find_in_transaction(
        &self,
        id: u64,
        kv: &KvHandle,
        find: Find,
        key: Option<KeyRef<'_>>,
        until: Bound<KeyRef<'_>>,
    ) -> Result<Option<Entry>> {
        match self.transaction().as_mut() {
            Some(transaction) if transaction.id() == id => {
                transaction.check_usable()?;
                transaction.with_tree(&kv.tree, |draft, at, notes_reads| draft.find(find, key, until, at, notes_reads))
            }
            _ => Err(Error::Sql("the transaction is over in which this cursor was made".to_owned())),
        }
    }
}
