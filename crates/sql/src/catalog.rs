//! Which tables there are.
//!
//! A catalog is immutable; a change makes the next one. Its page and its log records are in docs/format/catalog.md.

use crate::{Error, Result};
use sinter_column::wire::{Reader, Writer};
use sinter_column::{ColumnTable, TableSchema};
use sinter_storage::{ObjectId, PageId, Record, RecordTag, Store};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// The schema that names without one belong to.
pub(crate) const DEFAULT_SCHEMA: &str = "public";

/// The catalog page's own version, so that later steps can extend it.
const CATALOG_VERSION: u8 = 1;

/// The only kind of object so far, in catalog records.
const KIND_TABLE: u8 = 1;

/// A table's full name, as stored: lower case unless it was quoted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TableName {
    pub(crate) schema: String,
    pub(crate) table: String,
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.schema != DEFAULT_SCHEMA {
            write!(f, "{}.", as_written(&self.schema))?;
        }
        f.write_str(&as_written(&self.table))
    }
}

/// A name as a statement has to write it: in quotes where it would read otherwise without.
fn as_written(name: &str) -> Cow<'_, str> {
    let is_plain = name.starts_with(|first: char| first.is_lowercase() || first == '_')
        && name.chars().all(|char| char.is_lowercase() || char.is_ascii_digit() || char == '_');
    if is_plain { Cow::Borrowed(name) } else { Cow::Owned(format!("\"{}\"", name.replace('"', "\"\""))) }
}

/// All tables at one moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalog {
    pub(crate) tables: BTreeMap<TableName, Arc<ColumnTable>>,
    pub(crate) next_object: u64,
}

impl Catalog {
    /// The table of that name.
    pub(crate) fn table(&self, name: &TableName) -> Option<&Arc<ColumnTable>> {
        self.tables.get(name)
    }

    /// The table with that number.
    pub(crate) fn table_by_id(&self, id: ObjectId) -> Option<(&TableName, &Arc<ColumnTable>)> {
        self.tables.iter().find(|(_, table)| table.id() == id)
    }

    /// A catalog with one more table, and the record that brings it back.
    pub(crate) fn with_table(
        &self,
        name: TableName,
        schema: TableSchema,
        store: &Arc<Store>,
    ) -> (Catalog, Arc<ColumnTable>, Record) {
        let mut next = self.clone();
        let id = ObjectId(next.next_object.max(1));
        next.next_object = id.0 + 1;
        let mut payload = Writer::default();
        payload.u8(KIND_TABLE);
        payload.text(&name.schema);
        payload.text(&name.table);
        schema.write(&mut payload);
        let record = Record { tag: RecordTag::CATALOG_PUT, object: id, payload: payload.into_bytes() };
        let table = Arc::new(ColumnTable::create(id, &name.to_string(), Arc::new(schema), Arc::clone(store)));
        next.tables.insert(name, Arc::clone(&table));
        (next, table, record)
    }

    /// A catalog without a table, and the record of that.
    pub(crate) fn without_table(&self, name: &TableName) -> Option<(Catalog, Arc<ColumnTable>, Record)> {
        let mut next = self.clone();
        let table = next.tables.remove(name)?;
        let record = Record { tag: RecordTag::CATALOG_DROP, object: table.id(), payload: Vec::new() };
        Some((next, table, record))
    }

    /// Applies a record of the log, to the catalog or to one of its tables. Applying twice changes nothing.
    pub(crate) fn apply(&mut self, record: &Record, store: &Arc<Store>) -> Result<()> {
        match record.tag {
            RecordTag::CATALOG_PUT => {
                let known = self.table_by_id(record.object).map(|(name, table)| (name.clone(), table.schema()));
                let mut input = Reader::new("catalog record", &record.payload);
                let kind = input.u8()?;
                if kind != KIND_TABLE {
                    return Err(input
                        .damaged(format!("object kind {kind} is unknown; a newer SinterDB wrote it"))
                        .into());
                }
                let name = TableName { schema: input.text()?, table: input.text()? };
                let schema = Arc::new(TableSchema::read(&mut input)?);
                input.end()?;
                if let Some((known_name, known_schema)) = known {
                    return match known_name == name && known_schema == schema {
                        true => Ok(()),
                        false => Err(Error::Damaged(format!(
                            "the log describes table '{known_name}' anew; a newer SinterDB altered it"
                        ))),
                    };
                }
                let table = ColumnTable::create(record.object, &name.to_string(), schema, Arc::clone(store));
                self.next_object = self.next_object.max(record.object.0 + 1);
                self.tables.insert(name, Arc::new(table));
            }
            RecordTag::CATALOG_DROP => {
                let found = self.table_by_id(record.object).map(|(name, _)| name.clone());
                if let Some(table) = found.and_then(|name| self.tables.remove(&name)) {
                    table.release();
                }
            }
            _ => match self.table_by_id(record.object) {
                Some((_, table)) => table.apply(record)?,
                None => {
                    return Err(Error::Damaged(format!(
                        "the log changes object {}, which the catalog does not know",
                        record.object
                    )));
                }
            },
        }
        Ok(())
    }

    /// The catalog page; `root` names each table's root page.
    pub(crate) fn page_bytes(&self, root: &dyn Fn(ObjectId) -> PageId) -> Vec<u8> {
        let mut out = Writer::default();
        out.u8(CATALOG_VERSION);
        out.u64(self.next_object);
        out.count(self.tables.len());
        for (name, table) in &self.tables {
            out.u8(KIND_TABLE);
            out.u64(table.id().0);
            out.text(&name.schema);
            out.text(&name.table);
            table.schema().write(&mut out);
            out.u64(root(table.id()).0);
        }
        out.into_bytes()
    }

    /// Reads the catalog page and the tables' roots; returns each table's root page beside.
    pub(crate) fn load(store: &Arc<Store>, page: PageId) -> Result<(Catalog, BTreeMap<ObjectId, PageId>)> {
        let bytes = store.pin(page)?;
        let mut input = Reader::new("catalog", &bytes);
        let version = input.u8()?;
        if version != CATALOG_VERSION {
            return Err(input
                .damaged(format!("catalog of version {version}; this SinterDB reads {CATALOG_VERSION}"))
                .into());
        }
        let mut catalog = Catalog { next_object: input.u64()?, ..Catalog::default() };
        let mut roots = BTreeMap::new();
        for _ in 0..input.count()? {
            let kind = input.u8()?;
            if kind != KIND_TABLE {
                return Err(input.damaged(format!("object kind {kind} is unknown; a newer SinterDB wrote it")).into());
            }
            let id = ObjectId(input.u64()?);
            let name = TableName { schema: input.text()?, table: input.text()? };
            let schema = Arc::new(TableSchema::read(&mut input)?);
            let root = PageId(input.u64()?);
            let table = ColumnTable::load(id, &name.to_string(), schema, Arc::clone(store), root)?;
            roots.insert(id, root);
            catalog.tables.insert(name, Arc::new(table));
        }
        input.end()?;
        Ok((catalog, roots))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sinter_column::ColumnSchema;
    use sinter_exec::LogicalType;

    /// The first block of hex below a heading of docs/format/catalog.md, in one line.
    fn example(heading: &str) -> String {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/format/catalog.md");
        let text = std::fs::read_to_string(page).unwrap();
        let section = text.split(&format!("\n## {heading}\n")).nth(1).unwrap_or_else(|| panic!("no heading {heading}"));
        let block = section.split("```hex\n").nth(1).unwrap().split("```").next().unwrap();
        let bytes = block.lines().flat_map(|line| line.split("  ").next().unwrap_or_default().split_whitespace());
        bytes.collect::<Vec<_>>().join(" ")
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_format_page_shows_what_is_written() {
        let column = |name: &str, ty, nullable| ColumnSchema {
            name: name.to_owned(),
            ty,
            nullable,
            compression: None,
            default: None,
        };
        let columns = vec![column("a", LogicalType::Int32, false), column("b", LogicalType::Utf8, true)];
        let name = TableName { schema: DEFAULT_SCHEMA.to_owned(), table: "t".to_owned() };
        let schema = TableSchema { columns, options: Vec::new() };
        let (catalog, _, record) = Catalog::default().with_table(name, schema, &Arc::new(Store::memory()));
        assert_eq!(hex(&catalog.page_bytes(&|_| PageId(1))), example("The catalog page"));
        assert_eq!(hex(&record.payload), example("Log record 16: catalog put"));
    }

    #[test]
    fn bytes_behind_a_record_are_damage() {
        let store = Arc::new(Store::memory());
        let name = TableName { schema: DEFAULT_SCHEMA.to_owned(), table: "t".to_owned() };
        let schema = TableSchema { columns: Vec::new(), options: Vec::new() };
        let (_, _, mut record) = Catalog::default().with_table(name, schema, &store);
        record.payload.push(0);
        let error = Catalog::default().apply(&record, &store).unwrap_err().to_string();
        assert!(error.contains("1 bytes follow"), "{error}");
    }
}
