//! A commit fails in a way that leaves its fate open, and whoever wanted it frees the page that it names. A checkpoint
//! is under way meanwhile and still takes places: not that one, for the commit may count at the next open.

use std::sync::Arc;

use crate::support::{found, open, payload, record};
use sinter_storage::testing::{Call, CrashingFileSystem, DiskFault, FaultyFileSystem, Trigger};
use sinter_storage::{Error, Options, PageKind, RecordTag};

#[test]
fn the_place_of_a_page_whose_commit_is_in_doubt() {
    let mut counted = 0;
    for seed in 0..40 {
        let disk = CrashingFileSystem::new();
        let fs = FaultyFileSystem::on_disk(&disk);
        fs.set_seed(seed);
        let (store, _) = open(Arc::new(fs.clone()), Options::default()).unwrap();
        store.commit(&[record(RecordTag::ROWS_INSERTED, 1, vec![1])], &[]).unwrap();
        let given_up = store.checkpoint(|writer| {
            let page = store.write_page(PageKind::CHUNK, &payload(seed))?;
            let put = [record(RecordTag::ROW_GROUPS_ATTACHED, page.0, seed.to_le_bytes().to_vec())];
            fs.plan(Trigger::next().of(Call::Write).containing("-log."), DiskFault::TornWrite);
            let error = store.commit(&put, &[page]).unwrap_err();
            assert!(matches!(error, Error::Poisoned { .. }), "{error}");
            store.free(page);
            writer.put(None, PageKind::CHUNK, &payload(seed))
        });
        assert!(matches!(given_up, Err(Error::Poisoned { .. })), "{given_up:?}");
        drop(store);
        let (shelf, _) = found(&disk.copy()).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        counted += shelf.pages.len();
    }
    assert!(counted > 0, "a write that failed and yet arrived as a whole");
}
