//! What a transaction does to one table.

use crate::{Alteration, Changed, ColumnTable, Prepared, Rebased, Result, TableSchema, rebase};
use std::sync::Arc;

/// A transaction's changes to one table. A clone is a savepoint; dropping the last one gives back what was written.
///
/// The rows that it inserts have provisional ids, from the base's next one on: they follow the base's groups, which
/// keep their places and of which only the marks change. So what was deleted can be read off the two values.
#[derive(Clone, Debug)]
pub struct Draft {
    base: Arc<ColumnTable>,
    now: Arc<ColumnTable>,
    /// Each with the schema that it alters.
    pub(crate) alterations: Vec<(Arc<TableSchema>, Alteration)>,
}

impl Draft {
    /// No changes yet of the table that a transaction found.
    pub fn new(base: Arc<ColumnTable>) -> Draft {
        Draft { now: Arc::clone(&base), base, alterations: Vec::new() }
    }

    /// The table that the transaction found.
    pub fn base(&self) -> &Arc<ColumnTable> {
        &self.base
    }

    /// The table as the transaction sees it.
    pub fn now(&self) -> &Arc<ColumnTable> {
        &self.now
    }

    /// Takes what a statement led to, which began from [`Draft::now`].
    pub fn take(&mut self, changed: Changed) {
        debug_assert!(changed.table.groups().len() >= self.base.groups().len(), "a change begins from what is there");
        self.now = changed.table;
    }

    /// Alters the table.
    ///
    /// # Errors
    /// [`crate::Error::Data`] naming the column and the remedy; the draft is then as before.
    pub fn alter(&mut self, alteration: Alteration) -> Result<()> {
        let before = Arc::clone(self.now.schema());
        self.now = Arc::new(alteration.applied(&self.now)?);
        self.alterations.push((before, alteration));
        Ok(())
    }

    /// Whether the table's schema changes.
    pub fn is_altered(&self) -> bool {
        !self.alterations.is_empty()
    }

    /// Whether the schema changes by more than indexes, so that what others do to rows matters to it.
    pub fn is_altered_for_rows(&self) -> bool {
        let is_index = |(_, alteration): &(_, Alteration)| {
            matches!(alteration, Alteration::AddIndex { .. } | Alteration::DropIndex { .. })
        };
        !self.alterations.iter().all(is_index)
    }

    /// Whether rows come or go.
    pub fn changes_rows(&self) -> bool {
        let (was, now) = (self.base.groups(), self.now.groups());
        now.len() > was.len() || was.iter().zip(now).any(|(was, now)| !now.has_marks_of(was))
    }

    /// Whether its own rows are in pages, which are to be durable before it commits.
    pub fn has_pages(&self) -> bool {
        self.now.groups()[self.base.groups().len()..].iter().any(|entry| entry.group.pages().next().is_some())
    }

    /// True when nothing was done.
    pub fn is_empty(&self) -> bool {
        self.alterations.is_empty() && Arc::ptr_eq(&self.base, &self.now)
    }

    /// The part of a commit's work that does not depend on what others have committed.
    ///
    /// # Errors
    /// Those of writing records.
    pub fn prepare(&self) -> Result<Prepared<'_>> {
        rebase::prepare(self)
    }

    /// The same changes to what the table is now: [`Draft::prepare`] and [`Prepared::rebase`].
    ///
    /// # Errors
    /// Those of both.
    pub fn rebase(&self, current: &ColumnTable) -> Result<Rebased> {
        self.prepare()?.rebase(current)
    }
}
