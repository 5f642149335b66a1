//! Inner nodes, from the root to the leaves' slots: a value, made anew along one path when leaves come or go.
//!
//! Readers hold on to the directory that they found, and walk it without latches. The paper splits full inner nodes on the
//! way down (section 3.1, *local balancing*), so that no split reaches further up than one parent. Here the nodes on the
//! path are made anew in any case, and full ones are divided as that happens; nobody waits for it.

use crate::keys::{TreeKey, lent};
use crate::slots::SlotIndex;
use crate::sync::Arc;

/// The most leaves below one node: their numbers are copied when one of them is divided, which is little beside the
/// inserts between.
const LEAVES_MAX: usize = 256;

/// The most children of other nodes: a copy counts a handle up for each, and each lies somewhere else.
const CHILDREN_MAX: usize = 32;

/// A node, and all below it. Invariant: one separator less than children; the child behind a separator has the keys from
/// it on. All leaves are on one level.
#[derive(Debug)]
pub(crate) struct Directory<K: TreeKey + ?Sized> {
    separators: Vec<K::Owned>,
    children: Children<K>,
}

#[derive(Debug)]
enum Children<K: TreeKey + ?Sized> {
    Inner(Vec<Arc<Directory<K>>>),
    Leaves(Vec<SlotIndex>),
}

impl<K: TreeKey + ?Sized> Clone for Directory<K> {
    fn clone(&self) -> Directory<K> {
        let children = match &self.children {
            Children::Inner(children) => Children::Inner(children.clone()),
            Children::Leaves(slots) => Children::Leaves(slots.clone()),
        };
        Directory { separators: self.separators.clone(), children }
    }
}

/// A node that may have become two: the first, and the second with the separator between.
struct Parts<K: TreeKey + ?Sized> {
    lower: Directory<K>,
    upper: Option<(K::Owned, Directory<K>)>,
}

impl<K: TreeKey + ?Sized> Directory<K> {
    /// Of one leaf.
    pub(crate) fn new(slot: SlotIndex) -> Directory<K> {
        Directory { separators: Vec::new(), children: Children::Leaves(vec![slot]) }
    }

    /// The leaf to which the key belongs.
    #[inline]
    pub(crate) fn leaf_of(&self, key: &K) -> SlotIndex {
        self.leaf_behind(|separator| separator <= key)
    }

    /// The same; the first leaf for `None`.
    pub(crate) fn leaf_from(&self, key: Option<&K>) -> SlotIndex {
        self.leaf_behind(|separator| key.is_some_and(|key| separator <= key))
    }

    /// The leaf to which the greatest keys before this one belong; the last leaf for `None`.
    pub(crate) fn leaf_before(&self, key: Option<&K>) -> SlotIndex {
        self.leaf_behind(|separator| key.is_none_or(|key| separator < key))
    }

    /// The leaf behind the last separator for which `is_before` holds; it holds for none behind one for which it does not.
    #[inline]
    fn leaf_behind(&self, is_before: impl Fn(&K) -> bool) -> SlotIndex {
        let mut node = self;
        loop {
            let index = node.separators.partition_point(|separator| is_before(lent(separator)));
            match &node.children {
                Children::Inner(children) => node = &children[index],
                Children::Leaves(slots) => return slots[index],
            }
        }
    }

    /// The directory with another leaf, for the keys from `separator` on that the leaf there had so far.
    pub(crate) fn with(&self, separator: K::Owned, slot: SlotIndex) -> Directory<K> {
        match self.with_parts(separator, slot) {
            Parts { lower, upper: None } => lower,
            Parts { lower, upper: Some((separator, upper)) } => Directory {
                separators: vec![separator],
                children: Children::Inner(vec![Arc::new(lower), Arc::new(upper)]),
            },
        }
    }

    fn with_parts(&self, separator: K::Owned, slot: SlotIndex) -> Parts<K> {
        let index = self.separators.partition_point(|before| *before <= separator);
        let newest = separator.clone();
        let mut node = self.clone();
        match &mut node.children {
            Children::Leaves(slots) => {
                node.separators.insert(index, separator);
                slots.insert(index + 1, slot);
            }
            Children::Inner(children) => {
                let Parts { lower, upper } = children[index].with_parts(separator, slot);
                children[index] = Arc::new(lower);
                if let Some((separator, upper)) = upper {
                    node.separators.insert(index, separator);
                    children.insert(index + 1, Arc::new(upper));
                }
            }
        }
        node.divided(&newest)
    }

    /// Two nodes where it has too many children. `newest`: the separator that came; where it is the last, the node stays
    /// as full as it was, since others will follow.
    fn divided(mut self, newest: &K::Owned) -> Parts<K> {
        let count = self.separators.len() + 1;
        let count_max = match &self.children {
            Children::Inner(_) => CHILDREN_MAX,
            Children::Leaves(_) => LEAVES_MAX,
        };
        if count <= count_max {
            return Parts { lower: self, upper: None };
        }
        let is_last = self.separators.last().is_some_and(|last| last <= newest);
        let middle = if is_last { count - 1 } else { count / 2 };
        let separators = self.separators.split_off(middle);
        let separator = self.separators.pop().expect("there are as many as children, less one");
        let children = match &mut self.children {
            Children::Inner(children) => Children::Inner(children.split_off(middle)),
            Children::Leaves(slots) => Children::Leaves(slots.split_off(middle)),
        };
        Parts { lower: self, upper: Some((separator, Directory { separators, children })) }
    }

    /// The directory without the leaf behind this separator: its keys belong to the leaf before. `None` where the leaf is
    /// the first of its node: the leaf before is in another one, and the change would reach further up.
    pub(crate) fn without(&self, separator: &K) -> Option<Directory<K>> {
        let index = self.separators.partition_point(|before| lent::<K>(before) <= separator);
        let mut node = self.clone();
        match &mut node.children {
            Children::Leaves(slots) => {
                let index = index.checked_sub(1).filter(|index| lent::<K>(&node.separators[*index]) == separator)?;
                node.separators.remove(index);
                slots.remove(index + 1);
            }
            Children::Inner(children) => children[index] = Arc::new(children[index].without(separator)?),
        }
        Some(node)
    }

    /// Nodes above the leaves, from the root down.
    pub(crate) fn height(&self) -> usize {
        match &self.children {
            Children::Inner(children) => 1 + children[0].height(),
            Children::Leaves(_) => 1,
        }
    }

    /// Calls `visit` for each leaf, in the order of keys.
    pub(crate) fn for_each_leaf(&self, visit: &mut impl FnMut(SlotIndex)) {
        match &self.children {
            Children::Inner(children) => children.iter().for_each(|child| child.for_each_leaf(visit)),
            Children::Leaves(slots) => slots.iter().copied().for_each(visit),
        }
    }
}
