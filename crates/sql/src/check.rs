//! Whether a database can be read, all of it: every byte that something depends on is looked at once, offline.
//!
//! From below: both header copies, the page map of each, the logs; then the catalog, the roots of the tables, what the
//! logs add to them; then every page in the order of the file, and in those that hold segments every value. What is
//! damaged hides what is below it and nothing else, and says what it hides.

use crate::catalog::Catalog;
use crate::index::index_flaw;
use crate::{DatabaseOptions, Error, OnCorruption, Result};
use sinter_column::{ColumnTable, SegmentId};
use sinter_storage::{CommitNumber, Damage, Examined, Options, PageId, PageKind, Part, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Findings that a report tells one by one; the others are counted.
const FINDINGS_MAX: usize = 10_000;

/// Pages are read past the pool; it holds what tables and catalog are read from.
const POOL_BYTES: usize = 16 << 20;

/// One place that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The database file, or a log of it.
    pub file: PathBuf,
    /// What is damaged: `header`, `file`, `map node`, `catalog`, `table root`, `chunk`, `log`, ...
    pub kind: String,
    /// The page, where it is one.
    pub page: Option<u64>,
    /// Where it starts in the file.
    pub offset: u64,
    /// The table that loses by it, where it is known.
    pub table: Option<String>,
    /// The columns of that table that are in it.
    pub columns: Vec<String>,
    /// The ids of the rows that it holds values of, from the first to before the last; there may be gaps.
    pub rows: Option<Range<u64>>,
    /// How many rows these are, deleted ones included.
    pub row_count: u64,
    /// Both sides: what was found, what should be there; and what that hides.
    pub what: String,
    /// What to do.
    pub remedy: String,
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// What is damaged, up to ten thousand places.
    pub findings: Vec<Finding>,
    /// How many places are damaged.
    pub damaged: u64,
    /// Pages that were read, map nodes not counted.
    pub pages: u64,
    /// Bytes of these, and of everything else that was looked at in the file.
    pub bytes: u64,
    /// Tables whose row groups were looked at.
    pub tables: u64,
    /// Key-value trees of which every leaf was read.
    pub trees: u64,
    /// Segments of which every value was read.
    pub segments: u64,
    /// Logs beside the file.
    pub logs: u64,
    /// Commits that an opening would replay from them.
    pub commits: u64,
    /// Stretches of the file that nothing depends on.
    pub unused: Vec<Range<u64>>,
    /// What is no damage, but worth knowing: a log that ends in an unfinished commit, for example.
    pub notes: Vec<String>,
}

impl Report {
    /// Nothing is damaged.
    pub fn is_sound(&self) -> bool {
        self.damaged == 0
    }

    fn add(&mut self, finding: Finding) {
        self.damaged += 1;
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(finding);
        }
    }
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: ", self.file.display())?;
        match self.page {
            Some(page) => write!(f, "page {page} ({})", self.kind)?,
            None => f.write_str(&self.kind)?,
        }
        write!(f, " at byte {}", self.offset)?;
        if let Some(table) = &self.table {
            write!(f, ", table {table}")?;
        }
        match &self.columns[..] {
            [] => {}
            [column] => write!(f, ", column {column}")?,
            columns => write!(f, ", columns {}", columns.join(", "))?,
        }
        if let Some(rows) = &self.rows {
            write!(f, ", {} rows with ids {} to {}", self.row_count, rows.start, rows.end.saturating_sub(1))?;
        }
        write!(f, ": {}; {}", self.what, self.remedy)
    }
}

/// Looks at the database at `path`, changing nothing. `progress` is told how many bytes of how many are done.
///
/// # Errors
/// [`Error`] where nothing can be looked at: there is no such file, another process writes it, it is no database, or a
/// newer one. Damage is no error, but in the report.
pub fn check(path: &Path, options: &DatabaseOptions, progress: &mut dyn FnMut(u64, u64)) -> Result<Report> {
    if !options.file_system.exists(path).unwrap_or(false) {
        return Err(Error::Unavailable(format!("there is no database '{}'; check the path", path.display())));
    }
    let mut report = Report::default();
    let examined = Store::examine(&options.file_system, path, options_of_store(), &mut |damage| {
        report.add(of_damage(damage));
    })?;
    report.logs = examined.logs.len() as u64;
    report.unused = examined.unused();
    let unused: u64 = report.unused.iter().map(|unused| unused.end - unused.start).sum();
    report.bytes = examined.file_bytes.saturating_sub(unused);
    check_tables(examined, &mut report, progress)?;
    Ok(report)
}

pub(crate) fn options_of_store() -> Options {
    Options { read_only: true, memory_limit_bytes: POOL_BYTES, ..Options::default() }
}

fn check_tables(mut examined: Examined, report: &mut Report, progress: &mut dyn FnMut(u64, u64)) -> Result<()> {
    let Some((store, recovery)) = examined.state.take() else {
        report.notes.push(
            "without a header nothing can be found: page map, catalog, tables and logs were not looked at".to_owned(),
        );
        return Ok(());
    };
    let store = Arc::new(store);
    report.notes.extend(recovery.notes);
    let mut hidden = Hidden::default();
    let catalog = match recovery.root.map(|root| (root, Catalog::load(&store, root, OnCorruption::Skip))) {
        None => Catalog::default(),
        Some((_, Ok((catalog, _)))) => catalog,
        Some((root, Err(error))) => {
            hidden.catalog = Some((root, error.to_string()));
            Catalog::default()
        }
    };
    let mut catalog = catalog;
    let (mut replayed, recovered) = (Ok(()), recovery.commit);
    for transaction in recovery.transactions {
        let applied = transaction.map_err(Error::from).and_then(|transaction| {
            report.commits += 1;
            // Without a catalog nobody knows what the records are about.
            let records = if hidden.catalog.is_some() { &[][..] } else { &transaction.records };
            records.iter().try_for_each(|record| catalog.apply(record, transaction.commit, &store, OnCorruption::Skip))
        });
        if let Err(error) = applied {
            replayed = Err(error);
            break;
        }
    }
    hidden.roots =
        catalog.damaged.iter().map(|(name, table)| (table.root, (name.to_string(), table.what.clone()))).collect();
    if let (Err(error), Some(log)) = (replayed, examined.logs.last()) {
        report.add(Finding {
            kind: "log".to_owned(),
            what: format!(
                "commit {} cannot be applied: {error}; what it and later ones changed was not looked at",
                report.commits
            ),
            remedy: "restore a backup".to_owned(),
            ..bare(&log.path, 0)
        });
    }
    let tables: Vec<&Arc<ColumnTable>> = catalog.tables.values().collect();
    report.tables = tables.len() as u64;
    let mut owners: BTreeMap<PageId, Vec<(usize, Vec<SegmentId>)>> = BTreeMap::new();
    for (index, table) in tables.iter().enumerate() {
        for (page, segments) in table.segments_by_page() {
            match page {
                Some(page) => owners.entry(page).or_default().push((index, segments)),
                None => check_held(&store, table, &segments, report),
            }
        }
    }
    let (total, mut done) = (examined.page_bytes(), 0);
    examined.read_pages(&mut |extent, read| {
        let Some(page) = extent.page else { return };
        report.pages += 1;
        let parts = owners.remove(&page).unwrap_or_default();
        let of_parts = parts.iter().map(|(index, segments)| (tables[*index], &segments[..]));
        match read {
            Ok(payload) => {
                for (table, segments) in of_parts {
                    for &id in segments {
                        report.segments += 1;
                        if let Err(error) = table.check_segment(id, Some(&payload)) {
                            let finding = of_segments(table, &[id], bare(store.path(), extent.offset));
                            report.add(Finding {
                                kind: PageKind::CHUNK.to_string(),
                                page: Some(page.0),
                                what: error.to_string(),
                                remedy: remedy_of(PageKind::CHUNK).to_owned(),
                                ..finding
                            });
                        }
                    }
                }
                if !extent.is_fallback {
                    hidden.seen_whole(page, extent.kind, &store, extent.offset, report);
                }
            }
            Err(damage) => {
                // An older version of a page has its number too.
                let is_current = !damage.is_fallback;
                let mut finding = of_damage(damage);
                if is_current {
                    finding = hidden.explained(finding, page);
                }
                if let Some((table, segments)) = of_parts.into_iter().next() {
                    finding = of_segments(table, segments, finding);
                }
                report.add(finding);
            }
        }
        done += extent.bytes;
        progress(done, total);
    });
    // What is left has no place in the map, because a node of it is lost; or never had one.
    let mut lost: BTreeMap<(usize, String), Vec<SegmentId>> = BTreeMap::new();
    for (page, parts) in owners {
        let why = match store.kind_of(page) {
            Ok(_) => continue,
            Err(error) => error.to_string(),
        };
        for (index, segments) in parts {
            lost.entry((index, why.clone())).or_default().extend(segments);
        }
    }
    for ((index, why), segments) in lost {
        let finding = of_segments(tables[index], &segments, bare(store.path(), 0));
        let (kind, remedy) = (PageKind::CHUNK.to_string(), remedy_of(PageKind::CHUNK).to_owned());
        report.add(Finding { kind, what: why, remedy, ..finding });
    }
    hidden.report_rest(&store, report);
    for (name, tree) in &catalog.trees {
        report.trees += 1;
        // A leaf is read as a whole, and held against what leads to it. Of pages that are not whole, it was told already.
        let of_trees = [PageKind::TREE_LEAF, PageKind::TREE_DIRECTORY].map(|kind| kind.to_string());
        let is_known = report.findings.iter().any(|finding| of_trees.contains(&finding.kind));
        let read = tree.parts().try_for_each(|(_, tree)| tree.len(recovered).map(drop));
        let flaw = read.and_then(|()| tree.flaw(recovered)).unwrap_or_else(|error| Some(error.to_string()));
        if let (Some(what), false) = (flaw, is_known) {
            report.add(Finding {
                kind: "key-value tree".to_owned(),
                table: Some(name.to_string()),
                what,
                remedy: remedy_of(PageKind::TREE_LEAF).to_owned(),
                ..bare(store.path(), 0)
            });
        }
    }
    if report.is_sound() {
        check_indexes(&store, &catalog, recovered, report);
    }
    Ok(())
}

/// Holds indexes against their tables, of which all can be read.
fn check_indexes(store: &Store, catalog: &Catalog, recovered: CommitNumber, report: &mut Report) {
    let is_of_table = |tree| catalog.tables.values().any(|table| table.schema().index_of_tree(tree).is_some());
    for (name, _) in catalog.trees.iter().filter(|(_, tree)| tree.shape().is_index() && !is_of_table(tree.id())) {
        report.add(Finding {
            kind: "index".to_owned(),
            what: format!("'{name}' is an index of no table"),
            remedy: "DROP INDEX".to_owned(),
            ..bare(store.path(), 0)
        });
    }
    for (name, table) in &catalog.tables {
        for index in &table.schema().indexes {
            let flaw = match catalog.tree_by_id(index.tree) {
                Some((_, tree)) => index_flaw(table, index, tree, recovered),
                None => Ok(Some(format!("the tree of index '{}' is not there", index.name))),
            };
            if let Some(what) = flaw.unwrap_or_else(|error| Some(error.to_string())) {
                report.add(Finding {
                    kind: "index".to_owned(),
                    table: Some(name.to_string()),
                    columns: index.columns.clone(),
                    what,
                    remedy: "DROP INDEX, and create it anew".to_owned(),
                    ..bare(store.path(), 0)
                });
            }
        }
    }
}

/// Segments that are in no chunk: in the table's root, or in the log.
fn check_held(store: &Store, table: &ColumnTable, segments: &[SegmentId], report: &mut Report) {
    for &id in segments {
        report.segments += 1;
        if let Err(error) = table.check_segment(id, None) {
            let finding = of_segments(table, &[id], bare(store.path(), 0));
            report.add(Finding {
                kind: "delta batch".to_owned(),
                what: error.to_string(),
                remedy: remedy_of(PageKind::CHUNK).to_owned(),
                ..finding
            });
        }
    }
}

/// What could not be looked at, since what leads to it is damaged. It is told with the damaged page, when that is read.
#[derive(Default)]
struct Hidden {
    catalog: Option<(PageId, String)>,
    roots: BTreeMap<PageId, (String, String)>,
}

impl Hidden {
    /// The finding of a damaged page with what it hides.
    fn explained(&mut self, finding: Finding, page: PageId) -> Finding {
        if self.catalog.as_ref().is_some_and(|(root, _)| *root == page) {
            self.catalog = None;
            let what = format!("{}; {}", finding.what, HIDDEN_BY_CATALOG);
            return Finding { what, ..finding };
        }
        match self.roots.remove(&page) {
            Some((table, _)) => {
                let what = format!("{}; {}", finding.what, HIDDEN_BY_ROOT);
                Finding { what, table: Some(table), ..finding }
            }
            None => finding,
        }
    }

    /// A page that is as it was written, and yet cannot be understood.
    fn seen_whole(&mut self, page: PageId, kind: Option<PageKind>, store: &Store, offset: u64, report: &mut Report) {
        let known = match &self.catalog {
            Some((root, why)) if *root == page => Some((None, why.clone())),
            _ => self.roots.get(&page).map(|(table, why)| (Some(table.clone()), why.clone())),
        };
        let Some((table, what)) = known else { return };
        let kind = kind.unwrap_or(PageKind::CATALOG);
        let finding = Finding {
            kind: kind.to_string(),
            page: Some(page.0),
            table,
            what,
            remedy: remedy_of(kind).to_owned(),
            ..bare(store.path(), offset)
        };
        let finding = self.explained(finding, page);
        report.add(finding);
    }

    /// Pages that were not among those that the map leads to.
    fn report_rest(self, store: &Store, report: &mut Report) {
        let catalog =
            self.catalog.map(|(page, why)| (page, PageKind::CATALOG, None, format!("{why}; {HIDDEN_BY_CATALOG}")));
        let roots = self
            .roots
            .into_iter()
            .map(|(page, (table, why))| (page, PageKind::TABLE_ROOT, Some(table), format!("{why}; {HIDDEN_BY_ROOT}")));
        for (page, kind, table, what) in catalog.into_iter().chain(roots) {
            report.add(Finding {
                kind: kind.to_string(),
                page: Some(page.0),
                table,
                what,
                remedy: remedy_of(kind).to_owned(),
                ..bare(store.path(), 0)
            });
        }
    }
}

const HIDDEN_BY_CATALOG: &str =
    "that hides which tables there are, so the pages of all of them were held against their checksums and no more";

const HIDDEN_BY_ROOT: &str =
    "that hides which row groups the table has, so its pages were held against their checksums and no more";

fn bare(file: &Path, offset: u64) -> Finding {
    Finding {
        file: file.to_path_buf(),
        kind: String::new(),
        page: None,
        offset,
        table: None,
        columns: Vec::new(),
        rows: None,
        row_count: 0,
        what: String::new(),
        remedy: String::new(),
    }
}

fn of_damage(damage: Damage) -> Finding {
    let Damage { file, part, offset, what, is_fallback } = damage;
    let (kind, page, what, remedy) = match part {
        Part::Header(copy) => {
            let remedy =
                "the other copy is used; opening the database for writing puts this one right, if the other is whole";
            (format!("header copy {copy}"), None, what, remedy)
        }
        Part::File => ("file".to_owned(), None, what, "restore the whole file"),
        Part::MapNode(pages) => {
            let last = pages.end.saturating_sub(1);
            let what = format!("{what}; that hides pages {} to {last}", pages.start);
            (PageKind::MAP_NODE.to_string(), None, what, remedy_of(PageKind::MAP_NODE))
        }
        Part::Page(page, kind) => (kind.to_string(), Some(page.0), what, remedy_of(kind)),
        Part::Log => ("log".to_owned(), None, what, "restore the log or a backup"),
    };
    let (what, remedy) = match is_fallback {
        true => (
            format!("{what}; only the checkpoint before the last needs it, should the newer header be lost"),
            "nothing that is in use is damaged; the next two checkpoints let go of it",
        ),
        false => (what, remedy),
    };
    Finding { kind, page, what, remedy: remedy.to_owned(), ..bare(&file, offset) }
}

fn remedy_of(kind: PageKind) -> &'static str {
    match kind {
        PageKind::CATALOG => "restore a backup",
        PageKind::TABLE_ROOT => "restore a backup; opened with on_corruption = 'skip', the other tables can be read",
        PageKind::MAP_NODE => "restore a backup; opened with on_corruption = 'skip', what is elsewhere can be read",
        _ => "restore a backup; with on_corruption = 'skip' the other row groups can be read",
    }
}

/// The finding with the columns and rows that these segments hold.
fn of_segments(table: &ColumnTable, segments: &[SegmentId], finding: Finding) -> Finding {
    let schema = table.schema();
    let columns: BTreeSet<usize> = segments.iter().map(|id| id.column).collect();
    let groups: BTreeSet<usize> = segments.iter().map(|id| id.group).collect();
    let ids = groups.iter().map(|&group| table.row_ids_of(group));
    let rows = ids.reduce(|all, next| all.start.min(next.start)..all.end.max(next.end));
    Finding {
        table: Some(table.name().to_owned()),
        columns: columns.into_iter().map(|column| schema.columns[column].name.clone()).collect(),
        rows,
        row_count: groups.iter().map(|&group| table.groups()[group].group.rows as u64).sum(),
        ..finding
    }
}
