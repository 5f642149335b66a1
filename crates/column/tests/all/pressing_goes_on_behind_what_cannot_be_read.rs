//! Pressing began with the first run of loose groups, and ended with the error of a group in it that could not be read: none
//! behind it was ever pressed. Now such a group stays as it is, is noted, and everything else is pressed.

use crate::support::{PATH, Shop, batch, column, rows, schema};
use arrow::array::{ArrayRef, Int64Array};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinter_column::*;
use sinter_exec::LogicalType;
use sinter_storage::testing::{Call, CrashingFileSystem, DiskFault, FaultyFileSystem, Trigger};
use sinter_storage::{FileSystem, Options, Store, fs::OpenMode};
use std::path::Path;
use std::sync::Arc;

const GROUP_ROWS: u64 = 131_072;
const GROUPS: u64 = 5;

/// Full row groups of numbers that hardly compress, of which every tenth row is alive; without a pool from now on, so that
/// pages are read from the disk.
fn sparse(fs: &FaultyFileSystem) -> Shop {
    let (store, _) = Store::open(Arc::new(fs.clone()), Path::new(PATH), Options::default()).unwrap();
    let mut shop = Shop::new(Arc::new(store), schema(vec![column("a", LogicalType::Int64)]));
    let mut random = SmallRng::seed_from_u64(7);
    let numbers: Int64Array = (0..GROUPS * GROUP_ROWS).map(|_| random.random::<i64>()).collect();
    shop.insert(&batch("a", Arc::new(numbers) as ArrayRef)).unwrap();
    assert_eq!(shop.table.groups().len() as u64, GROUPS);
    shop.delete((0..GROUPS * GROUP_ROWS).filter(|id| id % 10 > 0).collect());
    shop.store.budget().set_limit(0);
    shop
}

/// Flips a bit in a page of a group; the second time that mends it.
fn flip(disk: &CrashingFileSystem, store: &Store, group: &RowGroup) {
    let page = group.pages().next().unwrap().id();
    let mut offset = 0;
    store.for_each_page(&mut |info| offset = if info.page == page { info.offset } else { offset });
    let file = disk.open(Path::new(PATH), OpenMode::Write).unwrap();
    let mut byte = [0];
    file.read_at(offset + 100, &mut byte).unwrap();
    file.write_at(offset + 100, &[&[byte[0] ^ 1]]).unwrap();
}

/// Presses all that can be read.
fn press(shop: &mut Shop, unreadable: &mut Unreadable) {
    while let Some(rewrite) = shop.table.pressing(2, unreadable).unwrap() {
        assert!(shop.rewrite(&rewrite));
    }
}

#[test]
fn whichever_of_the_groups_is_damaged() {
    for damaged in 0..GROUPS as usize {
        let disk = CrashingFileSystem::new();
        let mut shop = sparse(&FaultyFileSystem::on_disk(&disk));
        let (before, group) = (rows(&*shop.table), Arc::clone(&shop.table.groups()[damaged].group));
        flip(&disk, &shop.store, &group);
        let mut unreadable = Unreadable::default();
        press(&mut shop, &mut unreadable);
        assert!(!unreadable.is_empty());
        let lives = |groups: &[GroupEntry]| groups.iter().map(GroupEntry::live_rows).collect::<Vec<_>>();
        let all = GROUP_ROWS as usize * GROUPS as usize / 10;
        let is_first_or_last = damaged == 0 || damaged == GROUPS as usize - 1;
        println!("group {damaged} damaged: {:?}", lives(shop.table.groups()));
        assert_eq!(shop.table.groups().len(), if is_first_or_last { 2 } else { 3 });
        assert_eq!(shop.table.live_rows() as usize, all);
        // What is left to give back is what that group has, and no other.
        let stays = shop.table.groups().iter().find(|entry| Arc::ptr_eq(&entry.group, &group)).unwrap();
        let bytes: usize = group.segments.iter().map(Segment::byte_len).sum();
        let dead = (group.rows - stays.live_rows()) as u64;
        assert_eq!(shop.table.bytes_to_give_back(), bytes as u64 * dead / group.rows as u64);
        assert_eq!(shop.table.loose_rows(), stays.live_rows() as u64);

        // And the next time the disk has come to its senses.
        flip(&disk, &shop.store, &group);
        let mut unreadable = Unreadable::default();
        press(&mut shop, &mut unreadable);
        assert!(unreadable.is_empty());
        assert_eq!((shop.table.loose_rows(), shop.table.bytes_to_give_back()), (0, 0));
        assert_eq!(rows(&*shop.table), before);
        drop(group);
        shop.assert_no_page_is_lost();
    }
}

/// Of which no row is alive: nothing has to be read to let go of it.
#[test]
fn and_takes_away_what_nobody_needs() {
    let disk = CrashingFileSystem::new();
    let mut shop = sparse(&FaultyFileSystem::on_disk(&disk));
    flip(&disk, &shop.store, &Arc::clone(&shop.table.groups()[1].group));
    shop.store.budget().set_limit(Options::default().memory_limit_bytes);
    shop.delete((GROUP_ROWS..2 * GROUP_ROWS).collect());
    let mut unreadable = Unreadable::default();
    press(&mut shop, &mut unreadable);
    assert!(unreadable.is_empty());
    assert_eq!((shop.table.groups().len(), shop.table.bytes_to_give_back()), (1, 0));
    shop.assert_no_page_is_lost();
}

#[test]
fn whichever_read_the_disk_refuses() {
    for index in 0.. {
        let fs = FaultyFileSystem::on_disk(&CrashingFileSystem::new());
        let mut shop = sparse(&fs);
        let before = rows(&*shop.table);
        fs.plan(Trigger::at(index).of(Call::Read).ending_with(".sinter"), DiskFault::IoError);
        let mut unreadable = Unreadable::default();
        press(&mut shop, &mut unreadable);
        fs.clear_plan();
        assert_eq!(rows(&*shop.table), before, "read {index}");
        if fs.injected().is_empty() {
            assert!(unreadable.is_empty() && index >= GROUPS, "read {index}: {unreadable:?}");
            return;
        }
        assert!(!unreadable.is_empty() && shop.table.groups().len() < GROUPS as usize, "read {index}");
    }
}

/// A write that fails is not the group's fault.
#[test]
fn but_not_when_the_disk_is_full() {
    let fs = FaultyFileSystem::on_disk(&CrashingFileSystem::new());
    let shop = sparse(&fs);
    fs.set_bytes_free(Some(0));
    let mut unreadable = Unreadable::default();
    let error = shop.table.pressing(2, &mut unreadable).unwrap_err().to_string();
    assert!(error.contains("no space left") && unreadable.is_empty(), "{error}");
}
