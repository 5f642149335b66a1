//! Trees loaded at once, beside `BTreeMap`: in memory and in a file, whole or given up.

use super::*;
use crate::Loader;
use sinter_storage::testing::{CrashingFileSystem, Fault};
use sinter_storage::{Options, PageKind, Store};
use std::io::ErrorKind;
use std::path::Path;

const TREE: ObjectId = ObjectId(1);

fn model_of<K: TestKey + ?Sized>(options: &TreeOptions, count: u64, random: &mut SmallRng) -> Model<K> {
    let step = random.random_range(1..20);
    (0..count).map(|number| (K::of(number * step), record_of(options.records, random))).collect()
}

fn load<K: TestKey + ?Sized>(loader: &mut Loader<K>, model: &Model<K>) {
    for (key, record) in model {
        assert!(loader.push(key.borrow(), record).unwrap());
        // Once more is once too often.
        assert!(!loader.push(key.borrow(), record).unwrap());
    }
}

fn open(disk: &CrashingFileSystem) -> (Arc<Store>, Vec<sinter_storage::Transaction>) {
    let (store, recovery) = Store::open(Arc::new(disk.clone()), Path::new("shop.sinter"), Options::default()).unwrap();
    let transactions = recovery.transactions.map(Result::unwrap).collect();
    (Arc::new(store), transactions)
}

fn page_count(store: &Store) -> usize {
    let mut pages = 0;
    store.for_each_page(&mut |_| pages += 1);
    pages + store.stats().fresh_pages as usize
}

/// Loaded, changed, and loaded from its pages after a loss of power.
fn loaded_trees_are_those_of_a_map<K: TestKey + ?Sized>(options: TreeOptions, count: u64, seed: u64) {
    let mut random = SmallRng::seed_from_u64(seed);
    let model = model_of::<K>(&options, count, &mut random);
    let range = 20 * count + 2;
    let mut loader = Loader::<K>::new(options, Arc::new(Store::memory()));
    load(&mut loader, &model);
    let loaded = loader.finish().unwrap();
    assert!(loaded.pages.is_empty() && loaded.root.is_none(), "it is in memory");
    check_state(&loaded.tree, CommitNumber(1), &model, &mut random, range);

    let disk = CrashingFileSystem::new();
    let (store, _) = open(&disk);
    let mut given_up = Loader::<K>::new(options, Arc::clone(&store));
    load(&mut given_up, &model);
    drop(given_up);
    let mut abandoned = Loader::<K>::new(options, Arc::clone(&store));
    load(&mut abandoned, &model);
    abandoned.finish().unwrap().tree.abandon();
    assert_eq!(page_count(&store), 0, "nobody has committed them");

    let mut loader = Loader::<K>::new(options, Arc::clone(&store));
    load(&mut loader, &model);
    let loaded = loader.finish().unwrap();
    let root = loaded.root.unwrap();
    assert_eq!(page_count(&store), loaded.pages.len());
    check_state(&loaded.tree, CommitNumber(1), &model, &mut random, range);
    let record = Record { tag: RecordTag::CATALOG_PUT, object: TREE, payload: root.0.to_le_bytes().to_vec() };
    store.commit(&[record], &loaded.pages).unwrap();
    store.for_each_page(&mut |page| {
        assert!(page.kind != PageKind::TREE_LEAF || page.bytes <= options.leaf_bytes as u64 + 64, "{page:?}");
    });
    drop((loaded, store));

    let (store, transactions) = open(&disk.restart(seed));
    assert_eq!(transactions.len(), 1);
    let tree = Tree::<K>::open(Arc::clone(&store), root).unwrap();
    check_state(&tree, store.last_commit(), &model, &mut random, range);
    // What comes later finds leaves that it can change.
    let mut model = model;
    for _ in 0..200 {
        let key = K::of(random.random_range(0..range));
        let record = (random.random_range(0..3) > 0).then(|| record_of(options.records, &mut random));
        match record.clone() {
            Some(record) => model.insert(key.clone(), record),
            None => model.remove::<K::Owned>(&key),
        };
        let changes = Changes::<K>::from([(key, record.map(Vec::into_boxed_slice))]);
        let log_record =
            Tree::<K>::log_record(TREE, changes.iter().map(|(key, record)| (key.borrow(), record.as_deref())));
        tree.commit(&changes, || {
            let commit = store.append(&[log_record], &[])?;
            Ok::<_, Error>(Numbered { commit, horizon: commit })
        })
        .unwrap();
    }
    check_state(&tree, store.last_commit(), &model, &mut random, range);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn a_tree_that_was_loaded_is_that_of_a_map(seed in any::<u64>(), count in prop_oneof![0..4_u64, 0..3000_u64]) {
        for &codec in KEY_CODECS {
            for records in [RecordShape::Fixed(0), RecordShape::Fixed(8), RecordShape::Variable] {
                loaded_trees_are_those_of_a_map::<u32>(options(codec, records), count, seed);
                loaded_trees_are_those_of_a_map::<u64>(options(codec, records), count, seed);
            }
        }
        for records in [RecordShape::Fixed(0), RecordShape::Fixed(200), RecordShape::Variable] {
            loaded_trees_are_those_of_a_map::<[u8]>(options(KeyCodec::None, records), count, seed);
        }
    }
}

#[test]
fn leaves_that_were_loaded_are_full() {
    for record_bytes in [0, 8, 100] {
        let records = RecordShape::Fixed(record_bytes);
        let options = TreeOptions::new(KeyCodec::Bp128D1, records);
        let mut loader = Loader::<u64>::new(options, Arc::new(Store::memory()));
        for key in 0..200_000_u64 {
            assert!(loader.push(&(key * 9 / 8), &vec![1; record_bytes]).unwrap());
        }
        let shape = loader.finish().unwrap().tree.shape();
        assert_eq!(shape.keys, 200_000);
        let bytes = shape.key_bytes + shape.record_bytes;
        assert!(bytes >= (shape.leaves - 1) * (13 << 10), "{bytes} bytes in {} leaves, {records:?}", shape.leaves);
    }
}

#[test]
fn a_load_that_could_not_write_goes_no_further() {
    let disk = CrashingFileSystem::new();
    let (store, _) = open(&disk);
    let options = options(KeyCodec::Vbyte, RecordShape::Fixed(8));
    let mut loader = Loader::<u64>::new(options, Arc::clone(&store));
    disk.plan(disk.calls().len() as u64 + 5, Fault::Fail(ErrorKind::StorageFull));
    let mut keys = 0..100_000_u64;
    let failed = keys.find_map(|key| loader.push(&key, &[0; 8]).err());
    assert!(matches!(failed, Some(Error::Storage(_))), "{failed:?}");
    let next = keys.next().unwrap();
    assert!(matches!(loader.push(&next, &[0; 8]), Err(Error::FailedLoad)));
    assert!(matches!(loader.finish(), Err(Error::FailedLoad)));
    assert_eq!(page_count(&store), 0);
}
