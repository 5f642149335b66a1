//! Cutting: strings become lengths of shared prefixes, and suffixes.

use super::{common_prefix, shared_at};
use crate::{BytesBuf, BytesView};

/// Strings, cut.
#[derive(Debug, Default)]
pub(crate) struct Cut {
    /// Bytes that each string has in common with the one before. At restart points, too, where they are not left out: a
    /// zero for every 16th string would take as many exceptions.
    pub(crate) shared: Vec<u32>,
    /// What is left of each.
    pub(crate) suffixes: BytesBuf,
}

impl Cut {
    /// These strings, the first at a restart point.
    pub(crate) fn of(view: BytesView<'_>) -> Cut {
        let mut cut = Cut::default();
        cut.shared.reserve(view.len());
        cut.suffixes.offsets.reserve(view.len());
        let mut previous: &[u8] = &[];
        for (row, string) in view.iter().enumerate() {
            let shared = common_prefix(previous, string) as u32;
            cut.shared.push(shared);
            cut.suffixes.push(&string[shared_at(row, shared)..]);
            previous = string;
        }
        cut
    }

    /// Bytes of strings that need not be written.
    pub(crate) fn shared_bytes(&self) -> usize {
        self.shared.iter().enumerate().map(|(row, &shared)| shared_at(row, shared)).sum()
    }
}
