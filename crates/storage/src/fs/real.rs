//! Files of the operating system: `pread` and `pwrite`, no mmap of files, so that an I/O error is an error and not a signal.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{File, FileSystem, LockGuard, LockKind, LockOutcome, OpenMode, lock_holders};

/// Parts that are together smaller than this are copied into one buffer and written by one call.
const GATHER_BYTES_MAX: usize = 64 << 10;

/// The operating system's files.
#[derive(Debug, Default, Clone, Copy)]
pub struct RealFileSystem;

impl FileSystem for RealFileSystem {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn File>> {
        let mut options = fs::OpenOptions::new();
        options.read(true).write(mode != OpenMode::Read).create(mode == OpenMode::Create);
        Ok(Arc::new(RealFile { file: options.open(path)? }))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        path.try_exists()
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn list(&self, directory: &Path, prefix: &OsStr) -> io::Result<Vec<PathBuf>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(here_if_empty(directory))? {
            let path = directory.join(entry?.file_name());
            if super::is_listed(&path, directory, prefix) {
                found.push(path);
            }
        }
        Ok(found)
    }

    fn follow_links(&self, path: &Path) -> io::Result<PathBuf> {
        match fs::symlink_metadata(path) {
            Ok(metadata) if metadata.is_symlink() => fs::canonicalize(path),
            _ => Ok(path.to_path_buf()),
        }
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        fs::File::open(here_if_empty(directory))?.sync_all()
    }

    fn lock(&self, path: &Path, kind: LockKind) -> io::Result<LockOutcome> {
        // A handle of its own: the lock belongs to the handle, and goes with it or with the process.
        let file = fs::File::open(path)?;
        let attempt = match kind {
            LockKind::Shared => file.try_lock_shared(),
            LockKind::Exclusive => file.try_lock(),
        };
        match attempt {
            Ok(()) => Ok(LockOutcome::Held(Box::new(Locked(file)) as LockGuard)),
            Err(fs::TryLockError::WouldBlock) => Ok(LockOutcome::Refused(lock_holders::of(&file))),
            Err(fs::TryLockError::Error(error)) => Err(error),
        }
    }
}

/// A locked file. Closing it would not do where this process is just starting another one: until that runs its own
/// program it has a copy of the handle, and the lock with it.
struct Locked(fs::File);

impl Drop for Locked {
    fn drop(&mut self) {
        // The handle is closed next in any case.
        let _ = self.0.unlock();
    }
}

/// The parent of a bare file name is the empty path, which the operating system does not take for the current
/// directory.
fn here_if_empty(directory: &Path) -> &Path {
    if directory.as_os_str().is_empty() { Path::new(".") } else { directory }
}

#[derive(Debug)]
struct RealFile {
    file: fs::File,
}

impl File for RealFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    fn write_at(&self, offset: u64, parts: &[&[u8]]) -> io::Result<()> {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        if parts.len() > 1 && bytes <= GATHER_BYTES_MAX {
            return self.file.write_all_at(&parts.concat(), offset);
        }
        let mut at = offset;
        for part in parts {
            self.file.write_all_at(part, at)?;
            at += part.len() as u64;
        }
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_length(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }
}
