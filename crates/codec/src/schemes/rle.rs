//! Run-length encoding: each stretch of equal values once, with its length.
//!
//! Values of runs and lengths are parts of their own, so sorted run values become deltas and equal lengths a constant. A
//! reader unpacks both at its first use and keeps them: a run is found by binary search over the ends.
//!
//! Input: any type. Output: docs/format/codecs/rle.md. Cost: decoding fills run by run; filtering tests each run once.

use crate::condition::{Condition, Prepared};
use crate::encoder::{Encoder, Role};
use crate::fixed::{Fixed, Integer, for_fixed, for_integers};
use crate::kernel::{Bounds, Rows, SquareSum, Tally, WideSum, add_code};
use crate::node::{Node, Opened, PAYLOAD_AT};
use crate::sample::Sample;
use crate::scheme::{DecodeCost, Reader, Scheme};
use crate::scratch::Scratch;
use crate::values_mut::{Native, ValuesMut};
use crate::{Bitmap, BytesBuf, BytesView, Encoded, Error, Narrow, Physical, Result, VECTOR_LEN, Values, ValuesBuf};
use std::ops::Range;
use std::sync::OnceLock;

/// The scheme.
#[derive(Debug)]
pub(crate) struct Rle;

/// Values a run must have on average for runs to be worth trying.
const RUN_LEN_MIN: usize = 2;

/// What a vector of packed values takes besides them, about.
const DIRECTORY_BYTES: usize = 10;

impl Scheme for Rle {
    fn name(&self) -> &'static str {
        "rle"
    }

    fn holds(&self, _physical: Physical) -> bool {
        true
    }

    fn decode_rank(&self) -> u32 {
        4
    }

    fn decode_cost(&self, physical: Physical) -> DecodeCost {
        match physical {
            Physical::Bytes => DecodeCost::of_value(5.0),
            _ => DecodeCost::of_value(0.25),
        }
    }

    fn nests(&self) -> bool {
        true
    }

    fn estimate(&self, sample: &Sample<'_>, encoder: &Encoder<'_>) -> Option<usize> {
        if sample.counts.runs * RUN_LEN_MIN > sample.whole_count() {
            return None;
        }
        let (starts, lengths) = runs(sample.values());
        // What a part takes whatever is in it does not grow with the runs.
        let overhead = |runs: usize| PAYLOAD_AT + DIRECTORY_BYTES * runs.div_ceil(VECTOR_LEN);
        let (sampled, whole) = (starts.len(), sample.counts.runs);
        let scaled = |part_bytes: usize| {
            let bytes = part_bytes.saturating_sub(overhead(sampled)) as f64 * whole as f64 / sampled as f64;
            overhead(whole) + bytes as usize
        };
        let values_bytes = encoder.estimate_part(at(sample.values(), &starts).as_values(), Role::Values);
        let lengths_bytes = encoder.estimate_part(Values::U32(&lengths), Role::Counts);
        Some(PAYLOAD_AT + scaled(values_bytes) + scaled(lengths_bytes))
    }

    fn encode(&self, values: Values<'_>, encoder: &mut Encoder<'_>, out: &mut Vec<u8>) -> Result<()> {
        let (starts, lengths) = runs(values);
        encoder.part(Values::U32(&lengths), Role::Counts, out);
        encoder.part(at(values, &starts).as_values(), Role::Values, out);
        Ok(())
    }

    fn open<'a>(&self, node: Node<'a>) -> Result<Box<dyn Reader + 'a>> {
        let mut cursor = node.cursor();
        let (lengths, values) = (cursor.part()?, cursor.part()?);
        let (found, expected) = (lengths.physical, values.physical);
        if found != Physical::U32 || expected != node.physical {
            let what = format!("runs of {} values with {} lengths", expected.name(), found.name());
            return Err(cursor.damaged(what));
        }
        if lengths.value_count != values.value_count || lengths.value_count > node.value_count {
            let (lengths, values) = (lengths.value_count, values.value_count);
            return Err(cursor.damaged(format!("{lengths} lengths and {values} values for {} rows", node.value_count)));
        }
        cursor.finish()?;
        let (ends, run_values, run_codes) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
        Ok(Box::new(RleReader { value_count: node.value_count, lengths, values, ends, run_values, run_codes }))
    }
}

/// Runs up to this length are filled to it blindly; the next run overwrites what is too much. Spares a branch per value.
const SHORT_RUN: usize = 8;

/// Where at least so many rows, and one of so many, are asked for, all from the first to the last are filled and picked from:
/// to find the run of one row takes as long as to fill a few.
const PICKED_MIN: usize = 16;
const ROWS_PER_PICKED_MAX: usize = 12;

/// Where runs of equal values start, and how long they are.
fn runs(values: Values<'_>) -> (Vec<u32>, Vec<u32>) {
    fn fixed<T: Fixed>(values: &[T]) -> Vec<u32> {
        starts(values.windows(2).map(|pair| pair[0].bits() != pair[1].bits()))
    }
    fn bytes(view: BytesView<'_>) -> Vec<u32> {
        starts((1..view.len()).map(|row| view.get(row) != view.get(row - 1)))
    }
    let starts = for_fixed!(Values, values, values => fixed(values), view => bytes(view));
    let ends = starts.iter().skip(1).copied().chain([values.len() as u32]);
    let lengths = starts.iter().zip(ends).map(|(start, end)| end - start).collect();
    (starts, lengths)
}

/// The first row, and those of the others that differ from the one before. Each row is written, and the next one over it
/// unless it begins a run: no branch depends on values.
fn starts(changes: impl ExactSizeIterator<Item = bool>) -> Vec<u32> {
    let mut starts = vec![0; changes.len() + 1];
    let mut count = 1;
    for (row, is_change) in (1..).zip(changes) {
        starts[count] = row;
        count += usize::from(is_change);
    }
    starts.truncate(count);
    starts
}

/// The values at these rows.
fn at(values: Values<'_>, rows: &[u32]) -> ValuesBuf {
    values.at(rows.iter().map(|row| *row as usize))
}

#[derive(Debug)]
struct RleReader<'a> {
    value_count: usize,
    lengths: Opened<'a>,
    values: Opened<'a>,
    ends: OnceLock<Ends>,
    run_values: OnceLock<ValuesBuf>,
    /// Codes of the runs' values, where these are text with a dictionary.
    run_codes: OnceLock<Option<Narrow>>,
}

/// The row after the last of each run: ascending, the last one is the value count.
#[derive(Debug)]
struct Ends(Vec<u32>);

/// Runs once unpacked.
#[derive(Clone, Copy, Debug)]
struct Runs<'r> {
    ends: &'r Ends,
    values: &'r ValuesBuf,
}

impl Ends {
    /// The run that holds this row.
    fn index_of(&self, row: usize) -> usize {
        self.0.partition_point(|&end| end as usize <= row)
    }

    /// The runs that `range` touches: index, and how many of its rows.
    fn pieces(&self, range: Range<usize>) -> impl Iterator<Item = (usize, usize)> {
        let mut row = range.start;
        let first = self.index_of(range.start);
        self.0[first..].iter().enumerate().map_while(move |(index, &end)| {
            let start = row;
            row = range.end.min(end as usize);
            (start < range.end).then(|| (first + index, row - start))
        })
    }

    /// Shows each run that has rows that count: index, and how many.
    fn for_each_counted(&self, rows: &Rows<'_>, mut visit: impl FnMut(usize, usize)) {
        if rows.count() == rows.range.len() {
            return self.pieces(rows.range.clone()).for_each(|(run, count)| visit(run, count));
        }
        let mut row = rows.range.start;
        for (run, len) in self.pieces(rows.range.clone()) {
            let count = rows.count_in(row..row + len);
            row += len;
            if count > 0 {
                visit(run, count);
            }
        }
    }
}

impl RleReader<'_> {
    fn runs(&self, scratch: &mut Scratch) -> Result<Runs<'_>> {
        let ends = self.ends(scratch)?;
        if let Some(values) = self.run_values.get() {
            return Ok(Runs { ends, values });
        }
        let mut values = ValuesBuf::new(self.values.physical);
        self.values.decode_into(0..self.values.value_count, &mut values, scratch)?;
        Ok(Runs { ends, values: self.run_values.get_or_init(|| values) })
    }

    fn ends(&self, scratch: &mut Scratch) -> Result<&Ends> {
        if let Some(ends) = self.ends.get() {
            return Ok(ends);
        }
        let mut lengths = ValuesBuf::new(Physical::U32);
        self.lengths.decode_into(0..self.lengths.value_count, &mut lengths, scratch)?;
        let mut ends = std::mem::take(u32::vec_mut(&mut lengths));
        let mut row = 0u64;
        for end in &mut ends {
            row += u64::from(*end);
            *end = u32::try_from(row).unwrap_or(u32::MAX);
        }
        if row != self.value_count as u64 {
            return Err(Error::damaged("rle", format!("its runs hold {row} rows, not {}", self.value_count)));
        }
        Ok(self.ends.get_or_init(|| Ends(ends)))
    }

    fn run_codes(&self, scratch: &mut Scratch) -> Result<Option<&Narrow>> {
        if let Some(codes) = self.run_codes.get() {
            return Ok(codes.as_ref());
        }
        let codes = self.codes_of_values(scratch)?;
        Ok(self.run_codes.get_or_init(|| codes).as_ref())
    }

    /// Numbers are as good plain.
    fn codes_of_values(&self, scratch: &mut Scratch) -> Result<Option<Narrow>> {
        if self.values.physical != Physical::Bytes {
            return Ok(None);
        }
        let Some(entries) = self.values.reader.dictionary(scratch)? else { return Ok(None) };
        let mut codes: Vec<u32> = Vec::with_capacity(self.values.value_count);
        let mut part = Encoded::default();
        for start in (0..self.values.value_count).step_by(VECTOR_LEN) {
            let range = start..self.values.value_count.min(start + VECTOR_LEN);
            self.values.reader.load(range, Physical::Bytes, &mut part, scratch)?;
            let Encoded::Codes(part) = &part else { return Ok(None) };
            codes.extend((0..part.len()).map(|run| part.get(run)));
        }
        Ok(Some(match entries.len() {
            0..=0x100 => Narrow::U8(codes.into_iter().map(|code| code as u8).collect()),
            0x101..=0x1_0000 => Narrow::U16(codes.into_iter().map(|code| code as u16).collect()),
            _ => Narrow::U32(codes),
        }))
    }
}

/// Writes the values of the runs that `range` touches, each as often as its run has rows there.
fn spread<T: Copy>(ends: &Ends, values: &[T], range: Range<usize>, out: &mut [T]) {
    let mut done = 0;
    for (run, count) in ends.pieces(range) {
        match out[done..].first_chunk_mut::<SHORT_RUN>() {
            Some(slots) if count <= SHORT_RUN => *slots = [values[run]; SHORT_RUN],
            _ => out[done..done + count].fill(values[run]),
        }
        done += count;
    }
}

impl Reader for RleReader<'_> {
    fn describe(&self) -> String {
        format!("rle({}, {})", self.values.reader.describe(), self.lengths.reader.describe())
    }

    fn parts(&self) -> Vec<&Opened<'_>> {
        vec![&self.lengths, &self.values]
    }

    fn tests_entries(&self) -> bool {
        true
    }

    fn decode(&self, range: Range<usize>, out: ValuesMut<'_>, scratch: &mut Scratch) -> Result<()> {
        fn bytes(ends: &Ends, view: BytesView<'_>, range: Range<usize>, buf: &mut BytesBuf) -> Result<()> {
            for (run, count) in ends.pieces(range) {
                for _ in 0..count {
                    buf.push_decoded(view.get(run), "rle")?;
                }
            }
            Ok(())
        }
        let runs = self.runs(scratch)?;
        match runs.values.as_values() {
            Values::Bytes(view) => match out {
                ValuesMut::Bytes(buf) => bytes(runs.ends, view, range, buf)?,
                _ => unreachable!("the caller asks for the type of the node"),
            },
            values => for_fixed!(Values, values,
                values => spread(runs.ends, values, range, Native::slice_mut(out)), _ => ()),
        }
        Ok(())
    }

    fn gather(&self, rows: &[u32], out: ValuesMut<'_>, scratch: &mut Scratch) -> Result<()> {
        fn fixed<T: Native>(ends: &Ends, values: &[T], rows: &[u32], out: &mut [T]) {
            if let (&[first, .., last], Some(value)) = (rows, values.first())
                && let span = last.saturating_sub(first) as usize + 1
                && span <= VECTOR_LEN
                && rows.len() >= PICKED_MIN.max(span / ROWS_PER_PICKED_MAX)
                && rows.is_sorted()
            {
                let mut plain = [*value; VECTOR_LEN];
                spread(ends, values, first as usize..first as usize + span, &mut plain[..span]);
                out.iter_mut().zip(rows).for_each(|(slot, row)| *slot = plain[(row - first) as usize]);
                return;
            }
            let mut cursor = RunCursor::default();
            out.iter_mut().zip(rows).for_each(|(slot, row)| *slot = values[cursor.seek(&ends.0, *row)]);
        }
        let runs = self.runs(scratch)?;
        match runs.values.as_values() {
            Values::Bytes(view) => {
                let ValuesMut::Bytes(buf) = out else { unreachable!("the caller asks for the type of the node") };
                let mut cursor = RunCursor::default();
                for row in rows {
                    buf.push_decoded(view.get(cursor.seek(&runs.ends.0, *row)), "rle")?;
                }
            }
            values => {
                for_fixed!(Values, values, values => fixed(runs.ends, values, rows, Native::slice_mut(out)), _ => ())
            }
        }
        Ok(())
    }

    fn load(&self, range: Range<usize>, physical: Physical, out: &mut Encoded, scratch: &mut Scratch) -> Result<()> {
        let ends = self.ends(scratch)?;
        let len = range.len();
        if let Some(codes) = self.run_codes(scratch)? {
            if !matches!(out, Encoded::Codes(_)) {
                *out = Encoded::Codes(Narrow::U8(Vec::new()));
            }
            let Encoded::Codes(out) = out else { unreachable!("it was just made so") };
            macro_rules! spread_codes {
                ($codes:expr, $out:expr) => {{
                    let out = $out;
                    out.resize(len, 0);
                    spread(ends, $codes, range, out);
                }};
            }
            match codes {
                Narrow::U8(codes) => spread_codes!(codes, out.as_u8()),
                Narrow::U16(codes) => spread_codes!(codes, out.as_u16()),
                Narrow::U32(codes) => spread_codes!(codes, out.as_u32()),
            }
            return Ok(());
        }
        if len == 0 || ends.index_of(range.start) != ends.index_of(range.end - 1) {
            return self.decode(range, ValuesMut::over(out.flat(physical), physical, len), scratch);
        }
        if !matches!(out, Encoded::Constant(_)) {
            *out = Encoded::Constant(ValuesBuf::new(physical));
        }
        match out {
            Encoded::Constant(value) => {
                self.decode(range.start..range.start + 1, ValuesMut::over(value, physical, 1), scratch)
            }
            _ => unreachable!("it was just made so"),
        }
    }

    /// [`Encoded::Codes`] of text.
    fn dictionary(&self, scratch: &mut Scratch) -> Result<Option<ValuesBuf>> {
        match self.run_codes(scratch)? {
            Some(_) => self.values.reader.dictionary(scratch),
            None => Ok(None),
        }
    }

    /// The runs' values are asked in their own form.
    fn prepare(&self, condition: &Condition, scratch: &mut Scratch) -> Result<Prepared> {
        let prepared = self.values.prepare(condition, scratch)?;
        let mut passing = Bitmap::default();
        for start in (0..self.values.value_count).step_by(VECTOR_LEN) {
            let range = start..self.values.value_count.min(start + VECTOR_LEN);
            self.values.filter(range, &prepared, &mut passing, scratch)?;
        }
        let condition = match passing.count_ones() {
            0 => Condition::Never,
            count if count == passing.len() => Condition::Always,
            _ => condition.clone(),
        };
        Ok(Prepared { passing, ..Prepared::plain(condition) })
    }

    fn filter(
        &self,
        range: Range<usize>,
        prepared: &Prepared,
        _physical: Physical,
        out: &mut Bitmap,
        scratch: &mut Scratch,
    ) -> Result<bool> {
        let ends = self.ends(scratch)?;
        let Some(last) = range.clone().next_back() else { return Ok(true) };
        let runs = ends.index_of(range.start)..ends.index_of(last) + 1;
        // Where runs are in an order, few vectors have both.
        match prepared.passing.count_ones_in(runs.clone()) {
            0 => out.extend_with(range.len(), false),
            count if count == runs.len() => out.extend_with(range.len(), true),
            _ => out.extend_with_runs(ends.pieces(range).map(|(run, count)| (count, prepared.passing.get(run)))),
        }
        Ok(true)
    }

    fn sum(&self, rows: &Rows<'_>, _physical: Physical, total: &mut WideSum, scratch: &mut Scratch) -> Result<()> {
        fn integers<T: Integer>(runs: Runs<'_>, values: &[T], rows: &Rows<'_>, total: &mut WideSum) {
            if T::BYTES > 8 {
                runs.ends.for_each_counted(rows, |run, count| total.add_product(values[run].wide(), count as u64));
                return;
            }
            // As many values as a block has, of 64 bits each, do not overflow 128.
            let mut sum = 0;
            runs.ends.for_each_counted(rows, |run, count| sum += values[run].wide() * count as i128);
            total.add(sum);
        }
        let runs = self.runs(scratch)?;
        for_integers!(Values, runs.values.as_values(), values => integers(runs, values, rows, total),
            other => unreachable!("{} values have no exact sum", other.physical().name()));
        Ok(())
    }

    fn bounds(&self, rows: &Rows<'_>, _physical: Physical, found: &mut Bounds, scratch: &mut Scratch) -> Result<()> {
        let runs = self.runs(scratch)?;
        let values = runs.values.as_values();
        if rows.count() == rows.range.len() && !rows.range.is_empty() {
            let (first, last) = (runs.ends.index_of(rows.range.start), runs.ends.index_of(rows.range.end - 1));
            found.widen(values.slice(first..last + 1));
        } else {
            runs.ends.for_each_counted(rows, |run, _| found.widen(values.slice(run..run + 1)));
        }
        Ok(())
    }

    fn squares(
        &self,
        rows: &Rows<'_>,
        _physical: Physical,
        pivot: i128,
        found: &mut SquareSum,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let runs = self.runs(scratch)?;
        for_integers!(Values, runs.values.as_values(), values => {
            let pivot = Integer::cut(pivot);
            runs.ends.for_each_counted(rows, |run, count| found.add(values[run], pivot, count as u64));
        }, other => unreachable!("{} values have no exact squares", other.physical().name()));
        Ok(())
    }

    fn tally(&self, rows: &Rows<'_>, _physical: Physical, tally: &mut Tally, scratch: &mut Scratch) -> Result<()> {
        let runs = self.runs(scratch)?;
        let values = runs.values.as_values();
        let mut added = Ok(());
        runs.ends.for_each_counted(rows, |run, count| {
            if added.is_ok() {
                added = tally.add(values.slice(run..run + 1), count as u64);
            }
        });
        added
    }

    fn count_codes(&self, rows: &Rows<'_>, counts: &mut [u64], scratch: &mut Scratch) -> Result<()> {
        let runs = self.runs(scratch)?;
        let Values::U32(codes) = runs.values.as_values() else { unreachable!("codes are u32") };
        let mut added = Ok(());
        runs.ends.for_each_counted(rows, |run, count| {
            if added.is_ok() {
                added = add_code(codes[run], count as u64, counts);
            }
        });
        added
    }

    fn lower_bound(
        &self,
        range: Range<usize>,
        below: &Condition,
        _physical: Physical,
        scratch: &mut Scratch,
    ) -> Result<usize> {
        let runs = self.runs(scratch)?;
        if range.is_empty() {
            return Ok(range.start);
        }
        let values = runs.values.as_values();
        let (mut first, mut end) = (runs.ends.index_of(range.start), runs.ends.index_of(range.end - 1) + 1);
        while first < end {
            let middle = first + (end - first) / 2;
            if below.passes(values, middle) { first = middle + 1 } else { end = middle }
        }
        let start = if first == 0 { 0 } else { runs.ends.0[first - 1] as usize };
        Ok(start.clamp(range.start, range.end))
    }
}

/// Finds the runs of rows, from the last one on where rows ascend.
#[derive(Debug, Default)]
struct RunCursor {
    index: usize,
}

impl RunCursor {
    fn seek(&mut self, ends: &[u32], row: u32) -> usize {
        let start = if self.index == 0 { 0 } else { ends[self.index - 1] };
        if row < start {
            self.index = ends.partition_point(|&end| end <= row);
        } else if row >= ends[self.index] {
            // Rows mostly ascend, and to one of the next runs.
            let (mut from, mut step) = (self.index + 1, 1);
            while ends.get(from + step - 1).is_some_and(|&end| end <= row) {
                from += step;
                step *= 2;
            }
            let to = ends.len().min(from + step);
            self.index = from + ends[from..to].partition_point(|&end| end <= row);
        }
        self.index
    }
}
