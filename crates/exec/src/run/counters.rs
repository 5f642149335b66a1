//! What a run has touched.

use std::sync::atomic::AtomicU64;

/// What a run has touched so far; for EXPLAIN ANALYZE and SHOW. Counted per vector, so reading them is cheap and exact
/// once all workers are done.
#[derive(Debug, Default)]
#[allow(missing_docs, reason = "the names are the documentation")]
pub struct Counters {
    pub groups_total: AtomicU64,
    /// Row groups never opened: their zone maps or delete marks rule them out.
    pub groups_pruned: AtomicU64,
    /// Row groups never opened: their statistics answer the aggregates.
    pub groups_answered: AtomicU64,
    /// Row groups left out because a column of them cannot be read, as [`crate::OnDamage::LeaveOut`] says.
    pub groups_left_out: AtomicU64,
    /// The rows of these, without deleted ones.
    pub rows_left_out: AtomicU64,
    pub vectors_total: AtomicU64,
    /// Vectors of opened groups in which the filter left no row; none of their output columns was decoded.
    pub vectors_rejected: AtomicU64,
    /// Filter tests on a vector answered on the encoded form.
    pub filters_encoded: AtomicU64,
    /// Filter tests on a vector for which values had to be decoded.
    pub filters_decoded: AtomicU64,
    /// Vectors of which values were decoded, per column.
    pub vectors_decoded: AtomicU64,
    /// Those of them that this scan had decoded before, by a filter or for an earlier operator: no field should be decoded
    /// twice.
    pub vectors_decoded_again: AtomicU64,
    /// Those that another scan of the plan had decoded before, as it scans a table twice: because it is named twice, or to
    /// reduce a join. Counted in [measured](crate::Pipeline::start_measured) runs only.
    pub vectors_decoded_elsewhere: AtomicU64,
    pub rows_scanned: AtomicU64,
    pub rows_selected: AtomicU64,
    /// Rows that were left by tests on the encoded form; what tests values comes later.
    pub rows_selected_encoded: AtomicU64,
    /// Bytes of the segments that were opened; a column of a row group counts once, however many threads were there.
    pub bytes_compressed: AtomicU64,
    /// Bytes of the values that were decoded, as they lie in memory then.
    pub bytes_decoded: AtomicU64,
}
