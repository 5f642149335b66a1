//! A commit, and where its time went.

use crate::Failure;
use crate::accounts::Scheduled;
use crate::timed_disk::Call;
use serde_json::{Value, json};
use std::thread;
use std::time::{Duration, Instant};

/// A commit as a client saw it.
pub(super) struct Commit {
    begun: Instant,
    ended: Instant,
    scheduled: Scheduled,
    thread: thread::ThreadId,
}

/// A commit that took long, and where the time went.
pub(super) struct Stall {
    total: Duration,
    /// Since the part began.
    after: Duration,
    running: Duration,
    queued: Duration,
    /// The client's own calls, longest first.
    own: Vec<(String, Duration)>,
    /// What others did meanwhile, longest first. A client whose own calls are none of it waited for a sync of the log by
    /// another, or for a lock.
    others: Vec<(String, Duration)>,
}

impl Commit {
    pub(super) fn of<T>(work: impl FnOnce() -> sinterdb::Result<T>) -> Result<(Commit, T), Failure> {
        let before = Scheduled::of_this_thread();
        let begun = Instant::now();
        let outcome = work()?;
        let ended = Instant::now();
        let scheduled = Scheduled::of_this_thread().since(before);
        Ok((Commit { begun, ended, scheduled, thread: thread::current().id() }, outcome))
    }

    pub(super) fn time(&self) -> Duration {
        self.ended - self.begun
    }

    /// Looks into where the time went.
    pub(super) fn divided(&self, since: Instant, calls: &[Call]) -> Stall {
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for call in calls {
            let time = call.within(self.begun, self.ended);
            if !time.is_zero() {
                let is_own = call.thread == self.thread;
                let what = if is_own { call.what.clone() } else { format!("{} by {}", call.what, call.who) };
                add(if is_own { &mut own } else { &mut others }, what, time);
            }
        }
        for calls in [&mut own, &mut others] {
            calls.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
            calls.truncate(3);
        }
        Stall {
            total: self.time(),
            after: self.begun - since,
            running: self.scheduled.running,
            queued: self.scheduled.queued,
            own,
            others,
        }
    }
}

impl Stall {
    pub(super) fn record(&self) -> Value {
        let calls = |calls: &[(String, Duration)]| -> Vec<Value> {
            calls.iter().map(|(what, time)| json!({ "what": what, "ms": ms(*time) })).collect()
        };
        json!({
            "ms": ms(self.total),
            "after_s": self.after.as_secs_f64(),
            "running_ms": ms(self.running),
            "queued_ms": ms(self.queued),
            "own_calls": calls(&self.own),
            "calls_of_others": calls(&self.others),
        })
    }

    pub(super) fn text(&self) -> String {
        let calls = |calls: &[(String, Duration)]| -> String {
            let texts: Vec<String> = calls.iter().map(|(what, time)| format!("{what} {:.1}", ms(*time))).collect();
            if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
        };
        format!(
            "  {:8.1} ms at {:5.1} s: running {:.1}, ready to run {:.1}; own calls: {}; meanwhile: {}\n",
            ms(self.total),
            self.after.as_secs_f64(),
            ms(self.running),
            ms(self.queued),
            calls(&self.own),
            calls(&self.others)
        )
    }
}

/// Calls of one kind count as one.
fn add(calls: &mut Vec<(String, Duration)>, what: String, time: Duration) {
    match calls.iter_mut().find(|(known, _)| *known == what) {
        Some((_, sum)) => *sum += time,
        None => calls.push((what, time)),
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
