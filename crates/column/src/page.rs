//! A stored page that lives as long as some table state or snapshot points into it.

use sinter_exec::Pinned;
use sinter_storage::{PageId, Store};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A page of the file, shared by the segments in it. Once the table has let go of it ([`StoredPage::release`]), the
/// last snapshot that drops it gives the place back.
#[derive(Debug)]
pub struct StoredPage {
    store: Arc<Store>,
    id: PageId,
    released: AtomicBool,
}

impl StoredPage {
    /// A page that the table owns.
    pub(crate) fn new(store: Arc<Store>, id: PageId) -> Arc<StoredPage> {
        Arc::new(StoredPage { store, id, released: AtomicBool::new(false) })
    }

    /// Its number.
    pub fn id(&self) -> PageId {
        self.id
    }

    /// The table needs it no longer.
    pub(crate) fn release(&self) {
        self.released.store(true, Ordering::Release);
    }

    /// Its payload, verified.
    pub(crate) fn pin(&self) -> sinter_storage::Result<Pinned> {
        struct Bytes(sinter_storage::Pinned);
        impl AsRef<[u8]> for Bytes {
            fn as_ref(&self) -> &[u8] {
                &self.0
            }
        }
        Ok(Pinned::new(Arc::new(Bytes(self.store.pin(self.id)?))))
    }
}

impl Drop for StoredPage {
    fn drop(&mut self) {
        if self.released.load(Ordering::Acquire) {
            self.store.free(self.id);
        }
    }
}
