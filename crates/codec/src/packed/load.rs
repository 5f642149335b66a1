//! Packed numbers handed out as they are: a base and narrow deltas.

use super::bare::BareVector;
use super::directory::PackedVector;
use super::exceptions::Patch;
use super::unpack::{self, Numbers};
use crate::bit_packing::Lane;
use crate::fixed::Integer;
use crate::scratch::Unpacked;
use crate::values_mut::ValuesMut;
use crate::{Encoded, Narrow, Physical, VECTOR_LEN, ValuesBuf};
use std::ops::Range;

/// Gives `range` of the vector as a constant or as base and deltas; false (and `out` unspecified) where it must be flat.
pub(crate) fn load<T: Integer>(
    vector: &PackedVector<'_, T>,
    range: Range<usize>,
    physical: Physical,
    out: &mut Encoded,
    room: &mut Unpacked,
) -> bool {
    if vector.bit_width == 0 && vector.is_unpatched() {
        load_constant(vector.base, physical, out);
        return true;
    }
    let base = vector.base.wide();
    let packed_last = base.saturating_add((1i128 << vector.bit_width.min(64)) - 1);
    let (mut least, mut greatest, mut patched) = (base, packed_last, !vector.is_unpatched());
    if let Some(reach) = vector.exceptions.reach() {
        greatest = base.saturating_add(i128::try_from(reach).unwrap_or(i128::MAX));
    } else {
        patched = false;
        vector.for_each_exception(|position, value| {
            if range.contains(&position) {
                (least, greatest, patched) = (least.min(value.wide()), greatest.max(value.wide()), true);
            }
        });
    }
    // A frame may reach beyond the type, its values do not: patching counts on lanes no wider than the type.
    let reach = greatest.min(T::MAX.wide()).saturating_sub(least);
    if vector.bit_width > 32 || reach > i128::from(u32::MAX) {
        return false;
    }
    let deltas = out.deltas_above(least);
    let numbers = unpack::unpack(vector, room);
    if !patched {
        copy(numbers, range, deltas);
        return true;
    }
    match reach {
        0..=0xff => patch(vector, numbers, range, least, deltas.as_u8()),
        0x100..=0xffff => patch(vector, numbers, range, least, deltas.as_u16()),
        _ => patch(vector, numbers, range, least, deltas.as_u32()),
    }
    true
}

/// [`load`] of a bare vector.
pub(super) fn load_bare<T: Integer>(
    vector: &BareVector<'_, T>,
    range: Range<usize>,
    physical: Physical,
    out: &mut Encoded,
    room: &mut Unpacked,
) -> bool {
    match vector.bit_width {
        0 => load_constant(vector.base, physical, out),
        1..=32 if range.len() == VECTOR_LEN => {
            let deltas = out.deltas_above(vector.base.wide());
            match vector.bit_width {
                1..=8 => unpack_all(vector, deltas.u8_vector()),
                9..=16 => unpack_all(vector, deltas.u16_vector()),
                _ => unpack_all(vector, deltas.u32_vector()),
            }
        }
        1..=32 => {
            let deltas = out.deltas_above(vector.base.wide());
            copy(unpack::unpack_numbers(vector.packed, vector.bit_width, VECTOR_LEN, room), range, deltas);
        }
        _ => return false,
    }
    true
}

/// Unpacks all numbers to where they are wanted.
fn unpack_all<T: Integer, L: Lane>(vector: &BareVector<'_, T>, out: &mut [L; VECTOR_LEN]) {
    L::unpack(vector.packed, vector.bit_width, L::default(), out);
}

/// Makes `out` one value that stands for all.
fn load_constant<T: Integer>(constant: T, physical: Physical, out: &mut Encoded) {
    if !matches!(out, Encoded::Constant(_)) {
        *out = Encoded::Constant(ValuesBuf::new(physical));
    }
    if let Encoded::Constant(value) = out {
        T::slice_mut(ValuesMut::over(value, physical, 1))[0] = constant;
    }
}

/// Makes `deltas` the numbers of `range`.
fn copy(numbers: Numbers<'_>, range: Range<usize>, deltas: &mut Narrow) {
    match numbers {
        Numbers::Zero => deltas.as_u8().resize(range.len(), 0),
        Numbers::U8(numbers) => deltas.as_u8().extend_from_slice(&numbers[range]),
        Numbers::U16(numbers) => deltas.as_u16().extend_from_slice(&numbers[range]),
        Numbers::U32(numbers) => deltas.as_u32().extend_from_slice(&numbers[range]),
        Numbers::U64(_) | Numbers::Plain => unreachable!("wider than 32 bits is flat"),
    }
}

/// Appends distances from `least`, exceptions included, to `out`, which is empty.
fn patch<T: Integer, L: Lane>(
    vector: &PackedVector<'_, T>,
    numbers: Numbers<'_>,
    range: Range<usize>,
    least: i128,
    out: &mut Vec<L>,
) {
    fn raised<N: Lane, L: Lane>(numbers: &[N], by: u64, out: &mut Vec<L>) {
        out.extend(numbers.iter().map(|&number| L::from_delta(number.into() + by)));
    }
    let by = vector.base.wide().wrapping_sub(least) as u64;
    match numbers {
        Numbers::Zero => out.resize(range.len(), L::from_delta(by)),
        Numbers::U8(numbers) => raised(&numbers[range.clone()], by, out),
        Numbers::U16(numbers) => raised(&numbers[range.clone()], by, out),
        Numbers::U32(numbers) => raised(&numbers[range.clone()], by, out),
        Numbers::U64(_) | Numbers::Plain => unreachable!("wider than 32 bits is flat"),
    }
    vector.exceptions.for_each(|position, patch| {
        if range.contains(&position) {
            let slot = &mut out[position - range.start];
            *slot = match patch {
                Patch::Value(value) => L::from_delta(value.wide().wrapping_sub(least) as u64),
                Patch::Add(missing) => slot.add(L::from_delta(missing.to_delta())),
            };
        }
    });
}
