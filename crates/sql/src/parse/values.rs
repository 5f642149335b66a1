//! `VALUES ((SELECT 1), 2)` as `SELECT (SELECT 1) AS column1, 2 AS column2`: the SQL library computes values before it
//! looks for queries in them. And `FETCH FIRST 3 ROWS ONLY` as `LIMIT 3`.

use super::walk::{has_expr, walk_mut};
use super::{DEPTH_MAX, dialect::Bounded};
use crate::{Error, Result};
use datafusion::sql::sqlparser::ast::{
    Expr, Fetch, Ident, LimitClause, Query, Select, SelectItem, SetExpr, SetOperator, SetQuantifier, TableFactor,
    TableWithJoins, Value, Values, VisitMut, VisitorMut,
};
use datafusion::sql::sqlparser::parser::Parser;
use std::ops::ControlFlow;

/// Rows of VALUES of which one has a query, at most.
const ROWS_MAX: usize = 500;

/// All of a statement.
///
/// # Errors
/// [`Error::Sql`] for more than [`ROWS_MAX`] rows with queries among them, and for queries beside DEFAULT.
pub(super) fn as_queries<T: VisitMut>(sql: &mut T) -> Result<()> {
    walk_mut(sql, &mut AsQueries)
}

struct AsQueries;

impl VisitorMut for AsQueries {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        limit_instead_of_fetch(query);
        in_body(&mut query.body).map_or_else(ControlFlow::Break, ControlFlow::Continue)
    }
}

fn in_body(body: &mut SetExpr) -> Result<()> {
    match body {
        SetExpr::SetOperation { left, right, .. } => {
            in_body(left)?;
            in_body(right)
        }
        SetExpr::Values(values) if has_query(values) => {
            *body = query_of(values)?;
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Not where parameters go by their places, which would be others.
fn limit_instead_of_fetch(query: &mut Query) {
    let is_parameter = |expr: &Expr| {
        has_expr(
            expr,
            &mut |expr| matches!(expr, Expr::Value(value) if value.value == Value::Placeholder("?".to_owned())),
        )
    };
    if query.fetch.as_ref().is_some_and(|fetch| fetch.quantity.as_ref().is_some_and(is_parameter)) {
        return;
    }
    let limit = match &query.fetch {
        Some(Fetch { with_ties: false, percent: false, quantity }) => {
            quantity.clone().unwrap_or_else(|| Expr::value(Value::Number("1".to_owned(), false)))
        }
        _ => return,
    };
    match &mut query.limit_clause {
        None => {
            query.limit_clause = Some(LimitClause::LimitOffset { limit: Some(limit), offset: None, limit_by: vec![] })
        }
        Some(LimitClause::LimitOffset { limit: none @ None, .. }) => *none = Some(limit),
        _ => return,
    }
    query.fetch = None;
}

fn has_query(values: &Values) -> bool {
    let is_query = |expr: &Expr| matches!(expr, Expr::Subquery(_) | Expr::Exists { .. } | Expr::InSubquery { .. });
    values.rows.iter().any(|row| row.iter().any(|value| has_expr(value, &mut |expr| is_query(expr))))
}

/// The name of the column that says which row one is.
const ORDINAL: &str = "__sinter_ordinal";

/// Rows as a query that has them in their order.
fn query_of(values: &mut Values) -> Result<SetExpr> {
    let (count, width) = (values.rows.len(), values.rows.first().map_or(0, |row| row.len()));
    if count > ROWS_MAX {
        return Err(Error::Sql(format!(
            "VALUES with queries in them have {ROWS_MAX} rows at most, not {count}; split them"
        )));
    }
    if let Some(other) = values.rows.iter().find(|row| row.len() != width) {
        return Err(Error::Sql(format!("VALUES have rows of {width} and of {} values", other.len())));
    }
    let rows = std::mem::take(&mut values.rows);
    let mut selects =
        rows.into_iter().enumerate().map(|(row, values)| select(values.content, row)).collect::<Result<Vec<_>>>()?;
    if count == 1 {
        return Ok(SetExpr::Select(Box::new(select_of_one(selects.remove(0), width))));
    }
    let columns = (1..=width).map(|column| format!("column{column}")).collect::<Vec<_>>().join(", ");
    let mut ordered = parsed(&format!("SELECT {columns} FROM (SELECT 1) AS rows ORDER BY {ORDINAL}"))?;
    if let SetExpr::Select(select) = ordered.body.as_mut()
        && let Some(TableWithJoins { relation: TableFactor::Derived { subquery, .. }, .. }) = select.from.first_mut()
    {
        *subquery.body = united(selects.into_iter().map(|select| SetExpr::Select(Box::new(select))).collect());
    }
    Ok(SetExpr::Query(ordered))
}

/// A tree of UNION ALL that is no deeper than it has to be; of one thing at least.
fn united(mut all: Vec<SetExpr>) -> SetExpr {
    let behind = if all.len() > 1 { all.split_off(all.len() / 2) } else { return all.remove(0) };
    SetExpr::SetOperation {
        op: SetOperator::Union,
        set_quantifier: SetQuantifier::All,
        left: Box::new(united(all)),
        right: Box::new(united(behind)),
    }
}

/// A row, and behind its values which one it is.
fn select(row: Vec<Expr>, number: usize) -> Result<Select> {
    let is_default = |value: &Expr| matches!(value, Expr::Identifier(name) if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("default"));
    if row.iter().any(is_default) {
        return Err(Error::Sql("VALUES have queries or DEFAULT, not both; name the columns that are given".to_owned()));
    }
    let SetExpr::Select(mut select) = *parsed("SELECT 1")?.body else {
        return Err(Error::Internal("SELECT 1 is no SELECT".to_owned()));
    };
    let named = |(column, expr)| SelectItem::ExprWithAlias { expr, alias: Ident::new(format!("column{}", column + 1)) };
    let ordinal = Expr::value(Value::Number(number.to_string(), false));
    select.projection = row.into_iter().enumerate().map(named).collect();
    select.projection.push(SelectItem::ExprWithAlias { expr: ordinal, alias: Ident::new(ORDINAL) });
    Ok(*select)
}

/// The same without its number.
fn select_of_one(mut select: Select, width: usize) -> Select {
    select.projection.truncate(width);
    select
}

/// A query of our own words.
fn parsed(sql: &str) -> Result<Box<Query>> {
    let dialect = Bounded::new(sql.len());
    let parsed = Parser::new(&dialect).with_recursion_limit(DEPTH_MAX).try_with_sql(sql);
    parsed.and_then(|mut parser| parser.parse_query()).map_err(|error| Error::Internal(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::super::{parse, parse_one};

    #[test]
    fn values_with_queries_are_queries() {
        for (values, wanted) in [
            ("VALUES (1, 2), (3, 4)", "VALUES (1, 2), (3, 4)"),
            ("VALUES ((SELECT a FROM t), 2)", "SELECT (SELECT a FROM t) AS column1, 2 AS column2"),
            (
                "SELECT 1 AS a UNION VALUES ((SELECT a FROM t))",
                "SELECT 1 AS a UNION SELECT (SELECT a FROM t) AS column1",
            ),
            // What is in a text stays in it.
            (
                "VALUES ((SELECT a FROM t), 'x\\'' AS y, 2 --')",
                "SELECT (SELECT a FROM t) AS column1, 'x\\' AS y, 2 --' AS column2",
            ),
        ] {
            assert_eq!(parse_one(values).unwrap().to_string(), wanted);
        }
        let rows = parse_one("INSERT INTO t VALUES (1), (EXISTS (SELECT 2)), (3)").unwrap().to_string();
        assert!(rows.contains("UNION ALL") && rows.ends_with("ORDER BY __sinter_ordinal)"), "{rows}");
        assert!(parse("VALUES ((SELECT 1)), (1, 2)").unwrap_err().to_string().contains("rows of 1 and of 2 values"));
        assert!(parse("INSERT INTO t VALUES ((SELECT 1), DEFAULT)").unwrap_err().to_string().contains("not both"));
        let many = vec!["((SELECT 1))"; 501].join(", ");
        assert!(parse(&format!("VALUES {many}")).unwrap_err().to_string().contains("500 rows at most"));
    }

    #[test]
    fn fetch_is_a_limit() {
        assert_eq!(
            parse_one("SELECT a FROM t FETCH FIRST 3 ROWS ONLY").unwrap().to_string(),
            "SELECT a FROM t LIMIT 3"
        );
        assert_eq!(
            parse_one("SELECT a FROM t OFFSET 2 ROWS FETCH NEXT ROW ONLY").unwrap().to_string(),
            "SELECT a FROM t LIMIT 1 OFFSET 2 ROWS"
        );
    }
}
