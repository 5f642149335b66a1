//! Rows that conditions let through, found by an index.

use super::key::{KeyForm, ROW_ID_BYTES, row_id_of};
use crate::catalog::Catalog;
use crate::kv::{KvTree, TreesSeen};
use crate::{Error, Result};
use sinter_codec::{CompareOp, Scalar, after_prefix};
use sinter_column::{ColumnTable, Index, SelectedRows, TableSchema};
use sinter_exec::{Expr, LogicalType, ScanColumn};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// An index is used where it finds one row of so many at most: each takes a vector of its own to be decoded, in the worst case.
const ROWS_PER_FOUND_MIN: u64 = 2048;

/// So many rows are found by an index in any case.
const FOUND_MIN: usize = 64;

/// So many ranges of an index are looked into at most.
const RANGES_MAX: usize = 1024;

/// The indexes of a table, in the state that a statement sees.
#[derive(Debug)]
pub(crate) struct IndexesSeen {
    /// In the order in which the schema has them.
    trees: Vec<Arc<KvTree>>,
    seen: TreesSeen,
}

impl IndexesSeen {
    /// `None` where the table has none.
    pub(crate) fn of(table: &ColumnTable, catalog: &Catalog, seen: Option<&TreesSeen>) -> Option<IndexesSeen> {
        let indexes = &table.schema().indexes;
        if indexes.is_empty() {
            return None;
        }
        let trees = indexes.iter().map(|index| Some(Arc::clone(catalog.tree_by_id(index.tree)?.1)));
        Some(IndexesSeen { trees: trees.collect::<Option<_>>()?, seen: seen?.clone() })
    }

    /// The rows that an index finds for conditions on columns of the table; `None` where none does, or finds too many for that
    /// to be faster than to scan the table.
    ///
    /// # Errors
    /// A leaf cannot be read.
    pub(crate) fn rows(
        &self,
        table: &Arc<ColumnTable>,
        columns: &[ScanColumn],
        filter: &[Expr],
    ) -> Result<Option<SelectedRows>> {
        let ways = self.ways(table.schema(), columns, filter);
        let found_max = FOUND_MIN.max((table.live_rows() / ROWS_PER_FOUND_MIN) as usize);
        for way in ways {
            if let Some(ids) = self.ids(&way, found_max)? {
                let rows = if ids.len() == 1 { "row" } else { "rows" };
                let seek = format!("{} {rows} by index {}", ids.len(), way.index.name);
                return Ok(Some(SelectedRows::new(Arc::clone(table), &ids, seek)));
            }
        }
        Ok(None)
    }

    /// The index that would be looked into first for such conditions, if any would.
    pub(crate) fn name_for(&self, schema: &TableSchema, columns: &[ScanColumn], filter: &[Expr]) -> Option<String> {
        self.ways(schema, columns, filter).first().map(|way| way.index.name.clone())
    }

    /// The ways in which indexes lead to rows, first where most is said of the values.
    fn ways<'a>(&'a self, schema: &'a TableSchema, columns: &[ScanColumn], filter: &[Expr]) -> Vec<Way<'a>> {
        let mut asked = Asked { columns, schema, of: (0..schema.columns.len()).map(|_| None).collect() };
        filter.iter().for_each(|condition| asked.ask(condition));
        let of_index = |(index, tree)| Way::of(index, tree, schema, &asked.of);
        let mut ways: Vec<Way<'_>> = schema.indexes.iter().zip(&self.trees).filter_map(of_index).collect();
        ways.sort_by_key(|way| std::cmp::Reverse((way.is_of_one, way.equal_columns, way.has_range)));
        ways
    }

    /// The ids in the ranges of a way, ascending; `None` where there are more than `found_max`.
    fn ids(&self, way: &Way<'_>, found_max: usize) -> Result<Option<Vec<u64>>> {
        let mut ids = Vec::new();
        let mut is_damaged = false;
        for (start, end) in &way.ranges {
            let range = (start.as_ref().map(Vec::as_slice), end.as_ref().map(Vec::as_slice));
            self.seen.for_each_of_bytes(way.tree, range, &mut |key, record| {
                let id =
                    if way.index.rule.is_unique() { record } else { &key[key.len().saturating_sub(ROW_ID_BYTES)..] };
                match id.try_into() {
                    Ok(id) => ids.push(row_id_of(id)),
                    Err(_) => is_damaged = true,
                }
                if ids.len() > found_max { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            if is_damaged {
                return Err(Error::Damaged(format!(
                    "index '{}' has an entry without a row id; DROP INDEX, and create it anew",
                    way.index.name
                )));
            }
            if ids.len() > found_max {
                return Ok(None);
            }
        }
        ids.sort_unstable();
        ids.dedup();
        Ok(Some(ids))
    }
}

/// What conditions say of the values of a column.
#[derive(Clone, Debug)]
enum Said {
    /// It is one of these.
    OneOf(Vec<Scalar>),
    /// It is between these.
    Between(Bound<Scalar>, Bound<Scalar>),
}

/// What conditions say of each column of a table.
struct Asked<'a> {
    columns: &'a [ScanColumn],
    schema: &'a TableSchema,
    of: Vec<Option<Said>>,
}

impl Asked<'_> {
    /// The column of the table, where an expression is one, or a cast of one to a type that has all of its values.
    fn column(&self, expr: &Expr, of: Option<&LogicalType>) -> Option<usize> {
        let of_table = |column: &usize| match self.columns.get(*column) {
            Some(ScanColumn::Table(position)) => Some(*position),
            _ => None,
        };
        match expr {
            Expr::Column(column) => {
                let position = of_table(column)?;
                of.is_none_or(|of| *of == self.schema.columns[position].ty).then_some(position)
            }
            Expr::Cast { expr, ty } if of.is_none_or(|of| of == ty) => {
                let Expr::Column(column) = &**expr else { return None };
                let position = of_table(column)?;
                has_all_of(ty, &self.schema.columns[position].ty).then_some(position)
            }
            _ => None,
        }
    }

    fn ask(&mut self, condition: &Expr) {
        match condition {
            Expr::And(parts) => parts.iter().for_each(|part| self.ask(part)),
            Expr::Compare(op, left, right) if *op != CompareOp::Equal => {
                let (op, column, value, of) = match (&**left, &**right) {
                    (column, Expr::Literal(value, of)) => (*op, column, value, of),
                    (Expr::Literal(value, of), column) => (op.mirrored(), column, value, of),
                    _ => return,
                };
                let Some(position) = self.column(column, Some(of)) else { return };
                let value = value.clone();
                let said = match op {
                    CompareOp::Less => Said::Between(Bound::Unbounded, Bound::Excluded(value)),
                    CompareOp::LessOrEqual => Said::Between(Bound::Unbounded, Bound::Included(value)),
                    CompareOp::Greater => Said::Between(Bound::Excluded(value), Bound::Unbounded),
                    CompareOp::GreaterOrEqual => Said::Between(Bound::Included(value), Bound::Unbounded),
                    CompareOp::NotEqual | CompareOp::Equal => return,
                };
                self.say(position, said);
            }
            other => {
                if let Some((position, values)) = self.one_of(other) {
                    self.say(position, Said::OneOf(values));
                }
            }
        }
    }

    /// A column, and the values of which it is to have one.
    fn one_of(&self, condition: &Expr) -> Option<(usize, Vec<Scalar>)> {
        match condition {
            Expr::Compare(CompareOp::Equal, left, right) => {
                let (column, value, of) = match (&**left, &**right) {
                    (column, Expr::Literal(value, of)) | (Expr::Literal(value, of), column) => (column, value, of),
                    _ => return None,
                };
                Some((self.column(column, Some(of))?, vec![value.clone()]))
            }
            Expr::InList { expr, list, negated: false, .. } => Some((self.column(expr, None)?, list.clone())),
            Expr::Or(parts) => {
                let mut parts = parts.iter().map(|part| self.one_of(part));
                let (position, mut values) = parts.next()??;
                for part in parts {
                    let (_, more) = part.filter(|(of, _)| *of == position)?;
                    values.extend(more);
                }
                Some((position, values))
            }
            _ => None,
        }
    }

    /// What is said of a column all holds: it is enough to hold on to one of it, and a bound from each side.
    fn say(&mut self, position: usize, said: Said) {
        let of = &mut self.of[position];
        *of = Some(match (of.take(), said) {
            (Some(Said::OneOf(known)), Said::OneOf(more)) if more.len() < known.len() => Said::OneOf(more),
            (Some(Said::OneOf(known)), _) => Said::OneOf(known),
            (Some(Said::Between(low, high)), Said::Between(more_low, more_high)) => {
                let either = |known, more| if matches!(known, Bound::Unbounded) { more } else { known };
                Said::Between(either(low, more_low), either(high, more_high))
            }
            (_, said) => said,
        });
    }
}

/// Whether all values of a type are the same whole numbers in another one.
fn has_all_of(wider: &LogicalType, ty: &LogicalType) -> bool {
    let bits = |ty: &LogicalType| {
        Some(match ty {
            LogicalType::Int8 => (true, 8),
            LogicalType::Int16 => (true, 16),
            LogicalType::Int32 => (true, 32),
            LogicalType::Int64 => (true, 64),
            LogicalType::UInt8 => (false, 8),
            LogicalType::UInt16 => (false, 16),
            LogicalType::UInt32 => (false, 32),
            LogicalType::UInt64 => (false, 64),
            _ => return None,
        })
    };
    match (bits(wider), bits(ty)) {
        (Some((true, wide)), Some((false, narrow))) => wide > narrow,
        (Some((wider_sign, wide)), Some((sign, narrow))) => wider_sign == sign && wide >= narrow,
        _ => false,
    }
}

/// Keys from here to there.
type Range = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// Ranges of an index that conditions lead to.
struct Way<'a> {
    index: &'a Index,
    tree: &'a Arc<KvTree>,
    ranges: Vec<Range>,
    /// Columns, from the first one on, of which values are said.
    equal_columns: usize,
    /// Of the next column a bound is said.
    has_range: bool,
    /// Each range has one row at most.
    is_of_one: bool,
}

impl<'a> Way<'a> {
    /// `None` where nothing is said of the first column of an index, or it lacks rows that the conditions may let through.
    fn of(index: &'a Index, tree: &'a Arc<KvTree>, schema: &TableSchema, asked: &[Option<Said>]) -> Option<Way<'a>> {
        let positions = schema.columns_of(index);
        let mut prefixes = vec![Vec::new()];
        let (mut equal_columns, mut ranges) = (0, None);
        for &position in &positions {
            let form = KeyForm::of(&schema.columns[position].ty)?;
            match &asked[position] {
                Some(Said::OneOf(values)) if prefixes.len() * values.len() <= RANGES_MAX => {
                    let mut longer = Vec::with_capacity(prefixes.len() * values.len());
                    for prefix in &prefixes {
                        for value in values {
                            let mut key: Vec<u8> = prefix.clone();
                            // A value that no row can have is equal to none.
                            if form.push_constant(value, &mut key) {
                                longer.push(key);
                            }
                        }
                    }
                    prefixes = longer;
                    equal_columns += 1;
                }
                Some(Said::Between(low, high)) => {
                    let bounds = prefixes.iter().map(|prefix| between(prefix, form, low, high));
                    ranges = Some(bounds.collect::<Option<Vec<_>>>()?);
                    break;
                }
                _ => break,
            }
        }
        let has_range = ranges.is_some();
        let said = equal_columns + usize::from(has_range);
        // Of the columns behind those that are said, rows with NULL must be there, too.
        let lacks_rows =
            index.rule.is_unique() && positions[said..].iter().any(|&position| schema.columns[position].nullable);
        if said == 0 || lacks_rows {
            return None;
        }
        let ranges = ranges.unwrap_or_else(|| prefixes.into_iter().map(beginning_with).collect());
        let is_of_one = index.rule.is_unique() && equal_columns == positions.len();
        Some(Way { index, tree, ranges, equal_columns, has_range, is_of_one })
    }
}

/// All keys that begin with a prefix.
fn beginning_with(prefix: Vec<u8>) -> Range {
    let end = after_prefix(&prefix).map_or(Bound::Unbounded, Bound::Excluded);
    (Bound::Included(prefix), end)
}

/// The keys that begin with a prefix, and of which the next value is between two; `None` where nothing is known of the order.
fn between(prefix: &[u8], form: KeyForm, low: &Bound<Scalar>, high: &Bound<Scalar>) -> Option<Range> {
    let key = |value: &Scalar| {
        let mut key = prefix.to_vec();
        form.push_constant(value, &mut key).then_some(key)
    };
    let mut any = prefix.to_vec();
    KeyForm::push_any(&mut any);
    let behind = |key: Vec<u8>| after_prefix(&key);
    let start = match low {
        Bound::Included(value) => Bound::Included(key(value)?),
        Bound::Excluded(value) => Bound::Included(behind(key(value)?)?),
        Bound::Unbounded => Bound::Included(any.clone()),
    };
    let end = match high {
        Bound::Included(value) => behind(key(value)?)?,
        Bound::Excluded(value) => key(value)?,
        Bound::Unbounded => behind(any)?,
    };
    Some((start, Bound::Excluded(end)))
}
