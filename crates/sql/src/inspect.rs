//! What a database file is made of, as tables: headers, logs, space, pages, and what each column costs.

use crate::catalog::Catalog;
use crate::check::options_of_store;
use crate::{DatabaseOptions, Error, OnCorruption, Result};
use arrow::array::{ArrayRef, BooleanArray, RecordBatch, StringArray, UInt64Array};
use sinter_column::SegmentPlace;
use sinter_storage::{Examined, PageKind, Store, Transaction};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// What looking at a file found.
#[derive(Debug)]
pub struct Inspection {
    /// Tables with their titles.
    pub tables: Vec<(&'static str, RecordBatch)>,
    /// Beside them, such as what is damaged.
    pub remarks: Vec<String>,
}

/// Looks at the database at `path`, changing nothing. Reads headers, page map, logs,
/// catalog and table roots, and no chunk. What is damaged is left out; a check names it.
///
/// # Errors
/// As [`crate::check()`].
pub fn inspect(path: &Path, options: &DatabaseOptions) -> Result<Inspection> {
    if !options.file_system.exists(path).unwrap_or(false) {
        return Err(Error::Unavailable(format!("there is no database '{}'; check the path", path.display())));
    }
    let mut remarks = Vec::new();
    let mut examined = Store::examine(&options.file_system, path, options_of_store(), &mut |damage| {
        remarks.push(damage.to_string());
    })?;
    let state = examined.state.take();
    let mut tables = vec![
        ("headers", headers(&examined)?),
        ("logs", logs(&examined)?),
        ("space", space(&examined)?),
        ("pages", pages(&examined)?),
    ];
    if let Some((store, recovery)) = state {
        let store = Arc::new(store);
        remarks.extend(recovery.notes);
        let mut catalog = match recovery.root {
            Some(root) => match Catalog::load(&store, root, OnCorruption::Skip) {
                Ok((catalog, _)) => catalog,
                Err(error) => {
                    remarks.push(format!("the tables cannot be listed: {error}"));
                    return Ok(Inspection { tables, remarks });
                }
            },
            None => Catalog::default(),
        };
        for transaction in recovery.transactions {
            let applied = transaction.map_err(Error::from).and_then(|transaction| {
                let Transaction { commit, records } = &transaction;
                records.iter().try_for_each(|record| catalog.apply(record, *commit, &store, OnCorruption::Skip))
            });
            if let Err(error) = applied {
                remarks.push(format!("the log is shown up to a place that cannot be applied: {error}"));
                break;
            }
        }
        remarks.extend(catalog.damaged.iter().map(|(name, damaged)| damaged.error(name).to_string()));
        tables.push(("columns", columns(&catalog)?));
    }
    Ok(Inspection { tables, remarks })
}

fn text<T: AsRef<str>>(values: impl IntoIterator<Item = T>) -> ArrayRef {
    Arc::new(values.into_iter().map(|value| Some(value.as_ref().to_owned())).collect::<StringArray>())
}

fn numbers(values: impl IntoIterator<Item = Option<u64>>) -> ArrayRef {
    Arc::new(values.into_iter().collect::<UInt64Array>())
}

fn headers(examined: &Examined) -> Result<RecordBatch> {
    let headers = &examined.headers;
    let of = |field: &dyn Fn(&sinter_storage::HeaderInfo) -> u64| {
        numbers(headers.iter().map(|header| header.as_ref().ok().map(field)))
    };
    let newest = headers.iter().flatten().map(|header| header.checkpoint).max();
    let states = headers.iter().map(|header| match header {
        Err(why) => format!("damaged: {why}"),
        Ok(header) if header.is_closed => "closed".to_owned(),
        Ok(header) if Some(header.checkpoint) == newest => "open".to_owned(),
        Ok(_) => "open, older".to_owned(),
    });
    let uuids = headers
        .iter()
        .map(|header| header.as_ref().map_or_else(|_| String::new(), |header| header.database.to_string()));
    Ok(RecordBatch::try_from_iter([
        ("copy", numbers([Some(0), Some(1)])),
        ("state", text(states)),
        ("checkpoint", of(&|header| header.checkpoint.0)),
        ("commit", of(&|header| header.commit.0)),
        ("log", of(&|header| header.log.0)),
        ("next_page", of(&|header| header.next_page.0)),
        ("catalog_page", numbers(headers.iter().map(|header| header.as_ref().ok()?.catalog_root.map(|page| page.0)))),
        ("map_depth", of(&|header| header.map_depth.into())),
        ("file_bytes", of(&|header| header.file_bytes)),
        ("database", text(uuids)),
    ])?)
}

fn logs(examined: &Examined) -> Result<RecordBatch> {
    let logs = &examined.logs;
    Ok(RecordBatch::try_from_iter([
        ("log", numbers(logs.iter().map(|log| Some(log.number.0)))),
        ("file", text(logs.iter().map(|log| log.path.display().to_string()))),
        ("bytes", numbers(logs.iter().map(|log| Some(log.bytes)))),
        ("used_bytes", numbers(logs.iter().map(|log| Some(log.used_bytes)))),
        ("first_commit", numbers(logs.iter().map(|log| log.replayed.map(|(first, _)| first.0)))),
        ("last_commit", numbers(logs.iter().map(|log| log.replayed.map(|(_, last)| last.0)))),
    ])?)
}

fn space(examined: &Examined) -> Result<RecordBatch> {
    let sum = |of: &dyn Fn(&sinter_storage::ExtentInfo) -> u64| examined.extents.iter().map(of).sum::<u64>();
    let unused = examined.unused();
    let free: u64 = unused.iter().map(|unused| unused.end - unused.start).sum();
    let fallback = sum(&|extent| if extent.is_fallback { extent.bytes } else { 0 });
    let padding = sum(&|extent| if extent.is_fallback { 0 } else { extent.padding_bytes });
    let used = sum(&|extent| if extent.is_fallback { 0 } else { extent.bytes - extent.padding_bytes });
    let count =
        |is_fallback: bool| examined.extents.iter().filter(|extent| extent.is_fallback == is_fallback).count() as u64;
    let rows = [
        ("used", used, Some(count(false))),
        ("padding", padding, None),
        ("retired: only the checkpoint before the last needs it", fallback, Some(count(true))),
        ("free", free, Some(unused.len() as u64)),
        ("file", examined.file_bytes, None),
    ];
    Ok(RecordBatch::try_from_iter([
        ("what", text(rows.map(|row| row.0))),
        ("bytes", numbers(rows.map(|row| Some(row.1)))),
        ("extents", numbers(rows.map(|row| row.2))),
    ])?)
}

fn pages(examined: &Examined) -> Result<RecordBatch> {
    let mut kinds: BTreeMap<(Option<PageKind>, bool), [u64; 3]> = BTreeMap::new();
    for extent in &examined.extents {
        let counts = kinds.entry((extent.kind, extent.is_fallback)).or_default();
        for (count, more) in counts.iter_mut().zip([1, extent.bytes, extent.padding_bytes]) {
            *count += more;
        }
    }
    let names = kinds.keys().map(|(kind, _)| kind.map_or_else(|| "header".to_owned(), |kind| kind.to_string()));
    let column = |index: usize| numbers(kinds.values().map(|counts| Some(counts[index])));
    let retired: BooleanArray = kinds.keys().map(|(_, is_fallback)| Some(*is_fallback)).collect();
    Ok(RecordBatch::try_from_iter([
        ("kind", text(names)),
        ("retired", Arc::new(retired) as ArrayRef),
        ("pages", column(0)),
        ("bytes", column(1)),
        ("padding_bytes", column(2)),
    ])?)
}

/// What each column costs: its bytes in chunks and beside them, in how many of each.
fn columns(catalog: &Catalog) -> Result<RecordBatch> {
    let (mut names, mut numbers_of) = (Vec::new(), Vec::new());
    for (name, table) in &catalog.tables {
        for (index, column) in table.schema().columns.iter().enumerate() {
            let (mut chunks, mut stored, mut held) = (BTreeSet::new(), 0u64, 0u64);
            for entry in table.groups() {
                match &entry.group.segments[index].place {
                    SegmentPlace::Stored { page, bytes, .. } => {
                        chunks.insert(page.id());
                        stored += u64::from(*bytes);
                    }
                    SegmentPlace::Held(pinned) => held += pinned.len() as u64,
                }
            }
            names.push([name.to_string(), column.name.clone(), column.ty.to_string()]);
            numbers_of.push([table.live_rows(), table.groups().len() as u64, chunks.len() as u64, stored, held]);
        }
    }
    let name = |index: usize| text(names.iter().map(|names| &names[index]));
    let number = |index: usize| numbers(numbers_of.iter().map(|numbers| Some(numbers[index])));
    Ok(RecordBatch::try_from_iter([
        ("table", name(0)),
        ("column", name(1)),
        ("type", name(2)),
        ("rows", number(0)),
        ("row_groups", number(1)),
        ("chunks", number(2)),
        ("chunk_bytes", number(3)),
        ("other_bytes", number(4)),
    ])?)
}
