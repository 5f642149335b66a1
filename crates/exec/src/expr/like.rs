//! LIKE and ILIKE. Most patterns are a fixed text somewhere; the general ones are matched greedily, stretch by
//! stretch between the `%`, which needs no backtracking: the leftmost place for a stretch leaves the most room for
//! the next.
//!
//! Values are matched as the bytes they are: UTF-8 is found only where its characters begin, and characters are only
//! counted for `_` (`like_stretch.rs`). ILIKE compares lower-cased forms, as [`str::to_lowercase`] has them; those of
//! the values go into one buffer, except for ASCII where its case can be overlooked at once.

use super::compare::fill;
use super::like_stretch::{Stretch, Symbol};
use super::logic::known_only;
use super::slot::{Input, Slot};
use memchr::memmem::Finder;
use sinter_codec::{Pattern, PatternPart, Values, at_memory};

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(crate) struct LikePattern {
    shape: Shape,
    /// The same as the codec has it, where case counts.
    parts: Vec<PatternPart>,
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
    /// With `_`: what stands between the `%`, in order. The first and last may be empty.
    General(Vec<Stretch>),
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
        let parts = if case_insensitive { Vec::new() } else { parts(&stretches) };
        LikePattern { shape: shape(stretches), parts, case_insensitive }
    }

    /// What the codec looks for in encoded values, where case counts; `None` where it is too much for that.
    pub(crate) fn on_encoded(&self) -> Option<Pattern> {
        if self.case_insensitive { None } else { Pattern::new(self.parts.iter().copied()) }
    }

    /// The shape, where case counts.
    pub(crate) fn shape(&self) -> Option<&Shape> {
        (!self.case_insensitive).then_some(&self.shape)
    }

    /// True when the text matches. Bytes that are no UTF-8 match no `_`, and of ILIKE only `%`. `buffer` is for the
    /// lower-cased text.
    fn matches(&self, text: &[u8], buffer: &mut String) -> bool {
        if !self.case_insensitive {
            return self.shape.matches(text);
        }
        if text.is_ascii() {
            // The pattern is in lower case already.
            match &self.shape {
                Shape::Exact(exact) => return text.eq_ignore_ascii_case(exact),
                Shape::Prefix(prefix) => {
                    return text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix));
                }
                Shape::Suffix(suffix) => {
                    let start = text.len().checked_sub(suffix.len());
                    return start.is_some_and(|start| text[start..].eq_ignore_ascii_case(suffix));
                }
                _ => {}
            }
        }
        let Ok(text) = std::str::from_utf8(text) else { return matches!(self.shape, Shape::Anything) };
        lower_case(text, buffer);
        self.shape.matches(buffer.as_bytes())
    }
}

/// [`str::to_lowercase`] into a buffer.
fn lower_case(text: &str, buffer: &mut String) {
    buffer.clear();
    let mut rest = text;
    while !rest.is_empty() {
        let (ascii, others) = rest.split_at(rest.bytes().position(|byte| !byte.is_ascii()).unwrap_or(rest.len()));
        let start = buffer.len();
        buffer.push_str(ascii);
        buffer[start..].make_ascii_lowercase();
        let (others, after) = others.split_at(others.bytes().position(|byte| byte.is_ascii()).unwrap_or(others.len()));
        for char in others.chars() {
            if char == 'Σ' {
                // The one letter whose lower case depends on its neighbours, by rules that only the library has.
                buffer.clear();
                buffer.push_str(&text.to_lowercase());
                return;
            }
            char.to_lowercase().for_each(|lower| buffer.push(lower));
        }
        rest = after;
    }
}

fn parts(stretches: &[Vec<Symbol>]) -> Vec<PatternPart> {
    let mut parts = Vec::new();
    for (index, stretch) in stretches.iter().enumerate() {
        if index > 0 {
            parts.push(PatternPart::AnyBytes);
        }
        for symbol in stretch {
            match symbol {
                Symbol::AnyOne => parts.push(PatternPart::AnyChar),
                Symbol::Char(char) => {
                    parts.extend(char.encode_utf8(&mut [0; 4]).bytes().map(PatternPart::Byte));
                }
            }
        }
    }
    parts
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
        return Shape::General(stretches.iter().map(|stretch| Stretch::new(stretch)).collect());
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
                if text.len() < first.len() + last.len()
                    || !text.starts_with(at_memory(first))
                    || !text.ends_with(at_memory(last))
                {
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
            Shape::General(stretches) => matches_general(stretches, text) && is_text(text),
        }
    }
}

/// The first stretch at the start, the last at the end, the others where they first fit.
fn matches_general(stretches: &[Stretch], text: &[u8]) -> bool {
    let [first, others @ ..] = stretches else { return text.is_empty() };
    let Some(mut at) = first.end(text, 0) else { return false };
    let [middle @ .., last] = others else { return at == text.len() };
    for stretch in middle {
        match stretch.find(text, at) {
            Some(end) => at = end,
            None => return false,
        }
    }
    last.start_at_end(text, at).is_some_and(|start| last.end(text, start) == Some(text.len()))
}

fn is_text(text: &[u8]) -> bool {
    std::str::from_utf8(text).is_ok()
}

/// True where the text matches.
pub(super) fn like(input: Input<'_>, pattern: &LikePattern, negated: bool, rows: usize, out: &mut Slot) {
    out.set_strict(&[input], rows);
    out.truth.reset(rows, false);
    let mut buffer = String::new();
    match input.values {
        Values::Bytes(_) if out.all_null() => {}
        Values::Bytes(view) if input.constant => out.truth.reset(rows, pattern.matches(view.get(0), &mut buffer)),
        Values::Bytes(view) => fill(&mut out.truth, |row| pattern.matches(view.get(row), &mut buffer)),
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
    use proptest::prelude::*;

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

    fn matches(pattern: &str, case_insensitive: bool, text: &[u8]) -> bool {
        LikePattern::new(pattern, case_insensitive).matches(text, &mut "left behind".into())
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
                let expected = slow(&symbols, &chars);
                let found = compiled.matches(text.as_bytes(), &mut String::new());
                assert_eq!(found, expected, "'{text}' LIKE '{pattern}'");
                let on_encoded = compiled.on_encoded().expect("it is short");
                assert_eq!(
                    on_encoded.matches(text.as_bytes()),
                    expected,
                    "'{text}' LIKE '{pattern}' as the codec has it"
                );
            }
        }
    }

    /// Letters of one to four bytes, few enough that they meet; some change their length with their case (`ẞ`, `İ`, and
    /// the Kelvin sign becomes ASCII), and one minds its neighbours.
    fn letters(most: usize) -> impl Strategy<Value = String> {
        let letter =
            prop::sample::select(&['a', 'A', 'k', '\u{212a}', 'ü', 'Ü', 'ß', 'ẞ', 'İ', 'σ', 'ς', 'Σ', '漢', '😀'][..]);
        let letter = prop_oneof![2 => Just('a'), 2 => Just('b'), 1 => Just('A'), 3 => letter];
        prop::collection::vec(letter, 0..=most).prop_map(String::from_iter)
    }

    /// Patterns that a text may well match: the text itself with wildcards and escapes put in, or something else.
    fn pattern_for(text: &str) -> impl Strategy<Value = String> + use<> {
        let text: Vec<char> = text.chars().collect();
        let length = text.len();
        let from_text = prop::collection::vec(0..8u8, length).prop_map(move |edits| {
            let edited = text.iter().zip(edits).map(|(&char, edit)| match edit {
                0 | 1 => "_".to_owned(),
                2 => format!("%{char}"),
                3 => "%".to_owned(),
                4 => format!("\\{char}"),
                5 => format!("_%{char}%"),
                6 => char.to_uppercase().collect(),
                _ => char.to_string(),
            });
            edited.collect::<String>()
        });
        let symbol = prop_oneof![3 => letters(1), 1 => Just("%".into()), 1 => Just("_".into()), 1 => Just("\\".into())];
        let other = prop::collection::vec(symbol, 0..6).prop_map(|symbols: Vec<String>| symbols.concat());
        prop_oneof![3 => from_text, 1 => other]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn agrees_with_the_definition_on_random_patterns(
            (text, pattern) in letters(8).prop_flat_map(|text| { let pattern = pattern_for(&text); (Just(text), pattern) })
        ) {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            let expected = slow(&chars(&pattern), &chars(&text));
            prop_assert_eq!(matches(&pattern, false, text.as_bytes()), expected);
            if let Some(on_encoded) = LikePattern::new(&pattern, false).on_encoded() {
                prop_assert_eq!(on_encoded.matches(text.as_bytes()), expected);
            }
            let expected = slow(&chars(&pattern.to_lowercase()), &chars(&text.to_lowercase()));
            prop_assert_eq!(matches(&pattern, true, text.as_bytes()), expected);
        }

        #[test]
        fn what_is_no_text_has_no_characters(bytes in prop::collection::vec(any::<u8>(), 0..12), pattern in pattern_for("aüb")) {
            let is_text = is_text(&bytes);
            prop_assume!(!is_text);
            let shape = LikePattern::new(&pattern, false).shape;
            let by_characters = matches!(shape, Shape::General(_));
            prop_assert!(!(by_characters && matches(&pattern, false, &bytes)));
            prop_assert_eq!(matches(&pattern, true, &bytes), matches!(shape, Shape::Anything));
        }

        #[test]
        fn lower_case_is_the_librarys(text in any::<String>(), letters in letters(8)) {
            for text in [text, letters] {
                let mut buffer = "left behind".to_owned();
                lower_case(&text, &mut buffer);
                prop_assert_eq!(buffer, text.to_lowercase());
            }
        }
    }

    #[test]
    fn escapes_and_case() {
        assert!(matches(r"100\%", false, b"100%"));
        assert!(!matches(r"100\%", false, b"1000"));
        assert!(matches(r"_\_\", false, r"x_\".as_bytes()));
        assert!(matches("%STRASSE", true, b"Hauptstrasse"));
        assert!(matches("ÜBER_", true, "überx".as_bytes()));
        assert!(matches("k%", true, "\u{212a}elvin".as_bytes()));
        assert!(matches("", true, b"") && !matches("", true, b"a"));
    }

    #[test]
    fn values_are_lower_cased_in_one_buffer() {
        let pattern = LikePattern::new("%NÄCHSTE%_", true);
        let mut buffer = String::with_capacity(64);
        let place = buffer.as_ptr();
        for text in ["Die nächste Frage", "DIE NÄCHSTE FRAGE", "NAECHSTE"] {
            assert_eq!(pattern.matches(text.as_bytes(), &mut buffer), text.contains(' '));
        }
        assert_eq!((buffer.as_ptr(), buffer.capacity()), (place, 64));
    }

    #[test]
    fn many_stars_do_not_explode() {
        assert!(!matches(&"%a_".repeat(40), false, "a".repeat(50).as_bytes()));
        assert!(!matches(&("%a_".repeat(40) + "b"), true, "aA".repeat(5000).as_bytes()));
    }
}
