//! Sums of keys, found within the leaves: what a session tells of a range of a tree without showing its keys.

use super::KeyType;
use super::any_tree::KeySums;
use super::handle::{KvHandle, KvKey};
use super::source::KEY;
use super::table::TreeTable;
use crate::{Error, Result, Session};
use sinter_codec::{Block, ValuesBuf};
use sinter_exec::TableSource;
use std::ops::{Bound, ControlFlow};

/// What there is of keys that are whole numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KvSums {
    /// How many they are.
    pub count: u64,
    /// All of them together.
    pub sum: i128,
    /// The least; `None` where there are none.
    pub min: Option<i128>,
    /// The greatest; `None` where there are none.
    pub max: Option<i128>,
}

impl KvSums {
    /// Their average; `None` where there are none.
    pub fn average(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// Of keys as the tree has them.
    fn of(KeySums { count, sum, bounds }: KeySums, ty: KeyType) -> KvSums {
        let value = |key: u64| if ty == KeyType::I64 { ty.signed(key).into() } else { i128::from(key) };
        let (min, max) = bounds.map(|(min, max)| (value(min), value(max))).unzip();
        // The tree's key is by 2^63 more than what it stands for.
        let more = if ty == KeyType::I64 { i128::from(count) << 63 } else { 0 };
        KvSums { count, sum: sum.cast_signed() - more, min, max }
    }

    /// Keys that are greater than those before.
    fn add(&mut self, keys: KvSums) {
        self.count += keys.count;
        self.sum += keys.sum;
        self.min = self.min.into_iter().chain(keys.min).min();
        self.max = self.max.into_iter().chain(keys.max).max();
    }
}

impl Session {
    /// The sum and the bounds of the keys of a range, in the session's transaction or in the last state that is durable.
    ///
    /// # Errors
    /// As [`Session::kv_get`]; [`Error::Data`] where keys are no whole numbers.
    pub fn kv_sums(&self, kv: &KvHandle, start: Bound<KvKey<'_>>, end: Bound<KvKey<'_>>) -> Result<KvSums> {
        if kv.key_type().is_bytes() {
            return Err(Error::Data(format!("keys of type {} have no sum", kv.key_type())));
        }
        if kv.pairs().is_some() {
            let mut sums = KvSums::default();
            self.kv_for_each(kv, (start, end), &mut |key, _| {
                if let KvKey::Int(key) = key {
                    sums.add(KvSums { count: 1, sum: key, min: Some(key), max: Some(key) });
                }
                ControlFlow::Continue(())
            })?;
            return Ok(sums);
        }
        let range = kv.range((start, end))?;
        self.database.runtime()?;
        let seen = match self.transaction().as_mut() {
            Some(transaction) => {
                transaction.check_usable()?;
                transaction.with_tree(kv.tree(), |draft, _, notes_reads| {
                    if notes_reads {
                        draft.note(std::slice::from_ref(&range));
                    }
                    Ok(())
                })?;
                transaction.trees()
            }
            None => {
                kv.check_live(&self.database)?;
                let snapshot = self.database.timeline().snapshot();
                return Ok(KvSums::of(kv.tree().tree().sums(&range, snapshot.commit())?, kv.key_type()));
            }
        };
        let Some(table) = TreeTable::new(kv.name(), kv.tree(), &seen) else { return Ok(KvSums::default()) };
        sums(&*table.source(&[range])?)
    }
}

fn sums(source: &dyn TableSource) -> Result<KvSums> {
    let mut all = KvSums::default();
    for group in 0..source.group_count() {
        let deleted = source.deleted(group);
        let known = source.look_into(group, KEY).filter(|_| deleted.is_none());
        if let Some(stats) = known
            && let (sinter_codec::Scalar::Int(min), sinter_codec::Scalar::Int(max), Some(sum)) =
                (stats.min, stats.max, stats.sum)
        {
            all.add(KvSums { count: stats.value_count as u64, sum, min: Some(min), max: Some(max) });
            continue;
        }
        let segment = source.segment(group, KEY)?;
        let block = Block::open(&segment).map_err(|error| Error::Internal(error.to_string()))?;
        let mut keys = ValuesBuf::new(block.physical());
        block.decode(0..block.value_count(), &mut keys).map_err(|error| Error::Internal(error.to_string()))?;
        let is_there = |row: usize| deleted.as_ref().is_none_or(|deleted| !deleted.get(row));
        let add = |(row, key): (usize, i128)| {
            if is_there(row) {
                all.add(KvSums { count: 1, sum: key, min: Some(key), max: Some(key) });
            }
        };
        match &keys {
            ValuesBuf::U32(keys) => keys.iter().map(|&key| key.into()).enumerate().for_each(add),
            ValuesBuf::U64(keys) => keys.iter().map(|&key| key.into()).enumerate().for_each(add),
            ValuesBuf::I64(keys) => keys.iter().map(|&key| key.into()).enumerate().for_each(add),
            _ => return Err(Error::Internal("keys of a tree are of one type".to_owned())),
        }
    }
    Ok(all)
}
