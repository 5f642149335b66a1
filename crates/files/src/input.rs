//! The bytes of a text file, decompressed, from the start or in stretches.

use super::{Compression, FileError, ReadOptions, Result, SampleSize};
use std::fs::File;
use std::io::{Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The length of one stretch of a sample, in bytes.
const STRETCH_BYTES: u64 = 1 << 20;

/// A text file that can be read any number of times.
#[derive(Debug, Clone)]
pub(crate) struct Input {
    path: PathBuf,
    compression: Compression,
    is_latin1: bool,
    /// The size on disk.
    file_bytes: u64,
    /// The content of what cannot be read twice, such as a pipe.
    kept: Option<Arc<[u8]>>,
}

/// What is looked at to find the types.
pub(crate) enum Sample {
    /// The file from its first byte to its last.
    Whole,
    /// Pieces in order; the first starts where the file starts, the others anywhere.
    Stretches(Vec<Vec<u8>>),
}

impl Input {
    /// Finds the file and, unless it can be read again, reads it.
    pub(crate) fn open(path: &Path, options: &ReadOptions) -> Result<Self> {
        let compression = options.compression.unwrap_or_else(|| Compression::from_path(path));
        let metadata = std::fs::metadata(path).map_err(FileError::io(path))?;
        let mut input = Self {
            path: path.to_path_buf(),
            compression,
            is_latin1: options.is_latin1,
            file_bytes: metadata.len(),
            kept: None,
        };
        if metadata.is_dir() {
            return Err(FileError::schema(path, "a directory; for the files in it write a pattern such as dir/*.csv"));
        }
        if !metadata.is_file() {
            let mut bytes = Vec::new();
            File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)).map_err(FileError::io(path))?;
            input.file_bytes = bytes.len() as u64;
            input.kept = Some(bytes.into());
        }
        Ok(input)
    }

    /// The file's path.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The bytes from the start.
    pub(crate) fn reader(&self) -> Result<Box<dyn Read + Send>> {
        let raw: Box<dyn Read + Send> = match &self.kept {
            Some(bytes) => Box::new(Cursor::new(Arc::clone(bytes))),
            None => Box::new(File::open(&self.path).map_err(FileError::io(&self.path))?),
        };
        let bytes: Box<dyn Read + Send> = match self.compression {
            Compression::None => raw,
            Compression::Gzip => Box::new(flate2::read::MultiGzDecoder::new(std::io::BufReader::new(raw))),
            Compression::Zstd => Box::new(zstd::stream::read::Decoder::new(raw).map_err(FileError::io(&self.path))?),
        };
        Ok(if self.is_latin1 { Box::new(Latin1 { bytes, pending: None }) } else { bytes })
    }

    /// The first `limit` bytes, and whether that is all.
    pub(crate) fn head(&self, limit: u64) -> Result<(Vec<u8>, bool)> {
        let mut bytes = Vec::new();
        self.reader()?.take(limit + 1).read_to_end(&mut bytes).map_err(FileError::io(&self.path))?;
        let is_all = bytes.len() as u64 <= limit;
        bytes.truncate(limit as usize);
        Ok((bytes, is_all))
    }

    /// About as much of the file as `size` asks for.
    pub(crate) fn sample(&self, size: SampleSize) -> Result<Sample> {
        let SampleSize::Bytes(budget) = size else { return Ok(Sample::Whole) };
        // Stretches by seeking are of the bytes as they are; in Latin-1 they would have to be decoded.
        if (self.compression == Compression::None && self.file_bytes <= budget) || self.is_latin1 {
            return Ok(Sample::Whole);
        }
        let count = (budget / STRETCH_BYTES).max(2);
        let stretches = match (self.compression, &self.kept) {
            (Compression::None, None) => self.seek_stretches(count),
            _ => spread(self.reader()?, count),
        };
        match stretches.map_err(FileError::io(&self.path))? {
            stretches if stretches.is_empty() => Ok(Sample::Whole),
            stretches => Ok(Sample::Stretches(stretches)),
        }
    }

    /// `count` stretches at equal distances, the last at the end of the file.
    fn seek_stretches(&self, count: u64) -> std::io::Result<Vec<Vec<u8>>> {
        let mut file = File::open(&self.path)?;
        let last = self.file_bytes.saturating_sub(STRETCH_BYTES);
        (0..count)
            .map(|index| {
                let mut bytes = Vec::new();
                file.seek(SeekFrom::Start((last as u128 * index as u128 / (count as u128 - 1)) as u64))?;
                file.by_ref().take(STRETCH_BYTES).read_to_end(&mut bytes)?;
                Ok(bytes)
            })
            .collect()
    }
}

/// About `count` stretches of a stream of unknown length: every n-th is kept, and whenever there are too many, every
/// other one is dropped and n doubles; the last is always there. Empty where the stream is short enough to be taken
/// whole.
fn spread(mut stream: Box<dyn Read + Send>, count: u64) -> std::io::Result<Vec<Vec<u8>>> {
    let mut kept = Vec::new();
    let mut last = None;
    let (mut every, mut index) = (1u64, 0u64);
    loop {
        let mut bytes = Vec::new();
        if stream.by_ref().take(STRETCH_BYTES).read_to_end(&mut bytes)? == 0 {
            break;
        }
        last = if index.is_multiple_of(every) {
            kept.push(bytes);
            None
        } else {
            Some(bytes)
        };
        index += 1;
        if kept.len() as u64 > count {
            let mut place = 0;
            // Of an odd number the first and the last stay.
            if kept.len().is_multiple_of(2) {
                last = kept.pop();
            }
            kept.retain(|_| {
                place += 1;
                place % 2 == 1
            });
            every *= 2;
        }
    }
    kept.extend(last);
    Ok(if every == 1 { Vec::new() } else { kept })
}

/// Latin-1 as UTF-8: every byte is the character of its number.
struct Latin1 {
    bytes: Box<dyn Read + Send>,
    /// The second byte of a character whose first was the last that fitted.
    pending: Option<u8>,
}

impl Read for Latin1 {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        let mut written = 0;
        if let Some(byte) = self.pending.take() {
            out[0] = byte;
            written = 1;
        }
        // At most twice as many bytes come out as go in, but for the last one.
        let mut block = [0; 4096];
        let wanted = block.len().min((out.len() - written).div_ceil(2));
        let got = self.bytes.read(&mut block[..wanted])?;
        for &byte in &block[..got] {
            match byte {
                0..0x80 => {
                    out[written] = byte;
                    written += 1;
                }
                _ => {
                    out[written] = 0xC0 | byte >> 6;
                    written += 1;
                    let second = 0x80 | byte & 0x3F;
                    match out.get_mut(written) {
                        Some(place) => {
                            *place = second;
                            written += 1;
                        }
                        None => self.pending = Some(second),
                    }
                }
            }
        }
        Ok(written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latin_1_becomes_utf_8_through_any_buffer() {
        let text: Vec<u8> = (1..=255).collect();
        let expected: String = text.iter().map(|byte| char::from(*byte)).collect();
        for size in [1, 2, 3, 7, 1000] {
            let mut stream = Latin1 { bytes: Box::new(Cursor::new(text.clone())), pending: None };
            let (mut all, mut buffer) = (Vec::new(), vec![0; size]);
            loop {
                match stream.read(&mut buffer).unwrap() {
                    0 => break,
                    got => all.extend_from_slice(&buffer[..got]),
                }
            }
            assert_eq!(String::from_utf8(all).unwrap(), expected, "{size}");
        }
    }
}
