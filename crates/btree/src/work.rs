//! A leaf while it is changed: what is put and removed, and what is split off, before and when the commit has its number.

use crate::directory::Directory;
use crate::keys::{NoRoom, TreeKey, lent};
use crate::leaf::Leaf;
use crate::slots::{Place, WriteLatch};
use crate::sync::PoisonError;
use crate::sync::atomic::Ordering;
use crate::tree::Tree;
use sinter_storage::{Numbered, PageId};

/// A full leaf is vacuumed before it is split, where that gains this part of it.
const VACUUM_DIVISOR: usize = 16;

/// A leaf is merged with its neighbour where it has this part of what it could, and both together three quarters.
const NEARLY_EMPTY_DIVISOR: usize = 8;

const IN_MEMORY: &str = "what is being changed is in memory";

/// A latched leaf that is being changed, and what was split off it meanwhile, in the order of keys: nobody knows of that
/// yet.
#[derive(Debug)]
pub(crate) struct Work<'t, K: TreeKey + ?Sized> {
    latch: WriteLatch<'t, K>,
    /// The page that had what was in the leaf before.
    page: Option<PageId>,
    /// Bytes of the leaf before.
    memory_bytes: usize,
    /// Whether it may have become nearly empty.
    has_removed: bool,
    uppers: Vec<(K::Owned, Leaf<K>)>,
}

impl<'t, K: TreeKey + ?Sized> Work<'t, K> {
    /// # Panics
    /// When the leaf is not in memory.
    pub(crate) fn new(tree: &'t Tree<K>, mut latch: WriteLatch<'t, K>) -> Work<'t, K> {
        // Before there is a number: a checkpoint that has the commit in it walks, and waits for the latch.
        tree.note_change();
        let leaf = latch.leaf_mut().expect(IN_MEMORY);
        let (page, memory_bytes) = (leaf.leave_page(), leaf.memory_bytes());
        Work { latch, page, memory_bytes, has_removed: false, uppers: Vec::new() }
    }

    /// Where the leaf ends, with what was split off it.
    pub(crate) fn end(&self) -> Option<K::Owned> {
        let last = self.uppers.last().map(|(_, upper)| upper);
        last.or(self.latch.leaf()).and_then(Leaf::high).cloned()
    }

    fn leaf_of(&mut self, key: &K) -> &mut Leaf<K> {
        match self.uppers.partition_point(|(separator, _)| lent::<K>(separator) <= key).checked_sub(1) {
            Some(index) => &mut self.uppers[index].1,
            None => self.latch.leaf_mut().expect(IN_MEMORY),
        }
    }
}

impl<K: TreeKey + ?Sized> Tree<K> {
    /// Changes a key in a latched leaf, or in the leaves that were split off it since.
    pub(crate) fn apply(&self, work: &mut Work<'_, K>, key: &K, record: Option<&[u8]>) {
        work.has_removed |= record.is_none();
        loop {
            let leaf = work.leaf_of(key);
            let size_max = self.shape.size_max.saturating_sub(leaf.bounds_size());
            let applied = match record {
                Some(record) => leaf.put(key, record, size_max),
                None => leaf.remove(key, size_max).map(drop),
            };
            let Err(NoRoom) = applied else { return };
            if !leaf.vacuum(size_max / VACUUM_DIVISOR) {
                let (separator, mut upper) = leaf.split(key, self.shape.size_max);
                leaf.set_stamp(self.stamp());
                upper.set_stamp(self.stamp());
                let index = work.uppers.partition_point(|(other, _)| *other < separator);
                work.uppers.insert(index, (separator, upper));
            }
        }
    }

    /// Ends a change of a leaf: for good, or as if it had not been. What was split off stays so in either case, and others
    /// find it.
    pub(crate) fn settle(&self, work: Work<'_, K>, numbered: Option<&Numbered>) {
        let Work { mut latch, page, memory_bytes, has_removed, mut uppers } = work;
        let leaf = latch.leaf_mut().expect(IN_MEMORY);
        for leaf in std::iter::once(&mut *leaf).chain(uppers.iter_mut().map(|(_, upper)| upper)) {
            match numbered {
                Some(Numbered { commit, horizon }) => leaf.commit(*commit, *horizon),
                None => leaf.roll_back(),
            }
        }
        let all = std::iter::once(&*leaf).chain(uppers.iter().map(|(_, upper)| upper));
        self.note_memory(memory_bytes, all.map(Leaf::memory_bytes).sum());
        self.note_leaves(uppers.len().cast_signed());
        self.settle_memory();
        match page {
            // It has what it had.
            Some(page) if numbered.is_none() && uppers.is_empty() => leaf.set_page(page),
            page => self.give_up(page),
        }
        if !uppers.is_empty() {
            let _structure = self.structure.lock().unwrap_or_else(PoisonError::into_inner);
            let mut directory = Directory::clone(&self.directory.read());
            let mut latches = Vec::new();
            for (separator, upper) in uppers {
                let (slot, latch) = self.slots.add(Place::Resident(Box::new(upper)));
                directory = directory.with(separator, slot);
                latches.push(latch);
            }
            self.directory.replace(directory);
            return;
        }
        let is_sparse = has_removed && leaf.size() < self.shape.size_max / NEARLY_EMPTY_DIVISOR;
        if let (Some(Numbered { commit, .. }), Some(low), true) = (numbered, leaf.low(), is_sparse) {
            self.sparse().push((*commit, low.clone()));
            self.has_sparse.store(true, Ordering::Release);
        }
    }
}
