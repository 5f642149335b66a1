//! A stream of JSON cut into its values, with the lines they start on.

use crate::error::excerpt;
use std::io::Read;
use std::ops::Range;

/// The bytes read at a time, and what a batch takes up at most unless one value is longer.
const READ_BYTES: usize = 4 << 20;

/// The longest value. A bracket that is never closed would otherwise swallow the rest of the file.
const RECORD_BYTES_LIMIT: usize = 256 << 20;

/// How values follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// One per line. Only here can reading go on after a broken one.
    Lines,
    /// Elements of one array.
    Array,
    /// One after the other, over any number of lines.
    Concatenated,
}

/// Judges from the first bytes of a file whether they are lines. `promises_lines` if its name says so.
pub(super) fn framing(head: &[u8], promises_lines: bool) -> Framing {
    let head = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head);
    let Some(start) = head.iter().position(|byte| !byte.is_ascii_whitespace()) else { return Framing::Lines };
    if head[start] == b'[' {
        return Framing::Array;
    }
    if promises_lines {
        return Framing::Lines;
    }
    let first = match value_end(head, start) {
        Some(end) => &head[start..end],
        None => &head[start..],
    };
    let rest = &head[start + first.len()..];
    let line_end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
    let is_alone = rest[..line_end].trim_ascii().is_empty();
    if is_alone && !first.contains(&b'\n') { Framing::Lines } else { Framing::Concatenated }
}

/// One past the value that starts at `start`, by brackets and quotes alone; `None` where it does not end.
fn value_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut depth = 0usize;
    let mut at = start;
    loop {
        match *bytes.get(at)? {
            b'"' => at = string_end(bytes, at + 1)?,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth <= 1 => return Some(at + 1),
            b'}' | b']' => depth -= 1,
            byte if depth == 0 => {
                // A number or a word ends where something else starts.
                let ends =
                    |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b']' | b'}' | b'{' | b'[' | b'"');
                let length = bytes[at..].iter().position(ends)?;
                return Some(at + length.max(usize::from(ends(&byte))));
            }
            _ => {}
        }
        if depth == 0 {
            return Some(at + 1);
        }
        at += 1;
    }
}

/// The closing quote of a string whose content starts at `at`.
fn string_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    loop {
        let found = at + memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[found] == b'"' {
            return Some(found);
        }
        at = found + 2;
    }
}

/// One value of the stream.
#[derive(Debug, Clone)]
pub(super) struct Record {
    /// The line on which it starts, from 1.
    pub(super) line: u64,
    range: Range<usize>,
}

/// A place where values can no longer be told apart.
#[derive(Debug, Clone)]
pub(super) struct Broken {
    /// Its line, from 1.
    pub(super) line: u64,
    /// What is wrong.
    pub(super) problem: &'static str,
    /// Some of the text.
    pub(super) value: String,
}

/// A stream cut into values, a batch at a time.
pub(super) struct Records<R> {
    stream: R,
    framing: Framing,
    buffer: Vec<u8>,
    next: usize,
    is_at_end: bool,
    line: u64,
    records: Vec<Record>,
    broken: Option<Broken>,
    /// Of an array: before its bracket, inside, or behind.
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Before,
    First,
    Inside,
    Behind,
}

/// The values of one batch.
pub(super) struct Batch<'a> {
    bytes: &'a [u8],
    records: &'a [Record],
    /// Set where nothing can be read after these values.
    pub(super) broken: Option<&'a Broken>,
}

impl<'a> Batch<'a> {
    /// The values, each with its text.
    pub(super) fn records(&self) -> impl ExactSizeIterator<Item = (&'a Record, &'a [u8])> {
        self.records.iter().map(|record| (record, &self.bytes[record.range.clone()]))
    }
}

impl<R: Read> Records<R> {
    pub(super) fn new(stream: R, framing: Framing) -> Self {
        Self {
            stream,
            framing,
            buffer: Vec::new(),
            next: 0,
            is_at_end: false,
            line: 1,
            records: Vec::new(),
            broken: None,
            place: Place::Before,
        }
    }

    /// At most `limit` values, or `None` at the end.
    pub(super) fn next_batch(&mut self, limit: usize) -> std::io::Result<Option<Batch<'_>>> {
        self.records.clear();
        self.drop_read();
        if self.broken.is_some() {
            return Ok(None);
        }
        while self.records.len() < limit && self.broken.is_none() {
            let found = match self.framing {
                Framing::Lines => self.take_line(),
                Framing::Array | Framing::Concatenated => self.take_value(),
            };
            if found {
                continue;
            }
            if self.is_at_end || (self.buffer.len() >= READ_BYTES && !self.records.is_empty()) {
                break;
            }
            if self.buffer.len() - self.next > RECORD_BYTES_LIMIT {
                self.break_off("a value of more than 256 MiB; a bracket or a quote is perhaps never closed");
                break;
            }
            self.fill()?;
        }
        if self.is_at_end && self.records.len() < limit && self.broken.is_none() {
            self.check_end();
        }
        if self.records.is_empty() && self.broken.is_none() {
            return Ok(None);
        }
        Ok(Some(Batch { bytes: &self.buffer, records: &self.records, broken: self.broken.as_ref() }))
    }

    /// Takes the next line, unless it may go on.
    fn take_line(&mut self) -> bool {
        let rest = &self.buffer[self.next..];
        let (length, next) = match memchr::memchr(b'\n', rest) {
            Some(length) => (length, length + 1),
            None if self.is_at_end && !rest.is_empty() => (rest.len(), rest.len()),
            None => return false,
        };
        if !rest[..length].trim_ascii().is_empty() {
            self.records.push(Record { line: self.line, range: self.next..self.next + length });
        }
        self.next += next;
        self.line += 1;
        true
    }

    /// Takes the next value, unless it may go on.
    fn take_value(&mut self) -> bool {
        let Some(mut byte) = self.skip_space() else { return false };
        // Where to come back to if the value is not whole yet: before the comma that announces it.
        let start = (self.next, self.line);
        if self.framing == Framing::Array {
            match (self.place, byte) {
                (Place::Before, b'[') => {
                    self.next += 1;
                    self.place = Place::First;
                    return true;
                }
                (Place::First | Place::Inside, b']') => {
                    self.next += 1;
                    self.place = Place::Behind;
                    return true;
                }
                (Place::Inside, b',') => {
                    self.next += 1;
                    match self.skip_space() {
                        Some(next_byte) => byte = next_byte,
                        None => {
                            (self.next, self.line) = start;
                            return false;
                        }
                    }
                }
                (Place::Inside, _) => {
                    self.break_off("a comma or the end of the array is expected");
                    return true;
                }
                (Place::Behind, _) => {
                    self.break_off("text after the end of the array");
                    return true;
                }
                (Place::Before | Place::First, _) => {}
            }
        }
        let end = match value_end(&self.buffer, self.next) {
            Some(end) => end,
            // A number or a word at the end of the file.
            None if self.is_at_end && !matches!(byte, b'{' | b'[' | b'"') => self.buffer.len(),
            None => {
                (self.next, self.line) = start;
                return false;
            }
        };
        self.records.push(Record { line: self.line, range: self.next..end });
        self.line += memchr::memchr_iter(b'\n', &self.buffer[self.next..end]).count() as u64;
        self.next = end;
        self.place = Place::Inside;
        true
    }

    /// What is left at the end of the file has to be nothing.
    fn check_end(&mut self) {
        if self.skip_space().is_some() {
            self.break_off("the text ends before the value does");
        } else if self.framing == Framing::Array && self.place != Place::Behind {
            self.break_off("the text ends before the array does");
        }
    }

    fn break_off(&mut self, problem: &'static str) {
        let value = excerpt(&self.buffer[self.next..]);
        self.broken = Some(Broken { line: self.line, problem, value });
    }

    /// The next byte that is no space.
    fn skip_space(&mut self) -> Option<u8> {
        while let Some(&byte) = self.buffer.get(self.next) {
            if !byte.is_ascii_whitespace() {
                return Some(byte);
            }
            self.line += u64::from(byte == b'\n');
            self.next += 1;
        }
        None
    }

    fn drop_read(&mut self) {
        self.buffer.drain(..self.next);
        self.next = 0;
    }

    /// Reads more bytes; twice as many each time, so that a long value is not looked at again and again.
    fn fill(&mut self) -> std::io::Result<()> {
        let is_first = self.buffer.is_empty() && self.line == 1 && self.place == Place::Before;
        if self.records.is_empty() {
            self.drop_read();
        }
        let wanted = READ_BYTES.max(self.buffer.len()) as u64;
        let got = self.stream.by_ref().take(wanted).read_to_end(&mut self.buffer)?;
        self.is_at_end = (got as u64) < wanted;
        if is_first && self.buffer.starts_with(b"\xEF\xBB\xBF") {
            self.next = 3;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, framing: Framing) -> Vec<String> {
        let mut records = Records::new(text.as_bytes(), framing);
        let mut all = Vec::new();
        while let Some(batch) = records.next_batch(2).unwrap() {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            all.extend(batch.records().map(|(record, bytes)| format!("{}: {}", record.line, text(bytes))));
            all.extend(batch.broken.map(|broken| format!("{}! {} '{}'", broken.line, broken.problem, broken.value)));
        }
        all
    }

    #[test]
    fn values_are_found_in_every_framing() {
        assert_eq!(cut("{\"a\":1}\n\n{\"a\":2}", Framing::Lines), ["1: {\"a\":1}", "3: {\"a\":2}"]);
        assert_eq!(cut("[ {\"a\":\"]\"},\n{},3 ]\n", Framing::Array), ["1: {\"a\":\"]\"}", "2: {}", "2: 3"]);
        assert_eq!(cut("{\n}{ }\n 5 \"x\\\"\"", Framing::Concatenated), ["1: {\n}", "2: { }", "3: 5", "3: \"x\\\"\""]);
        assert_eq!(cut("[]", Framing::Array), [""; 0]);
        assert_eq!(cut("[{}", Framing::Array), ["1: {}", "1! the text ends before the array does ''"]);
        assert_eq!(cut("[{} {}]", Framing::Array), ["1: {}", "1! a comma or the end of the array is expected '{}]'"]);
        assert_eq!(
            cut("{}\n{\"a\":", Framing::Concatenated),
            ["1: {}", "2! the text ends before the value does '{\"a\":'"]
        );
    }

    #[test]
    fn framing_is_told_from_the_head() {
        assert_eq!(framing(b" [{}]", false), Framing::Array);
        assert_eq!(framing(b"{\"a\":1}\n{\"a\":2}\n", false), Framing::Lines);
        assert_eq!(framing(b"{\"a\":1}", false), Framing::Lines);
        assert_eq!(framing(b"{\n\"a\":1}\n", false), Framing::Concatenated);
        assert_eq!(framing(b"{\"a\":1} {\"a\":2}\n", false), Framing::Concatenated);
        assert_eq!(framing(b"{\"a\":1\n{\"a\":2}\n", true), Framing::Lines);
    }
}
