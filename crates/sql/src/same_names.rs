//! Columns of one name in a correlated subquery keep apart.
//!
//! DataFusion makes a join of such a subquery, whose columns lose the names of their tables on the way: of two inner tables'
//! columns `id` that are compared with the rows around, one would be taken for the other. So below each condition on the
//! rows around, inner columns whose names are not theirs alone get others, which above it are gone again.

use crate::optimize::Contents;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, LogicalPlanBuilder, Subquery};
use datafusion::optimizer::AnalyzerRule;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The rule.
#[derive(Debug)]
pub(crate) struct NamesOfTheirOwn;

impl AnalyzerRule for NamesOfTheirOwn {
    fn name(&self) -> &str {
        "sinter_names_of_their_own"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        if !Contents::of(&plan)?.subqueries {
            return Ok(plan);
        }
        let count = Cell::new(0);
        let plan = plan.transform_up_with_subqueries(|plan| {
            plan.map_expressions(|expr| {
                expr.transform_up(|expr| {
                    Ok(match expr {
                        Expr::ScalarSubquery(subquery) => {
                            with_own_names(subquery, &count)?.update_data(Expr::ScalarSubquery)
                        }
                        Expr::Exists(Exists { subquery, negated }) => with_own_names(subquery, &count)?
                            .update_data(|subquery| Expr::Exists(Exists { subquery, negated })),
                        Expr::InSubquery(InSubquery { expr, subquery, negated }) => with_own_names(subquery, &count)?
                            .update_data(|subquery| Expr::InSubquery(InSubquery { expr, subquery, negated })),
                        expr => Transformed::no(expr),
                    })
                })
            })
        });
        Ok(plan?.data)
    }
}

fn with_own_names(subquery: Subquery, count: &Cell<usize>) -> Result<Transformed<Subquery>> {
    if subquery.outer_ref_columns.is_empty() {
        return Ok(Transformed::no(subquery));
    }
    let shared = shared_names(&subquery.subquery)?;
    if shared.is_empty() {
        return Ok(Transformed::no(subquery));
    }
    let plan = Arc::unwrap_or_clone(subquery.subquery).transform_up(|plan| match plan {
        LogicalPlan::Filter(filter) if filter.predicate.contains_outer() => renamed(filter, &shared, count),
        plan => Ok(Transformed::no(plan)),
    })?;
    Ok(Transformed::yes(Subquery { subquery: Arc::new(plan.data), ..subquery }))
}

/// The names of columns that conditions on the rows around read, and that other columns have as well: of those that are
/// there with them, or come out of the subquery.
fn shared_names(plan: &LogicalPlan) -> Result<BTreeSet<String>> {
    let (mut read, mut all) = (BTreeSet::new(), BTreeMap::<String, BTreeSet<Column>>::new());
    let mut note = |columns: Vec<Column>| {
        columns.into_iter().for_each(|column| {
            all.entry(column.name.clone()).or_default().insert(column);
        });
    };
    note(plan.schema().columns());
    plan.apply(|plan| {
        if let LogicalPlan::Filter(filter) = plan
            && filter.predicate.contains_outer()
        {
            read.extend(filter.predicate.column_refs().into_iter().map(|column| column.name.clone()));
            note(filter.input.schema().columns());
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    read.retain(|name| all.get(name).is_some_and(|columns| columns.len() > 1));
    Ok(read)
}

/// The filter with other names for what it reads.
fn renamed(filter: Filter, shared: &BTreeSet<String>, count: &Cell<usize>) -> Result<Transformed<LogicalPlan>> {
    let columns: Vec<Expr> = filter.input.schema().iter().map(Expr::from).collect();
    let mut names: BTreeMap<Column, String> = BTreeMap::new();
    for column in filter.predicate.column_refs() {
        if shared.contains(&column.name) {
            let number = count.replace(count.get() + 1);
            names.insert(column.clone(), format!("__sinter_inner_{number}"));
        }
    }
    if names.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Filter(filter)));
    }
    let renamed = names.iter().map(|(column, name)| Expr::Column(column.clone()).alias(name));
    let with_both: Vec<Expr> = columns.iter().cloned().chain(renamed).collect();
    let predicate = filter.predicate.transform(|expr| {
        Ok(match expr {
            Expr::Column(column) => match names.get(&column) {
                Some(name) => Transformed::yes(Expr::Column(Column::new_unqualified(name))),
                None => Transformed::no(Expr::Column(column)),
            },
            expr => Transformed::no(expr),
        })
    })?;
    let input = LogicalPlanBuilder::from(Arc::unwrap_or_clone(filter.input)).project(with_both)?.build()?;
    let filtered = LogicalPlan::Filter(Filter::try_new(predicate.data, Arc::new(input))?);
    Ok(Transformed::yes(LogicalPlanBuilder::from(filtered).project(columns)?.build()?))
}
