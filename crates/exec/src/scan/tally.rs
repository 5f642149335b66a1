//! Counting without touching shared memory in the hot loop.

use crate::Counters;
use std::sync::atomic::Ordering;

/// What one worker has counted since it last added it to the run's counters.
#[derive(Debug, Default)]
#[allow(missing_docs, reason = "as in Counters")]
pub(crate) struct Tally {
    pub(crate) groups_total: u64,
    pub(crate) groups_pruned: u64,
    pub(crate) groups_answered: u64,
    pub(crate) groups_left_out: u64,
    pub(crate) rows_left_out: u64,
    pub(crate) vectors_total: u64,
    pub(crate) vectors_rejected: u64,
    pub(crate) filters_encoded: u64,
    pub(crate) filters_decoded: u64,
    pub(crate) vectors_decoded: u64,
    pub(crate) vectors_decoded_again: u64,
    pub(crate) vectors_decoded_elsewhere: u64,
    pub(crate) rows_scanned: u64,
    pub(crate) rows_selected: u64,
    pub(crate) rows_selected_encoded: u64,
    pub(crate) bytes_compressed: u64,
    pub(crate) bytes_decoded: u64,
}

impl Tally {
    /// Adds everything to each of these and starts again at zero.
    pub(crate) fn flush(&mut self, all: [&Counters; 2]) {
        let tally = std::mem::take(self);
        all.into_iter().for_each(|counters| tally.add_to(counters));
    }

    fn add_to(&self, counters: &Counters) {
        let Tally {
            groups_total,
            groups_pruned,
            groups_answered,
            groups_left_out,
            rows_left_out,
            vectors_total,
            vectors_rejected,
            filters_encoded,
            filters_decoded,
            vectors_decoded,
            vectors_decoded_again,
            vectors_decoded_elsewhere,
            rows_scanned,
            rows_selected,
            rows_selected_encoded,
            bytes_compressed,
            bytes_decoded,
        } = *self;
        for (counter, count) in [
            (&counters.groups_total, groups_total),
            (&counters.groups_pruned, groups_pruned),
            (&counters.groups_answered, groups_answered),
            (&counters.groups_left_out, groups_left_out),
            (&counters.rows_left_out, rows_left_out),
            (&counters.vectors_total, vectors_total),
            (&counters.vectors_rejected, vectors_rejected),
            (&counters.filters_encoded, filters_encoded),
            (&counters.filters_decoded, filters_decoded),
            (&counters.vectors_decoded, vectors_decoded),
            (&counters.vectors_decoded_again, vectors_decoded_again),
            (&counters.vectors_decoded_elsewhere, vectors_decoded_elsewhere),
            (&counters.rows_scanned, rows_scanned),
            (&counters.rows_selected, rows_selected),
            (&counters.rows_selected_encoded, rows_selected_encoded),
            (&counters.bytes_compressed, bytes_compressed),
            (&counters.bytes_decoded, bytes_decoded),
        ] {
            if count > 0 {
                counter.fetch_add(count, Ordering::Relaxed);
            }
        }
    }
}
