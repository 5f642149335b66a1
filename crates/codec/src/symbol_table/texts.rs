//! A column in codes, with where each vector begins.

use super::{SymbolTable, pack};
use crate::{BytesView, VECTOR_LEN};

/// A column as codes.
pub(crate) struct EncodedTexts {
    /// Codes of each string.
    pub(crate) code_counts: Vec<u32>,
    /// Index of the first code of each vector.
    pub(crate) vector_starts: Vec<u32>,
    /// The codes of all.
    pub(crate) packed: Vec<u8>,
}

impl EncodedTexts {
    /// Encodes all of `view` with `table`.
    pub(crate) fn new(table: &SymbolTable, view: BytesView<'_>) -> EncodedTexts {
        let (mut code_counts, mut vector_starts, mut packed) = (Vec::with_capacity(view.len()), Vec::new(), Vec::new());
        let (mut codes, mut encoder) = (Vec::new(), table.encoder());
        let mut packed_count = 0;
        for first_row in (0..view.len()).step_by(VECTOR_LEN) {
            vector_starts.push((packed_count + codes.len()) as u32);
            let rows = first_row..view.len().min(first_row + VECTOR_LEN);
            encoder.encode(view.slice(rows), &mut codes, &mut code_counts);
            // Pack in even portions, so that none ends within a byte.
            let whole = codes.len() & !1;
            pack(table.width(), &codes[..whole], &mut packed);
            codes.drain(..whole);
            packed_count += whole;
        }
        pack(table.width(), &codes, &mut packed);
        EncodedTexts { code_counts, vector_starts, packed }
    }
}
