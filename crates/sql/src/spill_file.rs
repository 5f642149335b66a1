//! Files for rows that do not fit the memory, of our engine and of DataFusion's operators: without a name, in the folder for
//! temporary files.

use datafusion::error::{DataFusionError, Result as DfResult};
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::{SpillFile as DfSpillFile, SpillWriter, TempFileFactory};
use futures::stream::{Stream, try_unfold};
use sinter_exec::{Error, Result, SpillCompression, SpillFile};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fmt, io};

/// Bytes in all such files of the process, whose databases may share the folder.
static BYTES: AtomicU64 = AtomicU64::new(0);

/// There may be as many as DataFusion would allow.
const BYTES_MAX: u64 = 100 << 30;

/// What DataFusion reads at a time.
const CHUNK_BYTES: usize = 128 << 10;

/// What went wrong, with a remedy.
type Message = String;

/// A file that is gone when nobody holds it, and with the process, however that ends.
struct Nameless {
    file: File,
    directory: PathBuf,
    bytes: AtomicU64,
}

impl Nameless {
    fn make() -> std::result::Result<Nameless, Message> {
        let directory = std::env::temp_dir();
        let made = tempfile::tempfile_in(&directory);
        let file =
            made.map_err(|error| failed(format!("cannot make a file for them in {}", directory.display()), &error))?;
        Ok(Nameless { file, directory, bytes: AtomicU64::new(0) })
    }

    fn append(&self, bytes: &[u8]) -> std::result::Result<u64, Message> {
        let len = bytes.len() as u64;
        let offset = self.bytes.fetch_add(len, Ordering::Relaxed);
        let used = BYTES.fetch_add(len, Ordering::Relaxed) + len;
        if used > BYTES_MAX {
            let what = format!("{used} bytes of temporary files are more than the {BYTES_MAX} that there may be");
            return Err(failed(what, &"that is as much as DataFusion allows"));
        }
        let written = self.file.write_all_at(bytes, offset);
        written
            .map_err(|error| failed(format!("cannot write them to a file in {}", self.directory.display()), &error))?;
        Ok(offset)
    }

    fn unreadable(&self, why: &io::Error) -> Message {
        failed(format!("cannot read them from a file in {}", self.directory.display()), why)
    }
}

impl Drop for Nameless {
    fn drop(&mut self) {
        BYTES.fetch_sub(*self.bytes.get_mut(), Ordering::Relaxed);
    }
}

impl fmt::Debug for Nameless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Nameless({} bytes in {})", self.bytes.load(Ordering::Relaxed), self.directory.display())
    }
}

#[cold]
fn failed(what: String, why: &dyn fmt::Display) -> Message {
    let remedy = "raise memory_limit, or let TMPDIR name a folder with more room";
    format!("rows do not fit the memory, and {what}: {why}; {remedy}")
}

/// One of our engine.
#[derive(Debug)]
pub(crate) struct TemporaryFile {
    file: Nameless,
    compression: SpillCompression,
}

impl TemporaryFile {
    /// A new one.
    pub(crate) fn make(compression: SpillCompression) -> Result<Arc<dyn SpillFile>> {
        let file = Nameless::make().map_err(|message| Error::Source(message.into()))?;
        Ok(Arc::new(TemporaryFile { file, compression }))
    }
}

impl SpillFile for TemporaryFile {
    fn append(&self, bytes: &[u8]) -> Result<u64> {
        self.file.append(bytes).map_err(|message| Error::Source(message.into()))
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let read = self.file.file.read_exact_at(bytes, offset);
        read.map_err(|error| Error::Source(self.file.unreadable(&error).into()))
    }

    fn compression(&self) -> SpillCompression {
        self.compression
    }
}

/// Where DataFusion's operators have theirs from: its own would have names, and would stay when the process ends early.
pub(crate) fn disk() -> DiskManagerBuilder {
    DiskManagerBuilder::default().with_mode(DiskManagerMode::Custom(Arc::new(NamelessFiles)))
}

struct NamelessFiles;

impl TempFileFactory for NamelessFiles {
    fn create_temp_file(&self, _description: &str) -> DfResult<Arc<dyn DfSpillFile>> {
        let file = Nameless::make().map_err(|message| DataFusionError::from(crate::Error::Io(message)))?;
        Ok(Arc::new(OfDataFusion(Arc::new(file))))
    }
}

/// One of DataFusion's operators.
#[derive(Clone, Debug)]
struct OfDataFusion(Arc<Nameless>);

impl DfSpillFile for OfDataFusion {
    fn size(&self) -> Option<u64> {
        Some(self.0.bytes.load(Ordering::Relaxed))
    }

    /// Reads in the thread that asks: what was just written is in the page cache.
    fn read_stream(&self) -> DfResult<Pin<Box<dyn Stream<Item = DfResult<bytes::Bytes>> + Send>>> {
        let file = Arc::clone(&self.0);
        Ok(Box::pin(try_unfold(0, move |offset| {
            let file = Arc::clone(&file);
            async move {
                let mut chunk = vec![0; CHUNK_BYTES];
                let read = file.file.read_at(&mut chunk, offset);
                let len = read.map_err(|error| DataFusionError::from(crate::Error::Io(file.unreadable(&error))))?;
                chunk.truncate(len);
                Ok((len > 0).then(|| (bytes::Bytes::from(chunk), offset + len as u64)))
            }
        })))
    }

    fn open_writer(&self) -> DfResult<Box<dyn SpillWriter>> {
        Ok(Box::new(self.clone()))
    }
}

impl io::Write for OfDataFusion {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.append(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl SpillWriter for OfDataFusion {
    fn finish(&mut self) -> DfResult<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::StreamExt;
    use std::io::Write;

    #[test]
    fn what_datafusion_writes_it_reads_again_and_no_file_has_a_name() {
        let file = NamelessFiles.create_temp_file("rows").unwrap();
        let wanted: Vec<u8> = (0..3 * CHUNK_BYTES + 7).map(|byte| byte as u8).collect();
        let mut writer = file.open_writer().unwrap();
        wanted.chunks(1000).for_each(|chunk| writer.write_all(chunk).unwrap());
        writer.finish().unwrap();
        assert_eq!(file.size(), Some(wanted.len() as u64));
        assert_eq!(file.path(), None);
        for _ in 0..2 {
            let mut stream = file.read_stream().unwrap();
            let mut found = Vec::new();
            while let Some(chunk) = pollster::block_on(stream.next()) {
                found.extend_from_slice(&chunk.unwrap());
            }
            assert!(found == wanted, "{} bytes", found.len());
        }
    }
}
