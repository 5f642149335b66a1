//! What can go wrong with a file, sorted by what the caller can do about it.

use std::path::{Path, PathBuf};

/// The result of everything in this room.
pub type Result<T, E = FileError> = std::result::Result<T, E>;

/// A file that could not be read or written. Every message names the file and, where there is one, the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The operating system refused; check the path, the rights, the disk.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file at hand.
        path: PathBuf,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A pattern that no file answers to; check the spelling and the directory.
    #[error("no file matches '{pattern}'; the working directory is {}", working_directory.display())]
    NoMatch {
        /// The pattern as given.
        pattern: String,
        /// Where relative patterns start.
        working_directory: PathBuf,
    },
    /// A wrong option in the statement; change the statement.
    #[error("{0}")]
    Option(String),
    /// The file's format cannot be told from its name; say `format`.
    #[error(
        "{}: cannot tell the format from the name; give it with (format 'csv'), 'json', 'parquet' or 'arrow'",
        path.display()
    )]
    UnknownFormat {
        /// The file at hand.
        path: PathBuf,
    },
    /// A row that does not fit; mend the row, or choose another type, or skip such rows.
    #[error("{0}")]
    Row(Box<RowError>),
    /// Files and target that do not fit together: columns missing, too many, or of other types.
    #[error("{}: {problem}", path.display())]
    Schema {
        /// The file at hand.
        path: PathBuf,
        /// Both sides of the disagreement, and the remedy.
        problem: String,
    },
    /// A column type that our tables do not hold.
    #[error("{}, column \"{column}\": the Arrow type {data_type} has no counterpart here", path.display())]
    Unsupported {
        /// The file at hand.
        path: PathBuf,
        /// The column.
        column: String,
        /// The type, as Arrow prints it.
        data_type: String,
    },
    /// A file whose structure is broken; fetch it again.
    #[error("{}: {problem}", path.display())]
    Damaged {
        /// The file at hand.
        path: PathBuf,
        /// What the reader of this format said.
        problem: String,
    },
}

/// One row of a text file that could not be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowError {
    /// The file at hand.
    pub path: PathBuf,
    /// The line on which the row starts, counted from 1.
    pub line: u64,
    /// The column's name, where the trouble is in one column.
    pub column: Option<String>,
    /// The text at fault, shortened.
    pub value: Option<String>,
    /// What is wrong.
    pub problem: String,
    /// What to do about it.
    pub remedy: Option<String>,
}

impl std::fmt::Display for RowError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, line {}", self.path.display(), self.line)?;
        if let Some(column) = &self.column {
            write!(f, ", column \"{column}\"")?;
        }
        if let Some(value) = &self.value {
            write!(f, ", value '{value}'")?;
        }
        write!(f, ": {}", self.problem)?;
        match &self.remedy {
            Some(remedy) => write!(f, "; {remedy}"),
            None => Ok(()),
        }
    }
}

impl From<RowError> for FileError {
    fn from(error: RowError) -> Self {
        Self::Row(Box::new(error))
    }
}

impl FileError {
    /// Wraps what the operating system said about `path`.
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { path, source }
    }

    /// Wraps what Arrow or Parquet said about the bytes of `path`.
    pub(crate) fn damaged(path: &Path, problem: impl std::fmt::Display) -> Self {
        Self::Damaged { path: path.to_path_buf(), problem: problem.to_string() }
    }

    /// A disagreement between `path` and what is expected of it.
    pub(crate) fn schema(path: &Path, problem: impl Into<String>) -> Self {
        Self::Schema { path: path.to_path_buf(), problem: problem.into() }
    }
}

/// The longest piece of a value that a message repeats, in characters.
const EXCERPT_CHARACTERS: usize = 60;

/// `bytes` for use in a message: shortened, with control characters and invalid UTF-8 escaped.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    let window = &bytes[..bytes.len().min(EXCERPT_CHARACTERS * 4)];
    let mut out = String::new();
    let mut characters = 0;
    let mut push = |piece: &str| {
        characters += 1;
        if characters <= EXCERPT_CHARACTERS {
            out.push_str(piece);
        }
        characters > EXCERPT_CHARACTERS
    };
    let mut cut = window.len() < bytes.len();
    'chunks: for chunk in window.utf8_chunks() {
        for character in chunk.valid().chars() {
            let full = match character {
                c if c.is_control() => push(&c.escape_default().to_string()),
                c => push(c.encode_utf8(&mut [0; 4])),
            };
            if full {
                cut = true;
                break 'chunks;
            }
        }
        for byte in chunk.invalid() {
            if push(&format!("\\x{byte:02x}")) {
                cut = true;
                break 'chunks;
            }
        }
    }
    if cut {
        out.push('…');
    }
    out
}
