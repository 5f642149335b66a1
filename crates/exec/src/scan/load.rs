//! Columns of a vector's surviving rows, decoded out of their segments.

use super::group::{Group, Segment, Segments};
use super::row_ids;
use super::tally::Tally;
use crate::edge::SegmentReader;
use crate::expr::lengths;
use crate::flow::{LoadColumn, Selection};
use crate::vector::{compact, compact_bits};
use crate::{Dictionary, Error, Result, ScanColumn, Vector};
use sinter_codec::{Block, Encoded, Physical, ValuesBuf};
use std::ops::Range;
use std::sync::Arc;

/// A vector of a group that is being scanned.
pub(super) struct GroupVector<'a, 'p> {
    pub(super) segments: &'a Segments<'p>,
    pub(super) group: &'a mut Group,
    pub(super) range: Range<usize>,
    pub(super) tally: &'a mut Tally,
}

impl LoadColumn for GroupVector<'_, '_> {
    fn load(&mut self, column: usize, selection: &Selection, vector: &mut Vector) -> Result<()> {
        let (segments, range) = (self.segments, self.range.clone());
        if let (Some(ids), true) = (&self.group.row_ids, segments.is_row_id(column)) {
            row_ids::load(ids, range.start, range.len(), vector);
            return match selection.positions() {
                Some(positions) => compact(vector, positions),
                None => Ok(()),
            };
        }
        self.tally.vectors_decoded += 1;
        let again = std::mem::replace(&mut self.group.decoded[column], true);
        self.tally.vectors_decoded_again += u64::from(again);
        self.tally.vectors_decoded_elsewhere += u64::from(segments.was_decoded(column, &range));
        let loaded = match segments.open(column, self.tally)? {
            Segment::Nested(reader) => load_nested(reader, range, selection, vector, self.tally),
            Segment::Plain(block) => {
                let load = match segments.column(column) {
                    ScanColumn::Length(_) => load_lengths,
                    ScanColumn::Table(_) | ScanColumn::RowId => load_plain,
                };
                load(block, range, selection, &mut self.group.entries[column], vector, self.tally)
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

/// Once a dictionary has no more than so many entries for each text that was picked, unpacking all costs about what was
/// spent: less where they stand one after the other, more where each is found directly.
const ENTRIES_PER_PICKED: usize = 16;

/// What has come out of a column's dictionary in a group.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// All, once they are unpacked.
    dictionary: Option<Arc<Dictionary>>,
    /// Whether it has been seen that rows are no codes.
    are_none: bool,
    /// How many were picked one by one.
    picked: usize,
    /// For a column of lengths: those of a dictionary's texts, and the texts of a vector.
    lengths: Vec<i32>,
    texts: Vector,
}

impl Entries {
    /// Whether so many of a vector's rows are picked. What one vector alone would never unpack all of them together may.
    fn are_picked(&self, block: &Block<'_>, rows: usize, of_rows: usize) -> bool {
        let are_worth_all = || {
            let picked = (self.picked + rows).saturating_mul(ENTRIES_PER_PICKED);
            block.physical() == Physical::Bytes && block.tests_entries() && picked > block.stats().distinct_estimate
        };
        rows * GATHER_BELOW < of_rows && self.dictionary.is_none() && (self.are_none || !are_worth_all())
    }
}

fn load_plain(
    block: &Block<'_>,
    range: Range<usize>,
    selection: &Selection,
    entries: &mut Entries,
    vector: &mut Vector,
    tally: &mut Tally,
) -> Result<()> {
    (vector.dictionary, vector.nested) = (None, None);
    load_validity(block, range.clone(), vector)?;
    match selection.positions() {
        Some(positions) if entries.are_picked(block, positions.len(), range.len()) => {
            entries.picked += positions.len();
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
            entries.are_none = matches!(vector.values, Encoded::Flat(_) | Encoded::BaseDelta { .. });
            if let Encoded::Codes(_) = vector.values {
                if entries.dictionary.is_none() {
                    let values = block.dictionary()?.ok_or_else(codes_without_dictionary)?;
                    tally.bytes_decoded += plain_bytes(&values);
                    entries.dictionary = Some(Arc::new(Dictionary::new(values)));
                }
                vector.dictionary.clone_from(&entries.dictionary);
            }
            if let Some(positions) = positions {
                compact(vector, positions)?;
            }
        }
    }
    Ok(())
}

fn load_validity(block: &Block<'_>, range: Range<usize>, vector: &mut Vector) -> Result<()> {
    let some_null = block.stats().null_count > 0 && block.validity(range, vector.validity.get_or_insert_default())?;
    if !some_null {
        vector.validity = None;
    }
    Ok(())
}

/// How many characters texts have: counted on their symbols, on a dictionary once for all rows, or else on what is decoded.
fn load_lengths(
    block: &Block<'_>,
    range: Range<usize>,
    selection: &Selection,
    entries: &mut Entries,
    vector: &mut Vector,
    tally: &mut Tally,
) -> Result<()> {
    (vector.dictionary, vector.nested) = (None, None);
    if !matches!(vector.values, Encoded::Flat(ValuesBuf::I32(_))) {
        vector.values = Encoded::Flat(ValuesBuf::new(Physical::I32));
    }
    let Encoded::Flat(ValuesBuf::I32(out)) = &mut vector.values else { unreachable!("it was just made so") };
    if block.characters(range.clone(), selection.positions(), out)? {
        tally.bytes_decoded += size_of_val(&out[..]) as u64;
        load_validity(block, range, vector)?;
        if let (Some(validity), Some(positions)) = (&mut vector.validity, selection.positions()) {
            compact_bits(validity, positions);
        }
        return Ok(());
    }
    let mut texts = std::mem::take(&mut entries.texts);
    load_plain(block, range, selection, entries, &mut texts, tally)?;
    vector.validity.clone_from(&texts.validity);
    match (&texts.values, &texts.dictionary) {
        (Encoded::Codes(codes), Some(dictionary)) => {
            if entries.lengths.is_empty() {
                lengths_of(&dictionary.values, &mut entries.lengths)?;
            }
            crate::dispatch::each_narrow!(codes, codes => {
                out.extend(codes.iter().map(|&code| entries.lengths[code as usize]));
            });
        }
        (Encoded::Constant(text), _) => {
            lengths_of(text, out)?;
            vector.values = Encoded::Constant(ValuesBuf::I32(std::mem::take(out)));
        }
        (Encoded::Flat(texts), _) => lengths_of(texts, out)?,
        (Encoded::Codes(_) | Encoded::BaseDelta { .. }, _) => return Err(codes_without_dictionary()),
    }
    entries.texts = texts;
    Ok(())
}

/// Appends that of each text.
fn lengths_of(texts: &ValuesBuf, out: &mut Vec<i32>) -> Result<()> {
    let ValuesBuf::Bytes(texts) = texts else { return Err(codes_without_dictionary()) };
    lengths(texts.view(), out);
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
