//! `BTreeMap` behind a lock: what a program has without a store.

use crate::{Failure, Reader, Store};
use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

type Entries = BTreeMap<u64, Box<[u8]>>;

/// The entries.
#[derive(Debug, Default)]
pub struct BTreeMapStore(RwLock<Entries>);

impl BTreeMapStore {
    fn entries(&self) -> RwLockReadGuard<'_, Entries> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn entries_mut(&self) -> RwLockWriteGuard<'_, Entries> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for BTreeMapStore {
    fn load(&self, entries: &mut dyn Iterator<Item = (u64, Vec<u8>)>) -> Result<(), Failure> {
        *self.entries_mut() = entries.map(|(key, record)| (key, record.into())).collect();
        Ok(())
    }

    fn commit(&self, changes: &[(u64, Option<Vec<u8>>)]) -> Result<(), Failure> {
        let mut entries = self.entries_mut();
        for (key, record) in changes {
            match record {
                Some(record) => entries.insert(*key, record.clone().into()),
                None => entries.remove(key),
            };
        }
        Ok(())
    }

    fn read(&self, body: &mut dyn FnMut(&mut dyn Reader) -> Result<(), Failure>) -> Result<(), Failure> {
        body(&mut &*self.entries())
    }

    fn scan(&self, visit: &mut dyn FnMut(u64, &[u8])) -> Result<(), Failure> {
        self.entries().iter().for_each(|(key, record)| visit(*key, record));
        Ok(())
    }

    fn sum(&self) -> Result<u128, Failure> {
        Ok(self.entries().keys().map(|key| u128::from(*key)).sum())
    }

    fn settle(&self) -> Result<(), Failure> {
        Ok(())
    }
}

impl Reader for &Entries {
    fn get(&mut self, key: u64, record: &mut Vec<u8>) -> Result<bool, Failure> {
        let found = BTreeMap::get(self, &key);
        if let Some(found) = found {
            record.clear();
            record.extend_from_slice(found);
        }
        Ok(found.is_some())
    }

    fn range(&mut self, from: u64, count: usize, visit: &mut dyn FnMut(u64, &[u8])) -> Result<(), Failure> {
        BTreeMap::range(self, from..).take(count).for_each(|(key, record)| visit(*key, record));
        Ok(())
    }
}
