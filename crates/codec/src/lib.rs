//! Bytes and values: every compression scheme of SinterDB, and the kernels that answer on encoded blocks.
//!
//! This room knows nothing of files, tables or Arrow. It turns [`Values`] into a [`Block`] (self-describing,
//! relocatable, checked before use) and answers questions about a block without decoding more than it must.
//!
//! Start with [`encode`] and [`Block`]; then [`SCHEMES`], the one list of schemes; then one scheme's file.

#[cfg(test)]
extern crate self as sinter_codec;

mod alp;
mod bit_packing;
mod bit_stream;
mod bitmap;
mod block;
mod block_header;
mod candidates;
mod chooser;
#[cfg(test)]
#[path = "../tests/columns/mod.rs"]
mod columns;
mod condition;
mod dictionary;
mod distinct;
mod encoded;
mod encoder;
mod error;
mod fixed;
#[cfg(test)]
mod format_pages;
mod front_coding;
mod fused;
mod isa;
mod kernel;
mod kernels;
mod keys;
mod loss;
mod measure;
mod needle;
mod node;
mod null_filling;
mod packed;
mod pattern;
mod physical;
mod picking;
mod predicate;
mod sample;
mod scalar;
mod scaled;
mod scheme;
mod schemes;
mod scratch;
mod stand_ins;
mod stats;
mod stretches;
mod symbol_table;
mod validity;
mod values;
mod values_mut;
mod varint;

pub use bitmap::Bitmap;
pub use block::{Block, PreparedPredicate, write_raw};
pub use candidates::{Candidate, candidates};
pub use chooser::{Choice, Chooser, encode};
pub use encoded::{Encoded, Narrow};
pub use error::{Error, Result};
pub use isa::{Isa, isa};
pub use kernel::{
    Answer, DecodeRow, Histogram, KERNELS, KernelEntry, KernelRow, Moments, Selection, Span, Sum, WideSum,
    decode_table, kernel_table,
};
pub use kernels::{
    GROUPS_FEW, NO_GROUP, add_by_group, bounds_of, count_by_group, map_rows, replace_unmarked, update_rows, zip_rows,
};
pub use keys::{
    KEY_CODECS, KEYS_MAX, Key, KeyBlock, KeyBlockMut, KeyChange, KeyCodec, KeyDescriptor, key_codec_by_name,
    key_codec_by_tag,
};
pub use loss::Request;
pub use node::VALUE_COUNT_MAX;
pub use pattern::{Pattern, PatternPart};
pub use physical::Physical;
pub use predicate::{CompareOp, Predicate, after_prefix};
pub use scalar::Scalar;
pub use schemes::{SCHEMES, SchemeEntry, scheme_by_name};
pub use scratch::Scratch;
pub use stats::BlockStats;
pub use values::{BytesBuf, BytesView, Values, ValuesBuf, at_memory};

/// Values in a vector: the unit of decoding. Fits the L1 cache at 8 bytes a value, with room for a few columns.
pub const VECTOR_LEN: usize = 1024;

/// Values in a full row group.
pub const ROW_GROUP_LEN: usize = 128 * VECTOR_LEN;
