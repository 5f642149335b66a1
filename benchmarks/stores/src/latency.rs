//! How long single calls took: sorted, and what to say about them.

use serde_json::{Value, json};
use std::time::Duration;

/// Times of single calls, sorted.
#[derive(Debug, Default)]
pub struct Latencies(Vec<Duration>);

impl Latencies {
    /// Sorts the times of several clients into one list.
    pub fn of(clients: impl IntoIterator<Item = Vec<Duration>>) -> Latencies {
        let mut all: Vec<Duration> = clients.into_iter().flatten().collect();
        all.sort_unstable();
        Latencies(all)
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The time within which this share of the calls was done; 1 asks for the longest. In milliseconds, 0 of nothing.
    pub fn ms_at(&self, share: f64) -> f64 {
        let place = ((self.0.len() as f64 * share).ceil() as usize).clamp(1, self.0.len().max(1));
        self.0.get(place - 1).map_or(0.0, |time| time.as_secs_f64() * 1000.0)
    }

    /// How many took longer than this.
    pub fn longer_than(&self, limit: Duration) -> usize {
        self.0.len() - self.0.partition_point(|time| *time <= limit)
    }

    pub fn record(&self) -> Value {
        json!({
            "count": self.count(),
            "ms_p50": self.ms_at(0.5),
            "ms_p99": self.ms_at(0.99),
            "ms_p999": self.ms_at(0.999),
            "ms_max": self.ms_at(1.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_of_the_sorted_times() {
        let ms = |times: [u64; 5]| times.map(Duration::from_millis).to_vec();
        let latencies = Latencies::of([ms([9, 1, 3, 7, 5]), ms([10, 2, 4, 6, 8])]);
        assert_eq!([0.0, 0.1, 0.5, 0.91, 1.0].map(|share| latencies.ms_at(share)), [1.0, 1.0, 5.0, 10.0, 10.0]);
        assert_eq!([0, 4, 10].map(|limit| latencies.longer_than(Duration::from_millis(limit))), [10, 6, 0]);
        assert_eq!(Latencies::default().ms_at(0.99), 0.0);
    }
}
