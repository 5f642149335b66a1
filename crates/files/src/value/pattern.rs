//! Dates and timestamps in a written order of their own, given with the letters of strftime.
//!
//! `%Y %y %m %d %H %I %M %S %f %p %b %B %z %%`; any other character stands for itself. `%f` takes one to nine digits of
//! a fraction, `%b` and `%B` the English names of months, short or long. Fields may have fewer digits than usual.

use super::calendar;
use super::temporal::Instant;

/// The English names of the months; three letters are enough to tell them apart.
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

/// Reads `text` as `pattern` says, or `None` where they differ.
pub(crate) fn instant(pattern: &str, text: &[u8]) -> Option<Instant> {
    let mut fields = Fields::default();
    let mut rest = text;
    let mut pattern = pattern.bytes();
    while let Some(byte) = pattern.next() {
        rest = match byte {
            b'%' => fields.take(pattern.next()?, rest)?,
            literal => rest.strip_prefix(&[literal])?,
        };
    }
    if rest.is_empty() { fields.instant() } else { None }
}

/// What the letters of a pattern have filled so far.
#[derive(Default)]
struct Fields {
    year: Option<i64>,
    month: Option<u32>,
    day: Option<u32>,
    hour: u32,
    minute: u32,
    second: u32,
    nanoseconds: u32,
    afternoon: Option<bool>,
    offset: Option<i64>,
}

impl Fields {
    /// Fills the field of `letter` from the front of `text` and returns what follows.
    fn take<'a>(&mut self, letter: u8, text: &'a [u8]) -> Option<&'a [u8]> {
        let (value, rest) = match letter {
            b'Y' => digits(text, 4)?,
            b'y' | b'm' | b'd' | b'H' | b'I' | b'M' | b'S' => digits(text, 2)?,
            b'f' => digits(text, 9)?,
            _ => (0, text),
        };
        match letter {
            b'Y' => self.year = Some(i64::from(value)),
            // POSIX: 69 to 99 are of the last century.
            b'y' => self.year = Some(i64::from(value) + if value < 69 { 2000 } else { 1900 }),
            b'm' => self.month = Some(value),
            b'd' => self.day = Some(value),
            b'H' | b'I' => self.hour = value,
            b'M' => self.minute = value,
            b'S' => self.second = value,
            b'f' => self.nanoseconds = value * 10u32.pow(9 - (text.len() - rest.len()) as u32),
            b'p' => {
                let (half, after) = text.split_at_checked(2)?;
                self.afternoon = Some(match half.to_ascii_lowercase().as_slice() {
                    b"am" => false,
                    b"pm" => true,
                    _ => return None,
                });
                return Some(after);
            }
            b'b' | b'B' => {
                let letters = text.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
                let name = text[..letters].to_ascii_lowercase();
                let is_named = |month: &str| name == month.as_bytes() || name == month.as_bytes()[..3];
                self.month = Some(MONTHS.iter().position(|month| is_named(month))? as u32 + 1);
                return Some(&text[letters..]);
            }
            b'z' => return self.take_zone(text),
            b'%' => return text.strip_prefix(b"%"),
            _ => return None,
        }
        Some(rest)
    }

    fn take_zone<'a>(&mut self, text: &'a [u8]) -> Option<&'a [u8]> {
        if let Some(rest) = text.strip_prefix(b"Z") {
            self.offset = Some(0);
            return Some(rest);
        }
        let (sign, text) = match text {
            [b'+', rest @ ..] => (1, rest),
            [b'-', rest @ ..] => (-1, rest),
            _ => return None,
        };
        let (hours, rest) = digits(text, 2)?;
        let (minutes, rest) = digits(rest.strip_prefix(b":").unwrap_or(rest), 2).unwrap_or((0, rest));
        self.offset = Some(sign * i64::from(hours * 3600 + minutes * 60));
        Some(rest)
    }

    fn instant(&self) -> Option<Instant> {
        let days = calendar::days_of(self.year?, self.month.unwrap_or(1), self.day.unwrap_or(1))?;
        let hour = match self.afternoon {
            Some(afternoon) if (1..=12).contains(&self.hour) => self.hour % 12 + if afternoon { 12 } else { 0 },
            Some(_) => return None,
            None => self.hour,
        };
        if hour >= 24 || self.minute >= 60 || self.second >= 60 {
            return None;
        }
        let seconds = days * 86_400 + i64::from(hour * 3600 + self.minute * 60 + self.second);
        let offset = self.offset.unwrap_or(0);
        Some(Instant { seconds: seconds - offset, nanoseconds: self.nanoseconds, has_zone: self.offset.is_some() })
    }
}

/// A number of one to `most` digits, and what follows.
fn digits(text: &[u8], most: usize) -> Option<(u32, &[u8])> {
    let count = text.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
    let value = text[..count].iter().fold(0u32, |value, byte| value * 10 + u32::from(byte - b'0'));
    (count > 0).then_some((value, &text[count..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_read_what_they_describe() {
        let at = |pattern: &str, text: &str| instant(pattern, text.as_bytes()).map(|at| (at.seconds, at.nanoseconds));
        assert_eq!(at("%d/%m/%Y", "2/1/1970"), Some((86_400, 0)));
        assert_eq!(at("%d.%m.%y", "01.01.70"), Some((0, 0)));
        assert_eq!(at("%d %b %Y %I:%M %p", "01 Jan 1970 12:30 PM"), Some((45_000, 0)));
        assert_eq!(at("%d/%b/%Y:%H:%M:%S %z", "01/January/1970:01:00:00 +0100"), Some((0, 0)));
        assert_eq!(at("%Y-%m-%d %H:%M:%S.%f", "1970-01-01 00:00:00.25"), Some((0, 250_000_000)));
        assert_eq!(at("%d/%m/%Y", "31/02/1970"), None);
        assert_eq!(at("%d/%m/%Y", "1/1/1970 "), None);
        assert_eq!(at("%Q", "1"), None);
    }
}
