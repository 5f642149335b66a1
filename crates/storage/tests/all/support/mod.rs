//! A small room above storage, and the model that says what it must hold.
//!
//! [`Shelf`] is what every upper room is in miniature: state in memory, changed by log records, written whole at a
//! checkpoint, and rebuilt from the root page and the transactions. It has numbered slots (records) and pages on the
//! side (references).

pub(crate) mod slow_disk;

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rand::rngs::SmallRng;
use rand::{Rng, RngCore, SeedableRng};
use sinter_storage::log::{FRAME_HEADER_BYTES, HEADER_BYTES};
use sinter_storage::testing::CrashingFileSystem;
use sinter_storage::{
    CheckpointWriter, CommitNumber, Error, FileSystem, ObjectId, Options, PageId, PageKind, Record, RecordTag,
    Recovery, Result, Store, Transaction,
};

pub(crate) const PATH: &str = "shop.sinter";

/// Stands in the root instead of a page's seed.
const IS_REWRITTEN: u64 = u64::MAX;

/// The state: slots with values, and pages with what they contain.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shelf {
    pub(crate) slots: BTreeMap<u64, Vec<u8>>,
    /// Page, and the seed its payload comes from.
    pub(crate) pages: BTreeMap<PageId, u64>,
    /// Where the state itself is kept: the root and the page of the slots. No part of what is promised.
    pub(crate) home: Option<[PageId; 2]>,
    /// Pages that the last checkpoint kept though no commit had named them, as upper rooms do with what they rewrite. One
    /// may do so later.
    pub(crate) rewritten: Vec<PageId>,
}

impl PartialEq for Shelf {
    fn eq(&self, other: &Shelf) -> bool {
        (&self.slots, &self.pages) == (&other.slots, &other.pages)
    }
}

impl Shelf {
    /// The slots as bytes, for a page of their own.
    fn encode_slots(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (slot, value) in &self.slots {
            bytes.extend(slot.to_le_bytes());
            bytes.extend((value.len() as u64).to_le_bytes());
            bytes.extend(value);
        }
        bytes
    }

    /// The root: where the slots are, and the pages.
    fn encode_root(&self, slots: PageId, rewritten: &[PageId]) -> Vec<u8> {
        let mut bytes = slots.0.to_le_bytes().to_vec();
        let pages = self.pages.iter().map(|(page, seed)| (page, *seed));
        for (page, seed) in pages.chain(rewritten.iter().map(|page| (page, IS_REWRITTEN))) {
            bytes.extend(page.0.to_le_bytes());
            bytes.extend(seed.to_le_bytes());
        }
        bytes
    }

    /// The pages that the checkpoint before kept and that nobody needs any more.
    fn outdated(&self) -> impl Iterator<Item = PageId> {
        self.rewritten.iter().copied().filter(|page| !self.pages.contains_key(page))
    }

    fn load(store: &Store, root: PageId) -> Result<Shelf> {
        let mut shelf = Shelf::default();
        let pinned = store.pin(root)?;
        let mut bytes = &pinned[..];
        let slots_page = PageId(take_u64(&mut bytes));
        while !bytes.is_empty() {
            match (PageId(take_u64(&mut bytes)), take_u64(&mut bytes)) {
                (page, IS_REWRITTEN) => shelf.rewritten.push(page),
                (page, seed) => drop(shelf.pages.insert(page, seed)),
            }
        }
        let pinned = store.pin(slots_page)?;
        bytes = &pinned[..];
        while !bytes.is_empty() {
            let slot = take_u64(&mut bytes);
            let value_bytes = take_u64(&mut bytes) as usize;
            shelf.slots.insert(slot, bytes[..value_bytes].to_vec());
            bytes = &bytes[value_bytes..];
        }
        shelf.home = Some([root, slots_page]);
        Ok(shelf)
    }

    /// Applies a record; pages that it takes off the shelf are added to `free`.
    pub(crate) fn apply(&mut self, record: &Record, free: &mut Vec<PageId>) {
        let mut payload = &record.payload[..];
        match record.tag {
            RecordTag::ROWS_INSERTED => drop(self.slots.insert(record.object.0, payload.to_vec())),
            RecordTag::ROWS_DELETED => drop(self.slots.remove(&record.object.0)),
            RecordTag::ROW_GROUPS_ATTACHED => drop(self.pages.insert(PageId(record.object.0), take_u64(&mut payload))),
            RecordTag::CATALOG_DROP => {
                self.pages.remove(&PageId(record.object.0));
                self.rewritten.retain(|page| page.0 != record.object.0);
                free.push(PageId(record.object.0));
            }
            other => panic!("a record nobody wrote: {other}"),
        }
    }

    /// Loads what a recovery found, as an upper room does.
    pub(crate) fn recover(store: &Store, recovery: Recovery) -> Result<Shelf> {
        let mut shelf = match recovery.root {
            Some(root) => Shelf::load(store, root)?,
            None => Shelf::default(),
        };
        for transaction in recovery.transactions {
            let Transaction { records, .. } = transaction?;
            let mut free = Vec::new();
            records.iter().for_each(|record| shelf.apply(record, &mut free));
            free.into_iter().for_each(|page| store.free(page));
        }
        Ok(shelf)
    }

    /// Checks that each page holds what it should.
    pub(crate) fn check_pages(&self, store: &Store) -> Result<(), String> {
        for (&page, &seed) in &self.pages {
            let pinned = store.pin(page).map_err(|error| error.to_string())?;
            if pinned[..] != payload(seed) {
                return Err(format!("page {page} does not hold what seed {seed} makes"));
            }
        }
        Ok(())
    }

    /// Checks that the store has no page but these: what was written in vain is gone, what was freed is freed.
    pub(crate) fn check_no_leaks(&self, store: &Store) {
        let mut found = Vec::new();
        store.for_each_page(&mut |info| found.push(info.page));
        let rewritten = self.rewritten.iter().copied();
        let mut expected: Vec<_> =
            self.pages.keys().copied().chain(self.home.into_iter().flatten()).chain(rewritten).collect();
        expected.sort_unstable();
        expected.dedup();
        assert_eq!(found, expected, "pages in the map, and pages that belong to somebody");
    }
}

fn take_u64(bytes: &mut &[u8]) -> u64 {
    let (number, rest) = bytes.split_first_chunk::<8>().expect("eight bytes");
    *bytes = rest;
    u64::from_le_bytes(*number)
}

/// A page's contents, up to four units of them.
pub(crate) fn payload(seed: u64) -> Vec<u8> {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut bytes = vec![0; random.random_range(1..16_000)];
    random.fill_bytes(&mut bytes);
    bytes
}

pub(crate) fn open(fs: Arc<dyn FileSystem>, options: Options) -> Result<(Store, Recovery)> {
    Store::open(fs, Path::new(PATH), options)
}

/// Runs a random workload and remembers what was promised.
pub(crate) struct Workload {
    random: SmallRng,
    /// The state after each commit that was appended; the first is the state at the start.
    pub(crate) states: Vec<Shelf>,
    /// How many of these, but for the first, were acknowledged as durable.
    acknowledged: usize,
    /// The number of the last commit.
    commit: CommitNumber,
    /// A commit that was under way when something failed: it may or may not count.
    pub(crate) in_doubt: Option<Shelf>,
    /// Pages written and not committed yet, with their seeds.
    loose: BTreeMap<PageId, u64>,
    /// Whether each commit is made durable before the next.
    is_careful: bool,
}

impl Workload {
    pub(crate) fn new(seed: u64, start: Shelf) -> Workload {
        Workload {
            random: SmallRng::seed_from_u64(seed),
            states: vec![start],
            acknowledged: 0,
            commit: CommitNumber(0),
            in_doubt: None,
            loose: BTreeMap::new(),
            is_careful: false,
        }
    }

    /// One that waits for each commit: then whatever is damaged, a commit behind it tells.
    pub(crate) fn careful(seed: u64, start: Shelf) -> Workload {
        Workload { is_careful: true, ..Workload::new(seed, start) }
    }

    /// After the end of the process, with the state that was found then. What was not acknowledged before it may still be
    /// taken back.
    pub(crate) fn reopened(mut self, seed: u64, found: Shelf) -> Workload {
        let mut states = self.states.split_off(self.acknowledged);
        if *states.last().expect("there is a state") == found {
            states.pop();
        }
        states.push(found);
        Workload { states, ..Workload::new(seed, Shelf::default()) }
    }

    pub(crate) fn shelf(&self) -> &Shelf {
        &self.states[self.states.len() - 1]
    }

    /// Whether a power loss may lead to this state: nothing acknowledged is missing, and nothing is there in part.
    pub(crate) fn allows(&self, found: &Shelf) -> bool {
        self.states[self.acknowledged..].contains(found) || self.in_doubt.as_ref() == Some(found)
    }

    /// Everything so far was made durable.
    pub(crate) fn acknowledge_all(&mut self) {
        self.acknowledged = self.states.len() - 1;
    }

    /// Whether the end of the process may lead to this state: it takes nothing back.
    pub(crate) fn ends_with(&self, found: &Shelf) -> bool {
        self.shelf() == found || self.in_doubt.as_ref() == Some(found)
    }

    /// Runs so many steps, or until something fails.
    pub(crate) fn run(&mut self, store: &Store, steps: usize) -> Result<()> {
        (0..steps).try_for_each(|_| match self.random.random_range(0..100) {
            0..90 => self.step(store),
            90..94 => self.checkpoint(store),
            _ => self.checkpoint_in_steps(store),
        })
    }

    /// The same, with a vacuum now and then.
    pub(crate) fn run_with_vacuums(&mut self, store: &Store, steps: usize) -> Result<()> {
        (0..steps).try_for_each(|_| match self.random.random_range(0..12) {
            0 => self.vacuum(store),
            _ => self.run(store, 1),
        })
    }

    pub(crate) fn vacuum(&mut self, store: &Store) -> Result<()> {
        store.vacuum(&mut |_| ControlFlow::Continue(()), || self.checkpoint(store))
    }

    /// A step of those that may be taken while a checkpoint is under way.
    fn step(&mut self, store: &Store) -> Result<()> {
        match self.random.random_range(0..90) {
            0..45 => self.commit(store),
            45..70 => {
                let seed = self.random.next_u64();
                let page = store.write_page(PageKind::CHUNK, &payload(seed))?;
                self.loose.insert(page, seed);
                Ok(())
            }
            70..78 => {
                if let Some((page, _)) = self.loose.pop_first() {
                    store.free(page);
                }
                Ok(())
            }
            78..80 => store.sync_pages(),
            _ => self.shelf().check_pages(store).map_err(Error::caller),
        }
    }

    /// A few steps, or none.
    fn steps_meanwhile(&mut self, store: &Store) -> Result<()> {
        (0..self.random.random_range(0..6)).try_for_each(|_| self.step(store))
    }

    /// A few changes of slots, pages put on the shelf and taken off, as one commit.
    fn commit(&mut self, store: &Store) -> Result<()> {
        let mut records = Vec::new();
        for _ in 0..self.random.random_range(1..6) {
            let (slot, value_bytes) = (self.random.random_range(0..40), self.random.random_range(0..2000));
            records.push(match self.random.random_range(0..4) {
                0 => record(RecordTag::ROWS_DELETED, slot, Vec::new()),
                _ => {
                    let mut value = vec![0; value_bytes];
                    self.random.fill_bytes(&mut value);
                    record(RecordTag::ROWS_INSERTED, slot, value)
                }
            });
        }
        let mut pages = Vec::new();
        while !self.loose.is_empty() && self.random.random_bool(0.7) {
            if let Some((page, seed)) = self.loose.pop_last() {
                records.push(record(RecordTag::ROW_GROUPS_ATTACHED, page.0, seed.to_le_bytes().to_vec()));
                pages.push(page);
            }
        }
        let first = self.shelf().pages.keys().next().copied();
        if let Some(page) = first.filter(|_| self.random.random_bool(0.5)) {
            records.push(record(RecordTag::CATALOG_DROP, page.0, Vec::new()));
        }
        self.append(store, &records, &pages)?;
        // Else a later commit makes it durable, or none.
        if self.is_careful || self.random.random_bool(0.6) {
            self.make_durable(store)?;
        }
        Ok(())
    }

    fn append(&mut self, store: &Store, records: &[Record], pages: &[PageId]) -> Result<()> {
        let (mut after, mut free) = (self.shelf().clone(), Vec::new());
        records.iter().for_each(|record| after.apply(record, &mut free));
        self.in_doubt = Some(after.clone());
        self.commit = store.append(records, pages)?;
        self.in_doubt = None;
        self.states.push(after);
        free.into_iter().for_each(|page| store.free(page));
        Ok(())
    }

    fn make_durable(&mut self, store: &Store) -> Result<()> {
        store.make_durable(self.commit)?;
        self.acknowledged = self.states.len() - 1;
        Ok(())
    }

    /// Puts so many new pages on the shelf, in one durable commit. Returns them.
    pub(crate) fn attach(&mut self, store: &Store, page_count: usize) -> Result<Vec<PageId>> {
        let (mut records, mut pages) = (Vec::new(), Vec::new());
        for _ in 0..page_count {
            let seed = self.random.next_u64();
            let page = store.write_page(PageKind::CHUNK, &payload(seed))?;
            records.push(record(RecordTag::ROW_GROUPS_ATTACHED, page.0, seed.to_le_bytes().to_vec()));
            pages.push(page);
        }
        self.append(store, &records, &pages)?;
        self.make_durable(store)?;
        Ok(pages)
    }

    /// Takes these pages off the shelf, in one durable commit.
    pub(crate) fn drop_pages(&mut self, store: &Store, pages: &[PageId]) -> Result<()> {
        let drop_page = |page: &PageId| record(RecordTag::CATALOG_DROP, page.0, Vec::new());
        self.append(store, &pages.iter().map(drop_page).collect::<Vec<_>>(), &[])?;
        self.make_durable(store)
    }

    /// A checkpoint step by step: others write, commit and free before its cut, after it, and while it is written; some
    /// checkpoints are given up.
    fn checkpoint_in_steps(&mut self, store: &Store) -> Result<()> {
        let prepared = store.prepare_checkpoint()?;
        self.steps_meanwhile(store)?;
        if self.random.random_bool(0.1) {
            return Ok(());
        }
        let checkpoint = prepared.cut()?;
        assert!(checkpoint.commit() == store.last_commit());
        let (shelf, choice, mut home) = self.begin_home();
        self.steps_meanwhile(store)?;
        if self.random.random_bool(0.1) {
            return Ok(());
        }
        let is_given_up = self.random.random_bool(0.1);
        let result = checkpoint.finish(|writer| {
            self.steps_meanwhile(store)?;
            let loose = self.loose.keys().copied();
            let kept: Vec<_> = loose.filter(|page| page.0 % 3 == 0 && !shelf.rewritten.contains(page)).collect();
            kept.iter().try_for_each(|page| writer.keep(*page))?;
            let root = put_home(store, writer, &shelf, choice, kept, &mut home)?;
            self.steps_meanwhile(store)?;
            if is_given_up { Err(Error::caller("given up on purpose")) } else { Ok(root) }
        });
        match result {
            Err(Error::Caller(why)) if why.to_string() == "given up on purpose" => Ok(()),
            other => other.map(|()| self.moved(home)),
        }
    }

    /// What a checkpoint of the state at this moment starts from.
    fn begin_home(&mut self) -> (Shelf, u32, Option<Home>) {
        let shelf = self.shelf().clone();
        self.loose.retain(|page, _| shelf.outdated().all(|outdated| outdated != *page));
        (shelf, self.random.random_range(0..8), None)
    }

    pub(crate) fn checkpoint(&mut self, store: &Store) -> Result<()> {
        let (shelf, choice, mut home) = self.begin_home();
        store.checkpoint(|writer| put_home(store, writer, &shelf, choice, Vec::new(), &mut home))?;
        self.moved(home);
        Ok(())
    }

    /// Writes the state into a file of its own.
    pub(crate) fn backup(&mut self, store: &Store, fs: &dyn FileSystem, path: &str) -> Result<()> {
        let (commit, shelf) = (store.last_commit(), self.shelf().clone());
        let nothing_yet = Shelf { home: None, rewritten: Vec::new(), ..shelf };
        store.backup(fs, Path::new(path), commit, &mut |_| ControlFlow::Continue(()), |writer| {
            nothing_yet.pages.keys().try_for_each(|page| writer.keep(*page))?;
            put_home(store, writer, &nothing_yet, 3, Vec::new(), &mut None)
        })
    }

    pub(crate) fn close(&mut self, store: &Store) -> Result<()> {
        let (shelf, choice, mut home) = self.begin_home();
        store.close(|writer| put_home(store, writer, &shelf, choice, Vec::new(), &mut home))?;
        self.moved(home);
        self.acknowledge_all();
        Ok(())
    }

    fn moved(&mut self, home: Option<Home>) {
        if let (Some(shelf), Some((home, kept))) = (self.states.last_mut(), home) {
            (shelf.home, shelf.rewritten) = (Some(home), kept);
        }
    }
}

/// Where a checkpoint put the state: root and slots, and what it kept beside them.
type Home = ([PageId; 2], Vec<PageId>);

/// Writes root and slots, each in one of the ways there are: as a new page or a new version of the old one, through the
/// checkpoint or before it.
fn put_home(
    store: &Store,
    writer: &mut CheckpointWriter<'_>,
    shelf: &Shelf,
    choice: u32,
    kept: Vec<PageId>,
    home: &mut Option<Home>,
) -> Result<PageId> {
    shelf.outdated().for_each(|page| writer.free(page));
    let [old_root, old_slots] = [0, 1].map(|index| shelf.home.map(|home| home[index]));
    let slots = if choice & 1 == 0 {
        let slots = store.write_page(PageKind::TABLE_ROOT, &shelf.encode_slots())?;
        if let Err(error) = writer.keep(slots) {
            store.free(slots);
            return Err(error);
        }
        old_slots.into_iter().for_each(|page| writer.free(page));
        slots
    } else {
        writer.put(old_slots, PageKind::TABLE_ROOT, &shelf.encode_slots())?
    };
    let root = if choice & 2 == 0 {
        old_root.into_iter().for_each(|page| writer.free(page));
        writer.put(None, PageKind::CATALOG, b"a first version")?
    } else {
        match old_root {
            Some(root) => root,
            None => writer.put(None, PageKind::CATALOG, b"a first version")?,
        }
    };
    writer.put(Some(root), PageKind::CATALOG, &shelf.encode_root(slots, &kept))?;
    *home = Some(([root, slots], kept));
    Ok(root)
}

pub(crate) fn record(tag: RecordTag, object: u64, payload: Vec<u8>) -> Record {
    Record { tag, object: ObjectId(object), payload }
}

/// A database after so many steps of a workload, left without a close, as a crash of the process leaves it.
pub(crate) fn unclosed(seed: u64, steps: usize) -> (CrashingFileSystem, Workload) {
    let fs = CrashingFileSystem::new();
    let (store, _) = open(Arc::new(fs.clone()), Options::default()).unwrap();
    let mut workload = Workload::careful(seed, Shelf::default());
    workload.run(&store, steps).unwrap();
    (fs, workload)
}

/// The same, closed.
pub(crate) fn closed(seed: u64, steps: usize) -> (CrashingFileSystem, Workload) {
    let (fs, workload) = unclosed(seed, steps);
    let (store, recovery) = open(Arc::new(fs.clone()), Options::default()).unwrap();
    let mut last = Workload::new(seed, Shelf::recover(&store, recovery).unwrap());
    last.close(&store).unwrap();
    (fs, workload)
}

/// Opens a database and says what it holds, or the message with which it is refused.
pub(crate) fn found(fs: &CrashingFileSystem) -> Result<(Shelf, Vec<String>), Error> {
    let (store, mut recovery) = open(Arc::new(fs.clone()), Options::default())?;
    let notes = std::mem::take(&mut recovery.notes);
    let shelf = Shelf::recover(&store, recovery)?;
    shelf.check_pages(&store).map_err(Error::caller)?;
    Ok((shelf, notes))
}

/// How many header copies are whole.
pub(crate) fn whole_header_copies(fs: &CrashingFileSystem) -> usize {
    let bytes = fs.bytes(Path::new(PATH));
    let copies = bytes.chunks(4096).take(2);
    copies.filter(|copy| copy.len() == 4096 && copy[4092..] == crc32c::crc32c(&copy[..4092]).to_le_bytes()).count()
}

/// Checks that the disk leads to a state that was promised; and where both header copies are whole, that each does.
pub(crate) fn check_either_header(fs: &CrashingFileSystem, workload: &Workload, context: &str) {
    let check = |fs: &CrashingFileSystem, context: &str| {
        let (shelf, _) = found(fs).unwrap_or_else(|error| panic!("{context}: {error}"));
        assert!(workload.allows(&shelf), "{context}: another state");
    };
    check(&fs.copy(), context);
    for copy_at in [0, 4096] {
        if whole_header_copies(fs) == 2 {
            let (rotten, mut bytes) = (fs.copy(), fs.bytes(Path::new(PATH)));
            bytes[copy_at + 100] ^= 1;
            rotten.put(Path::new(PATH), bytes);
            check(&rotten, &format!("{context}, header copy at {copy_at} rotten"));
        }
    }
}

/// The only log there is, or the newest.
pub(crate) fn newest_log(fs: &CrashingFileSystem) -> PathBuf {
    let number = |path: &PathBuf| path.extension().and_then(|n| n.to_str()?.parse::<u64>().ok());
    fs.files().into_iter().filter(|path| number(path).is_some()).max_by_key(number).expect("there is a log")
}

/// A log without the zeros that are kept behind it.
pub(crate) fn log_bytes(fs: &CrashingFileSystem, log: &Path) -> Vec<u8> {
    let mut bytes = fs.bytes(log);
    let mut end = HEADER_BYTES.min(bytes.len());
    while let Some(length) =
        bytes.get(end..end + FRAME_HEADER_BYTES).filter(|frame| frame.iter().any(|byte| *byte != 0))
    {
        end += FRAME_HEADER_BYTES + u32::from_le_bytes(*length.first_chunk().expect("four bytes")) as usize;
    }
    bytes.truncate(end);
    bytes
}
