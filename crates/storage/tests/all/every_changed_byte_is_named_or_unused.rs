//! One byte changed, anywhere in the file or its log: the damage is named, or the byte is used by nothing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::support::{PATH, Shelf, Workload, closed, found, log_bytes, newest_log, open, unclosed};
use sinter_storage::testing::CrashingFileSystem;
use sinter_storage::{Error, Options};

fn with_flipped(fs: &CrashingFileSystem, path: &Path, at: usize) -> CrashingFileSystem {
    let copy = fs.copy();
    let mut bytes = copy.bytes(path);
    bytes[at] ^= 1 << (at % 8);
    copy.put(path, bytes);
    copy
}

/// A database that was left with a log of many commits.
fn with_a_long_log() -> (CrashingFileSystem, Workload, PathBuf) {
    let lives = (0..).map(|seed| unclosed(seed, 60));
    let mut logs = lives.map(|(fs, workload)| (newest_log(&fs), fs, workload));
    let (log, fs, workload) = logs.find(|(log, fs, _)| log_bytes(fs, log).len() > 30_000).expect("seeds do not end");
    (fs, workload, log)
}

#[test]
fn in_the_file() {
    let (fs, workload) = closed(5, 150);
    let file = Path::new(PATH);
    let bytes = fs.bytes(file).len();
    let (mut named, mut unused) = (0, 0);
    // All of the headers' fields, and two thousand other places.
    let everywhere = (0..110).chain(4090..4210).chain((0..bytes).step_by((bytes / 2000).max(1)));
    for at in everywhere {
        let damaged = with_flipped(&fs, file, at);
        let opened = open(Arc::new(damaged.clone()), Options::default());
        let (store, recovery) = match opened {
            Err(error) => {
                assert!(error.is_damage(), "byte {at}: {error}");
                named += 1;
                continue;
            }
            Ok(opened) => opened,
        };
        if at < 8192 {
            assert!(recovery.notes[0].contains("header copy"), "byte {at}");
        }
        let mut reports = Vec::new();
        store.check(&mut |error| reports.push(error)).unwrap();
        for report in &reports {
            let Error::DamagedPage { page: Some(_), offset, .. } = report else { panic!("byte {at}: {report}") };
            assert!((*offset..offset + 100_000).contains(&(at as u64)), "byte {at}: {report}");
        }
        if reports.is_empty() {
            let shelf = Shelf::recover(&store, recovery).unwrap();
            assert!(shelf == *workload.shelf(), "byte {at}: a wrong answer");
            shelf.check_pages(&store).unwrap();
            unused += 1;
        } else {
            named += 1;
        }
    }
    println!("{named} named, {unused} unused or mended, of a file of {bytes} bytes");
    assert!(named > 400);
}

#[test]
fn in_the_log() {
    let (fs, workload, log) = with_a_long_log();
    let bytes = log_bytes(&fs, &log).len();
    let before_last = &workload.states[workload.states.len() - 2];
    let (mut named, mut tail) = (0, 0);
    for at in (0..bytes).step_by((bytes / 1000).max(1)).chain(0..64) {
        match found(&with_flipped(&fs, &log, at)) {
            Err(error) => {
                assert!(matches!(error, Error::DamagedLog { .. } | Error::LogForeign { .. }), "byte {at}: {error}");
                named += 1;
            }
            // The last commit of a log looks like one that was cut short.
            Ok((shelf, notes)) => {
                assert!(shelf == *before_last, "byte {at}: a wrong answer");
                assert!(notes[0].contains("were dropped"), "{notes:?}");
                tail += 1;
            }
        }
    }
    println!("{named} named, {tail} taken for a torn tail, of a log of {bytes} bytes");
    assert!(named > tail);
}

/// Behind the log are zeros. Whatever else is found there is told, and costs nothing.
#[test]
fn behind_the_log() {
    let (fs, workload, log) = with_a_long_log();
    let (start, end) = (log_bytes(&fs, &log).len(), fs.bytes(&log).len());
    assert!(end - start > 1000 && fs.bytes(&log)[start..].iter().all(|byte| *byte == 0));
    assert_eq!(found(&fs.copy()).unwrap().1, [""; 0]);
    for at in (start..end).step_by((end - start) / 100).chain([start, end - 1]) {
        let (shelf, notes) = found(&with_flipped(&fs, &log, at)).unwrap();
        assert!(shelf == *workload.shelf(), "byte {at}: a wrong answer");
        assert!(notes[0].contains("were dropped"), "{notes:?}");
    }
}

/// Zeros that stand where commits were promised are not taken for the end of the log.
#[test]
fn zeros_in_the_log() {
    let (fs, _, log) = with_a_long_log();
    let bytes = log_bytes(&fs, &log);
    let frame_bytes = |at: usize| 24 + u32::from_le_bytes(*bytes[at..].first_chunk().unwrap()) as usize;
    let starts: Vec<usize> =
        std::iter::successors(Some(64), |at| Some(at + frame_bytes(*at)).filter(|next| *next < bytes.len())).collect();
    assert!(starts.len() > 10);
    for (index, start) in starts[..starts.len() - 1].iter().enumerate() {
        let last = starts.len() - 1 - index % 3;
        for end in [starts[index + 1], starts[last.max(index + 1)]] {
            let damaged = fs.copy();
            let mut bytes = fs.bytes(&log);
            bytes[*start..end].fill(0);
            damaged.put(&log, bytes);
            let error = found(&damaged).unwrap_err();
            assert!(matches!(error, Error::DamagedLog { offset, .. } if offset == *start as u64), "{error}");
        }
    }
}

#[test]
fn a_log_cut_anywhere_gives_a_prefix_of_the_commits() {
    let (fs, workload, log) = with_a_long_log();
    let whole = log_bytes(&fs, &log);
    let mut last_index = 0;
    for length in (64..whole.len()).step_by(101) {
        let cut = fs.copy();
        cut.put(&log, whole[..length].to_vec());
        let (shelf, _) = found(&cut).unwrap();
        let index = workload.states.iter().position(|state| *state == shelf).expect("a state that was promised");
        assert!(index >= last_index);
        last_index = index;
    }
    let cut = fs.copy();
    cut.put(&log, whole[..63].to_vec());
    let message = found(&cut).unwrap_err().to_string();
    assert!(message.contains("its header is cut short, and the database needs this log"), "{message}");
}
