//! Rows that do not fit the memory.
//!
//! Grace hash joins, groups by partition and external merge sorts, on tables that are compressed like any other.
//!
//! An operator that is refused memory lets go of what it has, and its pipeline is cut in front of it ([`cut`]): what
//! comes before is run once more, into *parts* by a hash of the operator's keys ([`parts`]), which are written to a file
//! as row groups of encoded blocks ([`writer`]). A part is a table like any other ([`Spilled`]), so that the operator takes
//! one after the other with nothing but what is there already; a part that is still too large is parted again. What
//! comes out of all parts is written likewise, and the rest of the pipeline goes on from there. Who does all that is
//! `run/spilling.rs`. Sorts need no parts: see `sort/spilled.rs`.

mod cut;
mod parts;
mod table;
mod writer;

pub(crate) use parts::{NullKeys, PARTS, PARTS_OF_PART, Part, PartsPlan, PartsSink, Split, WorkerParts};
pub use table::{SpillCompression, SpillFile, Spilled};
pub(crate) use table::{SpilledColumns, SpilledGroup};
pub(crate) use writer::SpillWriter;
