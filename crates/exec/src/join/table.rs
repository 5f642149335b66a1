//! A build side, ready to be looked up.

use super::build::BuildPlan;
use super::index::{JoinIndex, Lookup, Ranks};
use super::store::RowStore;
use crate::aggregate::Argument;
use crate::memory::Held;
use crate::{Error, Memory, Result, Vector};
use std::sync::Arc;

/// The rows of a build side with an index over their keys.
#[derive(Debug)]
pub(crate) struct JoinTable {
    store: RowStore,
    index: JoinIndex,
    /// Which column of the store each payload is; `None` for what nobody asks for.
    payload: Vec<Option<usize>>,
    /// What the index takes.
    _memory: Held,
}

impl JoinTable {
    pub(super) fn new(mut store: RowStore, plan: &BuildPlan, memory: &Arc<dyn Memory>) -> Result<JoinTable> {
        let mut held = Held::new(memory);
        // The numbers of all rows while the index is made, and the index.
        held.need(store.rows() * 3 * size_of::<u32>())?;
        let index = JoinIndex::new(&store, &plan.key_types, plan.nulls_are_equal)?;
        held.need(index.bytes())?;
        if plan.is_single && !index.is_unique() {
            return Err(Error::SeveralRows);
        }
        let is_payload = |column: usize| plan.payload.contains(&Some(column));
        (0..plan.key_types.len()).filter(|&key| !is_payload(key)).for_each(|key| store.forget(key));
        Ok(JoinTable { store, index, payload: plan.payload.clone(), _memory: held })
    }

    /// The table of which nothing is asked but which keys are there.
    pub(super) fn of_keys(mut keys: Ranks, plan: &BuildPlan, memory: &Arc<dyn Memory>) -> Result<JoinTable> {
        let mut held = Held::new(memory);
        keys.count_bits();
        held.need(keys.bytes())?;
        let store = RowStore::new(&[], memory);
        Ok(JoinTable { store, index: JoinIndex::of_keys(keys), payload: plan.payload.clone(), _memory: held })
    }

    /// Whether no two rows have the same keys.
    pub(super) fn is_unique(&self) -> bool {
        self.index.is_unique()
    }

    /// The rows with keys of this number.
    pub(crate) fn matches(&self, number: u32) -> &[u32] {
        self.index.rows(number)
    }

    /// Writes over `out` what each row meets: a row of ours where keys are unique, or else the number of its keys; or
    /// [`super::NONE`].
    pub(super) fn find(
        &self,
        keys: &[Argument<'_>],
        rows: usize,
        lookup: &mut Lookup,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        self.index.find(keys, rows, lookup, out)
    }

    /// Writes a payload column of these rows over `out`; NULL for [`super::NONE`].
    pub(crate) fn gather(&self, column: usize, rows: &[u32], out: &mut Vector) {
        if let Some(column) = self.payload[column] {
            self.store.gather(column, rows, out);
        }
    }
}
