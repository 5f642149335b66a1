//! Whole blocks on every instruction set: the bytes that are written, and what is read from them, are the same to the last
//! bit, whatever scheme, type and values. And what the engine asks of its own rows is what plain loops answer.
//!
//! A process chooses its set once. So each set has a process of its own, which tells what it made, and the lines are compared.
//! `scripts/test` optimises these tests, and not those beside the kernels, whose forms hardly differ before.

mod columns;

use columns::{Column, SHAPES, column};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use sinter_codec::*;
use std::process::Command;
use xxhash_rust::xxh3::xxh3_64;

/// Tells a process that it is one of those.
const ERRAND: &str = "SINTER_TOLD_SET";

/// Begins each line that is told.
const TOLD: &str = "made: ";

/// Stands between the parts of a line.
const BETWEEN: &str = "; ";

/// Two full vectors, and one that is neither full nor ends with a word of bits.
const ROWS: usize = 2 * VECTOR_LEN + 421;

/// In a process that was started for it, does the work of the test `name`, and prints the lines that it tells; else starts one
/// for each set, and panics unless all tell the same.
fn on_every_set(name: &str, work: fn(&mut dyn FnMut(String))) {
    if std::env::var_os(ERRAND).is_some() {
        assert_eq!(isa().name(), std::env::var("SINTER_ISA").unwrap());
        work(&mut |line| eprintln!("{TOLD}{line}"));
        return;
    }
    let mut of_least: Option<(Isa, Vec<String>)> = None;
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        let lines = told(name, isa);
        let Some((least, expected)) = &of_least else {
            of_least = Some((isa, lines));
            continue;
        };
        assert_eq!(lines.len(), expected.len(), "{isa} tells more or less than {least}");
        for (line, expected) in lines.iter().zip(expected) {
            let mut parts = line.split(BETWEEN).zip(expected.split(BETWEEN));
            let different = parts.find(|(part, other)| part != other);
            assert!(different.is_none(), "{isa} and {least} make {different:?} of it:\n{line}\n{expected}");
        }
    }
}

/// What the test `name` tells on one instruction set, in a process of its own.
fn told(name: &str, isa: Isa) -> Vec<String> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]);
    let output = command.env(ERRAND, "").env("SINTER_ISA", isa.name()).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    let said: Vec<&str> = printed.lines().filter(|line| !line.starts_with(TOLD)).collect();
    assert!(output.status.success(), "{name} on {isa}: {}\n{}", output.status, said.join("\n"));
    let lines: Vec<String> = printed.lines().filter_map(|line| line.strip_prefix(TOLD)).map(str::to_owned).collect();
    assert!(!lines.is_empty(), "{name} on {isa} told nothing");
    lines
}

/// What a set makes of something: its name, and a hash of each part.
struct Made(String);

impl Made {
    fn of(what: &str) -> Made {
        Made(what.to_owned())
    }

    fn add(&mut self, part: &str, bytes: &[u8]) {
        self.0 += &format!("{BETWEEN}{part} {:016x}", xxh3_64(bytes));
    }
}

/// The bytes of values as they are: equal exactly when all bits are.
fn plain(values: &ValuesBuf) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(values.as_values(), None, &Choice::Raw, &mut bytes).unwrap();
    bytes
}

/// A column by this choice: the block, what is decoded of it, what passes predicates, and what all kernels answer.
fn made_of(column: &Column, choice: &Choice, predicates: &[Predicate], what: &str) -> String {
    let mut bytes = Vec::new();
    encode(column.values.as_values(), column.validity.as_ref(), choice, &mut bytes).unwrap();
    let block = Block::open(&bytes).unwrap();
    let mut made = Made::of(&format!("{what} as {}", block.describe()));
    made.add("bytes", &bytes);
    let (all, part) = (0..ROWS, 37..ROWS - 5);
    for range in [&all, &part] {
        let mut values = ValuesBuf::new(block.physical());
        block.decode(range.clone(), &mut values).unwrap();
        made.add(&format!("rows {range:?}"), &plain(&values));
    }
    for (number, predicate) in predicates.iter().enumerate() {
        let mut passing = Bitmap::default();
        block.filter(all.clone(), predicate, &mut passing).unwrap();
        made.add(&format!("rows that pass predicate {number}"), format!("{passing:?}").as_bytes());
    }
    let constant = columns::scalar(&column.values, ROWS / 2);
    let marks = Bitmap::from_bools(part.clone().map(|row| row % 7 != 3));
    for kernel in KERNELS.iter().filter(|kernel| kernel.takes(block.physical())) {
        for (rows, span) in [("all rows", part.clone().into()), ("some rows", Span::marked(part.clone(), &marks))] {
            let answer = kernel.run(&block, &span, &constant).unwrap();
            // As text, in which NaN is equal to itself.
            made.add(&format!("{} of {rows}", kernel.name), format!("{answer:?}").as_bytes());
        }
    }
    made.0
}

/// Tells of columns of every type and shape, by each of their choices.
fn tell_columns(choices: fn(Physical) -> Vec<Choice>, tell: &mut dyn FnMut(String)) {
    for (seed, physical) in (0u64..).zip(Physical::ALL) {
        for (turn, shape) in (0u64..).zip(SHAPES) {
            let seed = 100 * seed + turn;
            let column = column(physical, shape, ROWS, [0, 10][turn as usize % 2], seed);
            let predicates = columns::predicates(&column, &mut SmallRng::seed_from_u64(seed));
            // Others at each shape: all at all of them would take a minute.
            let predicates: Vec<Predicate> = predicates.into_iter().skip(turn as usize % 4).step_by(4).collect();
            for choice in choices(physical) {
                let what = format!("{} values, {shape:?}, {choice:?}", physical.name());
                tell(made_of(&column, &choice, &predicates, &what));
            }
        }
    }
}

/// Every way to encode a column of this type.
fn every_choice(physical: Physical) -> Vec<Choice> {
    let forced = SCHEMES.iter().filter(|entry| entry.holds(physical));
    std::iter::once(Choice::Auto).chain(forced.map(|entry| Choice::Forced(entry.name.to_owned()))).collect()
}

#[test]
fn blocks_are_the_same() {
    on_every_set("blocks_are_the_same", |tell| tell_columns(every_choice, tell));
}

/// Apart, for builds that are made for its sake.
#[cfg(feature = "zfp")]
#[test]
fn blocks_of_zfp_are_the_same() {
    fn zfp(physical: Physical) -> Vec<Choice> {
        let forced = Choice::Forced("zfp".to_owned());
        every_choice(physical).into_iter().filter(|choice| *choice == forced).collect()
    }
    on_every_set("blocks_of_zfp_are_the_same", |tell| tell_columns(zfp, tell));
}

/// Keys that are up to so many bits apart, by each codec.
fn tell_keys<K: Key + TryFrom<u64>>(count: usize, width: u32, random: &mut SmallRng, tell: &mut dyn FnMut(String)) {
    let mut last = 1u64;
    let mut next = || {
        last += random.random::<u64>().checked_shr(64 - width).unwrap_or(0);
        K::try_from(last).unwrap_or_else(|_| panic!("{last} is too great"))
    };
    let keys: Vec<K> = (0..count).map(|_| next()).collect();
    let beyond = next();
    for &codec in KEY_CODECS {
        let mut bytes = Vec::new();
        let descriptor = codec.encode(&keys, &mut bytes).unwrap();
        let mut made = Made::of(&format!("{} of {count} keys {width} bits apart", codec.name()));
        made.add("bytes", &bytes);
        let block = KeyBlock::open(codec, descriptor, &bytes).unwrap();
        let mut out = [K::default(); KEYS_MAX];
        assert_eq!(block.decode(&mut out), &keys[..], "{}", made.0);
        for index in (0..count).step_by(count / 20 + 1).chain([count - 1]) {
            assert_eq!(block.select(index), keys[index], "key {index}, {}", made.0);
            let at = keys.partition_point(|key| *key < keys[index]);
            assert_eq!(block.lower_bound(keys[index]), Some((at, keys[index])), "{}, {}", keys[index], made.0);
        }
        assert!(beyond == keys[count - 1] || block.lower_bound(beyond).is_none(), "{beyond}, {}", made.0);
        tell(made.0);
    }
}

#[test]
fn keys_are_the_same() {
    on_every_set("keys_are_the_same", |tell| {
        let mut random = SmallRng::seed_from_u64(5);
        for width in 0..=54 {
            for count in [1, 2, 3, 5, 16, 17, 100, 127, 128, 129, 200, 255, 256] {
                tell_keys::<u32>(count, width.min(23), &mut random, tell);
                tell_keys::<u64>(count, width, &mut random, tell);
            }
        }
    });
}

#[test]
fn every_type_is_summed_by_group_at_its_ends() {
    macro_rules! agrees {
        ($variant:ident, $native:ty) => {
            for len in [0, 1, 31, 64, 700, 1024] {
                for shape in 0..3 {
                    let value = |row: usize| match shape {
                        0 => <$native>::MIN,
                        1 => <$native>::MAX,
                        _ => row.wrapping_mul(0x9e37_79b9_7f4a_7c15) as $native,
                    };
                    let values: Vec<$native> = (0..len).map(value).collect();
                    for group_count in 1..=GROUPS_FEW {
                        let group = |row: usize| match row * row % (group_count + 1) {
                            group if group == group_count => NO_GROUP,
                            group => group as u8,
                        };
                        let groups: Vec<u8> = (0..len).map(group).collect();
                        let (mut sums, mut counts) = (vec![3i64; group_count], vec![4u64; group_count]);
                        for (&value, &group) in values.iter().zip(&groups).filter(|(_, group)| **group != NO_GROUP) {
                            sums[usize::from(group)] = sums[usize::from(group)].wrapping_add(value as i64);
                            counts[usize::from(group)] += 1;
                        }
                        let (mut found, mut counted) = (vec![3; group_count], vec![4; group_count]);
                        assert!(add_by_group(Values::$variant(&values), &groups, &mut found));
                        assert_eq!(found, sums, "{len} rows, {group_count} groups");
                        count_by_group(&groups, &mut counted);
                        assert_eq!(counted, counts, "{len} rows, {group_count} groups");
                    }
                }
            }
        };
    }
    on_every_set("every_type_is_summed_by_group_at_its_ends", |tell| {
        agrees!(U8, u8);
        agrees!(U16, u16);
        agrees!(U32, u32);
        agrees!(I8, i8);
        agrees!(I16, i16);
        agrees!(I32, i32);
        agrees!(I64, i64);
        assert!(!add_by_group(Values::U64(&[1]), &[0], &mut [0]));
        tell("all sums and counts are right".to_owned());
    });
}

#[test]
fn every_row_is_computed_once() {
    on_every_set("every_row_is_computed_once", |tell| {
        for len in [0, 1, 7, 64, 1000, 1024] {
            let left: Vec<i32> = (0..len).map(|row| row * 7919 - 100_000).collect();
            let right: Vec<u8> = (0..len).map(|row| (row * 31) as u8).collect();
            let product = |left: i32, right: u8| i64::from(left) * i64::from(right);
            let products: Vec<i64> = left.iter().zip(&right).map(|(&left, &right)| product(left, right)).collect();
            let squares: Vec<i64> = left.iter().map(|&left| i64::from(left) * i64::from(left)).collect();
            let mut out = vec![5; 3];
            zip_rows(&left, &right, &mut out, product);
            assert_eq!(out, products, "{len} rows");
            map_rows(&left, &mut out, |left: i32| i64::from(left) * i64::from(left));
            assert_eq!(out, squares, "{len} rows");
            update_rows(&mut out, &right, |row, value: u8| row - i64::from(value));
            let differences: Vec<i64> = squares.iter().zip(&right).map(|(row, &by)| row - i64::from(by)).collect();
            assert_eq!(out, differences, "{len} rows");
        }
        tell("all rows are right".to_owned());
    });
}
