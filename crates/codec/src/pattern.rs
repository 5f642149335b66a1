//! LIKE patterns, as automata over bytes.
//!
//! A pattern is a row of places; which of them a text so far may have reached is a set, and the sets that can occur are the
//! states of an automaton (Rabin and Scott, IBM Journal, 1959). Past a place where anything may follow, earlier places
//! say nothing more, which keeps states as few as the letters of most patterns. A symbol table reads them by whole
//! symbols ([`crate::symbol_table`]). Plain texts are searched for the stretches between `%` ([`crate::stretches`]), and read
//! byte by byte only where there is a `_`.

use crate::stretches::Stretches;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// A piece of a LIKE pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PatternPart {
    /// This byte.
    Byte(u8),
    /// One character of UTF-8: a byte that begins one, and those that continue it. (`_`)
    AnyChar,
    /// Any bytes, or none. (`%`)
    AnyBytes,
}

/// A LIKE pattern, compiled. Two are equal where their parts are.
#[derive(Clone)]
pub struct Pattern {
    parts: Vec<PatternPart>,
    /// Of a pattern without `_`.
    stretches: Option<Stretches>,
    automaton: Arc<Automaton>,
}

impl Pattern {
    /// Compiles these parts; `None` where they make more states than we keep: some 60, of a pattern of so many bytes, and
    /// `_` behind `%` may take many for each.
    pub fn new(parts: impl IntoIterator<Item = PatternPart>) -> Option<Pattern> {
        let parts: Vec<PatternPart> = parts.into_iter().collect();
        let automaton = Arc::new(Automaton::new(&parts)?);
        let stretches = Stretches::of(&parts);
        Some(Pattern { parts, stretches, automaton })
    }

    /// `%text%`; `None` where the text is too long.
    pub(crate) fn containing(text: &[u8]) -> Option<Pattern> {
        let text = text.iter().map(|&byte| PatternPart::Byte(byte));
        Pattern::new([PatternPart::AnyBytes].into_iter().chain(text).chain([PatternPart::AnyBytes]))
    }

    /// Whether all of this text is as the pattern says.
    pub fn matches(&self, text: &[u8]) -> bool {
        if let Some(stretches) = &self.stretches {
            return stretches.fit(text);
        }
        let automaton = &*self.automaton;
        let mut state = START;
        for &byte in text {
            if automaton.is_decided(state) {
                break;
            }
            state = automaton.after(state, byte);
        }
        automaton.accepts(state)
    }

    pub(crate) fn automaton(&self) -> &Arc<Automaton> {
        &self.automaton
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.parts == other.parts
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({self})")
    }
}

/// As LIKE has it; bytes that are no UTF-8 as [`String::from_utf8_lossy`] shows them.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        for part in &self.parts {
            match part {
                PatternPart::Byte(byte @ (b'%' | b'_' | b'\\')) => text.extend([b'\\', *byte]),
                PatternPart::Byte(byte) => text.push(*byte),
                PatternPart::AnyChar => text.push(b'_'),
                PatternPart::AnyBytes => text.push(b'%'),
            }
        }
        f.write_str(&String::from_utf8_lossy(&text))
    }
}

/// Where a text stands before its first byte.
pub(crate) const START: u8 = 0;

/// Values of a byte.
const BYTES: usize = 256;

/// States that are not decided at most: with 12-bit codes, a table for each symbol takes 256 KB.
const STATES_MAX: usize = 64;

/// Places of a pattern at most, one bit each, the end included.
const PLACES_MAX: usize = 64;

/// States, and how bytes lead from one to the next. Those from [`Automaton::found`] on are decided: no byte leads away.
#[derive(Debug)]
pub(crate) struct Automaton {
    /// By state and byte, for states that are not decided.
    after: Vec<u8>,
    /// Bit by state: a text that ends here is as the pattern says.
    accepting: u64,
    /// The state in which whatever follows is right; in the next one, nothing is.
    found: u8,
}

/// What a place of a pattern lets pass before its own part.
#[derive(Clone, Copy, Default, PartialEq)]
enum Skips {
    #[default]
    Nothing,
    /// Bytes that continue the character before.
    Rest,
    Anything,
}

impl Automaton {
    fn new(parts: &[PatternPart]) -> Option<Automaton> {
        // One place per part that takes a byte, and the end.
        let mut wanted = Vec::new();
        let mut skips = vec![Skips::Nothing];
        for &part in parts {
            let last = skips.last_mut().expect("there is a place");
            match part {
                PatternPart::AnyBytes => *last = Skips::Anything,
                PatternPart::Byte(byte) => {
                    wanted.push(Some(byte));
                    skips.push(Skips::Nothing);
                }
                PatternPart::AnyChar => {
                    wanted.push(None);
                    skips.push(Skips::Rest);
                }
            }
        }
        if skips.len() > PLACES_MAX {
            return None;
        }
        let places = Places { wanted, skips };
        let class_of = places.classes();
        let (mut sets, mut numbers) = (vec![1u64], HashMap::from([(1u64, START)]));
        // By state and byte.
        let (mut leads, mut next) = (Vec::new(), 0);
        while let Some(&set) = sets.get(next) {
            let mut by_class = [None; BYTES];
            for class in class_of {
                let lead = match by_class[usize::from(class)] {
                    Some(lead) => lead,
                    None => places.lead(places.after(set, class), &mut sets, &mut numbers)?,
                };
                by_class[usize::from(class)] = Some(lead);
                leads.push(lead);
            }
            next += 1;
        }
        let found = sets.len() as u8;
        let state = |lead: &Lead| match lead {
            Lead::To(state) => *state,
            Lead::Found => found,
            Lead::Lost => found + 1,
        };
        let end = places.wanted.len();
        let accepting = sets.iter().enumerate().map(|(state, set)| (set >> end & 1) << state).sum();
        Some(Automaton { after: leads.iter().map(state).collect(), accepting, found })
    }

    /// How many states are not decided.
    pub(crate) fn state_count(&self) -> u8 {
        self.found
    }

    /// Whether no byte can lead from this state to another.
    #[inline]
    pub(crate) fn is_decided(&self, state: u8) -> bool {
        state >= self.found
    }

    /// The state behind a byte.
    #[inline]
    pub(crate) fn after(&self, state: u8, byte: u8) -> u8 {
        if self.is_decided(state) { state } else { self.after[usize::from(state) * BYTES + usize::from(byte)] }
    }

    /// Whether a text that ends in this state is as the pattern says.
    #[inline]
    pub(crate) fn accepts(&self, state: u8) -> bool {
        if self.is_decided(state) { state == self.found } else { self.accepting >> state & 1 == 1 }
    }
}

/// Where a byte leads.
#[derive(Clone, Copy)]
enum Lead {
    To(u8),
    Found,
    Lost,
}

/// The places of a pattern; sets of them have a bit for each.
struct Places {
    /// What each but the last takes; `None` is the beginning of any character.
    wanted: Vec<Option<u8>>,
    skips: Vec<Skips>,
}

impl Places {
    /// For each byte one that leads where it does: itself, if it stands in the pattern.
    fn classes(&self) -> [u8; BYTES] {
        let is_wanted = |byte: u8| self.wanted.contains(&Some(byte));
        let stranger = |is_rest| (0..=u8::MAX).find(|&byte| is_continuing(byte) == is_rest && !is_wanted(byte));
        std::array::from_fn(|byte| {
            let byte = byte as u8;
            if is_wanted(byte) { byte } else { stranger(is_continuing(byte)).unwrap_or(byte) }
        })
    }

    /// The state for these places, perhaps a new one; `None` where there are too many.
    fn lead(&self, reached: u64, sets: &mut Vec<u64>, numbers: &mut HashMap<u64, u8>) -> Option<Lead> {
        let end = self.wanted.len();
        if reached >> end & 1 == 1 && self.skips[end] == Skips::Anything {
            return Some(Lead::Found);
        }
        if reached == 0 {
            return Some(Lead::Lost);
        }
        if let Some(&state) = numbers.get(&reached) {
            return Some(Lead::To(state));
        }
        if sets.len() == STATES_MAX {
            return None;
        }
        let state = sets.len() as u8;
        sets.push(reached);
        numbers.insert(reached, state);
        Some(Lead::To(state))
    }

    /// The places that a text which had reached one of `set` may have reached with this byte.
    fn after(&self, set: u64, byte: u8) -> u64 {
        let is_rest = is_continuing(byte);
        let mut reached = 0;
        for place in (0..self.skips.len()).filter(|place| set >> place & 1 == 1) {
            if self.skips[place] == Skips::Anything || (self.skips[place] == Skips::Rest && is_rest) {
                reached |= 1 << place;
            }
            if self.wanted.get(place).is_some_and(|wanted| wanted.map_or(!is_rest, |wanted| wanted == byte)) {
                reached |= 1 << (place + 1);
            }
        }
        let free =
            (0..self.skips.len()).rfind(|&place| reached >> place & 1 == 1 && self.skips[place] == Skips::Anything);
        // Who has come so far may still skip what the others would have to.
        free.map_or(reached, |place| reached >> place << place)
    }
}

/// Whether a byte is one that continues a character of UTF-8.
fn is_continuing(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(pattern: &str) -> Vec<PatternPart> {
        let part = |byte| match byte {
            b'%' => PatternPart::AnyBytes,
            b'_' => PatternPart::AnyChar,
            byte => PatternPart::Byte(byte),
        };
        pattern.bytes().map(part).collect()
    }

    /// The definition, by trying everything.
    fn slow(pattern: &[char], text: &[char]) -> bool {
        match pattern {
            [] => text.is_empty(),
            ['%', rest @ ..] => (0..=text.len()).any(|skip| slow(rest, &text[skip..])),
            ['_', rest @ ..] => !text.is_empty() && slow(rest, &text[1..]),
            [char, rest @ ..] => text.first() == Some(char) && slow(rest, &text[1..]),
        }
    }

    #[test]
    fn all_short_patterns_match_as_defined() {
        let letters = ['a', 'b', 'ü', '%', '_'];
        let of_length = |length: u32| {
            (0..letters.len().pow(length)).map(move |code| {
                (0..length).map(|place| letters[code / letters.len().pow(place) % letters.len()]).collect::<String>()
            })
        };
        let texts: Vec<String> = (0..=5).flat_map(of_length).filter(|text| !text.contains(['%', '_'])).collect();
        for pattern in (0..=4).flat_map(of_length) {
            let compiled = Pattern::new(parts(&pattern)).unwrap();
            let symbols: Vec<char> = pattern.chars().collect();
            for text in &texts {
                let expected = slow(&symbols, &text.chars().collect::<Vec<_>>());
                assert_eq!(compiled.matches(text.as_bytes()), expected, "'{text}' LIKE '{pattern}'");
            }
        }
    }

    #[test]
    fn what_takes_too_many_states_is_not_compiled() {
        assert!(Pattern::new(parts(&"a".repeat(63))).is_some());
        assert!(Pattern::new(parts(&"a".repeat(64))).is_none());
        assert!(Pattern::new(parts("%a____________")).is_none(), "each of twelve letters may be the one or not");
        assert!(Pattern::new(parts("%special%requests%")).is_some_and(|found| found.automaton.state_count() == 15));
    }

    #[test]
    fn patterns_are_shown_as_they_are_typed() {
        let pattern = Pattern::new([PatternPart::AnyBytes, PatternPart::Byte(b'%'), PatternPart::AnyChar]).unwrap();
        assert_eq!(pattern.to_string(), "%\\%_");
    }
}
