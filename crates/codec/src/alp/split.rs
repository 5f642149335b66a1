//! Floats that use all their bits: cut in two, because sign, exponent and first digits repeat where the rest does not.
//!
//! ALP's "real doubles" (section 3.4) keeps the left part in a dictionary of eight entries, with exceptions. Here the
//! left part is an integer column of its own, so that the chooser may also find runs, a frame of reference or a larger
//! dictionary in it; the right part is bit-packed, for nothing else can be done to noise.

/// Cuts that are tried: bits of the right part. The left part has at most 16 bits, as in the paper.
pub(crate) fn cuts(value_bits: u32) -> std::ops::RangeInclusive<u32> {
    value_bits - 16..=value_bits - 1
}

/// The cut of `bits` (values of `value_bits` bits, widened) that leaves the fewest bits by entropy of the left parts,
/// and those bits per value.
pub(crate) fn choose_cut(bits: &[u64], value_bits: u32) -> (u32, f64) {
    let mut lefts: Vec<u64> = bits.to_vec();
    lefts.sort_unstable();
    cuts(value_bits)
        .map(|cut| (cut, f64::from(cut) + left_bits(&lefts, cut)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .expect("there is a cut")
}

/// What a left part costs: a code of a dictionary with the entries that occur, each written once.
fn left_bits(sorted: &[u64], cut: u32) -> f64 {
    let distinct = sorted.chunk_by(|a, b| a >> cut == b >> cut).count();
    let code_bits = f64::from(usize::BITS - (distinct - 1).leading_zeros());
    code_bits + 16.0 * distinct as f64 / sorted.len() as f64
}
