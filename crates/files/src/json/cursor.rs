//! Walking through the text of one JSON value (RFC 8259).

use std::borrow::Cow;

/// How deep values may be nested; deeper ones would use up the stack.
pub(super) const DEPTH_LIMIT: usize = 128;

/// Where the text is not JSON, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Syntax {
    /// The index of the byte at fault.
    pub(super) at: usize,
    /// What is wrong with it.
    pub(super) problem: &'static str,
}

type Result<T> = std::result::Result<T, Syntax>;

/// What kind of value comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Object,
    Array,
    String,
    Number,
    Boolean,
    Null,
}

/// A place in a text that is UTF-8.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// The kind of the next value, which is not consumed.
    pub(super) fn kind(&mut self) -> Result<Kind> {
        self.skip_space();
        match self.bytes.get(self.at) {
            Some(b'{') => Ok(Kind::Object),
            Some(b'[') => Ok(Kind::Array),
            Some(b'"') => Ok(Kind::String),
            Some(b'-' | b'0'..=b'9') => Ok(Kind::Number),
            Some(b't' | b'f') => Ok(Kind::Boolean),
            Some(b'n') => Ok(Kind::Null),
            Some(_) => Err(self.wrong("a value is expected")),
            None => Err(self.wrong("the text ends too early")),
        }
    }

    /// Passes over the next value, checking every byte, and returns its text.
    pub(super) fn skip(&mut self, depth: usize) -> Result<&'a [u8]> {
        let kind = self.kind()?;
        let start = self.at;
        match kind {
            Kind::Object => {
                let mut is_first = true;
                while self.next_key(&mut is_first)?.is_some() {
                    self.skip_nested(depth)?;
                }
            }
            Kind::Array => {
                let mut is_first = true;
                while self.next_element(&mut is_first)? {
                    self.skip_nested(depth)?;
                }
            }
            Kind::String => drop(self.string()?),
            Kind::Number => drop(self.number()?),
            Kind::Boolean | Kind::Null => drop(self.word()?),
        }
        Ok(&self.bytes[start..self.at])
    }

    fn skip_nested(&mut self, depth: usize) -> Result<()> {
        if depth >= DEPTH_LIMIT {
            return Err(self.wrong("nested deeper than 128 levels"));
        }
        self.skip(depth + 1).map(drop)
    }

    /// Nothing but space may follow.
    pub(super) fn end(&mut self) -> Result<()> {
        self.skip_space();
        if self.at == self.bytes.len() { Ok(()) } else { Err(self.wrong("text after the end of the value")) }
    }

    /// Steps into an object, or to its next key; `None` at its end. `is_first` starts as true.
    pub(super) fn next_key(&mut self, is_first: &mut bool) -> Result<Option<Cow<'a, [u8]>>> {
        if !self.next_item(is_first, b'{', b'}')? {
            return Ok(None);
        }
        self.skip_space();
        if self.bytes.get(self.at) != Some(&b'"') {
            return Err(self.wrong("a key in quotes is expected"));
        }
        let key = self.string()?;
        self.skip_space();
        if !self.take(b':') {
            return Err(self.wrong("a colon is expected after the key"));
        }
        Ok(Some(key))
    }

    /// Steps into an array, or to its next element; `false` at its end. `is_first` starts as true.
    pub(super) fn next_element(&mut self, is_first: &mut bool) -> Result<bool> {
        self.next_item(is_first, b'[', b']')
    }

    fn next_item(&mut self, is_first: &mut bool, open: u8, close: u8) -> Result<bool> {
        self.skip_space();
        if *is_first {
            *is_first = false;
            // The caller has seen the bracket.
            debug_assert_eq!(self.bytes.get(self.at), Some(&open));
            self.at += 1;
            self.skip_space();
            return Ok(!self.take(close));
        }
        if self.take(b',') {
            return Ok(true);
        }
        match self.take(close) {
            true => Ok(false),
            false if self.at == self.bytes.len() => Err(self.wrong("the text ends too early")),
            false if close == b'}' => Err(self.wrong("a comma or the end of the object is expected")),
            false => Err(self.wrong("a comma or the end of the array is expected")),
        }
    }

    /// The content of a string, borrowed where it holds no escapes.
    pub(super) fn string(&mut self) -> Result<Cow<'a, [u8]>> {
        self.at += 1;
        let start = self.at;
        let end = self.plain_until(start)?;
        if self.bytes[end] == b'"' {
            self.at = end + 1;
            return Ok(Cow::Borrowed(&self.bytes[start..end]));
        }
        let mut text = self.bytes[start..end].to_vec();
        self.at = end;
        loop {
            match self.bytes[self.at] {
                b'"' => {
                    self.at += 1;
                    return Ok(Cow::Owned(text));
                }
                _ => self.escape(&mut text)?,
            }
            let start = self.at;
            self.at = self.plain_until(start)?;
            text.extend_from_slice(&self.bytes[start..self.at]);
        }
    }

    /// The next quote or backslash from `start` on, which exists.
    fn plain_until(&mut self, start: usize) -> Result<usize> {
        let offset = self.bytes[start..].iter().position(|&byte| byte == b'"' || byte == b'\\' || byte < b' ');
        match offset.map(|offset| start + offset) {
            Some(at) if self.bytes[at] < b' ' => Err(Syntax { at, problem: "a control character in a string" }),
            Some(at) => Ok(at),
            None => Err(Syntax { at: start.saturating_sub(1), problem: "the string is not closed" }),
        }
    }

    /// Appends what the escape at the cursor stands for.
    fn escape(&mut self, text: &mut Vec<u8>) -> Result<()> {
        self.at += 1;
        let byte = match self.bytes.get(self.at) {
            Some(b'n') => b'\n',
            Some(b't') => b'\t',
            Some(b'r') => b'\r',
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(&byte @ (b'"' | b'\\' | b'/')) => byte,
            Some(b'u') => {
                self.at += 1;
                let character = self.unicode_escape()?;
                text.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                return Ok(());
            }
            _ => return Err(self.wrong("an unknown escape in a string")),
        };
        text.push(byte);
        self.at += 1;
        Ok(())
    }

    fn unicode_escape(&mut self) -> Result<char> {
        let first = self.hexadecimal()?;
        let code = match first {
            0xD800..=0xDBFF if self.bytes[self.at..].starts_with(b"\\u") => {
                self.at += 2;
                let second = self.hexadecimal()?;
                if !(0xDC00..=0xDFFF).contains(&second) {
                    return Err(self.wrong("half of a surrogate pair"));
                }
                0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)
            }
            _ => first,
        };
        char::from_u32(code).ok_or_else(|| self.wrong("half of a surrogate pair"))
    }

    fn hexadecimal(&mut self) -> Result<u32> {
        let digits = self.bytes.get(self.at..self.at + 4).unwrap_or_default();
        let code = digits.iter().try_fold(0, |code, digit| Some(code * 16 + (*digit as char).to_digit(16)?));
        match code.filter(|_| digits.len() == 4) {
            Some(code) => {
                self.at += 4;
                Ok(code)
            }
            None => Err(self.wrong("four hexadecimal digits are expected")),
        }
    }

    /// The text of a number.
    pub(super) fn number(&mut self) -> Result<&'a [u8]> {
        let start = self.at;
        self.take(b'-');
        let leads_with_zero = self.bytes.get(self.at) == Some(&b'0');
        let digits = self.digits()?;
        if leads_with_zero && digits > 1 {
            return Err(Syntax { at: start, problem: "a number with a leading zero" });
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        Ok(&self.bytes[start..self.at])
    }

    fn digits(&mut self) -> Result<usize> {
        let count = self.bytes[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        if count == 0 { Err(self.wrong("a digit is expected")) } else { Ok(count) }
    }

    /// `true`, `false` or `null`.
    pub(super) fn word(&mut self) -> Result<&'a [u8]> {
        for word in [b"true".as_slice(), b"false", b"null"] {
            if self.bytes[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(word);
            }
        }
        Err(self.wrong("a value is expected"))
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.bytes.get(self.at) == Some(&byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    fn wrong(&self, problem: &'static str) -> Syntax {
        Syntax { at: self.at, problem }
    }
}

/// Checks that `bytes` are one JSON value in UTF-8.
pub(super) fn check(bytes: &[u8]) -> Result<()> {
    if let Err(error) = std::str::from_utf8(bytes) {
        return Err(Syntax { at: error.valid_up_to(), problem: "not UTF-8" });
    }
    let mut cursor = Cursor::new(bytes);
    cursor.skip(0)?;
    cursor.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_told_from_what_is_not() {
        for good in [
            "{}",
            "[]",
            " {\"a\": [1, -2.5e+3, true, null, \"x\\u00e9\\ud83d\\ude00\\n\"]} ",
            "0",
            "-0.0",
            "\"\"",
            "[[],{\"\":{}}]",
        ] {
            assert_eq!(check(good.as_bytes()), Ok(()), "{good}");
            assert!(serde_json::from_str::<serde_json::Value>(good).is_ok());
        }
        for (wrong, at) in [
            ("", 0),
            ("{", 1),
            ("{\"a\" 1}", 5),
            ("{\"a\":1,}", 7),
            ("[1 2]", 3),
            ("01", 0),
            ("1.", 2),
            ("tru", 0),
            ("\"\\x\"", 2),
            ("\"\\ud800\"", 7),
            ("\"a", 0),
            ("{} {}", 3),
            ("nan", 0),
            ("{'a':1}", 1),
        ] {
            assert_eq!(check(wrong.as_bytes()).unwrap_err().at, at, "{wrong}");
            assert!(serde_json::from_str::<serde_json::Value>(wrong).is_err());
        }
        assert_eq!(check("[".repeat(1000).as_bytes()).unwrap_err().problem, "nested deeper than 128 levels");
        let mut cursor = Cursor::new(b"\"a\\u00e9\\ud83d\\ude00\\/\"");
        assert_eq!(cursor.string().unwrap().as_ref(), "aé😀/".as_bytes());
    }
}
