//! Scalar subqueries that know nothing of the rows around them.

use super::expr::Scope;
use super::part::{How, Part};
use super::{Ours, Walk, Walked};
use crate::walk::WalkTree;
use datafusion::common::DFSchema;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::logical_expr::{Expr as DfExpr, Subquery};
use sinter_exec::{Expr, JoinKind};
use std::sync::Arc;

/// Whether both are the one subquery. Of two that look alike, the tables may be others of the same names, such as those of
/// a view of another database.
pub(super) fn is_same(one: &Subquery, other: &Subquery) -> bool {
    Arc::ptr_eq(&one.subquery, &other.subquery)
}

impl Walk<'_> {
    /// What `on` makes of `input` and of the scope of these expressions. Each of their scalar subqueries is joined, without
    /// keys, for the one column that it is; the columns are not among those that come out. `None` where such a subquery is
    /// not ours.
    pub(super) fn with_subqueries(
        &self,
        input: &Ours,
        exprs: &[&DfExpr],
        schema: &DFSchema,
        on: impl FnOnce(&Ours, &Scope<'_>) -> Option<Ours>,
    ) -> Option<Ours> {
        let mut found: Vec<&Subquery> = Vec::new();
        for expr in exprs {
            let visited = expr.visit_nodes(&mut |expr| {
                if let DfExpr::ScalarSubquery(subquery) = expr
                    && !found.iter().any(|known| is_same(known, subquery))
                {
                    found.push(subquery);
                }
                Ok(TreeNodeRecursion::Continue)
            });
            visited.ok()?;
        }
        if found.is_empty() {
            return on(input, &Scope::new(schema, input.output()));
        }
        let mut part = self.part(input)?.clone();
        if !self.joins || part.limit.is_some() {
            return None;
        }
        let mut subqueries = Vec::with_capacity(found.len());
        for subquery in found {
            let build = self.scalar(subquery)?;
            subqueries.push((subquery, Expr::Column(part.column_count())));
            let rows = part.rows_estimate();
            part.join(build, How::by_keys(JoinKind::Single, Vec::new(), Vec::new()));
            part.expect(rows);
        }
        let output = part.output.clone();
        let scope = Scope { schema, columns: &output, subqueries: &subqueries };
        let ours = self.if_it_fits(part)?;
        on(&ours, &scope)
    }

    /// The part that has the one value.
    fn scalar(&self, subquery: &Subquery) -> Option<Part> {
        if !subquery.outer_ref_columns.is_empty() {
            return None;
        }
        let Walked::Ours(ours) = self.through(&subquery.subquery).ok()? else { return None };
        let part = self.part(&ours)?;
        (part.can_be_joined() && part.output.len() == 1).then(|| part.clone())
    }
}
