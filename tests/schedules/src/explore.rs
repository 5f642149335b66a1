//! Schedules from seeds.
//!
//! An even seed lets any thread that can go on do so, at each step (a random walk); an odd one lets the thread of the
//! highest priority go on and changes priorities a few times (PCT: Burckhardt et al., ASPLOS 2010), which finds what
//! takes few switches at the right places of a long run. A test draws what it does from `shuttle::rand`, so the seed
//! repeats that too.
//!
//! A failure prints its seed; `SINTER_SEED=7` with the test's name runs that one alone. `SINTER_SCHEDULE_SEEDS` says how
//! many seeds each test gets.

use std::cell::Cell;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Once;

use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler, UncontrolledNondeterminismCheckScheduler};
use shuttle::{Config, FailurePersistence, Runner};

/// Schedules per seed. PCT takes its first to count steps.
const SCHEDULES: usize = 8;

/// Enough for encoding and Arrow's kernels.
const STACK_BYTES: usize = 1 << 20;

thread_local! {
    static SEED: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Runs `body` under the schedules of so many seeds.
pub(crate) fn explore(seeds: u64, body: fn()) {
    print_seeds_of_panics();
    let number = |name| std::env::var(name).ok().map(|value| value.parse::<u64>().expect("a number"));
    let seeds = match number("SINTER_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("SINTER_SCHEDULE_SEEDS").unwrap_or(seeds),
    };
    for seed in seeds {
        SEED.set(Some(seed));
        let outcome = catch_unwind(AssertUnwindSafe(|| match seed % 2 {
            0 => run(RandomScheduler::new_from_seed(seed, SCHEDULES), body),
            _ => run(PctScheduler::new_from_seed(seed, 2 + (seed / 2 % 4) as usize, SCHEDULES), body),
        }));
        SEED.set(None);
        outcome.unwrap_or_else(|panic| resume_unwind(panic));
    }
}

/// Holds that a seed repeats what it did: nothing but the schedule decides what `body` does.
pub(crate) fn repeats(body: fn()) {
    run(UncontrolledNondeterminismCheckScheduler::new(RandomScheduler::new_from_seed(1, 5)), body);
}

fn run(scheduler: impl Scheduler + 'static, body: fn()) {
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    config.failure_persistence = FailurePersistence::None;
    config.silence_warnings = true;
    Runner::new(scheduler, config).run(body);
}

/// At once, and past the capture of output: a panic while others unwind ends the process.
fn print_seeds_of_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if let Some(seed) = SEED.get() {
                let thread = std::thread::current();
                let name = thread.name().unwrap_or("the test");
                let _ = writeln!(std::io::stderr(), "\nSINTER_SEED={seed} repeats what made {name} fail");
            }
            before(panic);
        }));
    });
}
