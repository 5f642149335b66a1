//! DataFusion's constants as ours, and back.

use arrow::array::{Array, ArrayRef};
use datafusion::scalar::ScalarValue;
use sinter_codec::{Encoded, Scalar, ValuesBuf};
use sinter_exec::{LogicalType, edge};

/// A constant with its type; `None` for types that our tables cannot hold, and for nested ones.
pub(crate) fn from_datafusion(value: &ScalarValue) -> Option<(Scalar, LogicalType)> {
    let ty = edge::logical_type(&value.data_type())?;
    ty.physical()?;
    if value.is_null() {
        return Some((Scalar::Null, ty));
    }
    let array = value.to_array().ok()?;
    Some((first_value(&array, &ty)?, ty))
}

/// The first value of an array as a scalar of `ty`.
fn first_value(array: &ArrayRef, ty: &LogicalType) -> Option<Scalar> {
    let vector = edge::from_arrow(array, ty).ok()?;
    let Encoded::Flat(values) = vector.values else { return None };
    Some(match values {
        ValuesBuf::I8(values) => Scalar::Int((*values.first()?).into()),
        ValuesBuf::I16(values) => Scalar::Int((*values.first()?).into()),
        ValuesBuf::I32(values) => Scalar::Int((*values.first()?).into()),
        ValuesBuf::I64(values) => Scalar::Int((*values.first()?).into()),
        ValuesBuf::I128(values) => Scalar::Int(*values.first()?),
        ValuesBuf::U8(values) => Scalar::Int((*values.first()?).into()),
        ValuesBuf::U16(values) => Scalar::Int((*values.first()?).into()),
        ValuesBuf::U32(values) => Scalar::Int((*values.first()?).into()),
        ValuesBuf::U64(values) => Scalar::Int((*values.first()?).into()),
        ValuesBuf::F32(values) => Scalar::Float((*values.first()?).into()),
        ValuesBuf::F64(values) => Scalar::Float(*values.first()?),
        ValuesBuf::Bytes(values) => Scalar::Bytes(values.view().iter().next()?.to_vec()),
    })
}

/// One of our values as DataFusion's; `None` where Arrow has no place for it.
pub(crate) fn to_datafusion(value: &Scalar, ty: &LogicalType) -> Option<ScalarValue> {
    let array = edge::scalar_to_arrow(value, ty).ok()?;
    if array.is_empty() {
        return None;
    }
    ScalarValue::try_from_array(&array, 0).ok()
}
