//! Keys that all come from one join: a group is known by some row of the join's table that has its keys.
//!
//! No key is copied or numbered by itself. A row's keys are hashed together where they lie, and compared with those of the
//! group's first row; and rows that met the same row of the table are of one group, so that this is done once for each of
//! its rows where it has few enough for an array. Numbers are hashed first, and texts only once groups turn out to have
//! the same numbers: of a customer's number, name, address and telephone, the number is enough.

use super::ABSENT;
use super::key::{canonical_f32, canonical_f64};
use super::numbers::{Keys, Numbers};
use crate::join::JoinTable;
use crate::store::NONE;
use crate::{Expr, LogicalType, Pipeline, Result, Vector};
use foldhash::fast::RandomState;
use sinter_codec::{Encoded, Physical, ValuesBuf};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Which columns of which join are keys, and which columns of the pipeline are read for anything else.
#[derive(Debug)]
pub(super) struct PartnerKeys {
    pub(super) join: usize,
    /// Of the join's payload, and those of them that are numbers.
    columns: Vec<usize>,
    numbers: Vec<usize>,
    pub(super) arguments: Vec<usize>,
}

impl PartnerKeys {
    /// `None` where not all keys are columns of one join, or none is a text: numbers are looked at about as fast as a row's
    /// group is found.
    pub(super) fn new(
        keys: &[Expr],
        types: &[LogicalType],
        arguments: Vec<usize>,
        pipeline: &Pipeline,
    ) -> Option<PartnerKeys> {
        let payload: Vec<(usize, usize)> = pipeline.payload().collect();
        let place = |key: &Expr| {
            let Expr::Column(column) = key else { return None };
            let (join, place) = *payload.get(column.checked_sub(pipeline.columns.len())?)?;
            Some((join, place, types[*column].physical()?))
        };
        let places: Vec<_> = keys.iter().map(place).collect::<Option<_>>()?;
        let &(join, ..) = places.first()?;
        let is_text = |physical| physical == Physical::Bytes;
        if places.iter().any(|&(other, ..)| other != join) || !places.iter().any(|&(.., physical)| is_text(physical)) {
            return None;
        }
        let columns = places.iter().map(|&(_, column, _)| column).collect();
        let numbers =
            places.iter().filter(|(.., physical)| !is_text(*physical)).map(|&(_, column, _)| column).collect();
        Some(PartnerKeys { join, columns, numbers, arguments })
    }
}

/// Rows of a table whose groups are remembered, at most: 4 MB.
const ROWS_MAX: usize = 1 << 20;

/// Texts are hashed, too, once more keys than these, and than so many for each row that was looked up, had the numbers of
/// another group.
const ALIKE_MIN: usize = 1 << 10;
const ALIKE_PER_ROW: usize = 2;

/// The groups of a table's rows.
#[derive(Debug)]
pub(super) struct Partners {
    numbers: Numbers<KeyRows>,
    /// By row of the table, its group and one more, or 0; at the end, that of rows that met none. Empty where there would be
    /// too many. Zeros cost no memory before they are written over.
    groups: Vec<u32>,
    /// How many rows were looked up by their keys.
    looked_up: usize,
    strangers: Vec<u32>,
    places: Vec<u16>,
    found: Vec<u32>,
    hashes: Vec<u64>,
}

impl Partners {
    /// No group, of rows of the same table, of which a worker brings each once.
    pub(super) fn emptied(&self, keys: &PartnerKeys) -> Partners {
        Partners::remembering(0, keys, &self.numbers.keys().table)
    }

    pub(super) fn new(keys: &PartnerKeys, table: &Arc<JoinTable>) -> Partners {
        let remembered = if table.rows() <= ROWS_MAX { table.rows() + 1 } else { 0 };
        Partners::remembering(remembered, keys, table)
    }

    fn remembering(remembered: usize, keys: &PartnerKeys, table: &Arc<JoinTable>) -> Partners {
        let hashed = if keys.numbers.is_empty() { &keys.columns } else { &keys.numbers };
        let rows = KeyRows {
            table: Arc::clone(table),
            columns: keys.columns.clone(),
            hashed: hashed.clone(),
            rows: Vec::new(),
            hasher: RandomState::default(),
            alike: AtomicUsize::new(0),
        };
        Partners {
            numbers: Numbers::of(rows),
            groups: vec![0; remembered],
            looked_up: 0,
            strangers: Vec::new(),
            places: Vec::new(),
            found: Vec::new(),
            hashes: Vec::new(),
        }
    }

    /// How many groups there are.
    pub(super) fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Bytes that it takes besides the table.
    pub(super) fn bytes(&self) -> usize {
        self.numbers.bytes() + size_of_val(&self.groups[..])
    }

    /// Writes over `out` the groups of rows by which row of the table each met.
    ///
    /// # Errors
    /// [`crate::Error::TooManyKeys`].
    pub(super) fn find(&mut self, met: &[u32], out: &mut Vec<u32>) -> Result<()> {
        let Some(end) = self.groups.len().checked_sub(1) else { return self.number(met, out) };
        let place = |row: u32| (row as usize).min(end);
        out.clear();
        out.extend(met.iter().map(|&row| self.groups[place(row)].wrapping_sub(1)));
        self.places.clear();
        self.places.extend((0..met.len()).filter(|&row| out[row] == ABSENT).map(|row| row as u16));
        if self.places.is_empty() {
            return Ok(());
        }
        let (mut strangers, mut found) = (std::mem::take(&mut self.strangers), std::mem::take(&mut self.found));
        strangers.clear();
        strangers.extend(self.places.iter().map(|&row| met[usize::from(row)]));
        self.number(&strangers, &mut found)?;
        for ((&row, &stranger), &number) in self.places.iter().zip(&strangers).zip(&found) {
            out[usize::from(row)] = number;
            self.groups[place(stranger)] = number + 1;
        }
        (self.strangers, self.found) = (strangers, found);
        Ok(())
    }

    /// Writes over `out` the groups of rows of the table, by their keys.
    fn number(&mut self, rows: &[u32], out: &mut Vec<u32>) -> Result<()> {
        self.numbers.keys().hash_all(rows, &mut self.hashes);
        out.clear();
        // Rows that met the same often come one after the other.
        let mut last = None;
        for (&row, &hash) in rows.iter().zip(&self.hashes) {
            let number = match last {
                Some((same, number)) if same == row => number,
                _ => self.numbers.number_hashed(hash, row)?,
            };
            last = Some((row, number));
            out.push(number);
        }
        self.looked_up += rows.len();
        let keys = self.numbers.keys_mut();
        let is_hashed_well = *keys.alike.get_mut() <= ALIKE_MIN + ALIKE_PER_ROW * self.looked_up;
        if !is_hashed_well && keys.hashed.len() < keys.columns.len() {
            keys.hashed.clone_from(&keys.columns);
            keys.hash_all(&keys.rows, &mut self.hashes);
            self.numbers.rehash(&self.hashes);
        }
        Ok(())
    }

    /// A row of the table for each group.
    pub(super) fn rows(&self) -> &[u32] {
        &self.numbers.keys().rows
    }

    /// Writes over `hashes` one for each of these groups: the same for groups with the same keys, whoever has them.
    pub(super) fn hashes(&self, groups: Range<usize>, hasher: &RandomState, hashes: &mut Vec<u64>) {
        hashes.clear();
        hashes.resize(groups.len(), 0);
        let (keys, rows) = (self.numbers.keys(), &self.rows()[groups]);
        keys.columns.iter().for_each(|&column| keys.table.hash(column, rows, hasher, hashes));
    }

    /// Writes over `out` the keys of these groups, a vector for each key.
    pub(super) fn keys(&self, groups: Range<usize>, out: &mut [Vector]) {
        let keys = self.numbers.keys();
        for (&column, out) in keys.columns.iter().zip(out) {
            keys.table.gather(column, &self.rows()[groups.clone()], out);
            // Floats that are equal come out as one.
            match &mut out.values {
                Encoded::Flat(ValuesBuf::F32(values)) => {
                    values.iter_mut().for_each(|value| *value = f32::from_bits(canonical_f32(*value)));
                }
                Encoded::Flat(ValuesBuf::F64(values)) => {
                    values.iter_mut().for_each(|value| *value = f64::from_bits(canonical_f64(*value)));
                }
                _ => {}
            }
        }
    }

    /// Whether these are groups of the same table.
    pub(super) fn shares_table(&self, other: &Partners) -> bool {
        Arc::ptr_eq(&self.numbers.keys().table, &other.numbers.keys().table)
    }
}

/// Keys that stand in a join's table, each known by the first row that had it.
#[derive(Debug)]
struct KeyRows {
    table: Arc<JoinTable>,
    /// Of its payload; the hash is one of some of them.
    columns: Vec<usize>,
    hashed: Vec<usize>,
    /// By number.
    rows: Vec<u32>,
    hasher: RandomState,
    /// How many times keys had the same hash and were others. One worker counts.
    alike: AtomicUsize,
}

impl KeyRows {
    /// Writes over `hashes` those of the keys in these rows.
    fn hash_all(&self, rows: &[u32], hashes: &mut Vec<u64>) {
        hashes.clear();
        hashes.resize(rows.len(), 0);
        self.hashed.iter().for_each(|&column| self.table.hash(column, rows, &self.hasher, hashes));
    }
}

impl Keys for KeyRows {
    type Key<'a> = u32;

    fn hash(&self, row: u32) -> u64 {
        let mut hashes = Vec::new();
        self.hash_all(&[row], &mut hashes);
        hashes[0]
    }

    fn is(&self, number: u32, row: u32) -> bool {
        let own = self.rows[number as usize];
        let is_same = own == row || self.columns.iter().all(|&column| self.table.is_same(column, own, row));
        if !is_same {
            self.alike.store(self.alike.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        is_same
    }

    fn key(&self, number: u32) -> u32 {
        self.rows[number as usize]
    }

    fn push(&mut self, row: u32) {
        self.rows.push(row);
    }

    fn push_none(&mut self) {
        self.rows.push(NONE);
    }

    fn len(&self) -> usize {
        self.rows.len()
    }

    fn bytes(&self) -> usize {
        size_of::<u32>() * self.rows.capacity()
    }

    fn touch(&self, number: u32) -> u64 {
        self.rows[number as usize].into()
    }
}
