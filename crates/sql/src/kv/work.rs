//! What a transaction writes and reads of trees.

use super::KvTree;
use super::any_tree::{AnyChanges, AnyDraft, AnyPrepared};
use super::draft::DraftMark;
use crate::Result;
use sinter_storage::{CommitNumber, Numbered, ObjectId, Record};
use std::collections::BTreeMap;
use std::sync::Arc;

/// See the module. Drafts are in the order of trees' numbers, in which all transactions latch.
#[derive(Debug, Default)]
pub(crate) struct KvWork {
    drafts: BTreeMap<ObjectId, (Arc<KvTree>, AnyDraft)>,
}

/// How far a transaction's changes of trees were at some moment: by tree, how many there were.
#[derive(Clone, Debug, Default)]
pub(crate) struct KvMark(BTreeMap<ObjectId, DraftMark>);

impl KvWork {
    /// Whether nothing is written.
    pub(crate) fn is_empty(&self) -> bool {
        self.drafts.values().all(|(_, draft)| draft.is_empty())
    }

    /// What is written and read of this tree.
    pub(crate) fn draft(&mut self, tree: &Arc<KvTree>) -> &mut AnyDraft {
        &mut self.drafts.entry(tree.id()).or_insert_with(|| (Arc::clone(tree), tree.draft())).1
    }

    /// Whether anything of this tree is written or read.
    pub(crate) fn has(&self, tree: ObjectId) -> bool {
        self.drafts.contains_key(&tree)
    }

    /// What is written and read of the tree with this number, if anything is.
    pub(crate) fn draft_of(&mut self, tree: ObjectId) -> Option<&mut AnyDraft> {
        self.drafts.get_mut(&tree).map(|(_, draft)| draft)
    }

    /// Whether anything of the tree with this number is written or read.
    pub(crate) fn is_touched(&self, tree: ObjectId) -> bool {
        self.drafts.get(&tree).is_some_and(|(_, draft)| !draft.is_untouched())
    }

    /// What is written, by tree, those of overflows among them.
    pub(crate) fn changes(&self) -> BTreeMap<ObjectId, AnyChanges> {
        let written = self.drafts.iter().filter(|(_, (_, draft))| !draft.is_empty());
        written.flat_map(|(id, (_, draft))| draft.changes(*id)).collect()
    }

    pub(crate) fn mark(&self) -> KvMark {
        KvMark(self.drafts.iter().map(|(id, (_, draft))| (*id, draft.mark())).collect())
    }

    /// Takes back what was written since.
    pub(crate) fn go_back(&mut self, mark: &KvMark) {
        for (id, (_, draft)) in &mut self.drafts {
            draft.go_back(mark.0.get(id).copied().unwrap_or_default());
        }
    }

    /// The trees that are written to, each with the log's records of it.
    pub(crate) fn records(&self) -> Vec<(Arc<KvTree>, Vec<Record>)> {
        let written = self.drafts.iter().filter(|(_, (_, draft))| !draft.is_empty());
        written.map(|(id, (tree, draft))| (Arc::clone(tree), draft.log_records(*id))).collect()
    }

    /// Latches what is written and what was read; the tree of which something else was committed after `at`, if there is
    /// one.
    ///
    /// # Errors
    /// A leaf cannot be read, or memory is wanting; nothing was changed.
    pub(crate) fn prepare(&self, at: CommitNumber) -> Result<std::result::Result<Vec<AnyPrepared<'_>>, ObjectId>> {
        let mut all = Vec::new();
        for (id, (_, draft)) in self.drafts.iter().filter(|(_, (_, draft))| !draft.is_untouched()) {
            match draft.prepare(at)? {
                Some((prepared, pieces)) => all.extend(std::iter::once(prepared).chain(pieces)),
                None => return Ok(Err(*id)),
            }
        }
        Ok(Ok(all))
    }

    /// After the commit, with nothing latched.
    pub(crate) fn merge_sparse(&self, numbered: &Numbered) {
        self.drafts.values().for_each(|(_, draft)| draft.merge_sparse(numbered.horizon));
    }
}
