//! Three-valued logic on bitmaps: one for true, one for known. What is not known is never true.

use super::machine::{Frame, Presence};
use super::program::Operand;
use super::slot::{Input, Slot};
use sinter_codec::{Bitmap, Physical, Values, ValuesBuf};

/// True where all are true, false where one is false.
pub(super) fn and(parts: &[Operand], frame: Frame<'_>, out: &mut Slot) {
    out.truth.reset(frame.rows, true);
    out.has_nulls = false;
    for &part in parts {
        let (truth, known) = frame.bits(part);
        if known.is_some() || out.has_nulls {
            // Known: both are known, or either is known to be false.
            let mut both = known.map_or_else(|| Bitmap::new(frame.rows, true), Bitmap::clone);
            let mut is_false = both.clone();
            is_false.and_not(truth);
            if out.has_nulls {
                let mut was_false = out.validity.clone();
                was_false.and_not(&out.truth);
                is_false.or(&was_false);
                both.and(&out.validity);
            } else {
                let mut was_false = Bitmap::new(frame.rows, true);
                was_false.and_not(&out.truth);
                is_false.or(&was_false);
            }
            both.or(&is_false);
            out.validity = both;
            out.has_nulls = true;
        }
        out.truth.and(truth);
    }
}

/// True where one is true, false where all are false.
pub(super) fn or(parts: &[Operand], frame: Frame<'_>, out: &mut Slot) {
    out.truth.reset(frame.rows, false);
    out.has_nulls = false;
    for &part in parts {
        let (truth, known) = frame.bits(part);
        out.truth.or(truth);
        if let Some(known) = known {
            if out.has_nulls {
                out.validity.and(known);
            } else {
                out.validity.clone_from(known);
                out.has_nulls = true;
            }
        }
    }
    if out.has_nulls {
        out.validity.or(&out.truth);
    }
}

/// True where it is false.
pub(super) fn not(part: Operand, frame: Frame<'_>, out: &mut Slot) {
    let (truth, known) = frame.bits(part);
    out.truth.clone_from(truth);
    out.truth.invert();
    out.has_nulls = known.is_some();
    if let Some(known) = known {
        out.truth.and(known);
        out.validity.clone_from(known);
    }
}

/// Never NULL itself.
pub(super) fn is_null(presence: Presence<'_>, negated: bool, rows: usize, out: &mut Slot) {
    out.has_nulls = false;
    match presence {
        Presence::Everywhere => out.truth.reset(rows, negated),
        Presence::Nowhere => out.truth.reset(rows, !negated),
        Presence::Where(validity) => {
            out.truth.clone_from(&validity);
            if !negated {
                out.truth.invert();
            }
        }
    }
}

/// 0 and 1 as bits.
pub(super) fn truth(input: Input<'_>, rows: usize, out: &mut Slot) {
    out.set_strict(&[input], rows);
    match input.values {
        Values::U8(values) if input.constant => out.truth.reset(rows, values.first().is_some_and(|&value| value != 0)),
        Values::U8(values) => {
            out.truth.reset(rows, false);
            for (word, values) in out.truth.words_mut().iter_mut().zip(values.chunks(64)) {
                *word = values.iter().enumerate().fold(0, |word, (bit, &value)| word | u64::from(value != 0) << bit);
            }
        }
        _ => out.truth.reset(rows, false),
    }
    known_only(out);
}

/// Bits as 0 and 1.
pub(super) fn truth_values(truth: &Bitmap, values: &mut ValuesBuf) {
    values.reset(Physical::U8);
    if let ValuesBuf::U8(values) = values {
        values.extend((0..truth.len()).map(|row| u8::from(truth.get(row))));
    }
}

/// Clears truth where nothing is known.
pub(super) fn known_only(out: &mut Slot) {
    if out.has_nulls {
        out.truth.and(&out.validity);
    }
}
