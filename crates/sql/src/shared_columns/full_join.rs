//! The shared columns of a FULL JOIN, as columns of a table of their own.
//!
//! `a FULL JOIN b USING (k)` becomes
//!
//! ```text
//! (SELECT coalesce(a.k, b.k) AS k FROM a FULL JOIN b ON a.k = b.k) AS "\u{1}full_join_1"
//! ```
//!
//! which is planned as a projection of all columns of a and b, under their own names, and of `full_join_1.k`. So k is a column
//! like any other, wherever it is named, and may stand beside `a.k` and `b.k`: an expression in all these places would have to
//! be found again behind DISTINCT and GROUP BY, and an alias would be ambiguous.

use super::from::{SharedColumn, alias_of};
use super::level::Column;
use super::place::selecting;
use crate::Error;
use crate::parse::coalesce;
use datafusion::common::{Result, TableReference, internal_err};
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::{Ident, Query, SelectItem, SetExpr, TableFactor, TableWithJoins};

/// Begins the alias of such a table. Not a name that a user can define.
const MARK: char = '\u{1}';

/// A FULL JOIN, the last one of `tables`, with its shared columns.
pub(super) fn table(tables: TableWithJoins, shared: &[SharedColumn]) -> crate::Result<TableFactor> {
    let Some(own) = shared.first().and_then(|pair| pair.merged.relation.as_ref()) else {
        return Err(Error::Internal("a FULL JOIN without columns of its own".to_owned()));
    };
    let item = |pair: &SharedColumn| SelectItem::ExprWithAlias {
        expr: coalesce(pair.merged.parts.iter().map(Column::expr).collect()),
        alias: Ident::with_quote('"', pair.merged.name.clone()),
    };
    let subquery = selecting("SELECT 1 FROM t", |select| {
        select.projection = shared.iter().map(item).collect();
        select.from = vec![tables];
    })?;
    let alias = Some(alias_of(&format!("{MARK}{}", own.table())));
    Ok(TableFactor::Derived { lateral: false, subquery: Box::new(subquery), alias, sample: None })
}

/// Plans such tables.
#[derive(Debug)]
pub(crate) struct FullJoins;

impl RelationPlanner for FullJoins {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        match relation {
            TableFactor::Derived { subquery, alias: Some(alias), .. } if alias.name.value.starts_with(MARK) => {
                let own = TableReference::bare(&alias.name.value[MARK.len_utf8()..]);
                let plan = planned(*subquery, &own, context)?;
                Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, None))))
            }
            relation => Ok(RelationPlanning::Original(Box::new(relation))),
        }
    }
}

/// All columns of the joined tables, and those of the select list as columns of `own`.
fn planned(subquery: Query, own: &TableReference, context: &mut dyn RelationPlannerContext) -> Result<LogicalPlan> {
    let SetExpr::Select(mut select) = *subquery.body else { return internal_err!("a FULL JOIN that is no SELECT") };
    let Some(tables) = select.from.pop() else { return internal_err!("a FULL JOIN of no tables") };
    let joined = context.plan(TableFactor::NestedJoin { table_with_joins: Box::new(tables), alias: None })?;
    let mut exprs: Vec<Expr> = joined.schema().columns().into_iter().map(Expr::Column).collect();
    for item in select.projection {
        let SelectItem::ExprWithAlias { expr, alias } = item else { return internal_err!("a column without a name") };
        let value = context.sql_to_expr(expr, joined.schema())?;
        exprs.push(value.alias_qualified(Some(own.clone()), alias.value));
    }
    LogicalPlanBuilder::from(joined).project(exprs)?.build()
}
