//! Full vectors of nothing but packed numbers, as most are. What is asked of them is answered without the parts that other
//! vectors have: those took longer to put in place than some kernels run.

use super::directory::{Layout, packed_bytes};
use super::exceptions::{Form, WIDE_PLACES_MAX};
use super::excess::{Excess, WIDTH_MAX};
use crate::VECTOR_LEN;
use crate::bit_packing::Lane;
use crate::fixed::{Fixed, Integer};
use crate::fused::Fused;
use crate::kernel::{Bounds, WideSum};

/// A vector without exceptions or steps, of numbers of up to 64 bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct BareVector<'a, T> {
    pub(super) base: T,
    pub(super) bit_width: usize,
    pub(super) packed: &'a [u8],
}

impl<'a, T: Integer> BareVector<'a, T> {
    /// That of this entry, with the bytes behind the directory; `None` where it is another kind of vector, or wrong. It has
    /// [`VECTOR_LEN`] values.
    #[inline(always)]
    pub(super) fn read(layout: Layout, entry: &[u8], data: &'a [u8]) -> Option<BareVector<'a, T>> {
        if layout.stepped || (layout.patched && u16::read(&entry[entry.len() - 2..]) > 0) {
            return None;
        }
        let (vector, _) = BareVector::read_numbers(layout, entry, data)?;
        Some(vector)
    }

    /// [`BareVector::read`] for a vector with as many exceptions as [`Excess`] has, and those.
    #[inline(always)]
    pub(super) fn read_patched(
        layout: Layout,
        entry: &[u8],
        data: &'a [u8],
    ) -> Option<(BareVector<'a, T>, Excess<'a>)> {
        if layout.stepped || !layout.patched || T::BYTES > 8 {
            return None;
        }
        let of_exceptions = &entry[entry.len() - 3..];
        let form = Form::read(of_exceptions[0]);
        let count = usize::from(u16::read(&of_exceptions[1..]));
        match form {
            Form::Excess { width, is_signed }
                if width <= WIDTH_MAX && (WIDE_PLACES_MAX + 1..=VECTOR_LEN).contains(&count) =>
            {
                let (vector, rest) = BareVector::read_numbers(layout, entry, data)?;
                let bytes = rest.get(..form.bytes_of(count, VECTOR_LEN))?;
                Some((vector, Excess { bytes, count, width, is_signed }))
            }
            _ => None,
        }
    }

    /// The numbers of an entry without a first value, and what is behind them.
    #[inline(always)]
    fn read_numbers(layout: Layout, entry: &[u8], data: &'a [u8]) -> Option<(BareVector<'a, T>, &'a [u8])> {
        let (base, rest) = match layout.based {
            true => (T::read(entry), &entry[T::BYTES..]),
            false => (T::default(), entry),
        };
        let bit_width = usize::from(rest[4]);
        if bit_width > 8 * T::BYTES.min(8) {
            return None;
        }
        let (packed, rest) =
            data.get(u32::read(rest) as usize..)?.split_at_checked(packed_bytes(VECTOR_LEN, bit_width))?;
        Some((BareVector { base, bit_width, packed }, rest))
    }

    /// Writes all values.
    #[inline]
    pub(super) fn decode(&self, out: &mut [T; VECTOR_LEN]) {
        match self.bit_width {
            0 => out.fill(self.base),
            width => unpack_full(self.packed, width, self.base, out),
        }
    }

    /// The value at a position.
    #[inline]
    pub(super) fn value_at(&self, position: usize) -> T {
        self.base.add(T::from_delta(number_of_full(self.packed, self.bit_width, position)))
    }

    /// The sum of all values.
    #[inline]
    pub(super) fn sum(&self) -> WideSum {
        let mut sum = WideSum::from(sum_of_full(self.packed, self.bit_width).cast_signed());
        match T::BYTES {
            16 => sum.add_product(self.base.wide(), VECTOR_LEN as u64),
            _ => sum.add(self.base.wide() * VECTOR_LEN as i128),
        }
        sum
    }

    /// Whether all values lie between bounds that are known, by the frame alone.
    #[inline]
    pub(super) fn is_within(&self, bounds: &Bounds) -> bool {
        let base = self.base.wide();
        bounds.hold(base, base.saturating_add((1 << self.bit_width) - 1))
    }

    /// Widens bounds by all values.
    pub(super) fn widen(&self, bounds: &mut Bounds) {
        let (least, greatest) = bounds_of_full(self.packed, self.bit_width);
        let value = |number| self.base.add(T::from_delta(number)).wide();
        bounds.widen_integers(value(least), value(greatest));
    }
}

/// Writes base and numbers, of 1 to 64 bits, of a full vector.
#[inline]
pub(super) fn unpack_full<T: Integer>(packed: &[u8], width: usize, base: T, out: &mut [T; VECTOR_LEN]) {
    match width {
        1..=8 => u8::unpack(packed, width, base, out),
        9..=16 => u16::unpack(packed, width, base, out),
        17..=32 => u32::unpack(packed, width, base, out),
        _ => u64::unpack(packed, width, base, out),
    }
}

/// One number, of up to 64 bits, of a full vector.
#[inline]
pub(super) fn number_of_full(packed: &[u8], width: usize, index: usize) -> u64 {
    match width {
        0 => 0,
        1..=8 => u8::unpack_one(packed, width, index).into(),
        9..=16 => u16::unpack_one(packed, width, index).into(),
        17..=32 => u32::unpack_one(packed, width, index).into(),
        _ => u64::unpack_one(packed, width, index),
    }
}

/// The sum of a full vector of packed numbers of up to 64 bits.
#[inline]
pub(super) fn sum_of_full(packed: &[u8], width: usize) -> u128 {
    match width {
        0 => 0,
        1..=8 => u8::sum(packed, width),
        9..=16 => u16::sum(packed, width),
        17..=32 => u32::sum(packed, width),
        _ => u64::sum(packed, width),
    }
}

/// Least and greatest of a full vector of packed numbers of up to 64 bits.
pub(super) fn bounds_of_full(packed: &[u8], width: usize) -> (u64, u64) {
    fn of<L: Fused>(packed: &[u8], width: usize) -> (u64, u64) {
        let (least, greatest) = L::bounds(packed, width);
        (least.into(), greatest.into())
    }
    match width {
        0 => (0, 0),
        1..=8 => of::<u8>(packed, width),
        9..=16 => of::<u16>(packed, width),
        17..=32 => of::<u32>(packed, width),
        _ => of::<u64>(packed, width),
    }
}
