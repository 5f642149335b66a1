//! Key-value trees as objects of the catalog: what `db.kv("name")` opens.
//!
//! ```text
//! KvTree        an object of the catalog: its number, what its keys and values are, and the tree
//!   AnyTree     the tree, whatever its keys are; keys come as `KeyRef`s
//!   PairShape   of a tree with duplicates: how a key and one of its values are a key of the tree
//!   Overflow    beside it, where values have any length: those that are too long for a leaf, in pieces
//! KvWork        what a transaction writes and reads of trees; an `AnyDraft` for each
//! KvHandle      what a user holds of a tree: `Session::kv`, and what a session does with it
//! KvLoad        a tree that is made at once, of keys in order: `Session::kv_load`
//! TreeRows      a tree as INSERT, UPDATE and DELETE see it: rows become entries
//! TreeTable     what SQL reads of a tree: pieces of it as row groups of a `TreeSource`, in the state of `TreesSeen`
//! ```
//!
//! A tree is changed in place (`sinter_btree`), so the catalog's value leads to the same tree in all states, and a state of
//! it is asked for by commit number. Outside of a transaction a change of one key is a commit of its own, which latches
//! one leaf and validates nothing; what is read is the newest that is durable. A transaction keeps its changes to itself,
//! sees them over the tree as it was when it began, and notes what it reads; its commit latches the leaves of both before
//! it has its number.

mod any_tree;
mod cursor;
mod draft;
mod duplicates;
mod handle;
mod load;
mod overflow;
mod pair;
mod ranges;
mod rows;
mod shape;
mod source;
mod sums;
mod table;
mod work;

pub use cursor::KvCursor;
pub use handle::{KvChanges, KvHandle, KvKey};
pub use load::KvLoad;
pub use shape::{KeyType, KvOptions, ValueType};
pub use sinter_btree::{Condition, Find};
pub use sums::KvSums;

pub(crate) use any_tree::{AnyDraft, AnyTree, AnyWritten, Key, KeyRef, LoadedPages};
pub(crate) use ranges::{ALL_KEYS, AnyRange, union};
pub(crate) use rows::{EntryBuffer, TreeRows};
pub(crate) use shape::KvShape;
pub(crate) use table::{TreeTable, TreesSeen};
pub(crate) use work::{KvMark, KvWork};

use crate::Result;
use overflow::{Apart, Overflow};
use sinter_storage::{Budget, CommitNumber, ObjectId, PageId, Store};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Nobody has committed it: with the last who reads it its pages go.
const DRAFT: u8 = 0;
/// It is in the catalog.
const LIVE: u8 = 1;
/// It was dropped: with the last who reads it its pages go.
const DROPPED: u8 = 2;

/// A key-value tree of the catalog.
#[derive(Debug)]
pub(crate) struct KvTree {
    id: ObjectId,
    shape: KvShape,
    tree: AnyTree,
    /// `None` where all values have their place in leaves.
    overflow: Option<Arc<Overflow>>,
    fate: AtomicU8,
    budget: Arc<Budget>,
    /// The last edition of the catalog that is known to have it.
    seen_in: AtomicU64,
    /// See [`KvTree::numbering`].
    numbering: Mutex<()>,
    /// What it was loaded with, until that is committed.
    loaded: Mutex<Option<Loaded>>,
}

/// The pages that a tree was loaded with, for its commit to name.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    pub(crate) tree: LoadedPages,
    /// Where it has one.
    pub(crate) overflow: Option<LoadedPages>,
}

impl KvTree {
    /// A tree without keys, of which nobody knows yet; with an overflow where that has a number.
    pub(crate) fn create(id: ObjectId, shape: KvShape, overflow: Option<ObjectId>, store: &Arc<Store>) -> KvTree {
        let tree = AnyTree::create(shape.kind(), shape.options(), store);
        let overflow = overflow.map(|id| Overflow::create(id, store));
        KvTree::of(id, shape, (tree, overflow), DRAFT, store)
    }

    /// A tree that was loaded, of which nobody knows yet.
    fn loaded_with(
        id: ObjectId,
        shape: KvShape,
        trees: (AnyTree, Option<Overflow>),
        pages: Option<Loaded>,
        store: &Arc<Store>,
    ) -> KvTree {
        let mut loaded = KvTree::of(id, shape, trees, DRAFT, store);
        loaded.loaded = Mutex::new(pages);
        loaded
    }

    fn of(
        id: ObjectId,
        shape: KvShape,
        (tree, overflow): (AnyTree, Option<Overflow>),
        fate: u8,
        store: &Arc<Store>,
    ) -> KvTree {
        let (overflow, fate, budget) = (overflow.map(Arc::new), AtomicU8::new(fate), Arc::clone(store.budget()));
        let (seen_in, numbering, loaded) = (AtomicU64::new(0), Mutex::new(()), Mutex::new(None));
        KvTree { id, shape, tree, overflow, fate, budget, seen_in, numbering, loaded }
    }

    /// The tree that has this root page, and the overflow that has that number and root page, where it has one.
    ///
    /// # Errors
    /// It cannot be read; or is another tree than the catalog says.
    pub(crate) fn open(
        id: ObjectId,
        shape: KvShape,
        store: &Arc<Store>,
        root: PageId,
        overflow: Option<(ObjectId, PageId)>,
    ) -> sinter_btree::Result<KvTree> {
        let tree = AnyTree::open(shape.kind(), store, root)?;
        if *tree.options() != shape.options() {
            let what = format!("{:?}, where the catalog says {:?}", tree.options(), shape.options());
            let path = store.path().to_path_buf();
            return Err(sinter_btree::Error::DamagedPage { path, page: root, part: "the root", what });
        }
        let overflow = overflow.map(|(id, root)| Overflow::open(id, store, root)).transpose()?;
        Ok(KvTree::of(id, shape, (tree, overflow), LIVE, store))
    }

    pub(crate) fn id(&self) -> ObjectId {
        self.id
    }

    /// What its keys and values are.
    pub(crate) fn shape(&self) -> &KvShape {
        &self.shape
    }

    pub(crate) fn tree(&self) -> &AnyTree {
        &self.tree
    }

    pub(crate) fn overflow(&self) -> Option<&Arc<Overflow>> {
        self.overflow.as_ref()
    }

    /// The tree, and that of its overflow, each with its number.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (ObjectId, AnyTree)> {
        let overflow = self.overflow.iter().map(|overflow| (overflow.id(), overflow.any()));
        std::iter::once((self.id, self.tree.clone())).chain(overflow)
    }

    /// The longest key and value that it takes in.
    pub(crate) fn bytes_max(&self) -> (usize, usize) {
        let (key, record) = self.tree.bytes_max();
        (key, if self.overflow.is_some() { overflow::VALUE_BYTES_MAX } else { record })
    }

    /// What it was loaded with, where that is not committed yet.
    pub(crate) fn loaded(&self) -> Option<Loaded> {
        self.loaded.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// It is in the catalog from now on, unless somebody has dropped it already.
    pub(crate) fn set_live(&self) {
        *self.loaded.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let _ = self.fate.compare_exchange(DRAFT, LIVE, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// It is not in the catalog any more. Who still looks at an older state reads on.
    pub(crate) fn set_dropped(&self) {
        self.fate.store(DROPPED, Ordering::Release);
    }

    /// Whether it is in the catalog; `None` where nobody has committed it, as far as is known here.
    pub(crate) fn is_live(&self) -> Option<bool> {
        match self.fate.load(Ordering::Acquire) {
            DRAFT => None,
            fate => Some(fate == LIVE),
        }
    }

    /// The memory that all share.
    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// What is wrong in the state after commit `at`, of which all leaves can be read.
    ///
    /// # Errors
    /// A leaf cannot be read.
    pub(crate) fn flaw(&self, at: CommitNumber) -> Result<Option<String>> {
        let (mut flaw, mut pair) = (None, pair::Pair::new());
        if let Some(pairs) = self.shape.pairs() {
            self.tree.for_each(&ALL_KEYS, at, &mut |key, _| match key {
                KeyRef::Bytes(bytes) if pairs.read(bytes, &mut pair).is_ok() => ControlFlow::Continue(()),
                _ => {
                    flaw = Some("an entry is no key with a value".to_owned());
                    ControlFlow::Break(())
                }
            })?;
        }
        if let Some(overflow) = &self.overflow {
            let (mut wanted, mut found) = ((0, 0), (0, 0));
            self.tree.for_each(&ALL_KEYS, at, &mut |_, record| {
                if let Some(apart) = Apart::of(record) {
                    let pieces = apart.pieces();
                    wanted = (wanted.0 + (pieces.end - pieces.start), wanted.1 + apart.bytes());
                }
                ControlFlow::Continue(())
            })?;
            overflow.any().for_each(&ALL_KEYS, at, &mut |_, piece| {
                found = (found.0 + 1, found.1 + piece.len());
                ControlFlow::Continue(())
            })?;
            if wanted != found {
                flaw = Some(format!(
                    "its long values have {} pieces of {} bytes together, and there are {} of {}",
                    wanted.0, wanted.1, found.0, found.1
                ));
            }
        }
        Ok(flaw)
    }

    /// What a transaction writes and reads of it, nothing yet.
    pub(crate) fn draft(&self) -> AnyDraft {
        self.tree.draft(self.overflow.as_ref(), &self.budget)
    }

    /// Of a table's first index: held by a commit that inserts rows into the table, from when it learns their ids until it has
    /// its place in the order.
    pub(crate) fn numbering(&self) -> MutexGuard<'_, ()> {
        self.numbering.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it is that of an index, unique or not.
    pub(crate) fn is_of_index(&self, is_unique: bool) -> bool {
        self.shape == KvShape::of_index(is_unique)
    }

    /// Whether a catalog of this edition is known to have it.
    pub(crate) fn was_seen_in(&self, edition: u64) -> bool {
        self.seen_in.load(Ordering::Relaxed) == edition + 1
    }

    /// A catalog of this edition has it.
    pub(crate) fn note_seen_in(&self, edition: u64) {
        self.seen_in.store(edition + 1, Ordering::Relaxed);
    }
}

impl Drop for KvTree {
    fn drop(&mut self) {
        if *self.fate.get_mut() != LIVE {
            self.parts().for_each(|(_, tree)| tree.abandon());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sinter_btree::Changes;
    use sinter_storage::Numbered;

    #[test]
    fn pieces_without_a_record_and_records_without_pieces_are_flaws() {
        let store = Arc::new(Store::memory());
        let shape = KvOptions::default().shape().unwrap();
        let tree = KvTree::create(ObjectId(1), shape, Some(ObjectId(2)), &store);
        let numbered = |commit| Numbered { commit: CommitNumber(commit), horizon: CommitNumber(commit) };
        let overflow = tree.overflow().unwrap();
        let value = vec![7; 10_000];
        let apart = overflow.place(&value).unwrap();
        let put = |number: u64| -> Changes<u64> {
            let pieces = overflow::pieces(apart, &value).filter(|(piece, _)| number != *piece);
            pieces.map(|(piece, bytes)| (piece, Some(bytes.into()))).collect()
        };
        let piece = apart.pieces().start;
        overflow.tree().commit(&put(piece), || Ok::<_, sinter_btree::Error>(numbered(1))).unwrap();
        let flaw = tree.flaw(CommitNumber(1)).unwrap().unwrap();
        assert!(flaw.contains("0 pieces of 0 bytes together, and there are 3 of 6800"), "{flaw}");
        tree.tree().change(KeyRef::U32(1), Some(&apart.record()), Condition::Always, || Ok(numbered(2))).unwrap();
        let flaw = tree.flaw(CommitNumber(2)).unwrap().unwrap();
        assert!(flaw.contains("4 pieces of 10000 bytes together, and there are 3 of 6800"), "{flaw}");
        overflow.tree().commit(&put(0), || Ok::<_, sinter_btree::Error>(numbered(3))).unwrap();
        assert_eq!(tree.flaw(CommitNumber(3)).unwrap(), None);
    }
}
