//! LIKE and ILIKE. Most patterns are a fixed text somewhere; the general ones are matched greedily, stretch by
//! stretch between the `%`, which needs no backtracking: the leftmost place for a stretch leaves the most room for
//! the next.

use super::compare::fill;
use super::logic::known_only;
use super::slot::{Input, Slot};
use memchr::memmem::Finder;
use sinter_codec::Values;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(crate) struct LikePattern {
    shape: Shape,
    case_insensitive: bool,
}

/// Where wildcards stand in a pattern.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// `%`
    Anything,
    /// No wildcard.
    Exact(Vec<u8>),
    /// `text%`
    Prefix(Vec<u8>),
    /// `%text`
    Suffix(Vec<u8>),
    /// `%text%`
    Contains(Box<Finder<'static>>),
    /// Texts in order, between `%`: `a%b%c`, without `_`. The first and last may be empty, the others are not.
    Stretches { first: Vec<u8>, middle: Vec<Finder<'static>>, last: Vec<u8> },
    /// With `_`, by characters.
    General(Vec<Vec<Symbol>>),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Symbol {
    Char(char),
    AnyOne,
}

impl LikePattern {
    /// Compiles `%`, `_` and `\` escapes; a lone `\` at the end stands for itself.
    pub(crate) fn new(pattern: &str, case_insensitive: bool) -> LikePattern {
        let pattern = if case_insensitive { pattern.to_lowercase() } else { pattern.to_owned() };
        let mut stretches = vec![Vec::new()];
        let mut symbols = pattern.chars();
        while let Some(symbol) = symbols.next() {
            let stretch = stretches.last_mut().expect("there is always one");
            match symbol {
                '%' => stretches.push(Vec::new()),
                '_' => stretch.push(Symbol::AnyOne),
                '\\' => stretch.push(Symbol::Char(symbols.next().unwrap_or('\\'))),
                other => stretch.push(Symbol::Char(other)),
            }
        }
        LikePattern { shape: shape(stretches), case_insensitive }
    }

    /// The shape, where case counts.
    pub(crate) fn shape(&self) -> Option<&Shape> {
        (!self.case_insensitive).then_some(&self.shape)
    }

    /// True when the text matches. Bytes that are no UTF-8 match nothing but `%`.
    pub(crate) fn matches(&self, text: &[u8]) -> bool {
        if !self.case_insensitive {
            return self.shape.matches(text);
        }
        match std::str::from_utf8(text) {
            Ok(text) if text.is_ascii() => self.shape.matches(text.to_ascii_lowercase().as_bytes()),
            Ok(text) => self.shape.matches(text.to_lowercase().as_bytes()),
            Err(_) => matches!(self.shape, Shape::Anything),
        }
    }
}

fn shape(mut stretches: Vec<Vec<Symbol>>) -> Shape {
    let count = stretches.len();
    // Empty stretches between two `%` say nothing.
    let mut index = 0;
    stretches.retain(|stretch| {
        index += 1;
        index == 1 || index == count || !stretch.is_empty()
    });
    if stretches.iter().flatten().any(|symbol| *symbol == Symbol::AnyOne) {
        return Shape::General(stretches);
    }
    let mut texts: Vec<Vec<u8>> = stretches.iter().map(|stretch| text(stretch)).collect();
    let last = texts.pop().unwrap_or_default();
    if texts.is_empty() {
        return Shape::Exact(last);
    }
    let first = texts.remove(0);
    let finder = |text: &Vec<u8>| Finder::new(text).into_owned();
    match (&first[..], &texts[..], &last[..]) {
        ([], [], []) => Shape::Anything,
        (_, [], []) => Shape::Prefix(first),
        ([], [], _) => Shape::Suffix(last),
        ([], [middle], []) => Shape::Contains(Box::new(finder(middle))),
        _ => Shape::Stretches { first, middle: texts.iter().map(finder).collect(), last },
    }
}

fn text(stretch: &[Symbol]) -> Vec<u8> {
    let chars = stretch.iter().filter_map(|symbol| if let Symbol::Char(char) = symbol { Some(*char) } else { None });
    chars.collect::<String>().into_bytes()
}

impl Shape {
    fn matches(&self, text: &[u8]) -> bool {
        match self {
            Shape::Anything => true,
            Shape::Exact(exact) => text == exact,
            Shape::Prefix(prefix) => text.starts_with(prefix),
            Shape::Suffix(suffix) => text.ends_with(suffix),
            Shape::Contains(finder) => finder.find(text).is_some(),
            Shape::Stretches { first, middle, last } => {
                if text.len() < first.len() + last.len() || !text.starts_with(first) || !text.ends_with(last) {
                    return false;
                }
                let mut rest = &text[first.len()..text.len() - last.len()];
                middle.iter().all(|finder| match finder.find(rest) {
                    Some(at) => {
                        rest = &rest[at + finder.needle().len()..];
                        true
                    }
                    None => false,
                })
            }
            Shape::General(stretches) => std::str::from_utf8(text).is_ok_and(|text| matches_general(stretches, text)),
        }
    }
}

/// The first stretch at the start, the last at the end, the others where they first fit.
fn matches_general(stretches: &[Vec<Symbol>], text: &str) -> bool {
    let fits = |stretch: &[Symbol], text: &[char]| {
        text.len() >= stretch.len()
            && stretch
                .iter()
                .zip(text)
                .all(|(symbol, char)| matches!(symbol, Symbol::AnyOne) || *symbol == Symbol::Char(*char))
    };
    let chars: Vec<char> = text.chars().collect();
    let [first, others @ ..] = stretches else { return chars.is_empty() };
    if !fits(first, &chars) {
        return false;
    }
    let mut rest = &chars[first.len()..];
    let [middle @ .., last] = others else { return rest.is_empty() };
    for stretch in middle {
        let Some(at) = (0..rest.len()).find(|&at| fits(stretch, &rest[at..])) else { return false };
        rest = &rest[at + stretch.len()..];
    }
    rest.len() >= last.len() && fits(last, &rest[rest.len() - last.len()..])
}

/// True where the text matches.
pub(super) fn like(input: Input<'_>, pattern: &LikePattern, negated: bool, rows: usize, out: &mut Slot) {
    out.set_strict(&[input], rows);
    out.truth.reset(rows, false);
    match input.values {
        Values::Bytes(_) if out.all_null() => {}
        Values::Bytes(view) if input.constant => out.truth.reset(rows, pattern.matches(view.get(0))),
        Values::Bytes(view) => fill(&mut out.truth, |row| pattern.matches(view.get(row))),
        _ => debug_assert!(false, "LIKE is for text"),
    }
    if negated {
        out.truth.invert();
    }
    known_only(out);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The textbook definition, by trying everything.
    fn slow(pattern: &[char], text: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['%', rest @ ..] => (0..=text.len()).any(|skip| slow(rest, &text[skip..])),
            ['\\', escaped, rest @ ..] => text.first() == Some(escaped) && slow(rest, &text[1..]),
            ['_', rest @ ..] => !text.is_empty() && slow(rest, &text[1..]),
            [char, rest @ ..] => text.first() == Some(char) && slow(rest, &text[1..]),
        }
    }

    #[test]
    fn agrees_with_the_definition_on_all_short_patterns() {
        let alphabet = ['a', 'b', 'ü', '%', '_'];
        let mut patterns = vec![String::new()];
        let mut texts = vec![String::new()];
        for length in 1..=4usize {
            for code in 0..alphabet.len().pow(length as u32) {
                let letters: String = (0..length)
                    .map(|place| alphabet[code / alphabet.len().pow(place as u32) % alphabet.len()])
                    .collect();
                if !letters.contains(['%', '_']) {
                    texts.push(letters.clone());
                }
                patterns.push(letters);
            }
        }
        for pattern in &patterns {
            let compiled = LikePattern::new(pattern, false);
            let symbols: Vec<char> = pattern.chars().collect();
            for text in &texts {
                let chars: Vec<char> = text.chars().collect();
                assert_eq!(compiled.matches(text.as_bytes()), slow(&symbols, &chars), "'{text}' LIKE '{pattern}'");
            }
        }
    }

    #[test]
    fn escapes_and_case() {
        assert!(LikePattern::new(r"100\%", false).matches(b"100%"));
        assert!(!LikePattern::new(r"100\%", false).matches(b"1000"));
        assert!(LikePattern::new("%STRASSE", true).matches("Hauptstrasse".as_bytes()));
        assert!(LikePattern::new("ÜBER_", true).matches("überx".as_bytes()));
    }

    #[test]
    fn many_stars_do_not_explode() {
        let pattern = LikePattern::new(&"%a_".repeat(40), false);
        assert!(!pattern.matches("a".repeat(50).as_bytes()));
    }
}
