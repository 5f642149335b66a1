//! What nobody can beat: each commit is one write of a row to a file, and one sync. There is no database.
//!
//! The file has its length before the measurement, as logs that know their disk do, so that a sync has no length to bring
//! along. Each client has a file of its own, so nobody shares a sync.

use super::{Body, Client, Engine, Level, ROWS_BEFORE, Row};
use crate::Failure;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Rows go round in this many bytes.
const FILE_BYTES: u64 = 16 << 20;

/// What a row takes, with its length before it.
const ROW_BYTES: u64 = 128;

struct Floor {
    folder: PathBuf,
    level: Level,
    /// Clients so far.
    clients: AtomicUsize,
}

struct Appender {
    file: File,
    level: Level,
    at: u64,
    rows: i64,
    amounts: i64,
}

pub(super) fn open(folder: &Path, level: Level) -> Result<Box<dyn Engine>, Failure> {
    if level == Level::Normal {
        return Err("a write is synced or it is not: there is no level 'normal'".into());
    }
    Ok(Box::new(Floor { folder: folder.to_path_buf(), level, clients: AtomicUsize::new(0) }))
}

impl Engine for Floor {
    fn fill(&self, _rows: &[Row]) -> Result<(), Failure> {
        Ok(())
    }

    fn with_client(&self, body: &mut Body<'_>) -> Result<(), Failure> {
        let clients = self.clients.fetch_add(1, Ordering::Relaxed);
        let file =
            File::options().create(true).write(true).truncate(false).open(self.folder.join(format!("{clients}")))?;
        let zeros = vec![0; 1 << 20];
        for at in (0..FILE_BYTES).step_by(zeros.len()) {
            file.write_all_at(&zeros, at)?;
        }
        file.sync_all()?;
        let mut appender = Appender { file, level: self.level, at: 0, rows: 0, amounts: 0 };
        body(&mut appender)?;
        let totals = self.folder.join(format!("{clients}.totals"));
        Ok(std::fs::write(totals, format!("{} {}", appender.rows, appender.amounts))?)
    }

    /// Nothing can be read back from this; what clients say is believed.
    fn totals(&self) -> Result<(i64, i64), Failure> {
        let (mut rows, mut amounts) = (ROWS_BEFORE, 0);
        for entry in std::fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "totals") {
                let text = std::fs::read_to_string(path)?;
                let (more_rows, more_amounts) = text.split_once(' ').ok_or("two numbers are wanted")?;
                rows += more_rows.parse::<i64>()?;
                amounts += more_amounts.parse::<i64>()?;
            }
        }
        Ok((rows, amounts))
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        Ok(())
    }
}

impl Appender {
    fn write(&mut self, row: &Row) -> Result<(), Failure> {
        let mut bytes = [0; ROW_BYTES as usize];
        bytes[..8].copy_from_slice(&row.key.to_le_bytes());
        bytes[8..16].copy_from_slice(&row.amount.to_le_bytes());
        bytes[16..16 + row.text.len()].copy_from_slice(row.text.as_bytes());
        self.file.write_all_at(&bytes, self.at)?;
        self.at = (self.at + ROW_BYTES) % FILE_BYTES;
        if self.level == Level::Full {
            self.file.sync_data()?;
        }
        Ok(())
    }
}

impl Client for Appender {
    fn insert(&mut self, row: &Row) -> Result<(), Failure> {
        self.write(row)?;
        self.rows += 1;
        self.amounts += row.amount;
        Ok(())
    }

    fn update(&mut self, row: &Row) -> Result<(), Failure> {
        self.write(row)?;
        self.amounts += 1;
        Ok(())
    }
}
