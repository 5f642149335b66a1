//! A transaction's changes to one table, made again on what others made of it meanwhile.

use crate::draft::Draft;
use crate::group::RowGroup;
use crate::group_entry::GroupEntry;
use crate::record::{attached, deleted, inserted};
use crate::{ColumnTable, Error, Result};
use sinter_storage::{PageId, Record};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// A draft as a change of the table that others left behind: what a commit needs.
#[derive(Debug)]
pub struct Rebased {
    /// The table after the commit.
    pub table: ColumnTable,
    /// What the log has to say: alterations, deletes, inserts, deletes of own rows.
    pub records: Vec<Record>,
    /// The pages that the records name.
    pub pages: Vec<PageId>,
}

/// What a draft's commit needs that does not depend on what others do: made while nobody waits.
#[derive(Debug)]
pub struct Prepared<'a> {
    draft: &'a Draft,
    /// Alterations, and deletes of rows of the base: their ids stay.
    records: Vec<Record>,
}

/// See [`Draft::prepare`].
pub(crate) fn prepare(draft: &Draft) -> Result<Prepared<'_>> {
    let id = draft.base().id();
    let mut records = Vec::new();
    for (before, alteration) in &draft.alterations {
        records.push(alteration.record(id, before.version.wrapping_add(1))?);
    }
    let groups = draft.base().groups().iter().zip(draft.now().groups());
    let ids: Vec<u64> = groups.flat_map(|(was, now)| now.deleted_since(was)).collect();
    records.extend(deleted(id, &ids)?);
    Ok(Prepared { draft, records })
}

impl Prepared<'_> {
    /// The same changes to what the table is now. Takes time for the number of row groups, for the rows that the draft
    /// deletes from groups that are not as it found them, and for those that it inserts in delta batches.
    ///
    /// # Errors
    /// [`Error::Conflict`] when a row that the draft deletes is not alive in `current`, or either side altered the table in
    /// a way that the other cannot follow.
    pub fn rebase(self, current: &ColumnTable) -> Result<Rebased> {
        let Prepared { draft, records } = self;
        let mut rebasing = Rebasing { draft, current, table: current.clone(), records };
        if draft.is_empty() {
            return Ok(rebasing.into_rebased(current.next_row_id()));
        }
        if !current.schema().is_same(draft.base().schema()) {
            return Err(rebasing.conflict("altered table '{}', which this one changes"));
        }
        rebasing.delete()?;
        rebasing.alter()?;
        let first = rebasing.insert()?;
        Ok(rebasing.into_rebased(first))
    }
}

struct Rebasing<'a> {
    draft: &'a Draft,
    current: &'a ColumnTable,
    table: ColumnTable,
    records: Vec<Record>,
}

impl Rebasing<'_> {
    /// `did` has the table's name in the place of `{}`.
    fn conflict(&self, did: &str) -> Error {
        let table = self.current.name().to_owned();
        let what = format!("another transaction {}", did.replace("{}", &table));
        Error::Conflict { table, what }
    }

    /// The base's groups as they were and as the draft sees them.
    fn base_groups(&self) -> impl Iterator<Item = (&GroupEntry, &GroupEntry)> {
        self.draft.base().groups().iter().zip(self.draft.now().groups())
    }

    /// Deletes what the draft deleted of the base.
    fn delete(&mut self) -> Result<()> {
        let draft = self.draft;
        let mut elsewhere = Vec::new();
        for (index, (was, now)) in draft.base().groups().iter().zip(draft.now().groups()).enumerate() {
            if now.has_marks_of(was) {
                continue;
            }
            match self.current.groups().get(index).filter(|here| here.is_same(was)) {
                // Nobody touched these rows, so the draft's marks are right as they are.
                Some(here) => {
                    let entry = GroupEntry { group: Arc::clone(&here.group), deleted: now.deleted.clone() };
                    self.table.set_entry(index, entry);
                }
                None => elsewhere.extend(now.deleted_since(was)),
            }
        }
        if self.table.delete(&elsewhere).len() != elsewhere.len() {
            return Err(self.conflict("changed or deleted a row of table '{}' that this one changes"));
        }
        Ok(())
    }

    /// Alters the groups of the current table: those of the base as the draft did, others anew.
    fn alter(&mut self) -> Result<()> {
        let draft = self.draft;
        if draft.alterations.is_empty() {
            return Ok(());
        }
        let known: HashMap<*const RowGroup, &GroupEntry> =
            self.base_groups().map(|(was, now)| (Arc::as_ptr(&was.group), now)).collect();
        let mut groups = Vec::with_capacity(self.table.groups().len());
        let mut fresh: Vec<GroupEntry> = Vec::new();
        for entry in self.table.groups() {
            match known.get(&Arc::as_ptr(&entry.group)) {
                Some(now) => {
                    groups.push(Some(GroupEntry { group: Arc::clone(&now.group), deleted: entry.deleted.clone() }))
                }
                None => {
                    groups.push(None);
                    fresh.push(entry.clone());
                }
            }
        }
        let mut others = self.table.with_groups(fresh);
        for (_, alteration) in &draft.alterations {
            others = alteration.applied(&others).map_err(|error| match error {
                Error::Data(_) => self.conflict("inserted rows into table '{}' that stand against an alteration"),
                error => error,
            })?;
        }
        let mut others = others.groups().iter().cloned();
        let groups = groups.into_iter().filter_map(|group| group.or_else(|| others.next())).collect();
        self.table = self.table.with_schema(Arc::clone(draft.now().schema()), groups);
        Ok(())
    }

    /// Appends the draft's own rows under their final ids; returns the first of these.
    fn insert(&mut self) -> Result<u64> {
        let first = self.current.next_row_id();
        let Some(shift) = first.checked_sub(self.draft.base().next_row_id()) else {
            return Err(Error::Damaged {
                table: self.current.name().to_owned(),
                what: "a change was rebased onto a table that is older than where it began".to_owned(),
            });
        };
        let id = self.current.id();
        let (mut attaching, mut gone): (Vec<Arc<RowGroup>>, Vec<u64>) = (Vec::new(), Vec::new());
        for entry in &self.draft.now().groups()[self.draft.base().groups().len()..] {
            if entry.live_rows() == 0 {
                continue;
            }
            let group = if shift == 0 { Arc::clone(&entry.group) } else { Arc::new(entry.group.shifted(shift)) };
            if group.is_fresh() {
                self.attach(&mut attaching)?;
                self.records.push(inserted(id, &group)?);
            } else {
                attaching.push(Arc::clone(&group));
            }
            let entry = GroupEntry { group, deleted: entry.deleted.clone() };
            gone.extend(entry.deleted_ids());
            self.table.push(entry);
        }
        self.attach(&mut attaching)?;
        self.records.extend(deleted(id, &gone)?);
        Ok(first)
    }

    /// One record for neighbours, because chunks may hold segments of several.
    fn attach(&mut self, groups: &mut Vec<Arc<RowGroup>>) -> Result<()> {
        if !groups.is_empty() {
            self.records.push(attached(self.current.id(), groups)?);
            groups.clear();
        }
        Ok(())
    }

    fn into_rebased(self, first: u64) -> Rebased {
        let Rebasing { table, records, .. } = self;
        let own = table.groups().partition_point(|entry| entry.group.first_row_id() < first);
        let pages = table.groups()[own..].iter().flat_map(|entry| entry.group.pages()).map(|page| page.id());
        let pages = pages.collect::<BTreeSet<PageId>>().into_iter().collect();
        Rebased { pages, table, records }
    }
}
