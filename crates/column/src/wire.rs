//! How catalog entries, table roots and log records are written: little-endian numbers, counted strings.
//!
//! docs/format/table.md lists who writes what in which order. Reading checks every length against what is left, so any
//! bytes lead to an error and never to a large allocation.

use crate::{Error, Result};
use sinter_codec::{BlockStats, Scalar};
use sinter_exec::{Field, LogicalType, TimeUnit};
use std::sync::Arc;

/// Appends to a byte vector.
#[derive(Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// What was written.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// One byte.
    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// Four bytes.
    pub fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Eight bytes.
    pub fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// A length or count.
    ///
    /// # Panics
    /// Past 4 Gi: nothing that we count gets there.
    pub fn count(&mut self, value: usize) {
        self.u32(u32::try_from(value).expect("counts in tables and records fit 32 bits"));
    }

    /// A count of bytes, then the bytes.
    pub fn bytes(&mut self, value: &[u8]) {
        self.count(value.len());
        self.bytes.extend_from_slice(value);
    }

    /// UTF-8 text.
    pub fn text(&mut self, value: &str) {
        self.bytes(value.as_bytes());
    }

    /// 0, or 1 and the text.
    pub fn optional_text(&mut self, value: Option<&str>) {
        self.u8(u8::from(value.is_some()));
        if let Some(value) = value {
            self.text(value);
        }
    }

    /// A tag, then the value in 16 or 8 bytes or counted.
    pub fn scalar(&mut self, value: &Scalar) {
        match value {
            Scalar::Null => self.u8(0),
            Scalar::Int(value) => {
                self.u8(1);
                self.bytes.extend_from_slice(&value.to_le_bytes());
            }
            Scalar::Float(value) => {
                self.u8(2);
                self.u64(value.to_bits());
            }
            Scalar::Bytes(value) => {
                self.u8(3);
                self.bytes(value);
            }
        }
    }

    /// The statistics of a segment.
    pub fn stats(&mut self, stats: &BlockStats) {
        self.u32(stats.value_count as u32);
        self.u32(stats.null_count as u32);
        self.u8(u8::from(stats.bounds_exact)
            | u8::from(stats.has_nan) << 1
            | u8::from(stats.sorted) << 2
            | u8::from(stats.sum.is_some()) << 3);
        self.scalar(&stats.min);
        self.scalar(&stats.max);
        if let Some(sum) = stats.sum {
            self.bytes.extend_from_slice(&sum.to_le_bytes());
        }
        self.u32(stats.distinct_estimate as u32);
        self.u64(stats.plain_bytes as u64);
    }

    /// A type: its tag, then what the tag asks for. Readers take no type nested deeper than [`LogicalType::DEPTH_MAX`];
    /// [`crate::TableSchema::validate`] is there to be asked before.
    pub fn logical_type(&mut self, ty: &LogicalType) {
        let unit = |unit: &TimeUnit| match unit {
            TimeUnit::Microsecond => 6,
            TimeUnit::Nanosecond => 9,
        };
        match ty {
            LogicalType::Boolean => self.u8(1),
            LogicalType::Int8 => self.u8(2),
            LogicalType::Int16 => self.u8(3),
            LogicalType::Int32 => self.u8(4),
            LogicalType::Int64 => self.u8(5),
            LogicalType::UInt8 => self.u8(6),
            LogicalType::UInt16 => self.u8(7),
            LogicalType::UInt32 => self.u8(8),
            LogicalType::UInt64 => self.u8(9),
            LogicalType::Float32 => self.u8(10),
            LogicalType::Float64 => self.u8(11),
            LogicalType::Decimal { precision, scale } => {
                self.u8(12);
                self.u8(*precision);
                self.u8(scale.cast_unsigned());
            }
            LogicalType::Date => self.u8(13),
            LogicalType::Time(precision) => {
                self.u8(14);
                self.u8(unit(precision));
            }
            LogicalType::Timestamp(precision, zone) => {
                self.u8(15);
                self.u8(unit(precision));
                self.optional_text(zone.as_deref());
            }
            LogicalType::Interval => self.u8(16),
            LogicalType::Utf8 => self.u8(17),
            LogicalType::Binary => self.u8(18),
            LogicalType::Uuid => self.u8(19),
            LogicalType::List(field) => {
                self.u8(20);
                self.field(field);
            }
            LogicalType::Struct(fields) => {
                self.u8(21);
                self.count(fields.len());
                for field in fields.iter() {
                    self.field(field);
                }
            }
        }
    }

    fn field(&mut self, field: &Field) {
        self.text(&field.name);
        self.u8(u8::from(field.nullable));
        self.logical_type(&field.ty);
    }
}

/// Reads what [`Writer`] wrote, trusting nothing.
#[derive(Debug)]
pub struct Reader<'a> {
    what: &'a str,
    rest: &'a [u8],
    total: usize,
}

impl<'a> Reader<'a> {
    /// A reader over `bytes`; `what` names them in errors.
    pub fn new(what: &'a str, bytes: &'a [u8]) -> Reader<'a> {
        Reader { what, rest: bytes, total: bytes.len() }
    }

    /// An error at the current place.
    pub fn damaged(&self, what: impl Into<String>) -> Error {
        let at = self.total - self.rest.len();
        Error::Damaged { table: self.what.to_owned(), what: format!("byte {at}: {}", what.into()) }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        match self.rest.split_at_checked(count) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => Err(self.damaged(format!("{count} bytes wanted, {} left", self.rest.len()))),
        }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N)?);
        Ok(bytes)
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    /// Four bytes.
    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Eight bytes.
    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// A count of things that take at least one byte each: more than what is left is damage.
    pub fn count(&mut self) -> Result<usize> {
        let count = self.u32()? as usize;
        if count > self.rest.len() {
            return Err(self.damaged(format!("count {count} exceeds the {} bytes left", self.rest.len())));
        }
        Ok(count)
    }

    /// Counted bytes.
    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let count = self.count()?;
        self.take(count)
    }

    /// UTF-8 text.
    pub fn text(&mut self) -> Result<String> {
        let bytes = self.bytes()?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(error) => Err(self.damaged(format!("text is not UTF-8: {error}"))),
        }
    }

    /// A yes or no.
    pub fn flag(&mut self) -> Result<bool> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.damaged(format!("flag {other} is neither 0 nor 1"))),
        }
    }

    /// 0, or 1 and the text.
    pub fn optional_text(&mut self) -> Result<Option<String>> {
        Ok(if self.flag()? { Some(self.text()?) } else { None })
    }

    /// See [`Writer::scalar`].
    pub fn scalar(&mut self) -> Result<Scalar> {
        Ok(match self.u8()? {
            0 => Scalar::Null,
            1 => Scalar::Int(i128::from_le_bytes(self.array()?)),
            2 => Scalar::Float(f64::from_bits(self.u64()?)),
            3 => Scalar::Bytes(self.bytes()?.to_vec()),
            other => return Err(self.damaged(format!("scalar tag {other} is unknown"))),
        })
    }

    /// See [`Writer::stats`].
    pub fn stats(&mut self) -> Result<BlockStats> {
        let value_count = self.u32()? as usize;
        let null_count = self.u32()? as usize;
        let flags = self.u8()?;
        let (min, max) = (self.scalar()?, self.scalar()?);
        let sum = if flags & 8 != 0 { Some(i128::from_le_bytes(self.array()?)) } else { None };
        Ok(BlockStats {
            value_count,
            null_count,
            min,
            max,
            bounds_exact: flags & 1 != 0,
            has_nan: flags & 2 != 0,
            sorted: flags & 4 != 0,
            sum,
            distinct_estimate: self.u32()? as usize,
            plain_bytes: self.u64()? as usize,
        })
    }

    /// See [`Writer::logical_type`].
    pub fn logical_type(&mut self) -> Result<LogicalType> {
        self.type_at_depth(0)
    }

    fn type_at_depth(&mut self, depth: usize) -> Result<LogicalType> {
        if depth > LogicalType::DEPTH_MAX {
            return Err(self.damaged(format!("type nested deeper than {}", LogicalType::DEPTH_MAX)));
        }
        Ok(match self.u8()? {
            1 => LogicalType::Boolean,
            2 => LogicalType::Int8,
            3 => LogicalType::Int16,
            4 => LogicalType::Int32,
            5 => LogicalType::Int64,
            6 => LogicalType::UInt8,
            7 => LogicalType::UInt16,
            8 => LogicalType::UInt32,
            9 => LogicalType::UInt64,
            10 => LogicalType::Float32,
            11 => LogicalType::Float64,
            12 => {
                let (precision, scale) = (self.u8()?, self.u8()?.cast_signed());
                if !(1..=38).contains(&precision) {
                    return Err(self.damaged(format!("decimal precision {precision} is not in 1..38")));
                }
                LogicalType::Decimal { precision, scale }
            }
            13 => LogicalType::Date,
            14 => LogicalType::Time(self.time_unit()?),
            15 => LogicalType::Timestamp(self.time_unit()?, self.optional_text()?.map(Arc::from)),
            16 => LogicalType::Interval,
            17 => LogicalType::Utf8,
            18 => LogicalType::Binary,
            19 => LogicalType::Uuid,
            20 => LogicalType::List(Arc::new(self.field(depth)?)),
            21 => {
                let count = self.count()?;
                LogicalType::Struct((0..count).map(|_| self.field(depth)).collect::<Result<Arc<[Field]>>>()?)
            }
            other => return Err(self.damaged(format!("type tag {other} is unknown; a newer SinterDB wrote it"))),
        })
    }

    fn field(&mut self, depth: usize) -> Result<Field> {
        Ok(Field { name: self.text()?, nullable: self.flag()?, ty: self.type_at_depth(depth + 1)? })
    }

    fn time_unit(&mut self) -> Result<TimeUnit> {
        match self.u8()? {
            6 => Ok(TimeUnit::Microsecond),
            9 => Ok(TimeUnit::Nanosecond),
            other => Err(self.damaged(format!("time unit 10^-{other} s is neither 10^-6 nor 10^-9"))),
        }
    }

    /// Nothing may be left.
    ///
    /// # Errors
    /// [`Error::Damaged`] where bytes follow: what wrote them meant something that we do not know.
    pub fn end(&self) -> Result<()> {
        match self.rest.len() {
            0 => Ok(()),
            left => Err(self.damaged(format!("{left} bytes follow where nothing should"))),
        }
    }
}
