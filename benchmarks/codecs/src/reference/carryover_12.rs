//! Carryover-12, or much like it (Anh and Moffat, "Inverted Index Compression Using Word-Aligned Binary Codes",
//! Information Retrieval 8(1), 2005): as many numbers of one width in a word as fit.
//!
//! ```text
//! bit 0                                        30 or 32
//! +----------+----------+-------+- - - - - - - +------------+
//! | number   | number   |  ...  | bits left    | selector,  |
//! |          |          |       | over         | if carried |
//! +----------+----------+-------+- - - - - - - +------------+
//! ```
//!
//! There are twelve widths. A selector of two bits tells the width of a word beside that of the word before: one less,
//! the same, one more, or the greatest. Where two bits were left over in the word before, they carry the selector, and
//! the word has 32 bits for numbers; else it has 30. After the greatest and the least width the steps are others. They
//! were chosen here, by the sizes that real lists come to, and are not the paper's.

/// Numbers are less than 2 to the power of the last.
const WIDTHS: [u32; 12] = [1, 2, 3, 4, 5, 6, 7, 8, 10, 15, 16, 28];

const WIDEST: usize = WIDTHS.len() - 1;

/// Rows of `WIDTHS` that may follow one, the least first, by selector.
const STEPS: [[usize; 4]; 12] = {
    let mut steps = [[0; 4]; 12];
    let mut row = 1;
    while row < WIDEST {
        steps[row] = [row - 1, row, row + 1, WIDEST];
        row += 1;
    }
    steps[0] = [0, 1, 3, WIDEST];
    steps[WIDEST] = [5, 8, 9, WIDEST];
    steps
};

const SELECTOR_BITS: u32 = 2;

/// Numbers in a word at most: how far decoding may write too much.
pub const SLACK: usize = 32;

/// Replaces the content of `words` by `numbers`; false where one of them has more bits than there are widths.
pub fn encode(numbers: &[u32], words: &mut Vec<u32>) -> bool {
    words.clear();
    let (mut at, mut row) = (0, 0);
    // Where the selector of the next word goes, if it is carried: the shift in the last word.
    let mut carried: Option<u32> = None;
    while at < numbers.len() {
        let bits = if carried.is_some() { 32 } else { 32 - SELECTOR_BITS };
        let rest = &numbers[at..];
        let fits = |row: usize| {
            let count = (bits / WIDTHS[row]) as usize;
            rest[..count.min(rest.len())].iter().all(|&number| number >> WIDTHS[row] == 0)
        };
        let Some(selector) = STEPS[row].iter().position(|&row| fits(row)) else { return false };
        row = STEPS[row][selector];
        let selector = selector as u32;
        let width = WIDTHS[row];
        let count = bits / width;
        let taken = rest.len().min(count as usize);
        let mut word =
            rest[..taken].iter().rev().fold(0, |word: u64, &number| word << width | u64::from(number)) as u32;
        match carried {
            Some(shift) => *words.last_mut().expect("it was carried there") |= selector << shift,
            None => word |= selector << bits,
        }
        words.push(word);
        carried = (bits - count * width >= SELECTOR_BITS).then_some(bits - SELECTOR_BITS);
        at += taken;
    }
    true
}

/// Writes numbers to `out` until `count` are there, and zeros behind them.
///
/// # Panics
/// Where `out` has not room for `count` and [`SLACK`] more, or there are fewer words than that takes.
pub fn decode(words: &[u32], count: usize, out: &mut [u32]) {
    let (mut at, mut row, mut carried) = (0, 0, None);
    let mut words = words.iter();
    while at < count {
        let word = *words.next().expect("words for all numbers");
        let (bits, selector) = match carried {
            Some(selector) => (32, selector),
            None => (32 - SELECTOR_BITS, word >> (32 - SELECTOR_BITS)),
        };
        row = STEPS[row][selector as usize];
        let room = &mut out[at..at + SLACK];
        let taken = match row {
            0 => unpack::<1>(word, bits, room),
            1 => unpack::<2>(word, bits, room),
            2 => unpack::<3>(word, bits, room),
            3 => unpack::<4>(word, bits, room),
            4 => unpack::<5>(word, bits, room),
            5 => unpack::<6>(word, bits, room),
            6 => unpack::<7>(word, bits, room),
            7 => unpack::<8>(word, bits, room),
            8 => unpack::<10>(word, bits, room),
            9 => unpack::<15>(word, bits, room),
            10 => unpack::<16>(word, bits, room),
            _ => unpack::<28>(word, bits, room),
        };
        at += taken as usize;
        let left = bits - taken * WIDTHS[row];
        carried = (left >= SELECTOR_BITS).then_some(word >> (bits - SELECTOR_BITS) & 3);
    }
}

/// The numbers of a word, and one more where the word has the fewer bits for them. Returns how many count.
fn unpack<const WIDTH: u32>(word: u32, bits: u32, room: &mut [u32]) -> u32 {
    let mask = (1 << WIDTH) - 1;
    for index in 0..32 / WIDTH {
        room[index as usize] = word >> (index * WIDTH) & mask;
    }
    bits / WIDTH
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn numbers_of_all_widths_come_back() {
        let mut random = Random::new(9);
        for step in 1..=28 {
            let numbers: Vec<u32> = (0..5000).map(|row| random.of_width(1 + row % step) as u32).collect();
            let mut words = Vec::new();
            assert!(encode(&numbers, &mut words));
            let mut out = vec![0; numbers.len() + SLACK];
            decode(&words, numbers.len(), &mut out);
            assert_eq!(out[..numbers.len()], numbers);
        }
        assert!(!encode(&[1 << 28], &mut Vec::new()));
        let mut words = Vec::new();
        assert!(encode(&[1; 3000], &mut words));
        assert!(words.len() <= 3000 / 30 + 1, "{} words", words.len());
    }
}
