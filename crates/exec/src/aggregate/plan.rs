//! Aggregates compiled: one program for all their arguments.
//!
//! A FILTER becomes part of the argument, as `CASE WHEN filter THEN argument END`, so that the argument is computed
//! only for the rows that count, and rows that do not count are NULL, which every aggregate leaves out.

use super::foreign::ForeignPart;
use crate::expr::{Operand, Program, always_fits, compile};
use crate::{Aggregate, AggregateFunction, Error, Expr, LogicalType, Result, ScanColumn};

/// What a run's workers share.
#[derive(Debug)]
pub(crate) struct AggregatePlan {
    pub(super) program: Program,
    pub(super) parts: Vec<Part>,
    pub(super) columns: Vec<ScanColumn>,
}

/// One aggregate.
#[derive(Debug)]
pub(crate) struct Part {
    pub(crate) function: AggregateFunction,
    /// Which output of the program it reads; `None` for rows, and for foreign aggregates.
    pub(crate) output: Option<usize>,
    /// What a foreign aggregate reads.
    pub(crate) foreign: Option<ForeignPart>,
    /// It counts the rows for which the output is true.
    pub(crate) counts_true: bool,
    pub(crate) argument_type: LogicalType,
    /// The integers of this column are what the argument is, cast to a type that has room for them all.
    widened_column: Option<usize>,
    pub(crate) ty: LogicalType,
}

impl Part {
    /// The output of the program of which different values count, where it is about those.
    pub(crate) fn distinct_output(&self) -> Option<usize> {
        self.output.filter(|_| matches!(self.function, AggregateFunction::Distinct(_)))
    }
}

impl AggregatePlan {
    /// # Errors
    /// [`Error::Unsupported`] for what has no order or no sum, and for what only groups have.
    pub(crate) fn new(
        aggregates: &[Aggregate],
        columns: &[ScanColumn],
        types: &[LogicalType],
    ) -> Result<AggregatePlan> {
        let mut exprs = Vec::new();
        let parts = parts(aggregates, types, &mut exprs)?;
        if let Some(part) = parts.iter().find(|part| part.function.is_of_groups()) {
            return Err(Error::Unsupported(format!("{:?} of anything else than groups", part.function)));
        }
        let mut program = compile(&exprs.iter().collect::<Vec<_>>(), types)?;
        program.narrow_decimals();
        Ok(AggregatePlan { program, parts, columns: columns.to_vec() })
    }

    /// The columns that the arguments read.
    pub(crate) fn columns(&self) -> &[usize] {
        &self.program.columns
    }

    pub(super) fn operand(&self, part: &Part) -> Option<Operand> {
        part.output.map(|output| self.program.outputs[output].0)
    }
}

/// The aggregates, whose arguments are appended to `exprs`.
///
/// # Errors
/// [`Error::Unsupported`] for what has no order or no sum.
pub(crate) fn parts(aggregates: &[Aggregate], types: &[LogicalType], exprs: &mut Vec<Expr>) -> Result<Vec<Part>> {
    let part = |aggregate: &Aggregate| {
        let (function, ty) = (aggregate.function.clone(), aggregate.ty.clone());
        if let AggregateFunction::Foreign(call) = &function {
            let foreign = Some(ForeignPart::new(call, aggregate.filter.as_ref(), types, exprs));
            let argument_type = LogicalType::Int64;
            return Ok(Part {
                function,
                output: None,
                foreign,
                counts_true: false,
                argument_type,
                widened_column: None,
                ty,
            });
        }
        let (expr, counts_true) = argument(aggregate, types)?;
        let argument_type = expr.as_ref().map_or(LogicalType::Int64, |expr| expr.type_over(types));
        check(&function, &argument_type)?;
        let widened_column = expr.as_ref().and_then(|expr| widened_column(expr, types));
        let output = expr.map(|expr| {
            exprs.push(expr);
            exprs.len() - 1
        });
        Ok(Part { function, output, foreign: None, counts_true, argument_type, widened_column, ty })
    };
    aggregates.iter().map(part).collect()
}

/// The column whose integers an expression has in a wider type.
pub(crate) fn widened_column(expr: &Expr, types: &[LogicalType]) -> Option<usize> {
    let Expr::Cast { expr, ty } = expr else { return None };
    let Expr::Column(column) = **expr else { return None };
    let is_integer = |ty: &LogicalType| !ty.is_float() && !matches!(ty, LogicalType::Decimal { .. });
    let from = types.get(column)?;
    (is_integer(from) && is_integer(ty) && always_fits(from, ty)).then_some(column)
}

/// The argument with its FILTER, and whether true rows are counted. No argument: rows are counted.
fn argument(aggregate: &Aggregate, types: &[LogicalType]) -> Result<(Option<Expr>, bool)> {
    let counts = matches!(aggregate.function, AggregateFunction::CountStar | AggregateFunction::Count);
    Ok(match (&aggregate.argument, &aggregate.filter) {
        (Some(Expr::Literal(scalar, _)), None) if counts && !scalar.is_null() => (None, false),
        (Some(argument), None) => (Some(argument.clone()), false),
        (None, None) if aggregate.function == AggregateFunction::CountStar => (None, false),
        (None, Some(filter)) if aggregate.function == AggregateFunction::CountStar => {
            // A condition that is a mere column becomes bits too.
            (Some(Expr::And(vec![filter.clone()])), true)
        }
        (Some(argument), Some(filter)) if counts => {
            let present = Expr::IsNotNull(Box::new(argument.clone()));
            (Some(Expr::And(vec![filter.clone(), present])), true)
        }
        (Some(argument), Some(filter)) => (Some(filtered(argument, filter, types)), false),
        (None, _) => return Err(Error::Unsupported(format!("{:?} without an argument", aggregate.function))),
    })
}

/// What is NULL, and not even computed, for rows that a FILTER leaves out.
pub(super) fn filtered(argument: &Expr, filter: &Expr, types: &[LogicalType]) -> Expr {
    let branches = vec![(filter.clone(), argument.clone())];
    Expr::Case { branches, otherwise: None, ty: argument.type_over(types) }
}

fn check(function: &AggregateFunction, argument: &LogicalType) -> Result<()> {
    let summable = crate::expr::digits(argument).is_some() || argument.is_float();
    let fine = match function {
        AggregateFunction::CountStar | AggregateFunction::Count => true,
        AggregateFunction::Sum | AggregateFunction::Average => summable,
        AggregateFunction::Min | AggregateFunction::Max => argument.physical().is_some(),
        AggregateFunction::Variance { .. } | AggregateFunction::Deviation { .. } => summable,
        AggregateFunction::Distinct(function) => match &**function {
            AggregateFunction::Count => argument.physical().is_some(),
            AggregateFunction::Sum | AggregateFunction::Average => summable,
            _ => false,
        },
        AggregateFunction::Foreign(_) => false,
    };
    if fine { Ok(()) } else { Err(Error::Unsupported(format!("{function:?} of {argument}"))) }
}

impl Part {
    /// The table's column that the argument is, or whose integers it has.
    pub(super) fn table_column(&self, plan: &AggregatePlan) -> Option<usize> {
        let column = match plan.operand(self)? {
            Operand::Column(column) => column,
            _ => self.widened_column?,
        };
        match plan.columns[column] {
            ScanColumn::Table(column) => Some(column),
            ScanColumn::Length(_) | ScanColumn::RowId => None,
        }
    }

    /// It counts rows, whatever they hold.
    pub(super) fn is_row_count(&self) -> bool {
        self.output.is_none()
    }
}
