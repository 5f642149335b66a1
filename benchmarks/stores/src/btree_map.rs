//! `BTreeMap` behind a lock: what a program has without a store. Records lie in its nodes.

use crate::{Change, Client, Entries, Failure, Reader, Settings, Store};
use std::collections::BTreeMap;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

type Map<const N: usize> = BTreeMap<u64, [u8; N]>;

/// The entries, with records of `N` bytes.
#[derive(Debug, Default)]
struct BTreeMapStore<const N: usize>(RwLock<Map<N>>);

/// A `BTreeMap` with records of the settings' length.
///
/// # Errors
/// Records are neither of 8 nor of 100 bytes.
pub fn btree_map(settings: &Settings) -> Result<Box<dyn Store>, Failure> {
    match settings.record_bytes {
        8 => Ok(Box::<BTreeMapStore<8>>::default()),
        100 => Ok(Box::<BTreeMapStore<100>>::default()),
        bytes => Err(format!("'btree-map' has records of 8 or 100 bytes, not of {bytes}").into()),
    }
}

impl<const N: usize> BTreeMapStore<N> {
    fn entries(&self) -> RwLockReadGuard<'_, Map<N>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn entries_mut(&self) -> RwLockWriteGuard<'_, Map<N>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<const N: usize> Store for BTreeMapStore<N> {
    fn load(&self, entries: &mut Entries<'_>) -> Result<(), Failure> {
        let mut failure = None;
        let entries = std::iter::from_fn(|| {
            let (key, record) = entries.next_entry()?;
            record.try_into().map(|record| (key, record)).map_err(|error| failure = Some(error)).ok()
        });
        *self.entries_mut() = entries.collect();
        failure.map_or(Ok(()), |error| Err(error.into()))
    }

    fn client(&self) -> Result<Box<dyn Client + '_>, Failure> {
        Ok(Box::new(self))
    }

    fn settle(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

impl<const N: usize> Client for &BTreeMapStore<N> {
    fn commit(&mut self, changes: &[Change<'_>]) -> Result<(), Failure> {
        let mut entries = self.entries_mut();
        for (key, record) in changes {
            match record {
                Some(record) => entries.insert(*key, (*record).try_into()?),
                None => entries.remove(key),
            };
        }
        Ok(())
    }

    fn read(&mut self, body: &mut dyn FnMut(&mut dyn Reader) -> Result<(), Failure>) -> Result<(), Failure> {
        body(&mut &*self.entries())
    }

    fn scan(&mut self, visit: &mut dyn FnMut(u64, &[u8])) -> Result<(), Failure> {
        self.entries().iter().for_each(|(key, record)| visit(*key, record));
        Ok(())
    }

    fn sum(&mut self) -> Result<u128, Failure> {
        Ok(self.entries().keys().map(|key| u128::from(*key)).sum())
    }
}

impl<const N: usize> Reader for &Map<N> {
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
