//! Reading everything, to see whether it is as it was written.

use super::pages::{read_node, read_page};
use super::{Mode, Store};
use crate::error::{Error, Result};
use crate::map::{PageEntry, PageMap};

impl Store {
    /// Reads every page from the file, past the pool, and calls `report` for each that is damaged.
    /// Returns how many pages were read. The store may be used meanwhile; pages freed meanwhile are passed over.
    ///
    /// # Errors
    /// [`Error::Io`]: the disk does not answer; what was reported so far stands.
    pub fn check(&self, report: &mut dyn FnMut(Error)) -> Result<u64> {
        self.check_open()?;
        if self.mode == Mode::Memory {
            return Ok(0);
        }
        let map: PageMap = self.pages().map.clone();
        let (mut pages, mut nodes) = (Vec::new(), Vec::new());
        map.for_each_page(&mut |page, entry| pages.push((page, entry)));
        map.for_each_stored_node(&mut |entry| nodes.push(entry));
        let still_there = |entry: PageEntry, page| self.pages().get(page) == Some(entry);
        for &(page, entry) in &pages {
            match read_page(&*self.data, &self.path, page, entry) {
                Err(error) if error.is_damage() => {
                    if still_there(entry, page) {
                        report(error);
                    }
                }
                other => drop(other?),
            }
        }
        // Nodes were read when the store was opened, or written by it; the disk may have changed its mind.
        for &entry in &nodes {
            match read_node(&*self.data, &self.path, entry, 0..1) {
                Err(error) if error.is_damage() => {
                    // Checkpoints that ended meanwhile may have given its place to another.
                    let mut is_still_there = false;
                    self.pages().map.for_each_stored_node(&mut |node| is_still_there |= node == entry);
                    if is_still_there {
                        report(error);
                    }
                }
                other => drop(other?),
            }
        }
        Ok((pages.len() + nodes.len()) as u64)
    }
}
