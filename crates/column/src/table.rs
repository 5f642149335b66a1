//! A column table at one moment: created, read back, brought up to date from the log, written as a root.

use crate::group::SegmentPlace;
use crate::group_entry::GroupEntry;
use crate::marks::Marks;
use crate::record::{read_attached, read_deleted, read_inserted, unknown};
use crate::{Alteration, Index, Result, TableSchema, root};
use sinter_codec::Bitmap;
use sinter_exec::LogicalType;
use sinter_storage::{ObjectId, PageId, Record, RecordTag, Store};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A table at one moment: an immutable value. Cloning it shares the row groups and keeps their pages from being given
/// back.
///
/// Row groups stand in the order of their row ids. A change of the rows is a [`crate::Change`], one of many statements
/// a [`crate::Draft`]; what only changes how rows are kept is a [`crate::Rewrite`]. Each leads to another value.
#[derive(Clone, Debug)]
pub struct ColumnTable {
    id: ObjectId,
    name: Arc<str>,
    schema: Arc<TableSchema>,
    pub(crate) types: Arc<[LogicalType]>,
    store: Arc<Store>,
    groups: Vec<GroupEntry>,
    next_row_id: u64,
}

impl ColumnTable {
    /// A new, empty table.
    pub fn create(id: ObjectId, name: &str, schema: Arc<TableSchema>, store: Arc<Store>) -> ColumnTable {
        let types = types_of(&schema);
        ColumnTable { id, name: name.into(), schema, types, store, groups: Vec::new(), next_row_id: 0 }
    }

    /// The table whose root page a checkpoint wrote, with the schema that it had then.
    ///
    /// # Errors
    /// [`crate::Error::Damaged`] and whatever reading the page can raise.
    pub fn load(
        id: ObjectId,
        name: &str,
        schema: Arc<TableSchema>,
        store: Arc<Store>,
        root: PageId,
    ) -> Result<ColumnTable> {
        let mut table = ColumnTable::create(id, name, schema, store);
        let bytes = table.store.pin(root)?;
        (table.groups, table.next_row_id) = root::read(name, &table.schema, &table.store, &bytes)?;
        Ok(table)
    }

    /// Its number, which log records carry.
    pub fn id(&self) -> ObjectId {
        self.id
    }

    /// Its name, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same table under another name.
    #[must_use]
    pub fn with_name(&self, name: &str) -> ColumnTable {
        ColumnTable { name: name.into(), ..self.clone() }
    }

    /// Its columns.
    pub fn schema(&self) -> &Arc<TableSchema> {
        &self.schema
    }

    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Its row groups, in the order of their row ids.
    pub fn groups(&self) -> &[GroupEntry] {
        &self.groups
    }

    /// The id that the next inserted row gets.
    pub fn next_row_id(&self) -> u64 {
        self.next_row_id
    }

    /// Rows that are not deleted.
    pub fn live_rows(&self) -> u64 {
        self.groups.iter().map(|entry| entry.live_rows() as u64).sum()
    }

    /// The chunks it points to.
    pub fn pages(&self) -> HashSet<PageId> {
        self.groups.iter().flat_map(|entry| entry.group.pages()).map(|page| page.id()).collect()
    }

    /// Bytes that the table's segments take: in chunks, and in memory.
    pub fn segment_bytes(&self) -> (u64, u64) {
        let mut bytes = (0, 0);
        for segment in self.groups.iter().flat_map(|entry| &entry.group.segments) {
            match &segment.place {
                SegmentPlace::Stored { bytes: length, .. } => bytes.0 += u64::from(*length),
                SegmentPlace::Held(pinned) => bytes.1 += pinned.len() as u64,
            }
        }
        bytes
    }

    /// Bytes that this state holds in memory, beside the pool: delta batches, the directories of its row groups, delete
    /// marks; in a database in memory its chunks, too. States share what they have in common, so two of them together
    /// hold less than the sum. What the budget has under [`sinter_storage::Use::Table`] beyond the newest states is held
    /// by those who still look at older ones.
    pub fn memory_bytes(&self) -> u64 {
        let (mut held_by, mut pages) = (HashMap::new(), HashMap::new());
        let mut bytes = 0;
        for entry in &self.groups {
            bytes += entry.group.directory_bytes() + entry.deleted.as_ref().map_or(0, Marks::memory_bytes);
            for segment in &entry.group.segments {
                match &segment.place {
                    SegmentPlace::Held(held) => held_by.insert(Arc::as_ptr(held.memory()), held.memory().bytes()),
                    SegmentPlace::Stored { page, .. } => pages.insert(page.id(), page.memory_bytes()),
                };
            }
        }
        (bytes + held_by.values().chain(pages.values()).sum::<usize>()) as u64
    }

    /// The bytes of the table's root page: where its chunks are, and what is in none.
    ///
    /// # Errors
    /// Those of encoding.
    pub fn root_bytes(&self) -> Result<Vec<u8>> {
        root::write(&self.groups, self.next_row_id)
    }

    /// The index that a record of the log adds, where what is in it follows from the rows of the table then.
    ///
    /// # Errors
    /// [`crate::Error::Damaged`] for a record that is none of ours.
    pub fn index_of_rows(&self, record: &Record) -> Result<Option<Index>> {
        Ok(match record.tag {
            RecordTag::TABLE_ALTERED => match Alteration::read(self, &record.payload)? {
                Some(Alteration::AddIndex { index, of_rows: true }) => Some(index),
                _ => None,
            },
            _ => None,
        })
    }

    /// Applies a record of the log, in place. Applying one twice, or one that a checkpoint already holds, changes
    /// nothing.
    ///
    /// # Errors
    /// [`crate::Error::Damaged`] for a record that is none of ours.
    pub fn apply(&mut self, record: &Record) -> Result<()> {
        match record.tag {
            RecordTag::ROWS_INSERTED => {
                let group = read_inserted(self, &record.payload)?;
                group.into_iter().for_each(|group| self.push(group.into()));
            }
            RecordTag::ROW_GROUPS_ATTACHED => {
                let groups = read_attached(self, &record.payload)?;
                groups.into_iter().for_each(|group| self.push(group.into()));
            }
            RecordTag::ROWS_DELETED => {
                self.delete(&read_deleted(&record.payload)?);
            }
            RecordTag::TABLE_ALTERED => {
                if let Some(alteration) = Alteration::read(self, &record.payload)? {
                    *self = alteration.replayed(self)?;
                }
            }
            other => return Err(unknown(&self.name, other)),
        }
        Ok(())
    }

    /// Appends rows, whose ids follow all others.
    pub(crate) fn push(&mut self, entry: GroupEntry) {
        self.next_row_id = entry.group.end_row_id();
        self.groups.push(entry);
    }

    /// Marks rows as deleted, by increasing id; returns those that were there and alive.
    pub(crate) fn delete(&mut self, row_ids: &[u64]) -> Vec<u64> {
        let mut deleted = Vec::new();
        let mut rest = row_ids;
        while let Some(&first) = rest.first() {
            let index = self.groups.partition_point(|entry| entry.group.end_row_id() <= first);
            let Some(GroupEntry { group, deleted: marks }) = self.groups.get_mut(index) else { break };
            let here = rest.partition_point(|&id| id < group.end_row_id());
            for &id in &rest[..here] {
                let Some(position) = group.position_of(id) else { continue };
                // Marks that another value shares are copied, once.
                let none = || Marks::new(self.store.budget(), Bitmap::new(group.rows, false));
                if marks.get_or_insert_with(none).mark(position) {
                    deleted.push(id);
                }
            }
            rest = &rest[here..];
        }
        deleted
    }

    /// Puts the entry for the same rows in the place of one.
    pub(crate) fn set_entry(&mut self, index: usize, entry: GroupEntry) {
        self.groups[index] = entry;
    }

    /// This table with other row groups; `next_row_id` stays.
    pub(crate) fn with_groups(&self, groups: Vec<GroupEntry>) -> ColumnTable {
        ColumnTable { groups, ..self.without_groups() }
    }

    /// This table with another schema and row groups to fit.
    pub(crate) fn with_schema(&self, schema: Arc<TableSchema>, groups: Vec<GroupEntry>) -> ColumnTable {
        ColumnTable { types: types_of(&schema), schema, groups, ..self.without_groups() }
    }

    fn without_groups(&self) -> ColumnTable {
        ColumnTable {
            id: self.id,
            name: Arc::clone(&self.name),
            schema: Arc::clone(&self.schema),
            types: Arc::clone(&self.types),
            store: Arc::clone(&self.store),
            groups: Vec::new(),
            next_row_id: self.next_row_id,
        }
    }
}

fn types_of(schema: &TableSchema) -> Arc<[LogicalType]> {
    schema.columns.iter().map(|column| column.ty.clone()).collect()
}
