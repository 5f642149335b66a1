//! Which bytes of a database something depends on, worked out from the format pages, not asked of the code that is tested.

use rand::Rng;
use rand::rngs::SmallRng;
use sinter_storage::testing::CrashingFileSystem;
use sinter_storage::{PageKind, header, log, map};
use std::ops::Range;
use std::path::PathBuf;

/// What pages begin at multiples of.
const UNIT: u64 = 4096;

/// A stretch of the file that something depends on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Used {
    pub(super) bytes: Range<u64>,
    /// `None` for a header copy.
    pub(super) kind: Option<PageKind>,
    pub(super) page: Option<u64>,
    /// What only the older header leads to.
    pub(super) is_fallback: bool,
}

/// Everything that the headers lead to, as docs/format/file.md, page-map.md and log.md say. Of the logs, the newest is the
/// first.
pub(super) fn used(file: &[u8], logs: &[Vec<u8>]) -> Vec<Used> {
    let number = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap());
    let mut copies: Vec<usize> = (0..2).map(|copy| copy * UNIT as usize).collect();
    copies.sort_by_key(|at| std::cmp::Reverse(number(at + header::CHECKPOINT_AT)));
    let mut used: Vec<Used> = (0..2)
        .map(|copy| Used { bytes: copy * UNIT..(copy + 1) * UNIT, kind: None, page: None, is_fallback: false })
        .collect();
    let add = |used: &mut Vec<Used>, entry: &[u8], page: Option<u64>, is_fallback: bool| {
        let bytes = u64::from(u32::from_le_bytes(entry[map::BYTES_AT..map::BYTES_AT + 4].try_into().unwrap()));
        let place = u64::from_le_bytes(entry[..8].try_into().unwrap());
        let (start, kind) = ((place & ((1 << 48) - 1)) * UNIT, PageKind((place >> 48) as u16));
        if start > 0 && used.iter().all(|known| known.bytes.start != start) {
            used.push(Used { bytes: start..start + bytes, kind: Some(kind), page, is_fallback });
        }
        start as usize
    };
    for (index, at) in copies.into_iter().enumerate() {
        let root = &file[at + header::MAP_ROOT_AT..at + header::MAP_ROOT_AT + map::ENTRY_BYTES];
        assert!(file[at + header::MAP_DEPTH_AT] <= 1, "so few pages that the map is one node");
        let node = add(&mut used, root, None, index > 0);
        for page in 0..map::ENTRIES_PER_NODE {
            let entry = node + page * map::ENTRY_BYTES;
            if node > 0 {
                add(&mut used, &file[entry..entry + map::ENTRY_BYTES], Some(page as u64), index > 0);
            }
        }
        // Page references in the log: records with tag 1 of a page's id and entry.
        for log in logs.iter().skip(index) {
            for frame in frames(log) {
                let mut records = &log[frame.start + log::FRAME_HEADER_BYTES..frame.end];
                while let Some((record, rest)) = records.split_at_checked(log::RECORD_HEADER_BYTES) {
                    let bytes = u32::from_le_bytes(record[4..8].try_into().unwrap()) as usize;
                    if record[..2] == [1, 0] {
                        let page = u64::from_le_bytes(rest[..8].try_into().unwrap());
                        add(&mut used, &rest[8..24], Some(page), index > 0);
                    }
                    records = &rest[bytes..];
                }
            }
        }
    }
    used
}

/// The frames of a log, the zeros behind them left out.
pub(super) fn frames(log: &[u8]) -> Vec<Range<usize>> {
    let mut frames = Vec::new();
    let mut at = log::HEADER_BYTES;
    while at + log::FRAME_HEADER_BYTES <= log.len()
        && log[at..at + log::FRAME_HEADER_BYTES].iter().any(|byte| *byte != 0)
    {
        let bytes = u32::from_le_bytes(log[at..at + 4].try_into().unwrap()) as usize;
        frames.push(at..at + log::FRAME_HEADER_BYTES + bytes);
        at += log::FRAME_HEADER_BYTES + bytes;
    }
    frames
}

/// The logs, the newest first.
pub(super) fn logs(fs: &CrashingFileSystem) -> Vec<PathBuf> {
    let number = |path: &PathBuf| path.extension().and_then(|number| number.to_str()?.parse::<u64>().ok());
    let mut logs: Vec<PathBuf> = fs.files().into_iter().filter(|path| number(path).is_some()).collect();
    logs.sort_by_key(|path| std::cmp::Reverse(number(path)));
    logs
}

/// Bytes to change: several of each stretch, its padding, and what is between stretches.
pub(super) fn places(used: &[Used], length: u64, each: usize, random: &mut SmallRng) -> Vec<u64> {
    let mut places = Vec::new();
    let mut sorted: Vec<_> = used.iter().map(|used| used.bytes.clone()).collect();
    sorted.sort_by_key(|bytes| bytes.start);
    let mut end = 0;
    for bytes in sorted {
        places.extend([bytes.start, bytes.start + 20, bytes.end - 1]);
        places.extend((0..each).map(|_| random.random_range(bytes.clone())));
        if bytes.start > end {
            places.push(random.random_range(end..bytes.start));
        }
        end = bytes.end;
        let padding = bytes.end..bytes.end.next_multiple_of(UNIT).min(length);
        if !padding.is_empty() {
            places.extend([padding.start, padding.end - 1]);
        }
    }
    places
}
