//! Scalar expressions that DataFusion evaluates inside our pipelines.

use crate::checked::checked_expr;
use crate::lower::argument_type;
use crate::one_zero::expr_with_one_zero;
use crate::regex_once::compiled_once;
use crate::undecided::asked_late;
use crate::walk::WalkTree;
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema};
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Cast, Expr as DfExpr, ExprSchemable};
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};
use sinter_exec::{Foreign, edge};
use std::sync::Arc;

/// One expression of DataFusion over its own few columns.
#[derive(Debug)]
pub(crate) struct ScalarFunction {
    physical: Arc<dyn PhysicalExpr>,
    schema: SchemaRef,
    result: DataType,
    text: String,
}

impl ScalarFunction {
    /// `expr` over the columns `names` of `schema`, in that order; `None` where DataFusion cannot plan it so. It gets them in
    /// the types that it was planned with: texts have several in Arrow, which do not mix.
    pub(crate) fn new(expr: &DfExpr, schema: &DFSchema, names: &[Column]) -> Option<ScalarFunction> {
        let name = |index: usize| format!("c{index}");
        let (mut fields, mut values) = (Vec::with_capacity(names.len()), Vec::with_capacity(names.len()));
        for (index, column) in names.iter().enumerate() {
            let declared = schema.field(schema.maybe_index_of_column(column)?).data_type();
            let given = argument_type(declared)?;
            let value = DfExpr::Column(Column::from_name(name(index)));
            values.push(match given == *declared {
                true => value,
                false => DfExpr::Cast(Cast::new(Box::new(value), declared.clone())),
            });
            fields.push(Field::new(name(index), given, true));
        }
        let arguments = Schema::new(fields);
        let renamed = expr
            .clone()
            .rewrite_up(&mut |expr| {
                let DfExpr::Column(column) = &expr else { return Ok(Transformed::no(expr)) };
                let index = names.iter().position(|name| name == column);
                Ok(index.map_or_else(|| Transformed::no(expr), |index| Transformed::yes(values[index].clone())))
            })
            .ok()?
            .data;
        let inner = DFSchema::try_from(arguments.clone()).ok()?;
        let result = argument_type(&renamed.get_type(&inner).ok()?)?;
        let physical = physical_expr(renamed, &inner).ok()?;
        Some(ScalarFunction { physical, schema: Arc::new(arguments), result, text: expr.to_string() })
    }
}

/// What DataFusion evaluates for an expression of ours over rows of this schema: integers and decimals have room, -0.0 is 0.0,
/// what may fail is asked late, and regular expressions are compiled once.
///
/// # Errors
/// Where DataFusion cannot evaluate it.
pub(crate) fn physical_expr(expr: DfExpr, schema: &DFSchema) -> datafusion::common::Result<Arc<dyn PhysicalExpr>> {
    let expr = expr_with_one_zero(checked_expr(expr, schema)?, schema)?.data;
    let expr = create_physical_expr(&expr, schema, &ExecutionProps::new(), &PhysicalPlanningContext::default())?;
    compiled_once(asked_late(expr, schema.as_arrow())?, schema.as_arrow())
}

impl Foreign for ScalarFunction {
    fn evaluate(&self, arguments: &[ArrayRef], rows: usize) -> sinter_exec::Result<ArrayRef> {
        let foreign = |error: &dyn std::fmt::Display| sinter_exec::Error::Foreign(error.to_string());
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arguments.to_vec(), &options)
            .map_err(|error| foreign(&error))?;
        let array = self
            .physical
            .evaluate(&batch)
            .and_then(|value| value.into_array(rows))
            .map_err(|error| foreign(&crate::Error::from(error)))?;
        if array.data_type() == &self.result {
            return Ok(array);
        }
        edge::strict_cast(&array, &self.result).map_err(|error| foreign(&error))
    }

    fn text(&self) -> String {
        self.text.clone()
    }
}

#[cfg(test)]
mod tests {
    use crate::{Database, DatabaseOptions, Outcome, Session};
    use arrow::array::RecordBatch;
    use arrow::util::pretty::pretty_format_batches;
    use datafusion::functions::all_default_functions;
    use datafusion::logical_expr::Volatility;
    use std::collections::BTreeSet;

    /// What functions are called with.
    const ARGUMENTS: &[&str] = &[
        "i",
        "n",
        "f",
        "d",
        "s",
        "t",
        "day",
        "ts",
        "b",
        "id",
        "l",
        "2",
        "1",
        "0.5",
        "'a'",
        "'day'",
        "'%Y-%m-%d'",
        "'Int64'",
        "'sha256'",
        "'base64'",
        "'[a-z]'",
    ];

    /// Calls that chance would hardly find.
    const CALLS: &[&str] = &[
        "arrow_cast(i, 'Int64')",
        "arrow_field(i)",
        "date_bin(INTERVAL '7 hours', ts, TIMESTAMP '2000-01-01')",
        "date_part('day', ts)",
        "date_trunc('hour', ts)",
        "decode(encode(s, 'base64'), 'base64')",
        "get_field(named_struct('a', i, 'b', s), 'b')",
        "make_date(2024, i + 1, 29)",
        "make_time(i, 58, 59)",
        "named_struct('a', i, 'b', s)",
        "regexp_match(s, '[a-z]')",
        "struct(i, s)",
    ];

    fn batches(session: &Session, sql: &str) -> crate::Result<Vec<RecordBatch>> {
        match session.query(sql, &[])? {
            Outcome::Rows(query) => query.collect(),
            _ => Ok(Vec::new()),
        }
    }

    fn text(session: &Session, sql: &str) -> crate::Result<String> {
        Ok(pretty_format_batches(&batches(session, sql)?)?.to_string())
    }

    #[test]
    fn every_function_is_computed_within_our_pipelines_as_by_itself() {
        let database = Database::open(None, DatabaseOptions::in_memory()).unwrap();
        let (ours, theirs) = (database.session(), database.session());
        let done = |sql: &str| batches(&ours, sql).map(drop).unwrap();
        done(
            "CREATE TABLE v (id INT, i INT, n BIGINT, f DOUBLE, d DECIMAL(12, 2), s VARCHAR, t VARCHAR, day DATE, ts TIMESTAMP, b BOOLEAN, l INT[])",
        );
        done(
            "INSERT INTO v SELECT value, value % 5, CASE WHEN value % 4 <> 1 THEN value * 7919 % 211 END, value * 0.375 - 1, \
             CAST(value AS DECIMAL(12, 2)) / 4, CASE WHEN value <> 3 THEN 'some Text ' || value END, \
             CASE value % 3 WHEN 0 THEN '2024-02-29' WHEN 1 THEN '12' ELSE 'a,b' END, DATE '2023-12-30' + CAST(value AS INT), \
             to_timestamp_micros(1709164798500000 + value * 3600000000), value % 3 = 1, [value, 2] FROM generate_series(1, 9)",
        );
        batches(&theirs, "SET sinter.engine = 'datafusion'").unwrap();
        let mut functions = all_default_functions();
        functions.sort_by(|a, b| a.name().cmp(b.name()));
        let mut left_out = BTreeSet::new();
        for function in &functions {
            let name = function.name();
            // What they say changes from statement to statement.
            if function.signature().volatility == Volatility::Volatile || ["now", "current_time"].contains(&name) {
                continue;
            }
            // Knuth's linear congruential generator.
            let mut random = 7u64;
            let mut argument = || {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                ARGUMENTS[(random >> 33) as usize % ARGUMENTS.len()]
            };
            let known = CALLS.iter().filter(|call| call.split('(').next() == Some(name)).map(|call| call.to_string());
            let mut calls: Vec<String> = known.collect();
            for (arity, tries) in [1, 40, 60, 60, 30].into_iter().enumerate() {
                calls.extend((0..tries).map(|_| {
                    let arguments: Vec<&str> = (0..arity).map(|_| argument()).collect();
                    format!("{name}({})", arguments.join(", "))
                }));
            }
            let mut compared = 0;
            for call in calls {
                let sql = format!("SELECT id, {call} FROM v ORDER BY id");
                let Ok(plan) = text(&ours, &format!("EXPLAIN {sql}")) else { continue };
                match (text(&ours, &sql), text(&theirs, &sql)) {
                    (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{sql}"),
                    (Err(_), Err(_)) => continue,
                    (found, expected) => panic!("{sql}: {found:?} where DataFusion by itself has {expected:?}"),
                }
                compared += usize::from(!plan.contains("datafusion:"));
                if compared == 6 {
                    break;
                }
            }
            if compared == 0 {
                left_out.insert(name.to_owned());
            }
        }
        // Rows of the first four are structs or lists of texts, and there are no unions: our pipelines hand on none of these.
        let nested = ["arrow_field", "named_struct", "regexp_match", "struct", "union_extract", "union_tag"];
        assert_eq!(left_out, BTreeSet::from(nested.map(str::to_owned)), "of {} functions", functions.len());
    }
}
