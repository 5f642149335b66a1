//! CREATE, INSERT, UPDATE and DELETE of a key-value tree: its keys are unique, as those of a PRIMARY KEY are.

use super::indexes::Declared;
use super::names::normal;
use super::on_conflict::Update;
use crate::catalog::TableName;
use crate::kv::{EntryBuffer, Key, KvOptions, TreeRows};
use crate::transaction::Transaction;
use crate::{Error, Result};
use arrow::array::{ArrayRef, BooleanArray, RecordBatch, UInt32Array};
use arrow::compute::{filter_record_batch, take};
use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast;
use sinter_column::TableSchema;
use sinter_storage::{Reservation, Use};
use std::collections::HashSet;

/// What tree `CREATE TABLE ... WITH (storage = 'tree')` declares; `None` where it declares a table.
///
/// # Errors
/// [`Error::Sql`]: it says something of a tree that trees do not have, or of a table that only trees have.
pub(super) fn declared(name: &TableName, schema: &TableSchema, indexes: &[Declared]) -> Result<Option<KvOptions>> {
    let of_tree = ["codec", "value_bytes", "duplicates"];
    let option = |name: &str| schema.options.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    if option("storage") != Some("tree") {
        return match of_tree.into_iter().find(|name| option(name).is_some()) {
            Some(option) => Err(Error::Sql(format!("{option} is an option of trees: WITH (storage = 'tree', ...)"))),
            None => Ok(None),
        };
    }
    let known = |option: &str| option == "storage" || of_tree.contains(&option);
    let of_table = schema.options.iter().map(|(option, _)| option.as_str()).find(|option| !known(option));
    let has_rules = !schema.checks.is_empty()
        || indexes.iter().any(|index| index.primary_columns() != ["key"])
        || schema.columns.iter().any(|column| column.default.is_some());
    if of_table.is_some() || has_rules {
        let what = of_table.unwrap_or("constraints and defaults");
        return Err(Error::Sql(format!("'{name}' is to be a key-value tree, which has no {what}; leave that out")));
    }
    let value_bytes = match option("value_bytes").map(str::parse) {
        None => None,
        Some(Ok(bytes)) => Some(bytes),
        Some(Err(_)) => return Err(Error::Sql("value_bytes is how many bytes each value has".to_owned())),
    };
    let duplicates = match option("duplicates") {
        None => None,
        Some("true" | "1") if !indexes.is_empty() => {
            return Err(Error::Sql(format!(
                "'{name}' is to have several values of a key, which is no PRIMARY KEY then"
            )));
        }
        Some("true" | "1") => Some(true),
        Some("false" | "0") => Some(false),
        Some(other) => return Err(Error::Sql(format!("duplicates is true or false, not '{other}'"))),
    };
    let options = KvOptions { duplicates, ..KvOptions::of_columns(&schema.columns, value_bytes)? };
    Ok(Some(option("codec").map_or(Ok(options), |codec| options.with_codec(codec))?))
}

/// Rows on their way into a tree.
pub(super) struct TreeInsert {
    rows: TreeRows,
    action: Action,
    /// Of DO UPDATE: the keys that the statement has written.
    written: Keys,
    count: u64,
}

/// Keys that a statement has come to.
struct Keys {
    keys: HashSet<Key>,
    memory: Reservation,
}

impl Keys {
    fn new(rows: &TreeRows) -> Keys {
        Keys { keys: HashSet::new(), memory: rows.tree().budget().take(Use::Query, 0) }
    }

    /// Whether it has not come to this one before.
    fn insert(&mut self, key: Key) -> Result<bool> {
        let bytes = if let Key::Bytes(key) = &key { key.len() } else { 0 };
        let is_new = self.keys.insert(key);
        if is_new {
            self.memory.grow(2 * size_of::<Key>() + bytes)?;
        }
        Ok(is_new)
    }
}

/// What becomes of a row whose key is there.
enum Action {
    Fail,
    /// It is left out.
    Skip,
    /// Its value takes the place of the other.
    Replace,
    /// The one that is there is changed.
    Update(Box<Update>),
}

impl TreeInsert {
    /// A row whose key is there is an error.
    pub(super) fn new(rows: &TreeRows) -> TreeInsert {
        TreeInsert { rows: rows.clone(), action: Action::Fail, written: Keys::new(rows), count: 0 }
    }

    /// Of a statement for which [`is_said`](super::on_conflict::is_said) holds.
    ///
    /// # Errors
    /// [`Error::Sql`]: it names another column than the key; an expression cannot be compiled.
    pub(super) fn meeting(
        insert: &ast::Insert,
        name: &TableName,
        rows: &TreeRows,
        state: &SessionState,
    ) -> Result<TreeInsert> {
        let is_replacing = insert.replace_into || insert.or == Some(ast::SqliteOnConflict::Replace);
        let mut action = if is_replacing { Action::Replace } else { Action::Skip };
        if let Some(ast::OnInsert::OnConflict(ast::OnConflict { conflict_target, action: said })) = &insert.on {
            let identity: Vec<&str> = rows.identity().iter().map(|column| column.name.as_str()).collect();
            let is_identity = |columns: &[ast::Ident]| columns.iter().map(normal).eq(identity.iter().copied());
            if let Some(target) = conflict_target
                && !matches!(target, ast::ConflictTarget::Columns(columns) if is_identity(columns))
            {
                return Err(Error::Sql(format!(
                    "'{}' is a key-value tree: rows meet by their {}; write ON CONFLICT ({})",
                    rows.name(),
                    identity.join(" and "),
                    identity.join(", ")
                )));
            }
            if let ast::OnConflictAction::DoUpdate(update) = said {
                if rows.has_duplicates() {
                    return Err(Error::Sql(format!(
                        "rows of '{}', which has duplicates, are alike where they meet: DO UPDATE has nothing to change",
                        rows.name()
                    )));
                }
                let update = Update::new(update, rows.name(), rows.schema(), &name.table, state)?;
                if update.sets(0) {
                    return Err(Error::Sql(format!(
                        "DO UPDATE keeps the key of a row of the key-value tree '{}'; set its value",
                        rows.name()
                    )));
                }
                action = Action::Update(Box::new(update));
            }
        }
        Ok(TreeInsert { action, ..TreeInsert::new(rows) })
    }

    pub(super) fn row_count(&self) -> u64 {
        self.count
    }

    /// Inserts rows in the shape of the tree.
    ///
    /// # Errors
    /// [`Error::Data`]: a key is there already, or would be changed twice; a key or value is too long. A leaf cannot be
    /// read; there is no memory.
    pub(super) fn insert(&mut self, transaction: &mut Transaction, rows: &RecordBatch) -> Result<()> {
        let entries = self.rows.entries(rows)?;
        // Rows that meet others, and what is there.
        let (mut meeting, mut present) = (Vec::new(), Vec::new());
        let (action, written, count) = (&self.action, &mut self.written, &mut self.count);
        let mut memory = self.rows.tree().budget().take(Use::Query, 0);
        transaction.with_tree(self.rows.tree(), |draft, at, _| {
            if !matches!(action, Action::Replace) {
                // That others have not put the same keys is seen at the commit.
                draft.hold_written();
            }
            let mut buffer = EntryBuffer::default();
            for row in 0..entries.len() {
                let (key, record) = entries.entry(row, &mut buffer)?;
                let is_there = match action {
                    Action::Replace => false,
                    Action::Fail | Action::Skip => draft.has(key, at, false)?,
                    Action::Update(_) => match draft.get(key, at, false, |found| found.map(<[u8]>::to_vec))? {
                        Some(found) => {
                            memory.grow(found.len())?;
                            meeting.push(row as u32);
                            present.push(found);
                            true
                        }
                        None if written.insert(key.to_key())? => false,
                        None => return Err(twice(&self.rows)),
                    },
                };
                if is_there {
                    // Nothing may be written there, and what is done hangs on it all the same.
                    draft.note_key(key);
                    match action {
                        Action::Fail => return Err(duplicate(&self.rows, rows, row)),
                        Action::Skip | Action::Replace | Action::Update(_) => continue,
                    }
                }
                draft.change(key, Some(record), at)?;
                *count += 1;
            }
            Ok(())
        })?;
        let Action::Update(update) = &self.action else { return Ok(()) };
        if meeting.is_empty() {
            return Ok(());
        }
        let meeting = UInt32Array::from(meeting);
        let met = rows.columns().iter().map(|column| take(column, &meeting, None));
        let excluded: Vec<ArrayRef> = met.collect::<arrow::error::Result<_>>()?;
        let mut columns = excluded.clone();
        if let Some(value) = columns.get_mut(1) {
            *value = self.rows.values_of(&present)?;
        }
        columns.extend(excluded);
        let (passing, updated) = update.applied(columns, meeting.len())?;
        for key in self.rows.keys(&updated)? {
            if !self.written.insert(key)? {
                return Err(twice(&self.rows));
            }
        }
        put(transaction, &self.rows, &updated)?;
        self.count += passing.len() as u64;
        Ok(())
    }
}

/// Gives keys the values that rows have.
fn put(transaction: &mut Transaction, rows: &TreeRows, batch: &RecordBatch) -> Result<()> {
    let entries = rows.entries(batch)?;
    transaction.with_tree(rows.tree(), |draft, at, _| {
        let mut buffer = EntryBuffer::default();
        (0..entries.len()).try_for_each(|row| {
            let (key, record) = entries.entry(row, &mut buffer)?;
            draft.change(key, Some(record), at)
        })
    })
}

fn duplicate(rows: &TreeRows, batch: &RecordBatch, row: usize) -> Error {
    let text = |column| arrow::util::display::array_value_to_string(batch.column(column), row).unwrap_or_default();
    let (what, unique) = match rows.has_duplicates() {
        true => (format!("value {} of key {}", text(1), text(0)), "each is there once"),
        false => (format!("key {}", text(0)), "keys are unique"),
    };
    Error::Data(format!(
        "key-value tree '{}' has {what} already, and {unique}; INSERT OR REPLACE or OR IGNORE says what is to be done",
        rows.name()
    ))
}

fn twice(rows: &TreeRows) -> Error {
    Error::Data(format!(
        "key-value tree '{}': two rows of the INSERT have the same key, and DO UPDATE would change it twice; give each key once",
        rows.name()
    ))
}

/// Takes away the entries that a query yields, and returns how many.
///
/// # Errors
/// A leaf cannot be read; there is no memory.
pub(super) fn delete(transaction: &mut Transaction, rows: &TreeRows, found: &RecordBatch) -> Result<u64> {
    let keys = rows.keys(found)?;
    transaction.with_tree(rows.tree(), |draft, at, _| {
        let mut count = 0;
        for key in &keys {
            // The query that found it has noted that; joined with others it comes more than once.
            if draft.has(key.lent(), at, false)? {
                draft.change(key.lent(), None, at)?;
                count += 1;
            }
        }
        Ok(count)
    })
}

/// An UPDATE of a tree, whose rows come as a query yields them: the key, and behind it what the row becomes.
pub(super) struct TreeUpdate {
    rows: TreeRows,
    /// Rows whose keys change. They are put in once all others have left their places.
    moved: Vec<RecordBatch>,
    memory: Reservation,
    /// Of statements that join other tables: the first row that comes of a key counts.
    seen: Option<Keys>,
    count: u64,
}

impl TreeUpdate {
    pub(super) fn new(rows: &TreeRows, is_joined: bool) -> TreeUpdate {
        let memory = rows.tree().budget().take(Use::Query, 0);
        let seen = is_joined.then(|| Keys::new(rows));
        TreeUpdate { rows: rows.clone(), moved: Vec::new(), memory, seen, count: 0 }
    }

    /// Those rows of the query that count.
    ///
    /// # Errors
    /// There is no memory.
    pub(super) fn counting(&mut self, found: RecordBatch) -> Result<RecordBatch> {
        let Some(seen) = &mut self.seen else { return Ok(found) };
        let keys = self.rows.keys(&found)?.into_iter();
        let first: BooleanArray = keys.map(|key| seen.insert(key).map(Some)).collect::<Result<_>>()?;
        Ok(filter_record_batch(&found, &first)?)
    }

    /// Takes rows of the query, and what they become in the shape of the tree.
    ///
    /// # Errors
    /// [`Error::Data`]: a value is too long, or NULL. There is no memory.
    pub(super) fn take(
        &mut self,
        transaction: &mut Transaction,
        found: &RecordBatch,
        becomes: &RecordBatch,
    ) -> Result<()> {
        let (keys, entries) = (self.rows.keys(found)?, self.rows.entries(becomes)?);
        let mut moved: Vec<u32> = Vec::new();
        self.count += keys.len() as u64;
        transaction.with_tree(self.rows.tree(), |draft, at, _| {
            let mut buffer = EntryBuffer::default();
            for (row, key) in keys.iter().enumerate() {
                let (new_key, record) = entries.entry(row, &mut buffer)?;
                if new_key == key.lent() {
                    draft.change(new_key, Some(record), at)?;
                } else {
                    draft.change(key.lent(), None, at)?;
                    moved.push(row as u32);
                }
            }
            Ok(())
        })?;
        if !moved.is_empty() {
            let moved = UInt32Array::from(moved);
            let columns = becomes.columns().iter().map(|column| take(column, &moved, None));
            let moved = RecordBatch::try_new(becomes.schema(), columns.collect::<arrow::error::Result<_>>()?)?;
            self.memory.grow(moved.get_array_memory_size())?;
            self.moved.push(moved);
        }
        Ok(())
    }

    /// There are no more; how many rows were changed.
    ///
    /// # Errors
    /// [`Error::Data`]: a key that a row gets is there already.
    pub(super) fn finish(self, transaction: &mut Transaction) -> Result<u64> {
        let mut insert = TreeInsert::new(&self.rows);
        self.moved.iter().try_for_each(|rows| insert.insert(transaction, rows))?;
        Ok(self.count)
    }
}
