//! A snapshot of a column table as a table of DataFusion.

use super::statistics;
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
use sinter_exec::{Expr, OnDamage, Output, Pipeline, ReadAs, ScanColumn, Source, TableSource};
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

/// One table at one moment. With `with_row_id`, its last column is the row id.
#[derive(Debug)]
pub(crate) struct ColumnTableProvider {
    table: Arc<ColumnTable>,
    reads: Reads,
    reading: Reading,
    schema: SchemaRef,
    df_schema: DFSchema,
}

impl ColumnTableProvider {
    pub(crate) fn new(
        table: Arc<ColumnTable>,
        with_row_id: bool,
        reads: Reads,
        reading: Reading,
    ) -> Result<ColumnTableProvider> {
        let mut schema = table.schema().arrow();
        if with_row_id {
            let mut fields: Vec<Arc<Field>> = schema.fields().iter().cloned().collect();
            fields.push(Arc::new(Field::new(ROW_ID, DataType::UInt64, false)));
            schema = Arc::new(Schema::new(fields));
        }
        let df_schema = DFSchema::try_from(Arc::clone(&schema))?;
        Ok(ColumnTableProvider { table, reads, reading, schema, df_schema })
    }

    pub(crate) fn source(&self) -> Arc<dyn TableSource> {
        let table = Arc::clone(&self.table) as Arc<dyn TableSource>;
        let Reading { page_wise, vector_rows, .. } = self.reading;
        if page_wise || vector_rows < VECTOR_LEN {
            return Arc::new(ReadAs { table, page_wise, vector_rows });
        }
        table
    }

    /// What becomes of row groups that cannot be read.
    pub(crate) fn on_damage(&self) -> OnDamage {
        self.reading.on_damage.clone()
    }

    /// Where scans of this table note what they read.
    pub(crate) fn noted(&self) -> Noted {
        Noted { object: self.table.id(), reads: self.reads.clone() }
    }

    pub(crate) fn column_count(&self) -> usize {
        self.schema.fields().len()
    }

    pub(crate) fn scan_column(&self, index: usize) -> ScanColumn {
        if index < self.table.column_types().len() { ScanColumn::Table(index) } else { ScanColumn::RowId }
    }

    /// Pushed filters in our terms; see [`lower_filters`].
    pub(crate) fn lower_filters(&self, filters: &[DfExpr], columns: &mut Vec<ScanColumn>) -> Option<Vec<Expr>> {
        lower_filters(filters, &self.df_schema, &|index| self.scan_column(index), columns)
    }
}

/// One table, and the transaction that wants to know what is read of it.
#[derive(Clone, Debug)]
pub(crate) struct Noted {
    object: ObjectId,
    reads: Reads,
}

impl Noted {
    /// A scan of the rows that pass `filter`.
    pub(crate) fn rows(&self, columns: &[ScanColumn], filter: &[Expr]) {
        self.reads.rows(self.object, columns, filter);
    }
}

#[async_trait]
impl TableProvider for ColumnTableProvider {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn statistics(&self) -> Option<Statistics> {
        Some(statistics::of_table(&self.table, &self.schema, None, true))
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
        self.noted().rows(&columns, &filter);
        let schema = Arc::new(self.schema.project(&projection)?);
        let exact = filter.is_empty() && limit.is_none();
        let statistics = statistics::of_table(&self.table, &self.schema, Some(&projection), exact);
        let (source, output, on_damage) = (self.source(), Output::Rows(output), self.on_damage());
        let pipeline =
            Pipeline { source: Source::Table(source), columns, filter, steps: Vec::new(), output, limit, on_damage };
        Ok(Arc::new(PipelineExec::new(pipeline, schema, statistics, state.config().target_partitions())?))
    }
}
