//! One value as text.
//!
//! Arrow's formatter does the work for all types, nested ones too. We add what it leaves open: timestamps as SQL writes
//! them (`2013-01-01 05:00:00`), UUIDs by their name instead of as 16 bytes, and binary values as `\x0fa0`.

use crate::failure::Result;
use sinterdb::arrow::array::{Array, AsArray, FixedSizeBinaryArray, RecordBatch};
use sinterdb::arrow::datatypes::{DataType, Field, Schema};
use sinterdb::arrow::error::ArrowError;
use sinterdb::arrow::util::display::{
    ArrayFormatter, ArrayFormatterFactory, DisplayIndex, FormatOptions, FormatResult,
};
use std::borrow::Cow;
use std::fmt::Write;

/// SQL's way to write times; the options of all formats.
pub(crate) const OPTIONS: FormatOptions<'static> = FormatOptions::new()
    .with_display_error(false)
    .with_null("NULL")
    .with_datetime_format(Some("%Y-%m-%d %H:%M:%S%.f"))
    .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
    .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f%:z"))
    .with_formatter_factory(Some(&SqlFormats));

/// Formats the values of one batch.
pub(crate) struct Cells<'a> {
    batch: &'a RecordBatch,
    formatters: Vec<ArrayFormatter<'a>>,
    nulls: Vec<Option<sinterdb::arrow::buffer::NullBuffer>>,
}

impl<'a> Cells<'a> {
    /// Prepares all columns of `batch`; `schema` is the batch's own.
    pub(crate) fn new(batch: &'a RecordBatch, schema: &'a Schema) -> Result<Cells<'a>> {
        let mut formatters = Vec::with_capacity(batch.num_columns());
        for (array, field) in batch.columns().iter().zip(schema.fields()) {
            formatters.push(match SqlFormats.create_array_formatter(array, &OPTIONS, Some(field))? {
                Some(formatter) => formatter,
                None => ArrayFormatter::try_new(array, &OPTIONS)?,
            });
        }
        let nulls = batch.columns().iter().map(|array| array.logical_nulls()).collect();
        Ok(Cells { batch, formatters, nulls })
    }

    /// Rows of the batch.
    pub(crate) fn row_count(&self) -> usize {
        self.batch.num_rows()
    }

    /// Columns of the batch.
    pub(crate) fn column_count(&self) -> usize {
        self.formatters.len()
    }

    /// The value is NULL.
    pub(crate) fn is_null(&self, column: usize, row: usize) -> bool {
        self.nulls[column].as_ref().is_some_and(|nulls| nulls.is_null(row))
    }

    /// Appends the value to `text`; `NULL` for NULL.
    pub(crate) fn write(&self, column: usize, row: usize, text: &mut String) -> Result<()> {
        self.formatters[column].value(row).write(text)?;
        Ok(())
    }

    /// The value; `NULL` for NULL.
    pub(crate) fn text(&self, column: usize, row: usize) -> Result<String> {
        let mut text = String::new();
        self.write(column, row, &mut text)?;
        Ok(text)
    }
}

/// Makes control characters visible, so that a value stays on its line and cannot steer the terminal.
pub(crate) fn sanitize(text: &str) -> Cow<'_, str> {
    if !text.contains(|c: char| c.is_control()) {
        return Cow::Borrowed(text);
    }
    let mut visible = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if c.is_control() { visible.extend(c.escape_default()) } else { visible.push(c) }
    }
    Cow::Owned(visible)
}

/// Chooses our own formatters where we differ from Arrow's.
#[derive(Debug)]
pub(crate) struct SqlFormats;

impl ArrayFormatterFactory for SqlFormats {
    fn create_array_formatter<'f>(
        &self,
        array: &'f dyn Array,
        options: &FormatOptions<'f>,
        field: Option<&'f Field>,
    ) -> std::result::Result<Option<ArrayFormatter<'f>>, ArrowError> {
        let is_uuid = field.is_some_and(|field| field.extension_type_name() == Some("arrow.uuid"));
        let format: Box<dyn DisplayIndex + 'f> = match array.data_type() {
            DataType::FixedSizeBinary(16) if is_uuid => Box::new(Uuids(array.as_fixed_size_binary(), options.null())),
            DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
                let plain = options.clone().with_null("").with_formatter_factory(None);
                Box::new(Binaries(ArrayFormatter::try_new(array, &plain)?, array, options.null()))
            }
            _ => return Ok(None),
        };
        Ok(Some(ArrayFormatter::new(format, options.safe())))
    }
}

/// `6ba7b810-9dad-11d1-80b4-00c04fd430c8`.
struct Uuids<'a>(&'a FixedSizeBinaryArray, &'a str);

impl DisplayIndex for Uuids<'_> {
    fn write(&self, row: usize, out: &mut dyn Write) -> FormatResult {
        if self.0.is_null(row) {
            out.write_str(self.1)?;
            return Ok(());
        }
        for (index, byte) in self.0.value(row).iter().enumerate() {
            let dash = if matches!(index, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(out, "{dash}{byte:02x}")?;
        }
        Ok(())
    }
}

/// `\x00ff`, as PostgreSQL.
struct Binaries<'a>(ArrayFormatter<'a>, &'a dyn Array, &'a str);

impl DisplayIndex for Binaries<'_> {
    fn write(&self, row: usize, out: &mut dyn Write) -> FormatResult {
        if self.1.is_null(row) {
            out.write_str(self.2)?;
        } else {
            write!(out, "\\x{}", self.0.value(row))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sinterdb::arrow::array::*;
    use sinterdb::arrow::datatypes::*;
    use std::sync::Arc;

    fn first(field: Field, array: ArrayRef) -> String {
        let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![array]).unwrap();
        let schema = batch.schema();
        Cells::new(&batch, &schema).unwrap().text(0, 0).unwrap()
    }

    fn plain(array: impl Array + 'static) -> String {
        first(Field::new("x", array.data_type().clone(), true), Arc::new(array))
    }

    #[test]
    fn values_are_written_as_sql_writes_them() {
        assert_eq!(plain(Int64Array::from(vec![i64::MIN])), "-9223372036854775808");
        assert_eq!(plain(Float64Array::from(vec![1.0])), "1.0");
        assert_eq!(plain(BooleanArray::from(vec![true])), "true");
        assert_eq!(plain(Date32Array::from(vec![15_706])), "2013-01-01");
        assert_eq!(plain(TimestampMicrosecondArray::from(vec![1_357_020_000_000_000])), "2013-01-01 06:00:00");
        assert_eq!(
            plain(TimestampNanosecondArray::from(vec![1]).with_timezone("UTC")),
            "1970-01-01 00:00:00.000000001+00:00"
        );
        assert_eq!(plain(Decimal128Array::from(vec![-1234]).with_precision_and_scale(15, 2).unwrap()), "-12.34");
        assert_eq!(plain(BinaryArray::from(vec![&[0u8, 255][..]])), "\\x00ff");
        assert_eq!(plain(NullArray::new(1)), "NULL");
        assert_eq!(plain(StringViewArray::from(vec![None::<&str>])), "NULL");
    }

    #[test]
    fn uuids_have_their_dashes() {
        let field = Field::new("id", DataType::FixedSizeBinary(16), true)
            .with_metadata([("ARROW:extension:name".into(), "arrow.uuid".into())].into());
        let array = FixedSizeBinaryArray::try_from_iter([(0..16u8).collect::<Vec<u8>>()].into_iter()).unwrap();
        assert_eq!(first(field, Arc::new(array)), "00010203-0405-0607-0809-0a0b0c0d0e0f");
    }

    #[test]
    fn nested_values_show_their_members() {
        let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1), None])]);
        assert_eq!(plain(list), "[1, NULL]");
        let member: ArrayRef = Arc::new(BinaryArray::from(vec![&[1u8][..]]));
        let member_field = Arc::new(Field::new("b", DataType::Binary, true));
        assert_eq!(plain(StructArray::from(vec![(member_field, member)])), "{b: \\x01}");
    }

    #[test]
    fn control_characters_become_visible() {
        assert_eq!(sanitize("a\n\u{1b}[31mb"), "a\\n\\u{1b}[31mb");
        assert_eq!(sanitize("plain é"), "plain é");
    }
}
