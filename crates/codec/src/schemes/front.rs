//! Front coding: strings without the prefix that each shares with the one before; for sorted strings, or nearly sorted.
//!
//! The coding is in [`crate::front_coding`]. Lengths of prefixes and the suffixes are parts of their own, so that
//! suffixes may become codes of a symbol table. Comparisons with a constant and prefixes are tested on lengths and
//! suffixes as they come, and no string is rebuilt for them.
//!
//! Input: bytes. Output: docs/format/codecs/front.md. Cost: decoding makes two copies for each string; a single one is
//! rebuilt from its restart point on, up to 16 strings before.

use crate::condition::{Condition, Prepared};
use crate::encoder::{Encoder, Role};
use crate::front_coding::{Comparison, Cut, RESTART_LEN, rebuild, shared_at};
use crate::kernel::Rows;
use crate::node::{Node, Opened, PAYLOAD_AT};
use crate::sample::Sample;
use crate::scheme::{DecodeCost, Reader, Scheme, filter_decoded, unsuitable};
use crate::scratch::Scratch;
use crate::values_mut::ValuesMut;
use crate::{Bitmap, BytesBuf, BytesView, Physical, Result, VECTOR_LEN, Values, ValuesBuf};
use std::ops::Range;

/// The scheme.
#[derive(Debug)]
pub(crate) struct Front;

/// One byte in so many must be shared with the string before for the coding to be worth trying. Less is saved by a
/// symbol table as well.
const BYTES_PER_SHARED_MAX: usize = 6;

/// Fewer bytes of strings are not worth two parts.
const TEXT_BYTES_MIN: usize = 256;

impl Scheme for Front {
    fn name(&self) -> &'static str {
        "front"
    }

    fn holds(&self, physical: Physical) -> bool {
        physical == Physical::Bytes
    }

    fn decode_rank(&self) -> u32 {
        65
    }

    fn decode_cost(&self, _physical: Physical) -> DecodeCost {
        DecodeCost::of_value(7.0)
    }

    /// A string needs those between its restart point and itself.
    fn is_direct(&self) -> bool {
        false
    }

    fn nests(&self) -> bool {
        true
    }

    fn estimate(&self, sample: &Sample<'_>, encoder: &Encoder<'_>) -> Option<usize> {
        let Values::Bytes(view) = sample.values() else { return None };
        let text_bytes = view.data_bytes();
        if text_bytes < TEXT_BYTES_MIN {
            return None;
        }
        let cut = Cut::of(view);
        if cut.shared_bytes() * BYTES_PER_SHARED_MAX < text_bytes {
            return None;
        }
        let (Cut { shared, suffixes }, count) = (cut, sample.whole_count());
        let lengths_bytes = encoder.promise_sampled(Values::U32(&shared), count, Role::Counts);
        let suffixes_bytes = encoder.promise_sampled(Values::Bytes(suffixes.view()), count, Role::Rest);
        Some(PAYLOAD_AT + lengths_bytes + suffixes_bytes)
    }

    fn encode(&self, values: Values<'_>, encoder: &mut Encoder<'_>, out: &mut Vec<u8>) -> Result<()> {
        let Values::Bytes(view) = values else { return Err(unsuitable(self, values.physical())) };
        let Cut { shared, suffixes } = Cut::of(view);
        encoder.part(Values::U32(&shared), Role::Counts, out);
        encoder.part(Values::Bytes(suffixes.view()), Role::Rest, out);
        Ok(())
    }

    fn open<'a>(&self, node: Node<'a>) -> Result<Box<dyn Reader + 'a>> {
        let mut cursor = node.cursor();
        let (shared, suffixes) = (cursor.part()?, cursor.part()?);
        if shared.physical != Physical::U32 || suffixes.physical != Physical::Bytes {
            let (shared, suffixes) = (shared.physical.name(), suffixes.physical.name());
            return Err(cursor.damaged(format!("{suffixes} suffixes with {shared} prefix lengths")));
        }
        if shared.value_count != node.value_count || suffixes.value_count != node.value_count {
            let (shared, suffixes) = (shared.value_count, suffixes.value_count);
            return Err(cursor
                .damaged(format!("{shared} prefix lengths and {suffixes} suffixes for {} strings", node.value_count)));
        }
        cursor.finish()?;
        Ok(Box::new(FrontReader { shared, suffixes }))
    }
}

#[derive(Debug)]
struct FrontReader<'a> {
    shared: Opened<'a>,
    suffixes: Opened<'a>,
}

/// The restart point at or before a row.
fn restart(row: usize) -> usize {
    row / RESTART_LEN * RESTART_LEN
}

/// More rows of a vector than these are gathered from all strings between the first and the last of them: finding
/// suffixes and lengths anew takes as long as rebuilding an eighth of the vector.
const GATHERED_APART_MAX: usize = 8;

impl FrontReader<'_> {
    /// Shows prefix lengths and suffixes from the restart point of `rows` on to their end, at most a vector and what
    /// the first one needs, and how many of them come before `rows`.
    fn with_parts<T>(
        &self,
        rows: Range<usize>,
        scratch: &mut Scratch,
        visit: impl FnOnce(&[u32], BytesView<'_>, usize) -> Result<T>,
    ) -> Result<T> {
        let from_restart = restart(rows.start)..rows.end;
        let mut shared = scratch.take_values(Physical::U32);
        let mut suffixes = scratch.take_values(Physical::Bytes);
        let read = self
            .shared
            .decode_into(from_restart.clone(), &mut shared, scratch)
            .and_then(|()| self.suffixes.decode_into(from_restart.clone(), &mut suffixes, scratch));
        let visited = read.and_then(|()| match (shared.as_values(), suffixes.as_values()) {
            (Values::U32(shared), Values::Bytes(suffixes)) => visit(shared, suffixes, rows.start - from_restart.start),
            _ => unreachable!("the buffers were made for them"),
        });
        scratch.give_values(shared);
        scratch.give_values(suffixes);
        visited
    }

    /// Appends the strings of `rows`, which lie in one vector.
    fn rebuild(&self, rows: Range<usize>, out: &mut BytesBuf, scratch: &mut Scratch) -> Result<()> {
        self.with_parts(rows, scratch, |shared, suffixes, skipped| rebuild(shared, suffixes, skipped, out))
    }

    /// Appends the strings at `rows`; `strings` is room for those between.
    fn gather_through(
        &self,
        rows: &[u32],
        out: &mut BytesBuf,
        strings: &mut BytesBuf,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let in_order = |len: usize| move |a: &u32, b: &u32| a <= b && *a as usize / len == *b as usize / len;
        for in_vector in rows.chunk_by(in_order(VECTOR_LEN)) {
            let apart = if in_vector.len() > GATHERED_APART_MAX { VECTOR_LEN } else { RESTART_LEN };
            for rows in in_vector.chunk_by(in_order(apart)) {
                let (first, last) = (rows[0] as usize, rows[rows.len() - 1] as usize);
                strings.clear();
                scratch.decoded_values += last + 1 - first - rows.len().min(last + 1 - first);
                self.rebuild(first..last + 1, strings, scratch)?;
                for &row in rows {
                    out.push_decoded(strings.view().get(row as usize - first), "front")?;
                }
            }
        }
        Ok(())
    }
}

impl Reader for FrontReader<'_> {
    fn describe(&self) -> String {
        format!("front({}, {})", self.shared.reader.describe(), self.suffixes.reader.describe())
    }

    fn parts(&self) -> Vec<&Opened<'_>> {
        vec![&self.shared, &self.suffixes]
    }

    fn decode(&self, range: Range<usize>, out: ValuesMut<'_>, scratch: &mut Scratch) -> Result<()> {
        let ValuesMut::Bytes(buf) = out else { unreachable!("only for bytes") };
        Rows::all(range).vectors().try_for_each(|rows| self.rebuild(rows, buf, scratch))
    }

    fn gather(&self, rows: &[u32], out: ValuesMut<'_>, scratch: &mut Scratch) -> Result<()> {
        let ValuesMut::Bytes(buf) = out else { unreachable!("only for bytes") };
        let mut strings = scratch.take_values(Physical::Bytes);
        let gathered = match &mut strings {
            ValuesBuf::Bytes(strings) => self.gather_through(rows, buf, strings, scratch),
            _ => unreachable!("the buffer was made for them"),
        };
        scratch.give_values(strings);
        gathered
    }

    fn filter(
        &self,
        range: Range<usize>,
        prepared: &Prepared,
        physical: Physical,
        out: &mut Bitmap,
        scratch: &mut Scratch,
    ) -> Result<bool> {
        let Condition::Bytes(condition) = &prepared.condition else { unreachable!("only for bytes") };
        if Comparison::new(condition).is_none() {
            return filter_decoded(self, range, &prepared.condition, physical, out, scratch).map(|()| false);
        }
        for rows in Rows::all(range).vectors() {
            let mut comparison = Comparison::new(condition).expect("it was one before");
            self.with_parts(rows, scratch, |shared, suffixes, skipped| {
                for (row, (&shared, suffix)) in shared.iter().zip(suffixes.iter()).enumerate() {
                    let passes = comparison.passes(shared_at(row, shared), suffix);
                    if row >= skipped {
                        out.push(passes);
                    }
                }
                Ok(())
            })?;
        }
        Ok(true)
    }

    /// A binary search over restart points, which stand whole, and then a look at the strings after one of them.
    fn lower_bound(
        &self,
        range: Range<usize>,
        below: &Condition,
        _physical: Physical,
        scratch: &mut Scratch,
    ) -> Result<usize> {
        let (mut first, mut end) = (range.start.div_ceil(RESTART_LEN), range.end.div_ceil(RESTART_LEN));
        let mut buf = scratch.take_values(Physical::Bytes);
        let mut found = Ok(());
        while first < end && found.is_ok() {
            let middle = first + (end - first) / 2;
            let row = [(middle * RESTART_LEN) as u32];
            scratch.decoded_values += 1;
            found = self.suffixes.reader.gather(&row, ValuesMut::over(&mut buf, Physical::Bytes, 1), scratch);
            if found.is_ok() && below.passes(buf.as_values(), 0) {
                first = middle + 1;
            } else {
                end = middle;
            }
        }
        // The restart point at `first` is not below, the one before is.
        let rows = range.start.max(first.saturating_sub(1) * RESTART_LEN)..range.end.min(first * RESTART_LEN);
        let found = found.and_then(|()| {
            scratch.decoded_values += rows.len();
            self.decode(rows.clone(), ValuesMut::over(&mut buf, Physical::Bytes, rows.len()), scratch)?;
            let values = buf.as_values();
            Ok((0..rows.len()).position(|index| !below.passes(values, index)).map_or(rows.end, |at| rows.start + at))
        });
        scratch.give_values(buf);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Block, Choice, CompareOp, Predicate, Scalar, encode};

    fn block(strings: &[String], choice: &str) -> Vec<u8> {
        let buf: BytesBuf = strings.iter().map(String::as_bytes).collect();
        let mut out = Vec::new();
        let choice = if choice.is_empty() { Choice::Auto } else { Choice::Forced(choice.into()) };
        encode(Values::Bytes(buf.view()), None, &choice, &mut out).unwrap();
        out
    }

    fn paths() -> Vec<String> {
        let path = |row: usize| format!("/usr/share/doc/package-{:05}/file{:02}.html", row / 7 * 3, row % 7 * 5);
        (0..5000).map(path).collect()
    }

    #[test]
    fn sorted_paths_are_found_to_suit_it() {
        let strings = paths();
        let (chosen, symbols) = (block(&strings, ""), block(&strings, "fsst"));
        let description = Block::open(&chosen).unwrap().describe();
        assert!(description.starts_with("front("), "{description}");
        assert!(chosen.len() * 2 < symbols.len(), "{} bytes, by symbols {}", chosen.len(), symbols.len());
        let scattered: Vec<String> = (0..5000).map(|row| paths()[row * 1931 % 5000][15..].to_owned()).collect();
        let chosen = block(&scattered, "");
        let description = Block::open(&chosen).unwrap().describe();
        assert!(!description.starts_with("front("), "{description}");
    }

    #[test]
    fn comparisons_are_answered_without_a_string() {
        let strings = paths();
        let bytes = block(&strings, "front");
        let block = Block::open(&bytes).unwrap();
        let constant = Scalar::Bytes(strings[2345].as_bytes().to_vec());
        let many = Predicate::In((0..20).map(|row| Scalar::Bytes(strings[row * 100].clone().into_bytes())).collect());
        for (predicate, is_native, test) in [
            (
                Predicate::Compare(CompareOp::Equal, constant.clone()),
                true,
                &(|row: usize| row == 2345) as &dyn Fn(usize) -> bool,
            ),
            (Predicate::Compare(CompareOp::Greater, constant.clone()), true, &|row| row > 2345),
            (Predicate::In(vec![constant.clone()]), true, &|row| row == 2345),
            (Predicate::Prefix(strings[2345][..30].into()), true, &|row| {
                strings[row].starts_with(&strings[2345][..30])
            }),
            (Predicate::Contains("/file05".into()), true, &|row| row % 7 == 1),
            (many, false, &|row| row < 2000 && row % 100 == 0),
        ] {
            let mut passed = Bitmap::default();
            for range in [0..5000, 2340..2350, 1023..4097] {
                assert_eq!(block.filter(range.clone(), &predicate, &mut passed).unwrap(), is_native, "{predicate:?}");
                assert_eq!(passed, Bitmap::from_bools(range.map(test)), "{predicate:?}");
            }
        }
    }

    #[test]
    fn a_prefix_longer_than_what_is_before_is_damage() {
        let strings: Vec<String> = (0..40).map(|row| format!("a{:02}", row)).collect();
        let bytes = block(&strings, "front");
        let lengths_at = bytes.windows(2).position(|tag| tag == [17, 12]).unwrap() + PAYLOAD_AT;
        // Whatever scheme the lengths have: each byte of their payload once as great as it can be.
        let payload = lengths_at + PAYLOAD_AT;
        for at in payload..payload + 8 {
            let mut damaged = bytes.clone();
            damaged[at] = 0xff;
            let Ok(block) = Block::open(&damaged) else { continue };
            let mut out = ValuesBuf::new(Physical::Bytes);
            let _ = block.decode(0..40, &mut out);
            let _ = block.gather(0, &[3, 17, 39], &mut out);
        }
    }
}
