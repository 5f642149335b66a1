//! The clauses of a query, in the order in which they come into each other's sight.

use super::expressions::Outputs;
use super::level::{Level, NamedQuery};
use super::{Rewriting, is_shared_pipe, shares_columns, wildcard};
use crate::statement::normal;
use crate::{Error, Result};
use datafusion::sql::sqlparser::ast::{
    Cte, Distinct, Expr, Ident, OrderBy, OrderByKind, Query, Select, SelectItem, SetExpr, SetOperator,
};
use std::collections::BTreeMap;

impl Rewriting<'_> {
    /// Rewrites a query and all that is in it.
    pub(super) fn query(&mut self, query: &mut Query) -> Result<()> {
        self.at_level(Level::default(), query)
    }

    fn at_level(&mut self, level: Level, query: &mut Query) -> Result<()> {
        self.levels.push(level);
        let rewritten = self.clauses(query);
        self.levels.pop();
        rewritten
    }

    fn clauses(&mut self, query: &mut Query) -> Result<()> {
        if let Some(join) = query.pipe_operators.iter().find(|operator| is_shared_pipe(operator)) {
            return Err(Error::Sql(format!(
                "'|> {join}' is not supported yet; write ON with the columns of both sides"
            )));
        }
        if let Some(with) = &mut query.with {
            self.level().is_recursive = with.recursive;
            for cte in &mut with.cte_tables {
                let itself = with.recursive.then(|| cte.clone());
                self.at_level(Level { itself, ..Level::default() }, &mut cte.query)?;
                self.level().with.push(NamedQuery::new(cte.clone()));
            }
        }
        self.body(&mut query.body, query.order_by.as_mut())?;
        self.level().begin(false);
        self.expressions(&mut query.limit_clause, Outputs::Only)?;
        self.expressions(&mut query.pipe_operators, Outputs::Only)
    }

    fn body(&mut self, body: &mut SetExpr, order_by: Option<&mut OrderBy>) -> Result<()> {
        // The terms of a UNION do not see each other's tables.
        self.level().begin(false);
        match body {
            SetExpr::Select(select) => return self.select(select, order_by),
            SetExpr::Query(query) => self.query(query)?,
            SetExpr::SetOperation { op, left, right, .. } => {
                let itself = self.level().itself.take().filter(|_| *op == SetOperator::Union);
                self.body(left, None)?;
                let is_recursive = itself.is_some();
                if let Some(itself) = itself {
                    // It has the columns of its first term.
                    self.level().with.push(NamedQuery::new(with_body(itself, (**left).clone())));
                }
                self.body(right, None)?;
                if is_recursive {
                    self.level().with.pop();
                }
            }
            SetExpr::Values(values) => self.expressions(values, Outputs::None)?,
            _ => {}
        }
        self.level().begin(false);
        order_by.map_or(Ok(()), |order_by| self.expressions(order_by, Outputs::Only))
    }

    fn select(&mut self, select: &mut Select, order_by: Option<&mut OrderBy>) -> Result<()> {
        let shares = select.from.iter().any(shares_columns);
        self.level().begin(shares);
        self.tables(&mut select.from)?;
        if shares {
            wildcard::expand(&mut select.projection, self.level().in_sight())?;
        }
        let all = match self.tells_apart {
            true => Some(self.all_columns(self.levels.len() - 1)?),
            false => None,
        };
        if let Some(all) = &all {
            wildcard::list(&mut select.projection, all);
        }
        let aliases = aliases(&select.projection);
        self.expressions(&mut select.projection, Outputs::None)?;
        let renamed = match &all {
            Some(all) => wildcard::name_apart(&mut select.projection, all),
            None if shares => wildcard::name_apart(&mut select.projection, self.level().in_sight()),
            None => BTreeMap::new(),
        };
        self.expressions(&mut select.selection, Outputs::None)?;
        self.expressions(&mut select.named_window, Outputs::None)?;
        self.expressions(&mut select.group_by, Outputs::BehindColumns(&aliases))?;
        self.expressions(&mut select.having, Outputs::BehindColumns(&aliases))?;
        self.expressions(&mut select.qualify, Outputs::BehindColumns(&aliases))?;
        self.expressions(&mut select.distribute_by, Outputs::BehindColumns(&aliases))?;
        let aliases: Vec<String> =
            aliases.into_iter().map(|alias| renamed.get(&alias).cloned().unwrap_or(alias)).collect();
        if let Some(Distinct::On(exprs)) = &mut select.distinct {
            exprs.iter_mut().for_each(|expr| follow(expr, &renamed));
        }
        self.expressions(&mut select.distinct, Outputs::BeforeColumns(&aliases))?;
        if let Some(order_by) = order_by {
            if let OrderByKind::Expressions(keys) = &mut order_by.kind {
                keys.iter_mut().for_each(|key| follow(&mut key.expr, &renamed));
            }
            self.expressions(order_by, Outputs::BeforeColumns(&aliases))?;
        }
        Ok(())
    }
}

/// A query of WITH with nothing but another body.
fn with_body(mut cte: Cte, body: SetExpr) -> Cte {
    *cte.query.body = body;
    (cte.query.with, cte.query.order_by, cte.query.limit_clause) = (None, None, None);
    cte
}

/// Has the name of an output mean it still, where that was given another one. Within an expression it means the column.
fn follow(expr: &mut Expr, renamed: &BTreeMap<String, String>) {
    match expr {
        Expr::Nested(inner) => follow(inner, renamed),
        Expr::Identifier(name) => {
            if let Some(own) = renamed.get(&normal(name)) {
                *name = Ident::with_quote('"', own.clone());
            }
        }
        _ => {}
    }
}

/// The names that a select list gives, without those of columns that are called so anyway.
fn aliases(selected: &[SelectItem]) -> Vec<String> {
    let alias = |item: &SelectItem| match item {
        SelectItem::ExprWithAlias { expr: Expr::Identifier(name), alias } if normal(name) == normal(alias) => None,
        SelectItem::ExprWithAlias { alias, .. } => Some(normal(alias)),
        _ => None,
    };
    selected.iter().filter_map(alias).collect()
}
