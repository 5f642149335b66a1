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

/// Nodes of these children, each with the separator before it; three quarters of what a node may have are in each, so that
/// the next to come do not divide it.
fn parents<K: TreeKey + ?Sized, C>(
    children: Vec<(Option<K::Owned>, C)>,
    count_max: usize,
    of: impl Fn(Vec<C>) -> Children<K>,
) -> Vec<(Option<K::Owned>, Directory<K>)> {
    let mut parents = Vec::new();
    let mut children = children.into_iter().peekable();
    while children.peek().is_some() {
        let (lows, children): (Vec<Option<K::Owned>>, Vec<C>) = children.by_ref().take(count_max / 4 * 3).unzip();
        let mut lows = lows.into_iter();
        let low = lows.next().flatten();
        parents.push((low, Directory { separators: lows.flatten().collect(), children: of(children) }));
    }
    parents
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

    /// The leaf to which the key belongs, the first for `None`; and the separator behind it.
    pub(crate) fn leaf_and_end(&self, key: Option<&K>) -> (SlotIndex, Option<&K::Owned>) {
        let (mut node, mut end) = (self, None);
        loop {
            let index = node.separators.partition_point(|separator| key.is_some_and(|key| lent::<K>(separator) <= key));
            end = node.separators.get(index).or(end);
            match &node.children {
                Children::Inner(children) => node = &children[index],
                Children::Leaves(slots) => return (slots[index], end),
            }
        }
    }

    /// Whether a leaf begins with this key; for `None`, there is always a first.
    pub(crate) fn begins_leaf(&self, key: Option<&K>) -> bool {
        let Some(key) = key else { return true };
        let mut node = self;
        loop {
            let index = node.separators.partition_point(|separator| lent::<K>(separator) <= key);
            if index.checked_sub(1).is_some_and(|before| lent::<K>(&node.separators[before]) == key) {
                return true;
            }
            match &node.children {
                Children::Inner(children) => node = &children[index],
                Children::Leaves(_) => return false,
            }
        }
    }

    /// The directory of leaves in the order of keys, each with the separator before it; that of the first is not looked
    /// at.
    ///
    /// # Panics
    /// When there are none.
    pub(crate) fn of(leaves: Vec<(Option<K::Owned>, SlotIndex)>) -> Directory<K> {
        let mut level = parents(leaves, LEAVES_MAX, Children::Leaves);
        while level.len() > 1 {
            let nodes = level.into_iter().map(|(low, node)| (low, Arc::new(node))).collect();
            level = parents(nodes, CHILDREN_MAX, Children::Inner);
        }
        level.pop().expect("there is a leaf").1
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

    /// The directory without the leaf behind this separator: its keys belong to the leaf before. `None` where there is no
    /// such leaf.
    pub(crate) fn without(&self, separator: &K) -> Option<Directory<K>> {
        let mut root = self.without_below(separator)?;
        while let Children::Inner(children) = &root.children
            && let [child] = &children[..]
        {
            root = Directory::clone(child);
        }
        Some(root)
    }

    fn without_below(&self, separator: &K) -> Option<Directory<K>> {
        let index = self.separators.partition_point(|before| lent::<K>(before) <= separator);
        let is_first_behind = index.checked_sub(1).filter(|before| lent::<K>(&self.separators[*before]) == separator);
        let mut node = self.clone();
        match (&mut node.children, is_first_behind) {
            (Children::Leaves(slots), before) => {
                node.separators.remove(before?);
                slots.remove(index);
            }
            (Children::Inner(children), None) => children[index] = Arc::new(children[index].without_below(separator)?),
            (Children::Inner(children), Some(before)) => match children[index].without_first() {
                Some((low, child)) => {
                    node.separators[before] = low;
                    children[index] = Arc::new(child);
                }
                None => {
                    node.separators.remove(before);
                    children.remove(index);
                }
            },
        }
        Some(node)
    }

    /// The node without its first leaf, and the separator before what is first then; `None` where that was all.
    fn without_first(&self) -> Option<(K::Owned, Directory<K>)> {
        let mut node = self.clone();
        match &mut node.children {
            Children::Leaves(slots) => {
                slots.remove(0);
            }
            Children::Inner(children) => match children[0].without_first() {
                Some((low, child)) => {
                    children[0] = Arc::new(child);
                    return Some((low, node));
                }
                None => {
                    children.remove(0);
                }
            },
        }
        if node.separators.is_empty() {
            return None;
        }
        let low = node.separators.remove(0);
        Some((low, node))
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
