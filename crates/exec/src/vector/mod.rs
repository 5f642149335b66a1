//! What flows between operators.

mod compact;
mod dictionary;
mod flatten;
mod gather;

pub(crate) use compact::{compact, compact_bits, truncate};
pub use dictionary::Dictionary;
pub(crate) use dictionary::Progression;
pub(crate) use flatten::{append, flatten, push_scalar, scalar_at};
pub(crate) use gather::{gather_values, gather_vector};

use crate::{Error, LogicalType, Result};
use sinter_codec::{Bitmap, Encoded, Scalar, ValuesBuf};
use std::sync::Arc;

/// Up to [`sinter_codec::VECTOR_LEN`] values of one column, encoded.
#[derive(Clone, Debug, Default)]
pub struct Vector {
    /// The values; slots that are NULL hold anything.
    pub values: Encoded,
    /// For [`Encoded::Codes`].
    pub dictionary: Option<Arc<Dictionary>>,
    /// 1 where a value is present; `None` when all are.
    pub validity: Option<Bitmap>,
    /// Lists and structs travel as Arrow arrays; then `values` is unused.
    pub nested: Option<arrow::array::ArrayRef>,
}

/// Vectors of the same rows. Every row in it is alive: filters gather the survivors.
#[derive(Debug, Default)]
pub struct Batch {
    /// In the order of the pipeline's output.
    pub columns: Vec<Vector>,
    /// Rows in each of them.
    pub rows: usize,
}

impl Vector {
    /// Writes the `rows` values over `out`, which is a buffer of their physical type; slots that are NULL hold anything.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for lists and structs, and where `out` is a buffer of another type.
    pub fn plain(&self, rows: usize, out: &mut ValuesBuf) -> Result<()> {
        out.clear();
        append(self, rows, out)
    }

    /// One value.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where it is no value of the type, or a nested one.
    pub(crate) fn of_scalar(value: &Scalar, ty: &LogicalType) -> Result<Vector> {
        let unsupported = || Error::Unsupported(format!("{value:?} as {ty}"));
        let mut values = ValuesBuf::new(ty.physical().ok_or_else(unsupported)?);
        if value.is_null() {
            values.push_default(1);
        } else if !push_scalar(&mut values, value) {
            return Err(unsupported());
        }
        let validity = value.is_null().then(|| Bitmap::new(1, false));
        Ok(Vector { values: Encoded::Flat(values), validity, ..Vector::default() })
    }

    /// One value that is there, in every row.
    ///
    /// # Errors
    /// As [`Vector::of_scalar`].
    pub(crate) fn of_equal(value: &Scalar, ty: &LogicalType) -> Result<Vector> {
        let one = Vector::of_scalar(value, ty)?;
        let values = match one.values {
            Encoded::Flat(values) => Encoded::Constant(values),
            other => other,
        };
        Ok(Vector { values, ..one })
    }

    /// So many NULLs.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where the type is a nested one.
    pub(crate) fn of_nulls(ty: &LogicalType, rows: usize) -> Result<Vector> {
        let physical = ty.physical().ok_or_else(|| Error::Unsupported(format!("a {ty} of rows that are not there")))?;
        let mut values = ValuesBuf::new(physical);
        values.push_default(rows);
        Ok(Vector { values: Encoded::Flat(values), validity: Some(Bitmap::new(rows, false)), ..Vector::default() })
    }
}

impl Batch {
    /// Keeps the first `rows` rows.
    pub(crate) fn truncate(&mut self, rows: usize) {
        for column in &mut self.columns {
            truncate(column, rows);
        }
        self.rows = rows;
    }
}
