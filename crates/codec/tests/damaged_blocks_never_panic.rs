//! Bytes from disk may be anything: each truncated block is an error, and no mutation makes a call panic or run away.

mod columns;

use columns::{Column, any_column, cases, predicates};
use proptest::prelude::*;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinter_codec::*;
use std::ops::Range;

/// Asks a block that may be damaged everything there is to ask. Errors and wrong answers are fine.
fn interrogate(bytes: &[u8], column: &Column, random: &mut SmallRng) {
    let Ok(block) = Block::open(bytes) else { return };
    let _ = block.describe();
    let len = block.value_count();
    let mut values = ValuesBuf::new(block.physical());
    let mut bits = Bitmap::default();
    let mut form = Encoded::default();
    for start in [0, len / 2, len.saturating_sub(300)] {
        let range = start..len.min(start + VECTOR_LEN);
        let _ = block.decode(range.clone(), &mut values);
        let _ = block.load(range.clone(), &mut form);
        let _ = block.validity(range.clone(), &mut bits);
        let positions: Vec<u16> = (0..range.len() as u16).step_by(7).collect();
        let _ = block.gather(start, &positions, &mut values);
        let _ = block.characters(range.clone(), None, &mut Vec::new());
        let _ = block.characters(range.clone(), Some(&positions), &mut Vec::new());
        if block.physical() == column.values.physical() {
            for predicate in predicates(column, random) {
                let _ = block.filter(range.clone(), &predicate, &mut bits);
                let _ = block.prepare(&predicate).and_then(|prepared| block.decides(range.clone(), &prepared));
            }
            ask_kernels(&block, range, column, random);
        }
    }
    let _ = block.dictionary();
    if len < 100_000 {
        let _ = block.decode(0..len, &mut values);
    }
}

/// Asks every kernel about all rows of a range, and about some.
fn ask_kernels(block: &Block<'_>, range: Range<usize>, column: &Column, random: &mut SmallRng) {
    let constant = match predicates(column, random).first() {
        Some(Predicate::Compare(_, constant)) => constant.clone(),
        _ => block.stats().max.clone(),
    };
    let some: Vec<u32> = (0..range.len() as u32).step_by(3).collect();
    for kernel in KERNELS.iter().filter(|kernel| kernel.takes(block.physical())) {
        let _ = kernel.run(block, &range.clone().into(), &constant);
        let _ = kernel.run(block, &Span::at(range.clone(), &some), &constant);
    }
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn each_truncated_prefix_is_an_error(column in any_column()) {
        for entry in SCHEMES.iter().filter(|entry| entry.holds(column.values.physical())) {
            let mut bytes = Vec::new();
            let choice = Choice::Forced(entry.name.to_owned());
            encode(column.values.as_values(), column.validity.as_ref(), &choice, &mut bytes).unwrap();
            let step = (bytes.len() / 500).max(1);
            for len in (0..bytes.len()).step_by(step).chain([bytes.len() - 1]) {
                prop_assert!(matches!(Block::open(&bytes[..len]), Err(Error::Damaged { .. })), "{} cut to {len}", entry.name);
            }
        }
    }

    #[test]
    fn mutations_do_no_harm(column in any_column(), seed: u64) {
        let mut random = SmallRng::seed_from_u64(seed);
        for entry in SCHEMES.iter().filter(|entry| entry.holds(column.values.physical())) {
            let mut bytes = Vec::new();
            let choice = Choice::Forced(entry.name.to_owned());
            encode(column.values.as_values(), column.validity.as_ref(), &choice, &mut bytes).unwrap();
            for _ in 0..40 {
                let mut mutated = bytes.clone();
                for _ in 0..random.random_range(1..4) {
                    // Headers and directories stand in front, and that is where damage does most.
                    let reach = if random.random() { mutated.len().min(120) } else { mutated.len() };
                    let at = random.random_range(0..reach);
                    mutated[at] = [0, 1, 0x7f, 0x80, 0xff, random.random()][random.random_range(0..6)];
                }
                interrogate(&mutated, &column, &mut random);
            }
        }
    }

    #[test]
    fn random_bytes_do_no_harm(mut bytes in prop::collection::vec(any::<u8>(), 0..400), column in any_column(), seed: u64) {
        interrogate(&bytes, &column, &mut SmallRng::seed_from_u64(seed));
        // Let them pass the first gate too: version, type, no flags, length.
        if bytes.len() >= 12 {
            let len = bytes.len() as u32;
            bytes[0] = 0xb1;
            bytes[1] = bytes[1] % 12 + 1;
            bytes[2..4].fill(0);
            bytes[4..8].copy_from_slice(&len.to_le_bytes());
            bytes[10..12].fill(0);
            interrogate(&bytes, &column, &mut SmallRng::seed_from_u64(seed));
        }
    }
}
