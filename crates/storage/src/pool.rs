//! The buffer pool: pages that were read and checked, kept in their compressed form under a limit in bytes.
//!
//! The clock algorithm: a page that was used since the hand last passed gets another round. What is pinned stays, since
//! letting go of it would free nothing. Thread-safe; reading happens outside of the lock, so two threads may read the
//! same page at once, and one of the copies is dropped.

use crate::ids::PageId;
use crate::map::PageEntry;
use crate::pin::Pinned;
use crate::sync::{Mutex, MutexGuard, PoisonError};
use std::collections::HashMap;

/// The pages in memory. Invariant: `bytes` is the sum over all slots; `slot_of` names each filled slot once.
#[derive(Debug)]
pub(crate) struct Pool {
    clock: Mutex<Clock>,
}

#[derive(Debug)]
struct Clock {
    slots: Vec<Option<Slot>>,
    empty_slots: Vec<usize>,
    slot_of: HashMap<PageId, usize>,
    hand: usize,
    bytes: usize,
    bytes_max: usize,
}

#[derive(Debug)]
struct Slot {
    page: PageId,
    entry: PageEntry,
    bytes: Pinned,
    used: bool,
}

impl Pool {
    pub(crate) fn new(bytes_max: usize) -> Pool {
        let (slots, empty_slots, slot_of) = (Vec::new(), Vec::new(), HashMap::new());
        Pool { clock: Mutex::new(Clock { slots, empty_slots, slot_of, hand: 0, bytes: 0, bytes_max }) }
    }

    /// The page, if this very version of it is here.
    pub(crate) fn get(&self, page: PageId, entry: PageEntry) -> Option<Pinned> {
        let mut clock = self.clock();
        let index = *clock.slot_of.get(&page)?;
        let slot = clock.slots[index].as_mut().filter(|slot| slot.entry == entry)?;
        slot.used = true;
        Some(slot.bytes.clone())
    }

    /// Keeps a page, in place of any other version of it, and lets go of others until the limit holds.
    pub(crate) fn insert(&self, page: PageId, entry: PageEntry, bytes: Pinned) {
        let mut clock = self.clock();
        clock.remove(page);
        clock.evict(bytes.len());
        clock.bytes += bytes.len();
        let slot = Some(Slot { page, entry, bytes, used: false });
        let index = match clock.empty_slots.pop() {
            Some(index) => {
                clock.slots[index] = slot;
                index
            }
            None => {
                clock.slots.push(slot);
                clock.slots.len() - 1
            }
        };
        clock.slot_of.insert(page, index);
    }

    /// The page is in another place: what is here of it stays good.
    pub(crate) fn moved(&self, page: PageId, from: PageEntry, to: PageEntry) {
        let mut clock = self.clock();
        if let Some(index) = clock.slot_of.get(&page).copied()
            && let Some(slot) = clock.slots[index].as_mut().filter(|slot| slot.entry == from)
        {
            slot.entry = to;
        }
    }

    /// Lets go of a page that is no more.
    pub(crate) fn remove(&self, page: PageId) {
        self.clock().remove(page);
    }

    /// Sets the limit and keeps to it at once.
    pub(crate) fn set_bytes_max(&self, bytes_max: usize) {
        let mut clock = self.clock();
        clock.bytes_max = bytes_max;
        clock.evict(0);
    }

    /// Bytes in memory, and the limit.
    pub(crate) fn bytes(&self) -> (usize, usize) {
        let clock = self.clock();
        (clock.bytes, clock.bytes_max)
    }

    fn clock(&self) -> MutexGuard<'_, Clock> {
        self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock {
    fn remove(&mut self, page: PageId) {
        if let Some(index) = self.slot_of.remove(&page)
            && let Some(slot) = self.slots[index].take()
        {
            self.bytes -= slot.bytes.len();
            self.empty_slots.push(index);
        }
    }

    /// Makes room for so many bytes, as far as pins allow: two rounds, the first of which may only take the marks away.
    fn evict(&mut self, bytes_wanted: usize) {
        for _ in 0..2 * self.slots.len() {
            if self.bytes.saturating_add(bytes_wanted) <= self.bytes_max {
                return;
            }
            self.hand = (self.hand + 1) % self.slots.len();
            let Some(slot) = self.slots[self.hand].as_mut() else { continue };
            if std::mem::take(&mut slot.used) || slot.bytes.holders() > 1 {
                continue;
            }
            let page = slot.page;
            self.remove(page);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page_kind::PageKind;

    fn entry(checksum: u32) -> PageEntry {
        PageEntry::new(2, PageKind::CHUNK, 100, checksum)
    }

    #[test]
    fn keeps_to_its_limit_and_spares_what_was_used() {
        let pool = Pool::new(300);
        for page in 1..=3 {
            pool.insert(PageId(page), entry(0), Pinned::from(vec![0; 100]));
        }
        assert!(pool.get(PageId(2), entry(0)).is_some());
        pool.insert(PageId(4), entry(0), Pinned::from(vec![0; 100]));
        pool.insert(PageId(5), entry(0), Pinned::from(vec![0; 100]));
        assert_eq!(pool.bytes(), (300, 300));
        assert!(pool.get(PageId(2), entry(0)).is_some());
        assert!(pool.get(PageId(2), entry(1)).is_none(), "another version of the page");
    }

    #[test]
    fn a_pinned_page_stays() {
        let pool = Pool::new(100);
        pool.insert(PageId(1), entry(0), Pinned::from(vec![0; 100]));
        let pin = pool.get(PageId(1), entry(0)).unwrap();
        pool.insert(PageId(2), entry(0), Pinned::from(vec![0; 100]));
        assert!(pool.get(PageId(1), entry(0)).is_some());
        drop(pin);
        pool.set_bytes_max(0);
        assert_eq!(pool.bytes(), (0, 0));
    }
}
