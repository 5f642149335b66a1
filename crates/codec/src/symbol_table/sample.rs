//! A bounded part of a column to train on.

use crate::BytesBuf;

/// Longer values are cut into pieces of this many bytes before some are picked, so that one long value cannot be the
/// whole sample. Joints that are lost at the cuts do not matter at this length.
const PIECE_BYTES: usize = 1024;

/// Pieces of `values` with about `budget` bytes together, spread evenly; all of them when they have no more than that.
///
/// Picks by a fixed pseudo-random sequence: the same values give the same table, and periods in the data do no harm.
pub(crate) fn sample<'a>(values: impl Iterator<Item = &'a [u8]> + Clone, budget: usize) -> BytesBuf {
    let text_bytes: usize = values.clone().map(<[u8]>::len).sum();
    let pieces = values.flat_map(|value| value.chunks(PIECE_BYTES));
    if text_bytes <= budget {
        return pieces.collect();
    }
    let threshold = (budget as f64 / text_bytes as f64 * u32::MAX as f64) as u32;
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    pieces
        .filter(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 32) as u32) < threshold
        })
        .collect()
}
