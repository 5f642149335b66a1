//! Columns of a vector's surviving rows, decoded when first asked for and at most once.

use super::group::{Group, Segment, Segments};
use super::row_ids;
use super::selection::Selection;
use super::tally::Tally;
use crate::edge::SegmentReader;
use crate::expr::{Machine, Program};
use crate::vector::{compact, compact_bits};
use crate::{Dictionary, Error, Result, ScanColumn, Vector};
use sinter_codec::{Bitmap, Block, Encoded, ValuesBuf};
use std::ops::Range;
use std::sync::Arc;

/// Columns of the surviving rows of a vector, as far as they have been asked for.
#[derive(Debug, Default)]
pub(super) struct Survivors {
    pub(super) columns: Vec<Vector>,
    /// Which columns are there, for the rows of `selection`.
    loaded: Vec<bool>,
    selection: Selection,
}

impl Survivors {
    /// Starts a new vector with these rows, and no column yet.
    pub(super) fn start(&mut self, alive: &Bitmap, column_count: usize) {
        self.columns.resize_with(column_count, Vector::default);
        self.loaded.clear();
        self.loaded.resize(column_count, false);
        self.selection.set(alive);
    }

    /// How many rows are alive.
    pub(super) fn rows(&self) -> usize {
        self.selection.rows()
    }

    /// Keeps the rows for which the program's one result is true; false when there are none.
    pub(super) fn evaluate(
        &mut self,
        program: &Program,
        machine: &mut Machine,
        passed: &mut Bitmap,
        kept: &mut Vec<u16>,
    ) -> Result<bool> {
        let rows = self.selection.rows();
        machine.run(program, &self.columns, rows)?;
        passed.clone_from(machine.frame(program, &self.columns, rows).bits(program.outputs[0].0).0);
        if passed.all() {
            return Ok(true);
        }
        self.selection.keep(passed, kept);
        for (vector, _) in self.columns.iter_mut().zip(&self.loaded).filter(|(_, loaded)| **loaded) {
            compact(vector, kept)?;
        }
        Ok(self.selection.rows() > 0)
    }

    /// Decodes a column for the surviving rows, unless that has been done.
    pub(super) fn load(
        &mut self,
        column: usize,
        segments: &Segments<'_>,
        group: &mut Group,
        range: Range<usize>,
        tally: &mut Tally,
    ) -> Result<()> {
        if std::mem::replace(&mut self.loaded[column], true) {
            return Ok(());
        }
        let vector = &mut self.columns[column];
        if let (Some(ids), true) = (&group.row_ids, segments.is_row_id(column)) {
            row_ids::load(ids, range.start, range.len(), vector);
            return match self.selection.positions() {
                Some(positions) => compact(vector, positions),
                None => Ok(()),
            };
        }
        tally.vectors_decoded += 1;
        let loaded = match segments.open(column, tally)? {
            Segment::Nested(reader) => load_nested(reader, range, &self.selection, vector, tally),
            Segment::Plain(block) => {
                load_plain(block, range, &self.selection, &mut group.dictionaries[column], vector, tally)
            }
        };
        loaded.map_err(|error| error.at(segments.place(column)))
    }
}

impl Segments<'_> {
    fn is_row_id(&self, column: usize) -> bool {
        self.column(column) == ScanColumn::RowId
    }
}

fn load_nested(
    reader: &SegmentReader<'_>,
    range: Range<usize>,
    selection: &Selection,
    vector: &mut Vector,
    tally: &mut Tally,
) -> Result<()> {
    let keep = selection.positions().map(|_| selection.to_bitmap(range.len()));
    let array = reader.read(range, keep.as_ref())?;
    tally.bytes_decoded += array.get_array_memory_size() as u64;
    (vector.validity, vector.dictionary, vector.nested) = (None, None, Some(array));
    Ok(())
}

/// Below this share of surviving rows, picking them costs less than unpacking all.
const GATHER_BELOW: usize = 4;

fn load_plain(
    block: &Block<'_>,
    range: Range<usize>,
    selection: &Selection,
    dictionary: &mut Option<Arc<Dictionary>>,
    vector: &mut Vector,
    tally: &mut Tally,
) -> Result<()> {
    (vector.dictionary, vector.nested) = (None, None);
    let some_null =
        block.stats().null_count > 0 && block.validity(range.clone(), vector.validity.get_or_insert_default())?;
    if !some_null {
        vector.validity = None;
    }
    match selection.positions() {
        Some(positions) if dictionary.is_none() && positions.len() * GATHER_BELOW < range.len() => {
            if !matches!(vector.values, Encoded::Flat(_)) {
                vector.values = Encoded::default();
            }
            if let Encoded::Flat(values) = &mut vector.values {
                block.gather(range.start, positions, values)?;
                tally.bytes_decoded += plain_bytes(values);
            }
            if let Some(validity) = &mut vector.validity {
                compact_bits(validity, positions);
            }
        }
        positions => {
            block.load(range, &mut vector.values)?;
            tally.bytes_decoded += encoded_bytes(&vector.values);
            if matches!(vector.values, Encoded::Codes(_)) {
                if dictionary.is_none() {
                    let values = block.dictionary()?.ok_or_else(codes_without_dictionary)?;
                    tally.bytes_decoded += plain_bytes(&values);
                    *dictionary = Some(Arc::new(Dictionary::new(values)));
                }
                vector.dictionary.clone_from(dictionary);
            }
            if let Some(positions) = positions {
                compact(vector, positions)?;
            }
        }
    }
    Ok(())
}

fn codes_without_dictionary() -> Error {
    sinter_codec::Error::Damaged { place: "block".into(), what: "codes without a dictionary".into() }.into()
}

fn plain_bytes(values: &ValuesBuf) -> u64 {
    (match values {
        ValuesBuf::Bytes(bytes) => bytes.data.len() + 4 * bytes.view().len(),
        numbers => numbers.len() * numbers.physical().value_bytes().unwrap_or(0),
    }) as u64
}

fn encoded_bytes(encoded: &Encoded) -> u64 {
    match encoded {
        Encoded::Constant(values) | Encoded::Flat(values) => plain_bytes(values),
        Encoded::BaseDelta { deltas: narrow, .. } | Encoded::Codes(narrow) => {
            crate::dispatch::each_narrow!(narrow, numbers => size_of_val(&numbers[..]) as u64)
        }
    }
}
