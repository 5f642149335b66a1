//! Full vectors whose exceptions all become values at once: what is missing is added where it is missing.

use super::exceptions::ENTRY_LEN;
use crate::VECTOR_LEN;
use crate::bit_stream::stream_bytes;
use crate::fixed::{Fixed, Integer};
use crate::isa::each_isa;

/// Bits of a number at most: those of a value whose exceptions are patched here.
pub(super) const WIDTH_MAX: usize = 64;

/// Bits of a number that eight bytes hold wherever it begins.
const NARROW_MAX: usize = 57;

/// What is missing of more exceptions than have wide places, and where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Excess<'a> {
    /// All bytes of the exceptions.
    pub(super) bytes: &'a [u8],
    pub(super) count: usize,
    /// Bits of each, up to [`WIDTH_MAX`].
    pub(super) width: usize,
    /// Whether exceptions may lie below the base.
    pub(super) is_signed: bool,
}

impl Excess<'_> {
    /// Adds it, moved up by `shift`, to what was unpacked of a full vector.
    #[inline]
    pub(super) fn add_to<T: Integer>(self, shift: usize, out: &mut [T; VECTOR_LEN]) {
        add(self, shift as u32, T::unsigned_vector(out));
    }
}

each_isa! {
    fn add<T: Integer>(excess: Excess<'_>, shift: u32, out: &mut [T; VECTOR_LEN]) = add_body;
}

#[inline(always)]
fn add_body<T: Integer>(excess: Excess<'_>, shift: u32, out: &mut [T; VECTOR_LEN]) {
    let signed = |missing: u64| (missing >> 1) ^ (missing & 1).wrapping_neg();
    let unsigned = |missing: u64| missing;
    // As many as one window of 64 bits holds: groups of four begin at half bytes, groups of two at quarters.
    match (excess.is_signed, excess.width) {
        (false, ..=16) => add_each::<T, 4>(excess, shift, out, narrow_window, unsigned),
        (false, ..=30) => add_each::<T, 2>(excess, shift, out, narrow_window, unsigned),
        (false, ..=NARROW_MAX) => add_each::<T, 1>(excess, shift, out, narrow_window, unsigned),
        (false, _) => add_each::<T, 1>(excess, shift, out, wide_window, unsigned),
        (true, ..=16) => add_each::<T, 4>(excess, shift, out, narrow_window, signed),
        (true, ..=30) => add_each::<T, 2>(excess, shift, out, narrow_window, signed),
        (true, ..=NARROW_MAX) => add_each::<T, 1>(excess, shift, out, narrow_window, signed),
        (true, _) => add_each::<T, 1>(excess, shift, out, wide_window, signed),
    }
}

/// The bits from `bit` on, as many as eight bytes hold of them. What is behind the numbers, a byte for each entry point and
/// each exception, is never less.
#[inline(always)]
fn narrow_window(bytes: &[u8], bit: usize) -> u64 {
    bytes.get(bit / 8..bit / 8 + 8).map_or(0, u64::read) >> (bit % 8)
}

/// 64 bits from `bit` on. What is behind the last number is never less than it takes: more exceptions than have wide places.
#[inline(always)]
fn wide_window(bytes: &[u8], bit: usize) -> u64 {
    (bytes.get(bit / 8..bit / 8 + 16).map_or(0, i128::read) >> (bit % 8)) as u64
}

/// Places that are worked out at once.
const PLACES_AT_ONCE: usize = 32;

/// No branch depends on where exceptions are: the positions of some are worked out side by side, then each is patched.
#[inline(always)]
fn add_each<T: Integer, const AT_ONCE: usize>(
    excess: Excess<'_>,
    shift: u32,
    out: &mut [T; VECTOR_LEN],
    window: impl Fn(&[u8], usize) -> u64,
    value: impl Fn(u64) -> u64,
) {
    let Excess { bytes, count, width, .. } = excess;
    const ENTRIES: usize = VECTOR_LEN / ENTRY_LEN;
    let places_at = stream_bytes(count, width) + ENTRIES;
    // Exceptions before each entry point.
    let (mut before, mut sum) = ([0i16; ENTRIES], 0);
    for (before, entry) in before.iter_mut().zip(&bytes[places_at - ENTRIES..places_at]) {
        *before = sum;
        sum += i16::from(*entry);
    }
    let (mut done, mut bit) = (0, 0);
    while done < count {
        // The last of a group are those wanted; what stands before them is passed over.
        let end = (done + PLACES_AT_ONCE).min(count);
        let places: [u8; PLACES_AT_ONCE] = last_bytes(&bytes[..places_at + end]);
        let first = end as i16 - PLACES_AT_ONCE as i16;
        let mut positions = [0u16; PLACES_AT_ONCE];
        for index in 0..PLACES_AT_ONCE {
            let mut entries = 0;
            for before in &before[1..] {
                entries += u16::from(first + index as i16 >= *before);
            }
            positions[index] = entries * ENTRY_LEN as u16 + u16::from(places[index]) % ENTRY_LEN as u16;
        }
        let (groups, rest) = positions[PLACES_AT_ONCE - (end - done)..].as_chunks::<AT_ONCE>();
        for group in groups {
            add_some(group, window(bytes, bit), width, shift, out, &value);
            bit += AT_ONCE * width;
        }
        for position in rest {
            add_some(&[*position], window(bytes, bit), width, shift, out, &value);
            bit += width;
        }
        done = end;
    }
}

/// Adds numbers of a window of 64 bits, which begins with the first.
#[inline(always)]
fn add_some<T: Integer, const N: usize>(
    positions: &[u16; N],
    window: u64,
    width: usize,
    shift: u32,
    out: &mut [T; VECTOR_LEN],
    value: impl Fn(u64) -> u64,
) {
    for (index, position) in positions.iter().enumerate() {
        let missing = value(window >> (index * width) & (u64::MAX >> (64 - width)));
        let slot = &mut out[usize::from(*position) % VECTOR_LEN];
        *slot = slot.add(T::from_delta(missing.wrapping_shl(shift)));
    }
}

/// The last bytes, behind zeros where there are fewer.
#[inline(always)]
fn last_bytes<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.last_chunk().copied().unwrap_or_else(|| {
        let mut last = [0; N];
        last[N - bytes.len()..].copy_from_slice(bytes);
        last
    })
}

#[cfg(test)]
mod tests {
    use super::super::exceptions::{Form, write};
    use super::super::frame::Frame;
    use super::*;
    use crate::isa::forms;
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    /// Values of which one in `every` is not in the frame, by so many bits, come of what is in their slots.
    fn come_back<T: Integer>(bit_width: usize, excess_bits: usize, every: usize, is_signed: bool) {
        let mut random = SmallRng::seed_from_u64(excess_bits as u64);
        let base = T::cut(if is_signed { (T::MIN.wide() + T::MAX.wide()) / 2 } else { 3 });
        let frame = Frame { base, bit_width };
        let mut vector = [base; VECTOR_LEN];
        for (index, value) in vector.iter_mut().enumerate() {
            let bits = if index % every == 0 { excess_bits + bit_width - usize::from(is_signed) } else { bit_width };
            let distance = T::from_delta(random.random::<u64>().checked_shr(64 - bits as u32).unwrap_or(0));
            *value = if is_signed && index % (2 * every) == 0 { base.sub(distance) } else { base.add(distance) };
        }
        let positions: Vec<u16> =
            (0..VECTOR_LEN as u16).filter(|position| !frame.holds(vector[usize::from(*position)])).collect();
        let mut bytes = Vec::new();
        let Form::Excess { width, is_signed } = Form::read(write(&vector, frame, &positions, &mut bytes)) else {
            panic!("{} exceptions of {excess_bits} bits are written whole", positions.len());
        };
        if width > WIDTH_MAX || positions.len() <= 8 {
            return;
        }
        let mask = (1u128 << bit_width) - 1;
        let unpatched = vector.map(|value| base.add(T::from_bits(value.sub(base).bits() & mask)));
        forms(|isa| {
            let mut patched = unpatched;
            let excess = Excess { bytes: &bytes, count: positions.len(), width, is_signed };
            excess.add_to(bit_width, &mut patched);
            assert_eq!(patched, vector, "{isa}, {excess_bits} bits above {bit_width}, one in {every}, {is_signed}");
        });
    }

    #[test]
    fn exceptions_of_every_width_come_back() {
        for every in [1, 3, 20, 37, 100] {
            for is_signed in [false, true] {
                for excess_bits in 2..=63 {
                    come_back::<u64>(3.min(63 - excess_bits), excess_bits, every, is_signed);
                    come_back::<i64>(0, excess_bits.min(62), every, is_signed);
                    if excess_bits <= 26 {
                        come_back::<i32>(4, excess_bits, every, is_signed);
                    }
                    if excess_bits <= 5 {
                        come_back::<i8>(1, excess_bits, every, is_signed);
                    }
                }
            }
        }
    }
}
