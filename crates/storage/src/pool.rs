//! The buffer pool: pages that were read and checked, kept in their compressed form.
//!
//! Johnson and Shasha's 2Q (VLDB 1994). A page that comes for the first time goes through a short queue, in which it is
//! not asked how often it is used: a scan pins a chunk once for each row group in it, and would otherwise pass for
//! something that everybody needs. What is asked for again after it left the queue, while its number is still
//! remembered, is kept in the main part. So a scan of any size takes a quarter of the pool, and what is used again and
//! again stays. We differ in the main part, which is a clock and not a list in the order of use.
//!
//! The stores of several databases may share a pool; each asks for its pages under a number of its own.
//!
//! What is pinned stays, since letting go of it would free nothing. The budget's lock guards all of this; reading happens
//! outside of it.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::ids::PageId;
use crate::map::PageEntry;
use crate::pin::Pinned;

/// The first queue keeps this part of the pool when the main part wants the rest.
const RECENT_DIVISOR: usize = 4;

/// A page of one of the stores that share a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct PooledPage {
    pub(crate) store: u64,
    pub(crate) page: PageId,
}

/// What the pool did so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PoolCounts {
    /// Pins that found their page in memory.
    pub hits: u64,
    /// Pins that had to wait for the file.
    pub misses: u64,
    /// Pages that were read before anybody pinned them.
    pub read_ahead: u64,
    /// Pages that had to go.
    pub evictions: u64,
    /// Bytes read from the file.
    pub bytes_read: u64,
}

/// The pages in memory. Invariant: `bytes` is the sum over all slots, `recent_bytes` that over the recent ones; each
/// slot stands in its queue once under its stamp, entries with another stamp are void.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    slots: HashMap<PooledPage, Slot>,
    /// Came for the first time, oldest first.
    recent: VecDeque<(PooledPage, u64)>,
    /// Came again; a clock.
    often: VecDeque<(PooledPage, u64)>,
    /// What left `recent` not long ago, with its size: as many bytes as the pool may hold.
    left: VecDeque<(PooledPage, usize)>,
    left_pages: HashSet<PooledPage>,
    left_bytes: usize,
    bytes: usize,
    recent_bytes: usize,
    next_stamp: u64,
    counts: PoolCounts,
}

#[derive(Debug)]
struct Slot {
    entry: PageEntry,
    bytes: Pinned,
    stamp: u64,
    is_recent: bool,
    /// Since the clock's hand last passed.
    is_used: bool,
}

impl Pool {
    /// The page, if this very version of it is here.
    pub(crate) fn get(&mut self, page: PooledPage, entry: PageEntry) -> Option<Pinned> {
        let found = self.slots.get_mut(&page).filter(|slot| slot.entry == entry);
        let bytes = found.map(|slot| {
            slot.is_used = true;
            slot.bytes.clone()
        });
        self.counts.hits += u64::from(bytes.is_some());
        bytes
    }

    /// Whether [`Pool::get`] would find the page; does not count as a use.
    pub(crate) fn has(&self, page: PooledPage, entry: PageEntry) -> bool {
        self.slots.get(&page).is_some_and(|slot| slot.entry == entry)
    }

    /// Keeps a page that was read, in place of any other version of it. The caller makes room for it with
    /// [`Pool::evict`].
    pub(crate) fn insert(&mut self, page: PooledPage, entry: PageEntry, bytes: Pinned, is_ahead: bool) {
        match is_ahead {
            true => self.counts.read_ahead += 1,
            false => self.counts.misses += 1,
        }
        self.counts.bytes_read += bytes.len() as u64;
        self.remove(page);
        let (stamp, is_recent) = (self.stamp(), !self.left_pages.remove(&page));
        self.bytes += bytes.len();
        if is_recent {
            self.recent_bytes += bytes.len();
        }
        self.queue(is_recent).push_back((page, stamp));
        self.slots.insert(page, Slot { entry, bytes, stamp, is_recent, is_used: false });
    }

    /// Lets go of a page that is no more, and returns its bytes.
    pub(crate) fn remove(&mut self, page: PooledPage) -> Option<Pinned> {
        let slot = self.slots.remove(&page)?;
        self.bytes -= slot.bytes.len();
        if slot.is_recent {
            self.recent_bytes -= slot.bytes.len();
        }
        // Entries that are void go with the next eviction that meets them, or here when they are the most.
        let slots = &self.slots;
        for queue in [&mut self.recent, &mut self.often] {
            if queue.len() > 2 * slots.len() + 64 {
                queue.retain(|(page, stamp)| slots.get(page).is_some_and(|slot| slot.stamp == *stamp));
            }
        }
        Some(slot.bytes)
    }

    /// Lets go of all pages of a store, and returns their bytes.
    pub(crate) fn remove_store(&mut self, store: u64) -> Vec<Pinned> {
        let pages: Vec<PooledPage> = self.slots.keys().filter(|page| page.store == store).copied().collect();
        pages.into_iter().filter_map(|page| self.remove(page)).collect()
    }

    /// Bytes of the pages that are here.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The page is in another place of the file: what is here of it stays good.
    pub(crate) fn moved(&mut self, page: PooledPage, from: PageEntry, to: PageEntry) {
        if let Some(slot) = self.slots.get_mut(&page).filter(|slot| slot.entry == from) {
            slot.entry = to;
        }
    }

    /// What happened so far.
    pub(crate) fn counts(&self) -> PoolCounts {
        self.counts
    }

    /// Lets go of pages until no more than `bytes_max` are left, as far as pins allow. They go to `evicted`, so that they
    /// are dropped without the lock.
    pub(crate) fn evict(&mut self, bytes_max: usize, evicted: &mut Vec<Pinned>) {
        while self.bytes > bytes_max {
            let has_many_recent = self.recent_bytes > bytes_max / RECENT_DIVISOR;
            let victim = self.victim(has_many_recent).or_else(|| self.victim(!has_many_recent));
            let Some(page) = victim else { break };
            let is_recent = self.slots.get(&page).is_some_and(|slot| slot.is_recent);
            let Some(bytes) = self.remove(page) else { break };
            if is_recent && self.left_pages.insert(page) {
                self.left.push_back((page, bytes.len()));
                self.left_bytes += bytes.len();
            }
            self.counts.evictions += 1;
            evicted.push(bytes);
        }
        while self.left_bytes > bytes_max
            && let Some((page, bytes)) = self.left.pop_front()
        {
            self.left_pages.remove(&page);
            self.left_bytes -= bytes;
        }
    }

    /// The page of a queue that is to go next; `None` where all are pinned.
    fn victim(&mut self, is_recent: bool) -> Option<PooledPage> {
        // Two rounds, the first of which may only take the marks away.
        for _ in 0..2 * self.queue(is_recent).len() {
            let (page, stamp) = self.queue(is_recent).pop_front()?;
            let Some(slot) = self.slots.get_mut(&page).filter(|slot| slot.stamp == stamp) else { continue };
            let is_spared = !is_recent && std::mem::take(&mut slot.is_used);
            if !is_spared && slot.bytes.holders() == 1 {
                return Some(page);
            }
            self.queue(is_recent).push_back((page, stamp));
        }
        None
    }

    fn queue(&mut self, is_recent: bool) -> &mut VecDeque<(PooledPage, u64)> {
        if is_recent { &mut self.recent } else { &mut self.often }
    }

    fn stamp(&mut self) -> u64 {
        self.next_stamp += 1;
        self.next_stamp
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page_kind::PageKind;

    fn entry(checksum: u32) -> PageEntry {
        PageEntry::new(2, PageKind::CHUNK, 100, checksum)
    }

    fn numbered(page: u64) -> PooledPage {
        PooledPage { store: 0, page: PageId(page) }
    }

    /// A pool of so many pages of 100 bytes.
    struct Small {
        pool: Pool,
        pages_max: usize,
    }

    impl Small {
        fn new(pages_max: usize) -> Small {
            Small { pool: Pool::default(), pages_max }
        }

        /// Reads a page through the pool; true for a hit.
        fn read(&mut self, page: u64) -> bool {
            let is_hit = self.pool.get(numbered(page), entry(0)).is_some();
            if !is_hit {
                self.pool.insert(numbered(page), entry(0), Pinned::from(vec![0; 100]), false);
                self.pool.evict(100 * self.pages_max, &mut Vec::new());
                assert!(self.pool.bytes() <= 100 * self.pages_max);
            }
            is_hit
        }

        fn has(&self, page: u64) -> bool {
            self.pool.has(numbered(page), entry(0))
        }
    }

    /// The clock that was here before, to compare with.
    struct Clock {
        pages: Vec<(u64, bool)>,
        hand: usize,
        pages_max: usize,
    }

    impl Clock {
        fn read(&mut self, page: u64) -> bool {
            if let Some((_, is_used)) = self.pages.iter_mut().find(|(there, _)| *there == page) {
                *is_used = true;
                return true;
            }
            if self.pages.len() < self.pages_max {
                self.pages.push((page, false));
                return false;
            }
            loop {
                self.hand = (self.hand + 1) % self.pages_max;
                let (there, is_used) = &mut self.pages[self.hand];
                if !std::mem::take(is_used) {
                    *there = page;
                    return false;
                }
            }
        }
    }

    #[test]
    fn keeps_to_its_limit_and_tells_versions_apart() {
        let mut small = Small::new(3);
        (1..=5).for_each(|page| assert!(!small.read(page)));
        assert_eq!((small.has(2), small.has(3), small.has(5)), (false, true, true), "the oldest went");
        assert!(small.pool.get(numbered(5), entry(1)).is_none(), "another version of the page");
        small.pool.insert(numbered(5), entry(1), Pinned::from(vec![0; 100]), false);
        assert!(!small.has(5) && small.pool.has(numbered(5), entry(1)));
        assert_eq!(small.pool.bytes(), 300, "one version at a time");
        let PoolCounts { hits, misses, evictions, bytes_read, .. } = small.pool.counts();
        assert_eq!((hits, misses, evictions, bytes_read), (0, 6, 2, 600));
    }

    #[test]
    fn what_comes_again_outlives_any_scan() {
        let mut small = Small::new(20);
        // Seen, pushed out, asked for again: now they are known.
        for pages in [0..5, 100..120, 0..5] {
            for page in pages {
                small.read(page);
            }
        }
        // A scan of fifty times the pool, which pins each page three times.
        for page in (1000..2000).flat_map(|page| [page; 3]) {
            small.read(page);
        }
        assert!((0..5).all(|page| small.has(page)), "none of them had to go");
    }

    /// Random reads of a hot set that would fit, while a scan goes on that would not: 8 pages of it for each hot one,
    /// each pinned four times, as the row groups in a chunk are.
    #[test]
    fn a_scan_costs_the_hot_set_less_than_it_did() {
        let (mut small, mut clock) = (Small::new(100), Clock { pages: Vec::new(), hand: 0, pages_max: 100 });
        let (mut hits, mut clock_hits, mut random, mut scanned) = (0, 0, 12345u64, 1000);
        const ROUNDS: u64 = 4000;
        for _ in 0..ROUNDS {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let hot = (random >> 33) % 50;
            hits += u64::from(small.read(hot));
            clock_hits += u64::from(clock.read(hot));
            for page in scanned..scanned + 8 {
                for _ in 0..4 {
                    small.read(page);
                    clock.read(page);
                }
            }
            scanned += 8;
        }
        println!("hits of the hot set: {} %, by the clock {} %", 100 * hits / ROUNDS, 100 * clock_hits / ROUNDS);
        assert!(hits > 2 * clock_hits && hits > ROUNDS / 2, "{hits} of {ROUNDS}, by the clock {clock_hits}");
    }

    #[test]
    fn a_page_that_moved_is_known_in_its_new_place() {
        let mut pool = Pool::default();
        pool.insert(numbered(1), entry(0), Pinned::from(vec![7; 100]), false);
        pool.moved(numbered(1), entry(1), entry(2));
        assert!(pool.get(numbered(1), entry(2)).is_none(), "it was another version that moved");
        pool.moved(numbered(1), entry(0), entry(2));
        assert!(pool.get(numbered(1), entry(2)).is_some_and(|page| page[..] == [7; 100]));
        assert!(pool.get(numbered(1), entry(0)).is_none());
    }

    #[test]
    fn a_pinned_page_stays() {
        let mut small = Small::new(1);
        small.read(1);
        let pin = small.pool.get(numbered(1), entry(0)).unwrap();
        small.pool.insert(numbered(2), entry(0), Pinned::from(vec![0; 100]), false);
        small.pool.evict(100, &mut Vec::new());
        assert_eq!((small.has(1), small.has(2)), (true, false));
        small.pool.evict(0, &mut Vec::new());
        assert!(small.has(1));
        drop(pin);
        small.pool.evict(0, &mut Vec::new());
        assert_eq!(small.pool.bytes(), 0);
    }

    #[test]
    fn stores_share_a_pool_and_keep_their_pages_apart() {
        let mut pool = Pool::default();
        let others = PooledPage { store: 1, ..numbered(1) };
        pool.insert(numbered(1), entry(0), Pinned::from(vec![7; 100]), false);
        pool.insert(others, entry(0), Pinned::from(vec![8; 100]), false);
        assert!(pool.get(numbered(1), entry(0)).is_some_and(|page| page[..] == [7; 100]));
        assert!(pool.get(others, entry(0)).is_some_and(|page| page[..] == [8; 100]));
        assert_eq!(pool.remove_store(0).len(), 1);
        assert_eq!((pool.has(numbered(1), entry(0)), pool.has(others, entry(0)), pool.bytes()), (false, true, 100));
    }

    #[test]
    fn queues_do_not_grow_with_pages_that_are_gone() {
        let mut small = Small::new(10);
        for page in 0..10_000 {
            small.read(page);
            small.pool.remove(numbered(page));
        }
        assert!(small.pool.recent.len() < 200 && small.pool.left.len() < 200);
    }
}
