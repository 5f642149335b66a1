//! What a transaction writes and reads of one tree, over the state that it sees.

use super::any_tree::{
    AnyChanges, AnyDraft, AnyKey, AnyPrepared, Entry, Key, KeyRef, OfKind, each, each_to, owned_range,
};
use super::overflow::{Apart, Overflow, is_apart, pieces, record_of, show, value_in};
use super::ranges::AnyRange;
use crate::Result;
use crate::index::{row_id_bytes, row_id_of};
use sinter_btree::{Changes, Condition, Cursor, Find, KeyRange, Prepared, Reads, Tree, TreeKey};
use sinter_storage::{Budget, CommitNumber, ObjectId, Record, Reservation, Use};
use std::borrow::Borrow;
use std::ops::Bound;
use std::sync::Arc;

/// So many ranges are remembered one by one of what a transaction has read; then they become one.
const RANGES_MAX: usize = 4096;

/// See the module.
#[derive(Debug)]
pub(crate) struct Draft<K: TreeKey + ?Sized> {
    tree: Arc<Tree<K>>,
    /// Who reads by SQL holds them as they were when his statement began.
    changes: Arc<Changes<K>>,
    /// What keys were in `changes` before each change, oldest first, so that changes can be taken back.
    undo: Vec<Undo<K::Owned>>,
    reads: Vec<KeyRange<K>>,
    /// Each key that is written was read before.
    holds_written: bool,
    /// Where values have any length: what is done to the pieces of those that are too long for a leaf.
    overflow: Option<OverflowDraft>,
    /// What is written.
    memory: Reservation,
}

/// What a transaction writes of an overflow. It reads none of it but what records lead to, which it has read.
#[derive(Debug)]
struct OverflowDraft {
    overflow: Arc<Overflow>,
    pieces: Box<Draft<u64>>,
}

impl OverflowDraft {
    fn read(&self, apart: Apart, at: CommitNumber) -> Result<Vec<u8>> {
        self.overflow.read(apart, Some(&self.pieces.changes), at)
    }

    /// Puts a value's pieces, and returns where they are.
    fn put(&mut self, value: &[u8]) -> Result<Apart> {
        let apart = self.overflow.place(value)?;
        pieces(apart, value).try_for_each(|(piece, bytes)| self.pieces.put(&piece, Some(bytes)))?;
        Ok(apart)
    }

    /// Takes a value's pieces away.
    fn delete(&mut self, apart: Apart) -> Result<()> {
        apart.pieces().try_for_each(|piece| self.pieces.put(&piece, None))
    }
}

/// What a key was in [`Draft::changes`] before it was changed, if it was there.
#[derive(Debug)]
struct Undo<K> {
    key: K,
    before: Option<Change>,
}

/// The key's record, or that it goes.
type Change = Option<Box<[u8]>>;

/// Bytes that a change takes beside its key, which is there twice, and its record.
const CHANGE_BYTES: usize = 128;

impl<K: AnyKey + ?Sized> Draft<K> {
    pub(super) fn new(tree: Arc<Tree<K>>, overflow: Option<&Arc<Overflow>>, budget: &Arc<Budget>) -> Draft<K> {
        let overflow = overflow.map(|overflow| OverflowDraft {
            overflow: Arc::clone(overflow),
            pieces: Box::new(Draft::new(Arc::clone(overflow.tree()), None, budget)),
        });
        let memory = budget.take(Use::Query, 0);
        let (changes, undo, reads) = (Arc::new(Changes::<K>::new()), Vec::new(), Vec::new());
        Draft { tree, changes, undo, reads, holds_written: false, overflow, memory }
    }

    fn note(&mut self, start: Bound<K::Owned>, end: Bound<K::Owned>) {
        if is_empty(&start, &end) {
            return;
        }
        // Steps of a cursor make one range.
        if let Some((_, Bound::Included(last))) = self.reads.last()
            && let Bound::Included(start) | Bound::Excluded(start) = &start
            && last == start
        {
            self.reads.last_mut().expect("it was just there").1 = end;
            return;
        }
        self.reads.push((start, end));
        if self.reads.len() < RANGES_MAX {
            return;
        }
        self.reads = Reads::<K>::new(CommitNumber(0), std::mem::take(&mut self.reads)).into_ranges();
        if self.reads.len() > RANGES_MAX / 2 {
            let ends = self.reads.first().zip(self.reads.last());
            self.reads = ends.map(|((start, _), (_, end))| (start.clone(), end.clone())).into_iter().collect();
        }
    }

    fn get<R>(
        &mut self,
        key: &K,
        at: CommitNumber,
        notes_reads: bool,
        use_it: impl FnOnce(Option<&[u8]>) -> R,
    ) -> Result<R> {
        if notes_reads && !self.changes.contains_key(key) {
            self.note(Bound::Included(key.to_owned()), Bound::Included(key.to_owned()));
        }
        let Some(overflow) = &self.overflow else { return self.record(key, at, use_it) };
        match self.record(key, at, |record| show(record, use_it))? {
            Ok(shown) => Ok(shown),
            Err((apart, use_it)) => Ok(use_it(Some(&overflow.read(apart, at)?))),
        }
    }

    /// Whether the key is there.
    fn has(&mut self, key: &K, at: CommitNumber, notes_reads: bool) -> Result<bool> {
        if notes_reads && !self.changes.contains_key(key) {
            self.note(Bound::Included(key.to_owned()), Bound::Included(key.to_owned()));
        }
        self.record(key, at, |record| record.is_some())
    }

    /// How many keys there are.
    fn len(&mut self, at: CommitNumber, notes_reads: bool) -> Result<u64> {
        if notes_reads {
            self.note(Bound::Unbounded, Bound::Unbounded);
        }
        let mut len = self.tree.len(at)?;
        for (key, change) in self.changes.iter() {
            let was_there = self.tree.get(key.borrow(), || at, |record| record.is_some())?;
            match (was_there, change.is_some()) {
                (true, false) => len -= 1,
                (false, true) => len += 1,
                _ => {}
            }
        }
        Ok(len)
    }

    /// Shows the key's record to `use_it`.
    fn record<R>(&self, key: &K, at: CommitNumber, use_it: impl FnOnce(Option<&[u8]>) -> R) -> Result<R> {
        match self.changes.get(key) {
            Some(own) => Ok(use_it(own.as_deref())),
            None => Ok(self.tree.get(key, || at, use_it)?),
        }
    }

    /// Gives the key this value, or takes it away; nothing has happened where it fails.
    fn change(&mut self, key: &K, value: Option<&[u8]>, at: CommitNumber) -> Result<()> {
        let Some(overflow) = &self.overflow else { return self.put(key, value) };
        let before = match overflow.overflow.is_used() {
            true => self.record(key, at, |record| record.and_then(Apart::of))?,
            false => None,
        };
        let record_bytes_max = self.tree.record_bytes_max();
        let long = value.filter(|value| is_apart(value, record_bytes_max));
        if before.is_none() && long.is_none() {
            return self.put(key, value.map(record_of).as_deref());
        }
        let mark = self.mark();
        let changed = self.change_pieces(before, long).and_then(|apart| match apart {
            Some(apart) => self.put(key, Some(&apart.record())),
            None => self.put(key, value.map(record_of).as_deref()),
        });
        if changed.is_err() {
            self.go_back(mark);
        }
        changed
    }

    /// Takes the pieces of one value away, and puts those of another.
    fn change_pieces(&mut self, before: Option<Apart>, value: Option<&[u8]>) -> Result<Option<Apart>> {
        let Some(overflow) = &mut self.overflow else { return Ok(None) };
        before.map_or(Ok(()), |before| overflow.delete(before))?;
        value.map(|value| overflow.put(value)).transpose()
    }

    /// Whether values are apart, or were: then a key that is written has to be as it was read, since its old value's pieces
    /// go with it.
    fn holds_values(&self) -> bool {
        self.overflow.as_ref().is_some_and(|overflow| overflow.overflow.is_used())
    }

    fn mark(&self) -> DraftMark {
        DraftMark { keys: self.undo.len(), pieces: self.overflow.as_ref().map_or(0, |of| of.pieces.undo.len()) }
    }

    /// Gives the key this record, or takes it away.
    fn put(&mut self, key: &K, record: Option<&[u8]>) -> Result<()> {
        self.memory.grow(2 * key.byte_len() + record.map_or(0, <[u8]>::len) + CHANGE_BYTES)?;
        let before = Arc::make_mut(&mut self.changes).insert(key.to_owned(), record.map(Box::from));
        self.undo.push(Undo { key: key.to_owned(), before });
        Ok(())
    }

    /// Takes the keys of a range away, and returns how many there were.
    fn delete_range(&mut self, range: &AnyRange, at: CommitNumber, notes_reads: bool) -> Result<u64> {
        let (start, end) = owned_range::<K>(range);
        if is_empty(&start, &end) {
            return Ok(0);
        }
        if notes_reads {
            self.note(start.clone(), end.clone());
        }
        let lent = || (start.as_ref().map(Borrow::<K>::borrow), end.as_ref().map(Borrow::<K>::borrow));
        let own = self.changes.range::<K, _>(lent()).filter(|(_, record)| record.is_some());
        let mut keys: Vec<K::Owned> = own.map(|(key, _)| key.clone()).collect();
        // Before there are so many: it may be refused.
        let mut bytes = 0;
        self.tree.for_each_entries(lent(), at, &mut |entries| {
            entries.for_each_key(&mut |key| bytes += size_of::<K::Owned>() + key.byte_len());
        })?;
        let mut collected = self.memory.budget().take(Use::Query, 0);
        collected.grow(bytes)?;
        self.tree.for_each_entries(lent(), at, &mut |entries| {
            entries.for_each_key(&mut |key| {
                if !self.changes.contains_key::<K>(key) {
                    keys.push(key.to_owned());
                }
            });
        })?;
        keys.iter().try_for_each(|key| self.change(key.borrow(), None, at))?;
        Ok(keys.len() as u64)
    }

    fn go_back(&mut self, mark: DraftMark) {
        if let Some(overflow) = &mut self.overflow {
            overflow.pieces.go_back(DraftMark { keys: mark.pieces, pieces: 0 });
        }
        if self.undo.len() <= mark.keys {
            return;
        }
        let changes = Arc::make_mut(&mut self.changes);
        for Undo { key, before } in self.undo.drain(mark.keys..).rev() {
            match before {
                Some(before) => drop(changes.insert(key, before)),
                None => drop(changes.remove::<K::Owned>(&key)),
            }
        }
    }

    fn find(
        &mut self,
        find: Find,
        key: Option<&K>,
        until: Bound<&K>,
        at: CommitNumber,
        notes_reads: bool,
    ) -> Result<Option<Entry>> {
        let bound = match (find, key) {
            (_, None) => Bound::Unbounded,
            (Find::Less | Find::Greater, Some(key)) => Bound::Excluded(key),
            (Find::LessEqual | Find::GreaterEqual | Find::Equal, Some(key)) => Bound::Included(key),
        };
        let mut cursor = Cursor::new(Arc::clone(&self.tree), at);
        let is_backward = matches!(find, Find::Less | Find::LessEqual);
        let found = match is_backward {
            true => self.before(&mut cursor, bound)?,
            false => self.after(&mut cursor, bound)?,
        };
        let is_wanted = |found: &Entry| {
            K::with(found.key.lent(), |found| match until {
                Bound::Included(until) => found <= until,
                Bound::Excluded(until) => found < until,
                Bound::Unbounded => find != Find::Equal || key == Some(found),
            })
        };
        let mut found = found.filter(is_wanted);
        if notes_reads {
            let bound = bound.map(ToOwned::to_owned);
            let owned = |found: &Entry| K::with(found.key.lent(), ToOwned::to_owned);
            let reached = match (&found, find) {
                (Some(found), _) => Bound::Included(owned(found)),
                (None, Find::Equal) => bound.clone(),
                (None, _) => until.map(ToOwned::to_owned),
            };
            match is_backward {
                true => self.note(reached, bound),
                false => self.note(bound, reached),
            }
        }
        if let Some((overflow, entry)) = self.overflow.as_ref().zip(found.as_mut()) {
            entry.record = match Apart::of(&entry.record) {
                Some(apart) => overflow.read(apart, at)?.into(),
                None => value_in(&entry.record).into(),
            };
        }
        Ok(found)
    }

    /// The first entry from `start` on.
    fn after(&self, cursor: &mut Cursor<Arc<Tree<K>>, K>, start: Bound<&K>) -> Result<Option<Entry>> {
        match start {
            Bound::Included(key) => cursor.seek(Find::GreaterEqual, key)?,
            Bound::Excluded(key) => cursor.seek(Find::Greater, key)?,
            Bound::Unbounded => cursor.first()?,
        };
        for (own, record) in self.changes.range::<K, _>((start, Bound::Unbounded)) {
            let own: &K = own.borrow();
            let in_tree = cursor.entry().map(|(key, _)| key);
            if in_tree.is_some_and(|key| key < own) {
                break;
            }
            if let Some(record) = record {
                return Ok(Some(Entry { key: own.any().to_key(), record: record.clone() }));
            }
            if in_tree == Some(own) {
                cursor.next()?;
            }
        }
        Ok(entry_of(cursor))
    }

    /// The last entry up to `end`.
    fn before(&self, cursor: &mut Cursor<Arc<Tree<K>>, K>, end: Bound<&K>) -> Result<Option<Entry>> {
        match end {
            Bound::Included(key) => cursor.seek(Find::LessEqual, key)?,
            Bound::Excluded(key) => cursor.seek(Find::Less, key)?,
            Bound::Unbounded => cursor.last()?,
        };
        for (own, record) in self.changes.range::<K, _>((Bound::Unbounded, end)).rev() {
            let own: &K = own.borrow();
            let in_tree = cursor.entry().map(|(key, _)| key);
            if in_tree.is_some_and(|key| key > own) {
                break;
            }
            if let Some(record) = record {
                return Ok(Some(Entry { key: own.any().to_key(), record: record.clone() }));
            }
            if in_tree == Some(own) {
                cursor.previous()?;
            }
        }
        Ok(entry_of(cursor))
    }

    fn log_record(&self, id: ObjectId) -> Record {
        Tree::<K>::log_record(id, self.changes.iter().map(|(key, record)| (key.borrow(), record.as_deref())))
    }

    fn log_records(&self, id: ObjectId) -> Vec<Record> {
        let overflow = self.overflow.iter().filter(|overflow| !overflow.pieces.changes.is_empty());
        let of_pieces = overflow.map(|overflow| overflow.pieces.log_record(overflow.overflow.id()));
        std::iter::once(self.log_record(id)).chain(of_pieces).collect()
    }

    fn prepare(&self, at: CommitNumber) -> Result<Option<PreparedWithPieces<'_, K>>> {
        let mut holds_written = self.holds_written || self.holds_values();
        loop {
            let reads = Reads::new(at, self.reads.clone());
            let reads = if holds_written { reads.and_changed_keys() } else { reads };
            let Some(prepared) = self.tree.prepare(&self.changes, &reads)? else { return Ok(None) };
            // Who puts the first long value says so before he latches its key's leaf.
            if !holds_written && self.holds_values() {
                holds_written = true;
                continue;
            }
            let overflow = self.overflow.as_ref().filter(|overflow| !overflow.pieces.changes.is_empty());
            let pieces = match overflow.map(|overflow| overflow.pieces.prepare(at)).transpose()? {
                Some(None) => return Ok(None),
                Some(Some((pieces, _))) => Some(pieces),
                None => None,
            };
            return Ok(Some((prepared, pieces)));
        }
    }

    fn merge_sparse(&self, horizon: CommitNumber) {
        self.tree.merge_sparse(horizon);
        if let Some(overflow) = &self.overflow {
            overflow.overflow.tree().merge_sparse(horizon);
        }
    }
}

/// How many changes of a tree there were, and of pieces.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DraftMark {
    keys: usize,
    pieces: usize,
}

/// What is latched of a tree, and of its overflow.
type PreparedWithPieces<'t, K> = (Prepared<'t, K>, Option<Prepared<'t, u64>>);

/// Whether no key can be between.
fn is_empty<T: Ord>(start: &Bound<T>, end: &Bound<T>) -> bool {
    match (start, end) {
        (Bound::Included(start), Bound::Included(end)) => start > end,
        (Bound::Included(start) | Bound::Excluded(start), Bound::Included(end) | Bound::Excluded(end)) => start >= end,
        _ => false,
    }
}

fn entry_of<K: AnyKey + ?Sized>(cursor: &Cursor<Arc<Tree<K>>, K>) -> Option<Entry> {
    cursor.entry().map(|(key, record)| Entry { key: key.any().to_key(), record: record.into() })
}

impl AnyDraft {
    /// Whether nothing is written.
    pub(crate) fn is_empty(&self) -> bool {
        each!(self, draft => draft.changes.is_empty())
    }

    /// Whether nothing is written or read.
    pub(crate) fn is_untouched(&self) -> bool {
        each!(self, draft => draft.changes.is_empty() && draft.reads.is_empty())
    }

    /// What is written to the tree with this number, as it is now, and to its overflow.
    pub(crate) fn changes(&self, id: ObjectId) -> impl Iterator<Item = (ObjectId, AnyChanges)> {
        let overflow = each!(self, draft => draft.overflow.as_ref());
        let of_pieces = overflow.map(|of| (of.overflow.id(), AnyChanges::U64(Arc::clone(&of.pieces.changes))));
        std::iter::once((id, each_to!(self, draft => Arc::clone(&draft.changes)))).chain(of_pieces)
    }

    /// All keys of these ranges were read.
    pub(crate) fn note(&mut self, ranges: &[AnyRange]) {
        fn of<K: AnyKey + ?Sized>(draft: &mut Draft<K>, ranges: &[AnyRange]) {
            let owned = |key: &Key| K::with(key.lent(), ToOwned::to_owned);
            ranges.iter().for_each(|(start, end)| draft.note(start.as_ref().map(owned), end.as_ref().map(owned)));
        }
        each!(self, draft => of(draft, ranges));
    }

    /// This key was read.
    pub(crate) fn note_key(&mut self, key: KeyRef<'_>) {
        let key = key.to_key();
        self.note(&[(Bound::Included(key.clone()), Bound::Included(key))]);
    }

    /// Shows the key's value to `use_it`, as it is in the transaction, whose state is that after commit `at`.
    pub(crate) fn get<R>(
        &mut self,
        key: KeyRef<'_>,
        at: CommitNumber,
        notes_reads: bool,
        use_it: impl FnOnce(Option<&[u8]>) -> R,
    ) -> Result<R> {
        each!(self, draft => AnyKey::with(key, |key| draft.get(key, at, notes_reads, use_it)))
    }

    /// Whether the key is there, as in [`AnyDraft::get`].
    pub(crate) fn has(&mut self, key: KeyRef<'_>, at: CommitNumber, notes_reads: bool) -> Result<bool> {
        each!(self, draft => AnyKey::with(key, |key| draft.has(key, at, notes_reads)))
    }

    /// How many keys there are, as in [`AnyDraft::get`].
    pub(crate) fn len(&mut self, at: CommitNumber, notes_reads: bool) -> Result<u64> {
        each!(self, draft => draft.len(at, notes_reads))
    }

    /// Gives the key this value, or takes it away, if `condition` holds; whether it did.
    pub(crate) fn change_if(
        &mut self,
        key: KeyRef<'_>,
        value: Option<&[u8]>,
        condition: Condition<'_>,
        at: CommitNumber,
        notes_reads: bool,
    ) -> Result<bool> {
        let holds = match condition {
            Condition::Always => true,
            Condition::Absent => !self.has(key, at, notes_reads)?,
            Condition::Present => self.has(key, at, notes_reads)?,
            Condition::Equals(_) | Condition::Where(_) => {
                self.get(key, at, notes_reads, |newest| condition.holds(|| newest))?
            }
        };
        if holds {
            self.change(key, value, at)?;
        }
        Ok(holds)
    }

    /// Gives the key this value, or takes it away, in the transaction, whose state is that after commit `at`.
    ///
    /// # Errors
    /// A leaf cannot be read; there is no memory for it.
    pub(crate) fn change(&mut self, key: KeyRef<'_>, value: Option<&[u8]>, at: CommitNumber) -> Result<()> {
        each!(self, draft => AnyKey::with(key, |key| draft.change(key, value, at)))
    }

    /// Takes the keys of a range away, and returns how many there were in the transaction, whose state is that after commit
    /// `at`.
    ///
    /// # Errors
    /// A leaf cannot be read; there is no memory for it.
    pub(crate) fn delete_range(&mut self, range: &AnyRange, at: CommitNumber, notes_reads: bool) -> Result<u64> {
        each!(self, draft => draft.delete_range(range, at, notes_reads))
    }

    /// How many changes there were.
    pub(crate) fn mark(&self) -> DraftMark {
        each!(self, draft => draft.mark())
    }

    /// Takes back all changes since.
    pub(crate) fn go_back(&mut self, mark: DraftMark) {
        each!(self, draft => draft.go_back(mark));
    }

    /// The entry that is looked for, as in [`AnyDraft::get`]; without a key, the first or the last. Forward none is found
    /// that is behind `until`.
    pub(crate) fn find(
        &mut self,
        find: Find,
        key: Option<KeyRef<'_>>,
        until: Bound<KeyRef<'_>>,
        at: CommitNumber,
        notes_reads: bool,
    ) -> Result<Option<Entry>> {
        fn of<K: AnyKey + ?Sized>(
            draft: &mut Draft<K>,
            (find, key, until): (Find, Option<KeyRef<'_>>, Bound<KeyRef<'_>>),
            at: CommitNumber,
            notes_reads: bool,
        ) -> Result<Option<Entry>> {
            let owned = |key: KeyRef<'_>| K::with(key, ToOwned::to_owned);
            let (key, until) = (key.map(owned), until.map(owned));
            let until = until.as_ref().map(Borrow::borrow);
            draft.find(find, key.as_ref().map(Borrow::borrow), until, at, notes_reads)
        }
        each!(self, draft => of(draft, (find, key, until), at, notes_reads))
    }

    /// What it changes of the tree with this number, and of its overflow, for the log.
    pub(crate) fn log_records(&self, id: ObjectId) -> Vec<Record> {
        each!(self, draft => draft.log_records(id))
    }

    /// Latches what is changed and what was read, and then pieces; `None` where some of that has changed since commit `at`.
    pub(crate) fn prepare(&self, at: CommitNumber) -> Result<Option<(AnyPrepared<'_>, Option<AnyPrepared<'_>>)>> {
        fn of<'d, K: AnyKey + ?Sized>(
            draft: &'d Draft<K>,
            at: CommitNumber,
            any: fn(Prepared<'d, K>) -> AnyPrepared<'d>,
        ) -> Result<Option<(AnyPrepared<'d>, Option<AnyPrepared<'d>>)>> {
            let prepared = draft.prepare(at)?;
            Ok(prepared.map(|(prepared, pieces)| (any(prepared), pieces.map(OfKind::U64))))
        }
        match self {
            OfKind::U32(draft) => of(draft, at, OfKind::U32),
            OfKind::U64(draft) => of(draft, at, OfKind::U64),
            OfKind::Bytes(draft) => of(draft, at, OfKind::Bytes),
        }
    }

    /// From now on each key that is written counts as read, without being noted.
    pub(crate) fn hold_written(&mut self) {
        each!(self, draft => draft.holds_written = true);
    }

    /// The longest key that the tree takes in.
    pub(crate) fn key_bytes_max(&self) -> usize {
        each!(self, draft => draft.tree.key_bytes_max())
    }

    /// Of an index: gives the ids from `border` on, of rows that the transaction inserts, their final ones, which are by `shift`
    /// larger.
    pub(crate) fn renumber(&mut self, border: u64, shift: u64, is_unique: bool) {
        let OfKind::Bytes(draft) = self else { return };
        let renumber = |bytes: &mut [u8]| {
            if let Some(id) = bytes.last_chunk_mut()
                && let provisional = row_id_of(*id)
                && provisional >= border
            {
                *id = row_id_bytes(provisional + shift);
            }
        };
        let changes = std::mem::take(Arc::make_mut(&mut draft.changes));
        let renumbered = changes.into_iter().map(|(mut key, mut record)| {
            match is_unique {
                true => record.iter_mut().for_each(|record| renumber(record)),
                false => renumber(&mut key),
            }
            (key, record)
        });
        draft.changes = Arc::new(renumbered.collect());
        // Of statements that are all over.
        draft.undo.clear();
    }

    /// To be called once nothing is latched any more.
    pub(crate) fn merge_sparse(&self, horizon: CommitNumber) {
        each!(self, draft => draft.merge_sparse(horizon));
    }
}
