//! Matching several strings in turns: a match must end before the next one in its string begins, but not before the
//! next one in another string.
//!
//! Taking each step of the search for all of them before the next step was no faster than match by match.

use super::matcher::{Matcher, NARROW_SLOT_BITS, WIDE_SLOT_BITS, WINDOW_BYTES};
use super::{ESCAPE, Width};
use crate::isa::each_isa;

/// Strings in turns. With two it takes 4 % longer, with eight a fifth, with one 45 % (TPC-H comments).
pub(super) const LANES: usize = 4;

/// Strings that lie one after the other, and the one of them that is being matched.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lane {
    /// Where the next match begins in the text.
    pub(super) position: usize,
    /// Where its string ends.
    pub(super) end: usize,
    /// This string, and the one after the last.
    pub(super) string: usize,
    pub(super) strings_end: usize,
    /// Where the next code goes, and where the first one of this string did.
    pub(super) next_code: usize,
    pub(super) first_code: usize,
}

each_isa! {
    /// Writes the codes of the strings of `lanes`, and notes in `counts` how many codes each has. A string ends in
    /// `text` at its entry of `ends`, and [`WINDOW_BYTES`] that do not matter follow the last one. There is room for as
    /// many codes as [`codes_max`] says. When a lane is done, its next code is the one after its last.
    pub(super) fn encode_lanes(
        matcher: &Matcher,
        text: &[u8],
        ends: &[u32],
        lanes: &mut [Lane; LANES],
        codes: &mut [u16],
        counts: &mut [u32],
    ) = encode_lanes_body;
}

/// The most codes of so many bytes: one each, or an escape each.
pub(super) fn codes_max(width: Width, text_bytes: usize) -> usize {
    match width {
        Width::Narrow => 2 * text_bytes,
        Width::Wide => text_bytes,
    }
}

#[inline(always)]
fn encode_lanes_body(
    matcher: &Matcher,
    text: &[u8],
    ends: &[u32],
    lanes: &mut [Lane; LANES],
    codes: &mut [u16],
    counts: &mut [u32],
) {
    match matcher.width() {
        Width::Narrow => in_turns::<true, NARROW_SLOT_BITS>(matcher, text, ends, lanes, codes, counts),
        Width::Wide => in_turns::<false, WIDE_SLOT_BITS>(matcher, text, ends, lanes, codes, counts),
    }
}

#[inline(always)]
fn in_turns<const ESCAPES: bool, const BITS: u32>(
    matcher: &Matcher,
    text: &[u8],
    ends: &[u32],
    lanes: &mut [Lane; LANES],
    codes: &mut [u16],
    counts: &mut [u32],
) {
    let mut all_go_on = true;
    for lane in &mut *lanes {
        all_go_on &= lane.skip_ends(ends, counts);
    }
    while all_go_on {
        for lane in &mut *lanes {
            all_go_on &= encode_next::<ESCAPES, BITS>(matcher, text, ends, lane, codes, counts);
        }
    }
    // Some had a little more to do.
    for lane in lanes {
        while lane.string < lane.strings_end {
            encode_next::<ESCAPES, BITS>(matcher, text, ends, lane, codes, counts);
        }
    }
}

/// Writes the next code of a lane, or an escape and its byte. Whether there is more to do.
#[inline(always)]
fn encode_next<const ESCAPES: bool, const BITS: u32>(
    matcher: &Matcher,
    text: &[u8],
    ends: &[u32],
    lane: &mut Lane,
    codes: &mut [u16],
    counts: &mut [u32],
) -> bool {
    let window: &[u8; WINDOW_BYTES] = text[lane.position..].first_chunk().expect("text goes on behind its end");
    let (code, len) = matcher.longest::<BITS>(window, lane.end - lane.position);
    if ESCAPES {
        // The byte is written in any case; only an escape keeps its place.
        let place = &mut codes[lane.next_code..][..2];
        (place[0], place[1]) = (code, u16::from(window[0]));
        lane.next_code += 1 + usize::from(code == ESCAPE);
        lane.position += len.max(1);
    } else {
        codes[lane.next_code] = code;
        lane.next_code += 1;
        lane.position += len;
    }
    lane.position < lane.end || lane.skip_ends(ends, counts)
}

impl Lane {
    /// Notes the strings that end where the lane is. Whether one is left.
    #[inline(always)]
    fn skip_ends(&mut self, ends: &[u32], counts: &mut [u32]) -> bool {
        while self.string < self.strings_end {
            self.end = ends[self.string] as usize;
            if self.position < self.end {
                return true;
            }
            counts[self.string] = (self.next_code - self.first_code) as u32;
            self.first_code = self.next_code;
            self.string += 1;
        }
        false
    }
}
