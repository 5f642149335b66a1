//! What a page holds. The list of kinds on disk.

use std::fmt;

/// The tag in a page's header and in its map entry. Storage gives no meaning to any but the map's own; kinds that this
/// build has no name for pass through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageKind(pub u16);

macro_rules! kinds {
    ($($tag:literal => $constant:ident, $name:literal, $doc:literal;)*) => {
        impl PageKind {
            $(#[doc = $doc] pub const $constant: PageKind = PageKind($tag);)*

            /// Every kind that has a name, in the order of the tags.
            pub const ALL: &'static [PageKind] = &[$(PageKind::$constant),*];

            /// The name in messages and in `sinter inspect`, where this build knows one.
            pub fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($tag => Some($name),)*
                    _ => None,
                }
            }
        }
    };
}

kinds! { // tag on disk => constant, name; a tag is never given twice, nor reused
    1 => MAP_NODE, "map node", "A node of the page map. Only storage writes these; they have no page id of their own.";
    2 => CATALOG, "catalog", "The catalog: which objects there are, and their root pages.";
    3 => TABLE_ROOT, "table root", "What a column table is made of: row groups, delta batches, delete bitmaps.";
    4 => CHUNK, "chunk", "Segments of a column table.";
    5 => DELTA_BATCH, "delta batch", "Rows of a column table that are not pressed yet.";
    6 => DELETE_BITMAP, "delete bitmap", "Which rows of a row group are deleted.";
    7 => TREE_ROOT, "tree root", "How a key-value tree keeps its keys, and which directory pages it has.";
    8 => TREE_DIRECTORY, "tree directory", "Which leaves of a key-value tree follow each other.";
    9 => TREE_LEAF, "tree leaf", "Keys of a key-value tree with their records.";
}

impl fmt::Display for PageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "kind {}", self.0),
        }
    }
}
