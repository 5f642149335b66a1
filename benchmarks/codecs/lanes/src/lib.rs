//! The kernels of crate fastlanes, by a width that is known at run time only.

use bytemuck::Pod;
use fastlanes::{BitPacking, Delta, FastLanes, FoR, RLE, Transpose};
use seq_macro::seq;

/// A vector, as fastlanes takes it.
pub type Vector<B> = [B; 1024];

/// A number that fastlanes packs. Packed slices are as long as 1024 numbers of the bit width.
pub trait Lane: Pod + FastLanes + Transpose {
    /// How many running totals the deltas of a vector begin with.
    const TOTALS: usize;

    /// Packs the numbers.
    fn pack_in(bit_width: usize, vector: &Vector<Self>, packed: &mut [Self]);
    /// Unpacks them.
    fn unpack_from(bit_width: usize, packed: &[Self], vector: &mut Vector<Self>);
    /// Packs distances from a base.
    fn pack_above(bit_width: usize, vector: &Vector<Self>, base: Self, packed: &mut [Self]);
    /// Unpacks them.
    fn unpack_above(bit_width: usize, packed: &[Self], base: Self, vector: &mut Vector<Self>);
    /// Differences of a vector in fastlanes' transposed order.
    fn deltas(vector: &Vector<Self>, totals: &[Self], deltas: &mut Vector<Self>);
    /// Unpacks differences to a vector in fastlanes' transposed order.
    fn unpack_deltas(bit_width: usize, packed: &[Self], totals: &[Self], vector: &mut Vector<Self>);
    /// The values of the runs, and of each number the run that it is in; returns how many runs there are.
    fn runs(vector: &Vector<Self>, values: &mut Vector<Self>, runs: &mut [u16; 1024]) -> usize;
    /// Of each number the value of its run.
    ///
    /// # Panics
    /// Where there is a run without a value.
    fn repeat(values: &[Self], runs: &[u16; 1024], vector: &mut Vector<Self>);
    /// Bits of the number.
    fn bit_width(self) -> usize;
    /// The distance from another, wrapped.
    fn less(self, other: Self) -> Self;
}

macro_rules! lane {
    ($type:ident, $bits:literal) => {
        impl Lane for $type {
            const TOTALS: usize = 1024 / $bits;

            fn pack_in(bit_width: usize, vector: &Vector<Self>, packed: &mut [Self]) {
                seq!(W in 0..=$bits {
                    match bit_width {
                        #(W => BitPacking::pack::<W, { 1024 * W / $bits }>(vector, sized(packed)),)*
                        _ => unreachable!("a width of {bit_width} bits"),
                    }
                });
            }

            fn unpack_from(bit_width: usize, packed: &[Self], vector: &mut Vector<Self>) {
                seq!(W in 0..=$bits {
                    match bit_width {
                        #(W => BitPacking::unpack::<W, { 1024 * W / $bits }>(of_size(packed), vector),)*
                        _ => unreachable!("a width of {bit_width} bits"),
                    }
                });
            }

            fn pack_above(bit_width: usize, vector: &Vector<Self>, base: Self, packed: &mut [Self]) {
                seq!(W in 0..=$bits {
                    match bit_width {
                        #(W => FoR::for_pack::<W, { 1024 * W / $bits }>(vector, base, sized(packed)),)*
                        _ => unreachable!("a width of {bit_width} bits"),
                    }
                });
            }

            fn unpack_above(bit_width: usize, packed: &[Self], base: Self, vector: &mut Vector<Self>) {
                seq!(W in 0..=$bits {
                    match bit_width {
                        #(W => FoR::unfor_pack::<W, { 1024 * W / $bits }>(of_size(packed), base, vector),)*
                        _ => unreachable!("a width of {bit_width} bits"),
                    }
                });
            }

            fn deltas(vector: &Vector<Self>, totals: &[Self], deltas: &mut Vector<Self>) {
                Delta::delta::<{ 1024 / $bits }>(vector, of_size(totals), deltas);
            }

            fn unpack_deltas(bit_width: usize, packed: &[Self], totals: &[Self], vector: &mut Vector<Self>) {
                seq!(W in 0..=$bits {
                    match bit_width {
                        #(W => Delta::undelta_pack::<{ 1024 / $bits }, W, { 1024 * W / $bits }>(
                            of_size(packed), of_size(totals), vector),)*
                        _ => unreachable!("a width of {bit_width} bits"),
                    }
                });
            }

            #[expect(unsafe_code, reason = "the crate has it in this form alone")]
            fn runs(vector: &Vector<Self>, values: &mut Vector<Self>, runs: &mut [u16; 1024]) -> usize {
                // SAFETY: all three are of 1024 elements, which is what it asks for.
                unsafe { RLE::encode_unchecked(vector, values, runs) }
            }

            #[expect(unsafe_code, reason = "the crate has it in this form alone")]
            fn repeat(values: &[Self], runs: &[u16; 1024], vector: &mut Vector<Self>) {
                let last = runs.iter().fold(0, |last, &run| last.max(run));
                assert!(usize::from(last) < values.len(), "run {last} of {}", values.len());
                // SAFETY: no run is beyond the values, as was just seen.
                unsafe { RLE::decode_unchecked(values, runs, vector) }
            }

            fn bit_width(self) -> usize {
                ($bits - self.leading_zeros()) as usize
            }

            fn less(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
        }
    };
}

lane!(u8, 8);
lane!(u16, 16);
lane!(u32, 32);
lane!(u64, 64);

fn of_size<T, const N: usize>(slice: &[T]) -> &[T; N] {
    slice.try_into().expect("as long as its width says")
}

fn sized<T, const N: usize>(slice: &mut [T]) -> &mut [T; N] {
    slice.try_into().expect("as long as its width says")
}
