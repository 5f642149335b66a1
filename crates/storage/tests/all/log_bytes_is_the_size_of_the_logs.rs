//! What decides when a checkpoint is due says what the log files say.

use std::path::Path;
use std::sync::Arc;

use crate::support::{PATH, Shelf, Workload, log_bytes, open};
use sinter_storage::testing::CrashingFileSystem;
use sinter_storage::{Options, Store};

/// Without the zeros that are kept behind them.
fn bytes_of_logs(fs: &CrashingFileSystem) -> u64 {
    let logs = fs.files().into_iter().filter(|path| path != Path::new(PATH));
    logs.map(|path| log_bytes(fs, &path).len() as u64).sum()
}

#[test]
fn after_every_step() {
    for seed in 0..10 {
        let fs = CrashingFileSystem::new();
        let (store, _) = open(Arc::new(fs.clone()), Options::default()).unwrap();
        let mut workload = Workload::new(seed, Shelf::default());
        for step in 0..80 {
            assert_eq!(store.log_bytes(), bytes_of_logs(&fs), "seed {seed}, step {step}");
            workload.run(&store, 1).unwrap();
        }
        assert_eq!(store.stats().log_bytes, store.log_bytes());
        workload.close(&store).unwrap();
        assert_eq!((store.log_bytes(), bytes_of_logs(&fs)), (0, 0));
    }
    assert_eq!(Store::memory().log_bytes(), 0);
}

#[test]
fn a_log_that_was_replayed_counts() {
    let fs = CrashingFileSystem::new();
    for _ in 0..3 {
        let (store, recovery) = open(Arc::new(fs.clone()), Options::default()).unwrap();
        assert_eq!(store.log_bytes(), bytes_of_logs(&fs));
        let mut workload = Workload::new(1, Shelf::recover(&store, recovery).unwrap());
        workload.run(&store, 4).unwrap();
        assert!(store.log_bytes() > 64);
    }
}

#[test]
fn what_a_checkpoint_holds_is_not_replayed() {
    let fs = CrashingFileSystem::new();
    let (store, _) = open(Arc::new(fs.clone()), Options::default()).unwrap();
    let mut workload = Workload::new(7, Shelf::default());
    workload.run(&store, 30).unwrap();
    let (bytes, replay) = (store.log_bytes(), store.replay_bytes());
    assert!(replay <= bytes);
    workload.checkpoint(&store).unwrap();
    assert!(store.replay_bytes() < 128, "a log's header, and no commit behind it: {}", store.replay_bytes());
    assert!(store.log_bytes() >= store.replay_bytes());
}
