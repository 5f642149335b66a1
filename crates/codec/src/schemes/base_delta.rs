//! Base and deltas: integers as distances of one, two, four or eight whole bytes from the least value of their vector.
//!
//! Pekhimenko et al., USENIX ATC 2018 (TerseCades), section 3.3. Beside `for` it is up to a byte larger, and nothing has to
//! be unpacked: decoding widens and adds, and filters compare the bytes as they lie there, four or eight times as many at
//! once as values. We differ in three points. A batch is a vector of 1024 values. Deltas count in the greatest unit that
//! divides them all, so seconds kept in microseconds take no more than seconds. And where the paper leaves out deltas that
//! do not matter, because values are only asked for their window, `base_delta(60000000)` rounds values down to multiples of
//! the window first: a vector inside one window has no deltas, and any window of that length gives what it gave before.
//!
//! Input: integers. Output: docs/format/codecs/base_delta.md. Cost: one pass to measure, one for the unit (which ends early
//! where it is one), one to write.

use crate::condition::{Condition, IntegerCondition, Prepared};
use crate::encoder::Encoder;
use crate::fixed::{Fixed, Integer, for_integers};
use crate::isa::each_isa;
use crate::kernels::bounds;
use crate::loss::Loss;
use crate::node::{Cursor, Node};
use crate::scheme::{DecodeCost, Reader, Scheme, filter_decoded, unsuitable};
use crate::scratch::Scratch;
use crate::values_mut::ValuesMut;
use crate::{Bitmap, Encoded, Narrow, Physical, Result, VECTOR_LEN, Values, ValuesBuf};
use std::fmt::Debug;
use std::ops::Range;

/// The scheme.
#[derive(Debug)]
pub(crate) struct BaseDelta;

impl Scheme for BaseDelta {
    fn name(&self) -> &'static str {
        "base_delta"
    }

    fn holds(&self, physical: Physical) -> bool {
        physical.is_integer()
    }

    fn decode_rank(&self) -> u32 {
        1
    }

    fn decode_cost(&self, _physical: Physical) -> DecodeCost {
        DecodeCost::of_value(0.1)
    }

    fn parameter(&self) -> Option<&'static str> {
        Some("a window, to whose multiples values are rounded down, such as base_delta(1000)")
    }

    fn loss(&self, parameter: &str) -> Option<Loss> {
        let window: i128 = parameter.parse().ok()?;
        (window > 0).then_some(Loss::Windows(window))
    }

    fn encode(&self, values: Values<'_>, _encoder: &mut Encoder<'_>, out: &mut Vec<u8>) -> Result<()> {
        for_integers!(Values, values, values => write(values, out),
            other => return Err(unsuitable(self, other.physical())));
        Ok(())
    }

    fn open<'a>(&self, node: Node<'a>) -> Result<Box<dyn Reader + 'a>> {
        Ok(match node.physical {
            Physical::I8 => Box::new(BaseDeltaReader::<i8>::open(&node)?),
            Physical::I16 => Box::new(BaseDeltaReader::<i16>::open(&node)?),
            Physical::I32 => Box::new(BaseDeltaReader::<i32>::open(&node)?),
            Physical::I64 => Box::new(BaseDeltaReader::<i64>::open(&node)?),
            Physical::I128 => Box::new(BaseDeltaReader::<i128>::open(&node)?),
            Physical::U8 => Box::new(BaseDeltaReader::<u8>::open(&node)?),
            Physical::U16 => Box::new(BaseDeltaReader::<u16>::open(&node)?),
            Physical::U32 => Box::new(BaseDeltaReader::<u32>::open(&node)?),
            Physical::U64 => Box::new(BaseDeltaReader::<u64>::open(&node)?),
            other => unreachable!("base_delta does not hold {} values", other.name()),
        })
    }
}

/// Bytes that a delta can have; none where all are zero, sixteen where a vector spans more than 64 bits.
const DELTA_BYTES: [usize; 6] = [0, 1, 2, 4, 8, 16];

/// Appends unit, directory and deltas.
fn write<T: Integer>(values: &[T], out: &mut Vec<u8>) {
    let unit = unit_of(values);
    T::from_bits(unit).write(out);
    let entry_bytes = T::BYTES + 5;
    let directory_at = out.len();
    out.resize(directory_at + values.len().div_ceil(VECTOR_LEN) * entry_bytes, 0);
    let data_at = out.len();
    for (index, vector) in values.chunks(VECTOR_LEN).enumerate() {
        let (min, max) = bounds(vector);
        let greatest = max.sub(min).bits() / unit;
        let needed = (u128::BITS - greatest.leading_zeros()).div_ceil(8) as usize;
        let delta_bytes = DELTA_BYTES.into_iter().find(|bytes| *bytes >= needed).unwrap_or(16);
        let mut entry = Vec::with_capacity(entry_bytes);
        min.write(&mut entry);
        ((out.len() - data_at) as u32).write(&mut entry);
        entry.push(delta_bytes as u8);
        out[directory_at + index * entry_bytes..][..entry_bytes].copy_from_slice(&entry);
        let start = out.len();
        out.resize(start + delta_bytes * vector.len(), 0);
        let deltas = &mut out[start..];
        match delta_bytes {
            0 => {}
            1 => narrow::<T, [u8; 1]>(vector, min, unit, deltas.as_chunks_mut().0),
            2 => narrow::<T, [u8; 2]>(vector, min, unit, deltas.as_chunks_mut().0),
            4 => narrow::<T, [u8; 4]>(vector, min, unit, deltas.as_chunks_mut().0),
            8 => narrow::<T, [u8; 8]>(vector, min, unit, deltas.as_chunks_mut().0),
            _ => narrow::<T, [u8; 16]>(vector, min, unit, deltas.as_chunks_mut().0),
        }
    }
}

/// The greatest number that divides the distances of all values from the first one; 1 where they are equal.
fn unit_of<T: Integer>(values: &[T]) -> u128 {
    let Some(&first) = values.first() else { return 1 };
    let mut unit = 0u128;
    for &value in values {
        let distance = if value >= first { value.sub(first) } else { first.sub(value) }.bits();
        if unit == 0 || !is_multiple(distance, unit) {
            unit = greatest_divisor(distance, unit);
        }
        if unit == 1 {
            return 1;
        }
    }
    unit.max(1)
}

/// Division of 128 bits is slow, and seldom needed.
fn is_multiple(number: u128, unit: u128) -> bool {
    match (u64::try_from(number), u64::try_from(unit)) {
        (Ok(number), Ok(unit)) => number.is_multiple_of(unit),
        _ => number.is_multiple_of(unit),
    }
}

fn greatest_divisor(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// A delta as it lies in the file.
trait Delta: Copy + Send + Sync {
    /// The number in it, no wider than it is.
    type Number: Integer;
    fn number(self) -> Self::Number;
    fn of(number: u128) -> Self;
}

macro_rules! deltas {
    ($($bytes:literal => $native:ty, $number:ty);*) => {$(
        impl Delta for [u8; $bytes] {
            type Number = $number;

            #[inline(always)]
            fn number(self) -> $number {
                <$native>::from_le_bytes(self) as $number
            }

            #[inline(always)]
            fn of(number: u128) -> Self {
                (number as $native).to_le_bytes()
            }
        }
    )*};
}

deltas! { 1 => u8, u8; 2 => u16, u16; 4 => u32, u32; 8 => u64, u64; 16 => u128, i128 }

/// Runs `$body` with `$deltas` bound to the deltas in `$vector`, of whichever width; `$none` where there are none.
macro_rules! with_deltas {
    ($vector:expr, $deltas:ident => $body:expr, $none:expr) => {{
        let (delta_bytes, bytes) = ($vector.delta_bytes, $vector.deltas);
        match delta_bytes {
            0 => $none,
            1 => {
                let $deltas = bytes.as_chunks::<1>().0;
                $body
            }
            2 => {
                let $deltas = bytes.as_chunks::<2>().0;
                $body
            }
            4 => {
                let $deltas = bytes.as_chunks::<4>().0;
                $body
            }
            8 => {
                let $deltas = bytes.as_chunks::<8>().0;
                $body
            }
            _ => {
                let $deltas = bytes.as_chunks::<16>().0;
                $body
            }
        }
    }};
}

each_isa! {
    /// Writes the distance of each value from `base`, in units.
    fn narrow<T: Integer, D: Delta>(values: &[T], base: T, unit: u128, deltas: &mut [D]) = narrow_body;

    /// Writes the value of each delta.
    fn widen<T: Integer, D: Delta>(deltas: &[D], base: T, unit: u128, out: &mut [T]) = widen_body;
}

#[inline(always)]
fn narrow_body<T: Integer, D: Delta>(values: &[T], base: T, unit: u128, deltas: &mut [D]) {
    match u64::try_from(unit) {
        Ok(1) => {
            for (delta, value) in deltas.iter_mut().zip(values) {
                *delta = D::of(value.sub(base).bits());
            }
        }
        Ok(unit) if T::BYTES <= 8 => {
            for (delta, value) in deltas.iter_mut().zip(values) {
                *delta = D::of(u128::from(value.sub(base).to_delta() / unit));
            }
        }
        _ => {
            for (delta, value) in deltas.iter_mut().zip(values) {
                *delta = D::of(value.sub(base).bits() / unit);
            }
        }
    }
}

#[inline(always)]
fn widen_body<T: Integer, D: Delta>(deltas: &[D], base: T, unit: u128, out: &mut [T]) {
    if unit == 1 {
        for (out, delta) in out.iter_mut().zip(deltas) {
            *out = base.add(T::from_bits(delta.number().bits()));
        }
    } else {
        for (out, delta) in out.iter_mut().zip(deltas) {
            *out = value_of(*delta, base, unit);
        }
    }
}

#[inline(always)]
fn value_of<T: Integer, D: Delta>(delta: D, base: T, unit: u128) -> T {
    let number = delta.number();
    base.add(match T::BYTES {
        16 => T::from_bits(number.bits().wrapping_mul(unit)),
        _ => T::from_delta(number.to_delta().wrapping_mul(unit as u64)),
    })
}

/// A vector with its deltas in place.
#[derive(Clone, Copy, Debug)]
struct DeltaVector<'a, T> {
    base: T,
    delta_bytes: usize,
    deltas: &'a [u8],
}

/// An opened node. Every entry of the directory was checked.
#[derive(Debug)]
struct BaseDeltaReader<'a, T> {
    unit: u128,
    value_count: usize,
    entries: Vec<(T, u32, u8)>,
    data: &'a [u8],
}

impl<'a, T: Integer> BaseDeltaReader<'a, T> {
    fn open(node: &Node<'a>) -> Result<Self> {
        let mut cursor = node.cursor();
        let unit = T::read(cursor.take(T::BYTES, "unit")?).bits();
        if unit == 0 {
            return Err(cursor.damaged("its unit is 0"));
        }
        let entry_bytes = T::BYTES + 5;
        let vectors = node.value_count.div_ceil(VECTOR_LEN);
        let directory = cursor.take(vectors * entry_bytes, "directory")?;
        let entries = directory.chunks_exact(entry_bytes).map(|entry| {
            let (base, rest) = entry.split_at(T::BYTES);
            (T::read(base), u32::read(rest), rest[4])
        });
        let entries: Vec<(T, u32, u8)> = entries.collect();
        let reader = BaseDeltaReader { unit, value_count: node.value_count, entries, data: cursor.rest() };
        for (index, (_, offset, delta_bytes)) in reader.entries.iter().enumerate() {
            let bytes = usize::from(*delta_bytes);
            if !DELTA_BYTES.contains(&bytes) || bytes > T::BYTES {
                let what = format!("deltas of {bytes} bytes for values of {}", T::BYTES);
                return Err(cursor.damaged(what));
            }
            let mut rest = Cursor { bytes: reader.data, ..cursor.clone() };
            rest.take(*offset as usize, "offset of a vector")?;
            rest.take(bytes * reader.count(index), "deltas")?;
        }
        Ok(reader)
    }

    /// Values in the vector at `index`.
    fn count(&self, index: usize) -> usize {
        (self.value_count - index * VECTOR_LEN).min(VECTOR_LEN)
    }

    /// The values of `piece` of the vector at `index`.
    fn vector(&self, index: usize, piece: Range<usize>) -> DeltaVector<'a, T> {
        let (base, offset, delta_bytes) = self.entries[index];
        let (start, delta_bytes) = (offset as usize, usize::from(delta_bytes));
        let deltas = &self.data[start + delta_bytes * piece.start..start + delta_bytes * piece.end];
        DeltaVector { base, delta_bytes, deltas }
    }

    /// The vectors that `range` touches, each with the part of it that is asked for, and its length.
    fn pieces(&self, range: Range<usize>) -> impl Iterator<Item = (DeltaVector<'a, T>, usize)> {
        let vectors = if range.is_empty() { 0..0 } else { range.start / VECTOR_LEN..range.end.div_ceil(VECTOR_LEN) };
        vectors.map(move |index| {
            let start = index * VECTOR_LEN;
            let piece = range.start.max(start) - start..range.end.min(start + VECTOR_LEN) - start;
            (self.vector(index, piece.clone()), piece.len())
        })
    }

    /// Appends one bit per value.
    fn filter_vector(&self, vector: &DeltaVector<'a, T>, len: usize, condition: &IntegerCondition, out: &mut Bitmap) {
        let (base, unit) = (vector.base, self.unit);
        if vector.delta_bytes == 0 {
            return out.extend_with(len, condition.passes(base.wide()));
        }
        if let Some(on_deltas) = self.on_deltas(vector, condition) {
            return with_deltas!(vector, deltas => on_deltas.evaluate_by(deltas, |delta| delta.number(), out), ());
        }
        with_deltas!(vector, deltas => condition.evaluate_by(deltas, |delta| value_of(delta, base, unit), out), ());
    }

    /// The condition on deltas; `None` where it has to be tested on values.
    fn on_deltas(&self, vector: &DeltaVector<'a, T>, condition: &IntegerCondition) -> Option<IntegerCondition> {
        let (base, unit) = (vector.base.wide(), i128::try_from(self.unit).ok()?);
        // Distances beyond 127 bits are not to be had here.
        let greatest = 1i128.checked_shl(8 * vector.delta_bytes as u32)?.checked_sub(1)?;
        let reach = greatest.checked_mul(unit)?;
        // Rounded towards what is inside.
        let low_of = |low: i128| {
            let distance = low.saturating_sub(base);
            distance.div_euclid(unit) + i128::from(distance.rem_euclid(unit) > 0)
        };
        let high_of = |high: i128| high.saturating_sub(base).div_euclid(unit);
        Some(match condition {
            IntegerCondition::Within(low, high) => IntegerCondition::Within(low_of(*low), high_of(*high)),
            IntegerCondition::Outside(low, high) => IntegerCondition::Outside(low_of(*low), high_of(*high)),
            IntegerCondition::OneOf(constants) => {
                // Of a long list, a vector can hold few.
                let last = base.saturating_add(reach);
                let first = constants.partition_point(|constant| *constant < base);
                let end = constants.partition_point(|constant| *constant <= last);
                let distances = constants[first..end].iter().map(|constant| constant - base);
                let on_grid = distances.filter(|distance| distance % unit == 0);
                IntegerCondition::OneOf(on_grid.map(|distance| distance / unit).collect::<Vec<_>>().into())
            }
            IntegerCondition::Marked(_) => return None,
        })
    }
}

impl<T: Integer> Reader for BaseDeltaReader<'_, T> {
    fn describe(&self) -> String {
        let widest = self.entries.iter().map(|(_, _, delta_bytes)| *delta_bytes).max().unwrap_or(0);
        match self.unit {
            1 => format!("base_delta[{widest}]"),
            unit => format!("base_delta[{widest} x {unit}]"),
        }
    }

    fn decode(&self, range: Range<usize>, out: ValuesMut<'_>, _scratch: &mut Scratch) -> Result<()> {
        let mut rest = T::slice_mut(out);
        for (vector, len) in self.pieces(range) {
            let (out, after) = rest.split_at_mut(len);
            rest = after;
            with_deltas!(vector, deltas => widen(deltas, vector.base, self.unit, out), out.fill(vector.base));
        }
        Ok(())
    }

    fn gather(&self, rows: &[u32], out: ValuesMut<'_>, _scratch: &mut Scratch) -> Result<()> {
        for (slot, row) in T::slice_mut(out).iter_mut().zip(rows) {
            let (index, position) = (*row as usize / VECTOR_LEN, *row as usize % VECTOR_LEN);
            let vector = self.vector(index, position..position + 1);
            *slot = with_deltas!(vector, deltas => value_of(deltas[0], vector.base, self.unit), vector.base);
        }
        Ok(())
    }

    fn load(&self, range: Range<usize>, physical: Physical, out: &mut Encoded, scratch: &mut Scratch) -> Result<()> {
        let one_vector = !range.is_empty() && range.start / VECTOR_LEN == (range.end - 1) / VECTOR_LEN;
        if let (true, Some((vector, len))) = (one_vector, self.pieces(range.clone()).next()) {
            let (bytes, base) = (vector.deltas, vector.base.wide());
            if vector.delta_bytes == 0 {
                if !matches!(out, Encoded::Constant(_)) {
                    *out = Encoded::Constant(ValuesBuf::new(physical));
                }
                if let Encoded::Constant(value) = out {
                    T::slice_mut(ValuesMut::over(value, physical, 1))[0] = vector.base;
                }
                return Ok(());
            }
            if self.unit == 1 && vector.delta_bytes <= 4 {
                if !matches!(out, Encoded::BaseDelta { .. }) {
                    *out = Encoded::BaseDelta { base: 0, deltas: Narrow::U8(Vec::new()) };
                }
                let Encoded::BaseDelta { base: base_out, deltas } = out else { unreachable!("it was just made so") };
                *base_out = base;
                debug_assert_eq!(bytes.len(), len * vector.delta_bytes);
                match vector.delta_bytes {
                    1 => deltas.as_u8().extend_from_slice(bytes),
                    2 => deltas.as_u16().extend(bytes.as_chunks().0.iter().map(|delta| u16::from_le_bytes(*delta))),
                    _ => deltas.as_u32().extend(bytes.as_chunks().0.iter().map(|delta| u32::from_le_bytes(*delta))),
                }
                return Ok(());
            }
        }
        let len = range.len();
        self.decode(range, ValuesMut::over(out.flat(physical), physical, len), scratch)
    }

    fn filter(
        &self,
        range: Range<usize>,
        prepared: &Prepared,
        physical: Physical,
        out: &mut Bitmap,
        scratch: &mut Scratch,
    ) -> Result<bool> {
        let Condition::Integers(condition) = &prepared.condition else {
            filter_decoded(self, range, &prepared.condition, physical, out, scratch)?;
            return Ok(false);
        };
        for (vector, len) in self.pieces(range) {
            self.filter_vector(&vector, len, condition, out);
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::forms;
    use crate::{Block, Choice, encode};

    fn described(values: Values<'_>, choice: &str) -> (String, usize) {
        let mut bytes = Vec::new();
        encode(values, None, &Choice::Forced(choice.to_owned()), &mut bytes).unwrap();
        (Block::open(&bytes).unwrap().describe(), bytes.len())
    }

    #[test]
    fn deltas_count_in_the_unit_that_divides_them() {
        let seconds: Vec<i64> = (0..5000).map(|second| 1_700_000_000_000_123 + second % 200 * 1_000_000).collect();
        let (scheme, bytes) = described(Values::I64(&seconds), "base_delta");
        assert_eq!(scheme, "base_delta[1 x 1000000]");
        assert!(bytes < 5200, "{bytes} bytes");
        let (scheme, _) = described(Values::I8(&[i8::MIN, i8::MAX, i8::MIN]), "base_delta");
        assert_eq!(scheme, "base_delta[1 x 255]");
        assert_eq!(unit_of(&[i128::MIN, i128::MAX]), u128::MAX);
        assert_eq!(unit_of(&[12u8, 30, 18]), 6);
    }

    #[test]
    fn one_window_needs_no_deltas() {
        let times: Vec<i64> = (0..4096).map(|event| 1_700_000_040_000_000 + event * 10_000).collect();
        let (scheme, bytes) = described(Values::I64(&times), "base_delta(60000000)");
        assert!(scheme == "base_delta[0]" && bytes < 150, "{bytes} bytes as {scheme}");
        let times: Vec<i64> = (0..40_960).map(|event| 1_700_000_000_000_000 + event * 10_000).collect();
        let (scheme, bytes) = described(Values::I64(&times), "base_delta(60000000)");
        assert!(scheme == "base_delta[1 x 60000000]" && bytes * 4 < times.len(), "{bytes} bytes as {scheme}");
    }

    #[test]
    fn every_instruction_set_widens_alike() {
        fn agree<T: Integer>(base: T, unit: u128) {
            let numbers: Vec<u128> = (0..1000).map(|i| i * 7919 % 251).collect();
            let mut values = vec![T::default(); numbers.len()];
            let bytes: Vec<[u8; 1]> = numbers.iter().map(|number| Delta::of(*number)).collect();
            for (value, delta) in values.iter_mut().zip(&bytes) {
                *value = base.add(T::from_bits(u128::from(delta[0]).wrapping_mul(unit)));
            }
            forms(|isa| {
                let mut found = vec![T::default(); bytes.len()];
                widen(&bytes, base, unit, &mut found);
                assert_eq!(found, values, "{isa}");
                if (unit * 251) >> (8 * T::BYTES - 1) == 0 {
                    let mut again = vec![[0u8; 1]; bytes.len()];
                    narrow(&found, base, unit, &mut again);
                    assert_eq!(again, bytes, "{isa}");
                }
            });
        }
        agree(-5i8, 1);
        agree(100u16, 7);
        agree(-100_000i32, 1000);
        agree(1i64 << 60, 1_000_000);
        agree(7u64, 1);
        agree(-1i128 << 100, 1 << 70);
    }
}
