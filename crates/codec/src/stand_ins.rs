//! Floats kept as something smaller that stands for them, with exceptions for those that nothing stands for: what `alp`,
//! `fixed_point`, `quantise` and `single` share.
//!
//! ```text
//! +-----------------+---------------------------+-----------+-----------------------+----------------------+
//! | of the scheme   | exception count of each   | stand-ins | positions of          | exceptions           |
//! |                 | vector (u16)              |  (node)   | exceptions (u16 node) | (node)               |
//! +-----------------+---------------------------+-----------+-----------------------+----------------------+
//! ```
//!
//! Parts choose schemes for themselves. At an exception stands its neighbour's stand-in, so that it widens nothing. Where
//! one rule holds for the whole node, filters are answered on the stand-ins, whatever their scheme makes of that.

use crate::condition::{Condition, IntegerCondition, Prepared, float_order};
use crate::encoder::{Encoder, Role};
use crate::fixed::Fixed;
use crate::node::{Cursor, Node, Opened};
use crate::scaled::Float;
use crate::scheme::{Reader, filter_decoded};
use crate::scratch::Scratch;
use crate::values_mut::{Native, ValuesMut};
use crate::{Bitmap, Physical, Result, VECTOR_LEN, ValuesBuf};
use std::fmt::Debug;
use std::mem::take;
use std::ops::Range;
use std::sync::OnceLock;

/// What stand-ins mean.
pub(crate) trait Meaning<F: Float>: Debug + Send + Sync {
    /// Their type.
    type StandIn: Native;

    /// Writes the floats that `stand_ins` of this vector stand for; there are as many.
    fn restore(&self, vector: usize, stand_ins: &[Self::StandIn], out: &mut [F]);

    /// The test that those stand-ins pass whose floats pass `condition`; `None` where there is none for all vectors.
    fn condition(&self, condition: &IntegerCondition) -> Option<Condition>;
}

/// Floats taken apart, vector by vector.
#[derive(Debug)]
pub(crate) struct StandIns<F, S> {
    stand_ins: Vec<S>,
    positions: Vec<u16>,
    exceptions: Vec<F>,
}

impl<F: Float, S: Native> StandIns<F, S> {
    /// For so many values.
    pub(crate) fn with_capacity(value_count: usize) -> Self {
        StandIns { stand_ins: Vec::with_capacity(value_count), positions: Vec::new(), exceptions: Vec::new() }
    }

    /// Takes the next vector. `find` writes a stand-in for each value, and a flag: 1 for those that have none; it returns
    /// whether there are such. Returns how many.
    pub(crate) fn push(
        &mut self,
        vector: &[F],
        find: impl FnOnce(&[F], &mut [S], &mut [u8; VECTOR_LEN]) -> bool,
    ) -> usize {
        let start = self.stand_ins.len();
        self.stand_ins.resize(start + vector.len(), S::default());
        let stand_ins = &mut self.stand_ins[start..];
        let mut flags = [0; VECTOR_LEN];
        if !find(vector, stand_ins, &mut flags) {
            return 0;
        }
        let mut misses = [0; VECTOR_LEN];
        let count = positions(&flags[..vector.len()], &mut misses);
        let misses = &misses[..count];
        // The first that is none, where exceptions begin the vector.
        let first = (0..).zip(misses).take_while(|(index, position)| index == *position).count();
        let first = stand_ins.get(first).copied().unwrap_or_default();
        for &position in misses {
            let position = usize::from(position);
            stand_ins[position] = if position == 0 { first } else { stand_ins[position - 1] };
            self.exceptions.push(vector[position]);
        }
        self.positions.extend_from_slice(misses);
        count
    }

    /// Appends the parts.
    pub(crate) fn write(&self, encoder: &mut Encoder<'_>, out: &mut Vec<u8>) {
        encoder.part(S::values(&self.stand_ins), Role::Values, out);
        encoder.part(u16::values(&self.positions), Role::Counts, out);
        encoder.part(F::values(&self.exceptions), Role::Values, out);
    }
}

/// Writes the positions of the flags that are set to the front of `out`, and returns how many there are. Without a branch, as
/// [`crate::kernels::misses`] does it.
fn positions(flags: &[u8], out: &mut [u16; VECTOR_LEN]) -> usize {
    let mut count = 0;
    for (position, flag) in flags.iter().take(VECTOR_LEN).enumerate() {
        out[count] = position as u16;
        count += usize::from(*flag);
    }
    count
}

/// Takes all values, and appends counts and parts: for schemes whose rule is the same for all vectors.
pub(crate) fn write<F: Float, S: Native>(
    values: &[F],
    mut find: impl FnMut(&[F], &mut [S], &mut [u8; VECTOR_LEN]) -> bool,
    encoder: &mut Encoder<'_>,
    out: &mut Vec<u8>,
) {
    let mut stand_ins = StandIns::with_capacity(values.len());
    for vector in values.chunks(VECTOR_LEN) {
        let exceptions = stand_ins.push(vector, &mut find);
        (exceptions as u16).write(out);
    }
    stand_ins.write(encoder, out);
}

/// Reads the counts that [`write`] wrote.
pub(crate) fn read_counts(cursor: &mut Cursor<'_>, node: &Node<'_>) -> Result<Vec<u16>> {
    let counts = cursor.take(2 * node.value_count.div_ceil(VECTOR_LEN), "exception counts")?;
    Ok(counts.as_chunks().0.iter().map(|count| u16::from_le_bytes(*count)).collect())
}

/// An opened node of stand-ins.
#[derive(Debug)]
pub(crate) struct StandInReader<'a, F, M> {
    scheme: &'static str,
    meaning: M,
    /// Index of the first exception of each vector, then how many there are.
    exception_starts: Vec<usize>,
    stand_ins: Opened<'a>,
    positions: Opened<'a>,
    exceptions: Opened<'a>,
    /// Positions and exceptions of all vectors, decoded when the first one is asked for: a vector has a few, and to find
    /// them in schemes for many takes longer than all the rest.
    decoded: OnceLock<(Vec<u16>, Vec<F>)>,
}

impl<'a, F: Float, M: Meaning<F>> StandInReader<'a, F, M> {
    /// Reads the parts, to the end of the payload; `counts` are the exceptions of each vector.
    pub(crate) fn open(node: &Node<'a>, mut cursor: Cursor<'a>, counts: &[u16], meaning: M) -> Result<Self> {
        let mut exception_starts = Vec::with_capacity(counts.len() + 1);
        exception_starts.push(0);
        let mut exception_count = 0;
        exception_starts.extend(counts.iter().map(|count| {
            exception_count += usize::from(*count);
            exception_count
        }));
        if exception_count > node.value_count {
            return Err(cursor.damaged(format!("{exception_count} exceptions among {} values", node.value_count)));
        }
        let (stand_ins, positions, exceptions) = (cursor.part()?, cursor.part()?, cursor.part()?);
        for (part, physical, value_count, name) in [
            (&stand_ins, M::StandIn::PHYSICAL, node.value_count, "stand-ins"),
            (&positions, Physical::U16, exception_count, "positions"),
            (&exceptions, F::PHYSICAL, exception_count, "exceptions"),
        ] {
            if part.physical != physical || part.value_count != value_count {
                let (found, found_type) = (part.value_count, part.physical.name());
                let what =
                    format!("it has {found} {name} of type {found_type}, not {value_count} of {}", physical.name());
                return Err(cursor.damaged(what));
            }
        }
        cursor.finish()?;
        let scheme = node.entry.name;
        Ok(StandInReader {
            scheme,
            meaning,
            exception_starts,
            stand_ins,
            positions,
            exceptions,
            decoded: OnceLock::new(),
        })
    }

    fn decode_floats(&self, range: Range<usize>, out: &mut [F], scratch: &mut Scratch) -> Result<()> {
        let mut stand_ins = scratch.take_values(M::StandIn::PHYSICAL);
        let mut decoded = Ok(());
        for (vector, piece) in pieces(range.clone()) {
            let rows = vector * VECTOR_LEN + piece.start..vector * VECTOR_LEN + piece.end;
            decoded = self.stand_ins.decode_into(rows.clone(), &mut stand_ins, scratch);
            if decoded.is_err() {
                break;
            }
            let out = &mut out[rows.start - range.start..rows.end - range.start];
            self.meaning.restore(vector, M::StandIn::vec_mut(&mut stand_ins), out);
            decoded = self.for_exceptions(vector, scratch, |position, value| {
                if piece.contains(&position) {
                    out[position - piece.start] = value;
                }
            });
            if decoded.is_err() {
                break;
            }
        }
        scratch.give_values(stand_ins);
        decoded
    }

    fn gather_floats(&self, rows: &[u32], out: &mut [F], scratch: &mut Scratch) -> Result<()> {
        let mut stand_ins = scratch.take_values(M::StandIn::PHYSICAL);
        let target = ValuesMut::over(&mut stand_ins, M::StandIn::PHYSICAL, rows.len());
        let mut gathered = self.stand_ins.reader.gather(rows, target, scratch);
        let mut done = 0;
        for rows in rows.chunk_by(|a, b| *a as usize / VECTOR_LEN == *b as usize / VECTOR_LEN) {
            if gathered.is_err() {
                break;
            }
            let vector = rows[0] as usize / VECTOR_LEN;
            let part = done..done + rows.len();
            done = part.end;
            let out = &mut out[part.clone()];
            self.meaning.restore(vector, &M::StandIn::vec_mut(&mut stand_ins)[part], out);
            gathered = self.exceptions_of(vector, scratch).map(|(positions, values)| {
                if positions.is_empty() {
                    return;
                }
                for (out, &row) in out.iter_mut().zip(rows) {
                    if let Ok(index) = positions.binary_search(&((row as usize % VECTOR_LEN) as u16)) {
                        *out = values[index];
                    }
                }
            });
        }
        scratch.give_values(stand_ins);
        gathered
    }

    /// Shows position and value of each exception of a vector.
    fn for_exceptions(&self, vector: usize, scratch: &mut Scratch, mut visit: impl FnMut(usize, F)) -> Result<()> {
        let (positions, values) = self.exceptions_of(vector, scratch)?;
        positions.iter().zip(values).for_each(|(position, value)| visit(usize::from(*position), *value));
        Ok(())
    }

    /// Positions and values of the exceptions of a vector.
    fn exceptions_of(&self, vector: usize, scratch: &mut Scratch) -> Result<(&[u16], &[F])> {
        let range = self.exception_starts[vector]..self.exception_starts[vector + 1];
        if range.is_empty() {
            return Ok((&[], &[]));
        }
        let (positions, values) = match self.decoded.get() {
            Some(decoded) => decoded,
            None => {
                let (mut positions, mut values) = (ValuesBuf::new(Physical::U16), ValuesBuf::new(F::PHYSICAL));
                self.positions.decode_into(0..self.positions.value_count, &mut positions, scratch)?;
                self.exceptions.decode_into(0..self.exceptions.value_count, &mut values, scratch)?;
                let decoded = (take(u16::vec_mut(&mut positions)), take(F::vec_mut(&mut values)));
                self.decoded.get_or_init(|| decoded)
            }
        };
        Ok((&positions[range.clone()], &values[range]))
    }
}

/// The vectors that `range` touches, each with the part of it that is asked for.
fn pieces(range: Range<usize>) -> impl Iterator<Item = (usize, Range<usize>)> {
    let vectors = if range.is_empty() { 0..0 } else { range.start / VECTOR_LEN..range.end.div_ceil(VECTOR_LEN) };
    vectors.map(move |vector| {
        let start = vector * VECTOR_LEN;
        (vector, range.start.max(start) - start..range.end.min(start + VECTOR_LEN) - start)
    })
}

impl<F: Float, M: Meaning<F>> Reader for StandInReader<'_, F, M> {
    fn describe(&self) -> String {
        let (scheme, stand_ins) = (self.scheme, self.stand_ins.reader.describe());
        if self.exceptions.value_count == 0 {
            return format!("{scheme}({stand_ins})");
        }
        format!("{scheme}({stand_ins}, exceptions {})", self.exceptions.reader.describe())
    }

    fn parts(&self) -> Vec<&Opened<'_>> {
        vec![&self.stand_ins, &self.positions, &self.exceptions]
    }

    fn decode(&self, range: Range<usize>, out: ValuesMut<'_>, scratch: &mut Scratch) -> Result<()> {
        self.decode_floats(range, F::slice_mut(out), scratch)
    }

    fn gather(&self, rows: &[u32], out: ValuesMut<'_>, scratch: &mut Scratch) -> Result<()> {
        self.gather_floats(rows, F::slice_mut(out), scratch)
    }

    fn prepare(&self, condition: &Condition, scratch: &mut Scratch) -> Result<Prepared> {
        let on_stand_ins = match condition {
            Condition::Floats(condition) => self.meaning.condition(condition),
            _ => None,
        };
        let part = match on_stand_ins {
            Some(on_stand_ins) => Some(Box::new(self.stand_ins.prepare(&on_stand_ins, scratch)?)),
            None => None,
        };
        Ok(Prepared { part, ..Prepared::plain(condition.clone()) })
    }

    fn filter(
        &self,
        range: Range<usize>,
        prepared: &Prepared,
        physical: Physical,
        out: &mut Bitmap,
        scratch: &mut Scratch,
    ) -> Result<bool> {
        let (Some(part), Condition::Floats(condition)) = (&prepared.part, &prepared.condition) else {
            filter_decoded(self, range, &prepared.condition, physical, out, scratch)?;
            return Ok(false);
        };
        let start = out.len();
        let is_native = self.stand_ins.filter(range.clone(), part, out, scratch)?;
        for (vector, piece) in pieces(range.clone()) {
            self.for_exceptions(vector, scratch, |position, value| {
                if piece.contains(&position) {
                    let row = vector * VECTOR_LEN + position;
                    let passes = condition.passes(i128::from(float_order(value.wide())));
                    out.set(start + row - range.start, passes);
                }
            })?;
        }
        Ok(is_native)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exception_widens_nothing() {
        let mut stand_ins: StandIns<f64, i64> = StandIns::with_capacity(8);
        let count = stand_ins.push(&[f64::NAN, 0.5, 7.0, 8.0, 1e300, f64::NAN, 9.0], |_, integers, flags| {
            integers.copy_from_slice(&[-1, -1, 7, 8, -1, -1, 9]);
            flags[..7].copy_from_slice(&[1, 1, 0, 0, 1, 1, 0]);
            true
        });
        assert_eq!((count, &stand_ins.stand_ins[..]), (4, &[7, 7, 7, 8, 8, 8, 9][..]));
        assert_eq!(stand_ins.positions, [0, 1, 4, 5]);
        assert_eq!(stand_ins.exceptions[1..3], [0.5, 1e300]);
        let all = stand_ins.push(&[f64::NAN; 2], |_, integers, flags| {
            integers.copy_from_slice(&[5, 6]);
            flags[..2].fill(1);
            true
        });
        assert_eq!((all, &stand_ins.stand_ins[7..]), (2, &[0, 0][..]));
    }
}
