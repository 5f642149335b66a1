//! Any bytes as a segment of lists and structs, a tree of blocks one after the other. Nothing may panic, hang, read elsewhere
//! or take more memory than an answer needs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sinter_codec::{Bitmap, VECTOR_LEN};
use sinter_exec::{Pinned, edge};
use sinter_fuzz::nested_types;

fuzz_target!(|data: &[u8]| {
    let Some((kind, bytes)) = data.split_first() else { return };
    let types = nested_types();
    let ty = &types[usize::from(*kind) % types.len()];
    let segment = Pinned::from_vec(bytes.to_vec());
    // Ranges that are not there are errors.
    for range in [0..1, 0..VECTOR_LEN, 100..130, 7..1100] {
        let keep = Bitmap::from_bools((0..range.len()).map(|row| row % 3 == 0));
        let _ = edge::decode_segment(&segment, ty, range.clone(), None);
        let _ = edge::decode_segment(&segment, ty, range, Some(&keep));
    }
});
