//! What a commit changes in a tree, as a record of the log (docs/format/tree.md): after-images by key.
//!
//! ```text
//!  0      1      4
//!  | kind | zero | count | key, bytes of the record + 1 or 0 where the key goes, the record | ...
//! ```

use crate::change::{Changes, Condition};
use crate::input::{Damage, Input};
use crate::keys::{KeyList, TreeKey, lent};
use crate::records::RecordShape;
use crate::tree::Tree;
use crate::{Error, Result};
use sinter_storage::{CommitNumber, Numbered, ObjectId, Record, RecordTag};

impl<K: TreeKey + ?Sized> Tree<K> {
    /// The log's record of these changes of the tree with that number.
    pub fn log_record<'a>(tree: ObjectId, changes: impl ExactSizeIterator<Item = (&'a K, Option<&'a [u8]>)>) -> Record {
        let mut payload = vec![K::List::KIND, 0, 0, 0];
        payload.extend((changes.len() as u32).to_le_bytes());
        for (key, record) in changes {
            K::List::write_key(key, &mut payload);
            payload.extend(record.map_or(0, |record| record.len() as u32 + 1).to_le_bytes());
            payload.extend_from_slice(record.unwrap_or_default());
        }
        Record { tag: RecordTag::TREE_CHANGED, object: tree, payload }
    }

    /// Makes the changes of a log's record once more. Nobody else has the tree yet.
    ///
    /// # Errors
    /// [`Error::DamagedChange`]; a leaf cannot be read.
    pub fn replay(&self, record: &Record, commit: CommitNumber) -> Result<()> {
        let changes = self.read_changes(&record.payload).map_err(|what| Error::DamagedChange { what })?;
        // One after the other: so not all leaves of a large commit need be in memory at once, as little as there may be now.
        for (key, record) in &changes {
            let number = || Ok::<_, Error>(Numbered { commit, horizon: commit });
            self.change(lent::<K>(key), record.as_deref(), Condition::Always, number)?;
        }
        Ok(())
    }

    fn read_changes(&self, payload: &[u8]) -> Result<Changes<K>, Damage> {
        let mut input = Input::new(payload);
        let kind = input.u8()?;
        if kind != K::List::KIND {
            return Err(format!("keys of kind {kind}, where the tree has {}", K::List::KIND));
        }
        if input.array()? != [0; 3] {
            return Err("something is where zeros belong".to_owned());
        }
        let mut changes = Changes::<K>::new();
        for _ in 0..input.u32()? {
            let key = K::List::read_key(&mut input)?;
            let key_bytes = lent::<K>(&key).byte_len();
            if key_bytes > self.key_bytes_max() {
                return Err(format!("a key of {key_bytes} bytes; a leaf has place for {}", self.key_bytes_max()));
            }
            let record = match input.u32()?.checked_sub(1) {
                Some(len) => Some(input.bytes(len as usize)?),
                None => None,
            };
            let fits = record.is_none_or(|record| match self.options().records {
                RecordShape::Fixed(width) => record.len() == width,
                RecordShape::Variable => record.len() <= self.record_bytes_max(),
            });
            if !fits {
                let len = record.map_or(0, <[u8]>::len);
                return Err(format!("a record of {len} bytes, where they are {:?}", self.options().records));
            }
            changes.insert(key, record.map(Box::from));
        }
        input.end()?;
        Ok(changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TreeOptions;
    use crate::format_page::{example, hex};
    use sinter_codec::KeyCodec;

    #[test]
    fn the_format_page_shows_what_is_written() {
        let changes = [(&1000, Some(&[1, 2][..])), (&1003, None)];
        let record = Tree::<u32>::log_record(ObjectId(5), changes.into_iter());
        assert_eq!(hex(&record.payload), example("Log record 22: tree changed"));
        assert_eq!(record.tag.0, 22);
    }

    #[test]
    fn changes_that_the_tree_cannot_have_are_refused() {
        let tree = Tree::<[u8]>::new(TreeOptions::new(KeyCodec::None, RecordShape::Fixed(2)));
        let record_of = |key: &[u8], record: Option<&[u8]>| {
            let changes = [(key, record)];
            Tree::<[u8]>::log_record(ObjectId(1), changes.into_iter())
        };
        let good = record_of(b"key", Some(b"12"));
        tree.replay(&good, CommitNumber(1)).unwrap();
        assert_eq!(tree.len(CommitNumber(1)).unwrap(), 1);
        let long = vec![0; tree.key_bytes_max() + 1];
        for bad in [record_of(b"key", Some(b"123")), record_of(&long, None)] {
            assert!(matches!(tree.replay(&bad, CommitNumber(2)), Err(Error::DamagedChange { .. })));
        }
        for end in 0..good.payload.len() {
            let cut = Record { payload: good.payload[..end].to_vec(), ..good.clone() };
            assert!(matches!(tree.replay(&cut, CommitNumber(2)), Err(Error::DamagedChange { .. })), "{end} bytes");
        }
        let other = Tree::<u64>::log_record(ObjectId(1), [(&1, None)].into_iter());
        assert!(matches!(tree.replay(&other, CommitNumber(2)), Err(Error::DamagedChange { .. })));
        assert_eq!(tree.len(CommitNumber(2)).unwrap(), 1);
    }
}
