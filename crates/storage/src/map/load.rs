//! Reading a page map from disk, distrusting every byte.

use std::sync::Arc;

use super::PageMap;
use super::entry::{ENTRY_BYTES, PageEntry};
use super::node::{Child, ENTRIES_PER_NODE, NODE_BYTES, Node, first_below};
use crate::error::Result;
use crate::ids::PageId;
use crate::page_kind::PageKind;

/// What the walk comes across. The visitor reserves its place, and so ends the walk at an overlap, a cycle or a place
/// outside of the file before anything is read from there.
pub(crate) enum Visit {
    /// A node, before it is read.
    Node(PageEntry),
    /// A page.
    Page(PageId, PageEntry),
    /// An entry that cannot be: in this node, for this reason.
    Nonsense(PageEntry, String),
}

/// Reads the map below `root`. `read` returns a node's bytes, its checksum verified.
pub(crate) fn load(
    root: PageEntry,
    depth: u8,
    read: &mut dyn FnMut(PageEntry) -> Result<Vec<u8>>,
    visit: &mut dyn FnMut(Visit) -> Result<()>,
) -> Result<PageMap> {
    if root.is_absent() || depth == 0 {
        return Ok(PageMap::default());
    }
    visit(Visit::Node(root))?;
    let node = load_node(root, 0, depth, read, visit)?;
    Ok(PageMap::from_root(Some(Arc::new(node)), root, depth))
}

fn load_node(
    stored: PageEntry,
    first: u64,
    depth: u8,
    read: &mut dyn FnMut(PageEntry) -> Result<Vec<u8>>,
    visit: &mut dyn FnMut(Visit) -> Result<()>,
) -> Result<Node> {
    let bytes = read(stored)?;
    let (entries, _) = bytes.as_chunks::<ENTRY_BYTES>();
    let entries = entries.iter().map(PageEntry::decode).enumerate().filter(|(_, entry)| !entry.is_absent());
    if depth == 1 {
        let mut leaf = Box::new([PageEntry::ABSENT; ENTRIES_PER_NODE]);
        for (index, entry) in entries {
            let page = PageId(first + index as u64);
            if entry.kind() == PageKind::MAP_NODE || entry.extent().place == 0 || entry.bytes == 0 {
                visit(Visit::Nonsense(stored, format!("its entry for page {page} is not a page's: {entry:x?}")))?;
            }
            visit(Visit::Page(page, entry))?;
            leaf[index] = entry;
        }
        return Ok(Node::Leaf(leaf));
    }
    let mut children = Box::new([const { None }; ENTRIES_PER_NODE]);
    for (index, entry) in entries {
        if entry.kind() != PageKind::MAP_NODE || entry.bytes as usize != NODE_BYTES {
            visit(Visit::Nonsense(stored, format!("its entry {index} is not a node's: {entry:x?}")))?;
        }
        visit(Visit::Node(entry))?;
        let node = load_node(entry, first_below(first, depth, index), depth - 1, read, visit)?;
        children[index] = Some(Child { node: Arc::new(node), stored: Some(entry) });
    }
    Ok(Node::Inner(children))
}
