//! Fewer than 1024 small numbers, packed one after the other: the last vector of a block, where full lanes would waste room.
//!
//! Number `i` takes bits `i * width .. (i + 1) * width`, lowest bit of the first byte first.

/// Bytes that `count` numbers of `width` bits take.
pub(crate) fn stream_bytes(count: usize, width: usize) -> usize {
    (count * width).div_ceil(8)
}

/// Appends numbers below `2^width`, `width` in `0..=64`.
pub(crate) fn write_stream(numbers: impl ExactSizeIterator<Item = u64>, width: usize, out: &mut Vec<u8>) {
    let start = out.len();
    let end = start + stream_bytes(numbers.len(), width);
    out.resize(end + size_of::<u64>(), 0);
    let (mut word_at, mut pending, mut pending_bits) = (start, 0u128, 0);
    for number in numbers {
        pending |= u128::from(number) << pending_bits;
        pending_bits += width;
        // Written whether it is full or not: no branch depends on the width.
        out[word_at..][..size_of::<u64>()].copy_from_slice(&(pending as u64).to_le_bytes());
        let full_words = pending_bits / 64;
        word_at += size_of::<u64>() * full_words;
        pending >>= 64 * full_words;
        pending_bits %= 64;
    }
    out[word_at..][..size_of::<u64>()].copy_from_slice(&(pending as u64).to_le_bytes());
    out.truncate(end);
}

/// The number at `index`, which must lie in `packed`; `width` is in `0..=64`.
#[inline]
pub(crate) fn read_one(packed: &[u8], width: usize, index: usize) -> u64 {
    let (first, shift) = (index * width / 8, index * width % 8);
    let mut window = [0; 16];
    match packed.get(first..first + 16) {
        Some(bytes) => window.copy_from_slice(bytes),
        None => window[..packed.len() - first].copy_from_slice(&packed[first..]),
    }
    let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
    (u128::from_le_bytes(window) >> shift) as u64 & mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_comes_back() {
        for width in 0..=64 {
            let mask = if width == 64 { u64::MAX } else { (1u64 << width) - 1 };
            let numbers: Vec<u64> = (0..77u64).map(|i| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) & mask).collect();
            let mut packed = Vec::new();
            write_stream(numbers.iter().copied(), width, &mut packed);
            assert_eq!(packed.len(), stream_bytes(numbers.len(), width));
            assert!((0..77).all(|index| read_one(&packed, width, index) == numbers[index]), "width {width}");
        }
    }
}
