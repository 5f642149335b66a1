//! Finding out how a file is written: its delimiter, its quote, its line ends.
//!
//! Each candidate cuts the head of the file into rows. A good one gives all rows the same number of fields, more than
//! one, and meets no quote out of place. Ties go to the delimiter that the file's name promises, then to more fields.
//! Where no delimiter cuts at least half of the rows alike, a line is one column. In a `.txt` file all rows must agree:
//! that is as likely prose as a table.

use super::split::{Dialect, Field, Step};
use crate::format::promised_delimiter;
use crate::{FileError, ReadOptions, Result};
use std::collections::BTreeMap;
use std::path::Path;

/// The delimiters that are tried, in order of frequency.
const DELIMITERS: [u8; 4] = [b',', b'\t', b'|', b';'];

/// The rows that a candidate is tried on.
const ROWS_TRIED: u64 = 20_000;

/// What was found.
pub(super) struct Found {
    pub(super) dialect: Dialect,
    /// The fields of most rows; 0 for an empty file.
    pub(super) width: usize,
    pub(super) notes: Vec<String>,
}

/// How a dialect does on the head of a file.
struct Trial {
    dialect: Dialect,
    row_count: u64,
    /// The commonest number of fields, and how many rows have it.
    width: usize,
    width_rows: u64,
    /// Whether every field but the first of a row starts with a space, and there are such fields.
    is_spaced: bool,
}

impl Trial {
    fn is_perfect(&self) -> bool {
        self.width_rows == self.row_count
    }

    fn agreement(&self) -> f64 {
        self.width_rows as f64 / self.row_count.max(1) as f64
    }
}

/// Judges from `head`, the first bytes of the file, which `is_all` of it or not. `expected_width` is the number of
/// columns that the statement expects.
pub(super) fn find(
    path: &Path,
    extension: &str,
    head: &[u8],
    is_all: bool,
    options: &ReadOptions,
    expected_width: Option<usize>,
) -> Result<Found> {
    refuse_other_formats(path, head)?;
    let head = head.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(head);
    let line_end = if !head.contains(&b'\n') && head.contains(&b'\r') { b'\r' } else { b'\n' };
    let head = after_lines(head, options.skip_lines, line_end);
    let promised = if extension == "csv" { Some(b',') } else { promised_delimiter(extension) };
    let delimiters: Vec<u8> = match options.delimiter {
        Some(delimiter) => vec![delimiter],
        None => {
            let mut delimiters = DELIMITERS.to_vec();
            delimiters.sort_by_key(|delimiter| Some(*delimiter) != promised);
            delimiters
        }
    };
    let mut trials = Vec::new();
    for &delimiter in &delimiters {
        for (quote, escape) in quotes(head, options) {
            let dialect = Dialect { delimiter: Some(delimiter), quote, escape, line_end, skips_spaces: false };
            trials.push(attempt(dialect, head, is_all));
        }
    }
    // Where quotes explain every row, reading them as ordinary characters is no alternative.
    let explained: Vec<Option<u8>> = trials
        .iter()
        .filter(|trial| trial.dialect.quote.is_some() && trial.is_perfect())
        .map(|trial| trial.dialect.delimiter)
        .collect();
    trials.retain(|trial| trial.dialect.quote.is_some() || !explained.contains(&trial.dialect.delimiter));
    let least_agreement = if extension == "txt" { 1.0 } else { 0.5 };
    let is_table = |trial: &&Trial| {
        let is_expected_column = expected_width == Some(1) && trial.width == 1 && trial.is_perfect();
        let is_wide = trial.width > 1 && trial.agreement() >= least_agreement;
        options.delimiter.is_some() || is_wide || (is_expected_column && extension != "txt")
    };
    let rank = |trial: &Trial| {
        let is_promised = trial.dialect.delimiter == promised && promised.is_some();
        let weight = (trial.width as f64 * trial.agreement() * 1000.0) as u64;
        (expected_width == Some(trial.width), trial.is_perfect(), is_promised, weight)
    };
    // Of equals the first is kept.
    let best = trials.iter().filter(is_table).rev().max_by_key(|trial| rank(trial));
    let mut notes = Vec::new();
    match best {
        Some(trial) => {
            let mut dialect = trial.dialect;
            if trial.is_spaced && dialect.delimiter != Some(b' ') {
                dialect.skips_spaces = true;
                notes.push(format!("{}: the space after each delimiter is taken as part of it", path.display()));
            }
            Ok(Found { dialect, width: trial.width, notes })
        }
        None => Ok(lines(path, extension, &trials, line_end, options, head.is_empty())),
    }
}

/// A file whose lines are one column.
fn lines(path: &Path, extension: &str, trials: &[Trial], line_end: u8, options: &ReadOptions, is_empty: bool) -> Found {
    let width = usize::from(!is_empty);
    let usual = trials.iter().find(|trial| trial.dialect.quote.is_some() && trial.width <= 1 && trial.is_perfect());
    let mut notes = Vec::new();
    // Where the usual delimiter occurs only in quotes, or not at all, it is a table of one column.
    let usual = usual.filter(|trial| trial.dialect.delimiter == trials[0].dialect.delimiter && extension != "txt");
    let dialect = match usual {
        Some(trial) => trial.dialect,
        None => {
            if extension != "txt" {
                notes.push(format!(
                    "{}: no delimiter gives the lines the same number of fields, so each line is one value; \
                     (delimiter ',') insists",
                    path.display()
                ));
            }
            line_dialect(options, line_end)
        }
    };
    Found { dialect, width, notes }
}

/// Each line is one value.
pub(super) fn line_dialect(options: &ReadOptions, line_end: u8) -> Dialect {
    let quote = options.quote.flatten();
    Dialect { delimiter: None, quote, escape: options.escape, line_end, skips_spaces: false }
}

/// The quotes and escapes to try: those given, else `"`, `"` with backslash if there is one before a quote, none, and
/// `'` if a field starts and ends with it somewhere.
fn quotes(head: &[u8], options: &ReadOptions) -> Vec<(Option<u8>, Option<u8>)> {
    let marks = match options.quote {
        Some(quote) => vec![quote],
        None if is_single_quoted(head) => vec![Some(b'"'), Some(b'\''), None],
        None => vec![Some(b'"'), None],
    };
    let mut tried = Vec::new();
    for quote in marks {
        tried.push((quote, options.escape));
        let has_backslash = quote.is_some_and(|quote| memchr::memmem::find(head, &[b'\\', quote]).is_some());
        if options.escape.is_none() && has_backslash {
            tried.push((quote, Some(b'\\')));
        }
    }
    tried
}

fn is_single_quoted(head: &[u8]) -> bool {
    let is_edge =
        |byte: Option<&u8>| byte.is_none_or(|byte| DELIMITERS.contains(byte) || matches!(byte, b'\n' | b'\r'));
    let mut marks = memchr::memchr_iter(b'\'', head);
    let opens = marks.clone().any(|at| is_edge(at.checked_sub(1).and_then(|before| head.get(before))));
    opens && marks.any(|at| is_edge(head.get(at + 1))) && !head.contains(&b'"')
}

/// Cuts `head` as `dialect` says.
fn attempt(dialect: Dialect, head: &[u8], is_all: bool) -> Trial {
    let mut widths: BTreeMap<usize, u64> = BTreeMap::new();
    let mut fields: Vec<Field> = Vec::new();
    let (mut at, mut row_count, mut is_spaced, mut has_several) = (0, 0, true, false);
    while at < head.len() && row_count < ROWS_TRIED {
        if head[at] == dialect.line_end || head[at] == b'\r' {
            at += 1;
            continue;
        }
        fields.clear();
        match dialect.step(head, at, is_all, &mut fields) {
            Step::Row { next, .. } => {
                *widths.entry(fields.len()).or_default() += 1;
                has_several |= fields.len() > 1;
                is_spaced =
                    is_spaced && fields[1..].iter().all(|f| !f.is_quoted && head.get(f.start as usize) == Some(&b' '));
                at = next;
            }
            Step::Malformed { next, .. } => at = next,
            Step::Incomplete if row_count == 0 && !is_all => {
                // A first row longer than the head: its fields so far say enough.
                if let Step::Row { .. } = dialect.step(head, at, true, &mut fields) {
                    *widths.entry(fields.len()).or_default() += 1;
                }
                at = head.len();
            }
            Step::Incomplete => break,
        }
        row_count += 1;
    }
    let (width, width_rows) = widths.into_iter().max_by_key(|(width, rows)| (*rows, *width)).unwrap_or((0, 0));
    Trial { dialect, row_count, width, width_rows, is_spaced: is_spaced && has_several }
}

/// `bytes` without the first `count` lines.
fn after_lines(mut bytes: &[u8], count: u64, line_end: u8) -> &[u8] {
    for _ in 0..count {
        let Some(at) = memchr::memchr(line_end, bytes) else { return &[] };
        bytes = &bytes[at + 1..];
    }
    bytes
}

/// Files that are no UTF-8 text by their first bytes.
fn refuse_other_formats(path: &Path, head: &[u8]) -> Result<()> {
    let marks: [(&[u8], &str); 6] = [
        (b"\xFF\xFE", "UTF-16, not UTF-8; convert it, for example with iconv -f UTF-16 -t UTF-8"),
        (b"\xFE\xFF", "UTF-16, not UTF-8; convert it, for example with iconv -f UTF-16 -t UTF-8"),
        (b"\x1F\x8B", "compressed with gzip; say (compression 'gzip')"),
        (b"\x28\xB5\x2F\xFD", "compressed with zstd; say (compression 'zstd')"),
        (b"PAR1", "a Parquet file; say (format 'parquet')"),
        (b"ARROW1", "an Arrow file; say (format 'arrow')"),
    ];
    match marks.iter().find(|(mark, _)| head.starts_with(mark)) {
        Some((_, problem)) => Err(FileError::schema(path, *problem)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(extension: &str, text: &str) -> (Option<char>, Option<char>, usize) {
        let options = ReadOptions::default();
        let found = find(Path::new("x"), extension, text.as_bytes(), true, &options, None).unwrap();
        (found.dialect.delimiter.map(char::from), found.dialect.quote.map(char::from), found.width)
    }

    #[test]
    fn dialects_are_told_from_the_text() {
        assert_eq!(found("csv", "a,b,c\n1,2,3\n"), (Some(','), Some('"'), 3));
        assert_eq!(found("csv", "a;b\n1,5;2,5\n"), (Some(';'), Some('"'), 2));
        assert_eq!(found("psv", "a,b|c\n1,2|3\n"), (Some('|'), Some('"'), 2));
        assert_eq!(found("csv", "a\tb\n\"x\ty\"\tz\n"), (Some('\t'), Some('"'), 2));
        assert_eq!(found("csv", "'a,b',c\n'd',e\n"), (Some(','), Some('\''), 2));
        assert_eq!(found("tsv", "a\t\"b\" c\nd\te\n"), (Some('\t'), None, 2));
        assert_eq!(found("csv", "a\n1\n2\n"), (Some(','), Some('"'), 1));
        assert_eq!(found("csv", "a\n\"1,5\"\n2\n"), (Some(','), Some('"'), 1));
        assert_eq!(found("csv", "a\n\"1,5\"\n\"2,6\"\n"), (Some(','), Some('"'), 1));
        assert_eq!(found("csv", "1,2,3\n4\n5,6\n7,8,9,1\n"), (None, None, 1));
        assert_eq!(found("txt", "To be, or not\nto be\nthat, is, it\n"), (None, None, 1));
        assert_eq!(found("csv", "").2, 0);
    }

    #[test]
    fn spaces_after_delimiters_are_noted() {
        let find =
            |text: &str| find(Path::new("x"), "csv", text.as_bytes(), true, &ReadOptions::default(), None).unwrap();
        assert!(find("a, b\n1, 2\n").dialect.skips_spaces);
        assert!(!find("a, b\n1,2\n").dialect.skips_spaces);
    }
}
