//! What a checkpoint writes, and what the next one is to know of it.

use crate::Result;
use crate::catalog::Catalog;
use crate::kv::{AnyTree, AnyWritten};
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
    /// Key-value trees, to be adopted once the checkpoint is durable.
    written: Vec<AnyWritten>,
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
        let mut written = Vec::new();
        let (page, next) = self.write_with(store, catalog, out, &mut |tree, out| {
            let of_tree = tree.write(out)?;
            let root = of_tree.root();
            written.push(of_tree);
            Ok(root)
        })?;
        Ok((page, Checkpoints { written, ..next }))
    }

    /// Writes all that there is, for a backup; returns the catalog's page.
    pub(super) fn copy(store: &Store, catalog: &Catalog, out: &mut CheckpointWriter<'_>) -> Result<PageId> {
        Ok(Checkpoints::default().write_with(store, catalog, out, &mut |tree, out| tree.copy(out))?.0)
    }

    /// The checkpoint is durable: trees have the pages that were written for them.
    pub(super) fn adopt(&mut self) -> Result<()> {
        std::mem::take(&mut self.written).into_iter().try_for_each(AnyWritten::adopt)
    }

    /// It was the last one: nobody has need of that any more.
    pub(super) fn let_go(&mut self) {
        self.written.clear();
    }

    fn write_with(
        &self,
        store: &Store,
        catalog: &Catalog,
        out: &mut CheckpointWriter<'_>,
        write_tree: &mut dyn FnMut(&AnyTree, &mut CheckpointWriter<'_>) -> Result<PageId>,
    ) -> Result<(PageId, Checkpoints)> {
        let mut next = Checkpoints::default();
        let mut tree_roots = BTreeMap::new();
        for (id, tree) in catalog.trees.values().flat_map(|tree| tree.parts()) {
            tree_roots.insert(id, write_tree(&tree, out)?);
        }
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
        let root = |id| next.roots.get(&id).or(tree_roots.get(&id)).copied().unwrap_or_default();
        let bytes = catalog.page_bytes(&root);
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
    catalog.trees.values().flat_map(|tree| tree.parts()).for_each(|(_, tree)| {
        tree.for_each_page(&mut |page| {
            reachable.insert(page);
        });
    });
    let mut lost = Vec::new();
    store.for_each_page(&mut |info| {
        if !reachable.contains(&info.page) {
            lost.push(info.page);
        }
    });
    lost.into_iter().for_each(|page| store.free(page));
}
