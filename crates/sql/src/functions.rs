//! Table functions: `storage('t')`, `candidates('t')`, `tables()`, `indexes()`, `trees()`, `databases()`, `memory()`, `codecs()`,
//! `kernels()`, `decoding()`.

use crate::Database;
use crate::catalog::{Catalog, DEFAULT_SCHEMA, TableName, as_written};
use crate::kv::KvTree;
use crate::provider::StatementCatalog;
use crate::session::CATALOG_NAME;
use crate::statement::{find, parse_table_name};
use crate::transaction::Reads;
use arrow::array::{ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StringArray, UInt64Array};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{Result, plan_err};
use datafusion::datasource::MemTable;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use sinter_btree::TreeShape;
use sinter_codec::{
    Bitmap, Block, Candidate, DecodeRow, KernelRow, Physical, SCHEMES, ValuesBuf, decode_table, kernel_table,
};
use sinter_column::{ColumnTable, Index, IndexRule};
use sinter_exec::Pinned;
use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Makes the functions known to a session.
pub(crate) fn register(state: &mut SessionState, database: &Arc<Database>) {
    for (name, make) in FUNCTIONS {
        let function = Function { name, make: *make, database: Arc::downgrade(database) };
        state.register_udtf(name, Arc::new(function));
    }
}

/// What a function is asked over: the statement's own catalog, so that a transaction sees its tables.
struct Asked<'a> {
    database: &'a Database,
    catalog: &'a Catalog,
    reads: Reads,
    arguments: &'a [String],
}

type Make = fn(&Asked<'_>) -> crate::Result<RecordBatch>;

const FUNCTIONS: &[(&str, Make)] = &[
    ("storage", storage),
    ("candidates", candidates),
    ("tables", tables),
    ("indexes", indexes),
    ("trees", trees),
    ("databases", databases),
    ("memory", memory),
    ("codecs", codecs),
    ("kernels", kernels),
    ("decoding", decoding),
];

/// A function whose rows are made when it is planned.
struct Function {
    name: &'static str,
    make: Make,
    database: Weak<Database>,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}()", self.name)
    }
}

impl TableFunctionImpl for Function {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let mut texts = Vec::new();
        for expr in args.exprs() {
            match expr {
                Expr::Literal(value, _) if value.try_as_str().flatten().is_some() => {
                    texts.push(value.try_as_str().flatten().unwrap_or_default().to_owned());
                }
                other => return plan_err!("{}() wants text in quotes, not {other}", self.name),
            }
        }
        let Some(database) = self.database.upgrade() else { return plan_err!("the database is closed") };
        let seen = args.session().catalog_list();
        let seen = (seen.as_ref() as &dyn std::any::Any).downcast_ref::<StatementCatalog>();
        let catalog = seen.map_or_else(|| database.catalog(), |seen| Arc::clone(seen.tables()));
        let reads = seen.map_or_else(Reads::default, |seen| seen.own_reads());
        let batch = (self.make)(&Asked { database: &database, catalog: &catalog, reads, arguments: &texts })?;
        Ok(Arc::new(Rows(MemTable::try_new(batch.schema(), vec![vec![batch]])?)))
    }
}

/// The rows of a function; a table of its own so that plans name it so.
#[derive(Debug)]
struct Rows(MemTable);

#[async_trait]
impl TableProvider for Rows {
    fn schema(&self) -> arrow::datatypes::SchemaRef {
        self.0.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.0.scan(state, projection, filters, limit).await
    }
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> crate::Result<RecordBatch> {
    Ok(RecordBatch::try_from_iter(columns)?)
}

fn tables(Asked { catalog, reads, .. }: &Asked<'_>) -> crate::Result<RecordBatch> {
    reads.everything();
    // Their numbers of rows.
    catalog.tables.values().for_each(|table| reads.whole(table.id()));
    let names = catalog.tables.keys();
    batch(vec![
        ("schema", Arc::new(names.clone().map(|name| Some(&*name.schema)).collect::<StringArray>())),
        ("table", Arc::new(names.map(|name| Some(&*name.table)).collect::<StringArray>())),
        ("rows", Arc::new(catalog.tables.values().map(|table| Some(table.live_rows())).collect::<UInt64Array>())),
        ("bytes", Arc::new(catalog.tables.values().map(|table| Some(table_bytes(table))).collect::<UInt64Array>())),
    ])
}

/// The key-value trees, and what their leaves take that are in memory.
fn trees(Asked { database, catalog, reads, .. }: &Asked<'_>) -> crate::Result<RecordBatch> {
    reads.everything();
    let trees: Vec<_> = catalog.kv_trees().collect();
    let texts = |of: &dyn Fn(&KvTree) -> String| -> ArrayRef {
        Arc::new(trees.iter().map(|(_, tree)| Some(of(tree))).collect::<StringArray>())
    };
    let mut columns = vec![
        ("schema", Arc::new(trees.iter().map(|(name, _)| Some(&*name.schema)).collect::<StringArray>()) as ArrayRef),
        ("tree", Arc::new(trees.iter().map(|(name, _)| Some(&*name.table)).collect::<StringArray>())),
        ("key", texts(&|tree| tree.shape().key.to_string())),
        ("value", texts(&|tree| tree.shape().value.to_string())),
        (
            "duplicates",
            Arc::new(trees.iter().map(|(_, tree)| Some(tree.shape().has_duplicates)).collect::<BooleanArray>()),
        ),
        ("codec", texts(&|tree| tree.shape().codec_name().to_owned())),
    ];
    let trees: Vec<Option<&KvTree>> = trees.iter().map(|(_, tree)| Some(&***tree)).collect();
    columns.extend(sizes(database, &trees, "keys")?);
    batch(columns)
}

/// The indexes of tables, and what their leaves take that are in memory.
fn indexes(Asked { database, catalog, reads, .. }: &Asked<'_>) -> crate::Result<RecordBatch> {
    reads.everything();
    let of_table = |(name, table)| -> Vec<(&TableName, &Index)> {
        let table: &Arc<ColumnTable> = table;
        table.schema().indexes.iter().map(|index| (name, index)).collect()
    };
    let indexes: Vec<(&TableName, &Index)> = catalog.tables.iter().flat_map(of_table).collect();
    let texts = |of: &dyn Fn(&TableName, &Index) -> String| -> ArrayRef {
        Arc::new(indexes.iter().map(|(name, index)| Some(of(name, index))).collect::<StringArray>())
    };
    let flags = |of: &dyn Fn(&Index) -> bool| -> ArrayRef {
        Arc::new(indexes.iter().map(|(_, index)| Some(of(index))).collect::<BooleanArray>())
    };
    let mut columns = vec![
        ("schema", texts(&|table, _| table.schema.to_string())),
        ("table", texts(&|table, _| table.table.to_string())),
        ("index", texts(&|_, index| index.name.clone())),
        ("columns", texts(&|_, index| index.columns.join(", "))),
        ("unique", flags(&|index| index.rule.is_unique())),
        ("primary", flags(&|index| index.rule == IndexRule::Primary)),
    ];
    let trees = indexes.iter().map(|(_, index)| Some(&**catalog.tree_by_id(index.tree)?.1));
    columns.extend(sizes(database, &trees.collect::<Vec<_>>(), "entries")?);
    batch(columns)
}

/// How many entries trees have, and what their leaves take that are in memory; NULL of those that are lost.
fn sizes<'c>(
    database: &Database,
    trees: &[Option<&KvTree>],
    entries: &'c str,
) -> crate::Result<Vec<(&'c str, ArrayRef)>> {
    let snapshot = database.timeline().snapshot();
    let len = |tree: &Option<&KvTree>| tree.map(|tree| tree.tree().len(snapshot.commit())).transpose();
    let keys = trees.iter().map(len).collect::<crate::Result<Vec<Option<u64>>>>()?;
    let shapes: Vec<Option<TreeShape>> = trees.iter().map(|tree| tree.map(shape_of)).collect();
    let numbers = |of: fn(&TreeShape) -> u64| -> ArrayRef {
        Arc::new(shapes.iter().map(|shape| shape.as_ref().map(of)).collect::<UInt64Array>())
    };
    Ok(vec![
        (entries, Arc::new(UInt64Array::from(keys))),
        ("leaves", numbers(|shape| shape.leaves)),
        ("resident_leaves", numbers(|shape| shape.resident_leaves)),
        ("key_bytes", numbers(|shape| shape.key_bytes)),
        ("value_bytes", numbers(|shape| shape.record_bytes)),
    ])
}

/// What a tree consists of, with its overflow, which all counts as values.
fn shape_of(tree: &KvTree) -> TreeShape {
    let shape = tree.tree().shape();
    let is_used = |pieces: &TreeShape| pieces.keys > 0 || pieces.leaves > pieces.resident_leaves;
    let pieces = tree.overflow().map(|overflow| overflow.tree().shape()).filter(is_used);
    let Some(pieces) = pieces else { return shape };
    TreeShape {
        leaves: shape.leaves + pieces.leaves,
        resident_leaves: shape.resident_leaves + pieces.resident_leaves,
        record_bytes: shape.record_bytes + pieces.key_bytes + pieces.record_bytes,
        ..shape
    }
}

fn databases(&Asked { database, .. }: &Asked<'_>) -> crate::Result<RecordBatch> {
    let attached = database.attached().list();
    let others = attached.iter().map(|(name, database)| (&**name, database.as_ref()));
    let all: Vec<(&str, &Database)> = std::iter::once((CATALOG_NAME, database)).chain(others).collect();
    let path = |database: &Database| database.path().map(|path| path.display().to_string());
    batch(vec![
        ("name", Arc::new(all.iter().map(|(name, _)| Some(*name)).collect::<StringArray>())),
        ("path", Arc::new(all.iter().map(|(_, database)| path(database)).collect::<StringArray>())),
        (
            "read_only",
            Arc::new(all.iter().map(|(_, database)| Some(database.options().read_only)).collect::<BooleanArray>()),
        ),
    ])
}

fn table_bytes(table: &ColumnTable) -> u64 {
    let (stored, held) = table.segment_bytes();
    stored + held
}

fn memory(Asked { database, catalog, .. }: &Asked<'_>) -> crate::Result<RecordBatch> {
    let usage = database.store().budget().usage();
    let mut rows: Vec<(String, u64)> =
        catalog.tables.iter().map(|(name, table)| (format!("table {name}"), table.memory_bytes())).collect();
    for (of, attached) in database.attached().visible() {
        let tables = attached.catalog.tables.iter();
        rows.extend(tables.map(|(name, table)| (format!("table {}.{name}", as_written(&of)), table.memory_bytes())));
    }
    let tables: u64 = rows.iter().map(|(_, bytes)| *bytes).sum();
    rows.extend(
        [
            ("tables", tables),
            ("pool", usage.pool),
            ("trees", usage.leaf),
            ("scratch", usage.scratch),
            // What tables hold that the newest state does not: it is there for those who still look at an older one.
            ("undo", usage.table.saturating_sub(tables)),
            ("query", usage.query),
            ("limit", usage.limit),
        ]
        .map(|(what, bytes)| (what.to_owned(), bytes)),
    );
    batch(vec![
        ("what", Arc::new(rows.iter().map(|(what, _)| Some(what.as_str())).collect::<StringArray>())),
        ("bytes", Arc::new(rows.iter().map(|(_, bytes)| Some(*bytes)).collect::<UInt64Array>())),
    ])
}

/// Time that each kernel of each scheme is measured for, and as long again for its peer.
const KERNEL_TIME: Duration = Duration::from_millis(10);

/// Measured when the query is planned: some seconds.
fn kernels(_: &Asked<'_>) -> crate::Result<RecordBatch> {
    let table = kernel_table(KERNEL_TIME).map_err(|error| crate::Error::Internal(error.to_string()))?;
    let way = |row: &KernelRow| if row.is_native { "native" } else { "decode" };
    batch(vec![
        ("scheme", Arc::new(table.iter().map(|row| Some(row.scheme)).collect::<StringArray>())),
        ("layout", Arc::new(table.iter().map(|row| Some(&row.layout[..])).collect::<StringArray>())),
        ("type", Arc::new(table.iter().map(|row| Some(row.physical.name())).collect::<StringArray>())),
        ("kernel", Arc::new(table.iter().map(|row| Some(row.kernel)).collect::<StringArray>())),
        ("way", Arc::new(table.iter().map(|row| Some(way(row))).collect::<StringArray>())),
        (
            "values_per_second",
            Arc::new(table.iter().map(|row| row.values_per_second.round()).collect::<Float64Array>()),
        ),
        (
            "speed_up",
            Arc::new(table.iter().map(|row| (row.speed_up * 100.0).round() / 100.0).collect::<Float64Array>()),
        ),
    ])
}

/// Measured when the query is planned: less than a second.
fn decoding(_: &Asked<'_>) -> crate::Result<RecordBatch> {
    let table = decode_table(KERNEL_TIME).map_err(|error| crate::Error::Internal(error.to_string()))?;
    let rounded = |number: fn(&DecodeRow) -> f64| -> ArrayRef {
        Arc::new(table.iter().map(|row| (number(row) * 1000.0).round() / 1000.0).collect::<Float64Array>())
    };
    batch(vec![
        ("scheme", Arc::new(table.iter().map(|row| Some(row.scheme)).collect::<StringArray>())),
        ("layout", Arc::new(table.iter().map(|row| Some(&row.layout[..])).collect::<StringArray>())),
        ("type", Arc::new(table.iter().map(|row| Some(row.physical.name())).collect::<StringArray>())),
        ("bytes_per_value", rounded(|row| row.bytes_per_value)),
        ("said_nanoseconds", rounded(|row| row.said_nanos)),
        ("measured_nanoseconds", rounded(|row| row.measured_nanos)),
    ])
}

fn codecs(_: &Asked<'_>) -> crate::Result<RecordBatch> {
    let types = SCHEMES.iter().map(|entry| {
        let names: Vec<&str> =
            Physical::ALL.iter().filter(|physical| entry.holds(**physical)).map(|physical| physical.name()).collect();
        if names.len() == Physical::ALL.len() { "all".to_owned() } else { names.join(", ") }
    });
    batch(vec![
        ("scheme", Arc::new(SCHEMES.iter().map(|entry| Some(entry.name)).collect::<StringArray>())),
        ("tag", Arc::new(SCHEMES.iter().map(|entry| Some(i64::from(entry.tag))).collect::<Int64Array>())),
        ("types", Arc::new(types.map(Some).collect::<StringArray>())),
    ])
}

/// One row per column: what it is, how it is kept, what that costs.
#[derive(Default)]
struct ColumnStorage {
    table: String,
    column: String,
    ty: String,
    schemes: BTreeMap<String, u64>,
    values: u64,
    nulls: u64,
    plain_bytes: u64,
    bytes: u64,
}

impl ColumnStorage {
    /// Blocks of one segment: the first tells the counts, all of them tell the bytes.
    fn add(&mut self, segment: &Pinned) -> crate::Result<()> {
        let mut names = Vec::new();
        let mut rest: &[u8] = segment;
        while !rest.is_empty() {
            let block = Block::open(rest).map_err(|source| sinter_exec::Error::Damaged {
                place: format!("table '{}', column '{}'", self.table, self.column),
                source,
            })?;
            if names.is_empty() {
                self.values += block.value_count() as u64;
                self.nulls += block.stats().null_count as u64;
            }
            self.plain_bytes += block.stats().plain_bytes as u64;
            names.push(block.describe());
            rest = &rest[block.byte_len()..];
        }
        self.bytes += segment.len() as u64;
        let name = if names.len() == 1 { names.remove(0) } else { format!("nested({})", names.join(", ")) };
        *self.schemes.entry(name).or_default() += segment.len() as u64;
        Ok(())
    }

    /// The scheme that most bytes are in, and how many others there are.
    fn scheme(&self) -> String {
        let Some((name, _)) = self.schemes.iter().max_by_key(|(_, bytes)| **bytes) else { return "none".to_owned() };
        match self.schemes.len() {
            1 => name.clone(),
            many => format!("{name} (of {many} schemes)"),
        }
    }
}

fn storage(asked: &Asked<'_>) -> crate::Result<RecordBatch> {
    let mut columns = Vec::new();
    let trees = chosen_trees(asked);
    let tables = if trees.is_empty() || asked.arguments.is_empty() { chosen(asked)? } else { Vec::new() };
    for (name, table) in tables {
        asked.reads.whole(table.id());
        let schema = table.schema();
        for (index, column) in schema.columns.iter().enumerate() {
            let mut storage = ColumnStorage {
                table: name.clone(),
                column: column.name.clone(),
                ty: column.ty.to_string(),
                ..ColumnStorage::default()
            };
            for entry in table.groups() {
                storage.add(&entry.group.segments[index].pin()?)?;
            }
            columns.push(storage);
        }
        for index in &schema.indexes {
            if let Some((_, tree)) = asked.catalog.tree_by_id(index.tree) {
                let [keys, records] = tree_storage(asked, tree)?;
                columns.push(ColumnStorage {
                    table: name.clone(),
                    column: format!("index {}", index.name),
                    ty: format!("({})", index.columns.join(", ")),
                    plain_bytes: keys.plain_bytes + records.plain_bytes,
                    bytes: keys.bytes + records.bytes,
                    ..keys
                });
            }
        }
    }
    for (name, tree) in trees {
        let kinds = tree.shape().columns();
        columns.extend(tree_storage(asked, tree)?.into_iter().zip(kinds).map(|(storage, (column, ty))| {
            ColumnStorage { table: name.clone(), column: column.to_owned(), ty: ty.to_string(), ..storage }
        }));
    }
    let text = |of: &dyn Fn(&ColumnStorage) -> String| -> ArrayRef {
        Arc::new(columns.iter().map(|column| Some(of(column))).collect::<StringArray>())
    };
    let number = |of: &dyn Fn(&ColumnStorage) -> u64| -> ArrayRef {
        Arc::new(columns.iter().map(|column| Some(of(column))).collect::<UInt64Array>())
    };
    let ratios: Float64Array = columns
        .iter()
        .map(|column| {
            (column.bytes > 0).then(|| (column.plain_bytes as f64 / column.bytes as f64 * 100.0).round() / 100.0)
        })
        .collect();
    let mut out = Vec::new();
    if asked.arguments.is_empty() {
        out.push(("table", text(&|column| column.table.clone())));
    }
    out.extend([
        ("column", text(&|column| column.column.clone())),
        ("type", text(&|column| column.ty.clone())),
        ("scheme", text(&ColumnStorage::scheme)),
        ("values", number(&|column| column.values)),
        ("nulls", number(&|column| column.nulls)),
        ("plain_bytes", number(&|column| column.plain_bytes)),
        ("bytes", number(&|column| column.bytes)),
        ("ratio", Arc::new(ratios)),
    ]);
    batch(out)
}

/// The first row group of a table once more: for each column and scheme, what it would take, and what decided.
fn candidates(asked: &Asked<'_>) -> crate::Result<RecordBatch> {
    let (table, wanted) = match asked.arguments {
        [table] => (table, None),
        [table, column] => (table, Some(column)),
        _ => {
            return Err(crate::Error::Sql("candidates() wants the name of a table, and of a column if one".to_owned()));
        }
    };
    let mut found = Vec::new();
    for (_, table) in chosen(&Asked { arguments: std::slice::from_ref(table), reads: asked.reads.clone(), ..*asked })? {
        asked.reads.whole(table.id());
        let columns = &table.schema().columns;
        if let Some(name) = wanted.filter(|name| columns.iter().all(|column| column.name != **name)) {
            return Err(crate::Error::Sql(format!("there is no column '{name}' in table '{}'", table.name())));
        }
        let Some(entry) = table.groups().first() else { continue };
        for (index, column) in columns.iter().enumerate() {
            if wanted.is_some_and(|name| column.name != *name) {
                continue;
            }
            let segment = entry.group.segments[index].pin()?;
            let mut rest: &[u8] = &segment;
            while !rest.is_empty() {
                let damaged = |source| sinter_exec::Error::Damaged {
                    place: format!("table '{}', column '{}'", table.name(), column.name),
                    source,
                };
                let block = Block::open(rest).map_err(damaged)?;
                let rows = 0..block.value_count();
                let (mut values, mut validity) = (ValuesBuf::new(block.physical()), Bitmap::default());
                block.decode(rows.clone(), &mut values).map_err(damaged)?;
                let has_nulls = block.validity(rows, &mut validity).map_err(damaged)?;
                let weighed = sinter_codec::candidates(values.as_values(), has_nulls.then_some(&validity));
                found.extend(weighed.map_err(damaged)?.into_iter().map(|candidate| (column.name.clone(), candidate)));
                rest = &rest[block.byte_len()..];
            }
        }
    }
    let text = |of: &dyn Fn(&Candidate) -> String| -> ArrayRef {
        Arc::new(found.iter().map(|(_, candidate)| Some(of(candidate))).collect::<StringArray>())
    };
    let bytes = |of: &dyn Fn(&Candidate) -> Option<usize>| -> ArrayRef {
        Arc::new(found.iter().map(|(_, candidate)| of(candidate).map(|bytes| bytes as u64)).collect::<UInt64Array>())
    };
    batch(vec![
        ("column", Arc::new(found.iter().map(|(column, _)| Some(column.as_str())).collect::<StringArray>())),
        ("scheme", text(&|candidate| candidate.scheme.to_owned())),
        ("chosen", Arc::new(found.iter().map(|(_, candidate)| Some(candidate.is_chosen)).collect::<BooleanArray>())),
        ("estimated_bytes", bytes(&|candidate| candidate.estimated_bytes)),
        ("bytes", bytes(&|candidate| candidate.bytes)),
        ("parts", text(&|candidate| candidate.description.clone())),
        ("why", text(&|candidate| candidate.why.clone())),
    ])
}

/// What the keys and the records of a tree take, in all of its leaves.
fn tree_storage(asked: &Asked<'_>, tree: &KvTree) -> crate::Result<[ColumnStorage; 2]> {
    let snapshot = asked.database.timeline().snapshot();
    let sizes = tree.tree().sizes(snapshot.commit())?;
    let of = |scheme: &str, plain_bytes, bytes| ColumnStorage {
        schemes: BTreeMap::from([(scheme.to_owned(), bytes)]),
        values: sizes.keys,
        plain_bytes,
        bytes,
        ..ColumnStorage::default()
    };
    let keys = of(tree.shape().codec_name(), sizes.plain_key_bytes, sizes.key_bytes);
    let pieces =
        tree.overflow().map(|overflow| overflow.tree().sizes(snapshot.commit())).transpose()?.unwrap_or_default();
    let (plain, bytes) = (sizes.record_bytes + pieces.record_bytes, sizes.record_bytes + pieces.bytes());
    Ok([keys, of("raw", plain, bytes)])
}

/// The key-value trees that storage() is asked about.
fn chosen_trees<'a>(Asked { catalog, reads, arguments, .. }: &Asked<'a>) -> Vec<(String, &'a Arc<KvTree>)> {
    match arguments {
        [] => catalog.kv_trees().map(|(name, tree)| (name.to_string(), tree)).collect(),
        [wanted] => {
            let as_written = parse_table_name(wanted).ok();
            let as_stored = TableName::new(DEFAULT_SCHEMA, wanted);
            as_written.iter().chain([&as_stored]).for_each(|name| reads.name(name));
            let found = as_written.and_then(|name| catalog.kv_tree(&name)).or(catalog.kv_tree(&as_stored));
            found.map(|tree| (wanted.clone(), tree)).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// The tables that storage() is asked about.
fn chosen<'a>(
    Asked { catalog, reads, arguments, .. }: &Asked<'a>,
) -> crate::Result<Vec<(String, &'a Arc<ColumnTable>)>> {
    match arguments {
        [] => {
            reads.everything();
            Ok(catalog.tables.iter().map(|(name, table)| (name.to_string(), table)).collect())
        }
        [wanted] => {
            let as_written = parse_table_name(wanted);
            let as_stored = TableName::new(DEFAULT_SCHEMA, wanted);
            as_written.iter().chain([&as_stored]).for_each(|name| reads.name(name));
            let found = as_written.as_ref().ok().and_then(|name| catalog.table(name)).or(catalog.table(&as_stored));
            match found {
                Some(table) => Ok(vec![(wanted.clone(), table)]),
                None => find(catalog, &as_written?).map(|table| vec![(wanted.clone(), table)]),
            }
        }
        _ => Err(crate::Error::Sql("storage() wants the name of one table, or nothing".to_owned())),
    }
}
