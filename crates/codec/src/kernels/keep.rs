//! Values that count, among others that do not.

use crate::Bitmap;
use crate::fixed::Fixed;
use crate::isa::{Proof, each_isa};

/// Moves the values whose bit is set to the front, in order, and drops the others.
pub(crate) fn keep_marked<T: Fixed>(values: &mut Vec<T>, words: &[u64]) {
    let mut kept = 0;
    for index in 0..values.len() {
        values[kept] = values[index];
        kept += (words[index / 64] >> (index % 64) & 1) as usize;
    }
    values.truncate(kept);
}

/// Puts `filler` in the place of each value whose bit in `marks` is not set; there are as many bits as values.
pub fn replace_unmarked<T: Copy>(values: &mut [T], marks: &Bitmap, filler: T) {
    fill_unmarked(values, marks.words(), filler);
}

each_isa! {
    /// Puts `filler` in the place of each value whose bit is not set.
    pub(crate) fn fill_unmarked<T: Copy>(values: &mut [T], words: &[u64], filler: T) = fill_unmarked_body, proof;
}

#[inline(always)]
fn fill_unmarked_body<P: Proof, T: Copy>(proof: P, values: &mut [T], words: &[u64], filler: T) {
    let (groups, rest) = values.as_chunks_mut::<64>();
    for (group, &word) in groups.iter_mut().zip(words) {
        let flags = proof.flags(word);
        for (value, flag) in group.iter_mut().zip(flags) {
            *value = if flag != 0 { *value } else { filler };
        }
    }
    if let Some(word) = words.get(groups.len()) {
        for (index, value) in rest.iter_mut().enumerate() {
            *value = if word >> index & 1 == 1 { *value } else { filler };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::forms;

    fn agrees<T: Fixed + PartialEq>(value: impl Fn(usize) -> T, filler: T) {
        for len in [0, 1, 63, 64, 65, 700, 1024] {
            let values: Vec<T> = (0..len).map(&value).collect();
            let words: Vec<u64> = (0..16u64).map(|i| (i + 3).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            let is_marked = |index: usize| words[index / 64] >> (index % 64) & 1 == 1;
            let kept: Vec<T> = (0..len).filter(|index| is_marked(*index)).map(&value).collect();
            let filled: Vec<T> = (0..len).map(|index| if is_marked(index) { value(index) } else { filler }).collect();
            forms(|isa| {
                let mut found = values.clone();
                keep_marked(&mut found, &words);
                assert_eq!(found, kept, "{isa}");
                let mut found = values.clone();
                fill_unmarked(&mut found, &words, filler);
                assert_eq!(found, filled, "{isa}");
            });
        }
    }

    #[test]
    fn what_is_not_marked_goes() {
        agrees(|index| index as u8, 7);
        agrees(|index| index as i16, -1);
        agrees(|index| index as u32, 0);
        agrees(|index| index as i64 * 1_000_003, -5);
        agrees(|index| index as i128 * 1_000_003, 9);
        agrees(|index| index as f64 / 3.0, 0.5);
    }
}
