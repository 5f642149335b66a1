//! Tests of values, as bits.

use crate::Bitmap;
use crate::isa::{Proof, each_isa};

/// Appends one bit per value: it passes. The test should not branch.
#[inline]
pub(crate) fn push_tests<T: Copy, F: Fn(T) -> bool>(values: &[T], out: &mut Bitmap, test: F) {
    let (groups, rest) = values.as_chunks::<64>();
    if out.len().is_multiple_of(64) {
        write(groups, out.push_words(groups.len()), &test);
    } else {
        for group in groups {
            let mut word = [0];
            write(std::slice::from_ref(group), &mut word, &test);
            out.push_word(word[0], 64);
        }
    }
    let word = rest.iter().enumerate().fold(0, |word, (index, value)| word | u64::from(test(*value)) << index);
    out.push_word(word, rest.len());
}

each_isa! {
    fn write<T: Copy, F: Fn(T) -> bool>(groups: &[[T; 64]], words: &mut [u64], test: &F) = write_body, proof;
}

/// Comparisons give bytes of 0 and 1, which the compiler makes of whole registers, and those become bits.
#[inline(always)]
fn write_body<P: Proof, T: Copy, F: Fn(T) -> bool>(proof: P, groups: &[[T; 64]], words: &mut [u64], test: &F) {
    for (group, word) in groups.iter().zip(words) {
        let mut flags = [0; 64];
        for (flag, value) in flags.iter_mut().zip(group) {
            *flag = u8::from(test(*value));
        }
        *word = proof.bits(&flags);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::forms;

    fn agree<T: Copy>(values: &[T], test: impl Fn(T) -> bool) {
        for (start, before) in [(0, 0), (3, 0), (0, 5), (1, 64), (7, 100)] {
            let values = &values[start..];
            let mut expected = Bitmap::new(before, true);
            values.iter().for_each(|value| expected.push(test(*value)));
            forms(|isa| {
                let mut found = Bitmap::new(before, true);
                push_tests(values, &mut found, &test);
                assert_eq!(found, expected, "{isa}, from {start} on, behind {before} bits");
            });
        }
    }

    #[test]
    fn each_value_has_its_bit() {
        let numbers = || (0..1000u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        agree(&numbers().map(|n| n as u8).collect::<Vec<_>>(), |value| (20..=90).contains(&value));
        agree(&numbers().map(|n| n as i16).collect::<Vec<_>>(), |value| value < -500);
        agree(&numbers().map(|n| n as u32).collect::<Vec<_>>(), |value| value % 3 == 0);
        agree(&numbers().map(|n| n as i64).collect::<Vec<_>>(), |value| value > 0);
        agree(&numbers().map(|n| n as i64 as f64).collect::<Vec<_>>(), |value| value > 1e18);
        agree(&numbers().map(|n| n as i128).collect::<Vec<_>>(), |value| value & 4 == 0);
    }
}
