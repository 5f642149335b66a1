//! The scan: from row groups to vectors of surviving rows, decoding as late and as little as it can.
//!
//! A filter is split in two when the pipeline starts. What compares a column with constants is a [`Test`], answered by
//! zone maps for whole row groups and by the codec on encoded vectors; the rest are programs over decoded values of the
//! rows that are still alive. Columns are opened when first needed, and decoded for survivors only. Which condition is asked
//! first is learned on the way ([`order`]).

mod ahead;
mod bound;
mod claims;
mod decoded_fields;
mod gathered;
mod group;
mod load;
mod order;
mod plan;
mod row_ids;
mod tally;
mod test;
mod union;
mod vectors;
mod zone;

pub(crate) use claims::{Claims, vector_count, worker_count_max};
pub(crate) use decoded_fields::DecodedFields;
pub use gathered::Gathered;
pub(crate) use gathered::{GatheredScanner, SharedGathered};
pub(crate) use plan::ScanPlan;
pub(crate) use union::{Forward, Forwarder};
pub(crate) use vectors::{Scanner, Shared};
