//! Cuts SQL text into spans: words, numbers, strings, quoted names, comments, symbols.
//!
//! The shell needs three things from a text before the database sees it: where a statement ends, what to colour, and
//! whether the cursor stands inside a string. All three come from here. The lexer remembers at the end of a piece of
//! text what it is inside of, so a script can be fed line by line, however long a statement is.

use std::ops::Range;

/// What a span of text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A keyword or a plain name.
    Word,
    /// `42`, `1e-3`, `0.5`.
    Number,
    /// `'text'`, `E'text'`, `$tag$text$tag$`, with their quotes.
    String,
    /// `"name"` or `` `name` ``, with its quotes.
    QuotedName,
    /// `-- to the end of the line`, `/* nested /* as well */ */`.
    Comment,
    /// Blanks and line ends.
    Space,
    /// One character of anything else.
    Symbol(char),
}

/// What the text so far has opened and not closed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Inside {
    /// Nothing: the next character begins a span.
    #[default]
    Nothing,
    /// A string in single quotes; with `escapes`, a backslash protects the next character.
    String {
        /// It began with `E'`.
        escapes: bool,
    },
    /// A name in these quotes.
    QuotedName(char),
    /// Comments within comments, and how many.
    Comment(usize),
    /// A string that ends with this tag, such as `$$` or `$body$`.
    Dollar(String),
}

/// A lexer that can be handed text in pieces, each of whole lines (or the last).
#[derive(Clone, Debug, Default)]
pub(crate) struct Lexer {
    inside: Inside,
}

impl Lexer {
    /// A lexer that goes on where another stopped.
    pub(crate) fn resume(inside: Inside) -> Lexer {
        Lexer { inside }
    }

    /// What is open at the end of the text so far.
    pub(crate) fn inside(&self) -> &Inside {
        &self.inside
    }

    /// The spans of `text`, in order and without gaps.
    pub(crate) fn spans<'a>(&'a mut self, text: &'a str) -> impl Iterator<Item = (Kind, Range<usize>)> + 'a {
        let mut position = 0;
        std::iter::from_fn(move || {
            let start = position;
            if start == text.len() {
                return None;
            }
            let (kind, length) = self.span(&text[start..]);
            position = start + length;
            Some((kind, start..position))
        })
    }

    /// Kind and length in bytes of the first span of `text`, which is not empty.
    fn span(&mut self, text: &str) -> (Kind, usize) {
        if self.inside == Inside::Nothing { self.open(text) } else { (self.open_kind(), self.close(text, 0)) }
    }

    fn open_kind(&self) -> Kind {
        match self.inside {
            Inside::Comment(_) => Kind::Comment,
            Inside::QuotedName(_) => Kind::QuotedName,
            _ => Kind::String,
        }
    }

    /// The span that begins here, with nothing open.
    fn open(&mut self, text: &str) -> (Kind, usize) {
        let first = text.chars().next().unwrap_or('\0');
        let (inside, opening_bytes) = match first {
            '\'' => (Inside::String { escapes: false }, 1),
            'E' | 'e' if text[1..].starts_with('\'') => (Inside::String { escapes: true }, 2),
            '"' | '`' => (Inside::QuotedName(first), 1),
            '$' if dollar_tag(text).is_some() => {
                let tag = dollar_tag(text).unwrap_or_default();
                (Inside::Dollar(tag.to_owned()), tag.len())
            }
            '/' if text.starts_with("/*") => (Inside::Comment(1), 2),
            '-' if text.starts_with("--") => return (Kind::Comment, text.find('\n').unwrap_or(text.len())),
            '0'..='9' => return (Kind::Number, number_bytes(text)),
            '.' if text[1..].starts_with(|c: char| c.is_ascii_digit()) => return (Kind::Number, number_bytes(text)),
            c if c.is_whitespace() => return (Kind::Space, prefix_bytes(text, char::is_whitespace)),
            c if is_word(c) => return (Kind::Word, prefix_bytes(text, |c| is_word(c) || c == '$')),
            c => return (Kind::Symbol(c), c.len_utf8()),
        };
        self.inside = inside;
        (self.open_kind(), self.close(text, opening_bytes))
    }

    /// Where in `text` that which is open ends; the end of `text` when it does not. Starts at byte `from`.
    fn close(&mut self, text: &str, from: usize) -> usize {
        let rest = &text[from..];
        let end = match &mut self.inside {
            Inside::Nothing => Some(0),
            Inside::String { escapes } => closing_quote(rest, '\'', *escapes),
            Inside::QuotedName(quote) => closing_quote(rest, *quote, false),
            Inside::Comment(depth) => closing_comment(rest, depth),
            Inside::Dollar(tag) => rest.find(tag.as_str()).map(|start| start + tag.len()),
        };
        match end {
            Some(end) => {
                self.inside = Inside::Nothing;
                from + end
            }
            None => text.len(),
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn prefix_bytes(text: &str, belongs: impl Fn(char) -> bool) -> usize {
    text.find(|c| !belongs(c)).unwrap_or(text.len())
}

/// Digits, point, exponent with its sign, and letters that follow (as in `0xff`).
fn number_bytes(text: &str) -> usize {
    let mut before = ' ';
    text.find(|c: char| {
        let belongs = is_word(c) || c == '.' || (matches!(c, '+' | '-') && matches!(before, 'e' | 'E'));
        before = c;
        !belongs
    })
    .unwrap_or(text.len())
}

/// `$$` or `$name$` at the start of `text`.
fn dollar_tag(text: &str) -> Option<&str> {
    let name_bytes = prefix_bytes(&text[1..], is_word);
    let name = &text[1..1 + name_bytes];
    let is_name = !name.starts_with(|c: char| c.is_ascii_digit());
    (is_name && text[1 + name_bytes..].starts_with('$')).then(|| &text[..name_bytes + 2])
}

/// Just behind the quote that closes; doubled quotes stand for themselves.
fn closing_quote(text: &str, quote: char, escapes: bool) -> Option<usize> {
    let mut chars = text.char_indices().peekable();
    while let Some((position, c)) = chars.next() {
        if escapes && c == '\\' {
            chars.next();
        } else if c == quote && chars.next_if(|(_, next)| *next == quote).is_none() {
            return Some(position + 1);
        }
    }
    None
}

/// Just behind the `*/` that closes the outermost comment; counts `depth` on the way.
fn closing_comment(text: &str, depth: &mut usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut position = 0;
    while position + 1 < bytes.len() {
        match &bytes[position..position + 2] {
            b"/*" => *depth += 1,
            b"*/" => *depth -= 1,
            _ => {
                position += 1;
                continue;
            }
        }
        position += 2;
        if *depth == 0 {
            return Some(position);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spans(text: &str) -> Vec<(Kind, &str)> {
        Lexer::default()
            .spans(text)
            .filter(|(kind, _)| *kind != Kind::Space)
            .map(|(kind, range)| (kind, &text[range]))
            .collect()
    }

    #[test]
    fn a_statement_falls_into_words_numbers_strings_and_symbols() {
        assert_eq!(
            spans("SELECT \"a b\", 'it''s', 1.5e-3 -- done"),
            [
                (Kind::Word, "SELECT"),
                (Kind::QuotedName, "\"a b\""),
                (Kind::Symbol(','), ","),
                (Kind::String, "'it''s'"),
                (Kind::Symbol(','), ","),
                (Kind::Number, "1.5e-3"),
                (Kind::Comment, "-- done"),
            ]
        );
    }

    #[test]
    fn backslashes_protect_quotes_only_in_escape_strings() {
        assert_eq!(spans(r"E'a\'b'"), [(Kind::String, r"E'a\'b'")]);
        assert_eq!(spans(r"'a\' x"), [(Kind::String, r"'a\'"), (Kind::Word, "x")]);
    }

    #[test]
    fn dollar_quotes_end_with_their_own_tag() {
        assert_eq!(
            spans("$a$ $$ ; $a$ $1"),
            [(Kind::String, "$a$ $$ ; $a$"), (Kind::Symbol('$'), "$"), (Kind::Number, "1")]
        );
        assert_eq!(spans("a$b$"), [(Kind::Word, "a$b$")]);
    }

    #[test]
    fn what_is_open_is_remembered_from_line_to_line() {
        let mut lexer = Lexer::default();
        for (line, inside) in [
            ("SELECT 'a\n", Inside::String { escapes: false }),
            ("b' /* x /* y\n", Inside::Comment(2)),
            ("*/\n", Inside::Comment(1)),
            ("*/ \"n\n", Inside::QuotedName('"')),
            ("\" $q$ ;\n", Inside::Dollar("$q$".into())),
            ("$q$\n", Inside::Nothing),
        ] {
            assert_eq!(lexer.spans(line).map(|(_, range)| range.len()).sum::<usize>(), line.len());
            assert_eq!(*lexer.inside(), inside, "after {line:?}");
        }
    }

    #[test]
    fn any_text_is_covered_without_gaps() {
        for text in ["é$é$é", "'", "\"", "/*/", "--", "E'\\", "e", "$", ".5.", "é'é''é'é", "1e", "€;"] {
            let mut end = 0;
            for (_, range) in Lexer::default().spans(text) {
                assert_eq!(range.start, end);
                assert!(!range.is_empty());
                end = range.end;
            }
            assert_eq!(end, text.len(), "{text:?}");
        }
    }
}
