//! Encoding: strings in, codes out.

use super::Width;
use super::lanes::{LANES, Lane, codes_max, encode_lanes};
use super::matcher::{Matcher, WINDOW_BYTES};
use crate::BytesView;

/// Text that is matched at once, at least a string: its codes stay in the cache until they are packed.
const BATCH_BYTES: usize = 32 << 10;

/// Encodes with one table. Holds scratch memory, so one per thread.
pub(crate) struct StringEncoder {
    matcher: Matcher,
    /// Codes of a batch, with gaps.
    spread: Vec<u16>,
    /// Text that had nothing behind it, and something behind it.
    padded: Vec<u8>,
}

impl StringEncoder {
    pub(super) fn new(matcher: Matcher) -> StringEncoder {
        StringEncoder { matcher, spread: Vec::new(), padded: Vec::new() }
    }

    /// How wide its codes are.
    pub(super) fn width(&self) -> Width {
        self.matcher.width()
    }

    /// Appends the codes of `values` to `codes`, and to `counts` how many each has.
    pub(crate) fn encode(&mut self, values: BytesView<'_>, codes: &mut Vec<u16>, counts: &mut Vec<u32>) {
        let mut rest = values;
        while !rest.is_empty() {
            let batch_end = u64::from(rest.offsets[0]) + BATCH_BYTES as u64;
            let fitting = rest.offsets[1..].partition_point(|&end| u64::from(end) <= batch_end).max(1);
            self.encode_batch(rest.slice(0..fitting), codes, counts);
            rest = rest.slice(fitting..rest.len());
        }
    }

    /// The codes of one value.
    pub(crate) fn encode_one(&mut self, value: &[u8]) -> Vec<u16> {
        let end = u32::try_from(value.len()).expect("a value has less than 4 GiB");
        let (mut codes, mut counts) = (Vec::new(), Vec::new());
        self.encode(BytesView { offsets: &[0, end], data: value }, &mut codes, &mut counts);
        codes
    }

    fn encode_batch(&mut self, values: BytesView<'_>, codes: &mut Vec<u16>, counts: &mut Vec<u32>) {
        let (width, text_bytes) = (self.width(), values.data_bytes());
        let start = values.offsets[0] as usize;
        if self.spread.len() < codes_max(width, text_bytes) {
            self.spread.resize(codes_max(width, text_bytes), 0);
        }
        let first_count = counts.len();
        counts.resize(first_count + values.len(), 0);
        let counts = &mut counts[first_count..];
        // Each lane gets about as much text.
        let ends = &values.offsets[1..];
        let mut lanes = [Lane::default(); LANES];
        let (mut string, mut position) = (0, start);
        for (index, lane) in lanes.iter_mut().enumerate() {
            let wanted = start + (index + 1) * text_bytes / LANES;
            let strings_end = match index + 1 == LANES {
                true => values.len(),
                false => string + ends[string..].partition_point(|&end| end as usize <= wanted),
            };
            let first_code = codes_max(width, position - start);
            *lane = Lane { position, end: position, string, strings_end, next_code: first_code, first_code };
            (string, position) = (strings_end, values.offsets[strings_end] as usize);
        }
        let first_codes = lanes.map(|lane| lane.first_code);
        if position + WINDOW_BYTES <= values.data.len() {
            encode_lanes(&self.matcher, values.data, ends, &mut lanes, &mut self.spread, counts);
        } else {
            self.padded.clear();
            self.padded.extend_from_slice(&values.data[start..position]);
            self.padded.extend_from_slice(&[0; WINDOW_BYTES]);
            let ends: Vec<u32> = ends.iter().map(|&end| end - start as u32).collect();
            lanes.iter_mut().for_each(|lane| lane.position -= start);
            encode_lanes(&self.matcher, &self.padded, &ends, &mut lanes, &mut self.spread, counts);
        }
        for (first_code, lane) in first_codes.into_iter().zip(lanes) {
            codes.extend_from_slice(&self.spread[first_code..lane.next_code]);
        }
    }
}
