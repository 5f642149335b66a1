//! One budget for all memory that grows with data, under `memory_limit`.
//!
//! Whoever is going to hold much reserves it first, under one of four [uses](Use). The buffer pool gets what nobody has
//! reserved: it shrinks, down to what is pinned, when others reserve, and grows back as pages are read. So a reservation
//! fails only when everything but pinned pages and the reservations of others is used up.
//!
//! Leaves of trees are as a pool of their own, which gives way like the other: to loads, tables and queries, who ask those
//! that hold them ([`Reclaim`]) once the pool has nothing more to give. So that pages have a place beside them, leaves take
//! three quarters at most of what the others have left.
//!
//! What cannot be refused is *taken*: the delta batches of a commit that is in the log already. Then the pool pays, and
//! after it the next who ask.
//!
//! An eighth of the limit is for nobody. It stands for what is not counted: code, stacks, what the allocator holds back,
//! buffers of a few pages that come and go. So the process as a whole stays near the limit.
//!
//! Stores of several databases can draw on one budget, each with a [share](PoolShare) of the pool.
//!
//! Thread-safe: one lock, held for a few steps, and never while anything is read, freed or reclaimed.

use std::fmt;

use crate::error::{Error, Result};
use crate::ids::PageId;
use crate::map::PageEntry;
use crate::pin::Pinned;
use crate::pool::{Pool, PoolCounts, PooledPage};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The part of the limit that nobody gets.
const MARGIN_DIVISOR: usize = 8;

/// Queries leave this part of what can be reserved to others, so that loads, commits and the pages that the queries
/// read go on.
const QUERY_LEAVES_DIVISOR: usize = 4;

/// Leaves of trees leave this part of what all others have left to the pool.
const LEAF_LEAVES_DIVISOR: usize = 4;

/// How often it is tried to have back what is missing, while others take it away again.
const RECLAIMS_MAX: usize = 8;

/// What memory is reserved for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Use {
    /// What tables hold beside the pool: delta batches, directories of row groups, delete marks.
    Table,
    /// Loads, pressing and checkpoints on their way.
    Scratch,
    /// What operators of queries hold.
    Query,
    /// Leaves of trees that are in memory, and of which their tree can have back ([`Reclaim`]).
    Leaf,
}

impl Use {
    /// All of them.
    pub const ALL: [Use; 4] = [Use::Table, Use::Scratch, Use::Query, Use::Leaf];

    fn wants(self) -> &'static str {
        match self {
            Use::Table => "a table",
            Use::Scratch => "a load",
            Use::Query => "a query",
            Use::Leaf => "a tree",
        }
    }
}

/// A budget in numbers, at one moment. All in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// `memory_limit`.
    pub limit: u64,
    /// Of it, what can be reserved.
    pub reservable: u64,
    /// Reserved under [`Use::Table`].
    pub table: u64,
    /// Reserved under [`Use::Scratch`].
    pub scratch: u64,
    /// Reserved under [`Use::Query`].
    pub query: u64,
    /// Reserved under [`Use::Leaf`].
    pub leaf: u64,
    /// Pages in the pool.
    pub pool: u64,
    /// What the pool may hold now.
    pub pool_max: u64,
    /// What the pool did so far.
    pub counts: PoolCounts,
}

/// Who has reserved what he can do without.
pub trait Reclaim: Send + Sync {
    /// Gives back what was reserved under [`Use::Leaf`], about as many bytes as asked for, if there are; returns how many.
    ///
    /// It is called by whoever needs memory, whatever he has locked beside. So it waits for nobody who may do that.
    fn reclaim(&self, bytes: usize) -> usize;
}

/// See the module.
#[derive(Debug)]
pub struct Budget {
    memory: Mutex<Memory>,
    reclaims: Mutex<Reclaims>,
}

/// Who is asked to give back.
#[derive(Debug, Default)]
struct Reclaims {
    all: Vec<Weak<dyn Reclaim>>,
    /// Who is asked first the next time.
    next: usize,
}

/// Invariant: `used` is the sum over all reservations that there are, by use.
#[derive(Debug)]
struct Memory {
    limit: usize,
    used: [usize; Use::ALL.len()],
    pool: Pool,
    /// The number of the next store that draws on it.
    next_store: u64,
}

impl Memory {
    /// What can be reserved, if the pool holds nothing.
    fn reservable(&self) -> usize {
        self.limit - self.limit / MARGIN_DIVISOR
    }

    /// What is reserved, whatever for.
    fn used(&self) -> usize {
        self.used.iter().fold(0, |all, used| all.saturating_add(*used))
    }

    /// What the pool may hold.
    fn pool_max(&self) -> usize {
        self.reservable().saturating_sub(self.used())
    }

    /// What leaves may hold.
    fn leaf_max(&self) -> usize {
        let left = self.reservable().saturating_sub(self.used() - self.used[Use::Leaf as usize]);
        left - left / LEAF_LEAVES_DIVISOR
    }

    /// How much there is too much for so many bytes more, if the pool holds nothing.
    fn missing(&self, purpose: Use, bytes: usize) -> usize {
        match purpose {
            Use::Leaf => self.used[purpose as usize].saturating_add(bytes).saturating_sub(self.leaf_max()),
            _ => self.used().saturating_add(bytes).saturating_sub(self.reservable()),
        }
    }

    /// What queries may hold, once leaves have given way.
    fn query_max(&self) -> usize {
        let others = self.used[Use::Table as usize].saturating_add(self.used[Use::Scratch as usize]);
        let reservable = self.reservable();
        (reservable - reservable / QUERY_LEAVES_DIVISOR).min(reservable.saturating_sub(others))
    }

    /// Takes bytes, and lets the pool pay.
    fn take(&mut self, purpose: Use, bytes: usize, evicted: &mut Vec<Pinned>) {
        let used = &mut self.used[purpose as usize];
        *used = used.saturating_add(bytes);
        let pool_max = self.pool_max();
        self.pool.evict(pool_max, evicted);
    }

    /// Takes bytes if they are there.
    ///
    /// # Errors
    /// How many are missing that leaves could give back: none, where they cannot help.
    fn try_take(&mut self, purpose: Use, bytes: usize, evicted: &mut Vec<Pinned>) -> std::result::Result<(), usize> {
        if bytes == 0 {
            return Ok(());
        }
        if purpose == Use::Query && bytes > self.query_max().saturating_sub(self.used[purpose as usize]) {
            return Err(0);
        }
        // The pool gives only where that helps.
        let mut missing = self.missing(purpose, bytes);
        if missing == 0 {
            self.take(purpose, bytes, evicted);
            missing = self.pool.bytes().saturating_sub(self.pool_max());
            if missing > 0 {
                self.used[purpose as usize] -= bytes;
            }
        }
        match missing {
            0 => Ok(()),
            missing if missing <= self.used[Use::Leaf as usize] => Err(missing),
            _ => Err(0),
        }
    }

    fn usage(&self) -> Usage {
        let used = |purpose: Use| self.used[purpose as usize] as u64;
        Usage {
            limit: self.limit as u64,
            reservable: self.reservable() as u64,
            table: used(Use::Table),
            scratch: used(Use::Scratch),
            query: used(Use::Query),
            leaf: used(Use::Leaf),
            pool: self.pool.bytes() as u64,
            pool_max: self.pool_max() as u64,
            counts: self.pool.counts(),
        }
    }
}

impl Budget {
    /// A budget of so many bytes, of which nothing is used.
    pub fn new(limit_bytes: usize) -> Arc<Budget> {
        let memory = Memory { limit: limit_bytes, used: [0; Use::ALL.len()], pool: Pool::default(), next_store: 0 };
        Arc::new(Budget { memory: Mutex::new(memory), reclaims: Mutex::default() })
    }

    /// Reserves bytes; dropping the reservation gives them back.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]: others have reserved or pinned too much.
    pub fn reserve(self: &Arc<Budget>, purpose: Use, bytes: usize) -> Result<Reservation> {
        let mut reservation = self.take(purpose, 0);
        reservation.grow(bytes)?;
        Ok(reservation)
    }

    /// Reserves bytes that are used in any case, even beyond the limit.
    pub fn take(self: &Arc<Budget>, purpose: Use, bytes: usize) -> Reservation {
        let mut reservation = Reservation { budget: Arc::clone(self), purpose, bytes: 0 };
        reservation.take(bytes);
        reservation
    }

    /// Sets the limit. The pool keeps to it at once, and leaves do as far as they can; what else is reserved stays so.
    pub fn set_limit(&self, limit_bytes: usize) {
        let missing = self.change(|memory, evicted| {
            memory.limit = limit_bytes;
            memory.take(Use::Scratch, 0, evicted);
            memory.missing(Use::Leaf, 0)
        });
        if missing > 0 {
            self.reclaim(missing);
        }
    }

    /// What could be reserved in all, if nobody had reserved anything.
    pub fn reservable_bytes(&self) -> usize {
        self.memory().reservable()
    }

    /// What all queries together may hold, if the pool holds nothing.
    pub fn query_bytes_max(&self) -> usize {
        self.memory().query_max()
    }

    /// From now on this one is asked to give back, as long as it is there.
    pub fn add_reclaim(&self, reclaim: Weak<dyn Reclaim>) {
        let mut reclaims = self.reclaims();
        reclaims.all.retain(|reclaim| reclaim.strong_count() > 0);
        reclaims.all.push(reclaim);
    }

    /// Has bytes of leaves given back, by one after the other, each time another one first. Returns how many.
    fn reclaim(&self, bytes: usize) -> usize {
        let all: Vec<Arc<dyn Reclaim>> = {
            let mut reclaims = self.reclaims();
            reclaims.all.retain(|reclaim| reclaim.strong_count() > 0);
            reclaims.next = (reclaims.next + 1) % reclaims.all.len().max(1);
            let (later, first) = reclaims.all.split_at(reclaims.next.min(reclaims.all.len()));
            first.iter().chain(later).filter_map(Weak::upgrade).collect()
        };
        all.iter().fold(0, |reclaimed, reclaim| match bytes.saturating_sub(reclaimed) {
            0 => reclaimed,
            missing => reclaimed + reclaim.reclaim(missing),
        })
    }

    /// Who holds what.
    pub fn usage(&self) -> Usage {
        self.memory().usage()
    }

    /// A share of the pool, for one more store.
    pub(crate) fn share(self: &Arc<Budget>) -> PoolShare {
        let mut memory = self.memory();
        memory.next_store += 1;
        PoolShare { budget: Arc::clone(self), store: memory.next_store }
    }

    /// Changes something, and drops what was evicted once the lock is gone.
    fn change<R>(&self, change: impl FnOnce(&mut Memory, &mut Vec<Pinned>) -> R) -> R {
        let mut evicted = Vec::new();
        change(&mut self.memory(), &mut evicted)
    }

    // No step in here can panic half-way but for want of memory for a queue's entry.
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reclaims(&self) -> MutexGuard<'_, Reclaims> {
        self.reclaims.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The pages of one store in the pool, which lets go of them when this is dropped.
#[derive(Debug)]
pub(crate) struct PoolShare {
    budget: Arc<Budget>,
    store: u64,
}

impl PoolShare {
    /// Whose share.
    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    fn pooled(&self, page: PageId) -> PooledPage {
        PooledPage { store: self.store, page }
    }

    /// The page, if this very version of it is in the pool.
    pub(crate) fn page(&self, page: PageId, entry: PageEntry) -> Option<Pinned> {
        self.budget.memory().pool.get(self.pooled(page), entry)
    }

    /// Whether [`PoolShare::page`] would find the page; does not count as a use.
    pub(crate) fn has_page(&self, page: PageId, entry: PageEntry) -> bool {
        self.budget.memory().pool.has(self.pooled(page), entry)
    }

    /// What the whole pool may hold now.
    pub(crate) fn pool_bytes_max(&self) -> usize {
        self.budget.memory().pool_max()
    }

    /// Lets the pool keep a page that was read, if it can.
    pub(crate) fn keep_page(&self, page: PageId, entry: PageEntry, bytes: Pinned, is_ahead: bool) {
        self.budget.change(|memory, evicted| {
            memory.pool.insert(self.pooled(page), entry, bytes, is_ahead);
            let pool_max = memory.pool_max();
            memory.pool.evict(pool_max, evicted);
        });
    }

    /// A page is in another place of the file.
    pub(crate) fn move_page(&self, page: PageId, from: PageEntry, to: PageEntry) {
        self.budget.memory().pool.moved(self.pooled(page), from, to);
    }

    /// Lets go of a page that is no more.
    pub(crate) fn forget_page(&self, page: PageId) {
        self.budget.change(|memory, evicted| evicted.extend(memory.pool.remove(self.pooled(page))));
    }
}

impl Drop for PoolShare {
    fn drop(&mut self) {
        self.budget.change(|memory, evicted| *evicted = memory.pool.remove_store(self.store));
    }
}

/// Bytes of a budget, given back when this is dropped.
pub struct Reservation {
    budget: Arc<Budget>,
    purpose: Use,
    bytes: usize,
}

impl Reservation {
    /// How many bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whose bytes.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// What for.
    pub fn purpose(&self) -> Use {
        self.purpose
    }

    /// Reserves so many bytes more.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`]; it is then as large as before.
    pub fn grow(&mut self, bytes: usize) -> Result<()> {
        let purpose = self.purpose;
        let mut reclaims = 0;
        loop {
            let taken = self.budget.change(|memory, evicted| {
                memory.try_take(purpose, bytes, evicted).map_err(|missing| (missing, memory.usage()))
            });
            let Err((missing, usage)) = taken else { break };
            if missing == 0 || reclaims >= RECLAIMS_MAX {
                return Err(Error::OutOfMemory { wants: purpose.wants(), bytes: bytes as u64, usage: Box::new(usage) });
            }
            // Where it gives nothing, others may have just had it: that is seen the next time, and once more.
            reclaims += if self.budget.reclaim(missing) > 0 { 1 } else { RECLAIMS_MAX / 2 };
        }
        self.bytes += bytes;
        Ok(())
    }

    /// Takes in another one, of the same budget and use.
    ///
    /// # Panics
    /// When it is of another.
    pub fn absorb(&mut self, mut other: Reservation) {
        assert!(Arc::ptr_eq(&self.budget, &other.budget) && self.purpose == other.purpose, "another budget, or use");
        self.bytes += std::mem::take(&mut other.bytes);
    }

    /// Reserves so many bytes more, even beyond the limit.
    pub fn take(&mut self, bytes: usize) {
        let purpose = self.purpose;
        self.budget.change(|memory, evicted| memory.take(purpose, bytes, evicted));
        self.bytes += bytes;
    }

    /// Gives so many bytes back, or all where there are fewer.
    pub fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.budget.memory().used[self.purpose as usize] -= bytes;
    }

    /// Grows or shrinks to so many bytes.
    ///
    /// # Errors
    /// As [`Reservation::grow`].
    pub fn resize(&mut self, bytes: usize) -> Result<()> {
        match bytes.checked_sub(self.bytes) {
            Some(more) => self.grow(more),
            None => {
                self.shrink(self.bytes - bytes);
                Ok(())
            }
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}

impl fmt::Debug for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Reservation({:?}, {} bytes)", self.purpose, self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page_kind::PageKind;
    use proptest::prelude::*;

    fn entry() -> PageEntry {
        PageEntry::new(2, PageKind::CHUNK, 100, 0)
    }

    fn keep(pool: &PoolShare, page: u64) {
        pool.keep_page(PageId(page), entry(), Pinned::from(vec![0; 100]), false);
    }

    #[test]
    fn the_pool_gives_way_and_grows_back() {
        let budget = Budget::new(800);
        let pool = budget.share();
        (0..10).for_each(|page| keep(&pool, page));
        assert_eq!(budget.usage().pool, 700, "an eighth is nobody's");
        let load = budget.reserve(Use::Scratch, 450).unwrap();
        assert_eq!((budget.usage().pool, budget.usage().pool_max), (200, 250));
        let table = budget.take(Use::Table, 1000);
        assert_eq!((budget.usage().pool, budget.usage().table), (0, 1000), "what must be is taken");
        drop((load, table));
        (0..10).for_each(|page| keep(&pool, page));
        assert_eq!(budget.usage().pool, 700);
    }

    #[test]
    fn a_refusal_names_the_limit_who_holds_what_and_the_remedy() {
        let budget = Budget::new(800);
        let pool = budget.share();
        (0..7).for_each(|page| keep(&pool, page));
        let pins: Vec<_> = (0..3).filter_map(|page| pool.page(PageId(page), entry())).collect();
        let _batch = budget.take(Use::Table, 50);
        let mut load = budget.reserve(Use::Scratch, 300).unwrap();
        let error = load.grow(51).unwrap_err().to_string();
        assert_eq!(
            error,
            "out of memory: a load wants 51 bytes more; memory_limit is 800 bytes, of which 700 can be reserved: tables \
             hold 50, loads 300, queries 0, trees 0, pages 300; raise memory_limit, or do less at once"
        );
        assert_eq!(load.bytes(), 300);
        load.grow(50).unwrap();
        drop(pins);
        load.grow(300).unwrap();
    }

    #[test]
    fn queries_leave_a_part_to_loads() {
        let budget = Budget::new(800);
        assert!(budget.reserve(Use::Query, 526).is_err());
        let _query = budget.reserve(Use::Query, 525).unwrap();
        assert!(budget.reserve(Use::Query, 1).is_err());
        budget.reserve(Use::Scratch, 175).unwrap();
    }

    /// Holds leaves of a budget, and gives them back.
    struct Leaves {
        held: Mutex<Reservation>,
        is_stubborn: bool,
    }

    impl Leaves {
        fn new(budget: &Arc<Budget>, is_stubborn: bool) -> Arc<Leaves> {
            let leaves = Arc::new(Leaves { held: Mutex::new(budget.take(Use::Leaf, 0)), is_stubborn });
            let weak = Arc::downgrade(&leaves);
            budget.add_reclaim(weak);
            leaves
        }

        fn bytes(&self) -> usize {
            self.held.lock().unwrap().bytes()
        }

        /// As trees do: nothing is locked that [`Reclaim::reclaim`] locks.
        fn grow(&self, budget: &Arc<Budget>, bytes: usize) -> Result<()> {
            let more = budget.reserve(Use::Leaf, bytes)?;
            self.held.lock().unwrap().absorb(more);
            Ok(())
        }
    }

    impl Reclaim for Leaves {
        fn reclaim(&self, bytes: usize) -> usize {
            let mut held = self.held.lock().unwrap();
            let bytes = if self.is_stubborn { 0 } else { bytes.next_multiple_of(50).min(held.bytes()) };
            held.shrink(bytes);
            bytes
        }
    }

    #[test]
    fn leaves_give_way_to_all_others_and_to_each_other() {
        let budget = Budget::new(800);
        let pool = budget.share();
        let trees = [Leaves::new(&budget, false), Leaves::new(&budget, false), Leaves::new(&budget, true)];
        trees[0].grow(&budget, 500).unwrap();
        (0..10).for_each(|page| keep(&pool, page));
        assert_eq!((budget.usage().leaf, budget.usage().pool), (500, 200), "a quarter stays the pool's");
        trees[1].grow(&budget, 100).unwrap();
        assert_eq!([trees[0].bytes(), trees[1].bytes()], [400, 100]);
        let load = budget.reserve(Use::Scratch, 300).unwrap();
        assert_eq!((budget.usage().leaf, budget.usage().pool), (400, 0), "the pool gives first");
        assert!(trees[1].grow(&budget, 10).is_ok() && budget.usage().leaf <= 300, "three quarters of what is left");
        drop(load);
        let query = budget.reserve(Use::Query, 525).unwrap();
        assert!(budget.usage().leaf <= 175, "{:?}", budget.usage());
        drop(query);
        let before = trees[0].bytes() + trees[1].bytes();
        trees[2].grow(&budget, 525 - before).unwrap();
        assert!(budget.reserve(Use::Scratch, 701).is_err());
        assert_eq!(trees[0].bytes() + trees[1].bytes(), before, "nothing is given in vain");
        let error = budget.reserve(Use::Scratch, 700).unwrap_err().to_string();
        assert!(error.contains(&format!("trees {}", trees[2].bytes())), "{error}");
        drop(trees);
        budget.reserve(Use::Scratch, 700).unwrap();
    }

    #[test]
    fn a_new_limit_holds_at_once() {
        let budget = Budget::new(800);
        let pool = budget.share();
        (0..7).for_each(|page| keep(&pool, page));
        budget.set_limit(400);
        assert_eq!((budget.usage().pool, budget.usage().reservable), (300, 350));
        let tree = Leaves::new(&budget, false);
        tree.grow(&budget, 250).unwrap();
        budget.set_limit(160);
        assert_eq!(tree.bytes(), 100, "three quarters of 140, in fifties");
        budget.set_limit(0);
        assert_eq!((budget.usage().pool, budget.usage().leaf), (0, 0));
        assert!(budget.reserve(Use::Query, 1).is_err());
    }

    #[test]
    fn what_is_left_of_a_limit_is_shared_by_all_stores() {
        let budget = Budget::new(800);
        let pools = [budget.share(), budget.share()];
        (0..4).for_each(|page| pools.iter().for_each(|pool| keep(pool, page)));
        assert_eq!(budget.usage().pool, 700);
        let [first, second] = pools;
        assert!(first.page(PageId(3), entry()).is_some() && second.page(PageId(3), entry()).is_some());
        drop(first);
        assert_eq!(budget.usage().pool, 400, "a store that is gone leaves nothing behind");
    }

    proptest! {
        /// Against a list of sizes: what is used is the sum, the pool never stands in the way of a reservation that
        /// fits, and reservations that were granted keep to the limit.
        #[test]
        fn agrees_with_a_model(steps in prop::collection::vec((0usize..6, 0usize..3, 0usize..400), 1..80)) {
            let budget = Budget::new(1600);
            let pool = budget.share();
            let mut held: Vec<Reservation> = Vec::new();
            let mut page = 0;
            for (step, which, bytes) in steps {
                let sum = |held: &[Reservation]| held.iter().map(Reservation::bytes).sum::<usize>();
                let before = sum(&held);
                let queries = budget.usage().query as usize;
                let fits = |more: usize, purpose: Use| match purpose {
                    _ if more == 0 => true,
                    Use::Query if queries + more > 1050 => false,
                    _ => before + more <= 1400,
                };
                match step {
                    0 | 1 => {
                        let granted = budget.reserve(Use::ALL[which], bytes);
                        prop_assert_eq!(granted.is_ok(), fits(bytes, Use::ALL[which]));
                        held.extend(granted);
                    }
                    2 if !held.is_empty() => drop(held.swap_remove(bytes % held.len())),
                    3 if !held.is_empty() => {
                        let at = which % held.len();
                        let (was, purpose) = (held[at].bytes(), held[at].purpose);
                        let resized = held[at].resize(bytes).is_ok();
                        let more = bytes.saturating_sub(was);
                        prop_assert_eq!(resized, fits(more, purpose));
                        prop_assert_eq!(held[at].bytes(), if resized { bytes } else { was });
                    }
                    _ => {
                        page += 1;
                        keep(&pool, page);
                    }
                }
                let usage = budget.usage();
                prop_assert_eq!((usage.table + usage.scratch + usage.query) as usize, sum(&held));
                prop_assert!(usage.pool <= usage.pool_max && usage.pool_max as usize <= 1400 - sum(&held));
            }
            held.clear();
            let usage = budget.usage();
            prop_assert_eq!((usage.table, usage.scratch, usage.query, usage.pool_max), (0, 0, 0, 1400));
        }
    }
}
