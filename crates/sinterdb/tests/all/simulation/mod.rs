//! Crashes of everything at once: random statements of all kinds on a simulated disk, which loses power in each of its
//! calls in turn, or in some of them; then the database is opened on what the disk kept, and compared with a model.
//!
//! A history comes from a seed, and is run once, single-threaded, with a clock that ticks with the calls. Two connections
//! change things, alone and in transactions that may conflict; a third one looks at old states. What the disk was told is
//! recorded, so a crash is had from the recording, without running the history again. After it, the database must hold
//! what was acknowledged, with or without the one commit in flight; under `synchronous = normal` an earlier state will do,
//! but none before the last sync. `off` promises nothing to a power loss until it is left or the database is closed, and
//! everything where only the process dies. Then the database lives on for a while, and crashes once more.
//!
//! `SINTER_CRASHES=1000000 SINTER_SEED=7` sets how many crashes and where the seeds begin; `scripts/simulate-crashes`
//! does that. A failure says how to have it again.

mod action;
pub(crate) mod beside;
mod compare;
mod crash;
mod generator;
mod life;
mod model;
mod report;
mod story;

use crash::Crash;
use report::Report;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

const CRASHES: u64 = 20_000;
const SEED: u64 = 1;

/// One crash: `history:call:seed`.
const CRASH_VARIABLE: &str = "SINTER_CRASH";

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{variable} is no number")))
}

#[test]
fn a_crash_in_any_call_of_any_statement_loses_nothing_promised() {
    if let Ok(crash) = std::env::var(CRASH_VARIABLE) {
        let crash = Crash::parse(&crash).unwrap_or_else(|| panic!("{CRASH_VARIABLE} wants history:call:seed"));
        return crash.replay();
    }
    let (crashes, seed) = (number("SINTER_CRASHES", CRASHES), number("SINTER_SEED", SEED));
    println!("SINTER_CRASHES={crashes} SINTER_SEED={seed}");
    let (report, failures) = (Mutex::new(Report::default()), Mutex::new(Vec::new()));
    let next = AtomicU64::new(seed);
    // Each history has one thread; they have nothing to do with each other.
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while report.lock().unwrap().wants(crashes) && failures.lock().unwrap().is_empty() {
                    let history = next.fetch_add(1, Ordering::Relaxed);
                    if let Err(failure) = crash::crash_history(history, &report) {
                        failures.lock().unwrap().push(failure);
                    }
                }
            });
        }
    });
    let report = report.into_inner().unwrap();
    println!("{report}");
    if let Some(failure) = failures.into_inner().unwrap().first() {
        panic!("{failure}");
    }
    // Histories in which nothing meets prove nothing; fewer than the default were asked for to look at something.
    if crashes >= CRASHES {
        report.check();
    }
}

#[test]
fn a_history_makes_the_same_calls_each_time() {
    for history in [3, 4, 5] {
        let (first, second) = (crash::history(history).unwrap(), crash::history(history).unwrap());
        let calls = first.recording.calls();
        let differs = (0..calls.len()).find(|&index| second.recording.calls().get(index) != Some(&calls[index]));
        assert_eq!(differs, None, "history {history} differs at a call of {}", calls.len());
        let marks = |story: &story::Story| -> Vec<_> {
            story.marks.iter().map(|mark| (mark.kind, mark.calls.clone(), mark.state)).collect()
        };
        assert_eq!(marks(&first), marks(&second), "history {history}");
    }
}
