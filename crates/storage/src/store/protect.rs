//! What an older header still needs.
//!
//! While the newest checkpoint is the only newer one, the header before it must stay good: should the newest copy rot,
//! the database is recovered from the older one and the logs since. So at an open after a crash its places, and those
//! that the logs after it name, are held back just as they would have been had the store stayed open.

use std::collections::HashSet;
use std::path::Path;

use super::page_table::PageTable;
use super::pages::read_node;
use crate::error::{Error, Result, failed};
use crate::fs::{File, FileSystem, OpenMode};
use crate::header::Header;
use crate::ids::{CheckpointNumber, Extent};
use crate::log::{self, LogReader, PageReference, Stop};
use crate::map::{self, Visit};
use crate::page_kind::PageKind;
use crate::record::RecordTag;
use crate::space::{Conflict, Space};

/// Retires every place that `older` or a log between it and `newer` names and that nobody has reserved.
pub(super) fn protect(
    fs: &dyn FileSystem,
    data: &dyn File,
    path: &Path,
    older: &Header,
    newer: &Header,
    table: &mut PageTable,
) -> Result<()> {
    // Nodes that both maps share, or that were walked: nothing new below them.
    let mut seen = HashSet::new();
    table.map.for_each_stored_node(&mut |entry| {
        seen.insert(entry.extent().place);
    });
    let (space, number) = (&mut table.space, older.checkpoint);
    map::load(older.map_root, older.map_depth, &mut |entry, ids| read_node(data, path, entry, ids), &mut |visit| {
        match visit {
            Visit::Node(entry) => {
                hold(space, entry.extent(), number);
                Ok(seen.insert(entry.extent().place))
            }
            Visit::Page(_, entry) => {
                hold(space, entry.extent(), number);
                Ok(false)
            }
            Visit::Nonsense(node, what) => {
                let (path, offset, kind) = (path.to_path_buf(), node.offset(), PageKind::MAP_NODE);
                Err(Error::DamagedPage { path, page: None, kind, offset, what })
            }
        }
    })?;
    let mut commit = older.commit;
    for number in older.log.0..newer.log.0 {
        let number = CheckpointNumber(number);
        let log = log::path_of(path, number);
        let file = fs.open(&log, OpenMode::Read).map_err(failed(&log, "opening a log"))?;
        let Some(mut reader) = LogReader::open(file, &log, older.database, number)? else { break };
        reader.start_after(commit);
        while let Stop::Commit(transaction) = reader.next()? {
            for record in transaction.records.iter().filter(|record| record.tag == RecordTag::PAGE_REFERENCE) {
                if let Some(reference) = PageReference::decode(&record.payload) {
                    hold(space, reference.entry.extent(), number);
                }
            }
        }
        commit = reader.commit();
    }
    Ok(())
}

/// Retires the parts of an extent that are free. Others are in the newer map too, or were held before.
fn hold(space: &mut Space, extent: Extent, during: CheckpointNumber) {
    match space.reserve(extent) {
        Ok(()) => space.retire(extent, during),
        Err(Conflict::Overlap | Conflict::OutOfRange) => {}
    }
}
