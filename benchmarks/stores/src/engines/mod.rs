//! The other stores.

mod fjall;
mod lmdb;
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;

use sinter_stores_benchmark::{BTreeMapStore, Failure, Settings, Store};

/// The store that the settings name, open and empty.
pub(crate) fn open(settings: &Settings) -> Result<Box<dyn Store>, Failure> {
    let folder = || settings.folder.as_deref().ok_or_else(|| format!("'{}' wants a --folder", settings.engine));
    match &settings.engine[..] {
        "btree-map" => Ok(Box::<BTreeMapStore>::default()),
        "fjall" => fjall::open(folder()?, settings),
        "lmdb" => lmdb::open(folder()?, settings),
        "redb" => redb::open(folder()?, settings),
        #[cfg(feature = "rocksdb")]
        "rocksdb" => rocksdb::open(folder()?, settings),
        engine => Err(format!("there is no engine '{engine}'").into()),
    }
}
