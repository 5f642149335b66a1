//! What an accumulator is fed: one argument for the rows of a vector, in the form in which it is there.

use crate::expr::{Frame, Operand};
use crate::{Dictionary, Vector};
use arrow::array::ArrayRef;
use sinter_codec::{Bitmap, Encoded, Narrow, Values};
use std::sync::Arc;

/// Values with their NULLs.
#[derive(Clone, Copy)]
pub(crate) struct Argument<'a> {
    pub(crate) form: Form<'a>,
    /// 1 where present; `None` when everywhere.
    pub(crate) validity: Option<&'a Bitmap>,
    pub(crate) rows: usize,
}

#[derive(Clone, Copy)]
pub(crate) enum Form<'a> {
    /// One value for all rows.
    Constant(Values<'a>),
    /// NULL for all rows.
    Null,
    BaseDelta(i128, &'a Narrow),
    Codes(&'a Narrow, &'a Arc<Dictionary>),
    Flat(Values<'a>),
    /// True where the bit is set.
    Truth(&'a Bitmap),
    Nested(&'a ArrayRef),
}

impl<'a> Argument<'a> {
    /// An output of the aggregates' program.
    pub(crate) fn new(frame: Frame<'a>, operand: Operand) -> Argument<'a> {
        let rows = frame.rows;
        let (form, validity) = match operand {
            Operand::Column(column) => of_vector(&frame.columns[column]),
            Operand::Constant(_) => {
                let input = frame.input(operand);
                (if input.null_constant { Form::Null } else { Form::Constant(input.values) }, None)
            }
            Operand::Register(register) => {
                let slot = frame.slot(register);
                let form = match &slot.nested {
                    Some(array) => Form::Nested(array),
                    None if frame.program.is_truth(operand) => Form::Truth(&slot.truth),
                    None => Form::Flat(slot.values.as_values()),
                };
                (form, slot.validity())
            }
        };
        Argument { form, validity, rows }
    }

    /// A vector of so many rows.
    pub(crate) fn of(vector: &'a Vector, rows: usize) -> Argument<'a> {
        let (form, validity) = of_vector(vector);
        Argument { form, validity, rows }
    }

    /// How many rows have a value.
    pub(crate) fn present(&self) -> usize {
        match self.form {
            Form::Null => 0,
            Form::Nested(array) => array.len() - array.logical_null_count(),
            _ => self.validity.map_or(self.rows, Bitmap::count_ones),
        }
    }

    /// Calls `visit` for each row that has a value.
    #[inline]
    pub(crate) fn for_each_present(&self, mut visit: impl FnMut(usize)) {
        match self.validity {
            None => (0..self.rows).for_each(visit),
            Some(validity) => validity.ones().for_each(&mut visit),
        }
    }
}

fn of_vector(vector: &Vector) -> (Form<'_>, Option<&Bitmap>) {
    if let Some(array) = &vector.nested {
        return (Form::Nested(array), None);
    }
    let form = match (&vector.values, &vector.dictionary) {
        (Encoded::Constant(one), _) => Form::Constant(one.as_values()),
        (Encoded::BaseDelta { base, deltas }, _) => Form::BaseDelta(*base, deltas),
        (Encoded::Codes(codes), Some(dictionary)) => Form::Codes(codes, dictionary),
        (Encoded::Codes(_), None) => Form::Null,
        (Encoded::Flat(values), _) => Form::Flat(values.as_values()),
    };
    (form, vector.validity.as_ref())
}
