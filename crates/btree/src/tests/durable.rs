//! Trees in a file: what they hold after checkpoints, evictions and crashes, beside `BTreeMap`; and that no page is lost.

use super::*;
use crate::keys::lent;
use crate::leaf::Leaf;
use crate::memory::BESIDE_BYTES;
use sinter_storage::testing::{CrashingFileSystem, Fault};
use sinter_storage::{FileSystem, ObjectId, Options, PageId, PageKind, Store};
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

const TREE: ObjectId = ObjectId(1);

/// A database of one tree.
struct Shop<K: TreeKey + ?Sized> {
    disk: CrashingFileSystem,
    store: Arc<Store>,
    tree: Arc<Tree<K>>,
}

impl<K: TestKey + ?Sized> Shop<K> {
    fn open(disk: CrashingFileSystem, options: TreeOptions) -> Shop<K> {
        let path = Path::new("shop.sinter");
        let (store, recovery) = Store::open(Arc::new(disk.clone()), path, Options::default()).unwrap();
        let store = Arc::new(store);
        let tree = match recovery.root {
            Some(root) => Tree::open(Arc::clone(&store), root).unwrap(),
            None => Tree::create(options, Arc::clone(&store)),
        };
        assert_eq!(*tree.options(), options);
        for transaction in recovery.transactions {
            let transaction = transaction.unwrap();
            transaction.records.iter().for_each(|record| tree.replay(record, transaction.commit).unwrap());
        }
        store.raise_horizon(store.last_commit());
        Shop { disk, store, tree }
    }

    fn commit(&self, changes: &Changes<K>) -> Result<()> {
        let changed = changes.iter().map(|(key, record)| (lent::<K>(key), record.as_deref()));
        let record = Tree::<K>::log_record(TREE, changed);
        let numbered = self.tree.commit(changes, || {
            let commit = self.store.append(&[record], &[])?;
            self.store.raise_horizon(commit);
            Ok::<_, Error>(Numbered { commit, horizon: commit })
        })?;
        Ok(self.store.make_durable(numbered.commit)?)
    }

    /// `gives_up`: when all is written.
    fn checkpoint(&self, gives_up: bool) -> Result<()> {
        let (mut written, mut failure) = (None, None);
        let done = self.store.checkpoint(|out| {
            let given_up = || sinter_storage::Error::GivenUp { path: "shop.sinter".into() };
            let tree = self.tree.write(out).map_err(|error| {
                failure = Some(error);
                given_up()
            })?;
            let root = tree.root();
            written = Some(tree);
            if gives_up { Err(given_up()) } else { Ok(root) }
        });
        if let Some(failure) = failure {
            return Err(failure);
        }
        done?;
        written.unwrap().adopt()
    }

    fn check(&self, model: &Model<K>, random: &mut SmallRng, range: u64) {
        check_state(&self.tree, self.store.last_commit(), model, random, range);
    }

    fn is_of(&self, model: &Model<K>) -> bool {
        let mut cursor = self.tree.cursor(self.store.last_commit());
        let mut next = cursor.first().unwrap();
        for expected in model {
            if entry(next) != of_model::<K>(Some(expected)) {
                return false;
            }
            next = cursor.next().unwrap();
        }
        next.is_none()
    }

    /// Right after a checkpoint the file has the tree's pages, and no others.
    fn check_pages(&self) {
        let (mut of_tree, mut of_store) = (BTreeSet::new(), BTreeSet::new());
        self.tree.for_each_page(&mut |page| assert!(of_tree.insert(page), "page {page} twice"));
        self.store.for_each_page(&mut |page| {
            of_store.insert(page.page);
        });
        assert_eq!(of_tree, of_store);
        assert_eq!(self.store.stats().fresh_pages, 0);
        assert_eq!(reserved_bytes(&self.store, &self.tree), used_bytes(&self.tree));
    }
}

/// What leaves take, and what leads to them.
fn used_bytes<K: TestKey + ?Sized>(tree: &Tree<K>) -> usize {
    let mut bytes = 0;
    tree.directory.read().for_each_leaf(&mut |slot| {
        bytes += BESIDE_BYTES + tree.slots.look(slot).leaf().map_or(0, Leaf::memory_bytes);
    });
    bytes
}

/// What is reserved, once that is settled.
fn reserved_bytes<K: TestKey + ?Sized>(store: &Store, tree: &Tree<K>) -> usize {
    tree.memory.as_ref().unwrap().settle_exactly();
    store.budget().usage().leaf as usize
}

/// Commits, checkpoints of which some are given up, evictions, and losses of power at any call.
fn random_life<K: TestKey + ?Sized>(options: TreeOptions, seed: u64) {
    let mut random = SmallRng::seed_from_u64(seed);
    let mut shop = Shop::<K>::open(CrashingFileSystem::new(), options);
    let range = 1 << random.random_range(4..14);
    let mut model = Model::<K>::new();
    for step in 0..200 {
        if random.random_range(0..20) == 0 {
            let calls = shop.disk.calls().len() as u64;
            shop.disk.plan(calls + random.random_range(0..30), Fault::Crash);
        }
        let before = model.clone();
        let done = match random.random_range(0..10) {
            0 => shop.checkpoint(false).map(|()| shop.check_pages()),
            1 => match shop.checkpoint(true) {
                Err(Error::Storage(sinter_storage::Error::GivenUp { .. })) => Ok(()),
                other => other,
            },
            2 | 3 => shop.tree.evict(random.random_range(0..40) << 10).map(drop),
            _ => {
                let inserts = if step / 50 % 2 == 0 { 8 } else { 2 };
                let (first, stretch) = (random.random_range(0..range), random.random_range(1..=range));
                let mut changes = Changes::<K>::new();
                for _ in 0..1 << random.random_range(0..8) {
                    let key = K::of(first + random.random_range(0..stretch));
                    let is_insert = random.random_range(0..10) < inserts;
                    let record = is_insert.then(|| record_of(options.records, &mut random));
                    match record.clone() {
                        Some(record) => model.insert(key.clone(), record),
                        None => model.remove::<K::Owned>(&key),
                    };
                    changes.insert(key, record.map(Vec::into_boxed_slice));
                }
                shop.commit(&changes)
            }
        };
        if shop.disk.is_dead() {
            shop = Shop::open(shop.disk.restart(random.random()), options);
            // Of a commit that was on its way nobody knows before.
            if done.is_err() && !shop.is_of(&model) {
                model = before;
            }
            assert!(shop.is_of(&model), "step {step}");
        } else {
            done.unwrap();
        }
        if random.random_range(0..4) == 0 {
            shop.check(&model, &mut random, 2 * range);
        }
    }
    // On a disk on which nothing is planned.
    shop = Shop::open(shop.disk.copy(), options);
    shop.check(&model, &mut random, 2 * range);
    shop.checkpoint(false).unwrap();
    shop.check_pages();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]

    #[test]
    fn a_tree_comes_back_from_its_file(seed in any::<u64>()) {
        for &codec in KEY_CODECS {
            random_life::<u32>(options(codec, RecordShape::Fixed(8)), seed);
            random_life::<u64>(options(codec, RecordShape::Variable), seed);
        }
        for records in [RecordShape::Fixed(0), RecordShape::Fixed(8), RecordShape::Variable] {
            random_life::<[u8]>(options(KeyCodec::None, records), seed);
        }
    }
}

fn sequence(keys: impl IntoIterator<Item = u64>) -> Changes<u64> {
    keys.into_iter().map(|key| (key, Some(Box::from(key.to_le_bytes())))).collect()
}

#[test]
fn leaves_in_order_fill_their_pages_and_no_more() {
    let options = TreeOptions::new(KeyCodec::None, RecordShape::Fixed(8));
    let shop = Shop::<u64>::open(CrashingFileSystem::new(), options);
    for first in (0..200_000).step_by(1000) {
        shop.commit(&sequence(first..first + 1000)).unwrap();
    }
    shop.checkpoint(false).unwrap();
    let mut leaves = 0;
    shop.store.for_each_page(&mut |page| {
        if page.kind == PageKind::TREE_LEAF {
            assert!(page.bytes <= 16 << 10, "{page:?}");
            leaves += 1;
        }
    });
    // Blocks have 24 bytes beside 256 keys.
    let expected = (200_000_u64 * 16).div_ceil((16 << 10) - 500);
    assert!(leaves <= expected, "{leaves} leaves, where {expected} would do");
}

#[test]
fn leaves_of_long_bytes_in_order_fill_their_pages_and_no_more() {
    let options = TreeOptions::new(KeyCodec::None, RecordShape::Fixed(8));
    let shop = Shop::<[u8]>::open(CrashingFileSystem::new(), options);
    // What leaves begin with has from 10 to 150 bytes.
    let key = |number: u64| format!("{:04}/{}{number:06}", number / 500, "long/".repeat(number as usize / 500 % 30));
    for first in (0..60_000).step_by(1000) {
        let keys = first..first + 1000;
        let changes = keys.map(|number| (key(number).into_bytes(), Some(Box::from(number.to_le_bytes())))).collect();
        shop.commit(&changes).unwrap();
    }
    shop.checkpoint(false).unwrap();
    let (mut leaves, mut large, mut bytes) = (0, 0, 0);
    shop.store.for_each_page(&mut |page| {
        if page.kind == PageKind::TREE_LEAF {
            leaves += 1;
            large += u64::from(page.bytes > 16 << 10);
            bytes += page.bytes;
        }
    });
    assert!(large <= 1, "{large} of {leaves} leaves take more than 16 KiB");
    assert!(bytes > (leaves - 1) * (15 << 10), "{leaves} leaves in {bytes} bytes");
}

#[test]
fn a_checkpoint_writes_what_has_changed() {
    let options = TreeOptions { leaf_bytes: 1 << 10, ..TreeOptions::new(KeyCodec::Bp128D1, RecordShape::Fixed(8)) };
    let shop = Shop::<u64>::open(CrashingFileSystem::new(), options);
    shop.commit(&sequence((0..300_000).map(|key| 2 * key))).unwrap();
    shop.checkpoint(false).unwrap();
    let pages = || {
        let mut pages = BTreeSet::new();
        shop.store.for_each_page(&mut |page| {
            pages.insert((page.kind, page.page, page.offset));
        });
        pages
    };
    let before = pages();
    assert!(before.len() > 2500);
    shop.checkpoint(false).unwrap();
    assert_eq!(pages(), before, "nothing has changed");
    assert!(shop.tree.home().unwrap().is_as_written.load(Ordering::Acquire), "so the next one need not look");
    shop.checkpoint(true).unwrap_err();
    assert!(!shop.tree.home().unwrap().is_as_written.load(Ordering::Acquire), "what was given up is no checkpoint");
    shop.checkpoint(false).unwrap();
    assert_eq!(pages(), before, "nothing has changed");
    // One leaf is divided.
    let leaves = shop.tree.shape().leaves;
    for key in (100_001..).step_by(2) {
        shop.commit(&sequence([key])).unwrap();
        if shop.tree.shape().leaves > leaves {
            break;
        }
    }
    shop.checkpoint(false).unwrap();
    let new: Vec<(PageKind, PageId, u64)> = pages().difference(&before).copied().collect();
    let of_kind = |kind| new.iter().filter(|(other, ..)| *other == kind).count();
    assert!((2..=4).contains(&of_kind(PageKind::TREE_LEAF)), "{new:?}");
    assert!((1..=3).contains(&of_kind(PageKind::TREE_DIRECTORY)), "{new:?}");
    assert_eq!(of_kind(PageKind::TREE_ROOT), 1, "{new:?}");
}

#[test]
fn a_tree_that_is_gone_leaves_no_page() {
    let shop = Shop::<u64>::open(CrashingFileSystem::new(), options(KeyCodec::Vbyte, RecordShape::Fixed(8)));
    shop.commit(&sequence(0..10_000)).unwrap();
    shop.checkpoint(false).unwrap();
    shop.commit(&sequence((0..2000).step_by(50))).unwrap();
    shop.tree.evict(20 << 10).unwrap();
    let Shop { store, tree, .. } = shop;
    let pages = || {
        let mut pages = 0;
        store.for_each_page(&mut |_| pages += 1);
        pages + store.stats().fresh_pages
    };
    let reader = Arc::clone(&tree);
    tree.abandon();
    drop(tree);
    assert!(pages() > 50, "somebody still reads it");
    assert_eq!(reader.len(store.last_commit()).unwrap(), 10_000);
    drop(reader);
    assert_eq!(pages(), 0);
}

#[test]
fn a_tree_that_leads_to_the_wrong_leaves_is_an_error() {
    let options = options(KeyCodec::Vbyte, RecordShape::Fixed(8));
    let shop = Shop::<u64>::open(CrashingFileSystem::new(), options);
    shop.commit(&sequence(0..10_000)).unwrap();
    shop.checkpoint(false).unwrap();
    // Another tree's leaf, whole as a page, in the place of one of ours.
    let (mut leaves, mut directory) = (Vec::new(), None);
    shop.store.for_each_page(&mut |page| match page.kind {
        PageKind::TREE_LEAF => leaves.push(page.page),
        PageKind::TREE_DIRECTORY => directory = directory.or(Some(page.page)),
        _ => {}
    });
    let mut bytes = shop.store.pin(directory.unwrap()).unwrap().to_vec();
    let places: Vec<usize> = (8..24).step_by(8).collect();
    let (first, second) = (bytes[places[0]..places[1]].to_vec(), bytes[places[1]..places[1] + 8].to_vec());
    bytes[places[0]..places[1]].copy_from_slice(&second);
    bytes[places[1]..places[1] + 8].copy_from_slice(&first);
    let mut root = None;
    shop.tree.for_each_page(&mut |page| root = root.or(Some(page)));
    let checkpoint = shop.store.checkpoint(|out| {
        out.put(directory, PageKind::TREE_DIRECTORY, &bytes)?;
        Ok(root.unwrap())
    });
    checkpoint.unwrap();
    let tree = Tree::<u64>::open(Arc::clone(&shop.store), root.unwrap()).unwrap();
    let error = tree.get(&1, || CommitNumber(9), |_| ()).unwrap_err();
    assert!(error.is_damage(), "{error}");
    assert!(error.to_string().contains("no leaf's range"), "{error}");
    let error = Tree::<u32>::open(Arc::clone(&shop.store), root.unwrap()).unwrap_err();
    assert!(error.to_string().contains("keys of kind 8, where the tree has 4"), "{error}");
}

#[test]
fn every_state_is_whole_beside_checkpoints_and_evictions() {
    let options = options(KeyCodec::Bp128D1, RecordShape::Fixed(8));
    let shop = Shop::<u64>::open(CrashingFileSystem::new(), options);
    let order = Mutex::new(Order { store: Some(Arc::clone(&shop.store)), ..Order::default() });
    let checkpoint = || {
        let prepared = shop.store.prepare_checkpoint().unwrap();
        let (cut, at) = {
            let mut order = order.lock().unwrap();
            (prepared.cut().unwrap(), order.begin())
        };
        assert_eq!(cut.commit(), CommitNumber(at));
        let mut written = None;
        let done = cut.finish(|out| {
            let tree = shop.tree.write(out).unwrap();
            let root = tree.root();
            written = Some(tree);
            Ok(root)
        });
        done.unwrap();
        {
            let mut order = order.lock().unwrap();
            order.end(at);
            order.horizon();
        }
        written.unwrap().adopt().unwrap();
    };
    let evict = || {
        order.lock().unwrap().horizon();
        shop.tree.evict(4 << 10).unwrap();
        std::thread::yield_now();
    };
    let copies = CrashingFileSystem::new();
    let back_up = || {
        let path = Path::new("copy.sinter");
        let (at, commit) = {
            let mut order = order.lock().unwrap();
            (order.begin(), CommitNumber(order.last))
        };
        let go_on = &mut |_| ControlFlow::Continue(());
        shop.store.backup(&copies, path, commit, go_on, |out| Ok(shop.tree.copy(out).unwrap())).unwrap();
        order.lock().unwrap().end(at);
        let (store, recovery) = Store::open(Arc::new(copies.clone()), path, Options::default()).unwrap();
        let tree = Tree::<u64>::open(Arc::new(store), recovery.root.unwrap()).unwrap();
        check_amounts(&tree, commit);
        drop(tree);
        copies.remove(path).unwrap();
    };
    move_amounts(&shop.tree, &order, &[&checkpoint, &evict, &back_up]);
    checkpoint();
    // Leaves that waited for the end of the first one are merged, and have left its pages.
    checkpoint();
    shop.check_pages();
    let mut root = None;
    shop.tree.for_each_page(&mut |page| root = root.or(Some(page)));
    let tree = Tree::<u64>::open(Arc::clone(&shop.store), root.unwrap()).unwrap();
    check_amounts(&tree, shop.store.last_commit());
}

/// A store in a file with so much memory, and a tree in it.
fn limited(limit_bytes: usize, options: TreeOptions) -> (Arc<Store>, Arc<Tree<u64>>) {
    let options_of_store = Options { memory_limit_bytes: limit_bytes, ..Options::default() };
    let disk = Arc::new(CrashingFileSystem::new());
    let (store, _) = Store::open(disk, Path::new("shop.sinter"), options_of_store).unwrap();
    let store = Arc::new(store);
    let tree = Tree::create(options, Arc::clone(&store));
    (store, tree)
}

fn commit_to(store: &Store, tree: &Tree<u64>, changes: &Changes<u64>) -> Result<()> {
    let record = Tree::<u64>::log_record(TREE, changes.iter().map(|(key, record)| (key, record.as_deref())));
    let numbered = tree.commit(changes, || {
        let commit = store.append(&[record], &[])?;
        store.raise_horizon(commit);
        Ok::<_, Error>(Numbered { commit, horizon: commit })
    });
    numbered.map(drop)
}

#[test]
fn a_tree_larger_than_memory_stays_within_its_limit() {
    const LIMIT_BYTES: usize = 2 << 20;
    let (store, tree) = limited(LIMIT_BYTES, options(KeyCodec::None, RecordShape::Fixed(8)));
    let mut random = SmallRng::seed_from_u64(1);
    let (mut model, mut found) = (BTreeMap::new(), 0);
    for round in 0..2000 {
        let keys = (0..200).map(|_| random.random_range(0..400_000));
        let changes: Changes<u64> = keys.map(|key| (key, Some(Box::from(u64::to_le_bytes(key + round))))).collect();
        commit_to(&store, &tree, &changes).unwrap();
        model.extend(changes.into_keys().map(|key| (key, key + round)));
        let usage = store.budget().usage();
        assert!(usage.leaf <= LIMIT_BYTES as u64 / 8 * 7 / 4 * 3 + (32 << 10), "round {round}: {usage:?}");
        for _ in 0..20 {
            let key = random.random_range(0..400_000);
            let got = tree.get(&key, || store.last_commit(), |record| record.map(<[u8]>::to_vec)).unwrap();
            assert_eq!(got, model.get(&key).map(|amount| amount.to_le_bytes().to_vec()));
            found += u64::from(got.is_some());
        }
    }
    assert!(found > 10_000, "{found} keys were there");
    let shape = tree.shape();
    assert!(shape.leaves > 2 * shape.resident_leaves, "{shape:?}");
    // All leaves of a commit are in memory at once.
    let changes: Changes<u64> = (0..400_000).step_by(100).map(|key| (key, None)).collect();
    let error = commit_to(&store, &tree, &changes).unwrap_err();
    assert!(error.to_string().contains("do less at once"), "{error}");
    assert_eq!(tree.len(store.last_commit()).unwrap(), model.len() as u64);
}

#[test]
fn what_leaves_take_is_what_is_reserved_and_others_have_it_back() {
    let (store, tree) = limited(8 << 20, options(KeyCodec::Bp128D1, RecordShape::Variable));
    let mut random = SmallRng::seed_from_u64(2);
    for _ in 0..60 {
        let changes = (0..500).map(|_| {
            let record = vec![7; random.random_range(0..40)].into_boxed_slice();
            (random.random_range(0..20_000), (random.random_range(0..3) > 0).then_some(record))
        });
        commit_to(&store, &tree, &changes.collect()).unwrap();
        if random.random_range(0..4) == 0 {
            tree.evict(random.random_range(0..64) << 10).unwrap();
        }
        assert_eq!(reserved_bytes(&store, &tree), used_bytes(&tree));
    }
    let before = reserved_bytes(&store, &tree);
    assert!(before > 300_000, "{before}");
    let reservable = store.budget().reservable_bytes();
    let load = store.budget().reserve(sinter_storage::Use::Scratch, reservable - before / 2).unwrap();
    assert!(reserved_bytes(&store, &tree) <= before / 2 && tree.shape().resident_leaves > 0);
    drop(load);
    let error = store.budget().reserve(sinter_storage::Use::Scratch, reservable).unwrap_err();
    assert!(error.to_string().contains("trees "), "what leads to leaves cannot go: {error}");
    drop(tree);
    assert_eq!(store.budget().usage().leaf, 0);
}

#[test]
fn a_commit_for_which_there_is_no_memory_is_refused() {
    let store = Arc::new(Store::memory());
    store.budget().set_limit(1 << 20);
    let tree = Tree::<u64>::create(options(KeyCodec::Bp128D1, RecordShape::Fixed(100)), Arc::clone(&store));
    let mut first = 0;
    let refused = loop {
        let keys = first..first + 100;
        let changes: Changes<u64> = keys.map(|key| (key, Some(vec![7; 100].into_boxed_slice()))).collect();
        if let Err(error) = commit_to(&store, &tree, &changes) {
            break error;
        }
        first += 100;
    };
    assert!(refused.to_string().contains("out of memory"), "{refused}");
    assert!((4000..9000).contains(&first), "{first} of 100 bytes in a megabyte");
    assert_eq!(tree.len(store.last_commit()).unwrap(), first);
}
