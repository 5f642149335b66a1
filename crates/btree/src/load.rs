//! A tree made at once of keys that come in order: leaves are full, and go to their pages as they fill.
//!
//! Nobody knows of the tree meanwhile, so nothing is latched, remembered or logged: whoever commits it names its pages
//! ([`Loaded::pages`]), and the root by which it is found ([`Loaded::root`]). Keys are written block by block, each once.
//! The paper fills trees key by key (section 4.3.1, *insert*).

use crate::directory::Directory;
use crate::directory_draft::{DirectoryDraft, DirectorySink};
use crate::home::Home;
use crate::keys::{KeyList, NoRoom, TreeKey, lent};
use crate::leaf::Leaf;
use crate::leaf_page;
use crate::memory::{BESIDE_BYTES, LeafMemory};
use crate::records::Records;
use crate::slots::{Place, SlotIndex};
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use crate::tree::{Tree, TreeOptions};
use crate::{Error, Result};
use sinter_storage::{PageId, PageKind, Store};
use std::fmt;

/// A leaf is left as it is once it has all but this part of what it could: the rest would be blocks of few keys.
const REST_DIVISOR: usize = 8;

/// See the module. Dropped before it is finished, it leaves nothing behind.
pub struct Loader<K: TreeKey + ?Sized> {
    tree: Tree<K>,
    /// What was to be written is lost.
    has_failed: bool,
    /// The leaf that is being filled, and those before it, each with the least key that it may have.
    leaf: Leaf<K>,
    leaves: Vec<(Option<K::Owned>, SlotIndex)>,
    /// What comes next into the leaf, as soon as it is a block.
    keys: Vec<K::Owned>,
    records: Records,
    /// Bytes of these keys as they are.
    keys_size: usize,
    /// The key before them.
    last: Option<K::Owned>,
    draft: DirectoryDraft<K>,
    pages: FreshPages,
    payload: Vec<u8>,
}

/// A tree that nobody knows of yet.
pub struct Loaded<K: TreeKey + ?Sized> {
    /// The tree. Where it is not committed, it is to be [abandoned](Tree::abandon).
    pub tree: Arc<Tree<K>>,
    /// The page that leads to all others; `None` of a tree in memory.
    pub root: Option<PageId>,
    /// All its pages, for the commit that makes them durable.
    pub pages: Vec<PageId>,
}

/// Pages that no commit has named yet. They are given back with this.
struct FreshPages {
    store: Arc<Store>,
    pages: Vec<PageId>,
}

impl FreshPages {
    fn write(&mut self, kind: PageKind, payload: &[u8]) -> Result<PageId> {
        let page = self.store.write_page(kind, payload)?;
        self.pages.push(page);
        Ok(page)
    }
}

impl DirectorySink for FreshPages {
    fn put_directory(&mut self, bytes: &[u8]) -> Result<PageId> {
        self.write(PageKind::TREE_DIRECTORY, bytes)
    }

    fn keep_directory(&mut self, _: PageId) -> Result<()> {
        unreachable!("there was no checkpoint of the tree")
    }
}

impl Drop for FreshPages {
    fn drop(&mut self) {
        self.pages.iter().for_each(|page| self.store.free(*page));
    }
}

impl<K: TreeKey + ?Sized> Loader<K> {
    /// A tree without keys, of this store.
    ///
    /// # Panics
    /// When options are out of their ranges.
    pub fn new(options: TreeOptions, store: Arc<Store>) -> Loader<K> {
        let memory = LeafMemory::new(&store);
        let home = (!store.is_in_memory()).then(|| Home::new(Arc::clone(&store)));
        // Nobody has memory back from it before it is whole.
        let tree = Tree::<K>::empty(options, home, Some(memory));
        let (leaf, records) = (Leaf::new(&tree.shape), Records::new(options.records));
        Loader {
            tree,
            has_failed: false,
            leaf,
            leaves: Vec::new(),
            keys: Vec::new(),
            records,
            keys_size: 0,
            last: None,
            draft: DirectoryDraft::new(&[]),
            pages: FreshPages { store, pages: Vec::new() },
            payload: Vec::new(),
        }
    }

    /// The longest key and record that a leaf takes in.
    pub fn bytes_max(&self) -> (usize, usize) {
        (self.tree.key_bytes_max(), self.tree.record_bytes_max())
    }

    /// Adds a key, which is to be greater than all before, with its record. Returns whether it is: if not, nothing happens.
    ///
    /// # Errors
    /// A leaf cannot be written, or there is no memory: from then on [`Error::FailedLoad`].
    ///
    /// # Panics
    /// As [`Tree::change`].
    pub fn push(&mut self, key: &K, record: &[u8]) -> Result<bool> {
        self.check()?;
        if self.keys.last().or(self.last.as_ref()).is_some_and(|last| key <= lent(last)) {
            return Ok(false);
        }
        self.tree.check(key, Some(record));
        let key_size = K::List::key_size(key);
        if self.leaf.size() + self.keys_size + key_size + self.records.size() + self.records.size_of(record)
            > self.room()
        {
            self.flush()?;
        }
        self.records.insert(self.keys.len(), record);
        self.keys.push(key.to_owned());
        self.keys_size += key_size;
        if self.keys.len() == self.tree.options.block_len {
            self.flush()?;
        }
        Ok(true)
    }

    fn check(&self) -> Result<()> {
        if self.has_failed { Err(Error::FailedLoad) } else { Ok(()) }
    }

    /// Bytes that keys and records of the leaf may take.
    fn room(&self) -> usize {
        self.tree.shape.size_max.saturating_sub(self.leaf.bounds_size())
    }

    /// Puts what came last into the leaf, or into the next where it has no room.
    fn flush(&mut self) -> Result<()> {
        self.has_failed = true;
        let (mut start, mut count) = (0, self.keys.len());
        while start < self.keys.len() {
            let room = self.room();
            let is_full = self.leaf.size() > room - room / REST_DIVISOR;
            let appended = match is_full {
                true => Err(NoRoom),
                false => self.leaf.append(&self.keys, &self.records, start..start + count, room),
            };
            match appended {
                Ok(()) => (start, count) = (start + count, self.keys.len() - start - count),
                Err(NoRoom) if self.leaf.len() > 0 => self.end_leaf(start)?,
                // One key and its record have place in any leaf.
                Err(NoRoom) => count = count.div_ceil(2),
            }
        }
        self.last = self.keys.pop().or(self.last.take());
        self.keys.clear();
        self.records.clear();
        self.keys_size = 0;
        self.has_failed = false;
        Ok(())
    }

    /// The leaf ends before this one of the keys that are to come.
    fn end_leaf(&mut self, next: usize) -> Result<()> {
        let (_, upper) = self.leaf.split(lent(&self.keys[next]), self.tree.shape.size_max);
        let leaf = std::mem::replace(&mut self.leaf, upper);
        self.place(leaf)
    }

    fn place(&mut self, mut leaf: Leaf<K>) -> Result<()> {
        let low = leaf.low().cloned();
        let (place, memory_bytes) = match &self.tree.home {
            Some(_) => {
                self.payload.clear();
                leaf_page::write(&leaf, &mut self.payload);
                let page = self.pages.write(PageKind::TREE_LEAF, &self.payload)?;
                self.draft.push(low.clone(), page, &mut self.pages)?;
                (Place::Paged(page), 0)
            }
            None => {
                leaf.shrink();
                leaf.set_stamp(self.tree.stamp());
                let memory_bytes = leaf.memory_bytes();
                (Place::Resident(Box::new(leaf)), memory_bytes)
            }
        };
        self.tree.make_room(memory_bytes + BESIDE_BYTES)?;
        self.tree.note_memory(0, memory_bytes);
        self.tree.note_leaves(1);
        self.leaves.push((low, self.tree.slots.add(place).0));
        Ok(())
    }

    /// The tree, whole.
    ///
    /// # Errors
    /// As [`Loader::push`].
    pub fn finish(mut self) -> Result<Loaded<K>> {
        self.check()?;
        self.flush()?;
        let last = std::mem::replace(&mut self.leaf, Leaf::new(&self.tree.shape));
        self.place(last)?;
        let Loader { tree, leaves, draft, mut pages, .. } = self;
        let mut root = None;
        if let Some(home) = &tree.home {
            let (directory, _) = draft.finish(&mut pages)?;
            let page = pages.write(PageKind::TREE_ROOT, &tree.root_bytes(&directory))?;
            root = Some(page);
            let mut known = home.pages();
            (known.root, known.directory) = (root, directory.into());
            drop(known);
            home.is_as_written.store(true, Ordering::Release);
        }
        tree.take_leaves(Directory::of(leaves));
        let tree = tree.shared();
        Ok(Loaded { tree, root, pages: std::mem::take(&mut pages.pages) })
    }
}

impl<K: TreeKey + ?Sized> Tree<K> {
    /// Has these leaves in the place of the one, without keys, that it has. Nobody else has the tree yet.
    fn take_leaves(&self, directory: Directory<K>) {
        let slot = self.directory.read().leaf_from(None);
        let before = {
            let mut place = self.slots.look_mut(slot);
            let before = place.leaf().map_or(0, Leaf::memory_bytes);
            *place = Place::Nowhere;
            before
        };
        self.directory.replace(directory);
        self.slots.give_back(slot);
        self.note_memory(before, 0);
        self.note_leaves(-1);
        self.settle_memory();
    }
}

impl<K: TreeKey + ?Sized> fmt::Debug for Loader<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loader").field("leaves", &self.leaves.len()).finish_non_exhaustive()
    }
}

impl<K: TreeKey + ?Sized> fmt::Debug for Loaded<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loaded").field("root", &self.root).finish_non_exhaustive()
    }
}
