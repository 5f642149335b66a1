//! Which pages there are and where: the map, the pages that no commit has named yet, and the free space.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

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
    pub(super) fresh: HashMap<PageId, Fresh>,
    pub(super) space: Space,
    pub(super) next_page: PageId,
    /// The file is at least this long according to a header copy: it is not cut below.
    pub(super) named_end: u64,
    /// The newest cut. What is given up now may be named by its checkpoint or log, or older ones.
    pub(super) epoch: CheckpointNumber,
    /// What happened to the map since the cut of the checkpoint under way.
    pub(super) since_cut: Option<SinceCut>,
    /// Whether the map differs from the last checkpoint's.
    pub(super) is_changed: bool,
    /// Whether places that are given up return at once: there are no checkpoints.
    pub(super) is_memory: bool,
    /// Pages whose places nobody knows, since a node of the map is damaged; only in a store that is looked at all the
    /// same.
    pub(super) lost: Vec<LostPages>,
    /// Pages that the last vacuum could not read, by place: they stay there, as they are.
    pub(super) unmovable: BTreeMap<u64, (PageId, PageEntry)>,
}

/// The pages below a damaged node of the map.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LostPages {
    pub(super) pages: Range<u64>,
    /// Where the node is in the file.
    pub(super) node_offset: u64,
}

/// A page that no commit has named yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fresh {
    pub(super) entry: PageEntry,
    /// It is durable once the data file was synced after this write, or one after it.
    pub(super) write: u64,
}

/// Kept while a checkpoint is under way: it writes the map as it was at the cut, and must not lose what came later.
#[derive(Debug, Default)]
pub(super) struct SinceCut {
    /// Entries put, and [`PageEntry::ABSENT`] for pages removed.
    pub(super) changes: Vec<(PageId, PageEntry)>,
    /// Places given up by the live map. If the checkpoint succeeds its own map replaces the live one, and the changes
    /// done again give up the right places; if it fails, these are retired.
    pub(super) given_up: Vec<Extent>,
    /// Pages that the checkpoint keeps and that no commit has named: fresh again if it fails.
    pub(super) kept: HashMap<PageId, Fresh>,
}

impl PageTable {
    pub(super) fn get(&self, page: PageId) -> Option<PageEntry> {
        self.fresh.get(&page).map(|fresh| fresh.entry).or_else(|| self.map.get(page))
    }

    /// The write to the data file after which a sync makes the page durable; 0 for one that is.
    pub(super) fn last_write(&self, page: PageId) -> u64 {
        let kept = || self.since_cut.as_ref()?.kept.get(&page);
        self.fresh.get(&page).or_else(kept).map_or(0, |fresh| fresh.write)
    }

    /// A commit names the page, which is there from now on whatever becomes of a checkpoint.
    pub(super) fn adopt(&mut self, page: PageId, data: &dyn File) {
        if let Some(fresh) = self.fresh.remove(&page) {
            self.replace(page, fresh.entry, data);
        } else if let Some(since) = &mut self.since_cut {
            since.kept.remove(&page);
        }
    }

    /// The checkpoint under way keeps the page. `None` if there is no such page.
    pub(super) fn keep(&mut self, page: PageId, data: &dyn File) -> Option<PageEntry> {
        let Some(fresh) = self.fresh.remove(&page) else {
            // A commit has named it since the cut.
            return self.map.get(page);
        };
        self.replace(page, fresh.entry, data);
        if let Some(since) = &mut self.since_cut {
            since.kept.insert(page, fresh);
        }
        Some(fresh.entry)
    }

    /// The unit at which the file could end: were nothing free, and `dead_units` of what is used neither; but not before a
    /// page that cannot be moved.
    pub(super) fn packed_end(&self, dead_units: u64) -> u64 {
        let unused_units = self.space.free_units() + self.space.retired_units() + dead_units;
        let unmovable_end = self.unmovable_pages().next_back().map_or(0, |entry| entry.extent().end());
        self.space.end().saturating_sub(unused_units).max(unmovable_end)
    }

    /// The pages that the last vacuum could not move and that are still there, by place.
    pub(super) fn unmovable_pages(&self) -> impl DoubleEndedIterator<Item = &PageEntry> {
        let is_there = |(page, entry): &&(PageId, PageEntry)| self.map.get(*page) == Some(*entry);
        self.unmovable.values().filter(is_there).map(|(_, entry)| entry)
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
