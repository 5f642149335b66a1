//! Crashes, taken from what was recorded of a life.

use super::compare::{Seen, compare};
use super::life::{Outcome, Plan, live, open};
use super::model::State;
use super::report::{Report, call_kind};
use super::story::{Story, text};
use rand::rngs::SmallRng;
use rand::seq::index;
use rand::{Rng, SeedableRng};
use sinter_storage::Synchronous;
use sinter_storage::testing::{Crashes, CrashingFileSystem, Death};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

/// Crashes of each kind of statement in each kind of call, at least.
pub(super) const CELL_MIN: u64 = 20;

/// Of so many histories one is crashed in each of its calls, the others in some: what is rare in histories takes many.
const HISTORIES_TO_ONE_WHOLE: u64 = 8;
const CALLS_OF_OTHERS: usize = 24;

/// A crash of the first life of a history, and with it all that follows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crash {
    history: u64,
    call_index: usize,
    seed: u64,
}

impl fmt::Display for Crash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.history, self.call_index, self.seed)
    }
}

impl Crash {
    pub(super) fn parse(text: &str) -> Option<Crash> {
        let mut parts = text.split(':');
        let history = parts.next()?.parse().ok()?;
        let (call_index, seed) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        parts.next().is_none().then_some(Crash { history, call_index, seed })
    }

    /// The same crash again, with its history.
    pub(super) fn replay(self) {
        let story = history(self.history).unwrap_or_else(|failure| panic!("{failure}"));
        println!("{}", text(&story.marks));
        let mut crashes = story.recording.crashes();
        let outcome = happen(&story, &mut crashes, self.call_index, self.seed, &Mutex::default());
        if let Err(failure) = outcome {
            panic!("{self}: {failure}");
        }
    }
}

fn plan(history: u64) -> Plan {
    let mut random = SmallRng::seed_from_u64(history);
    let level = match random.random_range(0..8) {
        0 => Synchronous::Off,
        1..3 => Synchronous::Normal,
        _ => Synchronous::Full,
    };
    let steps = random.random_range(40..100);
    Plan { seed: random.random(), level, steps, large: u32::from(random.random_ratio(1, 12)) }
}

/// The first life of a history.
pub(super) fn history(number: u64) -> Outcome<Story> {
    let directory = tempfile::tempdir().unwrap();
    let (nothing, path) = ([Arc::new(State::default())], directory.path().join("rows.csv"));
    let story = caught(|| live(&CrashingFileSystem::new(), &nothing, plan(number), &path));
    story.map_err(|failure| format!("history {number}, before any crash: {failure}"))
}

/// Crashes a history in each of its calls or in some, and in rare ones more often.
pub(super) fn crash_history(number: u64, report: &Mutex<Report>) -> Outcome<()> {
    let story = history(number)?;
    report.lock().unwrap().add_history(&story);
    let mut crashes = story.recording.crashes();
    let mut random = SmallRng::seed_from_u64(!number);
    for call_index in calls_to_crash(number, story.recording.calls().len(), &mut random) {
        let cell = cell(&story, call_index);
        loop {
            let crash = Crash { history: number, call_index, seed: random.random() };
            happen(&story, &mut crashes, call_index, crash.seed, report).map_err(|failure| {
                let story = text(&story.marks);
                format!(
                    "{story}\n{cell:?} at call {call_index}: {failure}\nto have it again:\n  SINTER_CRASH={crash} cargo test \
                     --release --workspace --test all -- --nocapture simulation::a_crash"
                )
            })?;
            if report.lock().unwrap().crashes_in(cell) >= CELL_MIN {
                break;
            }
        }
    }
    Ok(())
}

/// The calls of a history to crash in, ascending; the last may be one after all calls.
fn calls_to_crash(history: u64, calls: usize, random: &mut SmallRng) -> Vec<usize> {
    if history.is_multiple_of(HISTORIES_TO_ONE_WHOLE) {
        return (0..=calls).collect();
    }
    let mut drawn = index::sample(random, calls + 1, CALLS_OF_OTHERS.min(calls + 1)).into_vec();
    drawn.sort_unstable();
    drawn
}

/// The statement and the call in flight.
fn cell(story: &Story, call_index: usize) -> (&'static str, &'static str) {
    let kind = story.mark_at(call_index).map_or("after all", |mark| mark.kind);
    (kind, story.recording.calls().get(call_index).map_or("none", call_kind))
}

/// One crash, and what the seed makes of it.
fn happen(
    story: &Story,
    crashes: &mut Crashes<'_>,
    call_index: usize,
    seed: u64,
    report: &Mutex<Report>,
) -> Outcome<()> {
    let mut random = SmallRng::seed_from_u64(seed);
    let death = if random.random_ratio(1, 5) { Death::Process } else { Death::Power };
    let disk = crashes.at(call_index, death, random.random());
    let content = story.mark_at(call_index).map(|mark| mark.content).unwrap_or_default();
    report.lock().unwrap().add_crash(cell(story, call_index), death, content);
    let context = |failure: String| format!("{death:?} loss: {failure}");
    let Some(allowed) = story.allowed(call_index, death == Death::Power) else {
        // Anything may be lost, but nobody may panic over it.
        let looked = caught(|| {
            if let Ok(database) = open(Arc::new(disk), Synchronous::Full) {
                let _ = compare(&Seen::new(database.connect()), &story.states, false);
            }
            Ok(())
        });
        report.lock().unwrap().unpromised += 1;
        return looked.map_err(context);
    };
    if !random.random_ratio(1, 4) || story.is_in_doubt {
        return caught(|| look(&disk, allowed, random.random_ratio(1, 8))).map_err(context);
    }
    let directory = tempfile::tempdir().unwrap();
    let plan = Plan { seed: random.random(), level: Synchronous::Full, steps: random.random_range(0..8), large: 0 };
    let next = caught(|| live(&disk, allowed, plan, &directory.path().join("rows.csv"))).map_err(context)?;
    report.lock().unwrap().tally.add(&next.tally);
    let again = random.random_range(0..=next.recording.calls().len());
    let cell = cell(&next, again);
    let mut crashes = next.recording.crashes();
    loop {
        happen(&next, &mut crashes, again, random.random(), report).map_err(|failure| {
            format!("{death:?} loss, then another crash:\n{}{cell:?} at call {again}: {failure}", text(&next.marks))
        })?;
        if report.lock().unwrap().crashes_in(cell) >= CELL_MIN {
            return Ok(());
        }
    }
}

/// Opens and compares; the database is then left as it is.
fn look(disk: &CrashingFileSystem, allowed: &[Arc<State>], deeply: bool) -> Outcome<()> {
    let database =
        open(Arc::new(disk.clone()), Synchronous::Full).map_err(|error| format!("it does not open: {error}"))?;
    let compared = compare(&Seen::new(database.connect()), allowed, deeply).map(drop);
    // The close would write for nobody.
    disk.turn_off();
    compared
}

fn caught<T>(body: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        Err(format!("a panic: {}", text.or(panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()))
    })
}
