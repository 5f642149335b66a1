//! Sums and counts of few groups: a pass over the vector for four of them, which leaves the rows of others out.
//!
//! To add each row to the sum of its group takes a load, an addition and a store, and the next row of the group waits for
//! them. A pass compares a register of groups at once and adds what is left of a register of values; so some passes take
//! less time than one loop over rows, wherever registers are wide enough for the values. Sums of small numbers stay in lanes
//! twice as wide as they are, for as many rows as these hold. (A pass for each group took half as long again, sums in as many
//! lanes as a register has, written out, up to four times as long: the compiler moved them about.)

use crate::isa::{Isa, each_isa, isa};
use crate::{VECTOR_LEN, Values};

/// Groups up to which passes are worth it.
pub const GROUPS_FEW: usize = 8;

/// The group of rows that no group has.
pub const NO_GROUP: u8 = u8::MAX;

/// Adds to each of `sums`, of which there are at most [`GROUPS_FEW`], the values of the rows that are of its group. False, and
/// nothing happens, for values that are no integers of up to 64 bits.
///
/// Sums wrap: the caller knows that they fit.
///
/// # Panics
/// For more rows than a vector has.
pub fn add_by_group(values: Values<'_>, groups: &[u8], sums: &mut [i64]) -> bool {
    assert!(values.len() <= VECTOR_LEN);
    macro_rules! add {
        ($sum:ident, $values:expr) => {
            if are_passes_worth_it(size_of_val(&$values[..]) / $values.len().max(1), sums.len()) {
                for (pass, sums) in sums.chunks_mut(AT_ONCE).enumerate() {
                    let more = $sum($values, groups, (AT_ONCE * pass) as u8);
                    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum = sum.wrapping_add(more));
                }
            } else {
                add_by_turns($values, groups, sums);
            }
        };
    }
    match values {
        Values::U8(values) => add!(sum_u8, values),
        Values::U16(values) => add!(sum_u16, values),
        Values::U32(values) => add!(sum_u32, values),
        Values::I8(values) => add!(sum_i8, values),
        Values::I16(values) => add!(sum_i16, values),
        Values::I32(values) => add!(sum_i32, values),
        Values::I64(values) => add!(sum_i64, values),
        _ => return false,
    }
    true
}

/// Adds to each of `counts` how many rows are of its group; they are a vector at most.
pub fn count_by_group(groups: &[u8], counts: &mut [u64]) {
    for (group, count) in counts.iter_mut().enumerate() {
        *count += count_group(groups, group as u8);
    }
}

/// Groups that a pass sums.
const AT_ONCE: usize = 4;

/// Whether passes over values of so many bytes take less time than a loop over rows.
fn are_passes_worth_it(value_bytes: usize, group_count: usize) -> bool {
    match isa() {
        Isa::Scalar => false,
        Isa::Avx2 => value_bytes <= 2 || group_count <= AT_ONCE,
        Isa::Avx512 => true,
    }
}

/// Lanes in which rows are summed by turns: as many groups, and then some, [`NO_GROUP`] among them.
const LANES: usize = 2 * GROUPS_FEW;

/// Adds rows by turns to four sums of each group. The next row often is of the same one, and would wait for the addition.
fn add_by_turns<T: Copy + Into<i64>>(values: &[T], groups: &[u8], sums: &mut [i64]) {
    let mut turns = [[0i64; LANES]; 4];
    let mut add = |turn: usize, value: T, group: u8| {
        let sum: &mut i64 = &mut turns[turn][usize::from(group) % LANES];
        *sum = sum.wrapping_add(value.into());
    };
    let (values, values_rest) = values.as_chunks::<4>();
    let (groups, groups_rest) = groups.as_chunks::<4>();
    for (values, groups) in values.iter().zip(groups) {
        for turn in 0..4 {
            add(turn, values[turn], groups[turn]);
        }
    }
    for (&value, &group) in values_rest.iter().zip(groups_rest) {
        add(0, value, group);
    }
    for (group, sum) in sums.iter_mut().enumerate() {
        *sum = turns.iter().fold(*sum, |sum, lanes| sum.wrapping_add(lanes[group]));
    }
}

macro_rules! sums {
    ($($sum:ident, $body:ident: $native:ty, $lane:ty, $stretch:expr;)*) => {
        each_isa! {$(
            fn $sum(values: &[$native], groups: &[u8], first: u8) -> [i64; AT_ONCE] = $body;
        )*}
        $(
        #[inline(always)]
        fn $body(values: &[$native], groups: &[u8], first: u8) -> [i64; AT_ONCE] {
            let mut sums = [0i64; AT_ONCE];
            for (values, groups) in values.chunks($stretch).zip(groups.chunks($stretch)) {
                // One variable for each: of an array the compiler makes no registers.
                let (mut a, mut b, mut c, mut d) = (0 as $lane, 0 as $lane, 0 as $lane, 0 as $lane);
                for (&value, &group) in values.iter().zip(groups) {
                    let of = |number: u8| <$lane>::from(if group == first + number { value } else { 0 });
                    a = a.wrapping_add(of(0));
                    b = b.wrapping_add(of(1));
                    c = c.wrapping_add(of(2));
                    d = d.wrapping_add(of(3));
                }
                for (sum, more) in sums.iter_mut().zip([a, b, c, d]) {
                    *sum = sum.wrapping_add(more.into());
                }
            }
            sums
        }
        )*
    };
}

sums! {
    // Kernel: what it sums, in which lanes, and how many rows they hold the sum of at least.
    sum_u8, sum_u8_body: u8, u16, 256;
    sum_u16, sum_u16_body: u16, u32, VECTOR_LEN;
    sum_u32, sum_u32_body: u32, i64, VECTOR_LEN;
    sum_i8, sum_i8_body: i8, i16, 256;
    sum_i16, sum_i16_body: i16, i32, VECTOR_LEN;
    sum_i32, sum_i32_body: i32, i64, VECTOR_LEN;
    sum_i64, sum_i64_body: i64, i64, VECTOR_LEN;
}

each_isa! {
    fn count_group(groups: &[u8], group: u8) -> u64 = count_group_body;
}

#[inline(always)]
fn count_group_body(groups: &[u8], group: u8) -> u64 {
    // As many rows as a byte can count.
    let (stretches, rest) = groups.as_chunks::<128>();
    let count = |groups: &[u8]| groups.iter().fold(0u8, |count, &of| count + u8::from(of == group));
    stretches.iter().map(|groups| u64::from(count(groups))).sum::<u64>() + u64::from(count(rest))
}
