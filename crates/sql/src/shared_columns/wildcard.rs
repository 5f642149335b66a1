//! `*` beside USING and NATURAL.

use super::from::check_told_apart;
use super::level::Column;
use crate::statement::normal;
use crate::{Error, Result};
use datafusion::sql::sqlparser::ast::{
    ExceptSelectItem, ExcludeSelectItem, Expr, Ident, ReplaceSelectElement, SelectItem, WildcardAdditionalOptions,
};
use std::collections::BTreeMap;

/// Lists the columns in the place of `*`.
pub(super) fn expand(selected: &mut Vec<SelectItem>, columns: &[Column]) -> Result<()> {
    for item in std::mem::take(selected) {
        match item {
            SelectItem::Wildcard(options) => selected.extend(items(columns, options)?),
            item => selected.push(item),
        }
    }
    Ok(())
}

fn items(columns: &[Column], options: WildcardAdditionalOptions) -> Result<Vec<SelectItem>> {
    let WildcardAdditionalOptions {
        wildcard_token: _,
        opt_ilike,
        opt_exclude,
        opt_except,
        opt_replace,
        opt_rename,
        opt_alias,
    } = options;
    if opt_ilike.is_some() || opt_rename.is_some() || opt_alias.is_some() {
        return Err(Error::Sql(
            "* with ILIKE, RENAME or AS is not supported beside USING and NATURAL; name the columns".to_owned(),
        ));
    }
    let mut excluded = opt_exclude.map_or_else(|| Ok(Vec::new()), names_of_exclude)?;
    excluded.extend(opt_except.into_iter().flat_map(names_of_except));
    let replaced: Vec<ReplaceSelectElement> =
        opt_replace.into_iter().flat_map(|replace| replace.items).map(|item| *item).collect();
    let named = excluded.iter().cloned().chain(replaced.iter().map(|item| normal(&item.column_name)));
    for name in named {
        if !columns.iter().any(|column| column.name == name) {
            return Err(Error::Sql(format!("No field named {name}, which * leaves out or replaces")));
        }
    }
    let kept = columns.iter().filter(|column| !excluded.contains(&column.name));
    kept.clone().try_for_each(|column| check_told_apart(column, columns))?;
    let items: Vec<SelectItem> = kept.map(|column| item(column, &replaced)).collect();
    match items.is_empty() {
        true => Err(Error::Sql("* leaves out all columns; keep one".to_owned())),
        false => Ok(items),
    }
}

/// A column, or what is in its place.
fn item(column: &Column, replaced: &[ReplaceSelectElement]) -> SelectItem {
    match replaced.iter().find(|item| normal(&item.column_name) == column.name) {
        Some(item) => {
            SelectItem::ExprWithAlias { expr: item.expr.clone(), alias: Ident::with_quote('"', column.name.clone()) }
        }
        None => SelectItem::UnnamedExpr(column.expr()),
    }
}

/// The names of `EXCLUDE (a, b)`.
fn names_of_exclude(exclude: ExcludeSelectItem) -> Result<Vec<String>> {
    let names = match exclude {
        ExcludeSelectItem::Single(name) => vec![name],
        ExcludeSelectItem::Multiple(names) => names,
    };
    let plain = names.iter().map(|name| match &name.0[..] {
        [part] => part.as_ident().map(normal),
        _ => None,
    });
    let plain: Option<Vec<String>> = plain.collect();
    plain.ok_or_else(|| Error::Sql("EXCLUDE wants the plain names of columns, without their tables".to_owned()))
}

/// The names of `EXCEPT (a, b)`.
fn names_of_except(except: ExceptSelectItem) -> Vec<String> {
    std::iter::once(&except.first_element).chain(&except.additional_elements).map(normal).collect()
}

/// `a.k` that comes again, as `k` or within `*`, under a name of its own: the planner wants each once.
pub(super) fn name_apart(selected: &mut [SelectItem]) {
    let mut counts: BTreeMap<Vec<String>, usize> = BTreeMap::new();
    for item in selected {
        let SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts)) = &*item else { continue };
        let parts: Vec<String> = parts.iter().map(normal).collect();
        let name = parts.last().cloned().unwrap_or_default();
        let count = counts.entry(parts).or_insert(0);
        *count += 1;
        if *count > 1
            && let SelectItem::UnnamedExpr(expr) = &*item
        {
            let alias = Ident::with_quote('"', format!("{name}_{count}"));
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias };
        }
    }
}
