//! A table in memory that counts how often its segments are asked for.

use arrow::array::ArrayRef;
use sinter_codec::{Bitmap, Block, BlockStats, Choice};
use sinter_exec::{LogicalType, Pinned, ReadAhead, Result, RowIds, TableSource, edge};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

#[derive(Debug)]
pub(crate) struct MemoryTable {
    types: Vec<LogicalType>,
    names: Vec<String>,
    groups: Vec<Group>,
    /// Calls of [`TableSource::segment`].
    pub(crate) pins: AtomicUsize,
    /// Calls of [`TableSource::will_read`]: groups and their columns.
    pub(crate) announced: Mutex<Vec<(usize, Vec<usize>)>>,
    /// Shared with all that is announced and still held.
    pub(crate) wishes: Arc<()>,
    /// Show zone maps.
    pub(crate) zones: bool,
    /// That operators take at a time.
    pub(crate) vector_rows: usize,
    /// Panic when this group's segments are asked for.
    pub(crate) panics_at: Option<usize>,
}

#[derive(Debug)]
struct Group {
    rows: usize,
    first_id: u64,
    deleted: Option<Arc<Bitmap>>,
    segments: Vec<(Pinned, BlockStats)>,
}

impl MemoryTable {
    /// Columns cut into groups, each column encoded by its choice.
    pub(crate) fn new(columns: &[(ArrayRef, LogicalType)], group_rows: usize, choices: &[Choice]) -> MemoryTable {
        let rows = columns.first().map_or(0, |(array, _)| array.len());
        let mut groups = Vec::new();
        for start in (0..rows).step_by(group_rows) {
            let len = group_rows.min(rows - start);
            let encode = |(index, (array, ty)): (usize, &(ArrayRef, LogicalType))| {
                let mut bytes = Vec::new();
                let choice = &choices[index % choices.len()];
                let part = array.slice(start, len);
                // A scheme may refuse values that it was not made for.
                let stats = edge::encode_segment(&part, ty, choice, &mut bytes).unwrap_or_else(|_| {
                    bytes.clear();
                    edge::encode_segment(&part, ty, &Choice::Auto, &mut bytes).expect("encodes")
                });
                (Pinned::from_vec(bytes), stats)
            };
            let segments = columns.iter().enumerate().map(encode).collect();
            groups.push(Group { rows: len, first_id: start as u64 + 1000, deleted: None, segments });
        }
        let types: Vec<_> = columns.iter().map(|(_, ty)| ty.clone()).collect();
        let names = (0..types.len()).map(|column| format!("c{column}")).collect();
        MemoryTable {
            types,
            names,
            groups,
            pins: AtomicUsize::new(0),
            announced: Mutex::default(),
            wishes: Arc::default(),
            zones: true,
            vector_rows: sinter_codec::VECTOR_LEN,
            panics_at: None,
        }
    }

    /// Puts the last group before all others.
    pub(crate) fn last_group_first(&mut self) {
        self.groups.rotate_right(1);
    }

    /// Marks rows as deleted, by their position in the table.
    pub(crate) fn delete(&mut self, is_deleted: impl Fn(usize) -> bool) {
        for group in &mut self.groups {
            let start = group.first_id as usize - 1000;
            let marks = Bitmap::from_bools((0..group.rows).map(|row| is_deleted(start + row)));
            group.deleted = Some(Arc::new(marks));
        }
    }

    /// Replaces bytes of a segment.
    pub(crate) fn damage(&mut self, group: usize, column: usize, change: impl Fn(&mut Vec<u8>)) {
        let (pinned, _) = &mut self.groups[group].segments[column];
        let mut bytes = pinned.to_vec();
        change(&mut bytes);
        *pinned = Pinned::from_vec(bytes);
    }
}

impl TableSource for MemoryTable {
    fn name(&self) -> &str {
        "memory"
    }

    fn column_types(&self) -> &[LogicalType] {
        &self.types
    }

    fn column_name(&self, column: usize) -> &str {
        &self.names[column]
    }

    fn group_count(&self) -> usize {
        self.groups.len()
    }

    fn group_rows(&self, group: usize) -> usize {
        self.groups[group].rows
    }

    fn row_ids(&self, group: usize) -> RowIds {
        let group = &self.groups[group];
        let ids = group.first_id..group.first_id + group.rows as u64;
        if group.first_id.is_multiple_of(2) { RowIds::From(group.first_id) } else { RowIds::Listed(ids.collect()) }
    }

    fn deleted(&self, group: usize) -> Option<Arc<Bitmap>> {
        self.groups[group].deleted.clone()
    }

    fn zone(&self, group: usize, column: usize) -> Option<&BlockStats> {
        self.zones.then(|| &self.groups[group].segments[column].1)
    }

    fn vector_rows(&self) -> usize {
        self.vector_rows
    }

    fn segment(&self, group: usize, column: usize) -> Result<Pinned> {
        assert!(self.panics_at != Some(group), "this group panics");
        self.pins.fetch_add(1, Ordering::Relaxed);
        Ok(self.groups[group].segments[column].0.clone())
    }

    fn decode_nanos(&self, group: usize, column: usize) -> Option<f64> {
        let block = Block::open(&self.groups[group].segments[column].0).ok()?;
        Some(block.decode_nanos() / block.value_count() as f64)
    }

    fn segment_bytes(&self, group: usize, column: usize) -> Option<usize> {
        Some(self.groups[group].segments[column].0.len())
    }

    fn will_read(&self, group: usize, columns: &[usize]) -> Option<ReadAhead> {
        self.announced.lock().expect("no panic").push((group, columns.to_vec()));
        Some(ReadAhead::new(Arc::clone(&self.wishes)))
    }
}
