//! The page map: from page ids to places, as a radix tree that is never changed in place. docs/format/page-map.md.
//!
//! A node holds 256 entries of 16 bytes: one unit. The lowest level's entries are pages, the others' are nodes. A node
//! has no header; its checksum is in its parent's entry, the root's in the file header, so one valid header vouches for
//! everything below it. A map of depth `d` covers the ids below `256^d`.
//!
//! In memory the whole map is kept, 16 bytes a page. Nodes are shared between a map and its clones until one of them
//! changes, so a clone costs nothing and is how a checkpoint takes the map at its cut.

mod entry;
mod load;
mod node;

pub(crate) use entry::PageEntry;
pub use entry::{BYTES_AT, CHECKSUM_AT, ENTRY_BYTES, KIND_AT, PLACE_AT};
pub(crate) use load::{Visit, load};
pub(crate) use node::NODE_BYTES;
pub use node::{DEPTH_MAX, ENTRIES_PER_NODE};

use std::sync::Arc;

use crate::error::Result;
use crate::ids::{Extent, PageId};
use node::{Child, Node, covered_below, index_at};

/// Where all pages are. Clones share what they have in common.
#[derive(Debug, Clone, Default)]
pub(crate) struct PageMap {
    root: Option<Child>,
    depth: u8,
}

impl PageMap {
    /// Levels of nodes.
    pub(crate) fn depth(&self) -> u8 {
        self.depth
    }

    /// Where the page is.
    pub(crate) fn get(&self, page: PageId) -> Option<PageEntry> {
        if page.0 >= covered_below(self.depth) {
            return None;
        }
        let mut node = &self.root.as_ref()?.node;
        let mut level = self.depth;
        loop {
            level -= 1;
            match &**node {
                Node::Leaf(entries) => {
                    let entry = entries[index_at(page, 0)];
                    return (!entry.is_absent()).then_some(entry);
                }
                Node::Inner(children) => node = &children[index_at(page, level)].as_ref()?.node,
            }
        }
    }

    /// Puts an entry, or takes it out with [`PageEntry::ABSENT`]; returns what was there. The places of nodes on disk
    /// that no longer belong to this map are added to `retired`.
    pub(crate) fn replace(&mut self, page: PageId, entry: PageEntry, retired: &mut Vec<Extent>) -> Option<PageEntry> {
        if entry.is_absent() && self.get(page).is_none() {
            return None;
        }
        while page.0 >= covered_below(self.depth) {
            self.root = self.root.take().map(Child::below_new_root);
            self.depth += 1;
        }
        let root = self.root.get_or_insert_with(|| Child::empty(self.depth));
        let (old, is_empty) = root.replace(page, self.depth, entry, retired);
        if is_empty {
            *self = PageMap::default();
        }
        (!old.is_absent()).then_some(old)
    }

    /// Calls `visit` for every page, in the order of their ids.
    pub(crate) fn for_each_page(&self, visit: &mut dyn FnMut(PageId, PageEntry)) {
        if let Some(root) = &self.root {
            root.node.for_each_page(0, self.depth, visit);
        }
    }

    /// Calls `visit` for every node that is on disk.
    pub(crate) fn for_each_stored_node(&self, visit: &mut dyn FnMut(PageEntry)) {
        if let Some(root) = &self.root {
            root.for_each_stored_node(visit);
        }
    }

    /// Gives up the places of nodes that reach behind the unit `end`, and of those above them: [`PageMap::store`] finds
    /// new ones. They are added to `retired`.
    pub(crate) fn forget_nodes_behind(&mut self, end: u64, retired: &mut Vec<Extent>) {
        if let Some(root) = &mut self.root {
            root.forget_behind(end, retired);
        }
    }

    /// Writes the nodes that are not on disk as they are, children first, and returns the root's entry
    /// ([`PageEntry::ABSENT`] for an empty map).
    pub(crate) fn store(&mut self, write: &mut dyn FnMut(&[u8; NODE_BYTES]) -> Result<PageEntry>) -> Result<PageEntry> {
        match &mut self.root {
            Some(root) => root.store(write),
            None => Ok(PageEntry::ABSENT),
        }
    }

    fn from_root(root: Option<Arc<Node>>, stored: PageEntry, depth: u8) -> PageMap {
        PageMap { depth, root: root.map(|node| Child { node, stored: Some(stored) }) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::page_kind::PageKind;

    fn page_entry(place: u64) -> PageEntry {
        PageEntry::new(place, PageKind::CHUNK, 100, place as u32)
    }

    /// Stores into a vector of nodes; the place is the index in it, from 1.
    fn store(map: &mut PageMap, disk: &mut Vec<Vec<u8>>) -> PageEntry {
        map.store(&mut |bytes| {
            disk.push(bytes.to_vec());
            let checksum = crc32c::crc32c(bytes);
            Ok(PageEntry::new(disk.len() as u64, PageKind::MAP_NODE, NODE_BYTES as u32, checksum))
        })
        .unwrap()
    }

    fn load_back(root: PageEntry, depth: u8, disk: &[Vec<u8>]) -> Result<PageMap> {
        let mut read = |entry: PageEntry, _| Ok(disk[entry.extent().place as usize - 1].clone());
        load(root, depth, &mut read, &mut |_| Ok(true))
    }

    fn pages(map: &PageMap) -> BTreeMap<u64, u64> {
        let mut found = BTreeMap::new();
        map.for_each_page(&mut |page, entry| {
            found.insert(page.0, entry.extent().place);
        });
        found
    }

    #[test]
    fn only_changed_nodes_are_written_again() {
        let (mut map, mut disk, mut retired) = (PageMap::default(), Vec::new(), Vec::new());
        for page in 1..=1000 {
            map.replace(PageId(page), page_entry(page), &mut retired);
        }
        store(&mut map, &mut disk);
        assert_eq!((disk.len(), retired.len(), map.depth()), (5, 0, 2));
        let before = map.clone();
        map.replace(PageId(300), page_entry(9999), &mut retired);
        assert_eq!(retired.len(), 2, "a leaf and the root");
        let root = store(&mut map, &mut disk);
        assert_eq!(disk.len(), 7);
        assert_eq!(before.get(PageId(300)), Some(page_entry(300)), "a clone does not change");
        assert_eq!(pages(&load_back(root, 2, &disk).unwrap()), pages(&map));
    }

    proptest::proptest! {
        #[test]
        fn agrees_with_a_tree_of_the_standard_library(
            steps in proptest::collection::vec((0u8..4, 0u32..57, 0u64..256), 1..100)
        ) {
            let (mut map, mut disk, mut retired) = (PageMap::default(), Vec::new(), Vec::new());
            let mut model = BTreeMap::new();
            for (index, (step, shift, low)) in steps.into_iter().enumerate() {
                let page = (1u64 << shift) + low;
                let page = page.min(PageId::MAX.0);
                let place = index as u64 + 1;
                let old = match step {
                    0 => {
                        let root = store(&mut map, &mut disk);
                        map = load_back(root, map.depth(), &disk).unwrap();
                        continue;
                    }
                    1 => map.replace(PageId(page), PageEntry::ABSENT, &mut retired),
                    _ => map.replace(PageId(page), page_entry(place), &mut retired),
                };
                let expected = if step == 1 { model.remove(&page) } else { model.insert(page, place) };
                proptest::prop_assert_eq!(old.map(|entry| entry.extent().place), expected);
                proptest::prop_assert_eq!(&pages(&map), &model);
                proptest::prop_assert_eq!(map.get(PageId(page)).is_some(), step != 1);
            }
            // What is retired and what is still stored never meet.
            let mut live = std::collections::BTreeSet::new();
            map.for_each_stored_node(&mut |entry| { live.insert(entry.extent().place); });
            proptest::prop_assert!(retired.iter().all(|extent| !live.contains(&extent.place)));
        }
    }
}
