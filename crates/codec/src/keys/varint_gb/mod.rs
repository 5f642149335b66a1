//! `varint_gb`: the difference of each key but the first from the one before, in groups of four: a control of four
//! lengths, then the differences in as few whole bytes (section 2.2; Dean, WSDM 2009). The last group may have fewer.
//!
//! A block of one key has no bytes. Others begin with a byte that says how many bytes the last group has, so that a key
//! is appended without a walk; then come the groups:
//!
//! ```text
//!         | control          | difference | difference | difference | difference |
//!   u32   | u8,  2 bits each | 1..=4 bytes, the lowest first, as the control says |
//!   u64   | u16, 4 bits each | 1..=8 bytes                                         |
//! ```
//!
//! Each length is kept less one, the first in the lowest bits. Delete-stable: the sum of two differences needs at most
//! a byte more than the greater, and so never more than both. We differ from the paper in that keys may be 64-bit, and
//! in that deletes too work in place: as an insert does, they write the groups from the changed one on. Where there are
//! shuffles of bytes, a [`table`] tells how to bring the bytes of a group into lanes of their own; what is left to wait for is
//! each control in turn, which says where the next is.

mod table;

use super::block::{KeyBlock, KeyDescriptor};
use super::block_mut::KeyChange;
use super::coding::{Coding, KEYS_MAX, Keys};
use super::key::{Key, Word};
use crate::isa::{Proof, each_isa};
use crate::kernels::prefix_sum;
use table::{FOUR_OF_32_BITS, TWO_OF_64_BITS};

/// Where the groups begin, behind the length of the last.
const GROUPS_AT: usize = 1;

/// Differences in a group.
const GROUP_LEN: usize = 4;

/// See the module.
pub(super) struct VarintGb;

impl Coding for VarintGb {
    const IS_DELETE_STABLE: bool = true;

    fn size<K: Key>(keys: &[K]) -> usize {
        if keys.len() < 2 { 0 } else { GROUPS_AT + groups_size(keys) }
    }

    fn write<K: Key>(keys: &[K], out: &mut [u8]) {
        if let Some((last_len, groups)) = out.split_first_mut() {
            *last_len = put_groups(keys, groups).last_len as u8;
        }
    }

    fn encode<K: Key>(keys: &[K], out: &mut Vec<u8>) {
        if keys.len() < 2 {
            return;
        }
        let last_len_at = out.len();
        let steps = keys.len() - 1;
        let len_max = steps.div_ceil(GROUP_LEN) * control_bytes::<K>() + steps * K::BYTES;
        out.resize(last_len_at + GROUPS_AT + len_max, 0);
        let Written { len, last_len } = put_groups(keys, &mut out[last_len_at + GROUPS_AT..]);
        out[last_len_at] = last_len as u8;
        out.truncate(last_len_at + GROUPS_AT + len);
    }

    #[inline]
    fn fits<K: Key>(descriptor: &KeyDescriptor<K>, bytes: &[u8]) -> bool {
        let steps = descriptor.count - 1;
        let head = steps.min(GROUPS_AT) + steps.div_ceil(GROUP_LEN) * control_bytes::<K>();
        (head + steps..=head + steps * K::BYTES).contains(&bytes.len())
    }

    fn decode<K: Key>(block: &KeyBlock<'_, K>, out: &mut Keys<K>) {
        let out = &mut out[..block.descriptor.count];
        unpack(block.bytes, GROUPS_AT, &mut out[1..]);
        prefix_sum(block.descriptor.first, out);
    }

    fn select<K: Key>(block: &KeyBlock<'_, K>, index: usize) -> K {
        let group = walk_to_index(block.bytes, &block.descriptor, index);
        group.steps.iter().take(index - group.from).fold(group.before, |key, step| key.add(*step))
    }

    fn lower_bound<K: Key>(block: &KeyBlock<'_, K>, key: K) -> (usize, K) {
        let Group { mut before, from, steps, .. } = walk_to_key(block.bytes, &block.descriptor, key);
        let last = block.descriptor.count - 1;
        for (index, step) in (from + 1..=last).zip(steps) {
            before = before.add(step);
            if before >= key {
                return (index, before);
            }
        }
        (last, before)
    }

    fn append<K: Key>(descriptor: &mut KeyDescriptor<K>, room: &mut [u8], key: K) -> Option<KeyChange> {
        let step = key.sub(descriptor.last);
        let place = (descriptor.count - 1) % GROUP_LEN;
        let end = descriptor.byte_len.max(GROUPS_AT);
        let at = if place == 0 { end + control_bytes::<K>() } else { end };
        let needed = at + step_len(step);
        if needed > room.len() {
            return Some(KeyChange::NoRoom(needed));
        }
        if place == 0 {
            room[0] = 0;
            room[end..at].fill(0);
        }
        // A damaged block may say anything of its last group: then it is written anew.
        let control_at = end.checked_sub(room[0].into())?.max(GROUPS_AT);
        if control_at + control_bytes::<K>() > at {
            return None;
        }
        let bit = place * control_bits::<K>();
        room[control_at + bit / 8] |= (step_len(step) as u8 - 1) << (bit % 8);
        put(step, &mut room[at..needed]);
        room[0] = (needed - control_at).min(u8::MAX.into()) as u8;
        (descriptor.last, descriptor.byte_len) = (key, needed);
        descriptor.count += 1;
        Some(KeyChange::Done(descriptor.count - 1))
    }

    fn insert<K: Key>(descriptor: &mut KeyDescriptor<K>, room: &mut [u8], key: K) -> Option<KeyChange> {
        let group = walk_to_key(&room[..descriptor.byte_len], descriptor, key);
        let mut tail = Tail::read(&room[..descriptor.byte_len], descriptor, group);
        let within = tail.as_slice().iter().take_while(|one| **one < key).count();
        if tail.as_slice().get(within) == Some(&key) {
            return Some(KeyChange::Present(tail.group.from + within));
        }
        tail.insert(within, key);
        Some(tail.write(descriptor, room, within))
    }

    fn delete<K: Key>(descriptor: &mut KeyDescriptor<K>, room: &mut [u8], index: usize) -> Option<KeyChange> {
        let group = walk_to_index(&room[..descriptor.byte_len], descriptor, index);
        let mut tail = Tail::read(&room[..descriptor.byte_len], descriptor, group);
        tail.remove(index - group.from);
        Some(tail.write(descriptor, room, index - group.from))
    }
}

/// What [`put_groups`] wrote.
struct Written {
    /// The bytes of all groups.
    len: usize,
    /// Those of the last.
    last_len: usize,
}

/// A group that was walked to.
#[derive(Clone, Copy)]
struct Group<K> {
    /// The index of the key before it.
    from: usize,
    before: K,
    steps: [K; GROUP_LEN],
    /// Where it begins, and where the one before does.
    at: usize,
    previous_at: usize,
}

each_isa! {
    /// The first group whose last key is not less than `key`; or else the last.
    fn walk_to_key<K: Key>(bytes: &[u8], descriptor: &KeyDescriptor<K>, key: K) -> Group<K> = walk_to_key_body, proof;
    /// The group of the key at `index`, which for the first key is the first.
    fn walk_to_index<K: Key>(bytes: &[u8], descriptor: &KeyDescriptor<K>, index: usize) -> Group<K>
        = walk_to_index_body, proof;
    /// As many differences as `out` has space for, of the groups from `at` on.
    fn unpack<K: Key>(bytes: &[u8], at: usize, out: &mut [K]) = unpack_body, proof;
    /// Bytes of the groups of the differences of these keys, two at least.
    fn groups_size<K: Key>(keys: &[K]) -> usize = groups_size_body;
    /// Writes the groups of the differences of these keys to `out`, which has room for them; what lies behind them there may
    /// be written over.
    fn put_groups<K: Key>(keys: &[K], out: &mut [u8]) -> Written = put_groups_body;
}

#[inline(always)]
fn walk_to_key_body<K: Key, P: Proof>(proof: P, bytes: &[u8], descriptor: &KeyDescriptor<K>, key: K) -> Group<K> {
    walk(proof, bytes, descriptor, |_, last| last >= key)
}

#[inline(always)]
fn walk_to_index_body<K: Key, P: Proof>(
    proof: P,
    bytes: &[u8],
    descriptor: &KeyDescriptor<K>,
    index: usize,
) -> Group<K> {
    walk(proof, bytes, descriptor, |last, _| last >= index)
}

/// The first group of which `is_found` holds, given the index of its last key and that key; or else the last.
#[inline(always)]
fn walk<K: Key, P: Proof>(
    proof: P,
    bytes: &[u8],
    descriptor: &KeyDescriptor<K>,
    is_found: impl Fn(usize, K) -> bool,
) -> Group<K> {
    let (mut before, mut at, mut previous_at, mut from) = (descriptor.first, GROUPS_AT, GROUPS_AT, 0);
    loop {
        let (steps, end) = group_by_isa::<K, _>(proof, bytes, at);
        let last = before.add(steps[0].add(steps[1]).add(steps[2].add(steps[3])));
        let index = from + GROUP_LEN;
        if index + 1 >= descriptor.count || is_found(index, last) {
            return Group { from, before, steps, at, previous_at };
        }
        (before, at, previous_at, from) = (last, end, at, index);
    }
}

#[inline(always)]
fn unpack_body<K: Key, P: Proof>(proof: P, bytes: &[u8], mut at: usize, out: &mut [K]) {
    let (wholes, rest) = out.as_chunks_mut();
    for out in wholes {
        (*out, at) = group_by_isa(proof, bytes, at);
    }
    let (steps, _) = group(bytes, at);
    rest.copy_from_slice(&steps[..rest.len()]);
}

/// The keys from the one before a group on, whose differences are written again.
struct Tail<K> {
    group: Group<K>,
    keys: [K; KEYS_MAX + 1],
    count: usize,
}

impl<K: Key> Tail<K> {
    fn read(bytes: &[u8], descriptor: &KeyDescriptor<K>, start: Group<K>) -> Self {
        let mut keys = [start.before; KEYS_MAX + 1];
        let count = descriptor.count - start.from;
        unpack(bytes, start.at, &mut keys[1..count]);
        prefix_sum(start.before, &mut keys[..count]);
        Tail { group: start, keys, count }
    }

    fn as_slice(&self) -> &[K] {
        &self.keys[..self.count]
    }

    fn insert(&mut self, within: usize, key: K) {
        self.keys.copy_within(within..self.count, within + 1);
        self.keys[within] = key;
        self.count += 1;
    }

    fn remove(&mut self, within: usize) {
        self.keys.copy_within(within + 1..self.count, within);
        self.count -= 1;
    }

    /// Writes these keys in the place of those that were read, if there is room. The change was made at `within`.
    fn write(&self, descriptor: &mut KeyDescriptor<K>, room: &mut [u8], within: usize) -> KeyChange {
        let (keys, Group { from, at, previous_at, .. }) = (self.as_slice(), self.group);
        let end = if keys.len() > 1 { at + groups_size(keys) } else { at };
        if end > room.len() {
            return KeyChange::NoRoom(end);
        }
        let last_len = if keys.len() > 1 { put_groups(keys, &mut room[at..end]).last_len } else { at - previous_at };
        room[0] = last_len.min(u8::MAX.into()) as u8;
        descriptor.count = from + keys.len();
        descriptor.byte_len = if descriptor.count > 1 { end } else { 0 };
        if from == 0 {
            descriptor.first = keys[0];
        }
        descriptor.last = keys[keys.len() - 1];
        KeyChange::Done(from + within)
    }
}

const fn control_bytes<K: Word>() -> usize {
    if K::BYTES == 4 { 1 } else { 2 }
}

/// Bits of a length in the control.
const fn control_bits<K: Word>() -> usize {
    8 * control_bytes::<K>() / GROUP_LEN
}

/// Bytes of a difference.
#[inline]
fn step_len<K: Word>(step: K) -> usize {
    (step.width().max(1) as usize).div_ceil(8)
}

/// The control at `at`; zero behind the end.
#[inline]
fn control<K: Word>(bytes: &[u8], at: usize) -> u32 {
    let byte = |at: usize| u32::from(bytes.get(at).copied().unwrap_or(0));
    if control_bytes::<K>() == 1 { byte(at) } else { byte(at) | byte(at + 1) << 8 }
}

/// The length that the control has for the difference at `place`.
#[inline]
fn len_at<K: Word>(control: u32, place: usize) -> usize {
    (control >> (place * control_bits::<K>())) as usize % K::BYTES + 1
}

/// The differences of the group at `at`, and where it ends if it has four. What lies behind the end of the bytes is
/// zero.
#[inline]
fn group<K: Word>(bytes: &[u8], at: usize) -> ([K; GROUP_LEN], usize) {
    let control = control::<K>(bytes, at);
    let mut at = at + control_bytes::<K>();
    let mut steps = [K::default(); GROUP_LEN];
    let is_whole = bytes.len() >= at + GROUP_LEN * K::BYTES;
    for (place, step) in steps.iter_mut().enumerate() {
        let len = len_at::<K>(control, place);
        let word = if is_whole { K::read_word(&bytes[at..]) } else { word_within(bytes, at) };
        *step = word & K::MAX >> (8 * (K::BYTES - len) as u32);
        at += len;
    }
    (steps, at)
}

/// As [`group`], by shuffles where there are any.
#[inline(always)]
fn group_by_isa<K: Word, P: Proof>(proof: P, bytes: &[u8], at: usize) -> ([K; GROUP_LEN], usize) {
    shuffled_group(proof, bytes, at).unwrap_or_else(|| group(bytes, at))
}

/// As [`group`]; `None` where there are no shuffles, or fewer bytes than a group may have.
#[inline(always)]
fn shuffled_group<K: Word, P: Proof>(proof: P, bytes: &[u8], at: usize) -> Option<([K; GROUP_LEN], usize)> {
    if !P::IS_WIDE {
        return None;
    }
    let rest = bytes.get(at..)?;
    let lanes = |bytes: &[u8; 16]| {
        let mut steps = [K::default(); GROUP_LEN];
        let words = bytes.chunks_exact(K::BYTES);
        steps.iter_mut().zip(words).for_each(|(step, bytes)| *step = K::read_word(bytes));
        steps
    };
    if K::BYTES == 4 {
        let [control, bytes @ ..] = rest.first_chunk::<17>()?;
        let control = usize::from(*control);
        let steps = lanes(&proof.shuffle(bytes, &FOUR_OF_32_BITS.places[control]));
        return Some((steps, at + 1 + usize::from(FOUR_OF_32_BITS.lens[control])));
    }
    let [low, high, bytes @ ..] = rest.first_chunk::<34>()?;
    let (low, high) = (usize::from(*low), usize::from(*high));
    let low_len = usize::from(TWO_OF_64_BITS.lens[low]);
    let [a, b, ..] = lanes(&proof.shuffle(bytes.first_chunk()?, &TWO_OF_64_BITS.places[low]));
    let [c, d, ..] = lanes(&proof.shuffle(bytes[low_len..].first_chunk()?, &TWO_OF_64_BITS.places[high]));
    Some(([a, b, c, d], at + 2 + low_len + usize::from(TWO_OF_64_BITS.lens[high])))
}

/// The bytes at `at` as a number, with zeros for those behind the end.
#[inline]
fn word_within<K: Word>(bytes: &[u8], at: usize) -> K {
    let mut word = [0; 8];
    let rest = bytes.get(at..).unwrap_or_default();
    let len = rest.len().min(K::BYTES);
    word[..len].copy_from_slice(&rest[..len]);
    K::read_word(&word)
}

/// Writes the lowest bytes of a difference over all of `out`.
#[inline]
fn put<K: Word>(step: K, out: &mut [u8]) {
    let mut rest = step.to_delta();
    for out in out {
        *out = rest as u8;
        rest >>= 8;
    }
}

#[inline(always)]
fn groups_size_body<K: Key>(keys: &[K]) -> usize {
    let controls = (keys.len() - 1).div_ceil(GROUP_LEN) * control_bytes::<K>();
    controls + keys.windows(2).map(|pair| step_len(pair[1].sub(pair[0]))).sum::<usize>()
}

#[inline(always)]
fn put_groups_body<K: Key>(keys: &[K], out: &mut [u8]) -> Written {
    let (mut at, mut control_at, mut from) = (0, 0, 0);
    // While there is room for more than a group may have, what is written beyond a difference is written over by the next.
    while let Some(keys) = keys[from..].first_chunk::<{ GROUP_LEN + 1 }>()
        && out.len() - at >= control_bytes::<K>() + GROUP_LEN * K::BYTES
    {
        (control_at, at) = (at, at + control_bytes::<K>());
        let mut control = 0;
        for place in 0..GROUP_LEN {
            let step = keys[place + 1].sub(keys[place]);
            let len = step_len(step);
            control |= (len as u16 - 1) << (place * control_bits::<K>());
            step.write_word(&mut out[at..]);
            at += len;
        }
        out[control_at..][..control_bytes::<K>()].copy_from_slice(&control.to_le_bytes()[..control_bytes::<K>()]);
        from += GROUP_LEN;
    }
    for (index, pair) in keys[from..].windows(2).enumerate() {
        let place = index % GROUP_LEN;
        if place == 0 {
            (control_at, at) = (at, at + control_bytes::<K>());
            out[control_at..at].fill(0);
        }
        let step = pair[1].sub(pair[0]);
        let (len, bit) = (step_len(step), place * control_bits::<K>());
        out[control_at + bit / 8] |= (len as u8 - 1) << (bit % 8);
        put(step, &mut out[at..at + len]);
        at += len;
    }
    Written { len: at, last_len: at - control_at }
}
