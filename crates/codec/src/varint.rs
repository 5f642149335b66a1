//! Numbers of seven bits a byte, lowest first, the high bit set on all but the last (LEB128).

use crate::Result;
use crate::node::Cursor;

/// Appends `value`.
pub(crate) fn write_varint(mut value: u128, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// The next number; one that does not fit 128 bits is an error.
pub(crate) fn read_varint(cursor: &mut Cursor<'_>, what: &str) -> Result<u128> {
    let mut value = 0u128;
    for shift in (0..128).step_by(7) {
        let byte = cursor.u8(what)?;
        let bits = u128::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            break;
        }
        value |= bits << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(cursor.damaged(format!("{what} has more than 128 bits")))
}

/// Signed numbers near zero as unsigned numbers near zero: 0, -1, 1, -2 become 0, 1, 2, 3.
pub(crate) fn zigzag(value: i128) -> u128 {
    ((value << 1) ^ (value >> 127)) as u128
}

/// The inverse of [`zigzag`].
pub(crate) fn unzigzag(value: u128) -> i128 {
    (value >> 1) as i128 ^ -((value & 1) as i128)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extremes_come_back() {
        for value in [0, 1, -1, 63, 64, -64, i64::MIN.into(), i128::MAX, i128::MIN] {
            let mut bytes = Vec::new();
            write_varint(zigzag(value), &mut bytes);
            let mut cursor = Cursor { place: "test", bytes: &bytes, level: 0 };
            assert_eq!(unzigzag(read_varint(&mut cursor, "number").unwrap()), value);
            cursor.finish().unwrap();
        }
        assert!(read_varint(&mut Cursor { place: "test", bytes: &[0xff; 20], level: 0 }, "number").is_err());
    }
}
