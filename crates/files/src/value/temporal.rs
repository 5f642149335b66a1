//! Dates, times and timestamps from text in the ISO 8601 forms that files have.
//!
//! `2024-03-01`, `2024/3/1`; `04:05:06.789`; a date, then ` ` or `T`, then `04:05` with optional seconds and up to nine
//! fractional digits, then optionally a zone: `Z`, ` UTC`, `+01`, `+01:30`, `-0800`.

use super::calendar;

/// A point in time as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Instant {
    /// Seconds since 1970-01-01, in UTC where a zone was written, else in local time.
    pub(crate) seconds: i64,
    /// Nanoseconds within the second.
    pub(crate) nanoseconds: u32,
    /// Whether a zone was written.
    pub(crate) has_zone: bool,
}

/// Reads a text from the left.
struct Cursor<'a> {
    rest: &'a [u8],
}

impl Cursor<'_> {
    /// Takes `byte` if it comes next.
    fn take(&mut self, byte: u8) -> bool {
        match self.rest {
            [first, rest @ ..] if *first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// Takes a number of `least` to `most` digits.
    fn number(&mut self, least: usize, most: usize) -> Option<u32> {
        let mut value = 0;
        let mut count = 0;
        while count < most {
            let Some(&byte) = self.rest.get(count) else { break };
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                break;
            }
            value = value * 10 + u32::from(digit);
            count += 1;
        }
        self.rest = &self.rest[count..];
        (count >= least).then_some(value)
    }

    /// Days since 1970-01-01.
    fn date(&mut self) -> Option<i64> {
        let negative = self.take(b'-');
        let year = i64::from(self.number(4, 6)?);
        let separator = if self.take(b'-') { b'-' } else { b'/' };
        if separator == b'/' && !self.take(b'/') {
            return None;
        }
        let month = self.number(1, 2)?;
        if !self.take(separator) {
            return None;
        }
        let day = self.number(1, 2)?;
        calendar::days_of(if negative { -year } else { year }, month, day)
    }

    /// Seconds and nanoseconds since midnight; whether seconds must be written is the caller's choice.
    fn time(&mut self, needs_seconds: bool) -> Option<(u32, u32)> {
        let hour = self.number(2, 2)?;
        let minute = if self.take(b':') { self.number(2, 2)? } else { return None };
        let second = if self.take(b':') {
            self.number(2, 2)?
        } else if needs_seconds {
            return None;
        } else {
            0
        };
        let nanoseconds = if self.take(b'.') { self.fraction()? } else { 0 };
        (hour < 24 && minute < 60 && second < 60).then_some((hour * 3600 + minute * 60 + second, nanoseconds))
    }

    /// One to nine digits after the point, in nanoseconds.
    fn fraction(&mut self) -> Option<u32> {
        let before = self.rest.len();
        let value = self.number(1, 9)?;
        let digits = (before - self.rest.len()) as u32;
        Some(value * 10u32.pow(9 - digits))
    }

    /// The zone's distance from UTC in seconds, or `None` where what follows is no zone.
    fn zone(&mut self) -> Option<i64> {
        if let Some(rest) = self.rest.strip_prefix(b"Z").or_else(|| self.rest.strip_prefix(b" UTC")) {
            self.rest = rest;
            return Some(0);
        }
        let sign = if self.take(b'+') {
            1
        } else if self.take(b'-') {
            -1
        } else {
            return None;
        };
        let hours = self.number(2, 2)?;
        let minutes = match (self.take(b':'), self.rest.is_empty()) {
            (true, _) | (false, false) => self.number(2, 2)?,
            (false, true) => 0,
        };
        (hours < 24 && minutes < 60).then_some(sign * i64::from(hours * 3600 + minutes * 60))
    }
}

/// Days since 1970-01-01.
pub(crate) fn date(text: &[u8]) -> Option<i32> {
    let mut cursor = Cursor { rest: text };
    let days = cursor.date()?;
    if cursor.rest.is_empty() { i32::try_from(days).ok() } else { None }
}

/// Nanoseconds since midnight.
pub(crate) fn time(text: &[u8]) -> Option<i64> {
    let mut cursor = Cursor { rest: text };
    let (seconds, nanoseconds) = cursor.time(true)?;
    cursor.rest.is_empty().then_some(i64::from(seconds) * 1_000_000_000 + i64::from(nanoseconds))
}

/// A timestamp; a date alone is its midnight.
pub(crate) fn instant(text: &[u8]) -> Option<Instant> {
    let mut cursor = Cursor { rest: text };
    let days = cursor.date()?;
    if cursor.rest.is_empty() {
        return Some(Instant { seconds: days * 86_400, nanoseconds: 0, has_zone: false });
    }
    if !cursor.take(b' ') && !cursor.take(b'T') {
        return None;
    }
    let (seconds, nanoseconds) = cursor.time(false)?;
    let seconds = days * 86_400 + i64::from(seconds);
    if cursor.rest.is_empty() {
        return Some(Instant { seconds, nanoseconds, has_zone: false });
    }
    let offset = cursor.zone()?;
    cursor.rest.is_empty().then_some(Instant { seconds: seconds - offset, nanoseconds, has_zone: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_times() {
        assert_eq!(date(b"1970-01-02"), Some(1));
        assert_eq!(date(b"2016/01/01"), Some(16_801));
        assert_eq!(date(b"2016-1-1"), Some(16_801));
        assert_eq!(date(b"-0001-01-01"), date(b"0000-01-01").map(|days| days - 365));
        assert_eq!(time(b"02:53:04"), Some(10_384_000_000_000));
        assert_eq!(time(b"00:00:00.000000001"), Some(1));
        for wrong in ["", "2016-01", "2016-01/01", "2016-02-30", "16-01-01", "2016-01-01x", "2016-01-01-"] {
            assert_eq!(date(wrong.as_bytes()), None, "{wrong}");
        }
        for wrong in ["24:00:00", "1:00:00", "12:00", "12:60:00", "12:00:00.", "12:00:00.1234567890"] {
            assert_eq!(time(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn instants_with_and_without_zone() {
        let at = |text: &str| instant(text.as_bytes()).map(|at| (at.seconds, at.nanoseconds, at.has_zone));
        assert_eq!(at("1970-01-01 00:00:01.5"), Some((1, 500_000_000, false)));
        assert_eq!(at("1970-01-01T00:01"), Some((60, 0, false)));
        assert_eq!(at("1970-01-02"), Some((86_400, 0, false)));
        assert_eq!(at("1970-01-01T00:00:00Z"), Some((0, 0, true)));
        assert_eq!(at("1970-01-01 01:00:00+01"), Some((0, 0, true)));
        assert_eq!(at("1970-01-01 01:30:00+01:30"), Some((0, 0, true)));
        assert_eq!(at("1969-12-31 16:00:00-0800"), Some((0, 0, true)));
        assert_eq!(at("1970-01-01 00:00:00 UTC"), Some((0, 0, true)));
        for wrong in ["1970-01-01 ", "1970-01-01 00", "1970-01-01T00:00:00X", "1970-01-01 00:00:00+1", "x"] {
            assert_eq!(at(wrong), None, "{wrong}");
        }
    }
}
