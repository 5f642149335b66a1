//! `*`, and columns that a select list has twice.

use super::from::check_told_apart;
use super::level::Column;
use crate::statement::normal;
use crate::{Error, Result};
use datafusion::common::TableReference;
use datafusion::sql::sqlparser::ast::{
    ExceptSelectItem, ExcludeSelectItem, Expr, Ident, ReplaceSelectElement, SelectItem,
    SelectItemQualifiedWildcardKind, WildcardAdditionalOptions,
};
use std::collections::{BTreeMap, BTreeSet};

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

/// Lists the columns in the place of `*` and `t.*`, as far as it is known which; `columns` are all there are.
pub(super) fn list(selected: &mut Vec<SelectItem>, columns: &[Column]) {
    for item in std::mem::take(selected) {
        match listed(&item, columns) {
            Some(items) => selected.extend(items),
            None => selected.push(item),
        }
    }
}

fn listed(item: &SelectItem, columns: &[Column]) -> Option<Vec<SelectItem>> {
    match item {
        SelectItem::Wildcard(options) => items(columns, options.clone()).ok(),
        SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(table), options) => {
            let table: Vec<String> = table.0.iter().map(|part| part.as_ident().map(normal)).collect::<Option<_>>()?;
            let theirs: Vec<Column> = columns.iter().filter(|column| column.is_of(&table)).cloned().collect();
            items(&theirs, options.clone()).ok()
        }
        _ => None,
    }
}

/// What the planner knows an item of a select list by: a column by its table and name, others by their alias alone.
struct Known {
    relation: Option<Vec<String>>,
    name: String,
}

/// Gives what the planner would not tell from an item before it a name of its own: `k, k` and `k, k + 1 AS k`. Returns the
/// new names of aliases that were the first of their name, as only a column was called so before.
pub(super) fn name_apart(selected: &mut [SelectItem], columns: &[Column]) -> BTreeMap<String, String> {
    let all: Vec<Option<Known>> = selected.iter().map(|item| known(item, columns)).collect();
    let listed = all.iter().flatten().map(|known| &known.name);
    // A name of a column that is not listed would be taken for the new one by ORDER BY and DISTINCT ON.
    let mut taken: BTreeSet<String> = listed.chain(columns.iter().map(|column| &column.name)).cloned().collect();
    let mut before: BTreeMap<&str, Vec<&Option<Vec<String>>>> = BTreeMap::new();
    let mut renamed = BTreeMap::new();
    for (item, known) in selected.iter_mut().zip(&all) {
        let Some(Known { relation, name }) = known else { continue };
        let others = before.entry(name).or_default();
        let is_taken = others.iter().any(|other| relation.is_none() || other.is_none() || *other == relation);
        let is_first_alias = relation.is_none() && others.iter().all(|other| other.is_some());
        others.push(relation);
        if is_taken
            && let SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } = &*item
            && let Some(own) = (2..).map(|count| format!("{name}_{count}")).find(|own| taken.insert(own.clone()))
        {
            if is_first_alias {
                renamed.insert(name.clone(), own.clone());
            }
            *item = SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::with_quote('"', own) };
        }
    }
    renamed
}

fn known(item: &SelectItem, columns: &[Column]) -> Option<Known> {
    match item {
        SelectItem::UnnamedExpr(expr) => known_column(expr, columns),
        SelectItem::ExprWithAlias { expr, alias } => {
            let name = normal(alias);
            let column = known_column(expr, columns).filter(|column| column.name == name);
            Some(column.unwrap_or(Known { relation: None, name }))
        }
        _ => None,
    }
}

/// `None` for what is no column of these.
fn known_column(expr: &Expr, columns: &[Column]) -> Option<Known> {
    let parts: Vec<String> = match expr {
        Expr::Nested(inner) => return known_column(inner, columns),
        Expr::Identifier(name) => vec![normal(name)],
        Expr::CompoundIdentifier(parts) => parts.iter().map(normal).collect(),
        _ => return None,
    };
    let (name, table) = parts.split_last()?;
    let mut found = columns.iter().filter(|column| column.name == *name && column.is_of(table));
    let column = found.next().filter(|_| found.next().is_none())?;
    Some(Known { relation: column.relation.as_ref().map(TableReference::to_vec), name: name.clone() })
}
