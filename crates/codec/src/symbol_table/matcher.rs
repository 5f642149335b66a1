//! Longest match: which symbol of a table covers the most bytes of what comes next.
//!
//! Symbols of one and two bytes stand in a table indexed by the next two bytes. Longer ones are found by a binary
//! search for the length (Waldvogel, Varghese, Turner and Plattner: Scalable High Speed IP Routing Lookups, SIGCOMM 1997).
//! From the two bytes it tries to go on by eight bytes, then by four, by two and by one: a symbol of 15 bytes is
//! reached by way of its first 10 and 14. Each such prefix is a node, and knows the longest symbol that it begins with;
//! so the last node that was reached has the answer, however far it lies beyond the symbol.
//!
//! So a match that may be long takes four probes, and no branch depends on what they find. Fewer are enough where the
//! lengths that occur are tried, longest first, but then most of the time goes into branches that nobody can predict
//! (TPC-H comments: a quarter slower); and this way several strings can be matched in turns (`super::lanes`), each
//! waiting for memory while others go on. Where no longer symbol begins with the two bytes, there are no probes: that is
//! a branch, but text of random letters takes it nearly always, and words seldom.

use super::steps::{SLOT_BITS_MAX, Steps};
use super::symbol::Symbol;
use super::{ESCAPE, SYMBOL_BYTES, Width, first_free_code};
use std::hint::select_unpredictable;

/// What is looked at from a position on. Text must go on so far behind the last position, with whatever bytes.
pub(super) const WINDOW_BYTES: usize = 25;

/// The longest symbols that no node is needed for.
const SHORT_BYTES: usize = 2;

/// By how many bytes the search goes on.
const STEPS: [usize; 4] = [8, 4, 2, 1];

/// Bits of a slot's number: 255 symbols, and 3840.
pub(super) const NARROW_SLOT_BITS: u32 = 11;
pub(super) const WIDE_SLOT_BITS: u32 = SLOT_BITS_MAX;

/// An entry of `pairs`: as a match, but the length has two bits, and this one says that longer symbols begin so.
const GOES_ON: u16 = 1 << 15;

/// A match: the code in the low 12 bits, its symbol's length (0 for an escape) above.
type Match = u32;
const CODE_BITS: u32 = 12;
const CODE_MASK: u16 = (1 << CODE_BITS) - 1;

/// Where the search is: at a node, by its number, or after two bytes, which are the number, and this bit.
type State = u32;
const IS_START: State = 1 << 16;

/// More than there are nodes: 3840 symbols have four each, at most. No node has the last number.
const NODES_MAX: usize = 1 << 14;

/// Finds longest matches in one table's symbols. Built once per table; shared freely, it never changes.
pub(super) struct Matcher {
    width: Width,
    /// By the next two bytes, the first one lowest: the longest symbol of at most two.
    pairs: Box<[u16; 1 << 16]>,
    /// By the next byte: the symbol of one.
    singles: [u16; 256],
    /// By the bytes of a step.
    eight: Steps<[u64; 2]>,
    four: Steps<u64>,
    two: Steps<u64>,
    one: Steps<u64>,
    /// By node: the longest symbol that it begins with.
    best: Box<[Match; NODES_MAX]>,
}

impl Matcher {
    /// A matcher for `symbols`, where the position is the code: they ascend from [`first_free_code`] on.
    pub(super) fn new(width: Width, symbols: &[Symbol]) -> Matcher {
        match width {
            Width::Narrow => Matcher::with_slots::<NARROW_SLOT_BITS>(width, symbols),
            Width::Wide => Matcher::with_slots::<WIDE_SLOT_BITS>(width, symbols),
        }
    }

    fn with_slots<const BITS: u32>(width: Width, symbols: &[Symbol]) -> Matcher {
        let (mut pairs, singles) = short_matches(symbols);
        let mut best = Vec::new();
        let (mut eight, mut short) = (Steps::new(), [(); 3].map(|()| Steps::new()));
        // Of the last symbol: the nodes on the way to it, by their lengths, and the symbols that it begins with.
        let mut nodes: [Option<State>; SYMBOL_BYTES + 1] = [None; SYMBOL_BYTES + 1];
        let mut within: Vec<usize> = Vec::with_capacity(SYMBOL_BYTES);
        let mut last = 0;
        for (code, symbol) in symbols.iter().enumerate().skip(first_free_code(width)) {
            let (word, len) = (symbol.word(), usize::from(symbol.len));
            let shared = ((word ^ last).trailing_zeros() / 8) as usize;
            last = word;
            nodes[SYMBOL_BYTES.min(shared) + 1..].fill(None);
            if len <= SHORT_BYTES {
                continue;
            }
            while within.pop_if(|outer| !symbol.as_slice().starts_with(symbols[*outer].as_slice())).is_some() {}
            within.push(code);
            pairs[usize::from(word as u16)] |= GOES_ON;
            let (mut state, mut reached) = (IS_START | State::from(word as u16), SHORT_BYTES);
            for (index, step) in STEPS.into_iter().enumerate().filter(|(_, step)| (len - SHORT_BYTES) & step != 0) {
                let bytes = (word >> (8 * reached)) as u64;
                reached += step;
                state = match nodes[reached] {
                    Some(node) => node,
                    None => {
                        let node = best.len() as u32;
                        match index {
                            0 => eight.insert::<BITS>(state, bytes, node),
                            _ => short[index - 1].insert::<BITS>(state, bytes & low_mask(step), node),
                        }
                        let longest = within.iter().rfind(|&&code| usize::from(symbols[code].len) <= reached);
                        best.push(match longest {
                            Some(&code) => code as Match | Match::from(symbols[code].len) << CODE_BITS,
                            None => Match::from(pairs[usize::from(word as u16)] & !GOES_ON),
                        });
                        node
                    }
                };
                nodes[reached] = Some(state);
            }
        }
        best.resize(NODES_MAX, 0);
        let best = best.into_boxed_slice().try_into().expect("there are fewer nodes");
        let [four, two, one] = short;
        Matcher { width, pairs, singles, eight, four, two, one, best }
    }

    /// How wide its codes are.
    pub(super) fn width(&self) -> Width {
        self.width
    }

    /// Code and length of the longest symbol at the start of `window`, of which `available` bytes count, at least one;
    /// [`ESCAPE`] and 0 where none fits. `BITS` is as it belongs to the width.
    #[inline(always)]
    pub(super) fn longest<const BITS: u32>(&self, window: &[u8; WINDOW_BYTES], available: usize) -> (u16, usize) {
        let start = u16::from_le_bytes([window[0], window[1]]);
        let (pair, single) = (self.pairs[usize::from(start)], self.singles[usize::from(window[0])]);
        let short = select_unpredictable(available >= SHORT_BYTES, pair, single);
        // In text of random letters this is seldom so, and elsewhere nearly always.
        if short & GOES_ON == 0 {
            return (short & CODE_MASK, usize::from(short >> CODE_BITS));
        }
        let start = IS_START | State::from(start);
        let (mut state, mut skipped) = (start, 0);
        let mut go_on = |(is_hit, node): (bool, u32), step: usize| {
            let is_hit = is_hit & (SHORT_BYTES + skipped + step <= available);
            state = select_unpredictable(is_hit, node, state);
            skipped = select_unpredictable(is_hit, skipped + step, skipped);
            (state, skipped)
        };
        // No step is reached from where it would pass the window.
        let bytes = |skipped: usize| {
            let bytes = window[SHORT_BYTES + skipped % SYMBOL_BYTES..].first_chunk();
            bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        let (state, skipped) = go_on(self.eight.find::<BITS>(start, bytes(0)), 8);
        let (state, skipped) = go_on(self.four.find::<BITS>(state, bytes(skipped) & low_mask(4)), 4);
        let (state, skipped) = go_on(self.two.find::<BITS>(state, bytes(skipped) & low_mask(2)), 2);
        let (state, _) = go_on(self.one.find::<BITS>(state, bytes(skipped) & low_mask(1)), 1);
        let long = self.best[state as usize % NODES_MAX];
        let best = select_unpredictable(state & IS_START == 0, long, Match::from(short & !GOES_ON));
        (best as u16 & CODE_MASK, (best >> CODE_BITS) as usize)
    }
}

/// `pairs` and `singles` of a matcher.
fn short_matches(symbols: &[Symbol]) -> (Box<[u16; 1 << 16]>, [u16; 256]) {
    let entry = |code: usize, len: u16| code as u16 | len << CODE_BITS;
    let mut singles = [ESCAPE; 256];
    for (code, symbol) in symbols.iter().enumerate().filter(|(_, symbol)| symbol.len == 1) {
        singles[usize::from(symbol.bytes[0])] = entry(code, 1);
    }
    let pairs = singles.repeat(256).into_boxed_slice();
    let mut pairs: Box<[u16; 1 << 16]> = pairs.try_into().expect("there are as many");
    for (code, symbol) in symbols.iter().enumerate().filter(|(_, symbol)| symbol.len == 2) {
        pairs[usize::from(symbol.word() as u16)] = entry(code, 2);
    }
    (pairs, singles)
}

/// The low bits of so many bytes, at most four.
const fn low_mask(bytes: usize) -> u64 {
    (1 << (8 * bytes)) - 1
}
