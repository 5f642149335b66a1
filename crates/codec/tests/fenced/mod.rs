//! What is done to blocks between fences. Whether answers are right is for other tests to say.

use crate::columns::{self, Column, SHAPES, predicates};
use crate::fence::{self, Side};
use crate::golden::LOSSES;
use crate::golden::generator::{self, Shape};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinter_codec::*;
use std::ops::Range;

/// Says on standard error what comes next, so that it is known if it is the last.
fn say(what: &str) {
    fence::put(Side::None);
    eprintln!("{what}");
}

/// A block of the column by this choice. Values and all that encoding allocates stand at a fence, if there is to be one;
/// the bytes returned may have room behind them.
fn encoded(column: &Column, choice: &Choice, side: Side) -> Vec<u8> {
    fence::put(side);
    let (values, validity, mut bytes) = (column.values.clone(), column.validity.clone(), Vec::new());
    encode(values.as_values(), validity.as_ref(), choice, &mut bytes).unwrap();
    fence::put(Side::None);
    bytes
}

/// The scheme of this name, with what it is to lose in parentheses.
fn forced(request: &str) -> Choice {
    Choice::Forced(request.to_owned())
}

/// The same at a fence, and whatever is allocated from now on: a copy that is not a byte longer.
fn at_fence(bytes: &[u8], side: Side) -> Box<[u8]> {
    fence::put(side);
    bytes.into()
}

/// The first vector, the last, no row, and a few odd ranges of no more than a vector.
fn ranges(len: usize, random: &mut SmallRng) -> Vec<Range<usize>> {
    let mut ranges = vec![0..len.min(VECTOR_LEN), len.saturating_sub(VECTOR_LEN)..len, len..len];
    for _ in 0..2 {
        let start = random.random_range(0..=len);
        ranges.push(start..random.random_range(start..=len.min(start + VECTOR_LEN)));
    }
    ranges
}

/// Reads a block in every way there is. Targets are new each time, so that they end with the last value. Damaged bytes
/// may lead to errors and wrong answers, and to no false access.
fn read(bytes: &[u8], random: &mut SmallRng) {
    let Ok(block) = Block::open(bytes) else { return };
    let (len, physical) = (block.value_count(), block.physical());
    if len > 100_000 {
        return; // damage made it claim so
    }
    let _ = block.decode(0..len, &mut ValuesBuf::new(physical));
    for range in ranges(len, random) {
        let _ = block.decode(range.clone(), &mut ValuesBuf::new(physical));
        let _ = block.load(range.clone(), &mut Encoded::default());
        let _ = block.validity(range.clone(), &mut Bitmap::default());
        let one_in = random.random_range(1..60);
        let positions: Vec<u16> = (0..range.len() as u16).filter(|_| random.random_range(0..one_in) == 0).collect();
        // A block that was asked nothing yet has unpacked nothing.
        let _ = Block::open(bytes).map(|block| block.gather(range.start, &positions, &mut ValuesBuf::new(physical)));
    }
    let _ = block.dictionary();
}

/// Asks a block all kernels, of all rows and of some.
fn ask(bytes: &[u8], constant: &Scalar, random: &mut SmallRng) {
    let block = Block::open(bytes).unwrap();
    let len = block.value_count();
    let start = random.random_range(0..=len);
    let range = start..random.random_range(start..=len);
    let one_in = random.random_range(2..40);
    let positions: Vec<u32> = (0..range.len() as u32).filter(|_| random.random_range(0..one_in) == 0).collect();
    let marks = Bitmap::from_bools((0..range.len()).map(|_| random.random_range(0..one_in) == 0));
    let whole: Span<'_> = (0..len).into();
    let parts = [range.clone().into(), Span::marked(range.clone(), &marks), Span::at(range, &positions)];
    for kernel in KERNELS.iter().filter(|kernel| kernel.takes(block.physical())) {
        for span in [&whole, &parts[random.random_range(0..3)]] {
            kernel.run(&block, span, constant).unwrap();
        }
    }
}

fn filter(bytes: &[u8], predicates: &[Predicate], random: &mut SmallRng) {
    let block = Block::open(bytes).unwrap();
    let ranges = ranges(block.value_count(), random);
    for predicate in predicates {
        let range = ranges[random.random_range(0..ranges.len())].clone();
        block.filter(range, predicate, &mut Bitmap::default()).unwrap();
    }
}

/// A value of the column, for kernels that compare with one.
fn constant(column: &Column, random: &mut SmallRng) -> Scalar {
    columns::scalar(&column.values, random.random_range(0..column.values.len()))
}

/// Columns of every type and shape, and every scheme that holds them.
fn every_scheme(seed: u64, mut work: impl FnMut(&SchemeEntry, &Column, &mut SmallRng)) {
    let mut random = SmallRng::seed_from_u64(seed);
    for entry in SCHEMES {
        for physical in Physical::ALL.into_iter().filter(|physical| entry.holds(*physical)) {
            for shape in SHAPES {
                let len = [17, 700, 1024, 1025, 2048 + 300][random.random_range(0..5)];
                let null_percent = [0, 0, 30][random.random_range(0..3)];
                say(&format!("{} of {len} {} values, {shape:?}", entry.name, physical.name()));
                work(entry, &columns::column(physical, shape, len, null_percent, random.random()), &mut random);
            }
        }
    }
}

pub(crate) fn blocks_of_every_scheme(side: Side) {
    every_scheme(1, |entry, column, random| {
        let bytes = encoded(column, &forced(entry.name), side);
        let (predicates, constant) = (predicates(column, random), constant(column, random));
        let bytes = at_fence(&bytes, side);
        read(&bytes, random);
        ask(&bytes, &constant, random);
        filter(&bytes, &predicates, random);
    });
}

/// What trial encoding does to find a scheme, and what is done to values before they are rounded.
pub(crate) fn blocks_by_choice_and_with_losses(side: Side) {
    let mut random = SmallRng::seed_from_u64(5);
    let requests = LOSSES.iter().map(|loss| (*loss, forced(loss)));
    for (name, choice) in requests.chain([("the automatic choice", Choice::Auto)]) {
        let holds = |physical: &Physical| choice == Choice::Auto || Request::parse(name).unwrap().holds(*physical);
        for physical in Physical::ALL.into_iter().filter(holds) {
            for shape in SHAPES {
                let len = [17, 1025, 2048 + 300][random.random_range(0..3)];
                say(&format!("{name} of {len} {} values, {shape:?}", physical.name()));
                let bytes = encoded(&columns::column(physical, shape, len, 0, random.random()), &choice, side);
                let bytes = at_fence(&bytes, side);
                read(&bytes, &mut random);
            }
        }
    }
}

pub(crate) fn damaged_blocks(side: Side) {
    every_scheme(2, |entry, column, random| {
        let bytes = encoded(column, &forced(entry.name), Side::None);
        for _ in 0..4 {
            let mut bytes = at_fence(&bytes, side);
            for _ in 0..random.random_range(1..4) {
                let reach = if random.random() { bytes.len().min(120) } else { bytes.len() };
                bytes[random.random_range(0..reach)] = [0, 1, 0x7f, 0x80, 0xff][random.random_range(0..5)];
            }
            read(&bytes, random);
        }
    });
}

pub(crate) fn numbers_of_every_width(side: Side) {
    let mut random = SmallRng::seed_from_u64(3);
    for scheme in ["bitpack", "for", "pfor", "delta", "pfor_delta"] {
        let integers = |physical: &Physical| !matches!(physical, Physical::F32 | Physical::F64 | Physical::Bytes);
        for physical in Physical::ALL.into_iter().filter(integers) {
            // Numbers of 128 bits, too, are packed to 64.
            let widest = (8 * physical.value_bytes().unwrap() as u32).min(64);
            for width in 0..=widest {
                for shape in [Shape::Vector(width), Shape::Short(width)] {
                    say(&format!("{scheme} of {} values, {}", physical.name(), shape.name()));
                    let column = generator::column(scheme, physical, shape);
                    let bytes = encoded(&column, &forced(scheme), side);
                    let constant = constant(&column, &mut random);
                    let bytes = at_fence(&bytes, side);
                    read(&bytes, &mut random);
                    ask(&bytes, &constant, &mut random);
                }
            }
        }
    }
}

pub(crate) fn blocks_of_keys(side: Side) {
    let mut random = SmallRng::seed_from_u64(4);
    for &codec in KEY_CODECS {
        for width in 0..=54 {
            for count in [1, 2, 5, 17, 127, 128, 130, 255, 256] {
                say(&format!("{} of {count} keys {width} bits apart", codec.name()));
                keys::<u32>(codec, count, width.min(23), side, &mut random);
                keys::<u64>(codec, count, width, side, &mut random);
            }
        }
    }
}

/// Reads a block of keys in every way, and changes it in room that has few bytes to spare, or none.
fn keys<K: Key + TryFrom<u64>>(codec: KeyCodec, count: usize, width: u32, side: Side, random: &mut SmallRng) {
    let mut last = 1;
    let mut next = || {
        last += random.random::<u64>().checked_shr(64 - width).unwrap_or(0);
        K::try_from(last).unwrap_or_else(|_| panic!("{last} is too great"))
    };
    let keys: Vec<K> = (0..count).map(|_| next()).collect();
    let one_more = next();
    fence::put(side);
    let (keys, mut bytes) = (Box::<[K]>::from(&keys[..]), Vec::new());
    let descriptor = codec.encode(&keys, &mut bytes).unwrap();
    for spare in [0, 1, 9] {
        bytes.resize(descriptor.byte_len + spare, 0xa5);
        let mut room = at_fence(&bytes, side);
        if spare == 0 {
            let block = KeyBlock::open(codec, descriptor, &room).unwrap();
            let mut out = Box::new([K::default(); KEYS_MAX]);
            assert_eq!(block.decode(&mut out), &keys[..]);
            for index in (0..count).step_by(count / 40 + 1).chain([count - 1]) {
                assert_eq!(block.select(index), keys[index]);
                assert!(block.lower_bound(keys[index]).is_some());
            }
        }
        let at = count / 2;
        let mut changed = descriptor;
        let mut block = KeyBlockMut::open(codec, &mut changed, &mut room).unwrap();
        block.delete(at);
        block.insert(keys[at]);
        if block.as_block().descriptor().count > 0 {
            block.append(one_more);
        }
    }
    fence::put(Side::None);
}
