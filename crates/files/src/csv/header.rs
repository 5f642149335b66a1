//! Whether the first row of a file holds names.
//!
//! It does if at least half of the columns that hold numbers, dates and the like further down start with something else. Where
//! all columns are text, the first row is taken for names if it looks like names: none empty, none twice, none that
//! comes again further down its column. A single column of text in a `.txt` file has no name: that is a list of lines.

use crate::value::guess::Guess;
use arrow::datatypes::{DataType, Schema};
use std::collections::HashSet;

/// What is known of the first row and of those below it.
pub(super) struct Evidence<'a> {
    /// The texts of the first row.
    pub(super) first: &'a [Vec<u8>],
    /// The guesses from the other rows.
    pub(super) rest: &'a [Guess],
    /// Per column, whether the first text comes again below.
    pub(super) recurs: &'a [bool],
    /// Whether there are other rows.
    pub(super) has_rest: bool,
    /// The file's extension.
    pub(super) extension: &'a str,
    /// The texts that mean NULL by the statement.
    pub(super) null: &'a [Vec<u8>],
    /// The columns that the statement expects.
    pub(super) expected: Option<&'a Schema>,
}

/// Whether the first row holds names.
pub(super) fn is_header(evidence: &Evidence<'_>) -> bool {
    if evidence.expected.is_some_and(|schema| are_names_of(evidence.first, schema)) {
        return true;
    }
    if evidence.first.iter().any(|text| evidence.null.contains(text)) {
        return false;
    }
    let (mut fitting, mut unfitting) = (0, 0);
    for (text, guess) in evidence.first.iter().zip(evidence.rest) {
        let is_typed = !guess.is_text() && !matches!(guess.data_type(), DataType::Null | DataType::Utf8);
        let is_null = text.is_empty() || guess.markers().any(|marker| marker.as_bytes() == text);
        if is_typed && !is_null {
            if guess.admits(text) {
                fitting += 1;
            } else {
                unfitting += 1;
            }
        }
    }
    if fitting + unfitting > 0 {
        return unfitting >= fitting;
    }
    // The names of a table's columns would have been recognised above.
    evidence.expected.is_none() && look_like_names(evidence)
}

fn look_like_names(evidence: &Evidence<'_>) -> bool {
    let first = evidence.first;
    // Neither a number, a date and the like nor a marker such as NA.
    let is_word = |text: &[u8]| {
        let mut guess = Guess::default();
        guess.add(text);
        guess.is_text()
    };
    let are_distinct = first.iter().collect::<HashSet<_>>().len() == first.len();
    let are_words = first.iter().all(|text| !text.is_empty() && text.len() <= 64 && is_word(text));
    are_distinct
        && are_words
        && !evidence.recurs.contains(&true)
        && !(evidence.extension == "txt" && first.len() == 1)
        && (evidence.has_rest || first.len() > 1)
}

/// Whether `texts` are the names of `schema`, in any order and any case.
fn are_names_of(texts: &[Vec<u8>], schema: &Schema) -> bool {
    let is_name = |text: &Vec<u8>| schema.fields().iter().any(|f| f.name().as_bytes().eq_ignore_ascii_case(text));
    texts.len() == schema.fields().len() && texts.iter().all(is_name)
}

/// The names of `width` columns: `given` from the left, an empty one replaced by its position, a repeated one numbered.
pub(super) fn names(given: &[Vec<u8>], width: usize) -> Vec<String> {
    let digits = width.saturating_sub(1).to_string().len();
    let mut names: Vec<String> = Vec::with_capacity(width);
    // In lower case, as SQL compares names.
    let mut taken = HashSet::with_capacity(width);
    for position in 0..width {
        let text = given.get(position).map(|text| String::from_utf8_lossy(text).into_owned()).unwrap_or_default();
        let base = if text.is_empty() { format!("column{position:0digits$}") } else { text };
        let mut name = base.clone();
        let mut number = 0;
        while !taken.insert(name.to_lowercase()) {
            number += 1;
            name = format!("{base}_{number}");
        }
        names.push(name);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(rows: &[&[&str]]) -> bool {
        let width = rows[0].len();
        let first: Vec<Vec<u8>> = rows[0].iter().map(|text| text.as_bytes().to_vec()).collect();
        let mut rest = vec![Guess::default(); width];
        let mut recurs = vec![false; width];
        for row in &rows[1..] {
            for column in 0..width {
                rest[column].add(row[column].as_bytes());
                recurs[column] |= row[column] == rows[0][column];
            }
        }
        let has_rest = rows.len() > 1;
        is_header(&Evidence {
            first: &first,
            rest: &rest,
            recurs: &recurs,
            has_rest,
            extension: "csv",
            null: &[],
            expected: None,
        })
    }

    #[test]
    fn names_differ_from_values() {
        assert!(judge(&[&["id", "price"], &["1", "2.5"]]));
        assert!(!judge(&[&["7", "2.5"], &["1", "2.5"]]));
        assert!(judge(&[&["country", "2010", "population"], &["at", "5", "3"], &["de", "4", "2"]]));
        assert!(!judge(&[&["unknown", "5", "3"], &["1", "5", "3"], &["2", "4", "2"]]));
        assert!(!judge(&[&["x", "NA"], &["y", "5"], &["z", "NA"]]));
        assert!(judge(&[&["carrier", "name"], &["9E", "Endeavor"]]));
        assert!(!judge(&[&["9E", "Endeavor"], &["AA", "American"], &["9E", "Endeavor"]]));
        assert!(!judge(&[&["a", "a"], &["b", "c"]]));
        assert!(judge(&[&["a", "b"]]));
    }

    #[test]
    fn names_are_whole_and_distinct() {
        let texts = |texts: &[&str]| texts.iter().map(|text| text.as_bytes().to_vec()).collect::<Vec<_>>();
        assert_eq!(names(&texts(&["a", "", "A", "a_1"]), 4), ["a", "column1", "A_1", "a_1_1"]);
        assert_eq!(names(&[], 11)[0], "column00");
    }
}
