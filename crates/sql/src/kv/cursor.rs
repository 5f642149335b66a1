//! A place in a tree that a user holds and moves.

use super::any_tree::{AnyCursor, Entry, KeyRef};
use super::handle::{KvHandle, KvKey};
use super::overflow::{Apart, value_in};
use super::pair::{Pair, PairShape};
use super::ranges::is_behind;
use super::{Find, KvTree};
use crate::catalog::Catalog;
use crate::{Error, Result, Session};
use sinter_storage::Snapshot;
use std::ops::Bound;
use std::sync::Arc;

/// A place in a tree, on an entry or on none. See [`Session::kv_cursor`].
#[derive(Debug)]
pub struct KvCursor {
    kv: KvHandle,
    place: Place,
    shown: Shown,
}

#[derive(Debug)]
enum Place {
    InSnapshot {
        cursor: AnyCursor,
        /// What the cursor reads stays.
        snapshot: Snapshot<Catalog>,
    },
    /// What the transaction writes later is seen by later steps.
    InTransaction { id: u64, at: Option<Entry> },
}

/// The entry that a cursor is on, for users.
#[derive(Debug)]
enum Shown {
    /// What it is on.
    AsItLies,
    /// With this value, which is not in the record.
    Value(Vec<u8>),
    /// What it is on, taken apart.
    Pair(Pair),
    /// It is on one behind the end of the range that was asked for, whose value is not in the record: none is shown.
    Behind,
    /// None.
    Nothing,
}

impl KvCursor {
    /// One over the tree in a snapshot, on no entry yet.
    pub(super) fn new(kv: KvHandle, snapshot: Snapshot<Catalog>) -> KvCursor {
        let cursor = kv.tree().tree().cursor(snapshot.commit());
        KvCursor { kv, place: Place::InSnapshot { cursor, snapshot }, shown: Shown::AsItLies }
    }

    /// One over the tree in the session's transaction, which has this id.
    pub(super) fn in_transaction(kv: KvHandle, id: u64) -> KvCursor {
        KvCursor { kv, place: Place::InTransaction { id, at: None }, shown: Shown::AsItLies }
    }

    /// The entry that it is on, if it is on one, and that does not lie behind the end of what was asked for.
    pub fn entry(&self) -> Option<(KvKey<'_>, &[u8])> {
        let ty = self.kv.key_type();
        match &self.shown {
            Shown::AsItLies => {
                let (key, record) = self.place.entry()?;
                let is_record = matches!(self.place, Place::InSnapshot { .. }) && self.kv.tree().overflow().is_some();
                Some((ty.decode(key), if is_record { value_in(record) } else { record }))
            }
            Shown::Value(value) => self.place.entry().map(|(key, _)| (ty.decode(key), &**value)),
            Shown::Pair(pair) => Some((ty.decode(pair.key()), pair.value())),
            Shown::Behind | Shown::Nothing => None,
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
    /// be on an entry behind it, where values have their place in leaves.)
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
        match self.kv.pairs() {
            None => self.go(session, find, key, until),
            Some(pairs) => match pairs.place(find, key, until) {
                Some(place) => {
                    self.go(session, place.find, place.from(), place.until())?;
                    if find == Find::Equal && self.place.entry().is_some_and(|(key, _)| is_behind(key, place.until())) {
                        self.shown = Shown::Nothing;
                    }
                    Ok(())
                }
                None => {
                    self.shown = Shown::Nothing;
                    Ok(())
                }
            },
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
            _ if matches!(self.shown, Shown::Nothing) => return Ok(()),
            // It is there already.
            _ if matches!(self.shown, Shown::Behind) => {}
            Place::InSnapshot { cursor, .. } => cursor.next()?,
            Place::InTransaction { id, at } => match self.kv.pairs() {
                None => step(session, *id, &self.kv, at, Find::Greater, until)?,
                Some(_) => {
                    let end = PairShape::end(until);
                    step(session, *id, &self.kv, at, Find::Greater, end.as_ref().map(|end| KeyRef::Bytes(end)))?;
                }
            },
        }
        self.fetch(until)
    }

    /// Shows the entry that it has come to, where that lay behind the end of what was asked for before, and lies before this one.
    ///
    /// # Errors
    /// As [`KvCursor::seek`].
    pub fn go_on_until(&mut self, until: Bound<KvKey<'_>>) -> Result<()> {
        match self.shown {
            Shown::Behind => {
                let until = self.kv.encode_bound(until)?;
                self.fetch(until)
            }
            _ => Ok(()),
        }
    }

    /// Goes to the entry before; from none to none.
    ///
    /// # Errors
    /// As [`KvCursor::seek`].
    pub fn previous(&mut self, session: &Session) -> Result<()> {
        match &mut self.place {
            _ if matches!(self.shown, Shown::Nothing) => return Ok(()),
            Place::InSnapshot { cursor, .. } => cursor.previous()?,
            Place::InTransaction { id, at } => step(session, *id, &self.kv, at, Find::Less, Bound::Unbounded)?,
        }
        self.fetch(Bound::Unbounded)
    }

    /// Goes to what is looked for in the tree.
    fn go(&mut self, session: &Session, find: Find, key: Option<KeyRef<'_>>, until: Bound<KeyRef<'_>>) -> Result<()> {
        match &mut self.place {
            Place::InSnapshot { cursor, .. } => cursor.seek(find, key)?,
            Place::InTransaction { id, at } => {
                *at = session.find_in_transaction(*id, self.kv.tree(), find, key, until)?
            }
        }
        self.fetch(until)
    }

    /// Makes of the entry what users are shown; of none behind `until`, whose value might be long.
    fn fetch(&mut self, until: Bound<KeyRef<'_>>) -> Result<()> {
        let (pairs, overflow) = (self.kv.pairs(), self.kv.tree().overflow());
        if pairs.is_none() && overflow.is_none() {
            return Ok(());
        }
        let before = std::mem::replace(&mut self.shown, Shown::Nothing);
        self.shown = match (self.place.entry(), pairs, &self.place) {
            (None, ..) => Shown::Nothing,
            (Some((KeyRef::Bytes(bytes), _)), Some(pairs), _) => {
                let mut pair = if let Shown::Pair(pair) = before { pair } else { Pair::new() };
                pairs.read(bytes, &mut pair)?;
                Shown::Pair(pair)
            }
            (Some((key, record)), None, Place::InSnapshot { .. })
                if is_behind(key, until) && Apart::of(record).is_some() =>
            {
                Shown::Behind
            }
            (Some((_, record)), _, Place::InSnapshot { snapshot, .. }) => match overflow.zip(Apart::of(record)) {
                Some((overflow, apart)) => Shown::Value(overflow.read(apart, None, snapshot.commit())?),
                None => Shown::AsItLies,
            },
            (Some(_), _, Place::InTransaction { .. }) => Shown::AsItLies,
        };
        Ok(())
    }
}

impl Place {
    /// The entry that the tree has there.
    fn entry(&self) -> Option<(KeyRef<'_>, &[u8])> {
        match self {
            Place::InSnapshot { cursor, .. } => cursor.entry(),
            Place::InTransaction { at, .. } => at.as_ref().map(|entry| (entry.key.lent(), &*entry.record)),
        }
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
        *at = session.find_in_transaction(id, kv.tree(), find, Some(entry.key.lent()), until)?;
    }
    Ok(())
}

impl Session {
    fn find_in_transaction(
        &self,
        id: u64,
        tree: &Arc<KvTree>,
        find: Find,
        key: Option<KeyRef<'_>>,
        until: Bound<KeyRef<'_>>,
    ) -> Result<Option<Entry>> {
        match self.transaction().as_mut() {
            Some(transaction) if transaction.id() == id => {
                transaction.check_usable()?;
                transaction.with_tree(tree, |draft, at, notes_reads| draft.find(find, key, until, at, notes_reads))
            }
            _ => Err(Error::Sql("the transaction is over in which this cursor was made".to_owned())),
        }
    }
}
