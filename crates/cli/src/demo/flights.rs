//! All flights that left New York City in 2013: `data/nycflights13` of the repository, built into the binary.

use super::load::Source;
use crate::failure::Result;
use sinterdb::Error;
use sinterdb::arrow::csv::ReaderBuilder;
use sinterdb::arrow::datatypes::{DataType, Field, Schema, TimeUnit};
use std::sync::Arc;

macro_rules! csv {
    ($name:literal) => {
        include_bytes!(concat!("../../../../data/nycflights13/", $name, ".csv.zst"))
    };
}

const INT: DataType = DataType::Int32;
const TEXT: DataType = DataType::Utf8;
const FLOAT: DataType = DataType::Float64;
const TIME: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

/// The five tables, the largest first. Missing values are written as NA.
#[rustfmt::skip]
pub(super) fn tables() -> Result<Vec<Source>> {
    Ok(vec![
        table("flights", csv!("flights"), 336_776, &[
            ("year", INT), ("month", INT), ("day", INT), ("dep_time", INT), ("sched_dep_time", INT),
            ("dep_delay", INT), ("arr_time", INT), ("sched_arr_time", INT), ("arr_delay", INT), ("carrier", TEXT),
            ("flight", INT), ("tailnum", TEXT), ("origin", TEXT), ("dest", TEXT), ("air_time", INT),
            ("distance", INT), ("hour", INT), ("minute", INT), ("time_hour", TIME),
        ])?,
        table("weather", csv!("weather"), 26_115, &[
            ("origin", TEXT), ("year", INT), ("month", INT), ("day", INT), ("hour", INT), ("temp", FLOAT),
            ("dewp", FLOAT), ("humid", FLOAT), ("wind_dir", INT), ("wind_speed", FLOAT), ("wind_gust", FLOAT),
            ("precip", FLOAT), ("pressure", FLOAT), ("visib", FLOAT), ("time_hour", TIME),
        ])?,
        table("planes", csv!("planes"), 3_322, &[
            ("tailnum", TEXT), ("year", INT), ("type", TEXT), ("manufacturer", TEXT), ("model", TEXT),
            ("engines", INT), ("seats", INT), ("speed", INT), ("engine", TEXT),
        ])?,
        table("airports", csv!("airports"), 1_458, &[
            ("faa", TEXT), ("name", TEXT), ("lat", FLOAT), ("lon", FLOAT), ("alt", INT), ("tz", INT), ("dst", TEXT),
            ("tzone", TEXT),
        ])?,
        table("airlines", csv!("airlines"), 16, &[
            ("carrier", TEXT), ("name", TEXT),
        ])?,
    ])
}

fn table(name: &'static str, pressed: &'static [u8], rows: u64, columns: &[(&str, DataType)]) -> Result<Source> {
    let fields: Vec<Field> = columns.iter().map(|(name, ty)| Field::new(*name, ty.clone(), true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let internal = |error: &dyn std::fmt::Display| Error::Internal(format!("the built-in file {name}.csv: {error}"));
    let missing = regex::Regex::new("^NA$").map_err(|error| internal(&error))?;
    let text = zstd::stream::read::Decoder::new(pressed).map_err(|error| internal(&error))?;
    let reader = ReaderBuilder::new(schema.clone()).with_batch_size(8192).with_header(true).with_null_regex(missing);
    let reader = reader.build(text).map_err(|error| internal(&error))?;
    let batches = reader
        .map(move |batch| batch.map_err(|error| Error::Internal(format!("the built-in file {name}.csv: {error}"))));
    Ok(Source { name, schema, rows, batches: Box::new(batches) })
}
