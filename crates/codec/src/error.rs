//! What can go wrong in this room.

/// Sorted by what the caller can do.
#[derive(Debug, thiserror::Error, Clone, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are not a block, or not whole. Remedy: another copy of the file.
    #[error("damaged block, {place}: {what}")]
    Damaged {
        /// The scheme or section, such as `pfor, vector 3`.
        place: String,
        /// Both sides: what was found and what would be right.
        what: String,
    },
    /// A scheme tag that this build does not know. Remedy: a newer SinterDB.
    #[error("block uses scheme {tag}, which this version does not know; a newer SinterDB wrote it")]
    UnknownScheme {
        /// The tag found.
        tag: u8,
    },
    /// A scheme that other builds have, and this one has not. Remedy: the feature of its name.
    #[error("scheme {tag} `{name}` is not in this build; build with --features {name}")]
    NotInThisBuild {
        /// Its tag on disk.
        tag: u8,
        /// Its name, and that of the feature.
        name: &'static str,
    },
    /// No scheme has this name. Remedy: one of the names in `sinter codecs`.
    #[error("there is no compression scheme '{name}'; there are: {known}")]
    NoSuchScheme {
        /// What was asked for.
        name: String,
        /// All names, separated by commas.
        known: String,
    },
    /// What stands in parentheses behind a scheme's name says nothing to it. Remedy: what it takes, or no parentheses.
    #[error("scheme '{scheme}' does not take '{parameter}' in parentheses; it takes {takes}")]
    NoSuchParameter {
        /// The scheme's name.
        scheme: &'static str,
        /// What was found.
        parameter: String,
        /// What would be right, with an example.
        takes: &'static str,
    },
    /// The scheme cannot hold values of this type. Remedy: another scheme, or none.
    #[error("scheme '{scheme}' cannot hold {physical} values")]
    NotApplicable {
        /// What was asked for.
        scheme: &'static str,
        /// The type's name.
        physical: &'static str,
    },
    /// More than one block holds: no reader would take it. Remedy: several blocks.
    #[error("a block of {found} {what} is larger than the {limit} allowed; cut it into several")]
    TooLarge {
        /// What there are too many of.
        what: &'static str,
        /// How many were given.
        found: usize,
        /// The most there can be.
        limit: usize,
    },
    /// Keys of a block must come in order. Remedy: sort them.
    #[error("key {index} is less than the one before it; the keys of a block never decrease")]
    Unsorted {
        /// The first that is out of order, counted from 0.
        index: usize,
    },
}

impl Error {
    /// Bytes that contradict themselves or end too early.
    pub(crate) fn damaged(place: impl Into<String>, what: impl Into<String>) -> Error {
        Error::Damaged { place: place.into(), what: what.into() }
    }
}

/// Shorthand.
pub type Result<T> = std::result::Result<T, Error>;
