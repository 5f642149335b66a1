//! Keeping row groups few and full: delta batches are merged, and pressed once they make a row group; so are groups with
//! many deleted rows.
//!
//! Nothing of this is logged, since the rows and their ids stay the same: after a crash the log brings the smaller
//! batches back.

use crate::delta_batch::delta_batch;
use crate::group::Segment;
use crate::group_entry::GroupEntry;
use crate::group_writer::{GROUP_BYTES, Gathered, GroupWriter, concatenated, group_bytes_max, row_ids_of, weight};
use crate::{ColumnTable, Error, Result, Rewrite};
use arrow::array::ArrayRef;
use sinter_codec::VECTOR_LEN;
use sinter_exec::edge;
use sinter_storage::{Reservation, Use};
use std::collections::BTreeSet;
use std::ops::Range;

/// A rewrite takes no more than about so many full row groups: what is done when the next one fails, or meets a
/// concurrent one, stays done.
const RUN_GROUPS_MAX: u64 = 8;

/// Row groups of a table that could not be read when they were to be pressed, by their first row ids. They stay as they
/// are, and nothing else has to wait for that.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unreadable(BTreeSet<u64>);

impl Unreadable {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn has(&self, entry: &GroupEntry) -> bool {
        self.0.contains(&entry.group.first_row_id())
    }
}

/// Why neighbouring groups were not pressed.
enum Refusal {
    /// This one of the table's groups cannot be read.
    At(usize, Error),
    Other(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        Refusal::Other(error)
    }
}

impl Refusal {
    /// Of reading the group that stands at `index`.
    fn of_reading(index: usize) -> impl Fn(Error) -> Refusal {
        move |error| if error.is_damage() { Refusal::At(index, error) } else { Refusal::Other(error) }
    }
}

impl ColumnTable {
    /// Keeps delta batches few: neighbours of similar size at the end become one, and a row group's worth of them is
    /// pressed, where the database can be written to. `None` when there is nothing to do.
    ///
    /// # Errors
    /// Those of reading, encoding and writing.
    pub fn settling(&self, threads: usize) -> Result<Option<Rewrite>> {
        self.settling_from(0, threads)
    }

    /// The same for the groups from `first` on.
    pub(crate) fn settling_from(&self, first: usize, threads: usize) -> Result<Option<Rewrite>> {
        let fresh = self.fresh_from(first);
        let mut fresh_weight = 0u64;
        for entry in &self.groups()[fresh.clone()] {
            fresh_weight = fresh_weight.saturating_add(self.weight(entry)?);
        }
        if fresh_weight >= GROUP_BYTES {
            match self.press_run(first, fresh, threads, &Unreadable::default()) {
                Ok(rewrite) => return Ok(Some(rewrite)),
                Err(Refusal::Other(Error::Storage(sinter_storage::Error::ReadOnly { .. }))) => {}
                Err(Refusal::At(_, error) | Refusal::Other(error)) => return Err(error),
            }
        }
        self.merging_from(first)
    }

    /// The first half of [`ColumnTable::settling`], which is quick: delta batches of similar size at the end become one.
    ///
    /// # Errors
    /// Those of reading and encoding.
    pub fn merging(&self) -> Result<Option<Rewrite>> {
        self.merging_from(0)
    }

    /// The delta batches at the end.
    fn fresh_from(&self, first: usize) -> Range<usize> {
        let fresh = self.groups()[first..].iter().rev().take_while(|entry| entry.group.is_fresh()).count();
        let end = self.groups().len();
        end - fresh..end
    }

    fn merging_from(&self, first: usize) -> Result<Option<Rewrite>> {
        let fresh = self.fresh_from(first);
        let end = fresh.end;
        let weights =
            self.groups()[fresh.clone()].iter().map(|entry| self.weight(entry)).collect::<Result<Vec<_>>>()?;
        let (mut start, mut rows, mut run_weight) = (end, 0, 0u64);
        for (index, weight) in fresh.zip(weights).rev() {
            let entry = &self.groups()[index];
            let grown = run_weight.saturating_add(weight);
            if start < end && (grown > GROUP_BYTES || entry.group.rows > 2 * rows) {
                break;
            }
            (start, rows, run_weight) = (index, rows + entry.group.rows, grown);
        }
        let run = &self.groups()[start..];
        if run.len() < 2 {
            return Ok(None);
        }
        let gathered = self.gather(run)?;
        let merged = if gathered.rows == 0 { None } else { Some(delta_batch(self, gathered)?.into()) };
        Ok(Some(Rewrite::new(self, run, merged.into_iter().collect())))
    }

    /// Presses delta batches and row groups that are mostly deleted, together with small row groups before them:
    /// the first run of neighbours that there is. `None` when there is nothing to do; so whoever wants all of it
    /// publishes what it got and asks again. Groups that cannot be read are passed over, and noted; those that are noted
    /// already are not tried again.
    ///
    /// # Errors
    /// Those of encoding and writing.
    pub fn pressing(&self, threads: usize, unreadable: &mut Unreadable) -> Result<Option<Rewrite>> {
        loop {
            match self.first_pressed(threads, unreadable) {
                Ok(rewrite) => return Ok(rewrite),
                Err(Refusal::At(index, _)) => {
                    unreadable.0.insert(self.groups()[index].group.first_row_id());
                }
                Err(Refusal::Other(error)) => return Err(error),
            }
        }
    }

    fn first_pressed(&self, threads: usize, unreadable: &Unreadable) -> Result<Option<Rewrite>, Refusal> {
        let loose = |entry: &GroupEntry| entry.is_loose() && !unreadable.has(entry);
        let Some(start) = self.groups().iter().position(loose) else { return Ok(None) };
        let (mut end, mut run_weight) = (start, 0u64);
        while let Some(entry) = self.groups().get(end)
            && loose(entry)
            && run_weight < RUN_GROUPS_MAX * GROUP_BYTES
        {
            run_weight = run_weight.saturating_add(self.weight(entry).map_err(Refusal::of_reading(end))?);
            end += 1;
        }
        self.press_run(0, start..end, threads, unreadable).map(Some)
    }

    /// Living rows that [`ColumnTable::pressing`] would press.
    pub fn loose_rows(&self) -> u64 {
        let loose = self.groups().iter().filter(|entry| entry.is_loose());
        loose.map(|entry| entry.live_rows() as u64).sum()
    }

    /// Bytes in chunks that [`ColumnTable::pressing`] would leave out: those of deleted rows, where most are. An estimate,
    /// as if all rows of a group took the same.
    pub fn bytes_to_give_back(&self) -> u64 {
        let sparse = self.groups().iter().filter(|entry| !entry.group.is_fresh() && entry.is_mostly_deleted());
        let dead = sparse.map(|entry| {
            let bytes: usize = entry.group.segments.iter().map(Segment::byte_len).sum();
            let rows = entry.group.rows.max(1);
            (bytes as u128 * (rows - entry.live_rows()) as u128 / rows as u128) as u64
        });
        dead.sum()
    }

    /// Presses neighbouring groups, and small ones before them, but none before `first`, nor beyond one that is `unreadable`.
    fn press_run(
        &self,
        first: usize,
        run: Range<usize>,
        threads: usize,
        unreadable: &Unreadable,
    ) -> Result<Rewrite, Refusal> {
        let Range { mut start, end } = run;
        let weight_of = |index: usize| self.weight(&self.groups()[index]).map_err(Refusal::of_reading(index));
        let mut run_weight = 0u64;
        for index in start..end {
            run_weight = run_weight.saturating_add(weight_of(index)?);
        }
        // A small group before is pressed once more with them; the factor keeps that work logarithmic. Small is by
        // weight: few rows that fill a row group with their bytes are none that could grow.
        while start > first && run_weight < GROUP_BYTES {
            let before = &self.groups()[start - 1];
            if unreadable.has(before) || weight(before.live_rows() as u64, 0, 1) > run_weight {
                break;
            }
            let before_weight = weight_of(start - 1)?;
            if before_weight > run_weight {
                break;
            }
            run_weight = run_weight.saturating_add(before_weight);
            start -= 1;
        }
        let replacement = self.pressed(start..end, threads)?;
        Ok(Rewrite::new(self, &self.groups()[start..end], replacement))
    }

    /// The living rows of neighbouring groups as few pressed ones.
    fn pressed(&self, run: Range<usize>, threads: usize) -> Result<Vec<GroupEntry>, Refusal> {
        let mut writer = GroupWriter::new(self, threads);
        for (index, entry) in run.clone().zip(&self.groups()[run]) {
            // Whether it could be read does not matter any more.
            if entry.live_rows() == 0 {
                continue;
            }
            let rows = entry.group.rows;
            // Row groups of earlier releases may be larger than those of this one, as may be those with a column that
            // was added later, or from a time when there was more memory: never all of such a one at once.
            let vectors = rows.div_ceil(VECTOR_LEN) as u64;
            let plain_bytes = entry.group.plain_bytes().map_err(Refusal::of_reading(index))?;
            let pieces = plain_bytes.div_ceil(writer.bytes_max()).clamp(1, vectors);
            let step = rows.div_ceil(pieces as usize);
            let _unpacked = self.scratch(plain_bytes / pieces);
            for start in (0..rows).step_by(step) {
                let piece = self.living(entry, start..rows.min(start + step));
                let (ids, columns) = piece.map_err(Refusal::of_reading(index))?;
                writer.push(&ids, &columns)?;
            }
        }
        writer.press()?;
        Ok(writer.finish()?.into_iter().map(GroupEntry::from).collect())
    }

    /// The living rows of some groups.
    fn gather(&self, entries: &[GroupEntry]) -> Result<Gathered> {
        let plain_bytes = entries.iter().map(|entry| entry.group.plain_bytes()).sum::<Result<u64>>()?;
        let _unpacked = self.scratch(2 * plain_bytes);
        let mut ids: Vec<u64> = Vec::new();
        let mut columns: Vec<Vec<ArrayRef>> = vec![Vec::new(); self.schema().columns.len()];
        for entry in entries {
            let (more, arrays) = self.living(entry, 0..entry.group.rows)?;
            ids.extend(more);
            columns.iter_mut().zip(arrays).for_each(|(parts, array)| parts.push(array));
        }
        let columns = columns.iter().map(|parts| concatenated(parts)).collect::<Result<_>>()?;
        Ok(Gathered { rows: ids.len(), row_ids: row_ids_of(ids), columns })
    }

    /// Memory for rows that are unpacked. It is taken: without pressing, tables would hold more for longer.
    fn scratch(&self, bytes: u64) -> Reservation {
        self.store().budget().take(Use::Scratch, usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    /// How full its living rows would make a row group now, of [`GROUP_BYTES`].
    fn weight(&self, entry: &GroupEntry) -> Result<u64> {
        entry.weight(group_bytes_max(self.store().budget()))
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
        let columns = self.schema().columns.iter().zip(&group.segments).map(|(column, segment)| {
            Ok(edge::decode_segment(&segment.pin()?, &column.ty, range.clone(), keep.as_ref())?)
        });
        Ok((ids, columns.collect::<Result<_>>()?))
    }
}
