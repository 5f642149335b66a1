//! A read of the disk comes back with other bytes than were written, with too few, or with an error, and so does a
//! question for a file's length: at each such call in turn, while a database is opened, its log replayed, its pages
//! read and checked.
//!
//! Either the answer is right; or there is an error that names the file; or the end of the log could not be told from
//! one that a crash tore, and a note says so. Never a wrong answer, never a panic. Nothing was harmed: the next time,
//! everything is there.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::support::{PATH, Shelf, Workload, closed, found, log_bytes, newest_log, open, payload, record, unclosed};
use sinter_storage::testing::{Call, CrashingFileSystem, DiskFault, FaultyFileSystem, Trigger};
use sinter_storage::{Error, Options, PageKind, RecordTag};

/// What the caller saw.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// Everything, as it should be; nobody noticed, or it did not matter.
    Right,
    /// Everything, and a note.
    RightWithNote,
    /// Fewer commits, and a note that says how many bytes were dropped.
    DroppedTail,
    /// Fewer commits, and no word: the file's length was answered as one at which a commit ends.
    ShorterLog,
    /// An error that says what is damaged.
    Damage,
    /// An error that says what the operating system said.
    Io,
}

/// Opens, replays, and reads every page twice: to use it, and to check it.
fn read_all(fs: &FaultyFileSystem, read_only: bool) -> Result<(Shelf, Vec<String>), Error> {
    let options = Options { memory_limit_bytes: 0, read_only, ..Options::default() };
    let (store, mut recovery) = open(Arc::new(fs.clone()), options)?;
    let notes = std::mem::take(&mut recovery.notes);
    let shelf = Shelf::recover(&store, recovery)?;
    for (&page, &seed) in &shelf.pages {
        assert!(store.pin(page)?[..] == payload(seed), "a wrong answer: page {page}");
    }
    let mut damage = None;
    store.check(&mut |error| damage = Some(error))?;
    damage.map_or(Ok((shelf, notes)), Err)
}

fn outcome_of(workload: &Workload, result: Result<(Shelf, Vec<String>), Error>, fault: DiskFault) -> Outcome {
    match result {
        Ok((shelf, notes)) if shelf == *workload.shelf() => match notes.is_empty() {
            true => Outcome::Right,
            false => Outcome::RightWithNote,
        },
        Ok((shelf, notes)) => {
            assert!(workload.states.contains(&shelf), "a state that never was, notes {notes:?}");
            match notes.iter().any(|note| note.contains("shop.sinter-log.") && note.contains("were dropped")) {
                true => Outcome::DroppedTail,
                false if fault == DiskFault::ShortLength => Outcome::ShorterLog,
                false => panic!("commits are missing, and no word of it: {notes:?}"),
            }
        }
        Err(error) => {
            assert!(error.to_string().contains("shop.sinter"), "names no file: {error}");
            match error {
                error if error.is_damage() => Outcome::Damage,
                Error::Io { .. } => Outcome::Io,
                error => panic!("another error: {error}"),
            }
        }
    }
}

fn at_every_read(fault: DiskFault, databases: &[(CrashingFileSystem, Workload)]) -> BTreeMap<(Call, Outcome), u64> {
    let mut outcomes = BTreeMap::new();
    let mut injected = BTreeMap::new();
    for (disk, workload) in databases {
        for read_only in [false, true] {
            let whole = FaultyFileSystem::on_disk(&disk.copy());
            read_all(&whole, read_only).unwrap();
            for (call, count) in whole.calls().into_iter().filter(|(call, _)| fault.can_happen_to(*call)) {
                if !matches!(call, Call::Read | Call::Length) {
                    continue;
                }
                for index in 0..count {
                    let copy = disk.copy();
                    let fs = FaultyFileSystem::on_disk(&copy);
                    fs.set_seed(index);
                    fs.plan(Trigger::at(index).of(call), fault);
                    let outcome = outcome_of(workload, read_all(&fs, read_only), fault);
                    *injected.entry(call).or_insert(0) += fs.injected().len();
                    *outcomes.entry((call, outcome)).or_insert(0) += 1;
                    let (shelf, notes) = found(&copy).unwrap_or_else(|error| panic!("the next time: {error}"));
                    assert!(shelf == *workload.shelf() && notes.is_empty(), "another state the next time, {notes:?}");
                }
            }
        }
    }
    println!("{fault:?} injected {injected:?}: {outcomes:?}");
    outcomes
}

/// With a log to replay and without, and with more than one log.
fn databases() -> Vec<(CrashingFileSystem, Workload)> {
    (0..4).map(|seed| unclosed(seed, 40)).chain((4..6).map(|seed| closed(seed, 40))).chain([unclosed(7, 9)]).collect()
}

#[test]
fn flipped_bytes() {
    let outcomes = at_every_read(DiskFault::FlippedBytes, &databases());
    for outcome in [Outcome::RightWithNote, Outcome::DroppedTail, Outcome::Damage] {
        assert!(outcomes[&(Call::Read, outcome)] > 3);
    }
}

#[test]
fn short_reads() {
    let outcomes = at_every_read(DiskFault::ShortRead, &databases());
    assert!(outcomes[&(Call::Read, Outcome::Damage)] > 20);
    assert!(!outcomes.contains_key(&(Call::Read, Outcome::DroppedTail)), "the log's length was known");
}

#[test]
fn a_length_that_is_too_short() {
    let databases = databases();
    // Without the zeros behind the log, which may be missing.
    for (disk, _) in databases.iter().filter(|(disk, _)| disk.files().len() > 1) {
        let log = newest_log(disk);
        disk.put(&log, log_bytes(disk, &log));
    }
    let outcomes = at_every_read(DiskFault::ShortLength, &databases);
    assert!(outcomes[&(Call::Length, Outcome::DroppedTail)] > 3);
}

#[test]
fn errors() {
    let outcomes = at_every_read(DiskFault::IoError, &databases());
    assert!(outcomes[&(Call::Read, Outcome::Io)] > 20 && outcomes[&(Call::Length, Outcome::Io)] > 20);
    assert!(!outcomes.contains_key(&(Call::Read, Outcome::DroppedTail)), "an error is not the end of the log");
}

/// What the messages look like, for the three things that are read.
#[test]
fn the_messages_name_the_thing_and_the_place() {
    let disk = CrashingFileSystem::new();
    let fs = FaultyFileSystem::on_disk(&disk);
    let (store, _) = open(Arc::new(fs.clone()), Options { memory_limit_bytes: 0, ..Options::default() }).unwrap();
    let page = store.write_page(PageKind::CHUNK, &[9; 5000]).unwrap();
    store.commit(&[record(RecordTag::ROWS_INSERTED, 1, vec![1])], &[page]).unwrap();
    let message = |fault| {
        fs.plan(Trigger::next().of(Call::Read), fault);
        store.pin(page).unwrap_err().to_string()
    };
    let flipped = message(DiskFault::FlippedBytes);
    assert!(flipped.starts_with("shop.sinter: page 1 (chunk) at byte 8192 is damaged: "), "{flipped}");
    assert!(flipped.ends_with("; restore a backup"), "{flipped}");
    assert_eq!(
        message(DiskFault::ShortRead),
        "shop.sinter: page 1 (chunk) at byte 8192 is damaged: the file ends before it does; restore a backup"
    );
    assert_eq!(message(DiskFault::IoError), "shop.sinter: reading a page: Input/output error (os error 5)");
    assert_eq!(*store.pin(page).unwrap(), [9; 5000], "it was the read, not the file");
    drop(store);
    let reopened = |trigger: Trigger, fault| {
        let copy = FaultyFileSystem::on_disk(&disk.copy());
        copy.plan(trigger.of(Call::Read), fault);
        open(Arc::new(copy), Options::default())
    };
    let once = reopened(Trigger::next().ending_with(".sinter"), DiskFault::FlippedBytes).unwrap().1.notes;
    assert!(once.is_empty(), "read again, it was well: {once:?}");
    let rotten = disk.copy();
    let mut bytes = rotten.bytes(Path::new(PATH));
    bytes[60] ^= 1;
    rotten.put(Path::new(PATH), bytes);
    let header = open(Arc::new(rotten), Options::default()).unwrap().1.notes;
    assert!(header[0].starts_with("the header copy at byte 0 is not whole (checksum "), "{header:?}");
    assert!(header[0].ends_with("; the other one is used"), "{header:?}");
    let log = reopened(Trigger::next().containing("-log."), DiskFault::FlippedBytes).unwrap_err().to_string();
    assert!(log.starts_with("shop.sinter-log.0: damaged at byte 0: "), "{log}");
    let frame = reopened(Trigger::at(2).containing("-log."), DiskFault::FlippedBytes).unwrap().1.notes;
    assert!(
        frame[0].starts_with("shop.sinter-log.0: ") && frame[0].contains("are no whole commit and were dropped ("),
        "{frame:?}"
    );
    let error = reopened(Trigger::at(1).containing("-log."), DiskFault::IoError).unwrap_err();
    assert_eq!(error.to_string(), "shop.sinter-log.0: reading a log: Input/output error (os error 5)");
}
