//! `GROUP BY a, ROLLUP (b)` as `GROUP BY GROUPING SETS ((a, b), (a))`.
//!
//! Where `a` determines `b`, as the keys of a subquery's groups do, DataFusion's planner adds `b` to the plain keys, and `b`
//! would not be NULL in any set. One list of sets it leaves as it is. Lists in parentheses, `ROLLUP ((a, b), c)`, it does not
//! know otherwise.

use super::walk::walk_mut;
use crate::Error;
use datafusion::sql::sqlparser::ast::{Expr, GroupByExpr, Select, SelectItem, Value, VisitMut, VisitorMut};
use std::ops::ControlFlow;

/// Sets, at most; with more, DataFusion has the word.
const SETS_MAX: usize = 1 << 12;

/// Every GROUP BY of a statement that has more than one thing, of which one is of sets.
pub(super) fn into_one_list<T: VisitMut>(sql: &mut T) {
    let walked = walk_mut(sql, &mut IntoOneList);
    debug_assert!(walked.is_ok());
}

struct IntoOneList;

impl VisitorMut for IntoOneList {
    type Break = Error;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        if let Some(sets) = one_list(select)
            && let GroupByExpr::Expressions(exprs, _) = &mut select.group_by
        {
            *exprs = vec![Expr::GroupingSets(sets)];
        }
        ControlFlow::Continue(())
    }
}

/// The sets of a GROUP BY; `None` where it has none, or DataFusion takes them as they are.
fn one_list(select: &Select) -> Option<Vec<Vec<Expr>>> {
    let GroupByExpr::Expressions(exprs, modifiers) = &select.group_by else { return None };
    let has_sets = exprs.iter().any(|expr| matches!(expr, Expr::Rollup(_) | Expr::Cube(_) | Expr::GroupingSets(_)));
    let is_simple = match &exprs[..] {
        [Expr::Rollup(lists) | Expr::Cube(lists)] => lists.iter().all(|list| list.len() == 1),
        [_] => true,
        _ => false,
    };
    if !has_sets || is_simple || !modifiers.is_empty() {
        return None;
    }
    let mut all: Vec<Vec<Expr>> = vec![Vec::new()];
    for expr in exprs {
        let sets = sets(expr, &select.projection)?;
        if all.len().saturating_mul(sets.len()) > SETS_MAX {
            return None;
        }
        let with = |first: &Vec<Expr>| sets.iter().map(|second| both(first, second)).collect::<Vec<_>>();
        all = all.iter().flat_map(with).collect();
    }
    Some(all)
}

/// The keys of two sets, each once.
fn both(first: &[Expr], second: &[Expr]) -> Vec<Expr> {
    let mut keys = first.to_vec();
    for key in second {
        if !keys.contains(key) {
            keys.push(key.clone());
        }
    }
    keys
}

/// The sets of one thing in a GROUP BY; `None` for too many, or a place in the select list that there is not.
fn sets(expr: &Expr, selected: &[SelectItem]) -> Option<Vec<Vec<Expr>>> {
    let of_lists = |lists: &mut dyn Iterator<Item = &Vec<Expr>>| lists.flatten().cloned().collect::<Vec<_>>();
    Some(match expr {
        Expr::GroupingSets(sets) => sets.clone(),
        Expr::Rollup(lists) => (0..=lists.len()).rev().map(|count| of_lists(&mut lists[..count].iter())).collect(),
        Expr::Cube(lists) if lists.len() <= SETS_MAX.ilog2() as usize => {
            // The first list is in the first half of the sets.
            let is_in = |bits: usize, list: usize| bits >> (lists.len() - 1 - list) & 1 == 1;
            let set = |bits: usize| {
                of_lists(&mut lists.iter().enumerate().filter(|(list, _)| is_in(bits, *list)).map(|(_, list)| list))
            };
            (0..1 << lists.len()).rev().map(set).collect()
        }
        Expr::Cube(_) => return None,
        Expr::Value(value) => match &value.value {
            // Within sets DataFusion would take a place for a constant.
            Value::Number(place, _) => vec![vec![selected_at(place, selected)?]],
            _ => vec![vec![expr.clone()]],
        },
        key => vec![vec![key.clone()]],
    })
}

/// What stands at a place of the select list, counted from 1; `None` behind a `*`, too.
fn selected_at(place: &str, selected: &[SelectItem]) -> Option<Expr> {
    let mut exprs = selected.iter().map_while(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    });
    exprs.nth(place.parse::<usize>().ok()?.checked_sub(1)?).cloned()
}

#[cfg(test)]
mod tests {
    use super::super::parse_one;

    fn grouped(by: &str) -> String {
        let sql = parse_one(&format!("SELECT a, b + 1 AS c FROM t GROUP BY {by}")).unwrap().to_string();
        sql.split_once("GROUP BY ").unwrap().1.to_owned()
    }

    #[test]
    fn keys_and_sets_become_one_list() {
        assert_eq!(grouped("a, ROLLUP (b)"), "GROUPING SETS ((a, b), (a))");
        assert_eq!(grouped("ROLLUP (a), CUBE (b)"), "GROUPING SETS ((a, b), (a), (b), ())");
        assert_eq!(grouped("GROUPING SETS ((a), ()), b"), "GROUPING SETS ((a, b), (b))");
        assert_eq!(grouped("a, ROLLUP (a)"), "GROUPING SETS ((a), (a))");
    }

    #[test]
    fn places_of_the_select_list_are_what_stands_there() {
        assert_eq!(grouped("2, ROLLUP (a)"), "GROUPING SETS ((b + 1, a), (b + 1))");
        assert_eq!(grouped("3, ROLLUP (a)"), "3, ROLLUP (a)");
    }

    #[test]
    fn parameters_stay_as_many_as_they_were() {
        assert_eq!(grouped("b % ?, ROLLUP (a)"), "GROUPING SETS ((b % $1, a), (b % $1))");
        assert_eq!(grouped("b % $1, ROLLUP (a)"), "GROUPING SETS ((b % $1, a), (b % $1))");
    }

    #[test]
    fn lists_in_parentheses_go_together() {
        assert_eq!(grouped("ROLLUP ((a, b), c)"), "GROUPING SETS ((a, b, c), (a, b), ())");
        assert_eq!(grouped("CUBE ((a, b), c)"), "GROUPING SETS ((a, b, c), (a, b), (c), ())");
    }

    #[test]
    fn one_thing_alone_stays() {
        assert_eq!(grouped("ROLLUP (a, b)"), "ROLLUP (a, b)");
        assert_eq!(grouped("a, b"), "a, b");
        let many = format!("CUBE ({}), a", (0..20).map(|key| format!("k{key}")).collect::<Vec<_>>().join(", "));
        assert_eq!(grouped(&many), many);
    }
}
