//! Any bytes as a block of sorted keys, in every codec of the list or that of `SINTER_SCHEME`: asked everything, and changed.
//! Nothing may panic, hang or read elsewhere.
#![no_main]

use libfuzzer_sys::fuzz_target;
use sinter_codec::{KEY_CODECS, KEYS_MAX, Key, KeyBlock, KeyBlockMut, KeyCodec, KeyDescriptor};
use sinter_fuzz::scheme_name;

/// Bytes before those of the block: codec, width, count, which slack, first and last key.
const HEAD_BYTES: usize = 4 + 16;

/// Bytes behind a block into which a change may grow.
const SLACKS: [usize; 4] = [0, 1, 7, 4096];

fuzz_target!(|data: &[u8]| {
    let Some((head, bytes)) = data.split_first_chunk::<HEAD_BYTES>() else { return };
    let wanted = KEY_CODECS.iter().find(|codec| scheme_name() == Some(codec.name()));
    let codec = *wanted.unwrap_or(&KEY_CODECS[usize::from(head[0]) % KEY_CODECS.len()]);
    let number = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("eight bytes"));
    let count = usize::from(head[2]) + 1;
    let slack = SLACKS[usize::from(head[3]) % SLACKS.len()];
    match head[1] % 2 {
        0 => interrogate(codec, count, slack, number(4) as u32, number(12) as u32, bytes),
        _ => interrogate(codec, count, slack, number(4), number(12), bytes),
    }
});

fn interrogate<K: Key>(codec: KeyCodec, count: usize, slack: usize, first: K, last: K, bytes: &[u8]) {
    let descriptor = KeyDescriptor { first, last, count, byte_len: bytes.len() };
    let Ok(block) = KeyBlock::open(codec, descriptor, bytes) else { return };
    let mut keys = [K::default(); KEYS_MAX];
    let middle = block.decode(&mut keys)[count / 2];
    for index in 0..count {
        block.select(index);
    }
    for key in [first, middle, last] {
        if let Some((index, _)) = block.lower_bound(key) {
            assert!(index < count, "index {index} of {count} keys by {}", codec.name());
        }
    }
    let changes: [&dyn Fn(&mut KeyBlockMut<'_, K>); 5] = [
        &|block| _ = block.append(last),
        &|block| _ = block.insert(middle),
        &|block| _ = block.delete(0),
        &|block| _ = block.delete(count / 2),
        &|block| _ = block.delete(count - 1),
    ];
    for change in changes {
        // Each on a block of its own, and once more on what it made of that.
        let (mut descriptor, mut room) = (descriptor, bytes.to_vec());
        room.resize(bytes.len() + slack, 0);
        if let Ok(mut block) = KeyBlockMut::open(codec, &mut descriptor, &mut room) {
            change(&mut block);
        }
        if let Ok(mut block) = KeyBlockMut::open(codec, &mut descriptor, &mut room) {
            let last = block.as_block().descriptor().last;
            block.append(last);
        }
    }
}
