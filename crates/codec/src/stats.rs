//! What a block knows about its values without being read.

use crate::{Scalar, after_prefix};

/// Statistics of one block. Written at encoding, exact unless said otherwise.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockStats {
    /// Rows, NULLs included.
    pub value_count: usize,
    /// NULLs among them.
    pub null_count: usize,
    /// No present value is below. `Null` when unknown or no value is present. For floats NaN is left out and -0.0
    /// counts as 0.0; bytes are cut to [`BlockStats::BOUND_BYTES`].
    pub min: Scalar,
    /// No present value is above (NaN apart). A cut bytes bound is rounded up, or `Null` where that is impossible.
    pub max: Scalar,
    /// `min` and `max` occur among the values (false for cut bytes bounds).
    pub bounds_exact: bool,
    /// Some present value is NaN, which orders above `max`.
    pub has_nan: bool,
    /// The sum of the present values, for integers, where it fits.
    pub sum: Option<i128>,
    /// About how many different values are present.
    pub distinct_estimate: usize,
    /// Present values never decrease.
    pub sorted: bool,
    /// Bytes of the values in plain form: width times count; for bytes 4 a value plus their data. NULLs count as values.
    pub plain_bytes: usize,
}

impl BlockStats {
    /// Bytes bounds are cut to this length: zone maps must stay small beside the data.
    pub const BOUND_BYTES: usize = 32;

    /// The least string of at most so many bytes that is not below `value`, or `Null` when there is none.
    pub fn upper_bound(value: &[u8]) -> Scalar {
        if value.len() <= BlockStats::BOUND_BYTES {
            return Scalar::Bytes(value.to_vec());
        }
        after_prefix(&value[..BlockStats::BOUND_BYTES]).map_or(Scalar::Null, Scalar::Bytes)
    }
}
