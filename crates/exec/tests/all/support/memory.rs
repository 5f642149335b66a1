//! Memory that runs out.

use super::random::Random;
use sinter_exec::{Error, Memory, Result, SpillCompression, SpillFile};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Grants so many bytes in all.
#[derive(Debug)]
pub(crate) struct Limited(AtomicUsize);

impl Limited {
    pub(crate) fn new(bytes: usize) -> Limited {
        Limited(AtomicUsize::new(bytes))
    }

    /// Bytes that are left to be granted.
    pub(crate) fn left(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Memory for Limited {
    fn grow(&self, bytes: usize) -> Result<()> {
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        taken.map(drop).map_err(|_| Error::OutOfMemory("enough".into()))
    }

    fn shrink(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Grants everything but a few requests, and has files for whoever is refused.
#[derive(Debug)]
pub(crate) struct Refusing {
    requests: AtomicUsize,
    /// By number.
    refused: Vec<usize>,
    pub(crate) files: AtomicUsize,
    /// In all of them.
    pub(crate) bytes: Arc<AtomicUsize>,
    held: AtomicUsize,
}

impl Refusing {
    /// Refuses the requests with these numbers.
    pub(crate) fn new(refused: Vec<usize>) -> Refusing {
        let [requests, files, held] = Default::default();
        Refusing { requests, refused, files, bytes: Arc::default(), held }
    }

    /// Refuses one of the first requests, and perhaps two more later.
    pub(crate) fn at_random(random: &mut Random) -> Refusing {
        let first = random.below(6);
        let mut refused = vec![first];
        refused.extend((0..random.below(3)).map(|_| first + 1 + random.below(40)));
        Refusing::new(refused)
    }

    /// Bytes that were granted and not given back.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
}

impl Memory for Refusing {
    fn grow(&self, bytes: usize) -> Result<()> {
        if self.refused.contains(&self.requests.fetch_add(1, Ordering::Relaxed)) {
            return Err(Error::OutOfMemory("not this time".into()));
        }
        self.held.fetch_add(bytes, Ordering::Relaxed);
        Ok(())
    }

    fn shrink(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn spill_file(&self) -> Result<Option<Arc<dyn SpillFile>>> {
        let number = self.files.fetch_add(1, Ordering::Relaxed) + self.refused.iter().sum::<usize>();
        let (content, bytes) = (Mutex::default(), Arc::clone(&self.bytes));
        Ok(Some(Arc::new(File { content, bytes, compression: COMPRESSIONS[number % COMPRESSIONS.len()] })))
    }
}

/// Those of files, in turn.
const COMPRESSIONS: [SpillCompression; 3] = [SpillCompression::Auto, SpillCompression::None, SpillCompression::All];

/// A file in memory.
#[derive(Debug)]
struct File {
    content: Mutex<Vec<u8>>,
    /// Of all files.
    bytes: Arc<AtomicUsize>,
    compression: SpillCompression,
}

impl SpillFile for File {
    fn append(&self, bytes: &[u8]) -> Result<u64> {
        self.bytes.fetch_add(bytes.len(), Ordering::Relaxed);
        let mut all = self.content.lock().expect("no panic");
        all.extend_from_slice(bytes);
        Ok((all.len() - bytes.len()) as u64)
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let all = self.content.lock().expect("no panic");
        bytes.copy_from_slice(&all[offset as usize..offset as usize + bytes.len()]);
        Ok(())
    }

    fn compression(&self) -> SpillCompression {
        self.compression
    }
}
