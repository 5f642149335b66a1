//! A key-value tree as the engine reads it: its entries are rows of the columns `key` and `value`.
//!
//! A row group is a piece of the tree, as much as a scan takes at a time ([`Tree::pieces`]); its segments are made of the
//! leaves when they are asked for, and let go of with the group. Of each piece the least and the greatest key are known, so
//! that conditions on keys prune pieces as they prune row groups of tables.
//!
//! What a transaction has written itself is beside that: its keys count as deleted in the pieces, and its records are row
//! groups of their own.

use super::any_tree::{AnyChanges, AnyKey, Key, KeyRef};
use super::overflow::{Apart, Overflow, value_in};
use super::pair::{Pair, PairShape};
use super::ranges::{ALL_KEYS, AnyRange, is_over};
use super::{KeyType, KvKey, KvShape, ValueType};
use crate::catalog::Catalog;
use sinter_btree::{Changes, Entries, Piece, Tree};
use sinter_codec::{Bitmap, BlockStats, Scalar, ValuesBuf, write_raw};
use sinter_exec::{Error, LogicalType, Pinned, Result, RowIds, TableSource};
use sinter_storage::{CommitNumber, Snapshot};
use std::borrow::{Borrow, Cow};
use std::ops::Bound;
use std::sync::Arc;

/// So many keys make a row group, and so many more as a leaf has at most: few enough that their segments are small, and
/// threads have something to share.
const GROUP_KEYS: usize = 16 << 10;

/// So many bytes of leaves make one, whatever they hold: where records are long.
const GROUP_BYTES: usize = 1 << 20;

/// What the columns are called, in their order.
pub(super) const COLUMN_NAMES: [&str; 2] = ["key", "value"];

/// Which of them has the keys.
pub(super) const KEY: usize = 0;

/// A key as a column has it.
pub(super) trait ColumnKey: AnyKey {
    /// Appends one key.
    fn append(&self, ty: KeyType, out: &mut ValuesBuf);

    /// Appends the keys of a leaf.
    fn append_all(entries: &Entries<'_, Self>, ty: KeyType, out: &mut ValuesBuf) {
        entries.for_each_key(&mut |key| key.append(ty, out));
    }

    /// The sum of the keys of a leaf; 0 of those that are no numbers.
    fn sum(_entries: &Entries<'_, Self>, _ty: KeyType) -> i128 {
        0
    }
}

impl ColumnKey for u32 {
    fn append(&self, _ty: KeyType, out: &mut ValuesBuf) {
        let ValuesBuf::U32(out) = out else { unreachable!("keys of a tree are of one type") };
        out.push(*self);
    }

    fn append_all(entries: &Entries<'_, u32>, _ty: KeyType, out: &mut ValuesBuf) {
        let ValuesBuf::U32(out) = out else { unreachable!("keys of a tree are of one type") };
        entries.for_each_block(&mut |keys| out.extend_from_slice(keys));
    }

    fn sum(entries: &Entries<'_, u32>, _ty: KeyType) -> i128 {
        let mut sum = 0_u64;
        entries.for_each_block(&mut |keys| sum += keys.iter().map(|&key| u64::from(key)).sum::<u64>());
        sum.into()
    }
}

impl ColumnKey for u64 {
    fn append(&self, ty: KeyType, out: &mut ValuesBuf) {
        match out {
            ValuesBuf::U64(out) => out.push(*self),
            ValuesBuf::I64(out) => out.push(ty.signed(*self)),
            _ => unreachable!("keys of a tree are of one type"),
        }
    }

    fn append_all(entries: &Entries<'_, u64>, ty: KeyType, out: &mut ValuesBuf) {
        match out {
            ValuesBuf::U64(out) => entries.for_each_block(&mut |keys| out.extend_from_slice(keys)),
            ValuesBuf::I64(out) => {
                entries.for_each_block(&mut |keys| out.extend(keys.iter().map(|&key| ty.signed(key))));
            }
            _ => unreachable!("keys of a tree are of one type"),
        }
    }

    fn sum(entries: &Entries<'_, u64>, ty: KeyType) -> i128 {
        let mut sum = 0;
        let is_signed = ty == KeyType::I64;
        entries.for_each_block(&mut |keys| {
            // Halves, whose sums have room in 64 bits.
            let (low, high) = keys.iter().fold((0, 0), |(low, high), &key| (low + (key & HALF), high + (key >> 32)));
            sum += i128::from(low) + (i128::from(high) << 32);
        });
        if is_signed { sum - entries.len() as i128 * (1 << 63) } else { sum }
    }
}

/// The lower half of a key.
const HALF: u64 = u32::MAX as u64;

impl ColumnKey for [u8] {
    fn append(&self, _ty: KeyType, out: &mut ValuesBuf) {
        let ValuesBuf::Bytes(out) = out else { unreachable!("keys of a tree are of one type") };
        out.push(self);
    }
}

/// What is read of a tree.
#[derive(Debug)]
pub(super) struct State<K: AnyKey + ?Sized> {
    pub(super) tree: Arc<Tree<K>>,
    /// After whose last commit it is read. What is read stays as long as this is held.
    pub(super) snapshot: Arc<Snapshot<Catalog>>,
    /// What the transaction itself has written.
    pub(super) own: Option<Arc<Changes<K>>>,
    /// Where values have any length.
    pub(super) overflow: Option<OverflowState>,
}

/// What is read of a tree's overflow.
#[derive(Debug)]
pub(super) struct OverflowState {
    overflow: Arc<Overflow>,
    /// What the transaction itself has written.
    own: Option<Arc<Changes<u64>>>,
}

impl OverflowState {
    pub(super) fn new(overflow: &Arc<Overflow>, own: Option<AnyChanges>) -> OverflowState {
        let own = if let Some(AnyChanges::U64(own)) = own { Some(own) } else { None };
        OverflowState { overflow: Arc::clone(overflow), own }
    }

    /// The value of a record of the state after commit `at`.
    fn value<'r>(&self, record: &'r [u8], at: CommitNumber) -> crate::Result<Cow<'r, [u8]>> {
        Ok(match Apart::of(record) {
            Some(apart) => self.overflow.read(apart, self.own.as_deref(), at)?.into(),
            None => value_in(record).into(),
        })
    }
}

/// Bytes of the value of a record in a tree with an overflow.
fn value_bytes(record: &[u8]) -> usize {
    Apart::of(record).map_or(record.len(), Apart::bytes)
}

/// See the module.
#[derive(Debug)]
pub(super) struct TreeSource<K: AnyKey + ?Sized> {
    name: String,
    key: KeyType,
    types: Vec<LogicalType>,
    /// Where a key has any number of values.
    pairs: Option<PairShape>,
    /// See [`TableSource::seek`].
    seek: Option<String>,
    state: State<K>,
    groups: Vec<Group<K::Owned>>,
}

/// A row group.
#[derive(Debug)]
struct Group<K> {
    /// The least and the greatest key of each stretch of keys, in order.
    stretches: Vec<(K, K)>,
    /// Records that the transaction itself has written, not those of the tree.
    is_own: bool,
    rows: usize,
    /// Of leaves, or of own records.
    bytes: usize,
    /// Rows of the groups before.
    first_row: u64,
    deleted: Option<Arc<Bitmap>>,
    stats: [BlockStats; 2],
}

/// Keys that follow each other.
struct Stretch<K> {
    /// The least and the greatest.
    first: K,
    last: K,
    rows: usize,
    /// Of leaves, or of keys and values.
    bytes: usize,
}

impl<K: ColumnKey + ?Sized> TreeSource<K> {
    /// The entries whose keys are in these ranges, which are in order and do not overlap.
    ///
    /// # Errors
    /// A leaf cannot be read.
    pub(super) fn new(
        name: String,
        shape: &KvShape,
        state: State<K>,
        ranges: &[AnyRange],
    ) -> crate::Result<TreeSource<K>> {
        let (key, types, pairs) = (shape.key, column_types(shape.key, shape.value), shape.pairs());
        let seek = seek_text(ranges, key, pairs);
        let mut source = TreeSource { name, key, types, pairs, seek, state, groups: Vec::new() };
        source.add(ranges)?;
        Ok(source)
    }

    fn add(&mut self, ranges: &[AnyRange]) -> crate::Result<()> {
        let owned = |key: &Key| K::with(key.lent(), ToOwned::to_owned);
        let ranges: Vec<_> =
            ranges.iter().map(|(start, end)| (start.as_ref().map(owned), end.as_ref().map(owned))).collect();
        for range in &ranges {
            self.add_pieces(lent(range))?;
        }
        for range in &ranges {
            self.add_own(lent(range));
        }
        self.know_bounds()
    }

    fn at(&self) -> CommitNumber {
        self.state.snapshot.commit()
    }

    fn add_pieces(&mut self, range: (Bound<&K>, Bound<&K>)) -> crate::Result<()> {
        if self.state.overflow.as_ref().is_some_and(|state| state.overflow.is_used()) {
            return self.add_long(range);
        }
        let leaf_bytes = self.state.tree.options().leaf_bytes;
        for piece in self.state.tree.pieces(range, self.at(), GROUP_KEYS, GROUP_BYTES / leaf_bytes)? {
            let Piece { first, last, len: rows, leaves } = piece;
            self.add_piece(Stretch { first, last, rows, bytes: leaves * leaf_bytes })?;
        }
        Ok(())
    }

    /// Adds keys whose values may be apart: as many at a time as have not too many bytes together.
    fn add_long(&mut self, range: (Bound<&K>, Bound<&K>)) -> crate::Result<()> {
        let mut stretches: Vec<Stretch<K::Owned>> = Vec::new();
        let leaf_bytes = self.state.tree.options().leaf_bytes;
        let mut add = |first: K::Owned, last: K::Owned, rows: usize, bytes: usize| {
            let has_room = |stretch: &Stretch<_>| stretch.rows < GROUP_KEYS && stretch.bytes + bytes <= GROUP_BYTES;
            match stretches.last_mut().filter(|stretch| has_room(stretch)) {
                Some(stretch) => {
                    stretch.last = last;
                    (stretch.rows, stretch.bytes) = (stretch.rows + rows, stretch.bytes + bytes);
                }
                None => stretches.push(Stretch { first, last, rows, bytes }),
            }
        };
        self.state.tree.for_each_entries(range, self.at(), &mut |entries| {
            if entries.records().all(|record| Apart::of(record).is_none()) {
                return add(entries.first(), entries.last(), entries.len(), leaf_bytes);
            }
            let mut records = entries.records();
            entries.for_each_key(&mut |key| {
                let bytes = key.byte_len() + records.next().map_or(0, value_bytes);
                add(key.to_owned(), key.to_owned(), 1, bytes);
            });
        })?;
        stretches.into_iter().try_for_each(|stretch| self.add_piece(stretch))
    }

    /// Adds keys of the tree that follow each other.
    fn add_piece(&mut self, stretch: Stretch<K::Owned>) -> crate::Result<()> {
        let (deleted, rows) = (self.deleted_of(&stretch)?, stretch.rows);
        self.add_stretch(stretch, false);
        let Some(group) = self.groups.last_mut() else { return Ok(()) };
        if deleted.is_some() || group.deleted.is_some() {
            let marks = Arc::make_mut(group.deleted.get_or_insert_default());
            marks.extend_with(group.rows - rows - marks.len(), false);
            marks.extend(&deleted.unwrap_or_else(|| Bitmap::new(rows, false)));
        }
        Ok(())
    }

    /// Adds records that the transaction has written itself.
    fn add_own(&mut self, range: (Bound<&K>, Bound<&K>)) {
        let Some(own) = self.state.own.clone().filter(|_| !is_over(&range)) else { return };
        let has_overflow = self.state.overflow.is_some();
        let bytes_of = |record: &[u8]| if has_overflow { value_bytes(record) } else { record.len() };
        let written = own.range::<K, _>(range).filter_map(|(key, record)| Some((key, bytes_of(record.as_ref()?))));
        let mut written = written.peekable();
        while let Some((first, mut bytes)) = written.next() {
            let (mut last, mut rows) = (first, 1);
            while let Some((key, more)) = written.next_if(|(_, more)| rows < GROUP_KEYS && bytes + more <= GROUP_BYTES)
            {
                (last, rows, bytes) = (key, rows + 1, bytes + more);
            }
            self.add_stretch(Stretch { first: first.clone(), last: last.clone(), rows, bytes }, true);
        }
    }

    /// Adds keys that follow each other; to the last group, where that has few: many look-ups are not as many groups.
    fn add_stretch(&mut self, Stretch { first, last, rows, bytes }: Stretch<K::Owned>, is_own: bool) {
        let has_room = |group: &Group<K::Owned>| {
            group.is_own == is_own && group.rows + rows <= GROUP_KEYS && group.bytes + bytes <= GROUP_BYTES
        };
        if let Some(group) = self.groups.last_mut().filter(|group| has_room(group)) {
            group.stretches.push((first, last));
            (group.rows, group.bytes) = (group.rows + rows, group.bytes + bytes);
            return;
        }
        let first_row = self.groups.last().map_or(0, |group| group.first_row + group.rows as u64);
        let (stretches, stats) = (vec![(first, last)], [BlockStats::default(), BlockStats::default()]);
        self.groups.push(Group { stretches, is_own, rows, bytes, first_row, deleted: None, stats });
    }

    /// Which of these keys of the tree the transaction has written itself.
    fn deleted_of(&self, stretch: &Stretch<K::Owned>) -> sinter_btree::Result<Option<Bitmap>> {
        let range = (Bound::Included(stretch.first.borrow()), Bound::Included(stretch.last.borrow()));
        let Some(own) = self.state.own.as_deref() else { return Ok(None) };
        let mut written = own.range::<K, _>(range).map(|(key, _)| Borrow::<K>::borrow(key)).peekable();
        if written.peek().is_none() {
            return Ok(None);
        }
        let mut deleted = Bitmap::new(stretch.rows, false);
        let (mut before, mut any) = (0, false);
        self.state.tree.for_each_entries(range, self.at(), &mut |entries| {
            let last = entries.last();
            while let Some(key) = written.next_if(|key| *key <= last.borrow()) {
                if let Some(index) = entries.index_of(key) {
                    deleted.set(before + index, true);
                    any = true;
                }
            }
            before += entries.len();
        })?;
        Ok(any.then_some(deleted))
    }

    /// Notes of all groups, which are whole now, what zone maps are to say.
    fn know_bounds(&mut self) -> crate::Result<()> {
        let mut ends = [Pair::new(), Pair::new()];
        for group in &mut self.groups {
            let (Some((first, _)), Some((_, last))) = (group.stretches.first(), group.stretches.last()) else {
                continue;
            };
            let [first, last]: [&K; 2] = [first.borrow(), last.borrow()];
            let mut keys = [first.any(), last.any()];
            if let (Some(pairs), [KeyRef::Bytes(first), KeyRef::Bytes(last)]) = (self.pairs, keys) {
                pairs.read(first, &mut ends[0])?;
                pairs.read(last, &mut ends[1])?;
                keys = [ends[0].key(), ends[1].key()];
            }
            let (min, max) = (lower_bound(self.key, keys[0]), upper_bound(self.key, keys[1]));
            let is_cut = |key: KeyRef<'_>| matches!(key, KeyRef::Bytes(key) if key.len() > BlockStats::BOUND_BYTES);
            let bounds_exact = !keys.into_iter().any(is_cut);
            let of_values = BlockStats { value_count: group.rows, ..BlockStats::default() };
            let of_keys =
                BlockStats { min, max, bounds_exact, sorted: true, distinct_estimate: group.rows, ..of_values.clone() };
            group.stats = [of_keys, of_values];
        }
        Ok(())
    }

    /// Shows the entries of a group of the tree, a leaf's at a time.
    fn for_each_entries(
        &self,
        group: &Group<K::Owned>,
        visit: &mut impl FnMut(Entries<'_, K>),
    ) -> sinter_btree::Result<()> {
        group.stretches.iter().try_for_each(|(first, last)| {
            let range = (Bound::Included(first.borrow()), Bound::Included(last.borrow()));
            self.state.tree.for_each_entries(range, self.at(), visit)
        })
    }

    /// The keys of a group, or its records as values; `None` where a record is none.
    fn values(&self, group: &Group<K::Owned>, column: usize) -> crate::Result<Option<ValuesBuf>> {
        let mut out = match self.types[column].physical() {
            Some(physical) => ValuesBuf::new(physical),
            None => return Ok(None),
        };
        out.reserve(group.rows, 0);
        if let Some(pairs) = self.pairs {
            return self.values_of_pairs(pairs, group, column, out);
        }
        let (mut is_whole, mut read, mut rows) = (true, Ok(()), 0..);
        let mut append = |record: &[u8], out: &mut ValuesBuf| match &self.state.overflow {
            None => is_whole &= append_record(record, out),
            Some(_) if read.is_err() => {}
            // The pieces of what the transaction has written over are gone, too.
            Some(_) if rows.next().is_some_and(|row| is_deleted(group, row)) => is_whole &= append_record(&[], out),
            Some(overflow) => match overflow.value(record, self.at()) {
                Ok(value) => is_whole &= append_record(&value, out),
                Err(error) => read = Err(error),
            },
        };
        if group.is_own {
            let own = self.state.own.as_deref().into_iter();
            let stretches = own.flat_map(|own| group.stretches.iter().map(move |stretch| (own, stretch)));
            let written = stretches.flat_map(|(own, (first, last))| {
                own.range::<K, _>((Bound::Included(first.borrow()), Bound::Included(last.borrow())))
            });
            for (key, record) in written.filter_map(|(key, record)| Some((key, record.as_ref()?))) {
                match column {
                    KEY => Borrow::<K>::borrow(key).append(self.key, &mut out),
                    _ => append(record, &mut out),
                }
            }
        } else {
            self.for_each_entries(group, &mut |entries| match column {
                KEY => K::append_all(&entries, self.key, &mut out),
                _ => entries.records().for_each(|record| append(record, &mut out)),
            })?;
        }
        read?;
        Ok(Some(out).filter(|out| is_whole && out.len() == group.rows))
    }

    /// The same of pairs.
    fn values_of_pairs(
        &self,
        pairs: PairShape,
        group: &Group<K::Owned>,
        column: usize,
        mut out: ValuesBuf,
    ) -> crate::Result<Option<ValuesBuf>> {
        let (mut pair, mut appended) = (Pair::new(), Ok(true));
        let mut append = |key: &K| {
            let KeyRef::Bytes(bytes) = key.any() else { return };
            if let Ok(true) = appended {
                appended = pairs.read(bytes, &mut pair).map(|()| match (column, pair.key()) {
                    (KEY, key) => append_key(key, self.key, &mut out),
                    _ => append_record(pair.value(), &mut out),
                });
            }
        };
        match self.state.own.as_deref().filter(|_| group.is_own) {
            Some(own) => {
                for (first, last) in &group.stretches {
                    let stretch = (Bound::Included(first.borrow()), Bound::Included(last.borrow()));
                    own.range::<K, _>(stretch)
                        .filter(|(_, record)| record.is_some())
                        .for_each(|(key, _)| append(key.borrow()));
                }
            }
            None => self.for_each_entries(group, &mut |entries| entries.for_each_key(&mut append))?,
        }
        Ok(Some(out).filter(|out| matches!(appended, Ok(true)) && out.len() == group.rows))
            .and_then(|out| appended.map(|_| out))
    }

    /// An error where values of a column of text are none.
    fn check_text(&self, group: &Group<K::Owned>, column: usize, values: &ValuesBuf) -> Result<()> {
        let (LogicalType::Utf8, ValuesBuf::Bytes(values)) = (&self.types[column], values) else { return Ok(()) };
        let all = values.view();
        let is_text = std::str::from_utf8(all.data)
            .is_ok_and(|text| all.offsets.iter().all(|&offset| text.is_char_boundary(offset as usize)));
        let first_other = || all.iter().position(|value| std::str::from_utf8(value).is_err());
        let Some(row) = (!is_text).then(first_other).flatten() else { return Ok(()) };
        let keys = self.values(group, KEY).map_err(unreadable)?;
        let key = match &keys {
            Some(ValuesBuf::Bytes(keys)) => key_text(KvKey::Bytes(keys.view().get(row))),
            Some(ValuesBuf::U32(keys)) => keys[row].to_string(),
            Some(ValuesBuf::U64(keys)) => keys[row].to_string(),
            Some(ValuesBuf::I64(keys)) => keys[row].to_string(),
            _ => "unknown".to_owned(),
        };
        let what = COLUMN_NAMES[column];
        Err(Error::Foreign(format!(
            "the {what} of key {key} in '{}' is not UTF-8, as a tree of text should have it; put another one there",
            self.name
        )))
    }
}

fn lent<K: ColumnKey + ?Sized>((start, end): &(Bound<K::Owned>, Bound<K::Owned>)) -> (Bound<&K>, Bound<&K>) {
    (start.as_ref().map(Borrow::borrow), end.as_ref().map(Borrow::borrow))
}

fn unreadable(error: crate::Error) -> Error {
    match error {
        crate::Error::Damaged(_) => Error::Unreadable(Box::new(error)),
        error => Error::Source(Box::new(error)),
    }
}

/// A key in words of SQL, in one line.
fn key_text(key: KvKey<'_>) -> String {
    match key {
        KvKey::Int(key) => key.to_string(),
        KvKey::Bytes(key) => format!("X'{}'", key.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
        KvKey::Text(key) if key.contains(char::is_control) => key_text(KvKey::Bytes(key.as_bytes())),
        KvKey::Text(key) => format!("'{}'", key.replace('\'', "''")),
    }
}

/// What is looked for, in words of SQL.
fn seek_text(ranges: &[AnyRange], ty: KeyType, pairs: Option<PairShape>) -> Option<String> {
    if let (Some(pairs), [range]) = (pairs, ranges) {
        let keys: Vec<AnyRange> = pairs.range_of_keys(range).into_iter().collect();
        return seek_text(&keys, ty, None);
    }
    let text = |key: &Key| key_text(key.decoded(ty));
    match ranges {
        [] => Some("no key".to_owned()),
        [range] if *range == ALL_KEYS => None,
        [(Bound::Included(start), Bound::Included(end))] if start == end => Some(format!("key = {}", text(start))),
        [(start, end)] => {
            let start = match start {
                Bound::Included(key) => Some(format!("key >= {}", text(key))),
                Bound::Excluded(key) => Some(format!("key > {}", text(key))),
                Bound::Unbounded => None,
            };
            let end = match end {
                Bound::Included(key) => Some(format!("key <= {}", text(key))),
                Bound::Excluded(key) => Some(format!("key < {}", text(key))),
                Bound::Unbounded => None,
            };
            Some(start.into_iter().chain(end).collect::<Vec<_>>().join(" AND "))
        }
        several => Some(format!("{} ranges of keys", several.len())),
    }
}

/// Whether the transaction has written a row of the tree over.
fn is_deleted<K>(group: &Group<K>, row: usize) -> bool {
    group.deleted.as_ref().is_some_and(|deleted| deleted.get(row))
}

/// Appends a key as a column has it; false where it is of another type.
fn append_key(key: KeyRef<'_>, ty: KeyType, out: &mut ValuesBuf) -> bool {
    match (key, out) {
        (KeyRef::U32(key), ValuesBuf::U32(out)) => out.push(key),
        (KeyRef::U64(key), ValuesBuf::U64(out)) => out.push(key),
        (KeyRef::U64(key), ValuesBuf::I64(out)) => out.push(ty.signed(key)),
        (KeyRef::Bytes(key), ValuesBuf::Bytes(out)) => out.push(key),
        _ => return false,
    }
    true
}

/// Appends a record as a value; false where it has not as many bytes as one.
fn append_record(record: &[u8], out: &mut ValuesBuf) -> bool {
    fn number<const N: usize, T>(record: &[u8], of: impl Fn([u8; N]) -> T, out: &mut Vec<T>) -> bool {
        record.try_into().map(|bytes| out.push(of(bytes))).is_ok()
    }
    match out {
        ValuesBuf::U32(out) => number(record, u32::from_le_bytes, out),
        ValuesBuf::U64(out) => number(record, u64::from_le_bytes, out),
        ValuesBuf::I64(out) => number(record, i64::from_le_bytes, out),
        ValuesBuf::F64(out) => number(record, f64::from_le_bytes, out),
        ValuesBuf::Bytes(out) => {
            out.push(record);
            true
        }
        _ => false,
    }
}

/// A record as a whole number of a type, if it is one.
fn number_of(record: &[u8], ty: &LogicalType) -> Option<i128> {
    match ty {
        LogicalType::UInt32 => record.try_into().ok().map(|bytes| u32::from_le_bytes(bytes).into()),
        LogicalType::UInt64 => record.try_into().ok().map(|bytes| u64::from_le_bytes(bytes).into()),
        LogicalType::Int64 => record.try_into().ok().map(|bytes| i64::from_le_bytes(bytes).into()),
        _ => None,
    }
}

/// What is known of whole numbers without keeping them. Those of a row group have 64 bits, so that their sum has room.
#[derive(Debug, Default)]
struct Sums {
    count: usize,
    sum: i128,
    min: i128,
    max: i128,
}

impl Sums {
    fn add(&mut self, number: i128) {
        (self.min, self.max) = match self.count {
            0 => (number, number),
            _ => (self.min.min(number), self.max.max(number)),
        };
        self.add_sum(1, number);
    }

    /// Of so many numbers, whose bounds nobody asks for.
    fn add_sum(&mut self, count: usize, sum: i128) {
        self.count += count;
        self.sum += sum;
    }
}

/// What no key of a group is below, as zone maps have it.
fn lower_bound(ty: KeyType, key: KeyRef<'_>) -> Scalar {
    match ty.scalar(key) {
        Scalar::Bytes(mut bytes) => {
            bytes.truncate(BlockStats::BOUND_BYTES);
            Scalar::Bytes(bytes)
        }
        other => other,
    }
}

/// What no key of a group is above.
fn upper_bound(ty: KeyType, key: KeyRef<'_>) -> Scalar {
    match ty.scalar(key) {
        Scalar::Bytes(bytes) => BlockStats::upper_bound(&bytes),
        other => other,
    }
}

/// What the columns of a tree are.
pub(super) fn column_types(key: KeyType, value: ValueType) -> Vec<LogicalType> {
    let key = match key {
        KeyType::U32 => LogicalType::UInt32,
        KeyType::U64 => LogicalType::UInt64,
        KeyType::I64 => LogicalType::Int64,
        KeyType::Bytes | KeyType::Columns => LogicalType::Binary,
        KeyType::Text => LogicalType::Utf8,
    };
    let value = match value {
        ValueType::Nothing => return vec![key],
        ValueType::U32 => LogicalType::UInt32,
        ValueType::U64 => LogicalType::UInt64,
        ValueType::I64 => LogicalType::Int64,
        ValueType::F64 => LogicalType::Float64,
        ValueType::Fixed(_) | ValueType::Bytes => LogicalType::Binary,
        ValueType::Text => LogicalType::Utf8,
    };
    vec![key, value]
}

impl<K: ColumnKey + ?Sized> TableSource for TreeSource<K> {
    fn name(&self) -> &str {
        &self.name
    }

    fn column_types(&self) -> &[LogicalType] {
        &self.types
    }

    fn column_name(&self, column: usize) -> &str {
        COLUMN_NAMES[column]
    }

    fn seek(&self) -> Option<String> {
        self.seek.clone()
    }

    fn group_count(&self) -> usize {
        self.groups.len()
    }

    fn group_rows(&self, group: usize) -> usize {
        self.groups[group].rows
    }

    fn row_ids(&self, group: usize) -> RowIds {
        RowIds::From(self.groups[group].first_row)
    }

    fn deleted(&self, group: usize) -> Option<Arc<Bitmap>> {
        self.groups[group].deleted.clone()
    }

    fn zone(&self, group: usize, column: usize) -> Option<&BlockStats> {
        self.groups[group].stats.get(column)
    }

    fn looks_into(&self, column: usize) -> Option<&'static str> {
        let is_whole_number = self.pairs.is_none()
            && !matches!(self.types[column], LogicalType::Utf8 | LogicalType::Binary | LogicalType::Float64);
        is_whole_number.then_some("leaves")
    }

    fn look_into(&self, group: usize, column: usize) -> Option<BlockStats> {
        self.looks_into(column)?;
        let group = &self.groups[group];
        if group.is_own {
            return None;
        }
        let mut all = Sums::default();
        let ty = &self.types[column];
        self.for_each_entries(group, &mut |entries| match column {
            KEY => all.add_sum(entries.len(), K::sum(&entries, self.key)),
            _ => entries.records().filter_map(|record| number_of(record, ty)).for_each(|number| all.add(number)),
        })
        .ok()?;
        // A record that is no number is told of where the segment is made.
        let known = BlockStats { sum: Some(all.sum), ..group.stats[column].clone() };
        let known = match column {
            KEY => known,
            _ => BlockStats { min: Scalar::Int(all.min), max: Scalar::Int(all.max), bounds_exact: true, ..known },
        };
        (all.count == group.rows).then_some(known)
    }

    fn segment(&self, group: usize, column: usize) -> Result<Pinned> {
        let group = &self.groups[group];
        let values = self.values(group, column).map_err(unreadable)?;
        let Some(values) = values else {
            let what = format!("column {} of key-value tree '{}' as it is stored", COLUMN_NAMES[column], self.name);
            return Err(Error::Unsupported(what));
        };
        self.check_text(group, column, &values)?;
        let text_bytes = if let ValuesBuf::Bytes(values) = &values { values.data.len() } else { 0 };
        let width = values.physical().value_bytes().unwrap_or(size_of::<u32>());
        let stats = BlockStats { plain_bytes: group.rows * width + text_bytes, ..group.stats[column].clone() };
        let mut segment = Vec::new();
        let place = || format!("key-value tree '{}'", self.name);
        write_raw(values.as_values(), None, &stats, &mut segment)
            .map_err(|source| Error::Damaged { place: place(), source })?;
        Ok(Pinned::from_vec(segment))
    }
}
