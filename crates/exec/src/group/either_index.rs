//! The index of a set of groups, by one of two things: their keys, or the rows of the join that brought them.

use super::index::GroupIndex;
use super::merge::Merging;
use super::partners::Partners;
use super::plan::{GroupPlan, SetPlan};
use crate::aggregate::Argument;
use crate::error::check_cancelled;
use crate::join::JoinTable;
use crate::{Error, Result, Vector};
use foldhash::fast::RandomState;
use sinter_codec::VECTOR_LEN;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// What a row's group is found by.
#[derive(Debug)]
pub(super) enum EitherIndex {
    Keys(GroupIndex),
    /// One join brings all keys.
    Partners(Partners),
}

impl EitherIndex {
    /// No group yet, of a run with these tables of joins.
    pub(super) fn new(plan: &GroupPlan, set: &SetPlan, tables: &[Arc<JoinTable>]) -> EitherIndex {
        match &plan.partner_keys {
            Some(keys) => EitherIndex::Partners(Partners::new(keys, &tables[keys.join])),
            None => EitherIndex::Keys(GroupIndex::new(&set.index)),
        }
    }

    /// No group yet, of a part of the keys.
    pub(super) fn emptied(&self, plan: &GroupPlan, set: &SetPlan) -> Result<EitherIndex> {
        match (self, &plan.partner_keys) {
            (EitherIndex::Partners(partners), Some(keys)) => Ok(EitherIndex::Partners(partners.emptied(keys))),
            (EitherIndex::Keys(_), _) => Ok(EitherIndex::Keys(GroupIndex::new(&set.index.without_array()))),
            (EitherIndex::Partners(_), None) => Err(mixed()),
        }
    }

    /// How many groups there are.
    pub(super) fn len(&self) -> usize {
        match self {
            EitherIndex::Keys(index) => index.len(),
            EitherIndex::Partners(partners) => partners.len(),
        }
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            EitherIndex::Keys(index) => index.bytes(),
            EitherIndex::Partners(partners) => partners.bytes(),
        }
    }

    /// Whether few groups have been met, and are known by where keys stand.
    pub(super) fn are_few(&self) -> bool {
        matches!(self, EitherIndex::Keys(index) if index.are_few())
    }

    /// No more groups come.
    pub(super) fn settle(&mut self) {
        if let EitherIndex::Keys(index) = self {
            index.share_texts();
        }
    }

    /// Writes over `hashes` one for the keys of each of these groups, the same for the same keys.
    pub(super) fn hashes(&self, groups: Range<usize>, hasher: &RandomState, hashes: &mut Vec<u64>) {
        match self {
            EitherIndex::Keys(index) => index.hashes(groups, hasher, hashes),
            EitherIndex::Partners(partners) => partners.hashes(groups, hasher, hashes),
        }
    }

    /// Writes over `out` the keys of these groups, a vector for each key.
    pub(super) fn keys(&self, groups: Range<usize>, out: &mut [Vector]) {
        match self {
            EitherIndex::Keys(index) => index.keys(groups, out),
            EitherIndex::Partners(partners) => partners.keys(groups, out),
        }
    }

    /// Takes over another worker's groups; returns which of ours they are.
    pub(super) fn merge(
        &mut self,
        other: &mut EitherIndex,
        key_count: usize,
        merging: Merging<'_>,
    ) -> Result<Vec<u32>> {
        if let (EitherIndex::Keys(index), EitherIndex::Keys(other)) = (&mut *self, &mut *other)
            && let Some(map) = index.merge_many(other, None, merging)?
        {
            return Ok(map);
        }
        other.settle();
        self.merge_some(other, 0..other.len() as u32, key_count, merging.cancelled)
    }

    /// Takes over some of another worker's groups; returns which of ours they are.
    pub(super) fn merge_some(
        &mut self,
        other: &EitherIndex,
        mut groups: impl ExactSizeIterator<Item = u32>,
        key_count: usize,
        cancelled: &AtomicBool,
    ) -> Result<Vec<u32>> {
        let mut map = Vec::with_capacity(groups.len());
        let (mut some, mut numbers) = (Vec::new(), Vec::new());
        let mut keys = vec![Vector::default(); key_count];
        while groups.len() > 0 {
            check_cancelled(cancelled)?;
            some.clear();
            some.extend(groups.by_ref().take(VECTOR_LEN));
            match (&mut *self, other) {
                (EitherIndex::Partners(partners), EitherIndex::Partners(other)) if partners.shares_table(other) => {
                    some.iter_mut().for_each(|group| *group = other.rows()[*group as usize]);
                    partners.find(&some, &mut numbers)?;
                }
                (EitherIndex::Keys(index), EitherIndex::Keys(other)) => {
                    other.keys_of(&some, &mut keys);
                    let arguments: Vec<_> = keys.iter().map(|key| Argument::of(key, some.len())).collect();
                    index.number(&arguments, some.len(), &mut numbers)?;
                }
                _ => return Err(mixed()),
            }
            map.extend_from_slice(&numbers);
        }
        Ok(map)
    }
}

/// Whoever makes groups makes them all of one plan.
#[cold]
pub(super) fn mixed() -> Error {
    Error::Unsupported("groups of different plans as one".into())
}
