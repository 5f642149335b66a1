//! The constants of an IN list of integers, and marks that tell whether a number is one of many.

use std::ops::Deref;
use std::sync::OnceLock;

/// The constants of an IN list, ascending.
#[derive(Clone, Debug)]
pub(crate) struct Constants {
    sorted: Vec<i128>,
    /// Those of all, once somebody asked for them.
    marks: OnceLock<Option<Marks>>,
}

/// A bit for each number from the first constant on, set where it is one.
#[derive(Clone, Debug)]
pub(crate) struct Marks {
    /// The number of the first bit.
    pub(crate) first: i128,
    pub(crate) words: Box<[u64]>,
}

/// Constants have marks where the last is not so far from the first.
const MARKS_MAX: i128 = 8192;

impl Constants {
    /// Marks of all; `None` where those were too many.
    pub(crate) fn marks(&self) -> Option<&Marks> {
        self.marks.get_or_init(|| Marks::of(&self.sorted)).as_ref()
    }

    /// Whether this number is one of them.
    pub(crate) fn hold(&self, number: i128) -> bool {
        match self.marks() {
            Some(marks) => marks.hold(number),
            None => self.sorted.binary_search(&number).is_ok(),
        }
    }
}

impl Marks {
    /// Those of constants that ascend; `None` where there are none, or the last is too far from the first.
    pub(crate) fn of(constants: &[i128]) -> Option<Marks> {
        let (first, last) = (*constants.first()?, *constants.last()?);
        let count = last.checked_sub(first).filter(|span| *span < MARKS_MAX)? as usize + 1;
        let mut words = vec![0; count.div_ceil(64)].into_boxed_slice();
        for constant in constants {
            let place = (constant - first) as usize;
            words[place / 64] |= 1 << (place % 64);
        }
        Some(Marks { first, words })
    }

    /// Whether this number has a mark.
    #[inline]
    pub(crate) fn hold(&self, number: i128) -> bool {
        // What lies before the first wraps to places beyond the last.
        let place = number.wrapping_sub(self.first) as u128;
        place < 64 * self.words.len() as u128 && self.words[place as usize / 64] >> (place % 64) & 1 == 1
    }
}

impl From<Vec<i128>> for Constants {
    /// Of numbers that ascend.
    fn from(sorted: Vec<i128>) -> Constants {
        debug_assert!(sorted.is_sorted());
        Constants { sorted, marks: OnceLock::new() }
    }
}

impl Deref for Constants {
    type Target = [i128];

    fn deref(&self) -> &[i128] {
        &self.sorted
    }
}

impl PartialEq for Constants {
    fn eq(&self, other: &Constants) -> bool {
        self.sorted == other.sorted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_held_by_their_constants_alone() {
        let near = |first: i128| (0..20).map(|place| first + 7 * place).collect::<Vec<_>>();
        for sorted in
            [near(-60), near(i128::MIN), near(i128::MAX - 19 * 7), vec![i128::MAX], vec![5, 5 + MARKS_MAX - 1]]
        {
            let constants = Constants::from(sorted.clone());
            assert!(constants.marks().is_some());
            let beside = sorted.iter().flat_map(|number| (-70..70).map(|step| number.wrapping_add(step)));
            for number in beside.chain([i128::MIN, i128::MAX, 0]) {
                assert_eq!(constants.hold(number), sorted.contains(&number), "{number} in {sorted:?}");
            }
        }
    }

    #[test]
    fn constants_far_from_each_other_have_no_marks() {
        assert!(Marks::of(&[]).is_none());
        for sorted in [vec![5, 5 + MARKS_MAX], vec![i128::MIN, i128::MAX]] {
            let constants = Constants::from(sorted.clone());
            assert!(constants.marks().is_none());
            assert!(sorted.iter().all(|number| constants.hold(*number) && !constants.hold(number / 2)));
        }
    }
}
