//! The other stores.

mod fjall;
mod lmdb;
mod redb;
#[cfg(feature = "rocksdb")]
mod rocksdb;

use sinter_stores_benchmark::{Failure, Settings, Store, btree_map};

/// The store that the settings name, open.
pub(crate) fn open(settings: &Settings) -> Result<Box<dyn Store>, Failure> {
    let folder = || settings.folder.as_deref().ok_or_else(|| format!("'{}' wants a --folder", settings.engine));
    match &settings.engine[..] {
        "btree-map" if settings.folder.is_some() => Err("'btree-map' has no file: leave --folder out".into()),
        "btree-map" => btree_map(settings),
        "fjall" => fjall::open(folder()?, settings),
        "lmdb" => lmdb::open(folder()?, settings),
        "redb" => redb::open(folder()?, settings),
        #[cfg(feature = "rocksdb")]
        "rocksdb" => rocksdb::open(folder()?, settings),
        engine => Err(format!("there is no engine '{engine}'").into()),
    }
}
