//! What `bitpack`, `for`, `pfor`, `delta` and `pfor_delta` share: per vector a frame (base and bit width), small numbers
//! packed to that width, and exceptions that did not fit.
//!
//! ```text
//! +---------+---------+-----+----------+----------+-----+      entry:  [first] [base] offset bit_width [exceptions]
//! | entry 0 | entry 1 | ... | vector 0 | vector 1 | ... |      vector: packed numbers, excess and places of exceptions
//! +---------+---------+-----+----------+----------+-----+
//! ```
//!
//! Any vector decodes alone: `value = base + number`, and what is missing of exceptions added afterwards (Zukowski et al.,
//! ICDE 2006, section 3; [`exceptions`] says where we differ). With differences, the values so found are steps from value to
//! value, beginning at `first`.
//!
//! The layout is in docs/format/codecs/for.md and its neighbours.

mod answers;
mod bare;
mod directory;
mod encode;
mod exceptions;
mod excess;
mod filter;
mod frame;
mod load;
mod reader;
mod unpack;

pub(crate) use directory::Layout;
pub(crate) use encode::encode;
pub(crate) use frame::Frames;
pub(crate) use reader::open;
