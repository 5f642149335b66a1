//! Frames of 128 numbers, one after the other, each with its width in front: the bytes of the `bp128` codecs.
//!
//! ```text
//! | width u8 | packed numbers of the first 128 keys | width u8 | packed numbers of the next 128 keys |
//! ```

use super::block::KeyDescriptor;
use super::block_mut::KeyChange;
use super::coding::KEYS_MAX;
use super::key::Key;
use super::lanes::{FRAME_LEN, LANES, pack, packed_bytes, push};
use crate::isa::each_isa;

/// Frames of a full block.
const FRAMES: usize = KEYS_MAX / FRAME_LEN;

/// A frame of a block that was checked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    /// The index of its first key.
    pub(super) from: usize,
    pub(super) width: u32,
    /// Keys in it.
    pub(super) len: usize,
    pub(super) packed: &'a [u8],
}

impl Frame<'_> {
    /// Rows that have keys.
    #[inline(always)]
    pub(super) fn rows(&self) -> usize {
        self.len.div_ceil(LANES)
    }
}

/// Gives the frames of `count` keys to `take`, until it returns false.
#[inline(always)]
pub(super) fn each_frame<'a>(bytes: &'a [u8], count: usize, mut take: impl FnMut(Frame<'a>) -> bool) {
    let (mut from, mut rest) = (0, bytes);
    while from < count
        && let Some((&width, bytes)) = rest.split_first()
    {
        let len = (count - from).min(FRAME_LEN);
        let (packed, behind) = bytes.split_at(packed_bytes(len, width.into()).min(bytes.len()));
        if !take(Frame { from, width: width.into(), len, packed }) {
            break;
        }
        (from, rest) = (from + len, behind);
    }
}

/// The frames of `count` keys: the first, and the second if there is one.
#[inline(always)]
pub(super) fn frames<'a>(bytes: &'a [u8], count: usize) -> (Frame<'a>, Option<Frame<'a>>) {
    const { assert!(FRAMES == 2) };
    let mut frames = [None; FRAMES];
    each_frame(bytes, count, |frame| {
        frames[frame.from / FRAME_LEN] = Some(frame);
        true
    });
    (frames[0].unwrap_or(Frame { from: 0, width: 0, len: 1, packed: &[] }), frames[1])
}

/// [`super::coding::Coding::fits`].
#[inline]
pub(super) fn fits<K: Key>(descriptor: &KeyDescriptor<K>, bytes: &[u8]) -> bool {
    let (mut left, mut end) = (descriptor.count, 0);
    while left > 0 {
        let len = left.min(FRAME_LEN);
        match bytes.get(end) {
            Some(&width) if u32::from(width) <= K::BITS => end += 1 + packed_bytes(len, width.into()),
            _ => return false,
        }
        left -= len;
    }
    bytes.len() == end
}

/// The bytes that the frames of these keys take; `numbers` turns those of a frame, and the four keys before it, into
/// what is packed, and returns the width.
pub(super) fn size<K: Key>(keys: &[K], numbers: impl Fn(&[K], [K; 4], &mut [K; FRAME_LEN]) -> u32) -> usize {
    let mut size = 0;
    each_packed(keys, numbers, |_, _, len| size += 1 + len);
    size
}

/// Writes the frames of these keys over all of `out`; `numbers` as for [`size`].
pub(super) fn write<K: Key>(
    keys: &[K],
    mut out: &mut [u8],
    numbers: impl Fn(&[K], [K; 4], &mut [K; FRAME_LEN]) -> u32,
) {
    each_packed(keys, numbers, |unpacked, width, len| {
        let (this, rest) = std::mem::take(&mut out).split_at_mut(1 + len);
        this[0] = width as u8;
        pack_frame(unpacked, width, &mut this[1..]);
        out = rest;
    });
}

/// Appends the frames of these keys to `out`; `numbers` as for [`size`].
pub(super) fn encode<K: Key>(
    keys: &[K],
    out: &mut Vec<u8>,
    numbers: impl Fn(&[K], [K; 4], &mut [K; FRAME_LEN]) -> u32,
) {
    each_packed(keys, numbers, |unpacked, width, len| {
        out.push(width as u8);
        let start = out.len();
        out.resize(start + len, 0);
        pack_frame(unpacked, width, &mut out[start..]);
    });
}

/// Gives the numbers of each frame, their width, and the bytes that they take when packed.
#[inline(always)]
fn each_packed<K: Key>(
    keys: &[K],
    numbers: impl Fn(&[K], [K; 4], &mut [K; FRAME_LEN]) -> u32,
    mut take: impl FnMut(&[K; FRAME_LEN], u32, usize),
) {
    for (frame, before) in keys.chunks(FRAME_LEN).zip(befores(keys)) {
        let mut unpacked = [K::default(); FRAME_LEN];
        let width = numbers(frame, before, &mut unpacked);
        take(&unpacked, width, packed_bytes(frame.len(), width));
    }
}

/// The four keys before each frame; before the first, the first key four times.
fn befores<K: Key>(keys: &[K]) -> impl Iterator<Item = [K; 4]> {
    let before = |frame: usize| keys.get((frame * FRAME_LEN).wrapping_sub(4)..)?.first_chunk().copied();
    (0..FRAMES).map(move |frame| before(frame).unwrap_or([keys[0]; 4]))
}

/// Adds a number behind those of the last frame, or in a frame of its own, with the key it stands for. `None` where the
/// last frame is narrower than the number.
pub(super) fn append<K: Key>(
    descriptor: &mut KeyDescriptor<K>,
    room: &mut [u8],
    key: K,
    number: K,
) -> Option<KeyChange> {
    let KeyDescriptor { count, byte_len, .. } = *descriptor;
    let len = count % FRAME_LEN;
    let (start, width) = if len == 0 {
        (byte_len, number.width())
    } else if count < FRAME_LEN {
        (0, room[0].into())
    } else {
        let start = 1 + packed_bytes(FRAME_LEN, room[0].into());
        (start, room[start].into())
    };
    if number.width() > width {
        return None;
    }
    let end = start + 1 + packed_bytes(len + 1, width);
    if end > room.len() {
        return Some(KeyChange::NoRoom(end));
    }
    room[start] = width as u8;
    push(&mut room[start + 1..end], width, len, number);
    (descriptor.last, descriptor.count, descriptor.byte_len) = (key, count + 1, end);
    Some(KeyChange::Done(count))
}

/// The packed numbers of the last frame, which is full.
pub(super) fn last_packed_mut<'a, K: Key>(descriptor: &KeyDescriptor<K>, room: &'a mut [u8]) -> &'a mut [u8] {
    let start = match descriptor.count {
        FRAME_LEN => 0,
        _ => 1 + packed_bytes(FRAME_LEN, room[0].into()),
    };
    &mut room[start + 1..descriptor.byte_len]
}

each_isa! {
    /// [`pack`].
    pub(super) fn pack_frame<K: Key>(numbers: &[K; FRAME_LEN], width: u32, out: &mut [u8]) = pack;
}
