//! Opening for reading after a crash: the reader sees every commit, and the files stay as they are.

use std::sync::Arc;

use crate::support::{Shelf, open, unclosed};
use sinter_storage::Options;

#[test]
fn after_a_crash() {
    for seed in 0..20 {
        let (fs, workload) = unclosed(seed, 50);
        let before: Vec<_> = fs.files().into_iter().map(|path| (fs.bytes(&path), path)).collect();
        let calls = fs.calls().len();
        let (store, recovery) = open(Arc::new(fs.clone()), Options { read_only: true, ..Options::default() }).unwrap();
        let shelf = Shelf::recover(&store, recovery).unwrap();
        assert_eq!(shelf, *workload.shelf());
        shelf.check_pages(&store).unwrap();
        store.close(|_| unreachable!("a reader has nothing to write")).unwrap();
        let after: Vec<_> = fs.files().into_iter().map(|path| (fs.bytes(&path), path)).collect();
        assert!(before == after && fs.calls().len() == calls);
    }
}
