//! Bytes that stay where they are while somebody points into them.

use crate::Result;
use std::ops::{Deref, Range};
use std::sync::Arc;

/// A run of bytes in a page, kept in memory by this pin. Clones share it; dropping the last one lets the page go.
#[derive(Clone)]
pub struct Pinned {
    owner: Arc<dyn AsRef<[u8]> + Send + Sync>,
    range: Range<usize>,
}

impl Pinned {
    /// Pins all of `owner`.
    pub fn new(owner: Arc<dyn AsRef<[u8]> + Send + Sync>) -> Pinned {
        let range = 0..owner.as_ref().as_ref().len();
        Pinned { owner, range }
    }

    /// Copies nothing: takes the vector over.
    pub fn from_vec(bytes: Vec<u8>) -> Pinned {
        Pinned::new(Arc::new(bytes))
    }

    /// A part of it, under the same pin; `None` when `range` reaches past the end.
    pub fn slice(&self, range: Range<usize>) -> Option<Pinned> {
        if range.start > range.end || range.end > self.range.len() {
            return None;
        }
        let start = self.range.start;
        Some(Pinned { owner: Arc::clone(&self.owner), range: start + range.start..start + range.end })
    }
}

impl Deref for Pinned {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &(*self.owner).as_ref()[self.range.clone()]
    }
}

impl std::fmt::Debug for Pinned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pinned({} bytes)", self.range.len())
    }
}

/// Where pages come from. Storage implements it; exec and the table rooms read through it.
pub trait PageSource: Send + Sync {
    /// The payload of a page, verified, for as long as the pin lives.
    ///
    /// # Errors
    /// [`crate::Error::Source`] naming file and page where the bytes are damaged or cannot be read.
    fn pin(&self, page: u64) -> Result<Pinned>;
}
