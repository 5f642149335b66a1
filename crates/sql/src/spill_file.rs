//! Files for rows of our engine that do not fit the memory: without a name, in the directory where DataFusion has its own.

use datafusion::execution::disk_manager::DiskManager;
use sinter_exec::{Error, Result, SpillCompression, SpillFile};
use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes in all such files of the process, whose databases may share the directory.
static BYTES: AtomicU64 = AtomicU64::new(0);

/// A file that is gone with it, and with the process, however that ends.
pub(crate) struct TemporaryFile {
    file: File,
    directory: PathBuf,
    bytes: AtomicU64,
    disk: Arc<DiskManager>,
    compression: SpillCompression,
}

impl TemporaryFile {
    /// A new one; `None` where temporary files are switched off.
    pub(crate) fn make(disk: &Arc<DiskManager>, compression: SpillCompression) -> Result<Option<Arc<dyn SpillFile>>> {
        if !disk.tmp_files_enabled() {
            return Ok(None);
        }
        let directory = disk.temp_dir_paths().into_iter().next().unwrap_or_else(std::env::temp_dir);
        let made = tempfile::tempfile_in(&directory);
        let file =
            made.map_err(|error| failed(format!("cannot make a file for them in {}", directory.display()), &error))?;
        let (bytes, disk) = (AtomicU64::new(0), Arc::clone(disk));
        Ok(Some(Arc::new(TemporaryFile { file, directory, bytes, disk, compression })))
    }
}

impl SpillFile for TemporaryFile {
    fn append(&self, bytes: &[u8]) -> Result<u64> {
        let len = bytes.len() as u64;
        let offset = self.bytes.fetch_add(len, Ordering::Relaxed);
        let ours = BYTES.fetch_add(len, Ordering::Relaxed) + len;
        let (used, bytes_max) = (self.disk.used_disk_space() + ours, self.disk.max_temp_directory_size());
        if used > bytes_max {
            let what = format!("{used} bytes of temporary files are more than the {bytes_max} that there may be");
            return Err(failed(what, &"that is as much as DataFusion allows"));
        }
        let written = self.file.write_all_at(bytes, offset);
        written
            .map_err(|error| failed(format!("cannot write them to a file in {}", self.directory.display()), &error))?;
        Ok(offset)
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let read = self.file.read_exact_at(bytes, offset);
        read.map_err(|error| failed(format!("cannot read them from a file in {}", self.directory.display()), &error))
    }

    fn compression(&self) -> SpillCompression {
        self.compression
    }
}

#[cold]
fn failed(what: String, why: &dyn fmt::Display) -> Error {
    let remedy = "raise memory_limit, or let TMPDIR name a folder with more room";
    Error::Source(format!("rows do not fit the memory, and {what}: {why}; {remedy}").into())
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        BYTES.fetch_sub(*self.bytes.get_mut(), Ordering::Relaxed);
    }
}

impl fmt::Debug for TemporaryFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TemporaryFile({} bytes in {})", self.bytes.load(Ordering::Relaxed), self.directory.display())
    }
}
