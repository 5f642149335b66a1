//! Numbers of equal width, packed side by side in 16 lanes so that plain loops unpack a row of 16 at once.
//!
//! Number `i` lies in lane `i % 16`; those of a lane follow each other bit by bit, the lowest first, through the lane's
//! words, which have the width of a key. Word `w` of all lanes makes a row of words. A lane needs `rows * width` bits,
//! rounded up to bytes; bytes that do not fill a row of words are kept as planes of one byte of every lane:
//!
//! ```text
//! | word 0 of lanes 0..16 | word 1 of lanes 0..16 | ... | next byte of lanes 0..16 | next byte of lanes 0..16 | ...
//! ```
//!
//! So `n` numbers take `16 * ceil(ceil(n / 16) * width / 8)` bytes: 128 of them `16 * width`, no bit more than they
//! have. The paper's BP128 (section 2.4; Lemire, Boytsov and Kurz, *SIMD compression and the intersection of sorted
//! integers*, 2016) has four lanes of 32 bits, for registers of 128 bits; 16 fill one of 512, or two where a key has 64
//! bits.

use super::key::{Key, Word};
use super::rows::{HasRows, Row};

/// Lanes: the numbers of a row.
pub(super) const LANES: usize = 16;

/// Numbers that are packed together at most.
pub(super) const FRAME_LEN: usize = 128;

/// Rows of a full frame.
pub(super) const ROWS: usize = FRAME_LEN / LANES;

/// Bytes that `count` numbers of `width` bits take.
#[inline]
pub(super) fn packed_bytes(count: usize, width: u32) -> usize {
    LANES * lane_bytes(count, width)
}

#[inline]
fn lane_bytes(count: usize, width: u32) -> usize {
    (count.div_ceil(LANES) * width as usize).div_ceil(8)
}

/// Packs the lowest `width` bits of the first numbers, as many as `out` has space for by [`packed_bytes`]. Those behind
/// the last are zero.
#[inline(always)]
pub(super) fn pack<K: Word>(numbers: &[K; FRAME_LEN], width: u32, mut out: &mut [u8]) {
    if width == 0 {
        return;
    }
    let mask = K::MAX >> (K::BITS - width);
    let (mut word, mut filled) = ([K::default(); LANES], 0);
    for numbers in numbers.as_chunks::<LANES>().0 {
        let numbers = numbers.map(|number| number & mask);
        for lane in 0..LANES {
            word[lane] = word[lane] | numbers[lane] << filled;
        }
        filled += width;
        if filled >= K::BITS {
            if out.len() < LANES * K::BYTES {
                break;
            }
            let (row, rest) = out.split_at_mut(LANES * K::BYTES);
            write_row(&word, row);
            out = rest;
            filled -= K::BITS;
            word = if filled == 0 { [K::default(); LANES] } else { numbers.map(|number| number >> (width - filled)) };
        }
    }
    write_tail(&word, out);
}

/// Gives each of the first `rows` rows of numbers to `take`, until it returns false. There are no more than were
/// packed.
#[inline(always)]
pub(super) fn each_row<K: Word, P: HasRows>(
    proof: P,
    packed: &[u8],
    rows: usize,
    width: u32,
    mut take: impl FnMut(usize, P::Row<K>) -> bool,
) {
    if width == 0 {
        let _ = (0..rows).all(|row| take(row, proof.row([K::default(); LANES])));
        return;
    }
    let mask = proof.row([K::MAX >> (K::BITS - width); LANES]);
    let mut words = packed.chunks_exact(LANES * K::BYTES);
    let tail = proof.row(read_tail::<K>(words.remainder()));
    let mut next = || words.next().map_or(tail, |words| proof.read(words));
    let (mut word, mut shift) = (next(), 0);
    for row in 0..rows {
        let mut numbers = word.shr(shift);
        shift += width;
        if shift >= K::BITS {
            shift -= K::BITS;
            word = next();
            if shift > 0 {
                numbers = numbers.or(word.shl(width - shift));
            }
        }
        if !take(row, numbers.and(mask)) {
            break;
        }
    }
}

/// The number at `index` alone.
#[inline]
pub(super) fn number_at<K: Key>(packed: &[u8], width: u32, index: usize) -> K {
    if width == 0 {
        return K::default();
    }
    let (row, lane) = (index / LANES, index % LANES);
    let bit = row as u32 * width;
    let (word, shift) = ((bit / K::BITS) as usize, bit % K::BITS);
    let mut number = word_at::<K>(packed, word, lane) >> shift;
    if shift + width > K::BITS {
        number = number | word_at::<K>(packed, word + 1, lane) << (K::BITS - shift);
    }
    number & K::MAX >> (K::BITS - width)
}

/// A word of a lane, from a row of words or from planes; zero behind the end.
#[inline]
fn word_at<K: Word>(packed: &[u8], word: usize, lane: usize) -> K {
    let row_at = word * LANES * K::BYTES;
    if packed.len() >= row_at + LANES * K::BYTES {
        return K::read_word(&packed[row_at + lane * K::BYTES..]);
    }
    let planes = packed.get(row_at..).unwrap_or_default().chunks_exact(LANES);
    K::from_delta(planes.rev().fold(0, |word, plane| word << 8 | u64::from(plane[lane])))
}

/// Adds a number of at most `width` bits behind `count` others, less than [`FRAME_LEN`], in `out`, which has just
/// [`packed_bytes`] for all of them. Bytes behind what the others took may be anything.
pub(super) fn push<K: Key>(out: &mut [u8], width: u32, count: usize, number: K) {
    if width == 0 {
        return;
    }
    let (bytes_before, bytes) = (lane_bytes(count, width), lane_bytes(count + 1, width));
    if bytes > bytes_before {
        let word_rows_len = bytes_before / K::BYTES * LANES * K::BYTES;
        let tail = &mut out[word_rows_len..];
        let word = read_tail::<K>(&tail[..bytes_before % K::BYTES * LANES]);
        write_over(&word, tail);
    }
    let (row, lane) = (count / LANES, count % LANES);
    let (mut at, mut rest) = (row * width as usize / 8, u128::from(number.to_delta()) << (row * width as usize % 8));
    while rest > 0 {
        let word_rows = bytes / K::BYTES;
        let place = match at / K::BYTES {
            word if word < word_rows => (word * LANES + lane) * K::BYTES + at % K::BYTES,
            _ => word_rows * LANES * K::BYTES + (at - word_rows * K::BYTES) * LANES + lane,
        };
        if let Some(out) = out.get_mut(place) {
            *out |= rest as u8;
        }
        (rest, at) = (rest >> 8, at + 1);
    }
}

#[inline(always)]
fn write_row<K: Word>(row: &[K; LANES], out: &mut [u8]) {
    for (out, word) in out.chunks_exact_mut(K::BYTES).zip(row) {
        word.write_word(out);
    }
}

/// The words of which planes have the lowest bytes.
#[inline(always)]
fn read_tail<K: Word>(planes: &[u8]) -> [K; LANES] {
    let mut row = [K::default(); LANES];
    for (plane, shift) in planes.as_chunks::<LANES>().0.iter().zip((0..K::BITS).step_by(8)) {
        for lane in 0..LANES {
            row[lane] = row[lane] | K::from_delta(plane[lane].into()) << shift;
        }
    }
    row
}

/// Writes what is left of the lanes: a row of words if just that fits, else planes.
#[inline(always)]
fn write_tail<K: Word>(row: &[K; LANES], out: &mut [u8]) {
    if out.len() == LANES * K::BYTES {
        return write_row(row, out);
    }
    for (plane, shift) in out.as_chunks_mut::<LANES>().0.iter_mut().zip((0..K::BITS).step_by(8)) {
        for lane in 0..LANES {
            plane[lane] = (row[lane] >> shift).to_delta() as u8;
        }
    }
}

/// Writes a row of words, if there is space for one, and planes of zeros behind it; else the planes of the row.
fn write_over<K: Word>(row: &[K; LANES], out: &mut [u8]) {
    match out.split_at_mut_checked(LANES * K::BYTES) {
        Some((words, rest)) => {
            write_row(row, words);
            rest.fill(0);
        }
        None => write_tail(row, out),
    }
}
