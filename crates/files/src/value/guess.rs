//! What type the texts of a column can all be.
//!
//! Each text is judged by itself; a column is of the first type, in this order, that all its texts can be: BOOLEAN,
//! BIGINT, DECIMAL(38,0), DOUBLE, DATE, TIME, TIMESTAMP, TIMESTAMPTZ, else VARCHAR. Whole numbers count as doubles too,
//! and dates as timestamps.
//!
//! The choice keeps what the text says: whole numbers with leading zeros (zip codes) are VARCHAR, those beyond 64 bits
//! are DECIMAL(38,0) and not DOUBLE, fractions of a second beyond microseconds make it TIMESTAMP_NS.

use super::{number, temporal};
use arrow::datatypes::{DataType, TimeUnit};

/// Texts that stand for NULL in a column that is otherwise of a type above VARCHAR.
const MARKERS: [&str; 7] = ["NA", "N/A", "n/a", "null", "NULL", "\\N", "#N/A"];

/// A set of types, one bit each.
type Kinds = u16;
const BOOLEAN: Kinds = 1;
const BIGINT: Kinds = 2;
const WIDE: Kinds = 4;
const DOUBLE: Kinds = 8;
const DATE: Kinds = 16;
const TIME: Kinds = 32;
const TIMESTAMP: Kinds = 64;
const TIMESTAMPTZ: Kinds = 128;
const ANY: Kinds = 255;

/// What has been seen of one column.
#[derive(Debug, Clone)]
pub(crate) struct Guess {
    possible: Kinds,
    /// Texts that are no markers.
    value_count: u64,
    /// Which of [`MARKERS`] were seen, one bit each.
    markers: u8,
    needs_nanoseconds: bool,
}

impl Default for Guess {
    fn default() -> Self {
        Self { possible: ANY, value_count: 0, markers: 0, needs_nanoseconds: false }
    }
}

impl Guess {
    /// Takes one more text into account. NULLs are not shown to a guess.
    pub(crate) fn add(&mut self, text: &[u8]) {
        if let Some(marker) = marker_of(text) {
            self.markers |= 1 << marker;
            return;
        }
        self.add_value(text);
    }

    /// As [`Guess::add`], where the caller has said what NULL is and no text is a marker.
    pub(crate) fn add_value(&mut self, text: &[u8]) {
        self.value_count += 1;
        if self.possible != 0 {
            self.possible &= self.judge(text);
        }
    }

    /// Whether nothing but VARCHAR is left.
    pub(crate) fn is_text(&self) -> bool {
        self.possible == 0
    }

    /// The type of the column; Null where no text was seen.
    pub(crate) fn data_type(&self) -> DataType {
        let unit = if self.needs_nanoseconds { TimeUnit::Nanosecond } else { TimeUnit::Microsecond };
        if self.value_count == 0 && self.markers == 0 {
            return DataType::Null;
        }
        match self.possible {
            _ if self.value_count == 0 => DataType::Utf8,
            kinds if kinds & BOOLEAN != 0 => DataType::Boolean,
            kinds if kinds & BIGINT != 0 => DataType::Int64,
            kinds if kinds & WIDE != 0 => DataType::Decimal128(38, 0),
            kinds if kinds & DOUBLE != 0 => DataType::Float64,
            kinds if kinds & DATE != 0 => DataType::Date32,
            kinds if kinds & TIME != 0 => DataType::Time64(unit),
            kinds if kinds & TIMESTAMP != 0 => DataType::Timestamp(unit, None),
            kinds if kinds & TIMESTAMPTZ != 0 => DataType::Timestamp(unit, Some("UTC".into())),
            _ => DataType::Utf8,
        }
    }

    /// The marker texts that were seen, whatever the type.
    pub(crate) fn markers(&self) -> impl Iterator<Item = &'static str> {
        let seen = self.markers;
        MARKERS.iter().enumerate().filter(move |(index, _)| seen & (1 << index) != 0).map(|(_, marker)| *marker)
    }

    /// Whether `text` could stand in a column of this guess's type.
    pub(crate) fn admits(&self, text: &[u8]) -> bool {
        self.possible == 0 || self.value_count == 0 || self.clone().judge(text) & self.possible != 0
    }

    fn judge(&mut self, text: &[u8]) -> Kinds {
        match text.first() {
            Some(b'0'..=b'9' | b'-' | b'+' | b'.') => self.judge_figures(text),
            Some(b't' | b'T') if text.eq_ignore_ascii_case(b"true") => BOOLEAN,
            Some(b'f' | b'F') if text.eq_ignore_ascii_case(b"false") => BOOLEAN,
            Some(b'n' | b'N' | b'i' | b'I') if text.len() <= 8 && number::double(text).is_some() => DOUBLE,
            _ => 0,
        }
    }

    fn judge_figures(&mut self, text: &[u8]) -> Kinds {
        if text.len() >= 8 && matches!(text[4], b'-' | b'/') {
            let Some(at) = temporal::instant(text) else { return 0 };
            self.needs_nanoseconds |= at.nanoseconds % 1000 != 0;
            return match at.has_zone {
                true => TIMESTAMPTZ,
                false if text.len() <= 10 => DATE | TIMESTAMP,
                false => TIMESTAMP,
            };
        }
        if text.len() >= 8 && text[2] == b':' {
            let Some(nanoseconds) = temporal::time(text) else { return 0 };
            self.needs_nanoseconds |= nanoseconds % 1000 != 0;
            return TIME;
        }
        let digits = text.strip_prefix(b"-").or_else(|| text.strip_prefix(b"+")).unwrap_or(text);
        if !digits.iter().all(u8::is_ascii_digit) {
            let is_number = digits.first().is_some_and(|byte| byte.is_ascii_digit() || *byte == b'.');
            return if is_number && number::double(text).is_some() { DOUBLE } else { 0 };
        }
        match (digits, text[0]) {
            ([], _) => 0,
            // BIGINT has no minus zero; DOUBLE has.
            ([b'0'], b'-') => DOUBLE,
            ([b'0', _, ..], _) => 0,
            _ if digits.len() <= 18 || number::bigint(text).is_some() => BIGINT | WIDE | DOUBLE,
            _ if digits.len() <= 38 => WIDE | DOUBLE,
            _ => DOUBLE,
        }
    }
}

/// Which of [`MARKERS`] `text` is.
fn marker_of(text: &[u8]) -> Option<usize> {
    match text {
        [b'N' | b'n' | b'\\' | b'#', _] | [b'N' | b'n' | b'#', _, _] | [b'N' | b'n' | b'#', _, _, _] => {
            MARKERS.iter().position(|marker| marker.as_bytes() == text)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guess(texts: &[&str]) -> String {
        let mut guess = Guess::default();
        texts.iter().for_each(|text| guess.add(text.as_bytes()));
        crate::sql_type::name(&guess.data_type())
    }

    #[test]
    fn columns_are_of_the_first_type_that_fits_all() {
        let cases: [(&[&str], &str); 24] = [
            (&["1", "-5", "+3", "0"], "BIGINT"),
            (&["1", "2.5"], "DOUBLE"),
            (&["1", "NA", "3"], "BIGINT"),
            (&["NA", "NA"], "VARCHAR"),
            (&["01234", "99999"], "VARCHAR"),
            (&["0.5", "-072.6"], "DOUBLE"),
            (&["9223372036854775808", "1"], "DECIMAL(38,0)"),
            (&["9223372036854775808", "1.5"], "DOUBLE"),
            (&["-0", "1"], "DOUBLE"),
            (&["nan", "inf"], "DOUBLE"),
            (&["nan", "1"], "DOUBLE"),
            (&["true", "FALSE"], "BOOLEAN"),
            (&["true", "1"], "VARCHAR"),
            (&["2024-02-29", "2023/01/01"], "DATE"),
            (&["2024-02-29", "2023-02-29"], "VARCHAR"),
            (&["2024-02-29", "2023-01-01 10:00"], "TIMESTAMP"),
            (&["2024-02-29T10:00:00.0000001"], "TIMESTAMP_NS"),
            (&["2024-02-29T10:00:00Z"], "TIMESTAMPTZ"),
            (&["2024-02-29T10:00:00Z", "2024-02-29T10:00:00"], "VARCHAR"),
            (&["10:00:00", "23:59:59.5"], "TIME"),
            (&["2024-02-29", "10:00:00"], "VARCHAR"),
            (&["-", "+", "."], "VARCHAR"),
            (&["1e5", ".5", "5."], "DOUBLE"),
            (&["84dc295e-2da5-11e8-b024-9b47611e8dc6"], "VARCHAR"),
        ];
        for (texts, expected) in cases {
            assert_eq!(guess(texts), expected, "{texts:?}");
        }
    }
}
