//! What was done in a life, and which states a crash in it may lead to.

use super::model::State;
use sinter_storage::Synchronous;
use sinter_storage::testing::{Call, Recording};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// A statement, and the calls that it made.
#[derive(Clone, Debug)]
pub(super) struct Mark {
    pub(super) kind: &'static str,
    pub(super) sql: String,
    pub(super) calls: Range<usize>,
    /// The state that it led to, as an index, if it committed one.
    pub(super) state: Option<usize>,
    /// What a commit promised when it began.
    pub(super) level: Synchronous,
    /// It makes all before it durable, at whichever level.
    pub(super) is_clean: bool,
    pub(super) content: Content,
}

/// What there was beside a statement.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Content {
    pub(super) pressed_groups: bool,
    pub(super) delete_marks: bool,
    pub(super) old_snapshot: bool,
    pub(super) checkpoint: bool,
}

/// A life that was lived.
#[derive(Debug)]
pub(super) struct Story {
    pub(super) recording: Recording,
    /// In the order of their ends; one that ran during a checkpoint is before the checkpoint.
    pub(super) marks: Vec<Mark>,
    /// The state after each commit, the first before all.
    pub(super) states: Vec<Arc<State>>,
    pub(super) tally: Tally,
    /// The first state is one of several that look the same: no rule of theirs can be counted on.
    pub(super) is_in_doubt: bool,
}

/// What happened, so that it can be said that something did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    pub(super) statements: u64,
    pub(super) refused: u64,
    pub(super) commits: u64,
    pub(super) conflicts: u64,
    pub(super) reads: u64,
    pub(super) beside_checkpoints: u64,
}

impl Tally {
    pub(super) fn add(&mut self, other: &Tally) {
        self.statements += other.statements;
        self.refused += other.refused;
        self.commits += other.commits;
        self.conflicts += other.conflicts;
        self.reads += other.reads;
        self.beside_checkpoints += other.beside_checkpoints;
    }
}

impl Story {
    /// The statement that a call belongs to: the innermost, where one ran during another.
    pub(super) fn mark_at(&self, call_index: usize) -> Option<&Mark> {
        self.marks.iter().find(|mark| mark.calls.contains(&call_index))
    }

    /// The states that a crash in a call may lead to; nothing where no promise was made.
    pub(super) fn allowed(&self, call_index: usize, is_power_loss: bool) -> Option<&[Arc<State>]> {
        let over = || self.marks.iter().filter(|mark| mark.calls.end <= call_index);
        let acknowledged = over().filter_map(|mark| mark.state).max().unwrap_or(0);
        let mark = self.mark_at(call_index);
        let in_flight = mark.and_then(|mark| mark.state).unwrap_or(0).max(acknowledged);
        let durable = if is_power_loss { self.durable(call_index, acknowledged)? } else { acknowledged };
        Some(&self.states[durable..=in_flight])
    }

    /// The last state that a power loss cannot take back.
    fn durable(&self, call_index: usize, acknowledged: usize) -> Option<usize> {
        let over = || self.marks.iter().filter(|mark| mark.calls.end <= call_index);
        let clean = over().rfind(|mark| mark.is_clean);
        let clean_at = clean.map_or(0, |mark| mark.calls.start);
        let (before, since): (Vec<&Mark>, Vec<&Mark>) = over().partition(|mark| mark.calls.end <= clean_at);
        let is_unsafe = |mark: &Mark| mark.level == Synchronous::Off && !mark.calls.is_empty() && !mark.is_clean;
        // The first call of a statement finds everything as it was; not so what began earlier and goes on beside it.
        let is_in_unsafe = |mark: &Mark| mark.level == Synchronous::Off && mark.calls.start < call_index;
        let mut in_flight = self.marks.iter().filter(|mark| mark.calls.contains(&call_index));
        if since.iter().any(|mark| is_unsafe(mark)) || in_flight.any(is_in_unsafe) {
            return None;
        }
        let is_durable = |mark: &&&Mark| match mark.level {
            // One that changed nothing made nothing durable.
            Synchronous::Full => !mark.calls.is_empty(),
            _ => self.synced_at(mark).is_some_and(|synced| synced < call_index),
        };
        let since = since.iter().filter(is_durable).filter_map(|mark| mark.state).max();
        let before = before.iter().filter_map(|mark| mark.state).max();
        Some(before.max(since).unwrap_or(0).min(acknowledged))
    }

    /// The sync that made durable what a statement appended to the log.
    fn synced_at(&self, mark: &Mark) -> Option<usize> {
        let calls = self.recording.calls();
        let is_append = |index: &usize| calls[*index].call == Call::Write && is_log(&calls[*index].path);
        let appended = mark.calls.clone().rev().find(is_append)?;
        let is_sync = |index: &usize| calls[*index].call == Call::Sync && calls[*index].path == calls[appended].path;
        (appended..calls.len()).find(is_sync)
    }
}

/// The statements, for people.
pub(super) fn text(marks: &[Mark]) -> String {
    let line = |mark: &Mark| {
        let sql: String = mark.sql.chars().take(300).collect();
        let state = mark.state.map_or_else(String::new, |state| format!(" -> state {state}"));
        format!("  {:?} {} [{:?}] {sql}{state}\n", mark.calls, mark.kind, mark.level)
    };
    marks.iter().map(line).collect()
}

/// Whether a file is a log.
pub(super) fn is_log(path: &Path) -> bool {
    path.to_string_lossy().contains("-log.")
}
