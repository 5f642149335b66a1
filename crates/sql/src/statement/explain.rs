//! EXPLAIN and EXPLAIN ANALYZE: which engine runs what, and what it touched.

use super::databases;
use super::delete::{rewritten_delete, rewritten_update};
use super::merge::rewritten_merge;
use crate::batches::{Outcome, Query};
use crate::physical::{HopefulExec, PipelineExec};
use crate::progress::Notes;
use crate::{Error, Result, Session};
use arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties, displayable};
use datafusion::sql::sqlparser::ast;
use sinter_exec::Counters;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

pub(super) fn run(session: &Session, mut inner: ast::Statement, analyze: bool) -> Result<Outcome> {
    if let Some(attached) = databases::target(session, &mut inner)? {
        return run(&session.at(&attached)?, inner, analyze);
    }
    let seen = session.readable()?;
    let changes_rows =
        matches!(inner, ast::Statement::Delete(_) | ast::Statement::Update(_) | ast::Statement::Merge(_));
    let inner = match inner {
        query @ ast::Statement::Query(_) => query,
        _ if analyze => {
            return Err(Error::Sql(
                "EXPLAIN ANALYZE runs queries only; of what changes rows there is EXPLAIN".to_owned(),
            ));
        }
        ast::Statement::Delete(delete) => rewritten_delete(&seen, delete)?.query,
        ast::Statement::Update(update) => rewritten_update(&seen, update)?.query,
        ast::Statement::Merge(merge) => rewritten_merge(&seen, merge)?.query,
        ast::Statement::Insert(ast::Insert { source: Some(source), .. }) => ast::Statement::Query(source),
        _ => return Err(Error::Sql("EXPLAIN wants a query, INSERT, UPDATE, DELETE or MERGE".to_owned())),
    };
    let notes = Notes::default();
    let state = match changes_rows {
        true => session.statement_state(seen, notes.clone()),
        false => session.query_state(seen, notes.clone()),
    };
    let planned = session.plan(&state, inner)?;
    let physical = Arc::clone(&planned.physical);
    let mut lines = Vec::new();
    if analyze {
        measure(&physical);
        let begun = Instant::now();
        let mut rows = 0;
        for batch in Query::planned(planned)?.stream()? {
            rows += batch?.num_rows();
        }
        let elapsed = begun.elapsed();
        lines.push(format!("{rows} rows in {:.3} ms", elapsed.as_secs_f64() * 1e3));
        let totals = Totals::of(&physical);
        lines.push(format!("bytes compressed: {}, bytes decoded: {}", totals.compressed, totals.decoded));
    }
    describe(&physical, 0, analyze, &mut lines);
    let plan: StringArray = lines.iter().map(|line| Some(line.as_str())).collect();
    let rows = RecordBatch::try_from_iter([("plan", Arc::new(plan) as ArrayRef)])?;
    Ok(Outcome::Rows(Query::ready(rows).with_notes(notes)))
}

fn describe(plan: &Arc<dyn ExecutionPlan>, depth: usize, analyze: bool, lines: &mut Vec<String>) {
    let indent = "  ".repeat(depth);
    match pipeline(plan) {
        Some(exec) => {
            let text = match exec.latest_run().filter(|_| analyze) {
                Some(run) => run.explain().to_string(),
                None => displayable(plan.as_ref()).one_line().to_string(),
            };
            for (index, line) in text.trim_end().lines().enumerate() {
                let mark = if index == 0 { "sinter: " } else { "        " };
                lines.push(format!("{indent}{mark}{line}"));
            }
            if let (true, Some(run)) = (analyze, exec.latest_run()) {
                for line in counted(&run.counters) {
                    lines.push(format!("{indent}          {line}"));
                }
            }
        }
        None => {
            let one_line = displayable(plan.as_ref()).one_line().to_string();
            let is_ours = (plan.as_ref() as &dyn std::any::Any).is::<HopefulExec>();
            let mut line =
                format!("{indent}{}: {}", if is_ours { "sinter" } else { "datafusion" }, one_line.trim_end());
            if let (true, Some(metrics)) = (analyze, plan.metrics()) {
                let metrics = metrics.aggregate_by_name();
                if let Some(rows) = metrics.output_rows() {
                    line += &format!(" -- {rows} rows");
                    if let Some(nanos) = metrics.elapsed_compute() {
                        line += &format!(", {:.3} ms", nanos as f64 / 1e6);
                    }
                    line += &match plan.output_partitioning().partition_count() {
                        1 => ", 1 partition".to_owned(),
                        partitions => format!(", {partitions} partitions"),
                    };
                    let held = |name| metrics.sum_by_name(name).map_or(0, |metric| metric.as_usize());
                    let held = held("peak_mem_used") + held("build_mem_used");
                    let spilled = metrics.spilled_bytes().unwrap_or(0);
                    for (bytes, what) in [(held, "held"), (spilled, "spilled")] {
                        if bytes > 0 {
                            line += &format!(", {bytes} bytes {what}");
                        }
                    }
                }
            }
            lines.push(line);
        }
    }
    for child in plan.children() {
        describe(child, depth + 1, analyze, lines);
    }
}

/// Makes all pipelines of a plan note what their operators do.
fn measure(plan: &Arc<dyn ExecutionPlan>) {
    if let Some(exec) = pipeline(plan) {
        exec.measure();
    }
    match (plan.as_ref() as &dyn std::any::Any).downcast_ref::<HopefulExec>() {
        Some(exec) => exec.both().into_iter().for_each(measure),
        None => plan.children().into_iter().for_each(measure),
    }
}

fn pipeline(plan: &Arc<dyn ExecutionPlan>) -> Option<&PipelineExec> {
    (plan.as_ref() as &dyn std::any::Any).downcast_ref::<PipelineExec>()
}

fn load(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn counted(counters: &Counters) -> Vec<String> {
    let mut lines = vec![
        format!("row groups: {} of {} pruned", load(&counters.groups_pruned), load(&counters.groups_total)),
        format!(
            "vectors: {} of {} rejected; filters: {} on the encoded form, {} on decoded values",
            load(&counters.vectors_rejected),
            load(&counters.vectors_total),
            load(&counters.filters_encoded),
            load(&counters.filters_decoded)
        ),
        format!("rows: {} of {} selected", load(&counters.rows_selected), load(&counters.rows_scanned)),
        format!(
            "bytes: {} compressed, {} decoded in {} vectors, of which {} twice by one scan, {} by two",
            load(&counters.bytes_compressed),
            load(&counters.bytes_decoded),
            load(&counters.vectors_decoded),
            load(&counters.vectors_decoded_again),
            load(&counters.vectors_decoded_elsewhere)
        ),
    ];
    let (groups, rows) = (load(&counters.groups_left_out), load(&counters.rows_left_out));
    if groups > 0 {
        lines.push(format!("left out, since they cannot be read: {groups} row groups, {rows} rows"));
    }
    lines
}

/// What all pipelines of a plan touched.
#[derive(Default)]
struct Totals {
    compressed: u64,
    decoded: u64,
}

impl Totals {
    fn of(plan: &Arc<dyn ExecutionPlan>) -> Totals {
        let mut totals = Totals::default();
        totals.add(plan);
        totals
    }

    fn add(&mut self, plan: &Arc<dyn ExecutionPlan>) {
        if let Some(run) = pipeline(plan).and_then(PipelineExec::latest_run) {
            self.compressed += load(&run.counters.bytes_compressed);
            self.decoded += load(&run.counters.bytes_decoded);
        }
        plan.children().into_iter().for_each(|child| self.add(child));
    }
}
