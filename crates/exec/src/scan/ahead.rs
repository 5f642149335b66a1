//! Which row groups a scan is going to read next, and which of their columns.
//!
//! Each group is announced once, by whichever worker comes within [`GROUPS_AHEAD`] of it first. Which columns it needs
//! is not known before its vectors are tested: what is surely read is the column of the first test, or all that the
//! output wants where zone maps leave nothing to test. After its first group a worker knows more: what that one needed,
//! the next ones will need too, most of the time.

use super::group::Group;
use super::plan::ScanPlan;
use super::vectors::Shared;
use crate::ReadAhead;
use crate::flow::Sink;
use std::sync::atomic::Ordering;

/// Chunks hold a column of several row groups, so that one read serves some groups, and then all columns' next chunks
/// are needed at about the same time. So far ahead, the next chunk is known before the last one is used up.
const GROUPS_AHEAD: usize = 8;

/// A worker's announcements.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// By group; those behind the worker are done, or in others' hands.
    announced: Vec<(usize, ReadAhead)>,
    /// Per column of the scan, whether the last group needed it.
    needed: Option<Vec<bool>>,
}

impl Ahead {
    /// Announces what follows `group`, which the worker is about to read.
    pub(super) fn announce(&mut self, shared: &Shared<'_>, sink: &dyn Sink, group: usize) {
        self.announced.retain(|(announced, _)| *announced >= group);
        if shared.is_limited && self.needed.is_none() {
            // The first group may be all that is wanted.
            return;
        }
        let end = (group + 1 + GROUPS_AHEAD).min(shared.source.group_count());
        let start = shared.next_announced.fetch_max(end, Ordering::Relaxed).max(group + 1);
        for next in start..end {
            let Some(mut entered) = Group::enter(shared.plan, shared.source, next) else { continue };
            if !entered.set_bound(sink.bound(), shared.plan, shared.source) {
                continue;
            }
            if entered.is_whole(shared.plan) && sink.would_take_group(next) {
                continue;
            }
            let columns = self.columns(shared.plan, sink, &entered);
            let table_columns = columns.iter().filter_map(|&column| shared.plan.columns[column].table_column());
            let wish = shared.source.will_read(next, &table_columns.collect::<Vec<_>>());
            self.announced.extend(wish.map(|wish| (next, wish)));
        }
    }

    /// Notes which columns the worker needed of a group that is done.
    pub(super) fn learn(&mut self, needed: Vec<bool>) {
        self.needed = Some(needed);
    }

    /// The columns of the scan that a group will need, in the order in which they are asked for.
    fn columns(&self, plan: &ScanPlan, sink: &dyn Sink, group: &Group) -> Vec<usize> {
        let mut steps: Vec<Vec<usize>> = group.tests.iter().map(|&number| plan.tests[number].test.columns()).collect();
        steps.extend(plan.programs.iter().map(|program| program.columns.clone()));
        steps.push(sink.columns().to_vec());
        let mut columns = match &self.needed {
            Some(needed) => steps.concat().into_iter().filter(|&column| needed[column]).collect(),
            None => steps.swap_remove(0),
        };
        let mut seen = vec![false; plan.columns.len()];
        columns.retain(|&column: &usize| !std::mem::replace(&mut seen[column], true));
        columns
    }
}
