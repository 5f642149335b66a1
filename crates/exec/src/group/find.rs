//! Groups looked up by their keys, by many at once: nothing is added.

use super::index::{GroupIndex, Table};
use super::key::{Coding, KeyColumn, KeyNumbers};
use super::numbers::{Lookups, Word};
use super::texts::Text;
use crate::aggregate::{Argument, Form};
use crate::dispatch::each_narrow;
use crate::vector::scalar_at;
use crate::{Dictionary, Error, Result};
use sinter_codec::{Scalar, Values};
use std::sync::Arc;

/// The number of no group.
pub(crate) const ABSENT: u32 = u32::MAX;

/// The code of no key.
const NO_CODE: u64 = u64::MAX;

/// The code of an entry that was not looked up yet.
const UNKNOWN: u64 = u64::MAX - 1;

/// What one worker needs to look keys up.
#[derive(Debug, Default)]
pub(crate) struct Finder {
    codes: Vec<u64>,
    narrow: Vec<u64>,
    wide: Vec<u128>,
    lookups: Lookups,
    entries: Vec<EntryCodes>,
}

/// The codes of a dictionary's entries, as far as they were looked up.
#[derive(Debug, Default)]
struct EntryCodes {
    dictionary: Option<u64>,
    codes: Vec<u64>,
}

impl GroupIndex {
    /// Writes over `groups` the group of each of `rows` rows, by their keys; [`ABSENT`] where there is none.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for keys that are not of the index's types.
    pub(crate) fn find(
        &self,
        keys: &[Argument<'_>],
        rows: usize,
        finder: &mut Finder,
        groups: &mut Vec<u32>,
    ) -> Result<()> {
        finder.entries.resize_with(self.keys.len(), EntryCodes::default);
        groups.clear();
        groups.resize(rows, 0);
        for (plan, table) in self.plan.levels.iter().zip(&self.tables) {
            macro_rules! look_up {
                ($words:ident, $look_up:expr) => {{
                    finder.$words.clear();
                    finder.$words.resize(rows, Default::default());
                    if plan.has_prefix {
                        finder
                            .$words
                            .iter_mut()
                            .zip(&*groups)
                            .for_each(|(word, &group)| *word = word.with(group.into(), 0));
                    }
                    for &(key, shift) in &plan.keys {
                        self.keys[key].find(keys[key], &mut finder.entries[key], &mut finder.codes)?;
                        for ((word, group), &code) in finder.$words.iter_mut().zip(&mut *groups).zip(&finder.codes) {
                            *word = word.with(code, shift);
                            *group = if code == NO_CODE { ABSENT } else { *group };
                        }
                    }
                    $look_up;
                }};
            }
            match table {
                Table::Same { .. } => {
                    let (key, _) = plan.keys[0];
                    self.keys[key].find(keys[key], &mut finder.entries[key], &mut finder.codes)?;
                    groups.iter_mut().zip(&finder.codes).for_each(|(group, &code)| *group = code as u32);
                }
                Table::Array(array) => look_up!(narrow, array.find_all(&finder.narrow, ABSENT, groups)),
                Table::Narrow(table) => {
                    look_up!(narrow, table.find_all(finder.narrow.iter().copied(), &mut finder.lookups, ABSENT, groups))
                }
                Table::Wide(table) => {
                    look_up!(wide, table.find_all(finder.wide.iter().copied(), &mut finder.lookups, ABSENT, groups))
                }
            }
        }
        Ok(())
    }
}

impl KeyColumn {
    /// Writes over `out` the code of each row; [`NO_CODE`] where the key is not there.
    fn find(&self, argument: Argument<'_>, entries: &mut EntryCodes, out: &mut Vec<u64>) -> Result<()> {
        out.clear();
        out.resize(argument.rows, NO_CODE);
        match argument.form {
            Form::Null => {}
            Form::Nested(_) => return Err(unsuitable()),
            Form::Constant(one) => {
                let code = self.code_of(one, 0);
                out.fill(code);
            }
            Form::Truth(bits) => {
                let codes = [self.code_of_integer(0), self.code_of_integer(1)];
                out.iter_mut().enumerate().for_each(|(row, code)| *code = codes[usize::from(bits.get(row))]);
            }
            Form::BaseDelta(base, deltas)
                if let (KeyNumbers::None, Coding::Distance { base: from, bits }) = (&self.numbers, self.coding)
                    && let Ok(first) = i64::try_from(base - from + 1) =>
            {
                each_narrow!(deltas, deltas => out.iter_mut().zip(deltas).for_each(|(code, &delta)| {
                    // What is below comes out as more than `bits` bits, too.
                    let distance = first.wrapping_add(i64::from(delta)) as u64;
                    *code = if distance != 0 && distance >> bits == 0 { distance } else { NO_CODE };
                }));
            }
            Form::BaseDelta(base, deltas) => each_narrow!(deltas, deltas => {
                out.iter_mut().zip(deltas).for_each(|(code, &delta)| {
                    *code = self.code_of_integer(base + i128::from(delta));
                });
            }),
            Form::Codes(codes, dictionary) => self.find_entries(codes, dictionary, entries, out),
            Form::Flat(values) => self.find_flat(values, out)?,
        }
        let null = self.coding.null().or(self.null.map(u64::from)).unwrap_or(NO_CODE);
        match (argument.form, argument.validity) {
            (Form::Null, _) => out.fill(null),
            (_, Some(validity)) => {
                out.iter_mut().enumerate().filter(|(row, _)| !validity.get(*row)).for_each(|(_, code)| *code = null);
            }
            _ => {}
        }
        Ok(())
    }

    fn find_entries(
        &self,
        codes: &sinter_codec::Narrow,
        dictionary: &Arc<Dictionary>,
        entries: &mut EntryCodes,
        out: &mut [u64],
    ) {
        let values = dictionary.values.as_values();
        if entries.dictionary != Some(dictionary.id) {
            entries.dictionary = Some(dictionary.id);
            entries.codes.clear();
            entries.codes.resize(values.len(), UNKNOWN);
        }
        each_narrow!(codes, codes => for (code, &entry) in out.iter_mut().zip(codes) {
            // Only the code of a NULL is outside.
            let Some(known) = entries.codes.get_mut(entry as usize) else { continue };
            if *known == UNKNOWN {
                *known = self.code_of(values, entry as usize);
            }
            *code = *known;
        });
    }

    fn find_flat(&self, values: Values<'_>, out: &mut [u64]) -> Result<()> {
        macro_rules! integers {
            ($values:expr) => {
                match (&self.numbers, self.coding) {
                    (KeyNumbers::None, Coding::Distance { base, bits }) => {
                        // What is outside of the type wraps, and comes out as more than `bits` bits or as 0.
                        let first = 1u64.wrapping_sub(base as u64);
                        for (code, &value) in out.iter_mut().zip($values) {
                            let distance = (value as u64).wrapping_add(first);
                            *code = if distance != 0 && distance >> bits == 0 { distance } else { NO_CODE };
                        }
                    }
                    (KeyNumbers::Words(numbers), _) => {
                        for (code, &value) in out.iter_mut().zip($values) {
                            *code = numbers.find(value as u64).map_or(NO_CODE, u64::from);
                        }
                    }
                    _ => {
                        for (code, &value) in out.iter_mut().zip($values) {
                            *code = self.code_of_integer(value.into());
                        }
                    }
                }
            };
        }
        match values {
            Values::I8(values) => integers!(values),
            Values::I16(values) => integers!(values),
            Values::I32(values) => integers!(values),
            Values::I64(values) => integers!(values),
            Values::U8(values) => integers!(values),
            Values::U16(values) => integers!(values),
            Values::U32(values) => integers!(values),
            Values::U64(values) => integers!(values),
            Values::I128(values) => {
                out.iter_mut().zip(values).for_each(|(code, &value)| *code = self.code_of_integer(value));
            }
            Values::Bytes(view) => match &self.numbers {
                KeyNumbers::Texts(numbers) => {
                    for (row, code) in out.iter_mut().enumerate() {
                        *code = numbers.find(Text::at(&view, row)).map_or(NO_CODE, u64::from);
                    }
                }
                _ => return Err(unsuitable()),
            },
            Values::F32(_) | Values::F64(_) => {
                out.iter_mut().enumerate().for_each(|(row, code)| *code = self.code_of(values, row));
            }
        }
        Ok(())
    }

    fn code_of_integer(&self, value: i128) -> u64 {
        let number = match &self.numbers {
            KeyNumbers::None => {
                let Coding::Distance { base, bits } = self.coding else { return NO_CODE };
                let distance = value.wrapping_sub(base);
                return if distance >= 0 && (distance + 1) >> bits == 0 { distance as u64 + 1 } else { NO_CODE };
            }
            KeyNumbers::Words(numbers) => numbers.find(value as u64),
            KeyNumbers::WideWords(numbers) => numbers.find(value as u128),
            KeyNumbers::Texts(_) => None,
        };
        number.map_or(NO_CODE, u64::from)
    }

    /// The code of one value.
    fn code_of(&self, values: Values<'_>, row: usize) -> u64 {
        match (values, &self.numbers) {
            (Values::F32(values), _) => u64::from(super::key::canonical_f32(values[row])) + 1,
            (Values::F64(values), _) if self.coding == Coding::Floats => super::key::canonical_f64(values[row]),
            (Values::Bytes(view), KeyNumbers::Texts(numbers)) => {
                numbers.find(Text::at(&view, row)).map_or(NO_CODE, u64::from)
            }
            _ => match scalar_at(values, row) {
                Scalar::Int(value) => self.code_of_integer(value),
                _ => NO_CODE,
            },
        }
    }
}

fn unsuitable() -> Error {
    Error::Unsupported("keys of another type than those they are looked up among".into())
}
