//! A snapshot of a column table, or of a key-value tree, as a table of DataFusion.

use super::statistics;
use crate::index::IndexesSeen;
use crate::kv::{ALL_KEYS, AnyRange, TreeTable};
use crate::lower::{can_run_anywhere, lower_filters};
use crate::physical::PipelineExec;
use crate::transaction::Reads;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchema, Result, Statistics};
use datafusion::logical_expr::{Expr as DfExpr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use sinter_codec::VECTOR_LEN;
use sinter_column::ColumnTable;
use sinter_exec::{Expr, Finder, OnDamage, Output, Pipeline, ReadAs, ScanColumn, Source, TableSource};
use sinter_storage::ObjectId;
use std::sync::Arc;

/// The name under which UPDATE and DELETE see the row id. Not a name that a user can define.
pub(crate) const ROW_ID: &str = "\u{1}row id";

/// How a statement reads tables.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    /// What becomes of row groups that cannot be read.
    pub(crate) on_damage: OnDamage,
    /// Segments are decoded whole as they are fetched; see [`ReadAs`].
    pub(crate) page_wise: bool,
    /// That operators take at a time.
    pub(crate) vector_rows: usize,
}

/// What is read.
#[derive(Clone, Debug)]
pub(crate) enum Stored {
    /// With its indexes, if it has any.
    Table(Arc<ColumnTable>, Option<Arc<IndexesSeen>>),
    Tree(Arc<TreeTable>),
}

/// Finds rows once the keys of a join are known.
#[derive(Debug)]
struct ByKeys {
    stored: Stored,
    reading: Reading,
    /// Of a tree: the keys that are scanned otherwise.
    known_ranges: Vec<AnyRange>,
}

impl Finder for ByKeys {
    fn finds_by(&self, columns: &[ScanColumn], conditions: &[Expr]) -> Option<String> {
        match &self.stored {
            Stored::Table(table, indexes) => {
                let name = indexes.as_ref()?.name_for(table.schema(), columns, conditions)?;
                Some(format!("by index {name}"))
            }
            Stored::Tree(tree) => (tree.ranges(columns, conditions) != [ALL_KEYS]).then(|| "by key".to_owned()),
        }
    }

    fn find(&self, columns: &[ScanColumn], conditions: &[Expr]) -> sinter_exec::Result<Option<Arc<dyn TableSource>>> {
        let found: crate::Result<Option<Arc<dyn TableSource>>> = match &self.stored {
            Stored::Table(table, indexes) => self.reading.rows_by(indexes.as_deref(), table, columns, conditions),
            Stored::Tree(tree) => {
                let ranges = tree.ranges(columns, conditions);
                if ranges == self.known_ranges { Ok(None) } else { tree.source(&ranges).map(Some) }
            }
        };
        let found = found.map_err(|error| sinter_exec::Error::Source(Box::new(error)))?;
        Ok(found.map(|table| self.reading.read(table, None)))
    }
}

impl Reading {
    /// The rows that an index finds for conditions, if one does. Where damage is left out, the table is not damaged by an index
    /// that is.
    fn rows_by(
        &self,
        indexes: Option<&IndexesSeen>,
        table: &Arc<ColumnTable>,
        columns: &[ScanColumn],
        conditions: &[Expr],
    ) -> crate::Result<Option<Arc<dyn TableSource>>> {
        let found = match indexes.map_or(Ok(None), |indexes| indexes.rows(table, columns, conditions)) {
            Err(crate::Error::Damaged(_)) if matches!(self.on_damage, OnDamage::LeaveOut(_)) => None,
            found => found?,
        };
        Ok(found.map(|found| Arc::new(found) as _))
    }

    /// The table read in this way, by who finds rows of it.
    fn read(&self, table: Arc<dyn TableSource>, finder: Option<Arc<dyn Finder>>) -> Arc<dyn TableSource> {
        let Reading { page_wise, vector_rows, .. } = *self;
        if finder.is_none() && !page_wise && vector_rows >= VECTOR_LEN {
            return table;
        }
        Arc::new(ReadAs { table, page_wise, vector_rows, finder })
    }
}

/// One table or key-value tree at one moment. With `with_row_id`, the last column is the row id.
#[derive(Debug)]
pub(crate) struct StoredProvider {
    stored: Stored,
    /// Without the row id.
    column_count: usize,
    reads: Reads,
    reading: Reading,
    schema: SchemaRef,
    df_schema: DFSchema,
}

impl StoredProvider {
    pub(crate) fn new(stored: Stored, with_row_id: bool, reads: Reads, reading: Reading) -> Result<StoredProvider> {
        let mut schema = match &stored {
            Stored::Table(table, _) => table.schema().arrow(),
            Stored::Tree(tree) => tree.schema(),
        };
        let column_count = schema.fields().len();
        if with_row_id {
            let mut fields: Vec<Arc<Field>> = schema.fields().iter().cloned().collect();
            fields.push(Arc::new(Field::new(ROW_ID, DataType::UInt64, false)));
            schema = Arc::new(Schema::new(fields));
        }
        let df_schema = DFSchema::try_from(Arc::clone(&schema))?;
        Ok(StoredProvider { stored, column_count, reads, reading, schema, df_schema })
    }

    /// What a scan of the rows that pass `filter`, over these columns, reads, and where it notes that. Of a tree that is no
    /// more than the filter lets through; of a table what an index finds for it, where that is little.
    ///
    /// # Errors
    /// A tree cannot be read.
    pub(crate) fn source(
        &self,
        columns: &[ScanColumn],
        filter: &[Expr],
    ) -> crate::Result<(Arc<dyn TableSource>, Noted)> {
        let is_planned_only = self.reads.are_of_definitions();
        let mut finder = None;
        let by_keys = |known_ranges: &[AnyRange]| -> Option<Arc<dyn Finder>> {
            let (stored, reading) = (self.stored.clone(), self.reading.clone());
            (!is_planned_only).then(|| Arc::new(ByKeys { stored, reading, known_ranges: known_ranges.to_vec() }) as _)
        };
        let (table, object): (Arc<dyn TableSource>, _) = match &self.stored {
            Stored::Table(table, indexes) => {
                let indexes = indexes.as_deref().filter(|_| !is_planned_only);
                let by_constants = indexes.filter(|_| !filter.is_empty());
                let source = match self.reading.rows_by(by_constants, table, columns, filter)? {
                    Some(found) => found,
                    None => {
                        finder = indexes.and_then(|_| by_keys(&[]));
                        Arc::clone(table) as _
                    }
                };
                (source, NotedObject::Table(table.id()))
            }
            Stored::Tree(tree) => {
                // What is only planned reads no leaf.
                let ranges = if is_planned_only { Vec::new() } else { tree.ranges(columns, filter) };
                finder = by_keys(&ranges);
                (tree.source(&ranges)?, NotedObject::Tree(tree.id(), ranges.into()))
            }
        };
        let noted = Noted { object, reads: self.reads.clone() };
        Ok((self.reading.read(table, finder), noted))
    }

    /// What is known without reading; of trees nothing.
    fn statistics_of(&self, projection: Option<&[usize]>, exact: bool) -> Statistics {
        match &self.stored {
            Stored::Table(table, _) => statistics::of_table(table, &self.schema, projection, exact),
            Stored::Tree(_) => match projection {
                None => Statistics::new_unknown(&self.schema),
                Some(projection) => Statistics::new_unknown(&self.schema).project(Some(&projection.to_vec())),
            },
        }
    }

    /// What becomes of row groups that cannot be read.
    pub(crate) fn on_damage(&self) -> OnDamage {
        self.reading.on_damage.clone()
    }

    pub(crate) fn column_count(&self) -> usize {
        self.schema.fields().len()
    }

    pub(crate) fn scan_column(&self, index: usize) -> ScanColumn {
        if index < self.column_count { ScanColumn::Table(index) } else { ScanColumn::RowId }
    }

    /// Pushed filters in our terms; see [`lower_filters`].
    pub(crate) fn lower_filters(&self, filters: &[DfExpr], columns: &mut Vec<ScanColumn>) -> Option<Vec<Expr>> {
        lower_filters(filters, &self.df_schema, &|index| self.scan_column(index), columns)
    }
}

/// What is read, and the transaction that wants to know.
#[derive(Clone, Debug)]
pub(crate) struct Noted {
    object: NotedObject,
    reads: Reads,
}

#[derive(Clone, Debug)]
enum NotedObject {
    Table(ObjectId),
    /// These of its keys.
    Tree(ObjectId, Arc<[AnyRange]>),
}

impl Noted {
    /// A scan of the rows that pass `filter`.
    pub(crate) fn rows(&self, columns: &[ScanColumn], filter: &[Expr]) {
        match &self.object {
            NotedObject::Table(id) => self.reads.rows(*id, columns, filter),
            NotedObject::Tree(id, ranges) => self.reads.keys(*id, ranges),
        }
    }
}

#[async_trait]
impl TableProvider for StoredProvider {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn statistics(&self) -> Option<Statistics> {
        Some(self.statistics_of(None, true))
    }

    fn supports_filters_pushdown(&self, filters: &[&DfExpr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(filters
            .iter()
            .map(|filter| {
                let ours = can_run_anywhere(filter)
                    && self.lower_filters(std::slice::from_ref(*filter), &mut Vec::new()).is_some();
                if ours { TableProviderFilterPushDown::Exact } else { TableProviderFilterPushDown::Unsupported }
            })
            .collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[DfExpr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let projection: Vec<usize> = projection.cloned().unwrap_or_else(|| (0..self.column_count()).collect());
        let mut columns: Vec<ScanColumn> = projection.iter().map(|&index| self.scan_column(index)).collect();
        let output = (0..columns.len()).map(Expr::Column).collect();
        let Some(filter) = self.lower_filters(filters, &mut columns) else {
            return datafusion::common::internal_err!("a pushed filter cannot be lowered: {filters:?}");
        };
        let (source, noted) = self.source(&columns, &filter)?;
        let source = source.without_finder().unwrap_or(source);
        noted.rows(&columns, &filter);
        let schema = Arc::new(self.schema.project(&projection)?);
        let exact = filter.is_empty() && limit.is_none();
        let statistics = self.statistics_of(Some(&projection), exact);
        let (output, on_damage) = (Output::Rows(output), self.on_damage());
        let pipeline =
            Pipeline { source: Source::Table(source), columns, filter, steps: Vec::new(), output, limit, on_damage };
        Ok(Arc::new(PipelineExec::new(pipeline, schema, statistics, state.config().target_partitions())?))
    }
}
