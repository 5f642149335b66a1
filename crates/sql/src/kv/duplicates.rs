//! What a session does with a tree whose keys have any number of values.

use super::any_tree::KeyRef;
use super::handle::{KvHandle, KvKey};
use super::pair::{Pair, PairShape};
use super::{Condition, Find};
use crate::{Error, Result, Session};
use std::ops::Bound;

impl Session {
    /// The pair that is looked for by a key, shown to `use_it`: of several values the one that is nearest, from where it is
    /// looked for; of the key itself the first.
    pub(super) fn find_pair<R>(
        &self,
        kv: &KvHandle,
        pairs: PairShape,
        find: Find,
        key: Option<KeyRef<'_>>,
        use_it: impl FnOnce(Option<&Pair>) -> R,
    ) -> Result<R> {
        let Some(place) = pairs.place(find, key, Bound::Unbounded) else { return Ok(use_it(None)) };
        let mut pair = Pair::new();
        let is_there = self.find_entry(kv, place.find, place.from(), place.until(), |found| match found {
            Some((KeyRef::Bytes(bytes), _)) => pairs.read(bytes, &mut pair).map(|()| true),
            _ => Ok(false),
        })??;
        Ok(use_it(is_there.then_some(&pair)))
    }

    /// Gives a key this value beside its others, or takes all away: [`Session::kv_change`]. `Absent` is of the value, not of
    /// the key; `Equals` names the one of its values that goes, for another or for none.
    pub(super) fn change_pairs(
        &self,
        kv: &KvHandle,
        pairs: PairShape,
        key: KvKey<'_>,
        value: Option<&[u8]>,
        condition: Condition<'_>,
    ) -> Result<bool> {
        let encoded = kv.encode(key)?;
        let pair = |value: &[u8]| kv.pair(pairs, encoded, value);
        match (value, condition) {
            (Some(value), Condition::Always | Condition::Absent) => {
                self.change_entry(kv, KeyRef::Bytes(&pair(value)?), Some(&[]), condition)
            }
            (None, Condition::Equals(value)) => {
                self.change_entry(kv, KeyRef::Bytes(&pair(value)?), None, Condition::Present)
            }
            (None, Condition::Always | Condition::Present) => {
                Ok(self.kv_delete_range(kv, (Bound::Included(key), Bound::Included(key)))? > 0)
            }
            (Some(new), Condition::Equals(old)) => {
                let (old, new) = (pair(old)?, pair(new)?);
                self.change(|transaction| {
                    transaction.check_changeable()?;
                    transaction.with_tree(kv.tree(), |draft, at, notes_reads| {
                        let is_there = draft.get(KeyRef::Bytes(&old), at, notes_reads, |found| found.is_some())?;
                        if is_there {
                            draft.change(KeyRef::Bytes(&old), None, at)?;
                            draft.change(KeyRef::Bytes(&new), Some(&[]), at)?;
                        }
                        Ok(is_there)
                    })
                })
            }
            (_, condition) => {
                let what = format!("no value of a tree with duplicates changes where {condition:?}");
                Err(Error::Sql(what))
            }
        }
    }
}
