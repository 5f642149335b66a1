//! From a pattern to the files it means.

use super::{FileError, Result};
use std::path::{Path, PathBuf};

/// The files that `pattern` means, sorted by name.
///
/// A pattern is a path, in which `*`, `?`, `[...]` and `**` have the usual meaning. A file whose name holds these
/// characters literally is found all the same.
///
/// # Errors
/// The pattern is malformed, a directory cannot be read, or no file answers to it.
pub fn expand(pattern: &str) -> Result<Vec<PathBuf>> {
    if Path::new(pattern).exists() && !Path::new(pattern).is_dir() {
        return Ok(vec![PathBuf::from(pattern)]);
    }
    let matches = glob::glob(pattern)
        .map_err(|error| FileError::Option(format!("'{pattern}' is not a pattern: {error}; at {}", error.pos)))?;
    let mut paths = Vec::new();
    for entry in matches {
        let path = entry.map_err(|error| {
            let path = error.path().to_path_buf();
            FileError::Io { path, source: error.into() }
        })?;
        if !path.is_dir() {
            paths.push(path);
        }
    }
    if paths.is_empty() {
        let working_directory = std::env::current_dir().unwrap_or_default();
        return Err(FileError::NoMatch { pattern: pattern.to_string(), working_directory });
    }
    paths.sort();
    Ok(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_find_files_in_order() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["b.csv", "a.csv", "c.json", "odd[1].csv"] {
            std::fs::write(directory.path().join(name), "x").unwrap();
        }
        let names = |pattern: &str| {
            let pattern = directory.path().join(pattern);
            let paths = expand(pattern.to_str().unwrap()).unwrap();
            paths.iter().map(|p| p.file_name().unwrap().to_string_lossy().into_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names("?.csv"), ["a.csv", "b.csv"]);
        assert_eq!(names("odd[1].csv"), ["odd[1].csv"]);
        let error = expand("/no/such/place/*.csv").unwrap_err().to_string();
        assert!(error.starts_with("no file matches '/no/such/place/*.csv'; the working directory is /"), "{error}");
    }
}
