//! A tree, whatever its keys are: what the catalog, checkpoints and transactions hold, of which each calls the same of all.

use super::draft::Draft;
use super::overflow::Overflow;
use super::ranges::AnyRange;
use crate::Result;
use sinter_btree::{
    Changes, Condition, Cursor, Find, IntegerKey, Loaded, Loader, Prepared, Tree, TreeKey, TreeOptions, TreeShape,
    TreeSizes, Written,
};
use sinter_storage::{Budget, CheckpointWriter, CommitNumber, Numbered, ObjectId, PageId, Record, Store};
use std::borrow::Borrow;
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// A key as its tree has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum KeyRef<'a> {
    U32(u32),
    U64(u64),
    Bytes(&'a [u8]),
}

/// A key that is held.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Key {
    U32(u32),
    U64(u64),
    Bytes(Vec<u8>),
}

impl Key {
    pub(crate) fn lent(&self) -> KeyRef<'_> {
        match self {
            Key::U32(key) => KeyRef::U32(*key),
            Key::U64(key) => KeyRef::U64(*key),
            Key::Bytes(key) => KeyRef::Bytes(key),
        }
    }
}

impl KeyRef<'_> {
    pub(crate) fn to_key(self) -> Key {
        match self {
            KeyRef::U32(key) => Key::U32(key),
            KeyRef::U64(key) => Key::U64(key),
            KeyRef::Bytes(key) => Key::Bytes(key.to_vec()),
        }
    }
}

/// A key with its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    pub(crate) record: Box<[u8]>,
}

/// What a tree's keys are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    U32,
    U64,
    Bytes,
}

/// A key that is one of [`KeyRef`].
pub(crate) trait AnyKey: TreeKey {
    /// Shows the key as what it is.
    ///
    /// # Panics
    /// When it is another one: whoever asks knows what the tree has.
    fn with<R>(key: KeyRef<'_>, use_it: impl FnOnce(&Self) -> R) -> R;

    /// The key, of whatever kind.
    fn any(&self) -> KeyRef<'_>;
}

impl AnyKey for u32 {
    fn with<R>(key: KeyRef<'_>, use_it: impl FnOnce(&u32) -> R) -> R {
        let KeyRef::U32(key) = key else { unreachable!("{key:?} is no u32") };
        use_it(&key)
    }

    fn any(&self) -> KeyRef<'_> {
        KeyRef::U32(*self)
    }
}

impl AnyKey for u64 {
    fn with<R>(key: KeyRef<'_>, use_it: impl FnOnce(&u64) -> R) -> R {
        let KeyRef::U64(key) = key else { unreachable!("{key:?} is no u64") };
        use_it(&key)
    }

    fn any(&self) -> KeyRef<'_> {
        KeyRef::U64(*self)
    }
}

impl AnyKey for [u8] {
    fn with<R>(key: KeyRef<'_>, use_it: impl FnOnce(&[u8]) -> R) -> R {
        let KeyRef::Bytes(key) = key else { unreachable!("{key:?} is no bytes") };
        use_it(key)
    }

    fn any(&self) -> KeyRef<'_> {
        KeyRef::Bytes(self)
    }
}

/// Something of which there is one for each kind of keys.
#[derive(Clone, Debug)]
pub(crate) enum OfKind<A, B, C> {
    U32(A),
    U64(B),
    Bytes(C),
}

/// Does the same with whichever it is.
macro_rules! each {
    ($any:expr, $one:pat => $body:expr) => {
        match $any {
            OfKind::U32($one) => $body,
            OfKind::U64($one) => $body,
            OfKind::Bytes($one) => $body,
        }
    };
}

/// Does the same with whichever it is, and makes another of the kind.
macro_rules! each_to {
    ($any:expr, $one:pat => $body:expr) => {
        match $any {
            OfKind::U32($one) => OfKind::U32($body),
            OfKind::U64($one) => OfKind::U64($body),
            OfKind::Bytes($one) => OfKind::Bytes($body),
        }
    };
}

pub(crate) use {each, each_to};

/// What there is of keys that are whole numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeySums {
    pub(crate) count: u64,
    pub(crate) sum: u128,
    /// The least and the greatest.
    pub(crate) bounds: Option<(u64, u64)>,
}

/// The range, of keys as their tree has them.
pub(super) fn owned_range<K: AnyKey + ?Sized>((start, end): &AnyRange) -> (Bound<K::Owned>, Bound<K::Owned>) {
    let owned = |key: &Key| K::with(key.lent(), ToOwned::to_owned);
    (start.as_ref().map(owned), end.as_ref().map(owned))
}

pub(crate) type AnyTree = OfKind<Arc<Tree<u32>>, Arc<Tree<u64>>, Arc<Tree<[u8]>>>;
pub(crate) type AnyCursor =
    OfKind<Cursor<Arc<Tree<u32>>, u32>, Cursor<Arc<Tree<u64>>, u64>, Cursor<Arc<Tree<[u8]>>, [u8]>>;
pub(crate) type AnyPrepared<'t> = OfKind<Prepared<'t, u32>, Prepared<'t, u64>, Prepared<'t, [u8]>>;
pub(crate) type AnyWritten = OfKind<Written<u32>, Written<u64>, Written<[u8]>>;
pub(crate) type AnyLoader = OfKind<Loader<u32>, Loader<u64>, Loader<[u8]>>;
pub(crate) type AnyDraft = OfKind<Draft<u32>, Draft<u64>, Draft<[u8]>>;
/// What a transaction has written.
pub(crate) type AnyChanges = OfKind<Arc<Changes<u32>>, Arc<Changes<u64>>, Arc<Changes<[u8]>>>;

impl AnyTree {
    pub(crate) fn create(kind: Kind, options: TreeOptions, store: &Arc<Store>) -> AnyTree {
        let store = Arc::clone(store);
        match kind {
            Kind::U32 => OfKind::U32(Tree::create(options, store)),
            Kind::U64 => OfKind::U64(Tree::create(options, store)),
            Kind::Bytes => OfKind::Bytes(Tree::create(options, store)),
        }
    }

    /// The tree that has this root page.
    pub(crate) fn open(kind: Kind, store: &Arc<Store>, root: PageId) -> sinter_btree::Result<AnyTree> {
        let store = Arc::clone(store);
        Ok(match kind {
            Kind::U32 => OfKind::U32(Tree::open(store, root)?),
            Kind::U64 => OfKind::U64(Tree::open(store, root)?),
            Kind::Bytes => OfKind::Bytes(Tree::open(store, root)?),
        })
    }

    pub(crate) fn get<R>(
        &self,
        key: KeyRef<'_>,
        at: impl FnOnce() -> CommitNumber,
        use_it: impl FnOnce(Option<&[u8]>) -> R,
    ) -> Result<R> {
        Ok(each!(self, tree => AnyKey::with(key, |key| tree.get(key, at, use_it)))?)
    }

    /// Changes one key in a commit of its own ([`Tree::change`]).
    pub(crate) fn change(
        &self,
        key: KeyRef<'_>,
        record: Option<&[u8]>,
        condition: Condition<'_>,
        number: impl FnOnce() -> Result<Numbered>,
    ) -> Result<bool> {
        each!(self, tree => AnyKey::with(key, |key| tree.change(key, record, condition, number)))
    }

    /// What such a change is in the log.
    pub(crate) fn log_record(&self, id: ObjectId, key: KeyRef<'_>, record: Option<&[u8]>) -> Record {
        fn of<K: AnyKey + ?Sized>(_: &Tree<K>, id: ObjectId, key: KeyRef<'_>, record: Option<&[u8]>) -> Record {
            K::with(key, |key| Tree::<K>::log_record(id, std::iter::once((key, record))))
        }
        each!(self, tree => of(tree, id, key, record))
    }

    pub(crate) fn cursor(&self, at: CommitNumber) -> AnyCursor {
        each_to!(self, tree => Cursor::new(Arc::clone(tree), at))
    }

    pub(crate) fn len(&self, at: CommitNumber) -> Result<u64> {
        Ok(each!(self, tree => tree.len(at))?)
    }

    /// What it consists of, as far as it is in memory.
    pub(crate) fn shape(&self) -> TreeShape {
        each!(self, tree => tree.shape())
    }

    /// Shows the entries of a range after commit `at`, in order, until `visit` breaks off.
    pub(crate) fn for_each(
        &self,
        range: &AnyRange,
        at: CommitNumber,
        visit: &mut dyn FnMut(KeyRef<'_>, &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        fn of<K: AnyKey + ?Sized>(
            tree: &Tree<K>,
            range: &AnyRange,
            at: CommitNumber,
            visit: &mut dyn FnMut(KeyRef<'_>, &[u8]) -> ControlFlow<()>,
        ) -> Result<()> {
            let (start, end) = owned_range::<K>(range);
            let lent = (start.as_ref().map(Borrow::borrow), end.as_ref().map(Borrow::borrow));
            Ok(tree.for_each_entry(lent, at, &mut |key, record| visit(key.any(), record))?)
        }
        each!(self, tree => of(tree, range, at, visit))
    }

    /// Count and sum, and the least and the greatest, of the keys of a range after commit `at`, as the tree has them.
    ///
    /// # Panics
    /// When they are bytes.
    pub(crate) fn sums(&self, range: &AnyRange, at: CommitNumber) -> Result<KeySums> {
        fn of<K: AnyKey + IntegerKey + Into<u64>>(
            tree: &Tree<K>,
            range: &AnyRange,
            at: CommitNumber,
        ) -> Result<KeySums> {
            let mut sums = KeySums::default();
            tree.for_each_block(owned_range::<K>(range), at, &mut |keys| {
                let [Some(first), Some(last)] = [keys.first(), keys.last()] else { return };
                let (low, high) = keys.iter().fold((0_u64, 0_u64), |(low, high), key| {
                    let key: u64 = (*key).into();
                    (low + (key & u64::from(u32::MAX)), high + (key >> 32))
                });
                sums.count += keys.len() as u64;
                sums.sum += u128::from(low) + (u128::from(high) << 32);
                sums.bounds = Some((sums.bounds.map_or((*first).into(), |(first, _)| first), (*last).into()));
            })?;
            Ok(sums)
        }
        match self {
            OfKind::U32(tree) => of(tree, range, at),
            OfKind::U64(tree) => of(tree, range, at),
            OfKind::Bytes(_) => unreachable!("bytes have no sum"),
        }
    }

    /// What its keys and records take, in all leaves.
    pub(crate) fn sizes(&self, at: CommitNumber) -> Result<TreeSizes> {
        Ok(each!(self, tree => tree.sizes(at))?)
    }

    pub(crate) fn replay(&self, record: &Record, commit: CommitNumber) -> Result<()> {
        Ok(each!(self, tree => tree.replay(record, commit))?)
    }

    pub(crate) fn write(&self, out: &mut CheckpointWriter<'_>) -> Result<AnyWritten> {
        Ok(each_to!(self, tree => tree.write(out)?))
    }

    pub(crate) fn copy(&self, out: &mut CheckpointWriter<'_>) -> Result<PageId> {
        Ok(each!(self, tree => tree.copy(out))?)
    }

    pub(crate) fn for_each_page(&self, visit: &mut dyn FnMut(PageId)) {
        each!(self, tree => tree.for_each_page(visit));
    }

    /// The page that leads to all others, where it has one.
    pub(crate) fn root(&self) -> Option<PageId> {
        each!(self, tree => tree.root())
    }

    pub(crate) fn abandon(&self) {
        each!(self, tree => tree.abandon());
    }

    pub(crate) fn options(&self) -> &TreeOptions {
        each!(self, tree => tree.options())
    }

    /// The longest key and record that a leaf takes in.
    pub(crate) fn bytes_max(&self) -> (usize, usize) {
        each!(self, tree => (tree.key_bytes_max(), tree.record_bytes_max()))
    }

    pub(crate) fn draft(&self, overflow: Option<&Arc<Overflow>>, budget: &Arc<Budget>) -> AnyDraft {
        each_to!(self, tree => Draft::new(Arc::clone(tree), overflow, budget))
    }
}

impl AnyLoader {
    pub(crate) fn new(kind: Kind, options: TreeOptions, store: &Arc<Store>) -> AnyLoader {
        let store = Arc::clone(store);
        match kind {
            Kind::U32 => OfKind::U32(Loader::new(options, store)),
            Kind::U64 => OfKind::U64(Loader::new(options, store)),
            Kind::Bytes => OfKind::Bytes(Loader::new(options, store)),
        }
    }

    /// Adds a key behind all before, with its record; whether it is behind them.
    pub(crate) fn push(&mut self, key: KeyRef<'_>, record: &[u8]) -> Result<bool> {
        Ok(each!(self, loader => AnyKey::with(key, |key| loader.push(key, record)))?)
    }

    /// The longest key and record that a leaf takes in.
    pub(crate) fn bytes_max(&self) -> (usize, usize) {
        each!(self, loader => loader.bytes_max())
    }

    /// The tree, and, of one in a file, its pages.
    pub(crate) fn finish(self) -> Result<(AnyTree, Option<LoadedPages>)> {
        fn parts<K: AnyKey + ?Sized>(loader: Loader<K>) -> Result<(Arc<Tree<K>>, Option<LoadedPages>)> {
            let Loaded { tree, root, pages } = loader.finish()?;
            Ok((tree, root.map(|root| LoadedPages { root, pages: pages.into() })))
        }
        Ok(match self {
            OfKind::U32(loader) => parts(loader).map(|(tree, pages)| (OfKind::U32(tree), pages))?,
            OfKind::U64(loader) => parts(loader).map(|(tree, pages)| (OfKind::U64(tree), pages))?,
            OfKind::Bytes(loader) => parts(loader).map(|(tree, pages)| (OfKind::Bytes(tree), pages))?,
        })
    }
}

/// Pages of a tree that its commit is to name.
#[derive(Clone, Debug)]
pub(crate) struct LoadedPages {
    /// The one that leads to the others.
    pub(crate) root: PageId,
    /// All of them.
    pub(crate) pages: Arc<[PageId]>,
}

impl AnyWritten {
    pub(crate) fn root(&self) -> PageId {
        each!(self, written => written.root())
    }

    pub(crate) fn adopt(self) -> Result<()> {
        Ok(each!(self, written => written.adopt())?)
    }
}

impl AnyPrepared<'_> {
    pub(crate) fn settle(self, numbered: &Numbered) {
        each!(self, prepared => prepared.settle(numbered));
    }
}

impl AnyCursor {
    /// Goes to the entry that is looked for; to the first or the last without a key.
    pub(crate) fn seek(&mut self, find: Find, key: Option<KeyRef<'_>>) -> Result<()> {
        each!(self, cursor => match key {
            Some(key) => AnyKey::with(key, |key| cursor.seek(find, key).map(drop)),
            None if matches!(find, Find::Less | Find::LessEqual) => cursor.last().map(drop),
            None => cursor.first().map(drop),
        })?;
        Ok(())
    }

    pub(crate) fn next(&mut self) -> Result<()> {
        Ok(each!(self, cursor => cursor.next().map(drop))?)
    }

    pub(crate) fn previous(&mut self) -> Result<()> {
        Ok(each!(self, cursor => cursor.previous().map(drop))?)
    }

    pub(crate) fn entry(&self) -> Option<(KeyRef<'_>, &[u8])> {
        each!(self, cursor => cursor.entry().map(|(key, record)| (key.any(), record)))
    }
}
