//! Looking at a JSON file: its framing, its keys, their types.

use super::cursor::{Cursor, check};
use super::records::{Framing, Records, framing};
use super::scan::JsonScan;
use super::shape::Shape;
use crate::format::inner_extension;
use crate::input::{Input, Sample};
use crate::reader::{BATCH_ROWS, Scan};
use crate::sniff::{Naming, Sniffed, Wanted};
use crate::{FileError, ReadOptions, Result, SampleSize};
use arrow::datatypes::Schema;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// The bytes that the framing is told from.
const HEAD_BYTES: u64 = 1 << 20;

/// A JSON file of which framing, keys and types are known.
#[derive(Debug)]
pub(super) struct JsonFile {
    pub(super) input: Input,
    pub(super) options: ReadOptions,
    pub(super) framing: Framing,
    pub(super) schema: Schema,
    /// Whether the types come from every value of the file.
    pub(super) is_whole: bool,
}

/// Looks at the JSON file `path`.
pub(crate) fn sniff(path: &Path, options: &ReadOptions) -> Result<Box<dyn Sniffed>> {
    let input = Input::open(path, options)?;
    let (head, _) = input.head(HEAD_BYTES)?;
    let framing = framing(&head, matches!(inner_extension(path).as_str(), "jsonl" | "ndjson"));
    let mut shape = Shape::default();
    let failed = FileError::io(path);
    let sample = input.sample(options.sample)?;
    let mut is_whole = true;
    match (sample, options.sample, framing) {
        (Sample::Whole, ..) => add(&mut shape, Records::new(input.reader()?, framing)),
        (Sample::Stretches(stretches), _, Framing::Lines) => {
            is_whole = false;
            stretches.iter().enumerate().try_for_each(|(index, stretch)| {
                // Stretches start and end within lines; the line that is cut is left out.
                let start =
                    if index == 0 { 0 } else { memchr::memchr(b'\n', stretch).map_or(stretch.len(), |at| at + 1) };
                let end = memchr::memrchr(b'\n', stretch).map_or(start, |at| at + 1).max(start);
                add(&mut shape, Records::new(&stretch[start..end], framing))
            })
        }
        // Elsewhere a value cannot be found from the middle of a file.
        (Sample::Stretches(_), size, _) => {
            is_whole = false;
            let bytes = if let SampleSize::Bytes(bytes) = size { bytes } else { u64::MAX };
            add(&mut shape, Records::new(input.reader()?.take(bytes), framing))
        }
    }
    .map_err(failed)?;
    let schema = Schema::new(shape.fields());
    Ok(Box::new(Arc::new(JsonFile { input, options: options.clone(), framing, schema, is_whole })))
}

/// Takes all values of a stream into account. What is broken is found again, and reported, when the file is read.
fn add<R: Read>(shape: &mut Shape, mut records: Records<R>) -> std::io::Result<()> {
    while let Some(batch) = records.next_batch(BATCH_ROWS)? {
        for (_, text) in batch.records() {
            if check(text).is_ok() && text.trim_ascii_start().starts_with(b"{") {
                // Checked, so it can be walked.
                let _ = shape.add(&mut Cursor::new(text));
            }
        }
    }
    Ok(())
}

impl Sniffed for Arc<JsonFile> {
    fn path(&self) -> &Path {
        self.input.path()
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn naming(&self) -> Naming {
        Naming::Key
    }

    fn scan(&self, columns: &[Wanted], projection: &[usize]) -> Result<Box<dyn Scan>> {
        Ok(Box::new(JsonScan::new(Arc::clone(self), columns, projection)?))
    }
}
