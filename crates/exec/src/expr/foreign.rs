//! Functions from outside: arguments leave as Arrow arrays, the result comes back as values.

use super::Foreign;
use super::machine::{Frame, Presence};
use super::program::Operand;
use super::slot::{Scratch, Slot};
use crate::edge::{from_arrow, to_arrow, values_to_arrow};
use crate::{Error, LogicalType, Result};
use arrow::array::{Array, ArrayRef};
use sinter_codec::{Encoded, Values, ValuesBuf};

pub(super) fn evaluate(
    function: &dyn Foreign,
    arguments: &[(Operand, LogicalType)],
    ty: &LogicalType,
    frame: Frame<'_>,
    out: &mut Slot,
) -> Result<()> {
    let arrays = arguments.iter().map(|(operand, ty)| operand_to_arrow(*operand, ty, frame));
    let arrays = arrays.collect::<Result<Vec<_>>>()?;
    let array = function.evaluate(&arrays, frame.rows)?;
    if array.len() != frame.rows {
        return Err(Error::Foreign(format!("{} returned {} rows for {}", function.text(), array.len(), frame.rows)));
    }
    debug_assert!(matches!(out.scratch, Scratch::None));
    let result = from_arrow(&array, ty)?;
    out.has_nulls = result.validity.is_some();
    out.validity = result.validity.unwrap_or_default();
    out.nested = result.nested;
    if let Encoded::Flat(values) = result.values {
        out.values = values;
    }
    Ok(())
}

/// One value per row, whatever form the operand has. Truth values must have gone through
/// [`super::program::Operation::FromTruth`].
pub(crate) fn operand_to_arrow(operand: Operand, ty: &LogicalType, frame: Frame<'_>) -> Result<ArrayRef> {
    match operand {
        Operand::Column(column) => return to_arrow(&frame.columns[column], ty, frame.rows),
        Operand::Register(register) => {
            if let Some(array) = &frame.slot(register).nested {
                return Ok(array.clone());
            }
        }
        Operand::Constant(_) => {}
    }
    let input = frame.input(operand);
    if !input.constant {
        return values_to_arrow(input.values, input.validity, ty);
    }
    if let Presence::Nowhere = frame.presence(operand) {
        return Ok(arrow::array::new_null_array(&crate::edge::arrow_type(ty), frame.rows));
    }
    let mut values = ValuesBuf::new(Values::physical(&input.values));
    for _ in 0..frame.rows {
        values.extend(input.values);
    }
    values_to_arrow(values.as_values(), None, ty)
}
