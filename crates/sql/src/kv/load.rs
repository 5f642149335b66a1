//! A tree made at once, of keys that come in order.

use super::any_tree::AnyLoader;
use super::any_tree::KeyRef;
use super::handle::{KvHandle, KvKey, check, pair};
use super::overflow::{Overflow, OverflowLoad, VALUE_BYTES_MAX, is_apart, record_of};
use super::{KvOptions, KvShape, KvTree, Loaded, ValueType};
use crate::catalog::TableName;
use crate::statement::parse_table_name;
use crate::{Error, Result, Session};
use std::sync::Arc;

/// A tree that is being loaded: full leaves go to the file as they come, and the commit logs no key. Until
/// [`Session::kv_loaded`] nobody sees it; dropped before, it leaves nothing behind.
#[derive(Debug)]
pub struct KvLoad {
    name: TableName,
    shape: KvShape,
    loader: AnyLoader,
    /// Where values have any length.
    overflow: Option<OverflowLoad>,
}

impl KvLoad {
    /// What the values are.
    pub fn value_type(&self) -> ValueType {
        self.shape.value
    }

    /// Adds a key, which is to be greater than all before, with its value; where keys have any number of values, the key and the
    /// value together are.
    ///
    /// # Errors
    /// [`Error::Data`]: it is not, or the tree takes no such key or value. A page cannot be written, or there is no memory:
    /// then the load is of no use any more.
    pub fn push(&mut self, key: KvKey<'_>, value: &[u8]) -> Result<()> {
        let encoded = self.shape.key.encode(key)?;
        let (key_bytes_max, record_bytes_max) = self.loader.bytes_max();
        let value_bytes_max = if self.overflow.is_some() { VALUE_BYTES_MAX } else { record_bytes_max };
        if !self.shape.has_duplicates {
            check(&self.name, self.shape.value, (key_bytes_max, value_bytes_max), encoded, Some(value))?;
        }
        let is_behind = match &mut self.overflow {
            None => match self.shape.pairs() {
                None => self.loader.push(encoded, value)?,
                Some(pairs) => {
                    let pair = pair(&self.name, self.shape.value, pairs, key_bytes_max, encoded, value)?;
                    self.loader.push(KeyRef::Bytes(&pair), &[])?
                }
            },
            Some(overflow) if is_apart(value, record_bytes_max) => {
                let apart = overflow.place(value);
                let is_behind = self.loader.push(encoded, &apart.record())?;
                if is_behind {
                    overflow.push(apart, value)?;
                }
                is_behind
            }
            Some(_) => self.loader.push(encoded, &record_of(value))?,
        };
        match is_behind {
            true => Ok(()),
            false => Err(Error::Data(format!(
                "{key} is not behind the key before it; '{}' is loaded in the order of its keys, {}",
                self.name,
                if self.shape.has_duplicates { "and of the values of each" } else { "each once" }
            ))),
        }
    }
}

impl Session {
    /// Begins to load a tree that is not there yet.
    ///
    /// # Errors
    /// [`Error::Sql`]: something has the name already.
    pub fn kv_load(&self, name: &str, options: &KvOptions) -> Result<KvLoad> {
        self.check_changeable()?;
        self.database.runtime()?;
        let name = parse_table_name(name)?;
        let shape = options.shape()?;
        // What would be refused at the end is to be refused now.
        if let Some(transaction) = self.transaction().as_ref() {
            transaction.check_changeable()?;
        }
        let catalog = self.readable()?.catalog;
        if !catalog.has_schema(&name.schema) {
            return Err(Error::Sql(format!("there is no schema '{}'; CREATE SCHEMA makes one", name.schema)));
        }
        if catalog.definition(&name).is_some() {
            return Err(Error::Sql(format!("'{name}' is there already; a tree is loaded when it is made")));
        }
        let store = self.database.store();
        let loader = AnyLoader::new(shape.kind(), shape.options(), store);
        let overflow = shape.has_overflow().then(|| OverflowLoad::new(store));
        Ok(KvLoad { name, shape, loader, overflow })
    }

    /// Makes what was loaded a tree of the database, in one commit, or in that of the session's transaction.
    ///
    /// # Errors
    /// [`Error::Sql`]: something has got the name meanwhile. A page cannot be written. There is no tree then.
    pub fn kv_loaded(&self, load: KvLoad) -> Result<KvHandle> {
        let KvLoad { name, shape, loader, overflow } = load;
        let (tree, pages) = loader.finish()?;
        let finished = overflow.map(OverflowLoad::finish).transpose();
        let (overflow, pages_of_overflow) = finished.inspect_err(|_| tree.abandon())?.unzip();
        let (store, id) = (self.database.store(), self.database.next_object());
        let overflow = overflow.map(|tree| Overflow::of(self.database.next_object(), tree));
        let pages = pages.map(|tree| Loaded { tree, overflow: pages_of_overflow.flatten() });
        let tree = Arc::new(KvTree::loaded_with(id, shape, (tree, overflow), pages, store));
        self.change_once(|transaction| transaction.add_tree(name.clone(), Arc::clone(&tree)))?;
        Ok(KvHandle::new(name, tree))
    }
}
