//! What was crashed, in numbers.

use super::beside::HEADER_BYTES;
use super::crash::CELL_MIN;
use super::story::{Content, Story, Tally, is_log};
use sinter_storage::testing::{Call, Death, RecordedCall};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Every kind of statement that makes calls.
const STATEMENTS: [&str; 30] = [
    "OPEN",
    "CREATE TABLE",
    "CREATE OR REPLACE",
    "CREATE TABLE AS",
    "CREATE TREE",
    "DROP TABLE",
    "INSERT VALUES",
    "INSERT SELECT",
    "INSERT of many",
    "COPY FROM",
    "UPDATE",
    "DELETE",
    "DELETE of many",
    "ADD COLUMN",
    "DROP COLUMN",
    "RENAME COLUMN",
    "RENAME TABLE",
    "SET DEFAULT",
    "SET NOT NULL",
    "ADD CHECK",
    "DROP CONSTRAINT",
    "CREATE VIEW",
    "DROP VIEW",
    "CREATE SCHEMA",
    "DROP SCHEMA",
    "COMMIT",
    "SET",
    "CHECKPOINT",
    "VACUUM",
    "CLOSE",
];

/// Every kind of call that changes something or makes it durable; nothing is ever renamed.
const CALLS: [&str; 10] = [
    "create file",
    "create log",
    "write header",
    "write page",
    "write log",
    "set length",
    "sync file",
    "sync log",
    "sync directory",
    "remove log",
];

#[derive(Debug, Default)]
pub(super) struct Report {
    crashes: BTreeMap<(&'static str, &'static str), u64>,
    histories: u64,
    process_deaths: u64,
    /// Crashes after which nothing was promised.
    pub(super) unpromised: u64,
    pressed_groups: u64,
    delete_marks: u64,
    old_snapshots: u64,
    checkpoints: u64,
    pub(super) tally: Tally,
}

/// What a call does, and to which file.
pub(super) fn call_kind(call: &RecordedCall) -> &'static str {
    let is_log = is_log(&call.path);
    match call.call {
        Call::Create if is_log => "create log",
        Call::Create => "create file",
        Call::Write if is_log => "write log",
        Call::Write if call.offset < HEADER_BYTES => "write header",
        Call::Write => "write page",
        Call::SetLength => "set length",
        Call::Sync if is_log => "sync log",
        Call::Sync => "sync file",
        Call::SyncDirectory => "sync directory",
        Call::Remove => "remove log",
        _ => "other",
    }
}

impl Report {
    pub(super) fn wants(&self, crashes: u64) -> bool {
        self.total() < crashes
    }

    fn total(&self) -> u64 {
        self.crashes.values().sum()
    }

    pub(super) fn crashes_in(&self, cell: (&'static str, &'static str)) -> u64 {
        self.crashes.get(&cell).copied().unwrap_or(0)
    }

    pub(super) fn add_history(&mut self, story: &Story) {
        self.histories += 1;
        self.tally.add(&story.tally);
    }

    pub(super) fn add_crash(&mut self, cell: (&'static str, &'static str), death: Death, content: Content) {
        *self.crashes.entry(cell).or_default() += 1;
        self.process_deaths += u64::from(death == Death::Process);
        self.pressed_groups += u64::from(content.pressed_groups);
        self.delete_marks += u64::from(content.delete_marks);
        self.old_snapshots += u64::from(content.old_snapshot);
        self.checkpoints += u64::from(content.checkpoint);
    }

    /// That everything was met often enough.
    pub(super) fn check(&self) {
        let by = |of: &dyn Fn(&(&'static str, &'static str)) -> &'static str| -> BTreeMap<&'static str, u64> {
            let mut sums = BTreeMap::new();
            self.crashes.iter().for_each(|(cell, count)| *sums.entry(of(cell)).or_default() += count);
            sums
        };
        let (statements, calls) = (by(&|cell| cell.0), by(&|cell| cell.1));
        for (names, sums) in [(&STATEMENTS[..], &statements), (&CALLS[..], &calls)] {
            let rare = names.iter().find(|name| sums.get(**name).is_none_or(|count| *count < CELL_MIN));
            assert_eq!(rare, None, "too few crashes in it: {sums:?}");
        }
        let rare = self.crashes.iter().find(|(_, count)| **count < CELL_MIN);
        assert_eq!(rare, None, "too few crashes");
        let contents = [self.pressed_groups, self.delete_marks, self.old_snapshots, self.checkpoints];
        assert!(contents.iter().all(|count| *count >= self.total() / 50), "histories hold too little: {contents:?}");
        assert!(self.tally.conflicts > 0 && self.tally.beside_checkpoints > 0, "{:?}", self.tally);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls: Vec<&str> = self.crashes.keys().map(|cell| cell.1).collect::<BTreeSet<_>>().into_iter().collect();
        let statements: BTreeSet<&str> = self.crashes.keys().map(|cell| cell.0).collect();
        write!(f, "crashes in{:16}", "")?;
        calls.iter().try_for_each(|call| write!(f, "{call:>15}"))?;
        writeln!(f)?;
        for statement in statements {
            write!(f, "  {statement:24}")?;
            for call in &calls {
                let count = self.crashes.iter().find(|(cell, _)| cell.0 == statement && cell.1 == *call);
                write!(f, "{:>15}", count.map_or(String::new(), |(_, count)| count.to_string()))?;
            }
            writeln!(f)?;
        }
        writeln!(
            f,
            "{} crashes in {} histories, {} of the process alone, {} after which nothing was promised",
            self.total(),
            self.histories,
            self.process_deaths,
            self.unpromised
        )?;
        writeln!(
            f,
            "with pressed groups: {}, with delete marks: {}, with an old snapshot open: {}, during a checkpoint: {}",
            self.pressed_groups, self.delete_marks, self.old_snapshots, self.checkpoints
        )?;
        write!(f, "{:?}", self.tally)
    }
}
