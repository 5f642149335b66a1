//! What keys and values of a tree are, for users and in the catalog's pages.

use super::any_tree::{Key, KeyRef, Kind};
use super::handle::KvKey;
use super::pair::PairShape;
use super::source::{COLUMN_NAMES, column_types};
use crate::{Error, Result};
use sinter_btree::{RecordShape, TreeOptions};
use sinter_codec::{KeyCodec, Scalar, key_codec_by_name, key_codec_by_tag};
use sinter_column::ColumnSchema;
use sinter_column::wire::{Reader, Writer};
use sinter_exec::LogicalType;
use std::fmt;

/// What the keys of a tree are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyType {
    /// Whole numbers from 0 of 32 bits.
    U32,
    /// Whole numbers from 0 of 64 bits.
    U64,
    /// Whole numbers of 64 bits.
    I64,
    /// Bytes, ordered as numbers without sign.
    Bytes,
    /// UTF-8, ordered as its bytes.
    Text,
    /// The values of some columns of a row: of indexes, which nobody but their tables changes.
    Columns,
}

/// What the values of a tree are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueType {
    /// There are none: the keys are all there is.
    Nothing,
    /// Whole numbers from 0 of 32 bits.
    U32,
    /// Whole numbers from 0 of 64 bits.
    U64,
    /// Whole numbers of 64 bits.
    I64,
    /// Floating point numbers of 64 bits.
    F64,
    /// So many bytes each.
    Fixed(u32),
    /// Bytes.
    Bytes,
    /// UTF-8.
    Text,
}

/// In the catalog's pages, and for users.
const KEY_TYPES: [(KeyType, u8, &str); 6] = [
    (KeyType::U32, 1, "u32"),
    (KeyType::U64, 2, "u64"),
    (KeyType::I64, 3, "i64"),
    (KeyType::Bytes, 4, "bytes"),
    (KeyType::Text, 5, "str"),
    (KeyType::Columns, 6, "columns"),
];

/// As [`KEY_TYPES`]; `Fixed` is there without its width.
const VALUE_TYPES: [(ValueType, u8, &str); 8] = [
    (ValueType::Nothing, 0, "none"),
    (ValueType::U32, 1, "u32"),
    (ValueType::U64, 2, "u64"),
    (ValueType::I64, 3, "i64"),
    (ValueType::Bytes, 4, "bytes"),
    (ValueType::Text, 5, "str"),
    (ValueType::F64, 6, "f64"),
    (ValueType::Fixed(0), 7, "fixed"),
];

impl KeyType {
    /// The type that users call so.
    ///
    /// # Errors
    /// [`Error::Sql`], which lists them.
    pub fn by_name(name: &str) -> Result<KeyType> {
        let for_users = || KEY_TYPES.iter().filter(|(ty, ..)| *ty != KeyType::Columns);
        let found = for_users().find(|(_, _, known)| *known == name).map(|(ty, ..)| *ty);
        found.ok_or_else(|| {
            let known: Vec<&str> = for_users().map(|(.., name)| *name).collect();
            Error::Sql(format!("there are no keys of type '{name}'; there are {}", known.join(", ")))
        })
    }

    fn tag(self) -> u8 {
        KEY_TYPES.iter().find(|(ty, ..)| *ty == self).map_or(0, |(_, tag, _)| *tag)
    }

    pub(super) fn kind(self) -> Kind {
        match self {
            KeyType::U32 => Kind::U32,
            KeyType::U64 | KeyType::I64 => Kind::U64,
            KeyType::Bytes | KeyType::Text | KeyType::Columns => Kind::Bytes,
        }
    }

    /// The key as the tree has it.
    ///
    /// # Errors
    /// [`Error::Data`]: it is none of this type.
    #[inline]
    pub(super) fn encode(self, key: KvKey<'_>) -> Result<KeyRef<'_>> {
        match (self, key) {
            (KeyType::U32, KvKey::Int(key)) => u32::try_from(key).map(KeyRef::U32).ok(),
            (KeyType::U64, KvKey::Int(key)) => u64::try_from(key).map(KeyRef::U64).ok(),
            // In the order of numbers without sign.
            (KeyType::I64, KvKey::Int(key)) => i64::try_from(key).map(|key| KeyRef::U64(flipped(key))).ok(),
            (KeyType::Bytes, KvKey::Bytes(key)) => Some(KeyRef::Bytes(key)),
            (KeyType::Text, KvKey::Text(key)) => Some(KeyRef::Bytes(key.as_bytes())),
            _ => None,
        }
        .ok_or_else(|| Error::Data(format!("{key} is no key of type {self}")))
    }

    /// The key as users have it.
    pub(super) fn decode(self, key: KeyRef<'_>) -> KvKey<'_> {
        match (self, key) {
            (KeyType::I64, KeyRef::U64(key)) => KvKey::Int(self.signed(key).into()),
            (KeyType::Text, KeyRef::Bytes(key)) => match std::str::from_utf8(key) {
                Ok(key) => KvKey::Text(key),
                Err(_) => KvKey::Bytes(key),
            },
            (_, KeyRef::U32(key)) => KvKey::Int(key.into()),
            (_, KeyRef::U64(key)) => KvKey::Int(key.into()),
            (_, KeyRef::Bytes(key)) => KvKey::Bytes(key),
        }
    }
}

impl KeyType {
    /// Of [`KeyType::I64`]: what the tree's key stands for.
    pub(super) fn signed(self, key: u64) -> i64 {
        debug_assert_eq!(self, KeyType::I64);
        (key ^ SIGN).cast_signed()
    }

    /// Whether keys are bytes to the tree.
    pub(super) fn is_bytes(self) -> bool {
        self.kind() == Kind::Bytes
    }

    /// The key as zone maps have it.
    pub(super) fn scalar(self, key: KeyRef<'_>) -> Scalar {
        match self.decode(key) {
            KvKey::Int(key) => Scalar::Int(key),
            KvKey::Bytes(key) => Scalar::Bytes(key.to_vec()),
            KvKey::Text(key) => Scalar::Bytes(key.as_bytes().to_vec()),
        }
    }
}

const SIGN: u64 = 1 << 63;

fn flipped(key: i64) -> u64 {
    key.cast_unsigned() ^ SIGN
}

impl fmt::Display for KeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(KEY_TYPES.iter().find(|(ty, ..)| ty == self).map_or("", |(.., name)| name))
    }
}

impl ValueType {
    /// The type that users call so: `fixed(16)` are sixteen bytes each.
    ///
    /// # Errors
    /// [`Error::Sql`], which lists them.
    pub fn by_name(name: &str) -> Result<ValueType> {
        let width = name.strip_prefix("fixed(").and_then(|rest| rest.strip_suffix(')')).map(str::parse);
        if let Some(Ok(width)) = width {
            return Ok(ValueType::Fixed(width));
        }
        let found = VALUE_TYPES.iter().find(|(ty, _, known)| *known == name && !matches!(ty, ValueType::Fixed(_)));
        found.map(|(ty, ..)| *ty).ok_or_else(|| {
            let known: Vec<&str> = VALUE_TYPES.iter().map(|(.., name)| *name).filter(|name| *name != "fixed").collect();
            Error::Sql(format!("there are no values of type '{name}'; there are {}, fixed(BYTES)", known.join(", ")))
        })
    }

    fn tag(self) -> u8 {
        match self {
            ValueType::Fixed(_) => 7,
            other => VALUE_TYPES.iter().find(|(ty, ..)| *ty == other).map_or(0, |(_, tag, _)| *tag),
        }
    }

    /// Whether they are numbers.
    pub(super) fn is_number(self) -> bool {
        matches!(self, ValueType::U32 | ValueType::U64 | ValueType::I64 | ValueType::F64)
    }

    /// Bytes of each, where all have as many.
    pub(super) fn width(self) -> Option<usize> {
        match self.records() {
            RecordShape::Fixed(width) => Some(width),
            RecordShape::Variable => None,
        }
    }

    fn records(self) -> RecordShape {
        match self {
            ValueType::Nothing => RecordShape::Fixed(0),
            ValueType::U32 => RecordShape::Fixed(4),
            ValueType::U64 | ValueType::I64 | ValueType::F64 => RecordShape::Fixed(8),
            ValueType::Fixed(width) => RecordShape::Fixed(width as usize),
            ValueType::Bytes | ValueType::Text => RecordShape::Variable,
        }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueType::Fixed(width) => write!(f, "fixed({width})"),
            other => f.write_str(VALUE_TYPES.iter().find(|(ty, ..)| ty == other).map_or("", |(.., name)| name)),
        }
    }
}

/// How a tree is made, where there is none of that name; and what it is to be, where there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KvOptions {
    /// `u32`, if nothing is said.
    pub key: Option<KeyType>,
    /// `bytes`, if nothing is said.
    pub value: Option<ValueType>,
    /// How whole numbers are written; chosen, if nothing is said.
    pub codec: Option<KeyCodec>,
    /// Whether a key has any number of values, in order, each once; one, if nothing is said.
    pub duplicates: Option<bool>,
}

impl KvOptions {
    /// The same with the codec that users call so; `auto` is to choose one.
    ///
    /// # Errors
    /// [`Error::Sql`], which lists them.
    pub fn with_codec(self, name: &str) -> Result<KvOptions> {
        let codec = match name {
            "auto" => None,
            // Of its three forms, the one that keeps keys in the fewest bytes.
            "bp128" => Some(KeyCodec::Bp128D1),
            name => Some(key_codec_by_name(name).map_err(|error| Error::Sql(error.to_string()))?),
        };
        Ok(KvOptions { codec, ..self })
    }

    /// Those of a tree with these columns; `value_bytes` is how long values of bytes are, where all are as long.
    ///
    /// # Errors
    /// [`Error::Sql`]: they are no columns of a tree.
    pub(crate) fn of_columns(columns: &[ColumnSchema], value_bytes: Option<u32>) -> Result<KvOptions> {
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        if names != COLUMN_NAMES && names != COLUMN_NAMES[..1] {
            return Err(Error::Sql(format!(
                "a key-value tree has the columns 'key' and 'value', or 'key' alone; not {}",
                names.join(", ")
            )));
        }
        let key = match &columns[0].ty {
            LogicalType::UInt32 => KeyType::U32,
            LogicalType::UInt64 => KeyType::U64,
            LogicalType::Int64 => KeyType::I64,
            LogicalType::Binary => KeyType::Bytes,
            LogicalType::Utf8 => KeyType::Text,
            other => {
                return Err(Error::Sql(format!(
                    "keys of a tree are INTEGER UNSIGNED, BIGINT UNSIGNED, BIGINT, BLOB or VARCHAR, not {other}"
                )));
            }
        };
        let value = match (columns.get(1).map(|column| &column.ty), value_bytes) {
            (None, None) => ValueType::Nothing,
            (Some(LogicalType::UInt32), None) => ValueType::U32,
            (Some(LogicalType::UInt64), None) => ValueType::U64,
            (Some(LogicalType::Int64), None) => ValueType::I64,
            (Some(LogicalType::Float64), None) => ValueType::F64,
            (Some(LogicalType::Binary), None) => ValueType::Bytes,
            (Some(LogicalType::Binary), Some(bytes)) => ValueType::Fixed(bytes),
            (Some(LogicalType::Utf8), None) => ValueType::Text,
            (_, Some(_)) => return Err(Error::Sql("value_bytes is for values of type BLOB; leave it out".to_owned())),
            (Some(other), None) => {
                return Err(Error::Sql(format!(
                    "values of a tree are INTEGER UNSIGNED, BIGINT UNSIGNED, BIGINT, DOUBLE, BLOB or VARCHAR, not {other}"
                )));
            }
        };
        Ok(KvOptions { key: Some(key), value: Some(value), ..KvOptions::default() })
    }

    /// The shape of a tree that is made so.
    ///
    /// # Errors
    /// [`Error::Sql`]: values would be too long, or there would be none to have several of.
    pub(crate) fn shape(&self) -> Result<KvShape> {
        let (key, value) = (self.key.unwrap_or(KeyType::U32), self.value.unwrap_or(ValueType::Bytes));
        if self.duplicates == Some(true) {
            let what = match (value, self.codec) {
                (ValueType::Nothing, _) => "a key that has no value cannot have several of them".to_owned(),
                (_, Some(_)) => "keys that have several values are written without a codec; leave it out".to_owned(),
                (ValueType::Fixed(width), _) if width > FIXED_BYTES_OF_PAIRS_MAX => {
                    format!("several values of a key have {FIXED_BYTES_OF_PAIRS_MAX} bytes each at most, not {width}")
                }
                _ => return Ok(KvShape { key, value, has_duplicates: true, options: pair_options() }),
            };
            return Err(Error::Sql(what));
        }
        let codec = match key.kind() {
            Kind::U32 | Kind::U64 => self.codec.unwrap_or(KeyCodec::Bp128D1),
            Kind::Bytes => KeyCodec::None,
        };
        let shape = KvShape { key, value, has_duplicates: false, options: TreeOptions::new(codec, value.records()) };
        match shape.options.flaw() {
            None => Ok(shape),
            Some(flaw) => Err(Error::Sql(flaw)),
        }
    }

    /// Whether a tree of this shape is what is asked for.
    ///
    /// # Errors
    /// [`Error::Sql`], which says what it is instead.
    pub(crate) fn check(&self, name: &str, shape: &KvShape) -> Result<()> {
        let KvShape { key, value, has_duplicates, options } = shape;
        let is_other = self.key.is_some_and(|asked| asked != *key)
            || self.value.is_some_and(|asked| asked != *value)
            || self.duplicates.is_some_and(|asked| asked != *has_duplicates)
            || (shape.kind() != Kind::Bytes && self.codec.is_some_and(|asked| asked != options.codec));
        match is_other {
            false => Ok(()),
            true => Err(Error::Sql(format!(
                "'{name}' has keys of type {key} and {}values of type {value}, in codec {}; open it as that, or without types",
                if *has_duplicates { "several " } else { "" },
                options.codec.name()
            ))),
        }
    }
}

/// What a tree's keys and values are, and how it keeps them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KvShape {
    pub(crate) key: KeyType,
    pub(crate) value: ValueType,
    /// Whether a key has any number of values: then the tree has pairs.
    pub(crate) has_duplicates: bool,
    options: TreeOptions,
}

/// How pairs are kept.
fn pair_options() -> TreeOptions {
    TreeOptions::new(KeyCodec::None, RecordShape::Fixed(0))
}

/// Beside a value of so many bytes a pair has place for a key.
const FIXED_BYTES_OF_PAIRS_MAX: u32 = 2000;

/// In the catalog's pages, beside a value's type: keys have any number of values.
const HAS_DUPLICATES: u8 = 0x80;

impl KvShape {
    /// That of an index.
    pub(crate) fn of_index(is_unique: bool) -> KvShape {
        // A row's id is behind the key where others may have the same values.
        let value = if is_unique { ValueType::U64 } else { ValueType::Nothing };
        let options = TreeOptions::new(KeyCodec::None, value.records());
        KvShape { key: KeyType::Columns, value, has_duplicates: false, options }
    }

    /// Whether it is that of an index.
    pub(crate) fn is_index(&self) -> bool {
        self.key == KeyType::Columns
    }

    /// Whether its values may be too long for a leaf, and are kept in an overflow then.
    pub(crate) fn has_overflow(&self) -> bool {
        self.options.records == RecordShape::Variable
    }

    pub(super) fn kind(&self) -> Kind {
        if self.has_duplicates { Kind::Bytes } else { self.key.kind() }
    }

    /// Of a tree whose keys have any number of values.
    pub(super) fn pairs(&self) -> Option<PairShape> {
        self.has_duplicates.then(|| PairShape::new(self.key, self.value))
    }

    pub(super) fn options(&self) -> TreeOptions {
        self.options
    }

    /// The columns that SQL sees: the key, and the value where there are values.
    pub(crate) fn columns(&self) -> Vec<(&'static str, LogicalType)> {
        COLUMN_NAMES.into_iter().zip(column_types(self.key, self.value)).collect()
    }

    /// How whole numbers are written; bytes have no codec.
    pub(crate) fn codec_name(&self) -> &'static str {
        match self.kind() {
            Kind::Bytes => "prefix",
            Kind::U32 | Kind::U64 => self.options.codec.name(),
        }
    }

    /// Appends it as the catalog has it (docs/format/catalog.md).
    pub(crate) fn write(&self, out: &mut Writer) {
        let KvShape { key, value, has_duplicates, options } = self;
        out.u8(key.tag());
        out.u8(value.tag() | if *has_duplicates { HAS_DUPLICATES } else { 0 });
        if let ValueType::Fixed(width) = value {
            out.u32(*width);
        }
        out.u8(options.codec.tag());
        out.u32(options.block_len as u32);
        out.u32(options.leaf_bytes as u32);
    }

    /// Reads what [`KvShape::write`] wrote.
    pub(crate) fn read(input: &mut Reader<'_>) -> Result<KvShape> {
        let (key_tag, value_tag) = (input.u8()?, input.u8()?);
        let (has_duplicates, value_tag) = (value_tag & HAS_DUPLICATES != 0, value_tag & !HAS_DUPLICATES);
        let key = KEY_TYPES.iter().find(|(_, tag, _)| *tag == key_tag).map(|(ty, ..)| *ty);
        let value = VALUE_TYPES.iter().find(|(_, tag, _)| *tag == value_tag).map(|(ty, ..)| *ty);
        let (Some(key), Some(mut value)) = (key, value) else {
            let what = format!("a tree of keys {key_tag} and values {value_tag} is unknown; a newer SinterDB wrote it");
            return Err(input.damaged(what).into());
        };
        if let ValueType::Fixed(width) = &mut value {
            *width = input.u32()?;
        }
        let codec_tag = input.u8()?;
        let Some(codec) = key_codec_by_tag(codec_tag) else {
            return Err(input.damaged(format!("key codec {codec_tag} is unknown")).into());
        };
        let (block_len, leaf_bytes) = (input.u32()? as usize, input.u32()? as usize);
        let records = if has_duplicates { pair_options().records } else { value.records() };
        let options = TreeOptions { codec, block_len, records, leaf_bytes };
        match options.flaw() {
            None => Ok(KvShape { key, value, has_duplicates, options }),
            Some(flaw) => Err(input.damaged(flaw).into()),
        }
    }
}

impl Key {
    /// The key as users have it.
    pub(super) fn decoded(&self, ty: KeyType) -> KvKey<'_> {
        ty.decode(self.lent())
    }
}
