//! Values that are too long for a leaf: their record says where they are, and they are in pieces in a tree beside.
//!
//! ```text
//! Overflow    that tree: piece by number, of which each is given once; made with its tree, and goes with it
//! OverflowLoad  the same, as it is made of values that come one behind the other
//! Apart       what the record of such a value says: its first piece, and its bytes
//! show(..)    a record's value, where it is in the record
//! ```
//!
//! Pieces are entries of an ordinary tree: they are logged, seen by snapshots and given back as all others are. A value's
//! pieces are put, and go, in the commit that changes its record. So who has a record of one state finds its pieces in the
//! same state. Leaves are latched in the order tree, overflow.

use super::any_tree::{AnyTree, LoadedPages};
use crate::{Error, Result};
use sinter_btree::{Changes, Cursor, Loaded, Loader, RecordShape, Tree, TreeOptions};
use sinter_codec::KeyCodec;
use sinter_storage::{CommitNumber, ObjectId, PageId, Store};
use std::borrow::Cow;
use std::ops::{Bound, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Of trees that have an overflow: how a record begins that is not just the value. No UTF-8 has this byte.
const MARK: u8 = 0xff;

/// Behind the mark: the value follows, which begins with the mark itself.
const IS_VALUE: u8 = 0;

/// Behind the mark: an [`Apart`] follows.
const IS_APART: u8 = 1;

/// Bytes of an [`Apart`] as a record.
const APART_BYTES: usize = 2 + 2 * size_of::<u64>();

/// What a record has beside its value at most, where that is in it.
const MARK_BYTES: usize = 2;

/// Bytes of a full piece: five of them fill a leaf.
const PIECE_BYTES: usize = 3200;

/// The longest value: a commit takes in one, and others that are short.
pub(super) const VALUE_BYTES_MAX: usize = 256 << 20;

/// The number of the first piece.
const FIRST_PIECE: u64 = 1;

/// Where a value is that is not in its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Apart {
    first: u64,
    bytes: usize,
}

impl Apart {
    /// What a record says, if it says where its value is.
    pub(super) fn of(record: &[u8]) -> Option<Apart> {
        let [MARK, IS_APART, rest @ ..] = record else { return None };
        let (first, rest) = rest.split_first_chunk()?;
        let bytes = usize::try_from(u64::from_le_bytes(rest.try_into().ok()?)).ok()?;
        Some(Apart { first: u64::from_le_bytes(*first), bytes }).filter(|apart| apart.bytes <= VALUE_BYTES_MAX)
    }

    /// The record that says so.
    pub(super) fn record(self) -> [u8; APART_BYTES] {
        let mut record = [MARK, IS_APART, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        record[2..10].copy_from_slice(&self.first.to_le_bytes());
        record[10..].copy_from_slice(&(self.bytes as u64).to_le_bytes());
        record
    }

    /// The numbers of its pieces.
    pub(super) fn pieces(self) -> Range<u64> {
        self.first..self.first.saturating_add(self.bytes.div_ceil(PIECE_BYTES) as u64)
    }

    /// Bytes of the value.
    pub(super) fn bytes(self) -> usize {
        self.bytes
    }
}

/// The value that is in a record of a tree with an overflow.
pub(super) fn value_in(record: &[u8]) -> &[u8] {
    match record {
        [MARK, IS_VALUE, value @ ..] => value,
        value => value,
    }
}

/// The record of a value that is in it.
pub(super) fn record_of(value: &[u8]) -> Cow<'_, [u8]> {
    match value {
        [MARK, ..] => Cow::Owned([&[MARK, IS_VALUE], value].concat()),
        _ => Cow::Borrowed(value),
    }
}

/// Whether a value is too long for a record of so many bytes.
pub(super) fn is_apart(value: &[u8], record_bytes_max: usize) -> bool {
    value.len() > record_bytes_max - MARK_BYTES
}

/// Shows the value of a record of a tree with an overflow to `use_it`; where it is apart, that is given back instead.
pub(super) fn show<R, F: FnOnce(Option<&[u8]>) -> R>(
    record: Option<&[u8]>,
    use_it: F,
) -> std::result::Result<R, (Apart, F)> {
    match record.and_then(Apart::of) {
        Some(apart) => Err((apart, use_it)),
        None => Ok(use_it(record.map(value_in))),
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Overflow {
    id: ObjectId,
    tree: Arc<Tree<u64>>,
    /// The least number that no piece has or had since the database was opened; 0 where nobody has asked yet.
    next: AtomicU64,
}

impl Overflow {
    /// One without pieces.
    pub(super) fn create(id: ObjectId, store: &Arc<Store>) -> Overflow {
        Overflow::of(id, Tree::create(Overflow::options(), Arc::clone(store)))
    }

    /// The one that has this root page.
    ///
    /// # Errors
    /// It cannot be read; or is another tree than one of pieces.
    pub(super) fn open(id: ObjectId, store: &Arc<Store>, root: PageId) -> sinter_btree::Result<Overflow> {
        let tree = Tree::open(Arc::clone(store), root)?;
        if *tree.options() != Overflow::options() {
            let (path, what) = (store.path().to_path_buf(), format!("{:?}, where pieces belong", tree.options()));
            return Err(sinter_btree::Error::DamagedPage { path, page: root, part: "the root", what });
        }
        Ok(Overflow::of(id, tree))
    }

    /// The one with this tree.
    pub(super) fn of(id: ObjectId, tree: Arc<Tree<u64>>) -> Overflow {
        Overflow { id, tree, next: AtomicU64::new(0) }
    }

    /// How pieces are kept.
    pub(super) fn options() -> TreeOptions {
        TreeOptions::new(KeyCodec::Bp128D1, RecordShape::Variable)
    }

    pub(crate) fn id(&self) -> ObjectId {
        self.id
    }

    pub(crate) fn tree(&self) -> &Arc<Tree<u64>> {
        &self.tree
    }

    /// The tree as one of any kind.
    pub(super) fn any(&self) -> AnyTree {
        AnyTree::U64(Arc::clone(&self.tree))
    }

    /// Whether any value is, or was, apart, as far as records can be seen that say so; or that cannot be told, as a leaf cannot
    /// be read.
    pub(super) fn is_used(&self) -> bool {
        self.next().map_or(true, |next| next > FIRST_PIECE)
    }

    /// Numbers for the pieces of a value that is to be put.
    ///
    /// # Errors
    /// A leaf cannot be read.
    pub(super) fn place(&self, value: &[u8]) -> Result<Apart> {
        self.next()?;
        let pieces = value.len().div_ceil(PIECE_BYTES) as u64;
        Ok(Apart { first: self.next.fetch_add(pieces, Ordering::AcqRel), bytes: value.len() })
    }

    fn next(&self) -> Result<u64> {
        let known = self.next.load(Ordering::Acquire);
        if known != 0 {
            return Ok(known);
        }
        // Pieces are put by who has asked, so those that are there have been since the database was opened.
        let mut cursor = Cursor::new(&*self.tree, CommitNumber(u64::MAX));
        let last = cursor.last()?.map(|(last, _)| *last);
        let next = last.map_or(FIRST_PIECE, |last| last.saturating_add(1));
        Ok(match self.next.compare_exchange(0, next, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => next,
            Err(known) => known,
        })
    }

    /// The value that is there, in the state after commit `at`, or among what the transaction of that state has written.
    ///
    /// # Errors
    /// A leaf cannot be read; [`Error::Damaged`]: pieces are missing.
    pub(super) fn read(&self, apart: Apart, own: Option<&Changes<u64>>, at: CommitNumber) -> Result<Vec<u8>> {
        let pieces = apart.pieces();
        let mut value = Vec::with_capacity(apart.bytes);
        match own.filter(|own| own.get(&pieces.start).is_some_and(Option::is_some)) {
            Some(own) => {
                own.range(pieces).filter_map(|(_, piece)| piece.as_deref()).for_each(|piece| value.extend(piece));
            }
            None => {
                let range = (Bound::Included(&pieces.start), Bound::Excluded(&pieces.end));
                self.tree.for_each_entries(range, at, &mut |entries| {
                    entries.records().for_each(|piece| value.extend_from_slice(piece));
                })?;
            }
        }
        match value.len() == apart.bytes {
            true => Ok(value),
            false => Err(Error::Damaged(format!(
                "of a value of {} bytes in a key-value tree {} are there; put another one there, or take a backup",
                apart.bytes,
                value.len()
            ))),
        }
    }
}

/// Values on their way into the overflow of a tree that is loaded.
#[derive(Debug)]
pub(super) struct OverflowLoad {
    loader: Loader<u64>,
    next: u64,
}

impl OverflowLoad {
    pub(super) fn new(store: &Arc<Store>) -> OverflowLoad {
        OverflowLoad { loader: Loader::new(Overflow::options(), Arc::clone(store)), next: FIRST_PIECE }
    }

    /// Where the next value is, if it is this one.
    pub(super) fn place(&self, value: &[u8]) -> Apart {
        Apart { first: self.next, bytes: value.len() }
    }

    /// Adds the pieces of the next value.
    ///
    /// # Errors
    /// A page cannot be written; there is no memory.
    pub(super) fn push(&mut self, apart: Apart, value: &[u8]) -> Result<()> {
        self.next = apart.pieces().end;
        for (piece, bytes) in pieces(apart, value) {
            self.loader.push(&piece, bytes)?;
        }
        Ok(())
    }

    /// The tree of the pieces, and, of one in a file, its pages.
    ///
    /// # Errors
    /// A page cannot be written.
    pub(super) fn finish(self) -> Result<(Arc<Tree<u64>>, Option<LoadedPages>)> {
        let Loaded { tree, root, pages } = self.loader.finish()?;
        Ok((tree, root.map(|root| LoadedPages { root, pages: pages.into() })))
    }
}

/// The pieces of a value, each with its number.
pub(super) fn pieces(apart: Apart, value: &[u8]) -> impl Iterator<Item = (u64, &[u8])> {
    apart.pieces().zip(value.chunks(PIECE_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_says_where_its_value_is_or_is_it() {
        let apart = Apart { first: 7, bytes: 2 * PIECE_BYTES + 1 };
        assert_eq!(Apart::of(&apart.record()), Some(apart));
        assert_eq!(apart.pieces(), 7..10);
        for value in [&[][..], b"a", &[MARK], &[MARK, IS_VALUE], &[MARK, IS_APART], &apart.record(), &[MARK; 40]] {
            let record = record_of(value);
            assert_eq!((Apart::of(&record), value_in(&record)), (None, value));
        }
        for len in 0..APART_BYTES {
            assert_eq!(Apart::of(&apart.record()[..len]), None, "{len} bytes");
        }
    }

    #[test]
    fn five_full_pieces_fill_a_leaf() {
        let store = Arc::new(Store::memory());
        let overflow = Overflow::create(ObjectId(1), &store);
        let value = vec![1; 500 * PIECE_BYTES];
        let changes: Changes<u64> =
            pieces(overflow.place(&value).unwrap(), &value).map(|(piece, bytes)| (piece, Some(bytes.into()))).collect();
        let number = || {
            let commit = CommitNumber(1);
            Ok::<_, sinter_btree::Error>(sinter_storage::Numbered { commit, horizon: commit })
        };
        overflow.tree.commit(&changes, number).unwrap();
        let shape = overflow.tree.shape();
        assert!((100..=102).contains(&shape.leaves), "{shape:?}");
        assert_eq!(overflow.place(&value).unwrap().first, 501);
    }
}
