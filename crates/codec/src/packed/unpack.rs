//! Numbers of one vector, unpacked into the narrowest width that holds them.

use super::bare::{number_of_full, unpack_full};
use super::directory::{PLAIN_WIDTH, POINT_STEPS, PackedVector};
use super::exceptions::Patch;
use crate::VECTOR_LEN;
use crate::bit_packing::Lane;
use crate::bit_stream::read_one;
use crate::fixed::{Fixed, Integer};
use crate::fused::Fused;
use crate::scratch::Unpacked;
use std::ops::Range;

/// Unpacked numbers, exceptions not yet patched.
#[derive(Debug)]
pub(crate) enum Numbers<'s> {
    /// All are zero.
    Zero,
    U8(&'s mut [u8]),
    U16(&'s mut [u16]),
    U32(&'s mut [u32]),
    U64(&'s mut [u64]),
    /// 16 bytes each, as stored.
    Plain,
}

/// Unpacks `vector` into scratch.
pub(crate) fn unpack<'s, T: Integer>(vector: &PackedVector<'_, T>, room: &'s mut Unpacked) -> Numbers<'s> {
    unpack_numbers(vector.packed, vector.bit_width, vector.count, room)
}

/// Unpacks `count` numbers of `width` bits into scratch.
pub(crate) fn unpack_numbers<'s>(packed: &[u8], width: usize, count: usize, room: &'s mut Unpacked) -> Numbers<'s> {
    match width {
        0 => Numbers::Zero,
        1..=8 => Numbers::U8(unpack_into(packed, width, count, &mut room.bytes)),
        9..=16 => Numbers::U16(unpack_into(packed, width, count, &mut room.halves)),
        17..=32 => Numbers::U32(unpack_into(packed, width, count, &mut room.words)),
        33..=64 => Numbers::U64(unpack_into(packed, width, count, &mut room.doubles)),
        _ => Numbers::Plain,
    }
}

/// Unpacks `count` numbers of `width` bits, which `L` holds.
pub(crate) fn unpack_into<'s, L: Lane>(
    packed: &[u8],
    width: usize,
    count: usize,
    out: &'s mut [L; VECTOR_LEN],
) -> &'s mut [L] {
    if count == VECTOR_LEN {
        L::unpack(packed, width, L::default(), out);
    } else {
        for (index, slot) in out[..count].iter_mut().enumerate() {
            *slot = L::from_delta(read_one(packed, width, index));
        }
    }
    &mut out[..count]
}

/// The value at `index`, exceptions left aside, steps not summed.
pub(crate) fn unpack_one<T: Integer>(vector: &PackedVector<'_, T>, index: usize) -> T {
    if vector.bit_width == PLAIN_WIDTH {
        return vector.base.add(T::from_bits(i128::read(&vector.packed[16 * index..]).bits()));
    }
    vector.base.add(T::from_delta(number_at(vector, index)))
}

/// The number at `index`, of a width that is not plain.
pub(crate) fn number_at<T: Integer>(vector: &PackedVector<'_, T>, index: usize) -> u64 {
    let (packed, width) = (vector.packed, vector.bit_width);
    match width {
        0 => 0,
        _ if vector.count < VECTOR_LEN => read_one(packed, width, index),
        _ => number_of_full(packed, width, index),
    }
}

/// The value at `index` of a vector of steps that has entry points, or of few steps.
pub(crate) fn value_of_steps<T: Integer>(vector: &PackedVector<'_, T>, index: usize) -> T {
    let (point, mut value) = vector.point_before(index);
    let (packed, width, count) = (vector.packed, vector.bit_width, index - point);
    // Steps point + 1 ..= index. The number of the point itself is taken with the others where that is quicker.
    value = value.add(T::cut(vector.base.wide().wrapping_mul(count as i128)));
    let numbers = match width {
        0 => 0,
        PLAIN_WIDTH => {
            let steps = packed[16 * (point + 1)..16 * (index + 1)].chunks_exact(16);
            steps.fold(0u128, |sum, bytes| sum.wrapping_add(i128::read(bytes).bits()))
        }
        _ if vector.count < VECTOR_LEN => {
            (point + 1..=index).map(|index| u128::from(read_one(packed, width, index))).sum()
        }
        _ => {
            let group = point / POINT_STEPS;
            let sum = match width {
                1..=8 => u8::sum_of_first(packed, width, group, count + 1),
                9..=16 => u16::sum_of_first(packed, width, group, count + 1),
                17..=32 => u32::sum_of_first(packed, width, group, count + 1),
                _ => u64::sum_of_first(packed, width, group, count + 1),
            };
            sum - u128::from(number_at(vector, point))
        }
    };
    value = value.add(T::from_bits(numbers));
    if !vector.is_unpatched() {
        vector.exceptions.for_each_from(point / POINT_STEPS, |position, patch| {
            if position > point && position <= index {
                value = value.add(match patch {
                    Patch::Add(missing) => missing,
                    Patch::Value(step) => step.sub(unpack_one(vector, position)),
                });
            }
        });
    }
    value
}

/// Writes the values of `range` of the vector to `out`, exceptions patched, steps not summed.
pub(crate) fn decode<T: Integer>(
    vector: &PackedVector<'_, T>,
    range: Range<usize>,
    out: &mut [T],
    room: &mut Unpacked,
) {
    if let Ok(out) = <&mut [T; VECTOR_LEN]>::try_from(&mut *out)
        && (1..=64).contains(&vector.bit_width)
    {
        // All of a full vector: straight to where it is wanted.
        unpack_full(vector.packed, vector.bit_width, vector.base, out);
        return vector.exceptions.patch_vector(out);
    }
    fn add<T: Integer, L: Lane>(base: T, numbers: &[L], out: &mut [T]) {
        for (out, &number) in out.iter_mut().zip(numbers) {
            *out = base.add(T::from_delta(number.into()));
        }
    }
    match unpack(vector, room) {
        Numbers::Zero => out.fill(vector.base),
        Numbers::U8(numbers) => add(vector.base, &numbers[range.clone()], out),
        Numbers::U16(numbers) => add(vector.base, &numbers[range.clone()], out),
        Numbers::U32(numbers) => add(vector.base, &numbers[range.clone()], out),
        Numbers::U64(numbers) => add(vector.base, &numbers[range.clone()], out),
        Numbers::Plain => {
            for (out, bytes) in out.iter_mut().zip(vector.packed[16 * range.start..].chunks_exact(16)) {
                *out = vector.base.add(T::from_bits(i128::read(bytes).bits()));
            }
        }
    }
    patch(vector, range, out);
}

/// Makes values of the exceptions of `range`.
fn patch<T: Integer>(vector: &PackedVector<'_, T>, range: Range<usize>, out: &mut [T]) {
    vector.exceptions.for_each(|position, patch| {
        if range.contains(&position) {
            let slot = &mut out[position - range.start];
            *slot = match patch {
                Patch::Value(value) => value,
                Patch::Add(missing) => slot.add(missing),
            };
        }
    });
}
