//! An array of objects, one per line. Written by `arrow-json`: all digits of whole numbers and decimals are kept, NaN and
//! infinities are `null`, dates and times are strings.

use super::ResultWriter;
use super::cell::{OPTIONS, SqlFormats};
use crate::failure::Result;
use sinterdb::arrow::array::{Array, RecordBatch};
use sinterdb::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use sinterdb::arrow::error::ArrowError;
use sinterdb::arrow::json::writer::{
    Encoder, EncoderFactory, EncoderOptions, JsonFormat, NullableEncoder, Writer, WriterBuilder,
};
use sinterdb::arrow::util::display::{ArrayFormatter, ArrayFormatterFactory};
use std::io::{self, Write};
use std::sync::Arc;

/// Streams rows.
pub(super) struct JsonWriter {
    rows_written: bool,
}

impl JsonWriter {
    pub(super) fn new() -> JsonWriter {
        JsonWriter { rows_written: false }
    }
}

impl ResultWriter for JsonWriter {
    fn write(&mut self, batch: &RecordBatch, out: &mut dyn Write) -> Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        out.write_all(if self.rows_written { b",\n" } else { b"[" })?;
        self.rows_written = true;
        let options = WriterBuilder::new().with_explicit_nulls(true).with_encoder_factory(Arc::new(TextEncoders));
        let mut writer: Writer<_, Rows> = options.build(Forward(out));
        writer.write(&distinct_names(batch)?)?;
        Ok(())
    }

    fn finish(&mut self, out: &mut dyn Write) -> Result<()> {
        out.write_all(if self.rows_written { b"]\n" } else { b"[]\n" })?;
        Ok(())
    }
}

/// Columns of one name, as a join gives them, become `id`, `id_1`, `id_2`: most readers keep only one of equal keys.
fn distinct_names(batch: &RecordBatch) -> Result<RecordBatch> {
    let schema = batch.schema();
    let mut names: Vec<String> = Vec::with_capacity(schema.fields().len());
    for field in schema.fields() {
        let mut name = field.name().clone();
        let mut count = 0;
        while names.contains(&name) {
            count += 1;
            name = format!("{}_{count}", field.name());
        }
        names.push(name);
    }
    let fields: Vec<Field> =
        schema.fields().iter().zip(names).map(|(field, name)| field.as_ref().clone().with_name(name)).collect();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), batch.columns().to_vec())?)
}

/// Rows on lines of their own; the brackets around them are ours.
#[derive(Debug, Default)]
struct Rows;

impl JsonFormat for Rows {
    fn start_row<W: Write>(&self, out: &mut W, is_first_row: bool) -> std::result::Result<(), ArrowError> {
        if !is_first_row {
            out.write_all(b",\n")?;
        }
        Ok(())
    }
}

/// `arrow-json` wants a writer of a known size.
struct Forward<'a>(&'a mut dyn Write);

impl Write for Forward<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Types that JSON has no form for, and `arrow-json` refuses or writes otherwise than we do, become strings.
#[derive(Debug)]
struct TextEncoders;

impl EncoderFactory for TextEncoders {
    fn make_default_encoder<'a>(
        &self,
        field: &'a FieldRef,
        array: &'a dyn Array,
        _options: &'a EncoderOptions,
    ) -> std::result::Result<Option<NullableEncoder<'a>>, ArrowError> {
        let formatter = match array.data_type() {
            DataType::Union(..) | DataType::Timestamp(..) => ArrayFormatter::try_new(array, &OPTIONS)?,
            _ => match SqlFormats.create_array_formatter(array, &OPTIONS, Some(field))? {
                Some(formatter) => formatter,
                None => return Ok(None),
            },
        };
        Ok(Some(NullableEncoder::new(Box::new(Text(formatter)), array.logical_nulls())))
    }
}

struct Text<'a>(ArrayFormatter<'a>);

impl Encoder for Text<'_> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        let text = self.0.value(row).try_to_string().unwrap_or_default();
        out.extend_from_slice(serde_json::Value::String(text).to_string().as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use crate::output::{Mode, tests::written};
    use sinterdb::arrow::array::*;
    use sinterdb::arrow::datatypes::Int32Type;
    use std::sync::Arc;

    fn json(columns: Vec<(&str, ArrayRef)>) -> String {
        let columns = columns.into_iter().map(|(name, array)| (name, array, true));
        written(Mode::Json, &[RecordBatch::try_from_iter_with_nullable(columns).unwrap()])
    }

    #[test]
    fn numbers_keep_all_their_digits() {
        let wide = Decimal128Array::from(vec![123_456_789_012_345_678_901_i128]).with_precision_and_scale(38, 2);
        assert_eq!(
            json(vec![
                ("i", Arc::new(Int64Array::from(vec![i64::MAX]))),
                ("u", Arc::new(UInt64Array::from(vec![u64::MAX]))),
                ("d", Arc::new(wide.unwrap())),
                ("f", Arc::new(Float64Array::from(vec![f64::NAN]))),
            ]),
            "[{\"i\":9223372036854775807,\"u\":18446744073709551615,\"d\":1234567890123456789.01,\"f\":null}]\n"
        );
    }

    #[test]
    fn text_times_and_nested_values() {
        let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1), None])]);
        assert_eq!(
            json(vec![
                ("s", Arc::new(StringArray::from(vec!["a\"\n"]))),
                ("t", Arc::new(TimestampMicrosecondArray::from(vec![0]))),
                ("b", Arc::new(BinaryArray::from(vec![&[1u8][..]]))),
                ("l", Arc::new(list)),
                ("n", Arc::new(StringArray::from(vec![None::<&str>]))),
            ]),
            "[{\"s\":\"a\\\"\\n\",\"t\":\"1970-01-01 00:00:00\",\"b\":\"\\\\x01\",\"l\":[1,null],\"n\":null}]\n"
        );
    }

    #[test]
    fn batches_join_to_one_array_with_distinct_keys() {
        let number: ArrayRef = Arc::new(Int32Array::from(vec![1]));
        let batch = RecordBatch::try_from_iter([("a", number.clone()), ("a", number)]).unwrap();
        assert_eq!(written(Mode::Json, &[batch.slice(0, 0)]), "[]\n");
        assert_eq!(written(Mode::Json, &[batch.clone(), batch]), "[{\"a\":1,\"a_1\":1},\n{\"a\":1,\"a_1\":1}]\n");
    }
}
