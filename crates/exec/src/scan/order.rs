//! In which order the conditions of a filter are asked: by what they cost and how many rows they drop, as was seen.
//!
//! A condition that costs `c` and lets a share `s` of its rows pass comes before another where `c / (1 - s)` is less. A worker
//! looks at the clock for a few vectors of each row group, since a test of packed numbers takes little longer than the look.
//! What an order cannot change is the answer: only conditions that cannot fail are put in another one.

use std::time::{Duration, Instant};

/// Vectors of a row group at which the clock is looked at. What conditions prepare for a group is part of its first.
const TIMED: std::ops::Range<usize> = 1..3;

/// Fewer rows say little of a condition.
const ROWS_MIN: usize = 256;

/// What a worker saw of the conditions of a filter.
#[derive(Debug, Default)]
pub(super) struct Observed {
    of: Vec<Observation>,
    /// Vectors of the row group so far.
    vectors: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Observation {
    time: Duration,
    /// What that was for: vectors, or rows.
    asked: usize,
    rows: usize,
    passed: usize,
}

impl Observation {
    /// Less for what is better asked first; nothing is known of one that was hardly ever asked.
    fn rank(self) -> Option<f64> {
        let dropped = (self.rows - self.passed) as f64 / self.rows as f64;
        let cost = self.time.as_secs_f64() / self.asked as f64;
        (self.rows >= ROWS_MIN).then(|| cost / dropped.max(f64::MIN_POSITIVE))
    }
}

impl Observed {
    /// A row group of so many conditions begins: brings them, which are numbered by `order`, into theirs. What nothing is
    /// known of comes last, as it stands.
    pub(super) fn begin(&mut self, count: usize, order: &mut [usize]) {
        self.of.resize(count, Observation::default());
        self.vectors = 0;
        let rank = |number: &usize| self.of[*number].rank().unwrap_or(f64::INFINITY);
        order.sort_by(|one, other| rank(one).total_cmp(&rank(other)));
    }

    /// A vector begins; whether the clock is looked at for it.
    pub(super) fn is_timed(&mut self) -> bool {
        self.vectors += 1;
        TIMED.contains(&(self.vectors - 1))
    }

    /// A condition of which so much was asked since `begun`, a vector or rows, and that let `passed` of `rows` pass.
    pub(super) fn add(&mut self, number: usize, begun: Instant, asked: usize, (rows, passed): (usize, usize)) {
        self.note(number, begun.elapsed(), asked, (rows, passed));
    }

    fn note(&mut self, number: usize, time: Duration, asked: usize, (rows, passed): (usize, usize)) {
        let observation = &mut self.of[number];
        observation.time += time;
        observation.asked += asked;
        observation.rows += rows;
        observation.passed += passed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_drops_most_for_least_comes_first() {
        let (mut observed, mut order) = (Observed::default(), [0, 1, 2, 3]);
        observed.begin(4, &mut order);
        assert_eq!(order, [0, 1, 2, 3], "as they stand while nothing is known");
        let microseconds = Duration::from_micros;
        // Cheap, but nearly all rows pass; costly, and none does; of the third, too little is known.
        observed.note(0, microseconds(1), 2, (2048, 2040));
        observed.note(1, microseconds(20), 2, (2048, 0));
        observed.note(2, microseconds(1), 2, (10, 0));
        observed.note(3, microseconds(2), 2, (2048, 1024));
        observed.begin(4, &mut order);
        assert_eq!(order, [3, 1, 0, 2]);
        // What drops nothing comes behind whatever drops something.
        observed.note(0, microseconds(1), 2, (2048, 0));
        observed.note(3, microseconds(1_000_000), 2, (1_000_000_000, 1_000_000_000));
        observed.begin(4, &mut order);
        assert_eq!(order, [0, 1, 3, 2]);
        let mut few = [2, 0];
        observed.begin(4, &mut few);
        assert_eq!(few, [0, 2], "zone maps may have decided some");
    }

    #[test]
    fn the_clock_is_looked_at_for_a_few_vectors_of_each_group() {
        let mut observed = Observed::default();
        for _ in 0..2 {
            observed.begin(1, &mut [0]);
            let timed: Vec<bool> = (0..5).map(|_| observed.is_timed()).collect();
            assert_eq!(timed, [false, true, true, false, false]);
        }
    }
}
