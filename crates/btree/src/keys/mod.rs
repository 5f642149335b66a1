//! The keys of a leaf.

mod integer;
#[cfg(test)]
mod tests;

pub(crate) use integer::{IntegerKeys, grow};

/// Where a key is in a leaf, or would be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// How many keys of the leaf are less.
    pub(crate) index: usize,
    /// Whether the key at that index is the one that was asked for.
    pub(crate) is_found: bool,
}

/// The keys would take more bytes than they may. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoRoom;
