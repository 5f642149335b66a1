//! What goes wrong, and when: the plan of a [`FaultyFileSystem`](super::FaultyFileSystem).

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::call::Call;
use super::random::Random;

/// What goes wrong with one call. Each fault happens to some kinds of call only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DiskFault {
    /// Any call fails with `EIO`, and nothing of it is done.
    IoError,
    /// A change or a sync fails with `ENOSPC`, and nothing of it is done. Disks that fill up by the byte are what
    /// [`FaultyFileSystem::set_bytes_free`](super::FaultyFileSystem::set_bytes_free) is for.
    NoSpace,
    /// A write does a part of its work, up to some byte or some of its sectors, and fails with `EIO`.
    TornWrite,
    /// A sync fails with `EIO`. On a [`CrashingFileSystem`](super::CrashingFileSystem) what was not durable never will
    /// be, whatever later syncs say, though reads still see it; so Linux does it.
    LostSync,
    /// The same, and reads see the bytes from before: what could not be written has left the memory, too.
    EvictedSync,
    /// A read fails with `UnexpectedEof`, as if the file were shorter.
    ShortRead,
    /// The file's length is answered with fewer bytes than it has.
    ShortLength,
    /// A read succeeds, and up to four of its bytes are not those in the file.
    FlippedBytes,
    /// The power goes. A change may have been done; a sync has made nothing durable; every later call fails.
    PowerLoss,
}

/// `EIO` of Linux, macOS and the BSDs.
const EIO: i32 = 5;
/// `ENOSPC` of Linux, macOS and the BSDs.
const ENOSPC: i32 = 28;

impl DiskFault {
    /// Every fault.
    pub const ALL: [DiskFault; 9] = [
        DiskFault::IoError,
        DiskFault::NoSpace,
        DiskFault::TornWrite,
        DiskFault::LostSync,
        DiskFault::EvictedSync,
        DiskFault::ShortRead,
        DiskFault::ShortLength,
        DiskFault::FlippedBytes,
        DiskFault::PowerLoss,
    ];

    /// Whether it can happen to this kind of call.
    pub fn can_happen_to(self, call: Call) -> bool {
        match self {
            DiskFault::IoError | DiskFault::PowerLoss => true,
            DiskFault::NoSpace => (call.is_change() || call.is_sync()) && call != Call::Remove,
            DiskFault::TornWrite => call == Call::Write,
            DiskFault::LostSync | DiskFault::EvictedSync => call == Call::Sync,
            DiskFault::ShortRead | DiskFault::FlippedBytes => call == Call::Read,
            DiskFault::ShortLength => call == Call::Length,
        }
    }

    /// What the call's caller gets, where it gets an error.
    pub(super) fn error(self) -> io::Error {
        match self {
            DiskFault::NoSpace => io::Error::from_raw_os_error(ENOSPC),
            DiskFault::ShortRead => io::ErrorKind::UnexpectedEof.into(),
            DiskFault::PowerLoss => io::Error::other("the power went off"),
            _ => io::Error::from_raw_os_error(EIO),
        }
    }
}

/// When a fault happens: which of the calls from now on, of which kind, on which files.
///
/// ```
/// use sinter_storage::testing::{Call, Trigger};
///
/// let the_third_write_to_a_log = Trigger::at(2).of(Call::Write).containing("-log.");
/// let every_sync_from_now_on = Trigger::next().of(Call::Sync).for_ever();
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    call: Option<Call>,
    ending: String,
    part: String,
    after_calls: u64,
    first: u64,
    times: u64,
}

impl Trigger {
    /// The next call that matches and to which the fault can happen.
    pub fn next() -> Trigger {
        Trigger::at(0)
    }

    /// The one after `index` others. Only calls that match, and to which the fault can happen, are counted.
    pub fn at(index: u64) -> Trigger {
        Trigger { call: None, ending: String::new(), part: String::new(), after_calls: 0, first: index, times: 1 }
    }

    /// Calls of this kind only.
    #[must_use]
    pub fn of(self, call: Call) -> Trigger {
        Trigger { call: Some(call), ..self }
    }

    /// Calls on paths that end so only: `.sinter` is the database file.
    #[must_use]
    pub fn ending_with(self, ending: &str) -> Trigger {
        Trigger { ending: ending.to_string(), ..self }
    }

    /// Calls on paths with this in them only: `-log.` is each of the logs.
    #[must_use]
    pub fn containing(self, part: &str) -> Trigger {
        Trigger { part: part.to_string(), ..self }
    }

    /// Lets so many calls, of whatever kind, pass before counting.
    #[must_use]
    pub fn after(self, calls: u64) -> Trigger {
        Trigger { after_calls: calls, ..self }
    }

    /// This call and those that follow, so many in all.
    #[must_use]
    pub fn times(self, times: u64) -> Trigger {
        Trigger { times, ..self }
    }

    /// This call and all that follow, until the plan is dropped.
    #[must_use]
    pub fn for_ever(self) -> Trigger {
        self.times(u64::MAX)
    }

    fn matches(&self, call: Call, path: &Path) -> bool {
        let path = path.to_string_lossy();
        self.call.is_none_or(|wanted| wanted == call) && path.ends_with(&self.ending) && path.contains(&self.part)
    }
}

/// A fault that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Injection {
    /// Which of all calls to the file system it was, from 0.
    pub call_index: u64,
    /// Its kind.
    pub call: Call,
    /// The file or directory.
    pub path: PathBuf,
    /// What went wrong.
    pub fault: DiskFault,
}

impl fmt::Display for Injection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Injection { call_index, call, path, fault } = self;
        write!(f, "call {call_index} ({call:?} of {}): {fault:?}", path.display())
    }
}

/// All that is planned.
#[derive(Debug, Default)]
pub(super) struct Plan {
    planned: Vec<Planned>,
}

#[derive(Debug)]
struct Planned {
    trigger: Trigger,
    fault: DiskFault,
    /// Calls of any kind since this was planned.
    calls: u64,
    /// Those of them that matched.
    matches: u64,
}

impl Plan {
    pub(super) fn add(&mut self, trigger: Trigger, fault: DiskFault) {
        let possible = Call::ALL
            .into_iter()
            .any(|call| trigger.call.is_none_or(|wanted| wanted == call) && fault.can_happen_to(call));
        assert!(possible, "{fault:?} cannot happen to a call of kind {:?}", trigger.call);
        self.planned.push(Planned { trigger, fault, calls: 0, matches: 0 });
    }

    /// `count` of `faults`, each at the first call that it can happen to after fewer than `calls` calls. Half of them
    /// happen once, the others a few times or for ever.
    pub(super) fn add_from_seed(&mut self, random: &mut Random, calls: u64, count: usize, faults: &[DiskFault]) {
        for _ in 0..count {
            let fault = faults[random.below(faults.len() as u64) as usize];
            let trigger = Trigger::next().after(random.below(calls.max(1)));
            self.add(
                match random.below(4) {
                    0 => trigger.for_ever(),
                    1 => trigger.times(2 + random.below(4)),
                    _ => trigger,
                },
                fault,
            );
        }
    }

    pub(super) fn clear(&mut self) {
        self.planned.clear();
    }

    /// Counts a call everywhere and says what is planned for it; what was planned first goes first.
    pub(super) fn call(&mut self, call: Call, path: &Path) -> Option<DiskFault> {
        let mut happens = None;
        for Planned { trigger, fault, calls, matches } in &mut self.planned {
            let counts = *calls >= trigger.after_calls && fault.can_happen_to(call) && trigger.matches(call, path);
            *calls += 1;
            if counts {
                let due = *matches >= trigger.first && *matches - trigger.first < trigger.times;
                *matches += 1;
                happens = happens.or(due.then_some(*fault));
            }
        }
        happens
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trigger_counts_what_it_matches() {
        let mut plan = Plan::default();
        plan.add(Trigger::at(1).of(Call::Write).containing("-log.").times(2), DiskFault::TornWrite);
        plan.add(Trigger::next().after(4).ending_with(".sinter"), DiskFault::IoError);
        let (log, file) = (Path::new("shop.sinter-log.3"), Path::new("shop.sinter"));
        let calls = [
            (Call::Write, log, None),
            (Call::Write, file, None),
            (Call::Read, log, None),
            (Call::Write, log, Some(DiskFault::TornWrite)),
            (Call::Write, log, Some(DiskFault::TornWrite)),
            (Call::Write, log, None),
            (Call::Read, file, Some(DiskFault::IoError)),
            (Call::Read, file, None),
        ];
        for (index, (call, path, expected)) in calls.into_iter().enumerate() {
            assert_eq!(plan.call(call, path), expected, "call {index}");
        }
    }

    #[test]
    #[should_panic(expected = "TornWrite cannot happen to a call of kind Some(Read)")]
    fn what_cannot_happen_cannot_be_planned() {
        Plan::default().add(Trigger::next().of(Call::Read), DiskFault::TornWrite);
    }
}
