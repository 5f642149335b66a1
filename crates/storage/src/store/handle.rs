//! Pages that live as long as somebody holds on to them.

use super::{Mode, Store};
use crate::budget::{Reservation, Use};
use crate::ids::PageId;
use crate::sync::{Arc, PoisonError, Weak};

/// A hold on a page: the last one to be dropped frees it.
///
/// So a change that comes to nothing leaves nothing behind, and what a newer state needs no longer goes when its last
/// reader does. That a page is freed in memory says nothing about the file: what a checkpoint or the log names stays in
/// its place until newer ones are durable.
#[derive(Debug)]
pub struct PageHandle {
    store: Arc<Store>,
    page: PageId,
    /// In memory, where the page is nowhere else.
    memory: Option<Reservation>,
}

impl PageHandle {
    /// The page.
    pub fn page(&self) -> PageId {
        self.page
    }

    /// Bytes that the page takes of the memory budget, beside the pool: none but in memory.
    pub fn memory_bytes(&self) -> usize {
        self.memory.as_ref().map_or(0, Reservation::bytes)
    }

    /// Where it is.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }
}

impl Drop for PageHandle {
    fn drop(&mut self) {
        self.store.handles.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.page);
        self.store.free(self.page);
    }
}

impl Store {
    /// The handle of a page: the one that there is, or the first.
    pub fn handle(self: &Arc<Store>, page: PageId) -> Arc<PageHandle> {
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(handle) = handles.get(&page).and_then(Weak::upgrade) {
            return handle;
        }
        let bytes = match self.mode {
            Mode::Memory => self.entry(page).ok().map(|entry| entry.bytes as usize),
            _ => None,
        };
        let memory = bytes.map(|bytes| self.budget().take(Use::Table, bytes));
        let handle = Arc::new(PageHandle { store: Arc::clone(self), page, memory });
        handles.insert(page, Arc::downgrade(&handle));
        handle
    }
}
