//! The values of one key as codes: numbers of a known width that are equal where the values are.
//!
//! Integers of which the table knows the span are codes by their distance from its beginning, and floats are their bits.
//! Whatever is wider, and text, is numbered in the order in which it occurs. Values of a dictionary are looked up once per
//! entry and dictionary.

use super::numbers::{Lookups, Numbers, Words};
use super::texts::{Text, Texts};
use crate::aggregate::{Argument, Form};
use crate::dispatch::each_narrow;
use crate::{Dictionary, Error, LogicalType, Result, Vector};
use foldhash::fast::RandomState;
use sinter_codec::{Bitmap, Encoded, Narrow, Physical, Values, ValuesBuf};
use std::hash::BuildHasher;
use std::sync::Arc;

/// How the values of a key become codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    /// The distance from `base`, and 1 more; NULL is 0. Floats of 32 bits are their bits here.
    Distance { base: i128, bits: u32 },
    /// Floats of 64 bits are their bits; NULL is a NaN that none of them is.
    Floats,
    /// By occurrence, NULL too. Integers of 64 bits are their bits.
    Words,
    /// By occurrence.
    WideWords,
    /// By occurrence.
    Texts,
}

/// Bits of a number.
pub(super) const NUMBER_BITS: u32 = u32::BITS;

impl Coding {
    /// For a column of this type, whose values are known to be between two integers, or not. `None` for nested types.
    pub(super) fn new(ty: &LogicalType, bounds: Option<(i128, i128)>) -> Option<Coding> {
        let spanned = |low: i128, high: i128| {
            let codes = high.checked_sub(low)?.checked_add(2)?;
            let bits = u128::BITS - (codes - 1).leading_zeros();
            (bits < u64::BITS).then_some(Coding::Distance { base: low, bits })
        };
        let physical = ty.physical()?;
        let by_bounds = bounds.filter(|(low, high)| low <= high).and_then(|(low, high)| spanned(low, high));
        let by_type = || match physical {
            Physical::I8 => spanned(i8::MIN.into(), i8::MAX.into()),
            Physical::I16 => spanned(i16::MIN.into(), i16::MAX.into()),
            Physical::I32 => spanned(i32::MIN.into(), i32::MAX.into()),
            Physical::U8 if *ty == LogicalType::Boolean => spanned(0, 1),
            Physical::U8 => spanned(0, u8::MAX.into()),
            Physical::U16 => spanned(0, u16::MAX.into()),
            Physical::U32 | Physical::F32 => spanned(0, u32::MAX.into()),
            Physical::I64 | Physical::U64 => Some(Coding::Words),
            Physical::F64 => Some(Coding::Floats),
            Physical::I128 => Some(Coding::WideWords),
            Physical::Bytes => Some(Coding::Texts),
        };
        match physical {
            Physical::F32 | Physical::F64 | Physical::Bytes => by_type(),
            _ => by_bounds.or_else(by_type),
        }
    }

    /// Bits of a code.
    pub(super) fn bits(self) -> u32 {
        match self {
            Coding::Distance { bits, .. } => bits,
            Coding::Floats => u64::BITS,
            Coding::Words | Coding::WideWords | Coding::Texts => NUMBER_BITS,
        }
    }

    /// NULL's code, unless it is a number by occurrence.
    pub(super) fn null(self) -> Option<u64> {
        match self {
            Coding::Distance { .. } => Some(0),
            Coding::Floats => Some(NULL_FLOAT),
            Coding::Words | Coding::WideWords | Coding::Texts => None,
        }
    }

    /// Whether codes are numbers by occurrence: 0, 1, 2, ...
    pub(super) fn is_numbered(self) -> bool {
        matches!(self, Coding::Words | Coding::WideWords | Coding::Texts)
    }
}

/// The bits of a NaN that [`canonical_f64`] makes of none.
const NULL_FLOAT: u64 = f64::NAN.to_bits() + 1;

/// Codes of one key, for one worker.
#[derive(Debug)]
pub(super) struct KeyColumn {
    pub(super) coding: Coding,
    physical: Physical,
    pub(super) numbers: KeyNumbers,
    /// NULL's number, once it has occurred.
    pub(super) null: Option<u32>,
    /// The codes of a dictionary's entries, as far as they have occurred.
    entries: Vec<u64>,
    dictionary: Option<u64>,
    /// Those of a vector that have not occurred before.
    new_entries: Vec<u32>,
    lookups: Lookups,
    /// Rows that have a value.
    present: Vec<u16>,
}

#[derive(Debug)]
pub(super) enum KeyNumbers {
    None,
    Words(Numbers<Words<u64>>),
    WideWords(Numbers<Words<u128>>),
    Texts(Numbers<Texts>),
}

/// An entry that has not occurred. No code has these bits: [`Coding::Distance`] has fewer, of [`Coding::Floats`] one NaN has
/// others.
const UNKNOWN: u64 = u64::MAX;

/// One that has occurred in the vector at hand for the first time.
const NEW: u64 = u64::MAX - 1;

impl KeyColumn {
    /// For values of a type that [`Coding::new`] took.
    pub(super) fn new(coding: Coding, ty: &LogicalType) -> KeyColumn {
        let numbers = match coding {
            Coding::Distance { .. } | Coding::Floats => KeyNumbers::None,
            Coding::Words => KeyNumbers::Words(Numbers::default()),
            Coding::WideWords => KeyNumbers::WideWords(Numbers::default()),
            Coding::Texts => KeyNumbers::Texts(Numbers::default()),
        };
        let physical = ty.physical().unwrap_or(Physical::Bytes);
        let (entries, new_entries, lookups, present) = Default::default();
        KeyColumn { coding, physical, numbers, null: None, entries, dictionary: None, new_entries, lookups, present }
    }

    /// How many numbers were given, where codes are numbers.
    pub(super) fn number_count(&self) -> usize {
        match &self.numbers {
            KeyNumbers::None => 0,
            KeyNumbers::Words(numbers) => numbers.len(),
            KeyNumbers::WideWords(numbers) => numbers.len(),
            KeyNumbers::Texts(numbers) => numbers.len(),
        }
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        match &self.numbers {
            KeyNumbers::None => 0,
            KeyNumbers::Words(numbers) => numbers.bytes(),
            KeyNumbers::WideWords(numbers) => numbers.bytes(),
            KeyNumbers::Texts(numbers) => numbers.bytes(),
        }
    }

    /// Writes over `out` the code of each row.
    ///
    /// # Errors
    /// [`Error::TooManyKeys`]; [`Error::Unsupported`] for values that are none of the column's.
    pub(super) fn codes(&mut self, argument: Argument<'_>, out: &mut Vec<u64>) -> Result<()> {
        out.clear();
        out.resize(argument.rows, 0);
        match argument.form {
            Form::Null => {
                let code = self.null_code()?;
                out.fill(code);
                return Ok(());
            }
            Form::Nested(_) => return Err(unsuitable()),
            // What only NULLs would have must not get a number: no row is in its group.
            Form::Constant(_) if argument.present() == 0 => {}
            Form::Constant(one) => {
                let mut code = [0];
                self.flat(one, Argument { form: argument.form, validity: None, rows: 1 }, &mut code)?;
                out.fill(code[0]);
            }
            Form::Truth(bits) => {
                let codes = [self.code_of_int(0)?, self.code_of_int(1)?];
                out.iter_mut().enumerate().for_each(|(row, code)| *code = codes[usize::from(bits.get(row))]);
            }
            Form::BaseDelta(base, deltas) => match self.coding {
                Coding::Distance { base: from, .. } => {
                    let first = (base - from + 1) as u64;
                    each_narrow!(deltas, deltas => for (code, &delta) in out.iter_mut().zip(deltas) {
                        *code = first.wrapping_add(delta.into());
                    });
                }
                _ => each_narrow!(deltas, deltas => for_each_present(argument, |row| {
                    out[row] = self.code_of_int(base + i128::from(deltas[row]))?;
                    Ok(())
                })?),
            },
            Form::Codes(codes, dictionary) => {
                let done = each_narrow!(codes, codes => self.codes_of_entries(codes, dictionary, argument, out));
                if done.is_err() {
                    // Some entries may be left without a code.
                    self.dictionary = None;
                }
                done?;
            }
            Form::Flat(values) => self.flat(values, argument, out)?,
        }
        if let Some(validity) = argument.validity
            && !validity.all()
        {
            let null = self.null_code()?;
            out.iter_mut().enumerate().filter(|(row, _)| !validity.get(*row)).for_each(|(_, code)| *code = null);
        }
        if let Coding::Distance { bits, .. } = self.coding
            && out.iter().fold(0, |all, code| all | code) >> (bits - 1) > 1
        {
            return Err(Error::Unsupported("a key outside of what its table's statistics tell".into()));
        }
        Ok(())
    }

    /// NULL's code; it has one from now on.
    pub(super) fn null_code(&mut self) -> Result<u64> {
        if let Some(null) = self.coding.null().or(self.null.map(u64::from)) {
            return Ok(null);
        }
        let number = match &mut self.numbers {
            KeyNumbers::None => 0,
            KeyNumbers::Words(numbers) => numbers.skip()?,
            KeyNumbers::WideWords(numbers) => numbers.skip()?,
            KeyNumbers::Texts(numbers) => numbers.skip()?,
        };
        self.null = Some(number);
        Ok(number.into())
    }

    fn code_of_int(&mut self, value: i128) -> Result<u64> {
        match &mut self.numbers {
            KeyNumbers::None => match self.coding {
                Coding::Distance { base, .. } => Ok((value - base + 1) as u64),
                _ => Err(unsuitable()),
            },
            KeyNumbers::Words(numbers) => numbers.number(value as u64).map(u64::from),
            KeyNumbers::WideWords(numbers) => numbers.number(value as u128).map(u64::from),
            KeyNumbers::Texts(_) => Err(unsuitable()),
        }
    }

    fn enter_dictionary(&mut self, dictionary: &Dictionary) {
        if self.dictionary != Some(dictionary.id) {
            self.dictionary = Some(dictionary.id);
            self.entries.clear();
            self.entries.resize(dictionary.values.len(), UNKNOWN);
        }
    }

    /// The codes of a dictionary's codes. Entries that are new are looked up together.
    fn codes_of_entries<C: Copy + Into<u32>>(
        &mut self,
        codes: &[C],
        dictionary: &Dictionary,
        argument: Argument<'_>,
        out: &mut [u64],
    ) -> Result<()> {
        self.enter_dictionary(dictionary);
        let (entries, new_entries) = (&mut self.entries, &mut self.new_entries);
        new_entries.clear();
        for_each_present(argument, |row| {
            let entry: u32 = codes[row].into();
            let code = entries.get_mut(entry as usize).ok_or_else(unsuitable)?;
            if *code == UNKNOWN {
                *code = NEW;
                new_entries.push(entry);
            }
            out[row] = *code;
            Ok(())
        })?;
        if self.new_entries.is_empty() {
            return Ok(());
        }
        self.number_new_entries(dictionary.values.as_values())?;
        for_each_present(argument, |row| {
            out[row] = self.entries[codes[row].into() as usize];
            Ok(())
        })
    }

    #[cold]
    fn number_new_entries(&mut self, values: Values<'_>) -> Result<()> {
        if let (Values::Bytes(view), KeyNumbers::Texts(numbers)) = (values, &mut self.numbers) {
            let keys = self.new_entries.iter().map(|&entry| (entry as usize, Text::at(&view, entry as usize)));
            return numbers.number_all(keys, &mut self.lookups, |entry, number| self.entries[entry] = number.into());
        }
        let new_entries = std::mem::take(&mut self.new_entries);
        for &entry in &new_entries {
            let mut code = [0];
            let one = values.slice(entry as usize..entry as usize + 1);
            self.flat(one, Argument { form: Form::Flat(one), validity: None, rows: 1 }, &mut code)?;
            self.entries[entry as usize] = code[0];
        }
        self.new_entries = new_entries;
        Ok(())
    }

    /// The codes of plain values.
    fn flat(&mut self, values: Values<'_>, argument: Argument<'_>, out: &mut [u64]) -> Result<()> {
        let (lookups, present) = (&mut self.lookups, &mut self.present);
        macro_rules! number_all {
            ($numbers:expr, $row:ident => $key:expr) => {{
                let put = |row: usize, number: u32| out[row] = number.into();
                match argument.validity {
                    None => $numbers.number_all((0..argument.rows).map(|$row| ($row, $key)), lookups, put),
                    Some(validity) => {
                        validity.positions_into(present);
                        let rows = present.iter().map(|&row| usize::from(row));
                        $numbers.number_all(rows.map(|$row| ($row, $key)), lookups, put)
                    }
                }
            }};
        }
        macro_rules! integers {
            ($values:expr) => {
                match (&mut self.numbers, self.coding) {
                    (KeyNumbers::None, Coding::Distance { base, .. }) => {
                        // It wraps to the right code, whatever the type.
                        let first = 1u64.wrapping_sub(base as u64);
                        for (code, &value) in out.iter_mut().zip($values) {
                            *code = (value as u64).wrapping_add(first);
                        }
                        Ok(())
                    }
                    (KeyNumbers::Words(numbers), _) => number_all!(numbers, row => $values[row] as u64),
                    (KeyNumbers::WideWords(numbers), _) => number_all!(numbers, row => $values[row] as u128),
                    _ => Err(unsuitable()),
                }
            };
        }
        match values {
            Values::I8(values) => integers!(values),
            Values::I16(values) => integers!(values),
            Values::I32(values) => integers!(values),
            Values::I64(values) => integers!(values),
            Values::I128(values) => integers!(values),
            Values::U8(values) => integers!(values),
            Values::U16(values) => integers!(values),
            Values::U32(values) => integers!(values),
            Values::U64(values) => integers!(values),
            Values::F32(values) => {
                for (code, &value) in out.iter_mut().zip(values) {
                    *code = u64::from(canonical_f32(value)) + 1;
                }
                Ok(())
            }
            Values::F64(_) if self.coding != Coding::Floats => Err(unsuitable()),
            Values::F64(values) => {
                out.iter_mut().zip(values).for_each(|(code, &value)| *code = canonical_f64(value));
                Ok(())
            }
            Values::Bytes(view) => match &mut self.numbers {
                KeyNumbers::Texts(numbers) => number_all!(numbers, row => Text::at(&view, row)),
                _ => Err(unsuitable()),
            },
        }
    }

    /// All texts that have numbers, by number; `None` where the values are none.
    pub(super) fn texts(&self) -> Option<Dictionary> {
        let KeyNumbers::Texts(numbers) = &self.numbers else { return None };
        let texts = (0..numbers.len()).map(|number| numbers.keys().get(number as u32));
        Some(Dictionary::new(ValuesBuf::Bytes(texts.collect())))
    }

    /// Writes over `out` the values with these codes. A dictionary is one of [`KeyColumn::texts`].
    pub(super) fn values(&self, codes: &[u64], dictionary: Option<&Arc<Dictionary>>, out: &mut Vector) {
        let mut values = ValuesBuf::new(self.physical);
        match (&self.numbers, self.coding) {
            (KeyNumbers::None, Coding::Distance { base, .. }) => {
                let value = |code: u64| base.wrapping_add(code.into()).wrapping_sub(1);
                push_bits(codes.iter().map(|&code| value(code) as u128), &mut values);
            }
            (KeyNumbers::None, Coding::Floats) => push_bits(codes.iter().map(|&code| code.into()), &mut values),
            (KeyNumbers::Words(numbers), _) => {
                let words = &numbers.keys().words;
                push_bits(codes.iter().map(|&code| words[code as usize].into()), &mut values);
            }
            (KeyNumbers::WideWords(numbers), _) => {
                let words = &numbers.keys().words;
                push_bits(codes.iter().map(|&code| words[code as usize]), &mut values);
            }
            (KeyNumbers::Texts(_), _) if dictionary.is_some() => {}
            (KeyNumbers::Texts(numbers), _) => {
                if let ValuesBuf::Bytes(texts) = &mut values {
                    codes.iter().for_each(|&code| texts.push(numbers.keys().get(code as u32)));
                }
            }
            (KeyNumbers::None, _) => debug_assert!(false, "numbered codes have numbers"),
        }
        out.values = match dictionary {
            Some(_) => Encoded::Codes(Narrow::U32(codes.iter().map(|&code| code as u32).collect())),
            None => Encoded::Flat(values),
        };
        out.validity = self.validity(codes);
        (out.dictionary, out.nested) = (dictionary.cloned(), None);
    }

    /// Mixes the values with these codes into `hashes`, the same for equal values of other columns with the same coding.
    pub(super) fn mix(&self, codes: &[u64], hasher: &RandomState, hashes: &mut [u64]) {
        let null = self.null.map(u64::from);
        macro_rules! mix {
            ($code:ident => $value:expr) => {
                for (hash, &$code) in hashes.iter_mut().zip(codes) {
                    *hash = match Some($code) == null {
                        false => hasher.hash_one((*hash, $value)),
                        true => hasher.hash_one(*hash),
                    };
                }
            };
        }
        match &self.numbers {
            // NULL is a code like any other.
            KeyNumbers::None => mix!(code => code),
            KeyNumbers::Words(numbers) => mix!(code => numbers.keys().words[code as usize]),
            KeyNumbers::WideWords(numbers) => mix!(code => numbers.keys().words[code as usize]),
            KeyNumbers::Texts(numbers) => mix!(code => numbers.keys().get(code as u32)),
        }
    }

    /// Writes over `out` anything but NULL where the values with these codes are not.
    pub(super) fn presence(&self, codes: &[u64], out: &mut Vector) {
        out.values = Encoded::Constant(ValuesBuf::U8(vec![0]));
        out.validity = self.validity(codes);
        (out.dictionary, out.nested) = (None, None);
    }

    /// Which of the values with these codes are not NULL; `None` when all are.
    fn validity(&self, codes: &[u64]) -> Option<Bitmap> {
        let null = self.coding.null().or(self.null.map(u64::from));
        null.filter(|null| codes.contains(null)).map(|null| Bitmap::from_bools(codes.iter().map(|&code| code != null)))
    }
}

/// Calls `visit` for each row that has a value, until one fails.
#[inline(always)]
fn for_each_present(argument: Argument<'_>, mut visit: impl FnMut(usize) -> Result<()>) -> Result<()> {
    match argument.validity {
        None => (0..argument.rows).try_for_each(visit),
        Some(validity) => validity.ones().try_for_each(&mut visit),
    }
}

/// One NaN, and one zero.
pub(crate) fn canonical_f64(value: f64) -> u64 {
    if value.is_nan() { f64::NAN.to_bits() } else { (value + 0.0).to_bits() }
}

pub(crate) fn canonical_f32(value: f32) -> u32 {
    if value.is_nan() { f32::NAN.to_bits() } else { (value + 0.0).to_bits() }
}

/// Appends values by their bits.
fn push_bits(bits: impl Iterator<Item = u128>, out: &mut ValuesBuf) {
    match out {
        ValuesBuf::I8(out) => out.extend(bits.map(|bits| bits as i8)),
        ValuesBuf::I16(out) => out.extend(bits.map(|bits| bits as i16)),
        ValuesBuf::I32(out) => out.extend(bits.map(|bits| bits as i32)),
        ValuesBuf::I64(out) => out.extend(bits.map(|bits| bits as i64)),
        ValuesBuf::I128(out) => out.extend(bits.map(|bits| bits as i128)),
        ValuesBuf::U8(out) => out.extend(bits.map(|bits| bits as u8)),
        ValuesBuf::U16(out) => out.extend(bits.map(|bits| bits as u16)),
        ValuesBuf::U32(out) => out.extend(bits.map(|bits| bits as u32)),
        ValuesBuf::U64(out) => out.extend(bits.map(|bits| bits as u64)),
        ValuesBuf::F32(out) => out.extend(bits.map(|bits| f32::from_bits(bits as u32))),
        ValuesBuf::F64(out) => out.extend(bits.map(|bits| f64::from_bits(bits as u64))),
        ValuesBuf::Bytes(_) => debug_assert!(false, "text is not its bits"),
    }
}

fn unsuitable() -> Error {
    Error::Unsupported("a key of another type than its column's".into())
}
