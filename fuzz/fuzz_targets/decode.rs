//! Any bytes as a block. With `SINTER_SCHEME=name`, as one whose values are in that scheme: the corpus that `seeds` wrote
//! for it is where to begin. Nothing may panic, hang, read elsewhere or take more memory than an answer needs.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sinter_codec::Block;
use sinter_fuzz::{interrogate, scheme_name, scheme_of};

fuzz_target!(|data: &[u8]| {
    let Ok(block) = Block::open(data) else { return };
    if scheme_name().is_none_or(|name| scheme_of(&block) == name) {
        interrogate(&block);
    }
});
