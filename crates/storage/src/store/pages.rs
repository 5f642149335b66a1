//! Writing, reading and freeing pages.

use std::io;
use std::ops::Range;
use std::path::Path;

use super::page_table::Fresh;
use super::{Mode, Store};
use crate::budget::Use;
use crate::error::{Error, Result, failed};
use crate::fs::File;
use crate::ids::{CommitNumber, Extent, PageId, UNIT_BYTES, units_for};
use crate::map::{NODE_BYTES, PageEntry};
use crate::page;
use crate::page_kind::PageKind;
use crate::pin::Pinned;
use crate::sync::atomic::Ordering;

/// A file grows by an eighth of its length, so that growing is rare and the file is not much too large...
const GROWTH_DIVISOR: u64 = 8;
/// ... by at least 64 KiB, so that small databases stay small ...
const GROWTH_UNITS_MIN: u64 = (64 << 10) / UNIT_BYTES as u64;
/// ... and at most 64 MiB.
const GROWTH_UNITS_MAX: u64 = (64 << 20) / UNIT_BYTES as u64;

pub(super) const ZEROS: [u8; UNIT_BYTES] = [0; UNIT_BYTES];

impl Store {
    /// Writes a new page at once, to a place of its own, and returns its id. The page can be pinned from now on.
    ///
    /// Nothing is synced. Until a commit names the page, or a checkpoint keeps it, it vanishes at a crash and at the
    /// close; give it back with [`Store::free`] if it is not going to be committed.
    ///
    /// # Errors
    /// [`Error::TooLarge`] beyond [`page::PAYLOAD_BYTES_MAX`]; [`Error::DiskFull`], [`Error::Io`], in memory
    /// [`Error::OutOfMemory`]: nothing was written.
    pub fn write_page(&self, kind: PageKind, payload: &[u8]) -> Result<PageId> {
        self.check_writable()?;
        if self.mode == Mode::Memory {
            // Whether there is room. Whoever gets a handle of the page takes the memory.
            drop(self.budget().reserve(Use::Table, payload.len())?);
        }
        let page = self.new_page_id();
        let entry = self.write_entry(page, kind, payload)?;
        let write = self.data_writes.load(Ordering::Acquire);
        self.pages_mut().fresh.insert(page, Fresh { entry, write });
        Ok(page)
    }

    /// The page's payload, from the buffer pool or the file.
    ///
    /// # Errors
    /// [`Error::NoSuchPage`]; [`Error::DamagedPage`] if the bytes in the file are not those that were written;
    /// [`Error::Io`].
    pub fn pin(&self, page: PageId) -> Result<Pinned> {
        self.payload(page, |page, entry| self.read_once(page, entry))
    }

    /// The same for whoever makes something else of it that he keeps: the pool does not keep the page for him.
    ///
    /// # Errors
    /// As [`Store::pin`].
    pub fn pin_past_pool(&self, page: PageId) -> Result<Pinned> {
        self.payload(page, |page, entry| self.whole_page(page, entry))
    }

    fn payload(&self, page: PageId, read: impl Fn(PageId, PageEntry) -> Result<Pinned>) -> Result<Pinned> {
        loop {
            let entry = self.entry(page)?;
            let whole = match self.mode {
                Mode::Memory => self.data.read_shared(entry.offset(), entry.bytes as usize),
                _ => match read(page, entry) {
                    Ok(whole) => Ok(whole),
                    // The page moved while it was read, and its old place was given to another.
                    Err(_) if self.entry(page)? != entry => continue,
                    Err(error) => return Err(error),
                },
            };
            let whole = whole.map_err(failed(&self.path, "reading a page"))?;
            return Ok(whole.slice(page::HEADER_BYTES..whole.len()));
        }
    }

    /// A page with its header, checked, to be copied: from the pool if it is there, else past it.
    pub(super) fn whole_page(&self, page: PageId, entry: PageEntry) -> Result<Pinned> {
        match self.pool.page(page, entry) {
            Some(whole) => Ok(whole),
            None => read_page(&*self.data, &self.path, page, entry),
        }
    }

    /// What the page holds.
    ///
    /// # Errors
    /// [`Error::NoSuchPage`].
    pub fn kind_of(&self, page: PageId) -> Result<PageKind> {
        Ok(self.entry(page)?.kind())
    }

    /// Gives a page up. Who has it pinned keeps its bytes; an id that is not known is passed over, so that replay may
    /// free twice.
    ///
    /// This is not logged: after a crash, replaying the record by which the page became superfluous must free it again.
    ///
    /// In a poisoned store it does nothing: a commit whose fate nobody knows may name the page, and nobody else may get
    /// its place.
    pub fn free(&self, page: PageId) {
        let mut table = self.pages_mut();
        if self.poisoned().is_some() {
            return;
        }
        match table.fresh.remove(&page) {
            Some(fresh) => table.release(fresh.entry.extent(), &*self.data),
            None => table.replace(page, PageEntry::ABSENT, &*self.data),
        }
        drop(table);
        self.pool.forget_page(page);
    }

    pub(super) fn entry(&self, page: PageId) -> Result<PageEntry> {
        self.check_open()?;
        let table = self.pages();
        table.get(page).ok_or_else(|| match table.lost.iter().find(|lost| lost.pages.contains(&page.0)) {
            Some(lost) => {
                let (path, offset, kind) = (self.path.clone(), lost.node_offset, PageKind::MAP_NODE);
                Error::DamagedPage { path, page: None, kind, offset, what: format!("it says where page {page} is") }
            }
            None => Error::NoSuchPage { path: self.path.clone(), page },
        })
    }

    pub(crate) fn new_page_id(&self) -> PageId {
        let mut pages = self.pages_mut();
        let page = pages.next_page;
        pages.next_page = PageId(page.0 + 1);
        page
    }

    /// Writes a page's bytes to a free place. Nothing names it yet.
    pub(crate) fn write_entry(&self, page: PageId, kind: PageKind, payload: &[u8]) -> Result<PageEntry> {
        let (header, checksum) = page_header(page, kind, self.last_commit(), payload)?;
        let bytes = header.len() + payload.len();
        let extent = self.write_to_free_place(&[&header, payload], bytes)?;
        Ok(PageEntry::new(extent.place, kind, bytes as u32, checksum))
    }

    /// Writes bytes to a free place, which is released again if that fails.
    pub(crate) fn write_to_free_place(&self, parts: &[&[u8]], bytes: usize) -> Result<Extent> {
        let extent = self.allocate(units_for(bytes as u64))?;
        self.write_to(extent, parts, bytes)?;
        Ok(extent)
    }

    /// Writes bytes to a place that was allocated, and is released again if that fails.
    pub(super) fn write_to(&self, extent: Extent, parts: &[&[u8]], bytes: usize) -> Result<()> {
        // On disk the last unit is filled up with zeros, so that the file depends on nothing but its contents.
        let padding = match self.mode {
            Mode::Memory => &[],
            _ => &ZEROS[..extent.units as usize * UNIT_BYTES - bytes],
        };
        let parts = [parts, &[padding]].concat();
        let written = self.data.write_at(extent.place * UNIT_BYTES as u64, &parts);
        // Only now: a sync that is under way need not have seen these bytes.
        self.data_writes.fetch_add(1, Ordering::AcqRel);
        if let Err(error) = written {
            self.pages_mut().release(extent, &*self.data);
            return Err(failed(&self.path, "writing a page")(error));
        }
        Ok(())
    }

    /// Takes free units, and lets the file grow where there are none.
    fn allocate(&self, units: u64) -> Result<Extent> {
        self.overwrite_rejected_header()?;
        let mut pages = self.pages_mut();
        if let Some(extent) = pages.space.allocate(units) {
            return Ok(extent);
        }
        let end = pages.space.end();
        let step = growth_units(end).max(units);
        self.data.set_length((end + step) * UNIT_BYTES as u64).map_err(failed(&self.path, "letting the file grow"))?;
        // Counts as a write: a checkpoint's header may say how long the file is only once that is durable.
        self.data_writes.fetch_add(1, Ordering::AcqRel);
        pages.space.extend_to(end + step);
        pages
            .space
            .allocate(units)
            .ok_or_else(|| Error::DiskFull { path: self.path.clone(), during: "letting the file grow" })
    }
}

/// The header of a page with this payload, and the checksum in it.
pub(super) fn page_header(
    page: PageId,
    kind: PageKind,
    commit: CommitNumber,
    payload: &[u8],
) -> Result<([u8; page::HEADER_BYTES], u32)> {
    if payload.len() > page::PAYLOAD_BYTES_MAX {
        let (bytes, bytes_max) = (payload.len() as u64, page::PAYLOAD_BYTES_MAX as u64);
        return Err(Error::TooLarge { what: "a page", bytes, bytes_max });
    }
    Ok(page::header(page, kind, commit, payload))
}

/// By how many units a file of this length grows.
pub(super) fn growth_units(end: u64) -> u64 {
    (end / GROWTH_DIVISOR).clamp(GROWTH_UNITS_MIN, GROWTH_UNITS_MAX)
}

/// Reads a page, header included, and checks that it is the one that its map entry describes.
pub(super) fn read_page(data: &dyn File, path: &Path, page: PageId, entry: PageEntry) -> Result<Pinned> {
    let damaged = |what: String| {
        let (path, offset) = (path.to_path_buf(), entry.offset());
        Error::DamagedPage { path, page: Some(page), kind: entry.kind(), offset, what }
    };
    let whole = data.read_shared(entry.offset(), entry.bytes as usize).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => damaged("the file ends before it does".to_string()),
        _ => failed(path, "reading a page")(error),
    })?;
    page::verify(&whole, page, entry.kind(), entry.checksum).map_err(damaged)?;
    Ok(whole)
}

/// Reads a node of the page map, which covers `ids`.
pub(super) fn read_node(data: &dyn File, path: &Path, entry: PageEntry, ids: Range<u64>) -> Result<Vec<u8>> {
    let mut bytes = vec![0; NODE_BYTES];
    let read = data.read_at(entry.offset(), &mut bytes);
    let computed = crc32c::crc32c(&bytes);
    let what = match read {
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
            return Err(failed(path, "reading the page map")(error));
        }
        Err(_) => "the file ends before it does".to_string(),
        Ok(()) if computed == entry.checksum => return Ok(bytes),
        Ok(()) => format!("checksum {:08x}, of the bytes {computed:08x}", entry.checksum),
    };
    let what = format!("{what}; it holds the places of pages {} to {}", ids.start, ids.end - 1);
    let (path, offset) = (path.to_path_buf(), entry.offset());
    Err(Error::DamagedPage { path, page: None, kind: PageKind::MAP_NODE, offset, what })
}
