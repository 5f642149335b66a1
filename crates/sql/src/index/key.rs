//! How values are written in the keys of an index (docs/format/tree.md).

use sinter_codec::{Scalar, Values};
use sinter_exec::LogicalType;

/// In front of a NULL, behind which nothing follows, and of a value.
const NULL: u8 = 0;
const VALUE: u8 = 1;

/// Behind a zero byte of a text, and behind the zero byte that ends one.
const ZERO_FOLLOWS: u8 = 0xff;
const END_FOLLOWS: u8 = 0;

/// Bytes of a row id.
pub(super) const ROW_ID_BYTES: usize = size_of::<u64>();

/// How the values of a column are written, so that their bytes are ordered as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyForm {
    /// Whole numbers of up to 64 bits: big-endian, the sign's bit flipped.
    Signed,
    /// Of 64 bits without sign: big-endian.
    Unsigned,
    /// As `Signed`, of 128 bits.
    Wide,
    /// As 64 bits, which are all inverted where the number is negative, and else the sign's bit. There is one zero, and one
    /// NaN, behind all numbers.
    Float,
    /// The bytes, behind each zero a 255; at the end two zeros.
    Bytes,
}

/// Whether values of a type can be in an index.
pub(crate) fn can_be_key(ty: &LogicalType) -> bool {
    KeyForm::of(ty).is_some()
}

impl KeyForm {
    /// `None` where values of the type cannot be in an index.
    pub(super) fn of(ty: &LogicalType) -> Option<KeyForm> {
        Some(match ty {
            LogicalType::UInt64 => KeyForm::Unsigned,
            LogicalType::Decimal { precision: 19.., .. } | LogicalType::Uuid => KeyForm::Wide,
            LogicalType::Float32 | LogicalType::Float64 => KeyForm::Float,
            LogicalType::Utf8 | LogicalType::Binary => KeyForm::Bytes,
            LogicalType::Interval | LogicalType::List(_) | LogicalType::Struct(_) => return None,
            _ => KeyForm::Signed,
        })
    }

    /// Appends the value of a row; `values` are of a type that is written so.
    pub(super) fn push(self, values: Values<'_>, row: usize, key: &mut Vec<u8>) {
        key.push(VALUE);
        match values {
            Values::U8(values) => self.push_whole(values[row].into(), key),
            Values::U16(values) => self.push_whole(values[row].into(), key),
            Values::U32(values) => self.push_whole(values[row].into(), key),
            Values::U64(values) => self.push_whole(values[row].into(), key),
            Values::I8(values) => self.push_whole(values[row].into(), key),
            Values::I16(values) => self.push_whole(values[row].into(), key),
            Values::I32(values) => self.push_whole(values[row].into(), key),
            Values::I64(values) => self.push_whole(values[row].into(), key),
            Values::I128(values) => self.push_whole(values[row], key),
            Values::F32(values) => push_float(values[row].into(), key),
            Values::F64(values) => push_float(values[row], key),
            Values::Bytes(view) => push_bytes(view.get(row), key),
        }
    }

    /// Appends a NULL.
    pub(super) fn push_null(key: &mut Vec<u8>) {
        key.push(NULL);
    }

    /// Appends what is before all values, and behind NULL.
    pub(super) fn push_any(key: &mut Vec<u8>) {
        key.push(VALUE);
    }

    /// Appends a constant; false where no value of the column is equal to it, and nothing is said of the order.
    pub(super) fn push_constant(self, value: &Scalar, key: &mut Vec<u8>) -> bool {
        match (self, value) {
            (KeyForm::Signed, Scalar::Int(value)) if i64::try_from(*value).is_err() => return false,
            (KeyForm::Unsigned, Scalar::Int(value)) if u64::try_from(*value).is_err() => return false,
            (KeyForm::Signed | KeyForm::Unsigned | KeyForm::Wide, Scalar::Int(value)) => {
                key.push(VALUE);
                self.push_whole(*value, key);
            }
            (KeyForm::Float, Scalar::Float(value)) => {
                key.push(VALUE);
                push_float(*value, key);
            }
            (KeyForm::Bytes, Scalar::Bytes(value)) => {
                key.push(VALUE);
                push_bytes(value, key);
            }
            _ => return false,
        }
        true
    }

    fn push_whole(self, value: i128, key: &mut Vec<u8>) {
        match self {
            KeyForm::Unsigned => push_number(value as u64, key),
            KeyForm::Wide => push_wide((value ^ i128::MIN).cast_unsigned(), key),
            _ => push_number((value as i64 ^ i64::MIN).cast_unsigned(), key),
        }
    }
}

fn push_float(value: f64, key: &mut Vec<u8>) {
    let value = match value {
        value if value.is_nan() => f64::NAN.abs(),
        // There are two.
        value => value + 0.0,
    };
    let bits = value.to_bits();
    let ordered = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
    push_number(ordered, key);
}

/// Appends bytes so that no others begin with them, in their order.
pub(crate) fn push_bytes(value: &[u8], key: &mut Vec<u8>) {
    for part in value.split_inclusive(|&byte| byte == 0) {
        key.extend_from_slice(part);
        if part.ends_with(&[0]) {
            key.push(ZERO_FOLLOWS);
        }
    }
    key.extend([0, END_FOLLOWS]);
}

/// Appends to `value` what [`push_bytes`] wrote at the start of `key`, and returns what is behind it; `None` where it has no
/// end.
pub(crate) fn split_bytes<'k>(key: &'k [u8], value: &mut Vec<u8>) -> Option<&'k [u8]> {
    let mut rest = key;
    loop {
        let zero = rest.iter().position(|&byte| byte == 0)?;
        value.extend_from_slice(&rest[..zero]);
        let (follows, behind) = rest[zero + 1..].split_first()?;
        match *follows {
            END_FOLLOWS => return Some(behind),
            ZERO_FOLLOWS => value.push(0),
            _ => return None,
        }
        rest = behind;
    }
}

/// In the order of their bytes, numbers are as they are in their own.
#[expect(clippy::big_endian_bytes, reason = "keys are compared byte by byte")]
pub(crate) fn push_number(value: u64, key: &mut Vec<u8>) {
    key.extend(value.to_be_bytes());
}

/// The number that [`push_number`] wrote.
#[expect(clippy::big_endian_bytes, reason = "as they are written")]
pub(crate) fn number_of(bytes: [u8; 8]) -> u64 {
    u64::from_be_bytes(bytes)
}

#[expect(clippy::big_endian_bytes, reason = "keys are compared byte by byte")]
fn push_wide(value: u128, key: &mut Vec<u8>) {
    key.extend(value.to_be_bytes());
}

/// The id of a row as keys and records of indexes have it.
#[expect(clippy::big_endian_bytes, reason = "keys are compared byte by byte")]
pub(crate) fn row_id_bytes(row_id: u64) -> [u8; ROW_ID_BYTES] {
    row_id.to_be_bytes()
}

/// The id that [`row_id_bytes`] wrote.
pub(crate) fn row_id_of(bytes: [u8; ROW_ID_BYTES]) -> u64 {
    number_of(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(form: KeyForm, values: &[Scalar]) -> Vec<Vec<u8>> {
        let key = |value: &Scalar| {
            let mut key = Vec::new();
            assert!(form.push_constant(value, &mut key), "{form:?}: {value:?}");
            key
        };
        values.iter().map(key).collect()
    }

    #[test]
    fn keys_are_ordered_as_their_values_are() {
        let whole = |values: &[i128]| values.iter().map(|&value| Scalar::Int(value)).collect::<Vec<_>>();
        let float = |values: &[f64]| values.iter().map(|&value| Scalar::Float(value)).collect::<Vec<_>>();
        let bytes = |values: &[&[u8]]| values.iter().map(|value| Scalar::Bytes(value.to_vec())).collect::<Vec<_>>();
        let small = [i64::MIN.into(), -256, -1, 0, 1, 255, 256, i64::MAX.into()];
        let texts: [&[u8]; 9] = [b"", b"\0", b"\0\0", b"\0\xff", b"a", b"a\0", b"a\0\xff", b"a\x01", b"ab"];
        for (form, values) in [
            (KeyForm::Signed, whole(&small)),
            (KeyForm::Unsigned, whole(&[0, 1, 256, i64::MAX.into(), u64::MAX.into()])),
            (KeyForm::Wide, whole(&[i128::MIN, -1, 0, 1, i128::MAX])),
            (KeyForm::Float, float(&[f64::NEG_INFINITY, -1.5, -1e-300, 0.0, 1e-300, 2.0, f64::INFINITY, f64::NAN])),
            (KeyForm::Bytes, bytes(&texts)),
        ] {
            let keys = keys(form, &values);
            assert!(keys.is_sorted_by(|one, next| one < next), "{form:?}: {keys:?}");
            // No key begins with another, so that what follows in a key of several columns is not compared with it.
            assert!(keys.windows(2).all(|pair| !pair[1].starts_with(&pair[0])), "{form:?}: {keys:?}");
        }
        let zeros = keys(KeyForm::Float, &float(&[0.0, -0.0]));
        assert_eq!(zeros[0], zeros[1]);
        let nans = keys(KeyForm::Float, &float(&[f64::NAN, -f64::NAN]));
        assert_eq!(nans[0], nans[1]);
    }

    #[test]
    fn constants_are_written_as_values_are() {
        let mut key = Vec::new();
        KeyForm::Signed.push(Values::I32(&[7, -7]), 1, &mut key);
        assert_eq!(vec![key], keys(KeyForm::Signed, &[Scalar::Int(-7)]));
        assert!(!KeyForm::Signed.push_constant(&Scalar::Int(1 << 64), &mut Vec::new()));
        assert!(!KeyForm::Unsigned.push_constant(&Scalar::Int(-1), &mut Vec::new()));
        assert!(!KeyForm::Bytes.push_constant(&Scalar::Int(1), &mut Vec::new()));
    }
}
