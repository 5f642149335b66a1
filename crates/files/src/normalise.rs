//! Bringing Arrow's many types down to those that tables hold.
//!
//! | in a file                                        | here                    |
//! |--------------------------------------------------|-------------------------|
//! | LargeUtf8, Utf8View, Null                        | Utf8                    |
//! | LargeBinary, BinaryView, FixedSizeBinary(not 16) | Binary                  |
//! | Dictionary, RunEndEncoded                        | their values            |
//! | Float16                                          | Float32                 |
//! | Decimal32, Decimal64, Decimal256 up to 38 digits | Decimal128              |
//! | Date64                                           | Date32                  |
//! | Time32                                           | Time64(us)              |
//! | Timestamp(s), Timestamp(ms)                      | Timestamp(us)           |
//! | Interval(YearMonth), Interval(DayTime)           | Interval(MonthDayNano)  |
//! | LargeList, ListView, FixedSizeList, Map          | List                    |
//!
//! Anything else (Duration, Union) is refused by name.

use super::{FileError, Result};
use arrow::array::ArrayRef;
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, Field, IntervalUnit, Schema, TimeUnit};
use std::path::Path;
use std::sync::Arc;

/// The type that holds the values of `data_type` here, or `None`.
pub(crate) fn data_type(data_type: &DataType) -> Option<DataType> {
    use DataType as T;
    let field = |field: &Field| -> Option<Arc<Field>> {
        Some(Arc::new(Field::new(field.name(), self::data_type(field.data_type())?, true)))
    };
    Some(match data_type {
        T::Boolean | T::Int8 | T::Int16 | T::Int32 | T::Int64 => data_type.clone(),
        T::UInt8 | T::UInt16 | T::UInt32 | T::UInt64 | T::Float32 | T::Float64 => data_type.clone(),
        T::Float16 => T::Float32,
        T::Decimal32(precision, scale) | T::Decimal64(precision, scale) => T::Decimal128(*precision, *scale),
        T::Decimal128(..) | T::Date32 | T::Time64(_) | T::Utf8 | T::Binary => data_type.clone(),
        T::Decimal256(precision, scale) if *precision <= 38 => T::Decimal128(*precision, *scale),
        T::Date64 => T::Date32,
        T::Time32(_) => T::Time64(TimeUnit::Microsecond),
        T::Timestamp(TimeUnit::Nanosecond, zone) => T::Timestamp(TimeUnit::Nanosecond, zone.clone()),
        T::Timestamp(_, zone) => T::Timestamp(TimeUnit::Microsecond, zone.clone()),
        T::Interval(_) => T::Interval(IntervalUnit::MonthDayNano),
        T::LargeUtf8 | T::Utf8View => T::Utf8,
        // An all-NULL column stays Null until every file has been seen; see `null_to_text`.
        T::Null => T::Null,
        T::FixedSizeBinary(16) => data_type.clone(),
        T::LargeBinary | T::BinaryView | T::FixedSizeBinary(_) => T::Binary,
        T::Dictionary(_, values) => self::data_type(values)?,
        T::RunEndEncoded(_, values) => self::data_type(values.data_type())?,
        T::List(element)
        | T::LargeList(element)
        | T::ListView(element)
        | T::LargeListView(element)
        | T::FixedSizeList(element, _)
        | T::Map(element, _) => T::List(field(element)?),
        T::Struct(fields) => T::Struct(fields.iter().map(|f| field(f)).collect::<Option<_>>()?),
        T::Decimal256(..) | T::Duration(_) | T::Union(..) => return None,
    })
}

/// `schema` in the types of tables.
///
/// # Errors
/// A column has a type without counterpart.
pub(crate) fn schema(path: &Path, schema: &Schema) -> Result<Schema> {
    let fields = schema.fields().iter().map(|field| match data_type(field.data_type()) {
        Some(data_type) => Ok(Field::new(field.name(), data_type, true)),
        None => Err(FileError::Unsupported {
            path: path.to_path_buf(),
            column: field.name().clone(),
            data_type: field.data_type().to_string(),
        }),
    });
    Ok(Schema::new(fields.collect::<Result<Vec<_>>>()?))
}

/// `data_type` with VARCHAR wherever no value was ever seen.
pub(crate) fn null_to_text(data_type: &DataType) -> DataType {
    let field = |field: &Field| Field::new(field.name(), null_to_text(field.data_type()), true);
    match data_type {
        DataType::Null => DataType::Utf8,
        DataType::List(element) => DataType::List(Arc::new(field(element))),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(|f| field(f)).collect()),
        other => other.clone(),
    }
}

/// `array` as `wanted`. A value that does not fit is an error.
pub(crate) fn array(path: &Path, column: &str, array: &ArrayRef, wanted: &DataType) -> Result<ArrayRef> {
    if array.data_type() == wanted {
        return Ok(Arc::clone(array));
    }
    let failed = |error| FileError::schema(path, format!("column \"{column}\": {error}"));
    let options = CastOptions { safe: false, ..CastOptions::default() };
    // Arrow casts maps only to maps; a map is a list of its entries.
    let array = match array.data_type() {
        DataType::Map(entries, _) => {
            let map = arrow::array::AsArray::as_map(array);
            let list = arrow::array::ListArray::try_new(
                Arc::clone(entries),
                map.offsets().clone(),
                Arc::new(map.entries().clone()),
                arrow::array::Array::nulls(map).cloned(),
            );
            &(Arc::new(list.map_err(failed)?) as ArrayRef)
        }
        _ => array,
    };
    cast_with_options(array, wanted, &options).map_err(failed)
}
