//! Cutting bytes into the fields of one row.
//!
//! A field is quoted if its first byte is the quote; a quote further on is an ordinary character. Inside quotes a
//! doubled quote (or the escape and any byte) stands for that byte, and line ends are part of the value. After the
//! closing quote only a delimiter or the end of the line may follow. A row ends with `\n`, `\r\n`, or in old files
//! `\r`.

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dialect {
    /// Between fields; `None` where a line is one field.
    pub(super) delimiter: Option<u8>,
    /// Around fields.
    pub(super) quote: Option<u8>,
    /// Before a quote inside quotes: the quote itself or a backslash.
    pub(super) escape: Option<u8>,
    /// The last byte of a line: `\n`, or `\r` where a file has no `\n`.
    pub(super) line_end: u8,
    /// Whether spaces after a delimiter belong to it.
    pub(super) skips_spaces: bool,
}

/// Where a field's bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    /// The first byte, after the quote.
    pub(super) start: u32,
    /// One past the last byte, before the quote.
    pub(super) end: u32,
    /// Whether it stood in quotes.
    pub(super) is_quoted: bool,
    /// Whether it holds doubled quotes or escapes, which `unescape` takes out.
    pub(super) is_escaped: bool,
}

/// What a step through the bytes met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A row, whose fields were appended; the next one starts at `next`, `lines` lines further down.
    Row { next: usize, lines: u64 },
    /// The bytes end within the row, and more may follow.
    Incomplete,
    /// A row that breaks the rules; reading can go on at `next`, on the next line.
    Malformed { next: usize, problem: &'static str, at: usize },
}

impl Dialect {
    /// Reads the row that starts at `start`, which is before the end of `bytes`. With `is_last`, the end of `bytes` is
    /// that of the file. Fields are appended to `fields`, unless the row is malformed or incomplete.
    pub(super) fn step(&self, bytes: &[u8], start: usize, is_last: bool, fields: &mut Vec<Field>) -> Step {
        let kept = fields.len();
        let mut at = start;
        let mut lines = 1;
        let delimiter = self.delimiter.unwrap_or(self.line_end);
        loop {
            if self.skips_spaces && at > start {
                while bytes.get(at) == Some(&b' ') {
                    at += 1;
                }
            }
            if self.quote.is_some() && bytes.get(at) == self.quote.as_ref() {
                let Some(closing) = self.closing_quote(bytes, at + 1) else {
                    fields.truncate(kept);
                    return match is_last {
                        true => self.malformed(bytes, start, "the quote that opens here is never closed", at),
                        false => Step::Incomplete,
                    };
                };
                let content = &bytes[at + 1..closing.at];
                lines += memchr::memchr_iter(self.line_end, content).count() as u64;
                let (start_of_field, end_of_field) = (at as u32 + 1, closing.at as u32);
                fields.push(Field {
                    start: start_of_field,
                    end: end_of_field,
                    is_quoted: true,
                    is_escaped: closing.has_escapes,
                });
                at = closing.at + 1;
                // Spaces between a closing quote and what ends the field say nothing.
                while self.skips_spaces && bytes.get(at) == Some(&b' ') {
                    at += 1;
                }
                match bytes.get(at) {
                    Some(&byte) if byte == self.line_end => return Step::Row { next: at + 1, lines },
                    Some(&byte) if byte == delimiter => at += 1,
                    Some(b'\r') if bytes.get(at + 1) == Some(&self.line_end) => {
                        return Step::Row { next: at + 2, lines };
                    }
                    None | Some(b'\r') if at + 1 >= bytes.len() && !is_last => {
                        fields.truncate(kept);
                        return Step::Incomplete;
                    }
                    None => return Step::Row { next: at, lines },
                    Some(b'\r') if at + 1 == bytes.len() => return Step::Row { next: at + 1, lines },
                    Some(_) => {
                        fields.truncate(kept);
                        return self.malformed(bytes, start, "text after the closing quote", at);
                    }
                }
                continue;
            }
            let end = find_either(bytes, at, delimiter, self.line_end);
            match end {
                Some(end) if bytes[end] != self.line_end => {
                    fields.push(unquoted(at, end));
                    at = end + 1;
                }
                Some(end) => {
                    let text_end = if end > at && bytes[end - 1] == b'\r' { end - 1 } else { end };
                    fields.push(unquoted(at, text_end));
                    return Step::Row { next: end + 1, lines };
                }
                None if is_last => {
                    let end = bytes.len();
                    let text_end = if end > at && bytes[end - 1] == b'\r' { end - 1 } else { end };
                    fields.push(unquoted(at, text_end));
                    return Step::Row { next: end, lines };
                }
                None => {
                    fields.truncate(kept);
                    return Step::Incomplete;
                }
            }
        }
    }

    /// A malformed row is passed over up to the end of the line it starts on.
    fn malformed(&self, bytes: &[u8], start: usize, problem: &'static str, at: usize) -> Step {
        let line_end = memchr::memchr(self.line_end, &bytes[start..]);
        Step::Malformed { next: line_end.map_or(bytes.len(), |offset| start + offset + 1), problem, at }
    }

    /// The quote that ends the content starting at `at`.
    fn closing_quote(&self, bytes: &[u8], mut at: usize) -> Option<Closing> {
        let quote = self.quote?;
        let escape = self.escape.unwrap_or(quote);
        let mut has_escapes = false;
        loop {
            let found = at + memchr::memchr2(quote, escape, bytes.get(at..)?)?;
            let next = bytes.get(found + 1);
            let is_doubled = escape == quote && next == Some(&quote);
            if is_doubled || (escape != quote && bytes[found] == escape) {
                has_escapes = true;
                at = found + 2;
            } else {
                return Some(Closing { at: found, has_escapes });
            }
        }
    }

    /// Takes the escapes out of a field, in place. What is left over at its end is filled with spaces, so that bytes
    /// that were UTF-8 stay so.
    pub(super) fn unescape(&self, bytes: &mut [u8], field: &mut Field) {
        let escape = self.escape.or(self.quote).unwrap_or_default();
        let (mut from, mut to) = (field.start as usize, field.start as usize);
        let end = field.end as usize;
        while from < end {
            if bytes[from] == escape && from + 1 < end {
                from += 1;
            }
            bytes[to] = bytes[from];
            from += 1;
            to += 1;
        }
        bytes[to..end].fill(b' ');
        field.end = to as u32;
        field.is_escaped = false;
    }
}

struct Closing {
    at: usize,
    has_escapes: bool,
}

fn unquoted(start: usize, end: usize) -> Field {
    Field { start: start as u32, end: end as u32, is_quoted: false, is_escaped: false }
}

/// The first of two bytes at or after `at`. Most fields are short, so the first bytes are tried one by one before the
/// vector search is worth its call.
#[inline]
fn find_either(bytes: &[u8], at: usize, one: u8, other: u8) -> Option<usize> {
    const TRIED: usize = 16;
    let rest = &bytes[at..];
    let near = &rest[..rest.len().min(TRIED)];
    if let Some(offset) = near.iter().position(|&byte| byte == one || byte == other) {
        return Some(at + offset);
    }
    memchr::memchr2(one, other, &rest[near.len()..]).map(|offset| at + near.len() + offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMA: Dialect =
        Dialect { delimiter: Some(b','), quote: Some(b'"'), escape: Some(b'"'), line_end: b'\n', skips_spaces: false };

    /// The fields of each row; `!` and the problem for a malformed one.
    fn split(dialect: Dialect, text: &str) -> Vec<Vec<String>> {
        let mut bytes = text.as_bytes().to_vec();
        let mut at = 0;
        let mut rows = Vec::new();
        while at < bytes.len() {
            let mut fields = Vec::new();
            match dialect.step(&bytes, at, true, &mut fields) {
                Step::Row { next, .. } => {
                    at = next;
                    let print = |field: &mut Field| {
                        if field.is_escaped {
                            dialect.unescape(&mut bytes, field);
                        }
                        String::from_utf8(bytes[field.start as usize..field.end as usize].to_vec()).unwrap()
                    };
                    rows.push(fields.iter_mut().map(print).collect());
                }
                Step::Malformed { next, problem, .. } => {
                    at = next;
                    rows.push(vec![format!("! {problem}")]);
                }
                Step::Incomplete => panic!("incomplete at the end"),
            }
        }
        rows
    }

    #[test]
    fn rows_and_fields() {
        assert_eq!(split(COMMA, "a,b\n1,2"), [["a", "b"], ["1", "2"]]);
        assert_eq!(split(COMMA, "a,b\r\n1,2\r\n"), [["a", "b"], ["1", "2"]]);
        assert_eq!(split(COMMA, "\"a,\n\"\"b\"\"\",\"\"\r\nx\"y,z"), [["a,\n\"b\"", ""], ["x\"y", "z"]]);
        assert_eq!(split(COMMA, ",\n"), [["", ""]]);
        assert_eq!(split(COMMA, "\"a\"b,c\nd,e"), [vec!["! text after the closing quote"], vec!["d", "e"]]);
        assert_eq!(split(COMMA, "\"a,c\nd,e"), [vec!["! the quote that opens here is never closed"], vec!["d", "e"]]);
        let backslash = Dialect { escape: Some(b'\\'), ..COMMA };
        assert_eq!(split(backslash, "\"a\\\"b\",\"\\\\\""), [["a\"b", "\\"]]);
        let spaced = Dialect { skips_spaces: true, ..COMMA };
        assert_eq!(split(spaced, "a,  b, \"c, d\" , e f"), [["a", "b", "c, d", "e f"]]);
        let lines = Dialect { delimiter: None, quote: None, ..COMMA };
        assert_eq!(split(lines, "a,\"b\n\nc"), [["a,\"b"], [""], ["c"]]);
        let old = Dialect { line_end: b'\r', ..COMMA };
        assert_eq!(split(old, "a,b\r1,2"), [["a", "b"], ["1", "2"]]);
    }

    #[test]
    fn every_prefix_is_incomplete_or_a_row() {
        let text = b"ab,\"c\"\"d\r\n\",e\r\nx";
        let mut fields = Vec::new();
        for end in 1..text.len() - 1 {
            assert_eq!(COMMA.step(&text[..end], 0, false, &mut fields), Step::Incomplete, "{end}");
            assert!(fields.is_empty());
        }
        assert_eq!(COMMA.step(text, 0, false, &mut fields), Step::Row { next: 15, lines: 2 });
    }
}
