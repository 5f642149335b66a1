//! Aggregates from outside: arguments leave as Arrow arrays, and results come back as one.
//!
//! What such an aggregate keeps of its groups is its own. The engine says of which group a row is, when states of two
//! workers become one, and how many bytes there may be.

use super::plan::filtered;
use crate::expr::{Frame, Operand, operand_to_arrow};
use crate::{Error, Expr, LogicalType, Result};
use arrow::array::{ArrayRef, AsArray, BooleanArray};
use arrow::buffer::BooleanBuffer;
use std::any::Any;
use std::fmt;
use std::sync::Arc;

/// An aggregate function that only code outside this room can compute, such as one of the SQL library.
pub trait ForeignAggregate: Send + Sync + fmt::Debug {
    /// States of no group yet; without keys, of the one group that there is then.
    ///
    /// # Errors
    /// [`crate::Error::Foreign`] with the function's own message.
    fn start(&self, has_keys: bool) -> Result<Box<dyn ForeignStates>>;

    /// About how many bytes the states of so many groups take at most, which have so many rows in all.
    fn bytes_estimate(&self, groups: usize, rows: usize) -> usize;

    /// For plans.
    fn text(&self) -> String;
}

/// What such a function keeps of each group. Groups are numbered from 0, and become more from call to call. Whoever merges
/// states wants to know them again, so they can be [`Any`].
pub trait ForeignStates: Any + Send + Sync + fmt::Debug {
    /// Takes rows for which the filter is true, each of the group that is said.
    ///
    /// # Errors
    /// [`crate::Error::Foreign`] with the function's own message, as in all that follows.
    fn update(
        &mut self,
        arguments: &[ArrayRef],
        filter: Option<&BooleanArray>,
        groups: &[u32],
        group_count: usize,
    ) -> Result<()>;

    /// Adds what the same function keeps for another worker; its groups are `map`ped to ours.
    fn merge(&mut self, other: Box<dyn ForeignStates>, map: &[u32], group_count: usize) -> Result<()>;

    /// The results of all groups; the states are of no use afterwards.
    fn results(&mut self) -> Result<ArrayRef>;

    /// Bytes that they take.
    fn bytes(&self) -> usize;
}

/// A foreign aggregate, and over what.
#[derive(Clone, Debug)]
pub struct ForeignCall {
    /// By whom it is computed.
    pub function: Arc<dyn ForeignAggregate>,
    /// Over what; values of any types.
    pub arguments: Vec<Expr>,
}

impl PartialEq for ForeignCall {
    /// Whether they are the same call: functions cannot be compared.
    fn eq(&self, other: &ForeignCall) -> bool {
        Arc::ptr_eq(&self.function, &other.function)
    }
}

impl Eq for ForeignCall {}

/// A foreign aggregate compiled.
#[derive(Debug)]
pub(crate) struct ForeignPart {
    pub(crate) function: Arc<dyn ForeignAggregate>,
    /// Which outputs of the program it reads.
    pub(crate) outputs: Vec<usize>,
    /// The output that says which rows count.
    pub(crate) filter: Option<usize>,
}

impl ForeignPart {
    /// The call, whose arguments are appended to `exprs`.
    pub(super) fn new(
        call: &ForeignCall,
        filter: Option<&Expr>,
        types: &[LogicalType],
        exprs: &mut Vec<Expr>,
    ) -> ForeignPart {
        let first = exprs.len();
        exprs.extend(call.arguments.iter().map(|argument| match (argument, filter) {
            // Nothing can go wrong with a column, and nested values have no CASE.
            (Expr::Column(_), _) | (_, None) => argument.clone(),
            (_, Some(_)) if argument.type_over(types).physical().is_none() => argument.clone(),
            (_, Some(filter)) => filtered(argument, filter, types),
        }));
        let outputs = (first..exprs.len()).collect();
        let filter = filter.map(|filter| {
            exprs.push(filter.clone());
            exprs.len() - 1
        });
        ForeignPart { function: Arc::clone(&call.function), outputs, filter }
    }

    /// Takes a vector, of which the program has made its outputs.
    pub(crate) fn update(
        &self,
        states: &mut dyn ForeignStates,
        frame: Frame<'_>,
        groups: &[u32],
        group_count: usize,
    ) -> Result<()> {
        let outputs = &frame.program.outputs;
        let array = |&output: &usize| {
            let (operand, ty) = &outputs[output];
            to_arrow(*operand, ty, frame)
        };
        let arguments = self.outputs.iter().map(array).collect::<Result<Vec<_>>>()?;
        let Some(filter) = &self.filter else { return states.update(&arguments, None, groups, group_count) };
        let filter = array(filter)?;
        let filter = filter.as_boolean_opt().ok_or_else(|| Error::Unsupported("a filter of values".into()))?;
        states.update(&arguments, Some(filter), groups, group_count)
    }
}

/// One value per row; conditions as well.
fn to_arrow(operand: Operand, ty: &LogicalType, frame: Frame<'_>) -> Result<ArrayRef> {
    match operand {
        Operand::Register(register) if frame.program.is_truth(operand) => {
            let slot = frame.slot(register);
            let bits = BooleanBuffer::collect_bool(frame.rows, |row| slot.truth.get(row));
            let nulls = slot.validity().map(crate::edge::to_null_buffer);
            Ok(Arc::new(BooleanArray::new(bits, nulls)))
        }
        _ => operand_to_arrow(operand, ty, frame),
    }
}
