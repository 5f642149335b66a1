//! Times several pieces of work in turns, so that what disturbs the machine disturbs all of them.

use std::time::{Duration, Instant};

/// How long to measure.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Samples of each piece of work.
    pub rounds: usize,
    /// What a sample takes at least: work that is shorter is repeated within it.
    pub sample: Duration,
    /// Pressed bytes that stand for "more than any cache holds".
    pub memory_bytes: usize,
    /// Whether tables may leave out points.
    pub is_quick: bool,
}

impl Effort {
    /// A few minutes a table, on a quiet machine.
    pub const FULL: Effort =
        Effort { rounds: 15, sample: Duration::from_millis(1), memory_bytes: 1100 << 20, is_quick: false };

    /// Seconds a table: shows that all runs and gives right answers.
    pub const QUICK: Effort =
        Effort { rounds: 3, sample: Duration::from_micros(100), memory_bytes: 48 << 20, is_quick: true };
}

/// A piece of work.
pub type Run<'a> = Box<dyn FnMut() + 'a>;

/// What one turn of a piece of work took.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Times {
    /// The shortest: what is left when nothing disturbs.
    pub min: Duration,
    /// The middle one of all samples.
    pub median: Duration,
}

/// Repetitions in a sample at most.
const REPEATS_MAX: u128 = 100_000;

/// Runs all of `runs` in turns, each round beginning with another one.
pub fn race(runs: &mut [Run<'_>], effort: Effort) -> Vec<Times> {
    let repeats: Vec<u32> = runs
        .iter_mut()
        .map(|run| {
            let first = timed(run, 1);
            // The first turn is slow; what is long all the same need not be tried again.
            let once = if first > 4 * effort.sample { first } else { timed(run, 1).min(timed(run, 1)) };
            (effort.sample.as_nanos() / once.as_nanos().max(1) + 1).min(REPEATS_MAX) as u32
        })
        .collect();
    let mut samples = vec![Vec::with_capacity(effort.rounds); runs.len()];
    for round in 0..effort.rounds {
        for turn in 0..runs.len() {
            let index = (round + turn) % runs.len();
            samples[index].push(timed(&mut runs[index], repeats[index]));
        }
    }
    samples.into_iter().map(times).collect()
}

/// Turns of each long piece of work at most, and at least where they are short enough.
const TURN_COUNT: usize = 4;
const TURN_COUNT_MIN: usize = 2;

/// What took so long in all, or in its first turn, has no more turns.
const ENOUGH: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(3);

/// What long work took at best, in so many turns.
#[derive(Clone, Copy, Debug)]
pub struct Best {
    /// The shortest turn.
    pub least: Duration,
    /// How many there were.
    pub turns: usize,
}

/// Lets all of `runs`, each of which takes a good part of a second, take a few turns.
pub fn in_turns(runs: &mut [Run<'_>], effort: Effort) -> Vec<Best> {
    let mut spent = vec![Duration::ZERO; runs.len()];
    let mut best = vec![Best { least: Duration::MAX, turns: 0 }; runs.len()];
    for _ in 0..if effort.is_quick { 1 } else { TURN_COUNT } {
        for ((run, best), spent) in runs.iter_mut().zip(&mut best).zip(&mut spent) {
            if *spent >= LONG || *spent >= ENOUGH && best.turns >= TURN_COUNT_MIN {
                continue;
            }
            let turn = timed(run, 1);
            *spent += turn;
            best.least = best.least.min(turn);
            best.turns += 1;
        }
    }
    best
}

fn timed(run: &mut Run<'_>, repeats: u32) -> Duration {
    let begun = Instant::now();
    for _ in 0..repeats {
        run();
    }
    begun.elapsed() / repeats
}

fn times(mut samples: Vec<Duration>) -> Times {
    samples.sort_unstable();
    Times { min: samples[0], median: samples[samples.len() / 2] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_the_least_and_the_middle() {
        let samples = [7, 3, 9].map(Duration::from_micros).to_vec();
        assert_eq!(times(samples), Times { min: Duration::from_micros(3), median: Duration::from_micros(7) });
    }
}
