//! A column table's life: created, changed, pressed, checkpointed, read back.

use crate::chunk::ChunkWriter;
use crate::group::{RowGroup, SegmentPlace};
use crate::loader::press;
use crate::record::{fresh_group, read_deleted, read_fresh_group, unknown};
use crate::root::{self, PageHandles};
use crate::wire::Reader;
use crate::{Result, Snapshot, TableSchema};
use arrow::array::{Array, ArrayRef};
use arrow::compute::concat;
use sinter_codec::{Bitmap, ROW_GROUP_LEN};
use sinter_exec::{RowIds, edge};
use sinter_storage::{ObjectId, PageId, Record, RecordTag, Store};
use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock};

/// A row group and which of its rows are deleted.
#[derive(Clone, Debug)]
pub struct GroupEntry {
    /// The rows.
    pub group: Arc<RowGroup>,
    /// 1 = deleted; `None` when none is.
    pub deleted: Option<Arc<Bitmap>>,
}

impl GroupEntry {
    /// Rows that are not deleted.
    pub fn live_rows(&self) -> usize {
        self.group.rows - self.deleted.as_ref().map_or(0, |deleted| deleted.count_ones())
    }
}

/// What a table holds after some commit. Immutable; row groups stand in the order of their row ids, delta batches last.
#[derive(Clone, Debug, Default)]
pub struct TableState {
    /// The rows.
    pub groups: Vec<GroupEntry>,
    /// The id that the next inserted row gets.
    pub next_row_id: u64,
}

impl TableState {
    /// Rows that are not deleted.
    pub fn live_rows(&self) -> u64 {
        self.groups.iter().map(|entry| entry.live_rows() as u64).sum()
    }

    /// Marks rows as deleted, those that are there and alive; returns how many.
    pub(crate) fn delete(&mut self, row_ids: &[u64]) -> u64 {
        let mut count = 0;
        let mut rest = row_ids;
        while let Some(&first) = rest.first() {
            let index = self.groups.partition_point(|entry| entry.group.end_row_id() <= first);
            let Some(entry) = self.groups.get_mut(index) else { break };
            let here = rest.partition_point(|&id| id < entry.group.end_row_id());
            let mut marks = entry.deleted.as_deref().cloned();
            for &id in &rest[..here] {
                if let Some(position) = entry.group.position_of(id) {
                    let marks = marks.get_or_insert_with(|| Bitmap::new(entry.group.rows, false));
                    if !marks.get(position) {
                        marks.set(position, true);
                        count += 1;
                    }
                }
            }
            entry.deleted = marks.map(Arc::new);
            rest = &rest[here..];
        }
        count
    }

    /// Lets go of the groups without a living row.
    pub(crate) fn drop_empty_groups(&mut self) -> Vec<Arc<RowGroup>> {
        let (kept, dropped) = std::mem::take(&mut self.groups).into_iter().partition(|entry| entry.live_rows() > 0);
        self.groups = kept;
        dropped.into_iter().map(|entry: GroupEntry| entry.group).collect()
    }
}

/// A table: a name in the catalog, an immutable schema, and the current state behind one pointer.
///
/// Thread safety: any number of snapshots may be taken at any time. Changes are made by one writer at a time; the rooms
/// above see to that.
#[derive(Debug)]
pub struct ColumnTable {
    id: ObjectId,
    name: String,
    schema: Arc<TableSchema>,
    store: Arc<Store>,
    state: RwLock<Arc<TableState>>,
}

impl ColumnTable {
    /// A new, empty table.
    pub fn create(id: ObjectId, name: &str, schema: Arc<TableSchema>, store: Arc<Store>) -> ColumnTable {
        ColumnTable { id, name: name.to_owned(), schema, store, state: RwLock::default() }
    }

    /// The table whose root page a checkpoint wrote.
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
        let bytes = store.pin(root)?;
        let state = root::read(name, &schema, &store, &bytes)?;
        Ok(ColumnTable { id, name: name.to_owned(), schema, store, state: RwLock::new(Arc::new(state)) })
    }

    /// Its number, which log records carry.
    pub fn id(&self) -> ObjectId {
        self.id
    }

    /// Its name, for messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its columns.
    pub fn schema(&self) -> Arc<TableSchema> {
        Arc::clone(&self.schema)
    }

    pub(crate) fn store(&self) -> Arc<Store> {
        Arc::clone(&self.store)
    }

    /// What it holds now.
    pub fn state(&self) -> Arc<TableState> {
        Arc::clone(&self.state.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// What it holds now, as the engine wants to see it.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        Arc::new(Snapshot::new(self.name.clone(), self.schema(), self.state()))
    }

    /// Makes `state` the current one and lets go of the pages that only the old one needs.
    pub(crate) fn publish(&self, state: TableState) {
        let state = Arc::new(state);
        let old =
            std::mem::replace(&mut *self.state.write().unwrap_or_else(PoisonError::into_inner), Arc::clone(&state));
        let same =
            old.groups.iter().zip(&state.groups).take_while(|(old, new)| Arc::ptr_eq(&old.group, &new.group)).count();
        if same == old.groups.len() {
            return;
        }
        let kept: HashSet<PageId> =
            state.groups.iter().flat_map(|entry| entry.group.pages()).map(|page| page.id()).collect();
        for page in old.groups[same..].iter().flat_map(|entry| entry.group.pages()) {
            if !kept.contains(&page.id()) {
                page.release();
            }
        }
    }

    /// The table was dropped: its pages go back when the last snapshot has let go of them.
    pub fn release(&self) {
        self.publish(TableState::default());
    }

    /// The chunks it points to.
    pub fn pages(&self) -> HashSet<PageId> {
        self.state().groups.iter().flat_map(|entry| entry.group.pages()).map(|page| page.id()).collect()
    }

    /// Applies a record of the log. Applying one twice, or one that a checkpoint already holds, changes nothing.
    ///
    /// # Errors
    /// [`crate::Error::Damaged`] for a record that is none of ours.
    pub fn apply(&self, record: &Record) -> Result<()> {
        let mut state = (*self.state()).clone();
        match record.tag {
            RecordTag::ROWS_INSERTED => {
                let group = read_fresh_group(&self.schema, &record.payload)?;
                if group.first_row_id() < state.next_row_id {
                    return Ok(());
                }
                state.next_row_id = group.end_row_id();
                state.groups.push(GroupEntry { group: Arc::new(group), deleted: None });
            }
            RecordTag::ROW_GROUPS_ATTACHED => {
                let mut input = Reader::new(&self.name, &record.payload);
                let mut pages = PageHandles::new(&self.store);
                for _ in 0..input.count()? {
                    let (group, _) =
                        RowGroup::read(&mut input, self.schema.columns.len(), &mut |page| pages.get(page))?;
                    if group.first_row_id() >= state.next_row_id {
                        state.next_row_id = group.end_row_id();
                        state.groups.push(GroupEntry { group: Arc::new(group), deleted: None });
                    }
                }
                input.end()?;
            }
            RecordTag::ROWS_DELETED => {
                state.delete(&read_deleted(&record.payload)?);
            }
            other => return Err(unknown(&self.name, other)),
        }
        self.publish(state);
        Ok(())
    }

    /// Keeps delta batches few: neighbours of similar size become one, and a row group's worth is pressed, where
    /// `may_press` allows writing. Nothing is logged, since the rows stay the same; a crash brings the smaller batches
    /// back.
    ///
    /// # Errors
    /// Those of encoding and writing; the state is then as before.
    pub fn settle(&self, threads: usize, may_press: bool) -> Result<()> {
        let mut state = (*self.state()).clone();
        let before = state.groups.len();
        while let [.., left, right] = &state.groups[..] {
            let rows = left.live_rows() + right.live_rows();
            if !left.group.is_fresh()
                || !right.group.is_fresh()
                || rows > ROW_GROUP_LEN
                || left.group.rows > 2 * right.group.rows
            {
                break;
            }
            let (rows, row_ids, columns) = self.gather(&[left.clone(), right.clone()])?;
            state.groups.truncate(state.groups.len() - 2);
            if rows > 0 {
                let (group, _) = fresh_group(self.id, &self.schema, rows, row_ids, &columns)?;
                state.groups.push(GroupEntry { group: Arc::new(group), deleted: None });
            }
        }
        let fresh_rows: usize =
            state.groups.iter().rev().map_while(|entry| entry.group.is_fresh().then_some(entry.group.rows)).sum();
        if state.groups.len() != before {
            self.publish(state);
        }
        if fresh_rows >= ROW_GROUP_LEN && may_press {
            self.press(threads)?;
        }
        Ok(())
    }

    /// Presses every delta batch and every row group that is mostly deleted, together with small row groups before
    /// them. What a checkpoint does first.
    ///
    /// # Errors
    /// Those of encoding and writing; the state is then as before.
    pub fn press(&self, threads: usize) -> Result<()> {
        let mut state = (*self.state()).clone();
        let dropped = state.drop_empty_groups();
        let loose = |entry: &GroupEntry| entry.group.is_fresh() || 2 * entry.live_rows() < entry.group.rows;
        if dropped.is_empty() && !state.groups.iter().any(loose) {
            return Ok(());
        }
        let mut settled: Vec<GroupEntry> = Vec::new();
        let mut rest = std::mem::take(&mut state.groups).into_iter().peekable();
        while let Some(entry) = rest.next() {
            if !loose(&entry) {
                settled.push(entry);
                continue;
            }
            let mut rows = entry.live_rows();
            let mut run = vec![entry];
            while let Some(next) = rest.next_if(loose) {
                rows += next.live_rows();
                run.push(next);
            }
            // A small group before is pressed once more with them; the factor keeps that work logarithmic.
            while let Some(small) = settled.pop_if(|last| rows < ROW_GROUP_LEN && last.live_rows() <= rows) {
                rows += small.live_rows();
                run.insert(0, small);
            }
            settled.extend(self.pressed(&run, threads)?);
        }
        state.groups = settled;
        self.publish(state);
        Ok(())
    }

    /// The living rows of neighbouring groups as few pressed ones.
    fn pressed(&self, run: &[GroupEntry], threads: usize) -> Result<Vec<GroupEntry>> {
        let mut chunks = ChunkWriter::new(self.store(), self.schema.columns.len());
        let mut start = 0;
        while start < run.len() {
            let mut end = start;
            let mut rows = 0;
            while end < run.len() && (end == start || rows + run[end].live_rows() <= ROW_GROUP_LEN) {
                rows += run[end].live_rows();
                end += 1;
            }
            let (rows, row_ids, columns) = self.gather(&run[start..end])?;
            if rows > 0 {
                chunks.push(rows, row_ids, press(&self.schema, &columns, threads)?)?;
            }
            start = end;
        }
        let (groups, _) = chunks.finish()?;
        Ok(groups.into_iter().map(|group| GroupEntry { group: Arc::new(group), deleted: None }).collect())
    }

    /// The living rows of some groups, with their ids.
    fn gather(&self, entries: &[GroupEntry]) -> Result<(usize, RowIds, Vec<ArrayRef>)> {
        let mut ids: Vec<u64> = Vec::new();
        let mut columns: Vec<Vec<ArrayRef>> = vec![Vec::new(); self.schema.columns.len()];
        for GroupEntry { group, deleted } in entries {
            let keep = deleted.as_ref().map(|deleted| {
                let mut keep = (**deleted).clone();
                keep.invert();
                keep
            });
            match &keep {
                None => ids.extend((0..group.rows).map(|position| group.row_id_at(position))),
                Some(keep) => ids.extend(keep.ones().map(|position| group.row_id_at(position))),
            }
            for (index, column) in self.schema.columns.iter().enumerate() {
                let segment = group.segments[index].pin()?;
                columns[index].push(edge::decode_segment(&segment, &column.ty, 0..group.rows, keep.as_ref())?);
            }
        }
        let columns = columns
            .iter()
            .map(|parts| {
                let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
                Ok(concat(&parts).map_err(|error| sinter_exec::Error::Foreign(error.to_string()))?)
            })
            .collect::<Result<Vec<_>>>()?;
        let row_ids = match (ids.first(), ids.last()) {
            (Some(&first), Some(&last)) if last - first == ids.len() as u64 - 1 => RowIds::From(first),
            _ => RowIds::Listed(ids.clone().into()),
        };
        Ok((ids.len(), row_ids, columns))
    }

    /// The bytes of the table's root page. Every row must have been pressed ([`ColumnTable::press`]).
    ///
    /// # Errors
    /// [`crate::Error::Damaged`] when a delta batch is left: a mistake of the caller.
    pub fn root_bytes(&self) -> Result<Vec<u8>> {
        root::write(&self.state())
    }

    /// Bytes that the table's segments take: in chunks, and in delta batches.
    pub fn segment_bytes(&self) -> (u64, u64) {
        let mut bytes = (0, 0);
        for segment in self.state().groups.iter().flat_map(|entry| &entry.group.segments) {
            match &segment.place {
                SegmentPlace::Stored { bytes: length, .. } => bytes.0 += u64::from(*length),
                SegmentPlace::Held(pinned) => bytes.1 += pinned.len() as u64,
            }
        }
        bytes
    }
}
