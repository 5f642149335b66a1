//! Heads: numbers that order as lists of keys do.
//!
//! A key has a flag that says where NULL belongs, then a code. Keys get their bits in turn, as many as their values need;
//! the first that does not fit gets what is left, and holds the beginning of its values there: the first bytes of a text,
//! length and leading digits of a number. From that key on, equal heads say nothing.

use super::SortKey;
use crate::aggregate::{Argument, Form};
use crate::dispatch::each_narrow;
use crate::expr::float_key;
use crate::group::{IntScratch, Ints};
use crate::text_head::TextHead;
use crate::{Error, LogicalType, Result};
use sinter_codec::{BytesView, CompareOp, Physical, Predicate, Scalar, Values, after_prefix};

/// Bits of a head. With the number of a row it fits an integer of 128 bits.
pub(super) const HEAD_BITS: u32 = 96;

/// With fewer, the beginning of a key says too little.
const BITS_MIN: u32 = 16;

/// Bits that say how long a number of 128 bits is.
const LENGTH_BITS: u32 = 7;

/// How a key becomes a code.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Coding {
    /// An integer by its distance from the least.
    Distance(i128),
    /// An integer by sign, length and leading digits.
    Leading,
    /// A float's first bits.
    Float,
    /// A text's first bytes.
    Prefix,
}

/// A key's place in heads.
#[derive(Debug)]
struct Place {
    coding: Coding,
    /// Of the code, without the flag.
    bits: u32,
    /// Below it.
    shift: u32,
    descending: bool,
    nulls_first: bool,
}

/// How keys become heads.
#[derive(Debug)]
pub(super) struct HeadPlan {
    places: Vec<Place>,
    /// Whether the last place may not have all of its key.
    is_cut: bool,
}

/// Memory in which heads are made, and what was found out.
#[derive(Debug, Default)]
pub(super) struct HeadScratch {
    ints: IntScratch,
    /// Some key was longer than its place.
    pub(super) has_cut: bool,
}

impl HeadPlan {
    /// For keys of these types, between these integers where that is known. `None` where one is nested.
    pub(super) fn new<'a>(
        keys: impl Iterator<Item = (&'a SortKey, &'a LogicalType, Option<(i128, i128)>)>,
    ) -> Option<HeadPlan> {
        let mut plan = HeadPlan { places: Vec::new(), is_cut: false };
        let mut left = HEAD_BITS;
        for (key, ty, bounds) in keys {
            let physical = ty.physical()?;
            let (mut coding, needed) = coding(physical, bounds);
            if plan.is_cut || !plan.places.is_empty() && left < BITS_MIN.min(needed.unwrap_or(BITS_MIN) + 1) {
                plan.is_cut = true;
                continue;
            }
            let bits = needed.map_or(left - 1, |needed| needed.min(left - 1));
            if needed.is_none_or(|needed| needed > bits) {
                plan.is_cut = true;
                coding = if let Coding::Distance(_) = coding { Coding::Leading } else { coding };
            }
            left -= bits + 1;
            plan.places.push(Place {
                coding,
                bits,
                shift: left,
                descending: key.descending,
                nulls_first: key.nulls_first,
            });
        }
        Some(plan)
    }

    /// The first key of which equal heads may not say that it is equal: the last that has a place, and the only one of
    /// which it depends on the values ([`HeadScratch::has_cut`]).
    pub(super) fn first_open(&self) -> usize {
        self.places.len() - usize::from(self.is_cut)
    }

    /// How far the first key's place is from the end of a head; `None` where it is the only one.
    pub(super) fn first_shift(&self) -> Option<u32> {
        let [first, _, ..] = &self.places[..] else { return None };
        Some(first.shift)
    }

    /// What the first key of rows passes whose heads are `last` at most, if it is there, and whether NULLs come before those:
    /// no predicate where only NULLs do. `None` where that cannot be told: for floats, and for numbers of which heads have the
    /// beginning.
    pub(super) fn first_key_until(&self, last: u128) -> Option<(Option<Predicate>, bool)> {
        let place = self.places.first()?;
        let is_there = (last >> (place.shift + place.bits) & 1 == 1) == place.nulls_first;
        if !is_there {
            return place.nulls_first.then_some((None, true));
        }
        let code = (last >> place.shift ^ place.turn()) & ((1 << place.bits) - 1);
        let predicate = match (place.coding, place.descending) {
            (Coding::Distance(low), false) => {
                Predicate::Between(Scalar::Null, Scalar::Int(low.wrapping_add(code as i128)))
            }
            (Coding::Distance(low), true) => {
                Predicate::Between(Scalar::Int(low.wrapping_add(code as i128)), Scalar::Null)
            }
            (Coding::Prefix, false) => {
                Predicate::Compare(CompareOp::Less, Scalar::Bytes(after_prefix(&first_bytes(code, place.bits))?))
            }
            (Coding::Prefix, true) => {
                let mut bytes = first_bytes(code, place.bits);
                bytes.truncate(bytes.iter().rposition(|&byte| byte != 0)? + 1);
                Predicate::Between(Scalar::Bytes(bytes), Scalar::Null)
            }
            (Coding::Leading | Coding::Float, _) => return None,
        };
        Some((Some(predicate), place.nulls_first))
    }

    /// Writes over `heads` that of each row, or what the first `key_count` keys have in it, for keys in the order of the plan.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for values of other types.
    pub(super) fn write<'a>(
        &self,
        key_count: usize,
        key: impl Fn(usize) -> Argument<'a>,
        rows: usize,
        scratch: &mut HeadScratch,
        heads: &mut Vec<u128>,
    ) -> Result<()> {
        heads.clear();
        heads.resize(rows, 0);
        for (number, place) in self.places.iter().enumerate().take(key_count) {
            place.write(key(number), scratch, heads)?;
        }
        Ok(())
    }
}

/// How values of a type become codes, and how many bits they need; `None` for as many as there are.
fn coding(physical: Physical, bounds: Option<(i128, i128)>) -> (Coding, Option<u32>) {
    let distance = |low: i128, high: i128| {
        let span = high.abs_diff(low);
        (Coding::Distance(low), Some(u128::BITS - span.leading_zeros()))
    };
    match physical {
        Physical::F32 | Physical::F64 => return (Coding::Float, Some(u64::BITS)),
        Physical::Bytes => return (Coding::Prefix, None),
        _ => {}
    }
    match (bounds, physical) {
        (Some((low, high)), _) if low <= high => distance(low, high),
        (_, Physical::I8) => distance(i8::MIN.into(), i8::MAX.into()),
        (_, Physical::I16) => distance(i16::MIN.into(), i16::MAX.into()),
        (_, Physical::I32) => distance(i32::MIN.into(), i32::MAX.into()),
        (_, Physical::I64) => distance(i64::MIN.into(), i64::MAX.into()),
        (_, Physical::U8) => distance(0, u8::MAX.into()),
        (_, Physical::U16) => distance(0, u16::MAX.into()),
        (_, Physical::U32) => distance(0, u32::MAX.into()),
        (_, Physical::U64) => distance(0, u64::MAX.into()),
        _ => distance(i128::MIN, i128::MAX),
    }
}

impl Place {
    /// What codes are turned around by: a NULL must not have it.
    fn turn(&self) -> u128 {
        if self.descending { (1 << self.bits) - 1 } else { 0 }
    }

    fn write(&self, key: Argument<'_>, scratch: &mut HeadScratch, heads: &mut [u128]) -> Result<()> {
        let flag = 1 << (self.shift + self.bits);
        let present = if self.nulls_first { flag } else { 0 };
        if let Form::Null = key.form {
            if !self.nulls_first {
                heads.iter_mut().for_each(|head| *head |= flag);
            }
            return Ok(());
        }
        match key.validity {
            None => heads.iter_mut().for_each(|head| *head |= present),
            Some(validity) => {
                let of_row = |is_there: bool| if is_there == self.nulls_first { flag } else { 0 };
                heads.iter_mut().enumerate().for_each(|(row, head)| *head |= of_row(validity.get(row)));
            }
        }
        let turn = self.turn();
        let shift = self.shift;
        let mut add = |row: usize, code: u128| heads[row] |= (code ^ turn) << shift;
        match self.coding {
            Coding::Distance(low) => match ints(scratch, key)? {
                Ints::Narrow { values, .. } => {
                    key.for_each_present(|row| add(row, i128::from(values[row]).wrapping_sub(low) as u128));
                }
                Ints::Wide(values) => key.for_each_present(|row| add(row, values[row].wrapping_sub(low) as u128)),
            },
            Coding::Leading => {
                let mut has_cut = scratch.has_cut;
                let mut add_leading = |row: usize, value: i128| {
                    let (code, is_cut) = leading(value, self.bits);
                    has_cut |= is_cut;
                    add(row, code);
                };
                match ints(scratch, key)? {
                    Ints::Narrow { values, .. } => key.for_each_present(|row| add_leading(row, values[row].into())),
                    Ints::Wide(values) => key.for_each_present(|row| add_leading(row, values[row])),
                }
                scratch.has_cut = has_cut;
            }
            Coding::Float => {
                let cut = u64::BITS - self.bits.min(u64::BITS);
                each_float(key, |row, value| {
                    let code = float_key(value) as u64 ^ 1 << 63;
                    scratch.has_cut |= code >> cut << cut != code;
                    add(row, (code >> cut).into());
                })?;
            }
            Coding::Prefix => each_text(key, |row, texts, at| {
                let (code, is_cut) = prefix(TextHead::at(&texts, at), texts.get(at), self.bits);
                scratch.has_cut |= is_cut;
                add(row, code);
            })?,
        }
        Ok(())
    }
}

fn ints<'a>(scratch: &'a mut HeadScratch, key: Argument<'a>) -> Result<Ints<'a>> {
    scratch.ints.ints(key).ok_or_else(unsuitable)
}

/// The first bits of a number of 1 + 7 + 127 that order as integers do: whether it is not negative, how long it is, and
/// what follows its first digit. And whether some of that was left out.
fn leading(value: i128, bits: u32) -> (u128, bool) {
    let distance = (value ^ (value >> 127)) as u128;
    let length = u128::BITS - distance.leading_zeros();
    // Its digits without the first, at the top.
    let digits = distance.checked_shl(u128::BITS + 1 - length).unwrap_or(0);
    let (rest, half) = (bits - 1 - LENGTH_BITS, 1u128 << (bits - 1));
    let code = u128::from(length) << rest | if rest == 0 { 0 } else { digits >> (u128::BITS - rest) };
    (if value < 0 { half - 1 - code } else { half + code }, digits << rest != 0)
}

/// The first bits of a text, with zeros where it has none. And whether other texts have the same ones.
fn prefix(head: TextHead, text: &[u8], bits: u32) -> (u128, bool) {
    let is_cut = text.len() * 8 > bits as usize || text.last() == Some(&0);
    (head.number() >> (u128::BITS - bits), is_cut)
}

/// The whole bytes of a text that are in a code of so many bits, with zeros where it has none.
fn first_bytes(code: u128, bits: u32) -> Vec<u8> {
    let (count, code) = (bits / u8::BITS, code >> (bits % u8::BITS));
    (0..count).rev().map(|number| (code >> (number * u8::BITS)) as u8).collect()
}

/// Shows the floats of the rows that have one.
fn each_float(key: Argument<'_>, mut visit: impl FnMut(usize, f64)) -> Result<()> {
    let float = |values: Values<'_>, at: usize| match values {
        Values::F64(values) => values.get(at).copied(),
        Values::F32(values) => values.get(at).map(|&value| value.into()),
        _ => None,
    };
    let mut missing = false;
    let mut show = |row: usize, value: Option<f64>| match value {
        Some(value) => visit(row, value),
        None => missing = true,
    };
    match key.form {
        Form::Flat(values) => key.for_each_present(|row| show(row, float(values, row))),
        Form::Constant(one) => key.for_each_present(|row| show(row, float(one, 0))),
        Form::Codes(codes, dictionary) => {
            let values = dictionary.values.as_values();
            key.for_each_present(|row| show(row, float(values, codes.get(row) as usize)));
        }
        Form::BaseDelta(base, deltas) => each_narrow!(deltas, deltas => {
            key.for_each_present(|row| show(row, Some((base + i128::from(deltas[row])) as f64)));
        }),
        Form::Null | Form::Truth(_) | Form::Nested(_) => missing = true,
    }
    if missing { Err(unsuitable()) } else { Ok(()) }
}

/// Shows the texts of the rows that have one: all texts, and which it is.
fn each_text(key: Argument<'_>, mut visit: impl FnMut(usize, BytesView<'_>, usize)) -> Result<()> {
    let view = |values| match values {
        Values::Bytes(view) => Ok(view),
        _ => Err(unsuitable()),
    };
    let mut show = |texts: BytesView<'_>, row: usize, at: usize| {
        if at < texts.len() {
            visit(row, texts, at);
        }
    };
    match key.form {
        Form::Flat(values) => {
            let texts = view(values)?;
            key.for_each_present(|row| show(texts, row, row));
        }
        Form::Constant(one) => {
            let texts = view(one)?;
            key.for_each_present(|row| show(texts, row, 0));
        }
        Form::Codes(codes, dictionary) => {
            let texts = view(dictionary.values.as_values())?;
            key.for_each_present(|row| show(texts, row, codes.get(row) as usize));
        }
        Form::BaseDelta(..) | Form::Null | Form::Truth(_) | Form::Nested(_) => return Err(unsuitable()),
    }
    Ok(())
}

#[cold]
fn unsuitable() -> Error {
    Error::Unsupported("sort keys of values of several types".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leading_digits_order_as_numbers_do() {
        let mut numbers: Vec<i128> = (0..127).flat_map(|bit| [1 << bit, (1 << bit) - 1, (1 << bit) + 1]).collect();
        numbers.extend([0, i128::MAX, 12_345_678_901_234_567_890]);
        numbers.extend(numbers.clone().into_iter().map(|number| -number - 1));
        numbers.sort_unstable();
        for bits in [15, 40, 95] {
            let codes: Vec<(u128, bool)> = numbers.iter().map(|&number| leading(number, bits)).collect();
            assert!(codes.iter().all(|(code, _)| code >> bits == 0), "{bits} bits");
            for (numbers, codes) in numbers.windows(2).zip(codes.windows(2)) {
                assert!(codes[0].0 <= codes[1].0, "{numbers:?} in {bits} bits");
                let is_cut = codes[0].1 || codes[1].1;
                assert!(codes[0].0 < codes[1].0 || numbers[0] == numbers[1] || is_cut, "{numbers:?} in {bits} bits");
            }
            assert!(!leading(-1 << (bits - 9), bits).1 && !leading((1 << (bits - 9)) - 1, bits).1, "{bits} bits");
        }
    }

    #[test]
    fn a_text_is_within_its_bound_and_what_comes_next_is_not() {
        let texts: [&[u8]; 8] =
            [b"", b"a", b"ab", b"ab is longer", b"ab is longer than a head", b"b", b"\xff", &[255; 20]];
        for descending in [false, true] {
            let key = SortKey { expr: crate::Expr::Column(0), descending, nulls_first: false };
            let plan = HeadPlan::new([(&key, &LogicalType::Utf8, None)].into_iter()).unwrap();
            let place = &plan.places[0];
            let head = |text: &[u8]| (prefix(TextHead::of(text), text, place.bits).0 ^ place.turn()) << place.shift;
            for last in texts {
                let Some((Some(predicate), false)) = plan.first_key_until(head(last)) else {
                    assert!(last.is_empty() || last.len() == 20, "{last:?}");
                    continue;
                };
                for text in texts {
                    let passes = match &predicate {
                        Predicate::Compare(CompareOp::Less, Scalar::Bytes(end)) => text < &end[..],
                        Predicate::Between(Scalar::Bytes(begin), Scalar::Null) => text >= &begin[..],
                        other => panic!("{other:?}"),
                    };
                    assert!(passes || head(text) > head(last), "{text:?} is not behind {last:?}");
                    assert!(!passes || head(text) >> 7 <= head(last) >> 7, "{text:?} is behind {last:?}");
                }
            }
        }
    }

    #[test]
    fn prefixes_order_as_texts_do() {
        let prefix = |text: &[u8], bits| super::prefix(TextHead::of(text), text, bits);
        let texts: [&[u8]; 7] = [b"", b"\0", b"a", b"a\0", b"ab", b"ab is longer than a head", b"\xff\xff"];
        assert!(texts.iter().map(|text| prefix(text, 95).0).is_sorted());
        assert_eq!(prefix(b"ab", 16), (0x6162, false));
        assert_eq!(prefix(b"ab\0", 95), (0x6162 << 79, true));
        assert_eq!(prefix(b"abc", 17), (0x6162 << 1, true));
    }
}
