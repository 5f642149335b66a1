//! From the file into the pool: each page once, whoever asks for it, and before it is needed where that is known.
//!
//! A scan says which pages it is going to pin ([`Store::read_ahead`]); two threads read them beside it. So a scan takes
//! about as long as its reading or its work, whichever is longer, and not both one after the other. Who pins a page that
//! is just being read waits for that instead of reading it again.
//!
//! What is wanted waits in a queue that holds no more than a part of what the pool may hold: more would push out what
//! was read and not yet used. Nobody waits for room in it; who is refused reads for himself when the time comes.

use crate::sync::thread::{self, JoinHandle};
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::collections::{HashSet, VecDeque};

use super::pages::read_page;
use super::{Mode, Store};
use crate::error::Result;
use crate::ids::PageId;
use crate::map::PageEntry;
use crate::pin::Pinned;

/// Enough for a disk to have the next request while it serves one, and for checksums beside it.
const THREADS: usize = 2;

/// Pages that wait to be read ahead take up to this part of the pool: half of what the pool gives to pages that are new.
const POOL_DIVISOR: usize = 8;

/// Pages that are being read.
#[derive(Debug, Default)]
pub(super) struct Reads {
    pages: Mutex<HashSet<PageId>>,
    /// Told whenever one has been read.
    done: Condvar,
}

/// The right to read a page, which nobody else has meanwhile.
struct Turn<'a> {
    reads: &'a Reads,
    page: PageId,
}

impl Reads {
    fn pages(&self) -> MutexGuard<'_, HashSet<PageId>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` if somebody else reads the page.
    fn begin(&self, page: PageId) -> Option<Turn<'_>> {
        let is_mine = self.pages().insert(page);
        is_mine.then(|| Turn { reads: self, page })
    }

    /// Waits while somebody reads the page.
    fn wait(&self, page: PageId) {
        let mut pages = self.pages();
        while pages.contains(&page) {
            pages = self.done.wait(pages).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.reads.pages().remove(&self.page);
        self.reads.done.notify_all();
    }
}

/// A wish to have pages read. Dropping it takes back what was not begun.
#[derive(Debug)]
pub struct ReadAhead(#[expect(dead_code, reason = "only held")] Arc<()>);

#[derive(Debug)]
struct Wanted {
    page: PageId,
    bytes: usize,
    /// Nobody wants it any more when this is gone.
    wish: Weak<()>,
}

/// The queue and the threads behind [`Store::read_ahead`], which are there from the first call to the close.
#[derive(Debug, Default)]
pub(super) struct ReadAheadThreads {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Queue {
    wanted: VecDeque<Wanted>,
    /// Of all that are wanted, and of those that are being read.
    bytes: usize,
    is_running: bool,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What to read next; `None` at the end.
    fn next(&self) -> Option<Wanted> {
        let mut queue = self.queue();
        loop {
            if !queue.is_running {
                return None;
            }
            match queue.wanted.pop_front() {
                Some(wanted) if wanted.wish.strong_count() > 0 => return Some(wanted),
                Some(wanted) => queue.bytes -= wanted.bytes,
                None => queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Reads what is wanted until there is no store, or the end.
    fn serve(&self, store: &Weak<Store>) {
        while let Some(wanted) = self.next() {
            let Some(store) = store.upgrade() else { return };
            store.read_before_pin(wanted.page);
            drop(store);
            self.queue().bytes -= wanted.bytes;
        }
    }
}

impl ReadAheadThreads {
    fn threads(&self) -> MutexGuard<'_, Vec<JoinHandle<()>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the threads, unless they run. Without them nothing is read ahead.
    fn start(&self, store: &Arc<Store>) {
        let mut threads = self.threads();
        if !threads.is_empty() {
            return;
        }
        self.shared.queue().is_running = true;
        for _ in 0..THREADS {
            let (shared, store) = (Arc::clone(&self.shared), Arc::downgrade(store));
            let named = thread::Builder::new().name("sinter read-ahead".to_owned());
            threads.extend(named.spawn(move || shared.serve(&store)));
        }
    }

    /// Forgets what is wanted, and waits until the threads have ended.
    pub(super) fn stop(&self) {
        {
            let mut queue = self.shared.queue();
            let forgotten: usize = queue.wanted.drain(..).map(|wanted| wanted.bytes).sum();
            queue.bytes -= forgotten;
            queue.is_running = false;
        }
        self.shared.changed.notify_all();
        for thread in std::mem::take(&mut *self.threads()) {
            // The last handle on a store may be dropped by one of them.
            if thread.thread().id() != thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

impl Drop for ReadAheadThreads {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Store {
    /// Has pages read into the pool, in this order, before they are pinned; as long as what is returned is held. Those
    /// that are there already, or that the pool could not hold until they are needed, are passed over, and so are those
    /// that cannot be read: who pins one gets the error. `None` where there is nothing to read, such as in memory.
    pub fn read_ahead(self: &Arc<Store>, pages: &[PageId]) -> Option<ReadAhead> {
        if self.mode == Mode::Memory {
            return None;
        }
        let mut missing = Vec::new();
        for &page in pages {
            let entry = self.entry(page).ok()?;
            if !self.pool.has_page(page, entry) {
                missing.push((page, entry.bytes as usize));
            }
        }
        if missing.is_empty() {
            return None;
        }
        let bytes_max = self.pool.pool_bytes_max() / POOL_DIVISOR;
        self.read_ahead.start(self);
        let wish = Arc::new(());
        {
            let mut queue = self.read_ahead.shared.queue();
            for (page, bytes) in missing {
                let is_queued = |wanted: &Wanted| wanted.page == page && wanted.wish.strong_count() > 0;
                if queue.bytes + bytes > bytes_max || queue.wanted.iter().any(is_queued) {
                    continue;
                }
                queue.bytes += bytes;
                queue.wanted.push_back(Wanted { page, bytes, wish: Arc::downgrade(&wish) });
            }
        }
        self.read_ahead.shared.changed.notify_all();
        Some(ReadAhead(wish))
    }

    /// The page from the pool, or from the file, checked; then the pool keeps it. If somebody reads it just now, waits
    /// for that.
    pub(super) fn read_once(&self, page: PageId, entry: PageEntry) -> Result<Pinned> {
        loop {
            if let Some(whole) = self.pool.page(page, entry) {
                return Ok(whole);
            }
            let Some(turn) = self.reads.begin(page) else {
                self.reads.wait(page);
                continue;
            };
            // Somebody may have had the turn before.
            if !self.pool.has_page(page, entry) {
                return self.read_in_turn(&turn, entry, false);
            }
        }
    }

    /// Reads a page that nobody waits for yet. What fails here fails for whoever pins it, too.
    fn read_before_pin(&self, page: PageId) {
        let Ok(entry) = self.entry(page) else { return };
        if let Some(turn) = self.reads.begin(page)
            && !self.pool.has_page(page, entry)
        {
            let _ = self.read_in_turn(&turn, entry, true);
        }
    }

    fn read_in_turn(&self, turn: &Turn<'_>, entry: PageEntry, is_ahead: bool) -> Result<Pinned> {
        let whole = read_page(&*self.data, &self.path, turn.page, entry)?;
        self.pool.keep_page(turn.page, entry, whole.clone(), is_ahead);
        Ok(whole)
    }
}
