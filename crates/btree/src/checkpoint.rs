//! A tree in a checkpoint: the leaves that have no page get one, and pages lead to them (docs/format/tree.md).
//!
//! ```text
//! tree root        how the tree keeps its keys; which directory pages there are
//! tree directory   which leaves follow each other: their pages, and the least key of each
//! tree leaf        see `leaf_page`
//! ```
//!
//! The walk goes from leaf to leaf, one latch at a time, while others read and commit. Each leaf is written as it was after
//! the checkpoint's commit, which the undo of later ones tells; so whoever makes the checkpoint sees to it that undo is
//! kept meanwhile ([`sinter_storage::Numbered::horizon`]). Leaves may be divided behind and before the walk; none is taken
//! out until it is over. What is written is a leaf's page only once the checkpoint is durable, and the leaf still what it
//! was ([`Written::adopt`]).

use crate::Result;
use crate::directory::Directory;
use crate::directory_draft::{DirectoryDraft, DirectorySink};
use crate::directory_page::{self, Entry};
use crate::home::{DirectoryPage, Home};
use crate::keys::{TreeKey, lent};
use crate::leaf::State;
use crate::leaf_page;
use crate::memory::LeafMemory;
use crate::slots::{Place, SlotIndex, Slots};
use crate::sync::Arc;
use crate::sync::atomic::Ordering;
use crate::tree::Tree;
use sinter_storage::{CheckpointWriter, CommitNumber, PageId, PageKind, Store};
use std::fmt;

/// A tree in a checkpoint that is not durable yet. To be [adopted](Written::adopt) once it is; dropped, it is as if it had
/// not been written.
pub struct Written<K: TreeKey + ?Sized> {
    walk: Walk<K>,
    root: PageId,
    directory: Arc<[DirectoryPage]>,
    leaves: Vec<WrittenLeaf>,
}

/// A leaf that has got a page.
#[derive(Debug)]
struct WrittenLeaf {
    slot: SlotIndex,
    /// `None` where there were later commits already.
    stamp: Option<u64>,
    page: PageId,
}

/// While it lives, no leaf is taken out of the tree, and no other checkpoint of it begins.
struct Walk<K: TreeKey + ?Sized> {
    tree: Arc<Tree<K>>,
    at: CommitNumber,
    is_adopted: bool,
}

impl<K: TreeKey + ?Sized> Walk<K> {
    fn begin(tree: &Arc<Tree<K>>, at: CommitNumber) -> Result<Walk<K>> {
        let is_walked = std::mem::replace(&mut tree.home()?.pages().is_walked, true);
        assert!(!is_walked, "one checkpoint of a tree at a time, until it is adopted");
        tree.hold_leaves();
        Ok(Walk { tree: Arc::clone(tree), at, is_adopted: false })
    }
}

impl<K: TreeKey + ?Sized> Drop for Walk<K> {
    fn drop(&mut self) {
        self.tree.release_leaves();
        if let Some(home) = &self.tree.home {
            home.pages().is_walked = false;
            if !self.is_adopted {
                self.tree.note_change();
            }
        }
    }
}

/// A leaf that the walk has come to.
enum Found {
    /// This page has just what the leaf was.
    Page(PageId),
    /// Its bytes were put where they were wanted: those of the slot's leaf, if it has a stamp, or of an older state.
    Bytes(SlotIndex, Option<u64>),
}

/// While it lives, no leaf is taken out of the tree.
struct CopyWalk<'t, K: TreeKey + ?Sized>(&'t Tree<K>);

impl<'t, K: TreeKey + ?Sized> CopyWalk<'t, K> {
    fn begin(tree: &'t Tree<K>) -> CopyWalk<'t, K> {
        tree.hold_leaves();
        CopyWalk(tree)
    }
}

impl<K: TreeKey + ?Sized> Drop for CopyWalk<'_, K> {
    fn drop(&mut self) {
        self.0.release_leaves();
    }
}

impl DirectorySink for CheckpointWriter<'_> {
    fn put_directory(&mut self, bytes: &[u8]) -> Result<PageId> {
        Ok(self.put(None, PageKind::TREE_DIRECTORY, bytes)?)
    }

    fn keep_directory(&mut self, page: PageId) -> Result<()> {
        Ok(self.keep(page)?)
    }
}

/// The pages' numbers.
fn numbers(directory: &[DirectoryPage]) -> Vec<PageId> {
    directory.iter().map(|page| page.page).collect()
}

impl<K: TreeKey + ?Sized> Tree<K> {
    /// Puts the tree into a checkpoint, as it is after the commit that this holds. What was before later commits must be
    /// remembered until it is over. One checkpoint at a time, from here until it is adopted or dropped.
    ///
    /// # Errors
    /// Those of writing; [`Error::InMemory`](crate::Error::InMemory).
    ///
    /// # Panics
    /// While another checkpoint of the tree is on its way.
    pub fn write(self: &Arc<Self>, out: &mut CheckpointWriter<'_>) -> Result<Written<K>> {
        // What was emptied by commits that were not durable yet need not be written.
        self.merge_sparse(self.home()?.store().horizon());
        let walk = Walk::begin(self, out.commit())?;
        let home = self.home()?;
        let (before, root) = {
            let pages = home.pages();
            (Arc::clone(&pages.directory), pages.root)
        };
        // Whoever changes something from now on says so.
        if let (true, Some(root)) = (home.is_as_written.swap(true, Ordering::AcqRel), root) {
            return Ok(Written { walk, root, directory: before, leaves: Vec::new() });
        }
        let mut draft = DirectoryDraft::<K>::new(&before);
        let (mut leaves, mut payload, mut low) = (Vec::new(), Vec::new(), None);
        loop {
            let keep = &mut |page, _: &mut Vec<u8>| Ok(out.keep(page)?);
            let (found, high) = self.next_leaf(low.as_ref().map(lent::<K>), walk.at, &mut payload, keep)?;
            let page = match found {
                Found::Page(page) => page,
                Found::Bytes(slot, stamp) => {
                    let page = out.put(None, PageKind::TREE_LEAF, &payload)?;
                    leaves.push(WrittenLeaf { slot, stamp, page });
                    page
                }
            };
            draft.push(low, page, out)?;
            match high {
                Some(high) => low = Some(high),
                None => break,
            }
        }
        let (pages, superfluous) = draft.finish(out)?;
        superfluous.into_iter().for_each(|page| out.free(page));
        let directory: Arc<[DirectoryPage]> = pages.into();
        let root = match root {
            Some(root) if numbers(&before) == numbers(&directory) => root,
            root => out.put(root, PageKind::TREE_ROOT, &self.root_bytes(&directory))?,
        };
        Ok(Written { walk, root, directory, leaves })
    }

    /// Copies the tree into a backup, as it is after the commit that this holds; returns the page that leads to all others.
    /// What was before later commits must be remembered until it is over. Checkpoints may go on meanwhile.
    ///
    /// # Errors
    /// Those of reading and writing.
    pub fn copy(&self, out: &mut CheckpointWriter<'_>) -> Result<PageId> {
        let at = out.commit();
        let _walk = CopyWalk::begin(self);
        let mut draft = DirectoryDraft::<K>::new(&[]);
        let (mut payload, mut low) = (Vec::new(), None);
        loop {
            let read = &mut |page, payload: &mut Vec<u8>| {
                payload.clear();
                payload.extend_from_slice(&self.home()?.store().pin_past_pool(page)?);
                Ok(())
            };
            let (_, high) = self.next_leaf(low.as_ref().map(lent::<K>), at, &mut payload, read)?;
            let page = out.put(None, PageKind::TREE_LEAF, &payload)?;
            draft.push(low, page, out)?;
            match high {
                Some(high) => low = Some(high),
                None => break,
            }
        }
        let (pages, _) = draft.finish(out)?;
        Ok(out.put(None, PageKind::TREE_ROOT, &self.root_bytes(&pages))?)
    }

    pub(crate) fn root_bytes(&self, directory: &[DirectoryPage]) -> Vec<u8> {
        directory_page::root_bytes::<K>(&self.options, &numbers(directory))
    }

    /// The leaf that begins with `low`, as it was after commit `at`, and where the next one begins. `hold` is shown a page
    /// while the leaf is in it; others may free it as soon as that returns.
    fn next_leaf(
        &self,
        low: Option<&K>,
        at: CommitNumber,
        payload: &mut Vec<u8>,
        hold: &mut dyn FnMut(PageId, &mut Vec<u8>) -> Result<()>,
    ) -> Result<(Found, Option<K::Owned>)> {
        loop {
            let slot = self.directory.read().leaf_from(low);
            let latch = self.slots.look(slot);
            let (page, high) = match &*latch {
                Place::Nowhere => continue,
                Place::Paged(page) => {
                    // Whoever divides the leaf publishes that before he lets go of the latch: this directory knows. Nothing is
                    // remembered of what it was before, so it is of every state that is still asked for.
                    let directory = self.directory.read();
                    let (found, high) = directory.leaf_and_end(low);
                    if found != slot {
                        continue;
                    }
                    (*page, high.cloned())
                }
                Place::Resident(leaf) if !leaf.begins_before(low) => continue,
                Place::Resident(leaf) => match leaf.page().filter(|_| leaf.is_of(at)) {
                    Some(page) => (page, leaf.high().cloned()),
                    None => {
                        let state = leaf.state_at(at);
                        payload.clear();
                        leaf_page::write(&state, payload);
                        let stamp = matches!(state, State::Newest(_)).then(|| leaf.stamp());
                        return Ok((Found::Bytes(slot, stamp), leaf.high().cloned()));
                    }
                },
            };
            hold(page, payload)?;
            return Ok((Found::Page(page), high));
        }
    }

    /// The tree that has this root page.
    ///
    /// # Errors
    /// It cannot be read, or is the root of a tree with other keys.
    pub fn open(store: Arc<Store>, root: PageId) -> Result<Arc<Tree<K>>> {
        let memory = LeafMemory::new(&store);
        let home = Home::new(store);
        let payload = home.store().pin(root)?;
        let read = directory_page::read_root::<K>(&payload);
        let (options, pages) = read.map_err(|what| home.damaged(root, "the root", what))?;
        let slots = Slots::new();
        let (mut leaves, mut directory, mut last): (Vec<_>, Vec<_>, Option<K::Owned>) = (Vec::new(), Vec::new(), None);
        for page in pages {
            let damaged = |what: String| home.damaged(page, "a part of the directory", what);
            let payload = home.store().pin(page)?;
            let entries = directory_page::read::<K>(&payload).map_err(damaged)?;
            for Entry { low, page } in &entries {
                if low.is_none() != leaves.is_empty() || (low.is_some() && last >= *low) {
                    return Err(damaged(format!("the leaf from {low:?} on follows the one from {last:?} on")));
                }
                leaves.push((low.clone(), slots.add(Place::Paged(*page)).0));
                last.clone_from(low);
            }
            directory.push(DirectoryPage { page, leaves: entries.iter().map(|entry| entry.page).collect() });
        }
        if leaves.is_empty() {
            return Err(home.damaged(root, "the root", "it leads to no leaf".to_owned()));
        }
        {
            let mut pages = home.pages();
            (pages.root, pages.directory) = (Some(root), directory.into());
        }
        home.is_as_written.store(true, Ordering::Release);
        let leaf_count = leaves.len();
        let tree = Tree::of_parts(options, slots, Directory::of(leaves), Some(home), Some(memory));
        tree.note_leaves(leaf_count.cast_signed());
        tree.settle_memory();
        Ok(tree.shared())
    }

    /// The page that leads to all others, of a tree that was loaded, or in a checkpoint. It keeps its number.
    pub fn root(&self) -> Option<PageId> {
        self.home.as_ref()?.pages().root
    }

    /// Calls `visit` for each page that the last checkpoint has of the tree.
    pub fn for_each_page(&self, visit: &mut dyn FnMut(PageId)) {
        let Some(home) = &self.home else { return };
        let pages = home.pages();
        pages.root.into_iter().for_each(&mut *visit);
        for directory in pages.directory.iter() {
            visit(directory.page);
            directory.leaves.iter().for_each(|leaf| visit(*leaf));
        }
    }
}

impl<K: TreeKey + ?Sized> Written<K> {
    /// The page that leads to all others.
    pub fn root(&self) -> PageId {
        self.root
    }

    /// The checkpoint is durable: leaves have the pages that were written for them.
    ///
    /// # Errors
    /// None of ours.
    pub fn adopt(self) -> Result<()> {
        let Written { mut walk, root, directory, leaves } = self;
        let tree = Arc::clone(&walk.tree);
        let home = tree.home()?;
        let horizon = home.store().horizon();
        for WrittenLeaf { slot, stamp, page } in leaves {
            let mut place = tree.slots.look_mut(slot);
            let Some(leaf) = place.leaf_mut() else {
                tree.give_up(Some(page));
                continue;
            };
            let before = leaf.memory_bytes();
            leaf.forget(horizon);
            tree.note_memory(before, leaf.memory_bytes());
            // The same leaf, in memory all the time, and without later commits: what was written.
            match stamp == Some(leaf.stamp()) && leaf.is_of(walk.at) && leaf.page().is_none() {
                true => leaf.set_page(page),
                false => tree.give_up(Some(page)),
            }
        }
        {
            let mut pages = home.pages();
            (pages.root, pages.directory) = (Some(root), directory);
        }
        walk.is_adopted = true;
        drop(walk);
        tree.settle_memory();
        tree.merge_sparse(horizon);
        Ok(())
    }
}

impl<K: TreeKey + ?Sized> fmt::Debug for Written<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Written").field("root", &self.root).field("leaves", &self.leaves.len()).finish_non_exhaustive()
    }
}
