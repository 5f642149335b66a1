//! Published methods that SinterDB does not ship, written down as their papers have them, to compare with.

pub mod carryover_12;
pub mod gap_huffman;
pub mod lzrw1;
pub mod patch_list;
