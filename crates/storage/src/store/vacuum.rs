//! Making the file as small as what is in it.
//!
//! Only what is free at the file's end can be given back. So pages that lie behind the place at which the file would end,
//! were nothing free, are copied into free places before it. The page map gives a page its place; nobody who names a page
//! notices.
//!
//! A move is a copy, a sync, and then a new entry in the map: what the map names is durable, so a log may name it there. The
//! old place is retired, like that of a page that was freed: as long as a header copy or a log may name it, it stays as it
//! is, and a crash before the next checkpoint finds the page there. It returns with the second checkpoint from then on.
//! Readers who come late to the old place find that the page is elsewhere.
//!
//! Fresh pages stay where they are: they are given away soon, by a commit or for good. Nodes of the map are not copied; those
//! behind the end are written anew by the next checkpoint.
//!
//! A page that cannot be read stays where it is, as it is, whether its bytes are damaged or the disk does not give them: a
//! copy would either be damaged, too, or pass wrong bytes off as right ones. The file then ends behind it at best, so what
//! lies before it need not move. It is remembered until the next vacuum, which looks again: what lies free before such a page
//! makes no vacuum due. If the pool still has the page whole, it is copied from there, and is well again.
//!
//! A large file takes long. Between two batches whoever asked for the vacuum is asked in turn: it may make checkpoints there,
//! do what else is waiting, or end the vacuum.

use std::cmp::Reverse;
use std::ops::ControlFlow;

use super::{Mode, Store};
use crate::error::{Error, Result};
use crate::ids::{PageId, UNIT_BYTES};
use crate::map::PageEntry;

/// A vacuum that nobody asked for is worth it from here on...
const DUE_BYTES_MIN: u64 = 16 << 20;
/// ... if it is this part of the file, too.
const DUE_DIVISOR: u64 = 4;

/// Pages are copied in batches of about so many bytes, with a sync each. A checkpoint waits no longer than for one.
const BATCH_BYTES: u64 = 16 << 20;
/// The same for small pages: their entries change under one lock.
const BATCH_PAGES: usize = 1024;
/// So many are looked at for one batch, if there is no place for most.
const BATCH_PAGES_SEEN: usize = 16 * BATCH_PAGES;

/// After so many rounds, others write as fast as pages are moved.
const ROUNDS_MAX: usize = 8;

/// Which free places a page may move to.
#[derive(Debug, Clone, Copy)]
enum Below {
    /// Those before the place at which the file is to end.
    End(u64),
    /// Any before the page's own. The first page that stays is the last: the file cannot be cut before it.
    Itself,
}

/// What became of a page that was to be copied.
#[derive(Debug, Clone, Copy)]
enum Copied {
    /// It is in this place, too, of which nobody knows yet.
    To(PageEntry),
    /// There is no place for it.
    NoPlace,
    /// Its bytes are not those that were written, or the disk does not give them.
    Unreadable,
    /// It is elsewhere by now, or no more.
    Gone,
}

/// How far a vacuum has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VacuumProgress {
    /// Bytes of pages that were moved, or found to stay.
    pub bytes_done: u64,
    /// Bytes of pages that lie, or lay, behind the place at which the file is to end. It grows, as more is found to move.
    pub bytes_total: u64,
}

/// A vacuum under way, and who is told of it.
struct Mover<'a> {
    store: &'a Store,
    between: &'a mut dyn FnMut(VacuumProgress) -> ControlFlow<()>,
    progress: VacuumProgress,
}

impl Store {
    /// Whether a [`Store::vacuum`] would give back so much that it is worth it without being asked for: more than a
    /// quarter of the file, and more than 16 MiB. `dead_bytes` of pages that are there hold nothing that anybody wants, and
    /// would be freed before. What lies before a page that the last vacuum could not move, since it cannot be read, does not
    /// count as long as that page is there. Cheap enough to ask after every commit.
    pub fn is_vacuum_due(&self, dead_bytes: u64) -> bool {
        let table = self.pages();
        let end = table.space.end();
        let superfluous_units = end.saturating_sub(table.packed_end(dead_bytes / UNIT_BYTES as u64));
        let is_much = superfluous_units * UNIT_BYTES as u64 > DUE_BYTES_MIN;
        is_much && superfluous_units > end / DUE_DIVISOR && self.mode == Mode::Durable
    }

    /// How many pages the last [`Store::vacuum`] left where they were, since they cannot be read.
    pub fn unmovable_page_count(&self) -> usize {
        self.pages().unmovable_pages().count()
    }

    /// Makes the file as small as the pages in it, as far as they fit into the gaps between them. Others read, write and
    /// commit meanwhile, and make checkpoints, which wait for a batch of pages at most. Pages that cannot be read stay where
    /// they are, and what is before the last of them is not given back; [`Store::check`] names them.
    ///
    /// `between` is called before each batch of pages, and at the end, with no lock held: it may commit and make checkpoints,
    /// and by breaking off it ends the vacuum.
    ///
    /// `checkpoint` makes a checkpoint, in whatever way the rooms above do it; it is called at first, and as often as
    /// needed: what was moved leaves its old place free after two. Its error ends the vacuum. In memory there is nothing
    /// to do, and neither is called.
    ///
    /// # Errors
    /// Those of `checkpoint`; [`Error::GivenUp`] by `between`; [`Error::DiskFull`], [`Error::Io`] of writing: what was moved
    /// until then stays moved, all else stays where it was, and the store goes on. After a failed sync it is poisoned.
    pub fn vacuum<E: From<Error>>(
        &self,
        between: &mut dyn FnMut(VacuumProgress) -> ControlFlow<()>,
        mut checkpoint: impl FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        self.check_writable()?;
        if self.mode == Mode::Memory {
            return Ok(());
        }
        // The disk may have come to its senses.
        self.pages_mut().unmovable.clear();
        checkpoint()?;
        let mut mover = Mover { store: self, between, progress: VacuumProgress::default() };
        let mut rounds_idle = 0;
        for round in 0..ROUNDS_MAX {
            // What each checkpoint writes anew may move in each round.
            let is_late = rounds_idle > 0 || round >= ROUNDS_MAX / 2;
            rounds_idle = if mover.move_down(is_late)? { 0 } else { rounds_idle + 1 };
            mover.tell()?;
            {
                let _turn = self.checkpoint_turn();
                self.check_writable()?;
                self.cut_free_end()?;
            }
            // By now two checkpoints have been written since the last move: what it left is free, and nothing fits there.
            if rounds_idle == 2 {
                break;
            }
            checkpoint()?;
        }
        Ok(())
    }

    /// Moves some of the first pages of `rest`, and takes them from it.
    fn move_batch(&self, rest: &mut &[(PageId, PageEntry)], below: Below) -> Result<bool> {
        // No checkpoint writes a page, or its map, while the page moves.
        let _turn = self.checkpoint_turn();
        self.check_writable()?;
        self.overwrite_rejected_header()?;
        let (mut moves, mut bytes, mut seen) = (Vec::new(), 0, 0);
        let mut copied = Ok(());
        while let Some((&(page, from), others)) = rest.split_first()
            && bytes < BATCH_BYTES
            && moves.len() < BATCH_PAGES
            && seen < BATCH_PAGES_SEEN
        {
            *rest = others;
            seen += 1;
            match self.copy_down(page, from, below) {
                Ok(Copied::To(to)) => {
                    moves.push((page, from, to));
                    bytes += u64::from(from.bytes);
                }
                Ok(Copied::NoPlace | Copied::Unreadable) if matches!(below, Below::Itself) => *rest = &[],
                // A disk may try for seconds before it says that it cannot.
                Ok(Copied::Unreadable) => seen = BATCH_PAGES_SEEN,
                Ok(Copied::NoPlace | Copied::Gone) => {}
                Err(error) => {
                    copied = Err(error);
                    break;
                }
            }
        }
        let copied = copied.and_then(|()| self.sync_data());
        let mut has_moved = false;
        let mut table = self.pages_mut();
        for (page, from, to) in moves {
            // It may have been freed meanwhile.
            if copied.is_ok() && table.map.get(page) == Some(from) {
                table.replace(page, to, &*self.data);
                self.pool.move_page(page, from, to);
                has_moved = true;
            } else {
                table.release(to.extent(), &*self.data);
            }
        }
        copied.map(|()| has_moved)
    }

    /// Copies a page to a free place, or notes that it cannot be read.
    fn copy_down(&self, page: PageId, from: PageEntry, below: Below) -> Result<Copied> {
        let end = match below {
            Below::End(end) => end,
            Below::Itself => from.extent().place,
        };
        let extent = {
            let mut table = self.pages_mut();
            if table.map.get(page) != Some(from) {
                return Ok(Copied::Gone);
            }
            table.space.allocate_below(from.extent().units, end)
        };
        let Some(extent) = extent else { return Ok(Copied::NoPlace) };
        match self.whole_page(page, from) {
            Ok(whole) => {
                self.write_to(extent, &[&whole], whole.len())?;
                Ok(Copied::To(PageEntry::new(extent.place, from.kind(), from.bytes, from.checksum)))
            }
            Err(_) => {
                let mut table = self.pages_mut();
                table.release(extent, &*self.data);
                table.unmovable.insert(from.extent().place, (page, from));
                Ok(Copied::Unreadable)
            }
        }
    }

    /// Lets the next checkpoint write the nodes anew that lie behind `end`, if there is room for them before it.
    fn move_nodes(&self, end: u64) -> Result<bool> {
        let _turn = self.checkpoint_turn();
        self.check_writable()?;
        let mut table = self.pages_mut();
        let mut nodes_behind = 0;
        table.map.for_each_stored_node(&mut |entry| nodes_behind += u64::from(entry.extent().end() > end));
        if nodes_behind == 0 || table.space.free_units_below(end) < nodes_behind {
            return Ok(false);
        }
        let mut given_up = Vec::new();
        table.map.forget_nodes_behind(end, &mut given_up);
        table.give_up(&given_up, &*self.data);
        table.is_changed = true;
        Ok(true)
    }
}

impl Mover<'_> {
    /// Moves what lies behind the place at which the file could end. Returns whether there was something. Once it `is_late`,
    /// a little further down is better than nothing for what does not fit before.
    fn move_down(&mut self, is_late: bool) -> Result<bool> {
        let (map, end) = {
            let table = self.store.pages();
            (table.map.clone(), table.packed_end(0))
        };
        let mut behind = Vec::new();
        map.for_each_page(&mut |page, entry| {
            if entry.extent().end() > end {
                behind.push((page, entry));
            }
        });
        drop(map);
        // The largest first: the small ones find a place last, too.
        behind.sort_by_key(|(_, entry)| Reverse((entry.extent().units, entry.extent().place)));
        let mut has_moved = self.move_pages(&behind, Below::End(end))?;
        has_moved |= self.store.move_nodes(end)?;
        if is_late {
            behind.sort_by_key(|(_, entry)| Reverse(entry.extent().place));
            has_moved |= self.move_pages(&behind, Below::Itself)?;
        }
        Ok(has_moved)
    }

    fn move_pages(&mut self, pages: &[(PageId, PageEntry)], below: Below) -> Result<bool> {
        let bytes_of =
            |pages: &[(PageId, PageEntry)]| pages.iter().map(|(_, entry)| u64::from(entry.bytes)).sum::<u64>();
        self.progress.bytes_total += bytes_of(pages);
        let (mut rest, mut has_moved) = (pages, false);
        while !rest.is_empty() {
            self.tell()?;
            let before = rest;
            has_moved |= self.store.move_batch(&mut rest, below)?;
            self.progress.bytes_done += bytes_of(&before[..before.len() - rest.len()]);
        }
        Ok(has_moved)
    }

    fn tell(&mut self) -> Result<()> {
        match (self.between)(self.progress) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Error::GivenUp { path: self.store.path.clone() }),
        }
    }
}
