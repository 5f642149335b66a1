//! UUIDs as 128-bit numbers: big-endian, with the top bit flipped so that the order of the bytes is the order of the
//! signed numbers.

/// The number that stands for 16 bytes.
#[expect(clippy::big_endian_bytes, reason = "byte order is what makes the numbers order like the bytes")]
pub(crate) fn pack(bytes: [u8; 16]) -> i128 {
    (u128::from_be_bytes(bytes) ^ 1 << 127) as i128
}

/// The 16 bytes that a number stands for.
#[expect(clippy::big_endian_bytes, reason = "byte order is what makes the numbers order like the bytes")]
pub(crate) fn unpack(packed: i128) -> [u8; 16] {
    (packed as u128 ^ 1 << 127).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept() {
        let (low, high) = ([0x7f; 16], [0x80; 16]);
        assert!(pack(low) < pack(high));
        assert_eq!(unpack(pack(low)), low);
        assert_eq!(unpack(pack(high)), high);
    }
}
