//! CREATE VIEW.

use super::definitions::{Defined, IfTaken, may_define};
use super::names::{normal, quoted};
use super::{done, table_name};
use crate::attached::Seen;
use crate::batches::Outcome;
use crate::progress::Notes;
use crate::view_query::name_within;
use crate::{Error, Result, Session};
use datafusion::sql::sqlparser::ast;
use std::collections::BTreeSet;

pub(super) fn create(session: &Session, create: &ast::CreateView) -> Result<Outcome> {
    if create.materialized || create.temporary {
        return Err(Error::Sql("views that are MATERIALIZED or TEMPORARY are not supported yet".to_owned()));
    }
    let name = table_name(&create.name)?;
    session.change(|transaction| {
        let notes = Notes::default();
        let if_taken = IfTaken { if_not_exists: create.if_not_exists, or_replace: create.or_replace };
        if !may_define(transaction, &name, Defined::View, if_taken, &notes)? {
            return Ok(done("CREATE VIEW", None, &notes));
        }
        let seen = session.seen_by(transaction);
        let own = seen.name.to_string();
        let mut query = create.query.clone();
        name_within(&seen, &own, &name, &mut query)?;
        // Planned now, so that a view that could never be read is refused, and its columns have names that stay. It reads
        // no row yet.
        let seen = Seen { reads: seen.reads.of_definitions(), ..seen };
        let mut state = session.statement_state(seen, notes.clone());
        // It is a view of its own database, whatever that will be called.
        state.config_mut().options_mut().catalog.default_catalog = own;
        let planned = session.plan(&state, ast::Statement::Query(query.clone()))?;
        let schema = planned.schema();
        let names: Vec<String> = match create.columns.len() {
            0 => schema.fields().iter().map(|field| field.name().clone()).collect(),
            given if given == schema.fields().len() => {
                create.columns.iter().map(|column| normal(&column.name)).collect()
            }
            given => {
                return Err(Error::Sql(format!(
                    "{given} columns are named, but the query yields {}",
                    schema.fields().len()
                )));
            }
        };
        let mut known = BTreeSet::new();
        if let Some(twice) = names.iter().find(|name| !known.insert(name.as_str())) {
            return Err(Error::Sql(format!("column '{twice}' is there twice; rename one with AS")));
        }
        let names: Vec<String> = names.iter().map(|name| quoted(name)).collect();
        let sql = format!("SELECT * FROM ({query}) AS {} ({})", quoted(&name.table), names.join(", "));
        transaction.create_view(&session.database, name.clone(), sql)?;
        Ok(done("CREATE VIEW", None, &notes))
    })
}
