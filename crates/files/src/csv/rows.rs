//! Rows of a stream, batch by batch, with the lines they stand on.

use super::split::{Dialect, Field, Step};
use crate::error::excerpt;
use std::io::Read;

/// The bytes read at a time, and what a batch of rows takes up at most unless one row is longer.
const READ_BYTES: usize = 4 << 20;

/// The longest row. A quote that is never closed would otherwise swallow the rest of the file.
const ROW_BYTES_LIMIT: usize = 256 << 20;

/// A stream cut into rows.
///
/// The buffer holds the rows of the current batch and what was read beyond them:
///
/// ```text
/// | rows handed out | rows of this batch | read ahead |
/// 0                 batch_start          next         buffer.len()
/// ```
pub(super) struct RowReader<R> {
    stream: R,
    dialect: Dialect,
    /// The number of fields that every row has, or 0 to take rows as they are.
    width: usize,
    buffer: Vec<u8>,
    next: usize,
    is_at_end: bool,
    /// The line on which the row at `next` starts, from 1.
    line: u64,
    fields: Vec<Field>,
    rows: Vec<Row>,
    malformed: Vec<Malformed>,
}

/// Where a row stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// The line on which it starts, from 1.
    pub(super) line: u64,
    /// The index of its first field.
    pub(super) first_field: usize,
    /// How many fields it has.
    pub(super) field_count: usize,
}

/// A row that is no row.
#[derive(Debug, Clone)]
pub(super) struct Malformed {
    /// The line on which it starts, from 1.
    pub(super) line: u64,
    /// What is wrong.
    pub(super) problem: String,
    /// Some of its text.
    pub(super) value: String,
}

/// The rows of one batch.
pub(super) struct Rows<'a> {
    bytes: &'a [u8],
    fields: &'a [Field],
    rows: &'a [Row],
    /// Rows that could not be taken, in the order of the file, between those that could.
    pub(super) malformed: &'a [Malformed],
}

impl<'a> Rows<'a> {
    /// How many rows there are.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Row number `index` of this batch.
    pub(super) fn row(&self, index: usize) -> Row {
        self.rows[index]
    }

    /// The fields of `row`.
    pub(super) fn fields(&self, row: Row) -> &'a [Field] {
        &self.fields[row.first_field..row.first_field + row.field_count]
    }

    /// Column `column` of every row, from the first to the last.
    pub(super) fn column(&self, column: usize) -> impl Iterator<Item = (&'a [u8], Field)> {
        self.rows.iter().map(move |row| {
            let field = self.fields[row.first_field + column];
            (self.text(field), field)
        })
    }

    /// The bytes of `field`.
    #[inline]
    pub(super) fn text(&self, field: Field) -> &'a [u8] {
        &self.bytes[field.start as usize..field.end as usize]
    }
}

/// The mark that some programs put before UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

impl<R: Read> RowReader<R> {
    /// Rows of `width` fields each, or of any number of fields where `width` is 0. The first row stands on line
    /// `first_line`; a byte order mark before it is passed over.
    pub(super) fn new(stream: R, dialect: Dialect, width: usize, first_line: u64) -> Self {
        Self {
            stream,
            dialect,
            width,
            buffer: Vec::new(),
            next: 0,
            is_at_end: false,
            line: first_line,
            fields: Vec::new(),
            rows: Vec::new(),
            malformed: Vec::new(),
        }
    }

    /// Passes over `count` lines, whatever is on them. To be called before the first batch.
    pub(super) fn skip_lines(&mut self, count: u64) -> std::io::Result<()> {
        for _ in 0..count {
            loop {
                if let Some(offset) = memchr::memchr(self.dialect.line_end, &self.buffer[self.next..]) {
                    self.next += offset + 1;
                    break;
                }
                self.next = self.buffer.len();
                if self.is_at_end {
                    return Ok(());
                }
                self.fill()?;
            }
            self.line += 1;
        }
        Ok(())
    }

    /// At most `limit` rows, or `None` at the end of the stream.
    pub(super) fn next_rows(&mut self, limit: usize) -> std::io::Result<Option<Rows<'_>>> {
        self.fields.clear();
        self.rows.clear();
        self.malformed.clear();
        // What was handed out before is dropped here, once per batch.
        self.buffer.drain(..self.next);
        self.next = 0;
        while self.rows.len() < limit {
            if self.next == self.buffer.len() {
                if self.is_at_end || self.has_full_batch() {
                    break;
                }
                self.fill()?;
                continue;
            }
            if self.is_blank_line() {
                continue;
            }
            let first_field = self.fields.len();
            match self.dialect.step(&self.buffer, self.next, self.is_at_end, &mut self.fields) {
                Step::Row { next, lines } => {
                    self.take_row(first_field, next);
                    self.next = next;
                    self.line += lines;
                }
                Step::Malformed { next, problem, at } => {
                    let value = excerpt(line_from(&self.buffer, at.min(next), self.dialect.line_end));
                    self.malformed.push(Malformed { line: self.line, problem: problem.to_string(), value });
                    self.next = next;
                    self.line += 1;
                }
                Step::Incomplete if self.buffer.len() - self.next > ROW_BYTES_LIMIT => self.drop_endless_row(),
                Step::Incomplete if self.has_full_batch() => break,
                Step::Incomplete => self.fill()?,
            }
        }
        if self.rows.is_empty() && self.malformed.is_empty() {
            return Ok(None);
        }
        for field in self.fields.iter_mut().filter(|field| field.is_escaped) {
            self.dialect.unescape(&mut self.buffer, field);
        }
        Ok(Some(Rows { bytes: &self.buffer, fields: &self.fields, rows: &self.rows, malformed: &self.malformed }))
    }

    /// Whether there is something to hand out before more is read.
    fn has_full_batch(&self) -> bool {
        self.buffer.len() >= READ_BYTES && !(self.rows.is_empty() && self.malformed.is_empty())
    }

    /// The first row, whatever its number of fields; the rows after it come in batches as usual.
    pub(super) fn first_row(&mut self) -> std::io::Result<Option<Vec<Vec<u8>>>> {
        let width = std::mem::take(&mut self.width);
        let rows = self.next_rows(1)?;
        let texts = rows.filter(|rows| rows.len() > 0).map(|rows| {
            let fields = rows.fields(rows.row(0)).iter();
            fields.map(|field| rows.text(*field).to_vec()).collect()
        });
        self.width = width;
        Ok(texts)
    }

    /// Passes over a line without any byte, except where a row has one field: there it is a NULL.
    fn is_blank_line(&mut self) -> bool {
        let blank = match self.buffer[self.next..] {
            [byte, ..] if byte == self.dialect.line_end => 1,
            [b'\r', byte, ..] if byte == self.dialect.line_end => 2,
            [b'\r'] if self.is_at_end => 1,
            _ => return false,
        };
        if self.width == 1 {
            return false;
        }
        self.next += blank;
        self.line += 1;
        true
    }

    /// Keeps the row whose fields start at `first_field`, or counts it as malformed.
    fn take_row(&mut self, first_field: usize, next: usize) {
        let field_count = self.fields.len() - first_field;
        if self.width == 0 || field_count == self.width {
            self.rows.push(Row { line: self.line, first_field, field_count });
            return;
        }
        self.fields.truncate(first_field);
        let plural = if field_count == 1 { "" } else { "s" };
        let problem = format!("{field_count} field{plural} where {} are expected", self.width);
        let value = excerpt(line_from(&self.buffer[..next], self.next, self.dialect.line_end));
        self.malformed.push(Malformed { line: self.line, problem, value });
    }

    /// A row that is longer than any row may be, most likely for want of a closing quote.
    fn drop_endless_row(&mut self) {
        let value = excerpt(line_from(&self.buffer, self.next, self.dialect.line_end));
        let problem = format!("a row of more than {} MiB; a quote is perhaps never closed", ROW_BYTES_LIMIT >> 20);
        self.malformed.push(Malformed { line: self.line, problem, value });
        let line_end = memchr::memchr(self.dialect.line_end, &self.buffer[self.next..]);
        self.next = line_end.map_or(self.buffer.len(), |offset| self.next + offset + 1);
        self.line += 1;
    }

    /// Reads more bytes behind those that are there; twice as many each time, so that a long row is not looked at
    /// again and again.
    fn fill(&mut self) -> std::io::Result<()> {
        let is_first = self.buffer.is_empty() && self.line <= 1;
        if self.rows.is_empty() && self.malformed.is_empty() {
            // No row refers to these bytes.
            self.buffer.drain(..self.next);
            self.next = 0;
        }
        let wanted = READ_BYTES.max(self.buffer.len()) as u64;
        let got = self.stream.by_ref().take(wanted).read_to_end(&mut self.buffer)?;
        self.is_at_end = (got as u64) < wanted;
        if is_first && self.buffer.starts_with(BYTE_ORDER_MARK) {
            self.buffer.drain(..BYTE_ORDER_MARK.len());
        }
        Ok(())
    }
}

/// The rest of the line from `at`, without its end.
fn line_from(bytes: &[u8], at: usize, line_end: u8) -> &[u8] {
    let rest = &bytes[at.min(bytes.len())..];
    let end = memchr::memchr(line_end, rest).unwrap_or(rest.len());
    rest[..end].strip_suffix(b"\r").unwrap_or(&rest[..end])
}
