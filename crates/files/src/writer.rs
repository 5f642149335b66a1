//! Writing record batches into a file that appears only when it is whole.

use super::{Compression, FileError, Format, Result, WriteOptions, csv, ipc, json, parquet};
use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A format's way to turn batches into bytes.
pub(crate) trait Sink: Send {
    /// Writes the rows of `batch`.
    fn write(&mut self, batch: &RecordBatch) -> Result<()>;
    /// Writes what ends the file and hands everything to the operating system.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// A file being written.
///
/// Rows go to a file with a temporary name in the target's directory; [`Writer::finish`] gives it the target's name.
/// A writer that is dropped before removes it.
pub struct Writer {
    sink: Option<Box<dyn Sink>>,
    place: Place,
    row_count: u64,
}

/// Starts writing rows of `schema` to `path`. An existing file is replaced at the end.
///
/// # Errors
/// The format is unknown, does not take a column's type, or the file cannot be created.
pub fn create(path: &Path, schema: SchemaRef, options: &WriteOptions) -> Result<Writer> {
    let format = Format::choose(options.format, path)?;
    let (place, file) = Place::create(path)?;
    let compression = match format {
        Format::Csv | Format::Json => options.compression.unwrap_or_else(|| Compression::from_path(path)),
        Format::Parquet | Format::Arrow => Compression::None,
    };
    let output = Output::new(file, compression).map_err(FileError::io(path))?;
    let sink: Box<dyn Sink> = match format {
        Format::Csv => Box::new(csv::CsvSink::new(path, output, &schema, options)?),
        Format::Json => Box::new(json::JsonSink::new(path, output, &schema)?),
        Format::Parquet => Box::new(parquet::ParquetSink::new(path, output, &schema, options)?),
        Format::Arrow => Box::new(ipc::IpcSink::new(path, output, &schema)?),
    };
    Ok(Writer { sink: Some(sink), place, row_count: 0 })
}

impl Writer {
    /// Writes the rows of `batch`, whose schema is that of [`create`].
    ///
    /// # Errors
    /// The disk refuses.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        if let Some(sink) = &mut self.sink {
            sink.write(batch)?;
            self.row_count += batch.num_rows() as u64;
        }
        Ok(())
    }

    /// Makes the file whole, gives it its name, and returns the number of rows written.
    ///
    /// # Errors
    /// The disk refuses; the target is then as it was before.
    pub fn finish(mut self) -> Result<u64> {
        if let Some(sink) = self.sink.take() {
            sink.finish()?;
        }
        self.place.settle()?;
        Ok(self.row_count)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // The sink's file is closed before the name goes; an error here has no one left to hear it.
        self.sink = None;
    }
}

/// Where the bytes go until the file is whole.
struct Place {
    target: PathBuf,
    /// The temporary name, or `None` where the target is no regular file (a pipe, /dev/stdout) or is settled.
    temporary: Option<PathBuf>,
}

/// Tells apart the temporary names of one process.
static NEXT_NAME: AtomicU64 = AtomicU64::new(0);

impl Place {
    fn create(path: &Path) -> Result<(Self, File)> {
        // A link is followed, so that the file it names is replaced and not the link.
        let target = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
        if std::fs::metadata(&target).is_ok_and(|metadata| !metadata.is_file()) {
            let file = File::options().write(true).open(&target).map_err(FileError::io(path))?;
            return Ok((Self { target, temporary: None }, file));
        }
        let name = target.file_name().unwrap_or_default().to_string_lossy();
        let number = NEXT_NAME.fetch_add(1, Ordering::Relaxed);
        let temporary = target.with_file_name(format!(".{name}.{}-{number}.part", std::process::id()));
        let file = File::create(&temporary).map_err(FileError::io(path))?;
        Ok((Self { target, temporary: Some(temporary) }, file))
    }

    fn settle(&mut self) -> Result<()> {
        if let Some(temporary) = &self.temporary {
            std::fs::rename(temporary, &self.target).map_err(FileError::io(&self.target))?;
        }
        self.temporary = None;
        Ok(())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(temporary) = &self.temporary {
            let _ = std::fs::remove_file(temporary);
        }
    }
}

/// The bytes' way to the disk, compressed or not.
pub(crate) enum Output {
    Plain(BufWriter<File>),
    Gzip(flate2::write::GzEncoder<BufWriter<File>>),
    Zstd(zstd::stream::write::Encoder<'static, BufWriter<File>>),
}

impl Output {
    fn new(file: File, compression: Compression) -> std::io::Result<Self> {
        let file = BufWriter::with_capacity(1 << 18, file);
        Ok(match compression {
            Compression::None => Self::Plain(file),
            Compression::Gzip => Self::Gzip(flate2::write::GzEncoder::new(file, flate2::Compression::default())),
            Compression::Zstd => Self::Zstd(zstd::stream::write::Encoder::new(file, 3)?),
        })
    }

    /// Writes what is still held back, down to the disk.
    pub(crate) fn finish(self) -> std::io::Result<()> {
        let file = match self {
            Self::Plain(file) => file,
            Self::Gzip(encoder) => encoder.finish()?,
            Self::Zstd(encoder) => encoder.finish()?,
        };
        let file = file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        match file.sync_data() {
            // Pipes and terminals have nothing to sync.
            Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => Ok(()),
            result => result,
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(out) => out.write(bytes),
            Self::Gzip(out) => out.write(bytes),
            Self::Zstd(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Plain(out) => out.flush(),
            Self::Gzip(out) => out.flush(),
            Self::Zstd(out) => out.flush(),
        }
    }
}
