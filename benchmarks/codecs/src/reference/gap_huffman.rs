//! Semi-static Huffman codes of gaps, as inverted files have them: the `shuff` that the X100 paper compares with (after
//! Moffat and Turpin; Witten, Moffat and Bell, "Managing Gigabytes", chapter 2).
//!
//! A first pass counts, a second one writes. Small numbers are symbols of their own, greater ones share a symbol with
//! those of their bit length, and their other bits follow. Codes are canonical and of 12 bits at most, so that one look
//! at a table finds symbol and length.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Numbers that are symbols of their own.
const OWN: u32 = 248;

/// Symbols: small numbers, then bit lengths from 8 on.
const SYMBOLS: usize = OWN as usize + 25;

/// Bits of a code at most.
const CODE_BITS: u32 = 12;

fn symbol(number: u32) -> usize {
    if number < OWN { number as usize } else { (OWN + bit_length(number) - 8) as usize }
}

fn bit_length(number: u32) -> u32 {
    32 - number.leading_zeros()
}

/// Replaces the content of `out` by `numbers`: a length for each symbol, then codes, the first bit the greatest of a
/// byte.
pub fn encode(numbers: &[u32], out: &mut Vec<u8>) {
    let mut counts = [0u64; SYMBOLS];
    numbers.iter().for_each(|&number| counts[symbol(number)] += 1);
    let lengths = code_lengths(counts);
    let codes = canonical(&lengths);
    out.clear();
    out.extend_from_slice(&lengths);
    let (mut bits, mut count) = (0u64, 0);
    for &number in numbers {
        let symbol = symbol(number);
        bits = bits << lengths[symbol] | u64::from(codes[symbol]);
        count += u32::from(lengths[symbol]);
        if number >= OWN {
            let rest = bit_length(number) - 1;
            bits = bits << rest | u64::from(number & ((1 << rest) - 1));
            count += rest;
        }
        while count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    out.push((bits << (8 - count)) as u8);
    out.extend_from_slice(&[0; 8]); // a reader takes eight bytes at once
}

/// Lengths of Huffman codes. Where they are too long, rare symbols are counted for more.
fn code_lengths(mut counts: [u64; SYMBOLS]) -> [u8; SYMBOLS] {
    loop {
        let lengths = huffman(&counts);
        if lengths.iter().all(|&length| u32::from(length) <= CODE_BITS) {
            return lengths;
        }
        counts.iter_mut().filter(|count| **count > 0).for_each(|count| *count = *count / 2 + 1);
    }
}

fn huffman(counts: &[u64; SYMBOLS]) -> [u8; SYMBOLS] {
    let mut parents = [usize::MAX; 2 * SYMBOLS];
    let mut heap: BinaryHeap<Reverse<(u64, usize)>> =
        counts.iter().enumerate().filter(|(_, count)| **count > 0).map(|(at, &count)| Reverse((count, at))).collect();
    let is_single = heap.len() == 1;
    let mut next = SYMBOLS;
    while let (Some(Reverse(first)), Some(Reverse(second))) = (heap.pop(), heap.pop()) {
        (parents[first.1], parents[second.1]) = (next, next);
        heap.push(Reverse((first.0 + second.0, next)));
        next += 1;
        if heap.len() == 1 {
            break;
        }
    }
    let mut lengths = [0; SYMBOLS];
    for (at, length) in lengths.iter_mut().enumerate() {
        let mut node = at;
        while parents[node] != usize::MAX {
            node = parents[node];
            *length += 1;
        }
        if is_single && counts[at] > 0 {
            *length = 1;
        }
    }
    lengths
}

fn canonical(lengths: &[u8; SYMBOLS]) -> [u32; SYMBOLS] {
    let mut codes = [0; SYMBOLS];
    let mut code = 0;
    for length in 1..=CODE_BITS {
        for (at, _) in lengths.iter().enumerate().filter(|(_, of_symbol)| u32::from(**of_symbol) == length) {
            codes[at] = code;
            code += 1;
        }
        code <<= 1;
    }
    codes
}

/// Fills `out` with numbers.
///
/// # Panics
/// Where `bytes` hold fewer.
pub fn decode(bytes: &[u8], out: &mut [u32]) {
    let (lengths, bytes) = bytes.split_first_chunk::<SYMBOLS>().expect("lengths of all symbols");
    let codes = canonical(lengths);
    // For each stretch of bits the symbol that it begins with, and the length of its code.
    let mut table = vec![(0u16, 0u8); 1 << CODE_BITS];
    for (symbol, &length) in lengths.iter().enumerate().filter(|(_, length)| **length > 0) {
        let free = CODE_BITS - u32::from(length);
        let start = (codes[symbol] << free) as usize;
        table[start..start + (1 << free)].fill((symbol as u16, length));
    }
    let mut bit = 0;
    for number in out {
        let eight = bytes[bit / 8..bit / 8 + 8].try_into().expect("eight bytes");
        let bits = u64::from_be_bytes(eight) << (bit % 8);
        let (symbol, length) = table[(bits >> (64 - CODE_BITS)) as usize];
        bit += usize::from(length);
        let symbol = u32::from(symbol);
        *number = if symbol < OWN {
            symbol
        } else {
            let rest = symbol - OWN + 7;
            bit += rest as usize;
            1 << rest | ((bits << length) >> (64 - rest)) as u32
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn numbers_come_back() {
        let mut random = Random::new(4);
        let skewed = (0..20_000).map(|_| random.bits().trailing_zeros().pow(3)).collect();
        let wide = (0..20_000).map(|row| random.of_width(1 + row % 32) as u32).collect();
        let cases: [Vec<u32>; 5] = [skewed, wide, vec![7; 100], vec![u32::MAX, 0, 247, 248, 255, 256], Vec::new()];
        for numbers in cases {
            let mut bytes = Vec::new();
            encode(&numbers, &mut bytes);
            let mut out = vec![1; numbers.len()];
            decode(&bytes, &mut out);
            assert_eq!(out, numbers);
        }
    }
}
