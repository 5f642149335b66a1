//! `OVER w`, `OVER (w ROWS 1 PRECEDING)` and `WINDOW b AS (a ORDER BY x)` with what `w` and `a` are written out.
//!
//! The SQL library knows names alone: of a window that refines another one it takes what is new and drops the rest. And it
//! looks for them in the select list only, not in QUALIFY, nor in ORDER BY.

use super::walk::{each_expr_mut, walk_mut};
use crate::{Error, Result};
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, NamedWindowDefinition, NamedWindowExpr, Query, Select, SetExpr, VisitMut, VisitorMut, WindowSpec,
    WindowType,
};
use std::ops::ControlFlow;

/// All windows of a statement.
///
/// # Errors
/// [`Error::Sql`] for names that there are not, and where a window says anew what the one that it refines has said.
pub(super) fn write_out<T: VisitMut>(sql: &mut T) -> Result<()> {
    walk_mut(sql, &mut WriteOut)?;
    each_expr_mut(sql, &mut |expr| match window(expr) {
        Some(WindowType::NamedWindow(name) | WindowType::WindowSpec(WindowSpec { window_name: Some(name), .. })) => {
            Err(there_is_no(name))
        }
        _ => Ok(()),
    })
}

struct WriteOut;

/// Inner queries come first: a name means what the innermost has by it.
impl VisitorMut for WriteOut {
    type Break = Error;

    fn post_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        broken(definitions(&select.named_window).and_then(|windows| {
            put_in(&mut select.projection, &windows)?;
            put_in(&mut select.qualify, &windows)
        }))
    }

    fn post_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        let SetExpr::Select(select) = query.body.as_ref() else { return ControlFlow::Continue(()) };
        broken(definitions(&select.named_window).and_then(|windows| put_in(&mut query.order_by, &windows)))
    }
}

fn broken(done: Result<()>) -> ControlFlow<Error> {
    done.map_or_else(ControlFlow::Break, ControlFlow::Continue)
}

fn window(expr: &mut Expr) -> Option<&mut WindowType> {
    match expr {
        Expr::Function(function) => function.over.as_mut(),
        _ => None,
    }
}

fn there_is_no(name: &Ident) -> Error {
    Error::Sql(format!(
        "there is no window {name} here; WINDOW {name} AS (...) behind the query's conditions makes one"
    ))
}

/// The windows of a query, whole; each may name those before it.
fn definitions(named: &[NamedWindowDefinition]) -> Result<Vec<(String, WindowSpec)>> {
    let mut windows: Vec<(String, WindowSpec)> = Vec::new();
    for NamedWindowDefinition(name, window) in named {
        if find(&windows, name).is_some() {
            return Err(Error::Sql(format!("there are two windows {name}; give one of them another name")));
        }
        let whole = match window {
            NamedWindowExpr::NamedWindow(other) => find(&windows, other).cloned().ok_or_else(|| there_is_no(other))?,
            NamedWindowExpr::WindowSpec(spec) => match &spec.window_name {
                Some(other) => refined(find(&windows, other).ok_or_else(|| there_is_no(other))?, spec, other)?,
                None => spec.clone(),
            },
        };
        windows.push((folded(name), whole));
    }
    Ok(windows)
}

fn find<'w>(windows: &'w [(String, WindowSpec)], name: &Ident) -> Option<&'w WindowSpec> {
    let wanted = folded(name);
    windows.iter().find(|(name, _)| *name == wanted).map(|(_, window)| window)
}

/// A name as it is compared.
fn folded(name: &Ident) -> String {
    if name.quote_style.is_some() { name.value.clone() } else { name.value.to_lowercase() }
}

/// Puts windows in the places of their names; other names stay, as those of queries around this one.
fn put_in<T: VisitMut>(sql: &mut T, windows: &[(String, WindowSpec)]) -> Result<()> {
    if windows.is_empty() {
        return Ok(());
    }
    each_expr_mut(sql, &mut |expr| {
        let Some(window) = window(expr) else { return Ok(()) };
        let whole = match window {
            WindowType::NamedWindow(name) => find(windows, name).cloned(),
            WindowType::WindowSpec(spec) => match &spec.window_name {
                Some(name) => find(windows, name).map(|other| refined(other, spec, name)).transpose()?,
                None => None,
            },
        };
        if let Some(whole) = whole {
            *window = WindowType::WindowSpec(whole);
        }
        Ok(())
    })
}

/// A window with what another one adds to it.
fn refined(window: &WindowSpec, by: &WindowSpec, name: &Ident) -> Result<WindowSpec> {
    let said_anew = match window {
        _ if !by.partition_by.is_empty() => Some("PARTITION BY"),
        WindowSpec { order_by, .. } if !order_by.is_empty() && !by.order_by.is_empty() => Some("ORDER BY"),
        WindowSpec { window_frame: Some(_), .. } if by.window_frame.is_some() || !by.order_by.is_empty() => {
            Some("a frame")
        }
        _ => None,
    };
    if let Some(what) = said_anew {
        return Err(Error::Sql(format!(
            "a window that refines {name} cannot have {what}, which {name} says; write the window out"
        )));
    }
    let mut whole = window.clone();
    whole.order_by.extend(by.order_by.iter().cloned());
    whole.window_frame = whole.window_frame.or_else(|| by.window_frame.clone());
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::super::{parse, parse_one};

    /// Without the definitions, which stay.
    fn written_out(sql: &str) -> String {
        let sql = parse_one(sql).unwrap().to_string();
        let (before, behind) = sql.split_once(" WINDOW ").unwrap_or((&sql, ""));
        let behind =
            behind.split_once(" ORDER BY sum(b)").map_or(String::new(), |(_, by)| format!(" ORDER BY sum(b){by}"));
        format!("{before}{behind}")
    }

    #[test]
    fn windows_that_refine_others_have_what_those_have() {
        assert_eq!(
            written_out("SELECT sum(a) OVER (w ROWS 1 PRECEDING) AS s FROM t WINDOW w AS (PARTITION BY b ORDER BY a)"),
            "SELECT sum(a) OVER (PARTITION BY b ORDER BY a ROWS 1 PRECEDING) AS s FROM t"
        );
        assert_eq!(
            written_out(
                "SELECT sum(a) OVER W2 AS s FROM t WINDOW w1 AS (PARTITION BY b), w2 AS (w1 ORDER BY a), w3 AS w2"
            ),
            "SELECT sum(a) OVER (PARTITION BY b ORDER BY a) AS s FROM t"
        );
    }

    #[test]
    fn names_are_found_wherever_windows_may_be_and_in_the_innermost_query() {
        assert_eq!(
            written_out("SELECT a FROM t QUALIFY sum(a) OVER w > 1 WINDOW w AS (ORDER BY a) ORDER BY sum(b) OVER w"),
            "SELECT a FROM t QUALIFY sum(a) OVER (ORDER BY a) > 1 ORDER BY sum(b) OVER (ORDER BY a)"
        );
        let inner = parse_one(
            "SELECT (SELECT sum(b) OVER w AS x FROM u WINDOW w AS (ORDER BY b)) AS y, sum(a) OVER w AS z FROM t \
             WINDOW w AS (ORDER BY a)",
        );
        let inner = inner.unwrap().to_string();
        assert!(inner.contains("sum(b) OVER (ORDER BY b)") && inner.contains("sum(a) OVER (ORDER BY a)"), "{inner}");
    }

    #[test]
    fn what_is_said_twice_or_never_is_an_error() {
        for (window, definitions, wanted) in [
            ("(w PARTITION BY a)", "w AS (ORDER BY b)", "cannot have PARTITION BY"),
            ("(w ORDER BY a)", "w AS (ORDER BY b)", "cannot have ORDER BY"),
            ("(w ROWS 1 PRECEDING)", "w AS (ORDER BY b ROWS 2 PRECEDING)", "cannot have a frame"),
            ("nope", "w AS (ORDER BY b)", "there is no window nope"),
            ("(nope ORDER BY a)", "w AS (ORDER BY b)", "there is no window nope"),
            ("w", "w AS (v ORDER BY b), v AS (PARTITION BY a)", "there is no window v"),
            ("w", "w AS (ORDER BY b), W AS (PARTITION BY a)", "there are two windows"),
        ] {
            let error = parse(&format!("SELECT sum(a) OVER {window} AS s FROM t WINDOW {definitions}")).unwrap_err();
            assert!(error.to_string().contains(wanted), "{error}");
        }
    }
}
