//! Which pages there are and where: the map, the pages that no commit has named yet, and the free space.

use std::collections::HashMap;

use crate::fs::File;
use crate::ids::{CheckpointNumber, Extent, PageId, UNIT_BYTES};
use crate::map::{PageEntry, PageMap};
use crate::space::Space;

/// Guarded by the store's `pages` lock.
///
/// Invariants: no two extents of map, map nodes on disk, fresh pages, retired extents, and a checkpoint under way
/// overlap; all other units are free in `space`.
#[derive(Debug)]
pub(super) struct PageTable {
    /// Pages that are committed or checkpointed.
    pub(super) map: PageMap,
    /// Pages that were written and that no commit has named yet.
    pub(super) fresh: HashMap<PageId, PageEntry>,
    pub(super) space: Space,
    pub(super) next_page: PageId,
    /// The newest cut. What is given up now may be named by its checkpoint or log, or older ones.
    pub(super) epoch: CheckpointNumber,
    /// What happened to the map since the cut of the checkpoint under way.
    pub(super) since_cut: Option<SinceCut>,
    /// Whether the map differs from the last checkpoint's.
    pub(super) is_changed: bool,
    /// Whether places that are given up return at once: there are no checkpoints.
    pub(super) is_memory: bool,
}

/// Kept while a checkpoint is under way: it writes the map as it was at the cut, and must not lose what came later.
#[derive(Debug, Default)]
pub(super) struct SinceCut {
    /// Entries put, and [`PageEntry::ABSENT`] for pages removed.
    pub(super) changes: Vec<(PageId, PageEntry)>,
    /// Places given up by the live map. If the checkpoint succeeds its own map replaces the live one, and the changes
    /// done again give up the right places; if it fails, these are retired.
    pub(super) given_up: Vec<Extent>,
}

impl PageTable {
    pub(super) fn get(&self, page: PageId) -> Option<PageEntry> {
        self.fresh.get(&page).copied().or_else(|| self.map.get(page))
    }

    /// Puts a page into the map, or removes it with [`PageEntry::ABSENT`]. Its old place is given up.
    pub(super) fn replace(&mut self, page: PageId, entry: PageEntry, data: &dyn File) {
        let mut given_up = Vec::new();
        let old = self.map.replace(page, entry, &mut given_up);
        given_up.extend(old.map(|old| old.extent()));
        self.is_changed |= old.is_some() || !entry.is_absent();
        match &mut self.since_cut {
            Some(since) => {
                since.changes.push((page, entry));
                since.given_up.append(&mut given_up);
            }
            None => self.give_up(&given_up, data),
        }
    }

    /// Gives up places that the live map named.
    pub(super) fn give_up(&mut self, extents: &[Extent], data: &dyn File) {
        for &extent in extents {
            if self.is_memory {
                self.release(extent, data);
            } else {
                self.space.retire(extent, self.epoch);
            }
        }
    }

    /// Gives back units that nothing on disk names.
    pub(super) fn release(&mut self, extent: Extent, data: &dyn File) {
        data.discard(extent.place * UNIT_BYTES as u64, extent.units * UNIT_BYTES as u64);
        self.space.release(extent);
    }
}
