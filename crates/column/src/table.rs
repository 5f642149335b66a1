//! A column table's life: created, changed, pressed, checkpointed, read back.

use crate::group::{RowGroup, SegmentPlace};
use crate::group_writer::{GROUP_BYTES, GroupWriter, concatenated, row_ids_of, weight};
use crate::record::{fresh_payload, read_deleted, read_fresh_group, unknown};
use crate::root::{self, PageHandles};
use crate::wire::Reader;
use crate::{Result, Snapshot, TableSchema};
use arrow::array::ArrayRef;
use sinter_codec::{Bitmap, VECTOR_LEN};
use sinter_exec::edge;
use sinter_storage::{ObjectId, PageId, Record, RecordTag, Store};
use std::collections::HashSet;
use std::ops::Range;
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

    /// How full its living rows would make a row group, of [`GROUP_BYTES`].
    fn weight(&self) -> Result<u64> {
        let (live, rows) = (self.live_rows() as u64, self.group.rows.max(1) as u64);
        let bytes = (u128::from(self.group.plain_bytes()?) * u128::from(live) / u128::from(rows)) as u64;
        Ok(weight(live, bytes))
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

/// Row groups that were written and that nothing points to yet. Gives their pages back when dropped.
#[derive(Default)]
struct Written {
    groups: Vec<Arc<RowGroup>>,
}

impl Drop for Written {
    fn drop(&mut self) {
        self.groups.iter().flat_map(|group| group.pages()).for_each(|page| page.release());
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

    /// The table was dropped: its pages go back when whoever still reads it has let go of them. Until then it holds what
    /// it held: a statement that began before takes its snapshot when it comes to it.
    pub fn release(&self) {
        for entry in &self.state().groups {
            entry.group.pages().for_each(|page| page.release());
        }
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
                let group = read_fresh_group(&self.schema, record.payload.clone())?;
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
            if !left.group.is_fresh()
                || !right.group.is_fresh()
                || left.weight()?.saturating_add(right.weight()?) > GROUP_BYTES
                || left.group.rows > 2 * right.group.rows
            {
                break;
            }
            let (ids, columns) = self.gather(&[left.clone(), right.clone()])?;
            state.groups.truncate(state.groups.len() - 2);
            if !ids.is_empty() {
                let payload = fresh_payload(&self.schema, ids.len(), &row_ids_of(ids), &columns)?;
                let group = read_fresh_group(&self.schema, payload)?;
                state.groups.push(GroupEntry { group: Arc::new(group), deleted: None });
            }
        }
        let mut fresh_weight = 0u64;
        for entry in state.groups.iter().rev().take_while(|entry| entry.group.is_fresh()) {
            fresh_weight = fresh_weight.saturating_add(entry.weight()?);
        }
        if state.groups.len() != before {
            self.publish(state);
        }
        if fresh_weight >= GROUP_BYTES && may_press {
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
        let mut written = Written::default();
        let mut settled: Vec<GroupEntry> = Vec::new();
        let mut rest = std::mem::take(&mut state.groups).into_iter().peekable();
        while let Some(entry) = rest.next() {
            if !loose(&entry) {
                settled.push(entry);
                continue;
            }
            let mut run_weight = entry.weight()?;
            let mut run = vec![entry];
            while let Some(next) = rest.next_if(loose) {
                run_weight = run_weight.saturating_add(next.weight()?);
                run.push(next);
            }
            // A small group before is pressed once more with them; the factor keeps that work logarithmic. Small is by
            // weight: few rows that fill a row group with their bytes are none that could grow.
            while let Some(last) = settled.last()
                && run_weight < GROUP_BYTES
                && weight(last.live_rows() as u64, 0) <= run_weight
            {
                let last_weight = last.weight()?;
                if last_weight > run_weight {
                    break;
                }
                run_weight = run_weight.saturating_add(last_weight);
                run.extend(settled.pop());
            }
            run.sort_by_key(|entry| entry.group.first_row_id());
            let pressed = self.pressed(&run, threads)?;
            written.groups.extend(pressed.iter().map(|entry| Arc::clone(&entry.group)));
            settled.extend(pressed);
        }
        written.groups.clear();
        state.groups = settled;
        self.publish(state);
        Ok(())
    }

    /// The living rows of neighbouring groups as few pressed ones.
    fn pressed(&self, run: &[GroupEntry], threads: usize) -> Result<Vec<GroupEntry>> {
        let mut writer = GroupWriter::new(self, threads);
        for entry in run {
            let rows = entry.group.rows;
            // Row groups of earlier releases may be larger than those of this one: never all of such a one at once.
            let vectors = rows.div_ceil(VECTOR_LEN) as u64;
            let pieces = entry.group.plain_bytes()?.div_ceil(GROUP_BYTES).clamp(1, vectors) as usize;
            let step = rows.div_ceil(pieces);
            for start in (0..rows).step_by(step) {
                let (ids, columns) = self.living(entry, start..rows.min(start + step))?;
                writer.push(&ids, &columns)?;
            }
        }
        writer.press()?;
        let (groups, _) = writer.finish()?;
        Ok(groups.into_iter().map(|group| GroupEntry { group: Arc::new(group), deleted: None }).collect())
    }

    /// The living rows of some groups, with their ids.
    fn gather(&self, entries: &[GroupEntry]) -> Result<(Vec<u64>, Vec<ArrayRef>)> {
        let mut ids: Vec<u64> = Vec::new();
        let mut columns: Vec<Vec<ArrayRef>> = vec![Vec::new(); self.schema.columns.len()];
        for entry in entries {
            let (more, arrays) = self.living(entry, 0..entry.group.rows)?;
            ids.extend(more);
            columns.iter_mut().zip(arrays).for_each(|(parts, array)| parts.push(array));
        }
        Ok((ids, columns.iter().map(|parts| concatenated(parts)).collect::<Result<_>>()?))
    }

    /// The living rows among those at the positions `range` of a group, with their ids.
    fn living(&self, entry: &GroupEntry, range: Range<usize>) -> Result<(Vec<u64>, Vec<ArrayRef>)> {
        let GroupEntry { group, deleted } = entry;
        let keep = deleted.as_ref().map(|deleted| {
            let mut keep = deleted.slice(range.clone());
            keep.invert();
            keep
        });
        let ids = match &keep {
            None => range.clone().map(|position| group.row_id_at(position)).collect(),
            Some(keep) => keep.ones().map(|position| group.row_id_at(range.start + position)).collect(),
        };
        let columns = self.schema.columns.iter().zip(&group.segments).map(|(column, segment)| {
            Ok(edge::decode_segment(&segment.pin()?, &column.ty, range.clone(), keep.as_ref())?)
        });
        Ok((ids, columns.collect::<Result<_>>()?))
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
