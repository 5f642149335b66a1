//! Whole blocks on every instruction set: the bytes that are written, and what is read from them, are the same to the last
//! bit, whatever scheme, type and values.

use crate::columns::{self, Column, SHAPES, column};
use crate::isa::forms;
use crate::{Bitmap, Block, Choice, Isa, Physical, Predicate, SCHEMES, Span, ValuesBuf, encode};
use rand::SeedableRng;
use rand::rngs::SmallRng;

/// Two full vectors, and one that is neither full nor ends with a word of bits.
const ROWS: usize = 2 * crate::VECTOR_LEN + 421;

/// What one set makes of a column.
struct Made {
    bytes: Vec<u8>,
    layout: String,
    decoded: [ValuesBuf; 2],
    passing: Vec<Bitmap>,
    sums: String,
}

impl Made {
    fn of(column: &Column, choice: &Choice, predicates: &[Predicate]) -> Made {
        let mut bytes = Vec::new();
        encode(column.values.as_values(), column.validity.as_ref(), choice, &mut bytes).unwrap();
        let block = Block::open(&bytes).unwrap();
        let (all, part) = (0..ROWS, 37..ROWS - 5);
        let decoded = [all.clone(), part.clone()].map(|range| {
            let mut values = ValuesBuf::new(block.physical());
            block.decode(range, &mut values).unwrap();
            values
        });
        let filtered = |predicate: &Predicate| {
            let mut passing = Bitmap::default();
            block.filter(all.clone(), predicate, &mut passing).unwrap();
            passing
        };
        let passing: Vec<Bitmap> = predicates.iter().map(filtered).collect();
        let marks = Bitmap::from_bools(part.clone().map(|row| row % 7 != 3));
        let sums = match block.physical() {
            Physical::Bytes => String::new(),
            // Told of as text, in which NaN is equal to itself.
            _ => format!("{:?}, {:?}", block.sum(&part.clone().into()), block.sum(&Span::marked(part, &marks))),
        };
        let layout = block.describe();
        drop(block);
        Made { bytes, layout, decoded, passing, sums }
    }

    fn assert_same(&self, other: &Made, predicates: &[Predicate], isa: Isa, what: &str) {
        let what = format!("{isa}, {what} as {}", self.layout);
        assert!(self.bytes == other.bytes, "{what}: it writes other bytes, as {}", other.layout);
        for (values, others) in self.decoded.iter().zip(&other.decoded) {
            let other_row = first_different(values, others);
            assert!(other_row.is_none(), "{what}: it decodes another value at {other_row:?}");
        }
        for ((predicate, passing), others) in predicates.iter().zip(&self.passing).zip(&other.passing) {
            let row = (0..ROWS).find(|&row| passing.get(row) != others.get(row));
            assert!(row.is_none(), "{what}: row {row:?} passes {predicate:?} or not");
        }
        assert_eq!(self.sums, other.sums, "{what}: it sums up to something else");
    }
}

/// The first row at which any bit is different.
fn first_different(values: &ValuesBuf, others: &ValuesBuf) -> Option<usize> {
    match (values, others) {
        (ValuesBuf::F32(values), ValuesBuf::F32(others)) => {
            values.iter().zip(others).position(|(value, other)| value.to_bits() != other.to_bits())
        }
        (ValuesBuf::F64(values), ValuesBuf::F64(others)) => {
            values.iter().zip(others).position(|(value, other)| value.to_bits() != other.to_bits())
        }
        (values, others) if values == others => None,
        (values, others) => (0..ROWS).find(|&row| columns::bits(values, row) != columns::bits(others, row)),
    }
}

#[test]
fn every_set_writes_and_reads_the_same_blocks() {
    for (seed, physical) in (0u64..).zip(Physical::ALL) {
        for (turn, shape) in (0..).zip(SHAPES) {
            let seed = 100 * seed + turn;
            let column = column(physical, shape, ROWS, [0, 10][turn as usize % 2], seed);
            let predicates = columns::predicates(&column, &mut SmallRng::seed_from_u64(seed));
            // Others at each shape: all at all of them would take a minute.
            let predicates: Vec<Predicate> = predicates.into_iter().skip(turn as usize % 4).step_by(4).collect();
            let forced = SCHEMES.iter().filter(|entry| entry.holds(physical));
            let forced = forced.map(|entry| Choice::Forced(entry.name.to_owned()));
            for choice in std::iter::once(Choice::Auto).chain(forced) {
                let what = format!("{} values, {shape:?}, {choice:?}", physical.name());
                let mut of_least: Option<Made> = None;
                forms(|isa| {
                    let made = Made::of(&column, &choice, &predicates);
                    match &of_least {
                        Some(least) => least.assert_same(&made, &predicates, isa, &what),
                        None => of_least = Some(made),
                    }
                });
            }
        }
    }
}
