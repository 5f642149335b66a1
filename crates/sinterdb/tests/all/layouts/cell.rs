//! Values of all types, beside the database: how they compare, how they stand in SQL, and how in Arrow.

use rand::Rng;
use rand::rngs::SmallRng;
use sinter_codec::Physical;
use sinterdb::arrow::array::*;
use sinterdb::arrow::datatypes::*;
use sinterdb::arrow::temporal_conversions::{date32_to_datetime, timestamp_us_to_datetime};
use std::cmp::Ordering;
use std::sync::Arc;

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Cell {
    Null,
    /// Whatever is a whole number inside: decimals unscaled, days, microseconds.
    Int(i128),
    Float(f64),
    /// Text, blobs, the 16 bytes of a UUID.
    Bytes(Vec<u8>),
    List(Vec<Cell>),
}

impl Cell {
    /// The very same value: what is read must be what was written, -0.0 and 0.0 apart.
    pub(super) fn is_same(&self, other: &Cell) -> bool {
        match (self, other) {
            (Cell::Float(a), Cell::Float(b)) => a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()),
            (Cell::List(a), Cell::List(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.is_same(b)),
            (Cell::Null, Cell::Null) => true,
            (Cell::Int(a), Cell::Int(b)) => a == b,
            (Cell::Bytes(a), Cell::Bytes(b)) => a == b,
            _ => false,
        }
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self, Cell::Null)
    }

    /// As SQL compares: nothing with NULL; -0.0 equals 0.0; NaN equals itself and is the greatest.
    pub(super) fn compare(&self, other: &Cell) -> Option<Ordering> {
        match (self, other) {
            (Cell::Int(a), Cell::Int(b)) => Some(a.cmp(b)),
            (Cell::Bytes(a), Cell::Bytes(b)) => Some(a.cmp(b)),
            (Cell::Float(a), Cell::Float(b)) => Some(a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))),
            _ => None,
        }
    }

    /// What Arrow holds.
    pub(super) fn of(array: &dyn Array, row: usize) -> Cell {
        if array.is_null(row) {
            return Cell::Null;
        }
        macro_rules! int {
            ($type:ty) => {
                Cell::Int(i128::from(array.as_primitive::<$type>().value(row)))
            };
        }
        match array.data_type() {
            DataType::Boolean => Cell::Int(array.as_boolean().value(row).into()),
            DataType::Int8 => int!(Int8Type),
            DataType::Int16 => int!(Int16Type),
            DataType::Int32 => int!(Int32Type),
            DataType::Int64 => int!(Int64Type),
            DataType::UInt8 => int!(UInt8Type),
            DataType::UInt32 => int!(UInt32Type),
            DataType::UInt64 => int!(UInt64Type),
            DataType::Decimal128(..) => int!(Decimal128Type),
            DataType::Date32 => int!(Date32Type),
            DataType::Timestamp(TimeUnit::Microsecond, _) => int!(TimestampMicrosecondType),
            DataType::Float32 => Cell::Float(array.as_primitive::<Float32Type>().value(row).into()),
            DataType::Float64 => Cell::Float(array.as_primitive::<Float64Type>().value(row)),
            DataType::Utf8 => Cell::Bytes(array.as_string::<i32>().value(row).into()),
            DataType::Utf8View => Cell::Bytes(array.as_string_view().value(row).into()),
            DataType::Binary => Cell::Bytes(array.as_binary::<i32>().value(row).into()),
            DataType::BinaryView => Cell::Bytes(array.as_binary_view().value(row).into()),
            DataType::FixedSizeBinary(_) => Cell::Bytes(array.as_fixed_size_binary().value(row).into()),
            DataType::List(_) => {
                let elements = array.as_list::<i32>().value(row);
                Cell::List((0..elements.len()).map(|at| Cell::of(&elements, at)).collect())
            }
            other => panic!("a column of type {other}"),
        }
    }
}

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Boolean,
    TinyInt,
    Integer,
    BigInt,
    UBigInt,
    Real,
    Double,
    DecimalOf7,
    DecimalOf15,
    DecimalOf38,
    Date,
    Timestamp,
    Text,
    Blob,
    Uuid,
    Numbers,
    Words,
}

impl Kind {
    pub(super) const ALL: [Kind; 17] = [
        Kind::Boolean,
        Kind::TinyInt,
        Kind::Integer,
        Kind::BigInt,
        Kind::UBigInt,
        Kind::Real,
        Kind::Double,
        Kind::DecimalOf7,
        Kind::DecimalOf15,
        Kind::DecimalOf38,
        Kind::Date,
        Kind::Timestamp,
        Kind::Text,
        Kind::Blob,
        Kind::Uuid,
        Kind::Numbers,
        Kind::Words,
    ];

    pub(super) fn sql(self) -> &'static str {
        match self {
            Kind::Boolean => "BOOLEAN",
            Kind::TinyInt => "TINYINT",
            Kind::Integer => "INTEGER",
            Kind::BigInt => "BIGINT",
            Kind::UBigInt => "UBIGINT",
            Kind::Real => "REAL",
            Kind::Double => "DOUBLE",
            Kind::DecimalOf7 => "DECIMAL(7, 2)",
            Kind::DecimalOf15 => "DECIMAL(15, 3)",
            Kind::DecimalOf38 => "DECIMAL(38, 6)",
            Kind::Date => "DATE",
            Kind::Timestamp => "TIMESTAMP",
            Kind::Text => "VARCHAR",
            Kind::Blob => "BLOB",
            Kind::Uuid => "UUID",
            Kind::Numbers => "BIGINT[]",
            Kind::Words => "VARCHAR[]",
        }
    }

    /// What its values are made of; `None` for lists, whose scheme cannot be chosen.
    pub(super) fn physical(self) -> Option<Physical> {
        Some(match self {
            Kind::Boolean => Physical::U8,
            Kind::TinyInt => Physical::I8,
            Kind::Integer | Kind::DecimalOf7 | Kind::Date => Physical::I32,
            Kind::BigInt | Kind::DecimalOf15 | Kind::Timestamp => Physical::I64,
            Kind::UBigInt => Physical::U64,
            Kind::Real => Physical::F32,
            Kind::Double => Physical::F64,
            Kind::DecimalOf38 | Kind::Uuid => Physical::I128,
            Kind::Text | Kind::Blob => Physical::Bytes,
            Kind::Numbers | Kind::Words => return None,
        })
    }

    pub(super) fn is_list(self) -> bool {
        matches!(self, Kind::Numbers | Kind::Words)
    }

    pub(super) fn is_float(self) -> bool {
        matches!(self, Kind::Real | Kind::Double)
    }

    /// Whether `sum` is exact, and what the sum of the magnitudes may be.
    pub(super) fn sum_max(self) -> Option<i128> {
        match self {
            Kind::TinyInt | Kind::Integer | Kind::BigInt | Kind::UBigInt => Some(i64::MAX.into()),
            Kind::DecimalOf7 | Kind::DecimalOf15 | Kind::DecimalOf38 => Some(10i128.pow(37)),
            _ => None,
        }
    }

    fn scale(self) -> usize {
        match self {
            Kind::DecimalOf7 => 2,
            Kind::DecimalOf15 => 3,
            Kind::DecimalOf38 => 6,
            _ => 0,
        }
    }

    /// A value for a number: equal ones for equal numbers, near ones for near numbers where the type has such.
    pub(super) fn cell(self, number: i64, style: Style) -> Cell {
        let wide = i128::from(number);
        match self {
            Kind::Boolean => Cell::Int(wide & 1),
            Kind::TinyInt => Cell::Int((number as i8).into()),
            Kind::Integer => Cell::Int((number as i32).into()),
            Kind::BigInt => Cell::Int(wide),
            Kind::UBigInt => Cell::Int((number as u64).into()),
            Kind::Real => Cell::Float((style.float(number) as f32).into()),
            Kind::Double => Cell::Float(style.float(number)),
            Kind::DecimalOf7 => Cell::Int(wide % 10_000_000),
            Kind::DecimalOf15 => Cell::Int(wide % 1_000_000_000_000_000),
            Kind::DecimalOf38 if number.unsigned_abs() > 1 << 40 => Cell::Int(wide * 10i128.pow(18) + wide),
            Kind::DecimalOf38 => Cell::Int(wide),
            Kind::Date => Cell::Int(wide % 700_000),
            Kind::Timestamp => Cell::Int(wide % 60_000_000_000_000_000),
            Kind::Text => Cell::Bytes(style.text(number).into_bytes()),
            Kind::Blob => Cell::Bytes(number.to_le_bytes()[..number.rem_euclid(9) as usize].to_vec()),
            Kind::Uuid => {
                Cell::Bytes((wide.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes().to_vec())
            }
            Kind::Numbers | Kind::Words => {
                let element = |at: i64| match (number.wrapping_add(at) % 7, self) {
                    (3, _) => Cell::Null,
                    (_, Kind::Numbers) => Cell::Int(number.wrapping_add(at).into()),
                    _ => Cell::Bytes(style.text(number.wrapping_add(at)).into_bytes()),
                };
                Cell::List((0..number.rem_euclid(5)).map(element).collect())
            }
        }
    }

    /// The value in SQL.
    pub(super) fn literal(self, cell: &Cell) -> String {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        match (self, cell) {
            (_, Cell::Null) => "NULL".to_owned(),
            (Kind::Boolean, Cell::Int(value)) => (*value == 1).to_string(),
            (Kind::Date, Cell::Int(days)) => {
                format!("DATE '{}'", date32_to_datetime(*days as i32).unwrap().format("%Y-%m-%d"))
            }
            (Kind::Timestamp, Cell::Int(micros)) => {
                format!(
                    "TIMESTAMP '{}'",
                    timestamp_us_to_datetime(*micros as i64).unwrap().format("%Y-%m-%d %H:%M:%S%.6f")
                )
            }
            (_, Cell::Int(value)) if self.scale() > 0 => {
                let one = 10i128.pow(self.scale() as u32).cast_unsigned();
                let sign = if *value < 0 { "-" } else { "" };
                let magnitude = value.unsigned_abs();
                format!("{sign}{}.{:0width$}", magnitude / one, magnitude % one, width = self.scale())
            }
            (_, Cell::Int(value)) => value.to_string(),
            (_, Cell::Float(value)) => {
                let text = match (value.is_nan(), value.is_infinite(), self) {
                    (true, ..) => "NaN".to_owned(),
                    (_, true, _) => if *value < 0.0 { "-Infinity" } else { "Infinity" }.to_owned(),
                    (.., Kind::Real) => format!("{:?}", *value as f32),
                    _ => format!("{value:?}"),
                };
                format!("CAST('{text}' AS {})", self.sql())
            }
            (Kind::Blob, Cell::Bytes(bytes)) => format!("X'{}'", hex(bytes)),
            (Kind::Uuid, Cell::Bytes(bytes)) => format!("CAST('{}' AS UUID)", hex(bytes)),
            (_, Cell::Bytes(bytes)) => format!("'{}'", String::from_utf8_lossy(bytes).replace('\'', "''")),
            (_, Cell::List(cells)) => {
                let element = if self == Kind::Numbers { Kind::BigInt } else { Kind::Text };
                let literals: Vec<String> = cells.iter().map(|cell| element.literal(cell)).collect();
                format!("[{}]", literals.join(", "))
            }
        }
    }

    /// Values as Arrow hands them in.
    pub(super) fn array<'a>(self, cells: impl Iterator<Item = &'a Cell>) -> ArrayRef {
        let int = |cell: &Cell| if let Cell::Int(value) = cell { Some(*value) } else { None };
        let float = |cell: &Cell| if let Cell::Float(value) = cell { Some(*value) } else { None };
        let bytes = |cell: &Cell| if let Cell::Bytes(value) = cell { Some(value.clone()) } else { None };
        let text = |cell: &Cell| bytes(cell).map(|bytes| String::from_utf8(bytes).unwrap());
        match self {
            Kind::Boolean => Arc::new(cells.map(|cell| int(cell).map(|value| value == 1)).collect::<BooleanArray>()),
            Kind::TinyInt => Arc::new(cells.map(|cell| int(cell).map(|value| value as i8)).collect::<Int8Array>()),
            Kind::Integer => Arc::new(cells.map(|cell| int(cell).map(|value| value as i32)).collect::<Int32Array>()),
            Kind::BigInt => Arc::new(cells.map(|cell| int(cell).map(|value| value as i64)).collect::<Int64Array>()),
            Kind::UBigInt => Arc::new(cells.map(|cell| int(cell).map(|value| value as u64)).collect::<UInt64Array>()),
            Kind::Real => Arc::new(cells.map(|cell| float(cell).map(|value| value as f32)).collect::<Float32Array>()),
            Kind::Double => Arc::new(cells.map(float).collect::<Float64Array>()),
            Kind::DecimalOf7 | Kind::DecimalOf15 | Kind::DecimalOf38 => {
                let precision = match self {
                    Kind::DecimalOf7 => 7,
                    Kind::DecimalOf15 => 15,
                    _ => 38,
                };
                let array = cells.map(int).collect::<Decimal128Array>();
                Arc::new(array.with_precision_and_scale(precision, self.scale() as i8).unwrap())
            }
            Kind::Date => Arc::new(cells.map(|cell| int(cell).map(|value| value as i32)).collect::<Date32Array>()),
            Kind::Timestamp => {
                Arc::new(cells.map(|cell| int(cell).map(|value| value as i64)).collect::<TimestampMicrosecondArray>())
            }
            Kind::Text => Arc::new(cells.map(text).collect::<StringArray>()),
            Kind::Blob => Arc::new(cells.map(bytes).collect::<BinaryArray>()),
            Kind::Uuid => {
                let text =
                    |cell: &Cell| bytes(cell).map(|bytes| bytes.iter().map(|byte| format!("{byte:02x}")).collect());
                Arc::new(cells.map(text).collect::<Vec<Option<String>>>().into_iter().collect::<StringArray>())
            }
            Kind::Numbers => {
                let mut builder = ListBuilder::new(Int64Builder::new());
                for cell in cells {
                    if let Cell::List(elements) = cell {
                        elements
                            .iter()
                            .for_each(|one| builder.values().append_option(int(one).map(|value| value as i64)));
                    }
                    builder.append(!cell.is_null());
                }
                Arc::new(builder.finish())
            }
            Kind::Words => {
                let mut builder = ListBuilder::new(StringBuilder::new());
                for cell in cells {
                    if let Cell::List(elements) = cell {
                        elements.iter().for_each(|one| builder.values().append_option(text(one)));
                    }
                    builder.append(!cell.is_null());
                }
                Arc::new(builder.finish())
            }
        }
    }
}

/// How a number becomes a float or a text: another style for each batch.
#[derive(Clone, Copy, Debug)]
pub(super) enum Style {
    /// Prices; names.
    Plain,
    /// Whole numbers; addresses with much in common.
    Long,
    /// Any bits; short and empty texts.
    Odd,
}

impl Style {
    pub(super) fn random(random: &mut SmallRng) -> Style {
        [Style::Plain, Style::Long, Style::Odd][random.random_range(0..3)]
    }

    fn float(self, number: i64) -> f64 {
        const SPECIAL: [f64; 8] = [f64::NAN, -0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY, 5e-324, f64::MAX, 1.0 / 3.0];
        match self {
            Style::Plain => number as f64 / 100.0,
            Style::Long => number as f64,
            Style::Odd if number % 5 == 0 => SPECIAL[(number / 5).rem_euclid(8) as usize],
            Style::Odd => f64::from_bits(number.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15)),
        }
    }

    fn text(self, number: i64) -> String {
        match self {
            Style::Plain => format!("name {number}"),
            Style::Long => format!("http://example.org/päge/{}/it's {number}", number.rem_euclid(10)),
            Style::Odd if number % 3 == 0 => String::new(),
            Style::Odd if number % 50 == 1 => "日本 🦀 ".repeat(60),
            Style::Odd => char::from(b'a' + number.rem_euclid(20) as u8).to_string(),
        }
    }
}
