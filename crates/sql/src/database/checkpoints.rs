//! What a checkpoint writes, and what the next one is to know of it.

use crate::Result;
use crate::catalog::Catalog;
use sinter_column::ColumnTable;
use sinter_storage::{CheckpointWriter, ObjectId, PageId, PageKind, Store, Use};
use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Weak};

/// Where the last checkpoint put each table, and what they held then.
#[derive(Default)]
pub(super) struct Checkpoints {
    pub(super) roots: BTreeMap<ObjectId, PageId>,
    /// Not held, so that what they were made of can go.
    pub(super) tables: BTreeMap<ObjectId, Weak<ColumnTable>>,
    pub(super) catalog_page: Option<PageId>,
    /// Where the log was when a checkpoint failed; 0 when none did.
    pub(super) again_after_bytes: u64,
}

impl Checkpoints {
    /// Writes what changed since the last checkpoint; returns the catalog's page, and what the next one is to know.
    pub(super) fn write(
        &self,
        store: &Store,
        catalog: &Catalog,
        out: &mut CheckpointWriter<'_>,
    ) -> Result<(PageId, Checkpoints)> {
        let mut next = Checkpoints::default();
        for table in catalog.tables.values() {
            let (id, root) = (table.id(), self.roots.get(&table.id()).copied());
            let is_unchanged =
                self.tables.get(&id).is_some_and(|known| std::ptr::eq(known.as_ptr(), Arc::as_ptr(table)));
            let root = match root {
                Some(root) if is_unchanged => root,
                _ => {
                    for page in table.pages() {
                        out.keep(page)?;
                    }
                    let bytes = table.root_bytes()?;
                    let _root = store.budget().take(Use::Scratch, bytes.len());
                    out.put(root, PageKind::TABLE_ROOT, &bytes)?
                }
            };
            next.roots.insert(id, root);
            next.tables.insert(id, Arc::downgrade(table));
        }
        for (id, root) in &self.roots {
            if !next.roots.contains_key(id) {
                out.free(*root);
            }
        }
        let bytes = catalog.page_bytes(&|id| next.roots.get(&id).copied().unwrap_or_default());
        let page = out.put(self.catalog_page, PageKind::CATALOG, &bytes)?;
        next.catalog_page = Some(page);
        Ok((page, next))
    }
}

/// A crash can leave pages that were let go of but not yet given back.
pub(super) fn free_unreachable_pages(store: &Store, catalog: &Catalog, checkpoints: &Checkpoints) {
    let mut reachable: HashSet<PageId> = catalog.tables.values().flat_map(|table| table.pages()).collect();
    reachable.extend(checkpoints.roots.values());
    reachable.extend(checkpoints.catalog_page);
    let mut lost = Vec::new();
    store.for_each_page(&mut |info| {
        if !reachable.contains(&info.page) {
            lost.push(info.page);
        }
    });
    lost.into_iter().for_each(|page| store.free(page));
}
