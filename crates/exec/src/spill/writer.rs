//! Rows on their way into a file.

use super::table::{Segment, SpillCompression, SpillFile, SpilledColumns, SpilledGroup};
use crate::store::{FlatColumn, RowStore};
use crate::{Error, Memory, Result, Unlimited, Vector};
use sinter_codec::{Choice, Chooser, Physical, VECTOR_LEN, Values};
use std::collections::HashSet;
use std::sync::Arc;

/// A row group ends with so many rows, or so many bytes of values. What waits to be written is not asked for: whoever spills
/// has been refused memory, and this is little, 8 MB a worker of 32 parts at most.
const GROUP_VECTORS: usize = 8;
const GROUP_BYTES: usize = 1 << 18;

/// One worker's rows on their way into several row groups at a time.
#[derive(Debug)]
pub(crate) struct SpillWriter {
    file: Arc<dyn SpillFile>,
    /// By column, once there are values to choose by: rows of all parts look alike.
    choosers: Vec<Option<Chooser>>,
    parts: Vec<Part>,
    encoded: Vec<u8>,
}

/// Rows that are kept apart from others.
#[derive(Debug)]
struct Part {
    store: RowStore,
    groups: Vec<SpilledGroup>,
}

impl SpillWriter {
    /// Into so many parts.
    ///
    /// # Errors
    /// [`Error::Unsupported`] for lists and structs.
    pub(crate) fn new(file: &Arc<dyn SpillFile>, columns: &SpilledColumns, part_count: usize) -> Result<SpillWriter> {
        let unlimited: Arc<dyn Memory> = Arc::new(Unlimited);
        let types: Option<Vec<Physical>> = columns.types.iter().map(|ty| ty.physical()).collect();
        let types = types.ok_or_else(|| Error::Unsupported("lists and structs among rows that are spilled".into()))?;
        let part = |_| Part { store: RowStore::new(&types, &unlimited), groups: Vec::new() };
        Ok(SpillWriter {
            file: Arc::clone(file),
            choosers: types.iter().map(|_| None).collect(),
            parts: (0..part_count).map(part).collect(),
            encoded: Vec::new(),
        })
    }

    /// Adds a vector's rows to a part.
    ///
    /// # Errors
    /// Those of writing; [`Error::Foreign`] for more text than a block holds.
    pub(crate) fn push(&mut self, part: usize, vectors: &[Vector], rows: usize) -> Result<()> {
        let Part { store, .. } = &mut self.parts[part];
        store.push(vectors, rows)?;
        self.write_if_full(part)
    }

    /// Adds some rows of a vector to a part.
    ///
    /// # Errors
    /// As [`SpillWriter::push`].
    pub(crate) fn push_rows<'a>(
        &mut self,
        part: usize,
        columns: impl Iterator<Item = FlatColumn<'a>>,
        rows: &[u32],
    ) -> Result<()> {
        self.parts[part].store.push_rows(columns, rows)?;
        self.write_if_full(part)
    }

    fn write_if_full(&mut self, part: usize) -> Result<()> {
        let Part { store, .. } = &self.parts[part];
        if store.rows() >= GROUP_VECTORS * VECTOR_LEN || store.value_bytes() >= GROUP_BYTES {
            self.write(part)?;
        }
        Ok(())
    }

    /// Writes what waits; returns the row groups of each part.
    ///
    /// # Errors
    /// As [`SpillWriter::push`].
    pub(crate) fn finish(mut self) -> Result<Vec<Vec<SpilledGroup>>> {
        for part in 0..self.parts.len() {
            self.write(part)?;
        }
        Ok(self.parts.into_iter().map(|part| part.groups).collect())
    }

    fn write(&mut self, part: usize) -> Result<()> {
        let SpillWriter { file, choosers, parts, encoded } = self;
        let Part { store, groups } = &mut parts[part];
        if store.rows() == 0 {
            return Ok(());
        }
        encoded.clear();
        let mut segments = Vec::with_capacity(choosers.len());
        for (column, chooser) in choosers.iter_mut().enumerate() {
            let begin = encoded.len();
            let chooser = chooser.get_or_insert_with(|| Chooser::new(choice(store.values(column), file.compression())));
            let stats = chooser.encode(
                store.values(column),
                store.validity(column).filter(|validity| !validity.all()),
                encoded,
            );
            let stats = stats.map_err(|error| Error::Foreign(format!("rows that are spilled: {error}")))?;
            segments.push(Segment { offset: begin as u64, bytes: encoded.len() - begin, stats });
        }
        let offset = file.append(encoded)?;
        segments.iter_mut().for_each(|segment| segment.offset += offset);
        groups.push(SpilledGroup { rows: store.rows(), file: Arc::clone(file), segments: segments.into() });
        store.clear();
        Ok(())
    }
}

/// Texts of which so many are looked at, and of which so many may be different to be worth a dictionary.
const TEXTS_LOOKED_AT: usize = 512;
const TEXTS_DIFFERENT_MAX: usize = 128;

/// How values are encoded that are written once and read once. Unless it is said, numbers are packed, which goes at the speed of
/// memory; texts only where they repeat, as a table of symbols is trained at some 20 MB/s (`memory` of benchmarks/codecs).
fn choice(values: Values<'_>, compression: SpillCompression) -> Choice {
    let texts = match (values, compression) {
        (_, SpillCompression::None) => return Choice::Raw,
        (Values::Bytes(texts), SpillCompression::Auto) => texts,
        _ => return Choice::Auto,
    };
    let different: HashSet<&[u8]> = texts.iter().take(TEXTS_LOOKED_AT).collect();
    if different.len() <= TEXTS_DIFFERENT_MAX { Choice::Forced("dict".into()) } else { Choice::Raw }
}
