//! What 12 continuation bits say: how many differences begin there, and how to bring their bytes into lanes of their
//! own.
//!
//! Plaisance, Kurz and Lemire, *Vectorized VByte decoding*, 2015: the first six differences if each has one or two
//! bytes, else the first four if each has up to three, else the first two if each has up to five. We make the tables at
//! compile time.

/// Continuation bits that are looked at together.
pub(super) const MASK_BITS: usize = 12;

/// Lanes of differences, and the bytes that each may have.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) count: usize,
    pub(super) len_max: usize,
    /// The first of [`SHUFFLES`] that are of this shape; they follow in the order of the lengths as digits, the last
    /// difference's the lowest.
    first_shuffle: usize,
}

/// Six of one or two bytes, in lanes of two.
pub(super) const SIX: Shape = Shape { count: 6, len_max: 2, first_shuffle: 0 };
/// Four of up to three bytes, in lanes of four.
pub(super) const FOUR: Shape = Shape { count: 4, len_max: 3, first_shuffle: 64 };
/// Two of up to five bytes, in lanes of eight.
pub(super) const TWO: Shape = Shape { count: 2, len_max: 5, first_shuffle: FOUR.first_shuffle + 81 };

const SHUFFLE_COUNT: usize = TWO.first_shuffle + 25;

/// What to do at some continuation bits.
#[derive(Clone, Copy)]
pub(super) struct Step {
    /// The bytes of the differences, or 0 where the first or the second has more than five.
    pub(super) byte_count: u8,
    /// Which of [`SHUFFLES`].
    pub(super) shuffle: u8,
}

/// For each value of the continuation bits, the lowest that of the first byte.
pub(super) static STEPS: [Step; 1 << MASK_BITS] = {
    let mut steps = [Step { byte_count: 0, shuffle: 0 }; 1 << MASK_BITS];
    let mut mask = 0;
    while mask < steps.len() {
        steps[mask] = step(mask);
        mask += 1;
    }
    steps
};

/// For each lane of bytes, which byte comes there; 0x80 for zero.
pub(super) static SHUFFLES: [[u8; 16]; SHUFFLE_COUNT] = {
    let mut shuffles = [[0x80; 16]; SHUFFLE_COUNT];
    let mut index = 0;
    while index < SHUFFLE_COUNT {
        shuffles[index] = match index {
            0..64 => shuffle(SIX, index),
            64..145 => shuffle(FOUR, index),
            _ => shuffle(TWO, index),
        };
        index += 1;
    }
    shuffles
};

const fn step(mask: usize) -> Step {
    let shapes = [SIX, FOUR, TWO];
    let mut which = 0;
    while which < shapes.len() {
        let shape = shapes[which];
        let (mut at, mut digits, mut index, mut fits) = (0, 0, 0, true);
        while index < shape.count {
            let mut len = 1;
            while at + len <= MASK_BITS && mask >> (at + len - 1) & 1 == 1 {
                len += 1;
            }
            fits = fits && len <= shape.len_max && at + len <= MASK_BITS;
            if !fits {
                break;
            }
            digits = digits * shape.len_max + len - 1;
            at += len;
            index += 1;
        }
        if fits {
            return Step { byte_count: at as u8, shuffle: (shape.first_shuffle + digits) as u8 };
        }
        which += 1;
    }
    Step { byte_count: 0, shuffle: 0 }
}

const fn shuffle(shape: Shape, index: usize) -> [u8; 16] {
    let lane_bytes = match shape.count {
        6 => 2,
        4 => 4,
        _ => 8,
    };
    let mut lens = [0; 6];
    let (mut digits, mut which) = (index - shape.first_shuffle, shape.count);
    while which > 0 {
        which -= 1;
        lens[which] = digits % shape.len_max + 1;
        digits /= shape.len_max;
    }
    let (mut bytes, mut at, mut which) = ([0x80; 16], 0, 0);
    while which < shape.count {
        let mut byte = 0;
        while byte < lens[which] {
            bytes[which * lane_bytes + byte] = (at + byte) as u8;
            byte += 1;
        }
        at += lens[which];
        which += 1;
    }
    bytes
}
