//! ALTER TABLE.

use super::assign::{Assigner, default_value};
use super::create::{Rules, declared_check, declared_column, with_name};
use super::definitions::{Defined, check_free};
use super::indexes::{self, Declared};
use super::names::{full_name, normal};
use super::values::default_text;
use super::{done, table_name};
use crate::batches::Outcome;
use crate::catalog::TableName;
use crate::parse::{each_expr_mut, parse_expr, parse_one};
use crate::progress::Notes;
use crate::transaction::Transaction;
use crate::{Error, Result, Session};
use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use datafusion::sql::sqlparser::ast::{self, AlterTableOperation as Operation};
use sinter_column::{Alteration, Check, ColumnTable};
use std::sync::Arc;

pub(super) fn run(session: &Session, alter: &ast::AlterTable) -> Result<Outcome> {
    let name = table_name(&alter.name)?;
    session.change(|transaction| {
        let notes = Notes::default();
        let mut name = name.clone();
        if alter.if_exists && Defined::of(transaction, &name).is_none() {
            notes.add(format!("there is no table '{name}'"));
            return Ok(done("ALTER TABLE", None, &notes));
        }
        for operation in &alter.operations {
            if let Operation::RenameTable { table_name: to } = operation {
                name = rename(transaction, &name, to)?;
                continue;
            }
            if let Operation::AddConstraint { constraint, .. } = operation
                && let Some(index) = Declared::of_constraint(constraint)?
            {
                index.add(session, transaction, &name)?;
                continue;
            }
            let table = transaction.find(&name)?;
            if let Operation::DropConstraint { name: constraint, .. } = operation
                && let Some(index) = table.schema().indexes.iter().find(|index| index.name == normal(constraint))
            {
                indexes::remove(transaction, &table, index)?;
                continue;
            }
            for alteration in alterations(session, &table, operation, &notes)? {
                let table = transaction.find(&name)?;
                let check = match &alteration {
                    Alteration::AddCheck { check } => Some(check.clone()),
                    _ => None,
                };
                let table = transaction.alter(&table, alteration)?;
                if let Some(check) = check {
                    hold(session, transaction, &name, &table, &check)?;
                }
            }
        }
        Ok(done("ALTER TABLE", None, &notes))
    })
}

fn rename(transaction: &mut Transaction, from: &TableName, to: &ast::RenameTableNameKind) -> Result<TableName> {
    let (ast::RenameTableNameKind::As(to) | ast::RenameTableNameKind::To(to)) = to;
    let mut wanted = table_name(to)?;
    if to.0.len() == 1 {
        // A name alone stays in its schema.
        wanted.schema = Arc::clone(&from.schema);
    }
    if Defined::of(transaction, from) == Some(Defined::Index) {
        return Err(Error::Sql(format!("'{from}' is an index, which keeps its name; DROP INDEX, and create it anew")));
    }
    // Views are renamed by the same words. The error says which tables there are.
    if Defined::of(transaction, from).is_none() {
        transaction.find(from)?;
    }
    check_free(transaction, &wanted)?;
    transaction.rename(from, wanted.clone())?;
    Ok(wanted)
}

/// One operation as what the table knows.
fn alterations(
    session: &Session,
    table: &Arc<ColumnTable>,
    operation: &Operation,
    notes: &Notes,
) -> Result<Vec<Alteration>> {
    let known = |column: &str| table.schema().index_of(column).is_some();
    Ok(match operation {
        Operation::AddColumn { if_not_exists, column_def, column_position: None, .. } => {
            let mut rules = Rules::default();
            let column = declared_column(column_def, &mut rules)?;
            if !rules.indexes.is_empty() {
                return Err(Error::Sql(format!(
                    "ADD COLUMN '{}' with UNIQUE or PRIMARY KEY is not supported yet; ADD CONSTRAINT once it is there",
                    column.name
                )));
            }
            if *if_not_exists && known(&column.name) {
                notes.add(format!("column '{}' exists already", column.name));
                return Ok(Vec::new());
            }
            let fill = default_value(session, &column)?;
            let add = Alteration::AddColumn { column, fill };
            let mut known = table.schema().checks.clone();
            let mut all = vec![add];
            for check in rules.checks {
                let check = with_name(check, &known);
                known.push(check.clone());
                all.push(Alteration::AddCheck { check });
            }
            all
        }
        Operation::DropColumn { column_names, if_exists, .. } => {
            let mut drops = Vec::new();
            for name in column_names.iter().map(normal) {
                if *if_exists && !known(&name) {
                    notes.add(format!("there is no column '{name}'"));
                    continue;
                }
                if let Some(check) = checks_of(table, &name)?.first() {
                    return Err(Error::Sql(format!(
                        "column '{name}' is named in the constraint '{}', CHECK ({}); DROP CONSTRAINT that first",
                        check.name.as_deref().unwrap_or_default(),
                        check.sql
                    )));
                }
                drops.push(Alteration::DropColumn { name });
            }
            drops
        }
        Operation::RenameColumn { old_column_name, new_column_name } => {
            let (from, to) = (normal(old_column_name), normal(new_column_name));
            // The rules that name the column name it anew.
            let old = checks_of(table, &from)?;
            let renamed = old.iter().map(|check| {
                let sql = with_renamed(&check.sql, &from, &to)?;
                Ok(Alteration::AddCheck { check: Check { name: check.name.clone(), sql } })
            });
            let renamed = renamed.collect::<Result<Vec<_>>>()?;
            let dropped = old.iter().filter_map(|check| Some(Alteration::DropCheck { name: check.name.clone()? }));
            let mut all: Vec<Alteration> = dropped.collect();
            all.push(Alteration::RenameColumn { from, to });
            all.extend(renamed);
            all
        }
        Operation::AlterColumn { column_name, op } => {
            let column = normal(column_name);
            vec![match op {
                ast::AlterColumnOperation::SetNotNull => Alteration::SetNullable { column, nullable: false },
                ast::AlterColumnOperation::DropNotNull => Alteration::SetNullable { column, nullable: true },
                ast::AlterColumnOperation::SetDefault { value } => {
                    let default = Some(default_text(&column, value)?);
                    Alteration::SetDefault { column, default }
                }
                ast::AlterColumnOperation::DropDefault => Alteration::SetDefault { column, default: None },
                other => {
                    return Err(Error::Sql(format!(
                        "ALTER COLUMN {other} is not supported yet; make a new table with CREATE TABLE AS"
                    )));
                }
            }]
        }
        Operation::AddConstraint { constraint, .. } => {
            vec![Alteration::AddCheck { check: with_name(declared_check(constraint)?, &table.schema().checks) }]
        }
        Operation::DropConstraint { if_exists, name, .. } => {
            let name = normal(name);
            let is_known = table.schema().checks.iter().any(|check| check.name.as_deref() == Some(&name));
            if *if_exists && !is_known {
                notes.add(format!("there is no constraint '{name}'"));
                return Ok(Vec::new());
            }
            vec![Alteration::DropCheck { name }]
        }
        other => return Err(Error::Sql(format!("ALTER TABLE {other} is not supported yet"))),
    })
}

/// The rules that name a column.
fn checks_of(table: &ColumnTable, column: &str) -> Result<Vec<Check>> {
    let mut found = Vec::new();
    for check in &table.schema().checks {
        let mut expr = parse_expr(&check.sql)?;
        let mut names = false;
        each_column(&mut expr, &mut |ident| names |= normal(ident) == column);
        if names {
            found.push(check.clone());
        }
    }
    Ok(found)
}

/// A condition in which a column has another name.
fn with_renamed(sql: &str, from: &str, to: &str) -> Result<String> {
    let mut expr = parse_expr(sql)?;
    each_column(&mut expr, &mut |ident| {
        if normal(ident) == from {
            *ident = ast::Ident::with_quote('"', to);
        }
    });
    Ok(expr.to_string())
}

fn each_column(expr: &mut ast::Expr, visit: &mut dyn FnMut(&mut ast::Ident)) {
    let walked = each_expr_mut(expr, &mut |expr| {
        match expr {
            ast::Expr::Identifier(ident) => visit(ident),
            ast::Expr::CompoundIdentifier(parts) => parts.iter_mut().for_each(&mut *visit),
            _ => {}
        }
        Ok(())
    });
    debug_assert!(walked.is_ok());
}

/// Whether every row that is there keeps a rule.
fn hold(
    session: &Session,
    transaction: &Transaction,
    name: &TableName,
    table: &Arc<ColumnTable>,
    check: &Check,
) -> Result<()> {
    let seen = session.seen_by(transaction);
    let own = Arc::clone(&seen.name);
    let state = session.statement_state(seen, Notes::default());
    // Compiled as it will be for every row to come: a condition that is none is refused here.
    Assigner::in_order(table.name(), table.schema(), &state)?;
    let query = parse_one(&format!("SELECT count(*) FROM {} WHERE NOT ({})", full_name(&own, name), check.sql))?;
    let batches = session.plan_query(&state, query)?.collect()?;
    let breaches = batches[0].column(0).as_primitive::<Int64Type>().value(0);
    match breaches {
        0 => Ok(()),
        _ => Err(Error::Data(format!(
            "{breaches} rows of table '{name}' break CHECK ({}); change them first",
            check.sql
        ))),
    }
}
