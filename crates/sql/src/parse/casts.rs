//! `sum(a), sum(CAST(a AS DOUBLE))` under names of their own, and so `GROUP BY a, CAST(a AS DOUBLE)`.
//!
//! DataFusion leaves casts out of the names that it gives to calls and keys, and refuses two of one name beside each other.
//! A cast within the second one, and those after it, gets a `coalesce` around it, which is in the name and otherwise
//! nothing.

use super::walk::{each_expr_mut, has_expr, walk_mut};
use crate::Error;
use datafusion::sql::sqlparser::ast::{
    Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList, FunctionArguments, GroupByExpr, Ident,
    ObjectName, Query, SetExpr, Visit, VisitMut, VisitorMut,
};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// All such calls and keys of a statement.
pub(super) fn name_apart<T: VisitMut>(sql: &mut T) {
    let walked = walk_mut(sql, &mut NameApart);
    debug_assert!(walked.is_ok());
}

struct NameApart;

impl VisitorMut for NameApart {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        if let SetExpr::Select(select) = query.body.as_ref() {
            let mut calls = calls_by_name(select.as_ref());
            for key in keys(&select.group_by) {
                note(calls.entry(without_casts(key).to_string()).or_default(), key.clone());
            }
            for (name, more) in calls_by_name(&query.order_by) {
                let known = calls.entry(name).or_default();
                more.into_iter().for_each(|call| note(known, call));
            }
            calls.retain(|_, calls| calls.len() > 1);
            if !calls.is_empty() {
                replace(query.body.as_mut(), &calls);
                replace(&mut query.order_by, &calls);
            }
        }
        ControlFlow::Continue(())
    }
}

/// The keys of a GROUP BY, those of sets as well.
fn keys(group_by: &GroupByExpr) -> impl Iterator<Item = &Expr> {
    let exprs = if let GroupByExpr::Expressions(exprs, _) = group_by { &exprs[..] } else { &[] };
    exprs.iter().flat_map(|expr| -> Box<dyn Iterator<Item = &Expr>> {
        match expr {
            Expr::GroupingSets(lists) | Expr::Rollup(lists) | Expr::Cube(lists) => Box::new(lists.iter().flatten()),
            key => Box::new(std::iter::once(key)),
        }
    })
}

/// Calls and keys by the name that DataFusion would give them; those without casts first.
type Calls = BTreeMap<String, Vec<Expr>>;

fn note(known: &mut Vec<Expr>, call: Expr) {
    if !known.contains(&call) {
        let place = if has_cast(&call) { known.len() } else { 0 };
        known.insert(place, call);
    }
}

fn calls_by_name<T: Visit>(sql: &T) -> Calls {
    let mut calls = Calls::new();
    has_expr(sql, &mut |expr| {
        if let Expr::Function(_) = expr {
            let name = if has_cast(expr) { without_casts(expr).to_string() } else { expr.to_string() };
            note(calls.entry(name).or_default(), expr.clone());
        }
        false
    });
    calls
}

fn has_cast(expr: &Expr) -> bool {
    has_expr(expr, &mut |expr| matches!(expr, Expr::Cast { .. }))
}

fn without_casts(expr: &Expr) -> Expr {
    let mut expr = expr.clone();
    let walked = each_expr_mut(&mut expr, &mut |expr| {
        while let Expr::Cast { expr: inner, .. } | Expr::Nested(inner) = expr {
            *expr = inner.as_ref().clone();
        }
        Ok(())
    });
    debug_assert!(walked.is_ok());
    expr
}

fn replace<T: VisitMut>(sql: &mut T, calls: &Calls) {
    let walked = each_expr_mut(sql, &mut |expr| {
        if matches!(expr, Expr::Function(_) | Expr::Cast { .. })
            && has_cast(expr)
            && let Some(place) = calls.values().find_map(|calls| calls.iter().position(|call| call == expr))
        {
            name_casts(expr, place);
        }
        Ok(())
    });
    debug_assert!(walked.is_ok());
}

/// Puts as many calls around each cast of a column.
fn name_casts(expr: &mut Expr, count: usize) {
    let walked = each_expr_mut(expr, &mut |expr| {
        let is_one = matches!(expr, Expr::Cast { expr: inner, .. } if !matches!(inner.as_ref(), Expr::Value(_)));
        for _ in 0..if is_one { count } else { 0 } {
            let inner = std::mem::replace(expr, Expr::Identifier(Ident::new("")));
            *expr = coalesce(vec![inner]);
        }
        Ok(())
    });
    debug_assert!(walked.is_ok());
}

/// A call of `coalesce`.
pub(crate) fn coalesce(exprs: Vec<Expr>) -> Expr {
    let args = exprs.into_iter().map(|expr| FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))).collect();
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new("coalesce")]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList { duplicate_treatment: None, args, clauses: Vec::new() }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::parse_one;

    fn rewritten(sql: &str) -> String {
        parse_one(sql).unwrap().to_string()
    }

    #[test]
    fn calls_that_differ_in_casts_alone_get_names() {
        assert_eq!(
            rewritten(
                "SELECT sum(CAST(a AS INT)) AS x, sum(a) AS y FROM t HAVING sum(a) > 1 ORDER BY sum(CAST(a AS INT))"
            ),
            "SELECT sum(coalesce(CAST(a AS INT))) AS x, sum(a) AS y FROM t HAVING sum(a) > 1 \
             ORDER BY sum(coalesce(CAST(a AS INT)))"
        );
        assert_eq!(
            rewritten("SELECT max(CAST(a AS INT)) AS x, max(CAST(a AS DOUBLE)) AS y FROM t"),
            "SELECT max(CAST(a AS INT)) AS x, max(coalesce(CAST(a AS DOUBLE))) AS y FROM t"
        );
    }

    #[test]
    fn keys_that_differ_in_casts_alone_get_names() {
        assert_eq!(
            rewritten("SELECT a, CAST(a AS INT) AS b FROM t GROUP BY CAST(a AS INT), a ORDER BY CAST(a AS INT)"),
            "SELECT a, coalesce(CAST(a AS INT)) AS b FROM t GROUP BY coalesce(CAST(a AS INT)), a \
             ORDER BY coalesce(CAST(a AS INT))"
        );
        let sets = rewritten("SELECT count(*) AS n FROM t GROUP BY ROLLUP (a, CAST(a AS INT))");
        assert_eq!(sets, "SELECT count(*) AS n FROM t GROUP BY ROLLUP (a, coalesce(CAST(a AS INT)))");
    }

    #[test]
    fn others_stay() {
        for sql in [
            "SELECT sum(CAST(a AS INT)) AS x, sum(b) AS y FROM t",
            "SELECT sum(CAST(a AS INT)) AS x, sum(CAST(a AS INT)) AS y FROM t",
            "SELECT CAST(a AS INT) AS x, count(*) AS n FROM t GROUP BY CAST(a AS INT), b",
        ] {
            assert_eq!(rewritten(sql), sql);
        }
    }
}
