//! A user's value may be the bytes of a log. When the commit that carries it is torn, the frames in the value are whole;
//! but they are none of this log, at this place: the tail is dropped, and nothing is called damaged.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use crate::support::{closed, found, log_bytes, newest_log, open, record, unclosed};
use sinter_storage::log::{
    CHECKSUM_AT, COMMIT_AT, FRAME_HEADER_BYTES, HEADER_BYTES, HEADER_CHECKSUM_AT, LOG_NONCE_AT, PREVIOUS_AT,
    RECORD_HEADER_BYTES,
};
use sinter_storage::testing::CrashingFileSystem;
use sinter_storage::{Error, Options, RecordTag, Store};

/// Where in the log a commit's only value starts, from where the commit does.
const VALUE_AT: usize = FRAME_HEADER_BYTES + RECORD_HEADER_BYTES;

fn commit(store: &Store, slot: u64, value: &[u8]) {
    store.commit(&[record(RecordTag::ROWS_INSERTED, slot, value.to_vec())], &[]).unwrap();
}

fn slots(fs: &CrashingFileSystem) -> BTreeMap<u64, Vec<u8>> {
    found(&fs.copy()).unwrap().0.slots
}

/// A log whose commit from byte `start` on carries what must not be taken for frames of this log.
struct Carrying {
    fs: CrashingFileSystem,
    log: PathBuf,
    start: usize,
    /// What the database holds before that commit.
    before: BTreeMap<u64, Vec<u8>>,
}

impl Carrying {
    /// Opens the database, commits three values, and then what `value` makes of the log so far.
    fn new(fs: CrashingFileSystem, value: impl FnOnce(&[u8]) -> Vec<u8>) -> Carrying {
        let (store, _) = open(Arc::new(fs.clone()), Options::default()).unwrap();
        (1..=3).for_each(|slot| commit(&store, slot, &[slot as u8; 100]));
        let (before, log) = (slots(&fs), newest_log(&fs));
        let so_far = log_bytes(&fs, &log);
        let mut value = value(&so_far);
        // So that the frames in it are whole though the commit's last bytes are not.
        value.extend([0; 64]);
        commit(&store, 4, &value);
        Carrying { fs, log, start: so_far.len(), before }
    }

    /// The log with that commit torn in one way or another, the value mostly there.
    fn torn(&self) -> Vec<(&'static str, Vec<u8>)> {
        let whole = log_bytes(&self.fs, &self.log);
        let (start, end) = (self.start, whole.len());
        let with = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut bytes = whole.clone();
            change(&mut bytes);
            bytes
        };
        vec![
            ("the last byte is missing", with(&|bytes| bytes.truncate(end - 1))),
            ("the last bytes are others", with(&|bytes| bytes[end - 30..].fill(0xAA))),
            ("the frame's header is zero", with(&|bytes| bytes[start..start + FRAME_HEADER_BYTES].fill(0))),
            ("the frame's length is wrong", with(&|bytes| bytes[start + 1] ^= 1)),
            ("the record's header is zero", with(&|bytes| bytes[start + FRAME_HEADER_BYTES..start + VALUE_AT].fill(0))),
        ]
    }

    fn assert_dropped(&self) {
        assert!(slots(&self.fs).contains_key(&4), "whole, the commit counts");
        for (how, bytes) in self.torn() {
            let fs = self.fs.copy();
            fs.put(&self.log, bytes);
            let (shelf, notes) = found(&fs).unwrap_or_else(|error| panic!("{how}: {error}"));
            assert!(shelf.slots == self.before, "{how}: another state");
            assert!(notes.len() == 1 && notes[0].contains("were dropped"), "{how}: {notes:?}");
        }
    }
}

#[test]
fn the_same_log_so_far() {
    Carrying::new(CrashingFileSystem::new(), <[u8]>::to_vec).assert_dropped();
}

/// One that was whole at its place, and whose commit is later than all that are there: it was cut off again, say, when
/// the disk was full.
#[test]
fn a_frame_of_the_same_log_from_another_place() {
    let value = |log: &[u8]| {
        let mut frame = log[HEADER_BYTES..HEADER_BYTES + VALUE_AT + 100].to_vec();
        let resealed = |frame: &mut [u8], offset: usize| {
            let parts = [
                &log[..HEADER_CHECKSUM_AT],
                &(offset as u64).to_le_bytes(),
                &frame[..CHECKSUM_AT],
                &frame[PREVIOUS_AT..],
            ];
            let checksum = crc32c::crc32c(&parts.concat());
            frame[CHECKSUM_AT..PREVIOUS_AT].copy_from_slice(&checksum.to_le_bytes());
        };
        let there = frame.clone();
        resealed(&mut frame, HEADER_BYTES);
        assert_eq!(frame, there, "this is how a frame is sealed");
        frame[COMMIT_AT] = 9;
        let mut value = Vec::new();
        for offset in [HEADER_BYTES, log.len(), log.len() + VALUE_AT + 1] {
            resealed(&mut frame, offset);
            value.extend_from_slice(&frame);
        }
        value
    };
    Carrying::new(CrashingFileSystem::new(), value).assert_dropped();
}

#[test]
fn a_log_of_another_database() {
    for seed in 0..10 {
        let (other, _) = unclosed(seed, 80);
        let other = log_bytes(&other, &newest_log(&other));
        Carrying::new(CrashingFileSystem::new(), |_| other.clone()).assert_dropped();
    }
}

/// A database and its restored backup go on from the same state: the logs share UUID, number and start, and here the
/// frames of the one come to stand where they stood in the other.
#[test]
fn a_log_from_another_life_of_the_same_database() {
    let (backup, _) = closed(3, 40);
    let lived = backup.copy();
    let (store, _) = open(Arc::new(lived.clone()), Options::default()).unwrap();
    (1..=9).for_each(|slot| commit(&store, slot, &[slot as u8; 100]));
    drop(store);
    let log = newest_log(&lived);
    let lived = log_bytes(&lived, &log);
    let restored = Carrying::new(backup, |log| {
        assert_eq!(log[..LOG_NONCE_AT], lived[..LOG_NONCE_AT], "the same log, but for the nonce");
        assert_ne!(log[..HEADER_BYTES], lived[..HEADER_BYTES]);
        lived[log.len() + VALUE_AT..].to_vec()
    });
    assert_eq!(restored.log, log);
    let (from, bytes) = (restored.start + VALUE_AT, log_bytes(&restored.fs, &log));
    assert_eq!(bytes[from..lived.len()], lived[from..], "each byte in its old place");
    restored.assert_dropped();
}

/// What is behind the torn commit is no copy, if it is a commit of this log: then something was lost that was promised.
#[test]
fn a_later_commit_behind_it_is_still_found() {
    let (other, _) = unclosed(1, 80);
    let other = log_bytes(&other, &newest_log(&other));
    let fs = CrashingFileSystem::new();
    let (store, _) = open(Arc::new(fs.clone()), Options::default()).unwrap();
    commit(&store, 1, b"whole");
    let log = newest_log(&fs);
    let start = log_bytes(&fs, &log).len();
    commit(&store, 2, &other);
    commit(&store, 3, b"promised");
    drop(store);
    let mut bytes = log_bytes(&fs, &log);
    bytes[start] ^= 1;
    fs.put(&log, bytes);
    let error = found(&fs).unwrap_err();
    let message = error.to_string();
    assert!(matches!(error, Error::DamagedLog { offset, .. } if offset == start as u64), "{message}");
    assert!(message.contains("; yet commit 3, written after this was durable, is whole"), "{message}");
}
