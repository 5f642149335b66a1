//! Any values, in each scheme that holds their type (or the one of `SINTER_SCHEME`) and in the one that is chosen: what
//! goes in comes out.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sinter_codec::{Block, Choice, Physical, SCHEMES, ValuesBuf, encode};
use sinter_fuzz::{is_same, scheme_name, values_from};

fuzz_target!(|data: &[u8]| {
    let Some((kind, bytes)) = data.split_first() else { return };
    let physical = Physical::ALL[usize::from(*kind) % Physical::ALL.len()];
    let values = values_from(physical, bytes);
    let schemes = SCHEMES.iter().filter(|entry| entry.holds(physical));
    let wanted = schemes.filter(|entry| scheme_name().is_none_or(|name| name == entry.name));
    let choices = wanted.map(|entry| Choice::Forced(entry.name.to_owned())).chain([Choice::Auto]);
    for choice in choices {
        let mut block = Vec::new();
        encode(values.as_values(), None, &choice, &mut block).expect("the type is one that the scheme holds");
        let block = Block::open(&block).expect("what was written can be read");
        let mut decoded = ValuesBuf::new(physical);
        block.decode(0..values.len(), &mut decoded).expect("what was written can be read");
        assert!(is_same(&decoded, &values), "{choice:?} as {}", block.describe());
    }
});
