//! A key-value tree as a table of SQL, in the state that a statement sees.

use super::KvTree;
use super::any_tree::{AnyChanges, AnyTree, OfKind};
use super::ranges::{ALL_KEYS, AnyRange, is_over, narrow};
use super::source::{KEY, OverflowState, State, TreeSource};
use crate::catalog::Catalog;
use crate::{Error, Result};
use arrow::datatypes::{Field, Schema, SchemaRef};
use sinter_btree::{Cursor, Find};
use sinter_exec::edge::arrow_type;
use sinter_exec::{Expr, ScanColumn, TableSource};
use sinter_storage::{ObjectId, Snapshot};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::{Arc, Mutex, PoisonError};

/// Which state of trees a statement sees. There is none where nobody reads trees.
#[derive(Clone, Debug, Default)]
pub(crate) struct TreesSeen {
    snapshot: Option<Arc<Snapshot<Catalog>>>,
    /// What the transaction of the statement has written itself.
    own: Arc<BTreeMap<ObjectId, AnyChanges>>,
}

impl TreesSeen {
    /// As they are in a snapshot, but for what the statement's transaction has written.
    pub(crate) fn new(snapshot: Arc<Snapshot<Catalog>>, own: BTreeMap<ObjectId, AnyChanges>) -> TreesSeen {
        TreesSeen { snapshot: Some(snapshot), own: Arc::new(own) }
    }

    /// Shows the entries of a tree of bytes, in order, whose keys are in a range, as long as `visit` goes on.
    ///
    /// # Errors
    /// A leaf cannot be read.
    pub(crate) fn for_each_of_bytes(
        &self,
        tree: &KvTree,
        range: (Bound<&[u8]>, Bound<&[u8]>),
        visit: VisitEntry<'_>,
    ) -> Result<()> {
        let AnyTree::Bytes(of_bytes) = tree.tree() else {
            return Err(Error::Internal("a tree of numbers where one of bytes belongs".to_owned()));
        };
        let Some(snapshot) = self.snapshot.as_ref().filter(|_| !is_over(&range)) else { return Ok(()) };
        let mut cursor = Cursor::new(Arc::clone(of_bytes), snapshot.commit());
        match range.0 {
            Bound::Included(start) => cursor.seek(Find::GreaterEqual, start)?,
            Bound::Excluded(start) => cursor.seek(Find::Greater, start)?,
            Bound::Unbounded => cursor.first()?,
        };
        let is_within = |key: &[u8]| match range.1 {
            Bound::Included(end) => key <= end,
            Bound::Excluded(end) => key < end,
            Bound::Unbounded => true,
        };
        let own = match self.own.get(&tree.id()) {
            Some(OfKind::Bytes(own)) => Some(own),
            _ => None,
        };
        let mut own = own.into_iter().flat_map(|own| own.range::<[u8], _>(range)).peekable();
        loop {
            let in_tree = cursor.entry().filter(|(key, _)| is_within(key));
            let is_own = match (in_tree, own.peek()) {
                (None, None) => return Ok(()),
                (Some((key, _)), Some((own, _))) => own.as_slice() <= key,
                (_, own) => own.is_some(),
            };
            let mut goes_on = ControlFlow::Continue(());
            let mut is_passed = !is_own;
            if is_own {
                let Some((key, record)) = own.next() else { return Ok(()) };
                is_passed = in_tree.is_some_and(|(other, _)| other == key.as_slice());
                if let Some(record) = record {
                    goes_on = visit(key, record);
                }
            } else if let Some((key, record)) = in_tree {
                goes_on = visit(key, record);
            }
            if goes_on.is_break() {
                return Ok(());
            }
            if is_passed {
                cursor.next()?;
            }
        }
    }
}

/// Is shown a key and its record, and says whether it wants more.
pub(crate) type VisitEntry<'v> = &'v mut dyn FnMut(&[u8], &[u8]) -> ControlFlow<()>;

/// Ranges of keys, and the source that has them.
type Made = (Vec<AnyRange>, Arc<dyn TableSource>);

/// A tree as a statement sees it.
#[derive(Debug)]
pub(crate) struct TreeTable {
    name: String,
    tree: Arc<KvTree>,
    snapshot: Arc<Snapshot<Catalog>>,
    /// What the transaction of the statement has written itself.
    own: Option<AnyChanges>,
    /// And to the tree's overflow.
    own_pieces: Option<AnyChanges>,
    /// What was asked for already.
    made: Mutex<Vec<Made>>,
}

impl TreeTable {
    /// `None` where the statement sees no state of trees.
    pub(crate) fn new(name: String, tree: &Arc<KvTree>, seen: &TreesSeen) -> Option<TreeTable> {
        let (tree, snapshot) = (Arc::clone(tree), Arc::clone(seen.snapshot.as_ref()?));
        let own = seen.own.get(&tree.id()).cloned();
        let own_pieces = tree.overflow().and_then(|overflow| seen.own.get(&overflow.id())).cloned();
        Some(TreeTable { name, tree, snapshot, own, own_pieces, made: Mutex::default() })
    }

    pub(crate) fn id(&self) -> ObjectId {
        self.tree.id()
    }

    /// `key`, and `value` where there are values.
    pub(crate) fn schema(&self) -> SchemaRef {
        let columns = self.tree.shape().columns();
        let fields = columns.iter().map(|(name, ty)| Field::new(*name, arrow_type(ty), false));
        Arc::new(Schema::new(fields.collect::<Vec<_>>()))
    }

    /// The keys of the tree that a filter over these columns may let through, as ranges in order of which none overlap.
    pub(crate) fn ranges(&self, columns: &[ScanColumn], filter: &[Expr]) -> Vec<AnyRange> {
        let is_key = |column: usize| columns.get(column) == Some(&ScanColumn::Table(KEY));
        let mut ranges = vec![ALL_KEYS];
        filter.iter().for_each(|condition| narrow(&mut ranges, condition, self.tree.shape().key, &is_key));
        match self.tree.shape().pairs() {
            Some(pairs) => ranges.iter().map(|range| pairs.range(range)).collect(),
            None => ranges,
        }
    }

    /// The entries whose keys are in these ranges, which are in order and do not overlap. Planning asks for the same more than
    /// once, and each time leaves would have to be looked at.
    ///
    /// # Errors
    /// A leaf cannot be read.
    pub(crate) fn source(&self, ranges: &[AnyRange]) -> Result<Arc<dyn TableSource>> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, source)) = made.iter().find(|(known, _)| known == ranges) {
            return Ok(Arc::clone(source));
        }
        let source = self.make(ranges)?;
        made.push((ranges.to_vec(), Arc::clone(&source)));
        Ok(source)
    }

    fn make(&self, ranges: &[AnyRange]) -> Result<Arc<dyn TableSource>> {
        let shape = self.tree.shape();
        let (name, shape) = (self.name.clone(), *shape);
        let snapshot = Arc::clone(&self.snapshot);
        let own = self.own.clone();
        let overflow = self.tree.overflow().map(|overflow| OverflowState::new(overflow, self.own_pieces.clone()));
        let other = || Error::Internal(format!("what was written to '{}' is of other keys than it has", self.name));
        macro_rules! source {
            ($kind:ident, $tree:expr) => {{
                let own = match own {
                    None => None,
                    Some(OfKind::$kind(own)) => Some(own),
                    Some(_) => return Err(other()),
                };
                let state = State { tree: Arc::clone($tree), snapshot, own, overflow };
                Arc::new(TreeSource::new(name, &shape, state, ranges)?)
            }};
        }
        Ok(match self.tree.tree() {
            OfKind::U32(tree) => source!(U32, tree),
            OfKind::U64(tree) => source!(U64, tree),
            OfKind::Bytes(tree) => source!(Bytes, tree),
        })
    }
}
