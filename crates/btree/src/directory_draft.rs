//! The directory pages of a tree that is written, one after the other, as its leaves come.
//!
//! They end where the number of a leaf's page says so: where a leaf is divided, the pages before and behind stay what they
//! were, and are not written again.

use crate::Result;
use crate::directory_page::{self, Entry};
use crate::home::DirectoryPage;
use crate::keys::TreeKey;
use crate::sync::Arc;
use sinter_storage::PageId;
use std::collections::BTreeMap;

/// One of so many leaves ends its directory page ...
const LEAVES_PER_PAGE: u64 = 256;
/// ... and a page has so many at most.
const LEAVES_PER_PAGE_MAX: usize = 1024;

/// Where directory pages go.
pub(crate) trait DirectorySink {
    /// A new one.
    fn put_directory(&mut self, bytes: &[u8]) -> Result<PageId>;

    /// One that is there, and stays.
    fn keep_directory(&mut self, page: PageId) -> Result<()>;
}

/// The directory pages that are being made.
pub(crate) struct DirectoryDraft<K: TreeKey + ?Sized> {
    /// Those of the last checkpoint, by their first leaf.
    before: BTreeMap<PageId, DirectoryPage>,
    pages: Vec<DirectoryPage>,
    /// What the next one has.
    entries: Vec<Entry<K>>,
    bytes: Vec<u8>,
}

impl<K: TreeKey + ?Sized> DirectoryDraft<K> {
    pub(crate) fn new(before: &[DirectoryPage]) -> DirectoryDraft<K> {
        let before = before.iter().filter_map(|page| Some((*page.leaves.first()?, page.clone()))).collect();
        DirectoryDraft { before, pages: Vec::new(), entries: Vec::new(), bytes: Vec::new() }
    }

    /// The next leaf in the order of keys.
    pub(crate) fn push(&mut self, low: Option<K::Owned>, page: PageId, out: &mut impl DirectorySink) -> Result<()> {
        self.entries.push(Entry { low, page });
        // Numbers of pages follow each other: the product's upper bits are as good as drawn.
        let is_end = page.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 < (1 << 32) / LEAVES_PER_PAGE;
        if is_end || self.entries.len() == LEAVES_PER_PAGE_MAX { self.end_page(out) } else { Ok(()) }
    }

    fn end_page(&mut self, out: &mut impl DirectorySink) -> Result<()> {
        let leaves: Arc<[PageId]> = self.entries.iter().map(|entry| entry.page).collect();
        let Some(first) = leaves.first() else { return Ok(()) };
        match self.before.remove(first) {
            Some(same) if same.leaves == leaves => {
                out.keep_directory(same.page)?;
                self.pages.push(same);
            }
            other => {
                self.before.extend(other.map(|other| (*first, other)));
                self.bytes.clear();
                directory_page::write(&self.entries, &mut self.bytes);
                let page = out.put_directory(&self.bytes)?;
                self.pages.push(DirectoryPage { page, leaves });
            }
        }
        self.entries.clear();
        Ok(())
    }

    /// All pages, once there are no more leaves; and those of the last checkpoint that are not among them.
    pub(crate) fn finish(mut self, out: &mut impl DirectorySink) -> Result<(Vec<DirectoryPage>, Vec<PageId>)> {
        self.end_page(out)?;
        Ok((self.pages, self.before.into_values().map(|page| page.page).collect()))
    }
}
