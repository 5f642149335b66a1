//! From the keys of a row to the number of its group.
//!
//! The codes of all keys are packed into one word of 64 or 128 bits, and the word is looked up in a hash table. Where
//! they do not fit, the first ones are packed and numbered apart, and their number stands for them among the others. A
//! lone key whose codes are numbers already needs no second table. In front of it all stands [`Direct`], which knows the
//! groups of small domains by position.

use super::direct::Direct;
use super::key::{Coding, KeyColumn, NUMBER_BITS};
use super::numbers::{Lookups, Numbers, Word, Words};
use crate::aggregate::Argument;
use crate::{Dictionary, Error, LogicalType, Result, Vector};
use foldhash::fast::RandomState;
use sinter_codec::{Bitmap, GROUPS_FEW};
use std::ops::Range;
use std::sync::Arc;

/// Keys that are numbered together.
#[derive(Clone, Debug)]
pub(super) struct LevelPlan {
    /// Which keys, each from which bit on.
    pub(super) keys: Vec<(usize, u32)>,
    /// The number that the level before gave is in the lowest bits.
    pub(super) has_prefix: bool,
    /// Bits in all.
    bits: u32,
    /// How many words there can be, where an array of them is not too large.
    words_max: Option<usize>,
}

/// How the keys of a plan become groups; shared by all workers.
#[derive(Clone, Debug)]
pub(crate) struct IndexPlan {
    types: Vec<LogicalType>,
    codings: Vec<Coding>,
    pub(super) levels: Vec<LevelPlan>,
}

impl IndexPlan {
    /// For keys with these types and, where they are known, bounds; an array may have so many places. `None` where one of
    /// them is nested.
    pub(crate) fn new(
        types: Vec<LogicalType>,
        bounds: &[Option<(i128, i128)>],
        places_max: usize,
    ) -> Option<IndexPlan> {
        let codings = types.iter().zip(bounds).map(|(ty, bounds)| Coding::new(ty, *bounds));
        let codings = codings.collect::<Option<Vec<_>>>()?;
        let mut levels = vec![LevelPlan { keys: Vec::new(), has_prefix: false, bits: 0, words_max: None }];
        for (key, coding) in codings.iter().enumerate() {
            let mut level = levels.last_mut()?;
            if level.bits + coding.bits() > u128::BITS {
                levels.push(LevelPlan { keys: Vec::new(), has_prefix: true, bits: NUMBER_BITS, words_max: None });
                level = levels.last_mut()?;
            }
            level.keys.push((key, level.bits));
            level.bits += coding.bits();
        }
        if let [level] = &mut levels[..] {
            // The last key's codes are in the highest bits, so its bounds say where words end.
            let last = level.keys.last().and_then(|&(key, shift)| Some((bounds[key]?, codings[key], shift)));
            if let Some(((low, high), Coding::Distance { .. }, shift)) = last
                && level.bits <= ARRAY_BITS_MAX
            {
                let words = ((high - low + 2) as usize) << shift;
                level.words_max = (words <= places_max.max(WORDS_MIN)).then_some(words);
            }
        }
        Some(IndexPlan { types, codings, levels })
    }

    /// The same for so few of the groups that an array has more places than there are of them.
    pub(super) fn without_array(&self) -> IndexPlan {
        let mut plan = self.clone();
        plan.levels.iter_mut().for_each(|level| level.words_max = None);
        plan
    }
}

/// What numbers the words of a level.
#[derive(Debug)]
pub(super) enum Table {
    /// The one key's codes are the numbers.
    Same {
        count: usize,
    },
    /// Numbers stand in an array, by word.
    Array(Array),
    Narrow(Numbers<Words<u64>>),
    Wide(Numbers<Words<u128>>),
}

/// The groups that one worker has met. Groups are numbered in the order in which they first occur.
#[derive(Debug)]
pub(crate) struct GroupIndex {
    pub(super) plan: IndexPlan,
    pub(super) keys: Vec<KeyColumn>,
    pub(super) tables: Vec<Table>,
    /// Texts by number, of keys that many groups share; none before somebody wanted it so.
    dictionaries: Vec<Option<Arc<Dictionary>>>,
    direct: Direct,
    codes: Vec<u64>,
    narrow: Vec<u64>,
    wide: Vec<u128>,
    lookups: Lookups,
}

impl GroupIndex {
    pub(crate) fn new(plan: &IndexPlan) -> GroupIndex {
        let keys = plan.types.iter().zip(&plan.codings);
        let keys = keys.map(|(ty, &coding)| KeyColumn::new(coding, ty)).collect();
        let table = |level: &LevelPlan| match level.keys[..] {
            [(key, _)] if !level.has_prefix && plan.codings[key].is_numbered() => Table::Same { count: 0 },
            _ if level.words_max.is_some() => Table::Array(Array::new(level.words_max.unwrap_or(0))),
            _ if level.bits <= u64::BITS => Table::Narrow(Numbers::default()),
            _ => Table::Wide(Numbers::default()),
        };
        let tables = plan.levels.iter().map(table).collect();
        let direct = Direct::new(plan.codings.len());
        let plan = plan.clone();
        GroupIndex {
            plan,
            keys,
            tables,
            dictionaries: Vec::new(),
            direct,
            codes: Vec::new(),
            narrow: Vec::new(),
            wide: Vec::new(),
            lookups: Lookups::default(),
        }
    }

    /// How many groups there are.
    pub(crate) fn len(&self) -> usize {
        match self.tables.last() {
            Some(Table::Same { count }) => *count,
            Some(Table::Array(array)) => array.words.len(),
            Some(Table::Narrow(numbers)) => numbers.len(),
            Some(Table::Wide(numbers)) => numbers.len(),
            None => 0,
        }
    }

    /// Bytes that it takes.
    pub(crate) fn bytes(&self) -> usize {
        let tables = self.tables.iter().map(|table| match table {
            Table::Same { .. } => 0,
            Table::Array(array) => array.bytes(),
            Table::Narrow(numbers) => numbers.bytes(),
            Table::Wide(numbers) => numbers.bytes(),
        });
        let twice = self.keys.iter().zip(&self.dictionaries).filter(|(_, dictionary)| dictionary.is_some());
        tables.sum::<usize>()
            + self.keys.iter().map(KeyColumn::bytes).sum::<usize>()
            + twice.map(|(key, _)| key.bytes()).sum::<usize>()
    }

    /// Makes [`GroupIndex::keys`] hand out texts that several groups have as codes of a dictionary. No more groups come.
    pub(super) fn share_texts(&mut self) {
        let groups = self.len();
        let shared = |key: &KeyColumn| if groups >= 2 * key.number_count() { key.texts().map(Arc::new) } else { None };
        self.dictionaries = self.keys.iter().map(shared).collect();
    }

    /// Writes over `groups` the group of each of `rows` rows, by their keys.
    ///
    /// # Errors
    /// [`crate::Error::TooManyKeys`].
    pub(crate) fn number(&mut self, keys: &[Argument<'_>], rows: usize, groups: &mut Vec<u32>) -> Result<()> {
        let by_position = self.direct.place(keys, rows);
        if by_position && self.direct.find(groups) {
            return Ok(());
        }
        groups.clear();
        for level in 0..self.tables.len() {
            self.number_level(level, keys, rows, groups)?;
        }
        if by_position {
            self.direct.learn(groups);
        }
        Ok(())
    }

    /// The same where there are few groups and only some rows may be `alive`: writes [`sinter_codec::NO_GROUP`] for others,
    /// and how many rows each group has over `counts`. False, and nothing of use in either, where some row has a group that
    /// is not known by position.
    pub(super) fn number_few(
        &mut self,
        keys: &[Argument<'_>],
        rows: usize,
        alive: Option<&Bitmap>,
        groups: &mut Vec<u8>,
        counts: &mut [u64],
    ) -> bool {
        self.are_few() && self.direct.find_few(keys, rows, alive, groups, counts)
    }

    /// Whether few groups have been met, and are known by position.
    pub(super) fn are_few(&self) -> bool {
        self.direct.knows_few() && self.len() <= GROUPS_FEW
    }

    /// Numbers the rows by the keys of a level, and by the numbers of the level before, which are in `numbers`.
    fn number_level(&mut self, level: usize, keys: &[Argument<'_>], rows: usize, numbers: &mut Vec<u32>) -> Result<()> {
        let plan = &self.plan.levels[level];
        let (columns, codes) = (&mut self.keys, &mut self.codes);
        let table = &mut self.tables[level];
        match table {
            Table::Same { count } => {
                let (key, _) = plan.keys[0];
                columns[key].codes(keys[key], codes)?;
                numbers.clear();
                numbers.extend(codes.iter().map(|&code| code as u32));
                *count = columns[key].number_count();
                Ok(())
            }
            Table::Array(_) | Table::Narrow(_) => {
                match plan.keys[..] {
                    // The codes of one key are the words.
                    [(key, 0)] => columns[key].codes(keys[key], &mut self.narrow)?,
                    _ => pack(plan, columns, keys, rows, codes, numbers, &mut self.narrow)?,
                }
                match table {
                    Table::Array(array) => array.number_all(&self.narrow, numbers),
                    Table::Narrow(table) => number_all(table, &self.narrow, &mut self.lookups, numbers),
                    Table::Same { .. } | Table::Wide(_) => Ok(()),
                }
            }
            Table::Wide(table) => {
                pack(plan, columns, keys, rows, codes, numbers, &mut self.wide)?;
                number_all(table, &self.wide, &mut self.lookups, numbers)
            }
        }
    }

    /// Writes over `out` the keys of these groups, a vector for each key.
    pub(super) fn keys(&self, groups: Range<usize>, out: &mut [Vector]) {
        self.keys_but(groups, None, out);
    }

    /// The same, but of one key only where it is NULL.
    pub(super) fn keys_but(&self, groups: Range<usize>, valueless: Option<usize>, out: &mut [Vector]) {
        let numbers = groups.map(|group| group as u32).collect();
        self.each_key(numbers, |key, codes| match valueless {
            Some(valueless) if valueless == key => self.keys[key].presence(codes, &mut out[key]),
            _ => self.keys[key].values(codes, self.dictionaries.get(key).and_then(Option::as_ref), &mut out[key]),
        });
    }

    /// As [`GroupIndex::keys`], of groups in any order.
    pub(super) fn keys_of(&self, groups: &[u32], out: &mut [Vector]) {
        self.each_key(groups.to_vec(), |key, codes| {
            self.keys[key].values(codes, self.dictionaries.get(key).and_then(Option::as_ref), &mut out[key]);
        });
    }

    /// Writes over `hashes` one for the keys of each of these groups: the same for the same keys, whichever index has them.
    pub(super) fn hashes(&self, groups: Range<usize>, hasher: &RandomState, hashes: &mut Vec<u64>) {
        hashes.clear();
        hashes.resize(groups.len(), 0);
        let numbers = groups.map(|group| group as u32).collect();
        self.each_key(numbers, |key, codes| self.keys[key].mix(codes, hasher, hashes));
    }

    /// Shows of each key the codes that these groups have.
    fn each_key(&self, mut numbers: Vec<u32>, mut visit: impl FnMut(usize, &[u64])) {
        let mut codes = Vec::with_capacity(numbers.len());
        for (plan, table) in self.plan.levels.iter().zip(&self.tables).rev() {
            for &(key, shift) in &plan.keys {
                codes.clear();
                let bits = self.plan.codings[key].bits();
                match table {
                    Table::Same { .. } => codes.extend(numbers.iter().map(|&number| u64::from(number))),
                    Table::Array(array) => {
                        codes.extend(numbers.iter().map(|&number| array.words[number as usize].code(shift, bits)))
                    }
                    Table::Narrow(table) => {
                        codes.extend(numbers.iter().map(|&number| table.word(number).code(shift, bits)))
                    }
                    Table::Wide(table) => {
                        codes.extend(numbers.iter().map(|&number| table.word(number).code(shift, bits)))
                    }
                }
                visit(key, &codes);
            }
            if plan.has_prefix {
                for number in &mut numbers {
                    *number = match table {
                        // They are first levels.
                        Table::Same { .. } | Table::Array(_) => *number,
                        Table::Narrow(table) => table.word(*number).code(0, NUMBER_BITS) as u32,
                        Table::Wide(table) => table.word(*number).code(0, NUMBER_BITS) as u32,
                    };
                }
            }
        }
    }
}

/// Words beyond which an array is too large, however many rows there are.
const ARRAY_BITS_MAX: u32 = 28;

/// Places of an array in any case.
const WORDS_MIN: usize = 1 << 16;

/// Numbers by word, in the order in which words first occur.
#[derive(Debug)]
pub(super) struct Array {
    /// The number of each word and one more; 0 for a word that has not occurred. Zeros cost no memory before they are
    /// written over.
    places: Vec<u32>,
    /// By number.
    words: Vec<u64>,
}

impl Array {
    fn new(words_max: usize) -> Array {
        Array { places: vec![0; words_max], words: Vec::new() }
    }

    fn bytes(&self) -> usize {
        size_of_val(&self.places[..]) + 8 * self.words.capacity()
    }

    /// Writes over `numbers` those of the words.
    fn number_all(&mut self, words: &[u64], numbers: &mut Vec<u32>) -> Result<()> {
        numbers.resize(words.len(), 0);
        for (number, &word) in numbers.iter_mut().zip(words) {
            let Some(place) = self.places.get_mut(word as usize) else {
                return Err(Error::Unsupported("a key outside of what its table's statistics tell".into()));
            };
            if *place == 0 {
                self.words.push(word);
                *place = self.words.len() as u32;
            }
            *number = *place - 1;
        }
        Ok(())
    }

    /// Replaces each of `numbers` that is not `absent` by that of its word.
    pub(super) fn find_all(&self, words: &[u64], absent: u32, numbers: &mut [u32]) {
        for (number, &word) in numbers.iter_mut().zip(words) {
            let place = self.places.get(word as usize).copied().unwrap_or(0);
            *number = if *number == absent || place == 0 { absent } else { place - 1 };
        }
    }
}

/// Writes over `words` the keys of a level, packed.
fn pack<W: Word>(
    plan: &LevelPlan,
    columns: &mut [KeyColumn],
    keys: &[Argument<'_>],
    rows: usize,
    codes: &mut Vec<u64>,
    prefixes: &[u32],
    words: &mut Vec<W>,
) -> Result<()> {
    words.clear();
    words.resize(rows, W::default());
    if plan.has_prefix {
        words.iter_mut().zip(prefixes).for_each(|(word, &prefix)| *word = word.with(prefix.into(), 0));
    }
    for &(key, shift) in &plan.keys {
        columns[key].codes(keys[key], codes)?;
        words.iter_mut().zip(&*codes).for_each(|(word, &code)| *word = word.with(code, shift));
    }
    Ok(())
}

/// Writes over `numbers` those of the words.
fn number_all<W: Word>(
    table: &mut Numbers<Words<W>>,
    words: &[W],
    lookups: &mut Lookups,
    numbers: &mut Vec<u32>,
) -> Result<()> {
    numbers.clear();
    if table.is_large() {
        return table.number_all(words.iter().copied().enumerate(), lookups, |_, number| numbers.push(number));
    }
    let Some(&first) = words.first() else { return Ok(()) };
    // Rows of a group often come one after the other, and in order they always do.
    let mut last = (first, table.number(first)?);
    for &word in words {
        if word != last.0 {
            last = (word, table.number(word)?);
        }
        numbers.push(last.1);
    }
    Ok(())
}
