//! Reading a page map from disk, distrusting every byte.

use std::ops::Range;
use std::sync::Arc;

use super::PageMap;
use super::entry::{ENTRY_BYTES, PageEntry};
use super::node::{Child, ENTRIES_PER_NODE, NODE_BYTES, Node, first_below};
use crate::error::Result;
use crate::ids::PageId;
use crate::page_kind::PageKind;

/// What the walk comes across. The visitor reserves its place, and so ends the walk at an overlap, a cycle or a place
/// outside of the file before anything is read from there. It answers whether to go on below, or to take the page.
pub(crate) enum Visit {
    /// A node, before it is read.
    Node(PageEntry),
    /// A page.
    Page(PageId, PageEntry),
    /// An entry that cannot be: in this node, for this reason. The visitor returns an error, or false to pass over it.
    Nonsense(PageEntry, String),
}

/// Reads the map below `root`, less what the visitor does not want. `read` returns a node's bytes, its checksum
/// verified; it is told which ids the node covers.
pub(crate) fn load(
    root: PageEntry,
    depth: u8,
    read: &mut dyn FnMut(PageEntry, Range<u64>) -> Result<Vec<u8>>,
    visit: &mut dyn FnMut(Visit) -> Result<bool>,
) -> Result<PageMap> {
    if root.is_absent() != (depth == 0) || !(root.is_absent() || is_node(&root)) {
        let what = format!("a map of {depth} levels cannot have the root {root:x?}");
        if !visit(Visit::Nonsense(root, what))? {
            return Ok(PageMap::default());
        }
    }
    if root.is_absent() || depth == 0 || !visit(Visit::Node(root))? {
        return Ok(PageMap::default());
    }
    let node = load_node(root, 0, depth, read, visit)?;
    Ok(PageMap::from_root(Some(Arc::new(node)), root, depth))
}

fn load_node(
    stored: PageEntry,
    first: u64,
    depth: u8,
    read: &mut dyn FnMut(PageEntry, Range<u64>) -> Result<Vec<u8>>,
    visit: &mut dyn FnMut(Visit) -> Result<bool>,
) -> Result<Node> {
    let bytes = read(stored, first..first_below(first, depth + 1, 1))?;
    let (entries, _) = bytes.as_chunks::<ENTRY_BYTES>();
    let entries = entries.iter().map(PageEntry::decode).enumerate().filter(|(_, entry)| !entry.is_absent());
    if depth == 1 {
        let mut leaf = Box::new([PageEntry::ABSENT; ENTRIES_PER_NODE]);
        for (index, entry) in entries {
            let page = PageId(first + index as u64);
            if entry.kind() == PageKind::MAP_NODE || entry.extent().place == 0 || entry.bytes == 0 {
                let what = format!("its entry for page {page} is not a page's: {entry:x?}");
                if !visit(Visit::Nonsense(stored, what))? {
                    continue;
                }
            }
            if visit(Visit::Page(page, entry))? {
                leaf[index] = entry;
            }
        }
        return Ok(Node::Leaf(leaf));
    }
    let mut children = Box::new([const { None }; ENTRIES_PER_NODE]);
    for (index, entry) in entries {
        if !is_node(&entry) {
            let what = format!("its entry {index} is not a node's: {entry:x?}");
            if !visit(Visit::Nonsense(stored, what))? {
                continue;
            }
        }
        if !visit(Visit::Node(entry))? {
            continue;
        }
        let node = load_node(entry, first_below(first, depth, index), depth - 1, read, visit)?;
        children[index] = Some(Child { node: Arc::new(node), stored: Some(entry) });
    }
    Ok(Node::Inner(children))
}

fn is_node(entry: &PageEntry) -> bool {
    entry.kind() == PageKind::MAP_NODE && entry.bytes as usize == NODE_BYTES && entry.extent().place > 0
}
