//! What can go wrong while a plan runs.

use std::sync::atomic::{AtomicBool, Ordering};

/// Sorted by what the caller can do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The query was stopped on request.
    #[error("query cancelled")]
    Cancelled,
    /// Another worker failed at what this one needs; the text of its error.
    #[error("{0}")]
    FailedBefore(String),
    /// A result does not fit its type. Remedy: a cast to a wider type.
    #[error("{what} is out of range for {type_name}; cast an operand to a wider type")]
    Overflow {
        /// The operation, such as `9223372036854775807 + 1`.
        what: String,
        /// The type that is too small.
        type_name: String,
    },
    /// Integer or decimal division by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// A value has no counterpart in the wanted type.
    #[error("cannot cast '{value}' to {type_name}")]
    Cast {
        /// The value as text.
        value: String,
        /// The wanted type.
        type_name: String,
    },
    /// The engine was handed something that it does not do. Our own mistake: lowering should have kept it away.
    #[error("exec cannot run {0}")]
    Unsupported(String),
    /// Encoded bytes are damaged.
    #[error("{place}: {source}")]
    Damaged {
        /// Table, row group and column.
        place: String,
        /// What the codec found.
        source: sinter_codec::Error,
    },
    /// A segment cannot be read, or its bytes are not those that were written.
    #[error(transparent)]
    Unreadable(Box<dyn std::error::Error + Send + Sync>),
    /// The table's source failed in another way.
    #[error(transparent)]
    Source(Box<dyn std::error::Error + Send + Sync>),
    /// [`crate::Memory`] granted no more. Remedy: in the message.
    #[error("{0}")]
    OutOfMemory(String),
    /// Numbers of groups have 32 bits.
    #[error("more than 4 billion groups; group by fewer columns, or filter rows first")]
    TooManyKeys,
    /// A scalar subquery has more than one row.
    #[error("a scalar subquery returned more than one row; add LIMIT 1 or an aggregate to it")]
    SeveralRows,
    /// Code from outside failed: a foreign expression or an Arrow conversion.
    #[error("{0}")]
    Foreign(String),
}

impl Error {
    /// Whether it is the stored bytes that are at fault: another row group may be well.
    pub fn is_damage(&self) -> bool {
        matches!(self, Error::Damaged { .. } | Error::Unreadable(_))
    }

    /// The same error, with the place where it happened when the bytes there are damaged.
    pub(crate) fn at(self, place: impl Into<String>) -> Error {
        match self {
            Error::Damaged { source, .. } => Error::Damaged { place: place.into(), source },
            other => other,
        }
    }

    /// The same error for another worker that waited for what failed; of one that cannot be had twice, its text.
    pub(crate) fn again(&self) -> Error {
        match self {
            Error::Cancelled => Error::Cancelled,
            Error::OutOfMemory(what) => Error::OutOfMemory(what.clone()),
            Error::Unsupported(what) => Error::Unsupported(what.clone()),
            other => Error::FailedBefore(other.to_string()),
        }
    }
}

impl From<sinter_codec::Error> for Error {
    /// Reading a block fails only where its bytes are damaged or newer than we are; whoever knows the place adds it.
    fn from(source: sinter_codec::Error) -> Error {
        Error::Damaged { place: "block".into(), source }
    }
}

/// # Errors
/// [`Error::Cancelled`] once somebody said so.
pub(crate) fn check_cancelled(cancelled: &AtomicBool) -> Result<()> {
    if cancelled.load(Ordering::Relaxed) { Err(Error::Cancelled) } else { Ok(()) }
}

/// Shorthand.
pub type Result<T> = std::result::Result<T, Error>;
