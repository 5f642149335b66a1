//! A block of keys that is changed where it lies.

use super::block::{KeyBlock, KeyDescriptor, decoded};
use super::codec::KeyCodec;
use super::coding::KEYS_MAX;
use super::count_less::count_less;
use super::key::Key;
use crate::Result;

/// What became of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyChange {
    /// It is made; the index at which the key stands now, or stood.
    Done(usize),
    /// Not made: the key is there already, at this index.
    Present(usize),
    /// Not made: there are [`KEYS_MAX`] keys already. Remedy: split the block.
    Full,
    /// Not made: the block would take so many bytes, more than there is room for. Remedy: more room, or split the
    /// block.
    NoRoom(usize),
}

/// Keys in one codec, opened for changes. Descriptor and bytes are the caller's, and agree after every call. A change
/// that is not made leaves both as they were.
///
/// Codecs that write whole bytes change them in place (section 3.3), and all append in place where the widths allow
/// (3.4). Everything else decodes, changes and encodes.
#[derive(Debug)]
pub struct KeyBlockMut<'a, K> {
    codec: KeyCodec,
    descriptor: &'a mut KeyDescriptor<K>,
    room: &'a mut [u8],
}

impl<'a, K: Key> KeyBlockMut<'a, K> {
    /// The block that begins `room`, all of which it may grow into.
    ///
    /// # Errors
    /// As [`KeyBlock::open`].
    #[inline]
    pub fn open(codec: KeyCodec, descriptor: &'a mut KeyDescriptor<K>, room: &'a mut [u8]) -> Result<Self> {
        KeyBlock::open(codec, *descriptor, room)?;
        Ok(KeyBlockMut { codec, descriptor, room })
    }

    /// The same block, to be read.
    #[inline]
    pub fn as_block(&self) -> KeyBlock<'_, K> {
        let descriptor = *self.descriptor;
        KeyBlock { codec: self.codec, descriptor, bytes: &self.room[..descriptor.byte_len] }
    }

    /// Adds a key behind the last, which may equal it.
    ///
    /// # Panics
    /// When it is less than the last.
    #[inline]
    pub fn append(&mut self, key: K) -> KeyChange {
        let KeyDescriptor { last, count, .. } = *self.descriptor;
        if count == 0 {
            return self.write(&[key], 0);
        }
        assert!(key >= last, "{key} appended behind {last}");
        if count == KEYS_MAX {
            return KeyChange::Full;
        }
        match self.codec.append(self.descriptor, self.room, key) {
            Some(change) => change,
            None => {
                let mut keys = decoded(&self.as_block());
                keys[count] = key;
                self.write(&keys[..=count], count)
            }
        }
    }

    /// Adds a key in its place, unless it is there.
    #[inline]
    pub fn insert(&mut self, key: K) -> KeyChange {
        let KeyDescriptor { last, count, .. } = *self.descriptor;
        if count == 0 || key > last {
            return self.append(key);
        }
        if count == KEYS_MAX {
            return match self.as_block().lower_bound(key) {
                Some((index, found)) if found == key => KeyChange::Present(index),
                _ => KeyChange::Full,
            };
        }
        match self.codec.insert(self.descriptor, self.room, key) {
            Some(change) => change,
            None => self.insert_by_encoding(key),
        }
    }

    /// Takes away the key at `index`. A codec that is not delete-stable ([`KeyCodec::is_delete_stable`]) may need more
    /// room for the rest, and so refuse.
    ///
    /// # Panics
    /// When there are not so many keys.
    #[inline]
    pub fn delete(&mut self, index: usize) -> KeyChange {
        let count = self.descriptor.count;
        assert!(index < count, "key {index} of {count}");
        if count == 1 {
            *self.descriptor = KeyDescriptor::default();
            return KeyChange::Done(index);
        }
        match self.codec.delete(self.descriptor, self.room, index) {
            Some(change) => change,
            None => {
                let mut keys = decoded(&self.as_block());
                keys.copy_within(index + 1..count, index);
                self.write(&keys[..count - 1], index)
            }
        }
    }

    fn insert_by_encoding(&mut self, key: K) -> KeyChange {
        let count = self.descriptor.count;
        let mut keys = decoded(&self.as_block());
        let index = count_less(&keys[..count], key);
        if index < count && keys[index] == key {
            return KeyChange::Present(index);
        }
        keys.copy_within(index..count, index + 1);
        keys[index] = key;
        self.write(&keys[..=count], index)
    }

    /// Makes these the keys, at least one, if there is room.
    fn write(&mut self, keys: &[K], index: usize) -> KeyChange {
        let byte_len = self.codec.size(keys);
        let Some(out) = self.room.get_mut(..byte_len) else { return KeyChange::NoRoom(byte_len) };
        self.codec.write(keys, out);
        *self.descriptor = KeyDescriptor { first: keys[0], last: keys[keys.len() - 1], count: keys.len(), byte_len };
        KeyChange::Done(index)
    }
}

/// Moves what begins at `from` so that it begins at `to`, and adapts the length. The caller saw that there is room.
#[inline]
pub(super) fn move_tail<K>(descriptor: &mut KeyDescriptor<K>, room: &mut [u8], from: usize, to: usize) {
    room.copy_within(from..descriptor.byte_len, to);
    descriptor.byte_len = descriptor.byte_len - from + to;
}
