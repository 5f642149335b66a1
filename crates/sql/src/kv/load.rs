//! A tree made at once, of keys that come in order.

use super::any_tree::AnyLoader;
use super::handle::{KvHandle, KvKey, check};
use super::{KvOptions, KvShape, KvTree, ValueType};
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
}

impl KvLoad {
    /// What the values are.
    pub fn value_type(&self) -> ValueType {
        self.shape.value
    }

    /// Adds a key, which is to be greater than all before, with its value.
    ///
    /// # Errors
    /// [`Error::Data`]: it is not, or the tree takes no such key or value. A page cannot be written, or there is no memory:
    /// then the load is of no use any more.
    pub fn push(&mut self, key: KvKey<'_>, value: &[u8]) -> Result<()> {
        let encoded = self.shape.key.encode(key)?;
        check(&self.name, self.shape.value, self.loader.bytes_max(), encoded, Some(value))?;
        match self.loader.push(encoded, value)? {
            true => Ok(()),
            false => Err(Error::Data(format!(
                "{key} is not behind the key before it; '{}' is loaded in the order of its keys, each once",
                self.name
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
        let loader = AnyLoader::new(shape.kind(), shape.options(), self.database.store());
        Ok(KvLoad { name, shape, loader })
    }

    /// Makes what was loaded a tree of the database, in one commit, or in that of the session's transaction.
    ///
    /// # Errors
    /// [`Error::Sql`]: something has got the name meanwhile. A page cannot be written. There is no tree then.
    pub fn kv_loaded(&self, load: KvLoad) -> Result<KvHandle> {
        let KvLoad { name, shape, loader } = load;
        let (tree, pages) = loader.finish()?;
        let store = self.database.store();
        let tree = Arc::new(KvTree::loaded_with(self.database.next_object(), shape, tree, pages, store));
        self.change_once(|transaction| transaction.add_tree(name.clone(), Arc::clone(&tree)))?;
        Ok(KvHandle::new(name, tree))
    }
}
