//! A node of the page map, in memory and as bytes.

use std::sync::Arc;

use super::entry::{ENTRY_BYTES, PageEntry};
use crate::error::Result;
use crate::ids::{Extent, PageId, UNIT_BYTES};

/// Entries in a node.
pub const ENTRIES_PER_NODE: usize = 256;
/// Size of a node on disk: one unit.
pub(crate) const NODE_BYTES: usize = ENTRIES_PER_NODE * ENTRY_BYTES;
const _: () = assert!(NODE_BYTES == UNIT_BYTES);

/// Bits of the page id that one level of the tree decides.
const BITS_PER_LEVEL: u32 = ENTRIES_PER_NODE.trailing_zeros();
/// Levels that there can be: they cover all ids up to [`PageId::MAX`].
pub const DEPTH_MAX: u8 = 7;
const _: () = assert!(PageId::MAX.0 == (1 << (DEPTH_MAX as u32 * BITS_PER_LEVEL)) - 1);

/// The first id that a map of this depth does not cover.
pub(super) fn covered_below(depth: u8) -> u64 {
    if depth == 0 { 0 } else { 1 << (u32::from(depth) * BITS_PER_LEVEL) }
}

/// Which entry of a node leads to the page; `level` is 0 for the nodes whose entries are pages.
pub(super) fn index_at(page: PageId, level: u8) -> usize {
    (page.0 >> (u32::from(level) * BITS_PER_LEVEL)) as usize % ENTRIES_PER_NODE
}

#[derive(Debug, Clone)]
pub(super) enum Node {
    Leaf(Box<[PageEntry; ENTRIES_PER_NODE]>),
    Inner(Box<[Option<Child>; ENTRIES_PER_NODE]>),
}

/// A node and where it is on disk; `None` while it is not there as it is here.
#[derive(Debug, Clone)]
pub(super) struct Child {
    pub(super) node: Arc<Node>,
    pub(super) stored: Option<PageEntry>,
}

impl Child {
    /// A node without entries, at the top of `depth` levels.
    pub(super) fn empty(depth: u8) -> Child {
        let node = match depth {
            1 => Node::Leaf(Box::new([PageEntry::ABSENT; ENTRIES_PER_NODE])),
            _ => Node::Inner(Box::new([const { None }; ENTRIES_PER_NODE])),
        };
        Child { node: Arc::new(node), stored: None }
    }

    /// A new root whose first child this node is.
    pub(super) fn below_new_root(self) -> Child {
        let mut children = Box::new([const { None }; ENTRIES_PER_NODE]);
        children[0] = Some(self);
        Child { node: Arc::new(Node::Inner(children)), stored: None }
    }

    /// Replaces one page's entry in this node of `depth` levels. Returns the old one, and whether the node is empty
    /// now.
    pub(super) fn replace(
        &mut self,
        page: PageId,
        depth: u8,
        entry: PageEntry,
        retired: &mut Vec<Extent>,
    ) -> (PageEntry, bool) {
        retired.extend(self.stored.take().map(|stored| stored.extent()));
        match Arc::make_mut(&mut self.node) {
            Node::Leaf(entries) => {
                let old = std::mem::replace(&mut entries[index_at(page, 0)], entry);
                (old, entry.is_absent() && entries.iter().all(PageEntry::is_absent))
            }
            Node::Inner(children) => {
                let slot = &mut children[index_at(page, depth - 1)];
                let child = slot.get_or_insert_with(|| Child::empty(depth - 1));
                let (old, child_is_empty) = child.replace(page, depth - 1, entry, retired);
                if child_is_empty {
                    *slot = None;
                }
                (old, child_is_empty && children.iter().all(Option::is_none))
            }
        }
    }

    pub(super) fn for_each_stored_node(&self, visit: &mut dyn FnMut(PageEntry)) {
        if let Some(stored) = self.stored {
            visit(stored);
        }
        if let Node::Inner(children) = &*self.node {
            children.iter().flatten().for_each(|child| child.for_each_stored_node(visit));
        }
    }

    pub(super) fn forget_behind(&mut self, end: u64, retired: &mut Vec<Extent>) {
        let mut is_behind = false;
        self.for_each_stored_node(&mut |stored| is_behind |= stored.extent().end() > end);
        if !is_behind {
            return;
        }
        retired.extend(self.stored.take().map(|stored| stored.extent()));
        if let Node::Inner(_) = *self.node
            && let Node::Inner(children) = Arc::make_mut(&mut self.node)
        {
            children.iter_mut().flatten().for_each(|child| child.forget_behind(end, retired));
        }
    }

    pub(super) fn store(&mut self, write: &mut dyn FnMut(&[u8; NODE_BYTES]) -> Result<PageEntry>) -> Result<PageEntry> {
        if let Some(stored) = self.stored {
            return Ok(stored);
        }
        let mut bytes = [0; NODE_BYTES];
        match Arc::make_mut(&mut self.node) {
            Node::Leaf(entries) => {
                for (place, entry) in bytes.chunks_exact_mut(ENTRY_BYTES).zip(entries.iter()) {
                    place.copy_from_slice(&entry.encode());
                }
            }
            Node::Inner(children) => {
                for (place, child) in bytes.chunks_exact_mut(ENTRY_BYTES).zip(children.iter_mut()) {
                    if let Some(child) = child {
                        place.copy_from_slice(&child.store(write)?.encode());
                    }
                }
            }
        }
        let stored = write(&bytes)?;
        self.stored = Some(stored);
        Ok(stored)
    }
}

impl Node {
    /// `first` is the lowest id that this node of `depth` levels covers.
    pub(super) fn for_each_page(&self, first: u64, depth: u8, visit: &mut dyn FnMut(PageId, PageEntry)) {
        match self {
            Node::Leaf(entries) => {
                for (index, entry) in entries.iter().enumerate().filter(|(_, entry)| !entry.is_absent()) {
                    visit(PageId(first + index as u64), *entry);
                }
            }
            Node::Inner(children) => {
                for (index, child) in children.iter().enumerate() {
                    if let Some(child) = child {
                        child.node.for_each_page(first_below(first, depth, index), depth - 1, visit);
                    }
                }
            }
        }
    }
}

/// The lowest id below the entry `index` of a node of `depth` levels whose own lowest id is `first`.
pub(super) fn first_below(first: u64, depth: u8, index: usize) -> u64 {
    first + ((index as u64) << (u32::from(depth - 1) * BITS_PER_LEVEL))
}
