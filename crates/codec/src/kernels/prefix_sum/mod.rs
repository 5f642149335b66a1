//! Turns steps from value to value into the values.
//!
//! The one kernel so far that the compiler does not find by itself: each value waits for the one before. In a register of
//! `n` numbers, adding it to itself moved by 1, 2, 4, ... `n / 2` places gives the sums of all beginnings; what came before is
//! added to all at once (Lemire et al., "SIMD compression and the intersection of sorted integers", 2016, section 3).
//! For 16 numbers of 32 bits that are four additions, and the next register does not wait for them.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod scalar;

use crate::fixed::Integer;
#[cfg(target_arch = "x86_64")]
use crate::isa::{Isa, isa};

/// Puts `first` in the place of the first step, and in that of each other step the value before it plus the step, modulo
/// the width.
pub(crate) fn prefix_sum<T: Integer>(first: T, steps: &mut [T]) {
    let Some(first_step) = steps.first() else { return };
    let before = first.sub(*first_step);
    #[cfg(target_arch = "x86_64")]
    match (isa(), T::BYTES) {
        // SAFETY: `isa` gives only sets of which `Isa::is_available` found every feature.
        #[expect(unsafe_code, reason = "the one way to call a form that was compiled for more")]
        (Isa::Avx512, 4) => return unsafe { avx512::of_32_bits(before, steps) },
        // SAFETY: as above.
        #[expect(unsafe_code, reason = "the one way to call a form that was compiled for more")]
        (Isa::Avx512, 8) => return unsafe { avx512::of_64_bits(before, steps) },
        // SAFETY: as above.
        #[expect(unsafe_code, reason = "the one way to call a form that was compiled for more")]
        (Isa::Avx2, 4) => return unsafe { avx2::of_32_bits(before, steps) },
        // SAFETY: as above.
        #[expect(unsafe_code, reason = "the one way to call a form that was compiled for more")]
        (Isa::Avx2, 8) => return unsafe { avx2::of_64_bits(before, steps) },
        _ => {}
    }
    scalar::prefix_sum(before, steps);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::forms;

    fn agree<T: Integer>() {
        for count in (0..70).chain([127, 128, 1023, 1024]) {
            let step = |index: usize| {
                T::from_bits((index as u128 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_ac31_1e05_77b3))
            };
            let steps: Vec<T> = (0..count).map(step).collect();
            let first = step(77);
            let mut expected = steps.clone();
            if let Some(slot) = expected.first_mut() {
                *slot = first;
            }
            (1..count).for_each(|index| expected[index] = expected[index - 1].add(steps[index]));
            forms(|isa| {
                let mut found = steps.clone();
                prefix_sum(first, &mut found);
                assert_eq!(found, expected, "{isa}, {count} steps");
            });
        }
    }

    #[test]
    fn every_type_and_length_is_summed_alike() {
        agree::<i8>();
        agree::<u16>();
        agree::<i32>();
        agree::<u32>();
        agree::<i64>();
        agree::<u64>();
        agree::<i128>();
    }
}
