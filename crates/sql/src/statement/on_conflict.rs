//! INSERT of rows that may meet others in a unique index: ON CONFLICT, OR IGNORE, OR REPLACE.

use super::assign::{Assigner, storage_type};
use super::names::{assigned_column, normal};
use super::row_expr::RowExpr;
use super::values::{default_of, is_default};
use crate::catalog::TableName;
use crate::index::{KeyMaker, rows_by_id};
use crate::kv::KvTree;
use crate::parse::walk_mut;
use crate::transaction::Transaction;
use crate::{Error, Result};
use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{filter_record_batch, take, take_record_batch};
use arrow::datatypes::{Field, Schema};
use datafusion::common::{DFSchema, TableReference};
use datafusion::execution::SessionState;
use datafusion::sql::sqlparser::ast;
use sinter_column::{ColumnTable, Index, TableSchema};
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

/// What the rows that are to be inserted are called in DO UPDATE.
const EXCLUDED: &str = "excluded";

/// Rows on their way into a table in which they may meet others.
pub(super) struct Meeting {
    table: Arc<ColumnTable>,
    /// The unique indexes in which a meeting counts.
    indexes: Vec<Unique>,
    action: Action,
    /// Rows from this id on are of the statement itself.
    own_row_id: u64,
    threads: usize,
}

/// A unique index in which rows may meet.
struct Unique {
    index: Index,
    tree: Arc<KvTree>,
    /// Of the rows of a batch.
    keys: KeyMaker,
    /// Which rows of the batch are to be there, by their keys.
    holders: HashMap<Vec<u8>, usize>,
}

/// What becomes of a row that meets one.
enum Action {
    /// It is left out.
    Skip,
    /// It takes the place of all that it meets.
    Replace,
    /// That one is changed.
    Update(Box<Update>),
}

pub(super) struct Update {
    /// By column, what it becomes: over the columns of the row that is there, and behind them of the one that meets it.
    assignments: Vec<(usize, RowExpr)>,
    condition: Option<RowExpr>,
    assigner: Assigner,
}

/// Whether an INSERT says what becomes of rows that meet others.
///
/// # Errors
/// [`Error::Sql`]: it says so in words that are not supported.
pub(super) fn is_said(insert: &ast::Insert) -> Result<bool> {
    let replaces_or_ignores = insert.or.is_some() || insert.replace_into || insert.ignore;
    match (&insert.or, &insert.on) {
        (_, Some(on)) if replaces_or_ignores => {
            return Err(Error::Sql(format!("INSERT says twice what becomes of rows that meet others; leave out{on}")));
        }
        (None | Some(ast::SqliteOnConflict::Replace | ast::SqliteOnConflict::Ignore), None)
        | (None, Some(ast::OnInsert::OnConflict(_))) => {}
        (Some(other), None) => {
            return Err(Error::Sql(format!("INSERT {other} is not supported; there are OR REPLACE and OR IGNORE")));
        }
        (_, on) => {
            let what = on.as_ref().map(ToString::to_string).unwrap_or_default();
            return Err(Error::Sql(format!(
                "INSERT with{what} is not supported; write ON CONFLICT, and nothing beside it"
            )));
        }
    }
    Ok(replaces_or_ignores || insert.on.is_some())
}

/// Whether rows that are met are to change.
pub(super) fn updates(insert: &ast::Insert) -> bool {
    let Some(ast::OnInsert::OnConflict(on_conflict)) = &insert.on else { return false };
    matches!(on_conflict.action, ast::OnConflictAction::DoUpdate(_))
}

impl Meeting {
    /// `state` is to compile expressions; of a statement for which [`is_said`] holds.
    ///
    /// # Errors
    /// [`Error::Sql`]: no unique index is of the columns that it names; an expression cannot be compiled.
    pub(super) fn new(
        insert: &ast::Insert,
        name: &TableName,
        table: &Arc<ColumnTable>,
        transaction: &Transaction,
        state: &SessionState,
        threads: usize,
    ) -> Result<Meeting> {
        let unique = || table.schema().indexes.iter().filter(|index| index.rule.is_unique());
        let is_replacing = insert.replace_into || insert.or == Some(ast::SqliteOnConflict::Replace);
        let (mut indexes, mut action): (Vec<&Index>, _) =
            (unique().collect(), if is_replacing { Action::Replace } else { Action::Skip });
        if let Some(ast::OnInsert::OnConflict(ast::OnConflict { conflict_target, action: said })) = &insert.on {
            if let Some(target) = conflict_target {
                indexes = vec![aimed_at(target, table)?];
            }
            if let ast::OnConflictAction::DoUpdate(update) = said {
                if indexes.len() != 1 {
                    return Err(Error::Sql(format!(
                        "table '{}' has {} unique indexes; name the columns of one, as in ON CONFLICT (a) DO UPDATE",
                        table.name(),
                        indexes.len()
                    )));
                }
                action =
                    Action::Update(Box::new(Update::new(update, table.name(), table.schema(), &name.table, state)?));
            }
        }
        let unique = |index: &Index| -> Result<Unique> {
            let (tree, keys) = (transaction.index_tree(index)?, KeyMaker::new(table.schema(), index)?);
            Ok(Unique { index: index.clone(), tree, keys, holders: HashMap::new() })
        };
        let indexes = indexes.into_iter().map(unique).collect::<Result<_>>()?;
        Ok(Meeting { table: Arc::clone(table), indexes, action, own_row_id: table.next_row_id(), threads })
    }

    /// Inserts rows in the shape of the table, or does what is to be done where they meet others; says how many rows it
    /// inserted and changed.
    ///
    /// # Errors
    /// [`Error::Data`]: a row would be changed twice, or breaks a rule. A row cannot be read, or not be written.
    pub(super) fn insert(&mut self, transaction: &mut Transaction, rows: &RecordBatch) -> Result<u64> {
        for unique in &mut self.indexes {
            unique.keys.take_rows(self.table.schema(), rows)?;
            unique.holders.clear();
        }
        let mut is_kept = vec![false; rows.num_rows()];
        // Which rows meet which ones.
        let (mut meeting, mut met) = (Vec::new(), Vec::new());
        for row in 0..rows.num_rows() {
            // Rows of the table that it meets, and those of the batch before it.
            let (mut found, mut before) = (Vec::new(), Vec::new());
            for unique in &mut self.indexes {
                // One with a NULL meets nobody.
                if let (key, true) = unique.keys.key(row) {
                    before.extend(unique.holders.get(key));
                    found.extend(transaction.row_of(&unique.tree, &unique.index, key)?);
                }
            }
            is_kept[row] = match &self.action {
                Action::Skip => found.is_empty() && before.is_empty(),
                Action::Replace => {
                    for other in before {
                        is_kept[other] = false;
                        for unique in &mut self.indexes {
                            unique.let_go(other, transaction)?;
                        }
                    }
                    met.extend(found);
                    true
                }
                Action::Update(_) => {
                    let own = self.own_row_id;
                    if found.iter().any(|id| *id >= own) || (found.is_empty() && !before.is_empty()) {
                        return Err(self.twice());
                    }
                    meeting.extend(found.first().map(|_| row as u32));
                    met.extend(&found);
                    found.is_empty()
                }
            };
            if is_kept[row] {
                self.indexes.iter_mut().for_each(|unique| unique.hold(row));
            }
        }
        let mut change = transaction.change(&self.table, self.threads)?;
        let inserted = filter_record_batch(rows, &BooleanArray::from(is_kept))?;
        let changed = match &self.action {
            Action::Skip => inserted.num_rows(),
            // Those that the next ones replace were there for a moment.
            Action::Replace => {
                change.delete(met)?;
                rows.num_rows()
            }
            Action::Update(update) => match update.updated(&self.table, transaction, rows, meeting, met)? {
                Some((ids, updated)) => {
                    let count = ids.len();
                    if ids.iter().copied().collect::<HashSet<u64>>().len() < count {
                        return Err(self.twice());
                    }
                    change.delete(ids)?;
                    change.insert(&updated)?;
                    count + inserted.num_rows()
                }
                None => inserted.num_rows(),
            },
        };
        if inserted.num_rows() > 0 {
            change.insert(&inserted)?;
        }
        transaction.put(change.finish()?)?;
        Ok(changed as u64)
    }

    fn twice(&self) -> Error {
        let index = self.indexes.first().map_or("", |unique| &unique.index.name);
        Error::Data(format!(
            "table '{}': two rows of the INSERT have the same values in '{index}', and DO UPDATE would change a row twice; give \
             each row once",
            self.table.name()
        ))
    }
}

impl Unique {
    /// A row of the batch is to be there.
    fn hold(&mut self, row: usize) {
        if let (key, true) = self.keys.key(row) {
            self.holders.insert(key.clone(), row);
        }
    }

    /// A row of the batch is not to be there any more; but that it met nobody, or whom, was seen.
    fn let_go(&mut self, row: usize, transaction: &mut Transaction) -> Result<()> {
        if let (key, true) = self.keys.key(row) {
            self.holders.remove(key);
            transaction.note_row_key(&self.tree, key)?;
        }
        Ok(())
    }
}

/// The index that ON CONFLICT names.
fn aimed_at<'t>(target: &ast::ConflictTarget, table: &'t ColumnTable) -> Result<&'t Index> {
    let unique = || table.schema().indexes.iter().filter(|index| index.rule.is_unique());
    let found = match target {
        ast::ConflictTarget::Columns(columns) => {
            let columns: HashSet<String> = columns.iter().map(normal).collect();
            unique().find(|index| index.columns.iter().cloned().collect::<HashSet<_>>() == columns)
        }
        ast::ConflictTarget::OnConstraint(name) => {
            let name = name.0.last().and_then(|part| part.as_ident()).map(normal).unwrap_or_default();
            unique().find(|index| index.name == name)
        }
    };
    found.ok_or_else(|| {
        let known: Vec<String> =
            unique().map(|index| format!("{} ({})", index.name, index.columns.join(", "))).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        Error::Sql(format!(
            "table '{}' has no such PRIMARY KEY or UNIQUE as ON CONFLICT{target} names; it has {known}",
            table.name()
        ))
    })
}

impl Update {
    /// For the table of that name and schema; in expressions it is called `alias`.
    pub(super) fn new(
        update: &ast::DoUpdate,
        table: &str,
        schema: &Arc<TableSchema>,
        alias: &str,
        state: &SessionState,
    ) -> Result<Update> {
        let df_schema = both(schema, alias)?;
        let compiled = |mut expr: ast::Expr| {
            // What is said of no table is said of the row that is there.
            say_of_table(&mut expr, schema, &ast::Ident::with_quote('"', alias))?;
            RowExpr::new(expr, &df_schema, state)
        };
        let mut assignments: Vec<(usize, RowExpr)> = Vec::new();
        for assignment in &update.assignments {
            let position = assigned_column(&assignment.target, table, schema, alias)?;
            if assignments.iter().any(|(known, _)| *known == position) {
                return Err(Error::Sql(format!("column '{}' is set twice", assignment.target)));
            }
            let value = match is_default(&assignment.value) {
                true => default_of(&schema.columns[position])?,
                false => assignment.value.clone(),
            };
            assignments.push((position, compiled(value)?));
        }
        let condition = update.selection.clone().map(compiled).transpose()?;
        let assigner = Assigner::in_order(table, schema, state)?;
        Ok(Update { assignments, condition, assigner })
    }

    /// Whether it changes this column.
    pub(super) fn sets(&self, column: usize) -> bool {
        self.assignments.iter().any(|(position, _)| *position == column)
    }

    /// Which of so many rows that were met are to change, and what they become: `columns` are theirs, and behind them those
    /// of the rows that meet them.
    pub(super) fn applied(&self, mut columns: Vec<ArrayRef>, count: usize) -> Result<(Vec<usize>, RecordBatch)> {
        let mut passing: Vec<usize> = (0..count).collect();
        if let Some(condition) = &self.condition {
            let passes = condition.evaluate(&columns, count)?;
            let Some(passes) = passes.as_boolean_opt() else {
                return Err(Error::Sql(format!(
                    "the WHERE of DO UPDATE is no condition: it is {}",
                    passes.data_type()
                )));
            };
            passing.retain(|row| passes.is_valid(*row) && passes.value(*row));
            let taken: UInt32Array = passing.iter().map(|row| Some(*row as u32)).collect();
            columns = columns.iter().map(|column| take(column, &taken, None)).collect::<arrow::error::Result<_>>()?;
        }
        let mut updated: Vec<ArrayRef> = columns[..columns.len() / 2].to_vec();
        for (position, expr) in &self.assignments {
            updated[*position] = expr.evaluate(&columns, passing.len())?;
        }
        let fields = updated.iter().enumerate();
        let fields = fields.map(|(column, array)| Field::new(format!("c{column}"), array.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let options = RecordBatchOptions::new().with_row_count(Some(passing.len()));
        let updated = RecordBatch::try_new_with_options(schema, updated, &options)?;
        Ok((passing, self.assigner.assign(&updated)?))
    }

    /// Which of the rows that were met are to change, and what they become.
    fn updated(
        &self,
        table: &Arc<ColumnTable>,
        transaction: &Transaction,
        rows: &RecordBatch,
        meeting: Vec<u32>,
        met: Vec<u64>,
    ) -> Result<Option<(Vec<u64>, RecordBatch)>> {
        if met.is_empty() {
            return Ok(None);
        }
        let catalog = transaction.catalog();
        let now = catalog.table_by_id(table.id()).map_or(table, |(_, now)| now);
        let excluded = take_record_batch(rows, &UInt32Array::from(meeting))?;
        let mut columns = rows_by_id(now, &met)?;
        columns.extend(excluded.columns().iter().cloned());
        let (passing, updated) = self.applied(columns, met.len())?;
        Ok(Some((passing.into_iter().map(|row| met[row]).collect(), updated)))
    }
}

/// Names the table before its columns, where an expression names none. What queries within it name is theirs.
pub(super) fn say_of_table(expr: &mut ast::Expr, schema: &TableSchema, table: &ast::Ident) -> Result<()> {
    walk_mut(expr, &mut Naming { schema, table, queries: 0 })
}

struct Naming<'a> {
    schema: &'a TableSchema,
    table: &'a ast::Ident,
    /// How many queries deep it is.
    queries: usize,
}

impl ast::VisitorMut for Naming<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, _query: &mut ast::Query) -> ControlFlow<Error> {
        self.queries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut ast::Query) -> ControlFlow<Error> {
        self.queries -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut ast::Expr) -> ControlFlow<Error> {
        if let ast::Expr::Identifier(column) = expr
            && self.queries == 0
            && self.schema.index_of(&normal(column)).is_some()
        {
            *expr = ast::Expr::CompoundIdentifier(vec![self.table.clone(), column.clone()]);
        }
        ControlFlow::Continue(())
    }
}

/// The columns of a row of a table, and behind them those of one that meets it.
fn both(schema: &TableSchema, name: &str) -> Result<Arc<DFSchema>> {
    let fields = |of: &str| {
        let of = TableReference::bare(of);
        let field = move |column: &sinter_column::ColumnSchema| {
            (Some(of.clone()), Arc::new(Field::new(&column.name, storage_type(&column.ty), true)))
        };
        schema.columns.iter().map(field).collect::<Vec<_>>()
    };
    let all = [fields(name), fields(EXCLUDED)].concat();
    Ok(Arc::new(DFSchema::new_with_metadata(all, HashMap::new())?))
}
