//! A build side, ready to be looked up.

use super::build::BuildPlan;
use super::index::{JoinIndex, Lookup, write_at_nulls};
use super::key_filter::KeyFilter;
use super::plan::JoinKind;
use super::ranks::{Ranks, bounds};
use crate::aggregate::Argument;
use crate::memory::Held;
use crate::parallel::threads_for_quick;
use crate::store::RowStore;
use crate::vector::scalar_at;
use crate::{Error, Memory, Result, Vector};
use foldhash::fast::RandomState;
use sinter_codec::{Bitmap, Scalar, VECTOR_LEN, Values};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// So many values of a key are listed at most: as many as an index is asked for at once (`index/look_up.rs` of sql).
const LISTED_MAX: usize = 1024;

/// Of so many rows at most.
const LISTED_ROWS_MAX: usize = 4 * LISTED_MAX;

/// The rows of a build side with an index over their keys.
#[derive(Debug)]
pub(crate) struct JoinTable {
    store: RowStore,
    index: JoinIndex,
    /// Which column of the store each payload is; `None` for what nobody asks for.
    payload: Vec<Option<usize>>,
    /// Which rows had a partner, or which numbers, where somebody asks.
    met: Option<Met>,
    /// Between which integers each key is.
    key_bounds: Vec<Option<(i128, i128)>>,
    /// At most one key has a filter: its number, and the filter.
    filter: Option<(usize, Arc<KeyFilter>)>,
    /// Of each key, how many different ones at most.
    key_counts: Vec<usize>,
    /// Of each key, all values, where they were asked for and are few.
    key_lists: Vec<Option<Vec<Scalar>>>,
    /// Whether there are any, and any without a key.
    has_rows: bool,
    has_null: bool,
    /// What the index takes.
    _memory: Held,
}

/// A bit for each row, or first for each number of a key, that had a partner.
#[derive(Debug)]
struct Met {
    bits: Vec<AtomicU64>,
    by_number: bool,
}

impl JoinTable {
    pub(super) fn new(
        mut store: RowStore,
        plan: &BuildPlan,
        threads: usize,
        memory: &Arc<dyn Memory>,
        cancelled: &AtomicBool,
    ) -> Result<JoinTable> {
        let threads = threads_for_quick(store.rows(), threads);
        let mut held = Held::new(memory);
        // The numbers of all rows while the index is made, and the index.
        held.need(store.rows() * 3 * size_of::<u32>())?;
        let keys = 0..plan.key_types.len();
        let key_bounds = keys.clone().map(|key| bounds(store.values(key), store.validity(key), threads));
        let key_bounds: Vec<_> = key_bounds.collect();
        let index = JoinIndex::new(&store, &plan.key_types, &key_bounds, plan.nulls_are_equal, threads, cancelled)?;
        if plan.kind == JoinKind::Single && !index.is_unique() {
            return Err(Error::SeveralRows);
        }
        let has_null = keys.clone().any(|key| store.validity(key).is_some_and(|validity| !validity.all()));
        let by_number = !plan.kind.has_pairs() && !plan.has_condition && !index.is_unique();
        let met = plan.kind.has_rest().then(|| Met::new(store.rows(), by_number));
        held.need(index.bytes() + met.as_ref().map_or(0, |met| 8 * met.bits.len()))?;
        let key_counts: Vec<usize> =
            keys.clone().map(|key| index.ranks(key).map_or(store.rows(), Ranks::count)).collect();
        let filter = filter_of(&store, &index, &key_counts, plan, memory);
        let list = |key: usize| plan.lists_keys.then(|| listed(store.values(key), store.validity(key))).flatten();
        let key_lists = keys.map(list).collect();
        let is_payload = |column: usize| plan.payload.contains(&Some(column));
        (0..plan.key_types.len()).filter(|&key| !is_payload(key)).for_each(|key| store.forget(key));
        let has_rows = store.rows() > 0;
        Ok(JoinTable {
            store,
            index,
            payload: plan.payload.clone(),
            met,
            key_bounds,
            filter,
            key_counts,
            key_lists,
            has_rows,
            has_null,
            _memory: held,
        })
    }

    /// The table of which nothing is asked but which keys are there; what they take is held already.
    pub(super) fn of_keys(
        keys: Ranks,
        has_null: bool,
        plan: &BuildPlan,
        held: Held,
        memory: &Arc<dyn Memory>,
    ) -> Result<JoinTable> {
        let store = RowStore::new(&[], memory);
        let has_rows = has_null || keys.count() > 0;
        let (key_bounds, key_counts) = (vec![keys.bounds()], vec![keys.count()]);
        let is_listed = plan.lists_keys && keys.count() <= LISTED_MAX;
        let key_lists = vec![is_listed.then(|| keys.integers().map(|key| Scalar::Int(key.into())).collect())];
        let index = JoinIndex::of_keys(keys);
        let filter = filter_of(&store, &index, &key_counts, plan, memory);
        let payload = plan.payload.clone();
        Ok(JoinTable {
            store,
            index,
            payload,
            met: None,
            key_bounds,
            filter,
            key_counts,
            key_lists,
            has_rows,
            has_null,
            _memory: held,
        })
    }

    /// All values of a key, but NULL; `None` where nobody asked for them before, or they are many.
    pub(crate) fn key_list(&self, key: usize) -> Option<&[Scalar]> {
        self.key_lists.get(key)?.as_deref()
    }

    /// Between which integers a key is; `None` where that is not known.
    pub(crate) fn key_bounds(&self, key: usize) -> Option<(i128, i128)> {
        self.key_bounds.get(key).copied().flatten()
    }

    /// The filter of this key, if it is the one that has one.
    pub(crate) fn key_filter(&self, key: usize) -> Option<&Arc<KeyFilter>> {
        self.filter.as_ref().filter(|(asked, _)| *asked == key).map(|(_, filter)| filter)
    }

    /// So many different ones there are of a key at most.
    pub(crate) fn key_count(&self, key: usize) -> usize {
        self.key_counts.get(key).copied().unwrap_or(usize::MAX)
    }

    /// Whether nobody can be met, with whatever key.
    pub(crate) fn is_empty(&self) -> bool {
        !self.has_rows
    }

    /// Whether no two rows have the same keys.
    pub(crate) fn is_unique(&self) -> bool {
        self.index.is_unique()
    }

    /// How many rows can be met.
    pub(crate) fn rows(&self) -> usize {
        self.store.rows()
    }

    /// The rows with keys of this number.
    pub(crate) fn matches(&self, number: u32) -> &[u32] {
        self.index.rows(number)
    }

    /// Writes over `out` what each row meets: a row of ours where keys are unique, or else the number of its keys; or
    /// [`NONE`](crate::store::NONE).
    pub(super) fn find(
        &self,
        keys: &[Argument<'_>],
        rows: usize,
        lookup: &mut Lookup,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        self.index.find(keys, rows, lookup, out)
    }

    /// As [`JoinIndex::find_partners`].
    pub(super) fn find_partners(
        &self,
        keys: &[Argument<'_>],
        lookup: &mut Lookup,
        kept: &mut Vec<u16>,
        out: Option<&mut Vec<u32>>,
    ) -> bool {
        self.index.find_partners(keys, lookup, kept, out)
    }

    /// Of rows that found no partner, those that might have one if a NULL were known meet something.
    pub(super) fn leave_doubts_out(&self, keys: &[Argument<'_>], met: &mut [u32]) {
        if self.has_null {
            met.fill(0);
        } else if self.has_rows {
            keys.iter().for_each(|key| write_at_nulls(*key, 0, met));
        }
    }

    /// Notes that these met somebody: rows, or numbers of keys where those are asked for.
    pub(crate) fn mark(&self, met: &[u32]) {
        let Some(Met { bits, .. }) = &self.met else { return };
        for &row in met {
            // Nobody is at the end of all bits.
            if let Some(word) = bits.get(row as usize / 64) {
                let bit = 1 << (row % 64);
                if word.load(Ordering::Relaxed) & bit == 0 {
                    word.fetch_or(bit, Ordering::Relaxed);
                }
            }
        }
    }

    /// To be called once nobody marks any more: bits are those of rows then.
    pub(crate) fn settle(&self) {
        let Some(met) = self.met.as_ref().filter(|met| met.by_number) else { return };
        let numbers: Vec<u64> = met.bits.iter().map(|word| word.swap(0, Ordering::Relaxed)).collect();
        for (word, bits) in numbers.into_iter().enumerate() {
            for bit in (0..64).filter(|bit| bits >> bit & 1 == 1) {
                self.mark(self.matches((word * 64 + bit) as u32));
            }
        }
    }

    /// Writes over `out` the next rows that come out at the end, a vector's worth at most; `from` moves on behind them.
    pub(crate) fn rest(&self, kind: JoinKind, from: &mut usize, out: &mut Vec<u32>) {
        out.clear();
        let Some(Met { bits, .. }) = &self.met else { return };
        while *from < self.store.rows() && out.len() < VECTOR_LEN {
            let is_met = bits[*from / 64].load(Ordering::Relaxed) >> (*from % 64) & 1 == 1;
            if is_met == (kind == JoinKind::RightSemi) {
                out.push(*from as u32);
            }
            *from += 1;
        }
    }

    /// Mixes what rows have in a payload column into their `hashes`, as [`RowStore::hash`] does.
    pub(crate) fn hash(&self, column: usize, rows: &[u32], hasher: &RandomState, hashes: &mut [u64]) {
        debug_assert!(self.payload[column].is_some(), "a column that nobody asked for");
        if let Some(column) = self.payload[column] {
            self.store.hash(column, rows, hasher, hashes);
        }
    }

    /// Whether two rows have the same in a payload column, or NULLs.
    pub(crate) fn is_same(&self, column: usize, one: u32, other: u32) -> bool {
        self.payload[column].is_none_or(|column| self.store.is_same(column, one, other))
    }

    /// Writes a payload column of these rows over `out`; NULL for [`NONE`](crate::store::NONE).
    pub(crate) fn gather(&self, column: usize, rows: &[u32], out: &mut Vector) {
        if let Some(column) = self.payload[column] {
            self.store.gather(column, rows, out);
        }
    }
}

/// The values, each once; `None` where they are many, or floats, of which some are equal that do not look it.
fn listed(values: Values<'_>, validity: Option<&Bitmap>) -> Option<Vec<Scalar>> {
    if values.len() > LISTED_ROWS_MAX || matches!(values, Values::F32(_) | Values::F64(_)) {
        return None;
    }
    let present = (0..values.len()).filter(|&row| validity.is_none_or(|validity| validity.get(row)));
    let mut known = HashSet::new();
    let mut list = Vec::new();
    for value in present.map(|row| scalar_at(values, row)) {
        let is_new = match &value {
            Scalar::Int(value) => known.insert(value.to_le_bytes().to_vec()),
            Scalar::Bytes(value) => known.insert(value.clone()),
            Scalar::Null | Scalar::Float(_) => false,
        };
        if is_new {
            list.push(value);
        }
        if list.len() > LISTED_MAX {
            return None;
        }
    }
    Some(list)
}

/// The filter of the key whose values are fewest beside those of the scan, where they are few enough for any. Without memory for
/// one, no row is left out early.
fn filter_of(
    store: &RowStore,
    index: &JoinIndex,
    key_counts: &[usize],
    plan: &BuildPlan,
    memory: &Arc<dyn Memory>,
) -> Option<(usize, Arc<KeyFilter>)> {
    let keys = key_counts.iter().zip(&plan.filter_keys_max).enumerate();
    let few = keys.filter(|(_, (count, max))| (**count).max(1) <= **max);
    let share = |(_, (count, max)): &(usize, (&usize, &usize))| **count as f64 / **max as f64;
    let (key, _) = few.min_by(|one, other| share(one).total_cmp(&share(other)))?;
    let filter = match index.ranks(key) {
        Some(ranks) => KeyFilter::of_ranks(ranks, memory).ok(),
        None => KeyFilter::of_values(store.values(key), store.validity(key), memory).ok().flatten(),
    };
    Some((key, Arc::new(filter?)))
}

impl Met {
    /// Numbers of keys are no more than rows.
    fn new(rows: usize, by_number: bool) -> Met {
        Met { bits: (0..rows.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(), by_number }
    }
}
