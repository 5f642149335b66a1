//! Bytes held in memory while somebody points into them.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A view of shared, immutable bytes: a page's payload, or part of it.
///
/// The bytes stay in memory, unchanged, until the last clone is dropped: evicting, freeing or replacing the page they
/// came from does not disturb them. Cloning and slicing copy nothing.
#[derive(Clone)]
pub struct Pinned {
    owner: Arc<dyn AsRef<[u8]> + Send + Sync>,
    range: Range<usize>,
}

impl Pinned {
    /// All bytes of `owner`.
    pub fn new(owner: Arc<dyn AsRef<[u8]> + Send + Sync>) -> Pinned {
        let range = 0..(*owner).as_ref().len();
        Pinned { owner, range }
    }

    /// The bytes at `range`, counted from the start of this view.
    ///
    /// # Panics
    /// If `range` reaches beyond the view.
    pub fn slice(&self, range: Range<usize>) -> Pinned {
        assert!(range.start <= range.end && range.end <= self.range.len(), "slice {range:?} of {}", self.range.len());
        let start = self.range.start + range.start;
        Pinned { owner: Arc::clone(&self.owner), range: start..start + range.len() }
    }

    /// How many views share these bytes, this one included.
    pub fn holders(&self) -> usize {
        Arc::strong_count(&self.owner)
    }
}

impl From<Vec<u8>> for Pinned {
    fn from(bytes: Vec<u8>) -> Pinned {
        Pinned::new(Arc::new(bytes))
    }
}

impl Deref for Pinned {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &(*self.owner).as_ref()[self.range.clone()]
    }
}

impl AsRef<[u8]> for Pinned {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Pinned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pinned({} bytes)", self.range.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_of_slices_share_the_bytes() {
        let whole = Pinned::from((0..100u8).collect::<Vec<u8>>());
        let middle = whole.slice(10..50);
        assert_eq!(&*middle.slice(5..8), &[15, 16, 17]);
        assert_eq!(whole.holders(), 2);
    }
}
