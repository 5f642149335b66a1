//! A lowered part of a plan, dressed as a table so that DataFusion plans around it.

use crate::lower::NotedScan;
use crate::physical::PipelineExec;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{Result, Statistics};
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::{Expr, LogicalPlan, TableType};
use datafusion::physical_plan::ExecutionPlan;
use sinter_exec::{Output, Pipeline};
use std::sync::Arc;

/// A pipeline and the schema of the plan that it stands for.
#[derive(Debug)]
pub(crate) struct PipelineTable {
    pipeline: Pipeline,
    in_table_order: bool,
    schema: SchemaRef,
    noted: Vec<NotedScan>,
}

impl PipelineTable {
    /// `in_table_order` costs the other threads.
    pub(crate) fn new(
        pipeline: Pipeline,
        in_table_order: bool,
        schema: SchemaRef,
        noted: Vec<NotedScan>,
    ) -> PipelineTable {
        PipelineTable { pipeline, in_table_order, schema, noted }
    }

    /// The pipeline that a whole plan was lowered to; `None` where there is more in it.
    pub(crate) fn of(plan: &LogicalPlan) -> Option<Arc<dyn TableProvider>> {
        let LogicalPlan::TableScan(scan) = plan else { return None };
        let table = source_as_provider(&scan.source).ok()?;
        (table.as_ref() as &dyn std::any::Any).is::<PipelineTable>().then_some(table)
    }
}

#[async_trait]
impl TableProvider for PipelineTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if projection.is_some_and(|projection| !projection.iter().copied().eq(0..self.schema.fields().len())) {
            return datafusion::common::internal_err!("a lowered plan is never projected again");
        }
        self.noted.iter().for_each(|(noted, columns, filter)| noted.rows(columns, filter));
        let mut statistics = Statistics::new_unknown(&self.schema);
        let rows = match &self.pipeline.output {
            Output::Aggregate(_) => 1,
            _ => self.pipeline.rows_estimate(),
        };
        statistics.num_rows =
            datafusion::common::stats::Precision::Inexact(self.pipeline.limit.map_or(rows, |limit| rows.min(limit)));
        let threads = match &self.pipeline.output {
            Output::Rows(_) if self.in_table_order => 1,
            _ => state.config().target_partitions(),
        };
        let exec = PipelineExec::new(self.pipeline.clone(), Arc::clone(&self.schema), statistics, threads)?;
        Ok(Arc::new(exec))
    }
}
