//! Where leaves are when they are not in memory: in pages of a store.
//!
//! A page is written once and never again; a leaf that is changed leaves it, which frees it, and has another one later. A
//! checkpoint that has it still needs its place: the store sees to that ([`Store::free`]), for one that is durable as for
//! one that is being written.

use crate::keys::{TreeKey, lent};
use crate::leaf::Leaf;
use crate::leaf_page;
use crate::slots::{Place, SlotIndex};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};
use crate::tree::Tree;
use crate::{Error, Result};
use sinter_storage::{PageId, PageKind, Store};
use std::ops::ControlFlow;

/// A tree's pages.
#[derive(Debug)]
pub(crate) struct Home {
    store: Arc<Store>,
    pages: Mutex<Pages>,
    /// Nothing has changed since the last checkpoint began its walk, which has been adopted: another one would find what
    /// that did.
    pub(crate) is_as_written: AtomicBool,
}

/// What is known of the pages that leaves were in.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    /// Of the last checkpoint, the page that leads to all others.
    pub(crate) root: Option<PageId>,
    /// Of the last checkpoint, the pages between that and the leaves.
    pub(crate) directory: Arc<[DirectoryPage]>,
    /// A checkpoint is on its way.
    pub(crate) is_walked: bool,
}

/// A page of the directory.
#[derive(Clone, Debug)]
pub(crate) struct DirectoryPage {
    pub(crate) page: PageId,
    /// The pages of the leaves that it names. Since pages of leaves are written once, they say all that is in it.
    pub(crate) leaves: Arc<[PageId]>,
}

impl Home {
    pub(crate) fn new(store: Arc<Store>) -> Home {
        Home { store, pages: Mutex::default(), is_as_written: AtomicBool::new(false) }
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    pub(crate) fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is wrong with a page, as an error.
    pub(crate) fn damaged(&self, page: PageId, part: &'static str, what: String) -> Error {
        Error::DamagedPage { path: self.store.path().to_path_buf(), page, part, what }
    }
}

impl<K: TreeKey + ?Sized> Tree<K> {
    /// Reads the leaf of a slot that is latched, if it is in a page only.
    ///
    /// # Errors
    /// It cannot be read, or is another than the tree has there; or there is no memory for it.
    #[inline]
    pub(crate) fn load(&self, slot: SlotIndex, place: &mut Place<K>) -> Result<()> {
        match *place {
            Place::Paged(page) => self.load_page(slot, page, place),
            Place::Nowhere | Place::Resident(_) => Ok(()),
        }
    }

    #[cold]
    fn load_page(&self, slot: SlotIndex, page: PageId, place: &mut Place<K>) -> Result<()> {
        let home = self.home()?;
        let payload = home.store.pin_past_pool(page)?;
        let leaf = leaf_page::read::<K>(&payload, &self.shape).and_then(|leaf| self.checked(slot, leaf));
        let mut leaf = leaf.map_err(|what| home.damaged(page, "a leaf", what))?;
        leaf.set_page(page);
        leaf.set_stamp(self.stamp());
        let memory_bytes = leaf.memory_bytes();
        self.make_room(memory_bytes)?;
        self.note_memory(0, memory_bytes);
        *place = Place::Resident(Box::new(leaf));
        Ok(())
    }

    /// The leaf, if it has the bounds that the directory has for its slot: whoever looks for a key would look for ever
    /// otherwise. They are changed by none but who has the slot latched.
    fn checked(&self, slot: SlotIndex, leaf: Leaf<K>) -> Result<Leaf<K>, String> {
        let directory = self.directory.read();
        let (found, high) = directory.leaf_and_end(leaf.low().map(lent::<K>));
        match found == slot && high == leaf.high() && directory.begins_leaf(leaf.low().map(lent::<K>)) {
            true => Ok(leaf),
            false => Err(format!("it has keys from {:?} to {:?}, which is no leaf's range", leaf.low(), leaf.high())),
        }
    }

    /// No leaf is in this page any more.
    pub(crate) fn give_up(&self, page: Option<PageId>) {
        if let (Some(page), Some(home)) = (page, &self.home) {
            home.store.free(page);
            self.note_change();
        }
    }

    /// The next checkpoint is to look at the leaves.
    pub(crate) fn note_change(&self) {
        if let Some(home) = self.home.as_ref().filter(|home| home.is_as_written.load(Ordering::Acquire)) {
            home.is_as_written.store(false, Ordering::Release);
        }
    }

    /// Nobody will look for the tree again: when the last who still reads it lets go of it, its pages go, too.
    pub fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::Release);
    }

    /// Gives all pages back.
    fn free_pages(&self) {
        let Some(home) = &self.home else { return };
        self.directory.read().for_each_leaf(&mut |slot| {
            let page = match &*self.slots.look(slot) {
                Place::Nowhere => None,
                Place::Paged(page) => Some(*page),
                Place::Resident(leaf) => leaf.page(),
            };
            self.give_up(page);
        });
        let Pages { root, directory, .. } = std::mem::take(&mut *home.pages());
        root.into_iter().chain(directory.iter().map(|page| page.page)).for_each(|page| home.store.free(page));
    }

    /// Lets go of leaves of so many bytes, if there are so many that nobody has used lately and of which nothing is
    /// remembered but what is there; returns of how many bytes. Those that have no page are written to one first.
    ///
    /// Whoever wants memory does that by himself ([`Reclaim`](sinter_storage::Reclaim)).
    ///
    /// # Errors
    /// None could be let go of, since one cannot be written.
    pub fn evict(&self, bytes: usize) -> Result<usize> {
        let Some(home) = &self.home else { return Ok(0) };
        let (mut evicted_bytes, mut payload, mut failure) = (0, Vec::new(), None);
        if bytes == 0 {
            return Ok(0);
        }
        let horizon = home.store.horizon();
        self.slots.for_each_unused(&mut |place| {
            let Some(leaf) = place.leaf_mut() else { return Ok(ControlFlow::Continue(())) };
            let before = leaf.memory_bytes();
            leaf.forget(horizon);
            self.note_memory(before, leaf.memory_bytes());
            if leaf.has_undo() {
                return Ok(ControlFlow::Continue(()));
            }
            let page = match leaf.page() {
                Some(page) => page,
                None if home.store.is_read_only() => return Ok(ControlFlow::Continue(())),
                None => {
                    payload.clear();
                    leaf_page::write(leaf, &mut payload);
                    match home.store.write_page(PageKind::TREE_LEAF, &payload) {
                        Ok(page) => page,
                        // Others need not be written.
                        Err(error) => {
                            failure = Some(error);
                            return Ok(ControlFlow::Continue(()));
                        }
                    }
                }
            };
            let memory_bytes = leaf.memory_bytes();
            *place = Place::Paged(page);
            self.note_memory(memory_bytes, 0);
            evicted_bytes += memory_bytes;
            Ok::<_, Error>(if evicted_bytes >= bytes { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        match failure {
            Some(error) if evicted_bytes == 0 => Err(error.into()),
            _ => Ok(evicted_bytes),
        }
    }
}

impl<K: TreeKey + ?Sized> Drop for Tree<K> {
    fn drop(&mut self) {
        if self.is_abandoned.load(Ordering::Acquire) {
            self.free_pages();
        }
    }
}
