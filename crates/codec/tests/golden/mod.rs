//! The file of golden blocks, `golden/codec-v1.blocks`: blocks with their names, one after the other, to the end.
//!
//! ```text
//! +------------+----------------+----------+------------+
//! | name_bytes | name           | byte_len | bytes      |
//! |    u8      | UTF-8          | u32      | the block  |
//! +------------+----------------+----------+------------+
//! ```
//!
//! The name says how the block was made: `quantise(0.01) f64 nulls` is a column of [`generator::column`], encoded by
//! `Choice::Forced("quantise(0.01)")`; `key vbyte u32 dense` are [`generator::keys`] in a key codec. What stands in the
//! file is never written again: `SINTER_WRITE_GOLDEN=1` appends the blocks that are missing.
#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod generator;

use generator::Shape;
use sinter_codec::*;
use std::path::PathBuf;

/// Schemes with what they may be told to let go of.
pub(crate) const LOSSES: &[&str] = &[
    "quantise(0.01)",
    "fixed_point(0.01)",
    "single(lossy)",
    "base_delta(60)",
    #[cfg(feature = "zfp")]
    "zfp(0.01)",
];

/// Schemes that pack numbers in bits, whatever the width.
const PACKED: [&str; 5] = ["bitpack", "for", "pfor", "delta", "pfor_delta"];

/// Shapes of keys.
pub(crate) const KEY_SHAPES: [&str; 4] = ["dense", "steps", "wide", "few"];

/// A golden block of values that should be there.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// What is forced: the name of a scheme, or a loss.
    pub(crate) request: String,
    pub(crate) physical: Physical,
    pub(crate) shape: Shape,
}

impl Wanted {
    pub(crate) fn name(&self) -> String {
        format!("{} {} {}", self.request, self.physical.name(), self.shape.name())
    }
}

/// The blocks of values that should be there: every scheme with every type that it holds, and every width.
pub(crate) fn wanted() -> Vec<Wanted> {
    let mut wanted = Vec::new();
    let names = SCHEMES.iter().map(|entry| entry.name).chain(LOSSES.iter().copied());
    for request in names {
        let parsed = Request::parse(request).unwrap();
        for physical in Physical::ALL.into_iter().filter(|physical| parsed.holds(*physical)) {
            let mut shapes = vec![Shape::All, Shape::Nulls];
            if PACKED.contains(&request) && physical == Physical::U64 {
                shapes.extend((0..=64).step_by(3).chain([64]).map(Shape::Short));
            }
            if request == "bitpack" && physical == Physical::U64 {
                shapes.extend([8, 13, 27, 45].map(Shape::Vector));
            }
            if matches!(request, "pfor" | "pfor_delta") && physical == Physical::I128 {
                shapes.push(Shape::Far);
            }
            if request == "fsst" {
                shapes.push(Shape::Long);
            }
            wanted.extend(shapes.iter().map(|shape| Wanted { request: request.to_owned(), physical, shape: *shape }));
        }
    }
    wanted
}

/// Where the file is.
pub(crate) fn path() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../golden/codec-v1.blocks"))
}

/// The blocks in the file, by their names. None where there is no file.
pub(crate) fn read() -> Vec<(String, Vec<u8>)> {
    let Ok(file) = std::fs::read(path()) else { return Vec::new() };
    let mut rest = &file[..];
    let mut take = |len: usize| {
        let (taken, after) = rest.split_at(len);
        rest = after;
        (taken.to_vec(), after.is_empty())
    };
    let mut blocks = Vec::new();
    let mut is_end = file.is_empty();
    while !is_end {
        let name_bytes = usize::from(take(1).0[0]);
        let name = String::from_utf8(take(name_bytes).0).unwrap();
        let byte_len = u32::from_le_bytes(take(4).0.try_into().unwrap());
        let (block, is_last) = take(byte_len as usize);
        blocks.push((name, block));
        is_end = is_last;
    }
    blocks
}

/// Appends a block to the file.
pub(crate) fn append(name: &str, block: &[u8]) {
    let mut file = std::fs::read(path()).unwrap_or_default();
    file.push(u8::try_from(name.len()).unwrap());
    file.extend_from_slice(name.as_bytes());
    file.extend_from_slice(&u32::try_from(block.len()).unwrap().to_le_bytes());
    file.extend_from_slice(block);
    std::fs::write(path(), file).unwrap();
}
