//! A stored page that lives as long as somebody points into it, and whose place comes back by itself.

use sinter_exec::Pinned;
use sinter_storage::{PageHandle, PageId, Store};
use std::sync::Arc;

/// A page of the file, shared by the segments in it, held as long as one of them is.
#[derive(Clone, Debug)]
pub struct StoredPage(Arc<PageHandle>);

impl StoredPage {
    /// A hold on the page.
    pub(crate) fn new(store: &Arc<Store>, id: PageId) -> StoredPage {
        StoredPage(store.handle(id))
    }

    /// Its number.
    pub fn id(&self) -> PageId {
        self.0.page()
    }

    /// Bytes that it takes of the memory budget, beside the pool.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.0.memory_bytes()
    }

    /// Its payload, verified.
    pub(crate) fn pin(&self) -> sinter_storage::Result<Pinned> {
        Ok(pinned(self.0.store().pin(self.id())?))
    }
}

/// A page's payload as the engine takes it.
pub(crate) fn pinned(payload: sinter_storage::Pinned) -> Pinned {
    struct Bytes(sinter_storage::Pinned);
    impl AsRef<[u8]> for Bytes {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }
    Pinned::new(Arc::new(Bytes(payload)))
}
